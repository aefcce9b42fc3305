"""Quoted syntax in a region that ends with its value (`ends_with_value`): behind the bracket that closes its first one.

Brackets count outside of strings only. A region that begins with anything else but white space has no such end and is
broken; so is one that a closer ends while a bracket is open.
"""

from __future__ import annotations

from collections.abc import Sequence

from respzoo.content.quoted import QuotedLexer, QuoteRules
from respzoo.delimiters import Found

__all__ = ["EndingLexer"]


class EndingLexer(QuotedLexer):
    __slots__ = ("_closing", "_depth", "_opening")

    def __init__(self, rules: QuoteRules) -> None:
        super().__init__(rules)
        self._opening, self._closing = rules.brackets
        self._depth = 0

    def swallow(self, text: str) -> bool:
        rules = self.rules
        closers = rules.broken
        if rules.verbatim or self.broken or closers.begins is None or closers.begins(text) is not None:
            return False
        if closers.leads and text[-1].isspace():
            return False
        skip, quote, depth = self.skip, self.quote, self._depth
        escaped, after_string, begun = self.escaped, self.after_string, self.begun
        at, size = 0, len(text)
        while at < size:
            if self.skip is not None:
                at = self.skip(text, at)
                if at < size:
                    self.stop(text[at])
                at += 1
            else:
                match = rules.find_quote(text, at)
                end = size if match is None else match.start()
                if end > at:
                    self.text(text[at:end])
                if end < size and not self.broken:
                    if text[end] in rules.quotes:
                        self.open_string(text[end])
                    else:
                        self._bracket(text[end])
                at = end + 1
            if self.broken or (self.begun and not self._depth):  # the slow way tells where
                self.skip, self.quote, self._depth = skip, quote, depth
                self.escaped, self.after_string, self.begun = escaped, after_string, begun
                self.broken, self.watch = False, rules.outside
                return False
        return True

    def open_string(self, quote: str) -> None:
        if self._depth:
            super().open_string(quote)
        else:
            self.break_off()

    def text(self, text: str) -> None:
        if self._depth:
            super().text(text)
        elif self.watch is self.rules.outside and not text.isspace():
            self.break_off()

    def found(self, found: Found, parts: Sequence[str]) -> int | None:
        kind = found.delimiter.kind
        if self.broken or kind in ("quote", "unquote"):
            return super().found(found, parts)
        if kind == "close":
            return self._closer(found.text)
        if kind in ("up", "down"):
            self._bracket(found.text)
            return len(found.text) if self.begun and not self.broken and not self._depth else None
        if not self._depth:
            self.break_off()
            return None
        return super().found(found, parts)

    def _bracket(self, char: str) -> None:
        if char in self._opening:
            if self.after_string:
                self.break_off()
                return
            self.begun = True
            self._depth += 1
        elif self._depth:
            self.after_string = False
            self._depth -= 1
        else:
            self.break_off()

    def _closer(self, text: str) -> int | None:
        """A closer may begin with brackets (`]</call>`): those that are still open are the value's."""
        for at, char in enumerate(text):
            if char in self._closing and self._depth:
                self._depth -= 1
                if not self._depth:
                    return at + 1
            elif not char.isspace():
                break
        return 0

    def whole(self) -> bool:
        return False
