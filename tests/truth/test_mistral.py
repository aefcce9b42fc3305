"""Mistral: the tokenizers of mistral-common encode, version by version; we read, with token ids and without.

A tokenizer of bytes stands in for the real vocabularies: what counts is which tokens are control tokens.
"""

from __future__ import annotations

import base64
import json
import string
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any

import pytest
from hypothesis import strategies as st
from mistral_common.integrations.chat_templates.chat_templates import generate_chat_template
from mistral_common.protocol.instruct.chunk import TextChunk, ThinkChunk
from mistral_common.protocol.instruct.messages import AssistantMessage, ToolMessage, UserMessage
from mistral_common.protocol.instruct.request import InstructRequest
from mistral_common.protocol.instruct.tool_calls import FunctionCall, ToolCall
from mistral_common.tokens.tokenizers.base import SpecialTokens, TokenizerVersion
from mistral_common.tokens.tokenizers.instruct import (
    InstructTokenizerV2,
    InstructTokenizerV3,
    InstructTokenizerV7,
    InstructTokenizerV11,
    InstructTokenizerV13,
)
from mistral_common.tokens.tokenizers.tekken import SpecialTokenInfo, Tekkenizer
from truth_turns import Call, Form, Rendered, Turn, holds

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from transformers.utils.chat_template_utils import _compile_jinja_template

V3 = Form(
    markers=(
        "[TOOL_CALLS]",
        "[TOOL_CALLS] [",
        "[ARGS]",
        "[TOOL_RESULTS]",
        "[/TOOL_RESULTS]",
        "</s>",
        "[INST]",
        "[/INST]",
    ),
    answer=r"\[TOOL_CALLS\]|</s>",
    spaces=True,
    reasons=False,
    both=False,
    never=lambda turn: not (turn.content.rstrip(" ") or turn.calls),
)
V7 = replace(V3, both=True, never=lambda turn: False)
V11 = replace(V7, markers=(*V3.markers, "[CALL_ID]", "[TOOL_CALLS]f[ARGS]{}"))
V13 = replace(
    V11,
    markers=(*V11.markers, "[THINK]", "[/THINK]"),
    reasons=True,
    thought=r"\[/THINK\]|\[TOOL_CALLS\]|</s>",
    answer=V11.answer + r"|\[/?THINK\]",
)

V11_THINK = replace(
    V11,
    markers=(*V11.markers, "<think>", "</think>"),
    thought=r"</think>|\[TOOL_CALLS\]|</s>",
    answer=V11.answer + "|</?think>",
    spaces=False,
    reasons=True,
)

SPECIAL = [token.value for token in SpecialTokens]
ALPHABET = string.ascii_letters + string.digits


@cache
def tokenizer(kind: type[Any], version: TokenizerVersion) -> Any:
    vocabulary: Any = [
        {"rank": byte, "token_bytes": base64.b64encode(bytes([byte])).decode(), "token_str": None}
        for byte in range(256)
    ]
    special = [SpecialTokenInfo(rank=rank, token_str=text, is_control=True) for rank, text in enumerate(SPECIAL)]
    size = 256 + len(special)
    return kind(Tekkenizer(vocabulary, special, r"[\s\S]", size, len(special), version))


def pieces(tokens: Sequence[int]) -> Iterator[tuple[str, bool]]:
    for is_special, run in groupby(tokens, lambda token: token < len(SPECIAL)):
        if is_special:
            yield from ((SPECIAL[token], True) for token in run)
        else:
            yield bytes(token - len(SPECIAL) for token in run).decode(), False


def tool_calls(calls: Sequence[Call], draw: Callable[..., Any]) -> list[ToolCall]:
    ids = st.text(ALPHABET, min_size=9, max_size=9)
    return [
        ToolCall(
            id=draw(ids),
            function=FunctionCall(name=call.name, arguments=json.dumps(call.arguments, ensure_ascii=False)),
        )
        for call in calls
    ]


@pytest.mark.parametrize("with_ids", [True, False], ids=["token ids", "text"])
@pytest.mark.parametrize(
    ("family", "form", "kind", "version"),
    [
        ("mistral_v3", V3, InstructTokenizerV2, TokenizerVersion.v2),
        ("mistral_v3", V3, InstructTokenizerV3, TokenizerVersion.v3),
        ("mistral_v3", V7, InstructTokenizerV7, TokenizerVersion.v7),
        ("mistral_v13", V11, InstructTokenizerV11, TokenizerVersion.v11),
        ("mistral_v13", V13, InstructTokenizerV13, TokenizerVersion.v13),
    ],
)
def test_what_mistral_common_encodes(
    family: str, form: Form, kind: type[Any], version: TokenizerVersion, *, with_ids: bool
) -> None:
    encoder = tokenizer(kind, version)
    before_v7 = version in (TokenizerVersion.v2, TokenizerVersion.v3)

    def render(turn: Turn, draw: Callable[..., Any]) -> tuple[Turn, Rendered]:
        before: list[Any] = [UserMessage(content="What is the weather?")]
        if draw(st.booleans()):
            called = ToolCall(id="123456789", function=FunctionCall(name="offered", arguments='{"old": 1}'))
            before.append(AssistantMessage(content=None, tool_calls=[called]))
            before.append(ToolMessage(content="3", tool_call_id="123456789", name="offered"))
        if before_v7:
            turn = replace(turn, content=turn.content.rstrip(" "))  # which these leave out
        chunks: list[Any] = [ThinkChunk(thinking=turn.reasoning)] if turn.reasoning else []
        if turn.content:
            chunks.append(TextChunk(text=turn.content))
        message = AssistantMessage(
            content=turn.content or None if before_v7 else chunks or None,
            tool_calls=tool_calls(turn.calls, draw) or None,
        )
        prompt = encoder.encode_instruct(InstructRequest(messages=before)).tokens
        tokens = encoder.encode_assistant_message(message, is_before_last_user_message=False)
        prefix = "".join(text for text, _ in pieces(prompt))
        rendered = Rendered.of_tokens(prefix, list(pieces(tokens if draw(st.booleans()) else tokens[:-1])), SPECIAL)
        return turn, rendered if with_ids else rendered.without_tokens()

    holds(family, form, render, times=60)


def test_what_the_chat_template_of_v11_writes_with_plain_thinking() -> None:
    text = generate_chat_template(
        spm=False,
        tokenizer_version=TokenizerVersion.v11,
        image_support=False,
        audio_support=False,
        thinking_support=False,
        default_system_prompt=None,
        plain_thinking_support=True,
        use_special_token_variables=False,
        model_settings_fields=None,
        reasoning_effort_values=None,
        reasoning_effort_default=None,
    )
    template = _compile_jinja_template(text)

    def render(turn: Turn, draw: Callable[..., Any]) -> tuple[Turn, Rendered]:
        before = [{"role": "user", "content": "What is the weather?"}]
        content: list[Any] = [{"type": "thinking", "thinking": turn.reasoning}] if turn.reasoning else []
        content += [{"type": "text", "text": turn.content}] if turn.content else []
        message: dict[str, Any] = {"role": "assistant", "content": content or ""}
        if turn.calls:
            message["tool_calls"] = [call.model_dump() for call in tool_calls(turn.calls, draw)]
        prompt = template.render(messages=before, tools=None)
        whole = template.render(messages=[*before, message], tools=None)
        assert whole.startswith(prompt)
        output = whole[len(prompt) :]
        return turn, Rendered(prompt, output if draw(st.booleans()) else output.removesuffix("</s>"))

    holds("mistral_v11_think", V11_THINK, render, times=60)
