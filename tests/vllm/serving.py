"""vLLM's own chat and Anthropic servers without an engine: what they make of tokens that a test writes.

No more of them is set up than their generators of replies use.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from driving import PROMPT, TOKENIZER
from tokenizers.decoders import DecodeStream
from vllm.entrypoints.anthropic.serving import AnthropicServingMessages
from vllm.entrypoints.openai.chat_completion.serving import OpenAIServingChat
from vllm.outputs import CompletionOutput, RequestOutput

try:
    from vllm.entrypoints.generate.base.protocol import RequestResponseMetadata
except ImportError:  # before 0.32
    from vllm.entrypoints.openai.engine.protocol import RequestResponseMetadata


@dataclass
class Written:
    """One choice as the engine writes it."""

    text: str
    finish: str = "stop"
    ids: list[int] | None = None

    def tokens(self) -> list[int]:
        return TOKENIZER.encode(self.text, add_special_tokens=False) if self.ids is None else self.ids


@dataclass
class Choice:
    """One choice as a client sees it."""

    reasoning: str = ""
    content: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    finish: str = ""


@dataclass
class Reply:
    choices: list[Choice]
    reasoning_tokens: int | None = None


class Bare:
    """Goes before a server's class."""

    def __init__(self, parser_class: Any) -> None:
        self.parser_cls = parser_class
        self.enable_auto_tools = True
        self.response_role = "assistant"
        self._include_reasoning_tokens_details = True
        self.stop_reason_map = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}  # 0.24, 0.28

    def __getattr__(self, name: str) -> Any:
        return None  # nothing else is switched on

    def _make_parser(self, request: Any, tokenizer: Any, chat_template_kwargs: Any) -> Any:
        return self.parser_cls(tokenizer, request.tools)

    def _effective_chat_template_kwargs(self, request: Any) -> dict[str, Any]:
        return {}


class Serving(Bare, OpenAIServingChat):
    """`OpenAIServingChat`."""

    def reply(
        self, request: Any, *written: Written, prompt: str = PROMPT, size: int = 1, conversation: Sequence[Any] = ()
    ) -> Reply:
        """The whole reply, or the streamed one, `size` tokens a step, if the request says so."""
        ids = TOKENIZER.encode(prompt, add_special_tokens=False)
        arguments = ["id", "m", list(conversation), TOKENIZER, RequestResponseMetadata(request_id="id")]
        if not request.stream:
            parser = self.parser_cls(TOKENIZER, request.tools)
            parser.is_reasoning_end(ids)  # as where the request is sent to the engine
            made = asyncio.run(
                self.chat_completion_full_generator(request, whole(ids, written), *arguments, parser=parser)
            )
            return from_whole(made)
        streamed = self.chat_completion_stream_generator(request, steps(ids, written, size), *arguments)
        return asyncio.run(from_stream(streamed, len(written)))


@dataclass
class Blocks:
    """An answer of the Messages API: the kind of each block, and what it holds."""

    blocks: list[tuple[str, Any]]
    stop_reason: str | None


class Messages(Bare, AnthropicServingMessages):
    """`AnthropicServingMessages`, from where the request is one of chat's."""

    def reply(self, request: Any, written: Written, *, prompt: str = PROMPT, size: int = 1) -> Blocks:
        ids = TOKENIZER.encode(prompt, add_special_tokens=False)
        arguments = ["id", "m", [], TOKENIZER, RequestResponseMetadata(request_id="id")]
        if not request.stream:
            parser = self.parser_cls(TOKENIZER, request.tools)
            parser.is_reasoning_end(ids)
            made = self.messages_full_converter(
                asyncio.run(
                    self.chat_completion_full_generator(request, whole(ids, [written]), *arguments, parser=parser)
                )
            )
            names = {"thinking": "thinking", "text": "text", "tool_use": "input"}
            return Blocks([(one.type, getattr(one, names[one.type])) for one in made.content], made.stop_reason)
        lines: Any = self.chat_completion_stream_generator(request, steps(ids, [written], size), *arguments)
        if "chat_completion_stream_generator" not in vars(AnthropicServingMessages):  # since 0.33
            lines = self.message_stream_converter(lines)
        return asyncio.run(from_events(lines))


async def from_events(lines: AsyncIterator[str]) -> Blocks:
    found = Blocks([], None)
    async for line in lines:
        for part_of_it in line.split("\n"):
            if not part_of_it.startswith("data: ") or part_of_it == "data: [DONE]":
                continue
            event = json.loads(part_of_it.removeprefix("data: "))
            match event["type"]:
                case "content_block_start":
                    found.blocks.append((event["content_block"]["type"], ""))
                case "content_block_delta" if event["delta"]["type"] != "signature_delta":
                    kind, text = found.blocks[event["index"]]
                    delta = event["delta"]
                    more = delta.get("thinking") or delta.get("text") or delta.get("partial_json") or ""
                    found.blocks[event["index"]] = kind, text + more
                case "message_delta":
                    found.stop_reason = event["delta"].get("stop_reason")
                case _:
                    pass
    found.blocks = [(kind, json.loads(text) if kind == "tool_use" else text) for kind, text in found.blocks]
    return found


def output(ids: list[int], choices: list[CompletionOutput], *, finished: bool) -> RequestOutput:
    return RequestOutput(
        request_id="id",
        prompt=None,
        prompt_token_ids=ids,
        prompt_logprobs=None,
        outputs=choices,
        finished=finished,
        num_cached_tokens=0,
    )


def part(index: int, text: str, ids: Sequence[int], finish: str | None) -> CompletionOutput:
    return CompletionOutput(
        index=index, text=text, token_ids=list(ids), cumulative_logprob=None, logprobs=None, finish_reason=finish
    )


async def whole(ids: list[int], written: Sequence[Written]) -> AsyncIterator[RequestOutput]:
    choices = [part(index, one.text, one.tokens(), one.finish) for index, one in enumerate(written)]
    yield output(ids, choices, finished=True)


async def steps(ids: list[int], written: Sequence[Written], size: int) -> AsyncIterator[RequestOutput]:
    """The choices take turns."""
    left = [(one.tokens(), DecodeStream(skip_special_tokens=False), one) for one in written]
    at = 0
    while any(at < len(tokens) or at == 0 for tokens, _, _ in left):
        for index, (tokens, stream, one) in enumerate(left):
            some = tokens[at : at + size]
            if not some and at:
                continue
            text = "".join(stream.step(TOKENIZER.backend_tokenizer, token) or "" for token in some)
            finish = one.finish if at + size >= len(tokens) else None
            yield output(ids, [part(index, text, some, finish)], finished=finish is not None)
        at += size


def from_whole(made: Any) -> Reply:
    details = getattr(made.usage, "completion_tokens_details", None)  # since 0.28
    return Reply(
        [
            Choice(
                one.message.reasoning or "",
                one.message.content or "",
                [(call.function.name, call.function.arguments) for call in one.message.tool_calls or ()],
                one.finish_reason,
            )
            for one in made.choices
        ],
        None if details is None else details.reasoning_tokens,
    )


async def from_stream(lines: AsyncIterator[str], count: int) -> Reply:
    reply = Reply([Choice() for _ in range(count)])
    calls: list[dict[int, list[str]]] = [{} for _ in range(count)]
    async for line in lines:
        body = line.removeprefix("data: ").strip()
        if body == "[DONE]":
            continue
        chunk = json.loads(body)
        assert "error" not in chunk, chunk
        if (usage := chunk.get("usage")) and (details := usage.get("completion_tokens_details")):
            reply.reasoning_tokens = details["reasoning_tokens"]
        for one in chunk["choices"]:
            choice, delta = reply.choices[one["index"]], one["delta"]
            assert not choice.finish, "nothing comes after the end"
            choice.reasoning += delta.get("reasoning") or ""
            choice.content += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                known = calls[one["index"]].setdefault(call["index"], ["", ""])
                known[0] += call["function"].get("name") or ""
                known[1] += call["function"].get("arguments") or ""
            choice.finish = one.get("finish_reason") or ""
    for choice, known in zip(reply.choices, calls, strict=True):
        choice.calls = [(name, arguments) for name, arguments in known.values()]
    return reply
