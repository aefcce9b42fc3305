"""Live: the Responses API, its items whole and streamed, and its events in the order that clients rely on (live.py)."""

from __future__ import annotations

from typing import Any

import pytest
import scripts
from live import FLAT_TOOLS, OSLO, PING, TOKYO, ZURICH, Live, Responses, followed


@pytest.mark.parametrize(
    ("prompt", "options", "expected"),
    [
        (
            "weather twice",
            {"tools": FLAT_TOOLS},
            [
                ("reasoning", "Two cities, so two calls."),
                ("message", "Let me check both."),
                ("function_call", *ZURICH),
                ("function_call", *TOKYO),
            ],
        ),
        ("answer plainly", {}, [("reasoning", "Easy one."), ("message", "The answer is **42**.")]),
        ("answer plainly", {"tools": FLAT_TOOLS}, [("reasoning", "Easy one."), ("message", "The answer is **42**.")]),
        ("no thinking", {}, [("message", "Hello there, friend!")]),
        ("never close", {}, [("reasoning", "I keep thinking and thinking")]),
        ("call ping", {"tools": FLAT_TOOLS}, [("function_call", *PING)]),
        ("emoji", {}, [("reasoning", "family: 👩‍👧 漢字 naïve"), ("message", "👩‍👧 漢字 naïve 🌦️")]),
        (
            "broken call",
            {"tools": FLAT_TOOLS},
            [
                ("reasoning", "Hm."),
                ("message", '<tool_call>\n{"name": "get_weather", "arguments": {"city": \n</tool_call>'),
            ],
        ),
        (
            "thought call",
            {"tools": FLAT_TOOLS},
            [
                ("reasoning", 'I could write <tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call> here.'),
                ("message", "But no."),
            ],
        ),
    ],
    ids=[
        "calls",
        "plain",
        "plain with tools",
        "no reasoning",
        "never closed",
        "only a call",
        "emoji",
        "broken",
        "thought",
    ],
)
def test_items(responses: Responses, prompt: str, options: dict[str, Any], expected: list[tuple[str, ...]]) -> None:
    assert responses.ask(prompt, **options) == expected


def test_text_around_calls(responses: Responses) -> None:
    """Streamed, items stand where they were written; whole, vLLM puts all text in one message before the calls."""
    calls = [("function_call", *OSLO), ("function_call", *PING)]
    whole = responses.whole("text around", tools=FLAT_TOOLS).output
    assert [item.type for item in whole] == ["reasoning", "message", "function_call", "function_call"]
    assert whole[1].content[0].text == "Before.\nBetween.\nAfter."
    streamed = followed(responses.events("text around", tools=FLAT_TOOLS))
    assert streamed[0] == ("reasoning", "One, then one.")
    assert [item for item in streamed if item[0] == "function_call"] == calls
    assert "".join(item[1] for item in streamed if item[0] == "message") == "Before.\nBetween.\nAfter."
    assert [item[0] for item in streamed[1:]] == ["message", "function_call", "message", "function_call", "message"]


def test_after_a_tool_result(responses: Responses) -> None:
    turns = [
        {"role": "user", "content": "weather twice"},
        {"role": "assistant", "content": "Let me check both."},
        {"type": "function_call", "call_id": "a", "name": "get_weather", "arguments": '{"city": "Oslo"}'},
        {"type": "function_call_output", "call_id": "a", "output": "sunny"},
    ]
    assert responses.ask(turns, tools=FLAT_TOOLS) == [("reasoning", "Got it."), ("message", "It is sunny ☀️.")]


def test_usage(live: Live) -> None:
    thoughts = "\nTwo cities, so two calls.\n"
    whole = live.responses.whole("weather twice", tools=FLAT_TOOLS).usage
    streamed = live.responses.events("weather twice", tools=FLAT_TOOLS)[-1].response.usage
    for usage in (whole, streamed):
        assert usage.output_tokens_details.reasoning_tokens == live.tokens(thoughts)
        assert usage.output_tokens == live.tokens(scripts.SCRIPTS[0].answer + "<|im_end|>")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>\nTwo cities", ["Two cities"]),
        ("<think>\nTwo cities, so two calls.\n</think>\n\nLet me", ["Two cities, so two calls.", "Let me"]),
        (
            scripts.SCRIPTS[0].answer.partition("東京")[0],
            ["Two cities, so two calls.", "Let me check both.", ZURICH[1]],
        ),
    ],
    ids=["reasoning", "content", "second call"],
)
def test_cut_by_max_tokens(live: Live, text: str, expected: list[str]) -> None:
    options = {"tools": FLAT_TOOLS, "max_output_tokens": live.tokens(text)}
    whole = live.responses.whole("weather twice", **options)
    final = live.responses.events("weather twice", **options)[-1].response
    for response in (whole, final):
        assert response.status == "incomplete"
        assert response.incomplete_details.reason == "max_output_tokens"
    assert [item[-1] for item in live.responses.ask("weather twice", **options)] == expected
