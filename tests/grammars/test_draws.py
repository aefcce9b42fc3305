"""What a grammar lets a model write, the parser reads as the calls that were asked for: texts drawn at random."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from machine import CALLING, before_calls, begins_in_reasoning, family, machine, tag_of
from toolbox import ODD_KEYS, TOOLS, Reading, faults, only_calls, read, record, tool

EACH = pytest.mark.parametrize("name", CALLING)
WEATHER, NESTED, CHOICES, UNIONS, *_ = TOOLS
PING = TOOLS[-1]
ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}

UNSEEN = {"command_r", "minimax_m3", "smollm3", "xlam"}
"""Families in which text may begin as a call does (`<code>`, `[{"name":`, a marker with white space in it) and be none: the
parser gives it back as text."""

NAMED = {"beam", "functionary_v32", "glm4"}
"""Families in which the tool's name is what tells a call from text: a draw seldom hits it."""


def drawn(
    name: str, tools: Sequence[Any], count: int, *, shy: bool = False, eager: float = 0.3, **request: Any
) -> list[tuple[str, Reading]]:
    """Texts that the grammar of a request takes, and what they say."""
    template = family(name)
    request.setdefault("reasoning", begins_in_reasoning(template))
    compiled = machine(name).compile(tag_of(template, tools, **request))
    texts = machine(name).draws(compiled, tools, count, seed=7, shy=shy, eager=eager)
    found = [(text, read(template, text, tools, seed=number)) for number, text in enumerate(texts)]
    kept = [(text, reading) for text, reading in found if not reading.beyond]
    assert kept, texts
    return kept


@EACH
def test_forced_calls(name: str) -> None:
    called: set[str] = set()
    for text, reading in drawn(name, TOOLS, 12, tool_choice="required"):
        assert not only_calls(reading, TOOLS), text
        called.update(call["name"] for call in reading.calls)
    assert len(called) > 2


@EACH
def test_one_forced_call(name: str) -> None:
    tools = [WEATHER, NESTED, PING]
    for text, reading in drawn(name, tools, 6, tool_choice="required", parallel=False, eager=0):
        assert not only_calls(reading, tools), text
        assert len(reading.calls) == 1, text


@EACH
def test_the_named_call(name: str) -> None:
    for text, reading in drawn(name, TOOLS, 6, tool_choice="unions", eager=0):
        assert not only_calls(reading, TOOLS), text
        assert [call["name"] for call in reading.calls] == ["unions"], text


@EACH
def test_text_reasoning_and_calls(name: str) -> None:
    tools = [WEATHER, CHOICES, UNIONS, PING]
    found = drawn(name, tools, 8, tool_choice="auto", strict=True, reasoning=True, eager=0.02)
    for text, reading in found:
        assert not faults(reading, tools) or name in UNSEEN, text
    assert name in NAMED or any(reading.calls for _, reading in found), [text for text, _ in found]


@EACH
def test_at_most_one_call(name: str) -> None:
    tools = [WEATHER, PING]
    found = drawn(name, tools, 8, tool_choice="auto", parallel=False, strict=True, eager=0.02)
    for text, reading in found:
        assert not faults(reading, tools) or name in UNSEEN, text
        assert len(reading.calls) <= 1, text


@EACH
@pytest.mark.parametrize("shy", [False, True], ids=["with calls", "without"])
def test_a_format_beside_calls(name: str, *, shy: bool) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": ANSWER}}
    request: dict[str, Any] = {"tool_choice": "auto", "response_format": form, "strict": True}
    kinds: set[bool] = set()
    for text, reading in drawn(name, [WEATHER], 6, shy=shy, **request):
        if reading.calls:
            assert not only_calls(reading, [WEATHER]), text
        else:
            answer = json.loads(reading.content)
            assert list(answer) == ["answer"], text
            assert isinstance(answer["answer"], int), text
        kinds.add(bool(reading.calls))
    assert shy or True in kinds


@pytest.mark.parametrize("name", [name for name in CALLING if name != "minimax_m3"])  # see toolbox.BEYOND
def test_arguments_that_are_not_held_to_a_schema(name: str) -> None:
    for text, reading in drawn(name, [WEATHER], 5, tool_choice="required", strict=False):
        assert not reading.malformed, text
        assert {call["name"] for call in reading.calls} == {"get_weather"}, text
        assert all(isinstance(call["arguments"], dict) for call in reading.calls), text


NOT_PYTHON = {"two words", "ключ", "$where", "q'uote"}
UNNAMED = {
    **dict.fromkeys(("gemma3", "lfm2", "lfm2_5", "llama4_pythonic", "minicpm3", "olmo3"), NOT_PYTHON),
    "minicpm5": {"q'uote"},
    "minimax_m3": {"q'uote"},
}
"""Keys that a family's notation has no way to write."""


@EACH
def test_keys_with_odd_characters(name: str) -> None:
    for key in ODD_KEYS:
        one = [tool("f", record({key: {"type": "integer"}}, [key]))]
        reason = family(name).structural_tag_reason(one, tool_choice="f")
        assert (reason is not None) == (key in UNNAMED.get(name, ())), (key, reason)
    keys = [key for key in ODD_KEYS if key not in UNNAMED.get(name, ())]
    for some in (keys[:3], keys[3:]):
        tools = [tool("f", record({key: {"type": "boolean"} for key in some}, some))]
        compiled = machine(name).compile(tag_of(family(name), tools, tool_choice="f"))
        found = machine(name).draws(compiled, tools, 2, seed=2)
        assert found
        for text in found:
            reading = read(family(name), before_calls(name) + text, tools)
            assert not only_calls(reading, tools), text
