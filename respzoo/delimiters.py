"""What opens or closes a region, and the lists of such delimiters that are looked for at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import regex

from respzoo.automaton import Automaton, beginnings
from respzoo.patterns import CharSet, Node, Unsupported, read

__all__ = ["WEAK", "Delimiter", "Found", "Partial", "WatchList"]

_LOOKS_BEHIND = re.compile(r"\(\?<[=!]|(?<!\\)(?:\\\\)*\\[bBAGKmM]|(?<![\[\\])\^")
_GROUP_HEAD = re.compile(r"\(\?(?:P?<\w+>|<?[=!]|:)")
_MARKER = re.compile(r"<[^<>\s]+>|\[/?[A-Z_]+\]")

WEAK = 9
"""The order of a delimiter that gives way to every other that begins at the same place, however long."""


@dataclass(frozen=True)
class Delimiter:
    """What opens or closes a region.

    `kind` tells what finding it means, to whoever made the watch list; `field` breaks ties, as in the reference.
    """

    kind: str
    field: str
    pattern: regex.Pattern[str]
    literals: tuple[str, ...] | None = None
    order: int = 0  # at one place, of one length: opens (0) come before closes (1); WEAK ones come last at any length

    @classmethod
    def literal(cls, kind: str, field: str, literals: Sequence[str], order: int = 0) -> Delimiter:
        unique = tuple(dict.fromkeys(literals))
        source = "|".join(regex.escape(literal) for literal in sorted(unique, key=len, reverse=True))
        return cls(kind, field, regex.compile(source, regex.DOTALL), unique, order)

    @classmethod
    def regex(cls, kind: str, field: str, source: str, order: int = 0) -> Delimiter:
        return cls(kind, field, regex.compile(source, regex.DOTALL), None, order)

    @property
    def looks_behind(self) -> bool:
        """Whether a match may depend on text before it, so that this must be kept."""
        return self.literals is None and _LOOKS_BEHIND.search(self.pattern.pattern) is not None

    @cached_property
    def probe(self) -> regex.Pattern[str] | None:
        """Never matches, but partly, at the end of a text: finds where a match may have begun."""
        if self.literals is not None:
            return None
        return regex.compile(f"(?:{self.pattern.pattern})(?=x)(?!x)", regex.DOTALL)

    def markers(self) -> tuple[str, ...]:
        """The whole markers (`<tool_call>`, `[TOOL_CALLS]`) that are written in it."""
        texts = self.literals
        if texts is None:
            texts = (_GROUP_HEAD.sub("(", self.pattern.pattern).replace("\\", ""),)
        return tuple(marker for text in texts for marker in _MARKER.findall(text))

    def rank(self, length: int) -> tuple[bool, int, int, str]:
        """Orders the delimiters that begin at one place; the least is the one that counts."""
        return self.order == WEAK, -length, self.order, self.field

    def tree(self) -> Node:
        """The syntax tree for the automaton; raises `Unsupported`."""
        return read(self.pattern.pattern)


@dataclass(frozen=True, slots=True)
class Found:
    """A delimiter in the text: which, its text, and the named groups that took part."""

    delimiter: Delimiter
    text: str
    groups: Mapping[str, str]
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


@dataclass(frozen=True, slots=True)
class Partial:
    """At the end of the output: text that had begun to be one of these delimiters."""

    delimiters: tuple[Delimiter, ...]
    text: str


class WatchList:
    """Delimiters to look for at once, compiled."""

    def __init__(self, delimiters: Sequence[Delimiter], *, plain: bool = True) -> None:
        """`plain=False` does without the automaton, for a template in which a pattern needs the text before it."""
        self.delimiters = tuple(delimiters)
        self.automaton: Automaton | None = None
        self.leads = False
        """Whether a delimiter may begin with white space."""
        self.first = ""
        """The character that every delimiter begins with, but for leading white space; empty if there are several."""
        self.begins: Callable[..., Any] | None = None
        """Finds where a delimiter may begin: its first two characters, or the first one at the end of a text (then the
        match is one character long). None: only the search for the delimiters themselves can tell."""
        if not delimiters:
            self.begins = re.compile("(?!)").search
            return
        try:
            if not plain:
                raise Unsupported("kept text")
            self.automaton = Automaton([delimiter.tree() for delimiter in delimiters])
        except Unsupported:
            return
        firsts, self.leads = beginnings(self.automaton)
        if len(firsts) == 1:
            self.first = next(iter(firsts)).literal or ""
        literal = all(chars is not None and chars.literal is not None for chars in _all_sets(firsts))
        source = "|".join(_beginning(first, seconds) for first, seconds in firsts.items())
        self.begins = (re if literal else regex).compile(source, re.DOTALL).search

    def find(self, text: str, at: int) -> int:
        """Where a delimiter may begin in `text`, from `at` on, not counting leading white space; -1 if nowhere."""
        assert self.begins is not None
        match = self.begins(text, at)
        return -1 if match is None else match.start()


def _all_sets(firsts: Mapping[CharSet, Iterable[CharSet | None]]) -> Iterator[CharSet | None]:
    for first, seconds in firsts.items():
        yield first
        yield from (second for second in seconds if second is not None)


def _beginning(first: CharSet, seconds: set[CharSet | None]) -> str:
    if None in seconds:
        return first.source
    return f"{first.source}(?:{'|'.join(sorted(second.source for second in seconds if second is not None))}|\\Z)"
