"""Batches, plugins, exports and what holds for every command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from respzoo import zoo
from respzoo.cli import app
from respzoo.cli.choose import complete_family
from respzoo.plugins import Plugin, loaded

PREFIX = "<|im_start|>assistant\n"
CALL = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
BROKEN = '<tool_call>\n{"name": "f", "arguments": {"x": }}\n</tool_call>'
COMMANDS = ["which", "list", "show", "parse", "explain", "check", "new", "install", "export", "plugins", "demo"]

runner = CliRunner()


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv(zoo.PIN, raising=False)
    zoo.forget()


def run(*arguments: str, text: str | None = None, code: int = 0) -> Any:
    result = runner.invoke(app, list(arguments), input=text)
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


# ------------------------------------------------------------------------------------------------------ every command


def test_the_commands_are_these() -> None:
    group = typer.main.get_command(app)
    assert set(group.commands) == set(COMMANDS)  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples_and_json(command: str) -> None:
    output = run(command, "--help").stdout
    assert f"respzoo {command}" in output.partition("Examples")[2]
    assert "--json" in output


def test_completion_knows_the_families() -> None:
    assert ("qwen3", loaded().families["qwen3"].title) in complete_family("qwen")
    assert complete_family("nothing-like-it") == []
    assert "--show-completion" in run("--help").stdout


def test_the_shell_completes_families() -> None:
    environment = {"_RESPZOO_COMPLETE": "complete_bash", "COMP_WORDS": "respzoo show smoll", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['respzoo']; from respzoo.cli import main; main()"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "smollm3" in done.stdout.split()


# ----------------------------------------------------------------------------------------------------------- batches


def test_a_batch_gives_one_message_a_line() -> None:
    lines = [
        json.dumps("Yes."),
        json.dumps({"text": "Hm.\n</think>\n\nNo.", "prefix": PREFIX + "<think>\n"}),
        "",
        json.dumps({"raw_output": CALL, "generation_prompt": PREFIX, "tools": []}),
    ]
    output = run("parse", "-t", "qwen3", "--prefix", PREFIX, "--lines", text="\n".join(lines)).stdout
    messages = [json.loads(line) for line in output.splitlines()]
    assert [message.get("content") for message in messages] == ["Yes.", "No.", None]
    assert messages[1]["reasoning_content"] == "Hm."
    assert messages[2]["tool_calls"][0]["function"] == {"name": "f", "arguments": {"x": 1}}


def test_a_batch_goes_on_behind_a_broken_text(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text("\n".join(json.dumps(text) for text in ("Yes.", BROKEN, "No.")))
    result = run("parse", str(file), "-t", "qwen3", "--lines", code=1)
    first, second, third = map(json.loads, result.stdout.splitlines())
    assert (first["content"], third["content"]) == ("Yes.", "No.")
    assert second["error"].startswith("malformed tool_calls region")
    assert second["message"] == {"role": "assistant"}
    assert "1 of 3 texts break the template" in result.stderr
    kept = run("parse", str(file), "-t", "qwen3", "--lines", "--on-malformed", "content").stdout
    assert json.loads(kept.splitlines()[1])["content"] == BROKEN


@pytest.mark.parametrize(
    "line", ["{", "1", '{"prefix": ""}', '{"text": "a", "tools": {}}', '{"text": "a", "prefix": 1}']
)
def test_a_line_that_is_no_text(line: str) -> None:
    stderr = run("parse", "-t", "qwen3", "--lines", text=f'"Yes."\n{line}', code=2).stderr
    assert "standard input:2" in " ".join(stderr.replace("│", " ").split())


def test_a_batch_is_no_stream() -> None:
    assert "either --stream or" in run("parse", "-t", "qwen3", "--lines", "--stream", text="", code=2).stderr


def test_a_batch_shows_its_progress_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from respzoo.cli import parse

    seen: dict[str, Any] = {}

    def track(batch: Any, *_: Any, disable: bool, **__: Any) -> Any:
        seen["disable"] = disable
        return batch

    monkeypatch.setattr(parse, "track", track)
    run("parse", "-t", "qwen3", "--lines", text='"Yes."')
    assert seen == {"disable": True}
    monkeypatch.setattr(Console, "is_terminal", property(lambda console: console.stderr))
    run("parse", "-t", "qwen3", "--lines", text='"Yes."')
    assert seen == {"disable": False}


# ------------------------------------------------------------------------------------------------- plugins, export, demo


def test_plugins_are_listed() -> None:
    output = run("plugins").stdout
    assert "respzoo:curated" in output
    (curated,) = [one for one in json.loads(run("plugins", "--json").stdout) if one["name"] == "respzoo:curated"]
    assert curated["state"] == "used"
    assert "qwen3" in curated["families"]


def test_a_broken_plugin_is_named_and_exit_code_2(monkeypatch: pytest.MonkeyPatch) -> None:
    from respzoo.cli import plugin_list

    broken = Plugin("acme:families", "1.0", "broken", (), (), ("ImportError: no module named acme",))
    monkeypatch.setattr(plugin_list, "report", lambda: [broken])
    assert "acme:families: ImportError: no module named acme" in run("plugins", code=2).stdout
    assert json.loads(run("plugins", "--json", code=2).stdout)[0]["errors"]


def test_export_prints_the_template_and_says_what_is_lost(tmp_path: Path) -> None:
    result = run("export", "qwen3", "--dialect", "sglang")
    assert set(json.loads(result.stdout)["fields"]) == {"thinking", "tool_calls", "content"}
    spec = json.loads(run("show", "qwen3", "--json").stdout)
    spec["dialect"] = "respzoo"
    spec["fields"]["reasoning_content"]["ended_by"] = ["tool_calls"]
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(spec))
    result = run("export", str(file))
    assert "not for transformers: $.fields.reasoning_content.ended_by" in result.stderr
    assert "ended_by" not in result.stdout
    told = json.loads(run("export", str(file), "--json").stdout)
    assert told["losses"][0]["path"] == "$.fields.reasoning_content.ended_by"
    spec["fields"]["tool_calls"]["content_args"] = {"sequence": True}
    file.write_text(json.dumps(spec))
    assert "$.fields.tool_calls.content_args.sequence" in run("export", str(file), code=2).stderr
    assert run("export", "nobody/knows-this", code=3).stdout == ""


def test_a_familys_folder_is_a_template() -> None:
    folder = Path(__file__).parents[1] / "registry" / "respzoo_curated" / "qwen3"
    assert json.loads(run("show", str(folder), "--json").stdout) == json.loads(run("show", "qwen3", "--json").stdout)


def test_demo_for_programs() -> None:
    told = [json.loads(line) for line in run("demo", "--json").stdout.splitlines()]
    assert [one["template"] for one in told] == ["qwen3", "qwen3_xml"]
    assert all(one["message"]["tool_calls"] for one in told)
