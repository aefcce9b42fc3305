"""canitoolcall's whole suite through our parser: how many fixtures are strict, soft or fail, by family and check.

    python tools/suite.py                 the tables
    python tools/suite.py --failures      and what is wrong with each fixture that is not strict
    python tools/suite.py --family gpt-oss

Each fixture is read by `MessageStream(arguments="complete")` with the prompt and the tools that it names: whole, and in
every default chunking of canitoolcall, whose units are tokens: the recorded ones where the tokenizer can be had
(Qwen3's, see tools/bench/qwen_tokens.py), otherwise words with each marker of the family in one piece. Curated
templates are used where there are any (`*` in the table), drafts of tests/data/templates otherwise: a report, not a
gate.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from canitoolcall.checks import case_status, run_checks
from canitoolcall.chunking import DEFAULT_STRATEGIES, ChunkStrategy, split
from canitoolcall.fixtures import Family, Fixture, load_families, load_fixtures
from canitoolcall.results import CheckResult, Observation, ParsedToolCall, ParseResult, Status

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # what is curated is here; what is not is read by a draft

import respzoo

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "bench"))

import qwen_tokens  # noqa: E402 - a script's neighbour, not a package

# The template of each reference model, by how its name begins (the longest counts).
TEMPLATES = {
    "Qwen/Qwen3-": "qwen3",
    "Qwen/Qwen3-Coder": "qwen3_xml",
    "Qwen/Qwen3.": "qwen3_xml",
    "openai/gpt-oss": "gpt_oss",
    "deepseek-ai/DeepSeek-V3-": "deepseek_v3",
    "deepseek-ai/DeepSeek-V3.1": "deepseek_v31",
    "deepseek-ai/DeepSeek-V3.2": "deepseek_v32",
    "deepseek-ai/DeepSeek-V4-": "deepseek_v4",
    "deepseek-ai/DeepSeek-V4.1": "deepseek_v41",
    "google/gemma-4": "gemma4",
    "zai-org/GLM": "glm4_moe",
    "moonshotai/Kimi-K2": "kimi_k2",
    "moonshotai/Kimi-K3": "kimi_k3",
    "meta-llama/Llama-3": "llama3_json",
    "meta-llama/Llama-4": "llama4_pythonic",
    "mistralai/": "mistral_v13",
    "mistralai/Magistral-Small-2506": "mistral_v11_think",
    "mistralai/Mistral-7B-Instruct-v0.3": "mistral_v3",
}
STRATEGIES = (*DEFAULT_STRATEGIES, ChunkStrategy("char"))
SHOWN = {Status.PASS: "strict", Status.SOFT_PASS: "soft", Status.FAIL: "fail", Status.ERROR: "error"}


@cache
def template_of(model: str) -> tuple[respzoo.ResponseTemplate, bool]:
    """The template for a model, and whether it is a curated one."""
    try:
        return respzoo.get(model), True
    except (respzoo.UnknownModelError, OSError):
        pass
    begins = max((each for each in TEMPLATES if model.startswith(each)), key=len)
    name = TEMPLATES[begins]
    path = ROOT / "tests" / "data" / "templates" / f"{name}.json"
    return respzoo.ResponseTemplate(json.loads(path.read_text(encoding="utf-8")), name=name), False


def prompt_of(fixture: Fixture, family: Family) -> str:
    if fixture.generation_prompt is not None:
        return fixture.generation_prompt
    model = family.reference_for(fixture.reference_model)
    return (model.default_generation_prompt if model else None) or ""


def units_of(fixture: Fixture, family: Family) -> list[str]:
    """The pieces that a server could send, one a token."""
    ids, pinned = fixture.output_token_ids, fixture.tokenizer.repo if fixture.tokenizer else ""
    if ids is not None and qwen_tokens.uses_this_vocabulary(pinned):
        try:
            return [piece for piece in qwen_tokens.pieces(ids) if piece]
        except qwen_tokens.TokenizerUnavailable:
            pass
    markers = "|".join(re.escape(marker) for marker in sorted(family.markers, key=len, reverse=True))
    return re.findall(rf"(?:{markers})|\s*\w{{1,5}}|\s*[^\w\s]{{1,2}}?|\s+", fixture.raw_output, re.DOTALL)


def is_special(family: Family) -> Callable[[str], bool]:
    markers = set(family.markers)
    return lambda unit: unit.strip() in markers


def observe(fixture: Fixture, family: Family) -> Observation:
    units = units_of(fixture, family)
    assert "".join(units) == fixture.raw_output, fixture.id
    special = {unit for unit in units if is_special(family)(unit)}
    streams: dict[str, ParseResult] = {}
    for strategy in STRATEGIES:
        parts = split(list(fixture.raw_output) if strategy.kind == "char" else units, strategy, special)
        streams[strategy.id] = replay(fixture, family, ["".join(part) for part in parts])
    return Observation(nonstream=whole(fixture, family), streams=streams)


def replay(fixture: Fixture, family: Family, parts: Sequence[str]) -> ParseResult:
    """What an OpenAI client accumulates."""
    template, _ = template_of(fixture.reference_model)
    stream = template.stream(prefix=prompt_of(fixture, family), tools=list(fixture.tools), arguments="complete")
    content: list[str] = []
    reasoning: list[str] = []
    calls: list[ParsedToolCall] = []
    deltas = [delta for part in parts for delta in stream.feed(part)]
    for delta in [*deltas, *stream.finish()[1]]:
        content.append(delta.get("content", ""))
        reasoning.append(delta.get("reasoning_content", ""))
        for call in delta.get("tool_calls", ()):
            function = call["function"]
            calls.append(ParsedToolCall(function.get("name", ""), function["arguments"]))
    return ParseResult("".join(content) or None, "".join(reasoning) or None, tuple(calls))


def whole(fixture: Fixture, family: Family) -> ParseResult:
    """The non-streaming answer: the message, as a server would send it."""
    template, _ = template_of(fixture.reference_model)
    stream = template.stream(prefix=prompt_of(fixture, family), tools=list(fixture.tools), arguments="complete")
    stream.feed(fixture.raw_output)
    message, _ = stream.finish()
    calls = tuple(
        ParsedToolCall(call["function"]["name"], json.dumps(call["function"]["arguments"], ensure_ascii=False))
        for call in message.get("tool_calls") or ()
    )
    return ParseResult(message.get("content") or None, message.get("reasoning_content") or None, calls)


def judged(families: Sequence[str] | None) -> Iterator[tuple[Fixture, list[CheckResult], Status]]:
    known = load_families()
    for fixture in load_fixtures(families=families):
        rows = run_checks(fixture, known[fixture.family], observe(fixture, known[fixture.family]))
        yield fixture, rows, case_status(rows)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--family", action="append", help="only this family (may be given again)")
    options.add_argument("--failures", action="store_true", help="tell what is wrong with each fixture")
    chosen = options.parse_args()
    cases: dict[tuple[str, str], Counter[Status]] = defaultdict(Counter)
    checks: dict[tuple[str, str], Counter[Status]] = defaultdict(Counter)
    told: list[str] = []
    for fixture, rows, status in judged(chosen.family):
        template, curated = template_of(fixture.reference_model)
        cases[fixture.family, f"{template.name}{' *' if curated else ''}"][status] += 1
        worst: dict[str, Status] = {}
        for row in rows:
            if row.strategy.startswith("char"):
                continue
            worst[row.check] = max(worst.get(row.check, Status.PASS), row.status, key=list(SHOWN).index)
        for check, its in worst.items():
            checks[fixture.family, check][its] += 1
        if status is not Status.PASS:
            details = dict.fromkeys(f"{row.check}: {row.detail}" for row in rows if row.status is not Status.PASS)
            told.append(f"{SHOWN[status]} {fixture.id} ({template.name})\n    " + "\n    ".join(details))
    table("family, template", cases)
    table("family, check", checks)
    if chosen.failures:
        print("\n".join(told))


def table(title: str, counted: dict[tuple[str, str], Counter[Status]]) -> None:
    print(f"\n{title:48} {'strict':>7} {'soft':>7} {'fail':>7}")
    total: Counter[Status] = Counter()
    for (first, second), counts in sorted(counted.items()):
        total += counts
        failed = counts[Status.FAIL] + counts[Status.ERROR]
        print(f"{first + ', ' + second:48} {counts[Status.PASS]:7} {counts[Status.SOFT_PASS]:7} {failed:7}")
    failed = total[Status.FAIL] + total[Status.ERROR]
    print(f"{'all':48} {total[Status.PASS]:7} {total[Status.SOFT_PASS]:7} {failed:7}")


if __name__ == "__main__":
    main()
