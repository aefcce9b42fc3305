"""What a process pays before it parses: importing respzoo, and finding a template.

    python tools/bench/start.py
    python tools/bench/start.py --write README.md

Strategy: wall time in fresh processes, one after another, the median of ten; bytecode is compiled before, into a
folder that is thrown away, as it is after the first run of any installation. What must not be imported is looked for
in the same processes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BEGIN, END = "<!-- start-bench:begin -->", "<!-- start-bench:end -->"
MODEL = "Qwen/Qwen3-8B"
HEAVY = ("huggingface_hub", "typer", "rich", "transformers", "torch")
PROBE = f"""
import sys, time
clock = time.perf_counter
a = clock()
import respzoo
b = clock()
respzoo.get({MODEL!r})
c = clock()
again = []
for _ in range(100):
    d = clock()
    respzoo.get({MODEL!r})
    again.append(clock() - d)
import json
heavy = sorted(set({HEAVY!r}) & set(sys.modules))
print(json.dumps([b - a, c - b, sorted(again)[50], heavy]))
"""
ROWS = (
    # what, its unit's size in seconds, the unit, and what it may take
    ("`import respzoo`", 1e-3, "ms", 80),
    (f'the first `respzoo.get("{MODEL}")`', 1e-3, "ms", 30),
    ("the same again", 1e-6, "µs", 20),
)


def measure(processes: int) -> list[list[float]]:
    """Seconds of each row in each process."""
    runs: list[list[float]] = []
    with tempfile.TemporaryDirectory() as cache:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RESPZOO_")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = cache
        for _ in range(processes + 1):
            command = [sys.executable, "-c", PROBE]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=cache)
            *seconds, heavy = json.loads(done.stdout)
            if heavy:
                sys.exit(f"imported, and should not be: {', '.join(heavy)}")
            runs.append(seconds)
    return [list(column) for column in zip(*runs[1:], strict=True)]  # the first one compiled


def report(columns: list[list[float]]) -> str:
    lines = ["And before the first token:", "", "| | median | may take |", "| --- | ---: | ---: |"]
    for (what, size, unit, limit), seconds in zip(ROWS, columns, strict=True):
        lines.append(f"| {what} | {statistics.median(seconds) / size:.1f} {unit} | {limit} {unit} |")
    lines += [
        "",
        f"Wall time of {len(columns[0])} fresh processes, Python {platform.python_version()}, {platform.machine()}.",
    ]
    return "\n".join(lines) + "\n"


def write(path: Path, table: str) -> None:
    text = path.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        sys.exit(f"{path} has no {BEGIN} … {END} to write between")
    head, rest = text.split(BEGIN, 1)
    path.write_text(f"{head}{BEGIN}\n{table}{END}{rest.split(END, 1)[1]}", encoding="utf-8")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--processes", type=int, default=10, metavar="N", help="how many fresh processes (10)")
    options.add_argument(
        "--write", type=Path, metavar="FILE", help="put the table between the start-bench marks of FILE"
    )
    chosen = options.parse_args()
    table = report(measure(chosen.processes))
    print(table, end="")
    if chosen.write:
        write(chosen.write, table)


if __name__ == "__main__":
    main()
