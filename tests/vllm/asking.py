"""What the tests of grammars ask for, and what a model might write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from driving import TOOLS, WEATHER

from respzoo_vllm import grammar

PING = {"name": "ping", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}
STRICT = [{"type": "function", "function": {**WEATHER, "strict": True}}]
TWO = [*TOOLS, {"type": "function", "function": PING}]
NAMED = {"type": "function", "function": {"name": "get_weather"}}
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}


def call(name: str, **arguments: Any) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {json.dumps(arguments)}}}\n</tool_call>'


OSLO = call("get_weather", city="Oslo", days=3)
WRONG = call("get_weather", city="Oslo", days="three")
NOBODY = call("get_whether", city="Oslo")
ANSWER = '{"answer": 42}'


@contextmanager
def listening() -> Iterator[list[str]]:
    """What is said of grammars, as if nothing had been said before."""
    lines: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grammar, "_said", set())
        patch.setattr(grammar.logger, "warning", lambda text, *values: lines.append(text % values))
        yield lines
