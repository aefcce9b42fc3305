"""Families from folders: template.json, family.toml and perhaps samples.jsonl in each.

A folder of such folders is a whole plugin (`TemplateFolder`), the curated zoo's as well as anyone's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from respzoo.errors import RespzooError
from respzoo.hookspecs import Family, Marks, hookimpl

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["FAMILY_KEYS", "PluginError", "TemplateFolder", "read_family"]


class PluginError(RespzooError):
    """Two plugins that cannot both be right, or a family folder that cannot be read."""


class TemplateFolder:
    """A plugin made of a folder of family folders, each with template.json, family.toml and perhaps samples.jsonl.

    It is all that a package of families needs: `plugin = TemplateFolder(files(__name__))` and an entry point.
    """

    def __init__(self, folder: Traversable | Path) -> None:
        self.folder = folder
        self._families: dict[str, Family] = {}

    @hookimpl
    def respzoo_templates(self) -> Iterator[Family]:
        """The folder's families; one that cannot be read spoils none of the others, its error comes after them."""
        return self._each("")

    def mentioning(self, model: str) -> Iterator[Family]:
        """The families whose family.toml has this id, in lower case, somewhere. Reading the text of all is much faster
        than parsing it, and an id needs no more."""
        return self._each(model)

    def _each(self, text: str) -> Iterator[Family]:
        faults: list[str] = []
        for entry in sorted(self.folder.iterdir(), key=lambda entry: entry.name):
            try:
                toml = entry.joinpath("family.toml").read_text("utf-8")
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, ValueError) as error:
                faults.append(f"{entry.joinpath('family.toml')}: {error}")
                continue
            if text not in toml.lower():
                continue
            try:
                family = self._families.get(entry.name)
                if family is None:
                    family = self._families[entry.name] = _read_family(entry, toml)
                yield family
            except PluginError as error:
                faults.append(str(error))
        if faults:
            raise PluginError("; ".join(faults))


FAMILY_KEYS = (
    "title", "models", "id_patterns", "model_types", "architectures", "sources", "notes", "chat_template"
)  # fmt: skip
"""What family.toml may hold; family.schema.json says it to editors."""


def read_family(folder: Traversable | Path) -> Family:
    """One family from its folder. The template is read when it is first needed, not here.

    Raises:
        PluginError: family.toml is amiss.
        OSError: it cannot be read.
    """
    return _read_family(folder, folder.joinpath("family.toml").read_text("utf-8"))


def _read_family(folder: Traversable | Path, toml: str) -> Family:
    import tomllib  # with all that it imports, a seventh of `import respzoo`

    file = folder.joinpath("family.toml")
    try:
        table = tomllib.loads(toml)
        if unknown := table.keys() - set(FAMILY_KEYS):
            raise PluginError(f"unknown key {', '.join(sorted(unknown))}; known are {', '.join(FAMILY_KEYS)}")
        samples = folder.joinpath("samples.jsonl")
        return Family(
            name=folder.name,
            template=partial(_read_json, folder.joinpath("template.json")),
            title=_text(table, "title"),
            models=_texts(table, "models"),
            id_patterns=_texts(table, "id_patterns"),
            model_types=_texts(table, "model_types"),
            architectures=_texts(table, "architectures"),
            marks=tuple(_read_marks(table.get("chat_template", []))),
            sources=_texts(table, "sources"),
            notes=_text(table, "notes"),
            samples=samples if samples.is_file() else None,
        )
    except (PluginError, ValueError) as error:
        raise PluginError(f"{file}: {error}") from error


def _read_marks(tables: Any) -> Iterator[Marks]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in cast("list[Any]", tables)):
        raise PluginError("chat_template must be a list of tables: [[chat_template]]")
    for table in cast("list[dict[str, Any]]", tables):
        if unknown := table.keys() - {"require", "forbid"}:
            raise PluginError(f"[[chat_template]] has the keys require and forbid, not {', '.join(sorted(unknown))}")
        yield Marks(_texts(table, "require"), _texts(table, "forbid"))


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise PluginError(f"{key} must be a text, not {value!r}")
    return value


def _texts(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[Any]", value)):
        raise PluginError(f"{key} must be a list of texts, not {value!r}")
    return tuple(cast("list[str]", value))


def _read_json(file: Traversable | Path) -> Mapping[str, Any]:
    return json.loads(file.read_text("utf-8"))
