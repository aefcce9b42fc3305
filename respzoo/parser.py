"""The streaming parser: text in, events out, a message at the end.

One loop (`_pump`) asks the scanner for the next delimiter of the present watch list, hands the text before it to the
region at hand, and acts on it: open, close, or, inside structured content, whatever the region's lexer makes of it.
Most tokens never get there: where no delimiter can begin in a token, and none is held back, it is a chunk of the region
at hand and `feed` returns at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from respzoo.content import Lexer, TagLexer
from respzoo.delimiters import Found, Partial, WatchList
from respzoo.draft import Draft
from respzoo.events import Dropped, Event
from respzoo.fields import CONTENT, CompiledTemplate, Field
from respzoo.guard import guard_for
from respzoo.leftover import Fault, Leftover
from respzoo.scanner import Scanner
from respzoo.schema import Tool, Tools, read_tools
from respzoo.spec import GIVEN_BACK, compile_spec
from respzoo.stray import Stray
from respzoo.value import may_stand_open, read_value, was_closed

__all__ = ["ResponseParser", "check_choice"]

_NOTHING = WatchList([])
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
        prompt_chunks: how many of the next `region_chunk` events are text of the prefix, held back until now.
        prompt_raws: for each `region_malformed` event from `feed` and `finalize`, how many characters of its text the
            prefix wrote.
    """

    __slots__ = (
        "_begins", "_begun", "_captures", "_dirty", "_draft", "_escaped", "_exhausted", "_explicit", "_field",
        "_finished", "_first", "_guard", "_held", "_in_string", "_late", "_leads", "_leftover", "_lexer", "_name", "_on_malformed",
        "_on_unfinished", "_opened", "_opener", "_parts", "_prompt_held", "_prompt_region", "_rest", "_resume",
        "_scanner", "_stray", "_template", "_tools", "_watch",
        "initial_events", "prompt_chunks", "prompt_raws",
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
        if not isinstance(prefix, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(
                f"prefix: expected the prompt as a string, found {type(prefix).__name__}; chat templates write part of "
                "the answer (an opening <think>), which the parser must see. prefix='' says that there is none"
            )
        check_choice("on_malformed", on_malformed, ("content", "drop"))
        check_choice("on_unfinished", on_unfinished, ("content", "drop"))
        self._template = template if isinstance(template, CompiledTemplate) else compile_spec(template)
        self._tools: Tools = read_tools(tools)
        self._on_malformed = on_malformed
        self._on_unfinished = on_unfinished
        self._scanner = Scanner(keep=self._template.keeps_text)
        self._guard = None if special_tokens is None else guard_for(self._template, special_tokens)
        self._draft = Draft(self._template)
        self._stray = Stray(self._draft)
        self._finished = False
        self.initial_events: list[Event] = []
        # the present region
        self._field: Field | None = None
        self._explicit = False
        self._opened = False
        self._captures: dict[str, str] = {}
        self._opener = ""
        self._parts: list[str] = []
        self._lexer: Lexer | None = None
        self._watch: WatchList = self._template.outside[False, False]
        self._leftover: Leftover | None = None  # of the wrapper that we are in
        self._exhausted = False  # whether nothing is looked for any more
        self._begun = False  # whether there is content
        self._rest = ""  # text that turned out not to be of the region that took it
        # whether the closer of a region that ended without it may still come: `near`, with nothing between, or `far`
        self._late: Literal["", "near", "far"] = ""
        # The hot path: what tells that a chunk needs no loop, and what waits without one. `_first`: the character that
        # it must not have; `_leads`: white space at its end must wait; `_begins`: finds where a delimiter may begin or,
        # `_in_string`, tells what goes on with it; `_held`: white space that may lead a delimiter or the first
        # character of one; `_escaped`: a string so far ends with a backslash; `_resume`: `_first` without either.
        self._first = ""
        self._begins: Callable[[str], Any] | None = None
        self._leads = False
        self._in_string = False
        self._held = ""
        self._escaped = False
        self._resume = ""
        self._name = ""
        self._dirty = False
        # what of the text to be decided is still the prompt's
        self._prompt_held = 0  # characters that were held when the prefix ended
        self._prompt_region = 0  # characters of the region in which it ended
        self.prompt_chunks = 0
        self.prompt_raws: list[int] = []
        self._leave()
        if self._template.initial is not None:
            self._open(self.initial_events, self._template.initial, "", {})
        start = self._template.after_anchor(prefix)
        if start:
            self._scanner.load(start)
            self._pump(self.initial_events, end=False)
            self._prompt_held = self._scanner.undecided
            if self._explicit:
                self._prompt_region = len(self._opener) + sum(map(len, self._parts)) + self._prompt_held
            elif self._leftover is not None:
                self._prompt_region = self._leftover.size + self._prompt_held
            self.prompt_raws.clear()

    @property
    def dropped(self) -> list[Dropped]:
        """The regions that became no value, in order."""
        dropped = self._draft.dropped
        return dropped if self._guard is None else self._guard.show(dropped)

    @property
    def held(self) -> str:
        """The text that was fed and is not decided yet."""
        held = self._held + self._scanner.held
        return held if self._guard is None else self._guard.show(held)

    @property
    def region(self) -> str | None:
        """The field whose region the text so far has left us in; None between regions. A closer that is whole and only
        waits for what may lengthen it counts as closed, an opener as opened."""
        scanner = self._scanner
        field: Field | None = self._field
        if self._leftover is not None:
            return self._leftover.wrapper.field
        if not scanner.idle:
            waiting = scanner.waiting(self._watch)
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
        if self._guard is not None:
            return self._feed_guarded(text, special)
        if self._first not in text and text:
            if self._leads:
                if text.rstrip() is not text:  # an unchanged string is returned as it is; if not, no harm is done
                    return self._hold_space(text, len(text))
            elif self._in_string and ("\\" in text or not text.isprintable()):
                if text.find("\\") != len(text) - 1 or not text.isprintable():
                    return self._feed_string(text)
                self._escaped, self._resume, self._first = True, self._first, ""
            self._parts.append(text)
            return [{"type": "region_chunk", "field": self._name, "text": text, "dirty": self._dirty}]
        begins = self._begins
        if begins is None or not text:
            return self._feed_slowly(text)
        if self._escaped:
            self._escaped = False
            first = self._first = self._resume
            if first in text or "\\" in text or not text.isprintable():
                assert self._lexer is not None
                self._lexer.stop("\\")
                return self._feed_slowly(text)
            return self._show(text)
        if self._held:
            text, self._held = self._held + text, ""
            first = self._first = self._resume
            if first in text or text[-1].isspace():
                return self.feed(text)
            return self._show(text)
        if self._in_string:
            return self._feed_string(text)
        match = begins(text)
        if match is None:
            return self._hold_space(text, len(text))
        if match.end() == len(text) and match.end() - match.start() == 1:
            return self._hold_space(text, match.start())
        return self._feed_slowly(text)

    def _feed_guarded(self, text: str, special: Sequence[tuple[int, int]] | None, *, end: bool = False) -> list[Event]:
        guard, self._guard = self._guard, None
        assert guard is not None
        try:
            events = self.feed(guard.end() if end else guard.feed(text, special))
        finally:
            self._guard = guard
        return guard.show(events)

    def _hold_space(self, text: str, end: int) -> list[Event]:
        """No delimiter begins in this text before `end`, where one may begin; white space before that may lead it."""
        shown = text[:end].rstrip() if self._leads else text[:end]
        if len(text) - len(shown) > _MOST_HELD:
            return self._feed_slowly(text)
        if len(shown) < len(text):
            self._held, self._resume = text[len(shown) :], self._first
            self._first = ""  # so that the next token finds what is held
        return self._show(shown) if shown else []

    def _show(self, text: str) -> list[Event]:
        self._parts.append(text)
        return [{"type": "region_chunk", "field": self._name, "text": text, "dirty": self._dirty}]

    def _feed_string(self, text: str) -> list[Event]:
        """Inside a quoted string: escapes, or the string's end."""
        inside = self._begins
        assert inside is not None
        if text[-1] == "\\" and inside(text[:-1]) is not None:
            self._escaped, self._resume, self._first = True, self._first, ""
        elif inside(text) is None:
            return self._feed_slowly(text)
        return self._show(text)

    def _feed_slowly(self, text: str) -> list[Event]:
        if self._finished:
            raise RuntimeError("this parser is finished; one parser reads one answer")
        if not text:
            return []
        lexer = self._lexer
        if lexer is not None and self._scanner.idle and not self._template.keeps_text and lexer.swallow(text):
            self._watch = lexer.watch
            self._parts.append(text)
            self._tune()
            return [{"type": "region_chunk", "field": self._name, "text": text, "dirty": self._dirty}]
        events: list[Event] = []
        self._scanner.load(text)
        self._pump(events, end=False)
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
        self._scanner.load(self._held)
        self._held = ""
        self._pump(events, end=True)
        self._finished = True
        self._first, self._begins = "", None
        for field in self._draft.missing():
            self._malformed(events, field, "", "a required field is missing", "malformed")
        message = self._draft.message()
        return (message, events) if guard is None else (guard.show(message), guard.show(events))

    # ------------------------------------------------------------------------------------------------------ the loop

    def _pump(self, events: list[Event], *, end: bool) -> None:
        scanner = self._scanner
        stuck = 0
        while True:
            lexer = self._lexer
            if lexer is not None and lexer.skip is not None:
                if not self._skip_string(events, lexer):
                    if not end:
                        break
                    self._close_at_end(events)
                continue
            watch = self._watch
            try:
                before, found = scanner.advance(watch, end=end)
            except TimeoutError:
                self._stop_looking(events)
                continue
            if before:
                self._take(events, before)
                if self._rest:  # part of it was not the region's that has ended in it, nor is what follows
                    moved = len(before) > len(self._rest)
                    stuck = 0 if moved else stuck + 1
                    self._unread("" if found is None else found.text)
                    if moved or not self._is_stuck(stuck) or self._step_over(events):
                        continue
                    break
                stuck = 0
                if self._watch is not watch and not (found is None and scanner.idle):
                    self._unread("" if found is None else found.text)  # it was found among other delimiters
                    continue
            if isinstance(found, Found):
                stuck = 0 if found.text else stuck + 1
                if self._is_stuck(stuck):
                    if self._step_over(events):
                        continue
                    if end:
                        self._end(events, None)
                    break
                self._found(events, found)
                if self._rest:
                    if self._rest == found.text:
                        stuck += 1
                    self._unread("")
            elif not end:
                break
            else:
                self._end(events, found)
                if scanner.idle:
                    break
        self._name = "" if self._field is None else self._field.name
        self._tune()

    def _tune(self) -> None:
        """Set what the hot path needs to know."""
        self._first, self._begins, self._leads, self._in_string = "", None, False, False
        template = self._template
        if self._late == "near" or (template.heeds_content and not self._begun):
            return  # the next text of the implicit field changes what is looked for
        if self._opened and self._scanner.idle and not template.keeps_text:
            lexer, watch = self._lexer, self._watch
            if lexer is not None and lexer.skip is not None:
                if lexer.inside is not None:
                    self._first, self._begins, self._in_string = lexer.quote, lexer.inside, True
            elif lexer is None or not lexer.heeds:
                self._first, self._begins, self._leads = watch.first, watch.begins, watch.leads

    def _is_stuck(self, times: int) -> bool:
        """Empty delimiters, and regions that end where they began, could follow one another for ever."""
        return times > 2 * len(self._template.fields)

    def _unread(self, found: str) -> None:
        """What a region left over is to be looked at again, and what was found behind it."""
        rest, self._rest = self._rest, ""
        self._scanner.unread(rest + found)

    def _step_over(self, events: list[Event]) -> bool:
        """Take one character as text, for want of any other progress."""
        scanner = self._scanner
        if scanner.at >= len(scanner.text):
            return False
        scanner.at += 1
        self._take(events, scanner.text[scanner.at - 1])
        return True

    def _skip_string(self, events: list[Event], lexer: Lexer) -> bool:
        """Walk through a quoted string. Returns False when the chunk ended inside it."""
        scanner = self._scanner
        text, at = scanner.text, scanner.at
        if at >= len(text):
            return False
        assert lexer.skip is not None
        stop = lexer.skip(text, at)
        end = min(stop + 1, len(text))
        scanner.at = end
        if stop < len(text):
            lexer.stop(text[stop])
            self._watch = lexer.watch
            if self._gives_up(lexer):
                self._chunk(events, text[at:stop])
                self._give_up(events, text[stop])
                self._unread("")
                return True
        self._chunk(events, text[at:end])
        return True

    def _take(self, events: list[Event], text: str) -> None:
        """Decided text."""
        if self._prompt_held:
            of_prompt = text[: self._prompt_held]
            left, self._prompt_held = self._prompt_held - len(of_prompt), 0
            before = len(events)
            self._take(events, of_prompt)
            self.prompt_chunks += sum(event["type"] == "region_chunk" for event in events[before:])
            self._prompt_held = left
            text = text[len(of_prompt) :]
            if not text:
                return
        field = self._field
        if field is None:
            if self._leftover is not None:
                self._leftover.text(text)
            else:
                self._stray.text(events, text)
            return
        lexer = self._lexer
        if lexer is not None:
            lexer.text(text)
            self._watch = lexer.watch
            if self._gives_up(lexer):
                rest = text.lstrip()
                self._chunk(events, text[: len(text) - len(rest)])
                self._give_up(events, rest)
                return
        elif not self._explicit and (self._late == "near" or not self._begun) and not text.isspace():
            self._begun = True
            if self._late == "near":
                self._late = ""
            self._watch = self._outside
        self._chunk(events, text)

    def _stop_looking(self, events: list[Event]) -> None:
        """Template and text together cost more than an answer may (allowance.py): a structured region is malformed, all
        that follows is text."""
        rest = self._scanner.give_up()
        self._late, self._exhausted = "", True
        if self._explicit and not self._dirty:
            self._lexer, self._watch = None, _NOTHING
            self._take(events, rest)
            return
        field = self._field
        if self._explicit and field is not None:
            raw = self._opener + "".join(self._parts) + rest
            self._malformed(events, field, raw, "looking for its end took too long", "malformed")
            rest = ""
        if self._leftover is not None:
            self._unwrap(events, "", "malformed")
        else:
            self._watch = _NOTHING
        if self._explicit:
            self._leave()
        if rest:
            self._take(events, rest)

    @property
    def _outside(self) -> WatchList:
        if self._exhausted:
            return _NOTHING
        return self._template.outside[bool(self._late), self._begun]

    def _gives_up(self, lexer: Lexer) -> bool:
        """Whether the region should have ended with its value, and there can be none any more."""
        return lexer.broken and self._field is not None and self._field.ends_with_value

    def _give_up(self, events: list[Event], rest: str) -> None:
        """End the region before `rest`, which is not its own: nothing else would."""
        field = self._field
        assert field is not None
        raw = self._opener + "".join(self._parts)
        self._malformed(events, field, raw, "what follows its opening cannot be a value", "malformed")
        self._leave()
        self._rest = rest

    def _chunk(self, events: list[Event], text: str) -> None:
        field = self._field
        assert field is not None
        if not self._opened:
            self._opened = True
            events.append({"type": "region_open", "field": field.name})
        if text:
            self._parts.append(text)
            events.append({"type": "region_chunk", "field": field.name, "text": text, "dirty": self._dirty})

    def _found(self, events: list[Event], found: Found) -> None:
        self._prompt_held = 0
        kind = found.delimiter.kind
        if self._explicit and self._lexer is not None:
            keep = self._lexer.found(found, self._parts)
            self._watch = self._lexer.watch
            if keep is None:
                if self._gives_up(self._lexer):
                    self._give_up(events, found.text)
                else:
                    self._chunk(events, found.text)
                return
            if keep:
                self._chunk(events, found.text[:keep])
            self._captures.update(found.groups)
            self._close(events, found.text[keep:])
        elif kind == "open":
            field = self._template.fields[found.delimiter.field]
            if field is self._field and self._explicit:  # an opener inside the region in which the message began
                if self._parts or self._opener:
                    self._chunk(events, found.text)
                else:
                    self._opener = found.text
                return
            self._close(events, "")
            if self._leftover is not None:
                self._pass_over(self._leftover.region())
            begin = found.spans.get(GIVEN_BACK) if field.extended else None
            if begin is None:
                self._open(events, field, found.text, found.groups)
            else:
                groups = {name: text for name, text in found.groups.items() if name != GIVEN_BACK}
                self._open(events, field, found.text[: begin[0]], groups)
                self._rest = found.text[begin[0] :]
        elif kind == "close":
            self._captures.update(found.groups)
            self._close(events, found.text)
        elif kind == "wrap":
            self._close(events, "")
            self._leftover = Leftover(self._template.wrappers[found.delimiter.field], found.text)
            self._leave()
        elif kind == "unwrap":
            self._unwrap(events, found.text, "malformed")
        elif kind == "late":
            if self._late:
                self._late = ""
                self._watch = self._outside
            else:  # other text has come since
                self._take(events, found.text)
        elif kind == "anchor":
            self._stray.close(events)
        elif kind != "omit":
            self._stray.marker(events, kind, found.text)

    def _open(self, events: list[Event], field: Field, opener: str, captures: Mapping[str, str]) -> None:
        self._begun |= field.key == CONTENT
        if self._late == "near" or field.ended_by:
            self._late = ""
        self._field, self._explicit, self._opened = field, True, True
        self._captures = dict(captures)
        self._opener = opener
        self._parts = []
        self._dirty = not field.content.flat
        self._lexer = None if field.lexer is None else field.lexer()
        self._watch = field.watch if self._lexer is None else self._lexer.watch
        events.append({"type": "region_open", "field": field.name})

    def _leave(self) -> None:
        """Be between regions: in the implicit field's, in a wrapper's, or in nobody's."""
        self._prompt_region = 0
        leftover = self._leftover
        field = self._template.implicit if leftover is None else None
        self._field, self._explicit, self._opened = field, False, False
        self._captures = {}
        self._opener = ""
        self._parts = []
        self._lexer = None
        if leftover is not None:
            self._watch = leftover.wrapper.watch
        else:
            self._watch = self._outside
        self._dirty = field is not None and not field.content.flat

    # ----------------------------------------------------------------------------------------------- regions that end

    def _close(self, events: list[Event], closer: str) -> None:
        field = self._field
        if field is None:
            self._stray.close(events)
        elif self._opened:
            self._settle(events, field, "".join(self._parts), closer)
            if self._explicit and self._late != "far" and field.leaves_late and not (closer and field.within is None):
                self._late = "far" if field.ended_by else "near"
        self._leave()

    def _unwrap(self, events: list[Event], closer: str, reason: Literal["malformed", "unfinished"]) -> None:
        """A wrapper ends."""
        leftover = self._leftover
        assert leftover is not None
        self._leftover = None
        fault = leftover.close(closer, reason)
        if fault is not None and (fault.is_wrapper or reason == "unfinished"):
            self._malformed(events, self._template.fields[leftover.wrapper.id], fault.raw, fault.error, reason)
        else:
            self._pass_over(fault)
        self._leave()

    def _pass_over(self, fault: Fault | None) -> None:
        """Text between regions, inside their wrapper, is recorded and not shown."""
        if fault is not None:
            self._draft.drop("", fault.raw, fault.error, "malformed", as_content=False)

    def _settle(self, events: list[Event], field: Field, body: str, closer: str) -> None:
        """A region has ended by the template's word: its text becomes a value, or is malformed."""
        if not self._explicit and not field.content.flat and not body.strip():
            # white space between regions is no value of a structured implicit field
            events.append({"type": "region_close", "field": field.name, "value": None})
            return
        try:
            value = self._value(field, body)
        except Exception as error:  # noqa: BLE001  whatever a model wrote, and a content parser made of it
            self._malformed(events, field, self._opener + body + closer, _reason(error), "malformed")
            return
        self._draft.keep(field, value, body)
        events.append({"type": "region_close", "field": field.name, "value": value})

    def _value(self, field: Field, body: str) -> Any:
        allowance = self._scanner.allowance
        deadline = allowance.deadline()
        try:
            return read_value(field, body, self._lexer, self._captures, self._tools)
        finally:
            allowance.settle(deadline)

    def _malformed(
        self, events: list[Event], field: Field, raw: str, error: str, reason: Literal["malformed", "unfinished"]
    ) -> None:
        self.prompt_raws.append(self._prompt_region or self._prompt_held)
        self._begun |= reason == "malformed"
        policy = self._on_malformed if reason == "malformed" else self._on_unfinished
        self._draft.drop(field.name, raw, error, reason, as_content=policy == "content")
        events.append({"type": "region_malformed", "field": field.name, "raw": raw, "error": error, "reason": reason})

    # ------------------------------------------------------------------------------------------------- the end of all

    def _end(self, events: list[Event], partial: Partial | None) -> None:
        """The output has ended behind what is taken, but for text that had begun to be a delimiter."""
        if partial is not None and not self._explicit:
            opens = [delimiter for delimiter in partial.delimiters if delimiter.kind in ("open", "wrap")]
            begun = [one for one in opens if partial.text.lstrip().startswith(one.markers())]
            if begun:
                self._close(events, "")
                if self._leftover is not None:
                    self._pass_over(self._leftover.region())
                field = self._template.fields[begun[0].field]
                self._malformed(events, field, partial.text, "the output ended in its opening", "unfinished")
            else:
                self._take(events, partial.text)
            partial = None
        if self._explicit:
            self._close_at_end(events, partial)
        else:
            self._close(events, "")
        if self._leftover is not None:
            self._unwrap(events, "", "unfinished")

    def _close_at_end(self, events: list[Event], partial: Partial | None = None) -> None:
        """The output ended inside an explicit region. Text is as good as ever; a structured value must be whole."""
        field = self._field
        assert field is not None
        tail = "" if partial is None else partial.text
        lexer = self._lexer
        self._scanner.reset()
        if field.content.flat:
            if tail:
                self._take(events, tail)
            self._close(events, "")
            return
        if tail and isinstance(lexer, TagLexer):
            self._chunk(events, tail)
            tail = ""
        if isinstance(lexer, TagLexer) and (closer := lexer.close_last(self._parts)) is not None:
            self._close(events, closer)
            return
        body = "".join(self._parts)
        if tail and not tail.isspace() and partial is not None:
            kinds = {delimiter.kind for delimiter in partial.delimiters}
            if not kinds & {"close", "end"}:  # not the closer, but more of the value was cut
                self._chunk(events, tail)
                self._malformed(events, field, self._opener + body + tail, "the output ended inside it", "unfinished")
                self._leave()
                return
        if field.close is None or may_stand_open(field, lexer, tail):
            try:
                value = self._value(field, body + (tail if field.close is None else ""))
            except Exception as error:  # noqa: BLE001  as in _settle
                why = _reason(error)
            else:
                if tail.isspace():  # of the value's own text; anything else is a closer that was cut
                    self._chunk(events, tail)
                self._draft.keep(field, value, body)
                events.append({"type": "region_close", "field": field.name, "value": value})
                self._leave()
                return
        else:
            why = "the output ended inside it"
        if tail:
            self._chunk(events, tail)
        body += tail
        reason = "malformed" if was_closed(field, lexer, body) else "unfinished"
        self._malformed(events, field, self._opener + body, why, reason)
        self._leave()


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raises ValueError if an argument is none of the values that it can have."""
    if value not in allowed:
        raise ValueError(f"{name}: expected {' or '.join(map(repr, allowed))}, found {value!r}")


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
