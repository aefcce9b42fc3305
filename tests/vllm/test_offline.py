"""The adapter on the Python files of several releases of vLLM (*_cases.py), and canitoolcall's suite through it
(suite_cases.py), each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as tree
from pathlib import Path

import pytest
import releases

pytestmark = pytest.mark.offline

HERE = Path(__file__).parent


def run_cases(*cases: str, report: Path, least: int, release: Path | None = None) -> None:
    path = {} if release is None else {"PYTHONPATH": str(release)}
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
            *(str(HERE / case) for case in cases),
        ],
        env={**os.environ, **path, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    suite = tree.parse(report).getroot().find("testsuite")
    assert suite is not None
    counts = {name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
    print(f"{', '.join(cases)}: {counts['tests']} cases")
    assert counts["tests"] > least
    assert counts["failures"] == counts["errors"] == counts["skipped"] == 0


@pytest.mark.parametrize("version", sorted(releases.RELEASES))
def test_release(version: str, tmp_path: Path) -> None:
    cases = sorted(path.name for path in HERE.glob("*_cases.py") if path.name != "suite_cases.py")
    run_cases(*cases, report=tmp_path / "report.xml", least=500, release=releases.fetch(version))


def test_suite(tmp_path: Path) -> None:
    run_cases("suite_cases.py", report=tmp_path / "report.xml", least=3 * 469)
