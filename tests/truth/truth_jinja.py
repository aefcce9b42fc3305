"""Turns as upstream's chat templates write them, rendered by transformers' own environment."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jinja2
from hypothesis import strategies as st
from jinja2.sandbox import SandboxedEnvironment
from truth_programs import (
    axolotl_templates,
    llama_cpp_templates,
    trl_templates,
    vllm_templates,
    xinference_templates,
)
from truth_turns import Call, Rendered, Turn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from transformers.utils.chat_template_utils import _compile_jinja_template

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "offered",
            "description": "Does it.",
            "parameters": {
                "type": "object",
                "properties": {"old": {"type": "integer", "description": "How old."}},
                "required": ["old"],
            },
        },
    }
]
"""What a prompt's list of tools looks like does not matter to who reads the answer."""
TEMPLATES = {
    "trl": trl_templates,
    "llama.cpp": llama_cpp_templates,
    "vllm": vllm_templates,
    "axolotl": axolotl_templates,
    "xinference": xinference_templates,
}
EARLIER = Call("offered", {"old": 1})


@cache
def loose(chat_template: str) -> jinja2.Template:
    """Compiled as by transformers, in a sandbox that lets a template change its own lists."""
    strict = _compile_jinja_template(chat_template).environment
    environment = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = strict.filters["tojson"]
    environment.globals.update(strict.globals)
    return environment.from_string(chat_template)


@dataclass(frozen=True)
class ChatTemplate:
    """One chat template, and how its messages are given to it."""

    family: str
    source: str
    """The package and the name there."""
    stop: Sequence[str]
    """What it writes behind a turn, one of these: the model's stop token, and white space for the next turn."""
    variables: Sequence[Mapping[str, Any]] = ({},)
    """Of the render: thinking on, off, and what else changes the turn."""
    thinks: Callable[[Mapping[str, Any]], bool] = field(default=lambda variables: True)
    """Whether the turn may have reasoning under these variables."""
    as_text: bool = False
    """Arguments are given as JSON text."""
    key: str = "reasoning_content"
    """What the message calls its reasoning."""
    call_id: Callable[[str, int], str] = field(default=lambda name, index: f"call{index:05}")
    """What the template is given as the call's id."""
    results: bool = True
    """It can render a tool's result."""
    keeps: Callable[[Turn], Turn] = field(default=lambda turn: turn)
    """What it writes of a turn at all."""
    gives: Callable[[Turn], Turn] = field(default=lambda turn: turn)
    """What it is given so that it writes the turn as the model does."""
    mutable: bool = False
    """It changes lists, which transformers' sandbox forbids; engines that serve the model allow it."""
    anchor: str | tuple[str, ...] = ()
    """Where the model's turn begins, if it is not what the generation prompt adds."""
    prefills: bool = False
    """The prompt of a new turn begins it with what history leaves out (an empty thought)."""
    onward: str = ""
    """What it adds behind a turn for the one to come, asked or not."""

    @property
    def text(self) -> str:
        where, _, name = self.source.partition("/")
        return TEMPLATES[where]()[name]

    def write(self, messages: Sequence[Mapping[str, Any]], *, prompt: bool, **variables: Any) -> str:
        compile_ = loose if self.mutable else _compile_jinja_template
        variables = {"bos_token": "", "eos_token": "", **variables}
        return compile_(self.text).render(messages=messages, tools=TOOLS, add_generation_prompt=prompt, **variables)

    def calls(self, calls: Sequence[Call], first: int) -> list[dict[str, Any]]:
        return [
            {
                "id": self.call_id(call.name, first + index),
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(call.arguments, ensure_ascii=False) if self.as_text else call.arguments,
                },
            }
            for index, call in enumerate(calls)
        ]

    def message(self, turn: Turn, first: int) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": turn.content}
        if self.key:  # an empty one, too: without any, some templates look for reasoning in the content
            message[self.key] = turn.reasoning
        if turn.calls:
            message["tool_calls"] = self.calls(turn.calls, first)
        return message

    def render(self, turn: Turn, draw: Callable[..., Any]) -> tuple[Turn, Rendered]:
        """The turn less what cannot be written under the variables drawn, and its render."""
        variables = draw(st.sampled_from(self.variables))
        if not self.thinks(variables):
            turn = Turn("", turn.content, turn.calls)
        before: list[dict[str, Any]] = [{"role": "user", "content": "What is the weather?"}]
        after_tool = self.results and draw(st.booleans())
        if after_tool:
            before.append(self.message(Turn("", "", [EARLIER]), 0))
            before.append(
                {"role": "tool", "name": "offered", "tool_call_id": self.call_id("offered", 0), "content": "3"}
            )
        whole = self.write([*before, self.message(self.gives(turn), int(after_tool))], prompt=False, **variables)
        prompt = self.write(before, prompt=True, **variables)
        if self.prefills:
            head = self.write(before, prompt=False, **variables).removesuffix(self.onward)
            assert whole.startswith(head)
            whole = prompt + whole[len(head) :]
        elif not whole.startswith(prompt):
            prompt = self.from_history(before, whole, variables, after_tool)
        elif anchor := self.anchor_at(whole, len(prompt)):  # as some write it behind a tool's result
            prompt += anchor
        output = whole[len(prompt) :].removesuffix(self.onward)
        stop = next((stop for stop in self.stop if output.endswith(stop)), None)
        assert stop is not None, (output, self.stop)
        output = output[: len(output) - len(stop)]
        if draw(st.booleans()):
            output += stop.rstrip()
        return turn, Rendered(prompt, output)

    def from_history(
        self, before: Sequence[Mapping[str, Any]], whole: str, variables: Mapping[str, Any], after_tool: bool
    ) -> str:
        """The prompt where history is written otherwise than the prompt of a new turn begins: up to the anchor."""
        head = self.write(before, prompt=False, **variables)
        assert whole.startswith(head), (head, whole)
        if anchor := self.anchor_at(whole, len(head)):
            return head + anchor
        assert after_tool, f"history goes on with {whole[len(head) : len(head) + 80]!r}"
        return head

    def anchor_at(self, text: str, at: int) -> str:
        anchors = (self.anchor,) if isinstance(self.anchor, str) else self.anchor
        return next((anchor for anchor in anchors if text.startswith(anchor, at)), "")
