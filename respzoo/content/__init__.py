"""The content parsers by the name that a template uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from respzoo.content.arguments import faults
from respzoo.content.base import ContentParser, Lexer, Raw, ValueParser, settle_raw
from respzoo.content.json import Json, load_strictly
from respzoo.content.kv_lines import KvLines
from respzoo.content.python_call_list import PythonCallList, read_literal
from respzoo.content.tags import Pair, TagLexer
from respzoo.content.text import Bool, Float, Int, Text
from respzoo.content.xml_inline import XmlInline
from respzoo.content.xml_tree import DEEPEST_TREE, XmlTree

__all__ = [
    "DEEPEST_TREE",
    "EXTENDED_NAMES",
    "NAMES",
    "ContentParser",
    "Json",
    "KvLines",
    "Lexer",
    "Pair",
    "Raw",
    "TagLexer",
    "ValueParser",
    "XmlInline",
    "XmlTree",
    "load_strictly",
    "make",
    "read_literal",
    "settle_raw",
]

_PARSERS: dict[str, type[ContentParser]] = {
    parser.name: parser for parser in (Text, Int, Float, Bool, Json, PythonCallList, XmlInline, KvLines)
}
NAMES = tuple(_PARSERS)
"""All content parsers' names."""
EXTENDED_NAMES = (*NAMES, XmlTree.name)
"""And those that the extended language adds."""


def make(name: str, args: Mapping[str, Any], *, extended: bool = False) -> ContentParser:
    """The content parser `name` (one of NAMES) with these `content_args`. `extended`: the template speaks respzoo's
    dialect; its arguments are all checked, and those that the reference does not know mean something.

    Raises:
        regex.error: a pattern among the arguments does not compile.
        ValueError: `extended`, and an argument is unknown or none of what it may be.
    """
    parser = XmlTree if extended and name == XmlTree.name else _PARSERS[name]
    if extended and (wrong := faults(name, parser.arguments, args)):
        raise ValueError("; ".join(wrong))

    def value_parser(spec: Mapping[str, Any]) -> ValueParser:
        name = spec.get("name", "text")
        if extended and name not in EXTENDED_NAMES:
            raise ValueError(f"no content parser is called {name!r}; there are {', '.join(map(repr, EXTENDED_NAMES))}")
        values = make(name, spec.get("args") or {}, extended=extended)
        return lambda text: values.parse(text, strict=True)

    return parser(args, extended=extended, value_parser=value_parser)
