"""The plugin manager: which families there are, whose they are, and which plugins are broken.

Plugins come in by the entry point group `respzoo`, the curated zoo among them. Each is loaded and asked by itself, so
that an exception names its plugin and leaves the others alone: it is recorded in `Plugins.broken` and logged once. What
cannot be skipped, because any choice would be a guess, is an error that names both sides: two plugins with one family
name, or two families with one exact id.
"""

from __future__ import annotations

import json
import logging
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pluggy

from respzoo import hookspecs
from respzoo.errors import RespzooError
from respzoo.hookspecs import PROJECT, Family, Marks, hookimpl

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

__all__ = ["Broken", "Family", "Marks", "PluginError", "Plugins", "TemplateFolder", "hookimpl", "loaded", "read_family"]

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

    def __repr__(self) -> str:
        return f"TemplateFolder({str(self.folder)!r})"


_TEXTS = ("title", "notes")
_LISTS = ("models", "id_patterns", "sources")


def read_family(folder: Traversable | Path) -> Family:
    """One family from its folder. The template is read when it is first needed, not here."""
    try:
        table = tomllib.loads(folder.joinpath("family.toml").read_text("utf-8"))
        marks = table.pop("chat_template", [])
        for key, value in table.items():
            if key in _TEXTS:
                fits = isinstance(value, str)
            elif key in _LISTS:
                fits = _is_texts(value)
            else:
                raise PluginError(f"unknown key {key!r}; known are {', '.join((*_TEXTS, *_LISTS, 'chat_template'))}")
            if not fits:
                raise PluginError(f"{key} must be {'a text' if key in _TEXTS else 'a list of texts'}, not {value!r}")
        samples = folder.joinpath("samples.jsonl")
        return Family(
            name=folder.name,
            template=partial(_read_json, folder.joinpath("template.json")),
            marks=tuple(_read_marks(marks)),
            samples=samples if samples.is_file() else None,
            **{key: table[key] for key in _TEXTS if key in table},
            **{key: tuple(table[key]) for key in _LISTS if key in table},
        )
    except (PluginError, ValueError) as error:
        raise PluginError(f"{folder.joinpath('family.toml')}: {error}") from error


def _read_marks(tables: Any) -> Iterator[Marks]:
    if not isinstance(tables, list):
        raise PluginError("chat_template must be a list of tables: [[chat_template]]")
    for table in cast("list[Any]", tables):
        if not isinstance(table, dict) or not table.keys() <= {"require", "forbid"}:
            raise PluginError(f"a [[chat_template]] table has the keys require and forbid, not {table!r}")
        require, forbid = table.get("require"), table.get("forbid", [])
        if not _is_texts(require) or not _is_texts(forbid):
            raise PluginError("require and forbid of [[chat_template]] must be lists of texts")
        yield Marks(tuple(require), tuple(forbid))


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value))


def _read_json(file: Traversable | Path) -> Mapping[str, Any]:
    return json.loads(file.read_text("utf-8"))


class Plugins:
    """The plugins of one process and the families they brought."""

    def __init__(self) -> None:
        self.broken: list[Broken] = []
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._versions: dict[str, str] = {}

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
                    sides = " and ".join(f"{side.name!r} of {self._label(self.owners[side.name])}"
                                         for side in (other, family))
                    raise PluginError(f"two families claim the model {model!r}: {sides}; take it out of one of them")
        return ids

    def find(self, model: str, chat_template: str | None, config: Mapping[str, Any]) -> tuple[Family, str] | None:
        """The first answer of a plugin's own rules, and the plugin that gave it."""
        arguments = {"model": model, "chat_template": chat_template, "config": config}
        for name, answer in self._ask("respzoo_find", arguments):
            if answer is None:
                continue
            family = self.families.get(cast(str, answer)) if isinstance(answer, str) else answer
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
            yield from ((name, one) for one in (answer if isinstance(answer, list) else [answer]))

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
