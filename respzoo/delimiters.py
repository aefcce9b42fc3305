"""What opens or closes a region, and the lists of such delimiters that are looked for at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import regex

from respzoo.automaton import Automaton, beginnings
from respzoo.known import Known
from respzoo.patterns import CharSet, Node, Repeat, Series, Unsupported, is_lazy, is_space, read

__all__ = ["WEAK", "Delimiter", "Found", "Partial", "WatchList"]

_LOOKS_BEHIND = re.compile(r"\(\?<[=!]|(?<!\\)(?:\\\\)*\\[bBAGKmM]|(?<![\[\\])\^")
_LAZY = re.compile(r"[*+?}]\?")
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
    def has_groups(self) -> bool:
        return bool(self.pattern.groupindex)

    @cached_property
    def skeleton(self) -> Node | None:
        """The tree of what it consumes, without what it only looks at. None: it cannot be read even so."""
        try:
            return read(self.pattern.pattern, skeleton=True)
        except Unsupported:
            return None

    @cached_property
    def outline(self) -> Outline | None:
        """Where it may begin, for a pattern that the automaton does not know. None: anywhere."""
        if self.skeleton is None:
            return None
        try:
            return Outline([Automaton([self.skeleton])])
        except Unsupported:
            return None

    @cached_property
    def sweeps(self) -> bool:
        """Whether it begins with `\\s*`: where it fails at a white space's start, it fails at all of that."""
        tree = self.skeleton
        first = tree.items[0] if isinstance(tree, Series) and tree.items else None
        return isinstance(first, Repeat) and first == Repeat(first.item, 0, None, False) and is_space(first.item)

    @cached_property
    def lazy(self) -> bool:
        """Whether a part of it takes as little text as it can."""
        if self.skeleton is None:
            return _LAZY.search(self.pattern.pattern) is not None
        return is_lazy(self.skeleton)

    @cached_property
    def probe(self) -> regex.Pattern[str]:
        """Never matches, but partly, at the end of a text: finds where a match may have begun."""
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


class Found(NamedTuple):
    """A delimiter in the text: which, its text, and the named groups that took part, with their places in it."""

    delimiter: Delimiter
    text: str
    groups: Mapping[str, str]
    spans: Mapping[str, tuple[int, int]]


class Partial(NamedTuple):
    """At the end of the output: text that had begun to be one of these delimiters."""

    delimiters: tuple[Delimiter, ...]
    text: str


class WatchList:
    """Delimiters to look for at once, compiled.

    Attributes:
        automaton: finds them. None: a pattern is beyond it, and the `regex` module does.
        leads: whether one may begin with white space.
        first: the character that each begins with, but for leading white space; empty if there are several.
        begins: finds where one may begin: its first two characters, or the first at the end of a text (then the match
            is one character long). None: anywhere.
        known: tokens in which none begins.
    """

    def __init__(self, delimiters: Sequence[Delimiter], *, plain: bool = True) -> None:
        """`plain=False` does without the automaton, for a template in which a pattern needs the text before it."""
        self.delimiters = tuple(delimiters)
        self.automaton: Automaton | None = None
        self.leads = False
        self.first = ""
        self.begins: Callable[..., Any] | None = None
        self.known = Known()
        if not delimiters:
            self.begins = re.compile("(?!)").search
            return
        try:
            if not plain:
                raise Unsupported("kept text")
            self.automaton = Automaton([delimiter.tree() for delimiter in delimiters])
            outline = Outline([self.automaton])
        except Unsupported:
            outlines = [delimiter.outline for delimiter in delimiters]
            if None in outlines:
                return
            outline = Outline([one for each in outlines if each is not None for one in each.automata])
        self.leads, self.first, self.begins = outline.leads, outline.first, outline.begins


class Outline:
    """Where the patterns of some automata may begin; the attributes are `WatchList`'s."""

    def __init__(self, automata: Sequence[Automaton]) -> None:
        self.automata = automata
        self.leads = False
        firsts: dict[CharSet, set[CharSet | None]] = {}
        for automaton in automata:
            more, leads = beginnings(automaton)
            self.leads |= leads
            for first, seconds in more.items():
                firsts.setdefault(first, set()).update(seconds)
        self.first = (next(iter(firsts)).literal or "") if len(firsts) == 1 else ""
        sets = [*firsts, *(second for seconds in firsts.values() for second in seconds)]
        literal = all(chars is None or chars.literal is not None for chars in sets)
        source = "|".join(_beginning(first, seconds) for first, seconds in firsts.items())
        self.begins: Callable[..., Any] = (re if literal else regex).compile(source, re.DOTALL).search


def _beginning(first: CharSet, seconds: set[CharSet | None]) -> str:
    if None in seconds:
        return first.source
    return f"{first.source}(?:{'|'.join(sorted(second.source for second in seconds if second is not None))}|\\Z)"
