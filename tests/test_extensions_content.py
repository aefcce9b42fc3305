"""The extended language's content parsers in streams: one answer however the text is cut, nothing lost, no exception."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, cast

import growth
import pytest
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st

import respzoo
from respzoo.events import merge
from respzoo.testing import cuttings

NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
EACH = {"type": "function", "function": {"name": "{name}", "arguments": "{arguments}"}}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "o": {"type": "object"}}},
        },
    }
]  # fmt: skip


def template(**calls: Any) -> Any:
    return respzoo.ResponseTemplate(
        {
            "dialect": "respzoo",
            "defaults": {"role": "assistant"},
            "start_anchor": "<s>",
            "fields": {"tool_calls": calls, "content": {"content_args": {"strip": False}}},
        }
    )


class Result(NamedTuple):
    calls: list[tuple[str, Any]]
    content: str
    dropped: list[tuple[str, str]]


def outcome(spec: Any, pieces: Sequence[str]) -> tuple[Result, list[Any]]:
    parser = respzoo.ResponseParser(spec, prefix="", tools=TOOLS)
    events = [event for piece in pieces for event in parser.feed(piece)]
    message, last = parser.finalize()
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", [])]
    dropped = [(record["raw"], record["reason"]) for record in parser.dropped]
    return Result(calls, message.get("content", ""), dropped), merge([*events, *last])


def read(spec: Any, text: str) -> Result:
    """The answer, which every cutting must give."""
    whole = outcome(spec, [text])
    for how, pieces in cuttings(text):
        assert repr(outcome(spec, pieces)) == repr(whole), how
    return whole[0]


def unfinished(text: str) -> Result:
    return Result([], "", [(text, "unfinished")])


def malformed(text: str, behind: str = "") -> Result:
    return Result([], text + behind, [(text, "malformed")])


def one_answer(spec: Any, text: str, places: Sequence[int]) -> Result:
    ends = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    whole = outcome(spec, [text])
    assert repr(outcome(spec, list(text))) == repr(whole)
    assert repr(outcome(spec, [text[begin:end] for begin, end in pairwise(ends)] or [""])) == repr(whole)
    return whole[0]


def pieces(*marks: str) -> st.SearchStrategy[str]:
    """Texts a few steps away from what a model should write."""
    return st.lists(st.sampled_from(marks), max_size=14).map("".join)


places = st.lists(st.integers(0, 10_000), max_size=10)


def assert_linear(spec: Any, opener: str, unit: str) -> None:
    """Five times the text is about five times the work."""

    def cost(times: int) -> float:
        text = opener + unit * times
        return growth.seconds(partial(outcome, spec, [text[at : at + 7] for at in range(0, len(text), 7)]))

    assert growth.ratio(partial(cost, 400), partial(cost, 2_000), most=10) <= 10


# ------------------------------------------------------------------------------------------------------ json sequence

LINES = template(
    open="<calls>", close="</calls>", content="json", content_args={"sequence": True}, transform=EACH, transform_each=True
)  # fmt: skip
ONE = '{"name": "f", "arguments": {"s": "</calls>"}}'
OTHER = '{"name": "g", "arguments": {}}'


@pytest.mark.parametrize("between", ["\n", " ", ",", ";", "; ", " , ", "\n\n", "", "\n,\n"])
def test_json_values_one_after_another(between: str) -> None:
    both: list[tuple[str, Any]] = [("f", {"s": "</calls>"}), ("g", {})]
    assert read(LINES, f"a<calls>\n{ONE}{between}{OTHER}\n</calls>b") == Result(both, "ab", [])
    assert read(LINES, f"<calls>{ONE}{between}{OTHER}") == Result(both, "", [])  # only the closer is missing


def test_json_sequences_of_none_and_one() -> None:
    assert read(LINES, f"<calls>{ONE}</calls>").calls == [("f", {"s": "</calls>"})]
    assert read(LINES, "a<calls>\n</calls>b") == Result([], "ab", [])
    assert read(LINES, "<calls>\n") == unfinished("<calls>\n")


@pytest.mark.parametrize(
    "body", [f"{ONE},", f"{ONE};\n", f",{OTHER}", f"{ONE},,{OTHER}", f"{ONE} x", "[1] [2]", f"{ONE}\n1"]
)
def test_json_sequences_that_are_none(body: str) -> None:
    assert read(LINES, f"<calls>{body}</calls>b") == malformed(f"<calls>{body}</calls>", "b")


@pytest.mark.parametrize("size", range(len(f"{ONE}\n{OTHER}")))
def test_a_json_sequence_cut_off(size: int) -> None:
    text = f"{ONE}\n{OTHER}"[:size]
    done = text.rstrip() == ONE
    if "</calls>" in text:
        assert read(LINES, f"<calls>{text}").calls == ([("f", {"s": "</calls>"})] if done else [])
    else:
        assert read(LINES, f"<calls>{text}") == unfinished(f"<calls>{text}")


@examples(150)
@given(pieces("<calls>", "</calls>", ONE, OTHER, "\n", ", ", ";", "{", "}", '"', "\\", "[", "x", "1", "</"), places)
def test_json_sequences_made_up(text: str, cuts: Sequence[int]) -> None:
    one_answer(LINES, text, cuts)


# ---------------------------------------------------------------------------------------------------------- loose keys

LOOSE = template(
    open_pattern=r"call:(?P<name>\w+)", close="<end>", content="json", repeats=True, transform=NAMED,
    content_args={"unquoted_keys": "loose", "string_delims": [["<q>", "<q>"]]},
)  # fmt: skip


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ("{}", {}),
        ("{flag:false,key with space:1.5e-05,none:null}", {"flag": False, "key with space": 1.5e-05, "none": None}),
        ("{ a-b : 1 , c.d/e:{x y: [1, {z z:<q>a: 1, b:2}<q>}]}}", {"a-b": 1, "c.d/e": {"x y": [1, {"z z": "a: 1, b:2}"}]}}),
        ("{it's:1,(x):2,é ü:3}", {"it's": 1, "(x)": 2, "é ü": 3}),
        ('{"q k": 1, k q: "a: {b: 1}, c: 2"}', {"q k": 1, "k q": "a: {b: 1}, c: 2"}),
        ("{<q>quoted, key<q>:1}", {"quoted, key": 1}),
        ("{s:<q><end><q>}", {"s": "<end>"}),
        ("{a\\b:1}", {"a\\b": 1}),
    ],
)  # fmt: skip
def test_loose_keys(body: str, arguments: Any) -> None:
    assert read(LOOSE, f"call:f{body}<end>x") == Result([("f", arguments)], "x", [])


@pytest.mark.parametrize("body", ["{:1}", "{ :1}", "{a:}", "{a b}", "{a:1,a:2}", "{a [b:1}"])
def test_loose_keys_that_are_none(body: str) -> None:
    assert read(LOOSE, f"call:f{body}<end>x") == malformed(f"call:f{body}<end>", "x")


@examples(150)
@given(
    pieces("call:f", "{", "a b", "a-b", ":", "<q>", "<", "1", ",", " ", "}", "[", "]", '"', "'", "<end>", "\n"), places
)
def test_loose_keys_made_up(text: str, cuts: Sequence[int]) -> None:
    one_answer(LOOSE, text, cuts)


@pytest.mark.parametrize("unit", ["a b, ", "{", "x  y ", "<q>", "a:1,", '"'])
def test_loose_keys_take_linear_time(unit: str) -> None:
    assert_linear(LOOSE, "call:f{", unit)


# -------------------------------------------------------------------------------------------------- calls line by line

CALLS = template(
    open="<calls>", close="</calls>", content="python-call-list", content_args={"sequence": True}, transform=EACH,
    transform_each=True,
)  # fmt: skip
RAW = template(
    open="<calls>", close="</calls>", content="python-call-list", content_args={"sequence": True, "raw_strings": True},
    transform=EACH, transform_each=True,
)  # fmt: skip


LINE_BY_LINE: list[tuple[str, Any]] = [
    (
        "f(s='x', n=3, o={\"k\": [true, null]})\ng()",
        [("f", {"s": "x", "n": 3, "o": {"k": [True, None]}}), ("g", {})],
    ),
    ("\nf()\n\n  g()\n", [("f", {}), ("g", {})]),
    ("f(), g(); h()", [("f", {}), ("g", {}), ("h", {})]),
    ("f(),\ng()\n;h()", [("f", {}), ("g", {}), ("h", {})]),
    (r'f(s="a\n\"</calls>\"", l=["it\'s"])', [("f", {"s": 'a\n"</calls>"', "l": ["it's"]})]),
    ("f(s='</calls>')\ng(a='')", [("f", {"s": "</calls>"}), ("g", {"a": ""})]),
    ("", []),
    ("\n", []),
]


@pytest.mark.parametrize("spec", [CALLS, RAW], ids=["escaped", "raw"])
@pytest.mark.parametrize(("body", "calls"), LINE_BY_LINE)
def test_calls_line_by_line(spec: Any, body: str, calls: Any) -> None:
    assert read(spec, f"a<calls>{body}</calls>b") == Result(calls, "ab", [])
    if calls:
        assert read(spec, f"<calls>{body}") == Result(calls, "", [])
    else:
        assert read(spec, f"<calls>{body}") == unfinished(f"<calls>{body}")


@pytest.mark.parametrize("spec", [CALLS, RAW], ids=["escaped", "raw"])
@pytest.mark.parametrize(
    "body", ["f() g()", "f()g()", "[f()]", "f(),", "f()\n;", ",f()", "f(1)", "f(s='x', s='y')", "f(n=1", "f(n=)", "x", "f(n=01)"]
)  # fmt: skip
def test_calls_line_by_line_that_are_none(spec: Any, body: str) -> None:
    assert read(spec, f"<calls>{body}</calls>b") == malformed(f"<calls>{body}</calls>", "b")


STRINGS = [
    "it's so", "'", "''", "print('hi')", "a='b'", "f('a'), g", "line\nbreak", "\\", "a\\", r"\n", '"', "', ", "')", "') ", "'),",
    "x = 'a', 'b'", "</calls>", "'</calls>'", "[1, 'a']", "it's (a, 'b')\nor", "é\u2028", ") ", "=", " ", "\n", "'\n'", "','", "')\n",
]  # fmt: skip


@pytest.mark.parametrize("text", STRINGS)
def test_raw_strings(text: str) -> None:
    """Whatever stands in a string comes back, but what reads as its end (see below)."""
    for body, calls in (
        (f"f(s='{text}')", [("f", {"s": text})]),
        (f"f(a=1, s='{text}', b = 'x')", [("f", {"a": 1, "s": text, "b": "x"})]),
        (f"f(s='{text}', t='{text}')\ng(u='{text}' )", [("f", {"s": text, "t": text}), ("g", {"u": text})]),
    ):
        assert read(RAW, f"a<calls>\n{body}\n</calls>b") == Result(calls, "ab", [])
        if "</calls>" not in text:
            assert read(RAW, f"<calls>\n{body}\n") == Result(calls, "", [])


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("x', t='y", [("f", {"s": "x", "t": "y"})]),
        ("x')\ng(a='y", [("f", {"s": "x"}), ("g", {"a": "y"})]),
        ("x')\n</calls>\n<calls>h(a='y", [("f", {"s": "x"}), ("h", {"a": "y"})]),
    ],
)
def test_raw_strings_that_cannot_be_told(text: str, calls: Any) -> None:
    """Nothing is escaped: text that reads as the string's end is one."""
    assert read(RAW, f"<calls>f(s='{text}')</calls>").calls == calls


def test_a_raw_string_cut_off() -> None:
    text = "<calls>\nf(s='it's', n=1)\ng(t='x')\n</calls>"
    for size in range(len("<calls>"), len(text)):
        result = read(RAW, text[:size])
        cut = text[len("<calls>") : size].strip()
        if cut == "f(s='it's', n=1)":
            assert result.calls == [("f", {"s": "it's", "n": 1})]
        elif cut.startswith("f(s='it's', n=1)\ng(t='x')"):
            assert result.calls == [("f", {"s": "it's", "n": 1}), ("g", {"t": "x"})]
        else:
            assert result == unfinished(text[:size]), size


def test_a_raw_string_cut_where_another_call_begins() -> None:
    for text in ("<calls>f(s='x')\ng", "<calls>f(s='x'), g", "<calls>f(s='x')\ng("):
        assert read(RAW, text) == unfinished(text)


def test_a_raw_string_never_closed() -> None:
    text = "<calls>f(s='x)\n</calls>and on"
    assert read(RAW, text) == malformed(text)


@examples(150)
@given(
    pieces("<calls>", "</calls>", "f(", "g()", "s='", "'", ")", ",", "\n", " ", "t=", "1", '"', "[", "]", "it's", "', t='", "')\n", ";"), places
)  # fmt: skip
def test_raw_strings_made_up(text: str, cuts: Sequence[int]) -> None:
    one_answer(RAW, text, cuts)
    one_answer(RAW, f"<calls>f(s='{text}')</calls>", cuts)
    one_answer(CALLS, text, cuts)


@examples(150)
@given(st.lists(st.tuples(st.sampled_from("fgh"), st.dictionaries(st.sampled_from(["s", "t", "a_b"]), st.text("a' ),=\n[]\\\"é", max_size=12))), min_size=1))  # fmt: skip
def test_raw_strings_come_back(calls: list[tuple[str, dict[str, str]]]) -> None:
    """As Olmo 3's chat template writes them, where no string holds what may be its end."""
    assume(not any(re.search(r"'[ \n]*[,)]", text) for _, args in calls for text in args.values()))
    body = "\n".join(
        name + "(" + ", ".join(f"{key}='{text}'" for key, text in args.items()) + ")" for name, args in calls
    )
    assert read(RAW, f"<calls>\n{body}\n</calls>") == Result(calls, "", [])


@pytest.mark.parametrize("unit", ["' ", "')\n", "', a", "'\n\n\n", "')\ng", "x", "', t='", ")"])
def test_raw_strings_take_linear_time(unit: str) -> None:
    assert_linear(RAW, "<calls>f(s='", unit)


# ------------------------------------------------------------------------------------------------------------ endings

JSON_ENDS = template(
    open_pattern=r"\[C\](?P<name>\w+)\[A\]", content="json", repeats=True, transform=NAMED, ends_with_value=True
)
LIST_ENDS = template(
    open="functools", close="<end>", content="json", transform=EACH, transform_each=True, ends_with_value=True
)
PYTHON_ENDS = template(
    open="<p>", close="</p>", content="python-call-list", transform=EACH, transform_each=True, ends_with_value=True
)
DELIMS_END = template(
    open_pattern=r"call:(?P<name>\w+)", content="json", repeats=True, transform=NAMED, ends_with_value=True,
    content_args={"unquoted_keys": True, "string_delims": [["<q>", "<q>"]]},
)  # fmt: skip


@pytest.mark.parametrize(
    "body", ['{}', '{"s": "}"}', '{"s": "\\"}", "o": {"k": [[], {}]}}', ' \n{"s": "[C]g[A]{}"}', '{"s": "a\\\\"}', '{"o": {"}": 1}, "n": 3}']
)  # fmt: skip
def test_a_region_ends_with_its_value(body: str) -> None:
    value = json.loads(body)
    assert read(JSON_ENDS, f"a[C]f[A]{body}b") == Result([("f", value)], "ab", [])
    assert read(JSON_ENDS, f"[C]f[A]{body}[C]g[A]{body}}} b") == Result([("f", value), ("g", value)], "} b", [])


def test_each_content_that_shows_its_end() -> None:
    calls: list[tuple[str, Any]] = [("f", {"s": "]<end>"}), ("g", {})]
    body = json.dumps([{"name": name, "arguments": arguments} for name, arguments in calls])
    assert read(LIST_ENDS, f"a functools{body}b") == Result(calls, "a b", [])
    assert read(PYTHON_ENDS, "a<p>[f(s=']<end>'), g()]b") == Result(calls, "ab", [])
    assert read(PYTHON_ENDS, "<p>[f(s='it\\'s]', l=[[], {'k': (1)}])] x").calls == []
    assert read(DELIMS_END, "call:f{s:<q>}]<q>,l:[<q>\n<q>]}b") == Result([("f", {"s": "}]", "l": ["\n"]})], "b", [])


def test_a_closer_where_the_value_has_not_ended() -> None:
    for text in ("functools<end>", "functools [<end>", 'functools[{"name": <end>'):
        assert read(LIST_ENDS, f"{text}b") == malformed(text, "b")
    assert read(LIST_ENDS, 'functools[{"name": "<end>').dropped == [('functools[{"name": "<end>', "malformed")]


@pytest.mark.parametrize("body", ["x[]", '"s"', "1", "}", ", {}", "] []"])
def test_text_where_a_value_should_begin(body: str) -> None:
    """There is no value to wait for: the region ends at once."""
    assert read(LIST_ENDS, f"functools {body}b") == Result([], f"functools {body}b", [("functools ", "malformed")])


def test_a_value_cut_off() -> None:
    text = '[C]f[A]{"s": "x", "o": {"k": [1]}}'
    for size in range(len("[C]f[A]"), len(text)):
        assert read(JSON_ENDS, text[:size]) == unfinished(text[:size])


@pytest.mark.parametrize(("value", "behind"), [('{"s": "a" ', '"b"}'), ('{"s": "x', '\ny"} z'), ('{"a" ', "{}")])
def test_a_string_that_cannot_be_one(value: str, behind: str) -> None:
    text = f"[C]f[A]{value}{behind}"
    assert read(JSON_ENDS, text) == Result([], text, [(f"[C]f[A]{value}", "malformed")])


def test_brackets_of_other_kinds_are_counted_all_the_same() -> None:
    assert read(JSON_ENDS, "[C]f[A]{]b") == malformed("[C]f[A]{]", "b")


def test_a_closer_that_begins_with_brackets() -> None:
    spec = template(
        open_pattern=r"<c (?P<name>\w+)>",
        close_pattern=r"\}\s*\}?</c>",
        content="json",
        transform=NAMED,
        repeats=True,
        ends_with_value=True,
    )
    assert read(spec, '<c f>{"o": {}}</c>b') == Result([("f", {"o": {}})], "b", [])
    assert read(spec, '<c f>{"n": 1}</c>b') == Result([("f", {"n": 1})], "b", [])
    assert read(spec, '<c f>{"o": {"p": {}}</c>b') == malformed('<c f>{"o": {"p": {}}</c>', "b")


@pytest.mark.parametrize(
    "args", [{"content": "text"}, {"content": "json", "content_args": {"sequence": True}}, {"content": "xml-inline"}]
)
def test_contents_that_do_not_show_their_end(args: dict[str, Any]) -> None:
    with pytest.raises(respzoo.TemplateError, match="ends_with_value"):
        template(open="<c>", close="</c>", ends_with_value=True, **args)


@examples(150)
@given(
    pieces("[C]f[A]", "functools", "<p>", "</p>", "<end>", "[", "]", "{", "}", "(", ")", '"', "'", "\\", "s", ":", "=", ",", "1", " ", "\n", '{"n": 1}', "<q>"), places
)  # fmt: skip
def test_endings_made_up(text: str, cuts: Sequence[int]) -> None:
    for spec, opener in (
        (JSON_ENDS, "[C]f[A]"),
        (LIST_ENDS, "functools["),
        (PYTHON_ENDS, "<p>["),
        (DELIMS_END, "call:f{"),
    ):
        one_answer(spec, opener + text, cuts)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text('a"\\{}[]é\n<', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"}]', max_size=4), inner, max_size=3),
    max_leaves=8,
)


@examples(150)
@given(
    st.dictionaries(st.text('ab"}]{', max_size=4), json_values, max_size=4), st.booleans(), st.text('a]}"<', max_size=5)
)
def test_any_object_ends_with_itself(value: dict[str, Any], ascii_only: bool, behind: str) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert read(JSON_ENDS, f"[C]g[A]{text}{behind}") == Result([("g", value)], behind, [])


@pytest.mark.parametrize("unit", ["[", '"', '\\"', "{}", '"a",', "x"])
def test_endings_take_linear_time(unit: str) -> None:
    assert_linear(JSON_ENDS, "[C]f[A]{", unit)


# ------------------------------------------------------------------------------------------------------- types in tags

TYPED = template(
    open_pattern=r'<i n="(?P<name>[^"]*)">', close="</i>", content="xml-inline", repeats=True, transform=NAMED,
    content_args={
        "tag_pattern": r'<p n="(?P<key>[^"]*)" s="(?P<type>\w+)">(?P<value>.*?)</p>',
        "types": {"true": {"name": "text", "args": {"strip": False}}, "false": {"name": "json"}}, "unescape_keys": True,
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ('<p n="s" s="true">02139</p>', {"s": "02139"}),
        ('<p n="n" s="true">7</p>', {"n": "7"}),  # what it says it is, whatever the schema says
        ('<p n="s" s="false">7</p>', {"s": 7}),
        ('<p n="n" s="false"> 7 </p>', {"n": 7}),
        ('<p n="o" s="false">{"a": </p>', {"o": '{"a": '}),
        ('<p n="n" s="other">7</p><p n="s" s="other">7</p>', {"n": 7, "s": "7"}),
        ('<p n="s" s="true">a</i> <p n="x" s="false"> b</p>', {"s": 'a</i> <p n="x" s="false"> b'}),
        ('<p n="a&amp;b" s="true">&amp;</p>\n<p n="s" s="true"></p>', {"a&b": "&amp;", "s": ""}),
    ],
)
def test_a_tag_may_state_its_type(body: str, arguments: Any) -> None:
    assert read(TYPED, f'a<i n="f">{body}</i>b') == Result([("f", arguments)], "ab", [])
    assert read(TYPED, f'<i n="f">{body}') == unfinished(f'<i n="f">{body}') or "</i>" in body


@examples(150)
@given(
    st.dictionaries(st.text("ab&é ", max_size=4), st.text("a</>\"p\n=", max_size=8) | st.integers(-9, 9) | st.none(), max_size=3)
)  # fmt: skip
def test_typed_tags_come_back(arguments: dict[str, Any]) -> None:
    body = "".join(
        f'<p n="{key.replace("&", "&amp;")}" s="{str(isinstance(value, str)).lower()}">'
        f"{value if isinstance(value, str) else json.dumps(value)}</p>"
        for key, value in arguments.items()
    )
    assert read(TYPED, f'<i n="g">{body}</i>').calls == [("g", arguments)]


@examples(150)
@given(
    pieces('<i n="f">', "</i>", '<p n="a" s="true">', '<p n="b" s="false">', "</p>", "1", "\n", "<", "x", "{"), places
)
def test_typed_tags_made_up(text: str, cuts: Sequence[int]) -> None:
    one_answer(TYPED, text, cuts)
    one_answer(TYPED, f'<i n="f">{text}', cuts)


# -------------------------------------------------------------------------------------- closing tags missing or quoted

LINED = template(  # as Qwen writes them
    open_pattern=r"\s*(?:<call>\s*<f=(?P<name>\w+)>|<f=(?P<name>\w+)>\n)", close_pattern=r"</f>(?:\s*</call>)?",
    content="xml-inline", repeats=True, transform=NAMED,
    content_args={"tag_pattern": r"<p=(?P<key>[^>\n]+)>\n?(?P<value>.*?)\n?</p>"},
)  # fmt: skip
PAIRED = template(  # as GLM does
    open_pattern=r"\s*<call>\s*(?P<name>[^\s<]+)", close="</call>", content="xml-inline", repeats=True, transform=NAMED,
    content_args={"tag_pattern": r"<key>(?P<key>.*?)</key>\s*<value>(?P<value>.*?)</value>"},
)  # fmt: skip
INLINE = template(  # as MiniMax M2 and DeepSeek do
    within={"open": "<calls>", "close": "</calls>"}, open_pattern=r'<i n="(?P<name>[^"]+)">', close="</i>",
    content="xml-inline", repeats=True, transform=NAMED,
    content_args={"tag_pattern": r'<p n="(?P<key>[^"]+)">(?P<value>.*?)</p>'},
)  # fmt: skip
STOPPED = respzoo.ResponseTemplate(
    {
        **PAIRED.spec,
        "fields": {**PAIRED.spec["fields"], "content": {"close": "<stop>", "content_args": {"strip": False}}},
    }
)


def lined(name: str, *args: tuple[str, str]) -> str:
    return f"<call>\n<f={name}>\n" + "".join(f"<p={key}>\n{text}\n</p>\n" for key, text in args) + "</f>\n</call>"


def paired(name: str, *args: tuple[str, str]) -> str:
    return f"<call>{name}" + "".join(f"<key>{key}</key><value>{text}</value>" for key, text in args) + "</call>"


def inline(name: str, *args: tuple[str, str]) -> str:
    return f'<i n="{name}">\n' + "".join(f'<p n="{key}">{text}</p>\n' for key, text in args) + "</i>"


OPTIONAL = template(
    open_pattern=r'<i n="(?P<name>[^"]+)">', close="</i>", content="xml-inline", repeats=True, transform=NAMED,
    content_args={"tag_pattern": r'<p n="(?P<key>[^"]+)">\n?(?P<value>.*?)\n?</p>'},
)  # fmt: skip
SHAPES = [(LINED, lined), (PAIRED, paired), (INLINE, inline)]


@pytest.mark.parametrize(("spec", "write"), SHAPES, ids=["lined", "paired", "inline"])
def test_calls_quoted_in_a_value(spec: Any, write: Any) -> None:
    """Balanced markup is text: calls with and without arguments, nested, several, tags alone."""
    quoted = write("g", ("b", "2"), ("c", "3"))
    nested = write("h", ("d", f"see\n{quoted}\nabove"), ("e", "4"))
    tags = quoted[quoted.index("<p" if spec is not PAIRED else "<key") : quoted.rindex("</f" if spec is LINED else "</call" if spec is PAIRED else "</i")]  # fmt: skip
    for value in (
        quoted,
        nested,
        tags,
        write("g"),
        write("g") + write("g"),
        f"{quoted}\n{nested}",
        f"a {quoted} b {write('g')}\n{nested} c",
    ):
        for text in (value, f"Write\n{value}\nso.", f"{value}x"):
            text = text.strip()
            calls: list[tuple[str, Any]] = [("f", {"s": text, "x": "y"}), ("f", {"s": "", "x": text}), ("g", {})]
            written = "".join(write(name, *args.items()) for name, args in calls)
            assert read(spec, f"A {written} B").calls == calls, text


@pytest.mark.parametrize(("spec", "write"), SHAPES, ids=["lined", "paired", "inline"])
@pytest.mark.parametrize(
    "value", ["use <p=x> so", "</p> x", "a </p> b </f> c", "</f>", "</call> x", "<call>", "<call> and </call>; <key>.", "<key>",
              "Close: </p> and </f> and <p=x> are text", "Use </value> and <key>k</key><value> here", 'the </p> and <p n="b"> tag', 'the <p n="b"> tag', "</i>x", "<i>", "<f=g>", "</calls>"]
)  # fmt: skip
def test_single_tags_in_a_value(spec: Any, write: Any, value: str) -> None:
    assert read(spec, write("f", ("s", value), ("x", value))).calls == [("f", {"s": value, "x": value})]


LEFT_OUT: list[tuple[str, Any]] = [
        # the next tag opens
        ("<call>\n<f=f>\n<p=s>\nDallas\n<p=t>\nTX\n</p>\n<p=u>\nf\n</p>\n</f>\n</call>", [("f", {"s": "Dallas", "t": "TX", "u": "f"})]),
        ("<call>\n<f=f>\n<p=s>\n1\n\n<p=t>\n2\n<p=u>\n3\n</p>\n</f>\n</call>", [("f", {"s": "1\n", "t": "2", "u": "3"})]),
        ("<call>\n<f=f>\n<p=s>\n<p=t>\n2\n</p>\n</f>\n</call>", [("f", {"s": "", "t": "2"})]),
        ("<call>\n<f=f>\n<p=s>\n1\n</p>\n<p=t>\n2\n<p=u>\n3\n</p>\n</f>\n</call>", [("f", {"s": "1", "t": "2", "u": "3"})]),
        # and quotes another, or nothing closes the last one
        ("<call>\n<f=f>\n<p=s>\n1\n<p=t>\nsee\n<p=x>\n2\n</p>\n!\n</p>\n</f>\n</call>", [("f", {"s": "1", "t": "see\n<p=x>\n2\n</p>\n!"})]),
        ("<call>\n<f=f>\n<p=s>\n1\n<p=t>\n2\n</f>\n</call>", [("f", {"s": "1", "t": "2"})]),
        ("<call>\n<f=f>\n<p=s>\n1\n</f>", [("f", {"s": "1"})]),
        ("<call>\n<f=f>\n<p=s>\n1\n</call>\n</f>\n </call> \n", [("f", {"s": "1"})]),
        # the next call begins
        ("<call>\n<f=f>\n<p=s>\n1\n</f>\n</call>\n<call>\n<f=g>\n<p=b>\n2\n</p>\n</f>\n</call>", [("f", {"s": "1"}), ("g", {"b": "2"})]),
        ("<call>\n<f=f>\n<p=s>\n1\n</f>\n</call>\n<call>\n<f=g>\n</f>\n</call>", [("f", {"s": "1"}), ("g", {})]),
        ("<call>\n<f=f>\n<p=s>\n1\n</f>\n<f=g>\n<p=b>\n2\n</p>\n</f>", [("f", {"s": "1"}), ("g", {"b": "2"})]),
        ("<call>\n<f=f>\n<p=s>\n1\n<p=t>\n2\n</f>\n<f=g>\n<p=b>\n2\n</f>\n<f=h>\n</f>", [("f", {"s": "1", "t": "2"}), ("g", {"b": "2"}), ("h", {})]),
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "calls"), LEFT_OUT)
def test_a_closing_tag_left_out(text: str, calls: Any) -> None:
    assert read(LINED, text).calls == calls
    if not text.endswith("\n"):
        assert read(LINED, f"before {text}").calls == calls


LEFT_OUT_PAIRED: list[tuple[str, Any]] = [
        ("<call>f<key>s</key><value>1<key>t</key><value>2</value></call>", [("f", {"s": "1", "t": "2"})]),
        ("<call>f\n<key>s</key>\n<value>1\n<key>t</key>\n<value>2</value>\n</call>", [("f", {"s": "1", "t": "2"})]),
        ("<call>f<key>s</key><value>1 </call>", [("f", {"s": "1 "})]),
        ("<call>f\n<key>s</key>\n<value>1\n</call>\n", [("f", {"s": "1"})]),
        ("<call>f<key>s</key><value><b>1</b></call>", [("f", {"s": "<b>1</b>"})]),
        ("<call>f<key>s</key><value>1</call><call>g<key>b</key><value>2</call>", [("f", {"s": "1"}), ("g", {"b": "2"})]),
        ("<call>f<key>s</key><value>1</call><call>g</call>", [("f", {"s": "1"}), ("g", {})]),
        ("<call>f<key>s</key><value><call>h<key>x</key><value>1</value></call></call><call>g</call>", [("f", {"s": "<call>h<key>x</key><value>1</value></call>"}), ("g", {})]),
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "calls"), LEFT_OUT_PAIRED)
def test_a_closing_tag_left_out_behind_key_and_value(text: str, calls: Any) -> None:
    assert read(PAIRED, text).calls == calls
    assert read(STOPPED, f"{text}<stop>").calls == calls


def test_a_closing_tag_left_out_in_a_wrapper() -> None:
    one, two = '<i n="f">\n<p n="s">1\n<p n="t">2</p>\n</i>', '<i n="f">\n<p n="s">1\n</i>'
    assert read(INLINE, f"a<calls>\n{one}\n</calls>b") == Result([("f", {"s": "1", "t": "2"})], "ab", [])
    for text in (two, f"<calls>\n{two}\n</calls>", f"<calls>\n{two}\n</calls>\n"):
        assert read(INLINE, text).calls == [("f", {"s": "1"})]
    assert read(INLINE, f"<calls>{two}{two}\n{one}</calls>").calls == [("f", {"s": "1"})] * 2 + [
        ("f", {"s": "1", "t": "2"})
    ]
    spaced = '<i n="f"><p n="s">1\n<p n="t">2</p></i>'
    assert read(OPTIONAL, spaced).calls == [("f", {"s": "1", "t": "2"})]  # framed by line breaks or not, as it comes
    inline_tag = '<i n="f"><p n="s">1 <p n="t">2</p></i>'  # in the middle of a line it is text
    assert read(INLINE, inline_tag).calls == [("f", {"s": '1 <p n="t">2'})]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (LINED, "<call>\n<f=f>\n<p=s>\n1\n</f>\n</call>\nDone."),  # is the closer the value's text?
        (PAIRED, "<call>f<key>s</key><value>1</value>junk</call>"),
        (PAIRED, "<call>f<key>s</key><value>1</call> and </call>"),
        (INLINE, '<i n="f"><p n="s">use <p n="t"> so </p> and</i>'),
        (LINED, "<call>\n<f=f>\n<p=s>\n1\n<call>\n<f=g>\n<p=b>\n2\n</p>\n</f>\n</call>"),  # quoted, and then cut?
        (LINED, "<call>\n<f=f>\n<p=s>\n1\n<p=x>\n2\n</p>\njunk\n<p=t>\n3\n</p>\n</f>\n</call>"),
        (PAIRED, "<call>fjunk<key>s</key></call>"),
        (PAIRED, "<call>f<key>s</key><value>1</value> junk <key>t</key></call>"),
    ],
)  # fmt: skip
def test_what_could_be_either_is_no_call(spec: Any, text: str) -> None:
    """Malformed: its text is content."""
    assert read(spec, f"a{text}") == Result([], f"a{text}", [(text, "malformed")])


@pytest.mark.parametrize("text", ["<call>f junk</call>", '<call>f{"a": 1}</call>', "<call>f<key>a</key></call>", "<call>f <x><key>s</key><value>1</value></call>"])  # fmt: skip
def test_text_where_a_tag_should_stand(text: str) -> None:
    assert read(PAIRED, f"{text}b{paired('g')}") == Result([("g", {})], f"{text}b", [(text, "malformed")])


def test_other_closing_tags_are_none_of_ours() -> None:
    for text in ("<call>f</x></call>", "<call>f</x>\n<key>s</key><value>1</value></x></call>"):
        assert read(PAIRED, f"{text}b").content == "b"


def test_a_value_with_a_closing_tag_in_it_and_none_of_its_own() -> None:
    """The next call is read all the same."""
    text = "<call>f<key>s</key><value>1</value>junk</call>"
    assert read(PAIRED, f"{text}{paired('g')}") == Result([("g", {})], text, [(text, "malformed")])


@pytest.mark.parametrize(("spec", "write"), SHAPES, ids=["lined", "paired", "inline"])
def test_any_call_cut_off(spec: Any, write: Any) -> None:
    """Wherever the end comes, a call that is not closed is none, whatever calls it quotes."""
    quoted = write("g", ("b", "2"), ("c", "3"))
    text = write("f", ("s", f"see\n{quoted}\nabove"), ("x", "y"))
    closer = "</f>" if spec is LINED else "</call>" if spec is PAIRED else "</i>"
    mention = write("f", ("s", f"a call is {quoted[: quoted.index('>') + 1]} and </f></call></i>"))
    for size in range(len(mention) - len("</call>") - 3):
        assert outcome(spec, [mention[:size]])[0].calls == [], mention[:size]
    for size in range(len(text) - len("</call>") - 3):
        result = read(spec, text[:size])
        assert result.calls == [], text[:size]
        if closer in text[:size]:
            assert result.dropped == [(text[:size], "malformed")]


@examples(150)
@given(
    pieces("<call>\n<f=f>\n", "<f=g>\n", "<p=s>\n", "\n<p=t>\n", "\n</p>", "\n</p>\n", "</f>", "\n</f>\n</call>", "<call>", "</call>", "x", "\n", " ", "<", "</"), places
)  # fmt: skip
def test_lined_tags_made_up(text: str, cuts: Sequence[int]) -> None:
    one_answer(LINED, text, cuts)
    one_answer(LINED, f"<call>\n<f=f>\n<p=s>\n{text}", cuts)


@examples(150)
@given(
    pieces("<call>f", "<call>", "</call>", "<key>s</key>", "<key>t</key>\n<value>", "<value>", "</value>", "</value>\n", "x", "\n", " ", "</x>", "<", "<call>g</call>", "<stop>"), places
)  # fmt: skip
def test_paired_tags_made_up(text: str, cuts: Sequence[int]) -> None:
    one_answer(PAIRED, text, cuts)
    one_answer(STOPPED, f"<call>f<key>s</key><value>{text}", cuts)


@examples(150)
@given(
    pieces("<calls>", "</calls>", '<i n="f">', "</i>", '<p n="s">', '\n<p n="t">', "</p>", "x", "\n", " ", '<i n="g">\n</i>'), places
)  # fmt: skip
def test_inline_tags_made_up(text: str, cuts: Sequence[int]) -> None:
    one_answer(INLINE, text, cuts)
    one_answer(INLINE, f'<calls><i n="f"><p n="s">{text}', cuts)


@pytest.mark.parametrize(
    ("spec", "opener", "units"),
    [
        (LINED, "<call>\n<f=f>\n<p=s>\n", ["\n", "\n<p=s>\n", "\n</p>", "</f>", "<call>\n<f=f>\n<p=s>\n", "\n</p>\n</f>", "  \n<p", "</f>\n<f=f>\n", "</f>\n</call>\n<call>\n<f=g>\n<p=s>\n1"]),
        (PAIRED, "<call>f<key>s</key><value>", ["<key>s</key><value>", "</value>", "</call>", "</x>", "</call> <call>f ", "<call>f<key>s</key><value>", "</value></call>", " </key>", "</call><call>f<key>a</key><value>1"]),
        (INLINE, '<i n="f"><p n="s">', ['\n<p n="s">', "</p> ", "</calls>", "</i></calls>", "\n    "]),
    ],
)  # fmt: skip
def test_tags_take_linear_time(spec: Any, opener: str, units: list[str]) -> None:
    for unit in units:
        assert_linear(spec, opener, unit)


# --------------------------------------------------------------------------------------------------------------- trees

NAMED_TAGS = template(  # as MiniMax M3 writes them
    within={"open": "[m]<calls>", "close": "[m]</calls>"}, open_pattern=r'\[m\]<i n="(?P<name>[^"]+)">', close="[m]</i>",
    content="xml-tree", repeats=True, transform=NAMED,
    content_args={"open_tag": r"\[m\]<(?P<key>[^<>/\s]+)>", "close_tag": r"\[m\]</(?P<key>[^<>/\s]+)>", "item": "item"},
)  # fmt: skip
TYPED_TAGS = template(  # as Command 5 does
    within={"open": "<calls>", "close": "</calls>"}, open_pattern=r'<call id="\d+" name="(?P<name>[^"]+)">', close="</call>",
    content="xml-tree", repeats=True, transform=NAMED,
    content_args={
        "open_tag": r'<v(?: name="(?P<key>[^"]*)")?(?: type="(?P<type>\w+)")?>', "close_tag": "</v>", "unescape_keys": True,
        "types": {"raw": {"name": "text", "args": {"strip": False}}, "json": {"name": "json"}, "dict": "object", "list": "list"},
    },
)  # fmt: skip
TREE_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "g",
            "parameters": {
                "type": "object",
                "properties": {
                    "n": {"type": "integer"}, "s": {"type": "string"}, "l": {"type": "array", "items": {"type": "number"}},
                    "o": {"type": "object", "properties": {"n": {"type": "integer"}, "l": {"type": ["array", "null"], "items": {"type": "object", "properties": {"b": {"type": "boolean"}}}}}},
                    "e": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"n": {"type": "integer"}}}]},
                },
            },
        },
    }
]  # fmt: skip


def named_tag(key: str, value: Any) -> str:
    if isinstance(value, dict):
        value = "".join(named_tag(name, item) for name, item in cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        value = "".join(named_tag("item", item) for item in cast("list[Any]", value))
    return f"[m]<{key}>{value}[m]</{key}>"


def typed_tag(key: str | None, value: Any) -> str:
    name = "" if key is None else f' name="{key.replace("&", "&amp;").replace(chr(34), "&quot;")}"'
    if isinstance(value, dict):
        items = "".join(typed_tag(name, item) for name, item in cast("dict[str, Any]", value).items())
        return f'<v{name} type="dict">{items}</v>'
    if isinstance(value, list):
        return f'<v{name} type="list">{"".join(typed_tag(None, item) for item in cast("list[Any]", value))}</v>'
    if isinstance(value, str):
        return f'<v{name} type="raw">{value}</v>'
    return f'<v{name} type="json">{json.dumps(value)}</v>'


def named(name: str, **arguments: Any) -> str:
    return f'[m]<i n="{name}">' + "".join(named_tag(key, value) for key, value in arguments.items()) + "[m]</i>"


def typed(name: str, **arguments: Any) -> str:
    return (
        f'<call id="0" name="{name}">' + "".join(typed_tag(key, value) for key, value in arguments.items()) + "</call>"
    )


def grown(spec: Any, text: str) -> list[Any]:
    parser = respzoo.ResponseParser(spec, prefix="", tools=TREE_TOOLS)
    parser.feed(text)
    return [call["function"]["arguments"] for call in parser.finalize()[0].get("tool_calls", [])]


@pytest.mark.parametrize(
    ("arguments", "without", "with_schema"),
    [
        ({"s": "x", "n": "7"}, {"s": "x", "n": "7"}, {"s": "x", "n": 7}),
        ({"s": ""}, {"s": ""}, {"s": ""}),
        ({"s": " a\n<b>1</b>\n"}, {"s": " a\n<b>1</b>\n"}, {"s": " a\n<b>1</b>\n"}),
        ({"o": {"n": "1", "l": [{"b": "true"}, {"b": "no"}], "x": "y"}}, None, {"o": {"n": 1, "l": [{"b": True}, {"b": "no"}], "x": "y"}}),
        ({"o": {"l": []}, "l": ["1", "2.5"]}, {"o": {"l": ""}, "l": ["1", "2.5"]}, {"o": {"l": []}, "l": [1, 2.5]}),
        ({"l": [], "o": {}}, {"l": "", "o": ""}, {"l": [], "o": {}}),
        ({"l": {"a": "1", "b": "2"}}, {"l": {"a": "1", "b": "2"}}, {"l": [1, 2]}),  # a list by the schema's word
        ({"o": ["1"]}, {"o": ["1"]}, {"o": {"item": "1"}}),
        ({"s": {"k": "v"}}, {"s": {"k": "v"}}, {"s": "[m]<k>v[m]</k>"}),
        ({"e": {"n": "1"}}, {"e": {"n": "1"}}, {"e": {"n": 1}}),
        ({"e": "x"}, {"e": "x"}, {"e": "x"}),
        ({"x": [[["1"], "2"], {"y": ["3"]}]}, None, {"x": [[["1"], "2"], {"y": ["3"]}]}),
    ],
)  # fmt: skip
def test_tags_named_by_their_keys(arguments: Any, without: Any, with_schema: Any) -> None:
    without = without or arguments
    written = f"a[m]<calls>{named('h', **arguments)}\n{named('g', **arguments)}[m]</calls>b"
    assert read(NAMED_TAGS, written) == Result([("h", without), ("g", without)], "ab", [])
    assert grown(NAMED_TAGS, written) == [without, with_schema]
    lined = written.replace("[m]<", "\n[m]<").replace("]</i>", "]</i>\n") if "" not in arguments.values() else written
    assert read(NAMED_TAGS, named("h", **arguments)).calls == [("h", without)]
    assert len(read(NAMED_TAGS, lined).calls) == 2


def test_a_key_more_than_once_is_a_list_but_for_an_argument() -> None:
    assert read(NAMED_TAGS, '[m]<i n="h">[m]<b>[m]<c>1[m]</c>[m]<d>x[m]</d>[m]<c>2[m]</c>[m]</b>[m]</i>').calls == [
        ("h", {"b": {"c": ["1", "2"], "d": "x"}})
    ]
    twice = '[m]<i n="h">[m]<a>1[m]</a>[m]<a>2[m]</a>[m]</i>'
    assert read(NAMED_TAGS, twice) == malformed(twice)


def test_tags_in_text_are_text() -> None:
    quoted = named("g", a="1", l=["2"])
    for text in (
        "x [m]<k>1[m]</k> y",
        f"see {quoted}",
        f"{quoted} above",
        f"see {quoted} above",
        "[m]</b> x",
        "[m]</i> x",
        "a [m]</s> b",
        "[m]<",
        "</s>",
    ):
        assert read(NAMED_TAGS, named("h", s=text, t="u")).calls == [("h", {"s": text, "t": "u"})], text


@pytest.mark.parametrize(
    "value",
    [None, True, -1.5, "", " 02139\n", "<b>x</b>", [], {}, [[], {}], {"a": {"b": [None, "x", {"c": 1}]}}, {"k&\"<": "&amp;"}, "</v> x",
     '<v name="x" type="raw">1</v>', 'see <v type="dict"><v name="a" type="json">1</v></v>', 'lone <v name="x">', "</call>", "<calls></calls>"],
)  # fmt: skip
def test_tags_that_state_their_types(value: Any) -> None:
    arguments = {"a": value, "l": [value, value], "o": {"k": value}}
    assert read(TYPED_TAGS, f"x<calls>{typed('g', **arguments)}{typed('h', z=value)}</calls>y") == Result(
        [("g", arguments), ("h", {"z": value})], "xy", []
    )


def test_a_quoted_call_in_typed_tags() -> None:
    quoted = typed("g", a="1", b=[2, {"c": "</v> x"}])
    for text in (quoted, f"see {quoted} above", typed("g") + typed("g", a=typed("k")), f"{quoted}\n{quoted}."):
        assert read(TYPED_TAGS, typed("f", s=text, t=text) + typed("h")).calls == [
            ("f", {"s": text, "t": text}),
            ("h", {}),
        ], text


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ('<v name="n">7</v><v name="s">7</v>', {"n": 7, "s": "7"}),  # no type: the schema's
        ('<v name="n" type="json">7 7</v>', {"n": "7 7"}),
        ('<v name="n" type="json">"7"</v>', {"n": "7"}),
        ('<v name="n" type="other">7</v>', {"n": 7}),
        ('<v name="o" type="dict">\n <v name="n" type="json">1</v>\n</v>\n', {"o": {"n": 1}}),
        ('<v name="o"><v name="n" type="json">1</v></v>', {"o": {"n": 1}}),
    ],
)
def test_tags_without_a_type_or_not_of_it(body: str, arguments: Any) -> None:
    assert read(TYPED_TAGS, f'<call id="0" name="f">{body}</call>').calls == [("f", arguments)]


@pytest.mark.parametrize(
    "body",
    ["x", '<v name="a" type="dict">x</v>', '<v name="a" type="list"><v type="json">1</v>,</v>', '<v name="a" type="dict"><v type="json">1</v></v>',
     '<v type="json">1</v>', '<v name="a" type="raw">1</v> and', '<v name="a" type="json">1</v><v name="a" type="json">1</v>', "</v>",
     '<v name="o" type="dict"><v name="a" type="raw">1</v>'],
)  # fmt: skip
def test_trees_that_are_none(body: str) -> None:
    text = f'<call id="0" name="f">{body}</call>'
    assert read(TYPED_TAGS, f"{text}{typed('g')}") == Result([("g", {})], text, [(text, "malformed")])
    assert read(TYPED_TAGS, text) == malformed(text)


@pytest.mark.parametrize(("spec", "write"), [(NAMED_TAGS, named), (TYPED_TAGS, typed)], ids=["named", "typed"])
def test_a_tree_cut_off(spec: Any, write: Any) -> None:
    quoted = write("g", a="1", b=["2"])
    text = write("f", o={"k": ["1", "2"], "s": f"see {quoted} above"}, s="x")
    closer = "[m]</i>" if spec is NAMED_TAGS else "</call>"
    for size in range(text.index(">") + 1, len(text)):
        result = read(spec, text[:size])
        assert result.calls == [], text[:size]
        assert result.dropped == [(text[:size], "malformed" if closer in text[:size] else "unfinished")]


def test_a_tag_never_closed_does_not_swallow_the_next_call() -> None:
    text = '<call id="0" name="f"><v name="a" type="raw">1</call>'
    for behind in (typed("g", b=2), f"\n{typed('g', b=2)}", f"</calls>\n<calls>{typed('g', b=2)}"):
        result = read(TYPED_TAGS, text + behind)
        assert ("g", {"b": 2}) in result.calls or "</calls>" in behind
        assert all(name == "g" for name, _ in result.calls)
    assert read(TYPED_TAGS, f"<calls>{text}</calls>").dropped[0] == (text, "malformed")


def test_trees_are_cut_at_a_depth() -> None:
    for depth, good in ((100, True), (101, False), (5_000, False)):
        body = '<v name="a" type="list">' + '<v type="list">' * (depth - 1) + "</v>" * depth
        result = outcome(TYPED_TAGS, [f'<call id="0" name="f">{body}</call>'])[0]
        assert bool(result.calls) is good
    deep = "[m]<a>" * 5_000 + "[m]</a>" * 5_000
    assert not outcome(NAMED_TAGS, [f'[m]<i n="f">{deep}[m]</i>'])[0].calls


@examples(150)
@given(
    pieces('[m]<i n="f">', '[m]<i n="f">[m]<a>', "[m]</i>", "[m]<a>", "[m]</a>", "[m]<item>", "[m]</item>", "x", "\n", "[m]<", "[m]<calls>", "[m]</calls>"), places
)  # fmt: skip
def test_named_trees_made_up(text: str, cuts: Sequence[int]) -> None:
    one_answer(NAMED_TAGS, text, cuts)
    one_answer(NAMED_TAGS, f'[m]<i n="f">[m]<a>{text}', cuts)


@examples(150)
@given(
    pieces('<call id="0" name="f">', "</call>", '<v name="a" type="dict">', '<v name="b" type="raw">', '<v type="json">', "</v>", "1", "\n", "<v", "<calls>", "</calls>"), places
)  # fmt: skip
def test_typed_trees_made_up(text: str, cuts: Sequence[int]) -> None:
    one_answer(TYPED_TAGS, text, cuts)
    one_answer(TYPED_TAGS, f'<call id="0" name="f"><v name="a" type="list">{text}', cuts)


tree_text = st.text('a<>/v \n&"é1', max_size=10).filter(lambda text: "<v" not in text and "</v" not in text)
tree_values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | tree_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(tree_text, inner, max_size=3),
    max_leaves=8,
)


@examples(150)
@given(st.lists(st.dictionaries(tree_text, tree_values, max_size=3), min_size=1, max_size=3))
def test_typed_trees_come_back(calls: list[dict[str, Any]]) -> None:
    written = "".join(typed("h", **arguments) for arguments in calls)
    assert read(TYPED_TAGS, f"<calls>{written}</calls>").calls == [("h", arguments) for arguments in calls]


strings = st.recursive(
    st.text('ab <>/\n"é', min_size=1, max_size=8),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


@examples(150)
@given(st.dictionaries(st.sampled_from("stuv"), strings))
def test_named_trees_come_back(arguments: dict[str, Any]) -> None:
    assert read(NAMED_TAGS, named("h", **arguments)).calls == [("h", arguments)]


@pytest.mark.parametrize(
    ("spec", "opener", "units"),
    [
        (NAMED_TAGS, '[m]<i n="f">[m]<a>', ["[m]<a>", "[m]</a>", "[m]</a> x", "[m]</i>", "[m]</i> x", "[m]<a>[m]</a>", '[m]<i n="f">[m]<a>', "\n"]),
        (TYPED_TAGS, '<call id="0" name="f"><v name="a" type="raw">', ["<v>", "</v>", "</v> x", "</call>", "<v>1</v>", '<v name="', '<call id="0" name="f"><v>', "\n "]),
    ],
)  # fmt: skip
def test_trees_take_linear_time(spec: Any, opener: str, units: list[str]) -> None:
    for unit in units:
        assert_linear(spec, opener, unit)


@pytest.mark.parametrize(
    ("spec", "text", "broken"),
    [
        (PAIRED, "<call>f junk", True), (PAIRED, "<call>f", False), (PAIRED, "<call>f\n </x> <ke", False), (PAIRED, "<call>f\n</cal", False),
        (PAIRED, "<call>f junk<key>s</key><value>1", True), (PAIRED, "<call>f <key>s</key", False), (PAIRED, '<call>f\n{"a', True),
        (LINED, "<call>\n<f=f>\n<p=s", False), (LINED, "<call>\n<f=f>\nso", True), (INLINE, '<calls><i n="f">\nso', True),
        (TYPED_TAGS, '<call id="0" name="f">so', True), (TYPED_TAGS, '<call id="0" name="f"><v name=', False), (NAMED_TAGS, '[m]<i n="f">[m]<', False),
    ],
)  # fmt: skip
def test_where_no_value_can_come_the_end_has_not_cut_it(spec: Any, text: str, broken: bool) -> None:
    assert [reason for _, reason in read(spec, text).dropped][:1] == ["malformed" if broken else "unfinished"]
