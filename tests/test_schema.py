"""Typing arguments by the tool's schema: each rule of it a row."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import pytest

from respzoo.content import Raw, make
from respzoo.schema import read_tools

STRING, INTEGER, NUMBER, BOOLEAN, NULL, OBJECT, ARRAY = (
    {"type": name} for name in ("string", "integer", "number", "boolean", "null", "object", "array")
)


def typed(schema: Any, value: Any, **more: Any) -> Any:
    """The argument `x` of a call, by its schema; a string stands for raw text."""
    parameters = {"type": "object", "properties": {"x": schema}, **more}
    tools = read_tools([{"type": "function", "function": {"name": "f", "parameters": parameters}}])
    return tools.typed("f", {"x": Raw(value) if isinstance(value, str) else value})["x"]


ROWS: list[tuple[str, Any, str, Any]] = [
    # what is a string stays the text, to the letter
    ("string", STRING, " 42\n", " 42\n"),
    ("string", STRING, "null", "null"),
    ("string", STRING, '"quoted"', '"quoted"'),
    ("string", STRING, "", ""),
    # by JSON's own grammar
    ("integer", INTEGER, "42", 42),
    ("integer", INTEGER, " -7\n", -7),
    ("integer, written as a float", INTEGER, "3.0", 3),
    ("integer, written as a power", INTEGER, "1e3", 1000),
    ("integer: 1_000", INTEGER, "1_000", "1_000"),
    ("integer: 02139", INTEGER, "02139", "02139"),
    ("integer: +7", INTEGER, "+7", "+7"),
    ("integer: 7.5", INTEGER, "7.5", "7.5"),
    ("integer: digits of other scripts", INTEGER, "٣", "٣"),
    ("integer: words", INTEGER, "seven", "seven"),
    ("integer: empty", INTEGER, "", ""),
    ("integer: more than int() takes", INTEGER, "9" * 5000, "9" * 5000),
    ("integer: large", INTEGER, "9" * 30, int("9" * 30)),
    ("integer: true", INTEGER, "true", "true"),
    ("number", NUMBER, "1.5", 1.5),
    ("number, whole", NUMBER, "7", 7),
    ("number", NUMBER, "-2.5E-1", -0.25),
    ("number: 1_000.0", NUMBER, "1_000.0", "1_000.0"),
    ("number: .5", NUMBER, ".5", ".5"),
    ("number: 5.", NUMBER, "5.", "5."),
    ("number: NaN", NUMBER, "NaN", "NaN"),
    ("number: inf", NUMBER, "inf", "inf"),
    ("number: Infinity", NUMBER, "-Infinity", "-Infinity"),
    ("number: too large", NUMBER, "1e999", "1e999"),
    ("boolean", BOOLEAN, "true", True),
    ("boolean", BOOLEAN, " false ", False),
    ("boolean, Python's", BOOLEAN, "True", True),
    ("boolean, Python's", BOOLEAN, "False", False),
    ("boolean: TRUE", BOOLEAN, "TRUE", "TRUE"),
    ("boolean: 1", BOOLEAN, "1", "1"),
    ("boolean: yes", BOOLEAN, "yes", "yes"),
    ("null", NULL, "null", None),
    ("null, Python's", NULL, "None", None),
    ("null: empty", NULL, "", ""),
    ("object", OBJECT, '{"a": [1, null]}', {"a": [1, None]}),
    ("object, Python's", OBJECT, "{'a': True, 'b': None}", {"a": True, "b": None}),
    ("object: an array", OBJECT, "[1]", "[1]"),
    ("object: cut off", OBJECT, '{"a": ', '{"a": '),
    ("object: NaN in it", OBJECT, '{"a": NaN}', '{"a": NaN}'),
    ("object: too large a number in it", OBJECT, '{"a": [1e999]}', '{"a": [1e999]}'),
    ("object: a key twice", OBJECT, '{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
    ("object: a key twice, Python's", OBJECT, "{'a': 1, 'a': 2}", "{'a': 1, 'a': 2}"),
    ("object: number keys", OBJECT, "{1: 2}", "{1: 2}"),
    ("object: a set", OBJECT, "{1, 2}", "{1, 2}"),
    ("object: code", OBJECT, "{'a': f()}", "{'a': f()}"),
    ("array", ARRAY, '\n["a", 1]\n', ["a", 1]),
    ("array, Python's", ARRAY, "['a', False]", ["a", False]),
    ("array: a tuple in it", ARRAY, "[(1, 2)]", "[(1, 2)]"),
    ("array: bytes in it", ARRAY, "[b'x']", "[b'x']"),
    ("array: a complex number", ARRAY, "[1j]", "[1j]"),
    ("array: an object", ARRAY, "{}", "{}"),
    ("array: plain text", ARRAY, "a, b", "a, b"),
    ("array: very deep", ARRAY, "[" * 50_000, "[" * 50_000),
    ("array: very deep and closed", ARRAY, "[" * 50_000 + "]" * 50_000, "[" * 50_000 + "]" * 50_000),
    ("array: many signs", ARRAY, "[" + "-" * 50_000 + "1]", "[" + "-" * 50_000 + "1]"),
    # where a string is one of several types, what would not come back exactly stays a string
    ("string or integer", {"type": ["string", "integer"]}, "42", 42),
    ("string or integer: 02139", {"type": ["string", "integer"]}, "02139", "02139"),
    ("string or integer: 1_000", {"type": ["integer", "string"]}, "1_000", "1_000"),
    ("string or integer: white space", {"type": ["integer", "string"]}, " 42", " 42"),
    ("string or integer: 3.0", {"type": ["integer", "string"]}, "3.0", "3.0"),
    ("string or integer: -0", {"type": ["integer", "string"]}, "-0", "-0"),
    ("string or number", {"type": ["number", "string"]}, "1.5", 1.5),
    ("string or number: 1.50", {"type": ["number", "string"]}, "1.50", "1.50"),
    ("string or number: 1e3", {"type": ["number", "string"]}, "1e3", "1e3"),
    ("string or boolean", {"type": ["string", "boolean"]}, "true", True),
    ("string or boolean: True", {"type": ["string", "boolean"]}, "True", "True"),
    ("string or null", {"type": ["string", "null"]}, "null", None),
    ("string or null: None", {"type": ["string", "null"]}, "None", "None"),
    ("string or object", {"type": ["string", "object"]}, '{"a": 1}', {"a": 1}),
    ("string or object, compact", {"type": ["string", "object"]}, '{"a":1}', {"a": 1}),
    ("string or object: Python's", {"type": ["string", "object"]}, "{'a': 1}", "{'a': 1}"),
    ("string or array: text", {"type": ["string", "array"]}, "[draft] x", "[draft] x"),
    # lists of types, unions, nullable
    ("list of types", {"type": ["integer", "null"]}, "null", None),
    ("list of types", {"type": ["integer", "null"]}, "5", 5),
    ("list of types: none fits", {"type": ["integer", "null"]}, "five", "five"),
    ("list of types, unknown ones too", {"type": ["integer", 5, "wat"]}, "5", 5),
    ("nullable", {"type": "integer", "nullable": True}, "null", None),
    ("nullable", {"type": "string", "nullable": True}, "null", None),
    ("nullable: not so", {"type": "integer", "nullable": False}, "null", "null"),
    ("anyOf", {"anyOf": [INTEGER, NULL]}, "None", None),
    ("anyOf", {"anyOf": [STRING, INTEGER]}, "7", 7),
    ("anyOf: 02139", {"anyOf": [STRING, INTEGER]}, "02139", "02139"),
    ("oneOf", {"oneOf": [BOOLEAN, INTEGER]}, "True", True),
    ("allOf", {"allOf": [INTEGER, {"minimum": 3}]}, "7", 7),
    ("unions in unions", {"anyOf": [{"oneOf": [{"allOf": [NUMBER]}]}, NULL]}, "1.5", 1.5),
    ("union beside a type", {"type": "object", "anyOf": [{"required": ["a"]}]}, '{"a": 1}', {"a": 1}),
    # named values
    ("enum of strings", {"enum": ["1", "2"]}, "1", "1"),
    ("enum of integers", {"enum": [1, 2]}, "1", 1),
    ("enum of both: the text itself", {"enum": [1, "1"]}, "1", "1"),
    ("enum with null", {"enum": ["a", None]}, "null", None),
    ("enum with null: a string", {"enum": ["a", None]}, "a", "a"),
    ("enum with the word null", {"enum": ["null", None]}, "null", "null"),
    ("enum with null: no other text is of it", {"enum": ["a", None]}, " None\n", None),
    ("a word or an object", {"anyOf": [{"enum": ["a"]}, {"type": "object"}]}, '{"b":  1}', {"b": 1}),
    ("enum of booleans", {"enum": [True]}, "True", True),
    ("enum beside its type", {"type": "integer", "enum": [1, 2]}, "2", 2),
    ("enum of strings beside its type", {"type": "string", "enum": ["5", "true"]}, "true", "true"),
    ("const", {"const": 5}, "5", 5),
    ("const: a string", {"const": "5"}, "5", "5"),
    ("const: null", {"const": None}, "null", None),
    ("const in a union", {"anyOf": [{"const": "auto"}, INTEGER]}, "auto", "auto"),
    ("const in a union", {"anyOf": [{"const": "auto"}, INTEGER]}, "12", 12),
    # no schema to speak of
    ("no type", {}, "42", "42"),
    ("description only", {"description": "a number"}, "42", "42"),
    ("true", True, "42", "42"),
    ("null for a schema", None, "42", "42"),
    ("a type that is none", {"type": "str"}, "42", "42"),
    ("nonsense", {"type": 5, "anyOf": 3, "enum": {"a": 1}, "$ref": 7, "nullable": "yes"}, "42", "42"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "text", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_raw_text(schema: Any, text: str, expected: Any) -> None:
    value = typed(schema, text)
    assert value == expected
    assert type(value) is type(expected)
    json.dumps(value, allow_nan=False)


DEFS = {
    "$defs": {
        "count": INTEGER,
        "a/b~c": BOOLEAN,
        "loop": {"$ref": "#/$defs/loop"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/count"}, NULL]},
    }
}


@pytest.mark.parametrize(
    ("reference", "text", "expected"),
    [
        ("#/$defs/count", "7", 7),
        ("#/$defs/a~1b~0c", "True", True),
        ("#/$defs/maybe", "null", None),
        ("#/$defs/maybe", "7", 7),
        ("#/$defs/loop", "7", "7"),
        ("#/$defs/missing", "7", "7"),
        ("#/$defs/count/type", "7", "7"),
        ("#", "7", "7"),
        ("https://example.org/schema", "7", "7"),
    ],
)
def test_references(reference: str, text: str, expected: Any) -> None:
    assert typed({"$ref": reference}, text, **DEFS) == expected
    assert typed({"allOf": [{"$ref": reference}]}, text, **DEFS) == expected


def test_unions_that_refer_to_one_another_come_to_an_end() -> None:
    definitions = {name: {"anyOf": [{"$ref": f"#/$defs/{other}"} for other in "abc"] * 3} for name in "abc"}
    definitions["c"]["anyOf"].insert(0, INTEGER)
    assert typed({"$ref": "#/$defs/a"}, "7", **{"$defs": definitions}) in (7, "7")


def test_parameters_behind_a_reference() -> None:
    parameters = {"$ref": "#/$defs/P", "$defs": {"P": {"type": "object", "properties": {"n": INTEGER}}}}
    assert read_tools([{"name": "f", "parameters": parameters}]).typed("f", {"n": Raw("7")}) == {"n": 7}


def test_parameters_in_parts() -> None:
    parameters = {
        "allOf": [{"properties": {"a": INTEGER}}, {"properties": {"b": BOOLEAN}}],
        "properties": {"c": NUMBER},
    }
    tools = read_tools([{"name": "f", "parameters": parameters}])
    assert tools.typed("f", {"a": Raw("1"), "b": Raw("true"), "c": Raw("1.5"), "d": Raw("1")}) == {
        "a": 1, "b": True, "c": 1.5, "d": "1",
    }  # fmt: skip


def test_additional_properties() -> None:
    tools = read_tools([{"name": "f", "parameters": {"properties": {"s": STRING}, "additionalProperties": INTEGER}}])
    assert tools.typed("f", {"s": Raw("1"), "other": Raw("2")}) == {"s": "1", "other": 2}
    closed = read_tools([{"name": "f", "parameters": {"properties": {"s": STRING}, "additionalProperties": False}}])
    assert closed.typed("f", {"other": Raw("2")}) == {"other": "2"}


@pytest.mark.parametrize("value", [7, "7x", True, None, 1.5, [1, "2"], {"a": "7"}, [], {}])
@pytest.mark.parametrize("schema", [STRING, INTEGER, BOOLEAN, OBJECT, ARRAY])
def test_d7_what_json_typed_keeps_its_type(value: Any, schema: Any) -> None:
    tools = read_tools([{"name": "f", "parameters": {"properties": {"x": schema}}}])
    result = tools.typed("f", {"x": value})["x"]
    assert result == value
    assert type(result) is type(value)


def test_a_key_that_came_more_than_once() -> None:
    assert typed({"type": "array", "items": INTEGER}, [Raw("1"), Raw("x"), Raw("02")]) == [1, "x", "02"]
    assert typed(INTEGER, [Raw("1"), Raw("2")]) == [1, 2]
    assert typed(ARRAY, [Raw("1"), Raw("x")]) in ([1, "x"], ["1", "x"])
    assert typed(
        {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/count"}}, NULL]}, [Raw("1"), Raw("2")], **DEFS
    ) == [1, 2]


def test_the_value_parser_speaks_where_no_schema_does() -> None:
    parser = make(
        "xml-inline",
        {
            "tag_pattern": "<(?P<key>.)>(?P<value>[^<]*)",
            "value_parser": {"name": "json", "args": {"allow_non_json": True}},
        },
    )
    arguments = parser.parse("<a>02139<b>7<c>[1]<d>true")
    assert read_tools(None).typed("f", arguments) == {"a": "02139", "b": 7, "c": [1], "d": True}
    tools = read_tools([{"name": "f", "parameters": {"properties": {"a": STRING, "b": STRING, "c": ARRAY}}}])
    assert tools.typed("f", arguments) == {"a": "02139", "b": "7", "c": [1], "d": True}
    assert tools.typed("g", arguments) == {"a": "02139", "b": 7, "c": [1], "d": True}


def test_nested_values() -> None:
    """A value that its parser takes apart is typed part by part."""
    parser = make("xml-inline", {"tag_pattern": "<(?P<key>.)>(?P<value>[^<]*)", "value_parser": {"name": "kv-lines"}})
    schema = {"type": "object", "properties": {"n": INTEGER, "s": STRING}}
    tools = read_tools([{"name": "f", "parameters": {"properties": {"a": schema}}}])
    assert tools.typed("f", parser.parse("<a>n: 7\ns: 02139")) == {"a": {"n": 7, "s": "02139"}}


def test_typing_leaves_the_callers_arguments_alone() -> None:
    given = {"x": [Raw("1")], "y": Raw("2")}
    tools = read_tools([{"name": "f", "parameters": {"properties": {"x": ARRAY, "y": INTEGER}}}])
    tools.typed("f", given)
    assert isinstance(given["x"], list)
    assert isinstance(given["x"][0], Raw)


def test_a_models_text_prints_no_warning() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        typed(OBJECT, r"{'pattern': '\d+'}")
        typed(ARRAY, "[1if 1else 2]")
        typed(ARRAY, "[1 is 1]")
    assert not caught, caught[0].message


# ------------------------------------------------------------------------------------------------------------- tools


def test_tools_as_chat_templates_take_them() -> None:
    function = {"name": "f", "parameters": {"type": "object", "properties": {"x": INTEGER}}}
    for tool in (function, {"type": "function", "function": function}, {"function": function}):
        tools = read_tools(iter([tool]))
        assert bool(tools)
        assert "f" in tools
        assert tools.typed("f", {"x": Raw("7")}) == {"x": 7}


def test_no_tools() -> None:
    for none in (None, [], ()):
        tools = read_tools(none)
        assert not tools
        assert tools.typed("f", {"x": Raw("7")}) == {"x": "7"}


@pytest.mark.parametrize(
    "tool",
    [
        {}, {"name": 5}, {"function": {}}, {"function": None}, {"function": "f"}, {"name": "f"}, {"name": "f", "parameters": None},
        {"name": "f", "parameters": []}, {"name": "f", "parameters": {"properties": None}}, {"name": "f", "parameters": {"properties": []}},
        "f", None, 5,
        {"type": "web_search"},
    ],
    ids=repr,
)  # fmt: skip
def test_odd_tools_type_nothing(tool: Any) -> None:
    assert read_tools([tool]).typed("f", {"x": Raw("7")}) == {"x": "7"}


def forecast(city: str, days: int, detailed: bool | None = None) -> str:
    """Tell the weather to come.

    Args:
        city: Where.
        days: How far.
        detailed: Whether in detail.
    """
    return f"{city}{days}{detailed}"


class Weather:
    def forecast(self, days: int) -> str:
        """Tell the weather to come.

        Args:
            days: How far.
        """
        return str(days)


def test_python_functions_are_tools() -> None:
    tools = read_tools([forecast])
    assert tools.typed("forecast", {"city": Raw("12"), "days": Raw("3"), "detailed": Raw("True")}) == {
        "city": "12", "days": 3, "detailed": True,
    }  # fmt: skip
    assert tools.typed("forecast", {"detailed": Raw("None")}) == {"detailed": None}


def test_methods_are_tools() -> None:
    tools = read_tools([Weather().forecast])
    assert tools.typed("forecast", {"days": Raw("3")}) == {"days": 3}


def test_python_functions_need_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "transformers"] or ["transformers"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(TypeError, match=r"tool 'forecast' is a Python function.*pip install.*JSON schema"):
        read_tools([forecast])
    assert read_tools([{"name": "f"}])
