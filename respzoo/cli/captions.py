"""What `explain` says of a piece or a wait, on a terminal and on a page alike."""

from __future__ import annotations

from typing import NamedTuple

from respzoo.cli.console import label_of
from respzoo.pieces import Fault, Hold, Piece, Step, Trace

__all__ = ["Row", "elsewhere", "fault_title", "place", "rows", "short", "what", "why"]

KINDS = {"opener": "opens", "closer": "closes", "wrapper": "wraps", "swallowed": "left out"}


class Row(NamedTuple):
    """One line of the story: an event, text that nobody took, or a wait."""

    at: str
    event: str
    """Its type; empty: none."""
    what: str
    text: str
    piece: int | None
    """The number of the piece that it is about."""


def rows(found: Trace) -> list[Row]:
    """The story in the order of the text."""
    numbers = {(piece.start, piece.end): number for number, piece in enumerate(found.pieces)}
    story: list[tuple[int, int, Row]] = []
    for order, step in enumerate(found.steps):
        text = found.text[step.start : step.end]
        number = numbers.get((step.start, step.end)) if text else None
        row = Row(place(step.start, found), step.event["type"], told(step, text), text, number)
        story.append((step.start, order, row))
    for number, piece in enumerate(found.pieces):
        if piece.kind in ("swallowed", "wrapper"):
            row = Row(place(piece.start, found), "", what(piece), found.text[piece.start : piece.end], number)
            story.append((piece.start, -1, row))
    for hold in found.holds:
        if not hold.blank:
            row = Row(place(hold.start, found), "", why(hold, found), found.text[hold.start : hold.end], None)
            story.append((hold.start, len(found.steps), row))
    return [row for _, _, row in sorted(story, key=lambda entry: entry[:2])]


def told(step: Step, text: str) -> str:
    """What an event says."""
    label = label_of(step.event["field"]) or "markup"
    kind = step.event["type"]
    if kind == "region_open":
        return f"opens {label}" if text else f"{label} begins"
    if kind == "region_close":
        return f"closes {label}" if text else f"{label} ends"
    return f"{label} is {step.event.get('reason')}" if kind == "region_malformed" else label


def what(piece: Piece) -> str:
    label = label_of(piece.field)
    if piece.kind == "text":
        return f"{label}, malformed" if piece.fault is not None else label
    return f"{KINDS[piece.kind]} {label}".rstrip()


def why(hold: Hold, found: Trace) -> str:
    """Why text waited, until when, and what became of it."""
    might = " or ".join(hold.might_be) or "what follows decides"
    was = "yes" if hold.was in hold.might_be else "no, left out" if hold.was == "swallowed" else f"no, {hold.was}"
    return f"held until {place(hold.until, found)}: {might}? {was}"


def elsewhere(others: list[str]) -> str:
    """Of templates that find calls where this one finds none."""
    return f"no call was found; {', '.join(others)} would find some: is it another model's output?"


def fault_title(fault: Fault) -> str:
    return f"{fault.reason} {label_of(fault.field) or 'markup'}"


def place(at: int, found: Trace) -> str:
    """A place as people read it: counted from the output's beginning, or in the prompt."""
    return str(at - found.prompt) if at >= found.prompt else "prompt"


def short(text: str, limit: int = 60) -> str:
    """A text as Python writes it, its middle cut out."""
    shown = repr(text)
    return shown if len(shown) <= limit else f"{shown[: limit - 22]} … {shown[-18:]}"
