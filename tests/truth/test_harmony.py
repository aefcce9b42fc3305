"""gpt-oss: openai-harmony, the format's own library, renders; we read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
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
    ),
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


def pieces(tokens: Sequence[int]) -> Iterator[tuple[str, bool]]:
    for is_special, run in groupby(tokens, encoding().is_special_token):
        if is_special:
            yield from ((encoding().decode_utf8([token]), True) for token in run)
        else:
            yield encoding().decode_utf8(list(run)), False


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
    start = encoding().encode("<|start|>assistant", allowed_special="all")
    assert tokens[: len(start)] == start
    tokens = tokens[len(start) : None if draw(st.booleans()) else -1]
    special_tokens = sorted(encoding().special_tokens_set)
    return turn, Rendered.of_tokens(encoding().decode_utf8(prompt), list(pieces(tokens)), special_tokens)


def test_what_harmony_renders() -> None:
    def as_text(turn: Turn, draw: Callable[..., Any]) -> tuple[Turn, Rendered]:
        turn, rendered = render(turn, draw)
        return turn, rendered.without_tokens()

    holds("gpt_oss", FORM, as_text, times=200)


def test_with_token_ids_markup_in_any_text_is_text() -> None:
    holds("gpt_oss", FORM, render, times=200)
