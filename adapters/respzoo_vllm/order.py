"""What a delta of several parts says first, for vLLM's Responses.

A DeltaMessage has one reasoning, one content and its calls, in no order. Where vLLM sends several tokens at once (it
does under load, and at a reply's end), a call may go on in it and content follow. The Responses API has an event for
each part, and vLLM's `split_delta` takes content first: that closes the call's item, and what goes on opens one without
a name, which breaks the stream off. So the parser leaves word of the parts as they came.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

__all__ = ["in_order", "mend_responses", "runs"]

in_order: ContextVar[tuple[Any, list[Any]]] = ContextVar("respzoo_in_order", default=(None, []))
"""The last delta of several parts in this task, and its parts: its server splits it next."""


def mend_responses(serving: Any) -> None:
    """In the module of `OpenAIServingResponses`: our deltas are split into the parts that they came in."""
    stock = getattr(serving, "split_delta", None)
    if stock is None or getattr(stock, "respzoo", False):
        return

    @functools.wraps(stock)
    def split_delta(delta: Any) -> list[Any]:
        whole, parts = in_order.get()
        if whole is None or delta is not whole:
            return stock(delta)
        in_order.set((None, []))
        kept = {call.index for call in delta.tool_calls}  # vLLM may have taken all but the first call out
        return [one for part in parts if (not part.tool_calls or _calls(part) <= kept) for one in stock(part)]

    split_delta.respzoo = True  # type: ignore[attr-defined]
    serving.split_delta = split_delta


def _calls(part: Any) -> set[int]:
    return {call.index for call in part.tool_calls}


def runs(deltas: Iterable[Any]) -> list[list[Any]]:
    """Deltas that follow each other and are of one kind, together; calls each apart."""
    found: list[list[Any]] = []
    last: Any = None
    for delta in deltas:
        kind = _kind(delta)
        if kind != last:
            found.append([])
        found[-1].append(delta)
        last = kind
    return found


def _kind(delta: Any) -> Any:
    if "tool_calls" in delta:
        return tuple(call["index"] for call in delta["tool_calls"])
    return "reasoning" if "reasoning_content" in delta else "content"
