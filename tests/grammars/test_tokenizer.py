"""The grammar with a real vocabulary: Qwen3's, token by token as an engine walks it."""

from __future__ import annotations

import json
import time
from functools import cache
from typing import Any

import pytest
import qwen_tokens
import xgrammar as xgr
from machine import family, tag_of
from toolbox import TOOLS

TEXT = "Ein </parameter> in einer Datei, \u65e5\u672c\u8a9e, \U0001f642, <tool_call> und viele Worte. " * 20
CALLS = {
    "qwen3": "<tool_call>\n"
    + json.dumps({"name": "get_weather", "arguments": {"city": TEXT, "days": 3, "metric": True}}, ensure_ascii=False)
    + "\n</tool_call>",
    "qwen3_xml": f"<tool_call>\n<function=get_weather>\n<parameter=city>\n{TEXT}\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
    "<parameter=metric>\ntrue\n</parameter>\n</function>\n</tool_call>",
}


@cache
def vocabulary() -> xgr.TokenizerInfo:
    tokenizer = qwen_tokens.load()
    size = tokenizer.get_vocab_size(with_added_tokens=True)
    pieces = [tokenizer.id_to_token(number) or "" for number in range(size)]
    end = tokenizer.token_to_id("<|im_end|>")
    return xgr.TokenizerInfo(pieces, vocab_type=xgr.VocabType.BYTE_LEVEL, stop_token_ids=[end])


@pytest.mark.parametrize("choice", ["required", "auto"])
@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_long_call_token_by_token(name: str, choice: str) -> None:
    request: dict[str, Any] = {"tool_choice": choice, "strict": True}
    started = time.perf_counter()
    tag = json.dumps(tag_of(family(name), TOOLS, **request))
    built = time.perf_counter()
    compiled = xgr.GrammarCompiler(vocabulary(), cache_enabled=False).compile_structural_tag(tag)
    done = time.perf_counter()
    matcher = xgr.GrammarMatcher(compiled)
    mask = xgr.allocate_token_bitmask(1, vocabulary().vocab_size)
    tokens = [*qwen_tokens.load().encode(CALLS[name], add_special_tokens=False).ids, vocabulary().stop_token_ids[0]]
    for token in tokens:
        if matcher.fill_next_token_bitmask(mask):
            assert int(mask[0, token // 32]) >> (token % 32) & 1, qwen_tokens.load().decode([token])
        assert matcher.accept_token(token)
    assert matcher.is_terminated()
    masks = time.perf_counter() - done
    print(
        f"{name}, {choice}: built in {built - started:.2f} s, compiled in {done - built:.2f} s, a mask {masks / len(tokens):.5f} s"
    )
