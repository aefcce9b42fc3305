"""Text that comes in small pieces, kept as few large ones."""

from __future__ import annotations

__all__ = ["FEW", "MANY", "compact"]

MANY = 64
"""How many pieces are worth joining. A string costs some fifty bytes beside its characters; one that the streams share
(known.py), its place in the list."""
FEW = 16
"""The same where pieces are kept in two places, and of tags, whose pieces the streams seldom share."""
_USUAL = 4  # characters of a token


def compact(parts: list[str], at: int, fixed: int = 0) -> int:
    """Join the pieces from `at` on, and with them the blocks before that are not much larger, but for those before
    `fixed`: so there are few, and each character is copied a few times only. Returns where the next pieces begin."""
    size = (len(parts) - at) * _USUAL
    begin = at
    while begin > fixed and len(parts[begin - 1]) <= 2 * size:
        begin -= 1
        size += len(parts[begin])
    parts[begin:] = ["".join(parts[begin:])]
    return begin + 1
