"""The promise (P1 to P7) and the differences from the reference (D1 to D9), each in words and every way of cutting."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import growth
import pytest
from transformers.utils.chat_parsing import ResponseParser as ReferenceParser

import respzoo
from respzoo.events import merge
from respzoo.testing import cuttings

DATA = Path(__file__).parent / "data" / "templates"
CUTS = ("whole", "by character", "random 0", "random 1")


def stored(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))


SMOL, QWEN_XML, HARMONY, COHERE = map(stored, ("manual_smollm", "manual_qwen3_xml", "manual_gpt_oss", "manual_cohere"))
NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
EACH = {"type": "function", "function": {"name": "{name}", "arguments": "{arguments}"}}


def template(**fields: Any) -> dict[str, Any]:
    return {"defaults": {"role": "assistant"}, "start_anchor": "<s>", "fields": fields}


TAG = r"<p=(?P<key>\w+)>\n?(?P<value>.*?)\n?</p>"
XML = template(
    tool_calls={
        "open_pattern": r"<c>\s*<f=(?P<name>\w+)>", "close_pattern": r"</f>\s*</c>", "content": "xml-inline", "repeats": True,
        "content_args": {"tag_pattern": TAG}, "transform": NAMED,
    },
    content={},
)  # fmt: skip
DELIMS = template(
    tool_calls={
        "open_pattern": r"call:(?P<name>\w+)", "close": "<end>", "content": "json", "repeats": True, "transform": NAMED,
        "content_args": {"unquoted_keys": True, "string_delims": [["<q>", "<q>"]]},
    },
    content={},
)  # fmt: skip
PYTHON = template(
    tool_calls={
        "open": "<c>",
        "close": "</c>",
        "content": "python-call-list",
        "transform": EACH,
        "transform_each": True,
    },
    content={},
)
TAILED = template(
    tool_calls={
        "open_pattern": r"<c>(?P<name>\w+)\n", "close_pattern": r"</f>(?:\s*</c>)?", "content": "json", "repeats": True,
        "transform": NAMED,
    },
    content={},
)  # fmt: skip
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "o": {"type": "object"}}},
        },
    }
]  # fmt: skip


class Result(NamedTuple):
    message: dict[str, Any]
    events: list[Any]
    dropped: list[Any]


def pieces_of(text: str, how: str) -> list[str]:
    return dict(cuttings(text))[how]


def read(spec: Any, pieces: Sequence[str], *, prefix: str = "", tools: Any = None, **policy: Any) -> Result:
    parser = respzoo.ResponseParser(spec, prefix=prefix, tools=tools, **policy)
    events = [*parser.initial_events]
    for piece in pieces:
        events += parser.feed(piece)
    message, last = parser.finalize()
    return Result(message, merge([*events, *last]), list(parser.dropped))


def reference(spec: Any, text: str, *, prefix: str = "", tools: Any = None) -> Any:
    """The reference's message, or the type of what it raises."""
    try:
        parser = ReferenceParser(spec, prefix=prefix, tools=tools)
        parser.feed(text)
        return parser.finalize()[0]
    except Exception as error:  # noqa: BLE001  whatever it is
        return type(error)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def message(content: str | None = None, *calls: Any, reasoning: str | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {"role": "assistant"}
    if reasoning is not None:
        made["reasoning_content"] = reasoning
    if content is not None:
        made["content"] = content
    if calls:
        made["tool_calls"] = list(calls)
    return made


F1 = '<tool_call>\n{"name": "f", "arguments": {"n": 1}}\n</tool_call>'
BAD = '<tool_call>{"name": "f", "arguments": {"n": }}</tool_call>'


class Case(NamedTuple):
    id: str
    spec: Any
    text: str
    message: Any
    dropped: Sequence[tuple[str, str, str]] = ()
    """field, raw, reason"""
    prefix: str = ""
    tools: Any = None
    as_reference: bool | None = None
    """Whether the reference gives the same; None: not asked."""
    policy: Mapping[str, Any] = {}


def xml(*tags: str, end: str = "</f></c>") -> str:
    return "<c><f=f>" + "".join(tags) + end


CASES = [
    # P2: where the reference answers, the same answer
    Case("P2-text", SMOL, "Hello.", message("Hello."), as_reference=True),
    Case("P2-content-ends-at-its-closer", SMOL, "Hello.<|im_end|>", message("Hello."), as_reference=True),
    Case("P2-empty", SMOL, "", message(), as_reference=True),
    Case("P2-white-space", SMOL, " \n ", message(), as_reference=True),
    Case("P2-a-call", SMOL, F1, message(None, call("f", n=1)), as_reference=True),
    Case("P2-two-calls", SMOL, F1 + "\n" + F1, message(None, call("f", n=1), call("f", n=1)), as_reference=True),
    Case("P2-an-opener-inside-a-region-is-text", COHERE, "<|START_THINKING|>a<|START_ACTION|>b<|END_THINKING|>",
         message(reasoning="a<|START_ACTION|>b")),
    Case("P2-xml", XML, xml("\n<p=s>\nx y\n</p>\n", "<p=n>1</p>"), message(None, call("f", s="x y", n="1")), as_reference=True),
    Case("P2-manual-qwen3-xml", QWEN_XML,
         "<tool_call>\n<function=f>\n<parameter=city>\nParis\n</parameter>\n<parameter=n>\n3\n</parameter>\n</function>\n</tool_call>",
         message(None, call("f", city="Paris", n=3)), as_reference=True),
    Case("P2-xml-no-arguments", XML, xml(), message(None, call("f")), as_reference=True),
    Case("P2-python", PYTHON, "<c>[f(n=1), g(s='x')]</c>", message(None, call("f", n=1), call("g", s="x")), as_reference=True),
    Case("P2-string-delims", DELIMS, "call:f{s:<q>x<q>,n:1}<end>", message(None, call("f", s="x", n=1)), as_reference=True),
    Case("P2-harmony", HARMONY, '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"n": 1}<|call|>',
         message(None, call("f", n=1)), as_reference=True),
    Case("P2-cohere", COHERE, '<|START_ACTION|>[{"tool_name": "f", "parameters": {"n": 1}}, {"tool_name": "g", "parameters": {}}]<|END_ACTION|>',
         message(None, call("f", n=1), call("g")), as_reference=True),
    Case("P2-typed", XML, xml("<p=n>7</p>", "<p=s>7</p>"), message(None, call("f", n=7, s="7")), tools=TOOLS, as_reference=True),
    # D1: implicit text adds up
    Case("D1-before-and-after", SMOL, f"before{F1}after", message("beforeafter", call("f", n=1)), as_reference=False),
    Case("D1-a-lone-newline", SMOL, f"answer\n{F1}\n{F1}", message("answer", call("f", n=1), call("f", n=1)), as_reference=False),
    Case("D1-stripped-once", SMOL, f" a \n{F1}\n b ", message("a \n\n b", call("f", n=1)), as_reference=False),
    Case("D1-a-second-list-of-calls", COHERE, '<|START_ACTION|>[{"tool_name": "f", "parameters": {}}]<|END_ACTION|>\n'
         '<|START_ACTION|>[{"tool_name": "g", "parameters": {}}]<|END_ACTION|>', message(None, call("f"), call("g")), as_reference=False),
    Case("D1-behind-the-closer", SMOL, "a<|im_end|>b<|im_end|>", message("ab"), as_reference=False),
    Case("D1-not-stripped", template(tool_calls=SMOL["fields"]["tool_calls"], content={"content_args": {"strip": False}}),
         f" a \n{F1}\n b ", message(" a \n\n b ", call("f", n=1)), as_reference=False),
    # D2: a malformed region is an event, and parsing goes on
    Case("D2-content-by-default", SMOL, f"x {BAD} y", message(f"x {BAD} y"), [("tool_calls", BAD, "malformed")], as_reference=False),
    Case("D2-dropped", SMOL, f"x {BAD} y{F1}", message("x  y", call("f", n=1)), [("tool_calls", BAD, "malformed")],
         policy={"on_malformed": "drop"}, as_reference=False),
    Case("D2-the-calls-around-it-stay", SMOL, F1 + BAD + F1, message(BAD, call("f", n=1), call("f", n=1)),
         [("tool_calls", BAD, "malformed")], as_reference=False),
    Case("D2-a-transform-that-does-not-resolve", COHERE, '<|START_ACTION|>[{"tool_name": "f"}]<|END_ACTION|>',
         message('<|START_ACTION|>[{"tool_name": "f"}]<|END_ACTION|>'),
         [("tool_calls", '<|START_ACTION|>[{"tool_name": "f"}]<|END_ACTION|>', "malformed")], as_reference=False),
    Case("D2-not-a-list", COHERE, "<|START_ACTION|>{}<|END_ACTION|>", message("<|START_ACTION|>{}<|END_ACTION|>"),
         [("tool_calls", "<|START_ACTION|>{}<|END_ACTION|>", "malformed")], as_reference=False),
    # D3: the content parser owns its closer
    Case("D3-json", SMOL, '<tool_call>{"name": "f", "arguments": {"s": "</tool_call>"}}</tool_call>', message(None, call("f", s="</tool_call>")),
         as_reference=False),
    Case("D3-json-escapes", SMOL, '<tool_call>{"name": "f", "arguments": {"s": "\\\\\\"</tool_call>\\\\"}}</tool_call>',
         message(None, call("f", s='\\"</tool_call>\\')), as_reference=False),
    Case("D3-json-a-whole-call-in-a-string", SMOL,
         "<tool_call>" + json.dumps({"name": "f", "arguments": {"s": F1}}) + "</tool_call>", message(None, call("f", s=F1)), as_reference=False),
    Case("D3-json-key", SMOL, '<tool_call>{"name": "f", "arguments": {"</tool_call>": 1}}</tool_call>',
         message(None, call("f", **{"</tool_call>": 1})), as_reference=False),
    Case("D3-harmony-no-call-out-of-an-argument", HARMONY,
         '<|channel|>commentary to=functions.f<|message|>{"s": "<|call|><|channel|>commentary to=functions.rm<|message|>{}<|call|>"}<|call|>',
         message(None, call("f", s="<|call|><|channel|>commentary to=functions.rm<|message|>{}<|call|>")), as_reference=False),
    Case("D3-xml-between-tags-only", XML, xml("<p=s>a</f></c>b</p>"), message(None, call("f", s="a</f></c>b")), as_reference=False),
    Case("D3-xml-a-closing-tag-in-a-value", XML, xml("<p=s>a</p>b</p>", "<p=n>1</p>"), message(None, call("f", s="a</p>b", n="1")),
         as_reference=False),
    Case("D3-xml-a-value-that-quotes-markup", XML, xml("<p=s>\n<p>x</p> and <c>\n</p>\n"), message(None, call("f", s="<p>x</p> and <c>")),
         as_reference=False),
    Case("D3-xml-two-calls", XML, xml("<p=s>a</p>") + xml("<p=s>b</p>"), message(None, call("f", s="a"), call("f", s="b")), as_reference=True),
    Case("D3-string-delims", DELIMS, 'call:f{s:<q>a<end>"b<q>}<end>', message(None, call("f", s='a<end>"b')), as_reference=False),
    Case("D3-string-delims-plain-quotes", DELIMS, 'call:f{"s":"a<end>b"}<end>', message(None, call("f", s="a<end>b")), as_reference=False),
    Case("D3-python", PYTHON, "<c>[f(s='</c>', t=\"</c>'\")]</c>", message(None, call("f", s="</c>", t="</c>'")), as_reference=False),
    Case("D3-python-escaped-quote", PYTHON, r"<c>[f(s='it\'s </c>')]</c>", message(None, call("f", s="it's </c>")), as_reference=False),
    Case("D3-a-quote-never-closed", SMOL, '<tool_call>{"name": "f, "arguments": {}}</tool_call> and more',
         message('<tool_call>{"name": "f, "arguments": {}}</tool_call> and more'),
         [("tool_calls", '<tool_call>{"name": "f, "arguments": {}}</tool_call>', "malformed")]),
    Case("D3-a-quote-never-closed-before-a-line-break", SMOL, '<tool_call>{"name": "f\n</tool_call>\nmore' + F1,
         message('<tool_call>{"name": "f\n</tool_call>\nmore', call("f", n=1)),
         [("tool_calls", '<tool_call>{"name": "f\n</tool_call>', "malformed")]),
    Case("D3-no-json-at-all", SMOL, '<tool_call>say "x</tool_call> y', message('<tool_call>say "x</tool_call> y'),
         [("tool_calls", '<tool_call>say "x</tool_call>', "malformed")]),
    # D4: cut off is not closed
    Case("D4-a-whole-value-without-its-closer", SMOL, F1.removesuffix("</tool_call>"), message(None, call("f", n=1)), as_reference=True),
    Case("D4-part-of-the-closer", SMOL, F1.removesuffix("call>"), message(None, call("f", n=1))),
    Case("D4-json-cut", SMOL, "a " + F1[:40], message("a"), [("tool_calls", F1[:40], "unfinished")], as_reference=False),
    Case("D4-json-cut-in-a-string", SMOL, '<tool_call>{"name": "f", "arguments": {"s": "rm -rf /', message(),
         [("tool_calls", '<tool_call>{"name": "f", "arguments": {"s": "rm -rf /', "unfinished")], as_reference=False),
    Case("D4-xml-cut-in-a-value", XML, xml("<p=s>rm -rf /", end=""), message(), [("tool_calls", "<c><f=f><p=s>rm -rf /", "unfinished")],
         as_reference=False),
    Case("D4-xml-cut-behind-a-value", XML, xml("<p=s>x</p>\n", end=""), message(), [("tool_calls", "<c><f=f><p=s>x</p>\n", "unfinished")],
         as_reference=False),
    Case("D4-xml-cut-in-the-closer", XML, xml("<p=s>x</p>", end="</f>"), message(), [("tool_calls", "<c><f=f><p=s>x</p></f>", "unfinished")]),
    Case("D4-xml-cut-behind-the-name", XML, "<c><f=f>", message(), [("tool_calls", "<c><f=f>", "unfinished")], as_reference=False),
    Case("D4-python-whole", PYTHON, "<c>[f(n=1)]", message(None, call("f", n=1)), as_reference=True),
    Case("D4-python-cut", PYTHON, "<c>[f(n=1), g(s='x", message(), [("tool_calls", "<c>[f(n=1), g(s='x", "unfinished")], as_reference=False),
    Case("D4-kv-lines-cut", template(tool_calls={"open_pattern": r"<c>(?P<name>\w+)\n", "close": "</c>", "content": "kv-lines", "transform": NAMED,
                                                 "repeats": True}, content={}),
         "<c>f\npath: /", message(), [("tool_calls", "<c>f\npath: /", "unfinished")], as_reference=False),
    Case("D4-text-is-accepted-as-it-is", SMOL, "<think>so far", message(reasoning="so far")),
    Case("D4-text-with-half-a-closer", SMOL, "<think>so far</thi", message(reasoning="so far</thi")),
    Case("D4-earlier-calls-stay", SMOL, F1 + "\n" + F1[:30], message(None, call("f", n=1)), [("tool_calls", F1[:30], "unfinished")]),
    Case("D4-half-a-marker-is-text", SMOL, "a <tool_", message("a <tool_"), as_reference=True),
    Case("D4-a-lone-bracket-is-text", SMOL, "a <", message("a <"), as_reference=True),
    Case("D4-an-opener-begun-with-a-whole-marker", XML, "a <c>\n<f=", message("a"), [("tool_calls", "<c>\n<f=", "unfinished")], as_reference=False),
    Case("D4-an-opener-begun-with-half-a-marker", XML, "a <", message("a <"), as_reference=True),
    Case("D4-mistral-marker", template(tool_calls={"open_pattern": r"\[TOOL_CALLS\](?P<name>\w+)\[ARGS\]", "content": "json",
                                                   "transform": NAMED, "repeats": True, "close": "</s>"}, content={}),
         "a [TOOL_CALLS]", message("a"), [("tool_calls", "[TOOL_CALLS]", "unfinished")]),
    Case("D4-brackets-of-the-text-are-no-markers", stored("inkling"), "[f(a=1)]", None),
    Case("D4-as-content-to-who-asks", SMOL, "a " + F1[:40], message("a " + F1[:40]), [("tool_calls", F1[:40], "unfinished")],
         policy={"on_unfinished": "content"}),
    Case("D4-no-closer-in-the-template", template(tool_calls={"open": "[CALLS]", "content": "json", "transform": EACH, "transform_each": True}, content={}),
         'x[CALLS][{"name": "f", "arguments": {}}]', message("x", call("f")), as_reference=True),
    # D5: optional tails wait
    Case("D5-the-tail-comes", TAILED, "<c>f\n{}</f>\n</c>x", message("x", call("f")), as_reference=True),
    Case("D5-the-tail-does-not-come", TAILED, "<c>f\n{}</f>\nx", message("x", call("f")), as_reference=True),
    Case("D5-the-end-comes", TAILED, "<c>f\n{}</f>", message(None, call("f")), as_reference=True),
    Case("D5-half-a-tail", TAILED, "<c>f\n{}</f>\n</", message("</", call("f"))),
    Case("D5-the-end-of-the-text", template(content={"open": "<a>", "close_pattern": r"</a>|$"}), "<a>x\ny", message("x\ny"), as_reference=True),
    Case("D5-the-longer-literal", template(reasoning_content={"open": "<t>", "close": ["</t>", "</t>!!"]}, content={}),
         "<t>a</t>!!b", message("b", reasoning="a"), as_reference=True),
    Case("D5-not-the-longer-literal", template(reasoning_content={"open": "<t>", "close": ["</t>", "</t>!!"]}, content={}),
         "<t>a</t>!b", message("!b", reasoning="a"), as_reference=True),
    # D6: an anchor that is not in the prefix
    Case("D6-the-prompt-is-not-parsed", SMOL, "Hi.", message("Hi."), prefix=f"For example: {F1}", as_reference=False),
    Case("D6-the-last-anchor-counts", SMOL, "Hi.", message("Hi."), prefix=f"<|im_start|>assistant\n{F1}<|im_end|>\n<|im_start|>assistant\n",
         as_reference=True),
    # D7: what JSON typed keeps its type
    Case("D7-json", SMOL, '<tool_call>{"name": "f", "arguments": {"n": "7", "s": 7, "o": "{}"}}</tool_call>', message(None, call("f", n="7", s=7, o="{}")),
         tools=TOOLS, as_reference=False),
    Case("D7-raw-text", XML, xml("<p=n>1_000</p>", "<p=s>02139</p>", '<p=o>{"a": "1"}</p>'),
         message(None, call("f", n="1_000", s="02139", o={"a": "1"})), tools=TOOLS, as_reference=False),
    # D9: one field of reasoning
    *[Case(f"D9-{name}", template(**{name: {"open": "<t>", "close": "</t>"}}, content={}), "<t>a</t>b", message("b", reasoning="a"))
      for name in ("thinking", "reasoning", "reasoning_content")],
    # P5: nothing lost, nothing invented
    Case("P5-a-call-without-a-name", SMOL, '<tool_call>{"arguments": {}}</tool_call>', message('<tool_call>{"arguments": {}}</tool_call>'),
         [("tool_calls", '<tool_call>{"arguments": {}}</tool_call>', "malformed")]),
    Case("P5-a-number-for-a-call", template(tool_calls={"open": "<c>", "close": "</c>", "content": "json", "repeats": True}, content={}),
         "<c>42</c>", message("<c>42</c>"), [("tool_calls", "<c>42</c>", "malformed")]),
    Case("P5-a-key-twice", SMOL, '<tool_call>{"name": "f", "arguments": {"a": 1, "a": 2}}</tool_call>',
         message('<tool_call>{"name": "f", "arguments": {"a": 1, "a": 2}}</tool_call>'),
         [("tool_calls", '<tool_call>{"name": "f", "arguments": {"a": 1, "a": 2}}</tool_call>', "malformed")]),
    Case("P5-NaN", SMOL, '<tool_call>{"name": "f", "arguments": {"a": NaN}}</tool_call>',
         message('<tool_call>{"name": "f", "arguments": {"a": NaN}}</tool_call>'),
         [("tool_calls", '<tool_call>{"name": "f", "arguments": {"a": NaN}}</tool_call>', "malformed")]),
    Case("P5-arguments-in-a-string", SMOL, '<tool_call>{"name": "f", "arguments": "{\\"n\\": 1}"}</tool_call>', message(None, call("f", n=1))),
    Case("P5-absent-arguments", SMOL, '<tool_call>{"name": "f"}</tool_call>', message(None, call("f"))),
    Case("P5-text-that-no-field-takes", HARMONY, "Sorry, no channel.", message("Sorry, no channel."), as_reference=False),
    Case("P5-text-that-no-field-takes-behind-a-field", COHERE, "<|START_THINKING|>a<|END_THINKING|>\nAnswer", message("Answer", reasoning="a"),
         as_reference=False),
    Case("P5-a-closer-with-nothing-to-close", SMOL, "a</tool_call>b", message("a</tool_call>b"), as_reference=True),
    Case("P5-a-closer-of-reasoning-with-nothing-to-close", SMOL, "a</think>b", message("a</think>b"), as_reference=True),
    Case("P5-a-malformed-call-where-no-field-is-content", template(tool_calls=SMOL["fields"]["tool_calls"]), BAD, message(BAD),
         [("tool_calls", BAD, "malformed")]),
    # P7: whatever a model wrote
    Case("P7-cut-where-broken-json-may-close-or-quote", DELIMS, "call:f x<", message("call:f x<"), [("tool_calls", "call:f x<", "malformed")]),
    Case("D3-what-cannot-be-a-value-is-text-where-the-output-ends", SMOL, "Use <tool_call>so, and then", message("Use <tool_call>so, and then"),
         [("tool_calls", "<tool_call>so, and then", "malformed")]),
    Case("P7-a-mark-behind-broken-json", DELIMS, "call:f x<q>y<end>z", message("call:f x<q>y<end>z"),
         [("tool_calls", "call:f x<q>y<end>", "malformed")]),
    Case("P7-null-characters", SMOL, "a\x00b<tool_call>\x00</tool_call>", message("a\x00b<tool_call>\x00</tool_call>"),
         [("tool_calls", "<tool_call>\x00</tool_call>", "malformed")]),
    Case("P7-half-a-surrogate-pair", SMOL, '<tool_call>{"name": "f", "arguments": {"s": "\\ud83c"}}</tool_call>\ud83c',
         message("\ud83c", call("f", s="\ud83c"))),
    Case("P7-deep-json", SMOL, "<tool_call>" + "[" * 20_000 + "</tool_call>", message("<tool_call>" + "[" * 20_000 + "</tool_call>"),
         [("tool_calls", "<tool_call>" + "[" * 20_000 + "</tool_call>", "malformed")]),
    Case("P7-a-huge-integer", SMOL, '<tool_call>{"name": "f", "arguments": {"n": ' + "9" * 5_000 + "}}</tool_call>",
         message('<tool_call>{"name": "f", "arguments": {"n": ' + "9" * 5_000 + "}}</tool_call>"),
         [("tool_calls", '<tool_call>{"name": "f", "arguments": {"n": ' + "9" * 5_000 + "}}</tool_call>", "malformed")]),
]  # fmt: skip


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case, how: str) -> None:
    result = read(case.spec, pieces_of(case.text, how), prefix=case.prefix, tools=case.tools, **case.policy)
    if case.message is not None:
        assert result.message == case.message
        assert json.dumps(result.message) == json.dumps({**result.message, **case.message}), "types and order of keys"
        assert [(one["field"], one["raw"], one["reason"]) for one in result.dropped] == list(case.dropped)
    # P3: one answer
    assert result == read(case.spec, [case.text], prefix=case.prefix, tools=case.tools, **case.policy)
    # the record of what was dropped is that of the events
    malformed = [event for event in result.events if event["type"] == "region_malformed"]
    assert [{key: event[key] for key in ("field", "raw", "error", "reason")} for event in malformed] == [
        one for one in result.dropped if one["field"]
    ]
    assert all(one["error"] for one in result.dropped)
    check_shape(result.events)


@pytest.mark.parametrize("case", [case for case in CASES if case.as_reference is not None], ids=lambda case: case.id)
def test_what_the_reference_says(case: Case) -> None:
    """Each difference is one: where a case claims it, the reference does differ."""
    theirs = reference(case.spec, case.text, prefix=case.prefix, tools=case.tools)
    if isinstance(theirs, dict) and "thinking" in theirs:
        theirs["reasoning_content"] = theirs.pop("thinking")
    assert (theirs == case.message) is case.as_reference


def check_shape(events: Sequence[Any]) -> None:
    """Regions follow one another: open, chunks, and one end."""
    field = None
    for event in events:
        kind = event["type"]
        if kind == "region_open":
            assert field is None, "a region inside a region"
            field = event["field"]
        elif kind == "region_malformed" and field is None:
            assert event["reason"] == "unfinished" or not event["raw"]
        else:
            assert field == event["field"], event
            field = field if kind == "region_chunk" else None
            if kind == "region_chunk":
                assert event["text"]
    assert field is None, f"{field} is never closed"


# ------------------------------------------------------------------------------------------------------------ events


@pytest.mark.parametrize("how", CUTS)
def test_events_in_full(how: str) -> None:
    text = f"<think>\n a \n</think>\n\nb \n{F1}"
    body = '\n{"name": "f", "arguments": {"n": 1}}\n'
    assert read(SMOL, pieces_of(text, how)).events == [
        {"type": "region_open", "field": "thinking"},
        {"type": "region_chunk", "field": "thinking", "text": "\n a \n", "dirty": False},
        {"type": "region_close", "field": "thinking", "value": "a"},
        {"type": "region_open", "field": "content"},
        {"type": "region_chunk", "field": "content", "text": "\n\nb \n", "dirty": False},
        {"type": "region_close", "field": "content", "value": "b"},
        {"type": "region_open", "field": "tool_calls"},
        {"type": "region_chunk", "field": "tool_calls", "text": body, "dirty": True},
        {"type": "region_close", "field": "tool_calls", "value": call("f", n=1)},
    ]


@pytest.mark.parametrize("how", CUTS)
def test_d2_the_event_of_a_malformed_region(how: str) -> None:
    events = read(SMOL, pieces_of(f"a{BAD}", how)).events
    assert [event["type"] for event in events[3:]] == ["region_open", "region_chunk", "region_malformed"]
    end = events[-1]
    assert (end["field"], end["raw"], end["reason"]) == ("tool_calls", BAD, "malformed")
    assert "JSON" in end["error"]


def test_d8_events_keep_white_space_that_values_do_not_have() -> None:
    parser = respzoo.ResponseParser(SMOL, prefix="")
    events = [*parser.feed("<think>\n"), *parser.feed("a"), *parser.feed("\n"), *parser.feed("</think>")]
    assert "".join(event.get("text", "") for event in events) == "\na\n"
    assert events[-1] == {"type": "region_close", "field": "thinking", "value": "a"}


def test_chunks_are_not_held_longer_than_they_must() -> None:
    parser = respzoo.ResponseParser(SMOL, prefix="")
    pieces = ("Hel", "lo <", "b> a", " <to", "ol> ", "<tool_call", ">", '{"name"')
    chunks = ["".join(event.get("text", "") for event in parser.feed(piece)) for piece in pieces]
    assert chunks == ["Hel", "lo ", "<b> a", " ", "<tool> ", "", "", '{"name"']


@pytest.mark.parametrize("how", CUTS)
def test_two_parsers_share_a_template(how: str) -> None:
    shared = respzoo.ResponseTemplate(SMOL)
    one, two = shared.parser(prefix=""), shared.parser(prefix="")
    for piece in pieces_of(f"<think>a</think>{F1}", how):
        one.feed(piece)
        two.feed(piece)
    assert one.finalize() == two.finalize()


@pytest.mark.parametrize("case", [case for case in CASES if len(case.text) < 110], ids=lambda case: case.id)
def test_p3_every_cut_in_two(case: Case) -> None:
    """What is held at a cut, and what the region has become by then: no pair of them may matter."""
    whole = read(case.spec, [case.text], prefix=case.prefix, tools=case.tools, **case.policy)
    for at in range(1, len(case.text)):
        pieces = [case.text[:at], case.text[at:]]
        assert read(case.spec, pieces, prefix=case.prefix, tools=case.tools, **case.policy) == whole, pieces


# ------------------------------------------------------------------------------- repeats, join, transforms, captures

WAYS: list[tuple[str, dict[str, Any], str, Any]] = [
    ("no repeats: text adds up", {"x": {"open": "<x>", "close": "</x>"}}, "<x> a </x><x>b </x>", {"x": "a b"}),
    ("no repeats: a value is the last", {"x": {"open": "<x>", "close": "</x>", "content": "int"}}, "<x>1</x><x>2</x>", {"x": 2}),
    ("repeats", {"x": {"open": "<x>", "close": "</x>", "repeats": True}}, "<x> a </x><x>b</x>", {"x": ["a", "b"]}),
    ("repeats, one", {"x": {"open": "<x>", "close": "</x>", "repeats": True}}, "<x>a</x>", {"x": ["a"]}),
    ("repeats, none", {"x": {"open": "<x>", "close": "</x>", "repeats": True}}, "", {}),
    ("join", {"x": {"open": "<x>", "close": "</x>", "repeats": True, "join": "|"}}, "<x> a </x><x>b</x><x></x>", {"x": "a|b|"}),
    ("join, nothing between", {"x": {"open": "<x>", "close": "</x>", "repeats": True, "join": ""}}, "<x>a</x><x>b</x>", {"x": "ab"}),
    ("implicit repeats", {"x": {"open": "<x>", "close": "</x>"}, "y": {"repeats": True}}, "a<x>b</x>c", {"x": "b", "y": ["a", "c"]}),
    ("implicit join", {"x": {"open": "<x>", "close": "</x>"}, "y": {"repeats": True, "join": " "}}, "a<x>b</x>c", {"x": "b", "y": "a c"}),
    ("int", {"x": {"open": "<x>", "close": "</x>", "content": "int"}}, "<x> 42 </x>", {"x": 42}),
    ("float", {"x": {"open": "<x>", "close": "</x>", "content": "float", "repeats": True}}, "<x>1</x><x>.5</x>", {"x": [1.0, 0.5]}),
    ("bool", {"x": {"open": "<x>", "close": "</x>", "content": "bool"}}, "<x>no</x>", {"x": False}),
    ("json", {"x": {"open": "<x>", "close": "</x>", "content": "json"}}, '<x>{"a": "</x>"}</x>', {"x": {"a": "</x>"}}),
    ("kv-lines", {"x": {"open": "<x>", "close": "</x>", "content": "kv-lines"}}, "<x>a: 1\nb: 2</x>", {"x": {"a": "1", "b": "2"}}),
    ("implicit json", {"x": {"content": "json"}}, ' {"a": 1} ', {"x": {"a": 1}}),
    ("implicit int", {"x": {"content": "int"}}, "42\n", {"x": 42}),
    ("transform", {"x": {"open_pattern": r"<x (?P<k>\w+)>", "close": "</x>", "transform": {"k": "{k}", "v": ["{content}", "c"]}}},
     "<x a>b</x>", {"x": {"k": "a", "v": ["b", "c"]}}),
    ("close wins over open", {"x": {"open_pattern": r"<x (?P<k>\w+)>", "close_pattern": r"</x (?P<k>\w+)>", "transform": "{k}"}},
     "<x a>b</x c>", {"x": "c"}),
    ("open where close has none", {"x": {"open_pattern": r"<x (?P<k>\w+)>", "close_pattern": r"</x(?: (?P<k>\w+))?>", "transform": "{k}"}},
     "<x a>b</x>", {"x": "a"}),
    ("dotted path", {"x": {"open": "<x>", "close": "</x>", "content": "json", "transform": {"n": "{content.a.b}"}}},
     '<x>{"a": {"b": [1]}}</x>', {"x": {"n": [1]}}),
    ("each", {"x": {"open_pattern": "<x (?P<k>.)>", "close": "</x>", "content": "json", "transform_each": True, "transform": ["{k}", "{a}"]}},
     '<x q>[{"a": 1}, {"a": null}]</x>', {"x": [["q", 1], ["q", None]]}),
    ("each: its keys win", {"x": {"open_pattern": "<x (?P<a>.)>", "close": "</x>", "content": "json", "transform_each": True, "transform": "{a}"}},
     '<x q>[{"a": 1}]</x>', {"x": [1]}),
    ("each and repeats", {"x": {"open": "<x>", "close": "</x>", "content": "json", "transform_each": True, "transform": "{a}", "repeats": True}},
     '<x>[{"a": 1}]</x><x>[{"a": 2}]</x>', {"x": [[1], [2]]}),
    ("constant transform", {"x": {"open": "<x>", "close": "</x>", "transform": {"type": "x"}}}, "<x>a</x>", {"x": {"type": "x"}}),
    ("list of openers", {"x": {"open": ["<x>", "<xx>"], "close": ["</x>", "</xx>"], "repeats": True}}, "<x>a</xx><xx>b</x>", {"x": ["a", "b"]}),
    ("to the end", {"x": {"open": "<x>"}, "y": {}}, "a<x>b<x>c", {"x": "b<x>c", "y": "a"}),
]  # fmt: skip


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize(("fields", "text", "expected"), [way[1:] for way in WAYS], ids=[way[0] for way in WAYS])
def test_ways_of_a_field(fields: Any, text: str, expected: Any, how: str) -> None:
    spec = {"start_anchor": "<s>", "fields": fields}
    assert read(spec, pieces_of(text, how)).message == expected


@pytest.mark.parametrize("way", WAYS, ids=[way[0] for way in WAYS])
def test_ways_are_the_references(way: Any) -> None:
    name, fields, text, expected = way
    theirs = reference({"start_anchor": "<s>", "fields": fields}, text)
    assert (theirs == expected) is not name.startswith(("no repeats: text", "json"))


@pytest.mark.parametrize("how", CUTS)
def test_named_groups_of_the_implicit_fields_closer(how: str) -> None:
    spec = {
        "start_anchor": "<s>",
        "fields": {"x": {"close_pattern": "<(?P<why>stop|len)>", "transform": ["{content}", "{why}"]}},
    }
    assert read(spec, pieces_of("a<stop>", how)).message == {"x": ["a", "stop"]}


@pytest.mark.parametrize("content", ["json", "int"])
@pytest.mark.parametrize("how", CUTS)
def test_join_needs_text(content: str, how: str) -> None:
    """P7: the reference raises out of `feed`."""
    spec = template(x={"open": "<x>", "close": "</x>", "content": content, "repeats": True, "join": " "}, content={})
    result = read(spec, pieces_of("<x>1</x>", how))
    assert result.message == message("<x>1</x>")
    assert result.dropped[0]["reason"] == "malformed"


@pytest.mark.parametrize("how", CUTS)
def test_empty_fields_are_dropped_but_not_defaults(how: str) -> None:
    spec = {"defaults": {"content": "", "tool_calls": None}, "start_anchor": "<s>", "fields": {
        "x": {"open": "<x>", "close": "</x>", "content": "json", "repeats": False}, "content": {}}}  # fmt: skip
    for text, expected in (("", {}), ("<x>[]</x>", {}), ("<x>{}</x>", {}), ('<x>""</x>', {}), ("<x>null</x>", {}), ("<x>0</x>", {"x": 0}),
                           ("<x>false</x>", {"x": False})):  # fmt: skip
        assert read(spec, pieces_of(text, how)).message == {"content": "", "tool_calls": None, **expected}


@pytest.mark.parametrize("how", CUTS)
def test_defaults_are_filled_and_followed(how: str) -> None:
    spec = {"defaults": {"role": "assistant", "content": "none"}, "start_anchor": "<s>", "fields": {"content": {}}}
    assert read(spec, pieces_of("x", how)).message == {"role": "assistant", "content": "x"}
    assert read(spec, pieces_of("", how)).message == {"role": "assistant", "content": "none"}


@pytest.mark.parametrize("how", CUTS)
def test_a_required_field_that_is_missing(how: str) -> None:
    spec = template(x={"open": "<x>", "close": "</x>", "optional": False}, content={})
    assert read(spec, pieces_of("a<x>b</x>", how)).dropped == []
    result = read(spec, pieces_of("a", how))
    assert result.message == message("a")
    assert [(one["field"], one["raw"], one["reason"]) for one in result.dropped] == [("x", "", "malformed")]
    assert "required" in result.dropped[0]["error"]
    with pytest.raises(respzoo.ParseError, match="required field is missing") as caught:
        respzoo.ResponseTemplate(spec).parse("a", prefix="")
    assert caught.value.field == "x"
    assert caught.value.message == message("a")


# ------------------------------------------------------------------------------------------------------------ prefix


@pytest.mark.parametrize(
    ("prefix", "text", "expected", "opened"),
    [
        ("", "<think>a</think>b", message("b", reasoning="a"), []),
        ("user<|im_start|>assistant\n", "<think>a</think>b", message("b", reasoning="a"), []),
        ("<|im_start|>assistant\n<think>", "a</think>b", message("b", reasoning="a"), ["thinking"]),
        ("<|im_start|>assistant\n<think>\n", "a</think>b", message("b", reasoning="a"), ["thinking"]),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", "b", message("b"), ["thinking", "content"]),
        ("<|im_start|>assistant\n<thi", "nk>a</think>b", message("b", reasoning="a"), []),
        ("<|im_start|>assistant\nThe answer", " is 42.", message("The answer is 42."), ["content"]),
        (f"<|im_start|>assistant\n{F1}", "\nDone.", message("Done.", call("f", n=1)), ["tool_calls"]),
        ('<|im_start|>assistant\n<tool_call>{"name": "f",', '"arguments": {}}</tool_call>', message(None, call("f")), ["tool_calls"]),
        ('<|im_start|>assistant\n<tool_call>{"name": "f", "arguments": {"s": "</tool', '_call>"}}</tool_call>',
         message(None, call("f", s="</tool_call>")), ["tool_calls"]),
        ("<|im_start|>assistant\n<think>old</think>x<|im_end|><|im_start|>assistant\n", "y", message("y"), []),
        ("<think>no anchor", "y</think>", message("y</think>"), []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("how", CUTS)
def test_prefix(prefix: str, text: str, expected: Any, opened: list[str], how: str) -> None:
    parser = respzoo.ResponseParser(SMOL, prefix=prefix)
    assert [event["field"] for event in parser.initial_events if event["type"] == "region_open"] == opened
    for piece in pieces_of(text, how):
        parser.feed(piece)
    assert parser.finalize()[0] == expected


def test_the_anchor_is_never_applied_to_the_output() -> None:
    text = "a<|im_start|>assistant\nb"
    assert read(SMOL, [text]).message == message(text)


@pytest.mark.parametrize("prefix", [None, 5, ["x"], b"x"])
def test_the_prefix_must_be_given_as_text(prefix: Any) -> None:
    with pytest.raises(ValueError, match=r"prefix: expected the prompt as a string, found .*prefix=''"):
        respzoo.ResponseParser(SMOL, prefix=prefix)
    with pytest.raises(TypeError, match="prefix"):
        respzoo.ResponseParser(SMOL)  # type: ignore[call-arg]


def test_a_plain_dict_that_is_no_template() -> None:
    with pytest.raises(respzoo.TemplateError):
        respzoo.ResponseParser({"fields": {}}, prefix="")


# ------------------------------------------------------------------------------------------------ region, end, errors


def test_region() -> None:
    parser = respzoo.ResponseParser(SMOL, prefix="")
    seen = [parser.region]
    for piece in (
        "<thi",
        "nk>",
        "a",
        "</th",
        "ink>",
        "b",
        "<tool_call",
        ">",
        '{"name": "</tool_call>',
        '", "arguments": {}}',
        "</tool_call>",
        "x",
        "<|im_end|>",
    ):
        parser.feed(piece)
        seen.append(parser.region)
    assert seen == [
        "content", "content", "thinking", "thinking", "thinking", "content", "content", "content", "tool_calls", "tool_calls",
        "tool_calls", "content", "content", "content",
    ]  # fmt: skip


def test_region_where_a_delimiter_may_still_grow() -> None:
    """A closer that is whole and only waits counts as closed; an opener as opened."""
    for tail in (r"(?:\s*</c>)?", r"(?:\s*</c>(?=.?))?"):
        spec = template(
            reasoning_content={"open_pattern": r"<t>\n*", "close_pattern": rf"</t>{tail}"},
            content={"open_pattern": r"<a>\s*", "close": "</a>"},
        )
        parser = respzoo.ResponseParser(spec, prefix="")
        assert parser.region is None
        seen = []
        for piece in ("<t>", "\n", "x", "</t", ">", "\n", "<", "a>", " ", "y", "</a>"):
            parser.feed(piece)
            seen.append(parser.region)
        assert seen == [
            "reasoning_content", "reasoning_content", "reasoning_content", "reasoning_content", None, None, None,
            "content", "content", "content", None,
        ], tail  # fmt: skip


def test_region_of_a_prefix() -> None:
    assert respzoo.ResponseParser(SMOL, prefix="<|im_start|>assistant\n<think>").region == "thinking"
    assert respzoo.ResponseParser(SMOL, prefix="<|im_start|>assistant\n").region == "content"
    assert respzoo.ResponseParser(HARMONY, prefix="<|start|>assistant").region is None


def test_one_parser_reads_one_answer() -> None:
    parser = respzoo.ResponseParser(SMOL, prefix="")
    parser.feed("a")
    parser.finalize()
    with pytest.raises(RuntimeError, match="finished"):
        parser.feed("b")
    with pytest.raises(RuntimeError, match="finished"):
        parser.feed("")
    with pytest.raises(RuntimeError, match="finished"):
        parser.finalize()


def test_feeding_nothing_changes_nothing() -> None:
    parser = respzoo.ResponseParser(SMOL, prefix="")
    text = f" <think> a </think> b {F1} "
    events = []
    for char in text:
        events += [*parser.feed(""), *parser.feed(char), *parser.feed("")]
    found, last = parser.finalize()
    assert (found, merge([*events, *last])) == read(SMOL, [text])[:2]


@pytest.mark.parametrize("text", [BAD, f"x{BAD}{F1[:30]}", F1[:30], '<tool_call>{"name": "f"'])
def test_p7_one_shot_functions_raise_by_default(text: str) -> None:
    made = respzoo.ResponseTemplate(SMOL)
    with pytest.raises(respzoo.ParseError, match="tool_calls region") as caught:
        made.parse(text, prefix="")
    error = caught.value
    assert error.field == "tool_calls"
    assert error.raw == (BAD if BAD in text else text)
    assert isinstance(error, ValueError)
    assert error.message == made.parse(text, prefix="", on_malformed="drop")
    assert "on_malformed='content'" in str(error)


def test_p7_on_malformed() -> None:
    made = respzoo.ResponseTemplate(SMOL)
    text = f"x {BAD} {F1} {F1[:30]}"
    assert made.parse(text, prefix="", on_malformed="drop") == message("x", call("f", n=1))
    assert made.parse(text, prefix="", on_malformed="content") == message(f"x {BAD}", call("f", n=1))


@pytest.mark.parametrize("policy", [{"on_malformed": "raise"}, {"on_malformed": "wat"}, {"on_unfinished": "raise"}])
def test_policies_that_are_none(policy: Any) -> None:
    with pytest.raises(ValueError, match=r"'content' or 'drop'"):
        respzoo.ResponseParser(SMOL, prefix="", **policy)


def test_on_malformed_that_is_none() -> None:
    with pytest.raises(ValueError, match="'raise'"):
        respzoo.ResponseTemplate(SMOL).parse("x", prefix="", on_malformed="wat")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------- P3, P5, P7 at large


ALL = sorted(DATA.glob("*.json"))


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_p3_p5_p7_texts_of_markers(file: Path) -> None:
    """Texts of a template's own markers in any order, broken off and not: one answer, no exception, every letter told."""
    spec = json.loads(file.read_text("utf-8"))
    made = respzoo.ResponseTemplate(spec)
    chance = random.Random(file.stem)
    markers = [
        marker
        for field in made.fields.values()
        for side in (field.open, field.close)
        if side
        for marker in side.markers()
    ]
    pieces = [
        *markers,
        *markers,
        "x",
        "\n",
        " ",
        '{"name": "f", "arguments": {}}',
        '"',
        "{",
        "}",
        "[",
        "]",
        "f",
        "<",
        "a: 1",
        "[f(a=1)]",
        "'",
        "\\",
    ]
    for number in range(12):
        text = "".join(chance.choice(pieces) for _ in range(chance.randint(1, 10)))
        if chance.random() < 0.3:
            text = text[: chance.randint(0, len(text))]
        whole = read(made, [text])
        check_shape(whole.events)
        for how, cut in cuttings(text, seed=number, rounds=1):
            assert read(made, cut) == whole, f"{how}: {text!r}"
        json.dumps(whole.message)


# ---------------------------------------------------------------------------------------------------------- P6: linear

SPACE_LED = template(
    reasoning_content={"open_pattern": r"\s*<t>\s*", "close_pattern": r"\s*</t>\s*"},
    tool_calls={
        "open_pattern": r"\s*<c>\s*<f=(?P<name>\w+)>",
        "close_pattern": r"\s*</c>",
        "content": "json",
        "transform": NAMED,
    },
    content={},
)
LONG: list[tuple[str, Any, str, str, str]] = [
    ("spaces", SPACE_LED, "x", " ", "y"),
    ("spaces in a region", SPACE_LED, "<t>x", "\n", "y"),
    ("spaces in an opener", SPACE_LED, "<c>", " ", "y"),
    ("brackets", SMOL, "", "<", ""),
    ("half markers", SMOL, "", "<tool_", ""),
    ("a held opener", HARMONY, "<|channel|>commentary to=functions.f", " x", "<|message|>{}<|call|>"),
    ("a long string", SMOL, '<tool_call>{"name": "f", "arguments": {"s": "', r"\n\"</tool_call>", '"}}</tool_call>'),
    ("a string never closed", SMOL, '<tool_call>{"name": "', r"x</tool_call", ""),
    ("many quotes", SMOL, "<tool_call>[", '"x",', "</tool_call>"),
    ("many tags", XML, "<c><f=f>", "<p=s>x</p>", "</f></c>"),
    ("closing tags in a value", XML, "<c><f=f><p=s>", "x</p>", "</p></f></c>"),
    ("closers in a value", XML, "<c><f=f><p=s>", "</f></c>", "</p></f></c>"),
    ("spaces behind a closing tag", XML, "<c><f=f><p=s>x</p>", " ", "y</p></f></c>"),
    ("many calls", SMOL, "", '<tool_call>{"name": "f"}</tool_call>', ""),
    ("malformed calls", SMOL, "", "<tool_call>{</tool_call>", ""),
    ("an optional tail", TAILED, "<c>f\n{}</f>", "\n", "x"),
    ("brackets without end", SMOL, "<tool_call>", "[", ""),
    ("python quotes", PYTHON, "<c>[f(s='", r"\'</c>", "')]</c>"),
    ("stray text", HARMONY, "x", " <|", "y"),
]


def cost_of(made: respzoo.ResponseTemplate, text: str, size: int) -> float:
    """The CPU seconds that a text takes, in pieces of so many characters."""

    def work() -> None:
        parser = made.parser(prefix="")
        for at in range(0, len(text), size):
            parser.feed(text[at : at + size])
        parser.finalize()

    return growth.seconds(work)


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize(("spec", "head", "unit", "tail"), [row[1:] for row in LONG], ids=[row[0] for row in LONG])
def test_p6_four_times_the_text_is_not_sixteen_times_the_work(
    spec: Any, head: str, unit: str, tail: str, size: int
) -> None:
    made = respzoo.ResponseTemplate(spec)

    def cost(length: int) -> float:
        return cost_of(made, head + unit * (length // len(unit)) + tail, size)

    assert growth.ratio(partial(cost, 4_000), partial(cost, 16_000), most=9) <= 9


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_p6_whatever_the_template(file: Path) -> None:
    made = respzoo.ResponseTemplate(json.loads(file.read_text("utf-8")))

    for unit in ("word and ", "<", "\n", '{"a": [1]}\n'):
        texts = [unit * (length // len(unit)) for length in (1_500, 6_000)]
        costs = [partial(cost_of, made, text, 5) for text in texts]
        assert growth.ratio(*costs, most=9) <= 9, unit
