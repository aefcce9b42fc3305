"""One test for each named difference: the text, what the reference makes of it, and what is right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from diff_cases import read_ours, read_reference, specs
from transformers.utils.chat_parsing.response_templates import load_response_template

import respzoo

QWEN = "<|im_start|>assistant\n"
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "zip": {"type": ["string", "integer"]},
                "exact": {"type": "boolean"},
                "near": {"anyOf": [{"type": "array"}, {"type": "null"}]},
            },
        },
    },
}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def both(
    template: str | Mapping[str, Any], text: str, *, prefix: str = "", pieces: Iterable[str] | None = None
) -> tuple[Any, Any]:
    """(ours, the reference's), each the message, or the error's text where it raises."""
    spec = specs()[template] if isinstance(template, str) else template
    cut = [text] if pieces is None else list(pieces)
    ours = read_ours(respzoo.ResponseTemplate(spec), prefix, [WEATHER], cut)
    theirs = read_reference(load_response_template(spec), prefix, [WEATHER], cut)
    return ours, theirs


def message(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", **fields}


def test_d1_implicit_text_adds_up() -> None:
    text = 'before <tool_call>{"name": "f"}</tool_call>\n after \n<tool_call>{"name": "g"}</tool_call>\n'
    ours, theirs = both("manual_smollm", text)
    assert ours.message == message(content="before \n after", tool_calls=[call("f"), call("g")])
    assert "content" not in theirs.message


def test_d2_a_malformed_region_is_an_event() -> None:
    broken = '<tool_call>{"name": "f", "arguments": {"a": }}</tool_call>'
    ours, theirs = both("manual_smollm", f'so: {broken} and <tool_call>{{"name": "g"}}</tool_call>')
    assert theirs.error
    assert ours.message == message(content=f"so: {broken} and", tool_calls=[call("g")])
    (event,) = [event for event in ours.events if event["type"] == "region_malformed"]
    assert (event["field"], event["raw"], event["reason"]) == ("tool_calls", broken, "malformed")
    assert event["error"]


@pytest.mark.parametrize(
    ("template", "text", "expected"),
    [
        (
            "manual_smollm",
            '<tool_call>{"name": "f", "arguments": {"a": "x</tool_call>y"}}</tool_call>',
            call("f", a="x</tool_call>y"),
        ),
        (
            "qwen3_xml",
            "<tool_call>\n<function=f>\n<parameter=a>\nx</parameter> and </function>\n</tool_call>y\n</parameter>\n"
            "</function>\n</tool_call>",
            call("f", a="x</parameter> and </function>\n</tool_call>y"),
        ),
        (
            "upstream_gemma4",
            '<|tool_call>call:f{a:<|"|>x<tool_call|>"y<|"|>}<tool_call|>',
            call("f", a='x<tool_call|>"y'),
        ),
        ("every_parser", "<code>[f(a='x</code>y')]</code>", call("f", a="x</code>y")),
    ],
)
def test_d3_a_closer_inside_a_value_is_text(template: str, text: str, expected: dict[str, Any]) -> None:
    ours, theirs = both(template, text)
    assert ours.message["tool_calls"] == [expected]
    assert theirs.error or theirs.message.get("tool_calls") != [expected]


def test_d3_quoted_markup_is_no_second_call() -> None:
    inner = '<|channel|>commentary to=functions.rm<|message|>{"path": "/"}<|call|>'
    text = (
        '<|channel|>commentary to=functions.say<|message|>{"text": "<|call|>' + inner.replace('"', '\\"') + '"}<|call|>'
    )
    ours, theirs = both("manual_gpt_oss", text)
    assert ours.message == message(tool_calls=[call("say", text="<|call|>" + inner)])
    assert theirs.error  # and with another quotation it would have called rm


def test_d3_a_quote_never_closed_does_not_swallow_the_rest() -> None:
    broken = '<tool_call>{"name": "f", "arguments": {"a": "x}}\n</tool_call>'
    ours, _ = both("manual_smollm", f'{broken}then <tool_call>{{"name": "g"}}</tool_call>')
    assert ours.message == message(content=f"{broken}then", tool_calls=[call("g")])


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("manual_smollm", '<tool_call>{"name": "f", "arguments": {"command": "rm -rf /'),
        ("manual_smollm", '<tool_call>{"name": "f", "arguments": {"command": "rm -rf /"}'),
        ("qwen3_xml", "<tool_call>\n<function=f>\n<parameter=command>\nrm -rf /"),
        ("qwen3_xml", "<tool_call>\n<function=f>\n<parameter=command>\nrm -rf /\n</parameter>\n"),
        ("qwen3_xml", "<tool_call>\n<func"),
        ("mistral_v13", '[TOOL_CALLS]f[ARGS]{"command": "rm -rf /'),
        ("mistral_v13", "[TOOL_CALLS]f"),
        ("every_parser", "<code>[f(command='rm -rf /"),
    ],
)
def test_d4_cut_off_is_not_closed(template: str, text: str) -> None:
    """Neither a call nor content: the raw text is in the event and in the record. Earlier calls stay."""
    ours, _ = both(template, text)
    assert ours.message == message()
    (record,) = ours.dropped
    assert (record["field"], record["raw"], record["reason"]) == ("tool_calls", text, "unfinished")
    (event,) = [event for event in ours.events if event["type"] == "region_malformed"]
    assert (event["raw"], event["reason"]) == (text, "unfinished")


def test_d4_earlier_calls_stay_and_a_whole_value_needs_no_closer() -> None:
    first = '<tool_call>{"name": "f"}</tool_call>'
    ours, _ = both("manual_smollm", f'{first}<tool_call>{{"name": "g", "argu')
    assert ours.message == message(tool_calls=[call("f")])
    ours, _ = both("manual_smollm", '<tool_call>{"name": "g"}')
    assert ours.message == message(tool_calls=[call("g")])


def test_d4_less_than_a_marker_is_text() -> None:
    ours, _ = both("manual_smollm", "a <tool_")
    assert ours.message == message(content="a <tool_")


def test_d5_optional_tails_wait() -> None:
    spec = {
        "start_anchor": "<s>",
        "fields": {"content": {}, "thinking": {"open": "<t>", "close_pattern": r"</t>(?:\s*</tt>)?"}},
    }
    text = "<t>a</t>\n</tt>b"
    whole, theirs_whole = both(spec, text)
    cut, theirs_cut = both(spec, text, pieces=text)
    assert whole == cut
    assert whole.message == {"reasoning_content": "a", "content": "b"}
    assert theirs_whole != theirs_cut


def test_d6_an_anchor_that_is_not_in_the_prefix() -> None:
    prompt = 'Call tools like this: <tool_call>{"name": "f"}</tool_call>'
    ours, theirs = both("manual_smollm", "No.", prefix=prompt)
    assert ours.message == message(content="No.")
    assert theirs.message["tool_calls"] == [call("f")] or theirs.message["tool_calls"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("02139", "02139"), ("2139", 2139), ("-1", -1), ("1_000", "1_000"), ("1.0", "1.0"), ("", "")],
)
def test_d7_where_string_is_allowed_only_what_round_trips_is_typed(text: str, value: Any) -> None:
    body = f"<tool_call>\n<function=get_weather>\n<parameter=zip>\n{text}\n</parameter>\n</function>\n</tool_call>"
    ours, _ = both("qwen3_xml", body)
    assert ours.message["tool_calls"] == [call("get_weather", zip=value)]


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("days", "3", 3),
        ("days", "1_000", "1_000"),
        ("days", "three", "three"),
        ("exact", "True", True),
        ("exact", "1", "1"),
        ("near", "None", None),
        ("near", "[1, 2]", [1, 2]),
        ("city", "3", "3"),
        ("city", "true", "true"),
        ("other", "3", "3"),
    ],
)
def test_d7_raw_text_is_read_by_its_schema(key: str, text: str, value: Any) -> None:
    body = f"<tool_call>\n<function=get_weather>\n<parameter={key}>\n{text}\n</parameter>\n</function>\n</tool_call>"
    ours, _ = both("qwen3_xml", body)
    assert ours.message["tool_calls"] == [call("get_weather", **{key: value})]


def test_d7_json_keeps_its_types() -> None:
    ours, theirs = both("manual_smollm", '<tool_call>{"name": "get_weather", "arguments": {"days": "3"}}</tool_call>')
    assert ours.message["tool_calls"] == [call("get_weather", days="3")]
    assert theirs.message["tool_calls"] == [call("get_weather", days=3)]


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ('{"name": "f"}', {}),
        ('{"name": "f", "arguments": null}', {}),
        ('{"name": "f", "arguments": "{\\"a\\": 1}"}', {"a": 1}),
        ('{"name": "", "arguments": {}}', None),
        ('{"name": 1, "arguments": {}}', None),
        ('{"arguments": {}}', None),
        ('{"name": "f", "arguments": [1]}', None),
        ('{"name": "f", "arguments": {"a": NaN}}', None),
        ('{"name": "f", "arguments": {"a": 1, "a": 2}}', None),
    ],
)
def test_d7_a_finished_call(body: str, arguments: dict[str, Any] | None) -> None:
    text = f"<tool_call>{body}</tool_call>"
    ours, _ = both("manual_smollm", text)
    expected = message(content=text) if arguments is None else message(tool_calls=[call("f", **arguments)])
    assert ours.message == expected


def test_d8_deltas_hold_back_framing_white_space() -> None:
    text = "<think>\n\n a \n b \n</think>\n\n c \n\n"
    stream = respzoo.MessageStream(respzoo.ResponseTemplate(specs()["manual_smollm"]), prefix="")
    deltas = [delta for char in text for delta in stream.feed(char)]
    final, last = stream.finish()
    deltas += last
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == final["reasoning_content"] == "a \n b"
    assert "".join(delta.get("content", "") for delta in deltas) == final["content"] == "c"
    ours, theirs = both("manual_smollm", text)
    assert ours.events == theirs.events  # the event stream keeps the reference's chunks


@pytest.mark.parametrize("name", ["reasoning_content", "thinking", "reasoning"])
def test_d9_reasoning_has_one_name(name: str) -> None:
    spec = {"start_anchor": "<s>", "fields": {"content": {}, name: {"open": "<t>", "close": "</t>"}}}
    ours, theirs = both(spec, "<t>a</t>b")
    assert ours.message == {"reasoning_content": "a", "content": "b"}
    assert theirs.message == {name: "a", "content": "b"}
    assert ours.events == theirs.events
    stream = respzoo.MessageStream(spec, prefix="")
    assert stream.feed("<t>a") == [{"reasoning_content": "a"}]


def test_p5_text_that_no_field_takes_is_content() -> None:
    """manual_qwen3_xml has no content field at all."""
    ours, theirs = both("manual_qwen3_xml", "<think>a</think>\n\nAn answer.")
    assert ours.message == message(reasoning_content="a", content="An answer.")
    assert theirs.message == message(thinking="a")
