"""Load on a real vLLM server: python tools/vllm_cpu/load.py [--minutes 5] [--clients 64]   (make load)

Each client asks for one reply after another: every prompt of scripts.py, chat and Responses, streamed (most) and whole,
with and without tools, calls forced or forbidden, n=2; to its end, or cut by max_tokens or a stop string anywhere. Some
read slowly; some hang up, at any moment. Each reply is known beforehand (asks.py).

Ends with 1 on a reply that is wrong, an error, an object that stayed behind, or memory that grows.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import checkpoint
import probe
import scripts
import server
import setup
from asks import Ask, Asker, Reply

if TYPE_CHECKING:
    import httpx

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
BAD = 0.01  # the share of requests that are to be refused
WARM_UP = 60.0  # seconds that no growth is measured in
# MiB in 1,000 requests, at most. The worker has nothing of respzoo's: its cache and its kernels grow into their places.
GROWTH = {"API server": 1.0, "engine core": 1.0}
PATIENCE = 120.0  # seconds for one reply


# ------------------------------------------------------------------------------------------------------- what comes


class WrongStream(Exception):
    """Events that make no stream, whatever they say."""


@dataclass
class Received:
    """What has come of one reply."""

    replies: dict[int, Reply] = field(default_factory=dict[int, Reply])
    calls: dict[tuple[int, int], list[str]] = field(default_factory=dict[tuple[int, int], list[str]])
    call_ids: set[str] = field(default_factory=set[str])
    ids: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    most: int = 0  # tokens in an event
    events: int = 0
    tokens: int | None = None
    error: str = ""
    done: bool = False
    final: Reply | None = None

    def all(self) -> list[Reply]:
        found = dict(self.replies)
        for (index, _), (name, arguments) in sorted(self.calls.items()):
            found[index] = replace(found[index], calls=(*found[index].calls, (name, arguments)))
        return [found[index] for index in sorted(found)]

    def add(self, index: int, reasoning: str = "", content: str = "", finish: str = "") -> None:
        old = self.replies.get(index) or Reply()
        if old.finish:
            raise WrongStream(f"more, after {old.finish}")
        self.replies[index] = Reply(old.reasoning + reasoning, old.content + content, (), finish)

    def begin_call(self, key: tuple[int, int], call_id: str, name: str) -> None:
        if not call_id or call_id in self.call_ids:
            raise WrongStream(f"the call's id {call_id!r} is no new one")
        if key[1] and (key[0], key[1] - 1) not in self.calls:
            raise WrongStream(f"call {key[1]} comes before the one before it")
        self.call_ids.add(call_id)
        self.calls[key] = [name, ""]

    # chat

    def chat_event(self, event: dict[str, Any]) -> None:
        for choice in event["choices"]:
            index, delta = choice["index"], choice["delta"]
            reasoning, content = delta.get("reasoning") or "", delta.get("content") or ""
            self.add(index, reasoning, content, choice.get("finish_reason") or "")
            for call in delta.get("tool_calls") or ():
                key, function = (index, call["index"]), call["function"]
                if key not in self.calls:
                    self.begin_call(key, call.get("id"), function["name"])
                elif function.get("name"):
                    raise WrongStream(f"a second name for a call: {function['name']}")
                self.calls[key][1] += function.get("arguments") or ""
            if new := choice.get("token_ids"):
                self.ids.setdefault(index, []).extend(new)
                self.most = max(self.most, len(new))
        if usage := event.get("usage"):
            self.tokens = usage["completion_tokens"]

    def chat_whole(self, body: dict[str, Any]) -> None:
        for choice in body["choices"]:
            message, index = choice["message"], choice["index"]
            self.add(index, message.get("reasoning") or "", message.get("content") or "", choice["finish_reason"])
            for at, call in enumerate(message.get("tool_calls") or ()):
                self.begin_call((index, at), call["id"], call["function"]["name"])
                self.calls[index, at][1] = call["function"]["arguments"]
        self.tokens = body["usage"]["completion_tokens"]

    # Responses

    def responses_event(self, event: dict[str, Any]) -> None:
        kind: str = event["type"]
        if event["sequence_number"] != self.events - 1:
            raise WrongStream(f"event {event['sequence_number']} is the one of number {self.events - 1}")
        if kind == "response.output_item.added" and event["item"]["type"] == "function_call":
            self.add(0)
            self.begin_call((0, len(self.calls)), event["item"]["call_id"], event["item"]["name"])
        elif kind == "response.function_call_arguments.delta":
            self.calls[0, len(self.calls) - 1][1] += event["delta"]
        elif kind == "response.reasoning_text.delta":
            self.add(0, reasoning=event["delta"])
        elif kind == "response.output_text.delta":
            self.add(0, content=event["delta"])
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            last = Received()
            last.responses_whole(event["response"])
            (self.final,) = last.all()
            self.tokens, self.done = last.tokens, True
            self.add(0, finish=self.final.finish)

    def responses_whole(self, body: dict[str, Any]) -> None:
        self.add(0)
        for item in body["output"]:
            if item["type"] == "reasoning":
                self.add(0, reasoning="".join(part["text"] for part in item["content"] or ()))
            elif item["type"] == "message":
                self.add(0, content="".join(part["text"] for part in item["content"]))
            else:
                self.begin_call((0, len(self.calls)), item["call_id"], item["name"])
                self.calls[0, len(self.calls) - 1][1] = item["arguments"]
        self.tokens = body["usage"]["output_tokens"]
        self.add(0, finish={"completed": "stop", "incomplete": "length"}.get(body["status"], str(body["status"])))

    def take(self, api: str, data: bytes) -> None:
        """One event of a stream."""
        if self.done and api == "chat":
            raise WrongStream("more, after [DONE]")
        if data == b"[DONE]":
            self.done = True
            return
        event = json.loads(data)
        self.events += 1
        if event.get("error"):
            self.error = json.dumps(event["error"])
        elif api == "chat":
            self.chat_event(event)
        else:
            self.responses_event(event)


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
            self.tally.slow += ask.manner == "is slow"
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


# ------------------------------------------------------------------------------------------------------- the server


class Watch:
    """The memory and the time of a server's processes."""

    def __init__(self, pid: int, tally: Tally) -> None:
        import psutil

        self.processes: dict[str, Any] = {"API server": psutil.Process(pid)}
        for child in psutil.Process(pid).children(recursive=True):
            for title, name in (("EngineCore", "engine core"), ("Worker", "worker")):
                if title in " ".join(child.cmdline()):
                    self.processes[name] = child
        self.processes["load"] = psutil.Process()
        self.tally = tally
        self.begun = time.monotonic()
        self.samples: list[tuple[float, int, dict[str, float]]] = []  # seconds, requests, MiB
        self.at_start = {name: sum(process.cpu_times()[:2]) for name, process in self.processes.items()}

    async def run(self) -> None:
        while True:
            self.sample()
            await asyncio.sleep(1)

    def sample(self) -> None:
        sizes = {name: process.memory_info().rss / 2**20 for name, process in self.processes.items()}
        self.samples.append((time.monotonic() - self.begun, self.tally.requests, sizes))

    def shares(self) -> dict[str, float]:
        """How much of a core each process has used."""
        seconds = time.monotonic() - self.begun
        return {
            name: (sum(process.cpu_times()[:2]) - self.at_start[name]) / seconds
            for name, process in self.processes.items()
        }

    def slope(self, name: str) -> float:
        """MiB in 1,000 requests, by least squares, after the warm-up; 0 if there were fewer."""
        points = [(requests / 1000, sizes[name]) for at, requests, sizes in self.samples if at >= WARM_UP]
        if not points or points[-1][0] - points[0][0] < 1:
            return 0.0  # too few to tell a slope from a step
        middle, level = (sum(values) / len(points) for values in zip(*points, strict=True))
        square = sum((x - middle) ** 2 for x, _ in points)
        return sum((x - middle) * (y - level) for x, y in points) / square if square else 0.0


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


async def metric(client: httpx.AsyncClient, name: str, having: str = "") -> float:
    """The sum of one of the server's own counters."""
    text = (await client.get("/metrics")).text
    lines = [line for line in text.splitlines() if line.startswith((name + "{", name + " ")) and having in line]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


async def at_rest(client: httpx.AsyncClient) -> bool:
    """Whether the server soon has nothing to do: what clients hung up on has been given up."""
    for _ in range(60):
        busy = [await metric(client, f"vllm:num_requests_{what}") for what in ("running", "waiting")]
        if not any(busy):
            return True
        await asyncio.sleep(0.5)
    return False


async def measure(port: int, pid: int, asker: Asker, clients: int, seconds: float, seed: int) -> list[str]:
    """Print what can be said of the load; what is wrong with it."""
    tally = Tally()
    warm = Tally()
    async with Clients(port, asker, warm) as first:
        await first.each_case(clients)
        print(
            f"[load] each of {len(asker.cases)} cases in each way: {warm.requests} requests, {len(warm.faults)} faults"
        )
    async with Clients(port, asker, tally) as asking:
        client = asking.client
        rested = await at_rest(client)
        objects: dict[str, int] = (await client.get(probe.PATH)).json()["objects"]
        made = await metric(client, "vllm:generation_tokens_total")
        watch = Watch(pid, tally)
        sampling = asyncio.create_task(watch.run())
        await asking.busy(clients, seconds, seed)
        took = time.monotonic() - watch.begun
        shares = watch.shares()
        pauses: list[float] = (await client.get(probe.PATH)).json()["pauses"]
        sampling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sampling
        rested = await at_rest(client) and rested
        made = await metric(client, "vllm:generation_tokens_total") - made
        server_errors = await metric(client, "http_requests_total", 'status="5xx"')
        left: dict[str, int] = (await client.get(probe.PATH)).json()["objects"]
        watch.sample()
    report(tally, watch, took, made, shares)
    held = [quantile(pauses, share) for share in (0.5, 0.99, 1)]
    print(
        f"[load] the API server's event loop came {held[0]:.3f} s late (p50), {held[1]:.3f} s (p99), {held[2]:.3f} s at most"
    )
    faults = warm.faults + tally.faults
    if not rested:
        faults.append("the server is not at rest when nobody asks")
    if server_errors:
        faults.append(f"the server counts {server_errors:.0f} replies of status 5xx")
    grown = {name: (objects.get(name, 0), count) for name, count in left.items() if count > objects.get(name, 0)}
    print(f"[load] objects of respzoo's at rest: {sum(objects.values())} before, {sum(left.values())} after")
    if grown:
        faults.append(f"objects that stayed behind (before, after): {grown}")
    for name, most in GROWTH.items():
        if (slope := watch.slope(name)) > most:
            faults.append(f"the {name} grows by {slope:.2f} MiB in 1,000 requests; {most} are allowed")
    return faults


def report(tally: Tally, watch: Watch, took: float, made: float, shares: Mapping[str, float]) -> None:
    def say(text: str) -> None:
        print(f"[load] {text}", flush=True)

    say(
        f"{tally.requests} requests in {took:.0f} s: {dict(tally.finished)}, {tally.hung_up} hung up on ({tally.unanswered} before any event)"
    )
    say(
        f"of those that finished {tally.slow} were read slowly; tokens known for {tally.with_ids}; up to {tally.most} tokens in an event"
    )
    say(f"status codes {dict(tally.statuses)}, {len(tally.faults)} faults")
    say(
        f"{made / took:.0f} tokens/s in all, {tally.tokens / took:.0f} of finished replies; {tally.events / took:.0f} events/s"
    )
    firsts = [quantile(tally.first_bytes, share) for share in (0.5, 0.99)]
    say(f"first byte after {firsts[0]:.2f} s (p50), {firsts[1]:.2f} s (p99)")
    for name, share in shares.items():
        sizes = [sample[2][name] for sample in watch.samples]
        warm = next((sample[2][name] for sample in watch.samples if sample[0] >= WARM_UP), sizes[0])
        say(
            f"{name}: {share:.0%} of a core; {sizes[0]:.0f} MiB at the start, {warm:.0f} after {WARM_UP:.0f} s, {sizes[-1]:.0f} at the end, "
            f"{max(sizes):.0f} at most; {watch.slope(name):+.3f} MiB in 1,000 requests"
        )


def log_faults(log: Path) -> list[str]:
    text = log.read_text(errors="replace")
    return [
        f"the server's log has {text.count(word)} times {word!r}: {log}"
        for word in ("Traceback", '" 500 ')
        if word in text
    ]


def main(arguments: list[str]) -> int:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--minutes", type=float, default=5)
    asked.add_argument("--clients", type=int, default=64)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--show", type=int, default=10, help="how many faults to print")
    given = asked.parse_args(arguments)
    venv = setup.ROOT / ".venv-vllm"
    python = setup.set_up(venv)
    if Path(sys.prefix).resolve() != venv.resolve():  # what follows needs what lies in there
        return subprocess.run([python, __file__, *arguments], check=False).returncode
    model = checkpoint.build()
    asker = Asker(model)
    faults = list(asker.faults())
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    flags = (
        *server.FLAGS,
        *("--max-num-seqs", str(given.clients)),
        *("--middleware", "probe.Probe"),
    )
    log = model.parent / "load-server.log"
    print(
        f"[load] vllm serve {model.relative_to(setup.ROOT)} {' '.join(flags)}   (up in one to two minutes)", flush=True
    )
    with server.Server(python, model, flags, log) as running:
        faults += asyncio.run(measure(running.port, running.pid, asker, given.clients, given.minutes * 60, given.seed))
        faults += log_faults(log)  # before the server ends: what vLLM logs while it does is no fault
    for fault in faults[: given.show]:
        print(f"[load] FAULT {fault}")
    for kind, count in Counter(fault.partition(", ")[0] for fault in faults).most_common(20):
        print(f"[load] {count} times {kind.splitlines()[0]:.200}")
    print(f"[load] {len(faults)} faults" if faults else "[load] no fault", flush=True)
    return bool(faults)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
