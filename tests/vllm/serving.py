"""vLLM's own chat server without an engine: what it makes of tokens that a test writes.

`Serving` is `OpenAIServingChat` with no more set up than its two generators of replies use.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from driving import PROMPT, TOKENIZER
from tokenizers.decoders import DecodeStream
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


class Serving(OpenAIServingChat):
    def __init__(self, parser_class: Any) -> None:
        self.parser_cls = parser_class
        self.enable_auto_tools = True
        self.response_role = "assistant"
        self._include_reasoning_tokens_details = True

    def __getattr__(self, name: str) -> Any:
        return None  # nothing else is switched on

    def _make_parser(self, request: Any, tokenizer: Any, chat_template_kwargs: Any) -> Any:
        return self.parser_cls(tokenizer, request.tools)

    def _effective_chat_template_kwargs(self, request: Any) -> dict[str, Any]:
        return {}

    def reply(
        self, request: Any, *written: Written, prompt: str = PROMPT, size: int = 1, conversation: Sequence[Any] = ()
    ) -> Reply:
        """The whole reply, or the streamed one, `size` tokens a step, if the request says so."""
        ids = TOKENIZER.encode(prompt, add_special_tokens=False)
        metadata = RequestResponseMetadata(request_id="id")
        arguments: list[Any] = ["id", "m", list(conversation), TOKENIZER, metadata]
        if not request.stream:
            parser = self.parser_cls(TOKENIZER, request.tools)
            parser.is_reasoning_end(ids)  # as where the request is sent to the engine
            made = asyncio.run(
                self.chat_completion_full_generator(request, whole(ids, written), *arguments, parser=parser)
            )
            return from_whole(made)
        streamed = self.chat_completion_stream_generator(request, steps(ids, written, size), *arguments)
        return asyncio.run(from_stream(streamed, len(written)))


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
