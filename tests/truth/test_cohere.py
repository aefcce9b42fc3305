"""Command 3, 4 and 5: cohere_melody, Cohere's own renderer, writes; we read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import cohere_melody
import pytest
from hypothesis import strategies as st
from truth_turns import IDENTIFIERS, Call, Form, Rendered, Turn, holds, json_values

TURN = "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"
MARKERS = (
    "<|START_THINKING|>",
    "<|END_THINKING|>",
    "<|START_ACTION|>",
    "<|END_ACTION|>",
    "<|START_TEXT|>",
    "<|END_TEXT|>",
    "<|START_RESPONSE|>",
    "<|END_RESPONSE|>",
    "<|END_OF_TURN_TOKEN|>",
    "<co>",
    "</co: 0:[1]>",
    "<cofl:tool_calls>",
    "</cofl:tool_calls>",
    "</cofl:tool_call>",
    "</cofl:value>",
    '<cofl:value name="a" type="raw">',
)
MOST = 2**63 - 1
"""The renderer reads the JSON of arguments with integers of 64 bits, and rounds floats."""
FORM = Form(
    markers=MARKERS,
    thought=r"<\|(?:START|END)_\w+\|>|<cofl:",
    answer=r"<\|(?:START|END)_\w+\|>|<cofl:",
    values=json_values(MARKERS, most=MOST, exact=False),
    spaces=True,
    both=False,
    never=lambda turn: bool(turn.reasoning) and not (turn.content or turn.calls),
)
CITED = r"|</?co(?::|>)"
"""Marks of citations are left out of texts."""
TREE = replace(
    FORM,
    thought=FORM.thought + CITED,
    answer=FORM.answer + CITED,
    value="</?cofl:",
    keys=IDENTIFIERS,
    values=json_values(MARKERS, IDENTIFIERS, most=MOST, exact=False),
)


def blocks(turn: Turn) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    if turn.reasoning:
        made.append({"type": "thinking", "thinking": turn.reasoning})
    if turn.content:
        made.append({"type": "text", "text": turn.content})
    return made


def tool_calls(calls: Sequence[Call], first: int) -> list[dict[str, Any]]:
    return [
        {"id": str(index), "name": call.name, "parameters": json.dumps(call.arguments)}
        for index, call in enumerate(calls, first)
    ]


@pytest.mark.parametrize(
    ("family", "form", "write"),
    [
        ("cohere_command3", FORM, cohere_melody.render_cmd3),
        ("cohere_command4", replace(TREE, value="", keys=None, values=FORM.values), cohere_melody.render_cmd4),
        ("cohere_command5", TREE, cohere_melody.render_cmd5),
    ],
)
def test_what_melody_renders(family: str, form: Form, write: Callable[[dict[str, Any]], str]) -> None:
    def render(turn: Turn, draw: Callable[..., Any]) -> tuple[Turn, Rendered]:
        config: dict[str, Any] = {"available_tools": [{"name": "offered", "description": "Does it.", "parameters": {}}]}
        kind = draw(st.sampled_from([None, "enabled", "disabled"]))
        if kind:
            config["reasoning_type"] = kind
        if kind == "disabled":
            turn = replace(turn, reasoning="")
        before: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "What is the weather?"}]}]
        if draw(st.booleans()):
            before.append(
                {"role": "chatbot", "content": [], "tool_calls": tool_calls([Call("offered", {"old": 1})], 0)}
            )
            before.append({"role": "tool", "tool_call_id": "0", "content": [{"type": "text", "text": "3"}]})
        message = {"role": "chatbot", "content": blocks(turn), "tool_calls": tool_calls(turn.calls, len(before) // 3)}
        prompt = write({**config, "messages": before})
        whole = write({**config, "messages": [*before, message]})
        again = TURN + prompt.rpartition(TURN)[2]  # the prompt of the turn after this one
        assert whole.startswith(prompt)
        assert whole.endswith(again)
        output = whole[len(prompt) : len(whole) - len(again)]
        assert output.endswith("<|END_OF_TURN_TOKEN|>")
        return turn, Rendered(prompt, output if draw(st.booleans()) else output.removesuffix("<|END_OF_TURN_TOKEN|>"))

    holds(family, form, render, times=100)
