"""A long value costs what a short one costs, character by character: no rule of a grammar piles up what it has read."""

from __future__ import annotations

from functools import partial
from typing import Any

import growth
import pytest
import xgrammar as xgr
from machine import CALLING, family, machine, tag_of
from test_closers import KINDS, UNWRITABLE, call, closers, compiled, tools

PIECES, UNITS = 10, 50
"""So many pieces of a text are measured, of so many repetitions each."""
LATE = 10
"""The pieces before them."""
MOST = 5.0
"""What the cheapest piece may cost behind such text, in the cheapest behind as much that holds no markup."""


def growth_of(compiled_grammar: Any, before: str, unit: str) -> float:
    """Both are behind text of the same length, which has a price of its own: xgrammar keeps where it was at each
    character, and what it takes to keep one more depends on where in the memory there is room."""

    def cost(text: str) -> float:
        matcher = xgr.GrammarMatcher(compiled_grammar)
        assert matcher.accept_string(before + text * UNITS * LATE), (before, text)
        return min(growth.seconds(partial(matcher.accept_string, unit * UNITS)) for _ in range(PIECES))

    return growth.ratio(partial(cost, "o" * len(unit)), partial(cost, unit), most=MOST)


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("name", CALLING)
def test_a_long_value(name: str, kind: str) -> None:
    writable = [closer for closer in closers(name, kind) if not closer.startswith(UNWRITABLE.get(name, "\0"))]
    for piece in ["<b>", *writable[:1]]:
        text = call(name, f"a {piece} b, ", kind)
        before, unit = text[: text.index("a ")], text[text.index("a ") : text.index("b, ") + 3]
        assert growth_of(compiled(name, kind), before, unit) <= MOST


@pytest.mark.parametrize("name", CALLING)
def test_a_long_text_before_calls(name: str) -> None:
    tag = tag_of(family(name), tools("text", {"type": "string"}), tool_choice="auto", strict=True)
    assert growth_of(machine(name).compile(tag), "Well ", "a < b, {c} [d], </e> and ") <= MOST
