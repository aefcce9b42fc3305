"""Arguments in tags: text goes as it comes, other values when their tag has ended."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import regex

from respzoo.arguments.call import Call, Way, Writer, dump_arguments, escape
from respzoo.content.tags import Pair
from respzoo.content.xml_inline import XmlInline
from respzoo.delimiters import Delimiter, WatchList
from respzoo.schema import Tools

__all__ = ["TagCalls"]


class _Ends:
    """What in a value may be the end of its region, its own closing tag left out: a closer, other closing tags before
    it, and behind it nothing but what may follow the last region of all."""

    def __init__(self, close: str, behind: Sequence[str]) -> None:
        watch = WatchList([Delimiter.regex("close", "", close), Delimiter.literal("tag", "", ["</"])])
        self.first, self.begins = watch.first, watch.begins
        self.way = Way(watch.first, as_json=False) if watch.first else None
        closer = rf"(?:\s*</[^<>\s]+>)*?\s*(?:{close})"
        self.close = regex.compile(closer, regex.DOTALL)
        rest = "|".join(f"(?:{source})" for source in behind)
        self.last = regex.compile(rf"{closer}(?:\s*(?:{rest}))*\s*" if rest else rf"{closer}\s*", regex.DOTALL)


_ends = cache(_Ends)
_MOST_HELD = 1_024
_ANY = Way("", as_json=False)


class TagCalls(Writer):
    """Follows one call.

    Args:
        call: the call; its name is known.
        content: what reads the tags.
        tools: what types their values.
        close: the region's closer.
        behind: what may follow the last region.
    """

    __slots__ = ("_blank", "_call", "_content", "_ends", "_from", "_goes", "_held", "_key", "_tools")

    def __init__(
        self, call: Call, content: XmlInline, tools: Tools, close: Delimiter, behind: Sequence[Delimiter]
    ) -> None:
        super().__init__()
        self.calls.append(call)
        self._call = call
        self._content = content
        self._tools = tools
        # in the dialect the lexer itself holds back what may be the end
        self._ends = (
            None if content.extended else _ends(close.pattern.pattern, tuple(one.pattern.pattern for one in behind))
        )
        self._key: str | None = None  # of the argument whose value has begun to go
        self._from = 0  # how much of the call was written before it
        self._goes = False  # whether the text that comes is that value's
        self._held: list[str] | tuple[()] = ()  # of it: what may not be its own
        self._blank = True  # whether that is white space, if anything
        call.write("{")

    @property
    def way(self) -> Way | None:
        if not self._goes or self._held:
            return None
        return _ANY if self._ends is None else self._ends.way

    def quick(self, text: str) -> str | None:
        if not self._goes or self._held or text[-1].isspace() or self._may_end(text):
            return None
        return escape(text)

    def text(self, text: str) -> None:
        if not self._goes:
            return
        if self._blank and text.isspace():
            self._held = self._held or []
            self._held.append(text)
            return
        held = ""
        if self._held:
            text = "".join([*self._held, text])
        if self._ends is not None and self._may_end(text):
            text, held = self._certain(self._ends, text)
        shown = text.rstrip()
        if shown:
            self._call.write(escape(shown))
        held = text[len(shown) :] + held
        self._held = [held] if held else ()
        self._blank = not held or held.isspace()

    def _may_end(self, text: str) -> bool:
        """Whether what may be the end of the region begins in this text."""
        ends = self._ends
        return ends is not None and ends.first in text and (ends.begins is None or ends.begins(text) is not None)

    def _certain(self, ends: _Ends, text: str) -> tuple[str, str]:
        """What of a value's text is its own, and what may not be."""
        at = 0
        while (found := ends.close.search(text, at, partial=True)) is not None:
            if len(text) - found.start() > _MOST_HELD:  # too long to look at again: the rest goes with the tag's end
                self._goes = False
                return text[: found.start()], ""
            if found.partial or ends.last.fullmatch(text, found.start(), partial=True) is not None:
                return text[: found.start()], text[found.start() :]
            at = max(found.end(), at + 1)
        return text, ""

    def tag(self, pair: Pair | None) -> None:
        self._goes = False
        if pair is None or self._key is not None:
            return
        key, _ = self._content.argument(pair)
        as_text = self._content.is_text(pair.type)
        if as_text is None:
            types = self._tools.types(self._call.name, key)
            as_text = types == {"string"} or (not types and self._content.takes_text)
        if as_text:
            self._begin(key)
            self._call.write('"')
            self._from = self._call.size
            self._goes = True

    def _begin(self, key: str) -> None:
        self._key, self._held, self._blank = key, (), True
        self._call.argument(key)

    def value(self, pair: Pair) -> None:
        begun, self._key, self._goes = self._key is not None, None, False
        if begun:
            self._call.write(escape(pair.text)[self._call.size - self._from :] + '"')
            return
        key, raw = self._content.argument(pair)
        try:
            value = self._tools.typed(self._call.name, {key: raw})[key]
        except (ValueError, RecursionError):  # the region will be malformed
            return
        self._begin(key)
        self._call.write(dump_arguments(value))
        self._key = None
