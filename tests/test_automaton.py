"""The automaton beside the `regex` module: made-up patterns and texts, every end of a match and every dead end."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from collections.abc import Iterator

import pytest
import regex

from respzoo.automaton import Automaton, State
from respzoo.patterns import Unsupported, read

ATOMS = (
    "a",
    "a",
    "b",
    "b",
    "<",
    "\n",
    r"\n",
    r"\s",
    r"\S",
    r"\w",
    r"\d",
    ".",
    "[ab]",
    "[^a]",
    r"[^<\n]",
    r"[\s<]",
    "[a-c]",
    r"\<",
)
QUANTIFIERS = (
    "",
    "",
    "",
    "",
    "*",
    "+",
    "?",
    "{2}",
    "{1,2}",
    "{2,}",
    "{,2}",
    "{0,3}",
    "*?",
    "+?",
    "??",
    "{1,3}?",
    "{1,}?",
)
ALPHABET = "ab<\n 1"
LAZY = regex.compile(r"[*+?}]\?")


def made_up(chance: random.Random, depth: int = 2) -> str:
    """A pattern of the syntax that the automaton knows."""

    def piece(depth: int) -> str:
        if depth and chance.random() < 0.4:
            head = chance.choice(("(?:", "(?:", "("))
            atom = f"{head}{series(depth - 1)})"
        else:
            atom = chance.choice(ATOMS)
        return atom + chance.choice(QUANTIFIERS)

    def series(depth: int) -> str:
        branches = [
            "".join(piece(depth) for _ in range(chance.randint(1, 3))) for _ in range(chance.choice((1, 1, 2, 3)))
        ]
        return "|".join(branches)

    return series(depth)


def automata(patterns: Iterator[str]) -> Iterator[tuple[str, Automaton]]:
    for pattern in patterns:
        regex.compile(pattern, regex.DOTALL)
        try:
            yield pattern, Automaton([read(pattern)])
        except Unsupported as error:
            if "empty" not in str(error):
                raise


def end_of_match(automaton: Automaton, text: str) -> int | None:
    """Where the automaton ends a match from the text's start on."""
    state: State | None = automaton.start
    end = None
    for at, char in enumerate(text, 1):
        assert state is not None
        state = state.step(char)
        if state is None:
            break
        if state.matched:
            end = at
        if state.ended:
            break
    return end


def check(pattern: str, automaton: Automaton, text: str) -> None:
    compiled = regex.compile(pattern, regex.DOTALL)
    expected = compiled.match(text)
    assert end_of_match(automaton, text) == (None if expected is None else expected.end()), (pattern, text)
    state: State | None = automaton.start
    matched = False
    for at, char in enumerate(text, 1):
        assert state is not None
        state = state.step(char)
        viable = compiled.fullmatch(text[:at], partial=True)
        # up to the first match the automaton lives as long as the pattern could match; from then on it may know that
        # what it has is preferred to all that could come
        if state is not None:
            assert viable is not None, (pattern, text[:at])
        elif not matched and LAZY.search(pattern) is None:  # the module is over-generous where a repeat is lazy
            assert viable is None, (pattern, text[:at])
        if state is None:
            break
        matched = matched or bool(state.matched)


@pytest.mark.parametrize("seed", range(8))
def test_made_up_patterns_end_where_the_regex_module_ends(seed: int) -> None:
    chance = random.Random(seed)
    known = 0
    for pattern, automaton in automata(made_up(chance) for _ in range(200)):
        known += 1
        for _ in range(25):
            check(pattern, automaton, "".join(chance.choice(ALPHABET) for _ in range(chance.randint(0, 9))))
    assert known > 80


@pytest.mark.parametrize(
    "pattern",
    [
        "a|ab", "ab|a", "a*b", "a*?b", "(?:a|ab)(?:c|bcd)?", "(?:ab?)+?b", "a{2,3}?b*", "(?:a|b)*abb", "a.*b", "a.*?b",
        "(?:a*b)+", "(?:a|aa)+b", "(?:a?b){2}", "(?:a+b?)*?b", "(?P<x>a+)(?P<y>a*)b", "[^b]*b", "(?:a{1,2}){2,3}b",
        "(?:(?:a|b)?a){2}", "a(?:b(?:a)?)*", "(?:a??b)+", "(?:ab|a)(?:b|)a",
    ],
)  # fmt: skip
def test_every_short_text(pattern: str) -> None:
    automaton = Automaton([read(pattern)])
    for size in range(8):
        for chars in itertools.product("ab", repeat=size):
            check(pattern, automaton, "".join(chars))


@pytest.mark.parametrize(
    ("pattern", "text", "end"),
    [
        (r"</f>(?:\s*</t>)?", "</f>\n\n</t>x", 10),
        (r"</f>(?:\s*</t>)?", "</f>\n\nx", 4),
        (r"<tool_call>\s*<function=(?P<name>[^>]+)>", "<tool_call>\n<function=a.b>\n", 26),
        (r"\s*(?:</t>|</tt>)+\s*", " \n</t></tt>  x", 13),
        (r"<\|channel\|>commentary to=functions\.(?P<name>\w+).*?<\|message\|>", "<|channel|>commentary to=functions.f <|x<|message|>{", 51),
        ("a\u2028b|\u00e9+", "\u00e9\u00e9\u00e9", 3),
        (r"\w+\s", "\u00fcber\u00a0x", 5),
    ],
)  # fmt: skip
def test_delimiters_of_real_templates(pattern: str, text: str, end: int) -> None:
    automaton = Automaton([read(pattern)])
    assert end_of_match(automaton, text) == end
    check(pattern, automaton, text)


def test_many_patterns_in_one_automaton_keep_their_own_ends() -> None:
    patterns = ["a+", "ab", "a(?:bc)?", r"[^c]{2}", "b"]
    automaton = Automaton([read(pattern) for pattern in patterns])
    for size in range(1, 6):
        for chars in itertools.product("abc", repeat=size):
            text = "".join(chars)
            ends: dict[int, int] = {}
            state: State | None = automaton.start
            for at, char in enumerate(text, 1):
                state = state.step(char) if state is not None else None
                if state is not None:
                    ends.update(dict.fromkeys(state.matched, at))
            expected = {n: m.end() for n, p in enumerate(patterns) if (m := regex.match(p, text)) is not None}
            assert ends == expected, text


def test_pending_and_ended() -> None:
    automaton = Automaton([read("<a>"), read("<a>(?:b)?"), read("<c>")])
    state: State | None = automaton.start
    assert state is not None
    assert state.pending == (0, 1, 2)
    assert not state.ended
    for char in "<a>":
        state = state.step(char)
        assert state is not None
    assert state.matched == (0, 1)
    assert state.pending == (1,)
    assert not state.ended
    state = state.step("b")
    assert state is not None
    assert state.matched == (1,)
    assert state.ended
    assert state.step("x") is None


def test_states_are_made_once() -> None:
    automaton = Automaton([read("(?:ab)*c")])
    first = automaton.start.step("a")
    assert first is not None
    second = first.step("b")
    assert second is not None
    assert second.step("a") is first


def test_a_pattern_of_very_many_states_stays_right() -> None:
    """The states that are shared are bounded: past the bound they are made anew."""
    pattern = "(?:a|b)*a(?:a|b){14}c"
    automaton = Automaton([read(pattern)])
    chance = random.Random(5)
    text = "".join(chance.choice("ab") for _ in range(12_000)) + "a" + "b" * 14 + "c"
    assert end_of_match(automaton, text) == len(text)


def test_a_large_alphabet_is_not_remembered_for_ever() -> None:
    automaton = Automaton([read("<[^>]*>")])
    text = "<" + "".join(map(chr, range(0x4E00, 0x4E00 + 10_000))) + ">"
    assert end_of_match(automaton, text) == len(text)
    state = automaton.start.step("<")
    assert state is not None
    assert len(state.next) <= 2_001


@pytest.mark.parametrize(
    "pattern",
    [r"a\.b", r"\[TOOL_CALLS\]", r"<\|im_end\|>", "[]a]", "[^]a]", r"[\]\\-]", r"[a\-z]", "a]b}", r"\/\#\-", "(?P<n>a)(?<m>b)", "[|]",
     "[$^.]", r"[\w.-]+", "a{2,2}b{1}"],
)  # fmt: skip
def test_what_it_knows(pattern: str) -> None:
    automaton = Automaton([read(pattern)])
    chance = random.Random(1)
    alphabet = "ab]}[\\-.<|>im_endTOCALS/#$^z"
    for _ in range(400):
        check(pattern, automaton, "".join(chance.choice(alphabet) for _ in range(chance.randint(0, 4))))
    for text in ("a.b", "[TOOL_CALLS]", "<|im_end|>", "a]b}", "/#-", "ab", "aab"):
        check(pattern, automaton, text)


@pytest.mark.parametrize("pattern", ["(?:(?:a{200}){200}){200}b", "(?:(?:(?:a{0,99}){0,99}){0,99}){0,99}b"])
def test_nested_counts_are_refused_before_they_fill_the_memory(pattern: str) -> None:
    tree = read(pattern)
    tracemalloc.start()
    try:
        with pytest.raises(Unsupported):
            Automaton([tree])
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
