"""What loads and what does not: every kind of mistake with its place, all of them at once, as the reference decides."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from transformers.utils.chat_parsing.response_templates import load_response_template

import respzoo
from respzoo.errors import Problem
from respzoo.spec import compile_spec
from respzoo.transform import apply_transform

DATA = Path(__file__).parent / "data" / "templates"
GOOD: dict[str, Any] = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<s>",
    "fields": {
        "thinking": {"open": "<t>", "close": "</t>"},
        "tool_calls": {
            "open_pattern": r"<c>(?P<name>\w+)",
            "close": ["</c>", "</c>\n"],
            "content": "json",
            "repeats": True,
            "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
        },
        "content": {"close": "<e>"},
    },
}


def reference_refuses(spec: Any) -> bool:
    try:
        load_response_template(copy.deepcopy(spec))
    except (ValueError, TypeError):
        return True
    return False


def changed(*path: str, **keys: Any) -> Any:
    """GOOD with some keys of the object at `path` set; `...` takes one away."""
    spec = copy.deepcopy(GOOD)
    at = spec
    for step in path:
        at = at[step]
    for key, value in keys.items():
        if value is ...:
            at.pop(key, None)
        else:
            at[key] = value
    return spec


def field(**keys: Any) -> Any:
    return changed("fields", "content", **keys)


def call(**keys: Any) -> Any:
    return changed("fields", "tool_calls", **keys)


F = "$.fields.content"
C = "$.fields.tool_calls"
WRONG: list[tuple[Any, str, str]] = [
    (None, "$", r"expected a dict, found null"),
    ([], "$", r"expected a dict, found list"),
    ("x", "$", r"expected a dict, found str"),
    (changed(version=2), "$.version", r"expected 1.*found 2"),
    (changed(version="1"), "$.version", r"expected 1.*found '1'"),
    (changed(version=None), "$.version", r"expected 1"),
    (changed(start_anchr="x"), "$.start_anchr", r"unknown key.*'start_anchor'"),
    (changed(x=1), "$.x", r"unknown key"),
    (changed(defaults=None), "$.defaults", r"expected a dict, found null"),
    (changed(defaults=["role"]), "$.defaults", r"expected a dict, found list"),
    (changed(start_anchor=...), "$", r"'start_anchor' or 'start_anchor_pattern'"),
    (changed(start_anchor_pattern="<s>"), "$", r"both 'start_anchor' and 'start_anchor_pattern'"),
    (changed(start_anchor=""), "$.start_anchor", r"none empty"),
    (changed(start_anchor=[]), "$.start_anchor", r"at least one"),
    (changed(start_anchor=["<s>", ""]), "$.start_anchor", r"none empty"),
    (changed(start_anchor=["<s>", 5]), "$.start_anchor", r"strings"),
    (changed(start_anchor=5), "$.start_anchor", r"a string or a list of strings, found int"),
    (changed(start_anchor=None), "$.start_anchor", r"a string or a list of strings, found null"),
    (changed(start_anchor=..., start_anchor_pattern="("), "$.start_anchor_pattern", r"invalid regular expression"),
    (changed(start_anchor=..., start_anchor_pattern=5), "$.start_anchor_pattern", r"as a string, found int"),
    (changed(fields=...), "$.fields", r"at least one field, found an empty"),
    (changed(fields={}), "$.fields", r"at least one field, found an empty"),
    (changed(fields=[]), "$.fields", r"at least one field, found list"),
    (changed(fields=None), "$.fields", r"at least one field, found null"),
    (changed("fields", other=None), "$.fields.other", r"expected a dict, found null"),
    (changed("fields", other="text"), "$.fields.other", r"expected a dict, found str"),
    (changed("fields", other={}), "$.fields", r"only one field may go without.*'content', 'other'"),
    (field(Open="<a>"), f"{F}.Open", r"unknown key.*'open'"),
    (field(close_pattern="x"), F, r"both 'close' and 'close_pattern'"),
    (field(close=""), f"{F}.close", r"none empty"),
    (field(close=None), f"{F}.close", r"found null"),
    (field(close=["x", None]), f"{F}.close", r"strings"),
    (field(close=("x",)), f"{F}.close", r"a list of strings, found tuple"),
    (field(close=..., close_pattern="[a"), f"{F}.close_pattern", r"invalid regular expression"),
    (field(close=..., close_pattern=None), f"{F}.close_pattern", r"found null"),
    (call(open="<c>"), C, r"both 'open' and 'open_pattern'"),
    (call(open_pattern="a)"), f"{C}.open_pattern", r"invalid regular expression"),
    (field(content="yaml"), f"{F}.content", r"expected one of 'text'.*found 'yaml'"),
    (field(content=None), f"{F}.content", r"expected one of.*found None"),
    (field(content=["json"]), f"{F}.content", r"expected one of"),
    (field(join=5, repeats=True), f"{F}.join", r"expected a string, found int"),
    (field(join="\n"), f"{F}.join", r"'repeats': true"),
    (field(join="", repeats=False), f"{F}.join", r"'repeats': true"),
    (field(transform_each=True), f"{F}.transform_each", r"needs a 'transform'"),
    (field(transform_each=1, transform="{content}"), f"{F}.transform_each", r"expected true or false, found int"),
    (field(transform_each="no"), f"{F}.transform_each", r"expected true or false, found str"),
    (field(transform_each=None), f"{F}.transform_each", r"expected true or false, found null"),
    (call(transform="x {name}"), f"{C}.transform", r"mixes a \{placeholder\}"),
    (call(transform={"a": [1, {"b": "{name}!"}]}), f"{C}.transform.a[1].b", r"mixes a \{placeholder\}"),
    (call(transform=["{a}{b}"]), f"{C}.transform[0]", r"mixes a \{placeholder\}"),
    (call(transform=...), C, r"named group\(s\) 'name'"),
    (call(transform=None), C, r"named group\(s\) 'name'"),
    (field(close=..., close_pattern=r"<(?P<end>e)>"), F, r"named group\(s\) 'end'"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "path", "message"), WRONG, ids=[f"{path} {text}" for _, path, text in WRONG])
def test_every_mistake_has_its_place(spec: Any, path: str, message: str) -> None:
    assert reference_refuses(spec)
    with pytest.raises(respzoo.TemplateError, match=message) as caught:
        respzoo.ResponseTemplate(spec)
    assert [problem.path for problem in caught.value.problems] == [path]
    assert caught.value.problems[0].message[0].islower() or caught.value.problems[0].message[0] in "'\"{"


RIGHT: list[Any] = [
    GOOD,
    changed(version=1),
    changed(version=1.0),
    changed(version=True),
    changed(defaults=...),
    changed(defaults={}),
    changed(start_anchor=["<s>", "<r>"]),
    changed(start_anchor=["<s>", "<s>"]),
    changed(start_anchor=..., start_anchor_pattern=r"<s>|(?P<who>x)"),
    changed(start_anchor=..., start_anchor_pattern=""),
    changed(fields={"x": {}}),
    changed(fields={"content": {"open": "<a>"}}),
    changed("fields", **{"a b": {"open": "<a>"}, "": {"open": "<b>"}}),
    field(repeats="yes", optional=0),
    field(join=None),
    field(join="", repeats=True),
    field(transform="{content}", transform_each=True),
    field(transform="plain"),
    field(transform=5),
    field(transform=False),
    field(transform={"a": {"b": ["{content.c.d}", "{", "{}", "{a-b}", "{ content }", None, 5]}}),
    field(transform="{nowhere}"),
    field(content="xml-inline"),
    field(content="xml-inline", content_args={"tag_pattern": "("}),
    field(content="json", content_args={"string_delims": [["a"]]}),
    field(content="json", content_args={"wat": 1}),
    field(content="json", content_args=None),
    field(content="kv-lines", content_args={"value_parser": {"name": "wat"}}),
    field(content_args=[]),
    field(close=..., close_pattern=""),
    field(close=..., close_pattern="a*"),
    field(close=["x", "x"]),
    call(open_pattern=r"(?P<name>x)|"),
    call(open_pattern=r"(?i)(?P<name>x)(?<!y)\b^$"),
    call(open_pattern=r"(?P<name>(?:x{200}){200})"),
    call(close_pattern=r"(?P<name>x)", close=...),
    call(content="python-call-list"),
    *[changed("fields", other={"open": "<o>", "content": name}) for name in ("text", "int", "float", "bool", "json", "kv-lines")],
]  # fmt: skip


@pytest.mark.parametrize("spec", RIGHT, ids=lambda spec: json.dumps(spec)[-70:])
def test_what_the_reference_loads_loads(spec: Any) -> None:
    assert not reference_refuses(spec)
    template = respzoo.ResponseTemplate(spec)
    assert template.spec == spec
    # and it reads, without an exception and in one way
    text = "<t>a</t>\n<c>f{}</c>x<e>y<o>z"
    whole = template.parser(prefix="<s>")
    whole.feed(text)
    message, _ = whole.finalize()
    cut = template.parser(prefix="<s>")
    for char in text:
        cut.feed(char)
    assert cut.finalize()[0] == message


JUNK: list[tuple[str, Any]] = [
    (name, args)
    for name in ("text", "int", "json", "xml-inline", "kv-lines", "python-call-list")
    for args in (
        [], "x", 5, {"strip": "no"}, {"tag_pattern": 5}, {"tag_pattern": []}, {"tag_pattern": "(?P<key>a"}, {"value_parser": "json"},
        {"value_parser": {"name": 5}}, {"value_parser": {"name": "json", "args": 5}}, {"value_parser": []}, {"line_sep": ""},
        {"kv_sep": 5}, {"string_delims": "ab"}, {"string_delims": [["<q>"]]}, {"string_delims": [["", ""]]}, {"string_delims": 5},
        {"string_delims": [[1, 2]]}, {"string_delims": [["a", "b", "c"]]}, {"unquoted_keys": "yes"}, {"merge_duplicates": 5},
    )
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), JUNK, ids=repr)
@pytest.mark.parametrize("explicit", [True, False])
def test_content_args_that_cannot_work_break_regions_not_templates(name: str, args: Any, explicit: bool) -> None:
    """As in the reference, which looks at them when a region closes; but never an exception in a stream (P7)."""
    opener = {"open": "<o>"} if explicit else {}
    spec = {"start_anchor": "<s>", "fields": {"x": {**opener, "close": "</o>", "content": name, "content_args": args}}}
    assert not reference_refuses(spec)
    template = respzoo.ResponseTemplate(spec)
    for text in ('<o>{"a": 1}</o>', "<o>a: 1\nb: 2</o>", '<o>"a', "<o></o><o>7</o>"):
        for pieces in ([text], list(text)):
            parser = template.parser(prefix="")
            for piece in pieces:
                parser.feed(piece)
            parser.finalize()


@pytest.mark.parametrize("file", sorted(DATA.glob("*.json")), ids=lambda file: file.stem)
def test_templates_load_and_come_back(file: Path) -> None:
    spec = json.loads(file.read_text("utf-8"))
    assert not reference_refuses(spec)
    template = respzoo.ResponseTemplate(spec, name=file.stem)
    assert type(template.spec) is dict
    assert template.spec == spec
    load_response_template(template.spec)


def test_all_mistakes_at_once() -> None:
    spec = {
        "version": 3,
        "start": "x",
        "defaults": 1,
        "start_anchor": "",
        "fields": {
            "a": {"open": [], "close": "", "content": "wat", "join": 1, "wat": 1},
            "b": {"open_pattern": "(", "close_pattern": "[", "transform": ["x{y}"], "transform_each": "x"},
            "c": {},
            "d": {"close": "x"},
            "e": 7,
        },
    }
    with pytest.raises(respzoo.TemplateError) as caught:
        respzoo.ResponseTemplate(spec, name="mine")
    paths = [problem.path for problem in caught.value.problems]
    assert set(paths) == {
        "$.version", "$.start", "$.defaults", "$.start_anchor",
        "$.fields.a.wat", "$.fields.a.open", "$.fields.a.close", "$.fields.a.content", "$.fields.a.join",
        "$.fields.b.open_pattern", "$.fields.b.close_pattern", "$.fields.b.transform_each", "$.fields.b.transform[0]",
        "$.fields.e", "$.fields",
    }  # fmt: skip
    assert len(paths) == len(set(paths))
    text = str(caught.value)
    assert text.startswith("response template 'mine' has 15 problems:\n  $.version: expected 1")
    assert all(f"\n  {path}: " in text for path in paths)


def test_one_mistake_in_words() -> None:
    with pytest.raises(respzoo.TemplateError) as caught:
        respzoo.ResponseTemplate(field(close=..., close_pattern="<e>(x"))
    assert str(caught.value) == (
        "response template has 1 problem:\n"
        "  $.fields.content.close_pattern: invalid regular expression, missing ):\n"
        "    <e>(x\n"
        "         ^"
    )
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, respzoo.RespzooError)
    assert isinstance(caught.value.problems[0], Problem)
    assert caught.value.problems[0].path == "$.fields.content.close_pattern"


def test_a_template_does_not_follow_its_authors_dict() -> None:
    spec = copy.deepcopy(GOOD)
    template = respzoo.ResponseTemplate(spec)
    spec["fields"]["content"]["close"] = "changed"
    spec["defaults"]["role"] = "changed"
    assert template.spec == GOOD
    assert template.parse("x<e>", prefix="") == {"role": "assistant", "content": "x"}


def test_defaults_are_not_shared_between_messages() -> None:
    template = respzoo.ResponseTemplate(changed(defaults={"role": "assistant", "tool_calls": [], "meta": {"a": []}}))
    first = template.parse('<c>f{"a": 1}</c>', prefix="")
    first["meta"]["a"].append(1)
    first["tool_calls"].append("x")
    assert template.parse("x", prefix="") == {"role": "assistant", "content": "x", "tool_calls": [], "meta": {"a": []}}


def test_template_errors_can_be_pickled() -> None:
    """A server's worker processes send their errors to their parent."""
    with pytest.raises(respzoo.TemplateError) as caught:
        respzoo.ResponseTemplate(changed(version=2), name="mine")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.problems == caught.value.problems


def test_parse_errors_can_be_pickled() -> None:
    template = respzoo.ResponseTemplate(GOOD)
    with pytest.raises(respzoo.ParseError) as caught:
        template.parse("x<c>f{</c>", prefix="")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.message, again.raw, again.field) == (
        str(caught.value), caught.value.message, caught.value.raw, caught.value.field,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("transform", "scope", "expected"),
    [
        ("{content}", {"content": [1]}, [1]),
        ("{content.a.b}", {"content": {"a": {"b": None}}}, None),
        ({"x": ["{name}", "plain", 5, None, {"y": "{content}"}]}, {"name": "f", "content": {}}, {"x": ["f", "plain", 5, None, {"y": {}}]}),
        ("{}", {}, "{}"),
        ("{ name }", {"name": 1}, "{ name }"),
        ("{a-b}", {}, "{a-b}"),
        ("{0}", {"0": "x"}, "x"),
        ("{ünï}", {"ünï": 1}, 1),
        (5, {}, 5),
    ],
)  # fmt: skip
def test_transform(transform: Any, scope: dict[str, Any], expected: Any) -> None:
    assert apply_transform(transform, scope) == expected


@pytest.mark.parametrize(
    ("transform", "scope"),
    [("{name}", {}), ("{content.a}", {"content": {}}), ("{content.a}", {"content": "text"}), ("{content.a}", {"content": [1]}),
     ("{content.a.b}", {"content": {"a": None}}), (["{x}"], {}), ({"k": {"l": "{x}"}}, {"y": 1})],
)  # fmt: skip
def test_a_transform_that_does_not_resolve(transform: Any, scope: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="transform"):
        apply_transform(transform, scope)


@pytest.mark.parametrize(
    ("keys", "prompt", "after"),
    [
        ({"start_anchor": "<s>"}, "a<s>b<s>c", "c"),
        ({"start_anchor": "<s>"}, "a<s>", ""),
        ({"start_anchor": "<s>"}, "no anchor", ""),
        ({"start_anchor": ["<s>", "<r>"]}, "<r>a<s>b", "b"),
        ({"start_anchor": ["<s>", "<r>"]}, "<s>a<r>b", "b"),
        ({"start_anchor": ["<s>", "<s>x"]}, "<s>xb", "b"),
        ({"start_anchor_pattern": r"<s>\w*\n"}, "<s>one\n<s>two\nb", "b"),
        ({"start_anchor_pattern": r"<s>|$"}, "<s>b", ""),
        ({"start_anchor_pattern": r"(?<=x)<s>"}, "x<s>a<s>b", "a<s>b"),
    ],
)
def test_after_the_last_anchor(keys: dict[str, Any], prompt: str, after: str) -> None:
    assert compile_spec({"fields": {"content": {}}, **keys}).after_anchor(prompt) == after
