"""The record of a parse: every character in its place, every wait and every fault with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from respzoo.hookspecs import Family
from respzoo.lost import lost
from respzoo.pieces import Trace
from respzoo.plugins import loaded
from respzoo.template import ResponseTemplate
from respzoo.testing import load_samples
from respzoo.trace import trace

FAMILIES = {name: family for name, family in loaded().families.items() if loaded().owners[name] == "respzoo:curated"}
SPEC: dict[str, Any] = {
    "start_anchor": "[bot]",
    "fields": {
        "reasoning_content": {"open": "<think>", "close": "</think>"},
        "tool_calls": {
            "open_pattern": r"\s*<call>",
            "close": "</call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close": "[end]", "content_args": {"strip": False}, "repeats": True, "join": ""},
    },
}
CALL = '{"name": "f", "arguments": {}}'


def traced(text: str, prefix: str = "[bot]", spec: dict[str, Any] = SPEC) -> Trace:
    return trace(ResponseTemplate(spec), text, prefix=prefix)


def pieces(found: Trace) -> list[tuple[str, str, str]]:
    return [(piece.kind, piece.field, found.text[piece.start : piece.end]) for piece in found.pieces]


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_character_of_every_sample_has_its_place(family: Family) -> None:
    template = loaded().compile(family, "test")
    assert family.samples is not None
    for sample in load_samples(family.samples):
        prefix = sample.prefix(template.spec)
        found = trace(template, sample.text, prefix=prefix, tools=sample.tools)
        assert found.text == template.after_anchor(prefix) + sample.text
        assert [piece.start for piece in found.pieces] == [0, *(piece.end for piece in found.pieces)][
            : len(found.pieces)
        ]
        assert not found.pieces or found.pieces[-1].end == len(found.text), sample.id
        parser = template.parser(prefix=prefix, tools=sample.tools)
        parser.feed(sample.text)
        assert found.message == parser.finalize()[0], sample.id
        for step in found.steps:
            if step.event["type"] == "region_chunk":
                assert found.text[step.start : step.end] == step.event.get("text"), sample.id
        assert list(lost(found, template)) == [], sample.id


def test_the_delimiters_are_what_the_chunks_leave() -> None:
    found = traced(f"<think>Hm.</think>Yes.\n<call>{CALL}</call>[end]")
    assert pieces(found) == [
        ("opener", "reasoning_content", "<think>"),
        ("text", "reasoning_content", "Hm."),
        ("closer", "reasoning_content", "</think>"),
        ("text", "content", "Yes."),
        ("opener", "tool_calls", "\n<call>"),
        ("text", "tool_calls", CALL),
        ("closer", "tool_calls", "</call>"),
        ("swallowed", "", "[end]"),
    ]
    assert [step.event["type"].removeprefix("region_") for step in found.steps] == ["open", "chunk", "close"] * 3


def test_the_prompts_part_comes_first() -> None:
    found = traced("Hm.</think>Yes.", prefix="[user]Hello[bot]<think>")
    assert found.text == "<think>Hm.</think>Yes."
    assert found.prompt == len("<think>")
    assert pieces(found)[0] == ("opener", "reasoning_content", "<think>")


def test_what_waited_and_what_it_was() -> None:
    found = traced(f"a <cat> b <call>{CALL}</call>")
    holds = [(found.text[hold.start : hold.end], hold.might_be, hold.was) for hold in found.holds if not hold.blank]
    assert holds[0] == (" <ca", ("opener of tool_calls",), "text of content")
    assert holds[1] == (" <call", ("opener of tool_calls",), "opener of tool_calls")
    assert all(hold.until > hold.start for hold in found.holds)


def test_where_it_broke() -> None:
    found = traced('Look: <call>{"name": "f", "arguments": {"x": }}</call> and then')
    (fault,) = found.faults
    assert (fault.field, fault.reason) == ("tool_calls", "malformed")
    assert found.text[fault.place :].startswith("}}</call>")
    assert found.text[fault.start : fault.end] == ' <call>{"name": "f", "arguments": {"x": }}</call>'
    assert {piece.fault for piece in found.pieces if piece.field == "tool_calls"} == {0}
    assert {piece.fault for piece in found.pieces if piece.field == "content"} == {None}


def test_where_it_was_cut() -> None:
    text = '<call>{"name": "f", "argu'
    (fault,) = traced(text).faults
    assert (fault.reason, fault.place) == ("unfinished", len(text))


def test_lost_text_is_told() -> None:
    spec: dict[str, Any] = {
        "start_anchor": "[bot]",
        "fields": {"content": {"close_pattern": r"\[end\].*", "content_args": {"strip": False}}},
    }
    template = ResponseTemplate(spec)
    assert list(lost(trace(template, "Yes.[end] and no more", prefix="[bot]"), template)) == []
    found = trace(template, "Yes.", prefix="[bot]")
    found.message = {"content": "Y"}
    assert list(lost(found, template)) == ["content lacks 'Yes.'"]
