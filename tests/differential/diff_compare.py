"""One text, one template, two parsers: what they answer, and the names of what differs."""

from __future__ import annotations

from typing import Any

from diff_cases import Case, Outcome, cuttings, json_like, read_ours, read_reference
from diff_trace import REASONING, Trace, Unexplained

__all__ = ["Unexplained", "compare"]


def compare(
    reference: Any, template: Any, case: Case, prefix: str, *, every_cut: bool, reference_cuts: bool
) -> set[str]:
    """The names of the differences.

    `every_cut`: ours reads the text in every cutting, and must answer the same (P3). `reference_cuts`: so does the
    reference, which need not.

    Raises:
        Unexplained: a difference without a name.
    """
    cut = cuttings(case.text, case.seed)
    ours = read_ours(template, prefix, case.tools, cut["whole"])
    if every_cut:
        for how in ("by character", "at random"):
            other = read_ours(template, prefix, case.tools, cut[how])
            if other != ours:
                raise Unexplained(f"P3: {how} we read\n{other}\n  and whole\n{ours}\n ")
    theirs = read_reference(reference, prefix, case.tools, cut["whole"])
    names: set[str] = set()
    if not same(ours, theirs):
        names |= {"D9"} if same_but_for_names(ours, theirs) else proved(reference, case, prefix, ours, theirs)
    if reference_cuts and theirs.error is None:
        others = (read_reference(reference, prefix, case.tools, cut[how]) for how in ("by character", "at random"))
        if any(other != theirs for other in others):
            names.add("D5")
    return names


def same(ours: Outcome, theirs: Outcome) -> bool:
    return theirs.error is None and json_like((ours.message, ours.events)) == json_like((theirs.message, theirs.events))


def same_but_for_names(ours: Outcome, theirs: Outcome) -> bool:
    """D9 alone: the reasoning field under its one name in the message, as the template calls it in events."""
    if theirs.message is None or json_like(ours.events) != json_like(theirs.events):
        return False
    renamed = {("reasoning_content" if name in REASONING else name): value for name, value in theirs.message.items()}
    return json_like(renamed) == json_like(ours.message)


def proved(reference: Any, case: Case, prefix: str, ours: Outcome, theirs: Outcome) -> set[str]:
    trace = Trace(reference, prefix, case.text, case.tools, ours.events, ours.dropped)
    trace.check_message(ours.message or {})
    names = set(trace.names)
    if not names and theirs.error is None:
        readings = [
            read_reference(reference, prefix, case.tools, pieces) for pieces in cuttings(case.text, case.seed).values()
        ]
        if any(reading != theirs for reading in readings) and any(same(ours, reading) for reading in readings):
            names.add("D5")
    if not names:
        raise Unexplained("our reading is sound by the rules, and so should be the reference's: they differ")
    return names
