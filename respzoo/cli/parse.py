"""`respzoo parse`: a model's raw text in, its message out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.progress import track

from respzoo.cli.choose import ModelOption, TemplateOption, choose_one
from respzoo.cli.console import MALFORMED, RegionPrinter, print_json
from respzoo.cli.read import FileArgument, PrefixFileOption, PrefixOption, ToolsOption, chunks, read, read_tools
from respzoo.errors import ParseError
from respzoo.template import ResponseTemplate

__all__ = ["EXAMPLES", "parse"]

EXAMPLES = """Examples:

respzoo parse reply.txt --model Qwen/Qwen3-8B --prefix $'<|im_start|>assistant\\n<think>\\n'

generate | respzoo parse --template qwen3 --stream

respzoo parse reply.txt --template my_template.json --tools tools.json --json

respzoo parse replies.jsonl -m Qwen/Qwen3-8B --lines > messages.jsonl"""


class OnMalformed(StrEnum):
    """What becomes of a region that breaks its template."""

    fail = "raise"
    content = "content"
    drop = "drop"


def parse(
    file: FileArgument = "-",
    model: ModelOption = "",
    template: TemplateOption = "",
    prefix: PrefixOption = "",
    prefix_file: PrefixFileOption = "",
    tools: ToolsOption = "",
    on_malformed: Annotated[
        OnMalformed, typer.Option("--on-malformed", help="What becomes of a region that breaks the template.")
    ] = OnMalformed.fail,
    stream: Annotated[
        bool, typer.Option("--stream", help="Show regions as the text arrives; with --json, one event a line.")
    ] = False,
    lines: Annotated[
        bool,
        typer.Option(
            "--lines",
            help='A batch: each line is a JSON string, or an object with "text" (or "raw_output") and perhaps "prefix" '
            '(or "generation_prompt") and "tools"; each gives one line.',
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Compact JSON on one line, for programs.")] = False,
) -> None:
    """Parse a model's raw output into a message."""
    if stream and lines:
        raise typer.BadParameter("give either --stream or --lines")
    chosen = choose_one(model, template)
    start = read(prefix_file) if prefix_file else prefix
    offered = read_tools(tools) if tools else None
    console = Console(highlight=False)
    if stream:
        follow(console, chosen.parser(prefix=start, tools=offered), chunks(file), as_json)
        return
    text = read(file)
    if lines:
        parse_lines(console, chosen, list(records(file, text, start, offered)), on_malformed)
        return
    indent = None if as_json else 2
    try:
        message = chosen.parse(text, prefix=start, tools=offered, on_malformed=on_malformed.value)
    except ParseError as error:
        print_json(console, error.message, indent=indent)  # what could be read all the same
        raise
    print_json(console, message, indent=indent)


def records(file: str, text: str, prefix: str, tools: list[Any] | None) -> Iterator[tuple[str, str, list[Any] | None]]:
    """The texts of a batch, each with its prefix and its tools."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{'standard input' if file == '-' else file}:{number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise typer.BadParameter(f"{where} is not JSON: {error}") from error
        if isinstance(value, str):
            value = {"text": value}
        record = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        body = record.get("text", record.get("raw_output"))
        start = record.get("prefix", record.get("generation_prompt", prefix))
        offered = record.get("tools", tools)
        if not isinstance(body, str) or not isinstance(start, str) or not isinstance(offered, list | None):
            raise typer.BadParameter(
                f'{where}: expected a JSON string, or an object with a "text", a "prefix" and a list of "tools"'
            )
        yield body, start, cast("list[Any] | None", offered)


def parse_lines(
    console: Console,
    template: ResponseTemplate,
    batch: list[tuple[str, str, list[Any] | None]],
    on_malformed: OnMalformed,
) -> None:
    """One message a line; where a text breaks its template, what could be read of it, and the error."""
    errors = Console(stderr=True)
    progress: Iterable[tuple[str, str, list[Any] | None]] = track(
        batch, "parsing", console=errors, transient=True, disable=not errors.is_terminal or console.is_terminal
    )
    broken = 0
    for text, start, offered in progress:
        try:
            answer = template.parse(text, prefix=start, tools=offered, on_malformed=on_malformed.value)
        except ParseError as error:
            broken += 1
            answer = {"error": str(error), "message": error.message}
        console.print(
            json.dumps(answer, ensure_ascii=False), markup=False, highlight=False, soft_wrap=True, emoji=False
        )
    if broken:
        errors.print(f"error: {broken} of {len(batch)} texts break the template", style="red", highlight=False)
        raise typer.Exit(MALFORMED)


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
