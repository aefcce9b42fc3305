"""The promise (P3, P4, P5, P7) over templates and texts that hypothesis makes up, beside the reference.

A text is put together from the template's own markers, whole and broken off, values whole and broken, white space and
words, so that most of what a model could get wrong is a few steps away. The profile is deterministic; for a long run
with fresh examples: RESPZOO_EXAMPLES=20000 pytest tests/test_properties.py
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, assume, given, note, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent / "differential"))

from diff_cases import Case, json_like
from diff_compare import compare
from transformers.utils.chat_parsing.response_templates import load_response_template

import respzoo
from respzoo.events import merge

EXAMPLES = int(os.environ.get("RESPZOO_EXAMPLES", "0"))
profile = settings(
    max_examples=EXAMPLES or 400,
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)

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


# ----------------------------------------------------------------------------------------------- made-up templates


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
    plain_opens = st.sampled_from(({"open": "<c>"}, {"open": ["<c>", "<cc>"]}, {"open_pattern": r"\s*<c>\s*"}))
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
    names = draw(st.permutations(list(fields)))
    return {
        "defaults": {"role": "assistant"},
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


# ------------------------------------------------------------------------------------------------------ properties


def cut_at(text: str, places: Iterable[int]) -> list[str]:
    ends = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    return [text[begin:end] for begin, end in pairwise(ends)] or [""]


def add_up(deltas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What an OpenAI client makes of deltas."""
    message: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    for delta in deltas:
        assert len(delta) >= 1, "an empty delta"
        for name, value in delta.items():
            if name != "tool_calls":
                assert isinstance(value, str)
                assert value, f"an empty piece of {name}"
                message[name] = message.get(name, "") + value
                continue
            for part in value:
                function = part.get("function", {})
                if part["index"] not in calls:
                    assert part["index"] == len(calls), "calls come in order"
                    assert part["type"] == "function"
                    assert part["id"]
                    assert function["name"]
                    calls[part["index"]] = {"name": function["name"], "arguments": ""}
                else:
                    assert "id" not in part
                    assert "name" not in function
                calls[part["index"]]["arguments"] += function.get("arguments", "")
    if calls:
        message["tool_calls"] = [
            {"type": "function", "function": {"name": call["name"], "arguments": json.loads(call["arguments"])}}
            for call in calls.values()
        ]
    return message


def streamed(
    template: Any, prompt: str, parts: Sequence[str], **policy: str
) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    """(the final message, what the deltas add up to, what was dropped)"""
    stream = respzoo.MessageStream(template, prefix=prompt, tools=TOOLS, **policy)
    deltas = [delta for part in parts for delta in stream.feed(part)]
    message, last = stream.finish()
    return message, add_up([*deltas, *last]), list(stream.dropped)


@profile
@given(templates(), prompts, texts)
def test_the_reference_agrees_but_for_named_differences(spec: dict[str, Any], prompt: str, text: str) -> None:
    """And P3 for every cutting that compare makes, P5 by its walk through the text, P7."""
    names = compare(
        load_response_template(spec),
        respzoo.ResponseTemplate(spec),
        Case("made up", "", prompt, text, TOOLS),
        prompt,
        every_cut=True,
        reference_cuts=True,
    )
    note(f"differences: {sorted(names)}")


@profile
@given(templates(), prompts, texts, st.lists(st.integers(0, 10_000), max_size=12))
def test_one_answer_however_the_text_is_cut(spec: dict[str, Any], prompt: str, text: str, places: list[int]) -> None:
    template = respzoo.ResponseTemplate(spec)

    def read(parts: Sequence[str]) -> Any:
        parser = respzoo.ResponseParser(template, prefix=prompt, tools=TOOLS)
        events = [event for part in parts for event in parser.feed(part)]
        message, last = parser.finalize()
        return json_like((message, merge([*parser.initial_events, *events, *last]), list(parser.dropped)))

    whole = read([text])
    assert read(cut_at(text, places)) == whole
    assert read(list(text)) == whole


@profile
@given(
    templates(),
    prompts,
    texts,
    st.lists(st.integers(0, 10_000), max_size=12),
    st.sampled_from(("stream", "complete")),
    st.sampled_from(("content", "drop")),
    st.sampled_from(("content", "drop")),
)
def test_deltas_add_up_to_the_message(
    spec: dict[str, Any], prompt: str, text: str, places: list[int], calls: str, malformed: str, unfinished: str
) -> None:
    template = respzoo.ResponseTemplate(spec)
    policy = {"arguments": calls, "on_malformed": malformed, "on_unfinished": unfinished}
    message, total, dropped = streamed(template, prompt, [text], **policy)
    assume(all(isinstance(message.get(name, ""), str) for name in ("content", "reasoning_content")))
    visible = {name: value for name, value in message.items() if name != "role"}
    assert json_like(total) == json_like(visible)
    for parts in (list(text), cut_at(text, places)):
        other, other_total, other_dropped = streamed(template, prompt, parts, **policy)
        assert json_like((other, other_dropped)) == json_like((message, dropped))
        assert json_like(other_total) == json_like(total)


@profile
@given(templates(), st.sampled_from(("", "<s>", "<s><t>")), texts)
def test_every_word_is_somewhere(spec: dict[str, Any], prompt: str, text: str) -> None:
    """P5, told from the text: what no delimiter swallowed is in the message, or in the record of what was dropped."""
    marked = "".join(f"{text[at]}" for at in range(len(text)))
    words = [f"w{number}w" for number in range(3)]
    marked = f"{words[0]} {marked} {words[1]} {marked}{words[2]}"
    template = respzoo.ResponseTemplate(spec)
    message, _, dropped = streamed(template, prompt, [marked])
    everywhere = json.dumps([message, dropped], ensure_ascii=False)
    missing = [word for word in words if word not in everywhere]
    groups = respzoo.ResponseParser(template, prefix=prompt, tools=TOOLS)
    events = [*groups.feed(marked), *groups.finalize()[1]]
    for word in missing:  # a structured region's text that its syntax passes over: xml and kv-lines have such places
        bodies = ["".join(event.get("text", "") for event in events if event.get("dirty"))]
        assert any(word in body for body in bodies), f"{word} is lost: {message}, dropped {dropped}"
