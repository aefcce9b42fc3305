"""`finish_reason` as it is, where vLLM says something else.

It is vLLM that says how a reply ended; a parser is not asked. What it says too often is `tool_calls`: up to 0.32 of a
whole reply that the token limit cut behind a call, and of one of which a call was required and that holds none; up to
0.28 of any stream with a call in it; and on every release of a stream in which a call has begun and broke off. Since
0.33 replies end in one place, before in four; what is wrapped here is looked for when vLLM imports it, and where it is
not as it is known, vLLM's word stands.
"""

# vLLM is not there where types are checked, so what it hands out is unknown.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any

__all__ = ["mend_serving", "mend_streams", "no_call"]

no_call: ContextVar[bool] = ContextVar("respzoo_no_call", default=False)
"""Whether the choice that ended last in this task holds no whole call: a parser knows, and its server asks next."""
_SAID = '"finish_reason":"tool_calls"'  # as pydantic writes it; inside a text its quotes would be escaped


def mend_serving(serving: Any) -> None:
    """In the module of `OpenAIServingChat`, up to 0.32: only what ended by itself and holds a call is `tool_calls`."""
    if hasattr(serving, "resolve_finish_reason"):
        return  # since 0.33
    chat = serving.OpenAIServingChat
    whole, streamed = chat.chat_completion_full_generator, chat.chat_completion_stream_generator
    if not (inspect.iscoroutinefunction(whole) and inspect.isasyncgenfunction(streamed)):
        return

    @functools.wraps(whole)
    async def chat_completion_full_generator(self: Any, request: Any, results: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_ours(self.parser_cls):
            return await whole(self, request, results, *args, **kwargs)
        ended: dict[int, str | None] = {}
        response = await whole(self, request, _watched(results, ended), *args, **kwargs)
        for choice in getattr(response, "choices", ()):
            engines = ended.get(choice.index) or "stop"
            if choice.finish_reason == "tool_calls" and (engines != "stop" or not choice.message.tool_calls):
                choice.finish_reason = engines
        return response

    @functools.wraps(streamed)
    def chat_completion_stream_generator(self: Any, request: Any, results: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_ours(self.parser_cls):
            return streamed(self, request, results, *args, **kwargs)
        ended: dict[int, str | None] = {}
        return _mended(streamed(self, request, _watched(results, ended), *args, **kwargs), ended)

    chat.chat_completion_full_generator = chat_completion_full_generator
    chat.chat_completion_stream_generator = chat_completion_stream_generator


async def _watched(results: AsyncIterator[Any], ended: dict[int, str | None]) -> AsyncIterator[Any]:
    """The engine's results, with a note of how each choice ended."""
    async for result in results:
        for output in result.outputs:
            if output.finish_reason is not None:
                ended[output.index] = output.finish_reason
        yield result


async def _mended(lines: Any, ended: dict[int, str | None]) -> AsyncIterator[str]:
    """A stream's events. The last one of a choice follows at once on the parser's last word on it."""
    async with aclosing(lines):
        async for line in lines:
            if _SAID not in line:
                yield line
                continue
            (choice,) = json.loads(line.removeprefix("data: "))["choices"]
            engines = ended.get(choice["index"]) or "stop"
            wrong = engines != "stop" or no_call.get()
            yield line.replace(_SAID, f'"finish_reason":"{engines}"') if wrong else line


def mend_streams(processing: Any) -> None:
    """In the module of `ChatStreamProcessor`, since 0.33: a stream in which no call was finished is no `tool_calls`."""
    stock = processing.ChatStreamProcessor.step

    @functools.wraps(stock)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = stock(self, *args, **kwargs)
        if found.finish_reason == "tool_calls" and _is_ours(type(self.parser)) and no_call.get():
            return found._replace(finish_reason="stop")
        return found

    processing.ChatStreamProcessor.step = step


def _is_ours(parser: Any) -> bool:
    return getattr(parser, "reads_as_one", False)
