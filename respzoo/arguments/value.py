"""A value's JSON text as `json.dumps` would write it, from its tokens."""

from __future__ import annotations

import json
from collections.abc import Callable

from respzoo.arguments.call import dump_arguments, escape
from respzoo.arguments.tokens import Token
from respzoo.content import load_strictly, read_literal

__all__ = ["ValueText"]


class ValueText:
    """Writes one object or list, all but its last bracket.

    Attributes:
        done: the last bracket has been read.
        failed: this is no value; nothing more is written.
    """

    __slots__ = ("_depth", "_python", "_word", "_write", "done", "failed")

    def __init__(self, write: Callable[[str], None], *, python: bool = False, depth: int = 0) -> None:
        """`depth`: how many brackets are open already, whose end is somebody else's."""
        self._write = write
        self._python = python
        self._depth = depth
        self._word: str | None = None
        self.done = False
        self.failed = False

    @property
    def depth(self) -> int:
        return self._depth

    def token(self, token: Token) -> None:
        kind, text = token
        if kind != "word" and not (kind == "punct" and text == ":"):
            self._flush()
        if self.failed or self.done:
            return
        if kind == "part":
            self._write(escape(text))
        elif kind in ("string", "end"):
            self._write('"')
        elif kind == "word":
            self._word = text
        elif text in "{[":
            self._depth += 1
            self._write(text)
        elif text in "}]":
            self._depth -= 1
            if self._depth:
                self._write(text)
            else:
                self.done = True
        elif text == ",":
            self._write(", ")
        elif text == ":":
            if self._word is not None:  # a key without quotes
                key, self._word = self._word, None
                self._write(dump_arguments(key))
            self._write(": ")
        else:
            self.failed = True

    def flush(self) -> None:
        """The value at hand has ended: write what waits for that."""
        self._flush()

    def _flush(self) -> None:
        if self._word is None:
            return
        word, self._word = self._word, None
        try:
            self._write(json.dumps(read_literal(word) if self._python else load_strictly(word)))
        except (ValueError, RecursionError):
            self.failed = True
