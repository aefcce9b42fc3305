"""Follow a region of nested tags, to know where it ends.

Its closer counts before any tag, and behind a closing tag, but for white space; in a call that is quoted (its opener
with a tag behind it) it ends that. One with text before it counts if another call follows, or the end of the output:
then the region is malformed, since a tag in it was not closed, but it does not swallow what follows.
"""

from __future__ import annotations

from collections.abc import Sequence

from respzoo.content.balanced_tags import ClosingProofs
from respzoo.content.base import Borders
from respzoo.content.tags import TagLexer, may_begin
from respzoo.delimiters import Delimiter, Found, WatchList

__all__ = ["TreeLexer", "TreeRules"]


class TreeRules:
    """The watch lists at the region's `start`, `inside` tags, and `quoted`: in a call that is quoted there."""

    def __init__(self, borders: Borders, close: Delimiter, opening: str, closing: str) -> None:
        field, plain = borders.field, borders.plain
        self.proofs = ClosingProofs(borders, close, opening)
        end = Delimiter.regex("end", field, rf"(?:{closing})\s*?(?P<region_end>{close.pattern.pattern})")
        self.start = WatchList([close, Delimiter.regex("tag", field, opening)], plain=plain)
        self.inside = WatchList([end, *self.proofs.calls, *self.proofs.ends], plain=plain)
        self.quoted = WatchList([end, *self.proofs.calls, self.proofs.region], plain=plain)


class TreeLexer(TagLexer):
    """Attributes:
    fault: why the region has no value, once it has ended.
    """

    def __init__(self, rules: TreeRules) -> None:
        super().__init__(rules.start)
        self._rules = rules
        self._quotes = 0
        self.fault = ""

    def found(self, found: Found, parts: Sequence[str]) -> int | None:
        match found.delimiter.kind:
            case "close":
                return 0
            case "tag":
                self.watch = self._rules.inside
            case "call":
                self._quotes += 1
                self.watch = self._rules.quoted
            case "end" | "region" if self._quotes:
                self._quotes -= 1
                self.watch = self._rules.quoted if self._quotes else self._rules.inside
            case "end":
                return found.spans["region_end"][0]
            case "closed":
                self.fault = "a tag that is not closed"
                begin, end = found.spans["region_end"]
                self.rest = len(found.text) - end
                return begin
            case _:
                pass
        return None

    def close_in_tail(self, parts: Sequence[str], tail: str) -> tuple[int, int] | None:
        if self.watch is self._rules.start:
            self.broken = not may_begin(self._rules.proofs.first, "".join(parts) + tail)
        if self.watch is not self._rules.inside or (place := self._rules.proofs.place(tail)) is None:
            return None
        self.fault = "a tag that is not closed"
        return place
