"""The content parsers by the name that a template uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from respzoo.content.base import ContentParser, Lexer, Raw, ValueParser, settle_raw
from respzoo.content.json import Json, load_strictly
from respzoo.content.kv_lines import KvLines
from respzoo.content.python_call_list import PythonCallList, read_literal
from respzoo.content.text import Bool, Float, Int, Text
from respzoo.content.xml_inline import TagLexer, XmlInline

__all__ = [
    "NAMES",
    "ContentParser",
    "Json",
    "Lexer",
    "Raw",
    "TagLexer",
    "load_strictly",
    "make",
    "read_literal",
    "settle_raw",
]

_PLAIN: dict[str, type[ContentParser]] = {
    parser.name: parser for parser in (Text, Int, Float, Bool, Json, PythonCallList)
}
NAMES = (*_PLAIN, XmlInline.name, KvLines.name)
"""All content parsers' names."""


def make(name: str, args: Mapping[str, Any]) -> ContentParser:
    """The content parser `name` (one of NAMES) with these `content_args`.

    Raises:
        regex.error: a pattern among the arguments does not compile.
    """
    if name == XmlInline.name:
        return XmlInline(args, _value_parser(args))
    if name == KvLines.name:
        return KvLines(args, _value_parser(args))
    return _PLAIN[name](args)


def _value_parser(args: Mapping[str, Any]) -> ValueParser | None:
    spec = args.get("value_parser")
    if spec is None:
        return None
    parser = make(spec.get("name", "text"), spec.get("args") or {})

    return lambda text: parser.parse(text, strict=True)
