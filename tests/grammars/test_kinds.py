"""Schemas of every kind that clients send, also what JSON Schema does not know: a tag compiles, and what is drawn fits."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from machine import before_calls, family, machine, tag_of
from toolbox import read, record, tool

FAMILIES = ["qwen3", "qwen3_xml", "deepseek_v32", "gpt_oss", "mistral_v13", "llama4_pythonic", "kimi_k2"]
FAMILIES += ["cohere_command5", "functiongemma"]

INTEGER, STRING = {"type": "integer"}, {"type": "string"}
TREE = record({"v": INTEGER, "l": {"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}]}}, ["v"])
PAIR = {"type": "array", "prefixItems": [{"type": "boolean"}, INTEGER], "items": False}
BOTH = record({"a": INTEGER, "b": INTEGER}, ["a", "b"])
TWO = [record({"a": INTEGER}, ["a"]), record({"b": INTEGER}, ["b"])]


def one(schema: Any, **said: Any) -> dict[str, Any]:
    return {**record({"x": schema}, ["x"]), **said}


KINDS: dict[str, tuple[Any, Any]] = {
    # by name: the schema, and if it is none by the book, the one that is meant
    "enum": (one({"enum": ["a", "b c", "", 1, 2.5, True, None, ["l"], {"k": 1}]}), None),
    "enum of odd texts": (one({"enum": ["it's", 'say "hi"', "back\\slash", "new\nline", "é"]}), None),
    "const": (one({"const": {"a": [1, {"b": None}], "type": "object"}}), None),
    "a large constant": (one({"const": 12345678901234567890}), one(INTEGER)),
    "an empty enum": (one({"type": "string", "enum": []}), one(STRING)),
    "scalars": (record({"i": INTEGER, "n": {"type": "number"}, "b": {"type": "boolean"}, "z": {"type": "null"}}), None),
    "a list of types": (
        record({"p": {"type": ["string", "integer", "null"]}, "o": {"type": ["object", "null"]}}, ["p", "o"]),
        None,
    ),
    "nullable": (one({"type": "string", "nullable": True}), one({"type": ["string", "null"]})),
    "types of no name": (record({"p": {"type": "any"}, "q": {"type": "file"}}, ["p"]), record({}, ["p"])),
    "anyOf": (one({"anyOf": [*TWO, {"type": "null"}]}), None),
    "oneOf": (one({"oneOf": [INTEGER, {"type": "boolean"}, {"type": "array", "items": STRING}]}), None),
    "allOf": (one({"allOf": TWO}), one(BOTH)),
    "allOf of a reference": (
        one({"allOf": [{"$ref": "#/$defs/E"}], "default": "u"}, **{"$defs": {"E": {"enum": ["u", "v"]}}}),
        None,
    ),
    "allOf of references": (
        one({"allOf": [{"$ref": "#/$defs/A"}, TWO[1]]}, **{"$defs": {"A": TWO[0]}}),
        one(BOTH),
    ),
    "allOf, endless": (
        one({"$ref": "#/$defs/A"}, **{"$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}, TWO[0]]}}}),
        one(TWO[0]),
    ),
    "oneOf at the top": ({"type": "object", "oneOf": TWO}, {"anyOf": TWO}),
    "anyOf at the top, beside properties": (
        {**record({"a": INTEGER, "b": INTEGER}), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        None,
    ),
    "allOf at the top": ({"allOf": TWO}, BOTH),
    "a reference at the top": ({"$ref": "#/$defs/A", "$defs": {"A": BOTH}}, None),
    "a recursive definition": ({**record({"t": {"$ref": "#/$defs/T"}}, ["t"]), "$defs": {"T": TREE}}, None),
    "itself": (
        record({"v": INTEGER, "kids": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}}, ["v"]),
        None,
    ),
    "a reference to nowhere": (one({"$ref": "#/$defs/none"}), one({})),
    "a reference elsewhere": (one({"$ref": "http://example.org/a.json"}), one({})),
    "references in a circle": (
        one({"$ref": "#/$defs/A"}, **{"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}),
        one({}),
    ),
    "no other keys": (record({"a": STRING}, additionalProperties=False), None),
    "any other keys": (record({"a": STRING}, ["a"], additionalProperties=True), None),
    "other keys by a schema": (record({"a": STRING}, ["a"], additionalProperties={"type": "array"}), None),
    "any keys by a schema": ({"type": "object", "additionalProperties": INTEGER}, None),
    "many keys": (record(dict.fromkeys("abcdefgh", STRING), ["a", "h"]), None),
    "many optional keys": (record(dict.fromkeys("abcdefgh", INTEGER)), None),
    "a key of no value": (record({"p": INTEGER, "q": False}, ["p"]), None),
    "a required key of which nothing is said": (record({"a": STRING}, ["a", "z"]), None),
    "keys named as keywords": (record({"type": STRING, "properties": INTEGER, "required": {"type": "boolean"}}), None),
    "required: null": ({"type": "object", "properties": {"a": STRING}, "required": None}, record({"a": STRING})),
    "properties: null": ({"type": "object", "properties": None}, {"type": "object"}),
    "no type": ({"properties": {"a": STRING}, "required": ["a"]}, None),
    "nothing": ({}, None),
    "an object": ({"type": "object"}, None),
    "no properties": (record({}), None),
    "lists of lists": (one({"type": "array", "items": {"type": "array", "items": BOTH}, "minItems": 1}), None),
    "a pair": (one(PAIR), None),
    "a pair and more": (one({**PAIR, "items": {"type": "boolean"}, "minItems": 3}), None),
    "a pair as it was": (
        one({"type": "array", "items": [{"type": "boolean"}, INTEGER], "additionalItems": False}),
        one(PAIR),
    ),
    "any items": (record({"p": {"type": "array", "items": True}, "q": True}, ["p", "q"]), None),
    "notes": (one({"type": "string", "title": "A", "default": "x", "examples": ["y"], "description": None}), None),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_drawn_fits(name: str, kind: str) -> None:
    given, meant = KINDS[kind]
    judge = jsonschema.Draft202012Validator(given if meant is None else meant)
    compiled = machine(name).compile(tag_of(family(name), [tool("f", given)], tool_choice="required"))
    hints = [tool("f", given if meant is None else meant)]
    texts = machine(name).draws(compiled, hints, 4, seed=3, eager=0.5)
    assert texts
    for text in texts:
        reading = read(family(name), before_calls(name) + text, [tool("f", given)])
        if reading.beyond:
            continue
        assert reading.calls, text
        assert not reading.malformed, text
        for call in reading.calls:
            wrong = [error.message for error in judge.iter_errors(call["arguments"])]
            assert not wrong, text


LIMITS = one({"type": "integer", "minimum": 3, "maximum": 17, "multipleOf": 1})
FORMATS = {
    "limits": LIMITS,
    "a pattern": one({"type": "string", "pattern": r"^[A-Z]{2}\d+$"}),
    "a length": one({"type": "string", "minLength": 2, "maxLength": 4}),
    "a format": one({"type": "string", "format": "date"}),
}
IN_JSON = ["qwen3", "gpt_oss", "kimi_k2"]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", FAMILIES)
def test_limits_are_held_in_json(name: str, kind: str) -> None:
    """And elsewhere they are no obstacle."""
    tools = [tool("f", FORMATS[kind])]
    compiled = machine(name).compile(tag_of(family(name), tools, tool_choice="required"))
    validator = jsonschema.Draft202012Validator(FORMATS[kind])
    for text in machine(name).draws(compiled, tools, 4, seed=3, eager=0.5):
        reading = read(family(name), before_calls(name) + text, tools)
        assert reading.calls, text
        assert name not in IN_JSON or all(validator.is_valid(call["arguments"]) for call in reading.calls), text


@pytest.mark.parametrize("name", FAMILIES)
def test_names_of_tools(name: str) -> None:
    for called in ["a.b", "a-b", "server__tool", "x" * 64, "ключ", "t1"]:
        tools = [tool(called, one(INTEGER))]
        tag = family(name).structural_tag(tools, tool_choice="required")
        reason = family(name).structural_tag_reason(tools, tool_choice="required")
        assert (tag is None) == (reason is not None)
        if tag is None:
            assert "cannot be written" in (reason or ""), reason
            continue
        texts = machine(name).draws(machine(name).compile(tag), tools, 3, seed=3, eager=1)
        assert texts
        for text in texts:
            reading = read(family(name), before_calls(name) + text, tools)
            assert [call["name"] for call in reading.calls] == [called] * len(reading.calls), text
            assert reading.calls, text
