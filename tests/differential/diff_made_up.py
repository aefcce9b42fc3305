"""Templates and texts that hypothesis makes up: see tests/test_properties.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

CALL = {"type": "function", "function": "{content}"}
NAMED_CALL = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
EACH_CALL = {"type": "function", "function": {"name": "{name}", "arguments": "{arguments}"}}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {
                    "n": {"type": "integer"},
                    "s": {"type": "string"},
                    "b": {"type": ["boolean", "null"]},
                    "u": {"anyOf": [{"type": "string"}, {"type": "number"}]},
                    "o": {"type": "object"},
                },
            },
        },
    }
]
TAG = r"<p=(?P<key>\w+)>\n?(?P<value>.*?)\n?</p>"


def reasoning_fields() -> st.SearchStrategy[dict[str, Any]]:
    opens = st.sampled_from(
        (
            {"open": "<t>"},
            {"open": ["<t>", "<tt>", "<t>!"]},
            {"open_pattern": r"\s*<t>\n?"},
            {"open_pattern": r"<t>(?:\s*<tt>)?"},
            {"open_pattern": r"(?:<tt>)?<t>"},
        )
    )
    closes = st.sampled_from(
        (
            {"close": "</t>"},
            {"close": ["</t>", "</t>\n\n", "</tt>"]},
            {"close_pattern": r"\n?</t>\s*"},
            {"close_pattern": r"</t>(?:\s*</tt>)?"},
            {"close_pattern": r"\s*</t>|$"},
            {"close_pattern": r"\s*(?:</t>|</tt>)+"},
            {"close_pattern": r"\n?</t>\s*|\s*(?=<c>)"},
            {"close_pattern": r"(?<!\\)</t>\s*"},
            {},
        )
    )
    return st.builds(lambda *parts: merged_dict(*parts), opens, closes, text_ways())


def text_ways() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(
        (
            {},
            {"content": "text"},
            {"content_args": {"strip": False}},
            {"repeats": True, "join": "", "content_args": {"strip": False}},
            {"repeats": True, "join": " "},
        )
    )


def call_fields() -> st.SearchStrategy[dict[str, Any]]:
    plain_opens = st.sampled_from(
        (
            {"open": "<c>"},
            {"open": ["<c>", "<cc>"]},
            {"open_pattern": r"\s*<c>\s*"},
            {"open_pattern": r"\s*<c>(?=\s*\{.*?\}\s*</c>)"},
        )
    )
    named_opens = st.sampled_from(
        (
            {"open_pattern": r"\s*<c>\s*<f=(?P<name>[^>\n]+)>"},
            {"open_pattern": r"<c>(?P<name>\w+)\n"},
            {"open_pattern": r"(?:<c>|<cc>) to=(?P<name>\w+)[^<]*<m>"},
        )
    )
    closes = st.sampled_from(
        (
            {"close": "</c>"},
            {"close": ["</c>", "</cc>"]},
            {"close_pattern": r"\s*</c>"},
            {"close_pattern": r"</f>\s*</c>|</c>"},
            {"close_pattern": r"(?<=[}>\]\n])\s*</c>"},
            {"close_pattern": r"</c>(?:\s*</cc>)?"},
        )
    )
    bodies = st.sampled_from(
        (
            (False, {"content": "json", "transform": CALL, "repeats": True}),
            (True, {"content": "json", "transform": NAMED_CALL, "repeats": True}),
            (
                True,
                {
                    "content": "xml-inline",
                    "content_args": {"tag_pattern": TAG},
                    "transform": NAMED_CALL,
                    "repeats": True,
                },
            ),
            (
                True,
                {
                    "content": "xml-inline",
                    "transform": NAMED_CALL,
                    "repeats": True,
                    "content_args": {
                        "tag_pattern": TAG,
                        "value_parser": {"name": "json", "args": {"allow_non_json": True}},
                        "merge_duplicates": True,
                    },
                },
            ),
            (True, {"content": "kv-lines", "transform": NAMED_CALL, "repeats": True}),
            (False, {"content": "python-call-list", "transform": EACH_CALL, "transform_each": True}),
            (False, {"content": "json", "transform": EACH_CALL, "transform_each": True}),
            (
                True,
                {
                    "content": "json",
                    "transform": NAMED_CALL,
                    "repeats": True,
                    "content_args": {"unquoted_keys": True, "string_delims": [["<q>", "<q>"]]},
                },
            ),
        )
    )
    return bodies.flatmap(
        lambda body: st.builds(
            lambda *parts: merged_dict(*parts), named_opens if body[0] else plain_opens, closes, st.just(body[1])
        )
    )


def content_fields() -> st.SearchStrategy[dict[str, Any] | None]:
    implicit = st.sampled_from(
        (
            {},
            {"close": "<e>"},
            {"close": ["<e>", "<ee>"]},
            {"close_pattern": r"\s*(?:<e>|<ee>)\s*"},
            {"close_pattern": r"\s*(?:<e>|\Z)"},
            {"close_pattern": r"\s*(?:<e>|<c>(?!.*?</c>).*\Z)"},
        )
    )
    explicit = st.sampled_from(
        (
            {"open": "<a>", "close": "</a>"},
            {"open_pattern": r"<a>\n?", "close_pattern": r"\n?</a>|<e>"},
            {"open": "<a>"},
        )
    )
    shaped = st.builds(lambda *parts: merged_dict(*parts), st.one_of(implicit, implicit, explicit), text_ways())
    return st.one_of(shaped, shaped, shaped, st.none())


def merged_dict(*parts: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for part in parts:
        result.update(part)
    return result


def odd_fields() -> st.SearchStrategy[dict[str, Any]]:
    """Fields that no model has."""
    return st.sampled_from(
        (
            {},
            {"score": {"open": "<n>", "close": "</n>", "content": "int"}},
            {"score": {"open": "<n>", "content": "float", "repeats": True}},
            {"score": {"open": "<n>", "close": ["</n>", "\n"], "content": "bool", "optional": False}},
            {"meta": {"open": "<n>", "close": "</n>", "content": "kv-lines"}},
            {"meta": {"open": "<n>", "close": "</n>", "content": "json", "repeats": True, "join": ", "}},
            {"meta": {"open": "<n>", "close": "</n>", "content": "xml-inline"}},
            {"meta": {"open": "<n>", "close": "</n>", "content": "json", "transform": {"v": "{content.n.s}"}}},
        )
    )


@st.composite
def templates(draw: st.DrawFn) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    reasoning = draw(st.one_of(reasoning_fields(), st.none()))
    if reasoning is not None:
        fields[draw(st.sampled_from(("reasoning_content", "thinking")))] = reasoning
    fields["tool_calls"] = draw(call_fields())
    content = draw(content_fields())
    if content is not None:
        fields["content"] = content
    fields.update(draw(st.one_of(st.just({}), odd_fields())))
    names = draw(st.permutations(list(fields)))
    return {
        "defaults": draw(st.sampled_from(({"role": "assistant"}, {"role": "assistant", "content": ""}, {}))),
        "start_anchor": "<s>",
        "fields": {name: fields[name] for name in names},
    }


# --------------------------------------------------------------------------------------------------- made-up texts

MARKERS = (
    "<t>",
    "<tt>",
    "</t>",
    "</tt>",
    "<c>",
    "<cc>",
    "</c>",
    "</cc>",
    "<f=f>",
    "</f>",
    "f\n",
    " to=f",
    "<m>",
    "<a>",
    "</a>",
    "<e>",
    "<ee>",
    "<s>",
    "<p=s>",
    "</p>",
    "<q>",
    "<n>",
    "</n>",
    "<n>3</n>",
    '<n>{"n": {"s": 1}}</n>',
)
SPACES = ("\n", " ", "\n\n", " \n ", "\t", "  ")
WORDS = ("word", "a < b", "x", "ü", "🌦", '"', "'", "{", "}", "[", "]", "\\", "=", ",", ":", "0", "</", "<")

json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-9, 99),
        st.sampled_from(
            ("", "x", "</c>", "<c>", "a\nb", '"', "\\", "é\u2028", "</t></c>", "02139", "true", "<q>", "\n</p>")
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(("n", "s", "b", "u", "o", "k")), inner, max_size=2)
    ),
    max_leaves=4,
)
arguments = st.dictionaries(st.sampled_from(("n", "s", "b", "u", "o", "k")), json_values, max_size=3)


def dumped(value: Any) -> st.SearchStrategy[str]:
    return st.sampled_from(
        (
            json.dumps(value),
            json.dumps(value, ensure_ascii=False),
            json.dumps(value, indent=1),
            f" {json.dumps(value)}\n",
        )
    )


def json_calls() -> st.SearchStrategy[str]:
    return arguments.map(lambda given: {"name": "f", "arguments": given}).flatmap(dumped)


def xml_bodies() -> st.SearchStrategy[str]:
    values = st.sampled_from(
        ("v", "3", "true", "None", "", "a\nb", "</p> in text", "x</c>y", '{"a": 1}', "02139", " 3 ", "<p=s>", "1.5")
    )
    tags = st.builds(
        lambda key, value, wrap: f"<p={key}>{wrap}{value}{wrap}</p>",
        st.sampled_from(("n", "s", "b", "u", "o", "k")),
        values,
        st.sampled_from(("", "\n")),
    )
    return st.lists(tags, max_size=3).map("\n".join)


def kv_bodies() -> st.SearchStrategy[str]:
    return st.lists(
        st.sampled_from(("n: 3", "s: x", "no separator", "b: true", "u: 02139", "", "s: a: b")), max_size=3
    ).map("\n".join)


def python_bodies() -> st.SearchStrategy[str]:
    return st.sampled_from(
        (
            "[]",
            '[f(s="x")]',
            "[f(n=1), f()]",
            "[f(s='</c>')]",
            '[f(s="a\\nb", o={"k": [1, None]})]',
            "[f(",
            "f(s=1)",
            '[f(s="x]',
            "[f(s='it\\'s')]",
        )
    )


def broken(text: str) -> st.SearchStrategy[str]:
    return st.integers(0, len(text)).map(lambda at: text[:at])


def pieces() -> st.SearchStrategy[str]:
    body = st.one_of(json_calls(), xml_bodies(), kv_bodies(), python_bodies(), json_values.flatmap(dumped))
    opened = st.sampled_from(("<c>", "<c><f=f>", "<c>f\n", "<c> to=f<m>", "<c>\n<f=f>\n", "<cc>"))
    closed = st.sampled_from(("</c>", "</c>", "\n</c>", "</f></c>", "</f>\n</c>", "</cc>", ""))
    call = st.builds(lambda *parts: "".join(parts), opened, body, closed)
    return st.one_of(
        st.sampled_from(MARKERS),
        st.sampled_from(SPACES),
        st.sampled_from(WORDS),
        call,
        call,
        body,
        call.flatmap(broken),
        st.sampled_from(MARKERS).flatmap(broken),
    )


texts = st.lists(pieces(), max_size=8).map("".join)
prompts = st.sampled_from(
    ("", "<s>", "earlier<s>", "<s>old</t><e><s>", "<s><t>", "<s><t>\n</t>\n\n", "<s>Well", "no anchor <c>")
)
