"""Transforms: the shape that a template gives to a value, with placeholders for what the model wrote.

A string that is wholly `{name}` or `{name.key}` stands for what it names. The dialect adds `{a|b}`, whichever path
leads somewhere (two that differ are an error), and `{a?}`, which leaves its key or element out where no path does.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

import regex

from respzoo.problems import Problems

__all__ = ["Placeholder", "apply_transform", "check_transform", "placeholder"]

_PATH = r"\w+(?:\.\w+)*"
_PLAIN = regex.compile(rf"\{{({_PATH})\}}")
_PLACEHOLDER = regex.compile(rf"\{{(?P<paths>{_PATH}(?:\|{_PATH})*)(?P<optional>\?)?\}}")
_ABSENT = object()


def check_transform(problems: Problems, path: str, transform: Any, *, extended: bool) -> None:
    """Report placeholders that stand beside other text or, without the dialect, have its forms."""
    if isinstance(transform, dict):
        for key, value in cast("dict[str, Any]", transform).items():
            check_transform(problems, f"{path}.{key}", value, extended=extended)
    elif isinstance(transform, list):
        for index, value in enumerate(cast("list[Any]", transform)):
            check_transform(problems, f"{path}[{index}]", value, extended=extended)
    elif isinstance(transform, str):
        form = _PLACEHOLDER if extended else _PLAIN
        if form.search(transform) and not form.fullmatch(transform):
            problems.add(path, f"{transform!r} mixes a {{placeholder}} with other text; it must stand alone")


class Placeholder(NamedTuple):
    """What a placeholder names: paths, whichever leads somewhere, and whether none need to."""

    paths: tuple[tuple[str, ...], ...]
    optional: bool


@lru_cache(1024)
def placeholder(text: str, extended: bool) -> Placeholder | None:
    """The placeholder that a string wholly is; None if it is a string like any other."""
    match = (_PLACEHOLDER if extended else _PLAIN).fullmatch(text)
    if match is None:
        return None
    paths: list[str] = match[1].split("|")
    return Placeholder(tuple(tuple(path.split(".")) for path in paths), bool(match.groupdict().get("optional")))


def apply_transform(transform: Any, scope: Mapping[str, Any], *, extended: bool = False) -> Any:
    """Fill a transform with what its placeholders name in `scope`.

    Raises:
        ValueError: a name or key that is not there.
    """
    value = _fill(transform, scope, extended)
    return None if value is _ABSENT else value


def _fill(transform: Any, scope: Mapping[str, Any], extended: bool) -> Any:
    if isinstance(transform, dict):
        result: dict[str, Any] = {}
        for key, item in cast("dict[str, Any]", transform).items():
            value = _fill(item, scope, extended)
            if value is not _ABSENT:
                result[key] = value
        return result
    if isinstance(transform, list):
        items = [_fill(value, scope, extended) for value in cast("list[Any]", transform)]
        return [item for item in items if item is not _ABSENT]
    named = placeholder(transform, extended) if isinstance(transform, str) else None
    if named is None:
        return transform
    values = [value for path in named.paths if (value := _look_up(path, scope)) is not _ABSENT]
    if len(values) > 1 and any(value != values[0] for value in values[1:]):
        raise ValueError(f"more than one of the transform's {transform} is in what the model wrote, and they differ")
    if values:
        return values[0]
    if named.optional:
        return _ABSENT
    missing = _missing(named.paths[0], scope)
    raise ValueError(f"the transform's {transform} finds no {missing!r} in what the model wrote")


def _look_up(path: tuple[str, ...], scope: Mapping[str, Any]) -> Any:
    value: Any = scope
    for key in path:
        if not isinstance(value, dict | Mapping) or key not in value:  # nearly always a dict
            return _ABSENT
        value = cast("Mapping[str, Any]", value)[key]
    return value


def _missing(path: tuple[str, ...], scope: Mapping[str, Any]) -> str:
    """The first key on a path that is not there."""
    return next(path[depth] for depth in range(len(path)) if _look_up(path[: depth + 1], scope) is _ABSENT)
