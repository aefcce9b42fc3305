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
from collections.abc import Callable, Iterator
from typing import NamedTuple

__all__ = ["Syntax", "Token", "Tokens"]

Token = tuple[str, str]

_PLAIN = re.compile(r"[^\s{}\[\](),:;='\"]+")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CANONICAL = {
    quote: re.compile(rf"""(?:[^{quote}"\\\x00-\x1f\ud800-\udfff]|\\["\\bfnrt])*(?=\\?\Z)""").match for quote in "\"'"
}
_RAW_ARGUMENT = re.compile(r"'\s*,\s*[A-Za-z_][\w.\-]*\s*=")
_RAW_LAST = re.compile(r"'\s*\)")


class Syntax(NamedTuple):
    """How strings are written."""

    quotes: str = '"'
    verbatim: tuple[tuple[str, str], ...] = ()
    """Pairs of marks around strings in which nothing is escaped; each mark comes as a text of its own."""
    raw: bool = False
    """Nothing is escaped in an argument in single quotes; what ends it comes as a text of its own."""


class Tokens:
    """Splits a growing text.

    Attributes:
        failed: this is no such value; nothing more is told.
    """

    __slots__ = ("_after_equals", "_canonical", "_escape", "_half", "_maybe", "_quote", "_syntax", "_word", "failed")

    def __init__(self, syntax: Syntax) -> None:
        self._syntax = syntax
        self._quote = ""  # what ends the string at hand
        self._escape = ""  # an escape that is not whole
        self._half = ""  # the first half of a surrogate pair, behind which the second may come
        self._word = ""
        self._maybe = ""  # what may have ended a raw string
        self._after_equals = False
        self._canonical: Callable[[str], re.Match[str] | None] | None = (
            None  # inside a string: JSON's own way to write it
        )
        self.failed = False

    def quick(self, text: str) -> str | None:
        """Inside a string: take a text that goes on with it and stands in JSON as it does here, and return it (but for
        half an escape at its end); None: nothing was done."""
        canonical = self._canonical
        if canonical is None or self._half:
            return None
        if self._escape:
            if self._escape != "\\":
                return None
            text = self._escape + text
        elif text.isprintable() and "\\" not in text and '"' not in text and self._quote not in text:
            return text
        match = canonical(text)
        if match is None:
            return None
        end = match.end()
        self._escape = text[end:]
        return text[:end]

    @property
    def _is_raw(self) -> bool:
        return self._quote == "'" and self._syntax.raw and self._after_equals

    def feed(self, text: str) -> Iterator[Token]:
        syntax = self._syntax
        if len(self._quote) > 1:
            yield from self._verbatim(text)
            return
        if self._is_raw:
            yield from self._raw(text)
            return
        for begin, end in syntax.verbatim:
            if text == begin and not self._quote:
                yield from self._flush()
                self._quote = end
                yield "string", ""
                return
        at, size = 0, len(text)
        while at < size and not self.failed:
            if self._quote:
                stop = at
                while stop < size and text[stop] not in (self._quote, "\\") and not self._escape:
                    stop = self._plain_end(text, stop)
                if stop > at:
                    yield "part", self._joined(text[at:stop])
                if stop < size:
                    yield from self._special(text[stop])
                at = stop + 1
                continue
            char = text[at]
            if char in syntax.quotes:
                yield from self._flush()
                self._quote = char
                self._canonical = None if syntax.raw else _CANONICAL[char]
                yield "string", ""
                at += 1
                if self._is_raw:
                    if at < size:
                        yield from self._raw(text[at:])
                    return
            elif char in "{}[](),:;=":
                yield from self._flush()
                self._after_equals = char == "="
                yield "punct", char
                at += 1
            elif (match := _PLAIN.match(text, at)) is not None:
                self._word += match[0]
                at = match.end()
            else:
                if self._word and not char.isspace():  # a quote that quotes nothing here
                    self.failed = True
                self._word += char if self._word else ""
                at += 1

    def _flush(self) -> Iterator[Token]:
        if self._word:
            word, self._word = self._word.rstrip(), ""
            yield "word", word

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
        if len(self._escape) == 2 and char != "u":
            decoded = char if char == "'" and "'" in self._syntax.quotes else _ESCAPES.get(char)
            self._escape = ""
            if decoded is None:
                self.failed = True
            else:
                yield "part", self._joined(decoded)
        elif len(self._escape) == 6:
            digits, self._escape = self._escape[2:], ""
            try:
                code = int(digits, 16)
            except ValueError:
                self.failed = True
                return
            if 0xDC00 <= code <= 0xDFFF and self._half:
                high, self._half = ord(self._half), ""
                yield "part", chr(0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00))
            elif 0xD800 <= code <= 0xDBFF:
                if self._half:
                    yield "part", self._half
                self._half = chr(code)
            else:
                yield "part", self._joined(chr(code))

    def _verbatim(self, text: str) -> Iterator[Token]:
        if text == self._quote:
            self._quote = ""
            yield "end", ""
        else:
            yield "part", text

    def _raw(self, text: str) -> Iterator[Token]:
        """Inside a raw string: the parser has found its ends, and each comes as a text of its own."""
        if self._maybe:
            if text.isspace():
                self._maybe += text
                return
            ended, self._maybe = self._maybe, ""
            if text.rstrip().endswith("("):
                yield from self._end_raw(ended[1:] + text)
                return
            yield "part", ended
        if _RAW_ARGUMENT.fullmatch(text) is not None:
            yield from self._end_raw(text[1:])
        elif _RAW_LAST.fullmatch(text) is not None:
            self._maybe = text
        else:
            yield "part", text

    def _end_raw(self, behind: str) -> Iterator[Token]:
        self._quote = ""
        self._after_equals = False
        yield "end", ""
        yield from self.feed(behind)
