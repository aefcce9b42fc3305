"""canitoolcall's fixtures, read by a parser and judged by the suite's own checks; shared by tools and tests.

A fixture is read whole, and in every default chunking of canitoolcall, whose units are tokens: the recorded ones where
the tokenizer can be had (Qwen3's and Mistral's, from packages that carry them), otherwise words with each marker of the
family in one piece; and by character. How a text is read is the caller's: `read` below is our own `MessageStream`, tests/vllm puts the
adapter in its place.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from canitoolcall.checks import case_status, run_checks
from canitoolcall.chunking import DEFAULT_STRATEGIES, ChunkStrategy, split
from canitoolcall.fixtures import Fixture, load_families, load_fixtures
from canitoolcall.results import CheckResult, Observation, ParsedToolCall, ParseResult, Status, worst_status

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # what is curated is here

import respzoo

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "bench"))

import mistral_tokens  # noqa: E402 - a script's neighbour, not a package
import qwen_tokens  # noqa: E402 - a script's neighbour, not a package

# What is not strict, and why; tests hold every reader to it.
SOFT = {
    "gemma4/vllm-text-before-call": "wants `Let me check. ` without its last space, gemma4/sglang-text-before-call with it",
}
# With arguments="stream" a call is begun before it is whole, and an API takes nothing back: these calls the model did not
# finish. Without what was sent of them, the rest is the same.
CUT, BROKEN = "the output ends in a call", "the call's JSON lacks a brace when its closer comes"
BEGUN = {
    "deepseek/v3-truncated-mid-arguments": CUT,
    "deepseek/v31-truncated-mid-arguments": CUT,
    "deepseek/v32-truncated-mid-arguments": CUT,
    "deepseek/v32-truncated-second-parallel-call": CUT,
    "deepseek/v4-truncated-mid-arguments": CUT,
    "deepseek/v4-truncated-second-parallel-call": CUT,
    "deepseek/v41-truncated-mid-arguments": CUT,
    "deepseek/v41-truncated-second-parallel-call": CUT,
    "deepseek/vllm-v3-malformed-missing-brace": BROKEN,
    "gemma4/truncated-before-close": CUT,
    "gemma4/truncated-mid-string": CUT,
    "gemma4/truncated-second-parallel-call": CUT,
    "glm/glm45-truncated-after-arg-key": CUT,
    "glm/glm47-truncated-before-close-call": CUT,
    "glm/glm47-truncated-inside-arg-value": CUT,
    "gpt-oss/harmony-truncated-in-arguments": CUT,
    "kimi/k26-truncated-inside-arguments": CUT,
    "kimi/k3-truncated-inside-argument": CUT,
    "llama/l3-truncated-inside-parameters": CUT,
    "llama/l4-truncated-missing-close-bracket": CUT,
    "mistral/v13think-truncated-in-arguments": CUT,
    "qwen3-hermes/bug-sglang-30480-truncated-mid-arguments": CUT,
    "qwen3-hermes/truncated-mid-arguments-no-thinking": CUT,
    "qwen3-hermes/truncated-mid-arguments-thinking": CUT,
    "qwen3-hermes/truncated-second-parallel-call": CUT,
    "qwen3-hermes/vllm-invalid-json-missing-brace": BROKEN,
    "qwen3-xml/q38-truncated-in-parameter": CUT,
}
BY_CHARACTER = ChunkStrategy("char")
FAMILIES = load_families()
FIXTURES = {fixture.id: fixture for fixture in load_fixtures()}

T = TypeVar("T")
Arguments = Literal["complete", "stream"]


def allowed(name: str, arguments: Arguments = "complete") -> Status:
    """What the fixture of this id must come to."""
    if arguments == "stream" and name in BEGUN:
        return Status.FAIL
    return Status.SOFT_PASS if name in SOFT else Status.PASS


@dataclass(frozen=True)
class Verdict:
    """How one fixture was read. `status` is the suite's; `strictest` counts the pieces that no server sends as well."""

    fixture: Fixture
    nonstream: ParseResult
    streams: Mapping[str, ParseResult]
    rows: tuple[CheckResult, ...]

    @property
    def status(self) -> Status:
        return case_status(self.rows)

    @property
    def strictest(self) -> Status:
        return worst_status(row.status for row in self.rows)

    def checks(self) -> dict[str, Status]:
        """The worst status of each check."""
        statuses: dict[str, list[Status]] = {}
        for row in self.rows:
            statuses.setdefault(row.check, []).append(row.status)
        return {check: worst_status(its) for check, its in statuses.items()}

    def faults(self) -> list[str]:
        return list(dict.fromkeys(f"{row.check}: {row.detail}" for row in self.rows if row.status is not Status.PASS))


def judge(fixture: Fixture, nonstream: ParseResult, streams: Mapping[str, ParseResult]) -> Verdict:
    observation = Observation(nonstream=nonstream, streams=dict(streams))
    rows = run_checks(fixture, FAMILIES[fixture.family], observation)
    return Verdict(fixture, nonstream, streams, tuple(rows))


def streamed(
    units: Sequence[T],
    special: Collection[T],
    read: Callable[[Sequence[Sequence[T]]], ParseResult],
    strategies: Iterable[ChunkStrategy] = DEFAULT_STRATEGIES,
) -> dict[str, ParseResult]:
    """What is read of these units under every chunking."""
    return {strategy.id: read(split(list(units), strategy, special)) for strategy in strategies}


def prompt_of(fixture: Fixture) -> str:
    if fixture.generation_prompt is not None:
        return fixture.generation_prompt
    model = FAMILIES[fixture.family].reference_for(fixture.reference_model)
    return (model.default_generation_prompt if model else None) or ""


# ------------------------------------------------------------------------------------------------- by our own parser


@cache
def template_of(model: str) -> respzoo.ResponseTemplate:
    return respzoo.get(model)


def units_of(fixture: Fixture) -> list[str]:
    """The pieces that a server could send, one a token."""
    ids, pinned = fixture.output_token_ids, fixture.tokenizer
    if ids is not None and pinned is not None:
        if qwen_tokens.uses_this_vocabulary(pinned.repo):
            return [piece for piece in qwen_tokens.pieces(ids) if piece]
        if pinned.mode == "mistral":
            return [piece for piece in mistral_tokens.pieces(ids) if piece]
    markers = sorted(FAMILIES[fixture.family].markers, key=len, reverse=True)
    words = rf"(?:{'|'.join(map(re.escape, markers))})|\s*\w{{1,5}}|\s*[^\w\s]{{1,2}}?|\s+"
    return re.findall(words, fixture.raw_output, re.DOTALL)


@cache
def read(name: str, arguments: Arguments = "complete") -> Verdict:
    """The fixture of this id through `MessageStream`."""
    fixture = FIXTURES[name]
    template = template_of(fixture.reference_model)
    units = units_of(fixture)
    assert "".join(units) == fixture.raw_output, fixture.id
    markers = FAMILIES[fixture.family].markers
    special = {unit for unit in units if unit.strip() in markers}

    def stream(parts: Iterable[Sequence[str]]) -> tuple[dict[str, Any], ParseResult]:
        reply = template.stream(prefix=prompt_of(fixture), tools=list(fixture.tools), arguments=arguments)
        deltas = [delta for part in parts for delta in reply.feed("".join(part))]
        message, last = reply.finish()
        return message, gathered([*deltas, *last])

    whole, _ = stream([fixture.raw_output])
    streams = streamed(units, special, lambda parts: stream(parts)[1])
    streams |= streamed(fixture.raw_output, (), lambda parts: stream(parts)[1], [BY_CHARACTER])
    return judge(fixture, as_result(whole), streams)


def gathered(deltas: Iterable[Mapping[str, Any]]) -> ParseResult:
    """What an OpenAI client accumulates."""
    content: list[str] = []
    reasoning: list[str] = []
    calls: dict[int, list[str]] = {}
    for delta in deltas:
        content.append(delta.get("content", ""))
        reasoning.append(delta.get("reasoning_content", ""))
        for call in delta.get("tool_calls", ()):
            known = calls.setdefault(call["index"], ["", ""])
            known[0] = known[0] or call["function"].get("name", "")
            known[1] += call["function"].get("arguments", "")
    made = tuple(ParsedToolCall(name, arguments) for name, arguments in calls.values())
    return ParseResult("".join(content) or None, "".join(reasoning) or None, made)


def as_result(message: Mapping[str, Any]) -> ParseResult:
    """A message, as a server would send it."""
    calls = tuple(
        ParsedToolCall(call["function"]["name"], as_text(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    )
    return ParseResult(message.get("content") or None, message.get("reasoning_content") or None, calls)


def as_text(arguments: Any) -> str:
    """Of a call that broke off, they are text already."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def finished(verdict: Verdict) -> Verdict:
    """The same without calls whose arguments broke off."""

    def without(result: ParseResult) -> ParseResult:
        return replace(result, tool_calls=tuple(call for call in result.tool_calls if _is_object(call.arguments_raw)))

    streams = {strategy: without(result) for strategy, result in verdict.streams.items()}
    return judge(verdict.fixture, without(verdict.nonstream), streams)


def _is_object(text: str | None) -> bool:
    try:
        return isinstance(json.loads(text or ""), dict)
    except ValueError:
        return False
