"""Live: a family whose calls are tags (Qwen3-Coder), on a server whose template an operator pinned.

The chat template of the checkpoint speaks of JSON; `RESPZOO_TEMPLATE=qwen3_xml` is what tells the server otherwise, and
`RESPZOO_LOG_RAW=1` lets its log show what it could not read.
"""

from __future__ import annotations

from typing import Any

import pytest
import scripts
from live import FLAT_TOOLS, NAMED, PING, STRICT_FLAT_TOOLS, Live, Message, Reply

ZURICH = ("get_weather", '{"city": "Zürich", "days": 3}')
TOKYO = ("get_weather", '{"city": "東京", "note": "a \\"b\\" < c", "days": 3}')
TWICE = Reply("Two with tags.", "Look:\nBoth.", (ZURICH, PING), "tool_calls")
RAW = next(script.answer for script in scripts.SCRIPTS if script.prompt == "tagged twice").partition("</think>\n\n")[2]


def test_pinned(tagged: Live) -> None:
    (named,) = [line for line in tagged.log().splitlines() if "respzoo reads" in line]
    assert "the response template qwen3_xml: " in named
    assert "RESPZOO_TEMPLATE" in named


def test_reply(tagged: Live) -> None:
    assert tagged.chat.ask("tagged twice") == TWICE
    assert tagged.chat.ask("answer plainly") == Reply("Easy one.", "The answer is **42**.")


@pytest.mark.parametrize(
    ("prompt", "choice", "expected"),
    [
        ("wear badges", "auto", Reply("Which badge?", "Talk.")),
        ("wear badges", "required", Reply("Which badge?", "", (TOKYO, PING), "tool_calls")),
        ("wear badges", NAMED, Reply("Which badge?", "", (TOKYO,), "stop")),
        ("tagged twice", "none", Reply("Two with tags.", RAW)),
    ],
    ids=["auto", "required", "named", "none"],
)
def test_tool_choice(tagged: Live, prompt: str, choice: Any, expected: Reply) -> None:
    assert tagged.chat.ask(prompt, tool_choice=choice) == expected


@pytest.mark.parametrize(
    ("choice", "calls"),
    [("required", [TOKYO, PING]), ({"type": "function", "name": "get_weather"}, [TOKYO])],
    ids=["required", "named"],
)
def test_tool_choice_of_responses(tagged: Live, choice: Any, calls: list[tuple[str, str]]) -> None:
    expected = [("reasoning", "Which badge?"), *(("function_call", *call) for call in calls)]
    assert tagged.responses.ask("wear badges", tools=FLAT_TOOLS, tool_choice=choice) == expected


def test_tool_choice_of_messages(tagged: Live) -> None:
    expected = Message("Which badge?", "", (TOKYO, PING), "tool_use")
    assert tagged.messages.ask("wear badges", tool_choice={"type": "any"}) == expected


@pytest.mark.parametrize(("strict", "days"), [(False, '"three"'), (True, "3")])
def test_strict_tools_hold_the_arguments(tagged: Live, strict: bool, days: str) -> None:
    call = ("get_weather", f'{{"city": "Oslo", "days": {days}}}')
    tools, flat = (scripts.STRICT_TOOLS, STRICT_FLAT_TOOLS) if strict else (scripts.TOOLS, FLAT_TOOLS)
    assert tagged.chat.ask("spell numbers", tools=tools) == Reply("Three days.", "", (call,), "tool_calls")
    items = [("reasoning", "Three days."), ("function_call", *call)]
    assert tagged.responses.ask("spell numbers", tools=flat) == items


def test_one_call_at_a_time(tagged: Live) -> None:
    expected = Reply("Two with tags.", "Look:", (ZURICH,), "tool_calls")
    assert tagged.chat.ask("tagged twice", parallel_tool_calls=False) == expected
    forced = tagged.chat.ask("wear badges", tool_choice="required", parallel_tool_calls=False)
    assert forced == Reply("Which badge?", "", (TOKYO,), "tool_calls")


def test_a_forced_value_quotes_closers(tagged: Live) -> None:
    call = ("get_weather", '{"city": "Oslo", "note": "a </parameter> b </tool_call> c"}')
    expected = Reply("Quotes nest.", "", (call,), "tool_calls")
    assert tagged.chat.ask("nested quotes", tool_choice="required") == expected


def test_the_log_shows_what_was_cut(tagged: Live) -> None:
    begun = len(tagged.log())
    most = tagged.tokens("<think>\nTags, then.\n</think>\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nOs")
    assert tagged.chat.whole("tagged note", max_tokens=most) == [Reply("Tags, then.", finish="length")]
    (line,) = [line for line in tagged.log()[begun:].splitlines() if "respzoo:" in line]
    assert "qwen3_xml: unfinished in tool_calls (cut)" in line
    assert "<function=get_weather>" in line
