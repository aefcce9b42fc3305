"""`json`: one JSON value, or a dialect of it that models write.

`unquoted_keys` allows bare words as keys (`loose`: with white space, dashes and the like in them), `string_delims`
other marks around strings whose inside is verbatim (`<|"|>…<|"|>`), `allow_non_json` returns the text where it is no
JSON. `sequence` reads any number of values, one after another, into a list.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NoReturn, cast

from respzoo.content.arguments import BOOLEAN, Argument
from respzoo.content.base import Borders, ContentParser, Lexer
from respzoo.content.ending import EndingLexer
from respzoo.content.quoted import CONTROLS, QuotedLexer, QuoteRules

__all__ = ["Json", "load_strictly"]


_SPACE = re.compile(r"[ \t\n\r]*")
_BETWEEN = re.compile(r"[ \t\n\r]*[,;]?[ \t\n\r]*")
_WORD = r"\s*\w+\s*"
_LOOSE_WORD = r"\s*[^\s\"{}\[\],:][^\"{}\[\],:]*"


def _are_pairs(value: Any) -> bool:
    return isinstance(value, Sequence) and all(
        isinstance(pair, Sequence)
        and len(cast("Sequence[Any]", pair)) == 2
        and all(isinstance(mark, str) and mark for mark in cast("Sequence[Any]", pair))
        for pair in cast("Sequence[Any]", value)
    )


def _is_looseness(value: object) -> bool:
    return isinstance(value, bool) or value == "loose"


class Json(ContentParser):
    name: ClassVar[str] = "json"
    arguments: ClassVar[Mapping[str, Argument]] = {
        "unquoted_keys": Argument("true, false or 'loose'", _is_looseness),
        "string_delims": Argument("a list of pairs of strings", _are_pairs),
        "allow_non_json": BOOLEAN,
        "strip": BOOLEAN,
        "sequence": BOOLEAN,
    }
    complete_without_closer: ClassVar[bool] = True

    @property
    def ends_itself(self) -> bool:
        return not self.extension("sequence")

    @property
    def _delims(self) -> list[tuple[str, str]]:
        pairs: list[Any] = self.args.get("string_delims") or []
        return [(pair[0], pair[1]) for pair in pairs]

    @cached_property
    def _dialect(self) -> re.Pattern[str] | None:
        """Finds what a dialect writes unlike JSON, stepping over the strings of either kind."""
        branches = [
            f"{re.escape(begin)}(?P<verbatim{number}>.*?){re.escape(end)}"
            for number, (begin, end) in enumerate(self._delims)
        ]
        bare_keys = self.args.get("unquoted_keys", False)
        if not branches and not bare_keys:
            return None
        branches.append(r'"(?:\\.|[^"\\])*"')
        if bare_keys:
            word = _LOOSE_WORD if self.extension("unquoted_keys") == "loose" else _WORD
            branches.append(f"(?<=[{{,])(?P<key>{word}):")
        return re.compile("|".join(branches), re.DOTALL)

    def parse(self, text: str, *, strict: bool = False) -> Any:
        plain = text if self._dialect is None else self._dialect.sub(_as_json, text)
        try:
            if self.extension("sequence"):
                return _sequence(plain, _STRICT if strict else _LENIENT)
            return load_strictly(plain) if strict else json.loads(plain)
        except ValueError as error:
            if self.args.get("allow_non_json"):
                return text.strip() if self.args.get("strip", True) else text
            raise ValueError(f"not JSON: {error}") from error

    def lexer(self, borders: Borders) -> Callable[[], Lexer] | None:
        rules = QuoteRules(
            borders,
            quotes='"',
            breaks=CONTROLS,
            verbatim=self._delims,
            follow=":,;}]" if self.extension("sequence") else ":,}]",
            first='{["' + "".join(begin[0] for begin, _ in self._delims),
            brackets=("{[", "}]") if borders.ends else (),
            needed=bool(self.extension("sequence")),
        )
        return lambda: EndingLexer(rules) if borders.ends else QuotedLexer(rules)


def load_strictly(text: str) -> Any:
    """JSON whose every reader reads the same: no key twice in an object, no NaN, no number beyond a float.

    Raises:
        ValueError: it is not.
    """
    return _STRICT.decode(text)


def _as_json(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind is None:
        return match[0]
    if kind == "key":
        return json.dumps(match[kind].strip()) + ":"
    return json.dumps(match[kind])


def _sequence(text: str, decoder: json.JSONDecoder) -> list[Any]:
    values: list[Any] = []
    match = _SPACE.match(text)
    while match is not None and match.end() < len(text):
        value, at = decoder.raw_decode(text, match.end())
        values.append(value)
        match = _BETWEEN.match(text, at)
    if match is not None and values and not match[0].isspace() and match[0]:
        raise ValueError(f"nothing behind the last {match[0].strip()!r}")
    return values


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key!r} stands twice in one object")
            seen.add(key)
    return result


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _finite_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


_LENIENT = json.JSONDecoder()
_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite_float)
