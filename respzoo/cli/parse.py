"""`respzoo parse`: a model's raw text in, its message out."""

from __future__ import annotations

import codecs
import io
import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from enum import StrEnum
from typing import Annotated, Any, TypeVar, cast

import typer
from rich.console import Console

from respzoo.cli.console import MALFORMED, RegionPrinter, print_json
from respzoo.errors import ParseError
from respzoo.plugins import load_template
from respzoo.template import ResponseTemplate
from respzoo.zoo import get

__all__ = ["EXAMPLES", "parse"]

EXAMPLES = """Examples:

respzoo parse reply.txt --model Qwen/Qwen3-8B --prefix $'<|im_start|>assistant\\n<think>\\n'

generate | respzoo parse --template qwen3 --stream

respzoo parse reply.txt --template my_template.json --tools tools.json --json"""

Kind = TypeVar("Kind", dict[str, Any], list[Any])


class OnMalformed(StrEnum):
    """What becomes of a region that breaks its template."""

    fail = "raise"
    content = "content"
    drop = "drop"


def parse(
    file: Annotated[str, typer.Argument(help="The raw text, special tokens and all; - is standard input.")] = "-",
    model: Annotated[str, typer.Option("--model", "-m", help="A model id, or a checkpoint's folder.")] = "",
    template: Annotated[
        str, typer.Option("--template", "-t", help="A family's name, or a JSON file that holds a template.")
    ] = "",
    prefix: Annotated[str, typer.Option("--prefix", help="The end of the prompt that the text continues.")] = "",
    prefix_file: Annotated[str, typer.Option("--prefix-file", help="The same from a file.")] = "",
    tools: Annotated[str, typer.Option("--tools", help="A JSON file with the list of tools that were offered.")] = "",
    on_malformed: Annotated[
        OnMalformed, typer.Option("--on-malformed", help="What becomes of a region that breaks the template.")
    ] = OnMalformed.fail,
    stream: Annotated[
        bool, typer.Option("--stream", help="Show regions as the text arrives; with --json, one event a line.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Compact JSON on one line, for programs.")] = False,
) -> None:
    """Parse a model's raw output into a message."""
    chosen = choose(model, template)
    start = read(prefix_file) if prefix_file else prefix
    offered = read_tools(tools) if tools else None
    console = Console(highlight=False)
    if stream:
        follow(console, chosen.parser(prefix=start, tools=offered), chunks(file), as_json)
        return
    text = read(file)
    indent = None if as_json else 2
    try:
        message = chosen.parse(text, prefix=start, tools=offered, on_malformed=on_malformed.value)
    except ParseError as error:
        print_json(console, error.message, indent=indent)  # what could be read all the same
        raise
    print_json(console, message, indent=indent)


def choose(model: str, template: str) -> ResponseTemplate:
    if bool(model) == bool(template):
        raise typer.BadParameter("give either --model or --template")
    if model:
        return get(model)
    try:
        return load_template(template, source="--template")
    except OSError as error:
        raise typer.BadParameter(f"cannot read --template {template}: {error}") from error


def read_tools(file: str) -> list[Any]:
    return read_json(file, list)


def read_json(file: str, kind: type[Kind]) -> Kind:
    try:
        value = json.loads(read(file))
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"{file} is not JSON: {error}") from error
    if not isinstance(value, kind):
        raise typer.BadParameter(f"{file} holds a JSON {type(value).__name__}, not a {kind.__name__}")
    return value


def read(file: str) -> str:
    """A file's text to the letter: line ends as they are, since they may be part of a value."""
    return "".join(chunks(file))


def chunks(file: str) -> Iterator[str]:
    """The text of a file or of standard input, as it arrives."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with nullcontext(sys.stdin.buffer) if file == "-" else open(file, "rb") as source:
            # read1 returns what has come, read would wait for a whole block
            while data := cast(io.BufferedIOBase, source).read1(1 << 16):
                yield decoder.decode(data)
        yield decoder.decode(b"", final=True)
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {'standard input' if file == '-' else file}: {error}") from error


def follow(console: Console, parser: Any, texts: Iterator[str], as_json: bool) -> None:
    """Print what the text means while it comes."""
    printer = RegionPrinter(console)

    def show(events: list[Any]) -> None:
        if as_json:
            for event in events:
                console.print(json.dumps(event, ensure_ascii=False), markup=False, soft_wrap=True)
        else:
            printer.print(events)

    show(parser.initial_events)
    for text in texts:
        show(parser.feed(text))
    message, events = parser.finalize()
    show(events)
    if as_json:
        print_json(console, {"type": "message", "message": message}, indent=None)
    else:
        console.print()
        print_json(console, message)
    if parser.dropped:
        raise typer.Exit(MALFORMED)
