"""Tests of the vLLM adapter. They need the environment that tools/vllm_cpu/setup.py makes: make test-vllm."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
for folder in ("tools", "tools/vllm_cpu", "tools/bench", "tests/vllm"):
    sys.path.insert(0, str(ROOT / folder))

if importlib.util.find_spec("vllm") is None:
    collect_ignore_glob = ["test_*.py", "*_cases.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))  # vLLM's and its dependencies' own


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """One real server for all live tests of a file; gone before the next file's begin."""
    import checkpoint
    from server import Server

    with Server(sys.executable, checkpoint.build()) as running:
        yield running
