"""The plugin manager: which families there are, whose they are, and which plugins are broken.

Plugins come in by the entry point group `respzoo`, the curated zoo among them. Each is loaded and asked by itself, so
that an exception names its plugin and leaves the others alone: it is recorded in `Plugins.broken` and logged once. What
cannot be skipped, because any choice would be a guess, is an error that names both sides: two plugins with one family
name, or two families with one exact id.
"""

from __future__ import annotations

import difflib
import json
import logging
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pluggy

from respzoo import hookspecs
from respzoo.errors import Problem, RespzooError, TemplateError, UnknownModelError
from respzoo.hookspecs import PROJECT, Family, Marks, hookimpl
from respzoo.template import ResponseTemplate, with_source

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = [
    "Broken",
    "Family",
    "Marks",
    "PluginError",
    "Plugins",
    "TemplateFolder",
    "hookimpl",
    "load_family",
    "load_template",
    "loaded",
    "read_family",
]

logger = logging.getLogger(__name__)


class PluginError(RespzooError):
    """Two plugins that cannot both be right, or a family folder that cannot be read."""


class Broken(NamedTuple):
    """A plugin that was skipped, wholly or for the hook that failed."""

    plugin: str
    version: str
    error: str

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} {self.version or '(no version)'} skipped: {self.error}"


class TemplateFolder:
    """A plugin made of a folder of family folders, each with template.json, family.toml and perhaps samples.jsonl.

    It is all that a package of families needs: `plugin = TemplateFolder(files(__name__))` and an entry point.
    """

    def __init__(self, folder: Traversable | Path) -> None:
        self.folder = folder

    @hookimpl
    def respzoo_templates(self) -> Iterator[Family]:
        """The folder's families; one that cannot be read spoils none of the others, its error comes after them."""
        faults: list[str] = []
        for entry in sorted(self.folder.iterdir(), key=lambda entry: entry.name):
            if not entry.joinpath("family.toml").is_file():
                continue
            try:
                yield read_family(entry)
            except (PluginError, OSError) as error:
                faults.append(str(error))
        if faults:
            raise PluginError("; ".join(faults))


_KEYS = ("title", "models", "id_patterns", "sources", "notes", "chat_template")


def read_family(folder: Traversable | Path) -> Family:
    """One family from its folder. The template is read when it is first needed, not here."""
    file = folder.joinpath("family.toml")
    try:
        table = tomllib.loads(file.read_text("utf-8"))
        if unknown := table.keys() - set(_KEYS):
            raise PluginError(f"unknown key {', '.join(sorted(unknown))}; known are {', '.join(_KEYS)}")
        samples = folder.joinpath("samples.jsonl")
        return Family(
            name=folder.name,
            template=partial(_read_json, folder.joinpath("template.json")),
            title=_text(table, "title"),
            models=_texts(table, "models"),
            id_patterns=_texts(table, "id_patterns"),
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


class Plugins:
    """The plugins of one process and the families they brought."""

    def __init__(self) -> None:
        self.broken: list[Broken] = []
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._versions: dict[str, str] = {}
        self._compiled: dict[str, tuple[Family, ResponseTemplate]] = {}

    def load_entry_points(self) -> None:
        """Load every plugin that an installed distribution announces."""
        for entry in sorted(entry_points(group=PROJECT), key=lambda entry: (entry.value, entry.name)):
            name = f"{entry.dist.name}:{entry.name}" if entry.dist else entry.name
            version = entry.dist.version if entry.dist else ""
            if self._manager.has_plugin(name):  # one distribution seen twice on the path, as editable installs do
                continue
            try:
                plugin = entry.load()
            except Exception as error:  # a plugin's import may raise anything
                self._record(name, version, error)
            else:
                self.register(plugin, name, version)

    def register(self, plugin: object, name: str, version: str = "") -> None:
        """Add one plugin; if it does not fit the hooks it is recorded as broken."""
        self._versions[name] = version
        try:
            self._manager.register(plugin, name)
            callers = self._manager.get_hookcallers(plugin) or []
            if not callers:
                raise PluginError("it has no hook; mark functions with @respzoo.plugins.hookimpl")
            if unknown := [caller.name for caller in callers if not caller.has_spec()]:
                known = ", ".join(hook for hook in dir(hookspecs) if hook.startswith("respzoo_"))
                raise PluginError(f"unknown hook {', '.join(unknown)}; known are {known}")
        except Exception as error:
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            self._record(name, version, error)
        for stale in ("_collected", "ids"):
            self.__dict__.pop(stale, None)

    @property
    def names(self) -> list[str]:
        """The plugins in use, `distribution:entry point`."""
        return [name for name, _ in self._manager.list_name_plugin()]

    def version(self, name: str) -> str:
        return self._versions.get(name, "")

    @property
    def families(self) -> dict[str, Family]:
        """All families by name."""
        return self._collected[0]

    @property
    def owners(self) -> dict[str, str]:
        """The plugin of each family."""
        return self._collected[1]

    @cached_property
    def _collected(self) -> tuple[dict[str, Family], dict[str, str]]:
        families: dict[str, Family] = {}
        owners: dict[str, str] = {}
        for name, answer in self._ask("respzoo_templates"):
            for family in self._each(name, answer):
                if family.name in families:
                    raise PluginError(
                        f"two plugins bring a family {family.name!r}: {self._label(owners[family.name])} and "
                        f"{self._label(name)}; uninstall one of them, or rename its family"
                    )
                families[family.name] = family
                owners[family.name] = name
        return families, owners

    @cached_property
    def ids(self) -> dict[str, Family]:
        """The family of each exact id, in lower case."""
        ids: dict[str, Family] = {}
        for family in self.families.values():
            for model in family.models:
                other = ids.setdefault(model.lower(), family)
                if other is not family:
                    sides = " and ".join(
                        f"{side.name!r} of {self._label(self.owners[side.name])}" for side in (other, family)
                    )
                    raise PluginError(f"two families claim the model {model!r}: {sides}; take it out of one of them")
        return ids

    def compile(self, family: Family, source: str) -> ResponseTemplate:
        """A family's template with the reason for it; compiled once, since only the reason differs."""
        known = self._compiled.get(family.name)
        if known is None or known[0] is not family:
            try:
                spec = family.spec
            except (OSError, ValueError) as error:
                raise TemplateError([Problem("$", f"cannot be read: {error}")], name=family.name) from error
            known = self._compiled[family.name] = (family, ResponseTemplate(spec, name=family.name))
        return with_source(known[1], source)

    def fitting(self, names: Iterable[str]) -> Iterator[tuple[Family, str]]:
        """The families that have an id pattern for one of these bare names, and the pattern."""
        for family in self.families.values():
            for name in names:
                try:
                    pattern = family.match_name(name)
                except re.error as error:  # compiled only now: most searches need no pattern
                    text = f"an id pattern of family {family.name} is no regular expression: {error}"
                    owner = self.owners[family.name]
                    self._record(owner, self.version(owner), PluginError(text))
                else:
                    if pattern is not None:
                        yield family, pattern

    def find(self, model: str, chat_template: str | None, config: Mapping[str, Any]) -> tuple[Family, str] | None:
        """The first answer of a plugin's own rules, and the plugin that gave it."""
        arguments = {"model": model, "chat_template": chat_template, "config": config}
        for name, answer in self._ask("respzoo_find", arguments):
            if answer is None:
                continue
            family = self.families.get(answer) if isinstance(answer, str) else answer
            if isinstance(family, Family):
                return family, name
            self._record(name, self.version(name), PluginError(f"respzoo_find answered {answer!r}, which is no family"))
        return None

    def _ask(self, hook: str, arguments: Mapping[str, Any] | None = None) -> Iterator[tuple[str, Any]]:
        """Call a hook plugin by plugin, last registered first, as pluggy does."""
        plugins = self._manager.list_name_plugin()
        for name, plugin in reversed(plugins):
            others = [other for _, other in plugins if other is not plugin]
            caller = self._manager.subset_hook_caller(hook, others)
            if not caller.get_hookimpls():
                continue
            try:
                answer = caller(**(arguments or {}))
            except Exception as error:
                self._record(name, self.version(name), error)
                continue
            for one in cast("list[Any]", answer) if isinstance(answer, list) else [answer]:
                yield name, one

    def _each(self, name: str, answer: Any) -> Iterator[Family]:
        """The families of one answer; what a generator raises spoils only what would have come after."""
        try:
            for family in cast("Iterable[Any]", answer):
                if not isinstance(family, Family):
                    raise PluginError(f"respzoo_templates gave {family!r}, which is no Family")
                yield family
        except Exception as error:
            self._record(name, self.version(name), error)

    def _label(self, name: str) -> str:
        return f"{name} {self.version(name)}".rstrip()

    def _record(self, name: str, version: str, error: Exception) -> None:
        text = str(error) if isinstance(error, RespzooError) else f"{type(error).__name__}: {error}"
        broken = Broken(name, version, text)
        if broken not in self.broken:
            self.broken.append(broken)
            logger.warning("%s", broken)


@lru_cache(maxsize=1)
def loaded() -> Plugins:
    """The process's plugins, loaded when first asked for."""
    plugins = Plugins()
    plugins.load_entry_points()
    return plugins


def load_family(name: str, *, source: str = "") -> ResponseTemplate:
    """The template of a family by its name."""
    plugins = loaded()
    family = plugins.families.get(name)
    if family is None:
        near = difflib.get_close_matches(name, plugins.families, n=3)
        hint = f"; near names: {', '.join(near)}" if near else ""
        raise UnknownModelError(f"no family {name!r}; known are {', '.join(sorted(plugins.families))}{hint}")
    return plugins.compile(family, source or f"family {name} of {plugins.owners[name]}, by its name")


def load_template(template: object, *, source: str) -> ResponseTemplate:
    """A template from whatever pins one: itself, a spec, a JSON file, a folder that holds one, a family's name."""
    if isinstance(template, ResponseTemplate):
        return template
    if isinstance(template, Mapping):
        return ResponseTemplate(cast("Mapping[str, Any]", template), source=source)
    if not isinstance(template, str | os.PathLike):
        raise TypeError(
            f"template= must be a template, a spec, a path or a family's name, not {type(template).__name__}"
        )
    path = Path(cast("str | os.PathLike[str]", template))
    if isinstance(template, str) and re.fullmatch(r"[a-z][a-z0-9_]*", template) and not path.exists():
        return load_family(template, source=f"{source}: family {template}")
    files = [path / "template.json", path / "tokenizer_config.json"] if path.is_dir() else [path]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise UnknownModelError(f"{source}: there is no {' and no '.join(map(str, files))}")
    try:
        spec: Any = json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise TemplateError([Problem("$", f"not JSON: {error}")], name=str(file)) from error
    if isinstance(spec, Mapping) and "response_template" in spec:  # a whole tokenizer_config.json
        spec = cast("Mapping[str, Any]", spec)["response_template"]
    return ResponseTemplate(cast("Mapping[str, Any]", spec), name=path.stem, source=f"{source}: {file}")
