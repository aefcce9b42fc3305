"""Tokens that are known: the same answers as from a template that knows nothing yet, in bounded memory."""

from __future__ import annotations

import gc
import json
import random
import re
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from examples import ASKED

import respzoo
from respzoo import known
from respzoo.arguments import Way, dump_arguments
from respzoo.hookspecs import Family
from respzoo.known import NOTHING, Known, Strings
from respzoo.plugins import loaded
from respzoo.testing import load_samples

ROUNDS = ASKED or 3
FAMILIES = [
    loaded().families[name]
    for name in (
        "deepseek_v32", "functiongemma", "gemma4", "glm4_moe", "gpt_oss", "hermes", "kimi_k2", "llama4_pythonic",
        "minimax_m3", "mistral_v13", "qwen3", "qwen3_xml", "seed_oss",
    )
]  # fmt: skip
# Words of every kind, of which some begin a marker somewhere, would be escaped, or are white space at an end.
WORDS = (
    "a",
    " the",
    "x ",
    " ",
    "\n",
    "\n\n",
    '"',
    "\\",
    "\\n",
    '\\"',
    "'",
    "<",
    " <",
    "</",
    "[",
    "|",
    ",",
    "ä",
    "\u2028",
    "é\n",
)
MASKED = re.compile(r'"id": "call_[0-9a-f]{24}"')


def pieces(chance: random.Random, text: str) -> list[str]:
    """The text in tokens of a tokenizer's kind, and now and then by the character."""
    tokens = re.findall(r"<[^<>\s]{1,30}>|\s?\w+|\\.|\s+|[^\w\s]", text)
    assert "".join(tokens) == text
    return [piece for token in tokens for piece in ([token] if chance.random() < 0.9 else token)]


def replies(chance: random.Random, family: Family) -> list[tuple[Any, list[str]]]:
    """Samples in tokens, with more words in some of their places."""
    assert family.samples is not None
    made: list[tuple[Any, list[str]]] = []
    for sample in load_samples(family.samples):
        tokens = pieces(chance, sample.text)
        for _ in range(len(tokens) // 4):
            tokens.insert(chance.randrange(len(tokens) + 1), chance.choice(WORDS))
        made.append((sample, tokens))
    return made


def read(template: respzoo.ResponseTemplate, sample: Any, tokens: Sequence[str], special: set[str] | None) -> list[str]:
    """All that the two parsers say of a reply, piece by piece."""
    prefix = sample.prefix(template.spec)
    told: list[str] = []
    for parser in (
        template.stream(prefix=prefix, tools=sample.tools, special_tokens=special),
        template.stream(prefix=prefix, tools=sample.tools, arguments="complete"),
        template.parser(prefix=prefix, tools=sample.tools, special_tokens=special),
    ):
        for token in tokens:
            spans = ((0, len(token)),) if special and token in special else ()
            told.append(json.dumps(parser.feed(token, None if special is None else spans)))
        end = parser.finish() if isinstance(parser, respzoo.MessageStream) else parser.finalize()
        told.append(json.dumps([*end, parser.dropped]))
    return [MASKED.sub("", text) for text in told]


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("family", FAMILIES, ids=[family.name for family in FAMILIES])
def test_a_template_that_has_read_much_answers_like_a_new_one(family: Family, *, guarded: bool) -> None:
    chance = random.Random(family.name)
    used = respzoo.ResponseTemplate(family.spec, name=family.name)
    for _ in range(ROUNDS):
        for sample, tokens in replies(chance, family):
            special = {token for token in tokens if token[:1] in "<[" and len(token) > 3} if guarded else None
            fresh = respzoo.ResponseTemplate(family.spec, name=family.name)
            assert read(used, sample, tokens, special) == read(fresh, sample, tokens, special), tokens


def test_so_much_is_known_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "_MOST", 3)
    tokens = Known()
    for word in ("a", "b ", "", "c", "x" * 1000, "d", "e"):
        tokens.learn(word)
    assert list(tokens.texts) == ["a", "c", "d"]
    tokens.wait(" ")
    assert list(tokens.texts) == ["a", "c", "d"]
    strings = Strings(re.compile(r'[^"\\]*(?:\\.[^"\\]*)*').fullmatch)
    assert [strings[word] for word in ("a ", "b\\", 'c"', "d\\\\", "\\", "x" * 1000)] == [
        False,
        True,
        None,
        False,
        True,
        False,
    ]
    assert list(strings.known.texts) == ["a "]
    assert len(strings) == 3
    assert tokens.beside("other") is tokens.beside("other")
    NOTHING.learn("a")
    NOTHING.wait(" ")
    assert not NOTHING.texts
    assert NOTHING.beside("other") is NOTHING


def test_what_is_known_behind_a_backslash() -> None:
    """And white space that waits."""
    strings = Strings(re.compile(r'[^"\\]*(?:\\.[^"\\]*)*').fullmatch)
    for word in ("n", 'ab\\"', "\\n", '\\"', ".", "c\\", 'd"'):
        _ = strings[word]
    assert list(strings.known.texts) == ["n", 'ab\\"', '\\"']
    assert list(strings.anywhere) == ["n", 'ab\\"']
    assert strings.known.others == {"\\n", "."}
    tokens = Known()
    tokens.wait(" ")
    assert tokens.texts == {" ": ""}


@pytest.mark.parametrize(
    "text", ["a", "é ", "\\n", '\\"\\\\', "\u2028", "", 'a"', "\\", "\\/", "\\u00e9", "\n", "\ud800", "'", "<", "a\t"]
)
def test_what_a_text_is_sent_as(text: str) -> None:
    """As the standard library writes what it reads, but for halves of surrogate pairs, which no encoding can carry."""
    try:
        same = dump_arguments(json.loads(f'"{text}"')) == f'"{text}"'
    except ValueError:
        same = False
    assert Way("", as_json=True).shown(text) == (text if same else None)
    assert Way("<", as_json=False).shown(text) == (None if "<" in text else dump_arguments(text)[1:-1])


@pytest.mark.parametrize("kind", [respzoo.ResponseParser, respzoo.MessageStream])
def test_a_stream_is_small(kind: Any) -> None:
    """Bytes beyond the text that is held and the arguments that were sent, at any time."""
    template = respzoo.ResponseTemplate(loaded().families["qwen3"].spec)
    words = [f" {word}" for word in "the report shows that most of these numbers were measured twice".split()]
    if kind is respzoo.ResponseParser:  # joins pieces at the ends of sentences and lines
        words.append(".")
    call = ["<tool_call>", '{"name": "write", "arguments": {"text": "', *[*words[:-1], "\\n"] * 40]
    answer = ["<think>", *words * 30, "</think>", "\n\n", *words * 30, "\n", *call]
    count = 40

    def feed(streams: Sequence[Any], token: str) -> int:
        """Each gets a string of its own. Returns how many characters of arguments were sent."""
        sent = 0
        for stream in streams:
            for each in stream.feed((token + "x")[: len(token)]):
                for call in each.get("tool_calls", ()):
                    sent += len(call["function"]["arguments"])
        return sent

    prefix = "<|im_start|>assistant\n"
    first = kind(template, prefix=prefix)  # makes what all streams share
    for token in answer:
        feed([first], token)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        streams = [kind(template, prefix=prefix) for _ in range(count)]
        written = sent = 0
        for at, token in enumerate(answer):
            sent += feed(streams, token)
            written += len(token) * count
            if at % 97 == 0:
                gc.collect()
                held = tracemalloc.get_traced_memory()[0] - before
                assert (held - written - sent) / count < 4096, (at, token)
    finally:
        tracemalloc.stop()
