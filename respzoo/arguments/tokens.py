"""The tokens of a value that is still being written, in JSON's syntax or in that of Python's literals.

Strings are not waited for: their text comes decoded, as far as it is certain. A token is a pair of a kind and a text:

    punct       one of `{}[](),:;=`
    string      a string begins
    part        decoded text of it
    end         it has ended
    word        a number, constant or name, whole
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from respzoo.arguments.call import Way, canonical, escape
from respzoo.content.raw_strings import ARGUMENT, CALL, LAST

__all__ = ["Syntax", "Token", "Tokens"]

Token = tuple[str, str]

_PLAIN = re.compile(r"[^\s{}\[\](),:;='\"]+")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PYTHON_ESCAPES = {"0": "\0", "a": "\a", "v": "\v"}
_LENGTHS = {"u": 6}
_PYTHON_LENGTHS = {"u": 6, "x": 4, "U": 10}
_HEX = re.compile("[0-9a-fA-F]+")
_SHORT = '"\\bfnrt'  # what a backslash escapes, where JSON's writer uses one
_CANONICAL = {quote: re.compile(canonical(quote) + r"(?=\\?\Z)").match for quote in "\"'"}
_AS_JSON = {'"': Way("", as_json=True), "'": Way("'", as_json=True)}
_RAW_ARGUMENT, _RAW_LAST, _RAW_CALL = map(re.compile, (ARGUMENT, LAST, CALL))


@dataclass(frozen=True)
class Syntax:
    """How strings are written. Made once for all streams of a template."""

    quotes: str = '"'
    breaks: str = "\0-\x1f"
    """What cannot stand in a string (as in a character class)."""
    verbatim: tuple[tuple[str, str], ...] = ()
    """Pairs of marks around strings in which nothing is escaped."""
    bare_keys: bool = False
    """Keys need no quotes."""
    python: bool = False
    """There are Python's other escapes."""
    raw: bool = False
    """Nothing is escaped in an argument in single quotes; what ends it comes as a text of its own."""

    @cached_property
    def broken(self) -> Callable[..., re.Match[str] | None]:
        """Finds what cannot stand in a string."""
        return re.compile(f"[{self.breaks}]").search

    @cached_property
    def ends(self) -> Mapping[str, str]:
        """What ends a verbatim string, by what begins it."""
        return dict(self.verbatim)

    @cached_property
    def marks(self) -> frozenset[str]:
        """What a verbatim string's mark begins with."""
        return frozenset(begin[0] for begin in self.ends)


class Tokens:
    """Splits a growing text.

    Attributes:
        syntax: how strings are written.
        failed: this is no such value; nothing more is told.
    """

    __slots__ = (
        "_after_equals", "_canonical", "_escape", "_half", "_maybe", "_opening", "_quote", "_word", "failed", "syntax",
    )  # fmt: skip

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax
        self._quote = ""  # what ends the string at hand
        self._escape = ""  # an escape that is not whole
        self._half = ""  # the first half of a surrogate pair, behind which the second may come
        self._word = ""
        self._maybe: str = ""  # what may end, or have ended, a string in which nothing is escaped
        self._opening = ""  # what has begun to be a mark
        self._after_equals = False
        # inside a string: how far a text stands in JSON as it does here
        self._canonical: Callable[[str], re.Match[str] | None] | None = None
        self.failed = False

    def quick(self, text: str) -> str | None:
        """Inside a string: take a text that goes on with it and stands in JSON as it does here, and return it (but for
        half an escape at its end); None: nothing was done."""
        canonical = self._canonical
        if canonical is None or self._half:
            if len(self._quote) > 1 and not self._maybe and self._quote[0] not in text:
                return escape(text)
            return None
        if self._escape:
            if self._escape != "\\":
                return None
            text = self._escape + text
            if len(text) == 2 and text[1] in _SHORT:
                self._escape = ""
                return text
        elif text == "\\":
            self._escape = text
            return ""
        elif text.isprintable() and "\\" not in text and '"' not in text and self._quote not in text:
            return text
        match = canonical(text)
        if match is None:
            return None
        end = match.end()
        self._escape = text[end:]
        return text[:end]

    @property
    def way(self) -> Way | None:
        """Inside a string of which nothing waits: how its text becomes JSON. Else None."""
        if self._canonical is not None:
            return None if self._half or self._escape else _AS_JSON[self._quote]
        return Way(self._quote[0], as_json=False) if len(self._quote) > 1 and not self._maybe else None

    @property
    def _is_raw(self) -> bool:
        return self._quote == "'" and self.syntax.raw and self._after_equals

    def feed(self, text: str) -> Iterator[Token]:
        while text and not self.failed:
            if len(self._quote) > 1:
                text = yield from self._verbatim(text)
            elif self._is_raw:
                text = yield from self._raw(text)
            else:
                text = yield from self._plain(text)

    def _plain(self, text: str) -> Generator[Token, None, str]:
        """All but strings in which nothing is escaped. Returns the text behind the beginning of one."""
        syntax = self.syntax
        at, size = 0, len(text)
        while at < size and not self.failed:
            if self._quote:
                stop = at
                while stop < size and text[stop] not in (self._quote, "\\") and not self._escape:
                    stop = self._plain_end(text, stop)
                if stop > at:
                    broken = syntax.broken(text, at, stop)
                    if (end := stop if broken is None else broken.start()) > at:
                        yield "part", self._joined(text[at:end])
                    if broken is not None:
                        self.failed = True
                        return ""
                if stop < size:
                    yield from self._special(text[stop])
                at = stop + 1
                continue
            char = text[at]
            at += 1
            if self._opening or char in syntax.marks:
                self._opening += char
                if (end := syntax.ends.get(self._opening)) is not None:
                    self._opening = ""
                    if self._word:
                        yield self._whole_word()
                    self._quote = end
                    yield "string", ""
                    return text[at:]
                if not any(begin.startswith(self._opening) for begin in syntax.ends):
                    self.failed = True
            elif char in syntax.quotes:
                if self._word:
                    yield self._whole_word()
                self._quote = char
                self._canonical = None if syntax.raw else _CANONICAL[char]
                yield "string", ""
                if self._is_raw:
                    return text[at:]
            elif char in "{}[](),:;=":
                if self._word:
                    yield self._whole_word()
                self._after_equals = char == "="
                yield "punct", char
            elif (match := _PLAIN.match(text, at - 1)) is not None:
                word = match[0]
                for mark in syntax.marks:
                    word = word.partition(mark)[0]
                self._word += word
                at += len(word) - 1
            else:
                if self._word and not char.isspace():  # a quote that quotes nothing here
                    self.failed = True
                self._word += char if self._word else ""
        return ""

    def _whole_word(self) -> Token:
        word, self._word = self._word.rstrip(), ""
        return "word", word

    def _plain_end(self, text: str, at: int) -> int:
        ends = [place for char in (self._quote, "\\") if (place := text.find(char, at)) >= 0]
        return min(ends, default=len(text))

    def _joined(self, text: str) -> str:
        """Text behind what may be half a pair: it is all there will be of it."""
        if not self._half:
            return text
        half, self._half = self._half, ""
        return half + text

    def _special(self, char: str) -> Iterator[Token]:
        """A character of an escape, or the quote that ends the string."""
        if not self._escape:
            if char == "\\":
                self._escape = char
                return
            if self._half:
                yield "part", self._joined("")
            self._quote = ""
            self._canonical = None
            self._after_equals = False
            yield "end", ""
            return
        self._escape += char
        lengths = _PYTHON_LENGTHS if self.syntax.python else _LENGTHS
        length = lengths.get(self._escape[1], 2)
        if len(self._escape) < length:
            return
        kind, digits, self._escape = self._escape[1], self._escape[2:], ""
        if length == 2:
            decoded = char if char == "'" and "'" in self.syntax.quotes else _ESCAPES.get(char)
            if decoded is None and self.syntax.python:
                decoded = _PYTHON_ESCAPES.get(char)
            if decoded is None:
                self.failed = True
            else:
                yield "part", self._joined(decoded)
        else:
            code = int(digits, 16) if _HEX.fullmatch(digits) is not None else -1
            if not 0 <= code <= 0x10FFFF or (kind == "U" and 0xD800 <= code <= 0xDFFF):
                self.failed = True
            elif kind == "u" and 0xDC00 <= code <= 0xDFFF and self._half:
                high, self._half = ord(self._half), ""
                yield "part", chr(0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00))
            elif kind == "u" and 0xD800 <= code <= 0xDBFF:
                if self._half:
                    yield "part", self._half
                self._half = chr(code)
            else:
                yield "part", self._joined(chr(code))

    def _verbatim(self, text: str) -> Generator[Token, None, str]:
        """Inside a string that a mark ends. Returns the text behind it."""
        text, self._maybe = self._maybe + text, ""
        end = text.find(self._quote)
        if end >= 0:
            behind = text[end + len(self._quote) :]
            self._quote = ""
            if end:
                yield "part", text[:end]
            yield "end", ""
            return behind
        begun = next((n for n in range(len(self._quote) - 1, 0, -1) if text.endswith(self._quote[:n])), 0)
        shown = len(text) - begun
        self._maybe = text[shown:]
        if shown:
            yield "part", text[:shown]
        return ""

    def _raw(self, text: str) -> Generator[Token, None, str]:
        """Inside a raw string: the parser has found its ends, and each comes as a text of its own. Returns the text
        behind its end."""
        if self._maybe:
            if text.isspace():
                self._maybe += text
                return ""
            ended, self._maybe = self._maybe, ""
            if _RAW_CALL.fullmatch(text) is not None:
                yield self._end_raw()
                return ended[1:] + text
            yield "part", ended
        if _RAW_ARGUMENT.fullmatch(text) is not None:
            yield self._end_raw()
            return text[1:]
        if _RAW_LAST.fullmatch(text) is not None:
            self._maybe = text
        else:
            yield "part", text
        return ""

    def _end_raw(self) -> Token:
        self._quote = ""
        self._after_equals = False
        return "end", ""
