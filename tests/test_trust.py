"""Untrusted templates and hostile texts: each is refused with its place and the reason, or runs within bounds.

A watchdog ends the whole run if anything hangs; no test looks closely at a clock.
"""

from __future__ import annotations

import faulthandler
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from respzoo import ResponseTemplate, TemplateError
from respzoo.allowance import Allowance, left_until
from respzoo.automaton import Automaton
from respzoo.events import Event, merge
from respzoo.hazards import LIMITS, examine_pattern
from respzoo.message import MessageStream
from respzoo.parser import ResponseParser
from respzoo.patterns import read
from respzoo.plugins import loaded
from respzoo.spec import compile_spec
from respzoo.testing import cuttings
from respzoo.trust import ENVIRONMENT, examine, trusted_names

TEMPLATES = Path(__file__).parent / "data" / "templates"


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def template(**call: Any) -> dict[str, Any]:
    """Calls in JSON, and content around them; the field of the calls as given."""
    return {
        "start_anchor": "<start>",
        "fields": {
            "tool_calls": {"open": "<call>", "close": "</call>", "content": "json", "repeats": True, **call},
            "content": {"repeats": True, "join": "", "content_args": {"strip": False}},
        },
    }


def with_pattern(place: str, source: str) -> dict[str, Any]:
    """A template that has this pattern in this place."""
    if place == "start_anchor_pattern":
        spec = template()
        del spec["start_anchor"]
        return {**spec, place: source}
    if place == "tag_pattern":
        return template(content="xml-inline", content_args={"tag_pattern": source})
    transform = {"transform": "{content}"} if "(?P<" in source else {}
    spec = template(**{place: source}, **transform)
    del spec["fields"]["tool_calls"][place.removesuffix("_pattern")]
    return spec


PLACES = {
    "start_anchor_pattern": "$.start_anchor_pattern",
    "open_pattern": "$.fields.tool_calls.open_pattern",
    "close_pattern": "$.fields.tool_calls.close_pattern",
    "tag_pattern": "$.fields.tool_calls.content_args.tag_pattern",
}

# ------------------------------------------------------------------------------------------ patterns that are refused

REFUSED = {
    # the name: the pattern, the reason, where the caret points
    "star in plus": ("<(?:a*)+>", "an unbounded repeat inside another, which begins at 1", 4),
    "plus in plus": ("(a+)+b", "an unbounded repeat inside another, which begins at 0", 1),
    "plus in star, deep": ("x(?:y(?:z(?:a+b)))*", "an unbounded repeat inside another, which begins at 1", 12),
    "lazy in lazy": (r"(?:a+?)+?b", "an unbounded repeat inside another", 3),
    "dot star in star": ("<(?:.*,)*>", "an unbounded repeat inside another", 4),
    "classes": (r"(?:\w+\s*)*x", "an unbounded repeat inside another", 3),
    "open count in star": ("(?:a{2,})*b", "an unbounded repeat inside another", 3),
    "count in star": ("(?:a{0,20})*b", "a repeat inside another", 3),
    "star in count": ("(?:a*){20}b", "a repeat inside another", 3),
    "count in count": ("(?:a{1,20}){9,20}b", "a repeat inside another", 3),
    "in a lookahead": ("<a>(?=(?:b+)+c)", "an unbounded repeat inside another", 9),
    "in a negative lookahead": ("<a>(?!(b|b)*c)", "a repeat that can read one text in two ways", 6),
    "in a lookbehind": ("(?<=(?:a|a){9})b", "a repeat that can read one text in two ways", 4),
    "in a named group": ("<(?P<name>(?:a+)+)>", "an unbounded repeat inside another", 13),
    "in the second branch": ("<a>|<(?:b+)+>", "an unbounded repeat inside another", 8),
    "optional in star": ("(?:a?)*b", "a repeat of what may be empty", 0),
    "optional in count": ("(?:a?){99}a{99}", "a repeat of what may be empty", 0),
    "empty branch": ("(?:a|)*b", "a repeat of what may be empty", 0),
    "empty group": ("()*b", "a repeat of what may be empty", 0),
    "lookaround alone": ("(?:(?=a))*b", "a repeat of what may be empty", 0),
    "anchor alone": (r"(?:^|\b)*b", "a repeat of what may be empty", 0),
    "the same branch twice": ("(?:a|a)*b", "a repeat that can read one text in two ways", 0),
    "a branch in another": (r"(?:a|\w)*!", "a repeat that can read one text in two ways", 0),
    "classes that overlap": ("(?:[a-m]|[k-z])+!", "a repeat that can read one text in two ways", 0),
    "everything and something": ("<(?:.|\\n)*>", "a repeat that can read one text in two ways", 1),
    "longer branches": ("(?:ab|a|b)*!", "a repeat that can read one text in two ways", 0),
    "twice as long": ("(?:a|aa)+!", "a repeat that can read one text in two ways", 0),
    "optional tails": ("(?:ab?b?)*!", "a repeat that can read one text in two ways", 0),
    "short counts": ("(?:a{1,3})*!", "a repeat that can read one text in two ways", 0),
    "a long count of branches": ("(?:a|a){40}!", "a repeat that can read one text in two ways", 0),
    "without regard to case": ("(?i)(?:a|A)*!", "a repeat that can read one text in two ways", 4),
    "in a group without regard to case": ("(?i:(?:a|A)*!)", "a repeat that can read one text in two ways", 4),
    "properties": (r"(?:\p{L}|a)*!", "a repeat that can read one text in two ways", 0),
    "by number": (r"(?:\x61|a)*!", "a repeat that can read one text in two ways", 0),
    "spaces": (r"(?:\s|\n)*!", "a repeat that can read one text in two ways", 0),
    "back-reference by number": (r"<(a+)>.*</\1>", "a back-reference", 10),
    "back-reference by name": (r"<(?P<n>a+)></(?P=n)>", "a back-reference", 13),
    "back-reference by g": (r"(?P<n>a+)\g<n>", "a back-reference or recursion", 9),
    "recursion of all": (r"\((?:[^()]|(?R))*\)", "recursion", 11),
    "recursion of a group": (r"(\((?1)?\))", "recursion", 3),
    "recursion by name": (r"(?P<n>\((?&n)?\))", "recursion", 8),
    "recursion as in Python": (r"(?P<n>\((?P>n)?\))", "recursion", 8),
    "relative recursion": (r"(a(?-1)?)", "recursion", 2),
    "atomic group": ("<(?>a+)>", "an atomic group", 1),
    "possessive star": ("<a*+>", "a possessive quantifier", 2),
    "possessive count": ("<a{2,3}+>", "a possessive quantifier", 2),
    "doubled quantifier": ("<a{2}{3}>", "a quantifier behind a quantifier", 5),
    "fuzzy match": ("(?:<call>){e<=2}", "a fuzzy match", 10),
    "fuzzy costs": ("(?:<call>){2i+1d<=3}", "a fuzzy match", 10),
    "branch reset": ("(?|(a)|(b))", "a branch reset", 0),
    "conditional group": ("(a)?(?(1)b|c)", "a conditional group", 4),
    "definitions": ("(?(DEFINE)(?P<n>a))(?&n)", "a conditional group", 0),
    "verb": ("a(*SKIP)b", "a verb", 1),
    "verb that fails": ("(*FAIL)|a", "a verb", 0),
    "verbose mode": ("(?x)a b", "a special group", 0),
    "version one": ("(?V1)[a--b]", "a special group", 0),
    "reverse search": ("(?r)abc", "a special group", 0),
    "best match": ("(?b)abc", "a special group", 0),
    "flags off": ("(?-s:a.b)", "a special group", 0),
    "named list": (r"\L<words>", "a named list", 0),
    "kept out": (r"a\Kb", r"\K", 1),
    "search anchor": (r"\Ga", r"\G", 0),
    "grapheme": (r"\X+", r"\X", 0),
    "named character": (r"\N{DIGIT ONE}", r"\N{…}", 0),
    "set difference": ("[a-z--b]", "a set operation or a class in a class", 4),
    "set intersection": (r"[\w&&a]", "a set operation or a class in a class", 3),
    "class in a class": ("[[:alpha:]]", "a set operation or a class in a class", 1),
    "lookbehind of a repeat": ("(?<=a+)b", "a lookbehind of no fixed width", 0),
    "lookbehind of two widths": ("x(?<=ab|c)d", "a lookbehind of no fixed width", 1),
    "negative lookbehind of a repeat": ("(?<!a{1,3})b", "a lookbehind of no fixed width", 0),
    "count past the limit": ("<a{300}>", "a count of 300; at most 256", 2),
    "count to nowhere": ("<a{1,99999999999}>", "a count of 99999999999; at most 256", 2),
    "eight million places": ("(?:(?:(?:a{200}){200}){200})b", "its counted repeats unroll to 8000001 places", 0),
    "a place too many": ("(?:ab){125}(?:cd){125}ef", "its counted repeats unroll to 502 places; at most 500", 0),
    "many optional parts": ("a?" * 250 + "b", "its optional parts have ", 0),
    "groups in groups": ("(" * 20 + "a" + ")" * 20, "groups nested deeper than 16", 16),
    "a long pattern": ("a" * 1_001, "a pattern of 1001 characters; at most 1000", None),
    "a wide loop": (
        "(?:" + "|".join(f"{chr(97 + n)}{'x' * 20}" for n in range(5)) + ")*",
        "a repeat over 105 places",
        0,
    ),
    "open parenthesis": ("(a", "a parenthesis that is not closed", 0),
    "closed parenthesis": ("a)b", "a parenthesis that was not opened", 1),
    "open class": ("a[bc", "a class that is not closed", 1),
    "backslash": ("a\\", "a backslash at the end", 1),
    "nothing to repeat": ("*a", "a quantifier with nothing before it", 0),
    "class without order": ("(?:[z-a]|b)*c", "bad character range", None),
    "no property": (r"(?:\p{Nonsense}|b)*c", "unknown property", None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_pattern_is_refused(name: str) -> None:
    """In every place, before it is compiled, with its path, a caret and the reason."""
    source, reason, at = REFUSED[name]
    for place, path in PLACES.items():
        with pytest.raises(TemplateError) as caught:
            examine(with_pattern(place, source), name="acme/hostile")
        (problem,) = caught.value.problems
        assert problem.path == path
        assert problem.message.startswith("refused in an untrusted template: ")
        assert reason in problem.message
        if at is not None:
            *_, line, caret = problem.message.splitlines()
            assert set(caret) <= {" ", "^"}
            assert caret.index("^") == 4 + at
            assert line[4:].startswith(source[: at + 20])
    assert "'acme/hostile'" in str(caught.value)


def test_a_caret_in_a_long_pattern() -> None:
    (fault,) = examine_pattern("<x>\n" * 40 + "(?:a+)+" + "y" * 300).faults
    reason, line, caret = fault.splitlines()
    assert reason == "an unbounded repeat inside another, which begins at 160:"
    assert len(line) < 200
    assert line[caret.index("^") :].startswith("a+)+yyy")
    assert line.startswith("    …")
    assert line.endswith("y…")


def test_every_pattern_of_a_template_is_looked_at() -> None:
    bad = "(?:a+)+b"
    spec = {
        "dialect": "respzoo",
        "start_anchor_pattern": bad,
        "fields": {
            "content": {"close_pattern": bad, "content_args": {"omit_pattern": bad}},
            "tool_calls": [
                {"open_pattern": bad, "within": {"open": "<a>", "close_pattern": bad}},
                {"open": "<b>", "content": "xml-inline", "content_args": {"tag_pattern": bad}},
                {
                    "open": "<c>",
                    "content": "kv-lines",
                    "content_args": {"value_parser": {"args": {"tag_pattern": bad}}},
                },
                {"open": "<d>", "content": "xml-tree", "content_args": {"open_tag": bad, "close_tag": bad}},
            ],
        },
    }
    with pytest.raises(TemplateError) as caught:
        examine(spec)
    assert [problem.path for problem in caught.value.problems] == [
        "$.start_anchor_pattern",
        "$.fields.content.close_pattern",
        "$.fields.content.content_args.omit_pattern",
        "$.fields.tool_calls[0].open_pattern",
        "$.fields.tool_calls[0].within.close_pattern",
        "$.fields.tool_calls[1].content_args.tag_pattern",
        "$.fields.tool_calls[2].content_args.value_parser.args.tag_pattern",
        "$.fields.tool_calls[3].content_args.open_tag",
        "$.fields.tool_calls[3].content_args.close_tag",
    ]


# --------------------------------------------------------------------------------------------- templates too large


def nested(depth: int, inside: Any) -> Any:
    for number in range(depth):
        inside = {"a": inside} if number % 2 else [inside]
    return inside


def many_fields(count: int) -> dict[str, Any]:
    return {"start_anchor": "<s>", "fields": {f"f{number}": {"open": f"<{number}>"} for number in range(count)}}


TOO_LARGE = {
    "many characters": ({**template(), "defaults": {"role": "x" * 40_000}}, "$", "more than 32768 characters"),
    "long keys": ({**template(), "x" * 40_000: 1}, "$", "more than 32768 characters"),
    "many values": ({**template(), "defaults": dict.fromkeys(map(str, range(2_100)))}, "$", "more than 2000 values"),
    "a million values": ({**template(), "defaults": {"a": [0] * 1_000_000}}, "$", "more than 2000 values"),
    "deep defaults": ({**template(), "defaults": nested(60, 1)}, "$.defaults", "nested deeper than 24 levels"),
    "deep transform": (template(transform=nested(60, "{content}")), "$.fields.tool_calls.transform", "nested deeper"),
    "deeper than Python": ({**template(), "defaults": nested(20_000, 1)}, "$.defaults", "nested deeper than 24 levels"),
    "deep value parsers": (
        template(content_args=nested(60, {"name": "json"})), "$.fields.tool_calls.content_args", "nested deeper"
    ),
    "many fields": (many_fields(65), "$.fields", "65 fields; at most 64"),
    "many syntaxes": (
        {"start_anchor": "<s>", "fields": {"tool_calls": [{"open": "<a>"}] * 65}}, "$.fields", "65 fields; at most 64"
    ),
    "many alternatives": (
        template(open=[f"<call{number}>" for number in range(65)]), "$.fields.tool_calls.open", "65 alternatives"
    ),
    "a long delimiter": (template(open="<" * 201), "$.fields.tool_calls.open", "a delimiter of 201 characters"),
    "a long anchor": ({**template(), "start_anchor": ["a", "<" * 201]}, "$.start_anchor", "a delimiter of 201"),
    "many patterns": (
        {
            "start_anchor": "<s>",
            "fields": {f"f{n}": {"open_pattern": f"<{n}>", "close_pattern": "a"} for n in range(40)},
        },
        "$",
        "80 patterns; at most 64",
    ),
    "many places together": (
        {"start_anchor": "<s>", "fields": {f"f{n}": {"open_pattern": f"<{n}>.{{200}}"} for n in range(20)}},
        "$",
        "more than are examined",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_template_that_is_too_large_is_refused(name: str) -> None:
    spec, path, reason = TOO_LARGE[name]
    with pytest.raises(TemplateError) as caught:
        examine(spec)
    problem = caught.value.problems[0]
    assert problem.path.startswith(path)
    assert reason in problem.message
    assert len(str(caught.value)) < 2_000


@pytest.mark.parametrize("spec", [None, 3, "text", [], {}, {"fields": 3}, {"fields": {"a": [1, None]}, 1: 2}])
def test_what_is_no_template_is_not_refused_here(spec: Any) -> None:
    examine(spec)


# -------------------------------------------------------------------------------------------------- what is taken


def test_every_curated_template_passes() -> None:
    """They are not examined when they load: they are here."""
    families = [one for one in loaded().families.values() if loaded().owner(one) == "respzoo:curated"]
    assert len(families) >= 5
    for family in families:
        examine(family.spec, name=family.name)


def test_templates_as_they_are_written_pass() -> None:
    """Lookarounds and all: what strangers write is mostly like these."""
    refused: dict[str, str] = {}
    for file in sorted(TEMPLATES.glob("*.json")):
        try:
            examine(json.loads(file.read_text("utf-8")))
        except TemplateError as error:
            refused[file.stem] = error.problems[0].message.splitlines()[0].partition(": ")[2]
    assert refused == {
        "cohere_command5": "an unbounded repeat inside another, which begins at 53:",
        "ling3": "a lookbehind of no fixed width:",
        "minimax_m3": "an unbounded repeat inside another, which begins at 93:",
        "poolside_v1": "a lookbehind of no fixed width:",
    }


@pytest.mark.parametrize(
    "source",
    [
        r"'(?:[^'\\]|\\.)*'", r"(?:<a>|<b>)*", r"\s*</call>(?:\s*<eot>)?", r"(?:\d{1,3}\.){3}\d", r"(?:a|b)*c", r"(?:ab|cd)+",
        r"(?i)<THINK>", r"(?s)a.b", r"(?m:^a$)", r"(?#a comment)a", r"(?<=\])\s*</a>", r"(?=a|b)c", r"(?!x)\w+", r"\bcall\b",
        r"[^\]\[]+", r"[]a]", r"[^]]*", r"\x41\u0042\U00000043\0", r"\p{L}\P{Lu}", r"a{2}b{0,3}c{,4}d{5,}", "a{b}", "{", r"a\{2\}",
        r"(?P<a>x)(?<b>y)", r"(?:<x>[^<]*</x>){1,8}", r"<call>(?=.*?</call>)", "", "a||b", "…🙂", r"\h\H", "(?:(?!<b>).)*<b>",
    ],
)  # fmt: skip
def test_a_pattern_that_is_taken(source: str) -> None:
    assert examine_pattern(source).faults == ()


def test_trust_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert trusted_names() == frozenset()
    assert trusted_names("acme/one") == {"acme/one"}
    assert trusted_names(iter(["acme/one", "two"])) == {"acme/one", "two"}
    monkeypatch.setenv(ENVIRONMENT, " three,, acme/four ")
    assert trusted_names("acme/one") == {"acme/one", "three", "acme/four"}


# ---------------------------------------------------------------------------------- texts against what was taken

SIZE = 20_000
REASONING = {
    "start_anchor": "<start>",
    "fields": {
        "reasoning_content": {"open_pattern": r"\s*<think>\n?", "close_pattern": r"\n?</think>\s*"},
        **template(open_pattern=r"\s*<call>", close_pattern=r"</call>(?:\s*<eot>)?")["fields"],
    },
}
del REASONING["fields"]["tool_calls"]["open"], REASONING["fields"]["tool_calls"]["close"]
LOOKING = with_pattern("open_pattern", r"\s*<call>(?=.*?</call>)")
BEHIND = with_pattern("close_pattern", r"(?<=\})\s*</call>")
TAGS = template(
    content="xml-inline",
    content_args={"tag_pattern": r"<p=(?P<key>[^>\n]+)>\n?(?P<value>.*?)\n?</p>"},
    open_pattern=r"<call=(?P<name>[^>\n]+)>\n?",
    transform={"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
)
del TAGS["fields"]["tool_calls"]["open"]
LOOKING_TAGS = json.loads(json.dumps(TAGS).replace("\\\\n?</p>", "</p>(?=\\\\s*(?:<p=|\\\\Z))"))


def in_dialect(spec: Mapping[str, Any], **call: Any) -> dict[str, Any]:
    """The same, in respzoo's dialect, with more said of the calls."""
    spec = json.loads(json.dumps({"dialect": "respzoo", **spec}))
    spec["fields"]["tool_calls"].update(call)
    return spec


NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
EACH = {"type": "function", "function": {"name": "{name}", "arguments": "{arguments}"}}
KIND_TAGS = in_dialect(TAGS)
TREE = in_dialect(
    with_pattern("open_pattern", r"<call=(?P<name>\w+)>"),
    content="xml-tree",
    content_args={"open_tag": r"<(?P<key>\w+)>", "close_tag": r"</(?P<key>\w+)>", "item": "item"},
    transform=NAMED,
)
WRAPPED = in_dialect(template(), within={"open": "<calls>", "close": "</calls>"})
INTERRUPTED = in_dialect(REASONING)
INTERRUPTED["fields"]["reasoning_content"]["ended_by"] = ["tool_calls"]
CITED = in_dialect(template())
CITED["fields"]["content"]["content_args"]["omit_pattern"] = r"<co>|</co: \d+(?::\[[\d,]+\])?>"
SEQUENCE = in_dialect(template(), content="json", content_args={"sequence": True}, transform="{content}")
UNQUOTED = in_dialect(
    template(),
    content="json",
    content_args={"unquoted_keys": "loose", "string_delims": [["<|", "|>"]]},
    transform="{content}",
)
PYTHON = in_dialect(template(), content="python-call-list", transform=EACH, transform_each=True)
RAW = in_dialect(PYTHON, content_args={"sequence": True, "raw_strings": True})
BARE = in_dialect(
    with_pattern("open_pattern", r"\s*(?P<value>\{\s*\"name\")"),
    leading=True,
    ends_with_value=True,
    transform="{content}",
)
del BARE["fields"]["tool_calls"]["close"]


def repeated(unit: str) -> Callable[[int], str]:
    return lambda size: unit * (size // len(unit))


def around(before: str, unit: str, after: str = "") -> Callable[[int], str]:
    return lambda size: before + unit * (size // len(unit)) + after


def noise(alphabet: list[str]) -> Callable[[int], str]:
    def text(size: int) -> str:
        chance = random.Random(7)
        return "".join(chance.choice(alphabet) for _ in range(size // 4))

    return text


ENDURED: dict[str, tuple[Mapping[str, Any], Callable[[int], str]]] = {
    # the name: a template that is taken, and a text against it
    "openers begun": (template(), repeated("<cal")),
    "less-than signs": (template(), repeated("<")),
    "openers": (template(), repeated("<call>")),
    "closers": (template(), repeated("</call>")),
    "quotes": (template(), around("<call>", '"')),
    "open strings": (template(), around("<call>", '{"a": "')),
    "escapes": (template(), around('<call>{"a": "', "\\", '"}</call>')),
    "brackets": (template(), around("<call>", "[", "</call>")),
    "braces": (template(), around("<call>", '{"a":', "</call>")),
    "closers in a string": (template(), around('<call>{"a": "', "</call>", '"}</call>')),
    "a number": (template(), around('<call>{"name": "f", "arguments": {"a": ', "9", "}}</call>")),
    "an exponent": (template(), around('<call>{"name": "f", "arguments": {"a": 1e', "9", "}}</call>")),
    "keys again": (template(), around('<call>{"name": "f", "arguments": {', '"a": 1, ', '"a": 1}}</call>')),
    "surrogates": (template(), around('<call>{"name": "', "\\ud800", '"}</call>')),
    "nulls": (template(), repeated("\0<call>")),
    "small calls": (template(), repeated('<call>{"name": "f"}</call>\n')),
    "spaces": (REASONING, around("a", " ", "b")),
    "newlines": (REASONING, around("<think>", "\n", "b")),
    "thoughts": (REASONING, repeated("<think></think>")),
    "thoughts begun": (REASONING, repeated("\n<think")),
    "tails begun": (REASONING, repeated("<call>{}</call>\n<eo")),
    "a tail that never comes": (REASONING, around("<call>{}</call>", " ", "x")),
    "all of it": (REASONING, noise(["<", ">", "/", "think", "call", "eot", " ", "\n", '"', "{", "}", "\\"])),
    "an opener that looks ahead": (LOOKING, repeated("<call>")),
    "looking ahead, begun": (LOOKING, repeated("<call")),
    "looking ahead in spaces": (LOOKING, around("", " ")),
    "a closer that looks behind": (BEHIND, around("<call>{}", "</call>")),
    "looking behind": (BEHIND, around("<call>", "} ", "</call>")),
    "tags begun": (TAGS, around("<call=f>", "<p=")),
    "tags": (TAGS, around("<call=f>", "<p=a>")),
    "tags and ends": (TAGS, around("<call=f>\n<p=a>", "</p>", "</p></call>")),
    "ends of regions in a value": (TAGS, around("<call=f>\n<p=a>", "</call>", "</p>\n</call>")),
    "a name": (TAGS, around("<call=", "f", ">")),
    "pairs": (TAGS, around("<call=f>", "<p=a>1</p>", "</call>")),
    "ends of other things": (TAGS, around("<call=f>\n<p=a>1", "</x>", "</call>")),
    "tags that look ahead": (LOOKING_TAGS, around("<call=f>", "<p=a>1</p>x", "</call>")),
    "all of the tags": (TAGS, noise(["<", ">", "/", "call=f", "call", "p=a", "p", " ", "\n"])),
    "kind tags": (KIND_TAGS, around("<call=f>", "<p=a>")),
    "kind tags, quoted calls": (KIND_TAGS, around("<call=f><p=a>", "<call=f>", "</p></call>")),
    "kind tags, quoted ends": (KIND_TAGS, around("<call=f><p=a>", "</p></call>")),
    "kind tags, ends of other things": (KIND_TAGS, around("<call=f><p=a>", "</x>", "</call>")),
    "kind tags on lines": (KIND_TAGS, around("<call=f>", "\n<p=a>\n1", "</call>")),
    "all of the kind tags": (KIND_TAGS, noise(["<", ">", "/", "call=f", "call", "p=a", "p", " ", "\n"])),
    "a deep tree": (TREE, around("<call=f>", "<a>", "</call>")),
    "a wide tree": (TREE, around("<call=f>", "<a>1</a>", "</call>")),
    "ends in a tree": (TREE, around("<call=f>", "</a>", "</call>")),
    "a tree of quotes": (TREE, around("<call=f><a>", "<b></call>", "</a></call>")),
    "a tree in and out": (TREE, around("<call=f>", "<a><b></a></b>", "</call>")),
    "all of the tree": (TREE, noise(["<", ">", "/", "call=f", "call", "a", "item", " ", "\n"])),
    "wrappers": (WRAPPED, repeated("<calls>")),
    "empty wrappers": (WRAPPED, repeated("<calls>x</calls>")),
    "leftovers": (WRAPPED, around("<calls>", "x", "</calls>")),
    "leftovers and calls": (WRAPPED, around("<calls>", "<call>{}</call>x", "</calls>")),
    "calls in a thought": (INTERRUPTED, around("<think>", "<call>", "</think>")),
    "interrupted": (INTERRUPTED, repeated("<think><call>{}</call>")),
    "citations": (CITED, repeated("<co>a</co: 1:[1,2]>")),
    "citations begun": (CITED, repeated("</co: 1:[1,1,1,1,1,1,1")),
    "values in a row": (SEQUENCE, around("<call>", "{}", "</call>")),
    "commas in a row": (SEQUENCE, around("<call>", ",", "</call>")),
    "keys without quotes": (UNQUOTED, around("<call>{", "a b: <|1|>, ", "}</call>")),
    "delimiters begun": (UNQUOTED, around("<call>{a: ", "<|", "}</call>")),
    "calls in calls": (PYTHON, around("<call>[", "f(a=", "]</call>")),
    "lists in lists": (PYTHON, around("<call>[f(a=", "[", "]</call>")),
    "python strings": (PYTHON, around("<call>[f(a='", "\\\\'", "')]</call>")),
    "signs": (PYTHON, around("<call>[f(a=", "-", "1)]</call>")),
    "raw quotes": (RAW, around("<call>f(a='", "', b='", "')</call>")),
    "raw quotes that may end": (RAW, around("<call>f(a='", "') f", "</call>")),
    "a bare value": (BARE, around('{"name": "f", "arguments": {"a": "', "}", '"}}')),
    "a bare value again": (BARE, repeated('{"name": "f"}')),
    "many literals": (template(open=[f"<call{n}" for n in range(60)]), repeated("<call5<cal")),
    "counted classes": (with_pattern("open_pattern", ".{200}<call>"), noise(list("<cal>xy"))),
    "states without end": (with_pattern("open_pattern", "(?:a|b)*a(?:a|b){100}<call>"), noise(list("ab"))),
    "an opener that may grow": (with_pattern("open_pattern", "a(?:a*b)?"), repeated("a")),
    "a closer that may grow": (with_pattern("close_pattern", "a(?:a*b)?"), around("<call>", "a", "c")),
    "periods": (
        {
            "start_anchor": "<s>",
            "fields": {f"f{n}": {"open_pattern": f"(?:{'a' * n})*b"} for n in (2, 3, 5, 7, 11, 13)},
        },
        repeated("a"),
    ),
    "names in two ways": (with_pattern("open_pattern", "<(?P<x>[ab]*[bc]*[cd]*)>"), around("<", "bc", ">")),
    "choices in a name": (with_pattern("open_pattern", "<(?P<x>(?:a?b?c?d?){8}(?:[ab]|[cd])*)>"), around("<", "ab", ">")),
    "polynomials": (with_pattern("open_pattern", r"(?=x)[^>]*[^<]*[^>]*[^<]*>"), repeated("x")),
    "polynomials that wait": (with_pattern("close_pattern", r"(?!y).*a.*b.*c.*d(?=e)"), around("<call>", "abc")),
    "an anchor": (with_pattern("start_anchor_pattern", r"x*x*x*y"), repeated("x")),
    "an alphabet": (with_pattern("open_pattern", "<[^>]*>"), lambda size: "<" + "".join(map(chr, range(0x4E00, 0x4E00 + size)))),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDURED)
def test_a_hostile_text_is_endured(name: str) -> None:
    """It is read whole, in bounded time, by character as well, and none of it is lost."""
    spec, make = ENDURED[name]
    examine(spec)
    endure(ResponseTemplate(spec), make(SIZE), seconds=40)


def endure(template: ResponseTemplate, text: str, *, seconds: float) -> list[Event]:
    began = time.thread_time()
    parser = ResponseParser(template, prefix="", on_unfinished="content")
    events = parser.feed(text) + parser.finalize()[1]
    anchor = template.spec.get("start_anchor", "")
    stream = MessageStream(template, prefix=anchor + text)  # a prompt may be as hostile as an answer
    for at in range(0, len(text), 7):
        stream.feed(text[at : at + 7])
    stream.finish()
    assert time.thread_time() - began < seconds
    told = "".join(event.get("text", "") for event in events if event["type"] == "region_chunk")
    told += "".join(event.get("raw", "") for event in events if event["type"] == "region_malformed")
    assert len(told) >= 0.2 * len(text) or any(event["type"] == "region_close" for event in events)
    return events


@pytest.mark.parametrize("name", ENDURED)
def test_a_small_hostile_text_has_one_answer(name: str) -> None:
    spec, make = ENDURED[name]
    template = ResponseTemplate(spec)
    text = make(300)
    answers: list[Any] = []
    for _, pieces in cuttings(text, rounds=2):
        parser = ResponseParser(template, prefix="")
        events = [event for piece in pieces for event in parser.feed(piece)]
        message, last = parser.finalize()
        answers.append((message, merge(events + last), parser.dropped))
    assert all(answer == answers[0] for answer in answers[1:])


# ------------------------------------------------------------------------------------------ what was trusted unread

BOMB = "(?:a|a)*"  # two to the length of the text
TRUSTED: dict[str, tuple[dict[str, Any], str]] = {
    # the name: a template that is not taken from strangers, and a text that makes its patterns explode
    "an opener": (with_pattern("open_pattern", f"(?=a)<?{BOMB}(?!x)c|d(?=e)"), "a" * 60 + "xb"),
    "a closer": (with_pattern("close_pattern", f"(?=a){BOMB}(?!x)c"), "<call>" + "a" * 60 + "xb"),
    "a closer at the end": (with_pattern("close_pattern", rf"(?=a){BOMB}(?!x)c|\Z(?<=q)"), "<call>" + "a" * 60),
    "a group": (with_pattern("open_pattern", f"<(?P<x>{BOMB}c|[a]*)>"), "<" + "a" * 60 + "> and more"),
    "a tag": (
        template(content="xml-inline", content_args={"tag_pattern": f"<(?P<key>{BOMB}c)(?P<value>)|b"}),
        "<call><" + "a" * 60 + "xc</call> and more",
    ),
    "a tag's value": (
        template(content="xml-inline", content_args={"tag_pattern": f"<p=(?P<key>[^>]*)>(?P<value>{BOMB}c)</p>"}),
        "<call><p=x>" + "a" * 60 + "</p></call> and more",
    ),
    "many calls": (
        template(content="xml-inline", content_args={"tag_pattern": f"<(?P<key>{BOMB}c)(?P<value>)|b"}),
        ("<call><" + "a" * 60 + "xc</call> and more") * 50,
    ),
    "nested": (with_pattern("open_pattern", r"(?=a)(?:(?:a+)+)+(?!x)c"), "a" * 60 + "xc"),
    "a back-reference": (with_pattern("open_pattern", r"(a*)(a*)(a*)(a*)\4\3\2\1c(?=d)"), "a" * 2_000 + "b"),
    "recursion": (with_pattern("open_pattern", r"(?=\()(?:a|a|\((?R)?\))*c"), "(" + "a" * 60 + "b"),
    "looking ahead": (with_pattern("open_pattern", r"<call>(?=(?:.*?x)*?.*?</call>)"), "<call>x" * 300),
    "looking behind": (with_pattern("open_pattern", rf"(?<={BOMB}b)c"), "a" * 60 + "xc"),
}


@pytest.mark.parametrize("name", TRUSTED)
def test_what_was_trusted_unread_is_endured_too(name: str) -> None:
    """The region is malformed, its text content; nothing stalls, and nothing of the text is lost."""
    spec, text = TRUSTED[name]
    with pytest.raises(TemplateError):
        examine(spec)
    template = ResponseTemplate(spec)
    began = time.thread_time()
    parser = ResponseParser(template, prefix="", on_unfinished="content")
    events = parser.feed(text)
    message, last = parser.finalize()
    assert time.thread_time() - began < 40
    assert "".join(str(value) for value in message.values()) == text
    assert not any(event["type"] == "region_close" and event["field"] == "tool_calls" for event in events + last)
    if "open_pattern" not in spec["fields"]["tool_calls"]:
        assert any(event["type"] == "region_malformed" for event in events + last)


def test_an_anchor_that_was_trusted_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt that cannot be searched in time has no anchor."""
    monkeypatch.setattr("respzoo.allowance._SECONDS", 0.2)
    template = ResponseTemplate(with_pattern("start_anchor_pattern", f"(?=a){BOMB}(?!x)c"))
    assert template.parse("answer", prefix="a" * 60 + "xc") == {"content": "answer"}


def test_when_the_allowance_is_used_up_the_rest_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("respzoo.allowance._SECONDS", 0.2)
    spec = with_pattern("close_pattern", f"(?=a){BOMB}(?!x)c|</call>")
    call = '<call>{"name": "f", "arguments": {}}</call>'
    good = ResponseTemplate(spec).parse(call, prefix="")
    assert good["tool_calls"] == [{"name": "f", "arguments": {}}]
    parser = ResponseParser(spec, prefix="")
    text = f"{call} text <call>{'a' * 60}x"
    events = [event for char in text for event in parser.feed(char)]
    malformed = [event for event in events if event["type"] == "region_malformed"]
    assert [event["reason"] for event in malformed] == ["malformed"]
    assert malformed[0]["error"] == "looking for its end took too long"
    assert parser.region == "content"
    for char in f" and {call}":
        parser.feed(char)
    message, _ = parser.finalize()
    assert message["tool_calls"] == [{"name": "f", "arguments": {}}], "what was whole before stays"
    assert message["content"] == f" text <call>{'a' * 60}x and {call}"


def test_reasoning_that_was_shown_stays_reasoning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deltas are not taken back: text that streams goes on as what it is."""
    monkeypatch.setattr("respzoo.allowance._SECONDS", 0.2)
    spec = {
        "start_anchor": "<s>",
        "fields": {
            "reasoning_content": {"open": "<think>", "close_pattern": f"(?=a){BOMB}(?!x)c|</think>"},
            "content": {},
        },
    }
    stream = MessageStream(spec, prefix="")
    deltas = [delta for char in f"<think>so {'a' * 60}x </think>" for delta in stream.feed(char)]
    message, last = stream.finish()
    assert message == {"reasoning_content": f"so {'a' * 60}x </think>"}
    assert "".join(delta.get("reasoning_content", "") for delta in deltas + last) == message["reasoning_content"]


def test_the_allowance() -> None:
    allowance = Allowance()
    allowance.seconds = 0.0
    with pytest.raises(TimeoutError):
        allowance.deadline()
    allowance.grow(100_000)
    deadline = allowance.deadline()
    assert 0 < left_until(deadline) <= allowance.seconds
    allowance.settle(deadline - 1_000)
    assert allowance.seconds < 0
    with pytest.raises(TimeoutError):
        left_until(deadline - 1_000)
    allowance.walk(allowance.steps)
    with pytest.raises(TimeoutError):
        allowance.walk(1)


# ------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize(
    ("source", "alphabet"),
    [("(?:a|b)*a(?:a|b){40}c", "ab"), (".{0,200}x", "ab"), (r"\w*\d\w{100}!", "a1"), ("<[^>]*>", "<é中ab")],
)
def test_an_automaton_forgets(source: str, alphabet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its states and moves are bounded, and what a stream stands in is not lost with the others."""
    monkeypatch.setattr("respzoo.automaton._MOST_CELLS", 5_000)
    automaton = Automaton([read(source)])
    chance = random.Random(3)
    state = automaton.start
    most = 0
    for _ in range(20_000):
        state = state.step(chance.choice(alphabet)) or automaton.start
        most = max(most, len(reachable(automaton)) if chance.random() < 0.002 else 0)
    assert most < 5_500


def reachable(automaton: Automaton) -> set[int]:
    """The states that are kept alive by the automaton."""
    found: dict[int, Any] = {}
    stack: list[Any] = [automaton.start]
    while stack:
        state = stack.pop()
        if id(state) not in found:
            found[id(state)] = state
            stack.extend(after for after in state.next.values() if after is not None)
    return set(found)


def test_what_is_refused_is_refused_at_once() -> None:
    """No pattern is compiled to look at it, however large its repeats are."""
    began = time.thread_time()
    for source, _, _ in REFUSED.values():
        examine_pattern(source)
    assert time.thread_time() - began < 5


def test_the_limits_leave_room_for_what_is_known() -> None:
    """The largest of the curated templates is well below each of them."""
    for family in loaded().families.values():
        text = json.dumps(family.spec, ensure_ascii=False)
        assert len(text) < LIMITS.characters / 3, family.name
        assert len(compile_spec(family.spec).fields) < LIMITS.fields / 3, family.name
