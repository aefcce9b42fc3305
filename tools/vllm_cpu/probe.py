"""What load.py asks of the API server from within: vllm serve … --middleware probe.Probe, with this folder on its path."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

PATH = "/respzoo-probe"
EVERY = 0.01  # seconds


def live() -> dict[str, int]:
    """How many objects there are of each class of respzoo's and of its adapter's."""
    gc.collect()
    kinds = Counter(map(type, gc.get_objects()))
    return {kind.__name__: count for kind, count in kinds.items() if kind.__module__.startswith("respzoo")}


class Probe:
    """Answers PATH with the objects that are live and the pauses of the event loop since the last time; all else passes."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self.app = app
        self.pauses: list[float] = []
        self._watching: asyncio.Task[None] | None = None

    async def _watch(self) -> None:
        while True:
            asleep = time.monotonic()
            await asyncio.sleep(EVERY)
            self.pauses.append(time.monotonic() - asleep - EVERY)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await self.app(scope, receive, send)
            return
        pauses, self.pauses = self.pauses, []
        body = json.dumps({"objects": live(), "pauses": pauses}).encode()
        self._watching = self._watching or asyncio.create_task(self._watch())
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
