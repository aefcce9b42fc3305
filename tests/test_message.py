"""Deltas in the shape of OpenAI's chat, and the message that they add up to."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import respzoo
from respzoo.message import dump_arguments
from respzoo.testing import cuttings

DATA = Path(__file__).parent / "data" / "templates"
SMOL, HARMONY, COHERE = (
    json.loads((DATA / f"manual_{name}.json").read_text("utf-8")) for name in ("smollm", "gpt_oss", "cohere")
)
START = SMOL["start_anchor"]
F1 = '<tool_call>\n{"name": "f", "arguments": {"n": 1, "s": "é"}}\n</tool_call>'
G2 = '<tool_call>{"name": "g"}</tool_call>'
BAD = '<tool_call>{"name": "f", "arguments": {"n": }}</tool_call>'
CUT = '<tool_call>{"name": "f", "argum'


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def template(**fields: Any) -> dict[str, Any]:
    return {"defaults": {"role": "assistant"}, "start_anchor": "<s>", "fields": fields}


def add_up(deltas: Sequence[Any]) -> dict[str, Any]:
    """What a client makes of deltas, their shape checked on the way."""
    total: dict[str, Any] = {}
    calls: list[dict[str, Any]] = []
    for delta in deltas:
        assert len(delta) == 1, delta
        ((key, value),) = delta.items()
        if key != "tool_calls":
            assert key in ("reasoning_content", "content")
            assert isinstance(value, str)
            assert value, "an empty delta"
            total[key] = total.get(key, "") + value
            continue
        for part in value:
            function = part["function"]
            assert isinstance(function["arguments"], str)
            if part["index"] == len(calls):
                assert part["type"] == "function"
                assert function["name"]
                calls.append({"id": part["id"], "name": function["name"], "arguments": function["arguments"]})
            else:
                assert part.keys() == {"index", "function"}
                assert function.keys() == {"arguments"}
                calls[part["index"]]["arguments"] += function["arguments"]
    ids = [one.pop("id") for one in calls]
    assert len(set(ids)) == len(ids)
    assert all(isinstance(one, str) and one for one in ids)
    whole: list[Any] = []
    for one in calls:
        with contextlib.suppress(ValueError):  # a call that broke off
            whole.append(call(one["name"], **json.loads(one["arguments"])))
    if whole:
        total["tool_calls"] = whole
    return total


def stream(
    spec: Any, pieces: Sequence[str], *, prefix: str = "", **options: Any
) -> tuple[dict[str, Any], list[Any], Any]:
    made = respzoo.MessageStream(spec, prefix=prefix, **options)
    deltas = [delta for piece in pieces for delta in made.feed(piece)]
    message, last = made.finish()
    return message, [*deltas, *last], made


def every_cutting(spec: Any, text: str, expected: dict[str, Any], *, prefix: str = "", **options: Any) -> None:
    for arguments in ("stream", "complete"):
        for how, pieces in cuttings(text):
            message, deltas, made = stream(spec, pieces, prefix=prefix, arguments=arguments, **options)
            if "tool_calls" in message:  # one that broke off when its name had been sent is test_streaming's affair
                message["tool_calls"] = [one for one in message["tool_calls"] if one.get("status") != "incomplete"]
                message = {key: value for key, value in message.items() if key != "tool_calls" or value}
            assert message == expected, how
            visible = {
                key: value for key, value in expected.items() if key in ("reasoning_content", "content", "tool_calls")
            }
            assert add_up(deltas) == visible, how
            assert made.dropped == made.parser.dropped
            with pytest.raises(RuntimeError):
                made.feed("x")
            with pytest.raises(RuntimeError):
                made.finish()


def test_deltas_in_full() -> None:
    _, deltas, _ = stream(SMOL, [f"<think>\nHm.\n</think>\n\nYes. {F1}\n{G2}"])
    ids = [delta["tool_calls"][0]["id"] for delta in deltas if "tool_calls" in delta and "id" in delta["tool_calls"][0]]
    assert deltas[:2] == [{"reasoning_content": "Hm."}, {"content": "Yes."}]
    assert len(ids) == 2
    first = deltas[2]["tool_calls"][0]
    assert first["index"] == 0
    assert first["type"] == "function"
    assert first["function"]["name"] == "f"


def test_complete_calls_in_full() -> None:
    _, deltas, _ = stream(SMOL, list(F1 + G2), arguments="complete")
    assert [delta.keys() for delta in deltas] == [{"tool_calls"}, {"tool_calls"}]
    for index, (delta, name, arguments) in enumerate(zip(deltas, "fg", ['{"n": 1, "s": "é"}', "{}"], strict=True)):
        (part,) = delta["tool_calls"]
        assert part == {
            "index": index,
            "id": part["id"],
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }


def test_a_complete_call_is_sent_only_when_it_is_whole() -> None:
    made = respzoo.MessageStream(SMOL, prefix="", arguments="complete")
    sent = [made.feed(char) for char in F1]
    assert all(not deltas for deltas in sent[:-1])
    assert len(sent[-1]) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" \n ", {}),
        ("Hello.", {"content": "Hello."}),
        (" \n Hello \n world. \n ", {"content": "Hello \n world."}),
        ("<think>\n a \n b \n</think>\n\n c ", {"reasoning_content": "a \n b", "content": "c"}),
        ("<think></think>x", {"content": "x"}),
        ("<think> \n </think>x", {"content": "x"}),
        ("<think>cut", {"reasoning_content": "cut"}),
        ("<think>cut \n", {"reasoning_content": "cut"}),
        ("<think>a</think> x <think>b</think> y", {"reasoning_content": "ab", "content": "x  y"}),
        ("<think> a </think>x<think> b </think>", {"reasoning_content": "a  b", "content": "x"}),
        (F1, {"tool_calls": [call("f", n=1, s="é")]}),
        (f"a\n{F1}\n{G2}\nb", {"content": "a\n\n\nb", "tool_calls": [call("f", n=1, s="é"), call("g")]}),
        (f"answer\n{F1}\n\n{G2}\n", {"content": "answer", "tool_calls": [call("f", n=1, s="é"), call("g")]}),
        (f"x {BAD} y", {"content": f"x {BAD} y"}),
        (f"{BAD}{G2}", {"content": BAD, "tool_calls": [call("g")]}),
        (f"x {CUT}", {"content": "x"}),
        (f"{G2}{CUT}", {"tool_calls": [call("g")]}),
        ("x <tool_", {"content": "x <tool_"}),
        ("a<|im_end|> ", {"content": "a"}),
    ],
)
def test_deltas_add_up_to_the_message(text: str, expected: dict[str, Any]) -> None:
    every_cutting(SMOL, text, {"role": "assistant", **expected})
    made = respzoo.ResponseParser(SMOL, prefix="")
    made.feed(text)
    assert made.finalize()[0] == {"role": "assistant", **expected}, "and it is the parser's"


def test_d8_deltas_hold_white_space_until_it_counts() -> None:
    made = respzoo.MessageStream(SMOL, prefix="")
    sent = [made.feed(piece) for piece in ("\n", " ", "a", " \n", " ", "b", "\n", "<|im_end|>")]
    assert sent == [[], [], [{"content": "a"}], [], [], [{"content": " \n b"}], [], []]
    assert made.finish() == ({"role": "assistant", "content": "a \n b"}, [])


def test_without_strip_white_space_is_sent() -> None:
    spec = template(
        reasoning_content={"open": "<t>", "close": "</t>", "content_args": {"strip": False}},
        content={"content_args": {"strip": False}},
    )
    every_cutting(
        spec, "<t>\n a \n</t>\n b ", {"role": "assistant", "reasoning_content": "\n a \n", "content": "\n b "}
    )
    every_cutting(spec, " \n", {"role": "assistant", "content": " \n"})


@pytest.mark.parametrize("name", ["thinking", "reasoning", "reasoning_content"])
def test_d9_one_field_of_reasoning(name: str) -> None:
    spec = template(**{name: {"open": "<t>", "close": "</t>"}}, content={})
    every_cutting(spec, "<t>a</t>b", {"role": "assistant", "reasoning_content": "a", "content": "b"})


def test_fields_that_are_no_message_are_no_deltas() -> None:
    spec = template(
        plan={"open": "<p>", "close": "</p>", "content": "json"}, note={"open": "<n>", "close": "</n>"}, content={}
    )
    every_cutting(
        spec, '<p>{"a": 1}</p>x<n>y</n>', {"role": "assistant", "plan": {"a": 1}, "note": "y", "content": "x"}
    )


def test_explicit_content_and_stray_text() -> None:
    every_cutting(
        COHERE,
        "<|START_THINKING|> a <|END_THINKING|><|START_RESPONSE|> b <|END_RESPONSE|>",
        {"role": "assistant", "reasoning_content": "a", "content": "b"},
    )
    every_cutting(COHERE, "No markers at all.", {"role": "assistant", "content": "No markers at all."})
    every_cutting(
        COHERE,
        '<|START_ACTION|>[{"tool_name": "f", "parameters": {"a": 1}}, {"tool_name": "g", "parameters": {}}]<|END_ACTION|>',
        {"role": "assistant", "tool_calls": [call("f", a=1), call("g")]},
    )


def test_repeats_and_join() -> None:
    opened = {"open": "<c>", "close": "</c>"}
    every_cutting(
        template(content={**opened, "repeats": True, "join": " | "}),
        "<c> a </c><c>b</c>",
        {"role": "assistant", "content": "a | b"},
    )
    every_cutting(
        template(content={**opened, "repeats": True, "join": ""}),
        "<c> a </c><c> b</c>",
        {"role": "assistant", "content": "ab"},
    )
    every_cutting(template(content=opened), "<c> a </c><c> b</c>", {"role": "assistant", "content": "a  b"})


def test_a_join_with_white_space_at_the_end() -> None:
    spec = template(content={"open": "<c>", "close": "</c>", "repeats": True, "join": "\n"})
    for text in ("<c>a</c><c>b</c>", "<c>a</c><c></c>", "<c></c><c>b</c>", "<c> </c><c> b </c><c> </c>"):
        for _, pieces in cuttings(text):
            parser = respzoo.ResponseParser(spec, prefix="")
            for piece in pieces:
                parser.feed(piece)
            every_cutting(spec, text, parser.finalize()[0])


def test_content_that_is_structured() -> None:
    spec = template(content={"open": "<c>", "close": "</c>", "content": "int"})
    message, deltas, _ = stream(spec, list("<c> 42 </c>"))
    assert add_up(deltas) == {"content": "42"}
    assert message["content"] in ("42", 42)


def test_policies() -> None:
    text = f"x {BAD} y {CUT}"
    every_cutting(SMOL, text, {"role": "assistant", "content": f"x {BAD} y"})
    every_cutting(SMOL, text, {"role": "assistant", "content": "x  y"}, on_malformed="drop")
    every_cutting(SMOL, text, {"role": "assistant", "content": f"x {BAD} y {CUT}"}, on_unfinished="content")
    every_cutting(
        SMOL, text, {"role": "assistant", "content": f"x  y {CUT}"}, on_malformed="drop", on_unfinished="content"
    )
    for options in ({}, {"on_malformed": "drop"}, {"on_unfinished": "content"}):
        _, _, made = stream(SMOL, [text], **options)
        assert [(one["field"], one["raw"], one["reason"]) for one in made.dropped] == [
            ("tool_calls", BAD, "malformed"),
            ("tool_calls", CUT, "unfinished"),
        ]


def test_malformed_text_where_no_field_is_content() -> None:
    spec = template(tool_calls=SMOL["fields"]["tool_calls"])
    every_cutting(spec, f"{BAD}{G2}", {"role": "assistant", "content": BAD, "tool_calls": [call("g")]})
    every_cutting(spec, f"{BAD}{BAD}", {"role": "assistant", "content": BAD + BAD})


@pytest.mark.parametrize(
    ("name", "value"),
    [("arguments", "whole"), ("arguments", None), ("on_malformed", "raise"), ("on_malformed", ""), ("on_unfinished", "raise"), ("on_unfinished", True)],
)  # fmt: skip
def test_options_that_are_none(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{name}: expected '\w+' or '\w+', found "):
        respzoo.MessageStream(SMOL, prefix="", **{name: value})


def test_the_prefix_must_be_given() -> None:
    with pytest.raises(ValueError, match="prefix"):
        respzoo.MessageStream(SMOL, prefix=None)  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------- what the prefix wrote is no delta


@pytest.mark.parametrize(
    ("prefix", "text", "expected"),
    [
        ("<think>", "a</think>b", {"reasoning_content": "a", "content": "b"}),
        ("<think>\n", "\n a</think>b", {"reasoning_content": "a", "content": "b"}),
        ("<think>old", "a</think>b", {"reasoning_content": "a", "content": "b"}),
        ("<think>old", " a</think>b", {"reasoning_content": " a", "content": "b"}),
        ("<think>\n\n</think>\n\n", "b", {"content": "b"}),
        ("<think>old</think>\n\n", "\nb", {"content": "b"}),
        ("The answer", " is 42. ", {"content": " is 42."}),
        ("The answer ", "is 42.", {"content": "is 42."}),
        ("The answer", "", {}),
        ("The answer", " \n", {}),
        (G2, f"\n{F1}", {"tool_calls": [call("f", n=1, s="é")]}),
        (f"old{G2}", "new", {"content": "new"}),
        ('<tool_call>{"name": "f", ', '"arguments": {"n": 1}}</tool_call>', {"tool_calls": [call("f", n=1)]}),
        (BAD, "x", {"content": "x"}),
        ("<thi", "nk>a</think>b", {"reasoning_content": "a", "content": "b"}),
        ("<tool", " x", {"content": " x"}),
        ("Hi <", "b", {"content": "b"}),
        ("Hi <tool_ca", "<b", {"content": "<b"}),
        ('<tool_call>{"name": ', "5}</tool_call>", {"content": "5}</tool_call>"}),
    ],
)
def test_what_the_prefix_wrote_is_no_delta(prefix: str, text: str, expected: dict[str, Any]) -> None:
    """Neither is it part of the message of `finish`, whose texts are the deltas' texts."""
    for how, pieces in cuttings(text):
        message, deltas, _ = stream(SMOL, pieces, prefix=START + prefix)
        total = add_up(deltas)
        assert {key: value for key, value in message.items() if key != "role"} == total, how
        assert total == expected, how


@pytest.mark.parametrize("strip", [True, False])
def test_white_space_that_the_prefix_wrote_and_the_parser_holds(strip: bool) -> None:
    """The usual end of a prompt without thinking, and delimiters that white space may lead."""
    spec = template(
        reasoning_content={"open": "<t>", "close": "</t>"},
        tool_calls={**SMOL["fields"]["tool_calls"], "open": ..., "open_pattern": r"\s*<tool_call>"},
        content={"content_args": {"strip": strip}},
    )
    del spec["fields"]["tool_calls"]["open"]
    for text, expected in (
        ("Hi.", {"content": "Hi."}),
        (G2, {"tool_calls": [call("g")]}),
        (f"\n{G2}", {"tool_calls": [call("g")]}),
    ):
        for _, pieces in cuttings(text):
            message, deltas, _ = stream(spec, pieces, prefix="<s><t>\n\n</t>\n\n")
            assert message == {"role": "assistant", **expected}
            assert add_up(deltas) == expected


def test_indices_count_the_answers_own_calls() -> None:
    _, deltas, _ = stream(SMOL, [F1], prefix=START + G2)
    assert [part["index"] for delta in deltas for part in delta.get("tool_calls", ())] == [0] * len(deltas)


def test_prompts_with_calls_and_no_anchor() -> None:
    message, deltas, _ = stream(SMOL, ["Hi."], prefix=f"Example: {F1}")
    assert message == {"role": "assistant", "content": "Hi."}
    assert deltas == [{"content": "Hi."}]


def test_defaults() -> None:
    spec = {"defaults": {"role": "assistant", "content": "", "tool_calls": [], "extra": 1}, "start_anchor": "<s>", "fields": {
        "tool_calls": SMOL["fields"]["tool_calls"], "content": {}}}  # fmt: skip
    assert stream(spec, ["x"])[0] == {"role": "assistant", "content": "x", "tool_calls": [], "extra": 1}
    message, deltas, _ = stream(spec, [G2])
    assert message == {"role": "assistant", "content": "", "tool_calls": [call("g")], "extra": 1}
    assert add_up(deltas) == {"tool_calls": [call("g")]}


# ----------------------------------------------------------------------------------------------------------- arguments


def test_arguments_are_typed_by_the_tools() -> None:
    spec = json.loads((DATA / "manual_qwen3_xml.json").read_text("utf-8"))
    tools = [{"name": "f", "parameters": {"properties": {"zip": {"type": "string"}, "n": {"type": "integer"}}}}]
    text = "<tool_call><function=f><parameter=zip>02139</parameter><parameter=n>7</parameter></function></tool_call>"
    for options in ({"tools": tools}, {"tools": iter(tools)}):
        message, deltas, _ = stream(spec, list(text), **options)
        assert message["tool_calls"] == [call("f", zip="02139", n=7)]
        assert add_up(deltas) == {"tool_calls": message["tool_calls"]}


def test_arguments_as_json_text() -> None:
    assert dump_arguments({"a": "é🌦", "b": [1, None, True]}) == '{"a": "é🌦", "b": [1, null, true]}'
    assert json.loads(dump_arguments({"a": "\ud83c"})) == {"a": "\ud83c"}
    dump_arguments({"a": "\ud83c"}).encode()


def test_every_delta_can_be_sent_as_utf8_json() -> None:
    """Half a surrogate pair can come out of JSON's escapes; a server must be able to write the delta all the same."""
    text = '<tool_call>{"name": "f", "arguments": {"s": "\\ud83c"}}</tool_call>'
    message, deltas, _ = stream(SMOL, list(text))
    for delta in deltas:
        json.dumps(delta).encode()
        for part in delta.get("tool_calls", ()):
            part["function"]["arguments"].encode()
    assert message["tool_calls"] == [call("f", s="\ud83c")]


def test_a_stream_made_of_a_template() -> None:
    made = respzoo.ResponseTemplate(SMOL).stream(
        prefix="", arguments="complete", on_malformed="drop", on_unfinished="content"
    )
    assert isinstance(made, respzoo.MessageStream)
    assert made.feed(BAD) == []
    assert made.parser.region == "content"
    made.feed(CUT)
    assert made.finish()[0] == {"role": "assistant", "content": CUT}


def test_a_required_field_that_is_missing_has_no_text_to_show() -> None:
    """Found by made-up templates: its empty text was joined to the content, or broke the end of the stream."""
    score = {"open": "<n>", "close": "</n>", "content": "int", "optional": False}
    for content in ({}, {"repeats": True, "join": " "}):
        template = respzoo.ResponseTemplate({"start_anchor": "<s>", "fields": {"score": score, "content": content}})
        stream = template.stream(prefix="")
        assert stream.feed("Yes.") == [{"content": "Yes."}]
        assert stream.finish() == ({"content": "Yes."}, [])
        assert stream.dropped[0]["field"] == "score"
