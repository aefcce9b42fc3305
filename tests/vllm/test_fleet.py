"""The servers of live tests, without one: what a server's log must not hold when it is stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleet import Fleet
from live import Live

TRACEBACK = "Traceback (most recent call last):\n"


class Pretended:
    """A server that serves until it is stopped."""

    def __init__(self, log: Path, last: str) -> None:
        self.log, self.last, self.stopped = log, last, False

    def stop(self) -> None:
        with self.log.open("a") as log:
            log.write(self.last)
        self.stopped = True


@pytest.mark.parametrize(
    ("served", "ending", "holds"),
    [("INFO\n", "INFO\n", True), ("INFO\n", TRACEBACK, True), (TRACEBACK, "INFO\n", False)],
    ids=["none", "while it ended", "while it served"],
)
def test_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: str, ending: str, holds: bool) -> None:
    servers: dict[str, Pretended] = {}

    def start(_: Fleet, name: str) -> Live:
        servers[name] = Pretended(tmp_path / f"{name}.log", ending)
        servers[name].log.write_text(served)
        return Live(servers[name], tmp_path)

    monkeypatch.setattr(Fleet, "start", start)
    fleet = Fleet()
    assert fleet.get("one") is fleet.get("one")
    if holds:
        fleet.get("other")
    else:
        with pytest.raises(AssertionError, match="Traceback"):
            fleet.get("other")
    assert servers["one"].stopped
    assert ("other" in servers) is holds
    if holds:
        fleet.stop()
        assert servers["other"].stopped
