"""Whether work grows faster than what it is given, told from CPU time without asking how long anything takes."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

ATTEMPTS = 8


def seconds(work: Callable[[], object]) -> float:
    """This thread's CPU seconds, without the garbage collector, which looks through all that the tests hold."""
    gc.disable()
    try:
        began = time.thread_time()
        work()
        return time.thread_time() - began
    finally:
        gc.enable()


def ratio(small: Callable[[], float], large: Callable[[], float], *, most: float) -> float:
    """How many times what one costs the other costs, by the least of several measurements of each.

    What disturbs a measurement passes, and what grows grows each time: they are measured by turns until the ratio is
    `most` or less, or `ATTEMPTS` times.
    """
    least, dearer = float("inf"), float("inf")
    for _ in range(ATTEMPTS):
        least, dearer = min(least, small()), min(dearer, large())
        if dearer <= most * least:
            break
    return dearer / least
