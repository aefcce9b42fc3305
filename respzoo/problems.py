"""All that is wrong with a template, gathered: its author sees every fault at once, each with its place."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from respzoo.errors import Problem

__all__ = ["Problems", "kind", "listed", "short"]


class Problems:
    """The faults found so far."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, path: str, message: str) -> None:
        """`path` is a JSON path (`$.fields.content.open`)."""
        self.found.append(Problem(path, message))


def kind(value: Any) -> str:
    """What a value is, for an error: its type and, shortened, itself."""
    return "null" if value is None else f"{type(value).__name__} {short(value)}"


def short(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def listed(names: Iterable[str], *, sort: bool = True) -> str:
    return ", ".join(repr(name) for name in (sorted(names) if sort else names))
