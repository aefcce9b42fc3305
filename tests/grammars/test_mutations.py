"""What a strict grammar takes is sound, whatever it is made of, and what a request did not ask for is not taken."""

from __future__ import annotations

import random
from typing import Any

import pytest
from machine import CALLING, before_calls, family, machine, tag_of
from toolbox import Reading, only_calls, read, record, tool

EACH = pytest.mark.parametrize("name", CALLING)
PROPERTIES = {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}}
TOOLS = [tool("get_weather", record(PROPERTIES, ["city", "days"])), tool("ping")]
LOOSE = {
    "a required argument left out": record(PROPERTIES),
    "a value of another type": record({**PROPERTIES, "days": {"type": "boolean"}}, ["city", "days"]),
    "a constant that is none": record({**PROPERTIES, "unit": {"enum": ["K"]}}, ["city", "days", "unit"]),
    "an unknown argument": record({**PROPERTIES, "more": {"type": "integer"}}, ["city", "days", "more"]),
}


def grammar_of(name: str, tools: list[Any], **request: Any) -> Any:
    return machine(name).compile(tag_of(family(name), tools, **request))


def reading_of(name: str, text: str) -> Reading:
    return read(family(name), before_calls(name) + text, TOOLS)


@EACH
def test_calls_that_do_not_fit_are_refused(name: str) -> None:
    strict = grammar_of(name, TOOLS, tool_choice="get_weather")
    refused = 0
    for kind, parameters in LOOSE.items():
        tools = [tool("get_weather", parameters)]
        others = machine(name).draws(grammar_of(name, tools, tool_choice="get_weather"), tools, 3, seed=5, eager=0)
        wrong = [text for text in others if only_calls(reading_of(name, text), TOOLS)]
        for text in wrong:
            assert not machine(name).takes(strict, text), (kind, text)
        refused += len(wrong)
    assert refused > 2


@EACH
def test_more_or_less_than_the_call_is_refused(name: str) -> None:
    one = grammar_of(name, TOOLS, tool_choice="required", parallel=False)
    texts = machine(name).draws(one, TOOLS, 3, seed=6, eager=0)
    assert texts
    for text in texts:
        reading = reading_of(name, text)
        assert machine(name).takes(one, text)
        if reading.beyond:
            continue
        for added in (" And text.", "x", text):
            assert not machine(name).takes(one, text + added), added
        for called in ("get_weather", "ping"):
            if reading.calls[0]["name"] == called:
                assert not machine(name).takes(one, text.replace(called, f"{called}z")), called
        for end in machine(name).ends(one, text)[:-1]:
            # what may be left out is white space, or a closer that the call's end has made needless
            assert reading_of(name, text[:end]).calls == reading.calls, text[:end]


@EACH
def test_what_is_taken_is_sound(name: str) -> None:
    grammar = grammar_of(name, TOOLS, tool_choice="required")
    dice = random.Random(8)
    texts = machine(name).draws(grammar, TOOLS, 4, seed=8)
    assert texts
    for text in texts:
        for _ in range(40):
            at, size = dice.randrange(len(text)), dice.randint(1, 12)
            mutated = dice.choice(
                [
                    text[:at] + text[at + size :],
                    text[:at] + text[at : at + size] + text[at:],
                    text[:at] + dice.choice("<>{}[]()\"'/=,:x1 \n") + text[at:],
                    text[:at] + text[at:][::-1][:size] + text[at + size :],
                ]
            )
            if machine(name).takes(grammar, mutated):
                reading = reading_of(name, mutated)
                assert not only_calls(reading, TOOLS) or reading.beyond, mutated


@EACH
def test_a_stop_token_does_not_end_a_call_as_text(name: str) -> None:
    """xgrammar 0.2.9 lets a model stop where the stop token's text would be the last of what the grammar wants."""
    grammar = grammar_of(name, TOOLS, tool_choice="required")
    for text in machine(name).draws(grammar, TOOLS, 3, seed=9, eager=0):
        for at in range(len(text)):
            for stop in ("<|im_end|>", "</s>", "<stop>"):
                if machine(name).takes(grammar, text[:at] + stop):  # a closer of the family's own, or no more to come
                    assert not only_calls(reading_of(name, text[:at]), TOOLS), text[:at] + stop
