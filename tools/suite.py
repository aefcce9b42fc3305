"""canitoolcall's whole suite through our parser: how many fixtures are strict, soft or fail, by family and check.

    python tools/suite.py                      the table
    python tools/suite.py --failures           and what is wrong with each fixture that is not strict
    python tools/suite.py --family gpt-oss
    python tools/suite.py --write README.md    put the table between its markers there

See tools/replay.py for how each is read. tests/test_suite.py holds the numbers, and the README, to what this counts.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from canitoolcall.checks import ALL_CHECKS
from canitoolcall.results import Status

sys.path.insert(0, str(Path(__file__).parent))

import replay

BEGIN, END = "<!-- suite:begin (make suite) -->", "<!-- suite:end -->"
CHECKS = [name for name, _ in ALL_CHECKS]
SHOWN = {Status.PASS: "strict", Status.SOFT_PASS: "soft", Status.FAIL: "fail", Status.ERROR: "error"}


def table(verdicts: Iterable[replay.Verdict]) -> str:
    """Fixtures by family: strict / soft / fail, in all and by check (only strict where there is nothing else)."""
    counts: dict[str, dict[str, Counter[str]]] = {}
    for verdict in verdicts:
        for family in (verdict.fixture.family, "all"):
            by_check = counts.setdefault(family, {})
            for check, status in {"": verdict.status, **verdict.checks()}.items():
                by_check.setdefault(check, Counter())[SHOWN[status]] += 1
    rows = sorted(name for name in counts if name != "all") + ["all"]
    lines = [["family", "fixtures", "strict / soft / fail", *(f"`{check}`" for check in CHECKS)]]
    lines.append(["---", *["--:"] * (len(lines[0]) - 1)])
    for family in rows:
        of = counts[family]
        cells = [cell(of[check], short=True) if check in of else "" for check in CHECKS]
        lines.append([family, str(of[""].total()), cell(of[""]), *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(count: Counter[str], *, short: bool = False) -> str:
    failed = count["fail"] + count["error"]
    if short and not failed and not count["soft"]:
        return str(count["strict"])
    return f"{count['strict']} / {count['soft']} / {failed}"


def written(text: str, new: str) -> str:
    """A page with the table between its markers. Raises ValueError if they are not there."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{new}\n{END}{after}"


def main(given: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--family", action="append", help="only this family (may be given again)")
    options.add_argument("--failures", action="store_true", help="tell what is wrong with each fixture")
    options.add_argument("--write", metavar="FILE", type=Path, help="a page to put the table into")
    chosen = options.parse_args(given)
    if chosen.write and chosen.family:
        options.error("--write is for the whole suite, not for --family")
    families = chosen.family or []
    verdicts = [
        replay.read(name) for name, fixture in replay.FIXTURES.items() if not families or fixture.family in families
    ]
    shown = table(verdicts)
    print(shown)
    for verdict in verdicts:
        if chosen.failures and verdict.strictest is not Status.PASS:
            template = replay.template_of(verdict.fixture.reference_model)
            faults = "\n    ".join(verdict.faults())
            print(f"{SHOWN[verdict.strictest]} {verdict.fixture.id} ({template.name})\n    {faults}")
    if chosen.write:
        chosen.write.write_text(written(chosen.write.read_text("utf-8"), shown), "utf-8")


if __name__ == "__main__":
    main()
