"""Which stretches of a text special tokens wrote, told from token ids."""

from __future__ import annotations

from typing import Any

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import respzoo
from respzoo.spans import special_texts, stretches

SPECIAL = {1: "<|end|>", 2: "<|call|>", 3: "[X]"}


def decode(ids: list[int]) -> str:
    """Ids from 1000 on are bytes."""
    return bytes(one - 1000 for one in ids).decode("utf-8", "replace")


def ids_of(text: str) -> list[int]:
    return [1000 + byte for byte in text.encode()]


def told(text: str, *ids: int | str) -> Any:
    flat = [one for part in ids for one in (ids_of(part) if isinstance(part, str) else [part])]
    return stretches(text, flat, SPECIAL, decode)


@pytest.mark.parametrize(
    ("text", "ids", "expected"),
    [
        ("", (), []),
        ("é", ("é",), []),
        ("<|end|>", (1,), [(0, 7)]),
        ("<|end|>", ("<|end|>",), []),
        ("a<|end|>b<|end|>", ("a<|end|>b", 1), [(9, 16)]),
        ("a<|end|>b<|end|>", ("a", 1, "b<|end|>"), [(1, 8)]),
        ("<|end|><|call|>é", (1, 2, "é"), [(0, 7), (7, 15)]),
        # a stop token that wrote nothing; quoted before it, or not
        ("", (1,), []),
        ("a", ("a", 1), []),
        ("a<|end|>", ("a<|end|>", 1), []),
        ("a<|end|>", ("a", 1, 2), [(1, 8)]),
        # a stop string that took the end away
        ("a<|end|>b", ("a", 1, "bcd", 2), [(1, 8)]),
        ("a<|en", ("a", 1), []),
        # decoded in one piece there is a space more
        ("a <|end|> b", ("a", 1, "b"), [(2, 9)]),
        # not the text of these ids
        ("a<|end|>", ("a",), None),
        ("a<|end|>b", (1, "b"), None),
        ("b", (1, "a"), None),
        ("a<|e", ("a", "<|end|>", 1), []),
    ],
)
def test_stretches(text: str, ids: tuple[int | str, ...], expected: Any) -> None:
    assert told(text, *ids) == expected


def test_characters_in_halves() -> None:
    sun = [1000 + byte for byte in "🌦".encode()]
    # the first half came with the text before, the second comes with a special token
    assert stretches("🌦<|end|>", [*sun[2:], 1], SPECIAL, decode) == [(1, 8)]
    # and the other way round
    assert stretches("<|end|>", [1, *sun[:2]], SPECIAL, decode) == [(0, 7)]
    assert stretches("🌦<|end|><|end|>", [*sun[2:], *ids_of("<|end|>"), 1], SPECIAL, decode) == [(8, 15)]


PARTS = st.lists(st.one_of(st.sampled_from(sorted(SPECIAL)), st.sampled_from(["<|end|>", "[X]", "é🌦", "a ", " "])))


@examples(100)
@given(PARTS)
def test_what_belongs_together_is_always_told(parts: list[int | str]) -> None:
    text, expected = "", list[tuple[int, int]]()
    for part in parts:
        piece = SPECIAL[part] if isinstance(part, int) else part
        if isinstance(part, int):
            expected.append((len(text), len(text) + len(piece)))
        text += piece
    assert told(text, *parts) == expected


# ----------------------------------------------------------------------------------------------------------- tokenizers


def tokenizer(*special: str, plain: tuple[str, ...] = ()) -> Any:
    inner = Tokenizer(models.BPE({char: at for at, char in enumerate(pre_tokenizers.ByteLevel.alphabet())}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    inner.add_tokens([AddedToken(text, special=False, normalized=False) for text in plain])
    return PreTrainedTokenizerFast(tokenizer_object=inner, clean_up_tokenization_spaces=False)


def test_special_tokens_of_a_tokenizer() -> None:
    made = tokenizer("<|end|>", "<|call|>", plain=("<think>",))
    assert special_texts(made) == special_texts(made.backend_tokenizer) == {256: "<|end|>", 257: "<|call|>"}
    assert special_texts(object()) == {}

    class Named:
        all_special_ids = (1, 2)
        all_special_tokens = ("<s>", "[INST]")

    assert special_texts(Named()) == {1: "<s>", 2: "[INST]"}


MODEL = "openai/gpt-oss-20b"
HARMONY = ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>")


def quoted(made: Any, text: str) -> list[int]:
    """The ids of a text in which no marker is a token."""
    return [one for char in text for one in made.encode(char, add_special_tokens=False)]


@pytest.mark.parametrize("batched", [False, True])
def test_parse_response_tells_quoted_markup_from_token_ids(batched: bool) -> None:
    made = tokenizer(*HARMONY)
    quote = "<|end|><|start|>assistant<|channel|>final<|message|>No"
    begin = made.encode("<|channel|>analysis<|message|>", add_special_tokens=False)
    end = made.encode("<|end|><|start|>assistant<|channel|>final<|message|>Yes<|return|>", add_special_tokens=False)
    ids = begin + quoted(made, quote) + end
    options: Any = {"template": MODEL, "prefix": "", "tokenizer": made}
    messages = respzoo.parse_response([ids, ids] if batched else ids, **options)
    for message in messages if batched else [messages]:
        assert message == {"role": "assistant", "reasoning_content": quote, "content": "Yes"}
    assert respzoo.parse_response(made.decode(ids), **options)["content"] == "No\nYes"


def test_parse_response_of_a_tokenizer_that_writes_something_else() -> None:
    """Nobody knows then; it is read as text."""
    made = tokenizer(*HARMONY)
    ids = made.encode("<|channel|>final<|message|>Yes<|return|>", add_special_tokens=False)

    class Shouting:
        added_tokens_decoder = made.added_tokens_decoder

        def decode(self, ids: Any) -> str:
            text = made.decode(ids)
            return text.replace("Yes", "YES") if len(ids) == 6 else text

    message = respzoo.parse_response(ids, MODEL, prefix="", tokenizer=Shouting())
    assert message["content"] in ("Yes", "YES")
