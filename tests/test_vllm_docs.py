"""docs/vllm.md names what there is: every variable, every reason, every release."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from respzoo_vllm import damage
from respzoo_vllm.plan import CHOICES

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "vllm.md").read_text("utf-8")


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_cells(text: str) -> list[str]:
    return [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| `")]


def test_every_variable() -> None:
    used: set[str] = {f"RESPZOO_{name.upper()}" for name in CHOICES}
    for folder in ("respzoo", "adapters"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    used.update(re.findall(r"^RESPZOO_[A-Z_]+$", node.value))
    assert {cell.strip("`") for cell in first_cells(section("Variables"))} == used


def test_the_defaults_come_first() -> None:
    for name, allowed in CHOICES.items():
        row = next(line for line in section("Variables").splitlines() if f"`RESPZOO_{name.upper()}`" in line)
        assert row.split("|")[2].strip() == ", ".join(f"`{value}`" for value in allowed)


def test_every_reason() -> None:
    told = [
        code for cell in first_cells(section("What is logged and counted")) for code in re.findall(r"`(\w+)`", cell)
    ]
    assert sorted(told) == sorted(damage.CODES)


def test_every_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "vllm_cpu"))
    monkeypatch.delitem(sys.modules, "releases", raising=False)
    import releases  # type: ignore[reportMissingImports]

    head = next(line for line in section("Releases").splitlines() if line.startswith("| | "))
    assert head.strip("| ").split(" | ") == [version.removesuffix(".0") for version in sorted(releases.RELEASES)]


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).resolve().exists(), target
    assert "docs/vllm.md" in (ROOT / "README.md").read_text("utf-8")
