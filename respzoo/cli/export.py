"""`respzoo export` and `respzoo install`: a template for another reader, on standard output or in a checkpoint."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from respzoo.cli.choose import NameArgument, choose
from respzoo.cli.console import MALFORMED, Json, print_json
from respzoo.errors import UnknownModelError
from respzoo.export import Export, export
from respzoo.hub import cached_folder
from respzoo.install import CONFIG, prepare
from respzoo.plugins import load_template
from respzoo.zoo import get

__all__ = ["EXPORT_EXAMPLES", "INSTALL_EXAMPLES", "export_template", "install"]

EXPORT_EXAMPLES = """Examples:

respzoo export qwen3 --dialect vllm-hf > response_template.json

respzoo export Qwen/Qwen3-8B --json"""
INSTALL_EXAMPLES = """Examples:

respzoo install ./checkpoint --dry-run

respzoo install ./checkpoint --dialect sglang

respzoo install Qwen/Qwen3-8B --template qwen3"""


class Reader(StrEnum):
    """Who is to read the template."""

    transformers = "transformers"
    vllm_hf = "vllm-hf"
    sglang = "sglang"


ReaderOption = Annotated[
    Reader,
    typer.Option("--dialect", "-d", help="Who is to read it: transformers (and TRL), vLLM's `hf` parser, or SGLang."),
]


def export_template(
    name: NameArgument,
    dialect: ReaderOption = Reader.transformers,
    as_json: Json = False,
) -> None:
    """Print a template in the words of another reader, or say what cannot be said to it."""
    template = choose(name)
    told = export(template.spec, dialect.value, name=template.name)
    report_losses(told, dialect)
    console = Console(highlight=False)
    if as_json:
        losses = [{"path": loss.path, "loss": loss.message} for loss in told.losses]
        print_json(console, {"template": told.spec, "dialect": dialect.value, "losses": losses})
    else:
        print_json(console, told.spec)


def install(
    checkpoint: Annotated[str, typer.Argument(help="A checkpoint's folder, or the id of one in the Hub's cache.")],
    template: Annotated[
        str,
        typer.Option("--template", "-t", help="A family's name or a template file; by default what `which` finds."),
    ] = "",
    dialect: ReaderOption = Reader.transformers,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the change and write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace another template that is there.")] = False,
    as_json: Json = False,
) -> None:
    """Write a template into a checkpoint's tokenizer_config.json, for readers that look for it there."""
    folder = folder_of(checkpoint)
    chosen = load_template(template, source="--template") if template else get(checkpoint, prefer="curated")
    told = export(chosen.spec, dialect.value, name=chosen.name)
    change = prepare(folder, told.spec)
    report_losses(told, dialect)
    refused = change.replaces and not force
    written = not (change.nothing or dry_run or refused)
    if written:
        change.write()
    console = Console(highlight=False)
    if as_json:
        done = "nothing" if change.nothing else "refused" if refused else "dry run" if dry_run else "written"
        facts = {"file": str(change.file), "template": chosen.name, "source": chosen.source, "dialect": dialect.value}
        print_json(console, {**facts, "outcome": done, "diff": "" if change.nothing else change.diff()})
    elif change.nothing:
        console.print(Text(f"{change.file} has it already"), soft_wrap=True)
    else:
        console.print(Text.assemble((chosen.name, "bold green"), f"  {chosen.source}"), soft_wrap=True)
        print_diff(console, change.diff())
        if written:
            console.print(Text(f"wrote {change.file}"), soft_wrap=True)
    if refused:
        text = f"error: {change.file} has another response_template; --force replaces it"
        Console(stderr=True, highlight=False).print(Text(text, style="red"), soft_wrap=True)
        raise typer.Exit(MALFORMED)


def folder_of(checkpoint: str) -> Path:
    if Path(checkpoint).is_dir():
        return Path(checkpoint)
    folder = cached_folder(checkpoint, CONFIG)
    if folder is None:
        raise UnknownModelError(
            f"{checkpoint!r} is no folder, and the Hub's cache has no {CONFIG} of it; download it first "
            f"(hf download {checkpoint}), or give a folder"
        )
    return folder


def report_losses(told: Export, dialect: Reader) -> None:
    """What the other reader will not read, on standard error: the template itself may go into a file."""
    errors = Console(stderr=True, highlight=False)
    for loss in told.losses:
        errors.print(Text(f"not for {dialect.value}: {loss}", style="yellow"), soft_wrap=True)


def print_diff(console: Console, diff: str) -> None:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in diff.splitlines():
        console.print(Text(line, style=styles.get(line[:1], "")), soft_wrap=True)
