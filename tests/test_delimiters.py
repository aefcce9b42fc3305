"""What a delimiter is, and what a watch list knows of how its delimiters begin."""

from __future__ import annotations

import random

import pytest
import regex

from respzoo.delimiters import WEAK, Delimiter, WatchList


def test_literals_match_the_longest() -> None:
    delimiter = Delimiter.literal("open", "x", ["<t>", "<t>!", "<t>", "a.b"])
    assert delimiter.literals == ("<t>", "<t>!", "a.b")
    match = delimiter.pattern.match("<t>!")
    assert match is not None
    assert match[0] == "<t>!"
    assert delimiter.pattern.match("axb") is None


def test_patterns_are_dotall_and_not_multiline() -> None:
    delimiter = Delimiter.regex("open", "x", "^<.>$")
    assert delimiter.pattern.fullmatch("<\n>") is not None
    assert delimiter.pattern.search("a\n<b>") is None
    assert delimiter.pattern.fullmatch("<\u00fc>") is not None


@pytest.mark.parametrize(
    ("source", "behind"),
    [
        (r"<c>", False), (r"[^<]<c>", False), (r"\^<c>", False), (r"\s*<c>(?=x)", False), (r"<c>(?!x)|\Z|$", False),
        (r"(?<name>a)", False), (r"(?P<name>a)", False), (r"\\b", False),
        (r"^<c>", True), (r"(?:^|<c>)\s*", True), (r"(?<=x)<c>", True), (r"(?<!x)<c>", True), (r"\b<c>", True), (r"a\B", True),
        (r"\A<c>", True), (r"\\\b", True), (r"\Ga", True), (r"<c>|^", True), (r"x\K<c>", True), (r"\mf", True), (r"f\M", True),
        (r"(^)a", True), (r"[a]^", True),
    ],
)  # fmt: skip
def test_looks_behind(source: str, behind: bool) -> None:
    assert Delimiter.regex("open", "x", source).looks_behind is behind


def test_a_literal_never_looks_behind() -> None:
    assert not Delimiter.literal("open", "x", ["^", r"\b", "(?<=x)"]).looks_behind


@pytest.mark.parametrize(
    ("source", "markers"),
    [
        (r"<tool_call>\s*<function=(?P<name>\w+)>", {"<tool_call>"}),
        (r"\[TOOL_CALLS\](?P<name>\w+)", {"[TOOL_CALLS]"}),
        (r"<\|channel\|>commentary to=functions\.(?P<name>\w+).*?<\|message\|>", {"<|channel|>", "<|message|>"}),
        (r"(?:</t>|</tt>)\s*", {"</t>", "</tt>"}),
        (r"(?<name>x)y", set()),
        (r"plain", set()),
    ],
)
def test_markers(source: str, markers: set[str]) -> None:
    assert markers <= set(Delimiter.regex("open", "x", source).markers())
    if not markers:
        assert not Delimiter.regex("open", "x", source).markers()


def test_markers_of_literals() -> None:
    assert Delimiter.literal("open", "x", ["<tool_call>\n", "[TOOL_CALLS]", "plain"]).markers() == (
        "<tool_call>",
        "[TOOL_CALLS]",
    )


def test_rank() -> None:
    opens, closes = Delimiter.literal("open", "b", ["x"]), Delimiter.literal("close", "a", ["x"], 1)
    weak = Delimiter.literal("marker", "", ["x"], WEAK)
    assert closes.rank(9) < opens.rank(3)
    assert opens.rank(3) < closes.rank(3)
    assert opens.rank(1) < weak.rank(100)


BEGINNINGS = [
    ["<a>", "<b>"], [r"\s*<a>"], [r"\n?</t>\s*"], [r"[ \n]{2}<a>|x"], [r"\s+"], [r"\n\n|<a>"], ["[^<]<"], [r"\s*(?:<e>|\n)"],
    [r"<a>", r"\s+b"], [r"\w+<"], ["a", "b"], [r"\S\s"],
]  # fmt: skip


OPAQUE = [
    [r"<a>(?=b)"], [r"<a>|\Z"], [r"\s*(?=<a>)"], [r"(?<=b)<a>"], [r"(?<!b)\s*<a>", "<t>"], [r"^\s*<a>"], [r"(?:^|<a>)\s*"], [r"\bt\b"],
    [r"(?!<a>)<"], [r"(?i:<A>)"], [r"(?i)T"], [r"(?=.*?b)<a>|x"], [r"(?:^\s*(?=.*?</t>)|<a>)\s*"], [r"<a>(?!\s)", r"\s*</t>"], [r"\x3ca>"],
    [r"(?>\s*)<a>"], [r"(<)a\1?"], [r"\p{L}<"], [r"(?<!<)(?:a|\s<)"], [r"\s*+<a>"], [r"(?=<)(?:<a|<b)"], [r"$"], [r"(?<=\})\s*<a>"],
]  # fmt: skip


@pytest.mark.parametrize("sources", [*BEGINNINGS, *OPAQUE], ids=repr)
def test_no_beginning_is_passed_over(sources: list[str]) -> None:
    """Where a delimiter stands, `begins` finds a place at or before its first character that is no leading white space,
    whatever the text's end cuts off."""
    watch = WatchList([Delimiter.regex("open", "x", source) for source in sources])
    assert (watch.automaton is None) is (sources in OPAQUE)
    if watch.begins is None:
        assert watch.automaton is None
        return
    chance = random.Random(repr(sources))
    for _ in range(400):
        text = "".join(chance.choice("<a>b \n/tT}x") for _ in range(chance.randint(0, 8)))
        found = watch.begins(text)
        begun = len(text) if found is None else found.start()
        for source in sources:
            for match in regex.finditer(source, text, regex.DOTALL, overlapped=True, partial=True):
                if match.partial and source.startswith("(?=.*"):
                    continue  # the module looks ahead to the text's end before it looks at the first character
                start, stop = match.span()
                first = start + len(match[0]) - len(match[0].lstrip()) if watch.leads else start
                if stop > start:
                    assert begun <= first, (source, text, match)
        if watch.first and found is not None:
            assert text[begun] == watch.first


@pytest.mark.parametrize(
    "source", [r"<a>(?=b)", r"^<a>", r"<a>|\Z", "a*", r"(?i)<a>", r"(?:(?:\w*)*)*<a>"]
)  # fmt: skip
def test_what_the_automaton_does_not_know_is_searched_for(source: str) -> None:
    assert WatchList([Delimiter.literal("open", "y", ["<b>"]), Delimiter.regex("open", "x", source)]).automaton is None


def test_kept_text_needs_the_search() -> None:
    assert WatchList([Delimiter.literal("open", "y", ["<b>"])], plain=False).automaton is None


def test_an_invalid_pattern_is_the_modules_error() -> None:
    with pytest.raises(regex.error):
        Delimiter.regex("open", "x", "(<c>")
