"""What `explain` says of a piece or a wait, on a terminal and on a page alike."""

from __future__ import annotations

from respzoo.cli.console import label_of
from respzoo.trace import Fault, Hold, Piece, Trace

__all__ = ["fault_title", "place", "short", "what", "why"]

KINDS = {"opener": "opens", "closer": "closes", "wrapper": "wraps", "swallowed": "left out"}


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


def fault_title(fault: Fault) -> str:
    return f"{fault.reason} {label_of(fault.field) or 'markup'}"


def place(at: int, found: Trace) -> str:
    """A place as people read it: counted from the output's beginning, or in the prompt."""
    return str(at - found.prompt) if at >= found.prompt else "prompt"


def short(text: str, limit: int = 60) -> str:
    """A text as Python writes it, its middle cut out."""
    shown = repr(text)
    return shown if len(shown) <= limit else f"{shown[: limit - 22]} … {shown[-18:]}"
