"""Where a field's transform takes a call's name, id and arguments from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from respzoo.fields import Field

__all__ = ["Route", "Source", "route_of"]

_PLACEHOLDER = re.compile(r"\{([\w.]+(?:\|[\w.]+)*)\??\}")

Path = tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """One part of a call: as the template writes it, what a delimiter caught, or from these places of the content."""

    literal: str = ""
    captures: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()

    def caught(self, captures: Mapping[str, str]) -> str:
        return self.literal or next((captures[name] for name in self.captures if name in captures), "")


@dataclass(frozen=True)
class Route:
    name: Source
    id: Source
    arguments: Source
    wrapped: str = ""
    """The key under which the content is the only argument."""


def route_of(field: Field) -> Route | None:
    """The field's route, if one call after another can be told while it is written."""
    if field.transform_each == "pairs":
        return Route(Source(paths=(("key",),)), Source(), Source(paths=(("value",),)))
    call = field.transform
    if call is None or call == "{content}":
        call = {"name": "{content.name}", "arguments": "{content.arguments}"}
    if not isinstance(call, dict):
        return None
    call = cast("dict[str, Any]", call)
    function: Any = call.get("function", call)
    if function == "{content}":
        function = {"name": "{content.name}", "arguments": "{content.arguments}"}
    if not isinstance(function, dict):
        return None
    function = cast("dict[str, Any]", function)
    name = _source(field, function.get("name"))
    id = _source(field, call.get("id", "")) if call is not function else Source()
    given: Any = function.get("arguments")
    wrapped = ""
    if isinstance(given, dict) and len(cast("dict[str, Any]", given)) == 1:
        ((wrapped, given),) = cast("dict[str, Any]", given).items()
    arguments = _source(field, given)
    if name is None or id is None or arguments is None or arguments.literal or arguments.captures:
        return None
    return Route(name, id, arguments, wrapped) if arguments.paths else None


def _source(field: Field, value: Any) -> Source | None:
    if not isinstance(value, str):
        return None
    match = _PLACEHOLDER.fullmatch(value)
    if match is None:
        return Source(literal=value)
    opener: set[str] = set() if field.open is None else set(field.open.pattern.groupindex)
    closer: set[str] = set() if field.close is None else set(field.close.pattern.groupindex)
    captures: list[str] = []
    paths: list[Path] = []
    for path in match[1].split("|"):
        keys = tuple(path.split("."))
        if field.transform_each:
            if keys[0] in opener | closer:
                return None  # what the content says of it counts, if it does
            paths.append(keys)
        elif keys[0] == "content":
            paths.append(keys[1:])
        elif keys[0] in closer:
            return None  # known at the end only
        else:
            captures.append(path)
    return None if captures and paths else Source("", tuple(captures), tuple(paths))
