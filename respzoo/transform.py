"""Transforms: the shape that a template gives to a value, with placeholders for what the model wrote.

A string that is wholly `{name}` or `{name.key}` stands for what it names. The dialect adds `{a|b}`, the first path that
leads somewhere, and `{a?}`, which leaves its key or element out where no path does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import regex

from respzoo.problems import Problems

__all__ = ["apply_transform", "check_transform"]

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


def apply_transform(transform: Any, scope: Mapping[str, Any], *, extended: bool = False) -> Any:
    """Fill a transform with what its placeholders name in `scope`.

    Raises:
        ValueError: a name or key that is not there.
    """
    value = _fill(transform, scope, _PLACEHOLDER if extended else _PLAIN)
    return None if value is _ABSENT else value


def _fill(transform: Any, scope: Mapping[str, Any], form: regex.Pattern[str]) -> Any:
    if isinstance(transform, dict):
        filled = {key: _fill(value, scope, form) for key, value in cast("dict[str, Any]", transform).items()}
        return {key: value for key, value in filled.items() if value is not _ABSENT}
    if isinstance(transform, list):
        items = [_fill(value, scope, form) for value in cast("list[Any]", transform)]
        return [item for item in items if item is not _ABSENT]
    match = form.fullmatch(transform) if isinstance(transform, str) else None
    if match is None:
        return transform
    paths: list[str] = match[1].split("|")
    for path in paths:
        value = _look_up(path, scope)
        if value is not _ABSENT:
            return value
    if match.groupdict().get("optional"):
        return _ABSENT
    raise ValueError(f"the transform's {match[0]} finds no {_missing(paths[0], scope)!r} in what the model wrote")


def _look_up(path: str, scope: Mapping[str, Any]) -> Any:
    value: Any = scope
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return _ABSENT
        value = cast("Mapping[str, Any]", value)[key]
    return value


def _missing(path: str, scope: Mapping[str, Any]) -> str:
    """The first key on a path that is not there."""
    keys = path.split(".")
    depth = next(n for n in range(1, len(keys) + 1) if _look_up(".".join(keys[:n]), scope) is _ABSENT)
    return keys[depth - 1]
