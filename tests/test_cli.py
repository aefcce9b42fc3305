"""The command line, as a user meets it: output, errors, exit codes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import respzoo
from respzoo import zoo
from respzoo.cli import app
from respzoo.cli.console import RegionPrinter
from respzoo.cli.demo import samples

PREFIX = "<|im_start|>assistant\n"
REPLY = '<think>\nHm.\n</think>\n\nLet me look.\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
MESSAGE = {
    "role": "assistant",
    "reasoning_content": "Hm.",
    "content": "Let me look.",
    "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}],
}
BROKEN = 'Look: <tool_call>\n{"name": "f", "arguments": {"x": }}\n</tool_call>'

runner = CliRunner()


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No command may need the Hub for what the zoo knows, and none asks it from a test."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv(zoo.PIN, raising=False)
    zoo.forget()
    yield
    zoo.forget()


@pytest.fixture
def reply(tmp_path: Path) -> str:
    file = tmp_path / "reply.txt"
    file.write_bytes(REPLY.encode())
    return str(file)


def run(*arguments: str, text: str | None = None, code: int = 0) -> Any:
    result = runner.invoke(app, list(arguments), input=text)
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def test_demo_shows_regions_and_then_the_message() -> None:
    output = run("demo").stdout
    for sample in samples().values():
        assert sample["model"] in output
    first = output.partition("Qwen/Qwen3-Coder")[0]
    places = [first.index(f" {label} \n") for label in ("reasoning", "content", "tool call")]
    assert places == sorted(places)
    message = json.loads(first[first.rindex("\n{\n") :])
    assert message["reasoning_content"] == "I need live weather data for London."
    assert message["content"] == "Let me check the current conditions in London."
    assert message["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": {"city": "London"}}
    regions = first[places[0] : first.rindex("message")]
    assert "<think>" not in regions
    assert "<tool_call>" not in regions


@pytest.mark.parametrize("sample", samples().values(), ids=samples())
def test_the_demos_samples_parse_as_their_source_says(sample: dict[str, Any]) -> None:
    template = respzoo.get(sample["model"])
    message = template.parse("".join(sample["tokens"]), prefix=sample["prefix"], tools=sample["tools"])
    expected = sample["expected"]
    assert message.get("content") == expected["content"]
    assert message.get("reasoning_content") == expected["reasoning_content"]
    assert [call["function"] for call in message["tool_calls"]] == expected["tool_calls"]


def test_demo_of_one_sample() -> None:
    output = run("demo", "qwen3_xml", "--fast").stdout
    assert "Qwen/Qwen3-8B" not in output
    assert "= write_file(path='hello.py'" in output
    assert "no sample 'x'" in run("demo", "x", code=2).stderr


def test_demo_is_plain_text_when_it_is_no_terminal() -> None:
    output = subprocess.run(
        [sys.executable, "-m", "respzoo", "demo"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert "\x1b" not in output


def test_which_says_why() -> None:
    assert "qwen3  " in run("which", "Qwen/Qwen3-8B").stdout
    assert "exact id" in run("which", "Qwen/Qwen3-8B", "--why").stdout
    answer = json.loads(run("which", "Qwen/Qwen3-8B", "--json").stdout)
    assert answer["template"] == "qwen3"
    assert answer["source"] == respzoo.get("Qwen/Qwen3-8B").source
    assert answer["trail"]


def test_an_unknown_model_is_exit_code_3_and_says_what_to_do() -> None:
    for command in (["which"], ["show"], ["parse", "--model"]):
        result = run(*command, "nobody/knows-this", text="", code=3)
        assert result.stdout == ""
        assert "error: no response template is known for 'nobody/knows-this'" in result.stderr
        assert "registry/README.md" in result.stderr


def test_list() -> None:
    assert "qwen3_xml" in run("list").stdout
    families = json.loads(run("list", "--json").stdout)
    assert {"qwen3", "qwen3_xml", "gpt_oss", "smollm3", "cohere_command3"} <= {family["name"] for family in families}


def test_show_by_family_and_by_model() -> None:
    spec = json.loads(run("show", "qwen3", "--json").stdout)
    assert spec == respzoo.get("Qwen/Qwen3-8B").spec
    assert json.loads(run("show", "Qwen/Qwen3-8B", "--json").stdout) == spec
    output = run("show", "qwen3").stdout
    assert "Qwen/Qwen3-8B" in output
    assert '"fields": {' in output


def test_parse_a_file_by_model(reply: str) -> None:
    output = run("parse", reply, "--model", "Qwen/Qwen3-8B", "--prefix", PREFIX).stdout
    assert json.loads(output) == MESSAGE
    assert output.count("\n") > 5


def test_parse_standard_input_by_family_on_one_line() -> None:
    output = run("parse", "--template", "qwen3", "--json", text=REPLY).stdout
    assert json.loads(output) == MESSAGE
    assert output.count("\n") == 1


def test_parse_with_a_template_of_ones_own(reply: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    fields = {"thoughts": {"open": "<think>", "close": "</think>"}, "content": {}}
    file.write_text(json.dumps({"start_anchor": "assistant", "fields": fields}))
    assert json.loads(run("parse", reply, "-t", str(file), "--json").stdout)["thoughts"] == "Hm."
    file.write_text(json.dumps({"start_anchor": "assistant", "fields": {"content": {"opens": "<think>"}}}))
    result = run("parse", reply, "-t", str(file), code=2)
    assert "$.fields.content" in result.stderr


def test_parse_types_arguments_by_the_tools(tmp_path: Path) -> None:
    text = "<tool_call>\n<function=f>\n<parameter=n>\n12\n</parameter>\n</function>\n</tool_call>"
    parameters = {"type": "object", "properties": {"n": {"type": "string"}}}
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"type": "function", "function": {"name": "f", "parameters": parameters}}]))
    output = run("parse", "-t", "qwen3_xml", "--tools", str(tools), "--json", text=text).stdout
    assert json.loads(output)["tool_calls"][0]["function"]["arguments"] == {"n": "12"}


def test_the_prefix_may_come_from_a_file(tmp_path: Path) -> None:
    prefix = tmp_path / "prefix.txt"
    prefix.write_text(PREFIX + "<think>\n")
    output = run("parse", "-t", "qwen3", "--prefix-file", str(prefix), "--json", text="Hm.\n</think>\n\nYes.").stdout
    assert json.loads(output) == {"role": "assistant", "reasoning_content": "Hm.", "content": "Yes."}


def test_a_broken_text_is_exit_code_1_and_what_could_be_read() -> None:
    result = run("parse", "-t", "qwen3", "--json", text=BROKEN, code=1)
    assert json.loads(result.stdout)["content"].startswith("Look:")
    assert "error: " in result.stderr
    kept = json.loads(run("parse", "-t", "qwen3", "--json", "--on-malformed", "content", text=BROKEN).stdout)
    assert kept == {"role": "assistant", "content": BROKEN}
    dropped = json.loads(run("parse", "-t", "qwen3", "--json", "--on-malformed", "drop", text=BROKEN).stdout)
    assert dropped == {"role": "assistant", "content": "Look:"}


def test_parse_streams_regions() -> None:
    output = run("parse", "-t", "qwen3", "--stream", text=REPLY).stdout
    assert " reasoning \n" in output
    assert "= f(x=1)" in output
    assert json.loads(output[output.index("\n{") :]) == MESSAGE
    assert "malformed: " in run("parse", "-t", "qwen3", "--stream", text=BROKEN, code=1).stdout


def test_parse_streams_events_as_json_lines() -> None:
    lines = [
        json.loads(line) for line in run("parse", "-t", "qwen3", "--stream", "--json", text=REPLY).stdout.splitlines()
    ]
    assert lines[-1] == {"type": "message", "message": MESSAGE}
    assert {line["type"] for line in lines[:-1]} == {"region_open", "region_chunk", "region_close"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["parse", "-"], "give either --model or --template"),
        (["parse", "-", "-m", "Qwen/Qwen3-8B", "-t", "qwen3"], "give either --model or --template"),
        (["parse", "nowhere.txt", "-t", "qwen3"], "cannot read nowhere.txt"),
        (["parse", "-", "-t", "qwen3", "--tools", "nowhere.json"], "cannot read nowhere.json"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], words: str) -> None:
    result = run(*arguments, text="", code=2)
    assert words in " ".join(result.stderr.replace("│", " ").split())


def test_a_template_that_is_not_there_is_exit_code_3() -> None:
    assert "there is no nowhere.json" in run("parse", "-", "-t", "nowhere.json", text="", code=3).stderr
    assert "known are" in run("parse", "-", "-t", "nowhere", text="", code=3).stderr


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "latin.txt"
    file.write_bytes("é".encode("latin-1"))
    assert "cannot read" in run("parse", str(file), "-t", "qwen3", code=2).stderr


@pytest.mark.parametrize("command", ["demo", "which", "list", "show", "parse"])
def test_help_has_examples(command: str) -> None:
    assert f"respzoo {command}" in run(command, "--help").stdout.partition("Examples")[2]


def test_version_and_help() -> None:
    assert run("--version").stdout.strip()
    assert "Exit codes" in run("--help").stdout


def test_a_region_wraps_at_the_terminals_width() -> None:
    console = Console(file=io.StringIO(), width=20, highlight=False)
    printer = RegionPrinter(console)
    printer.print([{"type": "region_open", "field": "content"}])
    for word in ("\none", " two three", " four", " five\n", "    six", "\n\n"):
        printer.print([{"type": "region_chunk", "field": "content", "text": word, "dirty": False}])
    printer.print([{"type": "region_close", "field": "content", "value": ""}])
    assert isinstance(console.file, io.StringIO)
    bar = printer.bar
    assert console.file.getvalue().splitlines() == [
        " content ",
        f"{bar}one two three",
        f"{bar}four five",
        f"{bar}    six",
    ]


def test_a_models_text_does_not_steer_the_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None)
    printer = RegionPrinter(console)
    printer.print([{"type": "region_open", "field": "content"}])
    printer.print([{"type": "region_chunk", "field": "content", "text": "\x1b[2J", "dirty": False}])
    assert isinstance(console.file, io.StringIO)
    assert "\x1b[2J" not in console.file.getvalue()
