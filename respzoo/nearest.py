"""The nearest plain form of what only respzoo's dialect says of delimiters: several syntaxes, wrappers, ends.

`export` asks for it, key by key. What the plain form does not read is lost, and said so; what it would misread is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import regex

from respzoo.errors import Problem

__all__ = ["Nearest", "each", "pattern_of"]

_ALIKE = ("content", "content_args", "transform", "transform_each", "within", "initial", "ended_by", "ends_with_value")
_STRICT = ("json", "python-call-list")
_NAMED_GROUP = regex.compile(r"((?<!\\)(?:\\\\)*)\(\?P?<\w+>")


class Nearest:
    """The work on one template, for one reader."""

    def __init__(self, dialect: str, *, extended: bool) -> None:
        self.dialect = dialect
        self.extended = extended
        """Whether the template is in respzoo's dialect."""
        self.losses: list[Problem] = []
        self.refused: list[Problem] = []

    def lose(self, path: str, text: str) -> None:
        self.losses.append(Problem(path, text))

    def refuse(self, path: str, text: str) -> None:
        self.refused.append(Problem(path, text))

    def opener(self, path: str, piece: dict[str, Any]) -> None:
        """What the dialect says of an opener, in its pattern."""
        if self.extended and "open_pattern" in piece:  # what the group catches is the value's already
            piece["open_pattern"] = piece["open_pattern"].replace("(?P<value>", "(?=")
        if piece.pop("leading", False):
            self.lose(f"{path}.leading", "a region is read at the message's very beginning only")
            opener = pattern_of(piece, "open")
            piece.pop("open", None)
            piece["open_pattern"] = rf"\A(?:{opener})"

    # ----------------------------------------------------------------------------------------------- several syntaxes

    def merge(self, path: str, pieces: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        """One field of several syntaxes: the first, and as alternatives those that differ in their delimiters alone."""
        first = pieces[0][1]
        implicit = next((piece for _, piece in pieces if pattern_of(piece, "open") is None), None)
        if implicit is not None and len(pieces) > 1:
            return self._merge_text(path, first, implicit, [piece for _, piece in pieces if piece is not implicit])
        alike = [first]
        for where, piece in pieces[1:]:
            ends_alike = (pattern_of(piece, "close") is None) == (pattern_of(first, "close") is None)
            if ends_alike and all(piece.get(key) == first.get(key) for key in _ALIKE):
                alike.append(piece)
                continue
            self._keep_apart(where, first, pattern_of(piece, "open") or "")
            self.lose(where, "what is written in this syntax is content there")
        if len(alike) == 1:
            return first
        merged = {key: value for key, value in first.items() if not key.startswith(("open", "close"))}
        for side in ("open", "close"):
            patterns = list(dict.fromkeys(pattern_of(piece, side) for piece in alike))
            if patterns == [None]:
                continue
            if all(side in piece for piece in alike):
                merged[side] = list(dict.fromkeys(text for piece in alike for text in _texts(piece[side])))
            else:
                merged[f"{side}_pattern"] = _either(patterns)
            if side == "close" and len(patterns) > 1:
                self.lose(path, "a region of one of its syntaxes ends at the closer of another, too")
        return merged

    def _keep_apart(self, path: str, first: dict[str, Any], opener: str) -> None:
        """A syntax that is not said must not be taken for the first, whose opener may be the beginning of its own."""
        mine = pattern_of(first, "open") or ""
        rest = opener.removeprefix(mine)
        if rest == opener or first.get("content") in _STRICT:  # these do not read what is not theirs
            return
        if "|" in mine or not rest:
            self.refuse(path, f"{self.dialect} has one syntax a field, and would take this one for the first")
            return
        first.pop("open", None)
        first["open_pattern"] = f"{mine}(?!{_without_names(rest)})"

    def _merge_text(
        self, path: str, first: dict[str, Any], implicit: dict[str, Any], others: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Text with and without markers: the text between regions, where the markers are swallowed."""
        if any(piece.get("content", "text") != "text" or "transform" in piece for piece in [implicit, *others]):
            self.refuse(path, f"{self.dialect} has one syntax a field")
            return first
        kept = {key: first[key] for key in ("repeats", "join", "optional") if key in first}
        sides = [
            pattern_of(implicit, "close"),
            *(pattern_of(piece, side) for piece in others for side in ("open", "close")),
        ]
        self.lose(path, "between its markers the openers of other fields are read, too")
        return {**kept, "content_args": implicit.get("content_args", {}), "close_pattern": _either(sides)}

    # ------------------------------------------------------------------------------------------------------ delimiters

    def _again(self, pieces: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
        """What opens a second region of a field, and so ends the first: an opener of more than a look ahead."""
        for opener in (pattern_of(piece, "open") or "" for _, piece in pieces):
            head = opener.partition("(?=")[0]
            if head.startswith("\\A") or head.count("(") != head.count(")") or regex.fullmatch(head, ""):
                continue
            yield _without_names(opener)

    def delimiters(
        self, fields: dict[str, dict[str, Any]], raw: Mapping[str, list[tuple[str, dict[str, Any]]]]
    ) -> None:
        """`within`, `ended_by`, `initial` and `ends_with_value` as alternatives of plain delimiters."""
        implicit = next((name for name, field in fields.items() if pattern_of(field, "open") is None), None)
        if implicit is not None and fields[implicit].get("initial"):
            implicit = None
        for name, field in fields.items():
            if (wrapper := field.pop("within", None)) is not None:
                self._unwrap(f"$.fields.{name}", field, wrapper, fields[implicit] if implicit else None)
        if implicit is not None:
            for name in fields.keys() - {implicit}:
                self._tail(f"$.fields.{name}.close_pattern", fields[name].get("close_pattern", ""), fields[implicit])
        openers = {
            name: _without_names(opener) for name, field in fields.items() if (opener := pattern_of(field, "open"))
        }
        for name, field in fields.items():
            path = f"$.fields.{name}"
            ends: list[str] = []
            if field.pop("ends_with_value", False):
                ends += [f"(?={again})" for again in self._again(raw[name]) if field.get("repeats")]
                if implicit is not None and (closer := pattern_of(fields[implicit], "close")):
                    ends.append(closer)
                if self.dialect == "sglang":  # which drops a call that no closer has closed
                    ends.append(r"\Z")
                self.lose(f"{path}.ends_with_value", "text behind the value is taken for a part of it: it is malformed")
            if by := field.pop("ended_by", None):
                ends += [f"(?={openers[other]})" for other in by if other in openers]
                self.lose(f"{path}.ended_by", "a closer that comes too late is content")
            if ends:
                closer = pattern_of(field, "close")
                field.pop("close", None)
                field["close_pattern"] = _either([closer, *ends])
            if field.pop("initial", False):
                opener = pattern_of(field, "open")
                field.pop("open", None)
                field["open_pattern"] = rf"\A(?:{opener})?|(?:{opener})" if opener else r"\A"

    def _tail(self, path: str, closer: str, implicit: dict[str, Any]) -> None:
        """Other readers do not wait for what may lengthen a closer (D5): a tail that comes late must not be text."""
        tail = _optional_end(closer)
        if tail is not None:
            before = pattern_of(implicit, "close")
            implicit.pop("close", None)
            implicit["close_pattern"] = _either([before, tail])
            self.lose(path, f"{tail} alone is swallowed, too")

    def _unwrap(
        self, path: str, field: dict[str, Any], wrapper: Mapping[str, Any], implicit: dict[str, Any] | None
    ) -> None:
        """The wrapper's opener is an optional head of the region's; its closer is swallowed where text would be."""
        opener = f"(?:(?:{pattern_of(wrapper, 'open')})\\s*)?(?:{pattern_of(field, 'open')})"
        field.pop("open", None)
        field["open_pattern"] = opener
        closer = pattern_of(wrapper, "close")
        self.lose(f"{path}.within", "text between the calls of a wrapper is content, not dropped")
        if closer is None:
            return
        if implicit is not None:
            before = pattern_of(implicit, "close")
            implicit.pop("close", None)
            implicit["close_pattern"] = f"(?:{before})|\\s*(?:{closer})" if before else f"\\s*(?:{closer})"
        else:
            inner = pattern_of(field, "close")
            field.pop("close", None)
            field["close_pattern"] = f"(?:{inner})(?:\\s*(?:{closer}))?" if inner else closer


def each(name: str, value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """A field's syntaxes, each with its path."""
    if isinstance(value, list):
        for number, item in enumerate(cast("list[dict[str, Any]]", value)):
            yield f"$.fields.{name}[{number}]", item
    else:
        yield f"$.fields.{name}", value


def _either(patterns: Iterable[str | None]) -> str:
    return "|".join(f"(?:{pattern})" for pattern in dict.fromkeys(patterns) if pattern is not None)


def _optional_end(pattern: str) -> str | None:
    """What stands in the `(?:…)?` with which a pattern ends."""
    opened: list[int] = []
    for match in regex.finditer(r"\\.|\[(?:\\.|[^\]\\])*\]|[()]", pattern, regex.DOTALL):
        if match[0] == "(":
            opened.append(match.start())
        elif match[0] == ")":
            start = opened.pop()
            if match.end() == len(pattern) - 1 and pattern.endswith("?") and pattern.startswith("(?:", start):
                return pattern[start + 3 : match.start()]
    return None


def _texts(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def pattern_of(field: Mapping[str, Any], side: str) -> str | None:
    """What opens or closes a field, as a regular expression."""
    if side in field:
        texts = sorted(_texts(field[side]), key=len, reverse=True)
        escape: Callable[[str], str] = regex.escape
        return "|".join(map(escape, texts))
    return field.get(f"{side}_pattern")


def _without_names(pattern: str) -> str:
    """The same without named groups, which mean something only where a region opens."""
    return _NAMED_GROUP.sub(r"\1(?:", pattern)
