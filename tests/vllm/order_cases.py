"""The parts of one delta in their order, for vLLM's Responses, on one release of vLLM (test_offline.py); and what vLLM's own
metric counts."""

from __future__ import annotations

from typing import Any

import pytest
from driving import PROMPT, TOKENIZER, ZURICH, chat, encode, parser_class, responses, streamed, whole
from vllm.entrypoints.openai.responses import serving

from respzoo_vllm import engine

PIECES = [
    ZURICH[:60],
    ZURICH[60:] + "\nBetween.",
    f"\n{ZURICH} Behind.",
]


def parts(deltas: list[Any]) -> list[tuple[str, Any]]:
    """What Responses makes events of, neighbours of one kind joined."""
    found: list[tuple[str, Any]] = []
    for delta in deltas:
        for one in getattr(serving, "split_delta", lambda same: [same])(delta):
            for kind, text in (("reasoning", one.reasoning), ("content", one.content)):
                if text:
                    found.append((kind, text))
            found.extend(("call", call.index) for call in one.tool_calls)
    return [part for at, part in enumerate(found) if not at or part != found[at - 1]]


def test_a_call_goes_on_and_content_follows() -> None:
    parser = parser_class()(TOKENIZER, responses().tools)
    request, deltas = responses(), []
    for at, piece in enumerate(PIECES):
        delta = parser.parse_delta(piece, encode(piece), request, encode(PROMPT), finished=at == len(PIECES) - 1)
        if delta is not None:
            deltas.append(parts([delta]))
    told = [part for some in deltas for part in some]
    if hasattr(serving, "split_delta"):  # before, vLLM makes its events otherwise
        kinds = [kind for kind, _ in told]
        assert kinds.index("content") > kinds.index("call")
        assert [part for part in told if part[0] == "call"][-1] == ("call", 1)
        assert kinds[-1] == "content"


def test_vllms_own_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[bool, bool]] = []
    monkeypatch.setattr(
        engine,
        "record_tool_parser_invocation",
        lambda *, is_tool_called, is_streaming, request: told.append((is_tool_called, is_streaming)),
    )
    cls = parser_class()
    for text in (ZURICH, "Hello!"):
        whole(cls, text, chat())
        streamed(cls, text, chat())
    assert told == [(True, False), (True, True), (False, False), (False, True)]
