"""How models write values: JSON within tags, Python, JSON with a model's own marks around strings."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from respzoo.grammar.dispatched import CODE, dispatch, quoted, string_without
from respzoo.grammar.ebnf import Rules, quote, series
from respzoo.grammar.schemas import Notation
from respzoo.grammar.texts import Texts

__all__ = ["WORD", "json_between_marks", "json_in_tags", "python"]

_JSON_WORDS = {"true": ("true",), "false": ("false",), "null": ("null",)}
_PYTHON_WORDS = {"true": ("True", "true"), "false": ("False", "false"), "null": ("None", "null")}
_PYTHON_ESCAPES = f"([\"'\\\\nrt] | {CODE})"
_BARE_KEY = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_LOOSE_KEY = re.compile(r'[^"{}\[\],:\s](?:[^"{}\[\],:\n]*[^"{}\[\],:\s])?')
# a key of any name holds no piece of a marker: those of the model's strings, of its stops
_LOOSE, _LOOSE_EDGE = r"""[^"'<>{}\[\],:\\\0-\x1f]""", r"""[^"'<>{}\[\],:\\\0- ]"""
WORD = "[a-zA-Z_] [a-zA-Z0-9_]*"
"""A bare key, a keyword."""


def json_in_tags(rules: Rules, texts: Texts) -> Notation:
    """JSON whose strings are such texts as they are written: a tag would end with what they exclude."""
    string = rules.add(f'"\\"" {string_without(rules, texts)} "\\""', "string")

    def written(text: str) -> list[str]:
        plain = json.dumps(text, ensure_ascii=False)
        if texts.search.after(0, plain) == 0:
            return [plain]
        for sign in filter(None, texts.signs):
            plain = plain.replace(sign, f"\\u{ord(sign[0]):04x}{sign[1:]}")
        return [plain] if texts.search.after(0, plain) == 0 else []

    return Notation(string, written, written, _JSON_WORDS, string)


def python(rules: Rules) -> Notation:
    """Python's literals, strings in either quote."""
    escapes = rules.add(_PYTHON_ESCAPES, "escape")
    string = rules.add(
        " | ".join(series([quote(mark), quoted(rules, mark, escapes, tabs=True), quote(mark)]) for mark in "\"'"),
        "string",
    )
    return Notation(string, _as_python, _as_python, _PYTHON_WORDS, string)


def json_between_marks(rules: Rules, marks: Sequence[Sequence[str]], *, loose: bool) -> Notation:
    """JSON with bare keys (`loose`: of any characters but JSON's own), and strings as they are between a model's own
    marks."""
    first, last = marks[0]
    inside = rules.add(dispatch({}, [last]), "inside")
    string = rules.add(series([quote(first), inside, quote(last)]), "string")

    def written(text: str) -> list[str]:
        return [] if last in text else [f"{first}{text}{last}"]

    bare = _LOOSE_KEY if loose else _BARE_KEY

    def key(text: str) -> list[str]:
        return [text] if bare.fullmatch(text) else [json.dumps(text, ensure_ascii=False)]

    word = rules.add(f"{_LOOSE_EDGE} ({_LOOSE}* {_LOOSE_EDGE})?" if loose else WORD, "word")
    return Notation(string, written, key, _JSON_WORDS, word, sorts=True)


def _as_python(text: str) -> list[str]:
    return list(dict.fromkeys([json.dumps(text, ensure_ascii=False), repr(text)]))
