"""A real vLLM server with respzoo's flags, driven by the `openai` client: what the model writes, as chat replies.

Every reply whole, token by token and in larger deltas.
"""

from __future__ import annotations

from typing import Any

import pytest
import scripts
from live import OSLO, PING, REPLIES, TOKYO, ZURICH, Chat, Live, Reply


@pytest.mark.parametrize("prompt", REPLIES)
def test_reply(chat: Chat, prompt: str) -> None:
    assert chat.ask(prompt) == REPLIES[prompt]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("answer plainly", Reply("Easy one.", "The answer is **42**.")),
        ("no thinking", Reply("", "Hello there, friend!")),
        ("json please", Reply("JSON then.", '{"x": 1, "y": "é"}')),
        ("json now", Reply("Strict JSON.", '{"x": 1, "y": "é"}')),
    ],
)
def test_without_tools(chat: Chat, prompt: str, expected: Reply) -> None:
    assert chat.ask(prompt, tools=None) == expected


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("quick reply", Reply("", "Direct, no thoughts.")),
        ("call ping", Reply(calls=(PING,), finish="tool_calls")),
    ],
)
def test_thinking_off_by_the_prompt(chat: Chat, prompt: str, expected: Reply) -> None:
    assert chat.ask(prompt, extra_body={"chat_template_kwargs": {"enable_thinking": False}}) == expected


def test_after_a_tool_result(chat: Chat) -> None:
    assert chat.ask(scripts.FOLLOW_UP) == Reply("Got it.", "It is sunny ☀️.")


# ---------------------------------------------------------------------------------------- a turn that the client began

GOING_ON = {"continue_final_message": True, "add_generation_prompt": False}
BEGUN = {prompt: given for prompt, given, _ in scripts.PREFILLED}


def begun(prompt: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": prompt}, {"role": "assistant", "content": BEGUN[prompt]}]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("finish it", Reply("", " **42**, as I said.")),
        ("think on", Reply(" enough.", "Done thinking.")),
        ("call on", Reply(calls=(OSLO,), finish="tool_calls")),
    ],
)
def test_a_turn_goes_on(chat: Chat, prompt: str, expected: Reply) -> None:
    assert chat.ask(begun(prompt), extra_body=GOING_ON) == expected


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("finish it", Reply("", "The answer is **42**, as I said.")),
        # vLLM repeats what it was given as it was given, and as content
        ("think on", Reply(" enough.", "<think>\nEasyDone thinking.")),
        ("call on", Reply("", BEGUN["call on"], (OSLO,), "tool_calls")),
    ],
)
def test_a_turn_goes_on_with_an_echo(chat: Chat, prompt: str, expected: Reply) -> None:
    assert chat.ask(begun(prompt), extra_body={**GOING_ON, "echo": True}) == expected


def test_an_echo_of_nothing(chat: Chat) -> None:
    assert chat.ask("answer plainly", extra_body={"echo": True}) == Reply("Easy one.", "The answer is **42**.")


# ----------------------------------------------------------------------------------------------------- many and counted


def test_two_choices(chat: Chat) -> None:
    expected = Reply("Two cities, so two calls.", "Let me check both.", (ZURICH, TOKYO), "tool_calls")
    assert chat.choices("weather twice", n=2, temperature=0.01) == [expected, expected]


@pytest.mark.parametrize(
    ("prompt", "options", "reasoning"),
    [
        ("answer plainly", {}, "\nEasy one.\n"),
        ("weather twice", {}, "\nTwo cities, so two calls.\n"),
        ("never close", {}, "\nI keep thinking and thinking<|im_end|>"),
        ("no thinking", {}, ""),
        ("quick reply", {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}, ""),
        ("answer plainly", {"extra_body": {"include_reasoning": False}}, "\nEasy one.\n"),
        ("answer plainly", {"n": 2, "temperature": 0.01}, "\nEasy one.\n" * 2),
        ([*begun("think on")], {"extra_body": GOING_ON}, " enough.\n"),
    ],
    ids=["plain", "calls", "never closed", "none", "switched off", "hidden", "of two choices", "begun by the prompt"],
)
def test_reasoning_tokens_in_the_usage(live: Live, prompt: Any, options: dict[str, Any], reasoning: str) -> None:
    counts = [usage.completion_tokens_details.reasoning_tokens for usage in live.chat.usages(prompt, **options)]
    assert counts[:2] == [live.tokens(reasoning) if reasoning else 0] * 2
    if "n" not in options:  # a running count is that of the choice it comes with
        assert counts[2] == counts[0]


def test_special_tokens_that_the_client_wants_skipped(chat: Chat) -> None:
    assert chat.ask("call ping", extra_body={"skip_special_tokens": True}) == Reply(calls=(PING,), finish="tool_calls")


# ----------------------------------------------------------------------------------------------------------- the log


def test_log_names_the_template_once(live: Live) -> None:
    live.chat.whole("broken call")
    (named,) = [line for line in live.log().splitlines() if "respzoo reads" in line]
    assert "the response template qwen3: " in named
    assert "chat template" in named
