"""Qwen3's own tokenizer, without the Hub.

The PyPI package `dashscope` carries Qwen's merge table (`qwen.tiktoken`); transformers' TikTokenConverter turns such a
table into a fast tokenizer. What the table lacks are the added tokens: their ids follow it, from 151643 on, in the
order below. `python tools/bench/qwen_tokens.py` checks the result against the token ids that canitoolcall recorded from
the checkpoints themselves.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

FIRST_ADDED = 151643
# A token marked True is a "special" token: decoding with skip_special_tokens drops it.
ADDED = (
    ("<|endoftext|>", True),
    ("<|im_start|>", True),
    ("<|im_end|>", True),
    ("<|object_ref_start|>", True),
    ("<|object_ref_end|>", True),
    ("<|box_start|>", True),
    ("<|box_end|>", True),
    ("<|quad_start|>", True),
    ("<|quad_end|>", True),
    ("<|vision_start|>", True),
    ("<|vision_end|>", True),
    ("<|vision_pad|>", True),
    ("<|image_pad|>", True),
    ("<|video_pad|>", True),
    ("<tool_call>", False),
    ("</tool_call>", False),
    ("<|fim_prefix|>", False),
    ("<|fim_middle|>", False),
    ("<|fim_suffix|>", False),
    ("<|fim_pad|>", False),
    ("<|repo_name|>", False),
    ("<|file_sep|>", False),
    ("<tool_response>", False),
    ("</tool_response>", False),
    ("<think>", False),
    ("</think>", False),
)
# How Qwen cuts text before merging: one digit at a time, a leading non-letter joins a word.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TABLE = "dashscope/resources/qwen.tiktoken"


class TokenizerUnavailable(RuntimeError):
    """The packages that the tokenizer is built from are not installed."""


@cache
def load() -> Any:
    """The tokenizer (a `tokenizers.Tokenizer`)."""
    try:
        from tokenizers import AddedToken, normalizers
        from transformers.convert_slow_tokenizer import TikTokenConverter

        table = Path(str(importlib.metadata.distribution("dashscope").locate_file(TABLE)))
        tokenizer = TikTokenConverter(vocab_file=str(table), pattern=WORDS).converted()
    except (ImportError, ValueError) as error:  # PackageNotFoundError is an ImportError; the converter wants tiktoken
        raise TokenizerUnavailable(f"cannot build Qwen's tokenizer ({error}); pip install 'respzoo[bench]'") from error
    tokenizer.normalizer = normalizers.NFC()
    for text, special in ADDED:  # one by one: the special ones would otherwise all come first
        token = AddedToken(text, special=special, normalized=False)
        tokenizer.add_special_tokens([token]) if special else tokenizer.add_tokens([token])
    for offset, (text, _) in enumerate(ADDED):
        if tokenizer.token_to_id(text) != FIRST_ADDED + offset:
            got = tokenizer.token_to_id(text)
            raise TokenizerUnavailable(f"{text} has the id {got}, expected {FIRST_ADDED + offset}")
    return tokenizer


def pieces(ids: Iterable[int]) -> Iterator[str]:
    """What a server streams for these tokens, one piece a token: the empty string where a character is not whole yet."""
    from tokenizers.decoders import DecodeStream

    tokenizer, stream = load(), DecodeStream(skip_special_tokens=False)
    for token in ids:
        yield stream.step(tokenizer, token) or ""


def tokens(text: str) -> list[str]:
    """`text` as Qwen's model would write it: one string a token."""
    return list(pieces(load().encode(text, add_special_tokens=False).ids))


def check() -> int:
    """Compare with every token id that canitoolcall recorded from a checkpoint with this vocabulary."""
    from canitoolcall.fixtures import load_fixtures

    tokenizer, wrong, seen = load(), 0, 0
    for fixture in load_fixtures(families=["qwen3-hermes", "qwen3-xml"]):
        pinned = fixture.tokenizer.repo if fixture.tokenizer else ""
        if fixture.output_token_ids is None or not uses_this_vocabulary(pinned):
            continue
        seen += 1
        ids = list(fixture.output_token_ids)
        if tokenizer.encode(fixture.raw_output, add_special_tokens=False).ids != ids:
            wrong += 1
            print(f"{fixture.id} ({pinned}): encodes to other ids", file=sys.stderr)
        elif "".join(pieces(ids)) != fixture.raw_output:
            wrong += 1
            print(f"{fixture.id} ({pinned}): decodes to other text", file=sys.stderr)
    print(f"{seen - wrong} of {seen} recorded outputs: the same ids and the same text")
    return 1 if wrong or not seen else 0


def uses_this_vocabulary(repo: str) -> bool:
    """Qwen3.5 and later have a larger vocabulary of their own."""
    return repo.startswith("Qwen/Qwen3-")


if __name__ == "__main__":
    sys.exit(check())
