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
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import checkpoint
import probe
import server
import setup
from asks import Asker
from clients import Clients, Tally

if TYPE_CHECKING:
    import httpx

WARM_UP = 60.0  # seconds that no growth is measured in
# MiB in 1,000 requests, at most. The worker has nothing of respzoo's: its cache and its kernels grow into their places.
GROWTH = {"API server": 1.0, "engine core": 1.0}


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
    for what, waits in (("first byte", tally.first_bytes), ("finished reply", tally.wholes)):
        say(f"{what} after {quantile(waits, 0.5):.2f} s (p50), {quantile(waits, 0.99):.2f} s (p99)")
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
