"""A live server as its clients see it: each API asked whole and streamed, and the two compared.

What the model writes is in tools/vllm_cpu/scripts.py; in its tokenizer <tool_call> and </tool_call> are special tokens.
"""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import scripts

TOOLS = scripts.TOOLS
FLAT_TOOLS = [{"type": "function", **tool["function"]} for tool in TOOLS]
STRICT_FLAT_TOOLS = [{"type": "function", **tool["function"]} for tool in scripts.STRICT_TOOLS]
MESSAGE_TOOLS = [
    {
        "name": tool["function"]["name"],
        "description": tool["function"]["description"],
        "input_schema": tool["function"]["parameters"],
    }
    for tool in TOOLS
]
ZURICH = ("get_weather", '{"city": "Zürich", "note": "say \\"grüezi\\" \\\\ 🌦"}')
TOKYO = ("get_weather", '{"city": "東京", "days": 3}')
OSLO = ("get_weather", '{"city": "Oslo"}')
PING = ("ping", "{}")
NAMED = {"type": "function", "function": {"name": "get_weather"}}
SCHEMA = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "string"}},
    "required": ["x", "y"],
}
OBJECT = '{"x": 1, "y": "é"}'
# How many tokens a delta has at least: one by one, and several at once, as a busy or a guessing engine sends them.
INTERVALS = (1, 4)

Call = tuple[str, str]  # the name, and the arguments as JSON


@dataclass
class Reply:
    reasoning: str = ""
    content: str = ""
    calls: tuple[Call, ...] = ()
    finish: str = "stop"


# What becomes of answers that no request holds, by their prompts.
REPLIES = {
    "weather twice": Reply("Two cities, so two calls.", "Let me check both.", (ZURICH, TOKYO), "tool_calls"),
    "answer plainly": Reply("Easy one.", "The answer is **42**."),
    "no thinking": Reply("", "Hello there, friend!"),
    "never close": Reply("I keep thinking and thinking"),
    "broken call": Reply("Hm.", '<tool_call>\n{"name": "get_weather", "arguments": {"city": \n</tool_call>'),
    "odd call": Reply("Hm.", 'A: <tool_call>\n{"nome": "ping"}\n</tool_call> B: C.', (PING,), "tool_calls"),
    "call ping": Reply(calls=(PING,), finish="tool_calls"),
    "forced weather": Reply("Must call.", "", (ZURICH, TOKYO), "tool_calls"),
    "tag in text": Reply("The tag is <b>.", "Use a < b and a </b> tag, ok?"),
    "text around": Reply("One, then one.", "Before.\nBetween.\nAfter.", (OSLO, PING), "tool_calls"),
    "marker inside": Reply(
        "Quote it.",
        "\nDone.",
        (("get_weather", '{"city": "Oslo", "note": "a </tool_call> b <think> c"}'),),
        "tool_calls",
    ),
    "thought call": Reply(
        'I could write <tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call> here.', "But no."
    ),
    "emoji": Reply("family: 👩‍👧 漢字 naïve", "👩‍👧 漢字 naïve 🌦️"),
    # a call in the syntax of another family is none
    "tagged twice": Reply(
        "Two with tags.",
        "Look:\n"
        + scripts.tagged("get_weather", {"city": "Zürich", "days": "3"})
        + f"\n{scripts.tagged('ping', {})}\nBoth.",
    ),
}


def finished(reply: Reply) -> Reply:
    """Without a call that a stream began and the model did not finish: nothing that was sent is taken back."""
    return replace(reply, calls=tuple(call for call in reply.calls if is_json(call[1])))


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


# --------------------------------------------------------------------------------------------------------------- chat


@dataclass
class Chat:
    """Chat completions."""

    client: Any

    def ask(self, prompt: str | list[dict[str, Any]], **options: Any) -> Reply:
        """The reply, which is the same whole and streamed."""
        (reply,) = self.choices(prompt, **options)
        return reply

    def choices(self, prompt: str | list[dict[str, Any]], **options: Any) -> list[Reply]:
        whole = self.whole(prompt, **options)
        for streamed in self.streams(prompt, **options):
            assert [*map(finished, streamed)] == whole
        return whole

    def whole(self, prompt: str | list[dict[str, Any]], **options: Any) -> list[Reply]:
        return [
            Reply(
                choice.message.reasoning or "",
                choice.message.content or "",
                tuple((call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()),
                choice.finish_reason,
            )
            for choice in self.client.chat.completions.create(**chat_request(prompt, options)).choices
        ]

    def streams(self, prompt: str | list[dict[str, Any]], **options: Any) -> list[list[Reply]]:
        """The reply streamed token by token and in larger deltas, with what has begun and was not finished."""
        request = chat_request(prompt, options)
        body = request.pop("extra_body", {})
        return [
            gathered(
                self.client.chat.completions.create(
                    stream=True, extra_body={**body, "stream_interval": interval}, **request
                )
            )
            for interval in INTERVALS
        ]

    def usages(self, prompt: str | list[dict[str, Any]], **options: Any) -> list[Any]:
        """What was counted, whole and streamed."""
        request = chat_request(prompt, options)
        ways = ({"include_usage": True}, {"include_usage": True, "continuous_usage_stats": True})
        streams = (self.client.chat.completions.create(stream=True, stream_options=way, **request) for way in ways)
        return [self.client.chat.completions.create(**request).usage, *([*stream][-1].usage for stream in streams)]


def chat_request(prompt: str | list[dict[str, Any]], options: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    request = {"model": "tiny", "messages": messages, "temperature": 0, "max_tokens": 300, "tools": TOOLS, **options}
    return {key: value for key, value in request.items() if value is not None}


def gathered(chunks: Any) -> list[Reply]:
    """What a client makes of a stream's chunks."""
    replies: dict[int, Reply] = {}
    calls: dict[tuple[int, int], list[str]] = {}
    ids: set[str] = set()
    for chunk in chunks:
        for choice in chunk.choices:
            reply = replies.setdefault(choice.index, Reply(finish=""))
            assert not reply.finish, "nothing comes after the end"
            reply.reasoning += getattr(choice.delta, "reasoning", None) or ""
            reply.content += choice.delta.content or ""
            reply.finish = choice.finish_reason or reply.finish
            for call in choice.delta.tool_calls or ():
                key = choice.index, call.index
                if key not in calls:
                    assert call.index == sum(index == choice.index for index, _ in calls), "calls are counted from 0"
                    assert call.id not in ids, "each call has an id of its own, once"
                    assert call.type == "function"
                    ids.add(call.id)
                    calls[key] = [call.function.name, ""]
                else:
                    assert call.id is call.function.name is None
                calls[key][1] += call.function.arguments or ""
    for (index, _), (name, arguments) in sorted(calls.items()):
        replies[index].calls += ((name, arguments),)
    return [replies[index] for index in sorted(replies)]


# ---------------------------------------------------------------------------------------------------------- Responses

Item = tuple[str, ...]  # its type, and what it holds


@dataclass
class Responses:
    """The Responses API: the items of a reply, whole and streamed, and the order of its events."""

    client: Any

    def ask(self, prompt: Any, **options: Any) -> list[Item]:
        request = {"model": "tiny", "input": prompt, "temperature": 0, "max_output_tokens": 300, **options}
        whole = [said_item(item) for item in self.client.responses.create(**request).output]
        streamed = [*self.client.responses.create(stream=True, **request)]
        items = followed(streamed)
        assert [said_item(item) for item in streamed[-1].response.output] == items
        # without a call that the stream began and the model did not finish
        assert [item for item in items if item[0] != "function_call" or is_json(item[2])] == whole
        return whole

    def whole(self, prompt: Any, **options: Any) -> Any:
        return self.client.responses.create(model="tiny", input=prompt, temperature=0, **options)

    def events(self, prompt: Any, **options: Any) -> list[Any]:
        return [*self.client.responses.create(model="tiny", input=prompt, temperature=0, stream=True, **options)]


def said_item(item: Any) -> Item:
    if item.type == "function_call":
        return item.type, item.name, item.arguments
    return item.type, "".join(part.text for part in item.content or ())


# The events of one item between output_item.added and output_item.done: (what opens a part, its deltas, what ends it).
PARTS = {
    "reasoning": ("content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done"),
    "message": ("content_part.added", "output_text.delta", "output_text.done", "content_part.done"),
    "function_call": ("", "function_call_arguments.delta", "function_call_arguments.done", ""),
}


def followed(events: list[Any]) -> list[Item]:
    """The items that a stream's events build, which stand in the order that clients rely on."""
    assert [event.sequence_number for event in events] == [*range(len(events))]
    kinds = [event.type.removeprefix("response.") for event in events]
    assert kinds[:2] == ["created", "in_progress"]
    assert kinds[-1] in ("completed", "incomplete")
    items: list[Item] = []
    at = 2
    while at < len(events) - 1:
        assert kinds[at] == "output_item.added"
        item = events[at].item
        opened, delta, done, closed = PARTS[item.type]
        begun, at = at, at + 1
        if opened:
            assert kinds[at] == opened
            at += 1
        pieces: list[str] = []
        while kinds[at] == delta:
            pieces.append(events[at].delta)
            at += 1
        text = "".join(pieces)
        assert kinds[at] == done
        assert (events[at].arguments if item.type == "function_call" else events[at].text) == text
        at += 1
        if closed:
            assert kinds[at] == closed
            assert events[at].part.text == text
            at += 1
        assert kinds[at] == "output_item.done"
        ended = events[at].item
        at += 1
        assert (ended.id, ended.type) == (item.id, item.type)
        assert {event.output_index for event in events[begun:at]} == {len(items)}
        assert {event.item_id for event in events[begun + 1 : at - 1]} == {item.id}
        items.append(said_item(ended))
        if item.type == "function_call":
            assert (ended.name, ended.call_id) == (item.name, item.call_id)
        assert items[-1][-1] == text
    return items


# ----------------------------------------------------------------------------------------------------------- Messages


@dataclass
class Message:
    thinking: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    stop: str = "end_turn"


@dataclass
class Messages:
    """Anthropic's Messages API."""

    client: Any

    def ask(self, prompt: str | list[dict[str, Any]], **options: Any) -> Message:
        whole = self.whole(prompt, **options)
        streamed = self.streamed(prompt, **options)
        calls = tuple((name, as_json(json.loads(text))) for name, text in streamed.calls if is_json(text))
        assert replace(streamed, calls=calls) == whole
        return whole

    def whole(self, prompt: str | list[dict[str, Any]], **options: Any) -> Message:
        found = self.client.messages.create(**self._request(prompt, options))
        return Message(
            "".join(block.thinking for block in found.content if block.type == "thinking"),
            "".join(block.text for block in found.content if block.type == "text"),
            tuple((block.name, as_json(block.input)) for block in found.content if block.type == "tool_use"),
            found.stop_reason,
        )

    def streamed(self, prompt: str | list[dict[str, Any]], **options: Any) -> Message:
        found = Message(stop="")
        blocks: list[Any] = []
        events = [*self.client.messages.create(stream=True, **self._request(prompt, options))]
        kinds = [event.type for event in events]
        assert kinds[0] == "message_start"
        assert kinds[-2:] == ["message_delta", "message_stop"]
        for event in events[1:-2]:
            if event.type == "content_block_start":
                assert event.index == len(blocks)
                blocks.append([event.content_block, "", True])
                continue
            block = blocks[-1]
            assert event.index == len(blocks) - 1
            assert block[2], "nothing comes after a block's end"
            if event.type == "content_block_stop":
                block[2] = False
            elif event.delta.type != "signature_delta":
                kind, name = WRITTEN[block[0].type]
                assert event.delta.type == kind
                block[1] += getattr(event.delta, name)
        assert not any(is_open for _, _, is_open in blocks)
        for block, text, _ in blocks:
            if block.type == "thinking":
                found.thinking += text
            elif block.type == "text":
                found.text += text
            else:
                found.calls += ((block.name, text or "{}"),)
        found.stop = events[-2].delta.stop_reason
        return found

    def _request(self, prompt: str | list[dict[str, Any]], options: dict[str, Any]) -> dict[str, Any]:
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        request = {"model": "tiny", "messages": messages, "max_tokens": 300, "tools": MESSAGE_TOOLS, **options}
        body = {"temperature": 0, **request.pop("extra_body", {})}
        return {key: value for key, value in request.items() if value is not None} | {"extra_body": body}


# What a block's deltas are, and where their text stands.
WRITTEN = {
    "thinking": ("thinking_delta", "thinking"),
    "text": ("text_delta", "text"),
    "tool_use": ("input_json_delta", "partial_json"),
}


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# ------------------------------------------------------------------------------------------------------------- server


@dataclass
class Live:
    """A running server."""

    server: Any
    model: Path
    _closed: list[Any] = field(default_factory=list[Any])

    @cached_property
    def chat(self) -> Chat:
        return Chat(self.openai)

    @cached_property
    def responses(self) -> Responses:
        return Responses(self.openai)

    @cached_property
    def openai(self) -> Any:
        client = self.server.client()
        self._closed.append(client)
        return client

    @cached_property
    def messages(self) -> Messages:
        import anthropic

        client = anthropic.Anthropic(
            base_url=f"http://127.0.0.1:{self.server.port}",
            api_key="none",
            http_client=anthropic.DefaultHttpxClient(trust_env=False),
            max_retries=0,
            timeout=120,
        )
        self._closed.append(client)
        return Messages(client)

    @cached_property
    def tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.model)

    def tokens(self, text: str) -> int:
        return len(self.tokenizer(text).input_ids)

    def log(self) -> str:
        return self.server.log.read_text(errors="replace")

    def metric(self, name: str, **labels: str) -> float:
        """The sum of what /metrics shows under that name with these labels."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self.server.port}/metrics", timeout=60) as page:
            lines = page.read().decode().splitlines()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.partition("{")[0].partition(" ")[0] == name and all(label in line for label in wanted)
        )

    def close(self) -> None:
        for client in self._closed:
            client.close()
