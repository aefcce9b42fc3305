"""The loop of the parser: what is found in the text opens regions, goes on with them and closes them.

`pump` asks the scanner for the next delimiter of the present watch list, hands the text before it to the region at
hand, and acts on it: open, close, or, inside structured content, whatever the region's lexer makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from respzoo.content import Lexer
from respzoo.content.tags import Pair, TagLexer
from respzoo.delimiters import Found, Partial, WatchList
from respzoo.draft import Draft
from respzoo.events import Event
from respzoo.fields import CALLS, CONTENT, GIVEN_BACK, CompiledTemplate, Field
from respzoo.leftover import Fault, Leftover
from respzoo.region import Region, Verdict
from respzoo.scanner import Scanner
from respzoo.schema import Tools
from respzoo.stray import Stray

__all__ = ["Loop", "Mark"]

_NOTHING = WatchList([])

Policy = Literal["content", "drop"]


class Mark(NamedTuple):
    """What events do not tell, for a call that is sent while it is written."""

    at: int
    """How many events came before it."""
    kind: Literal["call", "tag", "value"]
    what: Any
    """`call`: a region begins (its field, what its opener caught, and the tools that type its calls). `tag`: the text
    that follows is that of the value in this tag (a `Pair` without text), or of none (None). `value`: a tag has ended
    (a `Pair`)."""


class Loop:
    """One answer while it is read.

    Attributes:
        region: the region at hand; None between regions where no field takes the text.
        watch: what is looked for.
        marks: what happened beside the events; None if nobody asks.
        forgets: whether another keeps the text of reasoning and content.
        settled: whether the next text can change nothing but by a delimiter.
        prompt_chunks, prompt_raws: as `ResponseParser` tells them.
    """

    __slots__ = (
        "_begun", "_exhausted", "_late", "_of_malformed", "_prompt_held", "_prompt_region", "_rest", "_stray",
        "_template", "_told", "_told_pairs", "_tools", "draft", "forgets", "leftover", "marks", "on_malformed",
        "on_unfinished", "prompt_chunks", "prompt_raws", "region", "scanner", "watch",
    )  # fmt: skip

    def __init__(
        self,
        template: CompiledTemplate,
        tools: Tools,
        on_malformed: Policy,
        on_unfinished: Policy,
        *,
        forgets: bool = False,
        marks: bool = False,
    ) -> None:
        self._template = template
        self._tools = tools
        self.on_malformed = on_malformed
        self.on_unfinished = on_unfinished
        self.scanner = Scanner(keep=template.keeps_text)
        self.draft = Draft(template)
        self._stray: Stray | None = None
        self.region: Region | None = None
        self.watch = _NOTHING
        self.marks: list[Mark] | None = [] if marks else None
        self.forgets = forgets
        self._told: Pair | None = None  # the tag that was last told, and how many that have ended
        self._told_pairs = 0
        self.leftover: Leftover | None = None  # of the wrapper that we are in
        self._begun = False  # whether there is content
        # whether the closer of a region that ended without it may still come: `near`, with nothing between, or `far`
        self._late: Literal["", "near", "far"] = ""
        self._of_malformed = False  # and whether that region is malformed
        self._rest = ""  # text that turned out not to be of the region that took it
        self._exhausted = False  # whether nothing is looked for any more
        # what of the text to be decided is still the prompt's
        self._prompt_held = 0  # characters that were held when the prefix ended
        self._prompt_region = 0  # characters of the region in which it ended
        self.prompt_chunks = 0
        self.prompt_raws: list[int] | tuple[()] = ()
        self._leave()

    def begin(self, events: list[Event], prefix: str) -> None:
        """Read what the prompt has written of the answer."""
        if self._template.initial is not None:
            self._open(events, self._template.initial, "", {})
        start = self._template.after_anchor(prefix)
        if start:
            self.scanner.load(start)
            self.pump(events, end=False)
            self._prompt_held = self.scanner.undecided
            if self.region is not None and self.region.explicit:
                self._prompt_region = len(self.region.raw) + self._prompt_held
            elif self.leftover is not None:
                self._prompt_region = self.leftover.size + self._prompt_held
            self.prompt_raws = ()

    @property
    def prompted(self) -> bool:
        return bool(self._prompt_held or self.prompt_chunks)

    @property
    def settled(self) -> bool:
        return self._late != "near" and (self._begun or not self._template.heeds_content)

    @property
    def lexer(self) -> Lexer | None:
        return None if self.region is None else self.region.lexer

    def pump(self, events: list[Event], *, end: bool) -> None:
        """Walk through what the scanner has; `end`: no more will come."""
        scanner = self.scanner
        stuck = 0
        while True:
            region = self.region
            if region is not None and region.lexer is not None and region.lexer.skip is not None:
                if not self._skip_string(events, region, region.lexer):
                    if not end:
                        break
                    self._cut(events, region)
                continue
            watch = self.watch
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
                if self.watch is not watch and not (found is None and scanner.idle):
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

    def _is_stuck(self, times: int) -> bool:
        """Empty delimiters, and regions that end where they began, could follow one another for ever."""
        return times > 2 * len(self._template.fields)

    def _unread(self, found: str) -> None:
        """What a region left over is to be looked at again, and what was found behind it."""
        rest, self._rest = self._rest, ""
        self.scanner.unread(rest + found)

    def _step_over(self, events: list[Event]) -> bool:
        """Take one character as text, for want of any other progress."""
        scanner = self.scanner
        if scanner.at >= len(scanner.text):
            return False
        scanner.at += 1
        self._take(events, scanner.text[scanner.at - 1])
        return True

    def _skip_string(self, events: list[Event], region: Region, lexer: Lexer) -> bool:
        """Walk through a quoted string. Returns False when the chunk ended inside it."""
        scanner = self.scanner
        text, at = scanner.text, scanner.at
        if at >= len(text):
            return False
        assert lexer.skip is not None
        stop = lexer.skip(text, at)
        end = min(stop + 1, len(text))
        scanner.at = end
        if stop < len(text):
            lexer.stop(text[stop])
            self.watch = lexer.watch
            if region.gives_up:
                self._chunk(events, region, text[at:stop])
                self._give_up(events, region, text[stop])
                self._unread("")
                return True
        self._chunk(events, region, text[at:end])
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
        region = self.region
        if region is None:
            if self.leftover is not None:
                self.leftover.text(text)
            else:
                self._between.text(events, text)
            return
        if region.lexer is not None:
            region.lexer.text(text)
            self.watch = region.lexer.watch
            if region.gives_up:
                rest = text.lstrip()
                self._chunk(events, region, text[: len(text) - len(rest)])
                self._give_up(events, region, rest)
                return
        elif not region.explicit and (self._late == "near" or not self._begun) and not text.isspace():
            self._begun = True
            if self._late == "near":
                self._late = ""
            self.watch = self._outside
        self._chunk(events, region, text)

    def _stop_looking(self, events: list[Event]) -> None:
        """Template and text together cost more than an answer may (allowance.py): a structured region is malformed, all
        that follows is text."""
        rest = self.scanner.give_up()
        self._late, self._exhausted = "", True
        region = self.region
        if region is not None and region.explicit and not region.dirty:
            region.lexer, self.watch = None, _NOTHING
            self._take(events, rest)
            return
        if region is not None and region.explicit:
            error = "looking for its end took too long"
            self._malformed(events, region.field, region.raw + rest, error, "malformed")
            rest = ""
        if self.leftover is not None:
            self._unwrap(events, "", "malformed")
        else:
            self.watch = _NOTHING
        if region is not None and region.explicit:
            self._leave()
        if rest:
            self._take(events, rest)

    @property
    def _between(self) -> Stray:
        """The text between regions that is no field's."""
        if self._stray is None:
            self._stray = Stray(self.draft)
        return self._stray

    @property
    def _outside(self) -> WatchList:
        if self._exhausted:
            return _NOTHING
        return self._template.outside[bool(self._late), self._begun]

    def _give_up(self, events: list[Event], region: Region, rest: str) -> None:
        """End the region before `rest`, which is not its own: nothing else would."""
        self._malformed(events, region.field, region.raw, "what follows its opening cannot be a value", "malformed")
        self._leave()
        self._rest = rest

    def _chunk(self, events: list[Event], region: Region, text: str) -> None:
        if not region.opened:
            region.opened = True
            events.append({"type": "region_open", "field": region.field.name})
        if text:
            region.parts.append(text)
            event = region.field.chunk.copy()
            event["text"] = text
            events.append(event)

    # ------------------------------------------------------------------------------------------------------ delimiters

    def _found(self, events: list[Event], found: Found) -> None:
        self._prompt_held = 0
        kind, region = found.delimiter.kind, self.region
        if region is not None and region.explicit and region.lexer is not None:
            self._found_inside(events, region, region.lexer, found)
        elif kind == "open":
            self._found_opener(events, self._template.fields[found.delimiter.field], found)
        elif kind == "close":
            assert region is not None
            region.catch(found.groups)
            self._close(events, found.text)
        elif kind == "wrap":
            end = found.spans.get(GIVEN_BACK, (len(found.text), 0))[0]
            self._close(events, "")
            self.leftover = Leftover(self._template.wrappers[found.delimiter.field], found.text[:end])
            self._leave()
            self._rest = found.text[end:]
        elif kind == "unwrap":
            self._unwrap(events, found.text, "malformed")
        elif kind == "late":
            late, self._late = self._late, ""
            self.watch = self._outside
            # other text has come since, or the region that it closes is text itself
            if not late or (late == "near" and self._of_malformed and self.on_malformed == "content"):
                self._take(events, found.text)
        elif kind == "anchor":
            self._between.close(events)
        elif kind != "omit":
            self._between.marker(events, kind, found.text)

    def _found_inside(self, events: list[Event], region: Region, lexer: Lexer, found: Found) -> None:
        keep = lexer.found(found, region.parts)
        self.watch = lexer.watch
        if self.marks is not None and isinstance(lexer, TagLexer):
            self._mark_values(events, lexer)
        if keep is not None:
            self._chunk(events, region, found.text[:keep])
            region.catch(found.groups)
            end = len(found.text) - lexer.rest
            self._close(events, found.text[keep:end])
            self._rest = found.text[end:]
        elif region.gives_up:
            self._give_up(events, region, found.text)
        else:
            self._chunk(events, region, found.text)
            region.found()
        if self.marks is not None and isinstance(lexer, TagLexer) and lexer.at_hand != self._told:
            self._told = lexer.at_hand
            self.marks.append(Mark(len(events), "tag", lexer.at_hand))

    def _mark_values(self, events: list[Event], lexer: TagLexer) -> None:
        """Tell the tags that have ended with what was found, and whether its text may be the value's at hand."""
        assert self.marks is not None
        new = lexer.pairs[self._told_pairs :]
        self._told_pairs = len(lexer.pairs)
        self.marks += [Mark(len(events), "value", pair) for pair in new]
        if new or lexer.at_hand is None:
            self._told = None
            self.marks.append(Mark(len(events), "tag", None))

    def _found_opener(self, events: list[Event], field: Field, found: Found) -> None:
        region = self.region
        if region is not None and region.explicit and region.field is field:  # the message began inside this field
            if region.parts or region.opener:
                self._chunk(events, region, found.text)
            else:
                region.opener = found.text
            return
        self._close(events, "")
        if self.leftover is not None:
            self._pass_over(self.leftover.region())
        given_back = found.spans.get(GIVEN_BACK) if field.extended else None
        if given_back is None:
            self._open(events, field, found.text, found.groups)
        else:
            groups = {name: text for name, text in found.groups.items() if name != GIVEN_BACK}
            self._open(events, field, found.text[: given_back[0]], groups)
            self._rest = found.text[given_back[0] :]

    def _open(self, events: list[Event], field: Field, opener: str, captures: Mapping[str, str]) -> None:
        self._begun |= field.key == CONTENT
        if self._late == "near" or field.ended_by:
            self._late = ""
        region = self.region = Region(field, explicit=True, opener=opener, captures=captures, forgets=self.forgets)
        self.watch = field.watch if region.lexer is None else region.lexer.watch
        if self.marks is not None and field.key == CALLS:
            self.marks.append(Mark(len(events), "call", (field, region.captures, self._tools)))
            self._told, self._told_pairs = None, 0
        events.append({"type": "region_open", "field": field.name})

    def _leave(self) -> None:
        """Be between regions: in the implicit field's, in a wrapper's, or in nobody's."""
        self._prompt_region = 0
        implicit = self._template.implicit
        self.region = None
        if implicit is not None and self.leftover is None:
            self.region = Region(implicit, explicit=False, forgets=self.forgets)
        self.watch = self._outside if self.leftover is None else self.leftover.wrapper.watch

    # ----------------------------------------------------------------------------------------------- regions that end

    def _close(self, events: list[Event], closer: str) -> None:
        region = self.region
        if region is None:
            self._between.close(events)
        elif region.opened:
            verdict = region.closed(self._tools, self.scanner.allowance)
            self._settle(events, region, verdict, closer)
            field = region.field
            if region.explicit and self._late != "far" and field.leaves_late and not (closer and field.within is None):
                self._late = "far" if field.ended_by else "near"
                self._of_malformed = verdict.outcome == "malformed"
        self._leave()

    def _settle(self, events: list[Event], region: Region, verdict: Verdict, closer: str) -> None:
        field = region.field
        if verdict.outcome in ("malformed", "unfinished"):
            self._malformed(events, field, region.raw + closer, verdict.error, verdict.outcome)
            return
        if verdict.outcome == "value":
            if region.forgets:
                self.draft.mark(field)
            else:
                self.draft.keep(field, verdict.value, region.text)
        events.append({"type": "region_close", "field": field.name, "value": verdict.value})

    def _unwrap(self, events: list[Event], closer: str, reason: Literal["malformed", "unfinished"]) -> None:
        """A wrapper ends."""
        leftover = self.leftover
        assert leftover is not None
        self.leftover = None
        fault = leftover.close(closer, reason)
        if fault is not None and (fault.is_wrapper or reason == "unfinished"):
            self._malformed(events, self._template.fields[leftover.wrapper.id], fault.raw, fault.error, reason)
        else:
            self._pass_over(fault)
        self._leave()

    def _pass_over(self, fault: Fault | None) -> None:
        """Text between regions, inside their wrapper, is recorded and not shown."""
        if fault is not None:
            self.draft.drop("", fault.raw, fault.error, "malformed", as_content=False)

    def _malformed(
        self, events: list[Event], field: Field, raw: str, error: str, reason: Literal["malformed", "unfinished"]
    ) -> None:
        self.prompt_raws = self.prompt_raws or []
        self.prompt_raws.append(self._prompt_region or self._prompt_held)
        self._begun |= reason == "malformed"
        policy = self.on_malformed if reason == "malformed" else self.on_unfinished
        self.draft.drop(field.name, raw, error, reason, as_content=policy == "content")
        events.append({"type": "region_malformed", "field": field.name, "raw": raw, "error": error, "reason": reason})

    def missing(self, events: list[Event]) -> None:
        """The answer is read: report the required fields that it lacks."""
        for field in self.draft.missing():
            self._malformed(events, field, "", "a required field is missing", "malformed")

    # ------------------------------------------------------------------------------------------------- the end of all

    def _end(self, events: list[Event], partial: Partial | None) -> None:
        """The output has ended behind what is taken, but for text that had begun to be a delimiter."""
        region = self.region
        if region is not None and region.explicit:
            self._cut(events, region, partial)
        else:
            if partial is not None:
                self._end_in_delimiter(events, partial)
            self._close(events, "")
        if self.leftover is not None and self.scanner.idle:
            self._unwrap(events, "", "unfinished")

    def _end_in_delimiter(self, events: list[Event], partial: Partial) -> None:
        """Outside of explicit regions, behind text that had begun to be a delimiter."""
        opens = [delimiter for delimiter in partial.delimiters if delimiter.kind in ("open", "wrap")]
        begun = [one for one in opens if partial.text.lstrip().startswith(one.markers())]
        if not begun:
            self._take(events, partial.text)
            return
        self._close(events, "")
        if self.leftover is not None:
            self._pass_over(self.leftover.region())
        field = self._template.fields[begun[0].field]
        self._malformed(events, field, partial.text, "the output ended in its opening", "unfinished")

    def _cut(self, events: list[Event], region: Region, partial: Partial | None = None) -> None:
        """The output ended inside an explicit region."""
        self.scanner.reset()
        tail = "" if partial is None else partial.text
        if not region.dirty:
            if tail:
                self._take(events, tail)
            self._close(events, "")
            return
        if isinstance(region.lexer, TagLexer):
            if (place := region.lexer.close_in_tail(region.parts, tail)) is not None:
                self._chunk(events, region, tail[: place[0]])
                self._close(events, tail[place[0] : place[1]])
                self.scanner.load(tail[place[1] :])
                return
            self._chunk(events, region, tail)  # it finds a closer in all that there is
            partial, tail = None, ""
        if region.takes_last_closer():
            self._close(events, "")
            return
        verdict = region.cut(partial, self._tools, self.scanner.allowance)
        if verdict.outcome != "value" or tail.isspace():  # of the value's own text; else a closer that was cut
            self._chunk(events, region, tail)
        self._settle(events, region, verdict, "")
        self._leave()
