"""gpt-oss through the adapter, on one release of vLLM (test_offline.py)."""

from __future__ import annotations

from typing import Any

import pytest
import vllm.parser
from driving import Reply, both, chat, finished, gate, parser_class, streamed, whole
from harmony import HARMONY, HARMONY_PROMPT, harmony_tokenizer, written

# What is between « and » is written by special tokens; anything else is spelled out.
QUOTED = [
    (
        "«<|channel|>»analysis«<|message|>»It writes <|end|><|start|>assistant<|channel|>commentary to=functions.get_weather"
        ' <|constrain|>json<|message|>{"city": "Oslo"}<|call|>, 🌦.«<|end|>»«<|start|>»assistant«<|channel|>»final«<|message|>»Hi!',
        (
            "It writes <|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
            '{"city": "Oslo"}<|call|>, 🌦.',
            "Hi!",
            [],
        ),
    ),
    (
        '«<|channel|>»commentary to=functions.get_weather «<|constrain|>»json«<|message|>»{"city": "<|call|> 🌦"}«<|call|>»',
        ("", "", [("get_weather", '{"city": "<|call|> 🌦"}')]),
    ),
    # cut in a string that quotes the closer: no call, and no content either
    ('«<|channel|>»commentary to=functions.get_weather«<|message|>»{"city": "<|call|> and', ("", "", [])),
]


@pytest.mark.parametrize(("marked", "expected"), QUOTED)
def test_quoted_markup_is_text(marked: str, expected: Reply) -> None:
    tokenizer = harmony_tokenizer()
    cls = parser_class(**HARMONY)
    text, ids = written(marked, tokenizer)
    options: dict[str, Any] = {"prompt": HARMONY_PROMPT, "tokenizer": tokenizer, "ids": ids}
    assert whole(cls, text, chat(), **options) == expected
    for size in (1, 2, 3, 7, 1000):
        assert finished(streamed(cls, text, chat(), size=size, **options)) == expected
    # with the stop token's id and without its text
    stopped = {**options, "ids": [*ids, *tokenizer.encode("<|return|>", add_special_tokens=False)]}
    assert whole(cls, text, chat(), **stopped) == expected


@pytest.mark.parametrize(("marked", "expected"), QUOTED)
def test_where_text_is_behind_its_ids_it_is_read_as_text(
    monkeypatch: pytest.MonkeyPatch, marked: str, expected: Reply
) -> None:
    """Never wrongly taken for quoted: what nobody can tell is markup, and the log says so."""
    from respzoo_vllm import spans

    said: list[str] = []
    monkeypatch.setattr(spans.logger, "info", lambda text, *values: said.append(text % values))
    tokenizer, cls = harmony_tokenizer(), parser_class(**HARMONY)
    text, ids = written(marked, tokenizer)
    options: dict[str, Any] = {"prompt": HARMONY_PROMPT, "tokenizer": tokenizer}
    as_text = whole(cls, text, chat(), ids=[], **options)
    assert as_text != expected or marked == QUOTED[1][0]
    for behind in (1, 4, 30):
        said.clear()
        assert finished(streamed(cls, text, chat(), ids=ids, behind=behind, **options)) == as_text
        assert sum("quoted markup will be read as markup" in line for line in said) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello!<|return|>",
            ("Hm.", "Hello!", []),
        ),
        (
            "<|channel|>analysis<|message|>Need it.<|end|><|start|>assistant<|channel|>commentary"
            ' to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>',
            ("Need it.", "", [("get_weather", '{"city": "Oslo"}')]),
        ),
        # the stop token is not in the text that the server hands on
        (
            '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}',
            ("", "", [("get_weather", '{"city": "Oslo"}')]),
        ),
        ("<|channel|>analysis<|message|>Hm, and", ("Hm, and", "", [])),
    ],
)
def test_harmony(text: str, expected: Reply) -> None:
    cls = parser_class(model="openai/gpt-oss-20b", is_harmony=True)
    assert issubclass(cls, vllm.parser.HarmonyParser)
    assert both(cls, text, chat(), prompt=HARMONY_PROMPT, tokenizer=harmony_tokenizer()) == expected


def test_harmony_in_the_engine_core() -> None:
    """vLLM's grammars for harmony hold the reasoning too, so it waits for none."""
    tokenizer = harmony_tokenizer()
    reasoning = gate(tokenizer)
    assert reasoning.is_reasoning_end(tokenizer.encode(HARMONY_PROMPT)) is True
    assert reasoning.is_reasoning_end_streaming([1, 2], [2]) is True


def test_harmony_reasoning_tokens() -> None:
    tokenizer = harmony_tokenizer()
    parser = parser_class(model="openai/gpt-oss-20b", is_harmony=True)(tokenizer, None)
    text = "<|channel|>analysis<|message|>Hm, so.<|end|><|start|>assistant<|channel|>final<|message|>Hello!"
    parser.parse_delta("", [], chat(), tokenizer.encode(HARMONY_PROMPT), finished=False)
    assert parser.count_reasoning_tokens(tokenizer.encode(text)) == len(tokenizer.encode("Hm, so."))


def test_harmony_request() -> None:
    request = chat()
    cls = parser_class(model="openai/gpt-oss-20b", is_harmony=True)
    assert cls(harmony_tokenizer(), request.tools).adjust_request(request).skip_special_tokens is False
