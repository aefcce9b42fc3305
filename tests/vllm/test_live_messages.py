"""Live: Anthropic's Messages API, which vLLM serves over its chat: blocks whole and streamed, in order (live.py)."""

from __future__ import annotations

from typing import Any

import pytest
import scripts
from live import MESSAGE_TOOLS, OSLO, PING, REPLIES, TOKYO, ZURICH, Live, Message, Messages

STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


@pytest.mark.parametrize("prompt", [prompt for prompt in REPLIES if prompt != "broken call"])
def test_message(messages: Messages, prompt: str) -> None:
    """As chat has it."""
    reply = REPLIES[prompt]
    assert messages.ask(prompt) == Message(reply.reasoning, reply.content, reply.calls, STOPS[reply.finish])


def test_without_tools(messages: Messages) -> None:
    assert messages.ask("answer plainly", tools=None) == Message("Easy one.", "The answer is **42**.")


def test_after_a_tool_result(messages: Messages) -> None:
    turns: list[dict[str, Any]] = [
        {"role": "user", "content": "weather twice"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me check both."},
                {"type": "tool_use", "id": "a", "name": "get_weather", "input": {"city": "Oslo"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "sunny"}]},
    ]
    assert messages.ask(turns) == Message("Got it.", "It is sunny ☀️.")


def test_input_comes_in_pieces(live: Live) -> None:
    """A client that shows a call while it is written sees its input grow."""
    client = live.messages.client
    with client.messages.stream(
        model="tiny",
        max_tokens=400,
        messages=[{"role": "user", "content": "long note"}],
        tools=MESSAGE_TOOLS,
        extra_body={"temperature": 0},
    ) as stream:
        pieces = [event.partial_json for event in stream if event.type == "input_json"]
        (block,) = [block for block in stream.get_final_message().content if block.type == "tool_use"]
    assert block.input == {"city": "Oslo", "note": scripts.STORY}
    assert len(pieces) > 50


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>\nTwo cities", Message("Two cities", "", (), "max_tokens")),
        (
            scripts.SCRIPTS[0].answer.partition("Zürich")[0],
            Message("Two cities, so two calls.", "Let me check both.", (), "max_tokens"),
        ),
        (
            scripts.SCRIPTS[0].answer.partition("東京")[0],
            Message("Two cities, so two calls.", "Let me check both.", (ZURICH,), "max_tokens"),
        ),
    ],
    ids=["reasoning", "first call", "second call"],
)
def test_cut_by_max_tokens(live: Live, text: str, expected: Message) -> None:
    assert live.messages.ask("weather twice", max_tokens=live.tokens(text)) == expected


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("two calls", Message("Two cities, so ", "", (), "stop_sequence")),
        ("check", Message("Two cities, so two calls.", "Let me ", (), "stop_sequence")),
        ("not written", Message("Two cities, so two calls.", "Let me check both.", (ZURICH, TOKYO), "tool_use")),
    ],
)
def test_stop_sequences(messages: Messages, stop: str, expected: Message) -> None:
    assert messages.ask("weather twice", stop_sequences=[stop]) == expected


def test_a_stop_sequence_within_a_later_call(messages: Messages) -> None:
    """Whole, the calls are those that are whole. In the stream the last one has begun, and vLLM says that it must not be
    made."""
    stop = {"stop_sequences": ["東"]}
    whole = messages.whole("weather twice", **stop)
    assert whole == Message("Two cities, so two calls.", "Let me check both.", (ZURICH,), "tool_use")
    streamed = messages.streamed("weather twice", **stop)
    assert (streamed.thinking, streamed.text) == (whole.thinking, whole.text)
    assert [name for name, _ in streamed.calls] == ["get_weather", "get_weather"]
    assert streamed.stop == "stop_sequence"


def test_calls_only(messages: Messages) -> None:
    assert messages.ask("call ping").calls == (PING,)
    assert messages.ask("text around").calls == (OSLO, PING)
