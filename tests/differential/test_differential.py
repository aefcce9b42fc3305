"""Our parser beside the reference: the same answer, or a difference that has a name and is proved (see diff_trace.py).

Every template reads the raw output of every fixture; a curated one every text that its delimiters touch and one in ten of
the others. What a template's delimiters touch is read whole, by character and cut at random, the rest whole. RESPZOO_DIFFERENTIAL=all feeds the reference in every cutting, not in a sample of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest
from diff_cases import (
    TALLY,
    Case,
    cases,
    our_template,
    prefix_for,
    read_ours,
    read_reference,
    reference_template,
    specs,
    touches,
)
from diff_compare import Unexplained, compare

EVERYTHING = os.environ.get("RESPZOO_DIFFERENTIAL") == "all"
SHOWN = 4  # how many of a template's failures are told
FEWER = 10
SAMPLE = 6  # of so many readings, one is also cut up for the reference


def story(name: str, case: Case, prefix: str, problem: Unexplained) -> str:
    whole = [case.text]
    ours = read_ours(our_template(name), prefix, case.tools, whole)
    theirs = read_reference(reference_template(name), prefix, case.tools, whole)
    return (
        f"template {name}, text of {case.id}: {problem}\n  prefix ends {prefix[-60:]!r}\n  text {case.text!r}\n"
        f"  respzoo\n{ours}\n  reference\n{theirs}\n"
    )


def judge(name: str, readings: Iterator[tuple[Case, str, bool, bool]], what: str) -> None:
    stories: list[str] = []
    failures = 0
    for case, prefix, every_cut, reference_cuts in readings:
        try:
            pair = reference_template(name), our_template(name)
            names = compare(*pair, case, prefix, every_cut=every_cut, reference_cuts=reference_cuts)
        except Unexplained as problem:
            failures += 1
            if len(stories) < SHOWN:
                stories.append(story(name, case, prefix, problem))
        else:
            TALLY.add(what, names, f"{name} on {case.id}")
    if failures:
        pytest.fail(f"{failures} unexplained; the first of them:\n\n" + "\n".join(stories), pytrace=False)


def plan(name: str, texts: Sequence[Case]) -> Iterator[tuple[Case, str, bool, bool]]:
    for number, case in enumerate(texts):
        touched = touches(name, case.text)
        if not (touched or EVERYTHING) and name.startswith("curated_") and number % FEWER:
            continue  # there are many, and most texts are none of theirs
        sampled = EVERYTHING or (touched and number % SAMPLE == 0)
        yield case, prefix_for(name, case), touched, sampled


@pytest.mark.parametrize("name", list(specs()))
def test_reads_as_the_reference_does(name: str) -> None:
    judge(name, plan(name, cases()), "with the anchor in the prefix")


@pytest.mark.parametrize("name", list(specs()))
def test_an_anchor_that_is_not_in_the_prefix(name: str) -> None:
    """D6: the message starts empty; the reference would read the whole prompt."""
    anchor = reference_template(name).start_anchor_re
    prompts = [case for case in cases()[::9] if not anchor.search(case.prompt)]
    judge(name, ((case, case.prompt, False, False) for case in prompts), "with no anchor in the prefix")
