"""Calls on their way to the client: as deltas while they are generated, or whole, and as they stand in the message."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NotRequired, TypedDict, cast

from respzoo.arguments import Call, Way, Writer, dump_arguments
from respzoo.fields import Field
from respzoo.schema import Tools

__all__ = ["FunctionDelta", "Outbox", "ToolCallDelta"]


_SILENT = Writer()


class FunctionDelta(TypedDict):
    name: NotRequired[str]
    arguments: str
    """JSON text."""


class ToolCallDelta(TypedDict):
    index: int
    id: NotRequired[str]
    type: NotRequired[Literal["function"]]
    function: FunctionDelta


class Outbox:
    """The calls of one answer.

    Attributes:
        writer: what follows the region at hand.
    """

    __slots__ = ("_calls", "_taken", "writer")

    def __init__(self) -> None:
        self.writer = _SILENT
        self._taken = 0  # how many of the writer's calls are finished
        self._calls: list[dict[str, Any] | Call] = []  # those that are whole, and those that are not

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls as the message has them. One that broke off when its name had been sent is there as far as it was
        sent, with `"status": "incomplete"` and its arguments as text."""
        return [_incomplete(call) if isinstance(call, Call) else call for call in self._calls]

    def clear(self) -> None:
        """Forget the calls so far: they are the prompt's."""
        self._calls.clear()

    def open(self, field: Field, captures: Mapping[str, str], tools: Tools) -> None:
        """A region of calls has begun, whose arguments are to be sent as they come."""
        from respzoo.arguments.choose import writer_of  # the writers are imported when there is something to write

        self.writer = writer_of(field, captures, tools)
        self._taken = 0

    def more(self, text: str) -> Iterable[ToolCallDelta]:
        """The next piece of the region's content. Returns what it makes certain."""
        writer = self.writer
        shown = writer.quick(text)
        if shown is None:
            writer.text(text)
            return self.news()
        if not shown:
            return ()
        call = writer.calls[-1]
        if call.waiting or call.index < 0:
            call.write(shown)
            return self.news()
        call.pass_on(shown)
        return ({"index": call.index, "function": {"arguments": shown}},)

    @property
    def open_to(self) -> tuple[Call, Way] | None:
        """The call to which text may be passed on without its writer, and how it becomes JSON."""
        way = self.writer.way
        if way is None:
            return None
        call = self.writer.calls[-1]
        return None if call.waiting or call.index < 0 else (call, way)

    def news(self) -> Iterator[ToolCallDelta]:
        """What has become certain of the calls in the region at hand."""
        calls = self.writer.calls
        for call in calls[self._taken :]:
            if call.index < 0 and call.name:
                yield self._announce(call, "")
            if call.index >= 0 and (text := call.take()):
                yield {"index": call.index, "function": {"arguments": text}}
        self._taken = max(self._taken, len(calls) - 1)

    def close(self, value: Any) -> Iterator[ToolCallDelta]:
        """The region at hand has this value: one call, or a list of them."""
        begun, self.writer = self.writer.calls, _SILENT
        for number, item in enumerate(_flat(value)):
            function: Any = item.get("function", item)
            if not isinstance(function, dict):
                continue
            function = cast("dict[str, Any]", function)
            text = dump_arguments(function["arguments"])
            call = begun[number] if number < len(begun) else Call()
            rest = call.rest(text) if call.index >= 0 and call.name == function["name"] else None
            own_id: Any = item.get("id") if item is not function else None
            if rest is None:
                call = Call(function["name"], own_id if isinstance(own_id, str) else "")
                yield self._announce(call, text)
            elif rest:
                yield {"index": call.index, "function": {"arguments": rest}}
            whole: dict[str, Any] = {
                "type": "function",
                "function": {"name": function["name"], "arguments": function["arguments"]},
            }
            if isinstance(own_id, str) and own_id:  # the model wrote one; what was sent counts
                whole = {"id": call.id, **whole}
            self._calls[call.index] = whole

    def broken(self) -> None:
        """The region at hand has no value: what was sent of its calls is all there will be."""
        self.writer = _SILENT

    def _announce(self, call: Call, arguments: str) -> ToolCallDelta:
        call.index = len(self._calls)
        call.id = call.id or f"call_{os.urandom(12).hex()}"
        self._calls.append(call)
        return {
            "index": call.index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": arguments},
        }


def _incomplete(call: Call) -> dict[str, Any]:
    return {"type": "function", "status": "incomplete", "function": {"name": call.name, "arguments": call.sent}}


def _flat(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _flat(item)
    elif isinstance(value, dict):
        yield cast("dict[str, Any]", value)
