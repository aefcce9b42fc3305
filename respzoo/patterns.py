"""Read a delimiter's regular expression into a tree.

Only the common part of the `regex` module's syntax is read: literals, classes, groups, choices, repeats. What else
there is (lookarounds, anchors, back-references, flags) raises `Unsupported`, and the caller does without the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import regex

__all__ = [
    "CharSet",
    "Choice",
    "Group",
    "Node",
    "Repeat",
    "Series",
    "Unsupported",
    "groups",
    "is_lazy",
    "is_space",
    "read",
]


class Unsupported(ValueError):
    """The pattern uses syntax that is not read."""


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
_LOOKAROUND = regex.compile(r"\?<?[=!]")
_MOST_COPIES = 256  # a counted repeat is unrolled; past this the automaton would be larger than the texts it reads


class _Reader:
    def __init__(self, source: str, *, skeleton: bool) -> None:
        self.source = source
        self.skeleton = skeleton
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
        if self.skeleton and char in "^$":
            return Series(())
        if char in "^$*+?{":
            raise Unsupported(f"{char!r}")
        return CharSet(regex.escape(char), char, char.isspace())

    def group(self, start: int) -> Node:
        name = None
        captures = True
        if self.peek() == "?":
            look = _LOOKAROUND.match(self.source, self.at)
            if self.skeleton and look is not None:
                self.at = look.end()
                self.choice()
                self.at += 1
                return Series(())
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

    def escape(self) -> Node:
        char = self.source[self.at]
        self.at += 1
        if char in _ESCAPED_CLASSES:
            return CharSet("\\" + char, spaces_only=char == "s")
        if char in _ESCAPED_CHARS:
            return CharSet(regex.escape(_ESCAPED_CHARS[char]), _ESCAPED_CHARS[char], char != "a")
        if self.skeleton and char in "AZbB":
            return Series(())
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


def read(source: str, *, skeleton: bool = False) -> Node:
    """The syntax tree of a pattern that the `regex` module has compiled (DOTALL, no other flag).

    With `skeleton`, what consumes no text (lookarounds, anchors) is left out: the text of every match of the pattern is
    then one of the tree, though not the other way round.

    Raises:
        Unsupported: it uses other syntax.
    """
    reader = _Reader(source, skeleton=skeleton)
    try:
        tree = reader.choice()
    except IndexError as error:
        raise Unsupported("unexpected end") from error
    except RecursionError as error:
        raise Unsupported("groups nested too deeply") from error
    if reader.at != len(source):
        raise Unsupported("unbalanced parentheses")
    return tree


def groups(node: Node) -> Iterator[Group]:
    """The capturing groups in a tree."""
    match node:
        case CharSet():
            return
        case Group():
            yield node
            yield from groups(node.item)
        case Series():
            for item in node.items:
                yield from groups(item)
        case Choice():
            for branch in node.branches:
                yield from groups(branch)
        case Repeat():
            yield from groups(node.item)


def is_lazy(node: Node) -> bool:
    """Whether a repeat in a tree takes as little text as it can."""
    match node:
        case Repeat():
            return node.lazy or is_lazy(node.item)
        case Group():
            return is_lazy(node.item)
        case Series():
            return any(map(is_lazy, node.items))
        case Choice():
            return any(map(is_lazy, node.branches))
        case CharSet():
            return False


def is_space(node: Node) -> bool:
    """Whether a tree is one character of any white space."""
    return node == CharSet("\\s", spaces_only=True)
