"""The families' own samples fit their grammars: what real models wrote, and what chat templates render."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from machine import CALLING, family, machine, tag_of

from respzoo.plugins import loaded
from respzoo.testing import Sample, load_samples

DAMAGED = "truncated malformed damaged unfinished broken cut missing incomplete unclosed stray invalid".split()
"""Pieces of the tags of samples that show what a model should not have written."""
STOPS = (
    "<|call|>", "<|return|>", "<|end|>", "</s>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>", "<turn|>",
    "<|message_sep|>", "<|content_model_end_sampling|>",
)  # fmt: skip
"""Tokens at which engines stop, for these models."""

QUOTED = "a value that quotes what begins a call or an argument: the parser knows by what follows, a grammar does not"
AS_TEXT = "arguments as JSON in a string"
SELF_CLOSING = "a call without arguments as one tag"
ORDER = "the arguments before the name"
OTHER = {
    "apertus/two-keys": "two calls in one object",
    "apriel/call-with-id": "an id behind the arguments, which the template does not read",
    "apriel/one-point-five-call": "calls in the midst of reasoning, which nothing closed",
    "cohere-command5/marker-in-value": QUOTED,
    "deepseek-v32/v32-marker-in-arguments": QUOTED,
    "deepseek-v32/marker-in-value": QUOTED,
    "deepseek-v32/closes-itself": SELF_CLOSING,
    "deepseek-v4/v4-marker-in-arguments": QUOTED,
    "deepseek-v4/sglang-v4-self-closing-invoke": SELF_CLOSING,
    "deepseek-v4/marker-in-value": QUOTED,
    "deepseek-v4/closes-itself": SELF_CLOSING,
    "deepseek-v41/v41-marker-in-arguments": QUOTED,
    "deepseek-v41/marker-in-value": QUOTED,
    "deepseek-v41/closes-itself": SELF_CLOSING,
    "gemma4/delimited-keys": "a key between the marks of strings",
    "gigachat35/string-as-json": "a string that the tag says is none",
    "granite4/arguments-as-string": AS_TEXT,
    "hermes/arguments-first": ORDER,
    "hy-v4/marker-in-value": QUOTED,
    "kimi-k3/marker-in-value": QUOTED,
    "llama3-json/keys-turned-round": ORDER,
    "minicpm5/marker-in-value": QUOTED,
    "minimax-m2/marker-in-value": QUOTED,
    "mistral-v3/vllm-v3-arguments-before-name": ORDER,
    "mistral-v3/vllm-v3-name-inside-arguments": ORDER,
    "nemotron-super/arguments-in-a-string": AS_TEXT,
    "qwen3-xml/marker-in-value": QUOTED,
    "step3/no-white-space": "no white space where the chat template has it",
}
"""Samples that a grammar does not let a model write, and why."""


def calls_of(name: str) -> list[Sample]:
    samples = load_samples(loaded().families[name].samples)
    return [
        sample
        for sample in samples
        if sample.record["expected"].get("tool_calls")
        and not any(word in tag for tag in sample.record["tags"] for word in DAMAGED)
    ]


@pytest.mark.parametrize("name", CALLING)
def test_samples_fit(name: str) -> None:
    template = family(name)
    samples = calls_of(name)
    names = dict.fromkeys(call["name"] for sample in samples for call in sample.record["expected"]["tool_calls"])
    tools: list[Any] = [{"type": "function", "function": {"name": one}} for one in names]
    by_prefix: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_prefix[sample.record.get("generation_prompt", "")].append(sample)
    wrong: dict[str, str] = {}
    for prefix, together in by_prefix.items():
        tag = tag_of(template, tools, tool_choice="auto", strict=True, reasoning=True, prefix=prefix, stops=STOPS)
        compiled = machine(name).compile(tag)
        for sample in together:
            place = machine(name).stuck(compiled, sample.text)
            if (place is not None) != (sample.id in OTHER):
                wrong[sample.id] = place or "fits after all"
    assert not wrong
