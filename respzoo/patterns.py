"""Read a delimiter's regular expression and run it over a text that is still growing.

A delimiter must be found in a stream: at every character the parser has to know whether the text so far is a match,
may become one, or cannot. Asking a regex engine means asking anew for each token, over all that is held back. So the
common part of the syntax is read into a tree here, the tree becomes a small automaton, and the automaton sees each
character once. It keeps the order in which a backtracking engine would try its alternatives (greedy, lazy, first
branch first), so that it ends a match exactly where the `regex` module does; what it does not know (lookarounds,
anchors, back-references, flags) raises `Unsupported`, and the caller falls back on the module's partial matching.

The automaton is a lazy DFA: its states are made when a text first reaches them and are shared by all streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import regex

__all__ = ["Automaton", "CharSet", "Group", "Node", "Repeat", "Series", "State", "Unsupported", "first_sets", "read"]


class Unsupported(ValueError):
    """The pattern uses syntax that the automaton does not know."""


# --------------------------------------------------------------------------------------------------- the syntax tree


@dataclass(frozen=True)
class CharSet:
    """One character: a literal, or a class given by its source (`\\s`, `[^<]`, `.`)."""

    source: str
    literal: str | None = None
    spaces_only: bool = False

    @cached_property
    def accepts(self) -> Callable[[str], bool]:
        if self.literal is not None:
            return self.literal.__eq__
        if self.source == ".":
            return lambda char: True
        match = regex.compile(self.source, regex.DOTALL).fullmatch
        return lambda char: match(char) is not None


@dataclass(frozen=True)
class Series:
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    branches: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    item: Node
    low: int
    high: int | None
    lazy: bool


@dataclass(frozen=True)
class Group:
    """A capturing group; `start` and `end` are its place in the pattern's source, parentheses and all."""

    item: Node
    name: str | None
    start: int
    end: int


Node = CharSet | Series | Choice | Repeat | Group

_ESCAPED_CLASSES = "sSdDwW"
_ESCAPED_CHARS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_QUANTIFIER = regex.compile(r"[*+?]|\{(\d*)(,?)(\d*)\}")
_MOST_COPIES = 256  # a counted repeat is unrolled; past this the automaton would be larger than the texts it reads


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0

    def peek(self) -> str:
        return self.source[self.at : self.at + 1]

    def choice(self) -> Node:
        branches = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            branches.append(self.sequence())
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def sequence(self) -> Series:
        items: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            items.append(self.quantified(self.atom()))
        return Series(tuple(items))

    def quantified(self, item: Node) -> Node:
        match = _QUANTIFIER.match(self.source, self.at)
        if match is None:
            return item
        self.at = match.end()
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(match[0], (0, 0))
        if match[0][0] == "{":
            if not match[1] and not match[3]:
                raise Unsupported("a quantifier without numbers")
            low = int(match[1] or 0)
            high = (int(match[3]) if match[3] else None) if match[2] else low
        if max(low, high or 0) > _MOST_COPIES:
            raise Unsupported(f"more than {_MOST_COPIES} counted repeats")
        lazy = self.peek() == "?"
        if lazy:
            self.at += 1
        if self.peek() in ("*", "+", "?", "{"):
            raise Unsupported("a possessive or doubled quantifier")
        return Repeat(item, low, high, lazy)

    def atom(self) -> Node:
        char = self.source[self.at]
        start = self.at
        self.at += 1
        if char == "(":
            return self.group(start)
        if char == "[":
            return self.char_class(start)
        if char == "\\":
            return self.escape()
        if char == ".":
            return CharSet(".")
        if char in "^$*+?{":
            raise Unsupported(f"{char!r}")
        return CharSet(regex.escape(char), char, char.isspace())

    def group(self, start: int) -> Node:
        name = None
        captures = True
        if self.peek() == "?":
            head = regex.compile(r"\?(?:(:)|P?<([A-Za-z_]\w*)>)").match(self.source, self.at)
            if head is None:
                raise Unsupported("a lookaround, flag or special group")
            self.at = head.end()
            captures, name = head[1] is None, head[2]
        elif self.peek() == "*":
            raise Unsupported("a verb")
        item = self.choice()
        self.at += 1  # the closing parenthesis: the pattern has compiled, so it is there
        return Group(item, name, start, self.at) if captures else item

    def escape(self) -> CharSet:
        char = self.source[self.at]
        self.at += 1
        if char in _ESCAPED_CLASSES:
            return CharSet("\\" + char, spaces_only=char == "s")
        if char in _ESCAPED_CHARS:
            return CharSet(regex.escape(_ESCAPED_CHARS[char]), _ESCAPED_CHARS[char], char not in "a")
        if char.isalnum():
            raise Unsupported(f"'\\{char}'")
        return CharSet(regex.escape(char), char, char.isspace())

    def char_class(self, start: int) -> CharSet:
        negated = self.peek() == "^"
        self.at += negated
        spaces = not negated
        first = True
        while self.peek() != "]" or first:
            first = False
            char = self.source[self.at]
            if char == "\\":
                item = self.source[self.at : self.at + 2]
                self.at += 2
                if item[1].isalnum() and item[1] not in _ESCAPED_CLASSES and item[1] not in _ESCAPED_CHARS:
                    raise Unsupported(f"'{item}' in a class")
                spaces = spaces and item[1] in "sntrfv "
            elif char == "[" or self.source.startswith(("--", "||", "&&", "~~"), self.at):
                raise Unsupported("a set operation or a nested class")
            else:
                self.at += 1
                spaces = spaces and char.isspace()
        self.at += 1
        return CharSet(self.source[start : self.at], spaces_only=spaces)


def read(source: str) -> Node:
    """The syntax tree of a pattern that the `regex` module has compiled (DOTALL, no other flag).

    Raises:
        Unsupported: it uses syntax that the automaton does not know.
    """
    reader = _Reader(source)
    try:
        tree = reader.choice()
    except IndexError as error:
        raise Unsupported("unexpected end") from error
    if reader.at != len(source):
        raise Unsupported("unbalanced parentheses")
    return tree


# ------------------------------------------------------------------------------------------------- the automaton

# A program is a list of nodes, each (char set, next nodes in order of preference). A node with the set None is where
# a pattern has matched. Empty moves are resolved while it is built: `tails` are what may follow, in order.


class State:
    """What the automaton knows after some text: the places it may be at, the preferred first, pattern by pattern.

    Attributes:
        matched: the patterns of which the text so far is a match.
        ended: whether no further text can change that: nothing preferred to the match is still possible.
        pending: the patterns that more text could still complete.
    """

    __slots__ = ("automaton", "ended", "matched", "next", "pending", "places")

    def __init__(self, automaton: Automaton, places: tuple[int, ...]) -> None:
        self.automaton = automaton
        self.places = places
        nodes, owners = automaton.nodes, automaton.owners
        self.matched = tuple(owners[place] for place in places if nodes[place] is None)
        self.pending = tuple(sorted({owners[place] for place in places if nodes[place] is not None}))
        self.ended = not self.pending
        self.next: dict[str, State | None] = {}

    def step(self, char: str) -> State | None:
        """The state after one more character; None when no pattern can match any more."""
        try:
            return self.next[char]
        except KeyError:
            return self.automaton.extend(self, char)


class Automaton:
    """All patterns of a watch list at once. Pattern numbers are their places in `trees`."""

    def __init__(self, trees: Sequence[Node]) -> None:
        self.nodes: list[CharSet | None] = []
        self.owners: list[int] = []
        self.follow: list[tuple[int, ...]] = []
        self._states: dict[tuple[int, ...], State] = {}
        starts: list[int] = []
        for owner, tree in enumerate(trees):
            self._owner = owner
            starts.extend(self._build(tree, (self._add(None, ()),)))
            if len(self.nodes) > 20_000:
                raise Unsupported("too large an automaton")
        self.start = self.state(tuple(dict.fromkeys(starts)))
        if self.start.matched:
            raise Unsupported("a pattern that matches the empty text")

    def _add(self, chars: CharSet | None, follow: tuple[int, ...]) -> int:
        self.nodes.append(chars)
        self.owners.append(self._owner)
        self.follow.append(follow)
        return len(self.nodes) - 1

    def _build(self, node: Node, tails: tuple[int, ...]) -> tuple[int, ...]:
        """Lay `node` before `tails`; returns its entries, in order of preference."""
        match node:
            case CharSet():
                return (self._add(node, tails),)
            case Group():
                return self._build(node.item, tails)
            case Series():
                for item in reversed(node.items):
                    tails = self._build(item, tails)
                return tails
            case Choice():
                entries = [entry for branch in node.branches for entry in self._build(branch, tails)]
                return tuple(dict.fromkeys(entries))
            case Repeat():
                return self._repeat(node, tails)

    def _repeat(self, node: Repeat, tails: tuple[int, ...]) -> tuple[int, ...]:
        if node.high is None:
            # a loop: its body is followed by itself or by the tails, whichever is preferred
            loop = self._add(CharSet("(?!)"), ())  # a place that is never entered holds the loop's follow list
            body = self._build(node.item, (loop,))
            if loop in body:
                raise Unsupported("a repeat of what may be empty")
            around = self._prefer(body, tails, node.lazy)
            for index in range(loop + 1, len(self.nodes)):
                if loop in self.follow[index]:
                    self.follow[index] = _splice(self.follow[index], loop, around)
            entries = around
            copies = node.low
            if copies == 0:
                return entries
            tails = entries
            copies -= 1
            entries = self._build(node.item, tails)
        else:
            entries = tails
            for _ in range(node.high - node.low):
                entries = self._prefer(self._build(node.item, entries), tails, node.lazy)
            copies = node.low
        for _ in range(copies):
            entries = self._build(node.item, entries)
        return entries

    @staticmethod
    def _prefer(body: tuple[int, ...], tails: tuple[int, ...], lazy: bool) -> tuple[int, ...]:
        return tuple(dict.fromkeys(tails + body if lazy else body + tails))

    def state(self, places: tuple[int, ...]) -> State:
        """The state for these places; after a match, what is less preferred in the same pattern is cut off."""
        kept: list[int] = []
        done: set[int] = set()
        for place in places:
            owner = self.owners[place]
            if owner in done:
                continue
            kept.append(place)
            if self.nodes[place] is None:
                done.add(owner)
        key = tuple(kept)
        state = self._states.get(key)
        if state is None:
            if len(self._states) > 5_000:  # a pattern with very many states: forget and begin anew
                self._states.clear()
            state = self._states.setdefault(key, State(self, key))
        return state

    def extend(self, state: State, char: str) -> State | None:
        places: dict[int, None] = {}
        for place in state.places:
            chars = self.nodes[place]
            if chars is not None and chars.accepts(char):
                places.update(dict.fromkeys(self.follow[place]))
        result = self.state(tuple(places)) if places else None
        if len(state.next) > 2_000:  # a class met by a large alphabet
            state.next.clear()
        state.next[char] = result
        return result


def _splice(follow: tuple[int, ...], loop: int, around: tuple[int, ...]) -> tuple[int, ...]:
    at = follow.index(loop)
    return tuple(dict.fromkeys(follow[:at] + around + follow[at + 1 :]))


def first_sets(automaton: Automaton) -> tuple[list[CharSet], bool]:
    """What a match can begin with: the sets of its first character that is not leading white space, and whether any
    white space may lead. White space with which a match could also end counts as a first character itself."""
    nodes, follow = automaton.nodes, automaton.follow
    firsts: dict[CharSet, None] = {}
    leads = False
    seen: set[int] = set()

    def visit(places: tuple[int, ...]) -> Iterator[int]:
        for place in places:
            if place not in seen:
                seen.add(place)
                yield place

    stack = list(visit(automaton.start.places))
    while stack:
        place = stack.pop()
        chars = nodes[place]
        if chars is None:
            continue
        if chars.spaces_only and not any(nodes[after] is None for after in follow[place]):
            leads = True
            stack.extend(visit(follow[place]))
        else:
            firsts[chars] = None
    return list(firsts), leads
