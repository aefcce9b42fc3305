"""What the engine core asks of the adapter, on one release of vLLM (test_offline.py): when reasoning is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import qwen_tokens
from driving import PROMPT, TOKENIZER, byte_tokenizer, chat, encode, gate, parser_class, tokenizer_of

from respzoo_vllm.prompt import WINDOW


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (PROMPT, False),
        (PROMPT + "<think>\n", False),
        (PROMPT + "<think>\nHm", False),
        (PROMPT + "<think>\n\n</think>\n\n", True),
        (PROMPT + "<think>\nHm.\n</think>", True),
        (PROMPT + "The answer", True),
        (PROMPT + "<tool_call>\n", True),
        # the turns before do not count
        ("<|im_start|>assistant\n<think>\nHm.\n</think>\n\nYes.<|im_end|>\n" + PROMPT, False),
        ("no anchor at all </think>", False),
    ],
)
def test_whether_reasoning_is_over(prompt: str, expected: bool) -> None:
    assert gate().is_reasoning_end(encode(prompt)) is expected
    assert parser_class()(TOKENIZER, None).is_reasoning_end(encode(prompt)) is expected


def test_models_that_do_not_reason() -> None:
    plain = tokenizer_of(
        qwen_tokens.load(),
        chat_template="{{ '<|im_start|>' }} <tool_call> {\"name\": <function-name>, <args-json-object>",
    )
    assert gate(plain).is_reasoning_end(encode(PROMPT)) is True


def test_where_reasoning_ends() -> None:
    reasoning = gate()
    ids = encode(PROMPT + "<think>\nHm.\n</think>\n\nYes")
    end = ids.index(encode("</think>")[0])
    for at in range(len(encode(PROMPT)), len(ids)):
        assert reasoning.is_reasoning_end_streaming(ids[: at + 1], [ids[at]]) is (at == end)
    assert reasoning.is_reasoning_end_streaming(ids, ids[end - 2 :]) is True
    assert (reasoning.reasoning_start_str, reasoning.reasoning_end_str) == ("<think>", "</think>")


class Watched:
    """A tokenizer that tells how many ids it was asked to decode."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.decoded = tokenizer, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokenizer, name)

    def decode(self, ids: Sequence[int], **options: Any) -> str:
        self.decoded += len(ids)
        return self.tokenizer.decode(ids, **options)


class Counted(Sequence[int]):
    """Ids that tell how many of them were read."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids, self.read = ids, 0

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, at: Any) -> Any:
        self.read += len(range(len(self.ids))[at]) if isinstance(at, slice) else 1
        return self.ids[at]


def test_work_does_not_grow_with_the_prompt() -> None:
    watched = Watched(TOKENIZER)
    long = encode("word and more ") * 30_000
    reasoning = gate(watched)
    assert reasoning.is_reasoning_end(long + encode(PROMPT)) is False
    parser = parser_class()(watched, None)
    parser.parse_delta("Hm", encode("Hm"), chat(), long + encode(PROMPT), finished=False)
    assert watched.decoded <= 4 * WINDOW
    output = Counted(long)
    for _ in range(20):
        assert reasoning.is_reasoning_end_streaming(output, long[-1:]) is False
    assert output.read <= 20 * WINDOW
    assert watched.decoded <= 4 * WINDOW


def test_markers_of_several_tokens() -> None:
    """Nothing is an added token: a window of the marker's length is decoded, no more."""
    bare = Watched(tokenizer_of(byte_tokenizer()))
    reasoning = gate(bare)
    prompt = bare.encode("<|im_start|>user\nlong " + "word " * 5000 + PROMPT)
    assert reasoning.is_reasoning_end(prompt) is False
    assert bare.decoded < 8 * WINDOW
    ids = bare.encode("<think>\nHm.\n</think>\n\nYes, </b>")
    bare.decoded = 0
    ends = [at for at in range(len(ids)) if reasoning.is_reasoning_end_streaming(ids[: at + 1], [ids[at]])]
    assert len(ends) == 1
    assert bare.tokenizer.decode(ids[: ends[0] + 1]).endswith("</think>")
    assert bare.decoded <= len(ids) * 2 * (len("</think>") + 1)


def test_reasoning_tokens() -> None:
    cls, request = parser_class(), chat()
    ids = encode("<think>\nHm, so.\n</think>\n\nYes.")
    expected = len(encode("\nHm, so.\n"))
    parser = cls(TOKENIZER, None)
    parser.parse_delta("", [], request, encode(PROMPT), finished=False)
    assert parser.count_reasoning_tokens(ids) == expected
    parser = cls(TOKENIZER, None)
    parser.parse_delta("", [], request, encode(PROMPT + "<think>\n"), finished=False)
    assert parser.count_reasoning_tokens(ids[1:]) == expected
    assert parser_class(reasoning=None)(TOKENIZER, None).count_reasoning_tokens(ids) == 0
