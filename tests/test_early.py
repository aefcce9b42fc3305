"""How early: each character of a call's arguments is sent no later than with the character after the one that made it
certain, for every content parser and every extension of docs/language.md."""

from __future__ import annotations

import json
from typing import Any

import pytest

import respzoo

NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
EACH = {"type": "function", "function": {"name": "{name}", "arguments": "{arguments}"}}
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {
                    "s": {"type": "string"}, "r": {"$ref": "#/$defs/text"}, "n": {"type": "integer"}, "b": {"type": "boolean"},
                    "o": {"type": "object"}, "u": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "e": {"enum": ["x", "y"]},
                },
                "$defs": {"text": {"type": "string"}},
            },
        },
    }
]  # fmt: skip


def template(calls: Any, **fields: Any) -> dict[str, Any]:
    content = {"close": "<eos>", "content_args": {"strip": False}}
    return {"dialect": "respzoo", "start_anchor": "<s>", "fields": {"content": content, "tool_calls": calls, **fields}}


def calls(content: str, transform: Any = NAMED, **field: Any) -> dict[str, Any]:
    return {"open_pattern": r"<c>(?P<name>\w+) ", "close": "</c>", "repeats": True, "content": content, "transform": transform, **field}  # fmt: skip


JSON = calls("json", {"type": "function", "function": "{content}"}, open_pattern="<c>")
LIST = calls("json", EACH, open_pattern="<c>", transform_each=True)
PYTHON = calls("python-call-list", EACH, open_pattern="<c>", transform_each=True)
TAGS = {"tag_pattern": r"\s*<p (?P<key>[^<>\n]+)>\n?(?P<value>.*?)\n?</p>"}
TYPED = {
    "tag_pattern": r'\s*<p (?P<key>[^<>\n"]+) "(?P<type>\w+)">(?P<value>.*?)</p>', "unescape_keys": True,
    "types": {"text": {"name": "text", "args": {"strip": False}}, "json": {"name": "json"}},
}  # fmt: skip
KEYED_TREE = {"open_tag": r"<(?P<key>[a-z]+)>", "close_tag": r"</(?P<key>[a-z]+)>", "item": "item"}
TYPED_TREE = {
    "open_tag": r'<v(?: name="(?P<key>[^"]*)")? type="(?P<type>\w+)">', "close_tag": "</v>", "unescape_keys": True,
    "types": {"raw": {"name": "text", "args": {"strip": False}}, "json": {"name": "json"}, "dict": "object", "list": "list"},
}  # fmt: skip
CODE = {"type": "function", "function": {"name": "f", "arguments": {"code": "{content}"}}}

# A row's steps: what the model writes, and all that is sent of the call's arguments one character later (None: its
# name is not).
ROWS: list[tuple[str, dict[str, Any], list[tuple[str, str | None]]]] = [
    ("json: the name first", template(JSON), [
        ('<c>{"name": "f', None), ('"', ""), (', "arguments": ', ""), ("{", "{"), ('"', '{"'), ("a", '{"a'), ('"', '{"a"'), (": ", '{"a": '), ('"', '{"a": "'), ("x", '{"a": "x'),
        ("y", '{"a": "xy'), ("\\n", '{"a": "xy\\n'), ("\\u00e9", '{"a": "xy\\né'), ("\\ud83d\\ude00", '{"a": "xy\\né😀'), ('", "n": 12', '{"a": "xy\\né😀", "n": '), (",", '{"a": "xy\\né😀", "n": 12, '),
        ('"l":[true]', '{"a": "xy\\né😀", "n": 12, "l": [true]'), ("}", '{"a": "xy\\né😀", "n": 12, "l": [true]'), ("}</c>", '{"a": "xy\\né😀", "n": 12, "l": [true]}'),
    ]),
    ("json: the name last", template(JSON), [('<c>{"arguments": {"a": "x"}, "name": "f', None), ('"', '{"a": "x"'), ("}</c>", '{"a": "x"}')]),
    ("json: nested", template({**JSON, "transform": {"type": "function", "function": {"name": "{content.x.name}", "arguments": "{content.x.p|content.x.q}"}}}), [
        ('<c>{"y": {"name": "g", "p": {}}, "x": {"name": "f"', ""), (', "q": {"a', '{"a'), ('": {"b": "x', '{"a": {"b": "x'), ('"}}}}</c>', '{"a": {"b": "x"}}'),
    ]),
    ("json: in a string", template(JSON), [('<c>{"name": "f", "arguments": "', ""), ("{", "{"), ('\\"a\\": \\"x', '{"a": "x'), ('\\\\\\"', '{"a": "x\\"'), ('\\"}"}</c>', '{"a": "x\\""}')]),
    ("json: a list of calls", template(LIST), [('<c>[{"name": "f", "arguments": {"a": "x', '{"a": "x'), ('"}}]</c>', '{"a": "x"}')]),
    ("json: pairs", template({**LIST, "transform_each": "pairs", "transform": {"type": "function", "function": {"name": "{key}", "arguments": "{value}"}}}), [
        ('<c>{"f"', None), (": {", "{"), ('"a": "x', '{"a": "x'), ('"}}</c>', '{"a": "x"}'),
    ]),
    ("json: sequence", template({**LIST, "content_args": {"sequence": True}}), [('<c>{"name": "f", "arguments": {"a": "x', '{"a": "x'), ('"}};{"name": "g", "arguments": {}}</c>', '{"a": "x"}')]),
    ("json: unquoted_keys", template(calls("json", content_args={"unquoted_keys": True})), [("<c>f {a", "{"), (":", '{"a": '), ('"x', '{"a": "x'), ('"}</c>', '{"a": "x"}')]),
    ("json: loose keys", template(calls("json", content_args={"unquoted_keys": "loose"})), [("<c>f {a-b c :", '{"a-b c": '), ('"x', '{"a-b c": "x'), ('"}</c>', '{"a-b c": "x"}')]),
    ("json: string_delims", template(calls("json", content_args={"unquoted_keys": True, "string_delims": [["<q>", "</q>"]]})), [
        ("<c>f {a:<q>", '{"a": "'), ("x", '{"a": "x'), ('"', '{"a": "x\\"'), ("<", '{"a": "x\\"'), ("y", '{"a": "x\\"<y'), ("</q>", '{"a": "x\\"<y"'), ("}</c>", '{"a": "x\\"<y"}'),
    ]),
    ("json: allow_non_json", template(calls("json", content_args={"allow_non_json": True})), [('<c>f {"a": "x', '{"a": "x'), ('"}</c>', '{"a": "x"}')]),
    ("python-call-list", template(PYTHON), [
        ("<c>[f", None), ("(", "{"), ("a", "{"), ("=", '{"a": '), ("'", '{"a": "'), ("x", '{"a": "x'), ("\\'", '{"a": "x\''), ("\\u00e9", '{"a": "x\'é'), ("', b=12", '{"a": "x\'é", "b": '),
        (",", '{"a": "x\'é", "b": 12'), (" c=[True", '{"a": "x\'é", "b": 12, "c": ['), ("]", '{"a": "x\'é", "b": 12, "c": [true]'), (', d={"k": None}', '{"a": "x\'é", "b": 12, "c": [true], "d": {"k": null}'),
        (")]</c>", '{"a": "x\'é", "b": 12, "c": [true], "d": {"k": null}}'),
    ]),
    ("python-call-list: Python's other escapes", template(PYTHON), [
        ("<c>[f(a='\\x41", '{"a": "A'), ("\\U0001f326", '{"a": "A🌦'), ("\\a\\v\\0", '{"a": "A🌦\\u0007\\u000b\\u0000'), ("', n=123456789012345678901234567890,", '{"a": "A🌦\\u0007\\u000b\\u0000", "n": 123456789012345678901234567890'),
        (" m=1)]</c>", '{"a": "A🌦\\u0007\\u000b\\u0000", "n": 123456789012345678901234567890, "m": 1}'),
    ]),
    ("python-call-list: sequence", template({**PYTHON, "content_args": {"sequence": True}}), [("<c>\nf(a='x", '{"a": "x'), ("')\ng()\n</c>", '{"a": "x"}')]),
    ("python-call-list: raw_strings", template({**PYTHON, "content_args": {"sequence": True, "raw_strings": True}}), [
        ("<c>f(a='x", '{"a": "x'), ("'", '{"a": "x'), ("s", '{"a": "x\'s'), ("\\", '{"a": "x\'s\\\\'), ("', b=", '{"a": "x\'s\\\\", "b": '), ("\"y", '{"a": "x\'s\\\\", "b": "y'), ('")\n</c>', '{"a": "x\'s\\\\", "b": "y"}'),
    ]),
    ("kv-lines", template(calls("kv-lines")), [
        ("<c>f s", "{"), (":", '{"s": "'), ("x", '{"s": "x'), (" ", '{"s": "x'), ("y", '{"s": "x y'), ("\n", '{"s": "x y"'), ("n: 12", '{"s": "x y"'), ("\n", '{"s": "x y", "n": 12'), ("u: 1", '{"s": "x y", "n": 12'),
        ("\nz: q", '{"s": "x y", "n": 12, "u": 1'), ("</c>", '{"s": "x y", "n": 12, "u": 1, "z": "q"}'),
    ]),
    ("kv-lines: other separators", template(calls("kv-lines", content_args={"line_sep": "||", "kv_sep": "=>", "strip": False})), [("<c>f s=>x ", '{"s": "x '), ("|", '{"s": "x '), ("y", '{"s": "x |y'), ("||", '{"s": "x |y"'), ("r=>", '{"s": "x |y", "r": "'), ("</c>", '{"s": "x |y", "r": ""}')]),
    ("kv-lines: value_parser", template(calls("kv-lines", content_args={"value_parser": {"name": "json"}})), [("<c>f s: x", '{"s": "x'), ("\nk: [1", '{"s": "x"'), ("]\n", '{"s": "x", "k": [1]'), ("</c>", '{"s": "x", "k": [1]}')]),
    ("xml-inline", template(calls("xml-inline", content_args=TAGS)), [
        ("<c>f <p s>\n", '{"s": "'), ("x", '{"s": "x'), (" ", '{"s": "x '), ("y", '{"s": "x y'), ("\n", '{"s": "x y'), ("z", '{"s": "x y\\nz'), ("<", '{"s": "x y\\nz'), ("/", '{"s": "x y\\nz'), ("w", '{"s": "x y\\nz</w'),
        ("\n</p>\n<p n>", '{"s": "x y\\nz</w"'), ("12", '{"s": "x y\\nz</w"'), ("</p><p u>", '{"s": "x y\\nz</w", "n": 12'), ("7</p><p r>v", '{"s": "x y\\nz</w", "n": 12, "u": 7, "r": "v'), ("</p></c>", '{"s": "x y\\nz</w", "n": 12, "u": 7, "r": "v"}'),
    ]),
    ("xml-inline: value_parser", template(calls("xml-inline", content_args={**TAGS, "value_parser": {"name": "json"}})), [("<c>f <p s>x", '{"s": "x'), ("</p><p k>[1", '{"s": "x"'), ("]</p><p e>", '{"s": "x", "k": [1], "e": "'), ("x</p></c>", '{"s": "x", "k": [1], "e": "x"}')]),
    ("xml-inline: types", template(calls("xml-inline", content_args=TYPED)), [
        ('<c>f <p a&amp;b "text">', '{"a&b": "'), ("\nx", '{"a&b": "\\nx'), ('</p><p n "json">[1', '{"a&b": "\\nx"'), (']</p><p s "other">y', '{"a&b": "\\nx", "n": [1], "s": "y'), ("</p></c>", '{"a&b": "\\nx", "n": [1], "s": "y"}'),
    ]),
    ("xml-tree", template(calls("xml-tree", content_args=KEYED_TREE)), [
        ("<c>f <s>", '{"s": "'), ("x", '{"s": "x'), ("<", '{"s": "x'), ("1", '{"s": "x<1'), ("<b>", '{"s": "x<1<b>'), ("</b>", '{"s": "x<1<b>'), (" </s>", '{"s": "x<1<b></b> '), ("<n>", '{"s": "x<1<b></b> "'), ("1</n><z>", '{"s": "x<1<b></b> ", "n": 1'),
        (" ", '{"s": "x<1<b></b> ", "n": 1'), ("y", '{"s": "x<1<b></b> ", "n": 1, "z": " y'), ("</z><l><item>1</item></l><o>", '{"s": "x<1<b></b> ", "n": 1, "z": " y", "l": ["1"]'), ("<k>v</k></o></c>", '{"s": "x<1<b></b> ", "n": 1, "z": " y", "l": ["1"], "o": {"k": "v"}}'),
    ]),
    ("xml-tree: types", template(calls("xml-tree", content_args=TYPED_TREE)), [
        ('<c>f <v name="a&amp;b" type="dict">', '{"a&b": {'), ('<v name="l" type="list">', '{"a&b": {"l": ['), ('<v type="raw">', '{"a&b": {"l": ["'), ("x", '{"a&b": {"l": ["x'), ('</v><v type="json">1', '{"a&b": {"l": ["x"'), ("</v></v>", '{"a&b": {"l": ["x"'),
        ("</v>", '{"a&b": {"l": ["x", 1'), ('<v name="s" type="raw">', '{"a&b": {"l": ["x", 1]}, "s": "'), ("y</v></c>", '{"a&b": {"l": ["x", 1]}, "s": "y"}'),
    ]),
    ("text", template(calls("text", CODE, open_pattern="<c>")), [("<c>", '{"code": "'), (" ", '{"code": "'), ("x", '{"code": "x'), (" ", '{"code": "x'), ("y", '{"code": "x y'), ("\n</c>", '{"code": "x y"}')]),
    ("text: not stripped", template(calls("text", CODE, open_pattern="<c>", content_args={"strip": False})), [("<c> ", '{"code": " '), ("<", '{"code": " '), ("y", '{"code": " <y'), ("</c>", '{"code": " <y"}')]),
    ("a list of fields", template([calls("xml-inline", content_args=TAGS), {key: value for key, value in JSON.items() if key != "repeats"} | {"open_pattern": r"<c>(?P<value>\{)"}]), [('<c>{"name": "f", "arguments": {"a": "x', '{"a": "x'), ('"}}</c>', '{"a": "x"}')]),
    ("within", template(calls("json", within={"open": "<all>", "close": "</all>"})), [('<all>\n<c>f {"a": "x', '{"a": "x'), ('"}</c>\n</all>', '{"a": "x"}')]),
    ("ended_by, initial", template(calls("json"), reasoning_content={"open": "<t>", "close": "</t>", "initial": True, "ended_by": ["tool_calls"]}), [('Hm. <c>f {"a": "x', '{"a": "x'), ('"}</c>', '{"a": "x"}')]),
    ("ends_with_value", template(calls("json", open_pattern=r"call (?P<name>\w+)", close="</c>", ends_with_value=True)), [("call f", None), (' {"a": "x', '{"a": "x'), ('"', '{"a": "x"'), ("}", '{"a": "x"}'), (" text", '{"a": "x"}')]),
    ("leading, a group value", template({**JSON, "open_pattern": r'(?P<value>\{\s*"name"\s*:)', "ends_with_value": True, "leading": True}), [('{"name": "f"', ""), (', "arguments": {"a": "x', '{"a": "x'), ('"}}', '{"a": "x"}'), ("<eos>", '{"a": "x"}')]),
    ("an id", template(calls("json", {"type": "function", "id": "{id}", "function": {"name": "{name}", "arguments": "{content}"}}, open_pattern=r"<c>(?P<name>\w+):(?P<id>\d+) ")), [('<c>f:3 {"a": "x', '{"a": "x'), ('"}</c>', '{"a": "x"}')]),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "steps"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_no_later_than_the_next_character(spec: dict[str, Any], steps: list[tuple[str, str | None]]) -> None:
    stream = respzoo.ResponseTemplate(spec).stream(prefix="<s>", tools=TOOLS)
    sent: list[str | None] = [None]  # after so many characters

    def take(deltas: list[Any]) -> None:
        told = [call["function"] for delta in deltas for call in delta.get("tool_calls", ()) if call["index"] == 0]
        more = "".join(each["arguments"] for each in told)
        sent.append(f"{sent[-1] or ''}{more}" if told else sent[-1])

    for char in "".join(written for written, _ in steps):
        take(stream.feed(char))
    message, last = stream.finish()
    take(last)
    at = 0
    for written, expected in steps:
        at += len(written)
        if expected is not None:
            assert (sent[at + 1] or "-").startswith(expected) if expected else sent[at + 1] is not None, written
    assert sent[-1] == steps[-1][1]
    assert json.loads(sent[-1] or "") == message["tool_calls"][0]["function"]["arguments"]
