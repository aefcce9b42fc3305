"""One region: its text while it grows, its value when it ends, and what it is worth where the output ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

from respzoo.allowance import Allowance, seconds_for
from respzoo.calls import finish_value
from respzoo.content import Lexer
from respzoo.content.tags import TagLexer
from respzoo.delimiters import Partial
from respzoo.fields import CALLS, CONTENT, REASONING, Field
from respzoo.joined import FEW, MANY, compact
from respzoo.schema import Tools
from respzoo.transform import apply_transform

__all__ = ["Region", "Verdict"]

_NONE: Mapping[str, str] = {}
_CUT = "the output ended inside it"

# a closer that begins with a bracket, quote or fence: more than a stop token is missing when it is
_NEEDS_BRACKET = re.compile(r"(?:\(\?:|\(|\\[sn][*+?]?\??)*\\?[\]})\"'`]")
_LOOKBEHIND = re.compile(r"\(\?<[=!](?:\\.|[^()\\])*\)")


class Verdict(NamedTuple):
    """What a region is when it has ended: a value or, with an error, none; or white space and nothing else."""

    outcome: Literal["value", "nothing", "malformed", "unfinished"]
    value: Any = None
    error: str = ""


class Region:
    """A stretch of text that belongs to a field.

    Attributes:
        explicit: whether it was opened by a delimiter, rather than being the implicit field's.
        opened: whether its `region_open` was told.
        opener: the text of its opener.
        captures: the named groups of its delimiters.
        dirty: whether its text is not yet its value.
        parts: its text so far, piece by piece.
        lexer: what follows its content.
        forgets: whether another keeps its text, so that here only counts whether there is any. For text that is its
            value as it comes.
        most: how many more pieces there may be before it is worth while to `compact` them.
    """

    __slots__ = (
        "_fixed", "_joined", "_run", "captures", "dirty", "explicit", "field", "forgets", "lexer", "most",
        "opened", "opener", "parts",
    )  # fmt: skip

    def __init__(
        self,
        field: Field,
        *,
        explicit: bool,
        opener: str = "",
        captures: Mapping[str, str] | None = None,
        forgets: bool = False,
    ) -> None:
        self.field = field
        self.explicit = explicit
        self.opened = explicit
        self.opener = opener
        self.captures: Mapping[str, str] = captures or _NONE
        self.dirty = not field.content.flat
        self.parts: list[str] = []
        self._run = 0  # the first part that is not joined yet
        self._fixed = 0  # and the first that may be joined with those behind it
        self._joined = (-1, "")  # how many parts were joined last, and their text
        self.forgets = forgets and field.flat and field.lexer is None and field.key in (REASONING, CONTENT)
        self.lexer: Lexer | None = None if field.lexer is None or not explicit else field.lexer()
        self.most = 2 if self.forgets else FEW if forgets or isinstance(self.lexer, TagLexer) else MANY

    @property
    def text(self) -> str:
        if self._joined[0] != len(self.parts):
            self._joined = len(self.parts), "".join(self.parts)
        return self._joined[1]

    def catch(self, groups: Mapping[str, str]) -> None:
        """Its closer has caught these."""
        if groups:
            self.captures = {**self.captures, **groups}

    def found(self) -> None:
        """A delimiter of the lexer's was found behind the parts so far: it may know their places by number."""
        self._run = self._fixed = len(self.parts)

    def compact(self) -> None:
        """Join what has come in small pieces, each once, so that a long region costs little more than its text."""
        if self.forgets:
            del self.parts[:-1]
            self._joined = (-1, "")
            return
        if len(self.parts) - self._run >= self.most:
            self._run = compact(self.parts, self._run, self._fixed)
            self._joined = (-1, "")

    @property
    def raw(self) -> str:
        """All of it so far, opener included."""
        return self.opener + self.text

    @property
    def gives_up(self) -> bool:
        """Whether it should have ended with its value, and there can be none any more."""
        return self.field.ends_with_value and self.lexer is not None and self.lexer.broken

    def closed(self, tools: Tools, allowance: Allowance) -> Verdict:
        """It has ended by the template's word."""
        if not self.explicit and not self.field.content.flat and not self.text.strip():
            return Verdict("nothing")  # white space between regions is no value of a structured implicit field
        return self._read(self.text, tools, allowance)

    def cut(self, partial: Partial | None, tools: Tools, allowance: Allowance) -> Verdict:
        """The output has ended inside it, with this text begun to be a delimiter, which is not in `parts`. Text is as
        good as ever; a structured value must be whole."""
        field, tail = self.field, "" if partial is None else partial.text
        body = self.text
        if partial is not None and tail and not tail.isspace() and not _is_closer(partial):
            return Verdict("unfinished", error=_CUT)  # not the closer, but more of the value was cut
        if field.close is not None and not self._may_stand_open(tail):
            return Verdict(self._whose_fault(body + tail), error=_CUT)
        verdict = self._read(body + (tail if field.close is None else ""), tools, allowance)
        return verdict if verdict.outcome == "value" else verdict._replace(outcome=self._whose_fault(body + tail))

    def takes_last_closer(self) -> bool:
        """At the end of the output, inside a tag's value: whether the region's closer was written, with which its text
        ends, and only the value's own closing tag was not. The value is then taken."""
        return isinstance(self.lexer, TagLexer) and self.lexer.close_last(self.parts) is not None

    def _read(self, text: str, tools: Tools, allowance: Allowance) -> Verdict:
        arguments = self.field, text, self.lexer, self.captures, tools
        try:
            return Verdict("value", _value(*arguments) if not self.dirty else allowance.spend(_value, *arguments))
        except Exception as error:  # noqa: BLE001  whatever a model wrote, and a content parser made of it
            return Verdict("malformed", error=str(error) or type(error).__name__)

    def _may_stand_open(self, tail: str) -> bool:
        """Whether nothing can be missing at the output's end but a closer that the engine may have cut as a stop token.
        `tail` is what was written of the closer."""
        field, lexer = self.field, self.lexer
        if not field.content.complete_without_closer or (lexer is not None and not lexer.whole()):
            return False
        assert field.close is not None
        return bool(tail.strip()) or _NEEDS_BRACKET.match(_LOOKBEHIND.sub("", field.close.pattern.pattern)) is None

    def _whose_fault(self, text: str) -> Literal["malformed", "unfinished"]:
        """Whether text that is no value was closed all the same, rather than cut off: a closer stands somewhere inside
        it, or it could not have become a value any more and swallowed an answer."""
        field, lexer = self.field, self.lexer
        if lexer is not None and lexer.broken:
            closed = True
        elif field.close is None:
            closed = lexer is not None and not lexer.cut(text)
        else:
            try:
                closed = field.close.pattern.search(text, timeout=seconds_for(text)) is not None
            except TimeoutError:
                closed = True  # nobody knows; what is shown is not lost
        return "malformed" if closed else "unfinished"


def _is_closer(partial: Partial) -> bool:
    return any(delimiter.kind in ("close", "end") for delimiter in partial.delimiters)


def _value(field: Field, body: str, lexer: Lexer | None, captures: Mapping[str, str], tools: Tools) -> Any:
    """The value of a region of `field`: parsed, transformed with the delimiters' captures, its calls typed.

    Raises:
        Exception: the text is no such value (a ValueError unless the template's own arguments are amiss).
    """
    calls = field.key == CALLS
    value = field.content.parse_lexed(lexer, body, strict=calls)
    if field.transform is not None:
        scopes = _scopes(field, value)
        filled = [apply_transform(field.transform, {**captures, **scope}, extended=field.extended) for scope in scopes]
        value = filled if field.transform_each else filled[0]
    if not (field.flat and calls):  # calls as bare text are the template's own affair
        value = finish_value(value, tools, calls=calls)
    if field.join is not None and not isinstance(value, str):
        raise ValueError(f"'join' needs text, found {type(value).__name__}")
    return value


def _scopes(field: Field, value: Any) -> list[Mapping[str, Any]]:
    """What the placeholders of the field's transform may name, for each time that it is filled."""
    if not field.transform_each:
        return [{"content": value}]
    pairs = field.transform_each == "pairs"
    if pairs and isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, list):
        raise ValueError(f"expected a list of calls, found {type(value).__name__}")
    items = cast("list[Any]", value)
    if not all(isinstance(item, Mapping) for item in items):
        raise ValueError("expected a list of objects, found something else in it")
    if pairs:
        return [{"key": key, "value": each} for item in items for key, each in item.items()]
    return items
