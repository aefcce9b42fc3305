"""`respzoo explain`: what became of every character of an output, for the person whose call went missing."""

from __future__ import annotations

import unicodedata
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from respzoo.cli.captions import elsewhere, fault_title, place, rows, short
from respzoo.cli.choose import ModelOption, TemplateOption, choose_one
from respzoo.cli.console import MALFORMED, Json, label_of, print_json, style_of
from respzoo.cli.hints import other_readers
from respzoo.cli.page import page
from respzoo.cli.read import FileArgument, PrefixFileOption, PrefixOption, ToolsOption, read, read_tools
from respzoo.pieces import Fault, Piece, Trace
from respzoo.template import ResponseTemplate
from respzoo.trace import trace

__all__ = ["EXAMPLES", "explain"]

EXAMPLES = """Examples:

respzoo explain reply.txt --model Qwen/Qwen3-8B

respzoo explain reply.txt -t qwen3 --prefix $'<|im_start|>assistant\\n<think>\\n' --html why.html

generate | respzoo explain -t qwen3 --json"""

AROUND = 36
"""How many characters of a line are shown on each side of a fault."""


def explain(
    file: FileArgument = "-",
    model: ModelOption = "",
    template: TemplateOption = "",
    prefix: PrefixOption = "",
    prefix_file: PrefixFileOption = "",
    tools: ToolsOption = "",
    html: Annotated[str, typer.Option("--html", help="Write it as one web page that needs no other file.")] = "",
    as_json: Json = False,
) -> None:
    """Show what became of every character: regions, delimiters, what was held and why, what broke and where."""
    chosen = choose_one(model, template)
    text = read(file)
    start = read(prefix_file) if prefix_file else prefix
    found = trace(chosen, text, prefix=start, tools=read_tools(tools) if tools else None)
    others = other_readers(text, start, found.message, chosen)
    console = Console(highlight=False)
    if html:
        write_page(html, found, chosen, others)
        if not as_json:
            console.print(Text(f"wrote {html}"), soft_wrap=True)
    if as_json:
        print_json(console, {**as_dict(found, chosen), "calls_by": others})
    elif not html:
        show(console, found, chosen, others)
    if found.faults:
        raise typer.Exit(MALFORMED)


def write_page(file: str, found: Trace, template: ResponseTemplate, others: list[str]) -> None:
    try:
        Path(file).write_text(page(found, template, others), "utf-8", errors="replace")
    except OSError as error:
        raise typer.BadParameter(f"cannot write --html {file}: {error}") from error


def as_dict(found: Trace, template: ResponseTemplate) -> dict[str, Any]:
    """All of it, for programs; places count from the output's beginning, what the prompt wrote is before 0."""
    shift = found.prompt

    def moved(item: Any) -> dict[str, Any]:
        places = ("start", "end", "until", "place", "known_at")
        return {key: value - shift if key in places else value for key, value in asdict(item).items()}

    return {
        "template": template.name,
        "source": template.source,
        "text": found.text[shift:],
        "prompt": found.text[:shift],
        "pieces": [moved(piece) for piece in found.pieces],
        "events": [moved(step) for step in found.steps],
        "held": [moved(hold) for hold in found.holds],
        "faults": [moved(fault) for fault in found.faults],
        "message": found.message,
    }


def show(console: Console, found: Trace, template: ResponseTemplate, others: list[str]) -> None:
    console.print(Text.assemble("template  ", (template.name, "bold"), f"  {template.source}"), soft_wrap=True)
    console.print(coloured(found), soft_wrap=True)
    console.print()
    console.print(table_of(found))
    for fault in found.faults:
        console.print()
        console.print(caret(found, fault), soft_wrap=True)
    if others:
        console.print()
        console.print(Text(elsewhere(others), style="yellow"), soft_wrap=True)
    console.print()
    print_json(console, found.message)


def coloured(found: Trace) -> Text:
    """The raw text, each region in its colour, delimiters reversed, what is nobody's dim."""
    text = Text()
    for piece in found.pieces:
        text.append(printable(found.text[piece.start : piece.end]), style=piece_style(piece))
    return text


def piece_style(piece: Piece) -> str:
    if piece.kind == "swallowed":
        return "dim"
    style = "red" if piece.fault is not None else style_of(label_of(piece.field))
    return style if piece.kind == "text" else f"{style} reverse"


def table_of(found: Trace) -> Table:
    """One line an event and a wait, in the order of the text."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("at", justify="right")
    table.add_column("event", no_wrap=True)
    table.add_column("what")
    table.add_column("text", overflow="fold")
    for row in rows(found):
        style = "dim" if row.piece is None else piece_style(found.pieces[row.piece])
        table.add_row(row.at, row.event, Text(row.what, style=style), Text(short(row.text) if row.text else ""))
    return table


def caret(found: Trace, fault: Fault) -> Text:
    """The line in which a region broke, and a caret under the place."""
    begin = found.text.rfind("\n", 0, fault.place) + 1
    end = found.text.find("\n", fault.place)
    line_end = len(found.text) if end < 0 else end
    first, last = max(begin, fault.place - AROUND), min(line_end, fault.place + AROUND)
    before = ("… " if first > begin else "") + printable(found.text[first : fault.place])
    line = before + printable(found.text[fault.place : last]) + (" …" if last < line_end else "")
    head = f"{fault_title(fault)}, at {place(fault.place, found)}: {fault.error}"
    return Text.assemble((head, "bold red"), "\n  ", line, "\n  ", (" " * width(before) + "^", "bold red"))


def printable(text: str) -> str:
    """A model's text does not steer the terminal; tabs would shift the caret."""
    return "".join(
        character if character == "\n" or unicodedata.category(character) != "Cc" else f"\\x{ord(character):02x}"
        for character in text.replace("\t", "    ")
    )


def width(text: str) -> int:
    return Text(text).cell_len
