"""The application: which commands there are, and what an error looks like.

Commands raise what the library raises. One place, `Commands.invoke`, turns it into a line on stderr and an exit code,
so that no command needs a `try` of its own.
"""

from __future__ import annotations

import importlib.metadata
import io
import logging
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from respzoo.cli import browse, check, demo, explain, export, new, parse, plugin_list
from respzoo.cli.console import MALFORMED, UNKNOWN, WRONG
from respzoo.errors import ParseError, RespzooError, UnknownModelError

__all__ = ["app", "main"]


class Commands(TyperGroup):
    """The commands, with the library's errors told as people read them."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RespzooError as error:
            Console(stderr=True, highlight=False).print(f"error: {error}", style="red", markup=False, soft_wrap=True)
            raise typer.Exit(exit_code(error)) from error


def exit_code(error: RespzooError) -> int:
    if isinstance(error, ParseError):
        return MALFORMED
    return UNKNOWN if isinstance(error, UnknownModelError) else WRONG


app = typer.Typer(
    cls=Commands,
    name="respzoo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a bug's traceback is for an issue, plain
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    epilog="Exit codes: 0 done; 1 the text breaks its template, a check found faults, or another template is in the "
    "way; 2 wrong usage, or a template or plugin that is broken or cannot be exported; 3 there is no template for the "
    "model, or none of that name.",
)
app.command("which", epilog=browse.WHICH_EXAMPLES)(browse.which)
app.command("list", epilog=browse.LIST_EXAMPLES)(browse.list_families)
app.command("show", epilog=browse.SHOW_EXAMPLES)(browse.show)
app.command("parse", epilog=parse.EXAMPLES)(parse.parse)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain)
app.command("check", epilog=check.EXAMPLES)(check.check)
app.command("new", epilog=new.EXAMPLES)(new.new)
app.command("export", epilog=export.EXPORT_EXAMPLES)(export.export_template)
app.command("install", epilog=export.INSTALL_EXAMPLES)(export.install)
app.command("plugins", epilog=plugin_list.EXAMPLES)(plugin_list.plugins)
app.command("demo", epilog=demo.EXAMPLES)(demo.demo)


def print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(importlib.metadata.version("respzoo"))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Response templates for language models: find them, read them, run them."""


def main() -> None:
    """The console script."""
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # models write what a terminal may not be able to show
    app()
