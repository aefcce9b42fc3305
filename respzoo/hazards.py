"""What in a pattern can make a search take longer than its text, found without the `regex` module.

Compiling alone can take for ever (20 s for `(?:(?:(?:a{200}){200}){200})b`), so the source is read first: all of the
module's syntax into the trees of `patterns`, what is refused at once by name (back-references, recursion, what hides a
search). Then each repeat is looked at: one inside another, of what may be empty, or one that can read the same text in
two ways, which is decided on the automaton's places.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import regex

from respzoo.automaton import Automaton
from respzoo.patterns import CharSet, Choice, Group, Node, Repeat, Series, Unsupported

__all__ = ["LIMITS", "Limits", "Reading", "examine_pattern"]


class Limits(NamedTuple):
    """How large an unread template may be. The largest that we know have a fifth of it."""

    characters: int = 32_768
    """Of all its keys and texts."""
    values: int = 2_000
    nesting: int = 24
    fields: int = 64
    literals: int = 64
    """Alternatives of one delimiter."""
    literal: int = 200
    """Characters of one."""
    patterns: int = 64
    pattern: int = 1_000
    """Characters of one."""
    groups: int = 16
    """Parentheses in parentheses."""
    repeats: int = 256
    """Of one counted repeat."""
    places: int = 500
    """Characters and classes of one pattern, its counted repeats written out; of all of them three times as many."""
    moves: int = 10_000
    """From each of them to the next."""
    loops: int = 64
    """Places inside one unbounded repeat."""


LIMITS = Limits()
_FEW = 8  # a repeat of at most so many is not taken for one without bound


class Reading(NamedTuple):
    """What was read of a pattern."""

    faults: tuple[str, ...] = ()
    """Each with a caret under its place."""
    places: int = 0
    moves: int = 0


class _Refused(Exception):
    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at = at
        self.why = why


def examine_pattern(source: str, limits: Limits = LIMITS) -> Reading:
    """Read the pattern of an unread template. Whether it is one at all is not asked here."""
    if len(source) > limits.pattern:
        return Reading((f"a pattern of {len(source)} characters; at most {limits.pattern}",))
    places = moves = 0
    try:
        reader = _Reader(source, limits)
        for tree in reader.read():
            if (size := _size(tree)) > limits.places:
                raise _Refused(0, f"its counted repeats unroll to {size} places; at most {limits.places}")
            for repeat in _repeats(tree):
                _check_repeat(repeat, reader, limits)
            try:
                automaton = Automaton([Series((tree, _NEVER))])
            except Unsupported as error:
                raise _Refused(0, str(error)) from error
            places, moves = places + len(automaton.nodes), moves + automaton.moves
            if moves > limits.moves:
                raise _Refused(0, f"its optional parts have {moves} ways from one to another; at most {limits.moves}")
    except _Refused as refused:
        return Reading((f"{refused.why}:\n{_caret(source, refused.at)}",))
    except regex.error as error:  # a class that is none
        return Reading((f"{error}:\n    {_shown(source)}",))
    return Reading((), places, moves)


def _caret(source: str, at: int) -> str:
    """The pattern's line with a caret under a place, line breaks escaped, cut on both sides if it is long."""
    start, end = max(0, at - 60), at + 40
    before = ("…" if start else "") + _shown(source[start:at])
    return f"    {before}{_shown(source[at:end])}{'…' if end < len(source) else ''}\n    {' ' * len(before)}^"


def _shown(text: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


_NEVER = CharSet("(?!)")  # behind a tree that may match the empty text, so that the automaton takes it
_COUNTED = re.compile(r"\{(?:(\d+)(,?)(\d*)|(,)(\d+))\}")
_FUZZY = re.compile(r"\{[\dides<=+,\s]*[ides][\dides<=+,\s]*(?::[^}]*)?\}")
_NUMBERED = re.compile(r"x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|0[0-7]{0,2}")
_PROPERTY = re.compile(r"[pP](?:\{[\w ^=:&-]*\}|\w)")
_SPECIAL_GROUPS = (
    # how it begins behind the parenthesis, and what it is
    (re.compile(r"\?P="), "a back-reference"),
    (re.compile(r"\?(?:R|[+-]?\d+|&|P>)"), "recursion"),
    (re.compile(r"\?>"), "an atomic group"),
    (re.compile(r"\?\|"), "a branch reset"),
    (re.compile(r"\?\("), "a conditional group"),
    (re.compile(r"\*"), "a verb"),
)
_SPECIAL_ESCAPES = {
    "g": "a back-reference or recursion", "k": "a back-reference", "L": "a named list", "N": r"\N{…}",
    "G": r"\G", "K": r"\K", "R": r"\R", "X": r"\X",
}  # fmt: skip


class _Reader:
    """Reads all that the `regex` module does, or refuses it; the trees hold what text is consumed."""

    def __init__(self, source: str, limits: Limits) -> None:
        self.source = source
        self.limits = limits
        self.at = 0
        self.depth = 0
        self.ignore_case = False
        self.looks: list[Node] = []
        self.repeats: list[tuple[Repeat, int]] = []
        """Every repeat, and where it begins in the source."""

    def read(self) -> list[Node]:
        """The pattern's tree, then those of its lookarounds."""
        tree = self.choice()
        if self.at < len(self.source):
            raise _Refused(self.at, "a parenthesis that was not opened")
        return [tree, *self.looks]

    def begin(self, repeat: Repeat) -> int:
        return next(start for one, start in self.repeats if one is repeat)

    def peek(self, size: int = 1) -> str:
        return self.source[self.at : self.at + size]

    def choice(self) -> Node:
        branches = [self.series()]
        while self.peek() == "|":
            self.at += 1
            branches.append(self.series())
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def series(self) -> Series:
        items: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            start = self.at
            items.append(self.quantified(self.atom(), start))
        return Series(tuple(items))

    def quantified(self, item: Node, start: int) -> Node:
        sign = self.at
        if self.peek() and self.peek() in "*+?":
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self.peek()]
            self.at += 1
        elif counted := _COUNTED.match(self.source, self.at):
            self.at = counted.end()
            low = int(counted[1] or 0)
            high = int(counted[5]) if counted[4] else int(counted[3]) if counted[3] else None if counted[2] else low
            if max(low, high or 0) > self.limits.repeats:
                raise _Refused(sign, f"a count of {max(low, high or 0)}; at most {self.limits.repeats}")
        elif _FUZZY.match(self.source, self.at):
            raise _Refused(sign, "a fuzzy match")
        else:
            return item
        lazy = self.peek() == "?"
        self.at += lazy
        if self.peek() == "+":
            raise _Refused(sign, "a possessive quantifier")
        if self.peek() in ("*", "?") or _COUNTED.match(self.source, self.at):
            raise _Refused(self.at, "a quantifier behind a quantifier")
        repeat = Repeat(item, low, high, lazy)
        self.repeats.append((repeat, start))
        return repeat

    def atom(self) -> Node:
        start = self.at
        char = self.peek()
        self.at += 1
        if char == "(":
            return self.group(start)
        if char == "[":
            return self.char_class(start)
        if char == "\\":
            return self.escape(start)
        if char in "^$":
            return Series(())
        if char in "*+?":
            raise _Refused(start, "a quantifier with nothing before it")
        return CharSet(".") if char == "." else self.literal(char)

    def literal(self, char: str) -> CharSet:
        source = re.escape(char)
        if self.ignore_case:
            return CharSet(f"(?i:{source})")
        return CharSet(source, char, char.isspace())

    def group(self, start: int) -> Node:
        self.depth += 1
        if self.depth > self.limits.groups:
            raise _Refused(start, f"groups nested deeper than {self.limits.groups}")
        for head, what in _SPECIAL_GROUPS:
            if head.match(self.source, self.at):
                raise _Refused(start, what)
        look = flags = None
        before = self.ignore_case
        if self.peek() == "?":
            head = re.compile(r"\?(?:#[^)]*(?=\))|(<?[=!])|:|P?<[^\W\d]\w*>|([ims]+)(:?))").match(self.source, self.at)
            if head is None:
                raise _Refused(start, "a special group")
            self.at = head.end()
            look, flags = head[1], head[2]
            if flags and "i" in flags:
                self.ignore_case = True
            if flags and not head[3]:
                before = self.ignore_case  # it holds from here on, as if for the whole pattern
        item = self.choice()
        if self.peek() != ")":
            raise _Refused(start, "a parenthesis that is not closed")
        self.at += 1
        self.depth -= 1
        self.ignore_case = before
        if look is None:
            return Group(item, None, start, self.at)
        if look.startswith("<") and len(set(_widths(item))) != 1:
            raise _Refused(start, "a lookbehind of no fixed width")
        self.looks.append(item)
        return Series(())

    def escape(self, start: int) -> Node:
        char = self.peek()
        if not char:
            raise _Refused(start, "a backslash at the end")
        if numbered := _NUMBERED.match(self.source, self.at):
            self.at = numbered.end()
            text = numbered[0]
            return self.literal(chr(int(text[1:] or "0", 8 if text[0] == "0" else 16) % 0x110000))
        if prop := _PROPERTY.match(self.source, self.at):
            self.at = prop.end()
            return CharSet("\\" + prop[0])
        self.at += 1
        if char.isdigit():
            raise _Refused(start, "a back-reference")
        if char in _SPECIAL_ESCAPES:
            raise _Refused(start, _SPECIAL_ESCAPES[char])
        if char in "AZbBmM":
            return Series(())
        if char in "sSdDwWhH":
            return CharSet("\\" + char, spaces_only=char == "s")
        return self.literal({"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}.get(char, char))

    def char_class(self, start: int) -> CharSet:
        self.at += self.peek() == "^"
        first = True
        while self.peek() != "]" or first:
            if not self.peek():
                raise _Refused(start, "a class that is not closed")
            if self.peek(2) in ("--", "||", "&&", "~~") or (self.peek() == "[" and self.peek(2)[1:] in ("[", ":")):
                raise _Refused(self.at, "a set operation or a class in a class")
            self.at += 2 if self.peek() == "\\" else 1
            first = False
        self.at += 1
        source = self.source[start : self.at]
        return CharSet(f"(?i:{source})" if self.ignore_case else source)


def _size(node: Node) -> int:
    """How many places a tree has when its counted repeats are written out."""
    match node:
        case CharSet():
            return 1
        case Group():
            return _size(node.item)
        case Series():
            return sum(map(_size, node.items))
        case Choice():
            return sum(map(_size, node.branches))
        case Repeat():
            return _size(node.item) * max(1, node.low + (node.high is None), node.high or 0)


def _widths(node: Node) -> tuple[int, float]:
    """The least and the most characters that a tree consumes."""
    match node:
        case CharSet():
            return 1, 1
        case Group():
            return _widths(node.item)
        case Series():
            widths = [_widths(item) for item in node.items]
            return sum(low for low, _ in widths), sum(high for _, high in widths)
        case Choice():
            widths = [_widths(branch) for branch in node.branches]
            return min(low for low, _ in widths), max(high for _, high in widths)
        case Repeat():
            low, high = _widths(node.item)
            return low * node.low, (high * (float("inf") if node.high is None else node.high) if high else 0)


def _repeats(node: Node) -> Iterator[Repeat]:
    """All repeats in a tree, the outer ones first."""
    match node:
        case Repeat():
            yield node
            yield from _repeats(node.item)
        case Group():
            yield from _repeats(node.item)
        case Series():
            for item in node.items:
                yield from _repeats(item)
        case Choice():
            for branch in node.branches:
                yield from _repeats(branch)
        case CharSet():
            pass


def _has_choice(node: Node) -> bool:
    match node:
        case CharSet():
            return False
        case Group():
            return _has_choice(node.item)
        case Series():
            return any(map(_has_choice, node.items))
        case Choice():
            return True
        case Repeat():
            return node.low != node.high or _has_choice(node.item)


def _is_long(repeat: Repeat) -> bool:
    return repeat.high is None or repeat.high > _FEW


def _check_repeat(repeat: Repeat, reader: _Reader, limits: Limits) -> None:
    """Refuse a long repeat whose text could be cut into turns in more ways than one: trying them all has no end."""
    if not _is_long(repeat):
        return
    at = reader.begin(repeat)
    for inner in _repeats(repeat.item):
        if _is_long(inner) and inner.low != inner.high:
            what = "an unbounded repeat" if repeat.high is None and inner.high is None else "a repeat"
            raise _Refused(reader.begin(inner), f"{what} inside another, which begins at {at}")
    if _widths(repeat.item)[0] == 0:
        raise _Refused(at, "a repeat of what may be empty")
    if not _has_choice(repeat.item):
        return  # one way to read a turn
    automaton = Automaton([Series((_loosened(repeat), _NEVER))])
    loops = _loops(automaton)
    if len(loops) > limits.loops:
        raise _Refused(at, f"a repeat over {len(loops)} places; at most {limits.loops}")
    if _ambiguous(automaton, loops):
        raise _Refused(at, "a repeat that can read one text in two ways")


def _loosened(node: Node) -> Node:
    """The same with every long repeat unbounded, so that how it goes round does not depend on the count."""
    match node:
        case CharSet():
            return node
        case Group():
            return _loosened(node.item)
        case Series():
            return Series(tuple(map(_loosened, node.items)))
        case Choice():
            return Choice(tuple(map(_loosened, node.branches)))
        case Repeat():
            item = _loosened(node.item)
            if _is_long(node):
                return Repeat(item, min(node.low, 1), None, False)
            return Repeat(item, node.low, node.high, False)


def _reached(follow: Mapping[Any, Iterable[Any]], start: Any) -> set[Any]:
    found: set[Any] = set()
    stack = list(follow[start])
    while stack:
        one = stack.pop()
        if one not in found:
            found.add(one)
            stack.extend(follow[one])
    return found


def _loops(automaton: Automaton) -> list[int]:
    """The places from which a way leads back to them."""
    follow = dict(enumerate(automaton.follow))
    return [place for place in follow if place in _reached(follow, place)]


def _ambiguous(automaton: Automaton, loops: list[int]) -> bool:
    """Whether two ways from a place back to it read the same text: the pair of equal places leads, through a pair of
    different ones, back to itself."""
    inside = set(loops)
    sets = {place: automaton.nodes[place] for place in loops}
    alike = {(one, two): _overlap(sets[one], sets[two]) for one in loops for two in loops if one <= two}

    def after(pair: tuple[int, int]) -> list[tuple[int, int]]:
        nexts = [[place for place in automaton.follow[one] if place in inside] for one in pair]
        return [(one, two) for one in nexts[0] for two in nexts[1] if alike[min(one, two), max(one, two)]]

    follow = {(one, two): after((one, two)) for one in loops for two in loops if alike[min(one, two), max(one, two)]}
    for place in loops:
        for pair in _reached(follow, (place, place)):
            if pair[0] != pair[1] and (place, place) in _reached(follow, pair):
                return True
    return False


_SAMPLE = [*map(chr, range(0x20, 0x7F)), "\n", "\t", "\r", "\xa0", "é", "Ω", "中", "｜", "\u2581", "😀"]


def _overlap(one: CharSet | None, two: CharSet | None) -> bool:
    """Whether two classes share a character; of a sample, where neither is a literal."""
    if one is None or two is None:
        return False
    if one.literal is not None:
        return two.accepts(one.literal)
    if two.literal is not None:
        return one.accepts(two.literal)
    return one == two or any(one.accepts(char) and two.accepts(char) for char in _SAMPLE)
