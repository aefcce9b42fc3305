"""What a template's transform makes of a call, read backwards: where the model writes the name and the arguments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from respzoo.fields import Field
from respzoo.grammar.readable import readable
from respzoo.grammar.schemas import objects_of
from respzoo.patterns import Unsupported
from respzoo.transform import placeholder

__all__ = ["Shape", "Tool", "rebased", "shape_of"]

Path = tuple[str, ...]

_ANY_OBJECT: Mapping[str, Any] = {"type": "object", "additionalProperties": True}


@dataclass(frozen=True)
class Tool:
    """A function that may be called. `parameters`: the schema of its arguments; `exact`: whether they must fit it."""

    name: str
    parameters: Mapping[str, Any]
    exact: bool

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The schema that its arguments are held to."""
        return self._readable if self.exact and self.parameters else _ANY_OBJECT

    @cached_property
    def needs_arguments(self) -> bool:
        """Whether there is one that must be there."""
        return any(needed for one in objects_of(self._readable) for _, _, needed in one.named)

    @cached_property
    def _readable(self) -> Mapping[str, Any]:
        return readable(self.parameters)


@dataclass(frozen=True)
class Shape:
    """Where one call's parts stand: paths into a region's value, or into each item of it. No path at all: the name
    stands in the opener, the arguments are the value."""

    names: Sequence[Path]
    arguments: Sequence[Path]
    arguments_needed: bool
    ids: Sequence[Path]
    id_needed: bool
    listed: bool
    pairs: bool

    @property
    def in_opener(self) -> bool:
        """Whether the opener holds the name, and the region's value is the arguments."""
        return not self.names and not self.pairs

    def schemas(self, tool: Tool, parameters: Any, *, bare: bool) -> Iterator[dict[str, Any]]:
        """Schemas of the JSON object that is a call, one for each way of writing it. `bare`: its first key is one that
        the template reads."""
        if self.pairs:
            yield _object([((tool.name,), parameters)])
            return
        needless = not self.arguments_needed and not tool.needs_arguments
        for name, arguments in itertools.product(self.names, self.arguments):
            called = (name, {"const": tool.name})
            parts = [called, (arguments, parameters)]
            if not self.id_needed:
                yield _object(parts) if bare else _known_beside(_object(parts), self.ids)
                if needless:
                    yield _object([called])
            for of_id in self.ids:
                written = (of_id, {"type": "string"})
                if not bare:
                    yield _object([written, *parts])
                yield _object([*parts, written])


# What models write before a call's name, whether or not the template reads it: as optional keys.
_BESIDE: Mapping[str, Any] = {
    "id": {"type": ["string", "integer"]},
    "tool_call_id": {"type": ["string", "integer"]},
    "type": {"const": "function"},
}


def _known_beside(schema: dict[str, Any], ids: Sequence[Path]) -> dict[str, Any]:
    read = {path[0] for path in ids}
    beside = {key: held for key, held in _BESIDE.items() if key not in schema["properties"] and key not in read}
    return {**schema, "properties": {**beside, **schema["properties"]}}


def _object(parts: Sequence[tuple[Path, Any]]) -> dict[str, Any]:
    """The schema of an object that holds these at their paths, in this order."""
    properties: dict[str, Any] = {}
    inner: dict[str, list[tuple[Path, Any]]] = {}
    for path, schema in parts:
        if len(path) == 1:
            properties[path[0]] = schema
        else:
            properties.setdefault(path[0], None)
            inner.setdefault(path[0], []).append((path[1:], schema))
    properties.update({key: _object(held) for key, held in inner.items()})
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def shape_of(field: Field, groups: Sequence[str]) -> Shape:
    """Read a field's transform backwards; `groups` are those of its opener.

    Raises:
        Unsupported: it makes something else than a call of what the model writes.
    """
    transform: Any = field.transform
    call: Mapping[str, Any] = cast("Mapping[str, Any]", transform) if isinstance(transform, Mapping) else {}
    function: Any = call.get("function")
    if isinstance(function, str):
        function = {key: f"{function[:-1]}.{key}}}" for key in ("name", "arguments")}
    if not isinstance(function, Mapping):
        raise Unsupported("its transform does not make a function call")
    function = cast("Mapping[str, Any]", function)
    if field.transform_each == "pairs":
        if (function.get("name"), function.get("arguments")) != ("{key}", "{value}"):
            raise Unsupported("its transform does not take a pair for a call")
        return Shape([], [], True, [], False, True, True)
    named, arguments = (_paths(field, groups, function.get(key)) for key in ("name", "arguments"))
    given_id = call.get("id")
    ids, id_needed = ([], False) if given_id is None else _paths(field, groups, given_id)
    listed = bool(field.transform_each)
    if not named[0] and not listed and arguments[0] == [()]:
        return Shape([], [], True, [], False, False, False)
    if not named[0] or () in arguments[0]:
        raise Unsupported("the name and the arguments of a call stand in different places")
    return Shape(named[0], *arguments, ids, id_needed, listed, False)


def _paths(field: Field, groups: Sequence[str], text: Any) -> tuple[list[Path], bool]:
    """The places in a region's value that a placeholder names, and whether one of them must be there; none for what
    stands in the opener."""
    named = placeholder(text, field.extended) if isinstance(text, str) else None
    if named is None:
        raise Unsupported(f"its transform holds {text!r} where a call has its own")
    found: list[Path] = []
    for path in named.paths:
        if field.transform_each:
            found.append(path)
        elif path[0] == "content":
            found.append(path[1:])
        elif path[0] not in groups:
            raise Unsupported(f"its transform names {path[0]!r}, which its opener does not")
    return found, not named.optional


def rebased(schema: Any, place: str) -> Any:
    """A schema as part of another: what its references point at lies at `place` now."""
    if isinstance(schema, Mapping):
        plain = cast("Mapping[str, Any]", schema)
        moved = {key: rebased(value, place) for key, value in plain.items()}
        reference = plain.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            moved["$ref"] = place + reference[1:]
        return moved
    if isinstance(schema, list):
        return [rebased(item, place) for item in cast("list[Any]", schema)]
    return schema
