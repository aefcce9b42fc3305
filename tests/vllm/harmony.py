"""Tokenizers for gpt-oss: a token a byte, with harmony's markers as special tokens; and its own, by openai-harmony."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import openai_harmony
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


class RealTokenizer:
    """gpt-oss's own, as far as it is asked. Its vocabulary is in the package of oss-harmony."""

    name_or_path = "openai/gpt-oss-20b"
    chat_template = None
    names = ("start", "end", "message", "channel", "constrain", "return", "call")

    def __init__(self) -> None:
        self.encoding = openai_harmony.load_harmony_encoding("HarmonyGptOss")
        texts = [f"<|{name}|>" for name in self.names]
        self.vocab = {text: self.encode(text)[0] for text in texts}
        self.all_special_tokens, self.all_special_ids = list(self.vocab), list(self.vocab.values())
        self.eos_token_id = self.vocab["<|return|>"]

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        return self.encoding.encode(text, allowed_special="all")

    def decode(self, ids: Sequence[int] | int, **_: Any) -> str:
        return self.encoding.decode([ids] if isinstance(ids, int) else list(ids))

    def get_vocab(self) -> dict[str, int]:
        return self.vocab

    get_added_vocab = get_vocab
