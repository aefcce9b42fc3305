"""Tests of grammars with xgrammar itself. They need the environment that tools/vllm_cpu/setup.py makes: make test-vllm."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
for folder in ("tests/grammars", "tests/truth", "tools/bench"):
    sys.path.insert(0, str(ROOT / folder))

if importlib.util.find_spec("xgrammar") is None:
    collect_ignore_glob = ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))  # torch's and its friends' own
