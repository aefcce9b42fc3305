"""Calls written as JSON: the name before or behind the arguments, at any depth, one call or many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from respzoo.arguments.call import Call
from respzoo.arguments.route import Path, Route
from respzoo.arguments.token_calls import TokenCalls
from respzoo.arguments.tokens import Syntax, Token, Tokens
from respzoo.arguments.value import ValueText

__all__ = ["JsonCalls", "Shape"]


@dataclass(frozen=True)
class Shape:
    """Where in a region its calls are, and how it writes strings."""

    route: Route
    syntax: Syntax
    each: bool = False
    """They are the items of a list."""
    pairs: bool = False
    """They are the pairs of each object."""
    sequence: bool = False
    """They are the values of a sequence."""

    @cached_property
    def roles(self) -> Sequence[tuple[str, tuple[Path, ...]]]:
        """What is looked for in an item, and at which places."""
        route = self.route
        return tuple((role, getattr(route, role).paths) for role in ("arguments", "name", "id"))

    @cached_property
    def deepest(self) -> int:
        """How far below an item anything is looked for."""
        return max((len(path) for _, paths in self.roles for path in paths), default=0)


_JSON = Syntax()


class JsonCalls(TokenCalls):
    """Follows the calls of one region."""

    __slots__ = (
        "_arguments", "_base", "_captures", "_collected", "_frames", "_inner", "_key_is_next", "_role", "_shape",
    )  # fmt: skip

    def __init__(self, shape: Shape, captures: Mapping[str, str]) -> None:
        super().__init__(shape.syntax)
        self._shape = shape
        self._captures = captures
        self._frames: list[str | None] = []  # the open brackets: in an object, the last key; of a list, None
        self._key_is_next = False  # whether the innermost is an object that awaits a key
        self._base = 0  # how many brackets stand around an item
        self._collected: list[str] | None = None  # a string that is a key, a name or an id
        self._role = ""  # what the string at hand is
        self._arguments: ValueText | None = None
        self._inner: Tokens | None = None  # of arguments that are JSON in a string

    @property
    def _in_value(self) -> bool:
        return self._arguments is not None and self._inner is None

    def _token(self, token: Token) -> None:
        if self._arguments is not None and self._inner is None:
            self._arguments.token(token)
            self._failed |= self._arguments.failed
            if self._arguments.done:
                self._arguments = None
            return
        kind, text = token
        if kind == "string":
            self._role = "key" if self._key_is_next else self._begin()
            if self._role == "arguments":
                self._inner = Tokens(_JSON)
            elif self._role:
                self._collected = []
            elif not self._frames:
                self._failed = True  # no calls
        elif kind == "part":
            if self._inner is not None:
                self._inside(text)
            elif self._collected is not None:
                self._collected.append(text)
        elif kind == "end":
            self._string_ends()
        elif kind == "word":
            if self._key_is_next:
                self._frames[-1] = text
            elif self._begin() == "id" and text.lstrip("-").isdigit():
                self.calls[-1].id = str(int(text))
            elif not self._frames:
                self._failed = True
        else:
            self._punct(text)

    def _string_ends(self) -> None:
        text = "".join(self._collected or ())
        role, self._role, self._collected = self._role, "", None
        self._inner = self._arguments = None
        if role == "key":
            self._frames[-1] = text
        elif role == "name":
            self.calls[-1].name = self.calls[-1].name or text
        elif role == "id":
            self.calls[-1].id = text

    def _punct(self, char: str) -> None:
        frames = self._frames
        if char in "{[":
            if not frames and char == "[" and self._shape.each and not self._shape.sequence:
                self._base = 1
            elif self._begin() == "arguments":
                if char == "[":
                    self._failed = True
                    return
                self._arguments = ValueText(self.calls[-1], bare_keys=self._shape.syntax.bare_keys)
                self._arguments.token(("punct", char))
                return
            self._key_is_next = char == "{"
            frames.append("" if self._key_is_next else None)
        elif not frames:
            return  # between the values of a sequence
        elif char in "}]":
            frames.pop()
            self._key_is_next = False
        elif char == ":":
            self._key_is_next = False
        elif char == ",":
            self._key_is_next = frames[-1] is not None

    def _begin(self) -> str:
        """A value begins. Returns what it is of a call: its name, id or arguments, or nothing."""
        depth = len(self._frames)
        shape = self._shape
        if shape.pairs:
            if depth == self._base + 1 and (name := self._frames[-1]) is not None:
                self.calls.append(Call(name))
                return "arguments"
            return ""
        if depth == self._base:
            caught = self._captures
            self.calls.append(Call(shape.route.name.caught(caught), shape.route.id.caught(caught)))
        if depth - self._base > shape.deepest:
            return ""
        path = tuple(self._frames[self._base :])  # a list in it is on no path
        for role, paths in shape.roles:
            if path in paths:
                return role
        return ""

    def _inside(self, text: str) -> None:
        """More of the arguments that are JSON in a string."""
        assert self._inner is not None
        for token in self._inner.feed(text):
            if self._arguments is None:
                if token != ("punct", "{"):
                    self._failed = True
                    return
                self._arguments = ValueText(self.calls[-1])
            self._arguments.token(token)
        self._failed |= self._inner.failed
