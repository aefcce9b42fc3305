"""Grammars from templates, without an engine: what is asked for, what is refused, and the search that keeps texts free of
a value's end. What xgrammar makes of the tags is in tests/grammars."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
import regex
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from respzoo import ResponseTemplate
from respzoo.grammar.ebnf import Rules, before, fill, quote, spell
from respzoo.grammar.readable import readable
from respzoo.grammar.schemas import Notation, Values, alternatives, properties_of
from respzoo.grammar.texts import Texts
from respzoo.patterns import Unsupported, read
from respzoo.plugins import loaded


def family(name: str) -> ResponseTemplate:
    return loaded().compile(loaded().families[name], "test")


QWEN, XML = family("qwen3"), family("qwen3_xml")
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def tool(name: str = "get_weather", parameters: Any = CITY, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


def schemas(tag: Any) -> list[dict[str, Any]]:
    """Every JSON Schema in a tag."""
    if isinstance(tag, dict):
        node = cast("dict[str, Any]", tag)
        own = [node["json_schema"]] if node.get("type") == "json_schema" else []
        return own + [found for key, item in node.items() if key != "json_schema" for found in schemas(item)]
    return [found for item in cast("list[Any]", tag) for found in schemas(item)] if isinstance(tag, list) else []


def test_a_tag_is_plain_json() -> None:
    tag = QWEN.structural_tag([tool()], tool_choice="required")
    assert tag is not None
    assert tag["type"] == "structural_tag"
    assert json.loads(json.dumps(tag)) == tag
    assert QWEN.structural_tag_reason([tool()], tool_choice="required") is None


@pytest.mark.parametrize(
    "choice",
    [
        "get_weather",
        {"type": "function", "function": {"name": "get_weather"}},
        {"type": "function", "name": "get_weather"},
    ],
)
def test_one_function_by_any_of_its_spellings(choice: Any) -> None:
    tag = QWEN.structural_tag([tool(), tool("ping")], tool_choice=choice)
    assert [schema["properties"]["name"] for schema in schemas(tag)] == [{"const": "get_weather"}]


def test_tools_come_as_anywhere_else() -> None:
    def get_weather(city: str) -> str:
        """Weather.

        Args:
            city: Where.
        """
        return city

    bare = tool()["function"]
    tags = [XML.structural_tag(tools, tool_choice="required") for tools in ([tool()], [bare], [get_weather])]
    assert tags[0] == tags[1] == tags[2]


@pytest.mark.parametrize(
    ("tools", "options", "says"),
    [
        ([], {"tool_choice": "required"}, "no tools"),
        (None, {"tool_choice": "get_weather"}, "'get_weather', which is not among the tools"),
        ([tool()], {"tool_choice": {"type": "function"}}, "expected 'auto', 'required', 'none' or a function's name"),
        ([tool()], {"response_format": {"type": "yaml"}}, "found {'type': 'yaml'}"),
    ],
)
def test_what_cannot_be_asked(tools: Any, options: Any, says: str) -> None:
    with pytest.raises(ValueError, match=regex.escape(says)):
        QWEN.structural_tag(tools, **options)


@pytest.mark.parametrize(
    ("template", "options", "says"),
    [
        (QWEN, {}, "nothing is asked of the model"),
        (QWEN, {"tool_choice": "none"}, "nothing is asked of the model"),
        (family("kimi_vl"), {"tool_choice": "required"}, "no calls"),
        (
            ResponseTemplate(
                {
                    "start_anchor": "<a>",
                    "fields": {
                        "tool_calls": {
                            "open_pattern": r"<f (?P<name>\w+)>",
                            "close": "</f>",
                            "content": "kv-lines",
                            "transform": {
                                "type": "function",
                                "function": {"name": "{name}", "arguments": "{content}"},
                            },
                        },
                        "content": {},
                    },
                }
            ),
            {"tool_choice": "required"},
            "arguments in 'kv-lines'",
        ),
    ],
)
def test_none_has_its_reason(template: ResponseTemplate, options: Any, says: str) -> None:
    assert template.structural_tag([tool()], **options) is None
    assert says in (template.structural_tag_reason([tool()], **options) or "")


def test_a_name_that_the_syntax_cannot_write() -> None:
    lfm = family("lfm2")
    assert "cannot be written as a name in Python" in (
        lfm.structural_tag_reason([tool("get weather")], tool_choice="get weather") or ""
    )


@pytest.mark.parametrize(
    ("choice", "function", "asked", "exact"),
    [
        ("required", None, None, True),
        ("required", False, None, False),
        ("required", None, False, False),
        ("auto", True, None, True),
        ("auto", None, True, True),
    ],
)
def test_whose_arguments_fit_their_schema(choice: str, function: bool | None, asked: bool | None, exact: bool) -> None:
    one = tool() if function is None else tool(strict=function)
    tag = QWEN.structural_tag([one], tool_choice=choice, strict=asked)
    (schema,) = schemas(tag)
    assert schema["$defs"]["parameters"] == (CITY if exact else {"type": "object", "additionalProperties": True})


def test_references_lead_where_they_led() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    parameters = {"type": "object", "properties": {"list": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    (schema,) = schemas(QWEN.structural_tag([tool(parameters=parameters)], tool_choice="required"))
    assert schema["$defs"]["parameters"]["properties"]["list"] == {"$ref": "#/$defs/parameters/$defs/node"}


# free text


SOURCES = [r"</v>\s*</f>", r"<v=[^>]+>", r"</v>(?:\s*</\w+>)*\s*</f>", r"ab|ba", r"a{2,3}b?", r"\[\s*\w+\("]


@examples(300)
@given(
    st.lists(st.sampled_from(SOURCES), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from(["</v>", "</f>", "<v=", "x", ">", " ", "\n", "\u2003", "a", "b", "[", "é", "("])).map(
        "".join
    ),
)
def test_a_search_finds_what_the_regex_module_finds(sources: list[str], text: str) -> None:
    texts = Texts([read(source) for source in sources])
    assert texts.take(text) == (not any(regex.search(source, text, regex.DOTALL) for source in sources))


@pytest.mark.parametrize("text", ["[é(", "[東京(", "[ a東("])
def test_letters_of_any_script_make_a_name(text: str) -> None:
    assert not Texts([read(r"\[\s*\w+\(")]).take(text)


def test_a_search_for_nothing_or_for_too_much_is_refused() -> None:
    with pytest.raises(Unsupported, match="empty text"):
        Texts([read("a*")])
    with pytest.raises(Unsupported, match="more than 10 states"):
        Texts([read("a.{12}b")], most=10)


def test_a_value_may_hold_its_closing_tag() -> None:
    texts = Texts([read(r"</v>\s*</f>")])
    assert texts.take("a </v> b </f> c")
    assert not texts.take("a </v>\n </f>")


# patterns


@pytest.mark.parametrize(
    ("source", "names", "start"),
    [
        (r"<tool_call>\s*<function=(?P<name>[^>]+)>", {"name"}, "<tool_call>\n<function="),
        (r"<invoke name=(?:\"(?P<name>\w+)\"|'(?P<name>\w+)')>", {"name"}, "<invoke name='"),
        (r"\s*<f>", {"name"}, " <f>"),
    ],
)
def test_what_a_pattern_begins_with(source: str, names: set[str], start: str) -> None:
    assert not Texts([before(read(source), names)]).take(start)


def test_an_optional_part_that_holds_a_given_group_is_not_optional() -> None:
    tree = read(r'<v(?: type="(?P<type>\w+)")?>')
    assert spell(fill(tree, {"type": ["raw"]})) == r'"<v" " type=\"" "raw" "\"" ">"'
    assert spell(tree) == r'"<v" (" type=\"" ([0-9A-Z_a-z])+ "\"")? ">"'


def test_strings_and_classes_are_escaped() -> None:
    assert quote('a"\\\n\x01é') == '"a\\"\\\\\\n\\u0001é"'
    assert spell(read(r"[^\]\-^<]")) == "[^\\-<\\]\\^]"


# schemas


def test_schemas_are_followed_through_references_and_unions() -> None:
    root = {"$defs": {"a": {"type": "string"}}}
    schema = {"description": "x", "anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}
    assert [part["type"] for part in alternatives(schema, root)] == ["string", "null"]
    merged = alternatives({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}, "required": ["b"]}]}, {})
    assert [(key, needed) for key, _, needed in properties_of(merged[0], {}).named] == [("a", False), ("b", True)]


INTEGER, OPEN = {"type": "integer"}, {"type": "object", "additionalProperties": True}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({}, OPEN),
        (CITY, CITY),
        ({"type": "object", "properties": None, "required": None}, OPEN),
        (
            {"properties": {"const": {"const": {"type": "object"}}, "q": False}},
            {"type": "object", "properties": {"const": {"const": {"type": "object"}}}},
        ),
        (
            {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]},
            {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]},
        ),
        (
            {"properties": {"a": {}, "b": {}}, "required": ["b"], "anyOf": [{"required": ["a"]}, {}]},
            {
                "anyOf": [
                    {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b", "a"]},
                    {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"]},
                ]
            },
        ),
        ({"$ref": "#/$defs/A", "$defs": {"A": CITY}}, {"$ref": "#/$defs/A", "$defs": {"A": CITY}}),
        ({"properties": {"a": {"$ref": "#/$defs/A"}}}, {"type": "object", "properties": {"a": {}}}),
        (
            {"properties": {"a": {"type": "array", "items": [INTEGER]}}, "required": ["b"]},
            {
                "type": "object",
                "properties": {"a": {"type": "array", "prefixItems": [INTEGER]}, "b": {}},
                "required": ["b"],
            },
        ),
        (
            {"properties": {"a": {"type": "any"}, "b": {"type": "string", "nullable": True}, "c": {"const": 2**64}}},
            {"type": "object", "properties": {"a": {}, "b": {"type": ["string", "null"]}, "c": INTEGER}},
        ),
    ],
)
def test_parameters_are_read_as_they_are_meant(given: dict[str, Any], meant: dict[str, Any]) -> None:
    assert readable(given) == meant


def test_a_recursive_schema_is_a_recursive_rule() -> None:
    rules = Rules()
    string = rules.add('"s"', "string")
    plain = Notation(
        string, lambda text: [text], lambda text: [text], {"true": ["t"], "false": ["f"], "null": ["n"]}, string
    )
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    name = Values(rules, plain, {"$defs": {"node": node}}).value({"$ref": "#/$defs/node"})
    assert rules.text(name).count(f"{name} ::=") == 1
    assert f" {name}" in rules.text("x").replace(f"{name} ::=", "")
