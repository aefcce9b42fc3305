"""Live: speculative decoding. Tokens are guessed by what stood before (n-grams), and come several at once.

In the second of two calls the engine guesses what the first began with, so a step crosses whatever begins or ends there.
"""

from __future__ import annotations

from typing import Any

import pytest
import scripts
from live import FLAT_TOOLS, NAMED, OSLO, PING, REPLIES, TOKYO, ZURICH, Live, Message, Reply, chat_request, finished

TWICE = scripts.SCRIPTS[0].answer
THOUGHT, SAID = "Two cities, so two calls.", "Let me check both."


def guessed(live: Live) -> float:
    return live.metric("vllm:spec_decode_num_accepted_tokens_total")


def steps(live: Live, prompt: str, choice: Any = "auto") -> list[list[str]]:
    """The tokens of each event of a stream."""
    options = {"stream": True, "tool_choice": choice, "extra_body": {"return_token_ids": True}}
    chunks = live.chat.client.chat.completions.create(**chat_request(prompt, options))
    found = [choice.token_ids for chunk in chunks for choice in chunk.choices if getattr(choice, "token_ids", None)]
    return [live.tokenizer.convert_ids_to_tokens(ids) for ids in found]


def test_tokens_come_several_at_once(guessing: Live) -> None:
    """What follows tests nothing if they do not: the engine accepts guesses, and deltas hold them."""
    before = guessed(guessing)
    made = steps(guessing, "weather twice")
    assert [token for step in made for token in step] == guessing.tokenizer.tokenize(TWICE + "<|im_end|>")
    accepted = guessed(guessing) - before
    assert accepted > 10
    assert len(made) <= sum(map(len, made)) - accepted
    assert any("<tool_call>" in step and len(step) > 1 for step in made)


@pytest.mark.parametrize("prompt", REPLIES)
def test_reply(guessing: Live, prompt: str) -> None:
    assert guessing.chat.ask(prompt) == REPLIES[prompt]


def test_usage(guessing: Live) -> None:
    for usage in guessing.chat.usages("weather twice"):
        assert usage.completion_tokens == guessing.tokens(TWICE + "<|im_end|>")
        assert usage.completion_tokens_details.reasoning_tokens == guessing.tokens(f"\n{THOUGHT}\n")


def test_responses(guessing: Live) -> None:
    expected = [("reasoning", THOUGHT), ("message", SAID), ("function_call", *ZURICH), ("function_call", *TOKYO)]
    assert guessing.responses.ask("weather twice", tools=FLAT_TOOLS) == expected


def test_messages(guessing: Live) -> None:
    assert guessing.messages.ask("weather twice") == Message(THOUGHT, SAID, (ZURICH, TOKYO), "tool_use")


@pytest.mark.parametrize(
    ("prompt", "choice", "expected"),
    [
        ("phone home", "required", Reply("Ring them?", "", (OSLO,), "tool_calls")),
        ("phone home", NAMED, Reply("Ring them?", "", (OSLO,), "stop")),
        ("toss a coin", NAMED, Reply("Heads or tails.", "", (OSLO,), "stop")),
        ("forced weather", "required", Reply("Must call.", "", (ZURICH, TOKYO), "tool_calls")),
        ("forced weather", NAMED, Reply("Must call.", "", (ZURICH,), "stop")),
    ],
    ids=lambda value: "named" if value is NAMED else value if isinstance(value, str) else "",
)
def test_forced_calls(guessing: Live, prompt: str, choice: Any, expected: Reply) -> None:
    """A grammar that begins within a step, behind the closer of the reasoning."""
    assert guessing.chat.ask(prompt, tool_choice=choice) == expected


def test_a_step_across_the_end_of_the_reasoning(guessing: Live) -> None:
    """The prompt shows an end of reasoning with a call behind it, and so it is guessed; the name that it shows is wrong."""
    assert guessing.chat.ask(scripts.ECHOED) == Reply("Just so.", "No.")
    for choice, finish in (("required", "tool_calls"), (NAMED, "stop")):
        assert guessing.chat.ask(scripts.ECHOED, tool_choice=choice) == Reply("Just so.", "", (OSLO,), finish)
        assert any("</think>" in step and "<tool_call>" in step for step in steps(guessing, scripts.ECHOED, choice))


def test_forced_calls_of_responses(guessing: Live) -> None:
    expected = [("reasoning", "Must call."), ("function_call", *ZURICH), ("function_call", *TOKYO)]
    assert guessing.responses.ask("forced weather", tools=FLAT_TOOLS, tool_choice="required") == expected


def test_strict_tools_and_one_call_at_a_time(guessing: Live) -> None:
    call = ("get_weather", '{"city": "Oslo", "days": 3}')
    strict = guessing.chat.ask("count in words", tools=scripts.STRICT_TOOLS)
    assert strict == Reply("Three days.", "", (call,), "tool_calls")
    one = guessing.chat.ask("weather twice", parallel_tool_calls=False)
    assert one == Reply(THOUGHT, SAID, (ZURICH,), "tool_calls")


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("Zürich", ()),
        ('{"name": "get_weather", "arguments": {"city": "東', (ZURICH,)),
        ('{"name": "get_weather", "argu', (ZURICH,)),
        ("\n</tool_call>\n<tool_call>\n", (ZURICH,)),
        ("\n</tool_call>\n<tool_call>", (ZURICH,)),
    ],
    ids=["first call", "second call's value", "second call's frame", "its first line", "its opener"],
)
def test_cut_by_max_tokens(guessing: Live, text: str, calls: tuple[tuple[str, str], ...]) -> None:
    expected = Reply(THOUGHT, SAID, calls, "length")
    most = guessing.tokens(TWICE[: TWICE.rindex(text) + len(text)])
    assert guessing.chat.whole("weather twice", max_tokens=most) == [expected]
    for (streamed,) in guessing.chat.streams("weather twice", max_tokens=most):
        assert finished(streamed) == expected
        assert len(streamed.calls) <= len(calls) + 1


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("two calls", Reply("Two cities, so ")),
        ("grü", Reply(THOUGHT, SAID)),
        ("東", Reply(THOUGHT, SAID, (ZURICH,), "tool_calls")),
        ("</tool_call>\n<tool", Reply(THOUGHT, SAID, (ZURICH,), "tool_calls")),
    ],
    ids=["reasoning", "arguments", "second call", "between calls"],
)
def test_stop_strings(guessing: Live, stop: str, expected: Reply) -> None:
    assert guessing.chat.ask("weather twice", stop=[stop]) == expected


def test_a_client_that_hangs_up(guessing: Live) -> None:
    stream = guessing.chat.client.chat.completions.create(**chat_request("long note", {"stream": True}))
    for chunk in stream:
        if chunk.choices[0].delta.tool_calls:
            break
    stream.close()
    assert guessing.chat.ask("call ping") == Reply(calls=(PING,), finish="tool_calls")
