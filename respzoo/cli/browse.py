"""`respzoo which`, `list` and `show`: what the zoo holds, and what it would take for a model."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from respzoo.cli.choose import NameArgument, choose
from respzoo.cli.console import WRONG, Json, print_json
from respzoo.plugins import Family, Plugins, loaded
from respzoo.zoo import find

__all__ = ["LIST_EXAMPLES", "SHOW_EXAMPLES", "WHICH_EXAMPLES", "list_families", "show", "which"]

WHICH_EXAMPLES = "Examples:\n\nrespzoo which Qwen/Qwen3-8B\n\nrespzoo which ./checkpoint --why"
LIST_EXAMPLES = "Examples:\n\nrespzoo list\n\nrespzoo list --json"
SHOW_EXAMPLES = "Examples:\n\nrespzoo show qwen3\n\nrespzoo show Qwen/Qwen3-8B --json > qwen3.json"


def which(
    model: Annotated[str, typer.Argument(help="A model id, or a checkpoint's folder.")],
    why: Annotated[bool, typer.Option("--why", help="Show every step of the search.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Ask the Hub's cache only, not the Hub.")] = False,
    as_json: Json = False,
) -> None:
    """Say which template a model has, and why."""
    finding = find(model, local_files_only=offline)
    template = finding.template
    if template is None:
        raise finding.error()
    console = Console(highlight=False)
    if as_json:
        trail = [rung._asdict() for rung in finding.trail]
        print_json(console, {"model": model, "template": template.name, "source": template.source, "trail": trail})
        return
    console.print(Text.assemble((template.name, "bold green"), f"  {template.source}"), soft_wrap=True)
    if why:
        for rung in finding.trail:
            console.print(Text.assemble("  ", (rung.name, "bold"), f"  {rung.text}"), soft_wrap=True)


def list_families(as_json: Json = False) -> None:
    """List the families that the installed plugins bring."""
    plugins = loaded()
    families = [plugins.families[name] for name in sorted(plugins.families)]
    console = Console(highlight=False)
    if as_json:
        print_json(console, [summary(family, plugins) for family in families])
    else:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("family", "models", "from"):
            table.add_column(column, overflow="fold")
        for family in families:
            table.add_row(Text(family.name, style="bold green"), family.title, plugins.owners[family.name])
        console.print(table)
    report_broken(plugins)


def show(
    name: NameArgument,
    as_json: Annotated[bool, typer.Option("--json", help="The template alone, as plain JSON.")] = False,
) -> None:
    """Show a template, where it comes from and what it covers."""
    plugins = loaded()
    template = choose(name)
    console = Console(highlight=False)
    if not as_json:
        if name not in plugins.families:
            console.print(Text(template.source), soft_wrap=True)
        if (family := plugins.families.get(template.name)) is not None:
            describe(console, family, plugins)
    print_json(console, template.spec)


def describe(console: Console, family: Family, plugins: Plugins) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    facts = {
        "family": family.name,
        "models": family.title,
        "from": plugins.owners[family.name],
        "ids": "\n".join(family.models),
        "patterns": "\n".join(family.id_patterns),
        "sources": "\n".join(family.sources),
        "notes": " ".join(family.notes.split()),
    }
    for label, text in facts.items():
        if text:
            table.add_row(label, Text(text))
    console.print(table)
    console.print()


def summary(family: Family, plugins: Plugins) -> dict[str, object]:
    return {
        "name": family.name,
        "title": family.title,
        "models": list(family.models),
        "id_patterns": list(family.id_patterns),
        "plugin": plugins.owners[family.name],
    }


def report_broken(plugins: Plugins) -> None:
    """A broken plugin takes nobody down, but it does not pass in silence."""
    if plugins.broken:
        errors = Console(stderr=True, highlight=False)
        for broken in plugins.broken:
            errors.print(Text(str(broken), style="red"), soft_wrap=True)
        raise typer.Exit(WRONG)
