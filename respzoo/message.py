"""From events to what a chat API sends: deltas in OpenAI's shape, and the message that they add up to.

Deltas never take anything back, so white space that the value will not have is held until it is known to be inside the
value; a call is sent once it is whole. What the prefix wrote is the prompt's, not the answer's: it is no delta, and no
part of this message.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict, cast

from respzoo.events import Dropped, Event
from respzoo.fields import CALLS, CONTENT, REASONING, CompiledTemplate, Field
from respzoo.parser import ResponseParser, check_choice
from respzoo.schema import Tool
from respzoo.spec import compile_spec

__all__ = ["Delta", "FunctionDelta", "MessageStream", "ToolCallDelta", "dump_arguments"]


class FunctionDelta(TypedDict):
    name: NotRequired[str]
    arguments: str
    """JSON text."""


class ToolCallDelta(TypedDict):
    index: int
    id: NotRequired[str]
    type: NotRequired[Literal["function"]]
    function: FunctionDelta


class Delta(TypedDict, total=False):
    """One of its keys is there."""

    reasoning_content: str
    content: str
    tool_calls: list[ToolCallDelta]


class _Text:
    """One text field of the message, as it is sent."""

    __slots__ = ("begun", "field", "flat", "is_reasoning", "pieces", "sent", "space", "strips")

    def __init__(self, field: Field | None) -> None:
        self.field = field
        self.flat = field is None or field.flat
        self.is_reasoning = field is not None and field.key == REASONING
        self.strips = field is not None and field.strip
        self.sent: list[str] = []
        self.begun = not self.strips  # whether leading white space counts by now
        self.space: list[str] = []  # trailing white space, held
        self.pieces = 0

    def open(self) -> str:
        """A further piece begins. Returns what joins it to those before."""
        field = self.field
        self.pieces += 1
        if field is None or not field.repeats:
            return ""
        self.begun, self.space = not self.strips, []
        return (field.join or "") if self.pieces > 1 else ""

    def text(self, text: str) -> str:
        if not self.strips:
            return text
        if not self.begun:
            text = text.lstrip()
            if not text:
                return ""
            self.begun = True
        shown = text.rstrip() if text[-1].isspace() else text
        space = text[len(shown) :]
        if shown and self.space:
            shown = "".join(self.space) + shown
            self.space = []
        if space:
            self.space.append(space)
        return shown


class MessageStream:
    """Parse one answer into OpenAI's chat deltas.

    Args:
        template, prefix, tools, on_unfinished, special_tokens: as `ResponseParser` takes them.
        arguments: `complete` sends a call when it is whole, in one delta; `stream` may send its arguments in pieces.
        on_malformed: `content` sends a malformed region's raw text as content, `drop` only records it.

    Raises:
        TemplateError: the plain dict is no template.
        ValueError: an argument is none of those named.
    """

    def __init__(
        self,
        template: CompiledTemplate | Mapping[str, Any],
        *,
        prefix: str,
        tools: Iterable[Tool] | None = None,
        arguments: Literal["stream", "complete"] = "stream",
        on_malformed: Literal["content", "drop"] = "content",
        on_unfinished: Literal["content", "drop"] = "drop",
        special_tokens: Collection[str] | None = None,
    ) -> None:
        check_choice("arguments", arguments, ("stream", "complete"))
        compiled = template if isinstance(template, CompiledTemplate) else compile_spec(template)
        self._template = compiled
        self._on_malformed = on_malformed
        self._on_unfinished = on_unfinished
        self._texts: dict[str, _Text] = {}
        self._by_field: dict[str, _Text] = {}
        for field in compiled.fields.values():
            if field.key in (REASONING, CONTENT):
                self._by_field[field.name] = self._texts.setdefault(field.key, _Text(field))
        content = self._texts.setdefault(CONTENT, _Text(None))
        self._by_field.setdefault(CONTENT, content)
        self._calls: list[dict[str, Any]] = []
        self.parser = ResponseParser(
            compiled,
            prefix=prefix,
            tools=tools,
            on_malformed=on_malformed,
            on_unfinished=on_unfinished,
            special_tokens=special_tokens,
        )
        self._deltas(self.parser.initial_events)
        self._calls.clear()
        for text in self._texts.values():
            text.sent.clear()
            text.space.clear()

    @property
    def dropped(self) -> list[Dropped]:
        """The regions that became no value, in order."""
        return self.parser.dropped

    def feed(self, text: str, special: Sequence[tuple[int, int]] | None = None) -> list[Delta]:
        """Take the next piece of the output, of any length. Returns the deltas that it decided.

        Args:
            text, special: as `ResponseParser.feed` takes them.

        Raises:
            RuntimeError: after `finish`.
            ValueError: the stretches do not lie in the text, one after another.
        """
        events = self.parser.feed(text, special)
        if len(events) == 1 and events[0]["type"] == "region_chunk" and not self.parser.prompt_chunks:
            event = events[0]
            to = self._by_field.get(event["field"])
            if to is None or not to.flat:
                return []
            shown = event.get("text", "")
            if to.strips:
                shown = to.text(shown)
                if not shown:
                    return []
            to.sent.append(shown)
            return [{"reasoning_content": shown}] if to.is_reasoning else [{"content": shown}]
        return self._deltas(events)

    def finish(self) -> tuple[dict[str, Any], list[Delta]]:
        """The output has ended. Returns the message and the last deltas.

        The message is `ResponseParser.finalize`'s without what the prefix wrote: its texts are the deltas' texts, added
        up, its calls the ones that were sent, with arguments as a dict.

        Raises:
            RuntimeError: when called twice.
        """
        parsed, events = self.parser.finalize()
        deltas = self._deltas(events)
        message = {key: value for key, value in parsed.items() if key not in (REASONING, CONTENT, CALLS)}
        for key in (REASONING, CONTENT):
            text = "".join(self._texts[key].sent) if key in self._texts else ""
            if text or key in self._template.defaults:
                message[key] = text or self._template.defaults.get(key)
        if self._calls or CALLS in self._template.defaults:
            message[CALLS] = self._calls
        return message, deltas

    def _deltas(self, events: list[Event]) -> list[Delta]:
        deltas: list[Delta] = []
        for event in events:
            kind = event["type"]
            name = event["field"]
            if kind == "region_chunk":
                text = self._by_field.get(name)
                if text is not None and text.flat:
                    shown = text.text(event.get("text", ""))
                    if self.parser.prompt_chunks:
                        text.space.clear()  # the prompt's
                    else:
                        self._send(deltas, text, shown)
                if self.parser.prompt_chunks:
                    self.parser.prompt_chunks -= 1
            elif kind == "region_open":
                if (text := self._by_field.get(name)) is not None:
                    self._send(deltas, text, text.open())
            elif kind == "region_close":
                if name == CALLS:
                    self._send_calls(deltas, event.get("value"))
                elif (text := self._by_field.get(name)) is not None and not text.flat:
                    value = event.get("value")
                    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                    self._send(deltas, text, shown)
            else:
                raw = event.get("raw", "")
                if self.parser.prompt_raws:
                    raw = raw[self.parser.prompt_raws.pop(0) :]
                if raw and self._shows(event):
                    self._send_raw(deltas, raw)
        return deltas

    def _shows(self, event: Event) -> bool:
        policy = self._on_malformed if event.get("reason") == "malformed" else self._on_unfinished
        return policy == "content"

    def _send(self, deltas: list[Delta], text: _Text, shown: str) -> None:
        if shown:
            text.sent.append(shown)
            deltas.append({"reasoning_content": shown} if text.is_reasoning else {"content": shown})

    def _send_raw(self, deltas: list[Delta], raw: str) -> None:
        text = self._texts[CONTENT]
        if text.field is not None and text.field.repeats:
            self._send(deltas, text, text.open() + raw)
        else:
            self._send(deltas, text, text.text(raw))

    def _send_calls(self, deltas: list[Delta], value: Any) -> None:
        if isinstance(value, list):
            for item in cast("list[Any]", value):
                self._send_calls(deltas, item)
            return
        function = value.get("function", value) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        if not isinstance(function, dict):
            return
        function = cast("dict[str, Any]", function)
        call = {"type": "function", "function": {"name": function["name"], "arguments": function["arguments"]}}
        own_id: Any = cast("dict[str, Any]", value).get("id")
        if not (isinstance(own_id, str) and own_id):
            own_id = ""
        elif value is not function:  # the model wrote it, and the template has a place for it
            call = {"id": own_id, **call}
        deltas.append(
            {
                "tool_calls": [
                    {
                        "index": len(self._calls),
                        "id": own_id or f"call_{uuid.uuid4().hex[:24]}",
                        "type": "function",
                        "function": {"name": function["name"], "arguments": dump_arguments(function["arguments"])},
                    }
                ]
            }
        )
        self._calls.append(call)


def dump_arguments(arguments: Any) -> str:
    """A call's arguments as the JSON text that an API sends: readable, unless half a surrogate pair forbids it."""
    text = json.dumps(arguments, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(arguments)
    return text
