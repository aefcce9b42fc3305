"""`xml-tree`: tags in tags, each an argument, an object's key or an item of a list.

`open_tag` and `close_tag` find them; a group `key` in `open_tag` names the argument, one in `close_tag` must be the
same. `item` is the key of a list's items. `types`: `open_tag` has a group `type`, and what it caught says what the tag
holds: `object`, `list`, or a value of a content parser's. `unescape_keys` reads XML entities in keys.

Without a type a tag that holds tags and nothing else is a list if all are items, else an object; it stays its text
where the tool's schema wants a string, and becomes what else the schema wants. Any other is its text, typed by the
schema.

A value of text may quote tags, whole ones: it ends where its own closing tag stands, and that counts only where a tag
or the region's end follows. The region's closer counts behind a closing tag (or before any tag), unless it closes a
call that is quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, ClassVar, cast

import regex

from respzoo.allowance import seconds_for
from respzoo.content.arguments import BOOLEAN, CONTENT, PATTERN, STRING, Argument
from respzoo.content.base import Borders, ContentParser, Lexer, Raw, ValueParser, ValueParsers
from respzoo.content.entities import unescape
from respzoo.content.tree_tags import TreeLexer, TreeRules

__all__ = ["DEEPEST_TREE", "XmlTree"]

DEEPEST_TREE = 100
_CONTAINERS = ("object", "list")


def _are_types(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    kinds = cast("Mapping[str, Any]", value).values()
    return all(kind in _CONTAINERS if isinstance(kind, str) else CONTENT.fits(kind) for kind in kinds)


class XmlTree(ContentParser):
    name: ClassVar[str] = "xml-tree"
    arguments: ClassVar[Mapping[str, Argument]] = {
        "open_tag": PATTERN,
        "close_tag": PATTERN,
        "item": STRING,
        "types": Argument("an object of 'object', 'list' or content parsers by type", _are_types),
        "unescape_keys": BOOLEAN,
    }

    def __init__(
        self, args: Mapping[str, Any], *, extended: bool = False, value_parser: ValueParsers | None = None
    ) -> None:
        super().__init__(args, extended=extended, value_parser=value_parser)
        if missing := [name for name in ("open_tag", "close_tag") if name not in args]:
            raise ValueError(f"needs {' and '.join(map(repr, missing))}")
        opening, closing = args["open_tag"], args["close_tag"]
        types: Mapping[str, Any] = args.get("types") or {}
        groups = regex.compile(opening, regex.DOTALL).groupindex
        if wanted := [name for name in (["key", "type"] if types else ["key"]) if name not in groups]:
            raise ValueError(f"'open_tag': needs a group named {' and one named '.join(map(repr, wanted))}")
        self.opening, self.closing = opening, closing
        self.tags = regex.compile(f"(?P<opens>{opening})|(?:{closing})", regex.DOTALL)
        self.follows = regex.compile(rf"\s*(?:\Z|{opening}|{closing})", regex.DOTALL)
        self.kinds: dict[str, str | ValueParser | None] = {
            name: kind if isinstance(kind, str) else self.value_parser(kind) for name, kind in types.items()
        }
        self.item: str = args.get("item", "")
        self.unescapes = bool(args.get("unescape_keys"))

    def is_text(self, kind: str) -> bool:
        """Whether a tag of this type holds its text as it stands."""
        types: Mapping[str, Any] = self.args.get("types") or {}
        stated: Any = types.get(kind, "")
        if isinstance(stated, str):
            return False
        args: Mapping[str, Any] = stated.get("args") or {}
        return stated.get("name", "text") == "text" and not args.get("strip", True)

    def parse(self, text: str, *, strict: bool = False) -> Any:
        try:
            return _Reader(self, text, quotes=True).root(strict=strict)
        except _Unclosed:  # a tag that is opened in a text and never closed is no quoted one
            return _Reader(self, text, quotes=False).root(strict=strict)

    def lexer(self, borders: Borders) -> Callable[[], Lexer] | None:
        if borders.close is None:
            return None
        rules = TreeRules(borders, borders.close, self.opening, self.closing)
        return lambda: TreeLexer(rules)

    def parse_lexed(self, lexer: Lexer | None, text: str, *, strict: bool = False) -> Any:
        if isinstance(lexer, TreeLexer) and lexer.fault:
            raise ValueError(lexer.fault)
        return self.parse(text, strict=strict)


class _Unclosed(ValueError):
    pass


class Tree(Raw):
    """What a tag without a type holds: text, or tags."""

    __slots__ = ("children", "item")

    def __init__(self, text: str, children: Sequence[tuple[str | None, Any]], item: str) -> None:
        super().__init__(text)
        self.children = children
        self.item = item

    @property
    def structured(self) -> bool:
        return bool(self.children)

    def parts(self, types: Set[str] = frozenset()) -> Any:
        if "array" in types and "object" not in types:
            return [value for _, value in self.children] if self.children or not self.text.strip() else self.text
        if not self.children:
            return {} if "object" in types and not self.text.strip() else self.text
        if "object" not in types and all(key == self.item for key, _ in self.children):
            return [value for _, value in self.children]
        return _gathered(self.children)


def _gathered(children: Sequence[tuple[str | None, Any]]) -> dict[str, Any]:
    """An object; a key that comes more than once has the list of its values."""
    values: dict[str, list[Any]] = {}
    for key, value in children:
        values.setdefault(key or "", []).append(value)
    return {key: found[0] if len(found) == 1 else found for key, found in values.items()}


class _Element:
    __slots__ = ("children", "holds_text", "key", "kind", "last", "quoted", "start")

    def __init__(self, key: str | None, kind: str | ValueParser | None, start: int) -> None:
        self.key = key
        self.kind = kind  # None: whatever it turns out to hold
        self.start = self.last = start  # where its text begins, and where the text behind its last child does
        self.children: list[tuple[str | None, Any]] = []
        self.holds_text = False  # beside tags
        self.quoted = 0  # tags that are open in its text

    @property
    def is_text(self) -> bool:
        return self.kind is not None and not isinstance(self.kind, str)


class _Reader:
    """Reads one region's text, tag by tag. `quotes`: tags in a typed text are counted."""

    def __init__(self, parser: XmlTree, text: str, *, quotes: bool) -> None:
        self.parser = parser
        self.text = text
        self.quotes = quotes
        self.stack = [_Element(None, "object", 0)]

    def root(self, *, strict: bool) -> dict[str, Any]:
        for match in self.parser.tags.finditer(self.text, timeout=seconds_for(self.text)):
            groups = match.groupdict()
            key = groups.get("key")
            if key is not None and self.parser.unescapes:
                key = unescape(key)
            if groups["opens"] is not None:
                self.opened(key, groups.get("type") or "", match)
            else:
                self.closed(key, match)
        root = self.stack[0]
        if len(self.stack) > 1:
            raise _Unclosed(f"the tag of {self.stack[-1].key!r} is never closed")
        self.between(root, len(self.text))
        return self.named(root, strict=strict)

    def opened(self, key: str | None, kind: str, match: regex.Match[str]) -> None:
        outer = self.stack[-1]
        if outer.is_text:
            outer.quoted += self.quotes
            return
        if len(self.stack) > DEEPEST_TREE:
            raise ValueError(f"more than {DEEPEST_TREE} levels of tags")
        self.between(outer, match.start())
        self.stack.append(_Element(key, self.parser.kinds.get(kind), match.end()))

    def closed(self, key: str | None, match: regex.Match[str]) -> None:
        element = self.stack[-1]
        if element.quoted:
            element.quoted -= 1
            return
        if key is not None and key != element.key:
            return  # some other's: text
        if len(self.stack) == 1:
            raise ValueError(f"{match[0]!r} closes nothing")
        outer = self.stack[-2]
        if self.parser.follows.match(self.text, match.end(), timeout=seconds_for("")) is None:
            if outer.kind is not None:
                return  # text
            outer.holds_text = True
        self.stack.pop()
        outer.children.append((element.key, self.value(element, match.start())))
        outer.last = match.end()

    def between(self, outer: _Element, end: int) -> None:
        """The text before a tag, or before the end, in an element that holds others."""
        text = self.text[outer.last : end]
        if not text.strip():
            return
        if outer.kind is not None:
            raise ValueError(f"text where a tag should stand: {text.strip()[:40]!r}")
        outer.holds_text = True

    def value(self, element: _Element, end: int) -> Any:
        kind, text = element.kind, self.text[element.start : end]
        if kind is None:
            if element.children:
                self.between(element, end)
            return Tree(text, [] if element.holds_text else element.children, self.parser.item)
        if isinstance(kind, str):
            self.between(element, end)
            return self.named(element, strict=True) if kind == "object" else [value for _, value in element.children]
        try:
            return kind(text)
        except (ValueError, RecursionError):
            return Raw(text)  # not what it says it is: the schema decides

    def named(self, element: _Element, *, strict: bool) -> dict[str, Any]:
        if any(key is None for key, _ in element.children):
            raise ValueError("a tag without a key, where each has one")
        found = _gathered(element.children)
        if strict and len(found) < len(element.children):
            raise ValueError("a key stands twice in one object")
        return found
