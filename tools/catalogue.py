"""Write the README's table of families from the registry: python tools/catalogue.py [--check]

With --check nothing is written; the exit code is 1 if the README is behind.
"""

from __future__ import annotations

import sys
from pathlib import Path

from respzoo.plugins import Family, loaded

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- families:begin (make catalogue) -->", "<!-- families:end -->"
SHOWN = 2
"""Ids named in a row."""


def row(family: Family) -> str:
    ids = [f"`{model}`" for model in family.models]
    rest = len(ids) - SHOWN
    more = f" and {rest} more" if rest > 0 else ""
    return f"| `{family.name}` | {family.title.replace('|', chr(92) + '|')} | {', '.join(ids[:SHOWN])}{more} |"


def table() -> str:
    plugins = loaded()
    curated = [family for name, family in sorted(plugins.families.items()) if plugins.owners[name] == "respzoo:curated"]
    return "\n".join(["| family | models | ids |", "| --- | --- | --- |", *map(row, curated)])


def main() -> int:
    text = README.read_text("utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        print(f"{README.name} has no {BEGIN} … {END}", file=sys.stderr)
        return 1
    new = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if "--check" in sys.argv[1:]:
        return int(new != text)
    README.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
