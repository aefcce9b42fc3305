"""The clients of load.py: each asks, follows what comes, and compares it with what is known beforehand (asks.py)."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import scripts
from asks import Ask, Asker
from received import Received, WrongStream

if TYPE_CHECKING:
    import httpx

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
BAD = 0.01  # the share of requests that are to be refused
PATIENCE = 120.0  # seconds for one reply


@dataclass
class Tally:
    """What came of all requests."""

    finished: Counter[str] = field(default_factory=Counter[str])
    statuses: Counter[int] = field(default_factory=Counter[int])
    hung_up: int = 0
    unanswered: int = 0  # of these, before the first byte
    slow: int = 0
    tokens: int = 0  # of finished replies
    events: int = 0
    with_ids: int = 0
    most: int = 0
    first_bytes: list[float] = field(default_factory=list[float])
    wholes: list[float] = field(default_factory=list[float])  # seconds to a finished reply, slow readers' apart
    faults: list[str] = field(default_factory=list[str])

    @property
    def requests(self) -> int:
        return sum(self.finished.values()) + self.hung_up

    def fault(self, what: str, ask: Ask, more: str = "") -> None:
        self.faults.append(
            f"{what}: {ask.label}, {ask.manner}\n  asked {json.dumps(ask.body, ensure_ascii=False)}\n  {more}"
        )


class Clients:
    """Ask a server, as many at a time as there are clients."""

    def __init__(self, port: int, asker: Asker, tally: Tally) -> None:
        import httpx

        self.asker, self.tally = asker, tally
        # A connection each: one that is taken up again just when it is closed for idleness is nobody's fault.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)

        def client(**options: Any) -> httpx.AsyncClient:
            transport = httpx.AsyncHTTPTransport(limits=limits, **options)
            url = f"http://127.0.0.1:{port}"
            return httpx.AsyncClient(transport=transport, base_url=url, trust_env=False, timeout=PATIENCE)

        self.client = client()
        # What a slow client has not read stays with the server.
        self.slow = client(socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)])

    async def __aenter__(self) -> Clients:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()
        await self.slow.aclose()

    async def busy(self, clients: int, seconds: float, seed: int) -> None:
        until = time.monotonic() + seconds

        async def one(draw: random.Random) -> None:
            while time.monotonic() < until:
                if draw.random() < BAD:
                    await self.bad(draw)
                else:
                    await self.ask(self.asker.ask(draw), draw)

        await asyncio.gather(*(one(random.Random(f"{seed}.{number}")) for number in range(clients)))

    async def each_case(self, at_a_time: int, seed: int = 0) -> None:
        """Every case once in each way."""
        draw = random.Random(seed)
        asks = [
            self.asker.ask(draw, at, api=api, streamed=streamed, manner="reads", end=end)
            for at, case in enumerate(self.asker.cases)
            for api in (("chat",) if case.chat_only else ("chat", "responses"))
            for streamed in (True, False)
            for end in (("end",) if case.constrained else ("end", "tokens", "stop"))
        ]
        await self.all(asks, at_a_time, draw)

    async def all(self, asks: Sequence[Ask], at_a_time: int, draw: random.Random) -> None:
        free = asyncio.Semaphore(at_a_time)

        async def one(ask: Ask) -> None:
            async with free:
                await self.ask(ask, draw)

        await asyncio.gather(*map(one, asks))

    async def bad(self, draw: random.Random) -> None:
        """A request that is the client's fault."""
        asked = [{"role": "user", "content": "call ping"}]
        body = draw.choice(
            [
                {"messages": asked, "tools": scripts.TOOLS, "tool_choice": {"type": "function", "function": {"name": "no"}}},
                {"messages": asked, "tools": [{"type": "function"}]},
                {"messages": asked, "tool_choice": "required"},
                {"messages": "call ping"},
            ]
        )  # fmt: skip
        ask = Ask("bad request", "chat", {"model": "tiny", **body}, [])
        try:
            response = await self.client.post(PATHS["chat"], json=ask.body)
        except Exception as error:  # noqa: BLE001  (as below)
            self.tally.fault("broken off", ask, repr(error))
            return
        self.tally.statuses[response.status_code] += 1
        self.tally.finished["bad requests"] += 1
        if not 400 <= response.status_code < 500:
            self.tally.fault("a bad request was answered", ask, response.text)

    async def ask(self, ask: Ask, draw: random.Random) -> None:
        received = Received()
        patience = PATIENCE
        most_events = None
        if ask.manner == "hangs up":
            if ask.body["stream"] and draw.random() < 0.7:
                most_events = draw.randint(1, 60)
            else:  # whatever has come by then
                patience = draw.uniform(0, 3)
        begun = time.monotonic()
        try:
            async with asyncio.timeout(patience):
                ended = await (self._stream if ask.body["stream"] else self._whole)(ask, received, most_events, draw)
        except TimeoutError:
            if ask.manner != "hangs up":
                self.tally.fault(f"nothing more in {PATIENCE:.0f} s", ask)
            ended = False
        except WrongStream as error:
            self.tally.fault("wrong stream", ask, str(error))
            return
        except Exception as error:  # noqa: BLE001  (a server may break a connection in many ways)
            self.tally.fault("broken off", ask, repr(error))
            return
        self.tally.events += received.events
        if ended is None:  # refused
            return
        if ended:
            self.tally.finished[f"{ask.api}, {'streamed' if ask.body['stream'] else 'whole'}"] += 1
            if ask.manner == "is slow":
                self.tally.slow += 1
            else:
                self.tally.wholes.append(time.monotonic() - begun)
            self.tally.tokens += received.tokens or 0
            self.tally.with_ids += bool(received.ids)
            self.tally.most = max(self.tally.most, received.most)
        else:
            self.tally.hung_up += 1
            self.tally.unanswered += not received.events
        self.compare(ask, received, ended)

    async def _stream(self, ask: Ask, received: Received, most: int | None, draw: random.Random) -> bool | None:
        """Whether it came to its end."""
        client = self.slow if ask.manner == "is slow" else self.client
        begun = time.monotonic()
        async with client.stream("POST", PATHS[ask.api], json=ask.body) as response:
            if not await self._accepted(ask, response):
                return None
            rest = b""
            async for piece in response.aiter_raw():
                if not received.events:
                    self.tally.first_bytes.append(time.monotonic() - begun)
                if ask.manner == "is slow":
                    await asyncio.sleep(draw.uniform(0, 0.1))
                *events, rest = (rest + piece).split(b"\n\n")
                for event in events:
                    received.take(ask.api, event[event.index(b"data: ") + 6 :])
                    if received.events == most:
                        return False
        if rest or not received.done:
            raise WrongStream(f"it ends before its end: {rest!r}")
        return True

    async def _whole(self, ask: Ask, received: Received, most: int | None, draw: random.Random) -> bool | None:
        response = await self.client.post(PATHS[ask.api], json=ask.body)
        if not await self._accepted(ask, response):
            return None
        body = response.json()
        if ask.api == "chat":
            received.chat_whole(body)
        else:
            received.responses_whole(body)
        return True

    async def _accepted(self, ask: Ask, response: httpx.Response) -> bool:
        self.tally.statuses[response.status_code] += 1
        if response.status_code == 200:
            return True
        await response.aread()
        self.tally.fault(f"status {response.status_code}", ask, response.text)
        return False

    def compare(self, ask: Ask, received: Received, ended: bool) -> None:
        found, expected, fault = received.all(), ask.expected, self.tally.fault
        if ask.api == "responses":  # has only a status
            expected = [replace(reply, finish="length" if reply.finish == "length" else "stop") for reply in expected]
        if received.error:
            fault("an error in the stream", ask, received.error)
        elif model := self.model_errs(ask, received, ended):
            fault("the model errs", ask, model)
        elif not ended:
            if not all(reply.begins(expected[0]) for reply in found):
                fault("wrong", ask, f"hung up at {found}\n  expected   {expected}")
        elif found != expected:
            unended = [[replace(reply, finish="") for reply in replies] for replies in (found, expected)]
            what = "wrong finish_reason" if unended[0] == unended[1] else "wrong"
            told = "its tokens are right" if received.ids else "nothing is known of its tokens"
            fault(what, ask, f"{told}\n  got      {found}\n  expected {expected}")
        elif received.final not in (None, *found):
            fault("wrong", ask, f"the last event says {received.final}\n  those before {found}")

    def model_errs(self, ask: Ask, received: Received, ended: bool) -> str:
        """What the model wrote that it was not to write, as far as that is known: no fault of a parser's."""
        if ask.ids is None:
            return ""
        for ids in received.ids.values():
            if tuple(ids) != ask.ids[: len(ids)] or (ended and len(ids) != len(ask.ids)):
                return f"it wrote {self.asker.decode(ids)!r}, not {self.asker.decode(ask.ids)!r}"
        count = len(ask.ids) * len(ask.expected)
        return f"it wrote {received.tokens} tokens, not {count}" if ended and received.tokens != count else ""
