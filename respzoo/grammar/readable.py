"""A tool's parameters as engines read them: the same for xgrammar's own reading of JSON Schemas and for ours.

Clients send what JSON Schema does not know (`"type": "any"`, `"required": null`), what an engine refuses (a list of
`items`, a property that is `false`, a reference to nowhere) and what it takes for "anything" (`allOf` of several parts,
unions beside properties). All that is said another way here, no stricter than it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from respzoo.schema import json_type, pointed

__all__ = ["readable"]

Schema = Mapping[str, Any]

_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_SAYS_WHAT = (
    "properties",
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "$ref",
    "anyOf",
    "oneOf",
    "allOf",
    "enum",
    "const",
)
_NOTES = frozenset({"title", "description", "default", "examples", "deprecated", "$comment", "$defs", "definitions"})
_MAPS = ("properties", "patternProperties", "$defs", "definitions")
_INNER = ("additionalProperties", "unevaluatedProperties", "propertyNames", "contains")
_LARGEST = 2**63 - 1
_DEEPEST = 32  # references in references, to merge them


def readable(parameters: Schema) -> dict[str, Any]:
    """The schema of an object, with nothing in it that is read in two ways."""
    root = _Reader(parameters).schema(parameters)
    unions = [union for union in ("anyOf", "oneOf") if union in root]
    if unions:
        rest = {key: value for key, value in root.items() if key not in unions}
        notes = {key: rest.pop(key) for key in [*rest] if key in _NOTES}
        parts = [
            part if "$ref" in part and not rest else _Reader(root).together([rest, part]) for part in root[unions[0]]
        ]
        return {**notes, "anyOf": [part if "$ref" in part else _object(part) for part in parts]}
    return root if "$ref" in root else _object(root)


def _object(schema: Schema) -> dict[str, Any]:
    return _opened({**schema, "type": "object"})


def _opened(schema: dict[str, Any]) -> dict[str, Any]:
    """An object of which nothing is said may hold anything, as JSON Schema has it and xgrammar does not."""
    if schema.get("type") == "object" and not any(key in schema for key in _SAYS_WHAT):
        schema["additionalProperties"] = True
    return schema


class _Reader:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def schema(self, given: Any, seen: tuple[str, ...] = ()) -> dict[str, Any]:
        """One schema, with all in it."""
        if not isinstance(given, Mapping):
            return {}
        plain = self._parts(cast("Schema", given), seen)
        reference = plain.get("$ref")
        if reference is not None and not self._leads(reference):
            del plain["$ref"]
        parts = plain.pop("allOf", None)
        if parts:
            whole = {key: value for key, value in plain.items() if key not in _NOTES}
            if len(parts) == 1 and not whole:
                return {**parts[0], **plain}
            notes = {key: value for key, value in plain.items() if key in _NOTES}
            return _opened({**self.together([whole, *parts], seen), **notes})
        return _opened(_typed(plain))

    def together(self, parts: Sequence[Schema], seen: tuple[str, ...] = ()) -> dict[str, Any]:
        """One schema of parts that all hold: their properties, and what is required, come together."""
        merged: dict[str, Any] = {}
        for part in parts:
            at: Schema = part
            reference: Any = part.get("$ref")
            if reference is not None:
                target = pointed(self._root, reference)
                again = reference in seen or len(seen) > _DEEPEST
                at = {} if again else self.schema(target, (*seen, reference))
                at = self.together(
                    [at, {key: value for key, value in part.items() if key != "$ref"}], (*seen, reference)
                )
            properties = {**merged.get("properties", {}), **at.get("properties", {})}
            for key in merged.get("properties", {}).keys() & at.get("properties", {}).keys():
                properties[key] = self.together([merged["properties"][key], at["properties"][key]], seen)
            required = list(dict.fromkeys([*merged.get("required", []), *at.get("required", [])]))
            merged.update({key: value for key, value in at.items() if key not in _NOTES})
            merged.update({key: held for key, held in (("properties", properties), ("required", required)) if held})
        return _typed(merged)

    def _parts(self, given: Schema, seen: tuple[str, ...]) -> dict[str, Any]:
        """The same with each schema in it read."""
        plain = dict(given)
        for key in [*_MAPS, *_INNER, "items", "prefixItems", "anyOf", "oneOf", "allOf"]:
            value: Any = plain.pop(key, None)
            if key in _MAPS and isinstance(value, Mapping):
                inner = cast("Schema", value)
                plain[key] = {name: self.schema(item, seen) for name, item in inner.items() if item is not False}
            elif key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
                branches = [self.schema(item, seen) for item in cast("list[Any]", value) if item is not False]
                plain.update({key: branches} if branches else {})
            elif key in ("items", "prefixItems") and isinstance(value, list):
                plain["prefixItems"] = [self.schema(item, seen) for item in cast("list[Any]", value)]
                if key == "items" and (more := plain.pop("additionalItems", None)) is not None:
                    plain["items"] = more if isinstance(more, bool) else self.schema(more, seen)
            elif isinstance(value, bool) and key not in _MAPS:
                plain[key] = value
            elif isinstance(value, Mapping):
                plain[key] = self.schema(value, seen)
        if not plain.get("prefixItems", True):
            del plain["prefixItems"]
        return plain

    def _leads(self, reference: Any) -> bool:
        """Whether a reference leads to something, and not back to itself."""
        seen: set[str] = set()
        while isinstance(reference, str) and reference.startswith("#") and reference not in seen:
            seen.add(reference)
            target: Any = pointed(self._root, reference)
            if not isinstance(target, Mapping):
                return target is True
            if "$ref" not in target:
                return True
            reference = cast("Schema", target)["$ref"]
        return False


def _typed(schema: dict[str, Any]) -> dict[str, Any]:
    """What is said of types, constants and keys, as it can be meant."""
    plain = dict(schema)
    declared: Any = plain.pop("type", None)
    named: Any = plain.pop("enum", None)
    required: Any = plain.pop("required", None)
    several: list[Any] = cast("list[Any]", declared) if isinstance(declared, list) else [declared]
    types = [name for name in several if name in _TYPES]
    nullable = plain.pop("nullable", None) is True
    if isinstance(named, list) and named:
        plain["enum"] = [*named, *([None] if nullable and None not in named else [])]
    constants: list[Any] = [plain["const"]] if "const" in plain else plain.get("enum", [])
    if any(isinstance(value, int) and abs(value) > _LARGEST for value in constants):  # xgrammar would write a float
        types = list(dict.fromkeys(map(json_type, constants)))
        plain.pop("const", None)
        plain.pop("enum", None)
    if types:
        types += ["null"] if nullable and "null" not in types else []
        plain["type"] = types[0] if len(types) == 1 else types
    if isinstance(required, list):
        plain["required"] = [key for key in cast("list[Any]", required) if isinstance(key, str)]
        if "properties" in plain:
            others: Any = plain.get("additionalProperties")
            other: Schema = cast("Schema", others) if isinstance(others, Mapping) else {}
            plain["properties"] = {**plain["properties"]}
            for key in plain["required"]:
                plain["properties"].setdefault(key, other)
    return plain
