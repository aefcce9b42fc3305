"""The adapter on the Python files of several releases of vLLM, each in a process of its own: release_cases.py."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as tree
from pathlib import Path

import pytest
import releases

pytestmark = pytest.mark.offline

CASES = Path(__file__).with_name("release_cases.py")


@pytest.mark.parametrize("version", sorted(releases.RELEASES))
def test_release(version: str, tmp_path: Path) -> None:
    source = releases.fetch(version)
    report = tmp_path / "report.xml"
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-W",
            "ignore",
            "-p",
            "no:cacheprovider",
            f"--junit-xml={report}",
            str(CASES),
        ],
        env={**os.environ, "PYTHONPATH": str(source), "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    suite = tree.parse(report).getroot().find("testsuite")
    assert suite is not None
    counts = {name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
    print(f"vLLM {version}: {counts['tests']} cases")
    assert counts["tests"] > 50
    assert counts["failures"] == counts["errors"] == counts["skipped"] == 0
