"""What the README shows is what happens."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from respzoo.plugins import Plugins
from respzoo.template import ResponseTemplate

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
FILES = re.findall(r"^`([\w./]+)`\n```\w+\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PYTHON = re.findall(r"\n\n```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_scripts_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(PYTHON) == 3
    names: dict[str, object] = {}
    for block in PYTHON:
        exec(block, names)  # each goes on where the one before ends
    output = capsys.readouterr().out
    assert output.startswith("qwen3 | ")
    assert "{'reasoning_content': 'They want" in output
    assert names["message"] == {
        "role": "assistant",
        "reasoning_content": "They want the weather.",
        "content": "Let me look.",
        "tool_calls": [{"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}],
    }
    assert isinstance(names["tag"], dict)


def test_the_plugin_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(FILES) == 4
    for path, text in FILES:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("acme_respzoo")
    plugins = Plugins()
    plugins.register(module.plugin, "acme")
    family = plugins.ids["acme/one-7b"]
    assert not plugins.broken
    assert family.match_name("one-70b")
    template = ResponseTemplate(family.spec, name=family.name)
    text = '[think]Hm.[/think]Yes.[call]{"name": "f", "arguments": {}}[/call][end]'
    assert template.parse(text, prefix="[assistant]") == {
        "role": "assistant",
        "reasoning_content": "Hm.",
        "content": "Yes.",
        "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {}}}],
    }


def test_the_table_of_families_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "catalogue.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0, "the README is behind: make catalogue"


def test_its_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / link).exists(), link
