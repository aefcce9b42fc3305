"""`respzoo demo`: outputs that ship with the package, token by token through the parser."""

from __future__ import annotations

import json
import time
from importlib.resources import files
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from respzoo.cli.console import Json, RegionPrinter, print_json
from respzoo.zoo import get

__all__ = ["EXAMPLES", "demo", "samples"]

EXAMPLES = "Examples:\n\nrespzoo demo\n\nrespzoo demo qwen3_xml --fast"
PAUSE = 0.035
"""Seconds between tokens on a terminal: the pace at which people read."""


def samples() -> dict[str, dict[str, Any]]:
    """The bundled outputs by name: tokens as the model's tokenizer cuts them, tools, prefix, provenance."""
    rows = json.loads(files("respzoo.cli").joinpath("demo_samples.json").read_text("utf-8"))
    return {row["name"]: row for row in rows}


def demo(
    sample: Annotated[str, typer.Argument(help="One sample only: qwen3 or qwen3_xml.")] = "",
    fast: Annotated[bool, typer.Option("--fast", help="Do not pause between tokens.")] = False,
    as_json: Json = False,
) -> None:
    """Stream bundled model outputs into reasoning, content and tool calls. No network, no model."""
    known = samples()
    if sample and sample not in known:
        raise typer.BadParameter(f"no sample {sample!r}; there are {', '.join(known)}")
    console = Console(highlight=False)
    if as_json:
        for name in [sample] if sample else known:
            print_json(console, told(known[name]), indent=None)
        return
    pause = PAUSE if console.is_terminal and not fast else 0.0
    for name in [sample] if sample else known:
        play(console, known[name], pause)
    console.print("next: [bold]respzoo list[/] for the families, [bold]respzoo which MODEL[/] for a model's template")


def told(sample: dict[str, Any]) -> dict[str, Any]:
    """A sample and its message, for programs."""
    template = get(sample["model"])
    message = template.parse("".join(sample["tokens"]), prefix=sample["prefix"], tools=sample["tools"])
    facts = {key: sample[key] for key in ("name", "model", "fixture")}
    return {**facts, "template": template.name, "source": template.source, "message": message}


def play(console: Console, sample: dict[str, Any], pause: float) -> None:
    template = get(sample["model"])
    tokens: list[str] = sample["tokens"]
    line = "-" if console.options.ascii_only else "─"
    console.print(Rule(Text(sample["model"], style="bold"), align="left", characters=line))
    console.print(Text.assemble("template  ", (template.name, "bold"), f" ({template.source})"), soft_wrap=True)
    console.print(Text(f"sample    {sample['fixture']} ({sample['license']})"), soft_wrap=True)
    console.print(Text(f"tokens    {len(tokens)}, as the model's own tokenizer cuts them"), soft_wrap=True)
    console.print()
    console.print(Text(" what the model writes ", style="bold reverse"))
    console.print(Text("".join(tokens), style="dim"), soft_wrap=True)
    console.print()

    parser = template.parser(prefix=sample["prefix"], tools=sample["tools"])
    printer = RegionPrinter(console)
    printer.print(parser.initial_events)
    for token in tokens:
        printer.print(parser.feed(token))
        time.sleep(pause)
    message, events = parser.finalize()
    printer.print(events)

    console.print()
    console.print(Text(" message ", style="bold reverse"))
    print_json(console, message)
    console.print()
