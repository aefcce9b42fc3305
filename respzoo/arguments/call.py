"""A call in the making, and JSON text as it is sent."""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from respzoo.content.tags import Pair
from respzoo.joined import FEW, compact

__all__ = ["Call", "Way", "Writer", "canonical", "dump_arguments", "escape"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def canonical(quote: str = "") -> str:
    """A pattern of text in a JSON string that stands there as `json.dumps` would write it, and of which nothing is this
    quote as well; no escape is left open."""
    ordinary = rf"""[^{quote}"\\\x00-\x1f\ud800-\udfff]*+"""
    return rf"""{ordinary}(?:\\["\\bfnrt]{ordinary})*+"""


_stands = re.compile(canonical()).fullmatch


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
    return text if text.isascii() else _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


class Call:
    """One call: its name as soon as it is known, and what is certain of its arguments' text.

    Attributes:
        name, id: empty until they are known; an id may never be.
        index: its place among the answer's calls, once it has been sent.
        waiting: what was written and not yet taken.
        taken: what was, piece by piece.
        most: how many pieces there may be before they are joined.
    """

    __slots__ = ("_begun", "id", "index", "most", "name", "taken", "waiting")

    def __init__(self, name: str = "", id: str = "") -> None:
        self.name = name
        self.id = id
        self.index = -1
        self.waiting: list[str] | tuple[()] = ()
        self.taken: list[str] = []
        self.most = FEW
        self._begun = False  # whether there is an argument

    def write(self, text: str) -> None:
        """This text is certain, too."""
        self.waiting = self.waiting or []
        self.waiting.append(text)

    def argument(self, key: str) -> None:
        """An argument begins; its value is written next."""
        self.write(f"{', ' if self._begun else ''}{dump_arguments(key)}: ")
        self._begun = True

    def take(self) -> str:
        """What was written since the last time."""
        waiting, self.waiting = self.waiting, ()
        news = waiting[0] if len(waiting) == 1 else "".join(waiting)
        if news:
            self.pass_on(news)
        return news

    def pass_on(self, text: str) -> None:
        """This text is certain and goes to the client at once: nothing waits, and the call is announced."""
        self.taken.append(text)
        if len(self.taken) > self.most:
            self.compact()

    def compact(self) -> None:
        """Join what was taken, each piece once."""
        self.most = compact(self.taken, self.most - FEW) + FEW

    @property
    def size(self) -> int:
        """How many characters were written so far."""
        return sum(map(len, self.taken)) + sum(map(len, self.waiting))

    @property
    def sent(self) -> str:
        """All that was taken."""
        return "".join(self.taken)

    def rest(self, text: str) -> str | None:
        """What is missing of the finished text, all taken; None if what was written is not its beginning."""
        written = "".join([*self.taken, *self.waiting])
        if not text.startswith(written):
            return None
        self.write(text[len(written) :])
        return self.take()


class Way(NamedTuple):
    """How text of a call's arguments becomes JSON, where nothing of it waits."""

    barred: str
    """Characters with which it might be more than text."""
    as_json: bool
    """It is a JSON string's text as it is, escapes and all; else the text of a value, which is to be escaped."""

    def shown(self, text: str) -> str | None:
        """The JSON of a text. None: it is not certain that this is all."""
        if any(char in text for char in self.barred):
            return None
        return escape(text) if not self.as_json else text if _stands(text) is not None else None


class Writer:
    """Follows one region of calls.

    Attributes:
        calls: those seen so far, in order; the last one may be growing.
    """

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls: list[Call] = []

    @property
    def way(self) -> Way | None:
        """Where text makes itself certain of the last call, and need not be shown to the writer: how. None: nowhere."""
        return None

    def text(self, text: str) -> None:
        """The next piece of the region's content, as its `region_chunk` has it."""

    def quick(self, text: str) -> str | None:
        """Take the next piece, if it makes but this text certain of the last call; None: nothing was done."""
        return "" if type(self) is Writer else None  # which says nothing

    def tag(self, pair: Pair | None) -> None:
        """The text that follows is that of the value in this tag, or, for all that is known, of none."""

    def value(self, pair: Pair) -> None:
        """A tag has ended."""
