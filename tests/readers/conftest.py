"""Makes the readers beside the tests importable, and prints how the other readers differ."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "vllm_cpu"))

from readers import TALLY


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if TALLY:
        terminalreporter.section("samples in other readers: the same, or which difference")
        for dialect, counts in TALLY.items():
            line = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
            terminalreporter.write_line(f"{dialect}: {line}")
