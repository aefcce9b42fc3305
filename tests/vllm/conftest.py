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

# The servers that live tests share, in the order in which they run: their fixtures, flags and environments.
SERVERS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "live": ((), {}),
    "tagged": ((), {"RESPZOO_TEMPLATE": "qwen3_xml", "RESPZOO_LOG_RAW": "1"}),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))  # vLLM's and its dependencies' own
    items.sort(key=turn)


def turn(item: pytest.Item) -> int:
    """Tests that share a server follow each other: it starts once."""
    asked = set(getattr(item, "fixturenames", ()))
    return max((at for at, name in enumerate(SERVERS, 1) if name in asked), default=0)


class Fleet:
    """One server at a time."""

    def __init__(self) -> None:
        self._name = ""
        self._live: Any = None

    def get(self, name: str) -> Any:
        import checkpoint
        from live import Live
        from server import FLAGS, Server

        if name != self._name:
            self.stop()
            model = checkpoint.build()
            flags, environment = SERVERS[name]
            log = checkpoint.FOLDER.parent / f"server-{name}.log"
            server = Server(sys.executable, model, (*FLAGS, *flags), log, environment)
            self._live = Live(server.__enter__(), model)
            self._name = name
        return self._live

    def stop(self) -> None:
        if self._live is None:
            return
        live, self._live, self._name = self._live, None, ""
        live.close()
        live.server.stop()
        assert "Traceback" not in live.log()


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
