"""A real vLLM server with respzoo's flags, driven by the `openai` client: every reply whole and streamed.

What the model writes is in tools/vllm_cpu/scripts.py; in its tokenizer <tool_call> and </tool_call> are special tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import scripts

pytestmark = pytest.mark.live

TOOLS = scripts.TOOLS
FLAT_TOOLS = [{"type": "function", **tool["function"]} for tool in TOOLS]
ZURICH = ("get_weather", '{"city": "Zürich", "note": "say \\"grüezi\\" \\\\ 🌦"}')
TOKYO = ("get_weather", '{"city": "東京", "days": 3}')
OSLO = ("get_weather", '{"city": "Oslo"}')
PING = ("ping", "{}")
ZURICH_RAW = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Zürich", "note": "say \\"grüezi\\" \\\\ 🌦"}}\n</tool_call>'
TOKYO_RAW = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "東京", "days": 3}}\n</tool_call>'


@dataclass
class Reply:
    reasoning: str = ""
    content: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str = "stop"


def finished(reply: Reply) -> Reply:
    """Without a call that the stream began and the model did not finish; vLLM ends such a reply as one with a call."""
    calls = tuple(call for call in reply.calls if is_json(call[1]))
    ended_by_it = reply.finish == "tool_calls" and reply.calls and not calls
    return replace(reply, calls=calls, finish="stop" if ended_by_it else reply.finish)


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@dataclass
class Chat:
    """The client, and both ways to ask."""

    client: Any
    model: Path

    @cached_property
    def tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.model)

    def ask(self, prompt: str | list[dict[str, Any]], **options: Any) -> Reply:
        """The reply, which is the same whole and streamed."""
        replies = self.choices(prompt, **options)
        assert len(replies) == 1
        return replies[0]

    def choices(self, prompt: str | list[dict[str, Any]], **options: Any) -> list[Reply]:
        whole, streamed = self.both(prompt, **options)
        assert [*map(finished, streamed)] == whole
        return whole

    def both(self, prompt: str | list[dict[str, Any]], **options: Any) -> tuple[list[Reply], list[Reply]]:
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        request = {
            "model": "tiny",
            "messages": messages,
            "temperature": 0,
            "max_tokens": 200,
            "tools": TOOLS,
            **options,
        }
        if request["tools"] is None:
            del request["tools"]
        return self._whole(request), self._streamed(request)

    def _whole(self, request: dict[str, Any]) -> list[Reply]:
        return [
            Reply(
                choice.message.reasoning or "",
                choice.message.content or "",
                tuple((call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()),
                choice.finish_reason,
            )
            for choice in self.client.chat.completions.create(**request).choices
        ]

    def _streamed(self, request: dict[str, Any]) -> list[Reply]:
        replies: dict[int, Reply] = {}
        calls: dict[tuple[int, int], list[str]] = {}
        ids: set[str] = set()
        for chunk in self.client.chat.completions.create(stream=True, **request):
            for choice in chunk.choices:
                reply = replies.setdefault(choice.index, Reply(finish=""))
                reply.reasoning += getattr(choice.delta, "reasoning", None) or ""
                reply.content += choice.delta.content or ""
                reply.finish = choice.finish_reason or reply.finish
                for call in choice.delta.tool_calls or ():
                    key = choice.index, call.index
                    if key not in calls:
                        assert call.id not in ids, "each call has an id of its own, once"
                        ids.add(call.id)
                        calls[key] = [call.function.name, ""]
                    calls[key][1] += call.function.arguments or ""
        for (index, _), (name, arguments) in sorted(calls.items()):
            replies[index].calls += ((name, arguments),)
        return [replies[index] for index in sorted(replies)]

    def tokens(self, text: str) -> int:
        return len(self.tokenizer(text).input_ids)


@pytest.fixture(scope="module")
def chat(server: Any) -> Iterator[Chat]:
    import checkpoint

    with server.client() as client:
        yield Chat(client, checkpoint.FOLDER)


# --------------------------------------------------------------------------------------------- what the model writes


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (
            "weather twice",
            Reply("Two cities, so two calls.", "Let me check both.", (ZURICH, TOKYO), "tool_calls"),
        ),
        ("answer plainly", Reply("Easy one.", "The answer is **42**.")),
        ("no thinking", Reply("", "Hello there, friend!")),
        ("never close", Reply("I keep thinking and thinking")),
        (
            "broken call",
            Reply("Hm.", '<tool_call>\n{"name": "get_weather", "arguments": {"city": \n</tool_call>'),
        ),
        (
            "odd call",
            Reply("Hm.", 'A: <tool_call>\n{"nome": "ping"}\n</tool_call> B: C.', (PING,), "tool_calls"),
        ),
        ("call ping", Reply(calls=(PING,), finish="tool_calls")),
        ("forced weather", Reply("Must call.", "", (ZURICH, TOKYO), "tool_calls")),
        ("tag in text", Reply("The tag is <b>.", "Use a < b and a </b> tag, ok?")),
        ("text around", Reply("One, then one.", "Before.\nBetween.\nAfter.", (OSLO, PING), "tool_calls")),
        (
            "marker inside",
            Reply(
                "Quote it.",
                "\nDone.",
                (("get_weather", '{"city": "Oslo", "note": "a </tool_call> b <think> c"}'),),
                "tool_calls",
            ),
        ),
        (
            "thought call",
            Reply('I could write <tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call> here.', "But no."),
        ),
        ("emoji", Reply("family: 👩‍👧 漢字 naïve", "👩‍👧 漢字 naïve 🌦️")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_reply(chat: Chat, prompt: str, expected: Reply) -> None:
    assert chat.ask(prompt) == expected


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


@pytest.mark.parametrize(
    ("prompt", "given", "expected"),
    [
        ("finish it", "The answer is", Reply("", " **42**, as I said.")),
        ("think on", "<think>\nEasy", Reply(" enough.", "Done thinking.")),
        (
            "call on",
            '<think>\nCall.\n</think>\n\n<tool_call>\n{"name": "get_weather",',
            Reply(calls=(OSLO,), finish="tool_calls"),
        ),
    ],
)
def test_a_turn_that_the_client_began(chat: Chat, prompt: str, given: str, expected: Reply) -> None:
    messages = [{"role": "user", "content": prompt}, {"role": "assistant", "content": given}]
    going_on = {"continue_final_message": True, "add_generation_prompt": False}
    assert chat.ask(messages, extra_body=going_on) == expected


# ------------------------------------------------------------------------------------------------------ cut off early

TWICE = scripts.SCRIPTS[0].answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>", Reply()),
        ("<think>\nTwo cities", Reply("Two cities")),
        ("<think>\nTwo cities, so two calls.\n</think>", Reply("Two cities, so two calls.")),
        ("<think>\nTwo cities, so two calls.\n</think>\n\nLet me", Reply("Two cities, so two calls.", "Let me")),
        (
            TWICE[: TWICE.index("<tool_call>") + len("<tool_call>")],
            Reply("Two cities, so two calls.", "Let me check both."),
        ),
        (TWICE[: TWICE.index("Zürich")], Reply("Two cities, so two calls.", "Let me check both.")),
        # the JSON is whole, and only the closer, which could have been a stop token, is missing
        (
            TWICE[: TWICE.index("\n</tool_call>")],
            Reply("Two cities, so two calls.", "Let me check both.", (ZURICH,)),
        ),
        (TWICE[: TWICE.index("東京")], Reply("Two cities, so two calls.", "Let me check both.", (ZURICH,))),
    ],
    ids=["opener", "reasoning", "closer", "content", "call opener", "arguments", "call closer", "second call"],
)
def test_cut_by_max_tokens(chat: Chat, text: str, expected: Reply) -> None:
    """The tokens of `text`, or one more where it ends within a token."""
    ([whole], [streamed]) = chat.both("weather twice", max_tokens=chat.tokens(text))
    # vLLM's own names for it: where there are calls, whole replies say so, streams say that they were cut
    assert whole == replace(expected, finish="tool_calls" if expected.calls else "length")
    assert finished(streamed) == replace(expected, finish="length")
    assert len(streamed.calls) <= len(expected.calls) + 1  # begun, and no more than that


# --------------------------------------------------------------------------------------------- what the request wants


def test_tool_choice_none(chat: Chat) -> None:
    raw = f"Let me check both.\n{ZURICH_RAW}\n{TOKYO_RAW}"
    assert chat.ask("weather twice", tool_choice="none") == Reply("Two cities, so two calls.", raw)


def test_tool_choice_required(chat: Chat) -> None:
    expected = Reply("Must call.", "", (ZURICH, TOKYO), "tool_calls")
    assert chat.ask("forced weather", tool_choice="required") == expected


def test_tool_choice_named(chat: Chat) -> None:
    named = {"type": "function", "function": {"name": "get_weather"}}
    assert chat.ask("forced weather", tool_choice=named) == Reply("Must call.", "", (ZURICH,), "stop")


def test_strict_tools(chat: Chat) -> None:
    expected = Reply("Two cities, so two calls.", "Let me check both.", (ZURICH, TOKYO), "tool_calls")
    assert chat.ask("weather twice", tools=scripts.STRICT_TOOLS) == expected


def test_one_call_at_a_time(chat: Chat) -> None:
    expected = Reply("Two cities, so two calls.", "Let me check both.", (ZURICH,), "tool_calls")
    assert chat.ask("weather twice", parallel_tool_calls=False) == expected


def test_json_schema(chat: Chat) -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "string"}},
        "required": ["x", "y"],
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "o", "schema": schema}}
    expected = Reply("Strict JSON.", '{"x": 1, "y": "é"}')
    assert chat.ask("json now", tools=None, response_format=wanted) == expected


def test_reasoning_hidden(chat: Chat) -> None:
    assert chat.ask("answer plainly", extra_body={"include_reasoning": False}) == Reply("", "The answer is **42**.")


def test_special_tokens_that_the_client_wants_skipped(chat: Chat) -> None:
    assert chat.ask("call ping", extra_body={"skip_special_tokens": True}) == Reply(calls=(PING,), finish="tool_calls")


def test_two_choices(chat: Chat) -> None:
    expected = Reply("Two cities, so two calls.", "Let me check both.", (ZURICH, TOKYO), "tool_calls")
    assert chat.choices("weather twice", n=2, temperature=0.01) == [expected, expected]


@pytest.mark.parametrize(
    ("prompt", "options", "reasoning"),
    [
        ("answer plainly", {}, "\nEasy one.\n"),
        ("never close", {}, "\nI keep thinking and thinking<|im_end|>"),
        ("no thinking", {}, ""),
        ("quick reply", {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}, ""),
    ],
)
def test_reasoning_tokens_in_the_usage(chat: Chat, prompt: str, options: dict[str, Any], reasoning: str) -> None:
    request = {"model": "tiny", "messages": [{"role": "user", "content": prompt}], "temperature": 0, "tools": TOOLS}
    usages = [chat.client.chat.completions.create(**request, **options).usage]
    for usage in ({"include_usage": True}, {"include_usage": True, "continuous_usage_stats": True}):
        chunks = list(chat.client.chat.completions.create(stream=True, stream_options=usage, **request, **options))
        usages.append(chunks[-1].usage)
    counts = [usage.completion_tokens_details.reasoning_tokens for usage in usages]
    assert counts == [chat.tokens(reasoning) if reasoning else 0] * 3


def test_reasoning_tokens_of_a_prompt_that_began_them(chat: Chat) -> None:
    messages = [{"role": "user", "content": "think on"}, {"role": "assistant", "content": "<think>\nEasy"}]
    reply = chat.client.chat.completions.create(
        model="tiny",
        messages=messages,
        temperature=0,
        tools=TOOLS,
        extra_body={"continue_final_message": True, "add_generation_prompt": False},
    )
    assert reply.usage.completion_tokens_details.reasoning_tokens == chat.tokens(" enough.\n")


# ------------------------------------------------------------------------------------------------- the Responses API


def respond(chat: Chat, prompt: str, **options: Any) -> list[tuple[str, ...]]:
    """The items of a response, which are the same whole and streamed."""
    request = {"model": "tiny", "input": prompt, "temperature": 0, "max_output_tokens": 200, **options}
    whole: list[tuple[str, ...]] = []
    for item in chat.client.responses.create(**request).output:
        if item.type == "reasoning":
            whole.append(("reasoning", item.content[0].text))
        elif item.type == "message":
            whole.append(("message", item.content[0].text))
        else:
            whole.append((item.type, item.name, item.arguments))
    streamed: list[tuple[str, ...]] = []
    for event in chat.client.responses.create(stream=True, **request):
        if event.type == "response.output_item.added":
            item = event.item
            streamed.append((item.type, item.name, "") if item.type == "function_call" else (item.type, ""))
        elif event.type.endswith(".delta"):
            *head, text = streamed[-1]
            streamed[-1] = (*head, text + event.delta)
    assert [item for item in streamed if item[0] != "function_call" or is_json(item[2])] == whole
    return whole


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
        ("no thinking", {}, [("message", "Hello there, friend!")]),
        (
            "forced weather",
            {"tools": FLAT_TOOLS, "tool_choice": "required"},
            [("reasoning", "Must call."), ("function_call", *ZURICH), ("function_call", *TOKYO)],
        ),
        (
            "forced weather",
            {"tools": FLAT_TOOLS, "tool_choice": {"type": "function", "name": "get_weather"}},
            [("reasoning", "Must call."), ("function_call", *ZURICH)],
        ),
        (
            "broken call",
            {"tools": FLAT_TOOLS},
            [
                ("reasoning", "Hm."),
                ("message", '<tool_call>\n{"name": "get_weather", "arguments": {"city": \n</tool_call>'),
            ],
        ),
    ],
    ids=["calls", "plain", "no reasoning", "required", "named", "broken"],
)
def test_responses(chat: Chat, prompt: str, options: dict[str, Any], expected: list[tuple[str, ...]]) -> None:
    assert respond(chat, prompt, **options) == expected


# ----------------------------------------------------------------------------------------------------------- the log


def test_log_names_the_template_once_and_no_error(server: Any, chat: Chat) -> None:
    chat.ask("broken call")
    log = server.log.read_text(errors="replace")
    named = [line for line in log.splitlines() if "respzoo reads" in line]
    assert len(named) == 1
    assert "the response template qwen3: " in named[0]
    assert "chat template" in named[0]
    assert "Traceback" not in log
