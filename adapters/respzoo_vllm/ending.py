"""`finish_reason` as it is, where vLLM says something else.

It is vLLM that says how a reply ended; a parser is not asked. Up to 0.32 a whole reply that holds a call is
`tool_calls` even where the token limit cut it behind the call, and so is one of which a call was required and that
holds none. And a stream in which a call has begun is `tool_calls` although the call broke off. Since 0.33 the first is
mended, and the second can be: vLLM resolves a stream's end in one place. What these two functions wrap is looked for
when vLLM imports it; where it is not as it is known, vLLM's word stands.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator
from typing import Any

__all__ = ["mend_streamed", "mend_whole"]


def mend_whole(serving: Any) -> None:
    """In the module of `OpenAIServingChat`: a whole reply is `tool_calls` if it ended by itself and holds a call."""
    if hasattr(serving, "resolve_finish_reason"):
        return  # since 0.33
    stock = serving.OpenAIServingChat.chat_completion_full_generator
    if not inspect.iscoroutinefunction(stock) or hasattr(stock, "respzoo"):
        return

    @functools.wraps(stock)
    async def chat_completion_full_generator(
        self: Any, request: Any, result_generator: AsyncIterator[Any], *args: Any, **kwargs: Any
    ) -> Any:
        if not _is_ours(self.parser_cls):
            return await stock(self, request, result_generator, *args, **kwargs)
        ended: dict[int, str | None] = {}

        async def watched() -> AsyncIterator[Any]:
            async for result in result_generator:
                ended.update((output.index, output.finish_reason) for output in result.outputs)
                yield result

        response = await stock(self, request, watched(), *args, **kwargs)
        for choice in getattr(response, "choices", ()):
            engines = ended.get(choice.index) or "stop"
            if choice.finish_reason == "tool_calls" and (engines != "stop" or not choice.message.tool_calls):
                choice.finish_reason = engines
        return response

    chat_completion_full_generator.respzoo = True  # type: ignore[attr-defined]
    serving.OpenAIServingChat.chat_completion_full_generator = chat_completion_full_generator


def mend_streamed(processing: Any) -> None:
    """In the module of `ChatStreamProcessor`: a stream in which no call was finished is no `tool_calls`."""
    stock = processing.ChatStreamProcessor.step
    if hasattr(stock, "respzoo"):
        return

    @functools.wraps(stock)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = stock(self, *args, **kwargs)
        if found.finish_reason == "tool_calls" and getattr(self.parser, "finished_no_call", False):
            return found._replace(finish_reason="stop")
        return found

    step.respzoo = True  # type: ignore[attr-defined]
    processing.ChatStreamProcessor.step = step


def _is_ours(parser: Any) -> bool:
    return hasattr(parser, "finished_no_call")
