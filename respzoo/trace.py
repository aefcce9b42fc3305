"""What became of each character of an output: the pieces, the events with their places, what was held, what broke.

The parser is fed one character at a time, so that each event is seen at the very character that decided it. Events hold
the regions' own text; the delimiters are what lies between. Where a chunk begins follows from the text that is decided
by then: all that was fed but what the parser still holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from respzoo.delimiters import Delimiter
from respzoo.events import Event
from respzoo.fields import CompiledTemplate
from respzoo.parser import ResponseParser
from respzoo.pieces import Fault, Hold, Piece, Step, Trace
from respzoo.schema import Tool

__all__ = ["length_of", "trace"]

_PLACE = re.compile(r"\bchar(?:acter)? (\d+)")


def trace(template: CompiledTemplate, text: str, *, prefix: str, tools: Iterable[Tool] | None = None) -> Trace:
    """Parse an output and keep the record of it."""
    return _Tracer(template, text, prefix, tools).run()


class _Tracer:
    def __init__(self, template: CompiledTemplate, text: str, prefix: str, tools: Iterable[Tool] | None) -> None:
        self.template = template
        self.parser = ResponseParser(template, prefix=prefix, tools=tools)
        start = template.after_anchor(prefix)
        self.out = Trace(start + text, len(start))
        self.at = 0
        """The end of the last piece."""
        self.silent: list[tuple[int, int]] = []
        """Text that was decided without an event."""
        self.region = 0
        """The index of the first piece of the present region."""
        self.inside = ""
        """The field whose region is open."""
        self.hold: tuple[int, int, str] | None = None

    def run(self) -> Trace:
        out = self.out
        fed = decided = out.prompt
        decided = self._settle(self.parser.initial_events, 0, fed)
        for character in out.text[out.prompt :]:
            fed += 1
            decided = self._settle(self.parser.feed(character), decided, fed)
        message, events = self.parser.finalize()
        out.message, out.dropped = message, self.parser.dropped
        self._place(events, len(out.text), fed)
        self._let_go(len(out.text), fed)
        self._fill(len(out.text))
        for piece in out.pieces:
            self._name_wrapper(piece)
        for step in out.steps:
            if step.event["type"] == "region_chunk":  # of one region's neighbouring chunks, all
                step.event = {**step.event, "text": out.text[step.start : step.end]}
        return out

    def _settle(self, events: list[Event], decided: int, fed: int) -> int:
        """One feed's events. Returns how far the text is decided by now."""
        end = fed - _held(self.parser)
        self._place(events, end, fed)
        if not events and end > decided:
            self.silent.append((decided, end))
        self._let_go(end, fed)
        if end < fed:
            start = end if self.hold is None else self.hold[0]
            self.hold = (start, fed, self.inside)
        return end

    # -------------------------------------------------------------------------------------------------------- placing

    def _place(self, events: list[Event], end: int, fed: int) -> None:
        """Find each event's text between the last piece and `end`."""
        last = max((n for n, event in enumerate(events) if event["type"] != "region_chunk"), default=-1)
        tail = "".join(event.get("text", "") for event in events[last + 1 :])
        behind = end - len(tail) if self.out.text[self.at : end].endswith(tail) else None
        for number, event in enumerate(events):
            kind, name = event["type"], event["field"]
            if kind == "region_chunk":
                self._chunk(event, fed, behind if number == last + 1 and last >= 0 else None)
                continue
            ahead = next((one.get("text", "") for one in events[number + 1 :] if one["type"] == "region_chunk"), "")
            limit = self._limit(ahead, end, behind if number == last else None)
            if kind == "region_open":
                self._delimiter("opener", event, limit, fed, more=number < last)
                self.inside = name
            else:
                exact = self._raw_end(event) if kind == "region_malformed" else None
                self._delimiter("closer", event, exact or limit, fed, more=exact is None and number < last)
                if kind == "region_malformed":
                    self._fault(event)
                self.inside = ""

    def _raw_end(self, event: Event) -> int | None:
        """Where a malformed region ends, by the text that its event holds; None: it had not opened."""
        if not self.inside or self.region >= len(self.out.pieces):
            return None
        start, raw = self.out.pieces[self.region].start, event.get("raw", "")
        return max(start + len(raw), self.at) if self.out.text.startswith(raw, start) else None

    def _limit(self, ahead: str, end: int, behind: int | None) -> int:
        """Where the text before the next chunk ends."""
        if behind is not None:
            return max(behind, self.at)
        found = self.out.text.find(ahead, self.at, end) if ahead else end
        return end if found < 0 else found

    def _chunk(self, event: Event, fed: int, behind: int | None) -> None:
        text = event.get("text", "")
        start = behind if behind is not None else self.out.text.find(text, self.at)
        if start < 0:  # the parser's text is the model's: it is always there
            raise AssertionError(f"a chunk that is not in the text: {text!r}")
        self._fill(start)
        end = start + len(text)
        last = self.out.pieces[-1] if self.out.pieces else None
        step = self.out.steps[-1] if self.out.steps else None
        if last is not None and last.kind == "text" and last.end == start and last.field == event["field"] and step:
            last.end = step.end = end
            if step.event["type"] == "region_chunk":
                self.at = end
                return
        self.out.pieces.append(Piece("text", event["field"], start, end))
        self.out.steps.append(Step(event, start, end, fed))
        self.at = end

    def _delimiter(self, kind: Literal["opener", "closer"], event: Event, limit: int, fed: int, *, more: bool) -> None:
        """The delimiter of an event: what lies before `limit`, or as much of it as the delimiter matches."""
        name = event["field"]
        for start, end in self.silent:
            if start >= self.at and end <= limit:
                self._fill(end)
        self.silent.clear()
        if more and limit > self.at:
            limit = self._match(kind, name, limit)
        if kind == "opener":
            self.region = len(self.out.pieces)
        start = self.at
        if limit > start:
            if kind == "opener" and not self._opens(name, start, limit):
                self._fill(limit)
                self.region, start = len(self.out.pieces), limit
            else:
                self.out.pieces.append(Piece(kind, name, start, limit))
                self.at = limit
        self.out.steps.append(Step(event, start, limit, fed))

    def _match(self, kind: str, name: str, limit: int) -> int:
        """How much of the text before `limit` one delimiter takes, where several were decided at once."""
        sides = [
            one.open if kind == "opener" else one.close for one in self.template.fields.values() if one.name == name
        ]
        lengths = [length_of(delimiter, self.out.text, self.at) for delimiter in sides if delimiter is not None]
        longest = max((length for length in lengths if self.at + length <= limit), default=0)
        return self.at + longest if longest or kind == "closer" else limit

    def _opens(self, name: str, start: int, end: int) -> bool:
        """Whether this is what opens a region of the field; an implicit one has no opener."""
        openers = [one.open for one in self.template.fields.values() if one.name == name and one.open is not None]
        return any(length_of(opener, self.out.text, start) == end - start for opener in openers)

    def _name_wrapper(self, piece: Piece) -> None:
        """A wrapper makes no events; its delimiters are known by their looks."""
        if piece.kind in ("swallowed", "closer"):
            text = self.out.text[piece.start : piece.end]
            for wrapper in self.template.wrappers.values():
                if wrapper.open.pattern.fullmatch(text) or wrapper.close.pattern.fullmatch(text):
                    piece.kind, piece.field = "wrapper", wrapper.field

    def _fill(self, end: int) -> None:
        """What lies between pieces is nobody's."""
        if end > self.at:
            self.out.pieces.append(Piece("swallowed", "", self.at, end))
            self.at = end

    # ----------------------------------------------------------------------------------------------- faults and holds

    def _fault(self, event: Event) -> None:
        raw, error = event.get("raw", ""), event.get("error", "")
        pieces = self.out.pieces[self.region :] if self.inside else self.out.pieces[-1:]
        start = pieces[0].start if pieces else self.at
        number = len(self.out.faults)
        for piece in pieces:
            piece.fault = number
        opener = pieces[0].end if pieces and pieces[0].kind == "opener" else start
        reason = event.get("reason", "")
        found = _PLACE.search(error)
        if reason == "unfinished" or (found is None and not raw):
            place = self.at
        else:
            place = min(opener + int(found[1]), self.at) if found is not None else opener
        self.out.faults.append(Fault(event["field"], reason, error, start, self.at, place))

    def _let_go(self, decided: int, fed: int) -> None:
        """Note the hold that ends here."""
        if self.hold is None or decided <= self.hold[0]:
            return
        start, end, inside = self.hold
        self.hold = None
        became = next((piece for piece in reversed(self.out.pieces) if piece.start <= start < piece.end), None)
        if became is None:
            was = "swallowed"
        elif became.kind == "text":
            was = f"text of {became.field}"
        else:
            was = f"{became.kind} of {became.field}" if became.field else "swallowed"
        might_be = tuple(dict.fromkeys(self._might_be(self.out.text[start:end], inside)))
        blank = was.startswith("text") and not self.out.text[start:end].strip()
        self.out.holds.append(Hold(start, end, fed, might_be, was, blank))

    def _might_be(self, text: str, inside: str) -> Iterator[str]:
        """The delimiters that a text may be the beginning of."""
        fields = self.template.fields.values()
        explicit = [one for one in fields if one.name == inside and one.open is not None]
        for one in explicit or fields:
            if not explicit and _begins(one.open, text):
                yield f"opener of {one.name}"
            if (explicit or one.open is None) and _begins(one.close, text):
                yield f"closer of {one.name}"
        for wrapper in self.template.wrappers.values():
            if _begins(wrapper.open, text):
                yield f"wrapper of {wrapper.field}"
            if _begins(wrapper.close, text):
                yield f"wrapper of {wrapper.field}"


def length_of(delimiter: Delimiter, text: str, start: int) -> int:
    """How much of a text a delimiter takes there, but for what is the value's already."""
    match = delimiter.pattern.match(text, start)
    if match is not None and "value" in delimiter.pattern.groupindex and match.start("value") > 0:
        return match.start("value") - start
    return 0 if match is None else match.end() - start


def _begins(delimiter: Delimiter | None, text: str) -> bool:
    return delimiter is not None and delimiter.pattern.fullmatch(text, partial=True) is not None


def _held(parser: ResponseParser) -> int:
    """How many of the characters fed are undecided."""
    return len(parser.held)
