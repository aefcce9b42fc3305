"""What one stream may take of the machine.

A walk through the text costs what the automaton's moves cost, and no more. But a pattern that only the `regex` module
knows may take that module for ever, and template and text may agree to have the same characters walked again and again.
Both are taken from the stream's allowance; when it is used up a TimeoutError makes the parser give the template up: the
region at hand is malformed, the rest is text. Steps are counted, so that this happens at the same place however the
text is cut; the module's time can only be measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple, Unpack

__all__ = ["Allowance", "left_until", "seconds_for"]

Given = TypeVarTuple("Given")
Result = TypeVar("Result")

_SECONDS = 1.0
_SECONDS_A_CHARACTER = 50e-6
_STEPS = 2_097_152  # all of a stream's: delimiters that are whole walk a few characters again, hostile ones thousands


def seconds_for(text: str) -> float:
    """For `timeout=`, where one text is searched once."""
    return _SECONDS + len(text) * _SECONDS_A_CHARACTER


class Allowance:
    """What the search for delimiters may take of one stream beyond a walk through its text: the `regex` module's time,
    which grows with the text, and steps over characters that were walked before."""

    __slots__ = ("seconds", "steps")

    def __init__(self) -> None:
        self.seconds = _SECONDS
        self.steps = _STEPS

    def grow(self, characters: int) -> None:
        """So many characters have come."""
        self.seconds += characters * _SECONDS_A_CHARACTER

    def walk(self, steps: int) -> None:
        """Take steps.

        Raises:
            TimeoutError: there are no more.
        """
        self.steps -= steps
        if self.steps < 0:
            raise TimeoutError("looking took too long")

    def deadline(self) -> float:
        """When the time will be used up, on the clock of this thread.

        Raises:
            TimeoutError: it is.
        """
        if self.seconds <= 0:
            raise TimeoutError("looking took too long")
        return time.thread_time() + self.seconds

    def spend(self, function: Callable[[Unpack[Given]], Result], *arguments: *Given) -> Result:
        """Call a function on the allowance's time.

        Raises:
            TimeoutError: there is none left.
        """
        deadline = self.deadline()
        try:
            return function(*arguments)
        finally:
            self.settle(deadline)

    def settle(self, deadline: float) -> None:
        """What was begun when `deadline` was asked for is done."""
        self.seconds = deadline - time.thread_time()


def left_until(deadline: float) -> float:
    """The seconds until a deadline, for `timeout=`.

    Raises:
        TimeoutError: it has passed.
    """
    left = deadline - time.thread_time()
    if left <= 0:
        raise TimeoutError("looking took too long")
    return left
