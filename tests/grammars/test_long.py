"""A long value costs what a short one costs, character by character: no rule of a grammar piles up what it has read."""

from __future__ import annotations

import time
from typing import Any

import pytest
import xgrammar as xgr
from machine import CALLING, family, machine, tag_of
from test_closers import KINDS, UNWRITABLE, call, closers, compiled, tools

PIECES, UNITS = 40, 50
"""A value of 2,000 repetitions, fed and timed in pieces."""


def costs(compiled_grammar: Any, before: str, unit: str) -> list[float]:
    """The seconds that each piece of a text takes."""
    matcher = xgr.GrammarMatcher(compiled_grammar)
    assert matcher.accept_string(before), before
    found: list[float] = []
    for _ in range(PIECES):
        started = time.perf_counter()
        assert matcher.accept_string(unit * UNITS), unit
        found.append(time.perf_counter() - started)
    return found


def grows(found: list[float]) -> bool:
    """Whether the last pieces cost more than the first. A machine that has other things to do makes some dear, not all."""
    return min(found[-10:]) > 5 * min(found[:10]) + 0.002


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("name", CALLING)
def test_a_long_value(name: str, kind: str) -> None:
    writable = [closer for closer in closers(name, kind) if not closer.startswith(UNWRITABLE.get(name, "\0"))]
    for piece in ["<b>", *writable[:1]]:
        text = call(name, f"a {piece} b, ", kind)
        before, unit = text[: text.index("a ")], text[text.index("a ") : text.index("b, ") + 3]
        found = costs(compiled(name, kind), before, unit)
        assert not grows(found), [f"{1e6 * seconds:.0f} us" for seconds in found]


@pytest.mark.parametrize("name", CALLING)
def test_a_long_text_before_calls(name: str) -> None:
    tag = tag_of(family(name), tools("text", {"type": "string"}), tool_choice="auto", strict=True)
    found = costs(machine(name).compile(tag), "Well ", "a < b, {c} [d], </e> and ")
    assert not grows(found), [f"{1e6 * seconds:.0f} us" for seconds in found]
