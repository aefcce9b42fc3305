"""What the commands read: a model's text, its prompt, its tools, from files or standard input."""

from __future__ import annotations

import codecs
import io
import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Annotated, Any, TypeVar, cast

import typer

__all__ = [
    "FileArgument",
    "PrefixFileOption",
    "PrefixOption",
    "ToolsOption",
    "chunks",
    "read",
    "read_json",
    "read_tools",
]

Kind = TypeVar("Kind", dict[str, Any], list[Any])

FileArgument = Annotated[str, typer.Argument(help="The raw text, special tokens and all; - is standard input.")]
PrefixOption = Annotated[str, typer.Option("--prefix", help="The end of the prompt that the text continues.")]
PrefixFileOption = Annotated[str, typer.Option("--prefix-file", help="The same from a file.")]
ToolsOption = Annotated[str, typer.Option("--tools", help="A JSON file with the list of tools that were offered.")]


def read_tools(file: str) -> list[Any]:
    return read_json(file, list)


def read_json(file: str, kind: type[Kind]) -> Kind:
    try:
        value = json.loads(read(file))
    except (ValueError, RecursionError) as error:
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
