"""`respzoo explain`, on a terminal, for programs, and as a page that a browser opens."""

from __future__ import annotations

import html
import importlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from respzoo.cli import app
from respzoo.cli.explain import caret, coloured
from respzoo.cli.page import page
from respzoo.plugins import load_family
from respzoo.trace import trace

ROOT = Path(__file__).resolve().parents[1]
PREFIX = "<|im_start|>assistant\n"
BROKEN = (
    '<think>\nHm.\n</think>\n\nLook <tool_bar>.\n<tool_call>\n{"name": "f", "arguments": {"x": }}\n</tool_call>\nBye.'
)
GOOD = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'

runner = CliRunner()


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def run(*arguments: str, text: str, code: int = 0) -> Any:
    result = runner.invoke(app, ["explain", "-t", "qwen3", "--prefix", PREFIX, *arguments], input=text)
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def test_what_broke_is_told_with_a_caret_under_it() -> None:
    output = run(text=BROKEN, code=1).stdout
    lines = output.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("malformed tool call, at "))
    assert "Expecting value" in lines[head]
    assert lines[head + 1][lines[head + 2].index("^")] == "}"
    assert re.search(r"region_malformed +tool call is malformed", output)
    assert re.search(r"held until \d+: opener of", output)
    assert json.loads(output[output.index("\n{\n") :])["reasoning_content"] == "Hm."


def test_a_text_without_faults_is_exit_code_0() -> None:
    output = run(text=GOOD).stdout
    assert "malformed" not in output
    assert "opens tool call" in output


def test_the_raw_text_is_coloured_by_region() -> None:
    found = trace(load_family("qwen3"), BROKEN, prefix=PREFIX)
    text = coloured(found)
    assert text.plain == BROKEN
    styles = {text.plain[span.start : span.end]: str(span.style) for span in text.spans}
    assert styles["Hm."] == "magenta"
    assert styles["<think>\n"] == "magenta reverse"
    assert styles["\n<tool_call>"] == "red reverse"


def test_the_caret_holds_in_long_lines_and_wide_characters() -> None:
    text = '<tool_call>{"name": "f", "arguments": {"x": "' + "温" * 50 + '", "y": oops}}</tool_call>'
    found = trace(load_family("qwen3"), text, prefix=PREFIX)
    console = Console(file=io.StringIO(), width=200)
    console.print(caret(found, found.faults[0]), soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    _, line, mark = console.file.getvalue().splitlines()
    assert line.startswith("  … ")
    before = line[: line.index("oops")]
    assert len(before) + before.count("温") == mark.index("^")  # each of these is two columns wide


def test_for_programs() -> None:
    told = json.loads(run("--json", text=BROKEN, code=1).stdout)
    assert told["text"] == BROKEN
    assert "".join(BROKEN[piece["start"] : piece["end"]] for piece in told["pieces"]) == BROKEN
    (fault,) = told["faults"]
    assert BROKEN[fault["place"] :].startswith("}}")
    assert {event["event"]["type"] for event in told["events"]} == {
        "region_open",
        "region_chunk",
        "region_close",
        "region_malformed",
    }
    assert any(
        hold["was"] == "text of content" and hold["might_be"] == ["opener of tool_calls"] for hold in told["held"]
    )


def test_another_models_output_is_guessed(tmp_path: Path) -> None:
    text = '[TOOL_CALLS][{"name": "f", "arguments": {}}]'
    output = run(text=text).stdout
    assert re.search(r"no call was found; [\w, ]*\bmistral_v3\b[\w, ]* would find some", output)
    assert "mistral_v3" in json.loads(run("--json", text=text).stdout)["calls_by"]
    run("--html", str(tmp_path / "why.html"), text=text)
    assert "no call was found" in (tmp_path / "why.html").read_text("utf-8")
    assert "no call was found" not in run(text=GOOD).stdout
    assert json.loads(run("--json", text="Nothing to call.").stdout)["calls_by"] == []


def test_what_the_prompt_wrote_is_said() -> None:
    result = runner.invoke(
        app, ["explain", "-t", "qwen3", "--prefix", PREFIX + "<think>\n", "--json"], input="Hm.\n</think>\n\nYes."
    )
    told = json.loads(result.stdout)
    assert told["prompt"] == "<think>\n"
    assert told["pieces"][0]["start"] == -len("<think>\n")


def test_a_models_text_does_not_steer_the_terminal() -> None:
    assert "\x1b[2J" not in run(text="\x1b[2J").stdout


def test_the_page_is_one_file_and_opens_in_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "why.html"
    run("--html", str(file), text=BROKEN + "<script>document.title = 'taken'</script>", code=1)
    source = file.read_text("utf-8")
    assert not re.search(r"(?:src|href)=[\"'](?!#)|@import|url\(|<script", source)
    monkeypatch.syspath_prepend(ROOT / "tools")
    chromium = importlib.import_module("browser").chromium
    picture = tmp_path / "why.png"
    seen = chromium(file, "--dump-dom")
    assert "<title>respzoo explain: qwen3</title>" in seen
    text = re.search(r'<pre id="text">(.*?)</pre>', seen, re.DOTALL)
    assert text is not None
    plain = html.unescape(re.sub(r"<span class=\"eol\">⏎</span>|<[^>]+>", "", text[1]))
    assert plain == BROKEN + "<script>document.title = 'taken'</script>"
    assert seen.count('class="fault"') == 1
    for target in re.findall(r'href="#([pr]\d+)"', seen):
        assert f'id="{target}"' in seen
    chromium(file, f"--screenshot={picture}", "--window-size=900,700")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000  # not an empty page
    del sys.modules["browser"]


def test_the_page_shows_control_characters() -> None:
    template = load_family("qwen3")
    assert "␛[2J" in page(trace(template, "\x1b[2J", prefix=PREFIX), template, [])


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    assert "cannot write --html" in run("--html", str(tmp_path), text=GOOD, code=2).stderr
