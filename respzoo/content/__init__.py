"""The content parsers by the name that a template uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from respzoo.content.arguments import faults
from respzoo.content.base import Borders, ContentParser, Lexer, Raw, ValueParser, settle_raw
from respzoo.content.json import Json, load_strictly
from respzoo.content.text import Bool, Float, Int, Text

__all__ = [
    "EXTENDED_NAMES",
    "NAMES",
    "Borders",
    "ContentParser",
    "Json",
    "Lexer",
    "Raw",
    "ValueParser",
    "load_strictly",
    "make",
    "settle_raw",
]

_PLAIN: dict[str, type[ContentParser]] = {parser.name: parser for parser in (Text, Int, Float, Bool, Json)}
NAMES = (*_PLAIN, "python-call-list", "xml-inline", "kv-lines")
"""All content parsers' names."""
EXTENDED_NAMES = (*NAMES, "xml-tree")
"""And those that the extended language adds."""


def _parser(name: str) -> type[ContentParser]:
    """The content parser of this name. The larger ones are imported when a template wants them: most want one."""
    match name:
        case "python-call-list":
            from respzoo.content.python_call_list import PythonCallList as parser
        case "xml-inline":
            from respzoo.content.xml_inline import XmlInline as parser
        case "kv-lines":
            from respzoo.content.kv_lines import KvLines as parser
        case "xml-tree":
            from respzoo.content.xml_tree import XmlTree as parser
        case _:
            return _PLAIN[name]
    return parser


def make(name: str, args: Mapping[str, Any], *, extended: bool = False) -> ContentParser:
    """The content parser `name` (one of NAMES) with these `content_args`. `extended`: the template speaks respzoo's
    dialect; its arguments are all checked, and those that the reference does not know mean something.

    Raises:
        KeyError: there is no such parser.
        regex.error: a pattern among the arguments does not compile.
        ValueError: `extended`, and an argument is unknown or none of what it may be.
    """
    if name not in (EXTENDED_NAMES if extended else NAMES):
        raise KeyError(name)
    parser = _parser(name)
    if extended and (wrong := faults(name, parser.arguments, args)):
        raise ValueError("; ".join(wrong))

    def value_parser(spec: Mapping[str, Any]) -> ValueParser:
        name = spec.get("name", "text")
        if extended and name not in EXTENDED_NAMES:
            raise ValueError(f"no content parser is called {name!r}; there are {', '.join(map(repr, EXTENDED_NAMES))}")
        values = make(name, spec.get("args") or {}, extended=extended)
        return lambda text: values.parse(text, strict=True)

    return parser(args, extended=extended, value_parser=value_parser)
