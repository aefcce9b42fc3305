"""`respzoo new`: a family's folder, or a whole plugin package, that holds together as it is written."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from respzoo.cli.console import Json, print_json
from respzoo.cli.scaffold_samples import samples
from respzoo.names import bare_name
from respzoo.plugins import loaded
from respzoo.zoo import find

__all__ = ["EXAMPLES", "new"]

EXAMPLES = """Examples:

respzoo new acme_one --model acme/One-7B

respzoo new acme_one --model acme/One-7B --plugin --into ~/src"""
SCHEMA = Path("respzoo", "family.schema.json")


def new(
    name: Annotated[str, typer.Argument(help="The family's name: lower case letters, digits and underscores.")],
    model: Annotated[str, typer.Option("--model", "-m", help="The id of one of its models, as on the Hub.")],
    plugin: Annotated[bool, typer.Option("--plugin", help="A package of its own, with its tests.")] = False,
    into: Annotated[str, typer.Option("--into", help="Where to write; by default a plugin's clone, or here.")] = "",
    as_json: Json = False,
) -> None:
    """Write a new family: a template, the facts and samples to replace by the model's own."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise typer.BadParameter(f"{name!r} is not lower case letters, digits and underscores")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", model):
        raise typer.BadParameter(f"--model {model!r} is not of the form organisation/name")
    parent = Path(into) if into else Path() if plugin else folder_of_families()
    wanted = package(name, model) if plugin else family(name, model, parent / name)
    target = parent / (f"{dashed(name)}-respzoo" if plugin else name)
    if target.exists():
        raise typer.BadParameter(f"{target} is there already")
    known = find(model, local_files_only=True).template  # before the new one is found
    for place, text in wanted.items():
        file = target / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    console = Console(highlight=False)
    if as_json:
        facts = {"folder": str(target), "files": list(wanted), "known": None if known is None else known.name}
        print_json(console, facts)
        return
    for place in wanted:
        console.print(Text(f"wrote {target / place}"), soft_wrap=True)
    if known is not None:
        note = f"note: {model} has a template, {known.name}: {known.source}. If it writes the same, add the id there"
        console.print(Text(note, style="yellow"), soft_wrap=True)
    folder = target / f"{name}_respzoo" / name if plugin else target
    console.print(Text(f"next: mend template.json and samples.jsonl, then respzoo check {folder}"), soft_wrap=True)


def folder_of_families() -> Path:
    """Whose clone this is, its folder of families, from here; here itself if it is nobody's."""
    here, installed = Path.cwd(), Path(sys.prefix).resolve()
    for folder in loaded().folders:
        if folder.is_relative_to(here) and not folder.is_relative_to(installed):
            return folder.relative_to(here)
    return Path()


def package(name: str, model: str) -> dict[str, str]:
    """The files of a plugin package."""
    inner = f"{name}_respzoo"
    return {
        "pyproject.toml": filled("pyproject.txt", name, model),
        "README.md": filled("README.md", name, model),
        f"{inner}/__init__.py": filled("init.txt", name, model),
        **{f"{inner}/{name}/{place}": text for place, text in family(name, model, None).items()},
        "tests/test_families.py": filled("tests.txt", name, model),
    }


def family(name: str, model: str, folder: Path | None) -> dict[str, str]:
    """The files of a family's folder; inside a clone of respzoo its facts name their schema."""
    facts = filled("family.txt", name, model)
    if folder is not None and SCHEMA.is_file():
        facts = f"#:schema {os.path.relpath(SCHEMA, folder)}\n{facts}"
    template = filled("template.json", name, model)
    records = samples(dashed(name), model, json.loads(template)["start_anchor"])
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    return {"family.toml": facts, "template.json": template, "samples.jsonl": lines}


def filled(part: str, name: str, model: str) -> str:
    """A part of the scaffold with its names put in."""
    text = files("respzoo.cli").joinpath("scaffold", part).read_text("utf-8")
    words: Mapping[str, Any] = {
        "NAME": name,
        "MODEL": model,
        "TITLE": model.rpartition("/")[2],
        "PATTERN": pattern(model),
        "MARKS": json.dumps([f"<|{name}_assistant|>", "<tool_call>"]),
        "DISTRIBUTION": f"{dashed(name)}-respzoo",
        "PACKAGE": f"{name}_respzoo",
    }
    return re.sub("@([A-Z]+)@", lambda match: words[match[1]], text)


def pattern(model: str) -> str:
    """The model's name in every size."""
    sized = re.sub(r"\d+(?:\\\.\d+)?b\b", lambda _: r"\d+(?:\.\d+)?b", re.escape(bare_name(model)).replace(r"\-", "-"))
    return f"{sized}(?:-.*)?"


def dashed(name: str) -> str:
    return name.replace("_", "-")
