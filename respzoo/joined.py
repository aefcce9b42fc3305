"""Text that comes in small pieces, kept as few large ones."""

from __future__ import annotations

__all__ = ["MANY", "compact"]

MANY = 32
"""How many pieces are worth joining. A string costs some fifty bytes beside its characters."""


def compact(parts: list[str], at: int, fixed: int = 0) -> int:
    """Join the pieces from `at` on, and with them the blocks before that are not much larger, but for those before
    `fixed`: so there are few, and each character is copied a few times only. Returns where the next pieces begin."""
    block = "".join(parts[at:])
    while at > fixed and len(parts[at - 1]) <= 2 * len(block):
        at -= 1
        block = parts[at] + block
    parts[at:] = [block]
    return at + 1
