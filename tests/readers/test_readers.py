"""Every exported template in the reader it is for, by that reader's own code: it loads, and it parses the family's samples.

A sample that comes out otherwise than here must be one of the README's differences, told by what the sample is; where a
key was lost on the way (`Export.losses`), the difference is that loss. All others are faults of the export.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from readers import TALLY, Message, readers

from respzoo.export import DIALECTS, Export, ExportError, export
from respzoo.plugins import loaded
from respzoo.testing import Sample, load_samples

FAMILIES = [family for name, family in loaded().families.items() if loaded().owners[name] == "respzoo:curated"]
TEXTS = ("reasoning_content", "content")


@pytest.fixture(scope="module")
def by_dialect() -> Iterator[dict[str, Any]]:
    logging.getLogger("transformers").setLevel(logging.ERROR)
    with readers() as found:
        yield found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_family_in_another_reader(dialect: Any, by_dialect: dict[str, Any]) -> None:
    reader = by_dialect[dialect]
    count = TALLY[dialect] = Counter()
    faults: list[str] = []
    for family in FAMILIES:
        try:
            told = export(family.spec, dialect, name=family.name)
        except ExportError as error:
            count["refused families"] += 1
            faults += [str(error) for problem in error.problems if not problem.path.startswith("$.fields.")]
            continue
        assert "dialect" not in told.spec
        reader.load(told.spec)
        for sample in load_samples(family.samples) if family.samples else []:
            if (expected := sample.record.get("expected")) is None:
                continue
            try:
                got: Message | Exception = reader.parse(
                    told.spec, sample.text, sample.prefix(family.spec), sample.tools
                )
            except (ValueError, KeyError, TypeError) as error:
                got = error
            names = sorted(set(differences(expected, got, sample, told))) or ["same"]
            count.update(names)
            if "?" in names:
                faults.append(f"{sample.id}: expected {expected}, got {got!r}")
    assert faults == []
    assert count.keys() <= {"same", "D1", "D2", "D3", "D4", "D7", "D8", "P5", "loss", "refused families"}
    assert count["same"] > count.total() / 2
    assert count["refused families"] < len(FAMILIES) / 4


def test_a_stream_is_the_same_in_transformers(by_dialect: dict[str, Any]) -> None:
    """By character; but for openers and closers that may be longer, for which it does not wait (D5)."""
    reader = by_dialect["transformers"]
    count = TALLY["transformers, streamed"] = Counter()
    for family in FAMILIES:
        try:
            told = export(family.spec, "transformers")
        except ExportError:
            continue
        for sample in load_samples(family.samples) if family.samples else []:
            if by_tags(set(sample.record["tags"])) is not None:
                continue
            prefix = sample.prefix(family.spec)
            try:
                whole = reader.feed(told.spec, [sample.text], prefix, sample.tools)
            except (ValueError, KeyError, TypeError):
                continue  # the test above has a name for it
            try:
                streamed = reader.feed(told.spec, list(sample.text), prefix, sample.tools)
            except ValueError as error:
                streamed = error
            count["same" if streamed == whole else "D5"] += 1
    assert count["D5"] < count.total() / 25


def differences(expected: Message, got: Message | Exception, sample: Sample, told: Export) -> Iterator[str]:
    """The names of the differences by which a reader may come to another answer; `?` is none of them."""
    tags = set(sample.record["tags"])
    if isinstance(got, Exception):
        # it raises for the region that we report as malformed, and for a call whose closer stands in a string
        yield by_tags(tags) or loss(told)
        return
    for key in TEXTS:
        if expected[key] == got[key]:
            continue
        if plain(expected[key]) == plain(got[key]):
            yield "D8"
        elif (name := by_tags(tags)) is not None:
            yield name
        elif key == "content" and got[key] is None and not has_implicit(told):
            yield "P5"
        else:
            yield loss(told)
    if expected["tool_calls"] != got["tool_calls"]:
        yield from calls(expected["tool_calls"], got["tool_calls"], tags, told)


def calls(expected: list[Any], got: list[Any], tags: set[str], told: Export) -> Iterator[str]:
    names = [call["name"] for call in expected]
    if (name := by_tags(tags)) is not None:
        yield name
    elif names == [call["name"] for call in got]:
        yield "D7" if loosely(expected) == loosely(got) else loss(told)
    elif got == expected[len(expected) - len(got) :] and "repeats" not in told.spec["fields"]["tool_calls"]:
        yield "D1"
    elif told.spec["fields"]["tool_calls"].get("content") == "json" and not told.losses and stopped(expected, got):
        yield "D4"  # SGLang drops a call whose closer was a stop token, and not left in the text
    else:
        yield loss(told)


def by_tags(tags: set[str]) -> str | None:
    """The difference that a damaged sample is there to show."""
    names = {"marker-in-arguments": "D3", "truncated": "D4", "malformed": "D2"}
    return next((name for tag, name in names.items() if tag in tags), None)


def has_implicit(told: Export) -> bool:
    return any(not {"open", "open_pattern"} & field.keys() for field in told.spec["fields"].values())


def stopped(expected: list[Any], got: list[Any]) -> bool:
    return got == expected[: len(expected) - 1]


def loss(told: Export) -> str:
    return "loss" if told.losses else "?"


def plain(text: str | None) -> str:
    return "".join((text or "").split())


def loosely(value: Any) -> str:
    """Values without their types: `True`, `"true"` and a JSON text of the same are one."""
    return re.sub(r"[\s\"'\\]", "", str(value)).lower().replace("null", "none")
