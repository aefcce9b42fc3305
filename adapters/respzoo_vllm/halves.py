"""One reply read by two parsers that do not know each other: the reasoning, and what comes after it.

Where vLLM composes a reasoning and a tool parser, the text behind the reasoning goes from one to the other as it was
written. The first therefore finds where in the text the reasoning ends, which it tells by what follows: text that the
template takes for an answer. The second reads that as any reply, by a template without reasoning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from respzoo import MessageStream
from respzoo.fields import REASONING_NAMES
from respzoo.message import Delta
from respzoo_vllm.plan import Plan

__all__ = ["ReasoningHalf", "answer_half"]


class ReasoningHalf:
    """Reads a reply up to where its reasoning is over.

    Attributes:
        inside: whether the prompt has begun the reasoning.
        over: whether it is over; all that is fed from then on is the second half's.
    """

    def __init__(self, plan: Plan, prefix: str) -> None:
        self._stream = MessageStream(plan.variant(reasoning=True, tools=False), prefix=prefix)
        # Of a closer that only a pattern tells, nothing is known here: the answer goes on as the template shows it.
        self._close = re.compile("|".join(map(re.escape, plan.gate.closers)) or "(?!)")
        self._openers = tuple(text.strip() for text in plan.gate.openers)
        self._width = max((len(text) for text in plan.gate.closers), default=0)
        self._raw = ""  # the end of what was fed, from the reasoning's closer on, if that is there
        self.inside = self._seen = self._stream.parser.region in REASONING_NAMES
        self.over = not plan.gate.name

    def feed(self, text: str) -> tuple[str, str]:
        """The next piece: the reasoning that is certain with it, and the text behind the reasoning, if it is over."""
        if self.over:
            return "", text
        self._raw += text
        return self._settle(self._stream.feed(text))

    def end(self) -> tuple[str, str]:
        """The output has ended."""
        return ("", "") if self.over else self._settle(self._stream.finish()[1])

    def _settle(self, deltas: Iterable[Delta]) -> tuple[str, str]:
        reasoning = "".join(delta["reasoning_content"] for delta in deltas if "reasoning_content" in delta)
        shown = "".join(delta["content"] for delta in deltas if "content" in delta)
        self._seen |= bool(reasoning) or self._stream.parser.region in REASONING_NAMES
        self._seen |= self._raw.lstrip().startswith(self._openers)  # it may be empty
        if not shown:
            if self._seen:
                found = self._close.search(self._raw)
                self._raw = self._raw[found.start() :] if found else self._raw[max(0, len(self._raw) - self._width) :]
            return reasoning, ""
        self.over = True
        if not self._seen:
            rest = self._raw
        else:
            found = self._close.search(self._raw)
            rest = self._raw[found.end() :] if found else shown
        return reasoning, rest if shown[0].isspace() else rest.lstrip()


def answer_half(plan: Plan, tools: Iterable[Mapping[str, Any]] | None, policies: Mapping[str, Any]) -> MessageStream:
    """What reads the text behind the reasoning. No tools: calls are text."""
    template = plan.variant(reasoning=False, tools=tools is not None)
    return MessageStream(template, prefix="", tools=tools, **policies)
