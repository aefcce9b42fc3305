"""Arguments in single quotes with nothing escaped in them: `f(text='it's so', other=1)`.

Where such a string ends shows only behind it: at the first quote that `, name=` follows, or `)` and then another call
or the end of them all. So a quote and a bracket may be an end, and the lexer goes on looking for a later one until it
knows: another call or the region's closer behind them, but for white space, proves them right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from respzoo.content.base import Borders
from respzoo.content.quoted import QuotedLexer, QuoteRules
from respzoo.delimiters import Delimiter, Found, WatchList

__all__ = ["ARGUMENT", "CALL", "ENDS", "LAST", "RawStringLexer", "RawStringRules"]

_SPACE = r"[ \t\n\r]*"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:[\-.][A-Za-z0-9_]+)*"
ARGUMENT = rf"'{_SPACE},{_SPACE}{_NAME}{_SPACE}="
LAST = rf"'{_SPACE}\)"
CALL = rf"(?:[\n\r]{_SPACE}(?:[,;]{_SPACE})?|[,;]{_SPACE}){_NAME}{_SPACE}\("
"""Patterns of what may end such a string, or proves that it has ended: another argument, the last bracket, a call."""

ENDS = re.compile(rf"(?={ARGUMENT}|{LAST}(?:[ \t]*{CALL}|{_SPACE}\Z))")
"""Matches, without any text, before the quote that ends such a string."""


class RawStringRules:
    """The watch lists inside such a string: `inside`, and `behind` a bracket that may have ended it."""

    def __init__(self, rules: QuoteRules, borders: Borders) -> None:
        field, plain = borders.field, borders.plain
        self.quoted = rules
        inside = [Delimiter.regex("argument", field, ARGUMENT), Delimiter.regex("last", field, LAST)]
        self.inside = WatchList(inside, plain=plain)
        self.behind = WatchList([*borders.closers, *inside, Delimiter.regex("call", field, CALL)], plain=plain)


class RawStringLexer(QuotedLexer):
    __slots__ = ("_raw",)

    def __init__(self, rules: RawStringRules) -> None:
        super().__init__(rules.quoted)
        self._raw = rules

    @property
    def heeds(self) -> bool:
        return self.watch is not self._raw.inside and self.watch is not self.rules.broken

    def swallow(self, text: str) -> bool:
        return False

    def text(self, text: str) -> None:
        if self.watch is self._raw.behind and not text.isspace():
            self.watch = self._raw.inside  # it goes on: that was no end
        super().text(text)

    def found(self, found: Found, parts: Sequence[str]) -> int | None:
        kind = found.delimiter.kind
        if self.watch is self._raw.inside and kind in ("close", "call"):
            return None  # looked for behind an end that was none
        if kind in ("argument", "call"):
            self.watch = self.rules.outside
            self.after_string = False
            return None
        if kind == "last":
            self.watch = self._raw.behind
            return None
        if kind == "quote" and found.text == "'" and not self.broken and _is_argument(parts):
            self.begun = True
            self.watch = self._raw.inside
            return None
        return super().found(found, parts)

    def whole(self) -> bool:
        return self.watch is self._raw.behind or super().whole()


def _is_argument(parts: Sequence[str]) -> bool:
    """Whether what comes behind these is a call's argument."""
    for part in reversed(parts):
        if shown := part.rstrip():
            return shown.endswith("=")
    return False
