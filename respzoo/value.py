"""What a region's text is worth: its value, and whether one may be made of it where the output ended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from respzoo.calls import finish_value
from respzoo.content import Lexer
from respzoo.fields import CALLS, Field
from respzoo.schema import Tools
from respzoo.transform import apply_transform

__all__ = ["may_stand_open", "read_value", "was_closed"]

# a closer that begins with a bracket, quote or fence: more than a stop token is missing when it is
_NEEDS_BRACKET = re.compile(r"(?:\(\?:|\(|\\[sn][*+?]?\??)*\\?[\]})\"'`]")
_LOOKBEHIND = re.compile(r"\(\?<[=!](?:\\.|[^()\\])*\)")


def read_value(field: Field, body: str, lexer: Lexer | None, captures: Mapping[str, str], tools: Tools) -> Any:
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


def may_stand_open(field: Field, lexer: Lexer | None, tail: str) -> bool:
    """Whether nothing can be missing at the output's end but a closer that the engine may have cut as a stop token.
    `tail` is what was written of the closer."""
    if not field.content.complete_without_closer or (lexer is not None and not lexer.whole()):
        return False
    assert field.close is not None
    return bool(tail.strip()) or _NEEDS_BRACKET.match(_LOOKBEHIND.sub("", field.close.pattern.pattern)) is None


def was_closed(field: Field, lexer: Lexer | None, body: str) -> bool:
    """Whether text that is no value when the output ends was closed all the same, rather than cut off: a closer stands
    somewhere inside it, or it needs none and is broken."""
    if field.close is None:
        return lexer is not None and not lexer.cut(body)
    return field.close.pattern.search(body) is not None
