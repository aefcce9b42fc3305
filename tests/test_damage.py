"""docs/damage.md is what happens: each row of its table, in several families (tests/data/damage.jsonl), streamed and
whole, with every policy. tests/vllm/release_cases.py reads the same texts through the adapter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import respzoo
from respzoo import ParseError, ResponseTemplate

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "damage.md").read_text("utf-8")
CASES: list[dict[str, Any]] = [
    json.loads(line) for line in (ROOT / "tests" / "data" / "damage.jsonl").read_text("utf-8").splitlines()
]
COLUMNS = ("message", "deltas", "streamed", "event", "dropped", "changed by", "reply", "finish_reason")
TOOLS = [
    {"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}},
]


def read_rows() -> Iterator[tuple[str, dict[str, list[str]]]]:
    """The table: what each cell names in backticks, nothing for a dash."""
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 1 + len(COLUMNS) and cells[0] not in ("damage", "---"):
            assert all(cell == "–" or re.fullmatch(r"`\w+`(, `\w+`)*", cell) for cell in cells[1:]), line
            yield cells[0], {name: re.findall(r"`(\w+)`", cell) for name, cell in zip(COLUMNS, cells[1:], strict=True)}


ROWS = dict(read_rows())


def template_of(case: dict[str, Any]) -> ResponseTemplate:
    return respzoo.get(case["model"])


def name_of(case: dict[str, Any]) -> str:
    return f"{case['damage']}-{case['model'].partition('/')[2]}".replace(" ", "_")


def expected_message(case: dict[str, Any]) -> dict[str, Any]:
    message = {key: case[key] for key in ("content", "reasoning_content") if key in case}
    if "calls" in case:
        message["tool_calls"] = [
            {"type": "function", "function": {"name": name, "arguments": arguments}}
            for name, arguments in case["calls"]
        ]
    return {"role": "assistant", **message}


def pieces_of(text: str, size: int | None) -> list[str]:
    return [text] if size is None else [text[at : at + size] for at in range(0, len(text), size)]


def streamed(case: dict[str, Any], size: int | None, **options: Any) -> tuple[dict[str, Any], list[Any], list[Any]]:
    """The message, the deltas, and what was dropped."""
    stream = template_of(case).stream(prefix="", tools=TOOLS if case.get("tools", True) else None, **options)
    deltas = [delta for piece in pieces_of(case["text"], size) for delta in stream.feed(piece)]
    message, last = stream.finish()
    return message, deltas + last, stream.dropped


def kinds(deltas: list[Any]) -> list[str]:
    return list(dict.fromkeys(key for delta in deltas for key in delta))


def without_ids(message: dict[str, Any]) -> dict[str, Any]:
    calls = [{key: call[key] for key in call if key != "id"} for call in message.get("tool_calls", ())]
    return {**message, "tool_calls": calls} if calls else message


def test_the_table_is_whole() -> None:
    assert set(ROWS) == {case["damage"] for case in CASES}
    for damage in ROWS:
        assert sum(case["damage"] == damage for case in CASES) >= 4
    assert len({case["model"] for case in CASES}) >= 5


@pytest.mark.parametrize("size", [None, 1, 3])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_as_the_page_says(case: dict[str, Any], size: int | None) -> None:
    row = ROWS[case["damage"]]
    message, deltas, dropped = streamed(case, size, arguments="complete")
    assert without_ids(message) == expected_message(case)
    assert {key for key in message if key != "role"} == set(row["message"])
    assert kinds(deltas) == row["deltas"]
    assert [region["reason"] for region in dropped] == row["dropped"]
    assert [region["raw"] for region in dropped] == ([case["raw"]] if "raw" in case else [])


@pytest.mark.parametrize("size", [None, 1, 3])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_events(case: dict[str, Any], size: int | None) -> None:
    row = ROWS[case["damage"]]
    parser = template_of(case).parser(prefix="", tools=TOOLS)
    events = [event for piece in pieces_of(case["text"], size) for event in parser.feed(piece)]
    message, last = parser.finalize()
    assert without_ids(message) == expected_message(case)
    malformed = [event for event in events + last if event["type"] == "region_malformed"]
    assert [event["type"] for event in malformed] == row["event"]
    assert [event.get("raw") for event in malformed] == ([case["raw"]] if "raw" in case else [])
    assert [event.get("reason") for event in malformed] == row["dropped"]


@pytest.mark.parametrize("size", [None, 1, 3])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_streamed_arguments(case: dict[str, Any], size: int | None) -> None:
    """The same, but for a call that breaks off: it has begun to be sent, and the message says so."""
    row = ROWS[case["damage"]]
    message, deltas, dropped = streamed(case, size, arguments="stream")
    if size == 1:
        assert kinds(deltas) == row["streamed"]
    assert set(kinds(deltas)) <= {*row["streamed"]}
    whole = [call for call in message.get("tool_calls", ()) if "status" not in call]
    begun = [call for call in message.get("tool_calls", ()) if "status" in call]
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    assert without_ids({**rest, "tool_calls": whole} if whole else rest) == expected_message(case)
    assert [region["raw"] for region in dropped] == ([case["raw"]] if "raw" in case else [])
    assert len(begun) <= len(dropped)
    for call in begun:
        assert call["status"] == "incomplete"
        assert call["function"]["name"] == "f"
        with pytest.raises(ValueError, match=r"."):
            json.loads(call["function"]["arguments"])


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_what_changes_it(case: dict[str, Any]) -> None:
    """The option that the page names turns content into a record and back; no other does."""
    row = ROWS[case["damage"]]
    usual = streamed(case, None, arguments="complete")[0]
    for option, other in (("on_malformed", "drop"), ("on_unfinished", "content")):
        message, _, dropped = streamed(case, None, arguments="complete", **{option: other})
        assert [region["reason"] for region in dropped] == row["dropped"]
        if option not in row["changed by"]:
            assert without_ids(message) == without_ids(usual)
        elif other == "drop":
            assert "content" not in message
        else:
            assert message["content"] == case["raw"]


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_whole_replies_raise(case: dict[str, Any]) -> None:
    template = template_of(case)
    if not ROWS[case["damage"]]["dropped"]:
        assert without_ids(template.parse(case["text"], prefix="", tools=TOOLS)) == expected_message(case)
        return
    with pytest.raises(ParseError) as raised:
        template.parse(case["text"], prefix="", tools=TOOLS)
    assert raised.value.raw == case["raw"]
    without = {key: value for key, value in expected_message(case).items() if key != "content"}
    assert without_ids(dict(raised.value.message)) == without
    assert without_ids(template.parse(case["text"], prefix="", tools=TOOLS, on_malformed="drop")) == without


def test_finish_reasons_follow_from_the_reply() -> None:
    """What ended it, here the limit, where the text is cut; else `tool_calls` where there is a whole call (docs/vllm.md)."""
    for damage, row in ROWS.items():
        cut = "unfinished" in row["dropped"] or damage == "reasoning never closed"
        ended = "length" if cut else "tool_calls" if "tool_calls" in row["reply"] else "stop"
        assert row["finish_reason"] == [ended]


def test_the_variables_are_the_options() -> None:
    rows = re.findall(r"^\| `RESPZOO_(\w+)` \| `(\w+)`, `(\w+)` \| `(\w+)` \|$", PAGE, re.MULTILINE)
    assert {name.lower() for name, *_ in rows} == {"on_malformed", "on_unfinished", "arguments"}
    for name, first, second, default in rows:
        assert default == first
        for value in (first, second):
            respzoo.MessageStream(template_of(CASES[0]), prefix="", **{name.lower(): value})
        with pytest.raises(ValueError, match=name.lower()):
            respzoo.MessageStream(template_of(CASES[0]), prefix="", **{name.lower(): "perhaps"})
