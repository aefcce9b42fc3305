"""Quoted markup is text: what spells a special token of the tokenizer, and was not written by it, delimits nothing.

Strategy. Between `feed` and the scanner, the first character of such a spelling is replaced by a stand-in, one of the
noncharacters that Unicode keeps for use inside programs; one for one, so that every place stays the same. No delimiter
begins with it. Scanner, lexers and content parsers all see what is left: text. Whatever leaves is put back.

Only tokens that a delimiter of the template spells are looked for. Ordinary text whose end may be the beginning of one
waits, so that every cutting gives the same answer; a special token ends the wait.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar, cast

from respzoo.fields import CompiledTemplate
from respzoo.patterns import CharSet, Choice, Group, Node, Repeat, Series, Unsupported, read

__all__ = ["Guard", "Marks", "guard_for", "marks_of"]

T = TypeVar("T")
_LOOKS = re.compile(r"(?<!\\)\(\?<?[=!]")  # what a pattern only looks at is spelled in it all the same
_STAND_INS = [chr(0xFDD0 + number) for number in range(32)]


class Marks:
    """The special tokens to guard in a template, compiled. Shared by all streams."""

    def __init__(self, tokens: Collection[str]) -> None:
        firsts = sorted({token[0] for token in tokens if token})[: len(_STAND_INS)]
        self.tokens = tuple(sorted(token for token in tokens if token and token[0] in firsts))
        stand_ins = dict(zip(firsts, _STAND_INS, strict=False))
        rests = {first: [token[1:] for token in self.tokens if token[0] == first] for first in firsts}
        self.first = firsts[0] if len(firsts) == 1 else ""
        self.seconds = frozenset(token[1:2] for token in self.tokens)  # with "" if a token has no second
        self.begins = re.compile("|".join(map(re.escape, firsts)) or "(?!)").search
        self._spelled = re.compile(
            "|".join(f"{re.escape(first)}(?={'|'.join(map(re.escape, rests[first]))})" for first in firsts) or "(?!)"
        )
        self.begun = re.compile(f"(?:{'|'.join(map(_begun, self.tokens)) or '(?!)'})\\Z").search
        self._hide = stand_ins
        self._show = {ord(stand_in): first for first, stand_in in stand_ins.items()}
        self._hidden = re.compile(f"[{''.join(stand_ins.values())}]" if stand_ins else "(?!)").search

    def hide(self, text: str) -> tuple[str, int]:
        """Text in which no token is spelled any more, and how many were."""
        return self._spelled.subn(lambda match: self._hide[match[0]], text)

    def show(self, value: Any) -> Any:
        """A text, or all texts in a value, as they were before `hide`. Nothing is changed in place."""
        if isinstance(value, str):
            return value.translate(self._show) if self._hidden(value) is not None else value
        if isinstance(value, Mapping):
            return {self.show(key): self.show(item) for key, item in cast("Mapping[Any, Any]", value).items()}
        if isinstance(value, list):
            return [self.show(item) for item in cast("list[Any]", value)]
        return value


def _begun(token: str) -> str:
    """A pattern for what such a token begins with, but for the whole of it."""
    source = ""
    for char in reversed(token[1:-1]):
        source = f"(?:{re.escape(char)}{source})?"
    return re.escape(token[0]) + source if len(token) > 1 else "(?!)"


class Guard:
    """One stream's text on its way to the scanner.

    Attributes:
        used: whether anything has been hidden yet, so that what comes out must be shown again.
        held: ordinary text that may be the beginning of a special token's.
    """

    __slots__ = ("held", "marks", "used")

    def __init__(self, marks: Marks) -> None:
        self.marks = marks
        self.used = False
        self.held = ""

    def feed(self, text: str, special: Sequence[tuple[int, int]] | None) -> str:
        """The next text for the scanner; `special` as `ResponseParser.feed` takes it.

        Raises:
            ValueError: the stretches do not lie in the text, one after another.
        """
        if special is None:  # nobody knows: as written
            return self.end() + text
        if not special:
            return self._ordinary(text)
        places = [0, *(place for stretch in special for place in stretch), len(text)]
        if any(before > after for before, after in pairwise(places)):
            raise ValueError(f"special: expected stretches, in order, of {len(text)} characters, found {special!r}")
        out: list[str] = []
        at = 0
        for start, end in special:
            if start > at:
                out.append(self._ordinary(text[at:start]))
            if end > start:
                out += (self.end(), text[start:end])
            at = end
        if at < len(text):
            out.append(self._ordinary(text[at:]))
        return "".join(out)

    def lets(self, text: str, special: Sequence[tuple[int, int]] | None) -> bool:
        """Whether this text passes as it is, and all that comes out is as it was."""
        if special is None or special or self.used or self.held:
            return False
        marks = self.marks
        return marks.first not in text or marks.begins(text) is None

    def end(self) -> str:
        """What is held, which is not the beginning of any token after all (but may be another token's text)."""
        if not self.held:
            return ""
        hidden = self._hide(self.held)
        self.held = ""
        return hidden

    def show(self, value: T) -> T:
        """What comes out of the parser, put back."""
        return self.marks.show(value) if self.used else value

    def _ordinary(self, text: str) -> str:
        marks = self.marks
        first, seconds = marks.first, marks.seconds
        if self.held:
            alone = self.held == first and text and text[0] not in seconds and first not in text
            text, self.held = self.held + text, ""
            if alone:  # the character that all begin with, but not the second of any
                return text
        elif marks.begins(text) is None:
            return text
        elif text[-1] == first and "" not in seconds and first not in text[:-1]:
            self.held = first
            return text[:-1]
        hidden = self._hide(text)
        begun = marks.begun(text)
        if begun is None:
            return hidden
        self.held = text[begun.start() :]
        return hidden[: begun.start()]

    def _hide(self, text: str) -> str:
        hidden, count = self.marks.hide(text)
        if count:
            self.used = True
        return hidden


def guard_for(template: CompiledTemplate, special_tokens: Collection[str]) -> Guard | None:
    """A guard for one answer. None: the template's delimiters spell none of these tokens.

    Raises:
        ValueError: `special_tokens` is one text.
    """
    if isinstance(special_tokens, str):
        raise ValueError(f"special_tokens: expected the texts of all special tokens, found one text {special_tokens!r}")
    marks = marks_of(template, special_tokens)
    return None if marks is None else Guard(marks)


def marks_of(template: CompiledTemplate, special_tokens: Iterable[str]) -> Marks | None:
    """The special tokens that a template's delimiters spell. None: it spells none of them."""
    key = frozenset(special_tokens)
    known: dict[frozenset[str], Marks | None] = vars(template).setdefault("_marks", {})
    if key not in known:
        nodes = list(_spelling(template.spec))
        found = [token for token in key if token and any(_spells(node, token) for node in nodes)]
        known[key] = Marks(found) if found else None
    return known[key]


def _spelling(value: Any, name: str = "") -> Iterator[Node]:
    """Whatever a template's delimiters and content arguments spell: literals as they are, patterns as their trees."""
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            if key not in ("defaults", "transform"):
                yield from _spelling(item, key)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _spelling(item, name)
    elif isinstance(value, str):
        if name.endswith("pattern"):
            try:
                yield read(_LOOKS.sub("(?:", value), skeleton=True)
                return
            except Unsupported:
                value = value.replace("\\", "")
        yield Series(tuple(CharSet(char, char) for char in value))


def _spells(node: Node, token: str) -> bool:
    """Whether a token's characters stand one after another in a pattern, as literals."""
    return len(token) in _walk(node, token, frozenset({0}))


def _walk(node: Node, token: str, reached: frozenset[int]) -> frozenset[int]:
    """How much of a token may be spelled behind a node, where `reached` was before it; its length once it is whole."""
    size = len(token)
    if isinstance(node, CharSet):
        on = {at + 1 for at in reached if at < size and token[at] == node.literal}
        return frozenset({0, *on, *(reached & {size})})
    if isinstance(node, Series):
        for item in node.items:
            reached = _walk(item, token, reached)
        return reached
    if isinstance(node, Choice):
        return frozenset(at for branch in node.branches for at in _walk(branch, token, reached))
    if isinstance(node, Group):
        return _walk(node.item, token, reached)
    assert isinstance(node, Repeat)
    while not (after := _walk(node.item, token, reached)) <= reached:
        reached |= after
    return reached
