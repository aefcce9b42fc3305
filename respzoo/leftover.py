"""Inside a wrapper, between the regions in it: text that is nobody's.

White space, noise and broken markers around the calls of one block are no answer. They are recorded if there is more
than white space, and not shown; but a wrapper that held no call at all is malformed, as a call would be that is none.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from respzoo.fields import Wrapper

__all__ = ["Fault", "Leftover"]


class Fault(NamedTuple):
    """What is wrong with a wrapper, and its text."""

    raw: str
    error: str
    is_wrapper: bool
    """Whether the wrapper as a whole became nothing, not only a stretch of text in it."""


class Leftover:
    """One wrapper while it is open."""

    __slots__ = ("_parts", "_regions", "opener", "wrapper")

    def __init__(self, wrapper: Wrapper, opener: str) -> None:
        self.wrapper = wrapper
        self.opener = opener
        self._parts: list[str] = []
        self._regions = 0

    @property
    def size(self) -> int:
        """How many characters it has taken."""
        return len(self.opener) + sum(map(len, self._parts))

    def text(self, text: str) -> None:
        self._parts.append(text)

    def region(self) -> Fault | None:
        """A region begins."""
        self._regions += 1
        return self._settle()

    def close(self, closer: str, reason: Literal["malformed", "unfinished"]) -> Fault | None:
        """The wrapper ends, by its closer or with the output."""
        if self._regions:
            return self._settle()
        text = "".join(self._parts)
        if not text.strip() and reason == "malformed":
            return None
        raw = f"{self.opener}{text}{closer}"
        return Fault(raw, f"no {self.wrapper.field} between {self.opener.strip()!r} and its end", is_wrapper=True)

    def _settle(self) -> Fault | None:
        text = "".join(self._parts)
        self._parts = []
        return Fault(text, "text between regions, inside their wrapper", is_wrapper=False) if text.strip() else None
