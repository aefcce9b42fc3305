"""The record of a parse: what each stretch of a text was taken for, events with their places, waits, faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from respzoo.events import Dropped, Event

__all__ = ["Fault", "Hold", "Kind", "Piece", "Step", "Trace"]

Kind = Literal["text", "opener", "closer", "wrapper", "swallowed"]


@dataclass
class Piece:
    """A stretch of the text and what it was taken for."""

    kind: Kind
    """`swallowed`: decided, and nobody's text."""
    field: str
    start: int
    end: int
    fault: int | None = None
    """Which of the trace's faults it is part of."""


@dataclass
class Step:
    """One event, with the text that made it."""

    event: Event
    start: int
    end: int
    known_at: int
    """How many characters had been fed when it came."""


@dataclass(frozen=True)
class Hold:
    """Text that waited, since it might have become more than text."""

    start: int
    end: int
    until: int
    """How many characters had been fed when it was decided."""
    might_be: tuple[str, ...]
    """`opener of tool_calls`, `closer of content`, …; empty: what follows in the value decides."""
    was: str
    """What it turned out to be, in the same words; `text of content` or `swallowed` otherwise."""
    blank: bool
    """White space that was text after all: every word waits so."""


@dataclass(frozen=True)
class Fault:
    """A region that became no value."""

    field: str
    reason: str
    error: str
    start: int
    end: int
    place: int
    """Where it went wrong, as near as can be told."""


@dataclass
class Trace:
    """All of it. Places count from the beginning of `text`; the prompt's own part comes first."""

    text: str
    """What the prompt wrote of the answer, and the output behind it."""
    prompt: int
    """How many characters of it are the prompt's."""
    pieces: list[Piece] = field(default_factory=list[Piece])
    steps: list[Step] = field(default_factory=list[Step])
    holds: list[Hold] = field(default_factory=list[Hold])
    faults: list[Fault] = field(default_factory=list[Fault])
    message: Mapping[str, Any] = field(default_factory=dict[str, Any])
    dropped: list[Dropped] = field(default_factory=list[Dropped])
