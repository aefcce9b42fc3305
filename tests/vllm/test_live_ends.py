"""Live: how replies end, by the token limit, by stop strings, by calls that the model broke; what is logged and counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import scripts
from live import FLAT_TOOLS, INTERVALS, NAMED, PING, REPLIES, TOKYO, ZURICH, Chat, Live, Reply, chat_request, finished

TWICE = scripts.SCRIPTS[0].answer
THOUGHT, SAID = "Two cities, so two calls.", "Let me check both."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>", Reply()),
        ("<think>\nTwo cities", Reply("Two cities")),
        (f"<think>\n{THOUGHT}\n</think>", Reply(THOUGHT)),
        (f"<think>\n{THOUGHT}\n</think>\n\nLet me", Reply(THOUGHT, "Let me")),
        (TWICE[: TWICE.index("<tool_call>") + len("<tool_call>")], Reply(THOUGHT, SAID)),
        (TWICE[: TWICE.index("Zürich")], Reply(THOUGHT, SAID)),
        # the JSON is whole, and only the closer, which could have been a stop token, is missing
        (TWICE[: TWICE.index("\n</tool_call>")], Reply(THOUGHT, SAID, (ZURICH,))),
        (TWICE[: TWICE.index("\n</tool_call>") + len("\n</tool_call>")], Reply(THOUGHT, SAID, (ZURICH,))),
        (TWICE[: TWICE.index("東京")], Reply(THOUGHT, SAID, (ZURICH,))),
        (TWICE, Reply(THOUGHT, SAID, (ZURICH, TOKYO))),
    ],
    ids=[
        "opener",
        "reasoning",
        "closer",
        "content",
        "call opener",
        "arguments",
        "call closer",
        "behind a call",
        "second call",
        "behind both",
    ],
)  # fmt: skip
def test_cut_by_max_tokens(live: Live, text: str, expected: Reply) -> None:
    """The tokens of `text`, or one more where it ends within a token. What was cut says so, with calls as without."""
    expected.finish = "length"
    most = live.tokens(text)
    assert live.chat.whole("weather twice", max_tokens=most) == [expected]
    for (streamed,) in live.chat.streams("weather twice", max_tokens=most):
        assert finished(streamed) == expected
        assert len(streamed.calls) <= len(expected.calls) + 1  # begun, and no more than that


@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
def test_a_forced_call_that_is_cut(live: Live, choice: object) -> None:
    most = live.tokens('<think>\nRing them?\n</think>\n\n<tool_call>\n{"name": "get_weather", "arguments": {"city"')
    assert live.chat.ask("phone home", tool_choice=choice, max_tokens=most) == Reply("Ring them?", finish="length")


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("two calls", Reply("Two cities, so ")),
        ("check", Reply(THOUGHT, "Let me ")),
        ("grü", Reply(THOUGHT, SAID)),
        ("東", Reply(THOUGHT, SAID, (ZURICH,), "tool_calls")),
        ("</tool_call>", Reply(THOUGHT, SAID, (ZURICH,), "tool_calls")),
        ("not written", Reply(THOUGHT, SAID, (ZURICH, TOKYO), "tool_calls")),
    ],
    ids=["reasoning", "content", "arguments", "second call", "closer", "nowhere"],
)
def test_stop_strings(chat: Chat, stop: str, expected: Reply) -> None:
    assert chat.ask("weather twice", stop=[stop]) == expected


def test_a_stop_string_that_is_shown(chat: Chat) -> None:
    shown = {"include_stop_str_in_output": True}
    assert chat.ask("weather twice", stop=["check"], extra_body=shown) == Reply(THOUGHT, "Let me check")
    expected = Reply(THOUGHT, SAID, (ZURICH,), "tool_calls")
    assert chat.ask("weather twice", stop=["</tool_call>"], extra_body=shown) == expected


def test_stop_strings_do_not_read_quoted_markup(chat: Chat) -> None:
    """With stop strings text comes behind its tokens."""
    assert chat.ask("marker inside", stop=["not written"]) == REPLIES["marker inside"]
    assert chat.ask("emoji", stop=["not written"]) == REPLIES["emoji"]


# --------------------------------------------------------------------------------------------- what is said of damage


@contextmanager
def said(live: Live) -> Iterator[list[str]]:
    """What respzoo logs meanwhile."""
    begun = len(live.log())
    lines: list[str] = []
    yield lines
    lines += [line.partition("respzoo:")[2] for line in live.log()[begun:].splitlines() if "respzoo:" in line]


@pytest.mark.parametrize(
    ("prompt", "most", "reason"),
    [("broken call", 300, "bad_json"), ("odd call", 300, "bad_name"), ("long note", 60, "cut")],
)
def test_a_damaged_call_is_one_line_and_one_count(live: Live, prompt: str, most: int, reason: str) -> None:
    """A reply's, whole or streamed. Neither the line nor a label holds what a user or the model wrote."""

    def count() -> float:
        return live.metric("respzoo_damaged_calls_total", family="qwen3", reason=reason)

    before, every = count(), live.metric("respzoo_damaged_calls_total")
    with said(live) as lines:
        live.chat.whole(prompt, max_tokens=most)
        live.chat.streams(prompt, max_tokens=most)
        live.responses.whole(prompt, tools=FLAT_TOOLS, max_output_tokens=most)
        live.responses.events(prompt, tools=FLAT_TOOLS, max_output_tokens=most)
    replies = 1 + len(INTERVALS) + 2
    assert count() - before == live.metric("respzoo_damaged_calls_total") - every == replies
    assert len(lines) == replies
    for line in lines:
        assert "qwen3" in line
        assert f"({reason})" in line
        assert not any(text in line for text in (prompt, "get_weather", "city", "nome", "Oslo", "{"))


def test_calls_are_counted(live: Live) -> None:
    def count(mode: str, outcome: str) -> float:
        name = "vllm:tool_call_parser_invocations_total"
        return live.metric(name, mode=mode, outcome=outcome, request_type="chat_completions")

    kinds = [(mode, outcome) for mode in ("non_streaming", "streaming") for outcome in ("tool_call", "no_tool_call")]
    before = [count(*kind) for kind in kinds]
    live.chat.ask("call ping")
    live.chat.ask("answer plainly")
    assert [count(*kind) - known for kind, known in zip(kinds, before, strict=True)] == [1, 1, *[len(INTERVALS)] * 2]


def test_a_client_that_hangs_up(live: Live) -> None:
    """What was begun is forgotten, and the next reply is whole."""
    stream = live.chat.client.chat.completions.create(stream=True, **chat_request("long note", {}))
    for chunk in stream:
        if chunk.choices[0].delta.tool_calls:
            break
    stream.close()
    assert live.chat.ask("call ping") == Reply(calls=(PING,), finish="tool_calls")
