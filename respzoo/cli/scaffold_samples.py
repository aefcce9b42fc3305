"""The samples that `respzoo new` writes: one of each kind that a family should have, in the scaffold's own format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

__all__ = ["samples"]

WEATHER = {"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}
CLOCK: dict[str, Any] = {"name": "get_time", "arguments": {}}
QUOTES = {"name": "get_weather", "arguments": {"city": 'Zürich, "the city"\\ ends with </tool_call>'}}
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            },
        },
    },
    {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}},
]
NOTES = "Written by `respzoo new`: replace it by what the model's own chat template writes."


def samples(family: str, model: str, prompt: str) -> Iterator[dict[str, Any]]:
    """The records of samples.jsonl."""
    for slug, tags, text, reasoning, content, calls, begun in _cases():
        yield {
            "id": f"{family}/{slug}",
            "family": family,
            "models": [model],
            "spec_version": "0.1",
            "provenance": {"kind": "scaffold"},
            "tools": TOOLS,
            "raw_output": text,
            "generation_prompt": prompt + begun,
            "expected": {"content": content, "reasoning_content": reasoning, "tool_calls": calls},
            "tags": tags.split(),
            "notes": NOTES,
        }


def _call(call: dict[str, Any]) -> str:
    return f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"


def _cases() -> Iterator[tuple[str, str, str, str | None, str | None, list[Any], str]]:
    """Slug, tags, output, then what it means: reasoning, content, calls; and what the prompt has begun."""
    thought = "<think>\nA look outside.\n</think>\n\n"
    broken = '<tool_call>\n{"name": "get_weather", "arguments": {"city": }}\n</tool_call>'
    yield (
        "reasoning-then-call",
        "single-call reasoning",
        thought + _call(WEATHER),
        "A look outside.",
        None,
        [WEATHER],
        "",
    )
    yield "answer-alone", "no-call", "It is cold.", None, "It is cold.", [], "<think>\n\n</think>\n\n"
    both = f"Let me look.\n{_call(WEATHER)}\n{_call(CLOCK)}\nOne moment."
    yield (
        "parallel-with-text",
        "parallel-calls empty-arguments",
        both,
        None,
        "Let me look.\nOne moment.",
        [WEATHER, CLOCK],
        "",
    )
    yield "marker-in-value", "marker-in-arguments unicode string-escapes", _call(QUOTES), None, None, [QUOTES], ""
    yield "prefilled", "reasoning", "Cold.\n</think>\n\nYes.", "Cold.", "Yes.", [], "<think>\n"
    yield "long-answer", "no-call", "- one\n- two\n\nDone.", None, "- one\n- two\n\nDone.", [], ""
    yield "cut-in-reasoning", "truncated reasoning", "<think>\nA look", "A look", None, [], ""
    yield "cut-in-answer", "truncated", "It is", None, "It is", [], ""
    yield "cut-in-opener", "truncated", "Let me look.\n<tool_", None, "Let me look.\n<tool_", [], ""
    yield "cut-in-value", "truncated", _call(WEATHER)[:60], None, None, [], ""
    yield "cut-in-second-call", "truncated", f"{_call(CLOCK)}\n{_call(WEATHER)[:40]}", None, None, [CLOCK], ""
    yield "body-is-no-call", "malformed", f"Look: {broken}", None, f"Look: {broken}", [], ""
