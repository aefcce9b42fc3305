"""A call in the making, and JSON text as it is sent."""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from typing import Any

from respzoo.content import Pair

__all__ = ["Call", "Writer", "dump_arguments", "escape"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def dump_arguments(arguments: Any) -> str:
    """A call's arguments as the JSON text that an API sends: readable, but for halves of surrogate pairs, which no
    encoding of text can carry."""
    return _escaped(json.dumps(arguments, ensure_ascii=False))


def escape(text: str) -> str:
    """Text as it stands between the quotes of a JSON string; that of pieces adds up."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return text
    return _escaped(encode_basestring(text)[1:-1])


def _escaped(text: str) -> str:
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


class Call:
    """One call: its name as soon as it is known, and what is certain of its arguments' text.

    Attributes:
        name, id: empty until they are known; an id may never be.
        pieces: text that is certain.
        taken: how many of the pieces have been sent.
        index: its place among the answer's calls, once it has been sent.
    """

    __slots__ = ("id", "index", "name", "pieces", "taken")

    def __init__(self, name: str = "", id: str = "") -> None:
        self.name = name
        self.id = id
        self.pieces: list[str] = []
        self.taken = 0
        self.index = -1

    def write(self, text: str) -> None:
        self.pieces.append(text)

    def take(self) -> str:
        """What was written since the last time."""
        news = "".join(self.pieces[self.taken :])
        self.taken = len(self.pieces)
        return news

    def rest(self, text: str) -> str | None:
        """What is missing of the finished text, all taken; None if this is not its beginning."""
        written = "".join(self.pieces)
        if not text.startswith(written):
            return None
        self.pieces.append(text[len(written) :])
        return self.take()


class Writer:
    """Follows one region of calls.

    Attributes:
        calls: those seen so far, in order; the last one may be growing.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def text(self, text: str) -> None:
        """The next piece of the region's content, as its `region_chunk` has it."""

    def tag(self, pair: Pair | None) -> None:
        """The text that follows is that of the value in this tag, or, for all that is known, of none."""

    def value(self, pair: Pair) -> None:
        """A tag has ended."""
