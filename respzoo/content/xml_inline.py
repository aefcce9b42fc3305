"""`xml-inline`: shallow tags, each a key and a value.

`tag_pattern` has the groups `key` and `value`; `value_parser` reads each value; `merge_duplicates` makes a list of the
values of a key that comes more than once. `types`: the pattern has a group `type`, and what it caught chooses the value
parser; such a value needs no schema. `unescape_keys` reads XML entities in keys.

A value may quote the markup itself. Where the pattern is of the usual shape (something, then a value of any
characters, then a closing tag), the region is followed tag by tag (see respzoo.content.tags; in the extended language,
respzoo.content.balanced_tags, which finds closing tags that are missing too).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

import regex

from respzoo.allowance import seconds_for
from respzoo.content.arguments import BOOLEAN, CONTENT, PATTERN, Argument
from respzoo.content.balanced_tags import BalancedTagLexer, BalancedTagRules
from respzoo.content.base import Borders, ContentParser, Lexer, Raw, ValueParsers
from respzoo.content.entities import unescape
from respzoo.content.tags import Pair, PlainTagLexer, TagLexer, TagRules
from respzoo.patterns import CharSet, Group, Repeat, Series, Unsupported, read

__all__ = ["XmlInline", "halves"]


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
        for match in self._pattern.finditer(text, timeout=seconds_for(text)):
            groups = match.groupdict()
            pairs.append(Pair(groups["key"] or "", groups.get("value") or "", groups.get("type") or ""))
        return self._collect(pairs, strict=strict)

    def argument(self, pair: Pair) -> tuple[str, Any]:
        """A tag's key and value, raw where the tool's schema is to type it."""
        key, text, kind = pair
        return unescape(key) if self._unescapes else key, self._value(text, kind)

    def is_text(self, kind: str) -> bool | None:
        """Whether a value in a tag of this type is its text as it stands; None: the tool's schema decides, and
        `takes_text` where it says nothing."""
        types: Mapping[str, Mapping[str, Any]] = self.extension("types") or {}
        if kind not in types:
            return None
        args: Mapping[str, Any] = types[kind].get("args") or {}
        return types[kind].get("name", "text") == "text" and not args.get("strip", True)

    @property
    def takes_text(self) -> bool:
        return self._value_parser is None

    def _collect(self, pairs: Sequence[Pair], *, strict: bool) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merge = self.args.get("merge_duplicates", False)
        merged: set[str] = set()
        for pair in pairs:
            key, value = self.argument(pair)
            if strict and key in result and not merge:
                raise ValueError(f"the argument {key!r} stands twice in one call")
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

    def lexer(self, borders: Borders) -> Callable[[], Lexer] | None:
        tags, close = None if self._pattern is None else halves(self._pattern.pattern), borders.close
        if tags is None or close is None:
            return None
        try:
            if self.extended:
                balance = BalancedTagRules(borders, close, *tags)
                return lambda: BalancedTagLexer(balance)
            rules = TagRules(borders, close, *tags)
        except regex.error:
            return None
        return lambda: PlainTagLexer(rules)

    def parse_lexed(self, lexer: Lexer | None, text: str, *, strict: bool = False) -> Any:
        if isinstance(lexer, BalancedTagLexer) and lexer.fault:
            raise ValueError(lexer.fault)
        if isinstance(lexer, TagLexer):
            return self._collect(lexer.pairs, strict=strict)
        return self.parse(text, strict=strict)


def halves(source: str) -> tuple[str, str] | None:
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
