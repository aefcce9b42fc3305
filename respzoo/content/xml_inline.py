"""`xml-inline`: shallow tags, each a key and a value.

`tag_pattern` has the groups `key` and `value`; `value_parser` reads each value; `merge_duplicates` makes a list of the
values of a key that comes more than once. `types`: the pattern has a group `type`, and what it caught chooses the value
parser; such a value needs no schema. `unescape_keys` reads XML entities in keys.

A value may quote the markup itself. Where the pattern is of the usual shape (something, then a value of any
characters, then a closing tag), the region is followed tag by tag: its closer counts only between tags, and a value
ends at the closing tag that another tag or the region's closer follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, cast

import regex

from respzoo.content.arguments import BOOLEAN, CONTENT, PATTERN, Argument
from respzoo.content.base import ContentParser, Lexer, Raw, ValueParsers
from respzoo.content.entities import unescape
from respzoo.delimiters import Delimiter, Found, WatchList
from respzoo.patterns import CharSet, Group, Repeat, Series, Unsupported, read

__all__ = ["XmlInline"]


# other closing tags may stand before the region's: the manual's own template closes with </tool_call> and leaves
# </function> inside
_ENDINGS = r"(?:\s*</[^<>\s]+>)*?\s*?"


class Pair(NamedTuple):
    """A tag's key and raw value, and the type that it states."""

    key: str
    text: str
    type: str = ""


def _are_types(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(CONTENT.fits, cast("Mapping[str, Any]", value).values()))


class XmlInline(ContentParser):
    name: ClassVar[str] = "xml-inline"
    arguments: ClassVar[Mapping[str, Argument]] = {
        "tag_pattern": PATTERN,
        "value_parser": CONTENT,
        "merge_duplicates": BOOLEAN,
        "types": Argument("an object of content parsers by type", _are_types),
        "unescape_keys": BOOLEAN,
    }

    def __init__(
        self, args: Mapping[str, Any], *, extended: bool = False, value_parser: ValueParsers | None = None
    ) -> None:
        super().__init__(args, extended=extended, value_parser=value_parser)
        self._value_parser = self.value_parser(args.get("value_parser"))
        source = args.get("tag_pattern")
        self._pattern = None if source is None else regex.compile(source, regex.DOTALL)
        types: Mapping[str, Any] = self.extension("types") or {}
        self._types = {name: self.value_parser(spec) for name, spec in types.items()}
        self._unescapes = bool(self.extension("unescape_keys"))
        if extended:
            wanted = ["key", "type"] if types else ["key"]
            if missing := [name for name in wanted if self._pattern is None or name not in self._pattern.groupindex]:
                raise ValueError(f"'tag_pattern': needs a group named {' and one named '.join(map(repr, missing))}")

    def parse(self, text: str, *, strict: bool = False) -> Any:
        if self._pattern is None:
            raise ValueError("xml-inline needs 'tag_pattern' among its content_args")
        if "key" not in self._pattern.groupindex:
            raise ValueError("the tag_pattern of xml-inline needs a group named 'key'")
        pairs: list[Pair] = []
        for match in self._pattern.finditer(text):
            groups = match.groupdict()
            pairs.append(Pair(groups["key"] or "", groups.get("value") or "", groups.get("type") or ""))
        return self._collect(pairs)

    def _collect(self, pairs: Sequence[Pair]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merge = self.args.get("merge_duplicates", False)
        merged: set[str] = set()
        for key, text, kind in pairs:
            key = unescape(key) if self._unescapes else key
            value = self._value(text, kind)
            if merge and key in result:
                if key not in merged:
                    result[key] = [result[key]]
                    merged.add(key)
                result[key].append(value)
            else:
                result[key] = value
        return result

    def _value(self, text: str, kind: str) -> Any:
        parse = self._types.get(kind)
        if parse is not None:
            try:
                return parse(text)
            except (ValueError, RecursionError):
                return Raw(text)  # not what it says it is: the schema decides
        return Raw(text, self._value_parser)

    def lexer(
        self, field: str, close: Delimiter | None, *, plain: bool, ends: bool = False
    ) -> Callable[[], Lexer] | None:
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
    broken = False

    def __init__(self, rules: TagRules) -> None:
        self._rules = rules
        self.watch = rules.between
        self.pairs: list[Pair] = []
        self._key = ""
        self._type = ""
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
            self.pairs.append(Pair(self._key, "".join(parts[self._from :]), self._type))
        if kind == "end":
            self.watch = self._rules.between
            return found.spans["region_end"][0]
        self._key, self._type = found.groups.get("key", ""), found.groups.get("type", "")
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
        self.pairs.append(Pair(self._key, value[: match.start()], self._type))
        self.watch = self._rules.between
        return match["region_end"]
