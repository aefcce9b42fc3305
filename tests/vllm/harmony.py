"""A tokenizer for gpt-oss: a token a byte, and harmony's markers as special tokens."""

from __future__ import annotations

import functools
from typing import Any

from driving import byte_tokenizer, tokenizer_of
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast


@functools.cache
def harmony_tokenizer() -> PreTrainedTokenizerFast:
    inner = byte_tokenizer()
    names = ("start", "end", "message", "channel", "constrain", "return", "call")
    inner.add_special_tokens([AddedToken(f"<|{name}|>", special=True, normalized=False) for name in names])
    return tokenizer_of(inner, "openai/gpt-oss-20b")


HARMONY_PROMPT = "<|start|>user<|message|>hi<|end|><|start|>assistant"
HARMONY: dict[str, Any] = {"model": "openai/gpt-oss-20b", "is_harmony": True}


def written(marked: str, tokenizer: Any) -> tuple[str, list[int]]:
    """The text, and the ids of a model that quotes markup letter by letter."""
    parts = marked.replace("»", "«").split("«")
    ids: list[int] = []
    for at, part in enumerate(parts):
        for piece in [part] if at % 2 else part:
            ids += tokenizer.encode(piece, add_special_tokens=False)
    return "".join(parts), ids
