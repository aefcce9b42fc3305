"""Reading a delimiter's regular expression: what is known, and that all else is left to the `regex` module."""

from __future__ import annotations

import contextlib

import pytest
import regex

from respzoo import ResponseTemplate, TemplateError
from respzoo.automaton import Automaton
from respzoo.patterns import CharSet, Choice, Group, Repeat, Series, Unsupported, read

UNSUPPORTED = [
    r"(?=a)a", r"(?!a)b", r"(?<=a)b", r"(?<!a)b", "^a", "a$", r"a\Z", r"\Aa", r"\bа", r"a\B", r"\Ga", r"a\Kb",
    r"(?i)a", r"(?i:a)b", r"(?s)a", r"(?#note)a", r"(a)\1", r"(?P<x>a)(?P=x)", r"(?P<x>a)\g<x>", r"(?>a)b", r"(?|(a)|(b))",
    r"a*+b", r"a++", r"a?+b", r"a{2}+", r"\p{L}", r"\P{L}", r"\X", r"\h", r"\R", r"\N{DIGIT ONE}", r"\x41", r"\u0041",
    r"\101", r"[\p{L}a]", r"[\x41]", r"[[a]", r"[a||b]", r"[a--b]", r"[a&&b]", r"[a~~b]", r"(?:abc){e<=1}", r"(?R)?a", r"(?1)?(a)",
    r"\L<words>", r"\m\w+", r"a\M", "a{", "a{x}", "a{,}", "{a", "a{257}", "a{2,300}", "(*FAIL)a", "(*PRUNE)a", "(?&x)(?P<x>a)",
    "a*", "a?", "(?:)", "", "a|", "|a", "(?:a?)*b", "(?:a|)+b", "(?:a*)*b", "(?:a*){2,}b", "(?:(?:a?)(?:b?))+c",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("pattern", UNSUPPORTED)
def test_what_the_automaton_does_not_know_it_says(pattern: str) -> None:
    """Never a wrong reading: whatever of this the regex module compiles, the automaton leaves to it."""
    with pytest.raises(Unsupported):
        Automaton([read(pattern)])


def test_groups_know_their_place_in_the_source() -> None:
    source = r"<p=(?P<key>\w+)>\n?(?P<value>.*?)\n?</p>"
    tree = read(source)
    groups = [item for item in tree.items if isinstance(item, Group)]  # type: ignore[union-attr]
    assert [(group.name, source[group.start : group.end]) for group in groups] == [
        ("key", r"(?P<key>\w+)"),
        ("value", "(?P<value>.*?)"),
    ]


def test_a_set_of_characters() -> None:
    assert CharSet(r"[^<\s]").accepts("a")
    assert not CharSet(r"[^<\s]").accepts("\n")
    assert CharSet(".").accepts("\n")
    assert CharSet("x", "x").accepts("x")
    assert not CharSet("x", "x").accepts("y")


def test_the_tree() -> None:
    assert read("ab") == Series((CharSet("a", "a"), CharSet("b", "b")))
    assert read("a|b") == Choice((Series((CharSet("a", "a"),)), Series((CharSet("b", "b"),))))
    assert read(".{2,5}?") == Series((Repeat(CharSet("."), 2, 5, True),))
    assert read("(?:a)+") == Series((Repeat(Series((CharSet("a", "a"),)), 1, None, False),))
    assert read(r"\s[ \n]").items == (CharSet(r"\s", spaces_only=True), CharSet(r"[ \n]", spaces_only=True))  # type: ignore[union-attr]
    assert not read(r"[^\S]").items[0].spaces_only  # type: ignore[union-attr]


@pytest.mark.parametrize("depth", [20, 100])
def test_deep_groups_are_read_or_left_alone(depth: int) -> None:
    pattern = "(" * depth + "a" + ")" * depth
    regex.compile(pattern)
    with contextlib.suppress(Unsupported):
        Automaton([read(pattern)])


def nested(depth: int) -> dict[str, object]:
    source = "(" * depth + "<call>" + ")" * depth
    return {"start_anchor": "<s>", "fields": {"tool_calls": {"open_pattern": source, "content": "json"}, "content": {}}}


def test_groups_nested_deeply() -> None:
    assert ResponseTemplate(nested(100)).parse("text", prefix="") == {"content": "text"}


@pytest.mark.parametrize("depth", [300, 500, 1_000])
def test_groups_too_deep_for_one_reader_or_the_other(depth: int) -> None:
    """How much of the stack is left decides; what is too deep for the automaton goes to the `regex` module."""
    with contextlib.suppress(TemplateError):
        assert ResponseTemplate(nested(depth)).parse("text", prefix="") == {"content": "text"}


def test_groups_too_deep_for_all() -> None:
    with pytest.raises(TemplateError, match=r"open_pattern: its groups are nested too deeply"):
        ResponseTemplate(nested(10_000))
