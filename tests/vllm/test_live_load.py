"""A short load on a real vLLM server (tools/vllm_cpu/load.py): no error and no wrong byte. `make load` is the long one."""

from __future__ import annotations

import asyncio
import random
from typing import Any

CLIENTS, REQUESTS = 16, 200


def test_load(server: Any) -> None:
    import checkpoint
    import load
    from asks import Asker
    from clients import Clients, Tally

    asker = Asker(checkpoint.FOLDER)
    assert list(asker.faults()) == []
    tally = Tally()

    async def run() -> None:
        async with Clients(server.port, asker, tally) as clients:
            draw = random.Random(1)
            await clients.all([asker.ask(draw) for _ in range(REQUESTS)], CLIENTS, draw)
            await clients.bad(draw)
            assert await load.at_rest(clients.client)
            assert await load.metric(clients.client, "http_requests_total", 'status="5xx"') == 0

    asyncio.run(run())
    assert tally.faults == []
    assert set(tally.statuses) == {200, 400}
    kinds = [f"{api}, {way}" for api in ("chat", "responses") for way in ("streamed", "whole")]
    assert all(tally.finished[kind] for kind in kinds)
    assert tally.hung_up
    assert load.log_faults(server.log) == []
