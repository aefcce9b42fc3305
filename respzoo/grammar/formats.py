"""xgrammar's structural tags, the few kinds of which ours are made.

They are plain dicts, as `xgrammar.StructuralTag` takes them from version 0.2.1 on (what vLLM 0.24 brings) and as
engines send them on: https://xgrammar.mlc.ai/docs/tutorials/structural_tag.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Format", "dispatch", "either", "grammar", "json_schema", "optional", "plus", "sequence", "star"]

Format = dict[str, Any]


def grammar(text: str) -> Format:
    """Text of an EBNF grammar."""
    return {"type": "grammar", "grammar": text}


def json_schema(schema: Any) -> Format:
    """A JSON value that fits a schema, with any white space in it."""
    return {"type": "json_schema", "json_schema": schema}


def sequence(elements: Sequence[Format]) -> Format:
    """One after another."""
    flat: list[Format] = []
    for element in elements:
        flat += element["elements"] if element["type"] == "sequence" else [element]
    return flat[0] if len(flat) == 1 else {"type": "sequence", "elements": flat}


def either(elements: Sequence[Format]) -> Format:
    """One of them."""
    return elements[0] if len(elements) == 1 else {"type": "or", "elements": list(elements)}


def optional(content: Format) -> Format:
    """It, or nothing."""
    return {"type": "optional", "content": content}


def plus(content: Format) -> Format:
    """It, once or more often."""
    return {"type": "plus", "content": content}


def star(content: Format) -> Format:
    """It, any number of times."""
    return {"type": "star", "content": content}


def dispatch(rules: Sequence[tuple[str, Format]]) -> Format:
    """Any text in which each of these strings is followed by its format."""
    return {"type": "dispatch", "rules": [list(rule) for rule in rules], "loop": True, "excludes": []}
