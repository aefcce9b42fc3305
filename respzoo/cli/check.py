"""`respzoo check`: everything that can be said of a family before it is used, and what to do about it."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from respzoo.audit import Remark, audit
from respzoo.cli.choose import choose, complete_family
from respzoo.cli.console import MALFORMED, Json, print_json
from respzoo.cli.read import read
from respzoo.hookspecs import Family
from respzoo.hub import read_folder
from respzoo.plugins import loaded, read_family
from respzoo.testing import update

__all__ = ["EXAMPLES", "check"]

EXAMPLES = """Examples:

respzoo check qwen3

respzoo check qwen3 --chat-template chat_template.jinja

respzoo check ./acme_one --update-samples acme-one/text-around-calls"""
STYLES = {"fault": "bold red", "warning": "yellow", "note": "dim"}


def check(
    name: Annotated[
        str,
        typer.Argument(
            help="A family's folder or name, a template's file, a checkpoint.", autocompletion=complete_family
        ),
    ],
    samples: Annotated[list[str] | None, typer.Argument(help="With --update-samples: only these, by their id.")] = None,
    update_samples: Annotated[
        bool,
        typer.Option(
            "--update-samples",
            help="Write what the parser gives into the samples' `expected`; what breaks a promise is refused.",
        ),
    ] = False,
    chat_template: Annotated[
        str,
        typer.Option(
            "--chat-template", help="A chat template's file, to see whether a tool's result hides the anchor."
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Check a family: it loads, its samples hold under every cutting, nothing is ambiguous, slow or lost."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # what it lacks is none of our business
    family = family_of(name)
    console = Console(highlight=False)
    if update_samples:
        changed = updated(family, samples or [])
        if as_json:
            print_json(console, {"family": family.name, "changed": changed})
        else:
            console.print(Text("\n".join(changed) or "nothing changed"), soft_wrap=True)
        return
    if samples:
        raise typer.BadParameter("ids of samples go with --update-samples")
    remarks = audit(family, loaded(), chat_template=read(chat_template) if chat_template else own_chat_template(name))
    faults = sum(remark.level == "fault" for remark in remarks)
    if as_json:
        print_json(console, {"family": family.name, "remarks": [asdict(remark) for remark in remarks]})
    else:
        show(console, family, remarks)
    if faults:
        raise typer.Exit(MALFORMED)


def own_chat_template(name: str) -> str | None:
    """Of a checkpoint's folder, its own."""
    return read_folder(Path(name)).chat_template if Path(name).is_dir() else None


def updated(family: Family, ids: list[str]) -> list[str]:
    try:
        return update(family, ids)
    except ValueError as error:
        Console(stderr=True, highlight=False).print(Text(f"error: {error}", style="red"), soft_wrap=True)
        raise typer.Exit(MALFORMED) from error


def family_of(name: str) -> Family:
    """A family by its folder or its name; of a template alone, a family of nothing else."""
    if Path(name, "family.toml").is_file():
        return read_family(Path(name))
    if (family := loaded().families.get(name)) is not None:
        return family
    return Family("unnamed", choose(name).spec)


def show(console: Console, family: Family, remarks: list[Remark]) -> None:
    told: set[str] = set()
    for remark in remarks:
        place = f"{remark.where}: " if remark.where else ""
        head = (f"{remark.level:8}", STYLES[remark.level])
        console.print(Text.assemble(head, (f"{remark.check}  ", "bold"), f"{place}{remark.text}"), soft_wrap=True)
        if remark.advice and remark.advice not in told:
            told.add(remark.advice)
            console.print(Text(f"        → {remark.advice}", style="cyan"), soft_wrap=True)
    count = {level: sum(remark.level == level for remark in remarks) for level in STYLES}
    summary = ", ".join(f"{number} {level}{'s' * (number != 1)}" for level, number in count.items())
    console.print(Text(f"{family.name}: {summary}", style="bold red" if count["fault"] else "bold green"))
