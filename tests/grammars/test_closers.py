"""A value may hold the family's own closers: a model can write a file about its own syntax."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import pytest
from machine import CALLING, before_calls, family, machine, tag_of
from toolbox import read, record, tool

TOOLS = [tool("write_file", record({"text": {"type": "string"}}, ["text"]))]
MARK = "QVQ"
CLOSER = re.compile(r"\]<\]minimax\[>\[</\w+>|</?[^<>]{1,40}>|\[/?[A-Z_]+\]|<\|[^<>]+\|>|[)\]}]+")

UNWRITABLE = {
    "functiongemma": "<escape>",  # ends a string wherever it stands
    "gemma4": '<|"|>',
    "minimax_m3": "]<]minimax[>[</",  # a closing tag, of whatever it is
}
"""What closers begin with that a family's own notation has no way to write in a value."""


@cache
def example(name: str) -> str:
    """A call whose value is MARK, as the grammar writes it."""
    tools = [tool("write_file", record({"text": {"const": MARK}}, ["text"]))]
    compiled = machine(name).compile(tag_of(family(name), tools, tool_choice="write_file"))
    texts = machine(name).draws(compiled, [], 1, seed=3, shy=True, eager=1)
    (text,) = texts
    return re.sub(r"\n\s+", "\n", re.sub(r"  +", " ", text))


@cache
def compiled(name: str) -> Any:
    return machine(name).compile(tag_of(family(name), TOOLS, tool_choice="required"))


def in_json(name: str) -> bool:
    """Whether a string's text is escaped."""
    return re.search(rf"[\"']{MARK}[\"']", example(name)) is not None


def call(name: str, value: str) -> str:
    """The call with this value, written as the family writes texts."""
    before, after = example(name).split(MARK)
    if before.endswith('"') and after.startswith('"'):
        value = json.dumps(value, ensure_ascii=False)[1:-1]
    elif before.endswith("'") and after.startswith("'"):
        value = repr(value + '"')[1:-2]
    return before + value + after


def written(name: str, value: str) -> str | None:
    """Why a model cannot write this value, or it would be read as another."""
    text = call(name, value)
    stuck = machine(name).stuck(compiled(name), text)
    if stuck is not None:
        return stuck
    reading = read(family(name), before_calls(name) + text, TOOLS)
    if reading.calls != [{"name": "write_file", "arguments": {"text": value}}]:
        return f"read as {reading}"
    return None


def closers(name: str) -> list[str]:
    """What stands behind the value, piece by piece."""
    return list(dict.fromkeys(CLOSER.findall(example(name).split(MARK)[1])))


@pytest.mark.parametrize("name", CALLING)
def test_closers_in_a_value(name: str) -> None:
    found = closers(name)
    assert found, example(name)
    wrong: dict[str, str] = {}
    for closer in found:
        for value in (f"{closer} and text", f"It ends\n{closer}\nthere.", f"a{closer}<b>", f"{closer} and {closer}."):
            why = written(name, value)
            if (why is not None) != closer.startswith(UNWRITABLE.get(name, "\0")):
                wrong[value] = why or "can be written"
    assert not wrong


@pytest.mark.parametrize("name", CALLING)
def test_what_ends_a_value_is_its_end_or_text(name: str) -> None:
    """A value that quotes all that ends a call, in JSON: text. In tags the grammar keeps a model from it."""
    value = "a" + example(name).split(MARK)[1] + "b"
    why = written(name, value)
    assert why is None or ("must not go on" in why and not in_json(name)), why
