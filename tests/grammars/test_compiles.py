"""Every family's grammar for every kind of request: xgrammar compiles it, or there is a reason why there is none."""

from __future__ import annotations

from typing import Any

import pytest
from machine import CALLING, MUTE, family, machine, tag_of
from toolbox import record, tool

WEATHER = tool("get_weather", record({"city": {"type": "string"}, "days": {"type": "integer"}}, ["city"]))
TOOLS = [WEATHER, tool("ping"), tool("anything", {"type": "object"})]
FORM = {"type": "json_schema", "json_schema": {"name": "a", "schema": record({"x": {"type": "integer"}}, ["x"])}}
REQUESTS: dict[str, dict[str, Any]] = {
    "required": {"tool_choice": "required"},
    "named": {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}},
    "free arguments": {"tool_choice": "required", "strict": False},
    "required, one": {"tool_choice": "required", "parallel": False},
    "auto and strict": {"tool_choice": "auto", "strict": True},
    "auto, one": {"tool_choice": "auto", "parallel": False},
    "a format beside calls": {"tool_choice": "auto", "response_format": FORM},
    "any JSON beside calls": {"tool_choice": "auto", "response_format": {"type": "json_object"}, "parallel": False},
    "a format, no calls": {"tool_choice": "none", "response_format": FORM},
    "reasoning": {"tool_choice": "required", "reasoning": True},
    "reasoning and text": {"tool_choice": "auto", "strict": True, "reasoning": True},
}


@pytest.mark.parametrize("name", CALLING)
def test_it_compiles(name: str) -> None:
    for request in REQUESTS.values():
        machine(name).compile(tag_of(family(name), TOOLS, **request))


@pytest.mark.parametrize("name", CALLING)
def test_it_compiles_behind_a_prompt_that_began_the_reasoning(name: str) -> None:
    template = family(name)
    openers = [
        text
        for field in template.fields.values()
        if field.name == "reasoning_content" and field.open is not None
        for text in field.open.literals or field.open.markers()
    ]
    anchor = template.spec.get("start_anchor", "")
    anchor = anchor if isinstance(anchor, str) else anchor[0]
    for opener in ["", *openers[:1]]:
        tag = tag_of(template, TOOLS, tool_choice="required", reasoning=True, prefix=anchor + opener)
        machine(name).compile(tag)


@pytest.mark.parametrize("name", MUTE)
def test_a_family_without_calls_says_so(name: str) -> None:
    assert family(name).structural_tag(TOOLS, tool_choice="required") is None
    assert "no calls" in (family(name).structural_tag_reason(TOOLS, tool_choice="required") or "")


def test_nearly_every_family_has_calls() -> None:
    assert len(CALLING) > 75
    assert len(MUTE) < 5
