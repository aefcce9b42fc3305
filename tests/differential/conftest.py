"""Makes the helpers beside the tests importable, and prints what the differential test counted."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from diff_cases import TALLY


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not TALLY:
        return
    terminalreporter.section("beside the reference")
    for line in TALLY.lines():
        terminalreporter.write_line(line)
