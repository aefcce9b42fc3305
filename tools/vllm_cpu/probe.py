"""What load.py asks of the API server from within: vllm serve … --middleware probe.Probe, with this folder on its path."""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

PATH = "/respzoo-objects"


def live() -> dict[str, int]:
    """How many objects there are of each class of respzoo's and of its adapter's."""
    gc.collect()
    kinds = Counter(map(type, gc.get_objects()))
    return {kind.__name__: count for kind, count in kinds.items() if kind.__module__.startswith("respzoo")}


class Probe:
    """Answers PATH with `live()`, and lets everything else through."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await self.app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(live()).encode()})
