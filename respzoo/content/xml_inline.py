"""`xml-inline`: shallow tags, each a key and a value.

`tag_pattern` has the groups `key` and `value`; `value_parser` reads each value; `merge_duplicates` makes a list of the
values of a key that comes more than once.

A value may quote the markup itself. Where the pattern is of the usual shape (something, then a value of any
characters, then a closing tag), the region is followed tag by tag: its closer counts only between tags, and a value
ends at the closing tag that another tag or the region's closer follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import regex

from respzoo.content.base import ContentParser, Lexer, Raw, ValueParser
from respzoo.delimiters import Delimiter, Found, WatchList
from respzoo.patterns import CharSet, Group, Repeat, Series, Unsupported, read

__all__ = ["XmlInline"]


# other closing tags may stand before the region's: the manual's own template closes with </tool_call> and leaves
# </function> inside
_ENDINGS = r"(?:\s*</[^<>\s]+>)*?\s*?"


class XmlInline(ContentParser):
    name: ClassVar[str] = "xml-inline"

    def __init__(self, args: Mapping[str, Any], value_parser: ValueParser | None = None) -> None:
        super().__init__(args)
        self._value_parser = value_parser
        source = args.get("tag_pattern")
        self._pattern = None if source is None else regex.compile(source, regex.DOTALL)

    def parse(self, text: str, *, strict: bool = False) -> Any:
        if self._pattern is None:
            raise ValueError("xml-inline needs 'tag_pattern' among its content_args")
        if "key" not in self._pattern.groupindex:
            raise ValueError("the tag_pattern of xml-inline needs a group named 'key'")
        pairs: list[tuple[str, str]] = []
        for match in self._pattern.finditer(text):
            groups = match.groupdict()
            pairs.append((groups["key"] or "", groups.get("value") or ""))
        return self._collect(pairs)

    def _collect(self, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merge = self.args.get("merge_duplicates", False)
        merged: set[str] = set()
        for key, text in pairs:
            value = Raw(text, self._value_parser)
            if merge and key in result:
                if key not in merged:
                    result[key] = [result[key]]
                    merged.add(key)
                result[key].append(value)
            else:
                result[key] = value
        return result

    def lexer(self, field: str, close: Delimiter | None, *, plain: bool) -> Callable[[], Lexer] | None:
        halves = None if self._pattern is None else _halves(self._pattern.pattern)
        if halves is None or close is None:
            return None
        opening, closing = halves
        region_end = close.pattern.pattern
        try:
            between = [close, Delimiter.regex("tag", field, opening)]
            inside = [
                Delimiter.regex("next", field, rf"(?:{closing})\s*?(?:{opening})"),
                Delimiter.regex("end", field, rf"(?:{closing}){_ENDINGS}(?P<region_end>{region_end})"),
            ]
        except regex.error:
            return None
        rules = TagRules(WatchList(between, plain=plain), WatchList(inside, plain=plain), close, closing)
        return lambda: TagLexer(rules)

    def parse_lexed(self, lexer: Lexer | None, text: str, *, strict: bool = False) -> Any:
        if isinstance(lexer, TagLexer):
            return self._collect(lexer.pairs)
        return self.parse(text, strict=strict)


def _halves(source: str) -> tuple[str, str] | None:
    """A tag pattern's source before and after its value group; None if it is of another shape."""
    try:
        tree = read(source)
    except Unsupported:
        return None
    if not isinstance(tree, Series):
        return None
    for item in tree.items:
        if isinstance(item, Group) and item.name == "value":
            value = item.item.items[0] if isinstance(item.item, Series) and len(item.item.items) == 1 else item.item
            anything = isinstance(value, Repeat) and value.high is None and value.item == CharSet(".")
            before, after = source[: item.start], source[item.end :]
            return (before, after) if anything and before and after else None
    return None


class TagRules:
    def __init__(self, between: WatchList, inside: WatchList, close: Delimiter, closing: str) -> None:
        self.between = between
        self.inside = inside
        self.close = close
        framing = regex.match(r"\\[sn][*?]", closing)
        self.left_open = regex.compile(
            rf"{framing[0] if framing else ''}{_ENDINGS}(?P<region_end>{close.pattern.pattern})\s*\Z", regex.DOTALL
        )
        """The end of a value whose own closing tag was left out, at the end of a text."""


class TagLexer:
    """Follows a region of tags, collecting `pairs` of key and raw value."""

    skip: Callable[[str, int], int] | None = None
    inside: Callable[[str], object] | None = None
    quote = ""
    heeds = False

    def __init__(self, rules: TagRules) -> None:
        self._rules = rules
        self.watch = rules.between
        self.pairs: list[tuple[str, str]] = []
        self._key = ""
        self._from = 0  # the first part of the value at hand

    def swallow(self, text: str) -> bool:
        return False

    def text(self, text: str) -> None:
        pass

    def stop(self, char: str) -> None:
        pass

    def found(self, found: Found, parts: Sequence[str]) -> int | None:
        kind = found.delimiter.kind
        if kind == "close":
            return 0
        if kind != "tag":
            self.pairs.append((self._key, "".join(parts[self._from :])))
        if kind == "end":
            self.watch = self._rules.between
            return found.spans["region_end"][0]
        self._key = found.groups.get("key", "")
        self._from = len(parts) + 1
        self.watch = self._rules.inside
        return None

    def whole(self) -> bool:
        return False

    def cut(self, text: str) -> bool:
        return True

    def close_last(self, parts: Sequence[str]) -> str | None:
        """At the end of the output, inside a value: if the region was closed at its very end and only the value's own
        closing tag was left out, take the value and return the text of the closer."""
        if self.watch is not self._rules.inside:
            return None
        value = "".join(parts[self._from :])
        first = self._rules.close.pattern.search(value)
        match = None if first is None else self._rules.left_open.search(value)
        if first is None or match is None or match.start("region_end") > first.start():
            return None
        self.pairs.append((self._key, value[: match.start()]))
        self.watch = self._rules.between
        return match["region_end"]
