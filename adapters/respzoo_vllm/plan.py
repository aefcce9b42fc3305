"""Which template a server uses, and what is made once for a tokenizer: the template's variants, reader and gate."""

from __future__ import annotations

import functools
import logging
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary

import regex

import respzoo
from respzoo import ResponseParser, ResponseTemplate, UnknownModelError
from respzoo.fields import CALLS, REASONING_NAMES
from respzoo.spans import special_texts
from respzoo_vllm.prompt import Gate, PromptReader, syntaxes
from respzoo_vllm.variant import without

__all__ = ["CHOICES", "Plan", "announce", "find_template", "plan_for", "policies"]

logger = logging.getLogger("vllm.respzoo")  # below "vllm", whose handlers vLLM sets up
_plans: WeakKeyDictionary[Any, dict[int, Plan]] = WeakKeyDictionary()
_announced: set[tuple[str, str]] = set()
# What a server's environment may choose, as `MessageStream` takes it: RESPZOO_ and the argument's name.
CHOICES = {
    "arguments": ("stream", "complete"),
    "on_malformed": ("content", "drop"),
    "on_unfinished": ("drop", "content"),
}


class Plan:
    """A template as one server reads it."""

    def __init__(self, tokenizer: Any, template: ResponseTemplate) -> None:
        self.template = template
        self.reader = PromptReader(tokenizer, template)
        self.gate = Gate(tokenizer, template, self.reader)
        self.special = special_texts(tokenizer)
        self.special_tokens = frozenset(self.special.values())
        self.harmony = _is_harmony(template.spec)
        self._variants = {(True, True): template}
        self._ids: dict[tuple[str, ...], frozenset[int]] = {}
        self.grammars: OrderedDict[str, Any] = OrderedDict()  # grammar.py's, by what was asked
        self.stops: frozenset[str] | None = None

    def variant(self, *, reasoning: bool, tools: bool) -> ResponseTemplate:
        """The template without the fields that are not asked for."""
        found = self._variants.get((reasoning, tools))
        if found is None:
            found = without(self.template, reasoning=reasoning, tools=tools)
            self._variants[reasoning, tools] = found
        return found

    def ids_of(self, tokens: tuple[str, ...]) -> frozenset[int]:
        """The ids of these special tokens."""
        found = self._ids.get(tokens)
        if found is None:
            found = self._ids[tokens] = frozenset(token_id for token_id, text in self.special.items() if text in tokens)
        return found

    @functools.cached_property
    def call_closers(self) -> dict[int, str]:
        """The special tokens that close calls, by id."""
        closers = {
            text.strip()
            for field in self.template.fields.values()
            if field.name == CALLS and field.close is not None
            for text in field.close.literals or field.close.markers()
        }
        return {token_id: text for token_id, text in self.special.items() if text in closers}

    @property
    def frames_content(self) -> bool:
        """Whether the answer stands between markers, too."""
        return self.template.implicit is None

    def prefix(self, *, inside: bool) -> str:
        """A prompt that has begun the reasoning, or one that has not."""
        return self.reader.literal + (self.gate.openers[0] if inside and self.gate.openers else "")

    @functools.cached_property
    def reasoning_markers(self) -> tuple[str | None, str | None]:
        """What begins and what ends the reasoning: a text of the template's, or of its patterns a token of the
        tokenizer's. None where there is neither."""
        written = syntaxes(self.template.spec, self.gate.name)
        added = cast("dict[str, int]", getattr(self.reader.tokenizer, "get_added_vocab", dict)())
        tokens = sorted(added, key=len)

        def marker(side: str, texts: Sequence[str]) -> str | None:
            patterns = [regex.compile(one[f"{side}_pattern"]) for one in written if f"{side}_pattern" in one]
            return next(iter(texts), None) or next(
                (token for token in tokens for pattern in patterns if pattern.fullmatch(token)), None
            )

        return marker("open", self.gate.openers), marker("close", self.gate.closers)

    def opens_reasoning(self, prefix: str) -> bool:
        """Whether this prompt has begun the reasoning."""
        return ResponseParser(self.template, prefix=prefix).region in REASONING_NAMES

    def guess_prefix(self, output: str) -> str:
        """For a reply whose prompt nobody told us: reasoning that it closes but did not open was opened there."""
        opened = min((at for text in self.gate.openers if (at := output.find(text)) >= 0), default=len(output))
        if self.gate.openers and any(0 <= output.find(text) < opened for text in self.gate.closers):
            return self.prefix(inside=True)
        return ""


def plan_for(tokenizer: Any, template: ResponseTemplate | None) -> Plan:
    """The plan for a tokenizer, made once. Without a template, it is looked up by the tokenizer (the engine core)."""
    plans = _plans.setdefault(tokenizer, {})
    key = id(template) if template is not None else 0
    if key not in plans:
        plans[key] = Plan(tokenizer, template or find_template(None, tokenizer))
    return plans[key]


def find_template(model: str | None, tokenizer: Any) -> ResponseTemplate:
    """The template for a model, whose tokenizer (if it is at hand) brings its own name and chat template."""
    names = [name for name in (model, getattr(tokenizer, "name_or_path", None)) if isinstance(name, str) and name]
    unknown: UnknownModelError | None = None
    for name in dict.fromkeys(names):
        try:
            return respzoo.get(name, tokenizer=tokenizer)
        except UnknownModelError as error:
            unknown = unknown or error
    raise unknown or UnknownModelError("neither the model nor its tokenizer has a name to find a response template by")


def announce(template: ResponseTemplate, model: str | None) -> None:
    """Say once which template was found, where, and why."""
    said = (template.name, template.source)
    if said not in _announced:
        _announced.add(said)
        logger.info("respzoo reads %s with the response template %s: %s", model or "this model", *said)


def policies() -> dict[str, Any]:
    """What the environment says of damaged calls.

    Raises:
        ValueError: a variable has a value that it cannot have.
    """
    chosen: dict[str, Any] = {}
    for name, allowed in CHOICES.items():
        variable = f"RESPZOO_{name.upper()}"
        value = os.environ.get(variable) or allowed[0]
        if value not in allowed:
            raise ValueError(f"{variable}: expected {' or '.join(map(repr, allowed))}, found {value!r}")
        chosen[name] = value
    return chosen


def _is_harmony(spec: Mapping[str, Any]) -> bool:
    """Whether replies are gpt-oss's: channels, and functions in a namespace of theirs."""
    fields = str(spec["fields"])
    return (
        "channel" in fields and "to=functions" in fields and "<|start|>assistant" in str(spec.get("start_anchor", ""))
    )
