"""Live: what a request asks of the reply. The model would rather write something else: only a grammar makes it.

In tools/vllm_cpu/scripts.py, what it would write is a script's `answer`, what a grammar makes of it is `instead`.
"""

from __future__ import annotations

from typing import Any

import pytest
import scripts
from live import (
    FLAT_TOOLS,
    MESSAGE_TOOLS,
    NAMED,
    OBJECT,
    OSLO,
    PING,
    SCHEMA,
    STRICT_FLAT_TOOLS,
    TOKYO,
    ZURICH,
    Chat,
    Live,
    Message,
    Messages,
    Reply,
    Responses,
)

JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "o", "schema": SCHEMA}}
FLAT_SCHEMA = {"format": {"type": "json_schema", "name": "o", "schema": SCHEMA}}
FLAT_NAMED = {"type": "function", "name": "get_weather"}
SAID = Reply("Two cities, so two calls.", "Let me check both.", (ZURICH, TOKYO), "tool_calls")

# -------------------------------------------------------------------------------------------------------- tool_choice


@pytest.mark.parametrize(
    ("prompt", "choice", "expected"),
    [
        ("phone home", "auto", Reply("Ring them?", "Let us talk.")),
        ("phone home", "none", Reply("Ring them?", "Let us talk.")),
        ("phone home", "required", Reply("Ring them?", "", (OSLO,), "tool_calls")),
        # vLLM, as OpenAI's API, ends a reply with a named call by `stop`
        ("phone home", NAMED, Reply("Ring them?", "", (OSLO,), "stop")),
        ("toss a coin", "auto", Reply("Heads or tails.", "", (PING,), "tool_calls")),
        ("toss a coin", "required", Reply("Heads or tails.", "", (PING,), "tool_calls")),
        ("toss a coin", NAMED, Reply("Heads or tails.", "", (OSLO,), "stop")),
        ("forced weather", "required", Reply("Must call.", "", (ZURICH, TOKYO), "tool_calls")),
        ("forced weather", NAMED, Reply("Must call.", "", (ZURICH,), "stop")),
        (
            "weather twice",
            "none",
            Reply(SAID.reasoning, f"Let me check both.\n{scripts.ZURICH}\n{scripts.TOKYO}"),
        ),
    ],
    ids=lambda value: "named" if value is NAMED else value if isinstance(value, str) else "",
)
def test_tool_choice(chat: Chat, prompt: str, choice: Any, expected: Reply) -> None:
    assert chat.ask(prompt, tool_choice=choice) == expected


@pytest.mark.parametrize(
    ("prompt", "choice", "expected"),
    [
        ("phone home", "auto", [("reasoning", "Ring them?"), ("message", "Let us talk.")]),
        ("phone home", "none", [("reasoning", "Ring them?"), ("message", "Let us talk.")]),
        ("phone home", "required", [("reasoning", "Ring them?"), ("function_call", *OSLO)]),
        ("phone home", FLAT_NAMED, [("reasoning", "Ring them?"), ("function_call", *OSLO)]),
        ("toss a coin", FLAT_NAMED, [("reasoning", "Heads or tails."), ("function_call", *OSLO)]),
        (
            "forced weather",
            "required",
            [("reasoning", "Must call."), ("function_call", *ZURICH), ("function_call", *TOKYO)],
        ),
        ("forced weather", FLAT_NAMED, [("reasoning", "Must call."), ("function_call", *ZURICH)]),
        (
            "weather twice",
            "none",
            [
                ("reasoning", SAID.reasoning),
                ("message", f"Let me check both.\n{scripts.ZURICH}\n{scripts.TOKYO}"),
            ],
        ),
    ],
    ids=lambda value: "named" if value is FLAT_NAMED else value if isinstance(value, str) else "",
)
def test_tool_choice_of_responses(
    responses: Responses, prompt: str, choice: Any, expected: list[tuple[str, ...]]
) -> None:
    assert responses.ask(prompt, tools=FLAT_TOOLS, tool_choice=choice) == expected


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, Message("Ring them?", "Let us talk.")),
        ({"type": "none"}, Message("Ring them?", "Let us talk.")),
        ({"type": "any"}, Message("Ring them?", "", (OSLO,), "tool_use")),
        ({"type": "tool", "name": "get_weather"}, Message("Ring them?", "", (OSLO,), "tool_use")),
    ],
    ids=["auto", "none", "any", "tool"],
)
def test_tool_choice_of_messages(messages: Messages, choice: dict[str, str], expected: Message) -> None:
    assert messages.ask("phone home", tool_choice=choice) == expected


def test_a_forced_call_where_the_reasoning_is_hidden(chat: Chat) -> None:
    hidden = {"include_reasoning": False}
    expected = Reply("", "", (OSLO,), "tool_calls")
    assert chat.ask("phone home", tool_choice="required", extra_body=hidden) == expected
    assert chat.ask("phone home", tool_choice=NAMED, extra_body=hidden) == Reply("", "", (OSLO,), "stop")


@pytest.mark.parametrize(
    ("prompt", "note"), [("cite markup", "a </tool_call> b <think> c"), ("letter by letter", "a </tool_call> b")]
)
def test_a_forced_call_quotes_its_closer(chat: Chat, prompt: str, note: str) -> None:
    """As the one token that the closer is, and spelt in others."""
    call = ("get_weather", f'{{"city": "Oslo", "note": "{note}"}}')
    reply = chat.ask(prompt, tool_choice="required")
    assert (reply.calls, reply.content, reply.finish) == ((call,), "", "tool_calls")


# ------------------------------------------------------------------------------------------- strict tools, at most one


def test_strict_tools(chat: Chat) -> None:
    assert chat.ask("weather twice", tools=scripts.STRICT_TOOLS) == SAID


@pytest.mark.parametrize(("strict", "days"), [(False, '"three"'), (True, "3")])
def test_strict_tools_hold_the_arguments(chat: Chat, responses: Responses, strict: bool, days: str) -> None:
    call = ("get_weather", f'{{"city": "Oslo", "days": {days}}}')
    tools = scripts.STRICT_TOOLS if strict else scripts.TOOLS
    assert chat.ask("count in words", tools=tools) == Reply("Three days.", "", (call,), "tool_calls")
    flat = STRICT_FLAT_TOOLS if strict else FLAT_TOOLS
    assert responses.ask("count in words", tools=flat) == [("reasoning", "Three days."), ("function_call", *call)]


@pytest.mark.parametrize("tools", [scripts.TOOLS, scripts.STRICT_TOOLS], ids=["free", "strict"])
def test_one_call_at_a_time(chat: Chat, tools: Any) -> None:
    """The model stops behind its first call; nothing is cut off afterwards."""
    expected = Reply(SAID.reasoning, SAID.content, (ZURICH,), "tool_calls")
    assert chat.ask("weather twice", tools=tools, parallel_tool_calls=False) == expected


def test_one_forced_call_at_a_time(live: Live) -> None:
    one = {"tool_choice": "required", "parallel_tool_calls": False}
    assert live.chat.ask("forced weather", **one) == Reply("Must call.", "", (ZURICH,), "tool_calls")
    for usage in live.chat.usages("forced weather", **one):
        assert usage.completion_tokens < live.tokens(scripts.ZURICH + scripts.TOKYO)


def test_one_call_at_a_time_of_responses(responses: Responses) -> None:
    assert responses.ask("weather twice", tools=FLAT_TOOLS, parallel_tool_calls=False) == [
        ("reasoning", SAID.reasoning),
        ("message", SAID.content),
        ("function_call", *ZURICH),
    ]


def test_one_call_at_a_time_of_messages(messages: Messages) -> None:
    one = {"type": "auto", "disable_parallel_tool_use": True}
    expected = Message(SAID.reasoning, SAID.content, (ZURICH,), "tool_use")
    assert messages.ask("weather twice", tool_choice=one) == expected


# -------------------------------------------------------------------------------------------------- response formats


def test_a_format_behind_the_reasoning(chat: Chat) -> None:
    assert chat.ask("fill the form", tools=None) == Reply("A form.", "As I said, x is 1.")
    assert chat.ask("fill the form", tools=None, response_format=JSON_SCHEMA) == Reply("A form.", OBJECT)
    assert chat.ask("json now", tools=None, response_format=JSON_SCHEMA) == Reply("Strict JSON.", OBJECT)


def test_a_format_of_responses(responses: Responses) -> None:
    expected = [("reasoning", "A form."), ("message", OBJECT)]
    assert responses.ask("fill the form", text=FLAT_SCHEMA) == expected
    assert responses.ask("fill the form", text=FLAT_SCHEMA, tools=FLAT_TOOLS) == expected


def test_a_format_of_messages(messages: Messages) -> None:
    wanted = {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}
    expected = Message("A form.", OBJECT)
    assert messages.ask("fill the form", tools=None, extra_body=wanted) == expected
    assert messages.ask("fill the form", tools=MESSAGE_TOOLS, extra_body=wanted) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [({"choice": ["yes", "no"]}, "no"), ({"regex": "no|nay"}, "no")],
    ids=["choice", "regex"],
)
@pytest.mark.parametrize("tools", [None, scripts.TOOLS], ids=["alone", "beside tools"])
def test_structured_outputs_behind_the_reasoning(chat: Chat, tools: Any, wanted: Any, expected: str) -> None:
    assert chat.ask("decide", tools=tools) == Reply("One word.", "Maybe.")
    assert chat.ask("decide", tools=tools, extra_body={"structured_outputs": wanted}) == Reply("One word.", expected)


@pytest.mark.parametrize("tools", [scripts.TOOLS, scripts.STRICT_TOOLS], ids=["free", "strict"])
def test_a_format_beside_tools(chat: Chat, tools: Any) -> None:
    """The model answers in the format, or it calls."""
    if tools is scripts.TOOLS:
        assert chat.ask("fill the form", tools=tools, response_format=JSON_SCHEMA) == Reply("A form.", OBJECT)
    else:
        call = ("get_weather", '{"city": "Oslo", "days": 3}')
        expected = Reply("Three days.", "", (call,), "tool_calls")
        assert chat.ask("count in words", tools=tools, response_format=JSON_SCHEMA) == expected


def test_a_call_beside_a_format(chat: Chat) -> None:
    expected = Reply("Heads or tails.", "", (PING,), "tool_calls")
    assert chat.ask("toss a coin", response_format=JSON_SCHEMA) == expected


def test_a_forced_call_passes_over_the_format(chat: Chat) -> None:
    expected = Reply("Ring them?", "", (OSLO,), "tool_calls")
    assert chat.ask("phone home", tool_choice="required", response_format=JSON_SCHEMA) == expected


def test_a_format_where_the_reasoning_is_hidden(chat: Chat) -> None:
    options = {"response_format": JSON_SCHEMA, "extra_body": {"include_reasoning": False}}
    assert chat.ask("fill the form", tools=None, **options) == Reply("", OBJECT)


# ---------------------------------------------------------------------------------------------------------- reasoning


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("answer plainly", Reply("", "The answer is **42**.")),
        ("weather twice", Reply("", SAID.content, (ZURICH, TOKYO), "tool_calls")),
        ("never close", Reply()),
        ("no thinking", Reply("", "Hello there, friend!")),
    ],
)
def test_reasoning_hidden(chat: Chat, prompt: str, expected: Reply) -> None:
    assert chat.ask(prompt, extra_body={"include_reasoning": False}) == expected


def test_reasoning_hidden_from_responses(responses: Responses) -> None:
    hidden = {"include_reasoning": False}
    assert responses.ask("answer plainly", extra_body=hidden) == [("message", "The answer is **42**.")]


def test_a_thinking_budget(live: Live) -> None:
    free = Reply("One and two and three and four and five and six.", "Thought through.")
    assert live.chat.ask("ponder") == free
    assert live.chat.ask("ponder", extra_body={"thinking_token_budget": 100}) == free
    cut = {"thinking_token_budget": 8}
    assert live.chat.ask("ponder", extra_body=cut) == Reply("One and two and three and", "Cut short.")
    assert [
        usage.completion_tokens_details.reasoning_tokens for usage in live.chat.usages("ponder", extra_body=cut)
    ] == [8] * 3


def test_a_thinking_budget_before_calls(chat: Chat) -> None:
    cut = {"thinking_token_budget": 6}
    thought = "One and two and th"
    assert chat.ask("brood first", extra_body=cut) == Reply(thought, "Let us see.", (OSLO,), "tool_calls")
    forced = chat.ask("brood first", tool_choice="required", extra_body=cut)
    assert forced == Reply(thought, "", (OSLO,), "tool_calls")


def test_thinking_of_messages(messages: Messages) -> None:
    """Its least budget, 1024 tokens, is more than this model thinks."""
    assert messages.ask("quick reply", thinking={"type": "disabled"}) == Message("", "Direct, no thoughts.")
    free = Message("One and two and three and four and five and six.", "Thought through.")
    assert messages.ask("ponder", thinking={"type": "adaptive"}) == free
