"""Follow a region of tags, `<p=key>value</p>`, piece by piece.

A closer counts between tags only, and a value ends at the closing tag that another tag or the region's closer follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import regex

from respzoo.allowance import seconds_for
from respzoo.content.base import Borders
from respzoo.delimiters import Delimiter, Found, WatchList
from respzoo.known import Strings

__all__ = ["ENDINGS", "Pair", "PlainTagLexer", "TagLexer", "TagRules", "fullmatch", "may_begin", "search", "starts"]

# other closing tags may stand before the region's: the manual's own template closes with </tool_call> and leaves
# </function> inside
ENDINGS = r"(?:\s*</[^<>\s]+>)*?\s*?"


class Pair(NamedTuple):
    """A tag's key and raw value, and the type that it states."""

    key: str
    text: str
    type: str = ""


class TagRules:
    """The watch lists between tags and inside a value; `opening` and `closing` are the tag pattern around its value."""

    def __init__(self, borders: Borders, close: Delimiter, opening: str, closing: str) -> None:
        field, plain = borders.field, borders.plain
        inside = [
            Delimiter.regex("next", field, rf"(?:{closing})\s*?(?:{opening})"),
            Delimiter.regex("end", field, rf"(?:{closing}){ENDINGS}(?P<region_end>{close.pattern.pattern})"),
        ]
        self.between = WatchList([close, Delimiter.regex("tag", field, opening)], plain=plain)
        self.inside = WatchList(inside, plain=plain)
        self.close = close
        framing = regex.match(r"\\[sn][*?]", closing)
        self.left_open = regex.compile(
            rf"{framing[0] if framing else ''}{ENDINGS}(?P<region_end>{close.pattern.pattern})\s*\Z", regex.DOTALL
        )
        """The end of a value whose own closing tag was left out, at the end of a text."""


class TagLexer:
    """Follows a region of tags, collecting `pairs` of key and raw value."""

    __slots__ = ("broken", "pairs", "rest", "watch")

    skip: Callable[[str, int], int] | None = None
    inside: Strings | None = None
    heeds = False

    def __init__(self, watch: WatchList) -> None:
        self.watch = watch
        self.broken = False
        self.rest = 0
        self.pairs: list[Pair] = []

    @property
    def at_hand(self) -> Pair | None:
        """The key and type of the value that is being written, without its text; None: there is none, or text in it may
        still turn out not to be its own."""
        return None

    def swallow(self, text: str) -> bool:
        return False

    def text(self, text: str) -> None:
        pass

    def stop(self, char: str) -> None:
        pass

    def found(self, found: Found, parts: Sequence[str]) -> int | None:
        raise NotImplementedError

    def whole(self) -> bool:
        return False

    def cut(self, text: str) -> bool:
        return True

    def close_last(self, parts: Sequence[str]) -> str | None:
        """At the end of the output, inside a value: if the region was closed at its very end and only the value's own
        closing tag was left out, take the value and return the text of the closer."""
        return None

    def close_in_tail(self, parts: Sequence[str], tail: str) -> tuple[int, int] | None:
        """The same where the closer was held back all the time, with what may stand behind it: the place of the closer
        in what is held."""
        return None


class PlainTagLexer(TagLexer):
    """As the reference's users expect it: the first end that something proves is one."""

    __slots__ = ("_from", "_key", "_rules", "_type")

    def __init__(self, rules: TagRules) -> None:
        super().__init__(rules.between)
        self._rules = rules
        self._key = ""
        self._type = ""
        self._from = 0  # the first part of the value at hand

    @property
    def at_hand(self) -> Pair | None:
        return Pair(self._key, "", self._type) if self.watch is self._rules.inside else None

    def found(self, found: Found, parts: Sequence[str]) -> int | None:
        kind = found.delimiter.kind
        if kind == "close":
            return 0
        if kind != "tag":
            self.pairs.append(Pair(self._key, "".join(parts[self._from :]), self._type))
        if kind == "end":
            self.watch = self._rules.between
            return found.spans["region_end"][0]
        self._key, self._type = found.groups.get("key", ""), found.groups.get("type", "")
        self._from = len(parts) + 1
        self.watch = self._rules.inside
        return None

    def close_last(self, parts: Sequence[str]) -> str | None:
        if self.watch is not self._rules.inside:
            return None
        value = "".join(parts[self._from :])
        first = search(self._rules.close.pattern, value)
        match = None if first is None else search(self._rules.left_open, value)
        if first is None or match is None or match.start("region_end") > first.start():
            return None
        self.pairs.append(Pair(self._key, value[: match.start()], self._type))
        self.watch = self._rules.between
        return match["region_end"]


# A template's own pattern may take for ever. Where it takes too long nothing is found.


def search(pattern: regex.Pattern[str], text: str) -> regex.Match[str] | None:
    try:
        return pattern.search(text, timeout=seconds_for(text))
    except TimeoutError:
        return None


def fullmatch(pattern: regex.Pattern[str], text: str) -> regex.Match[str] | None:
    try:
        return pattern.fullmatch(text, timeout=seconds_for(text))
    except TimeoutError:
        return None


def may_begin(pattern: regex.Pattern[str], text: str) -> bool:
    """Whether the text may be the beginning of a match."""
    try:
        return pattern.fullmatch(text, partial=True, timeout=seconds_for(text)) is not None
    except TimeoutError:
        return False


def starts(pattern: regex.Pattern[str], text: str) -> list[int]:
    """Where its matches begin."""
    try:
        return [match.start() for match in pattern.finditer(text, timeout=seconds_for(text))]
    except TimeoutError:
        return []
