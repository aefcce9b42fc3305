"""What vLLM's adapter makes of every family where a request asks for no reasoning, no calls, or neither."""

from __future__ import annotations

import functools
import re
from typing import Any

import pytest

from respzoo.plugins import loaded
from respzoo.template import ResponseTemplate
from respzoo.testing import Sample, load_samples
from respzoo_vllm.variant import without

FAMILIES = {name: family for name, family in loaded().families.items() if loaded().owners[name] == "respzoo:curated"}
SAMPLES = {name: load_samples(family.samples) for name, family in FAMILIES.items() if family.samples is not None}
REASONING, CALLS = "reasoning_content", "tool_calls"


def template_of(name: str) -> ResponseTemplate:
    return ResponseTemplate(FAMILIES[name].spec, name=name)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_asked_for_is_the_template_itself(name: str) -> None:
    template = template_of(name)
    assert without(template, reasoning=True, tools=True) is template


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("reasoning", "tools"), [(True, False), (False, True), (False, False)])
def test_every_family_has_every_variant(name: str, reasoning: bool, tools: bool) -> None:
    """It loads, makes nothing that was not asked for, and what it leaves out is in the text."""
    template = template_of(name)
    variant = without(template, reasoning=reasoning, tools=tools)
    assert (variant.name, variant.source) == (template.name, template.source)
    assert not (not reasoning and any(field.key == REASONING for field in variant.fields.values()))
    assert not (not tools and any(field.key == CALLS for field in variant.fields.values()))
    for sample, full in zip(SAMPLES[name], messages(name), strict=True):
        message, dropped = read(variant, sample)
        assert tools or CALLS not in message
        assert reasoning or REASONING not in message
        written = re.sub(r"\W", "", f"{message.get(REASONING)} {message.get('content')}")
        lost = [] if tools else [call["function"]["name"] for call in full.get(CALLS, ())]
        if not reasoning and not (tools and (dropped or message.get(CALLS) != full.get(CALLS))):
            lost.append(full.get(REASONING, ""))  # unless a thought of a call is one where thoughts are not read
        assert all(word in written for word in re.findall(r"\w+", " ".join(lost))), sample.id


def test_the_samples_have_what_is_left_out() -> None:
    all_messages = [message for name in FAMILIES for message in messages(name)]
    assert sum(CALLS in message for message in all_messages) > 300
    assert sum(REASONING in message for message in all_messages) > 200


@functools.cache
def messages(name: str) -> list[dict[str, Any]]:
    """What the template makes of the family's samples."""
    template = template_of(name)
    return [read(template, sample)[0] for sample in SAMPLES[name]]


def read(template: ResponseTemplate, sample: Sample) -> tuple[dict[str, Any], list[Any]]:
    stream = template.stream(prefix=sample.prefix(template.spec), tools=sample.tools, arguments="complete")
    stream.feed(sample.text)
    return stream.finish()[0], stream.dropped
