"""Which stretches of each delta special tokens wrote: told from its token ids while these account for its text.

vLLM's detokenizer is behind its ids where a request has stop strings, or where a character is not whole yet. As long as
each delta's text is what its ids decode to, the stretches are certain; once it is not, they are for no later delta
either, and the rest of the reply is read as text, markup as written.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from respzoo import ResponseTemplate
from respzoo.guard import marks_of
from respzoo.spans import Span, stretches
from respzoo_vllm.damage import raw_suffix
from respzoo_vllm.plan import Plan, logger
from respzoo_vllm.prompt import decode

__all__ = ["SpanReader"]


class SpanReader:
    """Follows one reply.

    Attributes:
        heeded: the ids of the special tokens that the template's delimiters spell.
        known: whether it can tell anything, and so far could.
    """

    def __init__(self, plan: Plan, template: ResponseTemplate) -> None:
        marks = marks_of(template, plan.special_tokens)
        self._special = plan.special
        self._tokenizer = plan.reader.tokenizer
        self.heeded = plan.ids_of(() if marks is None else marks.tokens)
        self.known = bool(self.heeded)

    def of(self, text: str, ids: Sequence[int], *, finished: bool) -> Sequence[Span] | None:
        """The stretches of the next delta's text. None: nobody knows."""
        if not self.known:
            return None
        if self.heeded.isdisjoint(ids):
            return () if ids or not text else self._lose(text)
        if len(ids) == 1 and text == self._special[ids[0]]:
            return ((0, len(text)),)
        found = stretches(text, ids, self._special, functools.partial(decode, self._tokenizer))
        if found is None:
            return self._lose(text)
        # A stop token writes nothing. Before the end that means that its text is still to come.
        written = sum(token_id in self._special for token_id in ids)
        return found if finished or len(found) == written else self._lose(text)

    def _lose(self, text: str) -> None:
        self.known = False
        logger.info(
            "respzoo: a delta's text is not that of its ids; quoted markup will be read as markup%s", raw_suffix(text)
        )
