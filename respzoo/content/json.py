"""`json`: one JSON value, or a dialect of it that models write.

`unquoted_keys` allows bare words as keys, `string_delims` other marks around strings whose inside is verbatim
(`<|"|>…<|"|>`), `allow_non_json` returns the text where it is no JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, NoReturn

from respzoo.content.base import ContentParser, Lexer, QuotedLexer, QuoteRules
from respzoo.delimiters import Delimiter

__all__ = ["Json", "load_strictly"]


class Json(ContentParser):
    name: ClassVar[str] = "json"
    complete_without_closer: ClassVar[bool] = True

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
            branches.append(r"(?<=[{,])(?P<before>\s*)(?P<key>\w+)(?P<after>\s*):")
        return re.compile("|".join(branches), re.DOTALL)

    def parse(self, text: str, *, strict: bool = False) -> Any:
        plain = text if self._dialect is None else self._dialect.sub(_as_json, text)
        try:
            return load_strictly(plain) if strict else json.loads(plain)
        except ValueError as error:
            if self.args.get("allow_non_json"):
                return text.strip() if self.args.get("strip", True) else text
            raise ValueError(f"not JSON: {error}") from error

    def lexer(self, field: str, close: Delimiter | None, *, plain: bool) -> Callable[[], Lexer] | None:
        rules = QuoteRules(
            field,
            close,
            quotes='"',
            breaks=r"\x00-\x1f",
            verbatim=self._delims,
            follow=":,}]",
            first='{["' + "".join(begin[0] for begin, _ in self._delims),
            plain=plain,
        )
        return lambda: QuotedLexer(rules)


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
    if kind == "after":
        return f'{match["before"]}"{match["key"]}"{match["after"]}:'
    return json.dumps(match[kind])


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


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite_float)
