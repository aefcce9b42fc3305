"""What the commands share: exit codes, JSON on a terminal or in a pipe, and regions as they stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.text import Text

from respzoo.events import Event
from respzoo.fields import CALLS, REASONING_NAMES

__all__ = ["MALFORMED", "UNKNOWN", "WRONG", "Json", "RegionPrinter", "label_of", "print_json", "style_of"]

MALFORMED, WRONG, UNKNOWN = 1, 2, 3

Json = Annotated[bool, typer.Option("--json", help="JSON, for programs.")]

STYLES = {"reasoning": "magenta", "content": "green", "tool call": "cyan"}


def print_json(console: Console, value: Any, *, indent: int | None = 2) -> None:
    """JSON: coloured on a terminal, exactly json.dumps's text elsewhere."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if console.is_terminal:
        console.print_json(text, indent=indent, ensure_ascii=False)
    else:
        console.print(text, markup=False, highlight=False, soft_wrap=True, emoji=False)


def label_of(field: str) -> str:
    """A field's name for people."""
    if field in REASONING_NAMES:
        return "reasoning"
    return "tool call" if field == CALLS else field


def style_of(label: str) -> str:
    return STYLES.get(label, "yellow")


class RegionPrinter:
    """Prints events as they come: each region under its label, in its colour, behind a bar.

    A label waits for text to stand above, and white space at a region's edges is not shown: it frames the region, and
    no value holds it.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar = "| " if console.options.ascii_only else "▎ "
        self.width = console.width - 1
        self.label = ""
        self.column = 0
        self.gap = ""
        """White space seen last, shown only if more text follows."""

    def print(self, events: Iterable[Event]) -> None:
        for event in events:
            match event["type"]:
                case "region_open":
                    self._end_line()
                    self.label, self.gap = "", ""
                case "region_chunk":
                    self._chunk(label_of(event["field"]), event.get("text", ""))
                case "region_close":
                    self._end_line()
                    self._calls(event["field"], event.get("value"))
                case "region_malformed":
                    self._end_line()
                    self._line(f"{event.get('reason')}: {event.get('error')}", "bold red")
                    self._line(repr(event.get("raw")), "red")

    def _chunk(self, label: str, text: str) -> None:
        if not self.label:
            text = text.lstrip()
            if not text:
                return
            self.label = label
            self.console.print(Text(f" {label} ", style=f"bold {style_of(label)} reverse"))
        text = self.gap + text
        body = text.rstrip()
        self.gap = text[len(body) :]
        for piece in _pieces(body):
            self._piece(piece, style_of(label))

    def _piece(self, piece: str, style: str) -> None:
        """One word or one line break."""
        if piece == "\n":
            if not self.column:
                self._put(self.bar, style)
            self._end_line()
            return
        if self.column and self.column + len(piece) > self.width:
            self._end_line()
            piece = piece.lstrip(" ")
        if not self.column:
            self._put(self.bar, style)
        self._put(piece, style)

    def _put(self, text: str, style: str) -> None:
        shown = text.replace("\x1b", "\\x1b")  # a model's text does not steer the terminal
        self.console.print(Text(shown, style=style), end="", soft_wrap=True)
        self.column += len(text)

    def _end_line(self) -> None:
        if self.column:
            self.console.print()
        self.column = 0

    def _line(self, text: str, style: str) -> None:
        self.console.print(Text(self.bar + text, style=style), soft_wrap=True)

    def _calls(self, field: str, value: Any) -> None:
        """A closed tool-call region: what was read from it."""
        if field != "tool_calls":
            return
        calls = cast("list[Any]", value) if isinstance(value, list) else [value]
        for call in calls:
            function = call["function"]
            arguments = ", ".join(f"{key}={_short(item)}" for key, item in function["arguments"].items())
            self._line(f"= {function['name']}({arguments})", "bold cyan")


def _short(value: Any, limit: int = 40) -> str:
    """A value as Python writes it, cut: the message holds it whole."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 4]}...{text[-1]}"


def _pieces(text: str) -> Iterator[str]:
    """Words with the space before them, and line breaks by themselves."""
    word = ""
    for character in text:
        if character == "\n":
            if word:
                yield word
            yield character
            word = ""
        elif character == " " and word.strip(" "):
            yield word
            word = character
        else:
            word += character
    if word:
        yield word
