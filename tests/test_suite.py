"""All 469 fixtures of canitoolcall, by its own checks: whole, in every default chunking, and by character.

The ceiling is 468: gemma4/vllm-text-before-call and gemma4/sglang-text-before-call want the same text to keep and to
lose its last space. `pytest tests/test_suite.py --canitoolcall-family gpt-oss` tries one family.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from canitoolcall.checks import ALL_CHECKS, compare, expected_as_result
from canitoolcall.chunking import DEFAULT_STRATEGIES
from canitoolcall.fixtures import Fixture
from canitoolcall.pytest_plugin import assert_conforms, assert_equivalent
from canitoolcall.results import Status

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import replay
import suite


def test_conformance(canitoolcall_fixture: Fixture) -> None:
    verdict = replay.read(canitoolcall_fixture.id)
    status = replay.allowed(canitoolcall_fixture.id)
    assert verdict.strictest is status, verdict.faults()
    assert [*verdict.streams] == [*(strategy.id for strategy in DEFAULT_STRATEGIES), replay.BY_CHARACTER.id]
    for result in verdict.streams.values():
        assert_equivalent(verdict.nonstream, result)
    if status is not Status.FAIL:
        assert_conforms(canitoolcall_fixture, verdict.nonstream, soft=status is Status.SOFT_PASS)


def test_streamed_arguments(canitoolcall_fixture: Fixture) -> None:
    name = canitoolcall_fixture.id
    verdict = replay.read(name, "stream")
    assert verdict.strictest is replay.allowed(name, "stream"), verdict.faults()
    assert replay.finished(verdict).strictest is replay.allowed(name), "not only the unfinished call is amiss"


def test_counts() -> None:
    expected = {
        "complete": {Status.PASS: 468, Status.SOFT_PASS: 1},
        "stream": {Status.PASS: 441, Status.SOFT_PASS: 1, Status.FAIL: 27},
    }
    assert expected["stream"][Status.FAIL] == len(replay.BEGUN)
    assert Counter(replay.read(name).strictest for name in replay.FIXTURES) == expected["complete"]
    assert Counter(replay.read(name, "stream").strictest for name in replay.FIXTURES) == expected["stream"]


def test_every_check_is_made() -> None:
    seen = Counter(row.check for name in replay.FIXTURES for row in replay.read(name).rows)
    assert {check for check, _ in ALL_CHECKS} == set(seen)
    assert min(seen.values()) > 300


def test_the_one_that_is_left_contradicts_another() -> None:
    for engine, ends_with_space in (("vllm", False), ("sglang", True)):
        fixture = replay.FIXTURES[f"gemma4/{engine}-text-before-call"]
        text = fixture.raw_output.partition("<|tool_call>")[0]
        assert fixture.expected is not None
        assert fixture.expected.content == (text if ends_with_space else text.rstrip())
        assert text.endswith(" ")


def test_the_checks_see_a_fault() -> None:
    """A wrong answer, whole or in one chunking only, is not strict."""
    verdict = replay.read("qwen3-hermes/parallel-two-calls-thinking")
    fixture = verdict.fixture
    assert verdict.status is Status.PASS
    assert fixture.expected is not None
    assert compare(expected_as_result(fixture.expected), verdict.nonstream) is Status.PASS
    wrong = replay.as_result({"content": fixture.raw_output})
    assert replay.judge(fixture, wrong, verdict.streams).status is Status.FAIL
    for strategy in verdict.streams:
        broken = replay.judge(fixture, verdict.nonstream, {**verdict.streams, strategy: wrong})
        assert broken.strictest is Status.FAIL
        assert (broken.status is Status.FAIL) is (strategy != replay.BY_CHARACTER.id)


def test_the_recorded_tokens_are_used() -> None:
    """Of every model whose tokenizer can be had; what they write is the recorded output."""
    used = 0
    for fixture in replay.FIXTURES.values():
        pinned = fixture.tokenizer
        assert pinned is not None
        if pinned.repo.startswith("Qwen/Qwen3-") or pinned.mode == "mistral":
            units = replay.units_of(fixture)
            assert "".join(units) == fixture.raw_output
            assert fixture.output_token_ids is not None
            assert len(units) <= len(fixture.output_token_ids)  # some write no whole character
            used += 1
    assert used == 107


def test_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = suite.table(map(replay.read, replay.FIXTURES))
    assert suite.written(readme, shown) == readme, "the README is behind: make suite"


@pytest.mark.parametrize("text", ["no markers", suite.BEGIN, suite.END + suite.BEGIN])
def test_a_page_without_the_markers(text: str) -> None:
    with pytest.raises(ValueError, match="the page has no"):
        suite.written(text, "")
