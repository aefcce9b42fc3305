"""Every content parser with every argument, beside the reference where the meaning is the reference's."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest
import regex
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from transformers.utils.chat_parsing.content_parsers import parse_content

from respzoo.content import EXTENDED_NAMES, NAMES, Raw, make, settle_raw


class Refused(Exception):
    """Stands for any refusal."""


def ours(text: str, name: str, args: Mapping[str, Any] | None = None) -> Any:
    try:
        return settle_raw(make(name, args or {}).parse(text))
    except ValueError:
        return Refused


def reference(text: str, name: str, args: Mapping[str, Any] | None = None) -> Any:
    try:
        return parse_content(text, name, dict(args or {}))
    except ValueError:
        return Refused


def alike(text: str, name: str, args: Mapping[str, Any] | None = None) -> Any:
    """Our value, which must be the reference's, down to the types."""
    value = ours(text, name, args)
    expected = reference(text, name, args)
    assert repr(value) == repr(expected), text
    return value


def test_the_names() -> None:
    assert set(NAMES) == {"text", "int", "float", "bool", "json", "xml-inline", "kv-lines", "python-call-list"}
    assert [name for name in NAMES if make(name, {}).flat] == ["text", "int", "float", "bool"]


# ------------------------------------------------------------------------------------------------------------- plain


@pytest.mark.parametrize("text", ["", " a b \n", "\u00a0x\u2028", "a"])
@pytest.mark.parametrize("args", [{}, {"strip": True}, {"strip": False}])
def test_text(text: str, args: dict[str, Any]) -> None:
    assert alike(text, "text", args) == (text if args.get("strip") is False else text.strip())


@pytest.mark.parametrize("name", ["int", "float", "bool"])
@pytest.mark.parametrize(
    "text",
    ["7", " 7\n", "-7", "007", "1_000", "1.5", "1e3", "nan", "inf", "true", "TRUE", " True ", "1", "0", "yes", "", "x", "٣"],
)  # fmt: skip
@pytest.mark.parametrize("args", [{}, {"strip": False}])
def test_scalars(name: str, text: str, args: dict[str, Any]) -> None:
    alike(text, name, args)


def test_scalar_values() -> None:
    assert ours(" 42\n", "int") == 42
    assert ours("x", "int") is Refused
    assert ours(" 1.5", "float") == 1.5
    assert ours("", "float") is Refused
    assert ours(" TRUE ", "bool") is True
    assert ours(" TRUE ", "bool", {"strip": False}) is False
    assert ours("no", "bool") is False


# -------------------------------------------------------------------------------------------------------------- json

JSON_TEXTS = [
    '{"a": 1}', ' {"a": [1, 2.5, -3e2, true, false, null, "x"]}\n', "[]", "{}", '"x"', "1", "null", '"\\u00e9\\ud83c\\udf26"', '"é"',
    '{"a": {"b": {"c": []}}}', "", " ", "{", '{"a": }', "{'a': 1}", '{"a": 1,}', '{"a": 1} x', '{"a": "x\ny"}', "NaN", "[Infinity]",
    '{"a": 1, "a": 2}', '{a: 1}', '{ a : 1, b_2:{c:[]}}', '{"a, b: c": "{x: 1, y: 2}"}', '{"q": "say \\"{k: 1}\\""}', "{1: 2}", "{é: 1}",
    '{a: <q>x "y" {z: 1}<q>}', "{a: <q><q>, b: [<q>\n\\n<q>]}", '{"a": <q>open', "plain text", "{a-b: 1}", "{a: b}", '{"s": "<q>"}',
    "(x)", "[1, 2", '{"a": <<x>>}', "{a:<<x>>, b:<q>1<q>}", '"\\x"', "01", "+1", ".5", "1_000", "tRue", "True",
]  # fmt: skip
JSON_ARGS: list[dict[str, Any]] = [
    {},
    {"unquoted_keys": True},
    {"unquoted_keys": False, "string_delims": []},
    {"string_delims": [["<q>", "<q>"]]},
    {"unquoted_keys": True, "string_delims": [["<q>", "<q>"], ["<<", ">>"]]},
    {"allow_non_json": True},
    {"allow_non_json": True, "strip": False},
    {"allow_non_json": True, "unquoted_keys": True, "string_delims": [["<q>", "<q>"]]},
]


@pytest.mark.parametrize("args", JSON_ARGS, ids=repr)
def test_json_is_the_references(args: dict[str, Any]) -> None:
    for text in JSON_TEXTS:
        if text == '{"s": "<q>"}' and args.get("string_delims"):
            continue  # see test_json_delimiters_inside_a_quoted_string
        alike(text, "json", args)


def test_json_values() -> None:
    assert ours('{"a": [1, "x"]}', "json") == {"a": [1, "x"]}
    assert ours("{city: 1}", "json") is Refused
    assert ours("{ city : 1, b:{c:2}}", "json", {"unquoted_keys": True}) == {"city": 1, "b": {"c": 2}}
    assert ours('{"x": "{a: 1, b: 2}"}', "json", {"unquoted_keys": True}) == {"x": "{a: 1, b: 2}"}
    delims = {"string_delims": [['<|"|>', '<|"|>']], "unquoted_keys": True}
    assert ours('{a:<|"|>He said "no", {b: 1}\n\\<|"|>}', "json", delims) == {"a": 'He said "no", {b: 1}\n\\'}
    assert ours(" Paris \n", "json", {"allow_non_json": True}) == "Paris"
    assert ours(" Paris \n", "json", {"allow_non_json": True, "strip": False}) == " Paris \n"
    assert ours("7", "json", {"allow_non_json": True}) == 7


def test_json_delimiters_inside_a_quoted_string() -> None:
    """A mark that stands alone inside a plain JSON string is text of it."""
    assert ours('{"s": "<q>"}', "json", {"string_delims": [["<q>", "<q>"]]}) == {"s": "<q>"}
    assert ours('{"a": "<q>", "b": "<q>"}', "json", {"string_delims": [["<q>", "<q>"]]}) == {"a": "<q>", "b": "<q>"}


def test_json_control_characters_need_no_sentinel() -> None:
    """The reference refuses its own place-holders (\\x01, \\x02) in the text."""
    args = {"string_delims": [["<q>", "<q>"]]}
    assert ours('{"a": <q>\x01\x02<q>}', "json", args) == {"a": "\x01\x02"}


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', '{"x": {"a": 1, "a": 1}}', "NaN", "[Infinity]", '{"a": -Infinity}', '{"a": 1e999}', '{"a": -1e999}']
)  # fmt: skip
def test_json_that_no_call_may_carry(text: str) -> None:
    parser = make("json", {})
    parser.parse(text)
    with pytest.raises(ValueError, match=r"twice|no JSON value|too large"):
        parser.parse(text, strict=True)


def test_json_made_up() -> None:
    chance = random.Random(3)

    def value(depth: int) -> Any:
        kinds: list[Any] = [None, True, chance.randint(-99, 99), 1.5, "", 'q"\\', "{a: 1}", "é\n", "<q>"]
        if depth and chance.random() < 0.6:
            if chance.random() < 0.5:
                return [value(depth - 1) for _ in range(chance.randint(0, 3))]
            return {chance.choice("abc"): value(depth - 1) for _ in range(chance.randint(0, 3))}
        return chance.choice(kinds)

    for _ in range(300):
        made = value(3)
        for text in (json.dumps(made), json.dumps(made, ensure_ascii=False, indent=1)):
            assert ours(text, "json") == made
            assert ours(text, "json", {"unquoted_keys": True}) == made
            alike(text, "json", {"unquoted_keys": True})
            alike(text[: chance.randint(0, len(text))], "json", {"allow_non_json": True})


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000], ids=["[", "{", "[]"]
)
def test_json_too_deep_is_refused_and_no_crash(text: str) -> None:
    """Whatever it raises, it is an Exception that a region turns into region_malformed."""
    with pytest.raises((ValueError, RecursionError)):
        make("json", {}).parse(text)


def test_json_huge_integers_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        make("json", {}).parse("9" * 5_000)


# -------------------------------------------------------------------------------------------------------- xml-inline

TAG = r"<p=(?P<key>[^>]*)>(?P<value>.*?)</p>"
XML_TEXTS = [
    "", "no tags", "<p=a>1</p>", "\n<p=a>1</p>\n<p=b>x y</p>\n", "<p=a></p>", "<p=a>1</p><p=a>2</p><p=b>3</p><p=a>4</p>",
    "<p=a>line\nline</p>", "<p=a>x<p=b>y</p>", "<p=a>open", "x<p=a> 1 </p>y", "<p=>1</p>", '<p=a>{"k": [1]}</p>', "<p=a>02139</p>",
    "<p=a>true</p><p=b>None</p><p=c>null</p>",
]  # fmt: skip
XML_ARGS: list[dict[str, Any]] = [
    {"tag_pattern": TAG},
    {"tag_pattern": TAG, "merge_duplicates": True},
    {"tag_pattern": TAG, "merge_duplicates": False, "value_parser": {"name": "json", "args": {"allow_non_json": True}}},
    {"tag_pattern": TAG, "merge_duplicates": True, "value_parser": {"name": "json", "args": {"allow_non_json": True}}},
    {"tag_pattern": TAG, "value_parser": {"name": "text"}},
    {"tag_pattern": TAG, "value_parser": {"name": "text", "args": {"strip": False}}},
    {"tag_pattern": TAG, "value_parser": {}},
    {"tag_pattern": TAG, "value_parser": {"name": "int"}},
    {"tag_pattern": TAG, "value_parser": {"name": "json"}},
    {"tag_pattern": TAG, "value_parser": {"name": "kv-lines", "args": {"kv_sep": "="}}},
    {"tag_pattern": r"<(?P<key>\w+)>\s*(?P<value>.*?)\s*</(?P=key)>"},
    {"tag_pattern": r"<p=(?P<key>\w+)>"},
    {"tag_pattern": r"<p=(?P<key>\w*)>\n?(?P<value>[^<]*)"},
]


@pytest.mark.parametrize("args", XML_ARGS, ids=repr)
def test_xml_inline_is_the_references(args: dict[str, Any]) -> None:
    for text in [*XML_TEXTS, "<a> x </a><b>y</b>", "<a>x</b></a>"]:
        alike(text, "xml-inline", args)


def test_xml_inline_values() -> None:
    text = "<p=a> 1 </p>\n<p=b>x</p><p=a>2</p>"
    assert ours(text, "xml-inline", {"tag_pattern": TAG}) == {"a": "2", "b": "x"}
    assert ours(text, "xml-inline", {"tag_pattern": TAG, "merge_duplicates": True}) == {"a": [" 1 ", "2"], "b": "x"}
    assert ours(
        "<p=a>[1]</p>", "xml-inline", {"tag_pattern": TAG, "merge_duplicates": True, "value_parser": {"name": "json"}}
    ) == {"a": [1]}
    assert ours("<p=a>[1]</p><p=a>[2]</p>", "xml-inline", {"tag_pattern": TAG, "merge_duplicates": True, "value_parser": {"name": "json"}}) == {
        "a": [[1], [2]]
    }  # fmt: skip


@pytest.mark.parametrize("args", [{}, {"tag_pattern": "<(?P<value>.)>"}, {"tag_pattern": "<a>"}])
def test_xml_inline_without_a_key(args: dict[str, Any]) -> None:
    assert ours("<a><b>", "xml-inline", args) is Refused
    assert reference("<a><b>", "xml-inline", args) is Refused


def test_an_invalid_tag_pattern_is_found_when_it_is_made() -> None:
    with pytest.raises(regex.error):
        make("xml-inline", {"tag_pattern": "("})


# ---------------------------------------------------------------------------------------------------------- kv-lines

KV_TEXTS = [
    "",
    "a: 1",
    " a : 1 \n b:x:y \n\n c \n:e\nd:",
    "a=1;b = 2 ;c",
    "a: 1\r\nb: 2",
    "a:1\na:2",
    "a -> 1 | b -> {}",
    "\n \n",
]
KV_ARGS: list[dict[str, Any]] = [
    {},
    {"strip": False},
    {"line_sep": ";", "kv_sep": "="},
    {"line_sep": ";", "kv_sep": "=", "strip": False},
    {"line_sep": " | ", "kv_sep": "->"},
    {"value_parser": {"name": "json", "args": {"allow_non_json": True}}},
    {"value_parser": {"name": "int"}},
    {"kv_sep": "=", "line_sep": ";", "value_parser": {"name": "text", "args": {"strip": False}}},
]


@pytest.mark.parametrize("args", KV_ARGS, ids=repr)
def test_kv_lines_are_the_references(args: dict[str, Any]) -> None:
    for text in KV_TEXTS:
        alike(text, "kv-lines", args)


def test_kv_lines_values() -> None:
    assert ours("a: 1\n no separator \nurl: http://x\n", "kv-lines") == {"a": "1", "url": "http://x"}
    assert ours("a: 1 \n b:2", "kv-lines", {"strip": False}) == {"a": " 1 ", " b": "2"}
    assert ours("a=1;b=2", "kv-lines", {"line_sep": ";", "kv_sep": "=", "value_parser": {"name": "int"}}) == {
        "a": 1,
        "b": 2,
    }


# -------------------------------------------------------------------------------------------------- python-call-list

GOOD_CALLS: dict[str, Any] = {
    "[]": [],
    " [ ] \n": [],
    "[f()]": [("f", {})],
    "[f(), g()]": [("f", {}), ("g", {})],
    "[ f ( a = 1 , b = 'x' ) , g ( ) ]": [("f", {"a": 1, "b": "x"}), ("g", {})],
    '[a.b-c.d1(x="y")]': [("a.b-c.d1", {"x": "y"})],
    "[f(a-b=1, c.d=2)]": [("f", {"a-b": 1, "c.d": 2})],
    "[f(a=True, b=true, c=False, d=false, e=None, g=null)]": [
        ("f", {"a": True, "b": True, "c": False, "d": False, "e": None, "g": None})
    ],
    "[f(a=-1, b=0, c=1.5, d=-0.5e3, e=1E2, g=9007199254740991)]": [
        ("f", {"a": -1, "b": 0, "c": 1.5, "d": -500.0, "e": 100.0, "g": 9007199254740991})
    ],
    "[f(a=[], b=[1, [2]], c={}, d={'k': {\"l\": None}})]": [
        ("f", {"a": [], "b": [1, [2]], "c": {}, "d": {"k": {"l": None}}})
    ],
    r"""[f(a='it\'s', b="\"q\"", c='\\\/\b\f\n\r\t', d="\u00e9\ud83c\udf26")]""": [
        ("f", {"a": "it's", "b": '"q"', "c": "\\/\b\f\n\r\t", "d": "é🌦"})
    ],
    """[f(a="it's", b='"', c="tab\there")]""": [("f", {"a": "it's", "b": '"', "c": "tab\there"})],
    "[f(a='),]')]": [("f", {"a": "),]"})],
    "[\n f(\n\ta=1\r\n)\n]": [("f", {"a": 1})],
    "[f(a='\u2028é')]": [("f", {"a": "\u2028é"})],
    r"[f(a='\u005c\u0041')]": [("f", {"a": "\\A"})],
    r"[f(a='\u0041\udc00')]": None,
    r"[f(a='\ud83c\ud83c\udf26')]": None,
}
BAD_CALLS = [
    "", " ", "f()", "[f()", "[f(]", "[f)]", "[f(),]", "[,f()]", "[f() g()]", "[f()] x", "x [f()]", "[f(1)]", "[f('x')]", "[f(a=1,)]",
    "[f(a=1 b=2)]", "[f(a)]", "[f(a=)]", "[f(=1)]", "[f(a=1, a=2)]", "[f(a={'k': 1, 'k': 2})]", "[f(a={k: 1})]", "[f(a={1: 2})]",
    "[f(a=[1,])]", "[f(a={'k': 1,})]", "[f(a={'k'})]", "[f(a={'k': })]", "[f(a=(1, 2))]", "[f(a=b)]", "[f(a=TRUE)]", "[f(a=x.y)]",
    "[f(a=01)]", "[f(a=1.)]", "[f(a=.5)]", "[f(a=+1)]", "[f(a=1_000)]", "[f(a=0x10)]", "[f(a=1j)]", "[f(a=--1)]", "[f(a=1e)]",
    "[f(a=9007199254740992)]", "[f(a=-9007199254740992)]", "[f(a=1e999)]", "[f(a=-1e999)]", "[f(a=nan)]", "[f(a=inf)]",
    "[f(a=" + "9" * 5_000 + ")]",
    "[f(a='x)]", '[f(a="x\ny")]', "[f(a='x\ry')]", r"[f(a='\x41')]", r"[f(a='\q')]", r"[f(a='\u12')]", r"[f(a='\ud83c')]",
    r"[f(a='\udf26')]", r"[f(a='\udf26\ud83c')]", "[f(a='\ud83c')]", "[f(a='x' 'y')]", "[f(a=b'x')]", "[f(a=f'x')]", '[f(a="""x""")]',
    "[1f()]", "[f-()]", "[f.()]", "[.f()]", "[f..g()]", "[é()]", "[f(é=1)]", "[f(**x)]", "[f(*x)]", "[f()()]", "[[f()]]", "[f().g()]",
    "[f(a=" + "[" * 101 + "]" * 101 + ")]", "[f(a=1)\u00a0]", "[f(a=\u00a01)]", "[f(a=1+1)]", "[f(a=not True)]", "[f(a=Truex)]",
    "[f(a=1x)]", "[f(a=None.x)]", "{f()}", "(f())", "[f{}]", "[f(a:1)]", "[f(a==1)]", "[f(a=1;b=2)]", "[lambda: 1]", "[f(a='x'])",
    "[f(a=" + "[" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("text", GOOD_CALLS, ids=repr)
def test_python_call_list(text: str) -> None:
    value = alike(text, "python-call-list")
    expected = GOOD_CALLS[text]
    if expected is None:
        assert value is Refused
    else:
        assert value == [{"name": name, "arguments": arguments} for name, arguments in expected]


@pytest.mark.parametrize("text", BAD_CALLS, ids=lambda text: repr(text[:40]))
def test_python_call_list_refuses(text: str) -> None:
    assert alike(text, "python-call-list") is Refused


def test_python_call_list_depth() -> None:
    for depth, accepted in ((100, True), (101, False)):
        for begin, end in (("[", "]"), ("{'k':", "}")):
            text = "[f(a=" + begin * depth + ("1" if begin != "[" else "") + end * depth + ")]"
            assert (alike(text, "python-call-list") is not Refused) is accepted


def test_python_call_list_says_where() -> None:
    with pytest.raises(ValueError, match=r"not a list of calls: .*keyword.* character 3"):
        make("python-call-list", {}).parse("[f(1)]")


def test_python_call_list_made_up() -> None:
    """Texts near the grammar: whatever the reference says of them, so do we."""
    chance = random.Random(11)
    pieces = ["[", "]", "(", ")", ",", "=", "f", "a", "b.c", "d-e", "'x'", '"y"', "1", "-2.5", "True", "None", "{", "}", ":", "{'k': 1}",
              " ", "\n", "[f(a=1)", "f(b='x')", "\\", "'", '"', "g()", "a=[1, {'k': null}]", r"'\u00e9'", r"'\ud83c\udf26'"]  # fmt: skip
    taken = 0
    for _ in range(4_000):
        text = "[" + "".join(chance.choice(pieces) for _ in range(chance.randint(0, 7))) + "]"
        taken += alike(text, "python-call-list") is not Refused
    assert taken > 20
    valid = [text for text, value in GOOD_CALLS.items() if value is not None]
    for _ in range(4_000):
        text = chance.choice(valid)
        at = chance.randrange(len(text) + 1)
        alike(text[:at] + chance.choice(["", *pieces]) + text[at + chance.randint(0, 2) :], "python-call-list")


# ---------------------------------------------------------------------------------------------- the extended language


def extended(text: str, name: str, args: Mapping[str, Any]) -> Any:
    try:
        return make(name, args, extended=True).parse(text, strict=True)
    except ValueError:
        return Refused


def test_extended_arguments_mean_nothing_without_the_dialect() -> None:
    """The reference ignores what it does not know, and takes any true value for true."""
    assert alike("[1]", "json", {"sequence": True}) == [1]
    assert alike("[1] [2]", "json", {"sequence": True}) is Refused
    assert alike("{a b: 1}", "json", {"unquoted_keys": "loose"}) is Refused
    assert alike("{a: 1}", "json", {"unquoted_keys": "loose"}) == {"a": 1}
    assert alike("f()\ng()", "python-call-list", {"sequence": True, "raw_strings": 3}) is Refused
    assert alike("<p=&amp;>1</p>", "xml-inline", {"tag_pattern": TAG, "unescape_keys": True, "types": 7}) == {
        "&amp;": "1"
    }
    assert alike(" a ", "text", {"omit_pattern": "(", "nonsense": None}) == "a"


@pytest.mark.parametrize(
    ("name", "args", "wrong"),
    [
        ("text", {"stripp": True}, r"'stripp' is no argument of 'text'; it takes 'strip', 'omit_pattern'"),
        ("text", {"strip": "no"}, r"'strip': expected true or false, found 'no'"),
        ("text", {"omit_pattern": "("}, r"'omit_pattern': expected a regular expression"),
        ("int", {"omit_pattern": "x"}, r"'omit_pattern' is no argument of 'int'"),
        ("json", {"sequence": 1}, r"'sequence': expected true or false, found 1"),
        ("json", {"unquoted_keys": "lose"}, r"'unquoted_keys': expected true, false or 'loose', found 'lose'"),
        ("json", {"string_delims": ["<q>", "<q>"]}, r"'string_delims': expected a list of pairs"),
        ("json", {"string_delims": [["<q>", ""]]}, r"'string_delims': expected a list of pairs"),
        ("json", {"unquoted_keys": [], "sequence": None}, r"'unquoted_keys': .*; 'sequence': "),
        ("python-call-list", {"raw_strings": True}, r"'raw_strings': needs 'sequence': true"),
        ("python-call-list", {"strip": True}, r"'strip' is no argument of 'python-call-list'"),
        ("xml-inline", {}, r"'tag_pattern': needs a group named 'key'"),
        ("xml-inline", {"tag_pattern": "<a>"}, r"'tag_pattern': needs a group named 'key'"),
        ("xml-inline", {"tag_pattern": "(?P<key>"}, r"'tag_pattern': expected a regular expression"),
        ("xml-inline", {"tag_pattern": TAG, "types": {"a": {"name": "json"}}}, r"needs a group named 'type'"),
        ("xml-inline", {"tag_pattern": TAG, "types": {"a": "json"}}, r"'types': expected an object of content parsers"),
        ("xml-inline", {"tag_pattern": TAG, "types": []}, r"'types': expected an object of content parsers"),
        ("xml-inline", {"tag_pattern": TAG, "value_parser": {}}, r"'value_parser': expected a content parser"),
        ("xml-inline", {"tag_pattern": TAG, "value_parser": {"name": "jsn"}}, r"no content parser is called 'jsn'"),
        ("xml-inline", {"tag_pattern": TAG, "value_parser": {"name": "json", "args": {"x": 1}}}, r"'x' is no argument"),
        ("kv-lines", {"kv_sep": "", "line_sep": 1}, r"'kv_sep': expected a string that is not empty.*'line_sep'"),
    ],
)
def test_the_dialects_arguments_are_checked(name: str, args: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        make(name, args, extended=True)


@pytest.mark.parametrize("args", [args for args in JSON_ARGS if "strip" not in args])
def test_plain_arguments_mean_the_same_in_the_dialect(args: dict[str, Any]) -> None:
    for text in JSON_TEXTS:
        plain = make("json", args)
        try:
            value = plain.parse(text, strict=True)
        except ValueError:
            value = Refused
        assert repr(extended(text, "json", args)) == repr(value)


TYPED = r'<v name="(?P<key>[^"]*)"(?: type="(?P<type>\w*)")?>(?P<value>.*?)</v>'
TYPES = {
    "tag_pattern": TYPED,
    "value_parser": {"name": "json", "args": {"allow_non_json": True}},
    "types": {"raw": {"name": "text", "args": {"strip": False}}, "json": {"name": "json"}, "int": {"name": "int"}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('<v name="a" type="raw"> 02139\n</v>', " 02139\n"),
        ('<v name="a" type="json">02139</v>', "02139"),  # not what it says it is
        ('<v name="a" type="json">{"x": [null]}</v>', {"x": [None]}),
        ('<v name="a" type="json">{"x": 1, "x": 1}</v>', '{"x": 1, "x": 1}'),
        ('<v name="a" type="json">' + "[" * 100_000 + "</v>", "[" * 100_000),
        ('<v name="a" type="int"> 7 </v>', 7),
        ('<v name="a" type="other">7</v>', 7),  # as if it had none
        ('<v name="a" type="">[1]</v>', [1]),
        ('<v name="a">x</v>', "x"),
    ],
)
def test_a_tag_may_state_its_type(text: str, value: Any) -> None:
    parsed = make("xml-inline", TYPES, extended=True).parse(text)
    assert settle_raw(parsed) == {"a": value}
    stated = 'type="raw"' in text or 'type="int"' in text or value == {"x": [None]}
    assert isinstance(parsed["a"], Raw) is not stated


def test_keys_may_be_escaped() -> None:
    args = {"tag_pattern": TYPED, "unescape_keys": True, "merge_duplicates": True}
    text = '<v name="a&amp;lt;&quot;&#233;&#x1F326;&apos;&gt;&lt;">&amp;</v><v name="a&nbsp;&#xD800;&#9999999;&;&amp">1</v>'
    assert ours(text, "xml-inline", args) == {
        "a&amp;lt;&quot;&#233;&#x1F326;&apos;&gt;&lt;": "&amp;",
        "a&nbsp;&#xD800;&#9999999;&;&amp": "1",
    }
    assert settle_raw(extended(text, "xml-inline", args)) == {
        "a&lt;\"é🌦'><": "&amp;",
        "a&nbsp;&#xD800;&#9999999;&;&amp": "1",
    }
    both = '<v name="&lt;">1</v><v name="<">2</v>'
    assert settle_raw(extended(both, "xml-inline", args)) == {"<": ["1", "2"]}


LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@examples(300)
@given(st.lists(LITERALS), st.sampled_from(["\n", " ", ",", ";", " ,\t", "\r\n;\n"]), st.booleans())
def test_any_json_sequence_comes_back(values: list[Any], between: str, spaced: bool) -> None:
    texts = [json.dumps(value, ensure_ascii=spaced, indent=1 if spaced else None) for value in values]
    assert extended(between.join(texts), "json", {"sequence": True}) == values


@examples(300)
@given(st.lists(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True), LITERALS)))
def test_any_sequence_of_calls_comes_back(calls: list[dict[str, Any]]) -> None:
    """JSON is the part of Python's literals that a call's arguments may be."""
    texts = [f"f({', '.join(f'{key}={json.dumps(value)}' for key, value in args.items())})" for args in calls]
    expected = [{"name": "f", "arguments": args} for args in calls]
    for args in ({"sequence": True}, {"sequence": True, "raw_strings": True}):
        assert extended("\n".join(texts), "python-call-list", args) == expected


@examples(300)
@given(st.dictionaries(st.text().map(str.strip).filter(lambda key: key and not set(key) & set('"{}[],:')), LITERALS))
def test_any_loose_key_comes_back(value: dict[str, Any]) -> None:
    text = "{" + ", ".join(f" {key} :{json.dumps(item)}" for key, item in value.items()) + "}"
    assert extended(text, "json", {"unquoted_keys": "loose"}) == value


def test_the_extended_languages_names() -> None:
    assert set(EXTENDED_NAMES) == {*NAMES, "xml-tree"}
    with pytest.raises(KeyError):
        make("xml-tree", TREE)


TREE = {"open_tag": r"<(?P<key>\w+)>", "close_tag": r"</(?P<key>\w+)>", "item": "item"}


def test_xml_tree_as_the_page_of_the_language_shows_it() -> None:
    text = "<city>Paris</city><days><item>1</item><item>2</item></days>"
    assert settle_raw(extended(text, "xml-tree", TREE)) == {"city": "Paris", "days": ["1", "2"]}
    assert extended("", "xml-tree", TREE) == {}


@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        ({}, "needs 'open_tag' and 'close_tag'"),
        ({"open_tag": "<a>", "close_tag": "</a>"}, "'open_tag': needs a group named 'key'"),
        ({**TREE, "types": {"a": "object"}}, "'open_tag': needs a group named 'type'"),
        ({**TREE, "types": {"a": "dict"}}, "'types': expected an object of 'object', 'list' or content parsers"),
        ({**TREE, "open_tag": "("}, "'open_tag': expected a regular expression"),
        ({**TREE, "item": ""}, "'item': expected a string"),
        ({**TREE, "tag_pattern": "x"}, "'tag_pattern' is no argument of 'xml-tree'"),
    ],
)
def test_xml_trees_arguments_are_checked(args: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        make("xml-tree", args, extended=True)


def test_the_dialect_reads_what_pythons_repr_writes() -> None:
    text = r"[f(s='\x08\U0001f326\0\a\v\u00e9\n\\x', n=90071992547409930, m=-" + "9" * 399 + ")]"
    value = [{"name": "f", "arguments": {"s": "\b🌦\0\a\vé\n\\x", "n": 90071992547409930, "m": -int("9" * 399)}}]
    assert extended(text, "python-call-list", {}) == value
    assert ours(text, "python-call-list") is Refused
    for bad in (r"'\x0'", r"'\U0011ffff'", r"'\U0000d800'", r"'\U1f326'", r"'\q'", r"'\N{DASH}'", "9" * 401):
        assert extended(f"[f(s={bad})]", "python-call-list", {}) is Refused


@examples(300)
@given(
    st.dictionaries(
        st.sampled_from("abc"), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists)
    )
)
def test_any_repr_comes_back(arguments: dict[str, Any]) -> None:
    text = f"[f({', '.join(f'{key}={value!r}' for key, value in arguments.items())})]"
    assert extended(text, "python-call-list", {}) == [{"name": "f", "arguments": arguments}]
