"""Arguments as they are generated: certain, typed, early, and the same text however the output is cut."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import respzoo
from respzoo.arguments import dump_arguments
from respzoo.hookspecs import Family
from respzoo.plugins import loaded
from respzoo.testing import load_samples

NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
EACH = {"type": "function", "function": {"name": "{name}", "arguments": "{arguments}"}}


def template(**calls: Any) -> dict[str, Any]:
    return {
        "dialect": "respzoo",
        "start_anchor": "<s>",
        "fields": {"content": {"close": "<eos>", "content_args": {"strip": False}}, "tool_calls": calls},
    }


JSON_BODY = template(
    open="<c>", close="</c>", content="json", repeats=True, transform={"type": "function", "function": "{content}"}
)
JSON_CAPTURE = template(
    open_pattern=r"<c>(?P<id>\w+:)?(?P<name>\w+)>", close="</c>", content="json", repeats=True,
    transform={"type": "function", "id": "{id?}", "function": {"name": "{name}", "arguments": "{content}"}},
)  # fmt: skip
JSON_LIST = template(open="<c>", close="</c>", content="json", transform_each=True, transform=EACH)
JSON_DEEP = template(
    open="<c>", close="</c>", content="json", repeats=True,
    transform={"type": "function", "function": {"name": "{content.call.name}", "arguments": "{content.call.parameters|content.call.arguments}"}},
)  # fmt: skip
JSON_PAIRS = template(
    open="<c>",
    close="</c>",
    content="json",
    transform_each="pairs",
    transform={"type": "function", "function": {"name": "{key}", "arguments": "{value}"}},
)
JSON_LINES = template(
    open="<c>", close="</c>", content="json", content_args={"sequence": True}, transform_each=True, transform=EACH
)
JSON_BARE = template(
    open_pattern=r"call:(?P<name>\w+)", content="json", ends_with_value=True, repeats=True, transform=NAMED
)
DELIMS = template(
    open_pattern=r"<c>(?P<name>\w+)", close="</c>", content="json", repeats=True, transform=NAMED,
    content_args={"unquoted_keys": "loose", "string_delims": [["<q>", "<q>"]]},
)  # fmt: skip
PYTHON = template(open="<c>", close="</c>", content="python-call-list", transform_each=True, transform=EACH)
PYTHON_LINES = template(
    open="<c>",
    close="</c>",
    content="python-call-list",
    content_args={"sequence": True, "raw_strings": True},
    transform_each=True,
    transform=EACH,
)
LINES = template(open_pattern=r"<c>(?P<name>\w+)\n", close="</c>", content="kv-lines", repeats=True, transform=NAMED)
CODE = template(
    open="<c>",
    close="</c>",
    repeats=True,
    transform={"type": "function", "function": {"name": "python", "arguments": {"code": "{content}"}}},
)

TAGS = template(
    open_pattern=r"<c>\s*<f=(?P<name>\w+)>", close_pattern=r"</f>(?:\s*</c>)?", content="xml-inline", repeats=True, transform=NAMED,
    content_args={"tag_pattern": r"<p=(?P<key>[^>\n]+)>\n?(?P<value>.*?)\n?</p>"},
)  # fmt: skip
PLAIN_TAGS = {key: value for key, value in TAGS.items() if key != "dialect"}
MARKED_TAGS = {
    **PLAIN_TAGS,
    "fields": {**TAGS["fields"], "tool_calls": {**TAGS["fields"]["tool_calls"], "open_pattern": r"<c>(?P<name>\w+)", "close_pattern": r"\|end\|"}},
}  # fmt: skip
TYPED_TAGS = template(
    open_pattern=r'<c name="(?P<name>\w+)">', close="</c>", content="xml-inline", repeats=True, transform=NAMED,
    content_args={
        "tag_pattern": r'\s*<p name="(?P<key>[^"]+)" string="(?P<type>true|false)">(?P<value>.*?)</p>', "unescape_keys": True,
        "types": {"true": {"name": "text", "args": {"strip": False}}, "false": {"name": "json"}},
    },
)  # fmt: skip
PAIRED_TAGS = template(
    open_pattern=r"<c>(?P<name>\w+)", close="</c>", content="xml-inline", repeats=True, transform=NAMED,
    content_args={"tag_pattern": r"\s*<k>(?P<key>.*?)</k>\s*<v>(?P<value>.*?)</v>"},
)  # fmt: skip

NAMED_TREE = template(
    open_pattern=r'<c>\s*<f=(?P<name>\w+)>', close="</f></c>", content="xml-tree", repeats=True, transform=NAMED,
    content_args={"open_tag": r"<(?P<key>[a-z]+)>", "close_tag": r"</(?P<key>[a-z]+)>", "item": "item"},
)  # fmt: skip
TYPED_TREE = template(
    open_pattern=r'<c name="(?P<name>\w+)">', close="</c>", content="xml-tree", repeats=True, transform=NAMED,
    content_args={
        "open_tag": r'<v(?: name="(?P<key>[^"]*)")?(?: type="(?P<type>\w+)")?>', "close_tag": "</v>", "unescape_keys": True,
        "types": {"raw": {"name": "text", "args": {"strip": False}}, "json": {"name": "json"}, "dict": "object", "list": "list"},
    },
)  # fmt: skip

STRINGS = {"a": 'x "q" \\ / é \u2028 \x7f 😀 </c> <eos>\n\ttab', "b c": ""}
VALUES = {
    "s": "it's",
    "n": 1,
    "f": -1.5e3,
    "t": True,
    "z": None,
    "l": [1, [], {}, "a,b]"],
    "o": {"k": {"k": ["}"]}},
    "e": {},
}
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {
                    "s": {"type": "string"}, "n": {"type": "integer"}, "t": {"type": "boolean"}, "o": {"type": "object"},
                    "u": {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "r": {"$ref": "#/$defs/text"},
                },
                "$defs": {"text": {"type": "string"}},
            },
        },
    }
]  # fmt: skip


def dumped(value: Any, **how: Any) -> str:
    return json.dumps(value, **how)


def python_call(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


PLAIN = {key: value for key, value in VALUES.items() if key != "z"}
ACCENTED = dumped({"name": "f", "arguments": STRINGS})
CASES: list[tuple[str, Any, str]] = [
    ("name first", JSON_BODY, f"Hi <c>{dumped({'name': 'f', 'arguments': VALUES})}</c>\n<c>{ACCENTED}</c>"),
    ("not escaped", JSON_BODY, f"<c>{dumped({'name': 'f', 'arguments': STRINGS}, ensure_ascii=False)}</c>"),
    ("arguments first", JSON_BODY, f"<c>{dumped({'arguments': STRINGS, 'other': [{'name': 'g'}], 'name': 'f'}, indent=2)}</c>"),
    ("no arguments", JSON_BODY, '<c>{"name": "f"}</c><c>{"name": "f", "arguments": null}</c><c>{"name": "f", "arguments": {}}</c>'),
    ("JSON in a string", JSON_BODY, f"<c>{dumped({'name': 'f', 'arguments': dumped(STRINGS)})}</c>"),
    ("an empty string", JSON_BODY, '<c>{"name": "f", "arguments": ""}</c>'),
    ("numbers that change", JSON_BODY, '<c>{"name": "f", "arguments": {"a": 1.50, "b": 1E2, "c": -0, "d": 12345678901234567890, "e":1e-7}}</c>'),
    ("half a pair", JSON_BODY, '<c>{"name": "f", "arguments": {"a": "\\ud83d\\ude00 \\ud83d x \\ude00", "\\ud83d": 1, "b": "\\ud83d"}}</c>'),
    ("compact", JSON_BODY, f"<c>{dumped({'name': 'f', 'arguments': VALUES}, separators=(',', ':'))}</c>"),
    ("captured", JSON_CAPTURE, f"<c>f>{dumped(STRINGS)}</c> and <c>id:g>{{}}</c>"),
    ("a list", JSON_LIST, f"<c>[{dumped({'name': 'f', 'arguments': STRINGS})}, {dumped({'arguments': VALUES, 'name': 'g'})}]</c>"),
    ("an empty list", JSON_LIST, "<c>[]</c>"),
    ("nested", JSON_DEEP, f"<c>{dumped({'x': {'name': 'no'}, 'call': {'name': 'f', 'parameters': VALUES}})}</c><c>{dumped({'call': {'arguments': {}, 'name': 'g'}})}</c>"),
    ("pairs", JSON_PAIRS, f"<c>[{dumped({'f': STRINGS})}, {dumped({'g': {}, 'h': VALUES})}]</c>"),
    ("one object of pairs", JSON_PAIRS, f"<c>{dumped({'f': STRINGS})}</c>"),
    ("JSON lines", JSON_LINES, f"<c>\n{dumped({'name': 'f', 'arguments': VALUES})}\n{ACCENTED}</c>"),
    ("ends with its value", JSON_BARE, f"call:f{dumped(VALUES)} call:g{dumped(STRINGS)} text"),
    ("marks around strings", DELIMS, '<c>f{a: <q>x "y" \\ </c>\n<q>, b c: {d-e:[1,<q><q>]}, "k": "\\n", n: true}</c>'),
    ("Python", PYTHON, f"<c>[{python_call('f', VALUES)}, {python_call('g', {})}, {python_call('h', {'a': STRINGS['a']})}]</c>".replace("\\x7f", "\x7f")),
    ("raw strings", PYTHON_LINES, "<c>\nf(a='it's so', b='x)y', c=3, d=\"e\\n\")\ng()\nh(z=true, y='a, b')\n</c>"),
    ("raw strings that look ended", PYTHON_LINES, "<c>f(a='x'\n)'s (y') \n; g()\n</c>"),
    ("lines", LINES, "<c>f\ns: a b\nn: 3\n\n no value\nt: true\n x :  1: \"2\"  \nu: 5\nr:\n</c>"),
    ("tags", TAGS, '<c>\n<f=f>\n<p=s>\n a "b"\n</p>\n<p=n>\n12\n</p>\n<p=t>\nTrue\n</p>\n<p=o>\n{"a": [1]}\n</p>\n<p=u>\n02139\n</p>\n<p=r>\n5\n</p>\n</f>\n</c>\n<c><f=g></f></c>'),
    ("tags in the plain language", PLAIN_TAGS, '<c>\n<f=f>\n<p=s>\n a "b"\n\n</p>\n<p=n>\n12\n</p>\n<p=other>\nx\n</p>\n</f>\n</c>'),
    ("a closing tag left out in the plain language", PLAIN_TAGS, "<c><f=f><p=s>\n<p=n></f></c>"),
    ("a misspelt closing tag in the plain language", MARKED_TAGS, "<c>f\n<p=s>\na\n</pp>|end|"),
    ("tags that quote tags", TAGS, "<c><f=f><p=s>a <p=x>b</p> </f> c </p> d</p><p=r></f></p></f></c>"),
    ("tags without closing tags", TAGS, "<c><f=f><p=s>a \n</f></c><c><f=g><p=s>\nb\n</f></c>"),
    ("tags that state a type", TYPED_TAGS, '<c name="f"><p name="a&amp;b" string="true"> 1\n</p>\n<p name="n" string="false">[1, "x"]</p><p name="s" string="false">oops</p></c>'),
    ("pairs of tags", PAIRED_TAGS, "<c>f\n<k>s</k>\n<v>a <b>c</b>\n </v>\n<k>n</k>\n<v>1</v>\n</c>"),
    ("a tree named by its keys", NAMED_TREE, '<c><f=f><s> a "b"\n</s>\n<n>12</n><t>True</t><o><k>1</k><l>\n<item>a</item> <item><x>y</x></item></l></o><u>02139</u><r>5</r></f></c><c><f=g></f></c>'),
    ("a tree without a schema", NAMED_TREE, "<c><f=g><s>x</s><l> <item>1</item><item>2</item>\n</l><m> a <b>c</b> d</m><e></e><w> \n</w><z><a>1</a> x</z></f></c>"),
    ("a tree in a text", NAMED_TREE, "<c><f=f><s>a <b>c</b> d</s><r></x> <k></k></r></f></c>"),
    ("a tree that states its types", TYPED_TREE, '<c name="f">\n<v name="a&amp;b" type="raw"> 1\n</v><v name="o" type="dict"> <v name="l" type="list"><v type="raw">x "y"</v> <v type="json">[1, 2]</v><v type="dict"></v><v type="list"></v></v></v><v name="n">7</v><v name="s" type="json">oops</v></c>'),
    ("types that are not what they say", TYPED_TREE, '<c name="f"><v name="l" type="list"><v type="raw">a</v><v type="json">oops</v><v>1</v></v><v name="s" type="raw">x</v><v name="o" type="dict"><v name="n">1</v></v></c>'),
    ("a tree that quotes tags", TYPED_TREE, '<c name="f"><v name="a" type="raw">see <v type="raw">1</v> or </v> and <c name="g"><v name="x" type="list"></v></c>.</v><v name="b" type="raw">lone <v> x</v></c>'),
    ("code", CODE, "<c>\n print(\"hi\")\n\n x = '\\n'  \n</c>"),
]  # fmt: skip


class Stream(NamedTuple):
    deltas: list[Any]
    message: Mapping[str, Any]
    texts: dict[int, str]
    names: dict[int, str]


def stream(spec: Any, pieces: Sequence[str], **options: Any) -> Stream:
    return run(respzoo.ResponseTemplate(spec).stream(prefix="<s>", tools=TOOLS, **options), pieces)


def run(made: respzoo.MessageStream, pieces: Sequence[str]) -> Stream:
    deltas: list[Any] = [delta for piece in pieces for delta in made.feed(piece)]
    message, last = made.finish()
    texts: dict[int, str] = {}
    names: dict[int, str] = {}
    for delta in [*deltas, *last]:
        for call in delta.get("tool_calls", ()):
            if call["index"] not in names:
                assert call["id"]
                assert call["type"] == "function"
                names[call["index"]] = call["function"]["name"]
            else:
                assert "name" not in call["function"]
                assert "id" not in call
                assert call["function"]["arguments"]
            texts[call["index"]] = texts.get(call["index"], "") + call["function"]["arguments"]
    return Stream([*deltas, *last], message, texts, names)


def lost(spec: Any, text: str) -> list[Any]:
    """What comes to nothing in a text."""
    parser = respzoo.ResponseParser(spec, prefix="<s>", tools=TOOLS)
    parser.feed(text)
    parser.finalize()
    return parser.dropped


def at_random(text: str, seed: int, most: int) -> list[str]:
    chance = random.Random(seed)
    pieces: list[str] = []
    while text:
        size = chance.randint(1, most)
        pieces.append(text[:size])
        text = text[size:]
    return pieces


def cuttings(text: str, every: int = 3) -> Iterator[list[str]]:
    """Whole, by character, at random, and in two at every so manyeth place (0: at none)."""
    yield [text]
    yield list(text)
    for seed in range(6 if every else 2):
        yield at_random(text, seed, 9)
    for at in range(1, len(text), every) if every else ():
        yield [text[:at], text[at:]]


def check(spec: Any, text: str, pieces: Sequence[str]) -> Stream:
    """The streamed text of each call is that of the message, and the message is what `complete` gives."""
    whole = stream(spec, [text], arguments="complete")
    this = stream(spec, pieces)
    assert dict(this.message) == dict(whole.message)
    calls = this.message.get("tool_calls", [])
    assert this.texts == {n: dump_arguments(call["function"]["arguments"]) for n, call in enumerate(calls)}
    assert this.names == {n: call["function"]["name"] for n, call in enumerate(calls)}
    assert whole.texts == this.texts
    return this


@pytest.mark.parametrize(("spec", "text"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_text_is_the_messages(spec: Any, text: str) -> None:
    assert stream(spec, [text]).message.get("tool_calls") or "[]" in text
    for pieces in cuttings(text):
        check(spec, text, pieces)


@pytest.mark.parametrize(("spec", "text"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_cut_call_is_never_whole(spec: Any, text: str) -> None:
    """Wherever the output ends: what was sent of an unfinished call is no JSON object, and the message says so."""
    for at in range(len(text)):
        cut = stream(spec, list(text[:at]))
        whole = stream(spec, [text[:at]], arguments="complete")
        done = [call for call in cut.message.get("tool_calls", []) if call.get("status") != "incomplete"]
        assert done == whole.message.get("tool_calls", [])
        for number, call in enumerate(cut.message.get("tool_calls", [])):
            sent = cut.texts[number]
            if call.get("status") == "incomplete":
                assert call["function"] == {"name": cut.names[number], "arguments": sent}
                with pytest.raises(ValueError, match=r"."):
                    json.loads(sent)
            else:
                assert sent == dump_arguments(call["function"]["arguments"])


# ------------------------------------------------------------------------------------------------------------ how early

EARLY: list[tuple[str, Any, str, str]] = [
    ("JSON", JSON_BODY, '<c>{"name": "f", "arguments": {"a": "', '"}}</c>'),
    ("captured", JSON_CAPTURE, '<c>f>{"a": "', '"}</c>'),
    ("a list", JSON_LIST, '<c>[{"name": "f", "arguments": {"a": "', '"}}]</c>'),
    ("pairs", JSON_PAIRS, '<c>[{"f": {"a": "', '"}}]</c>'),
    ("bare", JSON_BARE, 'call:f{"a": "', '"}'),
    ("marks", DELIMS, "<c>f{a: <q>", "<q>}</c>"),
    ("Python", PYTHON, "<c>[f(a='", "')]</c>"),
    ("raw strings", PYTHON_LINES, "<c>f(a='", "')\n</c>"),
    ("nested strings", JSON_BODY, '<c>{"name": "f", "arguments": {"a": ["', '"]}}</c>'),
    ("JSON in a string", JSON_BODY, '<c>{"name": "f", "arguments": "{\\"a\\": \\"', '\\"}"}</c>'),
    ("code", CODE, "<c>x", "</c>"),
    ("tags", TAGS, "<c><f=f><p=s>", "</p></f></c>"),
    ("tags in the plain language", PLAIN_TAGS, "<c><f=f><p=s>", "</p></f></c>"),
    ("tags that state a type", TYPED_TAGS, '<c name="f"><p name="k" string="true">', "</p></c>"),
    ("pairs of tags", PAIRED_TAGS, "<c>f<k>s</k><v>", "</v></c>"),
    ("a tree", NAMED_TREE, "<c><f=f><s>", "</s></f></c>"),
    ("a tree without a schema", NAMED_TREE, "<c><f=f><x>", "</x></f></c>"),
    ("deep in a tree", TYPED_TREE, '<c name="f"><v name="l" type="list"><v type="dict"><v name="a" type="raw">', "</v></v></v></c>"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "before", "behind"), [case[1:] for case in EARLY], ids=[case[0] for case in EARLY])
def test_each_token_of_a_string_goes_at_once(spec: Any, before: str, behind: str) -> None:
    made = respzoo.ResponseTemplate(spec).stream(prefix="<s>", tools=TOOLS)
    first = [delta for piece in before for delta in made.feed(piece)]
    first += made.feed("a")  # behind an opening tag one token decides whether a line break is markup
    assert first[0]["tool_calls"][0]["function"]["name"] in ("f", "python")
    for token in ["word", " and", " more", ".", " Zeile", " ü"]:
        deltas = made.feed(token)
        assert [call["function"]["arguments"] for delta in deltas for call in delta.get("tool_calls", ())] == [token]
    last = [delta for piece in behind for delta in made.feed(piece)]
    message, more = made.finish()
    assert [*last, *more][-1]["tool_calls"][0]["function"]["arguments"].endswith("}")
    assert message["tool_calls"]


@pytest.mark.parametrize("behind", ["', c.='d", "', é='d", "',\u2003c='d", "', c-='d", "')\nf.(", "')\u2028f("])
def test_what_ends_a_raw_string_ends_its_text(behind: str) -> None:
    """And what only looks like it does not, however the text is cut."""
    text = f"<c>f(a='b{behind}"
    sent = {0: dump_arguments({"a": f"b{behind}"})[:-2]}
    assert stream(PYTHON_LINES, list(text)).texts == stream(PYTHON_LINES, [text]).texts == sent


def test_the_name_goes_as_soon_as_it_is_certain() -> None:
    made = respzoo.ResponseTemplate(JSON_BODY).stream(prefix="<s>")
    assert made.feed('<c>{"name": "get_') == []
    (delta,) = made.feed('weather"')
    (call,) = delta["tool_calls"]
    assert call["function"] == {"name": "get_weather", "arguments": ""}
    assert made.feed(', "arguments": {')[0]["tool_calls"] == [{"index": 0, "function": {"arguments": "{"}}]
    assert made.feed('"n": 12') == [{"tool_calls": [{"index": 0, "function": {"arguments": '"n": '}}]}]
    assert made.feed("3") == []  # the number may go on
    assert made.feed("}")[0]["tool_calls"] == [{"index": 0, "function": {"arguments": "123"}}]
    assert made.feed("}") == []
    assert made.feed("</c>") == [{"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}]


def test_a_call_that_breaks_keeps_what_was_sent() -> None:
    made = stream(JSON_BODY, list('<c>{"name": "f", "arguments": {"a": "x", "b": oops}}</c> done'))
    assert made.texts == {0: '{"a": "x", "b": '}
    assert made.message["tool_calls"] == [
        {"type": "function", "status": "incomplete", "function": {"name": "f", "arguments": '{"a": "x", "b": '}}
    ]
    assert made.message["content"] == '<c>{"name": "f", "arguments": {"a": "x", "b": oops}}</c> done'


def test_values_that_are_typed_go_when_their_tag_ends() -> None:
    made = respzoo.ResponseTemplate(TAGS).stream(prefix="<s>", tools=TOOLS)
    made.feed("<c><f=f>")
    assert made.feed("<p=n>") == made.feed("12") == made.feed("</p>") == made.feed("<p=s>") == []
    deltas = made.feed("x")  # behind an opening tag one token decides whether a line break is markup
    assert "".join(one["tool_calls"][0]["function"]["arguments"] for one in deltas) == '"n": 12, "s": "x'
    assert made.feed(" </f>") == []  # it may be the end
    assert made.feed(" y")[0]["tool_calls"][0]["function"]["arguments"] == " </f> y"


def test_an_argument_that_comes_twice() -> None:
    """What was sent cannot be taken back, and a call that says two things says none."""
    made = stream(TAGS, ["<c><f=f><p=s>a</p><p=s>b</p></f></c>"])
    assert made.message["content"] == "<c><f=f><p=s>a</p><p=s>b</p></f></c>"
    assert made.message["tool_calls"][0]["status"] == "incomplete"


def test_ids() -> None:
    made = stream(JSON_CAPTURE, list("<c>id:f>{}</c><c>g>{}</c>"))
    ids = [call["id"] for delta in made.deltas for call in delta.get("tool_calls", ()) if "id" in call]
    assert ids[0] == "id:"
    assert ids[1].startswith("call_")
    assert [call.get("id") for call in made.message["tool_calls"]] == ["id:", None]


def test_a_call_that_the_prompt_began() -> None:
    made = respzoo.ResponseTemplate(JSON_BODY).stream(prefix='<s><c>{"name": "f", "arguments": {"a": "')
    deltas = [*made.feed("x"), *made.feed('"}}</c>')]
    assert deltas[0]["tool_calls"][0]["function"]["name"] == "f"
    assert "".join(call["function"]["arguments"] for delta in deltas for call in delta["tool_calls"]) == '{"a": "x"}'
    assert made.finish()[0]["tool_calls"] == [{"type": "function", "function": {"name": "f", "arguments": {"a": "x"}}}]


# ------------------------------------------------------------------------------------------------------------- the zoo


@pytest.mark.parametrize(
    "family", [family for family in loaded().families.values() if family.samples], ids=lambda family: family.name
)
def test_every_familys_calls_stream(family: Family) -> None:
    """Streamed or sent whole, under every cutting: the same calls, in the same text; and most come in pieces."""
    made = loaded().compile(family, "streaming")
    pieces_of_calls: list[int] = []
    assert family.samples is not None
    for sample in load_samples(family.samples):
        options: dict[str, Any] = {"prefix": sample.prefix(made.spec), "tools": sample.tools}
        whole = run(made.stream(arguments="complete", **options), [sample.text])
        for number, pieces in enumerate(cuttings(sample.text, every=0)):
            this = run(made.stream(arguments="stream", **options), pieces)
            calls = this.message.get("tool_calls", [])
            assert [call for call in calls if call.get("status") != "incomplete"] == whole.message.get("tool_calls", [])
            assert {**this.message, "tool_calls": None} == {**whole.message, "tool_calls": None}
            for at, call in enumerate(calls):
                arguments = call["function"]["arguments"]
                assert this.texts[at] == (arguments if isinstance(arguments, str) else dump_arguments(arguments))
                if number == 1:
                    pieces_of_calls.append(
                        sum(each["index"] == at for delta in this.deltas for each in delta.get("tool_calls", ()))
                    )
    if pieces_of_calls:
        assert sum(pieces > 2 for pieces in pieces_of_calls) * 2 >= len(pieces_of_calls)


# --------------------------------------------------------------------------------------------------------- the promises

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
arguments_of_calls = st.dictionaries(st.text(max_size=6), values, max_size=4)


@examples(100)
@given(calls=st.lists(arguments_of_calls, min_size=1, max_size=3), ascii=st.booleans(), seed=st.integers(0, 2**32))
def test_any_arguments(calls: list[dict[str, Any]], ascii: bool, seed: int) -> None:
    bodies = [dumped({"name": f"f{n}", "arguments": each}, ensure_ascii=ascii) for n, each in enumerate(calls)]
    for spec, text in (
        (JSON_BODY, "".join(f"<c>{body}</c>" for body in bodies)),
        (JSON_LIST, f"<c>[{', '.join(bodies)}]</c>"),
        (JSON_LINES, "<c>" + "\n".join(bodies) + "</c>"),
        (
            JSON_PAIRS,
            f"<c>[{', '.join(dumped({f'f{n}': each}, ensure_ascii=ascii) for n, each in enumerate(calls))}]</c>",
        ),
    ):
        made = check(spec, text, at_random(text, seed, 7))
        assert [json.loads(made.texts[n]) for n in range(len(calls))] == calls


def typed_tree(value: Any, name: str = "") -> str:
    """A value in tags that state its type, but for numbers."""
    if isinstance(value, dict):
        inner = "".join(typed_tree(item, f' name="{key}"') for key, item in cast("dict[str, Any]", value).items())
        return f'<v{name} type="dict">\n{inner}</v>'
    if isinstance(value, list):
        return f'<v{name} type="list">{" ".join(map(typed_tree, cast("list[Any]", value)))}</v>'
    kind = ' type="raw"' if isinstance(value, str) else "" if isinstance(value, int) else ' type="json"'
    return f"<v{name}{kind}>{value if isinstance(value, str) else dumped(value)}</v>"


def named_tree(key: str, value: Any) -> str:
    if isinstance(value, dict):
        value = "".join(named_tree(name, item) for name, item in cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        value = "\n".join(named_tree("item", item) for item in cast("list[Any]", value))
    return f"<{key}>{value}</{key}>"


tree_keys = st.sampled_from(["s", "n", "l", "o", "r", "x", "item"])
trees = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(0, 1) | st.text('a <>/"\\\né', max_size=8)
    | st.sampled_from(['see <v type="raw">1</v> here', "</v> x", "<b>1</b>", "a <x>b</x>", "lone <v> x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(tree_keys, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@examples(100)
@given(arguments=st.dictionaries(tree_keys, trees, max_size=4), seed=st.integers(0, 2**32), named=st.booleans())
def test_any_tree(arguments: dict[str, Any], seed: int, named: bool) -> None:
    """What is sent while tags are open is the beginning of what the message says."""
    if named:
        body = "".join(named_tree(key, value) for key, value in arguments.items())
        spec, text = NAMED_TREE, f"<c><f=f>{body}</f></c>"
    else:
        body = "".join(typed_tree(value, f' name="{key}"') for key, value in arguments.items())
        spec, text = TYPED_TREE, f'<c name="f">{body}</c>'
    if "malformed" not in {drop["reason"] for drop in lost(spec, text)}:
        for pieces in (list(text), at_random(text, seed, 7)):
            check(spec, text, pieces)


BITS = ['<f=f>', '</f></c>', '<s>', '</s>', '<item>', '</item>', '<v name="l" type="list">', '<v type="raw">', '<v name="d" type="dict">', '<v name="j">', '<v type="json">', '</f>', '<p=s>', '<p=n>', '</p>', '<k>s</k>', '<v>', '</v>', '<p name="s" string="true">', '<c name="f">', '<c>', '</c>', '{', '}', '[', ']', '"name": ', '"f"', '"arguments": ', '"a": ', '"', "\\", "\\u00e9", ",", ":", "1", "x", "'", "(", ")", "f(", "a=", "', a='", "', a.='", "')\n", "call:f", "<q>", "\n", "true", " "]  # fmt: skip
SPECS = {name: spec for name, spec, _ in CASES}


@pytest.mark.parametrize("spec", list({id(spec): spec for spec in SPECS.values()}.values()))
@examples(100)
@given(bits=st.lists(st.sampled_from(BITS), max_size=16), seed=st.integers(0, 2**32))
def test_whatever_a_model_writes(spec: Any, bits: list[str], seed: int) -> None:
    """Nothing is raised or taken back, the finished calls are those of `complete`, and no cutting changes them."""
    text = "<c>" + "".join(bits)
    whole = stream(spec, [text], arguments="complete")
    by_character = stream(spec, list(text))
    for made in (by_character, stream(spec, [text]), stream(spec, at_random(text, seed, 9))):
        assert made.texts == by_character.texts
        done = [call for call in made.message.get("tool_calls", []) if call.get("status") != "incomplete"]
        assert done == whole.message.get("tool_calls", [])
        assert len(done) == len(made.texts) or lost(spec, text)
        assert {key: value for key, value in made.message.items() if key != "tool_calls"} == {
            key: value for key, value in whole.message.items() if key != "tool_calls"
        }
        for number, call in enumerate(made.message.get("tool_calls", [])):
            arguments = call["function"]["arguments"]
            assert made.texts[number] == (arguments if isinstance(arguments, str) else dump_arguments(arguments))
