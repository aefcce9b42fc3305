"""The dialect's keys of fields and transforms (docs/language.md), each in words, under every cutting, and refused without it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import jsonschema
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from transformers.utils.chat_parsing.response_templates import load_response_template

import respzoo
from respzoo.events import merge
from respzoo.testing import add_up, cuttings

CALL = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
CONTENT = {"close": "<eos>", "content_args": {"strip": False}, "repeats": True, "join": ""}


def dialect(**fields: Any) -> dict[str, Any]:
    return {"dialect": "respzoo", "start_anchor": "<s>", "fields": {"content": CONTENT, **fields}}


THINK = {"open": "<think>", "close": "</think>", "content_args": {"strip": False}}
JSON_CALL = {
    "open_pattern": r"<call>(?P<name>\w+)", "close": "</call>", "content": "json", "repeats": True, "transform": CALL,
}  # fmt: skip
SYNTAXES = dialect(
    tool_calls=[
        JSON_CALL,
        {"open": "[TOOL] ", "content": "json", "ends_with_value": True, "transform_each": True, "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{arguments|parameters}"}}},
        {"open_pattern": r"<(?P<name>\w+)/>", "close_pattern": "", "transform": {"type": "function", "function": {"name": "{name}", "arguments": {}}}},
    ],
    reasoning_content=THINK,
)  # fmt: skip
WRAPPED = dialect(
    tool_calls={**JSON_CALL, "within": {"open": "<calls>", "close": "</calls>"}},
    reasoning_content={**THINK, "ended_by": ["tool_calls"]},
)
BEGUN = dialect(
    reasoning_content={"open_pattern": r"\s*<think>", "close": "</think>", "initial": True, "content_args": {"strip": False}},
    tool_calls=JSON_CALL,
)  # fmt: skip
BARE = dialect(
    tool_calls={
        "open_pattern": r"call:(?P<name>\w+)", "close": "<end>", "content": "json", "ends_with_value": True, "repeats": True,
        "transform": CALL,
    }
)  # fmt: skip
CITED = dialect(reasoning_content=THINK)
for _field in CITED["fields"].values():
    _field["content_args"] = {"strip": False, "omit_pattern": r"<co>|</co: [0-9:,\[\]]*>"}
LLAMA = dialect(
    tool_calls=[
        {
            "open_pattern": r"(?P<value>\{\s*\"name\"\s*:)", "content": "json", "ends_with_value": True, "leading": True, "repeats": True,
            "transform": {"type": "function", "function": {"name": "{content.name}", "arguments": "{content.parameters|content.arguments}"}},
        },
        {
            "open_pattern": r"<py>\s*(?P<value>\[)", "close": "</py>", "content": "python-call-list", "ends_with_value": True,
            "transform_each": True, "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{arguments}"}},
        },
    ]
)  # fmt: skip
IDS = dialect(
    tool_calls={
        "open_pattern": r"\[C\](?P<name>\w+)(?:#(?P<id>\w+))?", "close": "[/C]", "content": "json", "repeats": True,
        "transform": {"type": "function", "id": "{id?}", "function": {"name": "{name}", "arguments": "{content}"}},
    }
)  # fmt: skip
NUMBERED = dialect(
    tool_calls={
        "open": "<c>", "close": "</c>", "content": "json", "transform_each": True,
        "transform": {"type": "function", "id": "{id?}", "function": {"name": "{name}", "arguments": "{arguments?}"}},
    }
)  # fmt: skip
PAIRS = dialect(
    tool_calls={
        "open": "<t>", "close": "</t>", "content": "json", "transform_each": "pairs",
        "transform": {"type": "function", "function": {"name": "{key}", "arguments": "{value}"}},
    }
)  # fmt: skip
ALL = {
    "syntaxes": SYNTAXES,
    "wrapped": WRAPPED,
    "begun": BEGUN,
    "bare": BARE,
    "cited": CITED,
    "ids": IDS,
    "pairs": PAIRS,
}


class Result(NamedTuple):
    message: Mapping[str, Any]
    events: Sequence[Any]
    dropped: Sequence[Any]


def read(spec: Any, pieces: Sequence[str], prefix: str = "<s>", **policy: Any) -> Result:
    """What a stream makes of the pieces; its deltas must add up to its message."""
    template = respzoo.ResponseTemplate(spec)
    stream = template.stream(prefix=prefix, arguments="complete", **policy)
    parser = respzoo.ResponseParser(spec, prefix=prefix, **policy)
    deltas = [delta for piece in pieces for delta in stream.feed(piece)]
    events = [*parser.initial_events, *(event for piece in pieces for event in parser.feed(piece))]
    message, last = stream.finish()
    held = add_up([*deltas, *last])
    assert held.get("content") == message.get("content")
    assert held.get("reasoning_content") == message.get("reasoning_content")
    assert held.get("tool_calls", []) == [call["function"] for call in message.get("tool_calls", [])]
    return Result(message, merge([*events, *parser.finalize()[1]]), stream.dropped)


def every_cutting(text: str) -> Iterator[list[str]]:
    for _, pieces in cuttings(text, rounds=6):
        yield pieces
    for at in range(1, len(text)):
        yield [text[:at], text[at:]]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


CASES: list[tuple[str, Any, str, dict[str, Any], list[tuple[str, str]]]] = [
    # ------------------------------------------------------------------------------------------- several syntaxes (E1)
    ("each of its own, in order", SYNTAXES, 'a<call>f{"n": 1}</call>b[TOOL] [{"name": "g", "parameters": {}}, {"name": "h", "arguments": {"x": 2}}]c<now/>',
     {"content": "abc", "tool_calls": [call("f", n=1), call("g"), call("h", x=2), call("now")]}, []),
    ("a malformed one is content", SYNTAXES, '<call>f{"n": }</call>[TOOL] [{"name": "g", "arguments": {}}]',
     {"content": '<call>f{"n": }</call>', "tool_calls": [call("g")]}, [("malformed", '<call>f{"n": }</call>')]),
    ("one syntax quoted in another", SYNTAXES, '<call>f{"n": "[TOOL] [] </call> <now/>"}</call>', {"tool_calls": [call("f", n="[TOOL] [] </call> <now/>")]}, []),
    ("cut in the second", SYNTAXES, '<call>f{"n": 1}</call>[TOOL] [{"name": "g"', {"tool_calls": [call("f", n=1)]}, [("unfinished", '[TOOL] [{"name": "g"')]),
    # -------------------------------------------------------------------------------------------------- wrappers (E6)
    ("calls in a wrapper", WRAPPED, 'Hi<calls>\n<call>f{"n": 1}</call>\n<call>g{}</call>\n</calls> there', {"content": "Hi there", "tool_calls": [call("f", n=1), call("g")]}, []),
    ("noise between calls", WRAPPED, '<calls>??<call>f{}</call>!!\n<call>g{}</call>tail</calls>', {"tool_calls": [call("f"), call("g")]},
     [("malformed", "??"), ("malformed", "!!\n"), ("malformed", "tail")]),
    ("an empty wrapper", WRAPPED, "Hi<calls>\n</calls>", {"content": "Hi"}, []),
    ("a wrapper without a call", WRAPPED, "<calls>I cannot.</calls> Sorry", {"content": "<calls>I cannot.</calls> Sorry"}, [("malformed", "<calls>I cannot.</calls>")]),
    ("calls without a wrapper", WRAPPED, 'Hi<call>f{}</call>\n</calls>', {"content": "Hi", "tool_calls": [call("f")]}, []),
    ("a wrapper's closer out of place is text", WRAPPED, 'a</calls>b', {"content": "a</calls>b"}, []),
    ("text, then the closer of no wrapper", WRAPPED, '<call>f{}</call>so </calls>', {"content": "so </calls>", "tool_calls": [call("f")]}, []),
    ("two wrappers", WRAPPED, '<calls><call>f{}</call></calls>\n<calls><call>g{}</call></calls>', {"content": "\n", "tool_calls": [call("f"), call("g")]}, []),
    ("a wrapper cut behind its call", WRAPPED, '<calls><call>f{}</call>', {"tool_calls": [call("f")]}, []),
    ("a wrapper cut in a call", WRAPPED, '<calls><call>f{}</call>\n<call>g{"n', {"tool_calls": [call("f")]}, [("unfinished", '<call>g{"n')]),
    ("a wrapper cut in an opener", WRAPPED, '<calls><call>f{}</call>\n<call>', {"tool_calls": [call("f")]}, [("unfinished", '<call>')]),
    ("a wrapper cut at once", WRAPPED, 'Hi<calls>\n', {"content": "Hi"}, [("unfinished", "<calls>\n")]),
    ("its own opener cut", WRAPPED, 'Hi<calls', {"content": "Hi<calls"}, []),
    ("a malformed call in a wrapper", WRAPPED, '<calls><call>f{]</call><call>g{}</call></calls>', {"content": "<call>f{]</call>", "tool_calls": [call("g")]}, [("malformed", "<call>f{]</call>")]),
    ("wrapper text in a string", WRAPPED, '<calls><call>f{"s": "</calls><call>g{}"}</call></calls>', {"tool_calls": [call("f", s="</calls><call>g{}")]}, []),
    # ---------------------------------------------------------------------------------------------- ended by another (E5)
    ("a call inside unclosed thinking", WRAPPED, '<think>let me<call>f{}</call>', {"reasoning_content": "let me", "tool_calls": [call("f")]}, []),
    ("a wrapper inside unclosed thinking", WRAPPED, '<think>let me\n<calls><call>f{}</call></calls>', {"reasoning_content": "let me\n", "tool_calls": [call("f")]}, []),
    ("a wrapper that is only mentioned", WRAPPED, '<think>use <calls>\n not<calls></think>ok', {"reasoning_content": "use <calls>\n not<calls>", "content": "ok"}, []),
    ("a wrapper and then its call", WRAPPED, '<think>a<calls> \n<call>f{}</call></calls></think>ok', {"reasoning_content": "a", "content": "ok", "tool_calls": [call("f")]}, []),
    ("the closer comes too late", WRAPPED, '<think>a<call>f{}</call>b</think>c</think>', {"reasoning_content": "a", "content": "bc</think>", "tool_calls": [call("f")]}, []),
    ("a cut call inside thinking", WRAPPED, '<think>a<call>f{"n', {"reasoning_content": "a"}, [("unfinished", '<call>f{"n')]),
    ("thinking as ever", WRAPPED, '<think>a</think>b<call>f{}</call>', {"reasoning_content": "a", "content": "b", "tool_calls": [call("f")]}, []),
    # --------------------------------------------------------------------------------------------- begun inside (E7)
    ("no opener", BEGUN, "why</think>so", {"reasoning_content": "why", "content": "so"}, []),
    ("an opener all the same", BEGUN, "\n<think>why</think>so", {"reasoning_content": "why", "content": "so"}, []),
    ("a second opener is text", BEGUN, "<think>why <think> not</think>so", {"reasoning_content": "why <think> not", "content": "so"}, []),
    ("an opener behind text is text", BEGUN, "why <think></think>so", {"reasoning_content": "why <think>", "content": "so"}, []),
    ("never closed", BEGUN, "why", {"reasoning_content": "why"}, []),
    ("closed at once", BEGUN, "</think>so", {"content": "so"}, []),
    ("a second region", BEGUN, "a</think>b<think>c</think>d", {"reasoning_content": "ac", "content": "bd"}, []),
    ("a call behind it", BEGUN, 'a</think><call>f{"n": "</think>"}</call>', {"reasoning_content": "a", "tool_calls": [call("f", n="</think>")]}, []),
    # ----------------------------------------------------------------------------------------- ends with its value (E4)
    ("the value ends the region", BARE, 'Hi call:f{"a": {"b": "}"}} and', {"content": "Hi  and", "tool_calls": [call("f", a={"b": "}"})]}, []),
    ("two in a row", BARE, 'call:f{}call:g{"x": [1, {"y": "<end>"}]}', {"tool_calls": [call("f"), call("g", x=[1, {"y": "<end>"}])]}, []),
    ("the closer may follow", BARE, 'call:f{}\n<end>ok<end>', {"content": "ok<end>", "tool_calls": [call("f")]}, []),
    ("text between is no closer", BARE, 'call:f{} ok <end>', {"content": " ok <end>", "tool_calls": [call("f")]}, []),
    ("cut in the value", BARE, 'call:f{"a": 1', {}, [("unfinished", 'call:f{"a": 1')]),
    ("closed inside the value", BARE, 'call:f{"a": <end> x', {"content": 'call:f{"a": <end> x'}, [("malformed", 'call:f{"a": <end>')]),
    ("a body that can be no value", BARE, 'call:foops, so I say "<end>" call:g{}', {"content": 'call:foops, so I say "<end>" ', "tool_calls": [call("g")]}, [("malformed", "call:foops")]),
    ("a string that breaks", BARE, 'call:f{"a": "b\nc<end>d', {"content": 'call:f{"a": "b\nc<end>d'}, [("malformed", 'call:f{"a": "b')]),
    ("the closer of what is no value", BARE, 'call:f{a: 1} <end>b', {"content": 'call:f{a: 1} <end>b'}, [("malformed", "call:f{a: 1}")]),
    ("two strings in a row", BARE, 'call:f{"a" "b"} call:g{}', {"content": 'call:f{"a" "b"} ', "tool_calls": [call("g")]}, [("malformed", 'call:f{"a" ')]),
    ("nothing behind the opener", BARE, "call:f", {}, [("unfinished", "call:f")]),
    # ------------------------------------------------------------------------------ openers that give back, leading ones
    ("the opener is the value's", LLAMA, '{"name": "f", "parameters": {"a": 1}}', {"tool_calls": [call("f", a=1)]}, []),
    ("white space before it", LLAMA, '\n {"name": "f", "arguments": {}} ok', {"content": "\n  ok", "tool_calls": [call("f")]}, []),
    ("not behind content", LLAMA, 'Use {"name": "f", "parameters": {}}', {"content": 'Use {"name": "f", "parameters": {}}'}, []),
    ("a marker counts anywhere", LLAMA, 'Use <py>[f(a="]")]</py>.', {"content": "Use .", "tool_calls": [call("f", a="]")]}, []),
    ("both of two alternatives", LLAMA, '{"name": "f", "parameters": {}, "arguments": {"a": 1}}', {"content": '{"name": "f", "parameters": {}, "arguments": {"a": 1}}'},
     [("malformed", '{"name": "f", "parameters": {}, "arguments": {"a": 1}}')]),
    ("several leading ones", LLAMA, '{"name": "f", "parameters": {}}\n{"name": "g", "parameters": {}}', {"content": "\n", "tool_calls": [call("f"), call("g")]}, []),
    ("a leading one that is none", LLAMA, '{"name": "f"} then {"name": "g", "parameters": {}}',
     {"content": '{"name": "f"} then {"name": "g", "parameters": {}}'}, [("malformed", '{"name": "f"}')]),
    ("code that looks like calls", LLAMA, '<py>[int(i) for i in x]</py> ok', {"content": '<py>[int(i) for i in x]</py> ok'}, [("malformed", '<py>[int(i) for i in x]')]),
    # ------------------------------------------------------------------------------------------------ left out (E10)
    ("citations", CITED, "<think>a <co>b</co: 0:[1,2]></think>The <co>sun</co: 0:[1],1:[0]>.", {"reasoning_content": "a b", "content": "The sun."}, []),
    ("what is no citation", CITED, "a </co> <co b</co: x>", {"content": "a </co> <co b</co: x>"}, []),
    ("cut inside one", CITED, "a <co>b</co: 0:", {"content": "a b</co: 0:"}, []),
    # -------------------------------------------------------------------------------------------- ids and pairs (E8)
    ("the model's own ids", IDS, '[C]f#abc{}[/C][C]g{}[/C]', {"tool_calls": [{"id": "abc", **call("f")}, call("g")]}, []),
    ("ids that are no text", NUMBERED, '<c>[{"id": 7, "name": "f"}, {"id": null, "name": "g"}, {"id": {}, "name": "h"}, {"id": "", "name": "i"}, {"name": "j"}]</c>',
     {"tool_calls": [{"id": "7", **call("f")}, call("g"), call("h"), call("i"), call("j")]}, []),
    ("names that are keys", PAIRS, '<t>[{"f": {"a": 1}}, {"g": {}, "h": {"b": "</t>"}}]</t>', {"tool_calls": [call("f", a=1), call("g"), call("h", b="</t>")]}, []),
    ("one object of pairs", PAIRS, '<t>{"f": {"a": 1}}</t>', {"tool_calls": [call("f", a=1)]}, []),
    ("pairs that are none", PAIRS, '<t>[1]</t>', {"content": "<t>[1]</t>"}, [("malformed", "<t>[1]</t>")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "text", "message", "dropped"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_case(spec: Any, text: str, message: dict[str, Any], dropped: list[tuple[str, str]]) -> None:
    whole = read(spec, [text])
    assert dict(whole.message) == message
    assert [(each["reason"], each["raw"]) for each in whole.dropped] == dropped
    for pieces in every_cutting(text):
        assert read(spec, pieces) == whole, pieces


# ---------------------------------------------------------------------------------------------------------- the prefix


@pytest.mark.parametrize(
    ("prefix", "text", "message"),
    [
        ("<s><think>\n", "why</think>so", {"reasoning_content": "why", "content": "so"}),
        ("<s><think></think>", "so", {"content": "so"}),
        ("<s></think>", "so", {"content": "so"}),
        ("", "why</think>so", {"reasoning_content": "why", "content": "so"}),
        ("other", "why</think>so", {"reasoning_content": "why", "content": "so"}),
    ],
)
def test_what_the_prompt_has_written_of_the_field_in_which_it_begins(prefix: str, text: str, message: Any) -> None:
    for pieces in every_cutting(text):
        assert dict(read(BEGUN, pieces, prefix).message) == message


def test_a_wrapper_that_the_prompt_opened() -> None:
    assert read(WRAPPED, ["<call>f{}</call></calls>ok"], "<s><calls>").message == {
        "content": "ok",
        "tool_calls": [call("f")],
    }
    none = read(WRAPPED, ["no</calls>"], "<s><calls>")
    assert none.message == {"content": "no</calls>"}  # what the prompt wrote is not the answer's


def test_the_region_that_a_stream_is_in() -> None:
    parser = respzoo.ResponseTemplate(BEGUN).parser(prefix="<s>")
    regions = [parser.region]
    for piece in ("why", "</think>", "so", "<call>f", "{}</call>"):
        parser.feed(piece)
        regions.append(parser.region)
    assert regions == ["reasoning_content", "reasoning_content", "content", "content", "tool_calls", "content"]
    wrapped = respzoo.ResponseTemplate(WRAPPED).parser(prefix="<s>")
    wrapped.feed("a<calls>\n")
    assert wrapped.region == "tool_calls"


def test_reasoning_without_an_opener_streams_at_once() -> None:
    stream = respzoo.ResponseTemplate(BEGUN).stream(prefix="<s>")
    assert stream.feed("why") == [{"reasoning_content": "why"}]


@pytest.mark.parametrize(("unfinished", "content"), [("drop", None), ("content", "<calls>x")])
def test_policies_reach_wrappers(unfinished: Any, content: str | None) -> None:
    assert read(WRAPPED, ["<calls>x"], on_unfinished=unfinished).message.get("content") == content


def test_required_fields_with_several_syntaxes_are_missed_once() -> None:
    spec = dialect(
        tool_calls=[
            {**JSON_CALL, "optional": False},
            {"open": "<x>", "close": "</x>", "content": "json", "transform": "{content}"},
        ]
    )
    assert [event["type"] for event in read(spec, ["hi"]).events].count("region_malformed") == 1


# --------------------------------------------------------------------------------------------------------- the promises

BITS = ['{"name": "f", ', '"parameters": {}}', "<py>[", "f()", "</py>", "<call>f", "</call>", "<calls>", "</calls>", "<think>", "</think>", "{}", '{"a": "', '"}', "[TOOL] ", "[", "]", "call:f", "<end>",
        "<co>", "</co: 0:[1]>", "[C]f#1", "[/C]", "<t>", "</t>", " ", "\n", "x", "<", "</", "<eos>", "<now/>", '"', "\\", ","]  # fmt: skip


@pytest.mark.parametrize("spec", ALL.values(), ids=ALL)
@examples(100)
@given(bits=st.lists(st.sampled_from(BITS), max_size=14), seed=st.integers(0, 2**32))
def test_one_answer_however_it_is_cut(spec: Any, bits: list[str], seed: int) -> None:
    text = "".join(bits)
    whole = read(spec, [text])
    chance = random.Random(seed)
    pieces: list[str] = []
    rest = text
    while rest:
        size = chance.randint(1, 5)
        pieces.append(rest[:size])
        rest = rest[size:]
    assert read(spec, pieces) == whole
    assert read(spec, list(text)) == whole


@pytest.mark.parametrize("spec", ALL.values(), ids=ALL)
def test_work_grows_as_the_text_does(spec: Any) -> None:
    """Nothing is held that is decided: what may still become a delimiter is at most a few characters."""
    parser = respzoo.ResponseTemplate(spec).parser(prefix="<s>")
    for _ in range(2_000):
        parser.feed("word <")
        parser.feed("b> ")
    assert parser._loop.scanner.undecided < 64  # pyright: ignore[reportPrivateUsage]


# ------------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("field", "path", "message"),
    [
        ({"within": {}}, "$.fields.tool_calls.within", "expected 'open' or 'open_pattern'"),
        ({"within": []}, "$.fields.tool_calls.within", "expected a dict with an 'open' and a 'close'"),
        ({"within": {"open": "a", "close": "b", "x": 1}}, "$.fields.tool_calls.within.x", "unknown key"),
        ({"within": {"open_pattern": "(?P<a>b)", "close": "c"}}, "$.fields.tool_calls.within", "named group.*'a'"),
        ({"initial": True}, "$.fields.tool_calls.initial", "only for a field of text"),
        ({"initial": 1}, "$.fields.tool_calls.initial", "expected true or false"),
        ({"ended_by": ["content"]}, "$.fields.tool_calls.ended_by", "only for a field of text"),
        ({"ended_by": "content"}, "$.fields.tool_calls.ended_by", "expected a list"),
        ({"ends_with_value": "yes"}, "$.fields.tool_calls.ends_with_value", "expected true or false"),
        ({"ends_with_value": True, "content": "kv-lines"}, "$.fields.tool_calls.ends_with_value", "does not show its own end"),
        ({"transform_each": "all"}, "$.fields.tool_calls.transform_each", "expected true, false or 'pairs'"),
        ({"transform": "x{a|b}"}, "$.fields.tool_calls.transform", "must stand alone"),
    ],
)  # fmt: skip
def test_mistakes_have_their_place(field: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(respzoo.TemplateError, match=message) as caught:
        respzoo.ResponseTemplate(dialect(tool_calls={**JSON_CALL, **field}))
    assert path in [problem.path for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"reasoning_content": {**THINK, "ended_by": ["calls"]}}, "expected other fields that have an opener, found 'calls'"),
        ({"reasoning_content": {**THINK, "ended_by": ["content"]}}, "expected other fields that have an opener"),
        ({"a": {**THINK, "initial": True}, "b": {**THINK, "initial": True}}, "only one field may be 'initial'"),
        ({"tool_calls": []}, "found an empty list"),
        ({"tool_calls": [JSON_CALL, {**JSON_CALL, "join": ""}]}, "the first syntax of a field says this for all"),
        ({"reasoning_content": [THINK, {"open": "<r>", "close": "</r>", "content": "json"}]}, "plain text in one syntax"),
        ({"content": {**CONTENT, "content_args": {"omit_pattern": "x*"}}}, "matches the empty text"),
        ({"content": {**CONTENT, "ended_by": ["tool_calls"]}, "tool_calls": JSON_CALL}, "ends the implicit field already"),
    ],
)  # fmt: skip
def test_mistakes_between_fields(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(respzoo.TemplateError, match=message):
        respzoo.ResponseTemplate(dialect(**fields))


def extensions() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each extension alone, in a template that does not say its dialect."""
    plain = {"start_anchor": "<s>", "fields": {"content": {}, "tool_calls": JSON_CALL, "reasoning_content": THINK}}
    changes: dict[str, tuple[str, Any]] = {
        "list of fields": ("tool_calls", [JSON_CALL]),
        "within": ("tool_calls", {**JSON_CALL, "within": {"open": "a", "close": "b"}}),
        "ended_by": ("reasoning_content", {**THINK, "ended_by": ["tool_calls"]}),
        "initial": ("reasoning_content", {**THINK, "initial": True}),
        "ends_with_value": ("tool_calls", {**JSON_CALL, "ends_with_value": True}),
        "leading": ("tool_calls", {**JSON_CALL, "leading": True}),
        "pairs": ("tool_calls", {**JSON_CALL, "transform_each": "pairs"}),
    }
    for name, (field, value) in changes.items():
        yield name, {**plain, "fields": {**plain["fields"], field: value}}  # type: ignore[dict-item]
    yield "dialect", {**plain, "dialect": "respzoo2"}


@pytest.mark.parametrize("spec", dict(extensions()).values(), ids=dict(extensions()))
def test_extensions_need_the_dialect(spec: dict[str, Any]) -> None:
    with pytest.raises(respzoo.TemplateError):
        respzoo.ResponseTemplate(spec)
    with pytest.raises(Exception):  # noqa: B017, PT011  whatever the reference raises
        load_response_template(json.loads(json.dumps(spec)))
    schema = json.loads(files("respzoo").joinpath("template.schema.json").read_text("utf-8"))
    assert not jsonschema.Draft202012Validator(schema).is_valid(spec)


@pytest.mark.parametrize("spec", ALL.values(), ids=ALL)
def test_the_schema_takes_them_and_transformers_does_not(spec: dict[str, Any]) -> None:
    schema = json.loads(files("respzoo").joinpath("template.schema.json").read_text("utf-8"))
    assert [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(spec)] == []
    with pytest.raises(Exception):  # noqa: B017, PT011
        load_response_template(json.loads(json.dumps(spec)))
