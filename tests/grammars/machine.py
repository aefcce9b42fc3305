"""xgrammar as the tests use it: compile a tag, ask what it takes, draw from it at random.

What a grammar takes is asked with text, for which no vocabulary is needed. To draw, tokens are chosen one by one among
those that the grammar allows, as a model would choose them, from a small vocabulary: ASCII, some words and values, and
the family's own markup.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import xgrammar as xgr

from respzoo import ResponseTemplate
from respzoo.fields import CALLS, CONTENT
from respzoo.plugins import loaded

__all__ = [
    "CALLING",
    "FAMILIES",
    "MUTE",
    "Machine",
    "before_calls",
    "begins_in_reasoning",
    "family",
    "machine",
    "tag_of",
]


@cache
def family(name: str) -> ResponseTemplate:
    return loaded().compile(loaded().families[name], "grammars")


FAMILIES = sorted(loaded().families)
CALLING = [name for name in FAMILIES if any(field.name == CALLS for field in family(name).fields.values())]
MUTE = [name for name in FAMILIES if name not in CALLING]

WORDS = ["Oslo", "x", "é漢", "🙂", "ключ", "Ünï", "\n", "  ", "\\n", '\\"', "\\u00e9", "1", "12", "-3", "0.5"]
WORDS += [
    "true",
    "false",
    "null",
    "True",
    "False",
    "None",
    ", ",
    ": ",
    '": ',
    '", "',
    "']",
    '"}',
    "}}",
    "')",
    "</",
    "/>",
]
MARKUP = re.compile(r"</?[^<>()\s]{1,40}>|\[/?[A-Z_]{3,}\]")
CLOSERS = ("}", "]", ")", '"', "'", ">", ":", "}}")
MOST = 300
"""Tokens in one draw."""
TIRED = 50
"""Tokens after which a draw looks for its end."""


def begins_in_reasoning(template: ResponseTemplate) -> bool:
    """Whether an answer begins in its reasoning, opened or not."""
    return template.initial is not None and template.initial.name != CONTENT


def before_calls(name: str) -> str:
    """What a model writes until its reasoning is over."""
    template = family(name)
    if not begins_in_reasoning(template):
        return ""
    field = template.initial
    assert field is not None
    assert field.close is not None
    closer = (field.close.literals or field.close.markers())[0]
    return f"Hm.{closer}"


def tag_of(template: ResponseTemplate, tools: Sequence[Any] | None, **request: Any) -> dict[str, Any]:
    """The tag; that there is none is an error that says why."""
    tag = template.structural_tag(tools, **request)
    assert tag is not None, template.structural_tag_reason(tools, **request)
    return tag


class Machine:
    """xgrammar with the vocabulary of one family."""

    def __init__(self, template: ResponseTemplate) -> None:
        spec = list(_strings(template.spec))
        markup = {mark for text in spec for mark in MARKUP.findall(text)}
        beyond = {char for text in [*spec, *WORDS] for char in text if char > "\x7f"}
        words = [*WORDS, *sorted(markup), *sorted(beyond)]
        self._between = self._last = ""
        self._behind: set[str] = set()
        self._begins: list[str] = []
        self._markup = sorted(markup)
        self._take(words, [])
        self._take(words, self._learn(template))

    def _take(self, words: Sequence[str], begins: Sequence[str]) -> None:
        """A vocabulary of these words, and of what calls begin with."""
        self._pieces = [*map(chr, range(128)), *dict.fromkeys([*words, *begins])]
        self._end = len(self._pieces)
        vocabulary = [piece.encode() for piece in self._pieces] + [b"<end>"]
        self._info = xgr.TokenizerInfo(vocabulary, vocab_type=xgr.VocabType.RAW, stop_token_ids=[self._end])
        self._compiler = xgr.GrammarCompiler(self._info, cache_enabled=False)
        letters = [2.0 if 32 < code < 127 else 0.1 for code in range(128)]
        self._plain = np.array(
            [
                *letters,
                *(120.0 if piece in begins else 0.4 if piece.isspace() else 10.0 for piece in self._pieces[128:]),
            ]
        )
        self._tired = self._plain * np.array([30.0 if piece in CLOSERS else 0.2 for piece in self._pieces])
        self._shy = np.array(
            [
                *letters,
                *(
                    0.01 if piece in begins else 1.0 if "<" in piece or piece.isspace() else 10.0
                    for piece in self._pieces[128:]
                ),
            ]
        )

    def _learn(self, template: ResponseTemplate) -> list[str]:
        """What calls begin with, and what stands behind a value: from calls that leave no choice but of white space."""
        dice = random.Random(1)
        begins: set[str] = set()
        for value, written in (("QVQ", "QVQ"), (98765, "98765"), (True, "[tT]rue"), (None, "null|None")):
            fixed = {"QAQ": {"const": "QVQ"}, "QBQ": {"const": value}}
            parameters = {"type": "object", "properties": fixed, "required": ["QAQ", "QBQ"]}
            tools = [{"type": "function", "function": {"name": "QNQ", "parameters": parameters}}]
            compiled = self.compile(tag_of(template, tools, tool_choice="QNQ"))
            for _ in range(4):
                text = re.sub(r"(\s)\s+", r"\1", self._draw(compiled, dice, [], shy=True, eager=1) or "")
                found = re.fullmatch(rf"(.*?)QNQ.*?QVQ(.*?)QBQ(.*)(?:{written})(.*)", text, re.DOTALL)
                if found:
                    begin, self._between, behind, last = found.groups()
                    begins.add(begin)
                    self._behind.add(behind)
                    self._last = self._last or last
                    break
        self._begins = sorted(begins)
        assert begins, "no call was drawn"
        return [begin for begin in self._begins if begin.strip()]

    def compile(self, tag: Mapping[str, Any]) -> xgr.CompiledGrammar:
        return self._compiler.compile_structural_tag(json.dumps(tag))

    def takes(self, compiled: xgr.CompiledGrammar, text: str) -> bool:
        """Whether all of a text is what the grammar says."""
        matcher = xgr.GrammarMatcher(compiled)
        return matcher.accept_string(text) and matcher.is_completed()

    def stuck(self, compiled: xgr.CompiledGrammar, text: str) -> str | None:
        """Where a text leaves the grammar; None if it does not."""
        if self.takes(compiled, text):
            return None
        matcher = xgr.GrammarMatcher(compiled)
        for at, char in enumerate(text):
            if not matcher.accept_string(char):
                return f"{text[:at]!r} must not go on with {text[at:][:40]!r}"
        return f"{text!r} is not all of it"

    def ends(self, compiled: xgr.CompiledGrammar, text: str) -> list[int]:
        """The lengths at which a text could have ended."""
        matcher = xgr.GrammarMatcher(compiled)
        found: list[int] = []
        for at, char in enumerate(text):
            if matcher.is_completed():
                found.append(at)
            if not matcher.accept_string(char):
                return found
        return [*found, len(text)] if matcher.is_completed() else found

    def draws(
        self,
        compiled: xgr.CompiledGrammar,
        tools: Sequence[Any],
        count: int,
        *,
        seed: int,
        shy: bool = False,
        eager: float = 0.3,
        begun: str = "",
    ) -> list[str]:
        """So many different texts that the grammar takes, or as many as there seem to be. `shy`: with little markup;
        `eager`: how probably one ends where it may; `begun`: how they all begin."""
        dice = random.Random(seed)
        found: dict[str, None] = {}
        for _ in range(3 * count):
            text = self._draw(compiled, dice, tools, shy=shy, eager=eager, begun=begun)
            if text is not None:
                found[text] = None
            if len(found) == count:
                break
        return list(found)

    def _draw(
        self,
        compiled: xgr.CompiledGrammar,
        dice: random.Random,
        tools: Sequence[Any],
        *,
        shy: bool,
        eager: float,
        begun: str = "",
    ) -> str | None:
        text = self._walk(compiled, dice, tools, self._shy if shy else None, eager, begun)
        if text is None and shy:  # who avoids markup may find no end
            text = self._walk(compiled, copy.copy(dice), tools, self._tired, eager, begun)
        return text

    def _walk(
        self,
        compiled: xgr.CompiledGrammar,
        dice: random.Random,
        tools: Sequence[Any],
        steady: Any,
        eager: float,
        begun: str,
    ) -> str | None:
        """A text by these weights; if there are none, by those of a draw that tires."""
        matcher = xgr.GrammarMatcher(compiled)
        assert matcher.accept_string(begun), begun
        mask = xgr.allocate_token_bitmask(1, self._info.vocab_size)
        view = mask.numpy().view(np.uint8)
        written = [begun] if begun else []
        while len(written) < MOST:
            if matcher.fill_next_token_bitmask(mask):
                allowed = np.unpackbits(view, bitorder="little")[: self._end + 1]
            else:
                allowed = np.ones(self._end + 1, dtype=np.uint8)
            free = 2 * allowed.sum() > self._end  # in a text of any kind
            if free and dice.random() < (0.5 if len(written) > TIRED or not written else 0.15):
                ways = self._ways_on("".join(written), tools, dice)
                way = next((way for way in ways if matcher.accept_string(way)), None)
                if way is not None:
                    written.append(way)
                    continue
            weights = steady if steady is not None else self._tired if len(written) > TIRED else self._plain
            total = (allowed[: self._end] * weights).cumsum()
            if allowed[self._end] and (not total[-1] or len(written) > TIRED or dice.random() < eager):
                return "".join(written)
            assert total[-1], f"nothing may follow {''.join(written)!r}"
            token = int(np.searchsorted(total, dice.random() * total[-1], side="right"))
            assert matcher.accept_token(token), f"{self._pieces[token]!r} was allowed behind {''.join(written)!r}"
            written.append(self._pieces[token])
        return None

    def _ways_on(self, text: str, tools: Sequence[Any], dice: random.Random) -> Iterator[str]:
        """What a model might write to end the value at hand: the closers and the next key, or the call's end."""
        if not tools:
            yield dice.choice([">", '"', *self._markup])
            return
        at, function = max(
            ((text.rfind(one["function"]["name"]), one["function"]) for one in tools), key=lambda one: one[0]
        )
        if at < 0:
            yield dice.choice(self._begins) + function["name"]
            return
        parameters = function.get("parameters", {})
        keys = list(parameters.get("properties", {}))
        done = max([(text.rfind(key, at), number) for number, key in enumerate(keys)], default=(-1, -1))
        ahead = keys[done[1] + 1 if done[0] >= 0 else 0 :]
        needed = [key for key in ahead if key in parameters.get("required", ())]
        if needed:
            ahead = ahead[: ahead.index(needed[0]) + 1]
        between = self._between.replace("QAQ", keys[done[1]] if done[0] >= 0 else "")
        key = dice.choice([*ahead, *([] if needed else [""])])
        if not key:
            yield self._last.replace("QBQ", keys[done[1]] if done[0] >= 0 else "")
            return
        if self._behind:
            yield between + key + dice.choice(sorted(self._behind))
        yield between + key


@cache
def machine(name: str) -> Machine:
    return Machine(family(name))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value.replace("\\", "")
    elif isinstance(value, Mapping):
        yield from (text for item in value.values() for text in _strings(item))
    elif isinstance(value, list):
        yield from (text for item in value for text in _strings(item))
