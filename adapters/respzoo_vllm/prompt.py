"""Token ids of prompts and outputs, read no further than needed.

A prompt may be 100k tokens long, and what matters is its tail, from the last start anchor. Where the anchor begins with
a token of its own (`<|im_start|>`), that id is looked for from the end; otherwise ids are decoded from the end in
growing windows until the anchor is there. Reasoning is watched in the same way: by the ids of its markers where they
are single tokens, else in the decoded text of a window that is as long as the marker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import regex

from respzoo import ResponseParser, ResponseTemplate
from respzoo.fields import CALLS, REASONING_NAMES

__all__ = ["Gate", "PromptReader", "decode", "syntaxes"]

WINDOW = 64
SIDES = ("open", "close")
# White space in a pattern, as templates write it around a marker: \s* \n? and the like.
_FRAME = re.compile(r"\\[sn][*+?]{0,2}|\n[*+?]{0,2}")
_META = re.compile(r"(?<!\\)[][(){}.*+?|^$]|\\[A-Za-z0-9]")


def decode(tokenizer: Any, ids: Sequence[int]) -> str:
    """The text of token ids, special tokens and all."""
    try:
        return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    except TypeError:  # tokenizers that are not of transformers
        return tokenizer.decode(ids, skip_special_tokens=False)


def syntaxes(spec: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The syntaxes that a field of a template is written in; none if there is no such field."""
    field: Any = spec["fields"].get(name) or []
    return cast("list[Mapping[str, Any]]", field if isinstance(field, list) else [field])


def literals(field: Mapping[str, Any], side: str) -> list[str]:
    """The texts that open or close a field; of a pattern, the marker in it if that is plain but for white space."""
    if (plain := field.get(side)) is not None:
        return [plain] if isinstance(plain, str) else list(plain)
    core = _FRAME.sub("", field.get(f"{side}_pattern") or "")
    return [re.sub(r"\\(.)", r"\1", core)] if core and not _META.search(core) else []


class PromptReader:
    """Finds the part of a prompt that a template looks at."""

    def __init__(self, tokenizer: Any, template: ResponseTemplate) -> None:
        self.tokenizer = tokenizer
        texts = template.anchor_literals or ()
        self._anchor = template.anchor
        self.literal = texts[0] if texts else ""
        self._first = self._first_ids(texts)

    def _first_ids(self, texts: Sequence[str]) -> frozenset[int] | None:
        """The ids of the added tokens that the anchors begin with, if every one of them does."""
        added = cast("dict[str, int]", getattr(self.tokenizer, "get_added_vocab", dict)())
        found: set[int] = set()
        for text in texts:
            tokens = [token for token in added if token and text.startswith(token)]
            if not tokens:
                return None
            found.add(added[max(tokens, key=len)])
        return frozenset(found) or None

    def tail(self, ids: Sequence[int]) -> str:
        """The prompt's text from its last anchor on, or no text at all if there is no anchor in it."""
        if self._first is not None:
            for start in range(len(ids) - 1, -1, -1):
                if ids[start] not in self._first:
                    continue
                text = decode(self.tokenizer, ids[start : start + WINDOW])
                if self._anchor.match(text):
                    return text if len(ids) - start <= WINDOW else decode(self.tokenizer, ids[start:])
            return ""
        size = WINDOW
        while True:
            text = decode(self.tokenizer, ids[-size:])
            anchors = list(self._anchor.finditer(text))
            if anchors:
                return text[anchors[-1].start() :]
            if size >= len(ids):
                return ""
            size *= 4


class Gate:
    """Tells from token ids alone whether reasoning is over: vLLM's engine core asks at every step."""

    def __init__(self, tokenizer: Any, template: ResponseTemplate, reader: PromptReader) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self.reader = reader
        self.name = next((name for name in template.spec["fields"] if name in REASONING_NAMES), "")
        written = syntaxes(template.spec, self.name)
        self.openers, self.closers = ([text for one in written for text in literals(one, side)] for side in SIDES)
        vocab = cast("dict[str, int]", tokenizer.get_vocab())
        self.open_ids = self._ids(vocab, self.openers)
        self.close_ids = self._ids(vocab, self.closers)
        pattern = "|".join(map(regex.escape, self.closers)) or next(
            (one["close_pattern"] for one in written if "close_pattern" in one), None
        )
        self._close = regex.compile(pattern, regex.DOTALL) if pattern else None
        self._width = max((len(text.encode()) for text in self.closers), default=WINDOW)
        chat_template = getattr(tokenizer, "chat_template", None)
        # A chat template that knows nothing of the marker is that of a model that does not reason.
        self.may_reason = bool(self.name) and not (
            isinstance(chat_template, str)
            and self.openers
            and not any(text.strip() in chat_template for text in self.openers + self.closers)
        )

    @staticmethod
    def _ids(vocab: Mapping[str, int], texts: Sequence[str]) -> frozenset[int] | None:
        """The ids of markers that are single tokens, if all of them are."""
        found = {vocab[text] for text in texts if text in vocab}
        return frozenset(found) if found and len(found) == len(texts) else None

    def ended(self, prefix: str) -> bool:
        """Whether after this prompt there is no reasoning to wait for."""
        if not self.may_reason:
            return True
        parser = ResponseParser(self.template, prefix=prefix)
        if parser.region == self.name:
            return False
        for event in parser.initial_events:
            # Reasoning that is over, a call that has begun, an answer that has.
            if event["field"] == self.name or event["field"] == CALLS or str(event.get("text", "")).strip():
                return True
        return parser.region == CALLS or any(text in prefix for text in self.closers)

    def ended_within(self, ids: Sequence[int], new: Iterable[int]) -> bool:
        """Whether the last of these ids, `new`, close the reasoning. Looks at no more than those and one marker."""
        if self.close_ids is not None:
            return not self.close_ids.isdisjoint(new)
        if not self.name or self._close is None:
            return not self.name
        count = len(new) if isinstance(new, Sequence) else sum(1 for _ in new)
        start = max(0, len(ids) - count - self._width)
        text = decode(self.tokenizer, ids[start:])
        before = len(decode(self.tokenizer, ids[start : len(ids) - count]))
        return any(match.end() > before for match in self._close.finditer(text))

    def count(self, ids: Sequence[int], inside: bool) -> int:
        """How many of the output's tokens are reasoning; markers are not, as in vLLM's own count."""
        if not self.name:
            return 0
        if self.open_ids is None or self.close_ids is None:
            return self._count_by_text(ids, inside)
        count = 0
        for token in ids:
            if token in self.close_ids:
                inside = False
            elif token in self.open_ids:
                inside = True
            elif inside:
                count += 1
        return count

    def _count_by_text(self, ids: Sequence[int], inside: bool) -> int:
        prefix = self.reader.literal + self.openers[0] if inside and self.openers else ""
        parser = ResponseParser(self.template, prefix=prefix)
        count = 0
        for token in ids:
            before = parser.region
            parser.feed(decode(self.tokenizer, [token]))
            count += before == parser.region == self.name
        return count
