"""gpt-oss: openai-harmony, the format's own library, renders; we read."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st
from truth_programs import harmony_vocabulary
from truth_turns import Form, Rendered, Turn, holds

FORM = Form(
    markers=(
        "<|start|>",
        "<|end|>",
        "<|channel|>final<|message|>",
        "<|call|>",
        "<|return|>",
        "<|message|>",
        "<|start|>assistant to=functions.f<|channel|>commentary<|message|>",
    ),  # fmt: skip
    thought=r"<\|end\|>",
    answer=r"<\|(?:end|return)\|>",
    spaces=True,
)


@cache
def encoding() -> Any:
    harmony_vocabulary()
    from openai_harmony import HarmonyEncodingName, load_harmony_encoding

    return load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)


def messages(turn: Turn, draw: Callable[..., Any]) -> list[Any]:
    from openai_harmony import Message, Role

    made: list[Any] = []
    if turn.reasoning:
        made.append(Message.from_role_and_content(Role.ASSISTANT, turn.reasoning).with_channel("analysis"))
    if turn.content and turn.calls:  # a preamble
        made.append(Message.from_role_and_content(Role.ASSISTANT, turn.content).with_channel("commentary"))
    for call in turn.calls:
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        message = Message.from_role_and_content(Role.ASSISTANT, arguments)
        message = message.with_channel(draw(st.sampled_from(["commentary", "analysis"])))
        message = message.with_recipient(f"functions.{call.name}")
        kind = draw(st.sampled_from(["<|constrain|>json", "<|constrain|> json", "json", None]))
        made.append(message.with_content_type(kind) if kind else message)
    if turn.content and not turn.calls:
        made.append(Message.from_role_and_content(Role.ASSISTANT, turn.content).with_channel("final"))
    return made


def render(turn: Turn, draw: Callable[..., Any]) -> tuple[Turn, Rendered]:
    from openai_harmony import Conversation, Message, Role

    before = [Message.from_role_and_content(Role.USER, "What is the weather?")]
    if draw(st.booleans()):
        call = Message.from_role_and_content(Role.ASSISTANT, '{"old": 1}').with_channel("commentary")
        before.append(call.with_recipient("functions.offered").with_content_type("<|constrain|>json"))
    rest = messages(turn, draw)
    prompt = encoding().render_conversation_for_completion(Conversation.from_messages(before), Role.ASSISTANT)
    # As a model writes it: message by message, so that analysis before a final answer is not left out as history.
    tokens = [token for message in rest for token in encoding().render(message)]
    prefix, output = encoding().decode_utf8(prompt), encoding().decode_utf8(tokens)
    assert output.startswith("<|start|>assistant") or not rest
    output = output.removeprefix("<|start|>assistant")
    stop = "<|call|>" if turn.calls else "<|end|>"
    return turn, Rendered(prefix, output.removesuffix(stop) if draw(st.booleans()) else output)


def test_what_harmony_renders() -> None:
    holds("gpt_oss", FORM, render, examples=300)
