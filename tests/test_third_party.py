"""A family of one's own in a package of one's own: built, installed beside respzoo in a clean environment, and found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]

PACKAGE = {
    "pyproject.toml": """
        [build-system]
        requires = ["hatchling"]
        build-backend = "hatchling.build"

        [project]
        name = "acme-respzoo"
        version = "1.4.2"
        dependencies = ["respzoo"]

        [project.entry-points.respzoo]
        acme = "acme_families:plugin"

        [tool.hatch.build.targets.wheel]
        packages = ["acme_families"]
    """,
    "acme_families/__init__.py": """
        from importlib.resources import files

        from respzoo.plugins import TemplateFolder

        plugin = TemplateFolder(files(__name__))
    """,
    "acme_families/acme_chat/family.toml": """
        title = "Acme Chat"
        models = ["Acme/Chat-7B"]
        id_patterns = ['acme-chat-\\d+b']

        [[chat_template]]
        require = ["<acme:bot>"]
    """,
}
TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<acme:bot>",
    "fields": {
        "content": {},
        "tool_calls": {
            "open": "<call>",
            "close": "</call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
    },
}
SAMPLE = {
    "id": "acme-chat/one-call",
    "tools": [],
    "raw_output": 'Now.<call>{"name": "f", "arguments": {}}</call>',
    "expected": {"content": "Now.", "reasoning_content": None, "tool_calls": [{"name": "f", "arguments": {}}]},
}
ASK = """
import json, respzoo
from respzoo.plugins import loaded
found = {model: respzoo.get(model) for model in ("Acme/Chat-7B", "other/acme-chat-9b-FP8", "Qwen/Qwen3-8B")}
marked = respzoo.get("x/y", chat_template="<acme:bot>{{ x }}")
print(json.dumps({
    "where": respzoo.__file__,
    "names": {model: template.name for model, template in found.items()},
    "source": found["Acme/Chat-7B"].source,
    "marked": marked.name,
    "owners": loaded().owners,
    "versions": [loaded().version(name) for name in loaded().names],
    "broken": [str(broken) for broken in loaded().broken],
    "message": found["Acme/Chat-7B"].parse('Hi.<call>{"name": "f", "arguments": {"x": 1}}</call>', prefix="<acme:bot>"),
}))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that has respzoo and the package, both from their wheels."""
    folder = tmp_path_factory.mktemp("third-party")
    package = folder / "acme-respzoo"
    for name, text in PACKAGE.items():
        file = package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = text.strip("\n").splitlines()
        file.write_text("\n".join(line.removeprefix("        ") for line in lines) + "\n")
    family = package / "acme_families" / "acme_chat"
    (family / "template.json").write_text(json.dumps(TEMPLATE))
    (family / "samples.jsonl").write_text(json.dumps(SAMPLE) + "\n")

    venv.create(folder / "env")
    interpreter = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(interpreter), "install", "--quiet", "--no-compile"]
    subprocess.run([*pip, str(ROOT), str(package)], check=True)
    return interpreter


def run(interpreter: Path, *arguments: str) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "RESPZOO"))}
    done = subprocess.run(
        [str(interpreter), *arguments],
        cwd=interpreter.parent,
        env={**clean, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_package_with_one_family_is_found(python: Path) -> None:
    answer: dict[str, Any] = json.loads(run(python, "-c", ASK))
    assert Path(answer["where"]).is_relative_to(python.parents[1])
    assert answer["broken"] == []
    assert answer["names"] == {
        "Acme/Chat-7B": "acme_chat",
        "other/acme-chat-9b-FP8": "acme_chat",
        "Qwen/Qwen3-8B": "qwen3",
    }
    assert answer["source"] == "family acme_chat of acme-respzoo:acme lists Acme/Chat-7B"
    assert answer["marked"] == "acme_chat"
    assert answer["owners"]["acme_chat"] == "acme-respzoo:acme"
    assert "1.4.2" in answer["versions"]
    assert answer["message"] == {
        "role": "assistant",
        "content": "Hi.",
        "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}],
    }


def test_its_samples_and_those_of_the_zoo_hold_as_installed(python: Path) -> None:
    assert run(python, "-m", "respzoo.testing", "check", "acme_chat") == "acme_chat: all samples hold\n"
    assert run(python, "-m", "respzoo.testing", "check", "smollm3") == "smollm3: all samples hold\n"
