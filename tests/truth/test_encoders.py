"""Families without a chat template, or with one that engines wrote anew: the engines' own encoders write, we read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import truth_forms as forms
from hypothesis import strategies as st
from truth_programs import sglang_module, vllm_module
from truth_turns import Call, Form, Rendered, Turn, holds

EARLIER = Call("offered", {"old": 1})


def openai_calls(calls: Sequence[Call], *, as_text: bool) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments) if as_text else call.arguments},
        }
        for index, call in enumerate(calls)
    ]


def conversation(after_tool: bool, *, as_text: bool, key: str) -> list[dict[str, Any]]:
    before: list[dict[str, Any]] = [{"role": "user", "content": "What is the weather?"}]
    if after_tool:
        called = {
            "role": "assistant",
            "content": "",
            key: "Hm.",
            "tool_calls": openai_calls([EARLIER], as_text=as_text),
        }
        before += [called, {"role": "tool", "tool_call_id": "call0", "content": "3"}]
    return before


# ------------------------------------------------------------------------------------------------------------- DeepSeek

END = "<｜end▁of▁sentence｜>"


@pytest.mark.parametrize(
    ("family", "path", "key"),
    [
        ("deepseek_v32", "tokenizers/deepseek_v32_encoding.py", "reasoning"),
        ("deepseek_v4", "tokenizers/deepseek_v4_encoding.py", "reasoning"),
        ("deepseek_v41", "tokenizers/deepseek_v41_encoding.py", "reasoning_content"),
    ],
)
def test_what_deepseeks_encoders_write(family: str, path: str, key: str) -> None:
    encode = vllm_module(path).encode_messages

    def render(turn: Turn, draw: Callable[..., Any]) -> tuple[Turn, Rendered]:
        mode = draw(st.sampled_from(["thinking", "chat"]))
        if mode == "chat":
            turn = replace(turn, reasoning="")
        before = conversation(draw(st.booleans()), as_text=True, key=key)
        message = {"role": "assistant", "content": turn.content, key: turn.reasoning}
        if turn.calls:
            message["tool_calls"] = openai_calls(turn.calls, as_text=True)
        if mode == "thinking" and not (turn.reasoning or turn.calls):
            turn = replace(turn, reasoning="Hm.")  # which the first of the encoders wants
            message[key] = "Hm."
        prompt = encode(before, thinking_mode=mode)
        whole = encode([*before, message], thinking_mode=mode)
        assert whole.startswith(prompt)
        assert whole.endswith(END)
        output = whole[len(prompt) :]
        return turn, Rendered(prompt, output if draw(st.booleans()) else output.removesuffix(END))

    holds(family, forms.DSML, render, times=100)


# ------------------------------------------------------------------------------------------------------------------ GLM


@pytest.mark.parametrize("name", ["render_glm53_segments", "render_glm53_flash_segments"])
def test_what_glm_5_3s_chat_template_writes(name: str) -> None:
    write = getattr(sglang_module("srt/parser/glm53_chat_template.py"), name)

    def render(turn: Turn, draw: Callable[..., Any]) -> tuple[Turn, Rendered]:
        before = conversation(draw(st.booleans()), as_text=False, key="reasoning_content")
        message = {"role": "assistant", "content": turn.content, "reasoning_content": turn.reasoning}
        if turn.calls:
            message["tool_calls"] = openai_calls(turn.calls, as_text=False)
        prompt = "".join(write(before, tools=[], add_generation_prompt=True))
        whole = "".join(write([*before, message], tools=[], add_generation_prompt=False))
        assert whole.startswith(prompt), (prompt, whole)
        return turn, Rendered(prompt, whole[len(prompt) :])

    holds("glm4_moe", forms.KV, render, times=100)


# -------------------------------------------------------------------------------------------------------------- Inkling

INKLING = Form(
    markers=(
        "<|message_model|>",
        "<|content_text|>",
        "<|content_thinking|>",
        "<|content_invoke_tool_json|>",
        "<|end_message|>",
        "<|content_model_end_sampling|>",
    ),
    thought=r"<\|(?:end_message|message_model|content_\w+)\|>",
    answer=r"<\|(?:end_message|message_model|content_\w+)\|>",
    spaces=True,
)


class Characters:
    """Text to ids and back, markers as one id each: what the encoder wants of a tokenizer."""

    def __init__(self) -> None:
        self.special: list[str] = []

    def encode_text(self, text: str) -> list[int]:
        return [ord(char) for char in text]

    def encode_special(self, token: str) -> int:
        self.special.append(token)
        return -len(self.special)

    def piece(self, one: int) -> tuple[str, bool]:
        """Its text, and whether it is a marker."""
        return (chr(one), False) if one >= 0 else (self.special[-one - 1], True)

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.piece(one)[0] for one in ids)


@pytest.mark.parametrize("with_ids", [True, False], ids=["token ids", "text"])
def test_what_inklings_encoder_writes(*, with_ids: bool) -> None:
    write = vllm_module("renderers/inkling_encoding.py").render_inkling_messages

    def render(turn: Turn, draw: Callable[..., Any]) -> tuple[Turn, Rendered]:
        before = conversation(draw(st.booleans()), as_text=False, key="reasoning")
        message = {"role": "assistant", "content": turn.content, "reasoning": turn.reasoning}
        message["tool_calls"] = openai_calls(turn.calls, as_text=False)
        characters = Characters()
        prompt = write(before, characters)
        whole = write([*before, message], characters, add_generation_prompt=False)
        pieces = [characters.piece(one) for one in whole]
        assert characters.decode(whole).startswith(characters.decode(prompt))
        pieces = pieces[len(prompt) :]
        assert pieces[-1] == ("<|content_model_end_sampling|>", True)
        pieces = pieces if draw(st.booleans()) else pieces[:-1]
        rendered = Rendered.of_tokens(characters.decode(prompt), pieces, sorted(set(characters.special)))
        return turn, rendered if with_ids else rendered.without_tokens()

    holds("inkling", INKLING, render, times=60)
