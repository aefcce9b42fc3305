"""What the arguments of a content parser may be, where a template speaks the extended language.

The reference ignores arguments that it does not know and finds out about others at the first region; a template without
the dialect is read as it reads it. One with the dialect is checked when it is made, all faults at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import regex

__all__ = ["BOOLEAN", "CONTENT", "PATTERN", "STRING", "Argument", "faults"]


class Argument(NamedTuple):
    """What an argument must be, in words, and how that is told."""

    expected: str
    fits: Callable[[Any], bool]


def _is_pattern(value: Any) -> bool:
    try:
        regex.compile(value, regex.DOTALL)
    except (TypeError, regex.error):
        return False
    return True


def _is_content(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    value = cast("Mapping[str, Any]", value)
    return set(value) <= {"name", "args"} and isinstance(value.get("name"), str)


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool)


def _is_string(value: object) -> bool:
    return isinstance(value, str) and bool(value)


BOOLEAN = Argument("true or false", _is_boolean)
STRING = Argument("a string that is not empty", _is_string)
PATTERN = Argument("a regular expression", _is_pattern)
CONTENT = Argument("a content parser: {'name': ..., 'args': {...}}", _is_content)


def faults(name: str, known: Mapping[str, Argument], args: Mapping[str, Any]) -> list[str]:
    """All that is wrong with the arguments of the content parser `name`, which takes those that are `known`."""
    found: list[str] = []
    for key, value in args.items():
        argument = known.get(key)
        if argument is None:
            takes = ", ".join(map(repr, known)) or "none"
            found.append(f"{key!r} is no argument of {name!r}; it takes {takes}")
        elif not argument.fits(value):
            found.append(f"{key!r}: expected {argument.expected}, found {value!r}")
    return found
