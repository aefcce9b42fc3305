"""How the commands are told which template to take, and what the shell completes there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from respzoo.plugins import load_family, load_template, loaded
from respzoo.template import ResponseTemplate
from respzoo.zoo import get

__all__ = ["ModelOption", "NameArgument", "TemplateOption", "choose", "choose_one", "complete_family"]


def complete_family(begun: str) -> list[tuple[str, str]]:
    """The families whose name goes on from what is typed, for the shell."""
    families = loaded().families
    return [(name, families[name].title) for name in sorted(families) if name.startswith(begun)]


NameArgument = Annotated[
    str,
    typer.Argument(
        help="A family's name, a model id, a checkpoint's folder, or a template's file.", autocompletion=complete_family
    ),
]
ModelOption = Annotated[str, typer.Option("--model", "-m", help="A model id, or a checkpoint's folder.")]
TemplateOption = Annotated[
    str,
    typer.Option(
        "--template",
        "-t",
        help="A family's name, or a JSON file that holds a template.",
        autocompletion=complete_family,
    ),
]


def choose(name: str) -> ResponseTemplate:
    """The template of whatever the name is: a family, a file, a family's folder, a model."""
    if name in loaded().families:
        return load_family(name)
    path = Path(name)
    if path.is_file() or (path / "template.json").is_file():
        return load_template(path, source="the command line")
    return get(name)


def choose_one(model: str, template: str) -> ResponseTemplate:
    """The template of `--model` or `--template`, one of which is given."""
    if bool(model) == bool(template):
        raise typer.BadParameter("give either --model or --template")
    if model:
        return get(model)
    try:
        return load_template(template, source="--template")
    except OSError as error:
        raise typer.BadParameter(f"cannot read --template {template}: {error}") from error
