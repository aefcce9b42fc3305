"""Syntaxes with quoted strings: inside one a closer is text.

The lexer here follows JSON and what looks like it; those of regions that end with their value (ending.py) and of
strings in which nothing is escaped (raw_strings.py) are made of it.
"""

from __future__ import annotations

import json.decoder
import re
from collections.abc import Callable, Sequence
from typing import cast

from respzoo.content.base import Borders
from respzoo.delimiters import Delimiter, Found, WatchList
from respzoo.known import Strings

__all__ = ["CONTROLS", "QuoteRules", "QuotedLexer"]

CONTROLS = r"\x00-\x1f"
"""What cannot stand in a string of JSON, as in a character class."""
_scan = cast("Callable[[str, int], tuple[str, int]]", json.decoder.scanstring)  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
_LONG = 256  # characters from which on JSON's own scanner is the quicker one
_WINDOW = 16_384  # of which it sees at once: what it does not know must not cost more


class QuoteRules:
    """How a syntax quotes: its escaped strings (`"…"`), its verbatim ones (`<|"|>…<|"|>`), what may follow either."""

    def __init__(
        self,
        borders: Borders,
        *,
        quotes: str,
        breaks: str,
        verbatim: Sequence[tuple[str, str]] = (),
        follow: str,
        first: str = "",
        brackets: Sequence[str] = (),
        needed: bool = False,
    ) -> None:
        field, plain, closers = borders.field, borders.plain, borders.closers
        openers = [Delimiter.literal("quote", field, [quote]) for quote in quotes]
        openers += [Delimiter.literal(f"verbatim {number}", field, [pair[0]]) for number, pair in enumerate(verbatim)]
        pairs = zip(("up", "down"), brackets, strict=False)
        openers += [Delimiter.literal(kind, field, list(chars)) for kind, chars in pairs]
        self.outside = WatchList([*closers, *openers], plain=plain)
        self.broken = WatchList(closers, plain=plain)
        self.verbatim = [WatchList([Delimiter.literal("unquote", field, [end])], plain=plain) for _, end in verbatim]
        inside = {quote: rf"[^{quote}\\{breaks}]*+(?:\\.[^{quote}\\{breaks}]*+)*+" for quote in quotes}
        as_json = quotes == '"' and breaks == CONTROLS
        self.skips = {quote: _skip(pattern, as_json=as_json) for quote, pattern in inside.items()}
        self.inside = {quote: Strings(re.compile(pattern, re.DOTALL).fullmatch) for quote, pattern in inside.items()}
        self.strings = re.compile(
            "|".join(rf"{quote}(?:\\.|[^{quote}\\])*(?:{quote}|\\?\Z)" for quote in quotes), re.DOTALL
        )
        self.find_quote = re.compile(f"[{re.escape(quotes + ''.join(brackets))}]").search
        self.quotes = quotes
        self.brackets = brackets  # those that open and those that close, if the region ends with the first one's fellow
        self.follow = follow  # characters of which one must come after a string, unless the region ends
        self.first = first  # characters of which one must come first, unless all are allowed
        self.needed = needed  # whether nothing at all is no value where the output ends


def _skip(pattern: str, *, as_json: bool) -> Callable[[str, int], int]:
    match = re.compile(pattern, re.DOTALL).match

    def skip(text: str, at: int) -> int:
        if as_json and len(text) - at > _LONG:
            found = match(text, at, at + _LONG)
            assert found is not None
            if found.end() - at < _LONG - 1:
                return found.end()
            at = _scan_json(text, found.end())
        found = match(text, at)
        assert found is not None
        return found.end()

    return skip


class QuotedLexer:
    """Inside a quoted string a closer is text. A string that cannot be one any more (a raw line break in it, or no
    separator behind it: a quote was never closed) stops that: the region is broken then, and its next closer ends it.
    """

    rest = 0

    __slots__ = ("after_string", "begun", "broken", "escaped", "quote", "rules", "skip", "watch")

    def __init__(self, rules: QuoteRules) -> None:
        self.rules = rules
        self.watch = rules.outside
        self.skip: Callable[[str, int], int] | None = None
        self.quote = ""
        self.escaped = False
        self.after_string = False
        self.begun = False
        self.broken = False

    @property
    def heeds(self) -> bool:
        return self.watch is self.rules.outside

    @property
    def inside(self) -> Strings | None:
        return None if self.skip is None or self.escaped else self.rules.inside[self.quote]

    def swallow(self, text: str) -> bool:
        rules = self.rules
        closers = rules.broken
        if rules.verbatim or closers.begins is None or closers.begins(text) is not None:
            return False
        if closers.leads and text[-1].isspace():
            return False
        at, size = 0, len(text)
        while at < size and not self.broken:
            if self.skip is not None:
                at = self.skip(text, at)
                if at < size:
                    self.stop(text[at])
                at += 1
                continue
            match = rules.find_quote(text, at)
            end = size if match is None else match.start()
            if end > at:
                self.text(text[at:end])
            if end < size and not self.broken:
                self.open_string(text[end])
            at = end + 1
        return True

    def open_string(self, quote: str) -> None:
        self.begun = True
        if self.after_string:  # two strings in a row
            self.break_off()
        else:
            self.quote = quote
            self.skip = self.rules.skips[quote]

    def text(self, text: str) -> None:
        if self.watch is not self.rules.outside:
            return
        stripped = text.lstrip()
        if not stripped:
            return
        if not self.begun:
            self.begun = True
            if self.rules.first and stripped[0] not in self.rules.first:
                self.break_off()
        elif self.after_string and stripped[0] not in self.rules.follow:
            self.break_off()
        self.after_string = False

    def break_off(self) -> None:
        """This is no value any more."""
        self.broken = True
        self.skip = None
        self.watch = self.rules.broken

    def stop(self, char: str) -> None:
        if self.escaped:  # the character behind a backslash that ended a chunk
            self.escaped = False
            self.skip = self.rules.skips[self.quote]
        elif char == self.quote:
            self.skip = None
            self.after_string = True
        elif char == "\\":
            self.escaped = True
            self.skip = _nowhere
        else:
            self.break_off()

    def found(self, found: Found, parts: Sequence[str]) -> int | None:
        kind = found.delimiter.kind
        if kind == "close":
            return 0
        if self.broken:
            return None
        if kind == "quote":
            self.open_string(found.text)
            return None
        self.begun = True
        if kind == "unquote":
            self.watch = self.rules.outside
            self.after_string = True
        elif self.after_string:
            self.break_off()
        else:
            self.watch = self.rules.verbatim[int(kind.removeprefix("verbatim "))]
        return None

    def whole(self) -> bool:
        if self.broken or self.skip is not None or self.watch is not self.rules.outside:
            return False
        return self.begun or not self.rules.needed

    def cut(self, text: str) -> bool:
        if self.broken:
            return False
        if not self.whole():
            return True
        bare = self.rules.strings.sub("", text)
        return sum(map(bare.count, "{[(")) > sum(map(bare.count, "}])"))


def _scan_json(text: str, at: int) -> int:
    """From a place inside a string of JSON, go on with JSON's own scanner, which is quicker than a pattern, while it
    knows the way. Returns a place in the string that no escape leads to, at its end if that was found."""
    while True:
        window = text[at : at + _WINDOW]
        # an escape at its end may be cut
        if (last := window.rfind("\\", len(window) - 6)) >= 0:
            run = last + 1 - len(window[: last + 1].rstrip("\\"))
            window = window[:last] if run % 2 else window
        try:
            end = _scan(window + '"', 0)[1] - 1
        except ValueError:
            return at
        at += end
        if end < len(window) or not window or at >= len(text):
            return at


def _nowhere(text: str, at: int) -> int:
    return at
