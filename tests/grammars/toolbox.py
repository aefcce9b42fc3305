"""Tools whose schemas say all that a schema can say of types, and what it means for a message to keep to them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema

from respzoo import ResponseTemplate
from respzoo.fields import CALLS
from respzoo.testing import add_up, plain

__all__ = ["ODD_KEYS", "TOOLS", "Reading", "faults", "only_calls", "read", "record", "tool"]


def tool(name: str, parameters: Mapping[str, Any] | None = None, **said: Any) -> dict[str, Any]:
    function = {"name": name, "description": "Does it.", **said}
    if parameters is not None:
        function["parameters"] = parameters
    return {"type": "function", "function": function}


def record(properties: Mapping[str, Any], required: Sequence[str] = (), **said: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **said}


NODE = {
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2},
    },
    "required": ["size"],
    "additionalProperties": False,
}

TOOLS = [
    tool(
        "get_weather",
        record(
            {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "ratio": {"type": "number"},
                "metric": {"type": "boolean"},
                "nothing": {"type": "null"},
            },
            ["city"],
        ),
    ),
    tool(
        "nested",
        record(
            {
                "where": record({"lat": {"type": "number"}, "label": {"type": "string"}}, ["lat"]),
                "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
                "pairs": {"type": "array", "items": record({"a": {"type": "integer"}}, ["a"]), "minItems": 2},
            },
            ["where", "tags"],
            additionalProperties=False,
        ),
    ),
    tool(
        "choices",
        record(
            {
                "unit": {"type": "string", "enum": ["C", "F", "two words"]},
                "level": {"enum": [1, "high", True, None]},
                "kind": {"const": "fixed"},
            },
            ["unit", "kind"],
        ),
    ),
    tool(
        "unions",
        record(
            {
                "maybe": {"type": ["string", "null"]},
                "count": {"type": ["integer", "null"]},
                "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
                "optional": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None},
            },
            ["maybe", "count"],
        ),
    ),
    tool(
        "refers",
        {**record({"root": {"$ref": "#/$defs/node"}}, ["root"], additionalProperties=False), "$defs": {"node": NODE}},
    ),
    tool("mapping", {"type": "object", "additionalProperties": {"type": "integer"}}),
    tool("half_open", record({"id": {"type": "integer"}}, ["id"], additionalProperties=True)),
    tool("anything", {"type": "object"}),
    tool("no_properties", record({})),
    tool("ping"),
]
ODD_KEYS = ["a-b", "a.b", "two words", "ключ", "$where", "class", "q'uote"]


BEYOND = ("stands twice in one", "is too large", "is never closed")
"""What the parser says of calls that no grammar keeps a model from: a key of its own choice twice, a number in JSON beyond
a float's range, and (MiniMax M3) a key of its own choice that the closing tag does not repeat."""


@dataclass(frozen=True)
class Reading:
    """A message, and why regions of calls became none."""

    content: str
    calls: list[dict[str, Any]]
    malformed: list[str]

    @property
    def beyond(self) -> bool:
        return any(said in error for said in BEYOND for error in self.malformed)


def read(template: ResponseTemplate, text: str, tools: Sequence[Any], *, prefix: str = "", seed: int = 0) -> Reading:
    """What a text says, whole and cut at random."""
    whole = plain(template.parse(text, prefix=prefix, tools=tools, on_malformed="drop"))
    dice = random.Random(seed)
    stream = template.stream(prefix=prefix, tools=tools, on_malformed="drop")
    deltas: list[Any] = []
    at = 0
    while at < len(text):
        size = dice.randint(1, 12)
        deltas += stream.feed(text[at : at + size])
        at += size
    message, last = stream.finish()
    assert plain(message) == whole, text
    assert plain(add_up([*deltas, *last])) == whole, text
    dropped = [record["error"] for record in stream.dropped if record["field"] == CALLS]
    return Reading(whole["content"] or "", whole["tool_calls"], dropped)


def faults(reading: Reading, tools: Sequence[Any], *, exact: bool = True) -> list[str]:
    """Why a message's calls are not calls of these tools by their schemas. `exact`: an object that names its properties
    has no others."""
    schemas = {one["function"]["name"]: one["function"].get("parameters", {}) for one in tools}
    found = list(reading.malformed)
    for call in reading.calls:
        name, arguments = call["name"], call["arguments"]
        if name not in schemas:
            found.append(f"a call of {name!r}")
            continue
        if not isinstance(arguments, dict):
            found.append(f"arguments {arguments!r}")
            continue
        parameters = _closed(schemas[name]) if exact else schemas[name]
        validator = jsonschema.Draft202012Validator(parameters)
        found += [f"{name}: {error.message[:200]}" for error in validator.iter_errors(arguments)]
    return found


def _closed(schema: Any) -> Any:
    """As strict modes read it: an object that names its properties has no others unless it says so."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {
        key: {name: _closed(item) for name, item in value.items()} if key in ("properties", "$defs") else _closed(value)
        for key, value in schema.items()
    }
    if schema.get("properties"):
        plain.setdefault("additionalProperties", False)
    return plain


def only_calls(reading: Reading, tools: Sequence[Any]) -> list[str]:
    """What is wrong with a message that should be calls of these tools and nothing else."""
    found = faults(reading, tools)
    if not reading.calls:
        found.append("no calls")
    if reading.content.strip():
        found.append(f"content {reading.content!r}")
    return found
