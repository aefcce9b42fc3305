"""Real vLLM on this CPU, end to end: python tools/vllm_cpu/serve.py [VENV]   (default: .venv-vllm)

Sets up vLLM and the tiny checkpoint where they are missing, serves it with respzoo's flags, shows one streamed chat
coloured by region, and stops the server. With --stay the server runs until Ctrl-C.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import checkpoint
import scripts
import server
import setup

PROMPT = "weather twice"
STYLES = {"reasoning": "dim italic", "content": "bold", "tool_calls": "green"}


def show(client: Any) -> None:
    """One chat as it streams, each region in its colour."""
    from rich.console import Console

    console = Console(highlight=False)
    console.rule(f"user: {PROMPT}")
    region = ""
    stream = client.chat.completions.create(
        model="tiny",
        messages=[{"role": "user", "content": PROMPT}],
        tools=scripts.TOOLS,
        temperature=0,
        stream=True,
    )
    finish = None
    for chunk in stream:
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            for name, text in pieces(choice.delta):
                if name != region:
                    region = name
                    console.print(f"\n[reverse] {name} [/reverse] ", end="")
                console.print(text, style=STYLES[name], end="", markup=False)
    console.print()
    console.rule(f"finish_reason: {finish}")


def pieces(delta: Any) -> list[tuple[str, str]]:
    """The regions in a delta, and what it adds to them."""
    found: list[tuple[str, str]] = []
    if reasoning := getattr(delta, "reasoning", None):
        found.append(("reasoning", reasoning))
    if delta.content:
        found.append(("content", delta.content))
    for call in delta.tool_calls or ():
        name = f"\n  {call.function.name} " if call.function.name else ""
        found.append(("tool_calls", name + (call.function.arguments or "")))
    return found


def main(arguments: list[str]) -> None:
    stay = "--stay" in arguments
    named = [argument for argument in arguments if not argument.startswith("-")]
    venv = Path(named[0] if named else setup.ROOT / ".venv-vllm").resolve()
    python = setup.set_up(venv)
    if Path(sys.prefix).resolve() != venv:  # what follows needs what lies in there
        raise SystemExit(subprocess.run([python, __file__, *arguments], check=False).returncode)
    model = checkpoint.build()
    flags = " ".join(server.FLAGS)
    print(f"[serve] vllm serve {model.relative_to(setup.ROOT)} {flags}   (up in one to two minutes)", flush=True)
    begun = time.monotonic()
    with server.Server(python, model) as running:
        print(f"[serve] up after {time.monotonic() - begun:.0f} s at http://127.0.0.1:{running.port}/v1", flush=True)
        for line in running.log.read_text(errors="replace").splitlines():
            if "respzoo reads" in line:
                print(f"[serve] {line}", flush=True)
        show(running.client())
        if stay:
            print("[serve] Ctrl-C stops it", flush=True)
            try:
                while True:
                    time.sleep(60)
            except KeyboardInterrupt:
                pass


if __name__ == "__main__":
    main(sys.argv[1:])
