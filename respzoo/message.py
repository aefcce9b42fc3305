"""From events to what a chat API sends: deltas in OpenAI's shape, and the message that they add up to.

Deltas never take anything back, so white space that the value will not have is held until it is known to be inside the
value; a call is sent once it is whole. What the prefix wrote is the prompt's, not the answer's: it is no delta, and no
part of this message.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from respzoo.arguments import Call, Way, dump_arguments
from respzoo.events import Dropped, Event
from respzoo.fields import CALLS, CONTENT, REASONING, CompiledTemplate, Field
from respzoo.joined import FEW, compact
from respzoo.known import NOTHING, Known
from respzoo.loop import Loop, Mark
from respzoo.outbox import FunctionDelta, Outbox, ToolCallDelta
from respzoo.parser import ResponseParser, check_choice, check_given
from respzoo.schema import Tool, read_tools
from respzoo.spec import compile_spec

if TYPE_CHECKING:
    from respzoo.guard import Guard

__all__ = ["Delta", "FunctionDelta", "MessageStream", "ToolCallDelta", "dump_arguments"]


class Delta(TypedDict, total=False):
    """One of its keys is there."""

    reasoning_content: str
    content: str
    tool_calls: list[ToolCallDelta]


class _Text:
    """One text field of the message, as it is sent."""

    __slots__ = ("begun", "blocks", "field", "flat", "is_reasoning", "pieces", "sent", "space", "strips")

    def __init__(self, field: Field | None) -> None:
        self.field = field
        self.flat = field is None or field.flat
        self.is_reasoning = field is not None and field.key == REASONING
        self.strips = field is not None and field.strip
        self.sent: list[str] = []
        self.blocks = 0  # how many of these are joined
        self.begun = not self.strips  # whether leading white space counts by now
        self.space: list[str] | None = None  # trailing white space, held
        self.pieces = 0

    def compact(self) -> None:
        """Join what was sent in small pieces, each once."""
        if len(self.sent) - self.blocks >= FEW:
            self.blocks = compact(self.sent, self.blocks)

    def end(self) -> None:
        """Join all that was sent: other fields follow."""
        if len(self.sent) > 1:
            self.sent[:] = ["".join(self.sent)]
            self.blocks = 1

    def open(self) -> str:
        """A further piece begins. Returns what joins it to those before."""
        field = self.field
        self.pieces += 1
        if field is None or not field.repeats:
            return ""
        self.begun, self.space = not self.strips, None
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
            self.space = None
        if space:
            self.space = self.space or []
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

    __slots__ = (
        "_call", "_calls", "_chunk", "_content", "_guard", "_key", "_marks", "_muted", "_on_malformed",
        "_on_unfinished", "_outbox", "_prompted", "_quick", "_reasoning", "_sent", "_shown", "_template", "_to",
        "parser",
    )  # fmt: skip

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
        check_given(prefix, on_malformed, on_unfinished)
        self._template = compiled
        self._on_malformed = on_malformed
        self._on_unfinished = on_unfinished
        reasoning = compiled.by_key.get(REASONING)
        self._reasoning = None if reasoning is None else _Text(reasoning)
        self._content = _Text(compiled.by_key.get(CONTENT))
        self._outbox = Outbox()
        self._muted = True
        marks = arguments == "stream"
        loop = Loop(compiled, read_tools(tools), on_malformed, on_unfinished, forgets=True, marks=marks)
        self.parser = ResponseParser.over(compiled, loop, prefix)
        # here rather than in the parser: arguments are made of what the parser sees
        self._guard: Guard | None = None
        if special_tokens is not None:
            from respzoo.guard import guard_for

            self._guard = guard_for(compiled, special_tokens)
        self._marks = self.parser.marks
        self._prompted = True  # whether text of the prompt is still to be decided
        # The hot path: whether the parser may just take a piece, for which chunk that is settled, and whose text it is;
        # and of the tokens that are known to go on with it, to which call they are passed on, or else by which name.
        self._quick = False
        self._chunk: Event = self.parser.chunk
        self._to: _Text | None = None
        self._calls = False
        self._shown = NOTHING.texts
        self._call: Call | None = None
        self._key = CONTENT
        self._sent: list[str] = []
        self._deltas(self.parser.initial_events)
        self._muted = False
        self._outbox.clear()
        for text in self._texts():
            text.sent.clear()
            text.blocks = 0
            text.space = None

    @property
    def dropped(self) -> list[Dropped]:
        """The regions that became no value, in order."""
        return self.parser.dropped if self._guard is None else self._guard.show(self.parser.dropped)

    def feed(self, text: str, special: Sequence[tuple[int, int]] | None = None) -> list[Delta]:
        """Take the next piece of the output, of any length. Returns the deltas that it decided.

        Args:
            text, special: as `ResponseParser.feed` takes them.

        Raises:
            RuntimeError: after `finish`.
            ValueError: the stretches do not lie in the text, one after another.
        """
        if (to := self.passes(text)) is not None:
            if isinstance(to, str):
                return [{to: text}]  # pyright: ignore[reportReturnType]  one of a delta's keys
            return [{"tool_calls": [{"index": to[0], "function": {"arguments": to[1]}}]}]
        return self.decide(text, special)

    def decide(self, text: str, special: Sequence[tuple[int, int]] | None) -> list[Delta]:
        """`feed`, for a piece that `passes` did not take."""
        if self._guard is not None and not self._guard.lets(text, special):
            return self._feed_guarded(text, special)
        deltas = self._feed(text)
        self._know(text)
        return deltas

    def passes(self, text: str) -> str | tuple[int, str] | None:
        """Take the next piece if it is known what `feed` would return, which is one delta, and do not make it: the
        quickest way. No special token's text is known, so that nobody need tell what special tokens wrote.

        Returns:
            The delta's key, if it is text and the same; or the index of the call that goes on, and with what. None:
            nothing was done.
        """
        shown = self._shown.get(text)
        if shown is None:
            return None
        self._sent.append(shown)  # they are joined when another kind of token comes
        call = self._call
        if call is None:
            return self._key
        self.parser.parts.append(shown if shown == text else text)
        if len(self._sent) > call.most:  # in a string there may be no other kind for long
            call.compact()
            self.parser.compact()
        return call.index, shown

    def _feed(self, text: str) -> list[Delta]:
        """The same for a piece that is not known."""
        if self._quick and self.parser.takes(text):
            return self._pass_on(text)
        events = self.parser.feed(text)
        if not events and self._quick and not self._marks:  # held
            return []
        if self._chunk is not self.parser.chunk:
            self._aim()
        if len(events) == 1 and events[0]["type"] == "region_chunk" and not (self._prompted or self._marks):
            event = events[0]
            if event["field"] == self._chunk["field"]:
                return self._pass_on(event.get("text", ""))
        return self._deltas(events)

    def _pass_on(self, text: str) -> list[Delta]:
        """More text of the region at hand."""
        to = self._to
        if to is not None:
            if to.strips and (to.space or not to.begun or text[-1].isspace()):
                text = to.text(text)
                if not text:
                    return []
            to.sent.append(text)
            to.compact()
            return [{"reasoning_content": text}] if to.is_reasoning else [{"content": text}]
        if not self._calls:
            return []
        return [{"tool_calls": [call]} for call in self._outbox.more(text)]

    def _aim(self) -> None:
        """Set what the hot path needs to know of the region at hand."""
        self._chunk = self.parser.chunk
        name = self._chunk["field"]
        to = self._text_of(name)
        if self._to is not None and self._to is not to:
            self._to.end()
        self._to = to if to is not None and to.flat else None
        self._calls = to is None and name == CALLS
        self._quick = not self._prompted and not self._marks

    def _know(self, text: str) -> None:
        """Set what it needs to know of the tokens that may come, now that this piece was fed."""
        known, to = self.parser.known, self._to
        way = None
        if known is NOTHING or not self._quick:
            known = NOTHING
        elif to is not None:
            if to.strips and (to.space or not to.begun):
                known = NOTHING
            self._call, self._sent = None, to.sent
            self._key = "reasoning_content" if to.is_reasoning else "content"
        elif self._calls and (open_to := self._outbox.open_to) is not None:
            self._call, way = open_to
            self._sent = self._call.taken
        else:
            known = NOTHING
        self._shown = self._also(known, way, text).texts

    def _also(self, known: Known, way: Way | None, text: str) -> Known:
        """Those of the parser's known tokens that the guard need not see, nor a call's writer, whose `way` with them is
        known; this piece may be one more."""
        guard = self._guard
        if known is NOTHING or (guard is not None and (guard.used or guard.held)):
            return NOTHING
        ours = known.beside((way, None if guard is None else guard.marks))
        if (known.texts.get(text) or text in known.others) and text not in ours.texts and text not in ours.refused:
            shown = text if way is None else way.shown(text)
            if shown is None:
                ours.refused.add(text)
            else:
                ours.texts[text] = shown
        return ours

    def _feed_guarded(self, text: str, special: Sequence[tuple[int, int]] | None, *, end: bool = False) -> list[Delta]:
        guard = self._guard
        assert guard is not None
        deltas = self._feed(guard.end() if end else guard.feed(text, special))
        self._know("")
        return guard.show(deltas)

    def finish(self) -> tuple[dict[str, Any], list[Delta]]:
        """The output has ended. Returns the message and the last deltas.

        The message is `ResponseParser.finalize`'s without what the prefix wrote: its texts are the deltas' texts, added
        up, its calls the ones that were sent, with arguments as a dict.

        Raises:
            RuntimeError: when called twice.
        """
        guard = self._guard
        deltas = [] if guard is None else self._feed_guarded("", (), end=True)
        parsed, events = self.parser.finalize()
        deltas += self._deltas(events)
        self._shown = NOTHING.texts
        message = {key: value for key, value in parsed.items() if key not in (REASONING, CONTENT, CALLS)}
        for key, its in ((REASONING, self._reasoning), (CONTENT, self._content)):
            text = "" if its is None else "".join(its.sent)
            if text or key in self._template.defaults:
                message[key] = text or self._template.defaults.get(key)
        if (calls := self._outbox.calls) or CALLS in self._template.defaults:
            message[CALLS] = calls
        return (message, deltas) if guard is None else (guard.show(message), guard.show(deltas))

    def _deltas(self, events: list[Event]) -> list[Delta]:
        deltas: list[Delta] = []
        marks = [*self._marks]
        self._marks.clear()
        for number, event in enumerate(events):
            while marks and marks[0].at <= number:
                self._mark(marks.pop(0))
            kind = event["type"]
            name = event["field"]
            if kind == "region_chunk":
                text = self._text_of(name)
                if text is not None and text.flat:
                    shown = text.text(event.get("text", ""))
                    if self.parser.prompt_chunks:
                        text.space = None  # the prompt's
                    else:
                        self._send(deltas, text, shown)
                elif name == CALLS:
                    self._outbox.writer.text(event.get("text", ""))
                    self._send_news(deltas)
                if self.parser.prompt_chunks:
                    self.parser.prompt_chunks -= 1
            elif kind == "region_open":
                if (text := self._text_of(name)) is not None:
                    self._send(deltas, text, text.open())
                elif name == CALLS:
                    self._send_news(deltas)
            elif kind == "region_close":
                if name == CALLS:
                    self._send_calls(deltas, self._outbox.close(event.get("value")))
                elif (text := self._text_of(name)) is not None and not text.flat:
                    value = event.get("value")
                    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                    self._send(deltas, text, shown)
            else:
                if name == CALLS:
                    self._outbox.broken()
                raw = event.get("raw", "")
                if self.parser.prompt_raws:
                    raw = raw[self.parser.prompt_raws.pop(0) :]
                if raw and self._shows(event):
                    self._send_raw(deltas, raw)
        if marks:
            for mark in marks:
                self._mark(mark)
            self._send_news(deltas)
        self._prompted = self.parser.prompted
        for text in self._texts():
            text.compact()
        self._aim()
        return deltas

    def _text_of(self, name: str) -> _Text | None:
        """The text that a field of this name is."""
        key = self._template.texts.get(name)
        return None if key is None else self._content if key == CONTENT else self._reasoning

    def _texts(self) -> tuple[_Text, ...]:
        return (self._content,) if self._reasoning is None else (self._reasoning, self._content)

    def _mark(self, mark: Mark) -> None:
        outbox = self._outbox
        if mark.kind == "call":
            outbox.open(*mark.what)
        elif mark.kind == "tag":
            outbox.writer.tag(mark.what)
        else:
            outbox.writer.value(mark.what)

    def _send_news(self, deltas: list[Delta]) -> None:
        if not self._muted:
            self._send_calls(deltas, self._outbox.news())

    def _send_calls(self, deltas: list[Delta], calls: Iterable[ToolCallDelta]) -> None:
        deltas.extend({"tool_calls": [call]} for call in calls)

    def _shows(self, event: Event) -> bool:
        policy = self._on_malformed if event.get("reason") == "malformed" else self._on_unfinished
        return policy == "content"

    def _send(self, deltas: list[Delta], text: _Text, shown: str) -> None:
        if shown:
            text.sent.append(shown)
            deltas.append({"reasoning_content": shown} if text.is_reasoning else {"content": shown})

    def _send_raw(self, deltas: list[Delta], raw: str) -> None:
        text = self._content
        if text.field is not None and text.field.repeats:
            self._send(deltas, text, text.open() + raw)
        else:
            self._send(deltas, text, text.text(raw))
