"""A grammar behind the reasoning where several tokens come in a step, on one release of vLLM (test_offline.py): its own
keeper of grammars, with xgrammar, as its scheduler calls it. vLLM 0.24 itself does not look for a reasoning's end within
a step."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
import vllm.reasoning
import xgrammar
from asking import OSLO, WRONG
from driving import PROMPT, TOKENIZER, adjusted, chat, encode, parser_class
from vllm.sampling_params import StructuredOutputsParams
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_xgrammar import XgrammarGrammar
from vllm.v1.structured_output.request import StructuredOutputRequest

from respzoo_vllm import engine

THOUGHT = "<think>\nHm.\n</think>\n\n"
SINCE_0_28 = hasattr(StructuredOutputManager, "trim_reasoning_for_advance")
SINCE_0_32 = hasattr(StructuredOutputManager, "accept_tokens")


@cache
def compiled(structural_tag: str) -> xgrammar.CompiledGrammar:
    info = xgrammar.TokenizerInfo.from_huggingface(TOKENIZER, stop_token_ids=[TOKENIZER.eos_token_id])
    return xgrammar.GrammarCompiler(info).compile_structural_tag(structural_tag)


@dataclass
class Request:
    """What the keeper of grammars knows of a request of which a call is required."""

    structured_output_request: StructuredOutputRequest
    all_token_ids: list[int] = field(default_factory=lambda: encode(PROMPT))
    prompt_token_ids: list[int] = field(default_factory=lambda: encode(PROMPT))
    request_id: str = "id"
    use_structured_output: bool = True


def begun() -> tuple[Any, Request, XgrammarGrammar]:
    manager = object.__new__(StructuredOutputManager)
    manager.reasoner_cls = vllm.reasoning.ReasoningParserManager.get_reasoning_parser("respzoo")
    manager.tokenizer = TOKENIZER
    manager.enable_in_reasoning = False
    manager.vllm_config = SimpleNamespace(speculative_config=object())
    tag = engine.structured_outputs(adjusted(parser_class(), chat(tool_choice="required"))).structural_tag
    context = compiled(tag)
    grammar = XgrammarGrammar(
        vocab_size=len(TOKENIZER), matcher=xgrammar.GrammarMatcher(context, max_rollback_tokens=8), ctx=context
    )
    asked = StructuredOutputRequest(params=StructuredOutputsParams(structural_tag=tag))
    asked.grammar, asked.reasoning_ended = grammar, False
    return manager, Request(asked), grammar


def step(manager: Any, request: Request, new: list[int]) -> bool:
    """Whether the request goes on, as the scheduler decides it."""
    request.all_token_ids += new
    if SINCE_0_32:
        return manager.accept_tokens(request, new)
    if not manager.should_advance(request, new_token_ids=new):
        return True
    new = manager.trim_reasoning_for_advance(request, new)
    return not new or request.structured_output_request.grammar.accept_tokens("id", new)


if SINCE_0_28 or SINCE_0_32:

    @pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 100])
    def test_a_call_behind_the_reasoning(size: int) -> None:
        """Wherever steps end, the grammar sees the whole call and nothing else."""
        manager, request, grammar = begun()
        ids = encode(THOUGHT + OSLO)
        for start in range(0, len(ids), size):
            assert step(manager, request, ids[start : start + size])
        assert grammar.validate_tokens(encode("Hello")) == []
        assert grammar.validate_tokens([TOKENIZER.eos_token_id]) == [TOKENIZER.eos_token_id]

    @pytest.mark.parametrize("size", [1, 3, 100])
    @pytest.mark.parametrize("tail", ["Hello!", WRONG, f"Look: {OSLO}"])
    def test_what_is_no_call_behind_the_reasoning(tail: str, size: int) -> None:
        manager, request, _ = begun()
        ids = encode(THOUGHT + tail)
        assert not all(step(manager, request, ids[start : start + size]) for start in range(0, len(ids), size))

    @pytest.mark.parametrize("size", [1, 3, 100])
    def test_reasoning_is_free(size: int) -> None:
        manager, request, grammar = begun()
        ids = encode(f"<think>\nI could write {WRONG}, or not")
        for start in range(0, len(ids), size):
            assert step(manager, request, ids[start : start + size])
        assert grammar.validate_tokens(encode(OSLO)) == encode(OSLO)


if SINCE_0_32:

    @pytest.mark.parametrize(("tail", "kept"), [(OSLO, OSLO), ("Hello!", ""), (WRONG, WRONG.partition('"three')[0])])
    def test_guesses_across_the_end_of_the_reasoning(tail: str, kept: str) -> None:
        manager, request, _ = begun()
        assert step(manager, request, encode("<think>\nHm"))
        guess = encode(".\n</think>\n\n" + tail)
        found = manager.validate_tokens(request, guess)
        assert TOKENIZER.decode(found).rstrip(' "') == TOKENIZER.decode(encode(".\n</think>\n\n" + kept)).rstrip(' "')
