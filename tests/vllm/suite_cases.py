"""canitoolcall's whole suite through the adapter, on vLLM's own classes. test_offline.py runs this file.

A fixture's tokenizer is Qwen3's own where it has that vocabulary; otherwise a byte-level one stands in, with the
family's markers as special tokens. What a chunk is made of are token ids, as in a server.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import qwen_tokens
import replay
from canitoolcall.fixtures import Fixture
from canitoolcall.results import ParsedToolCall, ParseResult, Status
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from tokenizers.decoders import DecodeStream
from transformers import PreTrainedTokenizerFast

from respzoo_vllm import plugin

plugin.register()

import vllm.parser
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest


@functools.cache
def tokenizer_of(model: str, family: str, pinned: str) -> Any:
    if qwen_tokens.uses_this_vocabulary(pinned):
        inner = qwen_tokens.load()
    else:
        inner = Tokenizer(models.BPE({char: at for at, char in enumerate(pre_tokenizers.ByteLevel.alphabet())}, []))
        inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        inner.decoder = decoders.ByteLevel()
        markers = sorted(replay.FAMILIES[family].markers, key=len, reverse=True)
        inner.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in markers])
    made = PreTrainedTokenizerFast(tokenizer_object=inner, clean_up_tokenization_spaces=False)
    made.name_or_path = model
    return made


@functools.cache
def parser_class(model: str, arguments: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RESPZOO_ARGUMENTS", arguments)
        return vllm.parser.ParserManager.get_parser(
            tool_parser_name="respzoo",
            reasoning_parser_name="respzoo",
            enable_auto_tools=True,
            model_name=model,
            is_harmony="gpt-oss" in model,
        )


class Reader:
    """Reads one fixture as the API server does."""

    def __init__(self, fixture: Fixture, arguments: str) -> None:
        pinned = fixture.tokenizer.repo if fixture.tokenizer else ""
        self.fixture = fixture
        self.tokenizer = tokenizer_of(fixture.reference_model, fixture.family, pinned)
        self.cls = parser_class(fixture.reference_model, arguments)
        self.prompt = self.encode(replay.prompt_of(fixture))
        self.ids = self.encode(fixture.raw_output)
        self.special = set(self.tokenizer.get_added_vocab().values())

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)

    def begin(self) -> tuple[Any, Any]:
        request = ChatCompletionRequest(
            model="m", messages=[{"role": "user", "content": "hi"}], tools=list(self.fixture.tools) or None
        )
        parser = self.cls(self.tokenizer, request.tools)
        parser.set_prompt_token_ids(self.prompt)
        return parser, parser.adjust_request(request)

    def whole(self) -> ParseResult:
        parser, request = self.begin()
        reasoning, content, calls = parser.parse(
            self.fixture.raw_output, request, enable_auto_tools=True, model_output_token_ids=self.ids
        )
        made = tuple(ParsedToolCall(call.name, call.arguments) for call in calls or ())
        return ParseResult(content, reasoning, made)

    def stream(self, parts: Sequence[Sequence[int]]) -> ParseResult:
        parser, request = self.begin()
        detokenizer = DecodeStream(skip_special_tokens=False)
        deltas: list[dict[str, Any]] = []
        for number, part in enumerate(parts, start=1):
            text = "".join(detokenizer.step(self.tokenizer.backend_tokenizer, token) or "" for token in part)
            delta = parser.parse_delta(text, part, request, self.prompt, finished=number == len(parts))
            if delta is not None:
                deltas.append(delta.model_dump(exclude_unset=True, exclude_none=True))
        for delta in deltas:
            delta["reasoning_content"] = delta.pop("reasoning", "")
        return replay.gathered(deltas)


@functools.cache
def read(name: str, arguments: str) -> replay.Verdict:
    reader = Reader(replay.FIXTURES[name], arguments)
    return replay.judge(reader.fixture, reader.whole(), replay.streamed(reader.ids, reader.special, reader.stream))


def test_tokenizers_keep_every_letter(canitoolcall_fixture: Fixture) -> None:
    reader = Reader(canitoolcall_fixture, "complete")
    assert reader.tokenizer.decode(reader.ids) == canitoolcall_fixture.raw_output


@pytest.mark.parametrize("arguments", ["complete", "stream"])
def test_conformance(canitoolcall_fixture: Fixture, arguments: replay.Arguments) -> None:
    name = canitoolcall_fixture.id
    verdict = read(name, arguments)
    assert verdict.status is replay.allowed(name, arguments), verdict.faults()
    assert replay.finished(verdict).status is replay.allowed(name), "not only the unfinished call is amiss"


@pytest.mark.parametrize("arguments", ["complete", "stream"])
def test_counts(arguments: replay.Arguments) -> None:
    counts = Counter(read(name, arguments).status for name in replay.FIXTURES)
    begun = {Status.FAIL: len(replay.BEGUN)} if arguments == "stream" else {}
    assert counts == {Status.PASS: 468 - sum(begun.values()), Status.SOFT_PASS: 1, **begun}
