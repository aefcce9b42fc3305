"""`python-call-list`: a list of calls with keyword arguments, `[f(city="Paris", n=1), g()]`.

The grammar is the strict one of transformers' manual: names may be dotted or dashed; values are strings in either
quote, numbers, lists, dicts with string keys, and True, False, None (or JSON's spellings); no positional arguments, no
trailing commas, no repeated names; integers within 2^53, at most 100 levels.

`sequence` reads calls without brackets around them, one a line or with `,` or `;` between them. `raw_strings`, for
models whose chat template writes `name='text'` without escaping anything: an argument in single quotes is verbatim, up
to the quote behind which the calls go on (`, other=`, or `)` and another call or the end). Other strings are escaped as
usual. In the extended language strings may hold Python's other escapes (`\\x08`, `\\U0001f326`, `\\0`, `\\a`, `\\v`)
and integers up to 400 digits: chat templates write what Python's `repr` makes of a value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn, TypeVar

from respzoo.content.arguments import BOOLEAN, Argument
from respzoo.content.base import Borders, ContentParser, Lexer, ValueParsers
from respzoo.content.ending import EndingLexer
from respzoo.content.quoted import QuotedLexer, QuoteRules
from respzoo.content.raw_strings import ENDS, RawStringLexer, RawStringRules

__all__ = ["NAME", "PythonCallList", "read_literal"]

_SPACE = re.compile(r"[ \t\n\r]*")
_BETWEEN = re.compile(r"[ \t]*(?:[\n\r][ \t\n\r]*)?(?:[,;][ \t\n\r]*)?")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[-.][A-Za-z0-9_]+)*")
"""A name: of a function, of an argument."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<part>\.[0-9]+)?(?P<power>[eE][+-]?[0-9]+)?")
_STRING = re.compile(r"""'(?P<one>(?:[^'\\\n\r]|\\.)*)'|"(?P<two>(?:[^"\\\n\r]|\\.)*)\"""", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:u(?P<code>[0-9a-fA-F]{4})(?:\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2}))?|(?P<char>.))", re.DOTALL
)
_PYTHON_ESCAPE = re.compile(
    rf"\\(?:x(?P<hex>[0-9a-fA-F]{{2}})|U(?P<wide>[0-9a-fA-F]{{8}})|(?P<python>[0av]))|{_ESCAPE.pattern}", re.DOTALL
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHARS = {"\\": "\\", "'": "'", '"': '"', "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CONSTANTS = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}
_PYTHON_CHARS = {"0": "\0", "a": "\a", "v": "\v"}
_LARGEST = 2**53 - 1
_MOST_DIGITS = 400
_DEEPEST = 100
_T = TypeVar("_T")


class PythonCallList(ContentParser):
    name: ClassVar[str] = "python-call-list"
    arguments: ClassVar[Mapping[str, Argument]] = {"sequence": BOOLEAN, "raw_strings": BOOLEAN}
    complete_without_closer: ClassVar[bool] = True

    def __init__(
        self, args: Mapping[str, Any], *, extended: bool = False, value_parser: ValueParsers | None = None
    ) -> None:
        super().__init__(args, extended=extended, value_parser=value_parser)
        self._sequence = bool(self.extension("sequence"))
        self._raw_strings = bool(self.extension("raw_strings"))
        if self._raw_strings and not self._sequence:
            raise ValueError("'raw_strings': needs 'sequence': true; it is not known how a list of such calls ends")

    @property
    def ends_itself(self) -> bool:
        return not self._sequence

    def parse(self, text: str, *, strict: bool = False) -> Any:
        try:
            reader = _Reader(text, raw_strings=self._raw_strings, as_python=self.extended)
            return reader.sequence() if self._sequence else reader.calls()
        except ValueError as error:
            raise ValueError(f"not a list of calls: {error}") from error

    def lexer(self, borders: Borders) -> Callable[[], Lexer] | None:
        rules = QuoteRules(
            borders,
            quotes="'\"",
            breaks=r"\n\r",
            follow=",)]}:",
            first="" if self._sequence else "[",
            brackets=("[({", "])}") if borders.ends else (),
            needed=self._sequence,
        )
        if self._raw_strings:
            raw_rules = RawStringRules(rules, borders)
            return lambda: RawStringLexer(raw_rules)
        return lambda: EndingLexer(rules) if borders.ends else QuotedLexer(rules)


def read_literal(text: str, *, as_python: bool = False) -> Any:
    """One value as Python writes it: a string, number, list, dict or constant, by the grammar of the calls' values
    (`as_python`: those of the extended language).

    Raises:
        ValueError: it is none.
    """
    reader = _Reader(text, as_python=as_python)
    value = reader.value(0)
    reader.end("value")
    return value


class _Reader:
    def __init__(self, text: str, *, raw_strings: bool = False, as_python: bool = False) -> None:
        self.source = text
        self.at = 0
        self.as_python = as_python
        self.raw_strings = raw_strings

    def fail(self, what: str) -> NoReturn:
        raise ValueError(f"{what} at character {self.at}")

    def sees(self, char: str) -> bool:
        match = _SPACE.match(self.source, self.at)
        assert match is not None
        self.at = match.end()
        return self.source.startswith(char, self.at)

    def expect(self, char: str, why: str = "") -> None:
        if not self.sees(char):
            self.fail(f"expected {char!r}{why}")
        self.at += 1

    def take(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        self.sees("")
        match = pattern.match(self.source, self.at)
        if match is None:
            self.fail(f"expected {what}")
        return match

    def listed(self, close: str, item: Callable[[], _T]) -> list[_T]:
        items: list[_T] = []
        if not self.sees(close):
            items.append(item())
            while not self.sees(close):
                self.expect(",")
                items.append(item())
        self.at += 1
        return items

    def unique(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            self.fail("a name stands twice")
        return result

    def calls(self) -> list[dict[str, Any]]:
        self.expect("[")
        calls = self.listed("]", self.call)
        self.end("closing ']'")
        return calls

    def sequence(self) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []
        self.sees("")
        while self.at < len(self.source):
            calls.append(self.call())
            match = _BETWEEN.match(self.source, self.at)
            assert match is not None
            self.at = match.end()
            if self.at < len(self.source):
                if not match[0].strip(" \t"):
                    self.fail("expected a line break, ',' or ';' between two calls")
            elif match[0].strip():
                self.fail("expected another call")
        return calls

    def end(self, what: str) -> None:
        self.sees("")
        if self.at != len(self.source):
            self.fail(f"more text behind the {what}")

    def call(self) -> dict[str, Any]:
        name = self.word("a function name")
        self.expect("(")
        return {"name": name, "arguments": self.unique(self.listed(")", self.argument))}

    def word(self, what: str) -> str:
        match = self.take(NAME, what)
        self.at = match.end()
        return match[0]

    def argument(self) -> tuple[str, Any]:
        key = self.word("a keyword argument")
        self.expect("=", " (arguments go by keyword)")
        if self.raw_strings and self.sees("'"):
            return key, self.raw_string()
        return key, self.value(0)

    def value(self, depth: int) -> Any:
        """One value inside `depth` lists and dicts."""
        if self.sees("'") or self.sees('"'):
            return self.string()
        if self.sees("[") or self.sees("{"):
            if depth >= _DEEPEST:
                self.fail(f"more than {_DEEPEST} levels of lists and dicts")
            self.at += 1
            if self.source[self.at - 1] == "[":
                return self.listed("]", lambda: self.value(depth + 1))
            return self.unique(self.listed("}", lambda: self.pair(depth + 1)))
        if (match := _NUMBER.match(self.source, self.at)) is not None:
            number = self.number(match)
            self.at = match.end()
            return number
        match = NAME.match(self.source, self.at)
        if match is None or match[0] not in _CONSTANTS:
            self.fail("expected a string, number, list, dict, True, False or None")
        self.at = match.end()
        return _CONSTANTS[match[0]]

    def pair(self, depth: int) -> tuple[str, Any]:
        if not (self.sees("'") or self.sees('"')):
            self.fail("expected a string as key")
        key = self.string()
        self.expect(":")
        return key, self.value(depth)

    def number(self, match: re.Match[str]) -> int | float:
        if match["part"] is None and match["power"] is None:
            if self.as_python:
                if len(match[0]) > _MOST_DIGITS:
                    self.fail(f"an integer of more than {_MOST_DIGITS} digits")
            elif len(match[0]) > 17 or abs(int(match[0])) > _LARGEST:  # a huge literal never reaches int()
                self.fail("an integer beyond 2^53 - 1")
            return int(match[0])
        number = float(match[0])
        if math.isinf(number):
            self.fail("too large a number")
        return number

    def string(self) -> str:
        match = self.take(_STRING, "a string")
        body = match["one"] if match["one"] is not None else match["two"]
        if _SURROGATE.search(body) is not None:
            self.fail("half a surrogate pair in the string")
        text = (_PYTHON_ESCAPE if self.as_python else _ESCAPE).sub(self.escape, body)
        self.at = match.end()
        return text

    def raw_string(self) -> str:
        start = self.at + 1
        end = ENDS.search(self.source, start)
        if end is None:
            self.fail("a string that never ends")
        self.at = end.start() + 1
        return self.source[start : end.start()]

    def python_escape(self, match: re.Match[str]) -> str | None:
        groups = match.groupdict()
        if (char := groups.get("python")) is not None:
            return _PYTHON_CHARS[char]
        digits = groups.get("hex") or groups.get("wide")
        if digits is None:
            return None
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            self.fail(f"no character {match[0]!r} in the string")
        return chr(code)

    def escape(self, match: re.Match[str]) -> str:
        if self.as_python and (python := self.python_escape(match)) is not None:
            return python
        if match["code"] is None:
            if match["char"] not in _CHARS:
                self.fail(f"an unknown escape {match[0]!r} in the string")
            return _CHARS[match["char"]]
        code = int(match["code"], 16)
        if not 0xD800 <= code <= 0xDFFF:
            # what follows is an escape of its own
            return chr(code) + (_ESCAPE.sub(self.escape, match[0][6:]) if match["low"] is not None else "")
        if code > 0xDBFF or match["low"] is None:
            self.fail("half a surrogate pair in the string")
        return chr(0x10000 + ((code - 0xD800) << 10) + (int(match["low"], 16) - 0xDC00))
