"""Calls whose arguments stand in tags: the regions of `xml-inline` and `xml-tree`.

A text value ends where its closing tag stands and what follows a value follows. So it may hold that tag, and all else
but what the parser would take for its end: an opening tag, a call, its closing tag with the call's end behind it.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from respzoo.content.tags import ENDINGS
from respzoo.content.xml_inline import halves
from respzoo.fields import GIVEN_BACK, Field
from respzoo.grammar.dispatched import text_without
from respzoo.grammar.ebnf import GAP, Rules, before, choice, fill, fitting, holds, quote, require, series, spell
from respzoo.grammar.notations import json_in_tags
from respzoo.grammar.schemas import (
    ANY,
    Properties,
    Values,
    alternatives,
    arranged,
    constants,
    items_of,
    objects_of,
    properties_of,
    types_of,
)
from respzoo.grammar.shapes import Tool
from respzoo.grammar.texts import Texts
from respzoo.patterns import Node, Repeat, Series, Unsupported, groups, read
from respzoo.schema import json_type

__all__ = ["InlineTags", "TreeTags"]

_Words = Mapping[str, Sequence[str]]
_SCALARS = ("string", "integer", "number", "boolean", "null")
_PYTHON_TOO = {"true": ("true", "True"), "false": ("false", "False"), "null": ("null", "None")}


class _Tags:
    """What both kinds share: texts that the parser does not take for the value's end."""

    def __init__(self, rules: Rules, field: Field, opening: str, closing: str, between: str, proof: str) -> None:
        """`opening` and `closing` are the patterns of tags; `proof` is what proves a closing one, `between` what may
        stand before that."""
        self._rules = rules
        self._field = field
        self._texts, inner = _searches(opening, rf"(?:{closing}){between}", proof, _call(field), _closer(field))
        self.text = text_without(rules, self._texts)
        self.json = json_in_tags(rules, inner)

    def _scalars(
        self, values: Values, schema: Any, root: Mapping[str, Any], words: _Words
    ) -> Iterator[tuple[str, str]]:
        """The type and the text of each value that fits a schema, strings unquoted."""
        for part in alternatives(schema, root):
            named = constants(part)
            if named is not None:
                texts = [(json_type(value), self._constant(values, value, words)) for value in named]
                yield from ((kind, choice(some)) for kind, some in texts if some)
                continue
            kinds = types_of(part)
            for kind in kinds:
                match kind:
                    case "string":
                        yield kind, self.text
                    case "boolean":
                        yield kind, choice(quote(word) for name in ("true", "false") for word in words[name])
                    case "null":
                        yield kind, choice(map(quote, words["null"]))
                    case _:
                        yield kind, values.value({**part, "type": kind})

    def _constant(self, values: Values, value: Any, words: _Words) -> list[str]:
        if isinstance(value, str):
            return [quote(value)] if self._texts.take(value) else []
        if isinstance(value, bool) or value is None:
            return [quote(word) for word in words[{True: "true", False: "false", None: "null"}[value]]]
        return [values.value({"const": value})]


_MOST_STATES = 400  # of a search; a grammar holds all of them


@lru_cache(256)  # what a template's texts must not hold is the same for all tools
def _searches(opening: str, end: str, proof: str, call: str, closer: str) -> tuple[Texts, Texts]:
    """Texts that hold no opening tag, no call and no end (a closing tag and what proves it), and that do not end with
    what the real closing tag would prove or complete: a search for all of these, or where that is too large, for what
    they begin with. And the same for texts inside of others, whose end proves nothing."""
    tag = read(opening)
    keys = [group for group in groups(tag) if group.name == "key"]
    begun = [Series((*before(tag, {"key"}).items, *keys[:1]))] if keys else []
    ends, last = read(rf"{end}(?:{proof})"), [read(end), *begun]
    try:
        calls = [read(rf"(?:{call})\s*(?:{opening}|{closer})")] if call else []
        sought = [read(opening), *calls, ends]
        return Texts(sought, trailing=last, most=_MOST_STATES), Texts(sought, most=_MOST_STATES)
    except Unsupported:
        short = [before(read(opening), {"key"}), *([before(read(call), {"name", "id"})] if call else [])]
        sought = [*(tree for tree in short if tree.items), ends]
        return Texts(sought, trailing=last), Texts(sought)


def _call(field: Field) -> str:
    """The pattern that begins a call, if the text that it gives back does not make it match elsewhere."""
    if field.open is None or GIVEN_BACK in field.open.pattern.groupindex:
        return ""
    return field.open.pattern.pattern


def _closer(field: Field) -> str:
    if field.close is None:
        raise Unsupported("regions of tags that nothing closes")
    return field.close.pattern.pattern


class InlineTags(_Tags):
    """`xml-inline`: one tag an argument."""

    def __init__(self, rules: Rules, field: Field) -> None:
        args = field.content.args
        found = halves(args.get("tag_pattern", ""))
        if found is None:
            raise Unsupported("a tag_pattern that is not an opening tag, a value and a closing tag")
        opening, closing = found
        super().__init__(rules, field, opening, closing, ENDINGS, _closer(field))
        self._opening, self._closing = read(opening), spell(read(closing))
        self._source = opening
        self._escapes = bool(field.extended and args.get("unescape_keys"))
        types: Mapping[str, Mapping[str, Any]] = (args.get("types") or {}) if field.extended else {}
        self._types = {name: spec.get("name", "text") for name, spec in types.items()}

    def arguments(self, tool: Tool) -> str:
        """All the tags of a call."""
        root = tool.schema
        values = Values(self._rules, self.json, root)
        bodies: list[str] = []
        for properties in objects_of(root):
            pairs = [(self._argument([key], schema, values, root), needed) for key, schema, needed in properties.named]
            other = None if properties.others is None else self._argument(None, properties.others, values, root)
            bodies.append(arranged(self._rules, pairs, other, GAP))
        return series([GAP, choice(bodies), GAP])

    def _argument(self, key: list[str] | None, schema: Any, values: Values, root: Mapping[str, Any]) -> str:
        """A tag of this key (None: of any) with a value that fits the schema."""
        given: dict[str, list[str]] = {}
        tag = self._opening
        if key is not None:
            given["key"] = _spellings(key[0]) if self._escapes else key
            require(self._source, tag, "key", given["key"][0])
            tag = fitting(self._source, tag, "key", given["key"][0])
        by_type: dict[str | None, list[str]] = {}
        for kind, text in self._values(schema, values, root):
            by_type.setdefault(self._type(kind), []).append(text)
        tags: list[str] = []
        for name, texts in by_type.items():
            opening = fill(tag, given if name is None else {**given, "type": [name]})
            tags.append(series([spell(opening), choice(texts), self._closing]))
        return self._rules.add(choice(tags), "tag")

    def _values(self, schema: Any, values: Values, root: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        words = self.json.words if self._types else _PYTHON_TOO
        found = list(self._scalars(values, schema, root, words))
        if not self._types and any(text == self.text for _, text in found):
            yield "string", self.text  # any other is a text, too
            return
        for kind, text in found:
            yield kind, text if kind == "string" else series(["[ \\t\\r\\n]{0,2}", text, "[ \\t\\r\\n]{0,2}"])

    def _type(self, kind: str) -> str | None:
        """What a tag says of a value's type."""
        if not self._types:
            return None
        texts = [name for name, parser in self._types.items() if parser == "text"]
        others = [name for name in self._types if name not in texts]
        if kind == "string":
            return texts[0] if texts else None
        wanted = [kind, "number"] if kind == "integer" else [kind]
        return next((name for name in wanted if name in others), others[0] if others else None)


class TreeTags(_Tags):
    """`xml-tree`: tags in tags."""

    def __init__(self, rules: Rules, field: Field) -> None:
        args = field.content.args
        opening, closing = args["open_tag"], args["close_tag"]
        super().__init__(rules, field, opening, closing, r"\s*", rf"{opening}|{closing}|{_closer(field)}")
        self._source = opening
        self._opening, self._closing = read(opening), read(closing)
        self._item: str = args.get("item", "")
        self._escapes = bool(args.get("unescape_keys"))
        types: Mapping[str, Any] = args.get("types") or {}
        self._types = {
            name: spec if isinstance(spec, str) else spec.get("name", "text") for name, spec in types.items()
        }
        self._known: dict[tuple[str, str, str], str] = {}

    def arguments(self, tool: Tool) -> str:
        """All the tags of a call."""
        root = tool.schema
        values = Values(self._rules, self.json, root)
        return series([GAP, choice(self._object(properties, values, root) for properties in objects_of(root)), GAP])

    def _object(self, properties: Properties, values: Values, root: Mapping[str, Any]) -> str:
        pairs = [(self._tag(key, schema, values, root), needed) for key, schema, needed in properties.named]
        other = None if properties.others is None else self._tag("", properties.others, values, root)
        return arranged(self._rules, pairs, other, GAP)

    def _tag(self, key: str | None, schema: Any, values: Values, root: Mapping[str, Any]) -> str:
        """A tag with a value that fits the schema. Its key: None is that of an item in a list, "" any."""
        known = (repr(key), repr(schema), repr(root))
        name = self._known.get(known)
        if name is None:
            name = self._known[known] = self._rules.reserve("tag")
            tags = [self._framed(key, kind, text) for kind, text in self._held(schema, values, root)]
            self._rules.define(name, choice(tags))
        return name

    def _held(self, schema: Any, values: Values, root: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        for part in alternatives(schema, root):
            named = constants(part)
            kinds = [] if named is not None else types_of(part)
            if named is not None:
                whole = [_piecewise(value) for value in named if isinstance(value, dict | list)]
                simple = [value for value in named if not isinstance(value, dict | list)]
                yield from self._scalars(values, {"enum": simple}, root, self.json.words)
                yield from (held for schema in whole for held in self._held(schema, values, root))
            scalars = [kind for kind in kinds if kind in _SCALARS]
            if scalars and not self._types and "string" in scalars:
                scalars = ["string"]
            yield from self._scalars(values, {**part, "type": scalars}, root, self.json.words) if scalars else ()
            if not self._types and "string" in scalars and "type" in part:
                continue  # an object or a list would be a text
            if "array" in kinds:
                yield "array", self._array(part, values, root)
            if "object" in kinds:
                yield "object", series([GAP, self._object(properties_of(part, root), values, root), GAP])

    def _array(self, schema: Mapping[str, Any], values: Values, root: Mapping[str, Any]) -> str:
        low, high = items_of(schema)
        given: Sequence[Any] = schema.get("prefixItems") or ()
        first = given[:high]
        fixed = [part for one in first for part in (self._tag(None, one, values, root), GAP)]
        rest: Any = schema.get("items", ANY)
        if rest is False or high == len(first):
            return series([GAP, *fixed])
        item = self._tag(None, rest, values, root)
        most = "" if high is None else high - len(first)
        return series([GAP, *fixed, f"({item} {GAP}){{{max(low - len(first), 0)},{most}}}"])

    def _framed(self, key: str | None, kind: str, text: str) -> str:
        texts: dict[str, list[str]] = {}
        if self._types:
            wanted = {"array": "list", "object": "object", "string": "text"}.get(kind, "json")
            stated = next((name for name, holds in self._types.items() if holds == wanted), None)
            if stated is None:
                raise Unsupported(f"tags that state no type for a value of type {kind}")
            texts["type"] = [stated]
        if key is None:
            key = self._item
            opening = self._opening if key else _omitted(self._opening, "key")
        else:
            opening = self._opening if key else _demanded(self._opening, "key")
        if key:
            texts["key"] = _spellings(key) if self._escapes else [key]
            require(self._source, self._opening, "key", texts["key"][0])
        return series([spell(fill(opening, texts)), text, spell(fill(self._closing, texts))])


def _piecewise(value: Any) -> dict[str, Any]:
    """The schema of a constant that is written in pieces."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value)
        held = {key: {"const": item} for key, item in pairs.items()}
        return {"type": "object", "properties": held, "required": list(pairs), "additionalProperties": False}
    return {"type": "array", "prefixItems": [{"const": item} for item in value], "items": False}


def _spellings(key: str) -> list[str]:
    """A key in an attribute, as `html.escape` writes it, and with no more escaped than must be."""
    return list(dict.fromkeys([html.escape(key), key.replace("&", "&amp;").replace('"', "&quot;")]))


def _omitted(node: Node, name: str) -> Node:
    """The tree without the optional part that holds this group."""
    if isinstance(node, Series):
        return Series(tuple(_omitted(item, name) for item in node.items))
    if isinstance(node, Repeat) and node.low == 0 and node.high == 1 and holds(node.item, {name}):
        return Series(())
    if holds(node, {name}):
        raise Unsupported("tags that all have a key, and no name for a list's items")
    return node


def _demanded(node: Node, name: str) -> Node:
    """The tree with the part that holds this group no longer optional."""
    if isinstance(node, Series):
        return Series(tuple(_demanded(item, name) for item in node.items))
    return node.item if isinstance(node, Repeat) and node.low == 0 and holds(node.item, {name}) else node
