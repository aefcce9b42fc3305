"""`respzoo plugins`: which plugins there are, what they bring, and which are broken or turned off."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from respzoo.cli.console import WRONG, Json, print_json
from respzoo.plugins import Plugin, report

__all__ = ["EXAMPLES", "plugins"]

EXAMPLES = """Examples:

respzoo plugins

RESPZOO_DISABLE_PLUGINS=acme-respzoo respzoo plugins --json"""
STYLES = {"used": "green", "broken": "bold red", "disabled": "dim"}


def plugins(as_json: Json = False) -> None:
    """List the plugins: their version, their families, and what is wrong with them."""
    found = report()
    console = Console(highlight=False)
    if as_json:
        print_json(console, [one._asdict() for one in found])
    else:
        show(console, found)
    if any(one.errors for one in found):
        raise typer.Exit(WRONG)


def show(console: Console, found: list[Plugin]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("plugin", "version", "state", "hooks", "families"):
        table.add_column(column, overflow="fold")
    for one in found:
        hooks = ", ".join(hook.removeprefix("respzoo_") for hook in one.hooks)
        state = Text(one.state, style=STYLES.get(one.state, ""))
        table.add_row(Text(one.name, style="bold"), one.version, state, hooks, str(len(one.families)))
    console.print(table)
    for one in found:
        for error in one.errors:
            console.print(Text(f"{one.name}: {error}", style="red"), soft_wrap=True)
