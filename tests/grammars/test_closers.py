"""A value may hold the family's own closers: a model can write a file about its own syntax."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from machine import CALLING, before_calls, family, machine, tag_of
from toolbox import only_calls, read, record, tool

MARK = "QVQ"


def holding(string: Any) -> dict[str, Any]:
    """Schemas of values that hold one string: it alone, in a list, in an object in a list."""
    deep = {"type": "array", "items": record({"part": string}, ["part"]), "minItems": 1, "maxItems": 1}
    return {"text": string, "list": {"type": "array", "items": string, "minItems": 1, "maxItems": 1}, "deep": deep}


HELD: dict[str, Callable[[str], Any]] = {
    "text": lambda text: text,
    "list": lambda text: [text],
    "deep": lambda text: [{"part": text}],
}
KINDS = list(HELD)


def tools(kind: str, string: Any) -> list[Any]:
    return [tool("write_file", record({"text": holding(string)[kind]}, ["text"]))]


CLOSER = re.compile(r"\]<\]minimax\[>\[</\w+>|</?[^<>]{1,40}>|\[/?[A-Z_]+\]|<\|[^<>]+\|>|[)\]}]+")

CALLS_IN_TAGS = {"xml-inline", "xml-tree"}
UNWRITABLE = {
    "functiongemma": "<escape>",  # ends a string wherever it stands
    "gemma4": '<|"|>',
    "minimax_m3": "]<]minimax[>[</",  # a closing tag, of whatever it is
}
"""What closers begin with that a family's own notation has no way to write in a value."""


@cache
def example(name: str, kind: str = "text") -> str:
    """A call whose string is MARK, as the grammar writes it."""
    compiled = machine(name).compile(tag_of(family(name), tools(kind, {"const": MARK}), tool_choice="write_file"))
    texts = machine(name).draws(compiled, [], 1, seed=3, shy=True, eager=1)
    (text,) = texts
    return re.sub(r"\n\s+", "\n", re.sub(r"  +", " ", text))


@cache
def compiled(name: str, kind: str = "text") -> Any:
    return machine(name).compile(tag_of(family(name), tools(kind, {"type": "string"}), tool_choice="required"))


def in_json(name: str, kind: str = "text") -> bool:
    """Whether a string's text is escaped."""
    return re.search(rf"[\"']{MARK}[\"']", example(name, kind)) is not None


def call(name: str, value: str, kind: str = "text") -> str:
    """The call with this string, written as the family writes it."""
    before, after = example(name, kind).split(MARK)
    if before.endswith('"') and after.startswith('"'):
        value = json.dumps(value, ensure_ascii=False)[1:-1]
    elif before.endswith("'") and after.startswith("'"):
        value = repr(value + '"')[1:-2]
    return before + value + after


def written(name: str, value: str, kind: str = "text") -> str | None:
    """Why a model cannot write this string, or it would be read as another."""
    text = call(name, value, kind)
    stuck = machine(name).stuck(compiled(name, kind), text)
    if stuck is not None:
        return stuck
    reading = read(family(name), before_calls(name) + text, tools(kind, {"type": "string"}))
    if reading.calls != [{"name": "write_file", "arguments": {"text": HELD[kind](value)}}]:
        return f"read as {reading}"
    return None


def closers(name: str, kind: str = "text") -> list[str]:
    """What stands behind the string, piece by piece."""
    return list(dict.fromkeys(CLOSER.findall(example(name, kind).split(MARK)[1])))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLING)
def test_closers_in_a_value(name: str, kind: str) -> None:
    found = closers(name, kind)
    assert found, example(name, kind)
    wrong: dict[str, str] = {}
    for closer in found:
        texts = [f"{closer} and text", f"It ends\n{closer}\nthere.", f"a{closer}<b>", f"{closer} and {closer}."]
        if in_json(name, kind):
            texts += [closer, f"at the end {closer}", f'"{closer}", "']
        for value in texts:
            why = written(name, value, kind)
            if (why is not None) != closer.startswith(UNWRITABLE.get(name, "\0")):
                wrong[value] = why or "can be written"
    assert not wrong


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLING)
def test_what_ends_a_value_is_its_end_or_text(name: str, kind: str) -> None:
    """A value that quotes all that ends a call, in JSON: text. In tags the grammar keeps a model from it."""
    value = "a" + example(name, kind).split(MARK)[1] + "b"
    why = written(name, value, kind)
    in_tags = CALLS_IN_TAGS & {field.content.name for field in family(name).fields.values()}
    assert why is None or ("must not go on" in why and (in_tags or not in_json(name, kind))), why


@pytest.mark.parametrize("name", CALLING)
def test_keys_and_constants_that_quote_closers(name: str) -> None:
    """In an object in a value, where they are as the schema has them."""
    closer = closers(name)[0]
    held = record({closer: {"enum": [f"a{closer}", 1]}}, [closer])
    given = [tool("f", record({"held": {"type": "array", "items": held, "minItems": 1}}, ["held"]))]
    tag = family(name).structural_tag(given, tool_choice="f")
    if tag is None:
        reason = family(name).structural_tag_reason(given, tool_choice="f")
        assert reason == f"{closer!r} cannot be written as a key", reason
        return
    texts = machine(name).draws(machine(name).compile(tag), given, 3, seed=4, eager=1)
    assert texts
    for text in texts:
        reading = read(family(name), before_calls(name) + text, given)
        assert not only_calls(reading, given), text
