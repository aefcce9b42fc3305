"""Tests of the vLLM adapter. They need the environment that tools/vllm_cpu/setup.py makes: make test-vllm."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
for folder in ("tools", "tools/vllm_cpu", "tools/bench", "tests/vllm"):
    sys.path.insert(0, str(ROOT / folder))

if importlib.util.find_spec("vllm") is None:
    collect_ignore_glob = ["test_*.py", "*_cases.py"]

from fleet import SERVERS, Fleet

# What asks servers is in files of this name.
LIVE = "test_live"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))  # vLLM's and its dependencies' own
            if item.path.name.startswith(LIVE):
                item.add_marker(pytest.mark.live)
    items.sort(key=turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadgroup`: one process asks the servers, while the others do the rest.

    Groups by marks are of no use here: pytest-xdist 3.8 writes them into a test's id, where pytest 9.2 reads no more.
    """
    from xdist.scheduler import LoadGroupScheduling

    if config.getvalue("dist") != "loadgroup":
        return None

    class Scheduling(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return LIVE if nodeid.startswith(f"tests/vllm/{LIVE}") else nodeid

    return Scheduling(config, log)


def turn(item: pytest.Item) -> int:
    """Tests that share a server follow each other: it starts once."""
    asked = set(getattr(item, "fixturenames", ()))
    return max((at for at, name in enumerate(SERVERS, 1) if name in asked), default=0)


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet]:
    made = Fleet()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def live(fleet: Fleet) -> Any:
    """A server as everybody starts it."""
    return fleet.get("live")


@pytest.fixture(scope="module")
def tagged(fleet: Fleet) -> Any:
    """A server whose template was pinned: its model's calls are tags, though its chat template speaks of JSON."""
    return fleet.get("tagged")


@pytest.fixture(scope="module")
def guessing(fleet: Fleet) -> Any:
    """A server that decodes speculatively."""
    return fleet.get("guessing")


@pytest.fixture
def server(live: Any) -> Any:
    return live.server


@pytest.fixture
def chat(live: Any) -> Any:
    return live.chat


@pytest.fixture
def responses(live: Any) -> Any:
    return live.responses


@pytest.fixture
def messages(live: Any) -> Any:
    return live.messages
