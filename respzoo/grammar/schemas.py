"""JSON Schemas as grammars: what a value looks like that fits a schema, in one notation or another.

xgrammar knows this for JSON. Models also write Python (`[f(days=[1, 2], deep=True)]`), JSON with marks of their own
around strings, and JSON inside tags whose closing tag a string must not imitate. What is said of types, properties,
items, constants and references goes into the grammar; ranges, lengths, patterns and formats do not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, cast

from respzoo.grammar.ebnf import Rules, choice, quote, series
from respzoo.schema import pointed

__all__ = [
    "ANY",
    "Notation",
    "Properties",
    "Values",
    "alternatives",
    "arranged",
    "constants",
    "items_of",
    "objects_of",
    "properties_of",
    "types_of",
]

ANY: Mapping[str, Any] = {}
"""The schema that says nothing."""

Schema = Mapping[str, Any]

_SPACE = "[ \\t\\r\\n]{0,32}"
_NUMBERS = {
    "integer": '"-"? ("0" | [1-9] [0-9]{0,15})',
    "number": '"-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,17})? ([eE] [+\\-]? [0-9]{1,2})?',
}
_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_MOST_IN_ANY_ORDER = 5  # 32 rules, each a choice of what is left
_MOST_STEPS = 64  # through references and unions


@dataclass(frozen=True)
class Notation:
    """How values are written.

    Attributes:
        string: the rule of any string, marks and all.
        written: a string's texts; none if it cannot be written.
        key: an object's key.
        words: of true, false and null.
        any_key: the rule of any key.
        sorts: whether chat templates sort an object's keys.
    """

    string: str
    written: Callable[[str], Sequence[str]]
    key: Callable[[str], Sequence[str]]
    words: Mapping[str, Sequence[str]]
    any_key: str
    sorts: bool = False


@dataclass(frozen=True)
class Properties:
    """What an object may hold: its keys in order, with their schemas and whether they must be there, and what other
    keys hold (None: there are no others)."""

    named: Sequence[tuple[str, Any, bool]]
    others: Any


class Values:
    """Rules for values of one tool's schemas, which its references point into."""

    def __init__(self, rules: Rules, notation: Notation, root: Schema) -> None:
        self._rules = rules
        self._notation = notation
        self._root = root
        self._known: dict[str, str] = {}

    def value(self, schema: Any) -> str:
        """The rule of a value that fits a schema."""
        key = json.dumps(schema, sort_keys=True, default=str)
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = self._rules.reserve("value")
            self._rules.define(name, choice(self._forms(schema)))
        return name

    def _forms(self, schema: Any) -> Iterator[str]:
        for part in alternatives(schema, self._root):
            named = constants(part)
            if named is not None:
                yield from (text for value in named for text in self._constant(value))
                continue
            for kind in types_of(part):
                yield self._of_type(kind, part)

    def _of_type(self, kind: str, schema: Schema) -> str:
        match kind:
            case "string":
                return self._notation.string
            case "integer" | "number":
                return self._rules.add(_NUMBERS[kind], kind)
            case "boolean":
                return choice(quote(word) for name in ("true", "false") for word in self._notation.words[name])
            case "null":
                return choice(map(quote, self._notation.words["null"]))
            case "array":
                return self._array(schema)
            case _:
                return self.object(properties_of(schema, self._root))

    def _constant(self, value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield from map(quote, self._notation.written(value))
        elif isinstance(value, bool) or value is None:
            yield from map(quote, self._notation.words[json.dumps(value)])
        elif isinstance(value, int | float):
            yield quote(json.dumps(value))
        elif isinstance(value, list):
            items = [choice(self._constant(item)) for item in cast("list[Any]", value)]
            yield series(['"["', _listed(items), '"]"'])
        elif isinstance(value, dict):
            pairs = [
                series([self._key(key), _SPACE, '":"', _SPACE, choice(self._constant(item))])
                for key, item in cast("dict[str, Any]", value).items()
            ]
            yield series(['"{"', _listed(pairs), '"}"'])

    def _array(self, schema: Schema) -> str:
        first: Sequence[Any] = schema.get("prefixItems") or ()
        low, high = items_of(schema)
        first = first if high is None else first[:high]
        rest: Any = schema.get("items", ANY)
        more = 0 if rest is False else None if high is None else high - len(first)
        comma = series([_SPACE, '","', _SPACE])
        fixed = [part for one in first for part in (comma, self.value(one))][1:]
        if more == 0:
            return series(['"["', _SPACE, *fixed, _SPACE, '"]"'])
        item = self.value(rest)
        least = max(low - len(first), 0)
        if fixed:
            upper = "" if more is None else str(more)
            return series(['"["', _SPACE, *fixed, f"({comma} {item}){{{least},{upper}}}", _SPACE, '"]"'])
        upper = "" if more is None else str(more - 1)
        filled = series([_SPACE, item, f"({comma} {item}){{{max(least - 1, 0)},{upper}}}", _SPACE])
        return series(['"["', filled if least else f"({choice([filled, _SPACE])})", '"]"'])

    def object(self, properties: Properties) -> str:
        """An object with these properties, in their order."""
        pairs = [
            (series([self._key(key), _SPACE, '":"', _SPACE, self.value(schema)]), needed)
            for key, schema, needed in properties.named
        ]
        other = None
        if properties.others is not None:
            other = series([self._notation.any_key, _SPACE, '":"', _SPACE, self.value(properties.others)])
        orders = [pairs]
        if self._notation.sorts:
            keys = [key for key, _, _ in properties.named]
            orders.append([pair for _, pair in sorted(zip(keys, pairs, strict=True), key=lambda one: one[0])])
        separator = series([_SPACE, '","', _SPACE])
        bodies = [arranged(self._rules, order, other, separator) for order in orders]
        return series(['"{"', _SPACE, choice(bodies), _SPACE, '"}"'])

    def _key(self, key: str) -> str:
        return choice(map(quote, self._notation.key(key)))


def arranged(rules: Rules, pairs: Sequence[tuple[str, bool]], other: str | None, separator: str) -> str:
    """These expressions, each once at most and those that must be there once, and behind them any number of `other`: in
    any order if they are few, else in their own."""
    rest_first = rest_later = '""'
    if other is not None:
        rest_later = f"({separator} {other})*"
        rest_first = f"({other} {rest_later})?"
    if 1 < len(pairs) <= _MOST_IN_ANY_ORDER:
        return _in_any_order(rules, pairs, rest_first, rest_later, separator)
    first, later = rest_first, rest_later
    for pair, needed in reversed(pairs):
        with_first, with_later = series([pair, later]), series([separator, pair, later])
        first = rules.add(with_first if needed else f"{with_first} | {first}", "first")
        later = rules.add(with_later if needed else f"{with_later} | {later}", "more")
    return first


def _in_any_order(
    rules: Rules, pairs: Sequence[tuple[str, bool]], rest_first: str, rest_later: str, separator: str
) -> str:
    """One rule for each set of expressions that are still to come."""
    every = frozenset(range(len(pairs)))
    names: dict[frozenset[int], str] = {}
    for size in range(len(pairs) + 1):
        for left in map(frozenset, combinations(sorted(every), size)):
            begun = left != every
            parts = [series([separator if begun else "", pairs[one][0], names[left - {one}]]) for one in sorted(left)]
            if not any(pairs[one][1] for one in left):
                parts.append(rest_later if begun else rest_first)
            names[left] = rules.add(" | ".join(parts), "left")
    return names[every]


def _listed(items: Sequence[str]) -> str:
    parts = [_SPACE]
    for index, item in enumerate(items):
        parts += [f'"," {_SPACE}' if index else "", item, _SPACE]
    return series(parts)


def alternatives(schema: Any, root: Schema) -> list[Schema]:
    """What a schema allows, its references and unions followed; a part that says nothing allows everything."""
    found: list[Schema] = []
    stack: list[tuple[Any, Schema]] = [(schema, {})]
    for _ in range(_MOST_STEPS):
        if not stack:
            break
        at, known = stack.pop(0)
        if not isinstance(at, Mapping):
            found.append(known)  # true: anything
            continue
        at = cast("Schema", at)
        own = {**known, **{key: value for key, value in at.items() if key not in ("$ref", "anyOf", "oneOf", "allOf")}}
        reference = at.get("$ref")
        unions = [at[union] for union in ("anyOf", "oneOf") if isinstance(at.get(union), Sequence)]
        parts = at.get("allOf")
        if isinstance(reference, str) and reference.startswith("#"):
            stack.insert(0, (pointed(root, reference), own))
        elif unions:
            stack[:0] = [(part, own) for part in cast("Sequence[Any]", unions[0])]
        elif isinstance(parts, Sequence) and parts:
            stack.insert(0, (_all_of(cast("Sequence[Any]", parts), root), own))
        else:
            found.append(own)
    return found or [ANY]


def _all_of(parts: Sequence[Any], root: Schema) -> Schema:
    """One schema of parts that all hold: their properties and what is required come together."""
    merged: dict[str, Any] = {}
    for part in parts:
        at: Any = part
        if isinstance(at, Mapping) and isinstance(reference := cast("Schema", at).get("$ref"), str):
            at = pointed(root, reference)
        given: Schema = cast("Schema", at) if isinstance(at, Mapping) else {}
        properties = {**merged.get("properties", {}), **given.get("properties", {})}
        required = [*merged.get("required", []), *given.get("required", [])]
        merged.update(given)
        merged.update({key: held for key, held in (("properties", properties), ("required", required)) if held})
    return merged


def constants(schema: Schema) -> list[Any] | None:
    """The values that a schema names one by one."""
    if "const" in schema:
        return [schema["const"]]
    named = schema.get("enum")
    return list(cast("Sequence[Any]", named)) if isinstance(named, Sequence) and not isinstance(named, str) else None


def types_of(schema: Schema) -> list[str]:
    """The JSON types that one alternative allows."""
    declared: Any = schema.get("type")
    if isinstance(declared, str):
        found = [declared]
    elif isinstance(declared, Sequence):
        found = [name for name in cast("Sequence[Any]", declared) if isinstance(name, str)]
    elif "properties" in schema or "additionalProperties" in schema:
        found = ["object"]
    elif "items" in schema:
        found = ["array"]
    else:
        found = list(_TYPES)
    found = [name for name in found if name in _TYPES] or list(_TYPES)
    if "number" in found:
        found = [name for name in found if name != "integer"]
    if schema.get("nullable") is True and "null" not in found:
        found.append("null")
    return found


def properties_of(schema: Schema, root: Schema) -> Properties:
    """What an object of one alternative may hold. As in xgrammar, an object that names its keys has no others unless
    it says so."""
    given: Any = schema.get("properties")
    named = dict(cast("Schema", given)) if isinstance(given, Mapping) else {}
    listed: Any = schema.get("required")
    required = [key for key in cast("Sequence[Any]", listed) if isinstance(key, str)] if _is_list(listed) else []
    more: Any = schema.get("additionalProperties")
    others: Any = None
    if isinstance(more, Mapping):
        others = cast("Schema", more)
    elif more is True or (more is None and not isinstance(given, Mapping)):
        others = ANY
    for key in required:
        named.setdefault(key, others if others is not None else ANY)
    return Properties([(key, of_key, key in required) for key, of_key in named.items()], others)


def items_of(schema: Schema) -> tuple[int, int | None]:
    """How many items a list has: at least, and at most."""
    low, high = schema.get("minItems"), schema.get("maxItems")
    return low if isinstance(low, int) else 0, high if isinstance(high, int) else None


def objects_of(root: Schema) -> list[Properties]:
    """The objects that a tool's own schema allows."""
    return [properties_of(part, root) for part in alternatives(root, root)]


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
