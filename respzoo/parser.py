"""The streaming parser: text in, events out, a message at the end.

Most tokens are text of the region at hand and nothing else: where no delimiter can begin in a token, and none is held
back, it is a chunk of that region and `feed` returns at once; the plain ones among these are known when they come again
(known.py). All others go through the loop (loop.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from respzoo.content import Lexer
from respzoo.events import Dropped, Event
from respzoo.fields import CompiledTemplate
from respzoo.known import NOTHING, Known, Strings
from respzoo.loop import Loop, Mark
from respzoo.schema import Tool, read_tools
from respzoo.spec import compile_spec

if TYPE_CHECKING:
    from respzoo.guard import Guard

__all__ = ["ResponseParser", "check_choice", "check_given"]

_NO_CHUNK: Event = {"type": "region_chunk", "field": ""}
_MOST_HELD = 64  # characters that the hot path holds as one string; longer runs of white space are the scanner's


class ResponseParser:
    """Parse one answer as it is generated.

    Args:
        template: a `ResponseTemplate`, or a template's plain dict.
        prefix: the prompt as text; `""` says that the text to come is the whole message.
        tools: what the model was offered, as `apply_chat_template` takes them; types the arguments of its calls.
        on_malformed: `content` returns a malformed region's raw text as content, `drop` only records it.
        on_unfinished: the same for a region that the end of the output cut off.
        special_tokens: the texts of the tokenizer's special tokens. Where `feed` is told what they wrote, a delimiter
            that spells one is found there only: markup that the model quotes is text.

    Raises:
        TemplateError: the plain dict is no template.
        ValueError: `prefix` is None, a policy is none of those named, or `special_tokens` is one text.

    Attributes:
        initial_events: what the prefix has already opened, written or closed.
        chunk: what the event of a chunk of the region at hand is copied from.
        parts: the pieces of the region at hand.
    """

    __slots__ = (
        "_backslash", "_begins", "_blank", "_finished", "_first", "_guard", "_held", "_known", "_knows", "_leads",
        "_loop", "_most", "_strings", "_template", "_texts", "chunk", "initial_events", "parts",
    )  # fmt: skip

    def __init__(
        self,
        template: CompiledTemplate | Mapping[str, Any],
        *,
        prefix: str,
        tools: Iterable[Tool] | None = None,
        on_malformed: Literal["content", "drop"] = "content",
        on_unfinished: Literal["content", "drop"] = "drop",
        special_tokens: Collection[str] | None = None,
    ) -> None:
        check_given(prefix, on_malformed, on_unfinished)
        compiled = template if isinstance(template, CompiledTemplate) else compile_spec(template)
        guard = None
        if special_tokens is not None:
            from respzoo.guard import guard_for

            guard = guard_for(compiled, special_tokens)
        self._begin(compiled, Loop(compiled, read_tools(tools), on_malformed, on_unfinished), prefix, guard)

    @classmethod
    def over(cls, template: CompiledTemplate, loop: Loop, prefix: str) -> Self:
        """One over a loop of its user's, which may keep less text and tell more.

        It is of the same class: of two, used by turns, the interpreter would remember for neither where what is.
        """
        parser = cls.__new__(cls)
        parser._begin(template, loop, prefix, None)
        return parser

    def _begin(self, template: CompiledTemplate, loop: Loop, prefix: str, guard: Guard | None) -> None:
        self._template = template
        self._guard = guard
        self._knows = guard is None  # which has to see all text
        self._loop = loop
        self._finished = False
        self.initial_events: list[Event] = []
        self.parts: list[str] = []
        self._most = 0  # how long these may grow before they are joined, on occasion
        # The hot path: what tells that a chunk needs no loop, and what waits without one. `_first`: the character that
        # it must not have; `_leads`: white space at its end must wait; `_begins`: finds where a delimiter may begin;
        # `_strings`, inside one: what a text does there; `_held`: white space that may lead a delimiter or the first
        # character of one, and `_blank`: it is known white space and no more;
        # `_backslash`: how many `parts` there were when a string ended with a backslash that escapes what comes next;
        # `_known`: the tokens of which it is known that `feed` would return `chunk` with their text, and no more;
        # `_texts`: theirs, or those of them that are so still while something waits.
        self._first: str = ""
        self._begins: Callable[[str], Any] | None = None
        self._leads = False
        self._strings: Strings | None = None
        self._held = ""
        self._blank = False
        self._backslash = -1
        self._known: Known = NOTHING
        self._texts = NOTHING.texts
        self.chunk: Event = _NO_CHUNK
        loop.begin(self.initial_events, prefix)
        self._tune()

    @property
    def marks(self) -> list[Mark]:
        """What events do not tell, if it was asked to: one list, which its reader empties."""
        marks = self._loop.marks
        return [] if marks is None else marks

    @property
    def known(self) -> Known:
        """The tokens of which it is known that `feed` would return an event of `chunk` with their text, and no more,
        and would add their text to `parts`."""
        return self._known if self._texts is self._known.texts else NOTHING

    @property
    def prompted(self) -> bool:
        """Whether some of the prefix is not decided yet, or was not told."""
        return self._loop.prompted

    @property
    def prompt_chunks(self) -> int:
        """How many of the next `region_chunk` events are text of the prefix, held back until now."""
        return self._loop.prompt_chunks

    @prompt_chunks.setter
    def prompt_chunks(self, number: int) -> None:
        self._loop.prompt_chunks = number

    @property
    def prompt_raws(self) -> list[int] | tuple[()]:
        """For each `region_malformed` event from `feed` and `finalize`, how many characters of its text the prefix
        wrote."""
        return self._loop.prompt_raws

    @property
    def dropped(self) -> list[Dropped]:
        """The regions that became no value, in order."""
        dropped = [*self._loop.draft.dropped]
        return dropped if self._guard is None else self._guard.show(dropped)

    @property
    def held(self) -> str:
        """The text that was fed and is not decided yet."""
        held = self._held + self._loop.scanner.held
        return held if self._guard is None else self._guard.show(held) + self._guard.held

    @property
    def region(self) -> str | None:
        """The field whose region the text so far has left us in; None between regions. A closer that is whole and only
        waits for what may lengthen it counts as closed, an opener as opened."""
        loop = self._loop
        if loop.leftover is not None:
            return loop.leftover.wrapper.field
        field = None if loop.region is None else loop.region.field
        if not loop.scanner.idle:
            waiting = loop.scanner.waiting(loop.watch)
            if waiting is not None and waiting.kind in ("open", "wrap"):
                field = self._template.fields[waiting.field]
            elif waiting is not None and waiting.kind in ("close", "end"):
                field = self._template.implicit
        return None if field is None else field.name

    def feed(self, text: str, special: Sequence[tuple[int, int]] | None = None) -> list[Event]:
        """Take the next piece of the output, of any length. Returns what it decided.

        Args:
            text: the piece.
            special: which stretches of it, from where to where, special tokens wrote; None: nobody knows. Of use with
                `special_tokens` only.

        Raises:
            RuntimeError: after `finalize`.
            ValueError: the stretches do not lie in the text, one after another.
        """
        shown = self._texts.get(text)
        if shown:
            self.parts.append(shown)  # they are joined when another kind of token comes
            event = self.chunk.copy()  # the quickest way to a dict of four keys
            event["text"] = shown
            return [event]
        if shown is not None:  # white space, which waits
            self._blank, self._held, self._texts = True, text, NOTHING.texts
            return []
        if self._blank:
            self._blank, known = False, self._known.texts
            if shown := known.get(text):
                text, self._held, self._texts = self._held + shown, "", known
                return self._show(text)
        if self._guard is not None and not self._guard.lets(text, special):
            return self._feed_guarded(text, special)
        strings = self._strings
        if strings is not None:
            if not text or not self._takes_string(strings, text):
                return self._end_string(text)
            event = self.chunk.copy()
            event["text"] = text
            return [event]
        held = self._held
        if held and text:
            text, self._held, self._texts = held + text, "", self._known.texts
        if self._first not in text and text:
            if self._leads:
                shown = text.rstrip()
                if shown is not text:  # an unchanged string is returned as it is; if not, no harm is done
                    if not shown and not held:
                        self._known.wait(text)
                    return self._hold(text, shown)
            if not held:
                self._known.learn(text)
            return self._show(text)
        begins = self._begins
        if begins is None or not text:
            return self._feed_slowly(text)
        match = begins(text)
        if match is None:
            if not held:
                self._known.learn(text)
            return self._hold(text, text.rstrip() if self._leads else text)
        if match.end() == len(text) and match.end() - match.start() == 1:
            before = text[:-1]
            return self._hold(text, before.rstrip() if self._leads else before)
        return self._feed_slowly(text)

    def takes(self, text: str) -> bool:
        """Take the next piece if it is text of the region at hand and nothing more, without the event that `feed` would
        make of `chunk`. Not with `special_tokens`.

        Returns:
            Whether it was.
        """
        if not text:
            return False
        if self._strings is not None:
            return self._takes_string(self._strings, text)
        if self._held or self._first in text or (self._leads and text.rstrip() is not text):
            return False
        self._known.learn(text)
        parts = self.parts
        parts.append(text)
        if len(parts) > self._most:
            self.compact()
        return True

    def _feed_guarded(self, text: str, special: Sequence[tuple[int, int]] | None, *, end: bool = False) -> list[Event]:
        guard, self._guard = self._guard, None
        assert guard is not None
        try:
            events = self.feed(guard.end() if end else guard.feed(text, special))
        finally:
            self._guard = guard
        return guard.show(events)

    def _hold(self, text: str, shown: str) -> list[Event]:
        """No delimiter begins in `shown`, the beginning of this text; with the rest one may."""
        waits = len(text) - len(shown)
        if waits:
            if waits > _MOST_HELD:
                return self._feed_slowly(text)
            self._held, self._texts = text[-waits:], NOTHING.texts  # the next token finds it
            if not shown:
                return []
        return self._show(shown)

    def _show(self, text: str) -> list[Event]:
        parts = self.parts
        parts.append(text)
        if len(parts) > self._most:
            self.compact()
        event = self.chunk.copy()
        event["text"] = text
        return [event]

    def compact(self) -> None:
        """Join the pieces of the region at hand, on occasion."""
        if (region := self._loop.region) is not None:
            escaped = self._escaped
            region.compact()
            self._backslash = len(self.parts) if escaped else -1
            self._most = len(self.parts) + region.most

    @property
    def _escaped(self) -> bool:
        """Whether a string so far ends with a backslash that escapes what comes next."""
        return self._backslash == len(self.parts)

    def _takes_string(self, strings: Strings, text: str) -> bool:
        """Inside a quoted string, take text that goes on with it. False: the string ends."""
        parts = self.parts
        escapes = strings[text[1:] if self._backslash == len(parts) else text]
        if escapes is None:
            return False
        parts.append(text)
        if escapes:
            self._backslash = len(parts)
            self._texts = strings.anywhere if self._knows else NOTHING.texts
        else:
            self._texts = self._known.texts
        if len(parts) > self._most:
            self.compact()
        return True

    def _end_string(self, text: str) -> list[Event]:
        if text and self._escaped:
            self._backslash = -1
            lexer = self._loop.lexer
            assert lexer is not None
            lexer.stop("\\")
        return self._feed_slowly(text)

    def _feed_slowly(self, text: str) -> list[Event]:
        if self._finished:
            raise RuntimeError("this parser is finished; one parser reads one answer")
        if not text:
            return []
        loop = self._loop
        lexer = loop.lexer
        if lexer is not None and loop.scanner.idle and not self._template.keeps_text and lexer.swallow(text):
            loop.watch = lexer.watch
            self._loosen()
            self._tune_inside(lexer)
            return self._show(text)
        events: list[Event] = []
        loop.scanner.load(text)
        loop.pump(events, end=False)
        self._tune()
        return events

    def finalize(self) -> tuple[dict[str, Any], list[Event]]:
        """The output has ended. Returns the message, and the events that only the end decided.

        Raises:
            RuntimeError: when called twice.
        """
        if self._finished:
            raise RuntimeError("this parser is finished; one parser reads one answer")
        guard = self._guard
        events: list[Event] = [] if guard is None else self._feed_guarded("", (), end=True)
        loop = self._loop
        loop.scanner.load(self._held)
        self._held = ""
        loop.pump(events, end=True)
        loop.missing(events)
        self._finished = True
        self._loosen()
        message = loop.draft.message()
        return (message, events) if guard is None else (guard.show(message), guard.show(events))

    def _loosen(self) -> None:
        """Send all through the loop."""
        self._first, self._begins, self._leads, self._strings, self._backslash = "", None, False, None, -1
        self._known, self._texts = NOTHING, NOTHING.texts

    def _tune(self) -> None:
        """Set what the hot path needs to know."""
        self._loosen()
        loop = self._loop
        region = loop.region
        if region is None:
            return
        region.compact()
        self.chunk, self.parts = region.field.chunk, region.parts
        self._most = len(region.parts) + region.most
        if region.opened and loop.settled and loop.scanner.idle and not self._template.keeps_text:
            self._tune_inside(region.lexer)

    def _tune_inside(self, lexer: Lexer | None) -> None:
        watch = self._loop.watch
        if lexer is not None and lexer.skip is not None:
            self._strings = strings = lexer.inside
            known = NOTHING if strings is None else strings.known
        elif lexer is None or not lexer.heeds:
            self._first, self._begins, self._leads, known = watch.first, watch.begins, watch.leads, watch.known
        else:
            return
        if self._knows:
            self._known, self._texts = known, known.texts


def check_given(prefix: object, on_malformed: object, on_unfinished: object) -> None:
    """Raises ValueError if one of these arguments of a parser is none that it can have."""
    if not isinstance(prefix, str):
        raise ValueError(
            f"prefix: expected the prompt as a string, found {type(prefix).__name__}; chat templates write part of "
            "the answer (an opening <think>), which the parser must see. prefix='' says that there is none"
        )
    check_choice("on_malformed", on_malformed, ("content", "drop"))
    check_choice("on_unfinished", on_unfinished, ("content", "drop"))


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raises ValueError if an argument is none of the values that it can have."""
    if value not in allowed:
        raise ValueError(f"{name}: expected {' or '.join(map(repr, allowed))}, found {value!r}")
