"""Spans: what spells a special token and was not written by one is text."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from respzoo.guard import Guard, Marks, marks_of
from respzoo.template import ResponseTemplate

TOKENS = ("<|end|>", "<|start|>", "[CALL]", "<|en")


def run(guard: Guard, pieces: list[tuple[str, Any]]) -> str:
    return "".join([guard.feed(text, special) for text, special in pieces]) + guard.end()


def spellings(text: str) -> list[str]:
    return [token for token in TOKENS if token in text]


# ------------------------------------------------------------------------------------------------------- hide and show


@pytest.mark.parametrize("token", TOKENS)
def test_a_spelling_is_hidden_and_shown_again(token: str) -> None:
    guard = Guard(Marks(TOKENS))
    text = f"a {token} b{token}{token} <|e [CAL"
    hidden = run(guard, [(text, ())])
    assert guard.used
    assert spellings(hidden) == []
    assert len(hidden) == len(text)
    assert guard.marks.show(hidden) == text


def test_a_special_token_is_left_alone() -> None:
    guard = Guard(Marks(TOKENS))
    text = "a <|end|> b<|start|>"
    assert run(guard, [(text, [(2, 9), (11, 20)])]) == text
    assert not guard.used
    mixed = run(guard, [("<|end|><|end|><|end|>", [(7, 14)])])
    assert mixed[7:14] == "<|end|>"
    assert spellings(mixed[:7]) == spellings(mixed[14:]) == []


def test_what_nobody_knows_is_left_alone() -> None:
    guard = Guard(Marks(TOKENS))
    assert run(guard, [("a <|end|>", None), ("<|sta", ()), ("rt|>", None)]) == "a <|end|><|start|>"
    assert not guard.used


def test_text_waits_no_longer_than_it_must() -> None:
    guard = Guard(Marks(["<|end|>", "[CALL]"]))
    assert guard.feed("so: <|e", ()) == "so: "
    assert guard.held == "<|e"
    assert guard.feed("v [CA", ()) == "<|ev "
    assert guard.feed("<|end|>", [(0, 7)]) == "[CA<|end|>"
    assert guard.held == ""
    assert guard.feed("x", ()) == "x"


def test_tokens_that_overlap() -> None:
    for tokens in (("<|a|>", "<|a|>b"), ("aa", "aaa"), ("ab", "bc", "abcd")):
        marks = Marks(tokens)
        for size in range(1, 7):
            for chars in itertools.product("ab<", repeat=size) if tokens[0] != "<|a|>" else [tuple("<|a|>b<|a|>")]:
                text = "".join(chars)
                whole = run(Guard(marks), [(text, ())])
                assert not any(token in whole for token in tokens)
                assert run(Guard(marks), [(char, ()) for char in text]) == whole
                assert marks.show(whole) == text


PIECES = st.lists(
    st.sampled_from(["<|end|>", "<|start|>", "[CALL]", "<|", "en", "d|>", "[", "CALL]", "x", " ", "\ud800"])
)


@given(PIECES, st.data())
def test_any_cutting_of_ordinary_text(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    marks = Marks(TOKENS)
    whole = run(Guard(marks), [(text, ())])
    assert spellings(whole) == []
    assert marks.show(whole) == text
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    parts = [text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])]
    guard = Guard(marks)
    assert run(guard, [(part, ()) for part in parts]) == whole
    assert guard.used is (whole != text)


@given(st.lists(st.tuples(st.sampled_from(["<|end|>", "[CALL]", "<|e", "nd|>", "x"]), st.booleans())))
def test_stretches_say_the_same_as_pieces(pieces: list[tuple[str, bool]]) -> None:
    text, at = "", 0
    stretches: list[tuple[int, int]] = []
    for piece, special in pieces:
        text += piece
        if special:
            stretches.append((at, len(text)))
        at = len(text)
    marks = Marks(TOKENS)
    whole = run(Guard(marks), [(text, stretches)])
    assert run(Guard(marks), [(piece, [(0, len(piece))] if special else ()) for piece, special in pieces]) == whole
    assert marks.show(whole) == text
    assert all(whole[start:end] == text[start:end] for start, end in stretches)


@pytest.mark.parametrize("special", [[(3, 2)], [(0, 9)], [(-1, 2)], [(2, 4), (0, 1)], [(0, 3), (2, 4)]])
def test_stretches_that_are_none(special: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="special: expected stretches"):
        Guard(Marks(TOKENS)).feed("12345", special)


def test_values_are_shown_inside_and_not_changed() -> None:
    marks = Marks(TOKENS)
    hidden, count = marks.hide("<|end|>")
    assert count == 1
    value = {"a": [hidden, 1, None], hidden: {"b": hidden}}
    shown = marks.show(value)
    assert shown == {"a": ["<|end|>", 1, None], "<|end|>": {"b": "<|end|>"}}
    assert value["a"] == [hidden, 1, None]


def test_work_is_linear() -> None:
    """What is held is never longer than a token."""
    guard = Guard(Marks(TOKENS))
    for char in "<|e<|" * 2000:
        guard.feed(char, ())
        assert len(guard.held) < max(map(len, TOKENS))


# ------------------------------------------------------------------------------------------------------- which tokens


@pytest.mark.parametrize(
    ("field", "guarded"),
    [
        ({"open": "<|think|>", "close": "</s>"}, {"<|think|>", "</s>"}),
        ({"open": ["[A]", "x [B] y"], "close": "[C]"}, {"[B]"}),
        ({"open_pattern": r"<\|(?:end|call)\|>\s*", "close": "x"}, {"<|end|>", "<|call|>"}),
        ({"open_pattern": r"a(?:<\|end\|>)?b*", "close_pattern": r"\[B\]|$"}, {"<|end|>", "[B]"}),
        ({"open": "x", "close_pattern": r"(?=<\|(?:start|call)\|>)"}, {"<|start|>", "<|call|>"}),
        ({"open": "x", "close_pattern": r"<\|[a-z]+\|>|.*?</t>"}, set()),
        ({"open_pattern": r"(?i)<\|end\|>", "close": "x"}, {"<|end|>"}),
        ({"open": "x", "close": "y", "content": "json", "content_args": {"string_delims": [['<|"|>', '<|"|>']]}}, {'<|"|>'}),
    ],
)  # fmt: skip
def test_only_what_the_template_spells_is_guarded(field: dict[str, Any], guarded: set[str]) -> None:
    special = {"<|think|>", "</s>", "[B]", "<|end|>", "<|call|>", "<|start|>", '<|"|>', "", "assistant"}
    template = ResponseTemplate({"start_anchor": "@", "defaults": {"x": "<|think|>"}, "fields": {"x": field}})
    marks = marks_of(template, special)
    assert set(marks.tokens if marks else ()) == guarded
    assert marks_of(template, list(special)) is marks
