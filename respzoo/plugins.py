"""The plugin manager: which families there are, whose they are, and which plugins are broken.

Plugins come in by the entry point group `respzoo`, the curated zoo among them. Each is loaded and asked by itself, so
that an exception names its plugin and leaves the others alone: it is recorded in `Plugins.broken` and logged once. So
is a family whose template does not load, or that is refused as untrusted (trust.py), when it is first needed. What
cannot be skipped, because any choice would be a guess, is an error that names both sides: two plugins with one family
name, or two families with one exact id.

RESPZOO_DISABLE_PLUGINS turns plugins off: `all` (or `1`) for every one but the curated zoo, or their names, comma
between them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import pluggy

from respzoo import hookspecs
from respzoo.errors import Problem, RespzooError, TemplateError, UnknownModelError
from respzoo.folders import PluginError, TemplateFolder, read_family
from respzoo.hookspecs import PROJECT, Family, Marks, hookimpl
from respzoo.installed import announced
from respzoo.names import bare_name
from respzoo.template import ResponseTemplate, with_source
from respzoo.trust import examine, trusted_names

__all__ = [
    "DISABLE",
    "Broken",
    "Family",
    "Marks",
    "Plugin",
    "PluginError",
    "Plugins",
    "TemplateFolder",
    "hookimpl",
    "load_family",
    "load_template",
    "loaded",
    "read_family",
    "report",
]


DISABLE = "RESPZOO_DISABLE_PLUGINS"
"""The environment variable that turns plugins off."""

OURS = PROJECT
"""The distribution whose families are not strangers': respzoo itself."""


class Broken(NamedTuple):
    """A plugin that was skipped, wholly or for the hook that failed."""

    plugin: str
    version: str
    error: str

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} {self.version or '(no version)'} skipped: {self.error}"


class Plugin(NamedTuple):
    """What there is to say about one plugin."""

    name: str
    """`distribution:entry point`."""
    version: str
    state: str
    """`used`, `broken` (wholly or in part: see `errors`) or `disabled`."""
    hooks: tuple[str, ...]
    families: tuple[str, ...]
    errors: tuple[str, ...]


class Plugins:
    """The plugins of one process and the families they brought."""

    def __init__(self) -> None:
        self.broken: list[Broken] = []
        self.disabled: list[str] = []
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._versions: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        self._compiled: dict[tuple[str, bool], tuple[Family, ResponseTemplate]] = {}

    def load_entry_points(self) -> None:
        """Load every plugin that an installed distribution announces."""
        off = {name.strip() for name in os.environ.get(DISABLE, "").split(",") if name.strip()}
        for entry in announced(PROJECT):
            name = f"{entry.distribution}:{entry.name}"
            if self._manager.has_plugin(name):  # one distribution seen twice on the path, as editable installs do
                continue
            if off & {name, entry.distribution} or (off & {"all", "1"} and entry.distribution != OURS):
                self._versions[name] = entry.version
                self.disabled.append(name)
                continue
            try:
                plugin = entry.load()
            except Exception as error:  # a plugin's import may raise anything
                self._versions[name] = entry.version
                self._record(name, entry.version, error)
            else:
                self.register(plugin, name, entry.version)

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
        for stale in ("_collected", "_listing", "ids", "bare", "organisations"):
            self.__dict__.pop(stale, None)

    @property
    def names(self) -> list[str]:
        """The plugins in use, `distribution:entry point`."""
        return [name for name, _ in self._manager.list_name_plugin()]

    @property
    def folders(self) -> list[Path]:
        """Where on this disk the plugins in use have folders of families."""
        plugins = [plugin for _, plugin in self._manager.list_name_plugin() if type(plugin) is TemplateFolder]
        return [plugin.folder.resolve() for plugin in plugins if isinstance(plugin.folder, Path)]

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

    def owner(self, family: Family) -> str:
        """The plugin that brought a family; empty for one that a rule made up."""
        return self._owners.get(family.name) or self.owners.get(family.name, "")

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

    def listed(self, model: str) -> Family | None:
        """The family that lists an exact id. Folders are asked for this id alone: nothing else of them is read.

        Raises:
            PluginError: two families list it.
        """
        wanted = model.lower()
        if "_collected" in self.__dict__:  # all is read already
            listing = self._listing.get(wanted, [])
            if len(listing) > 1:
                raise self._clash(model, listing)
            return listing[0] if listing else None
        found: dict[str, Family] = {}
        for name, plugin in self._manager.list_name_plugin():
            if type(plugin) is TemplateFolder:
                families = list(self._each(name, plugin.mentioning(wanted)))
            else:
                families = [family for family in self.families.values() if self.owners[family.name] == name]
            for family in families:
                if any(model.lower() == wanted for model in family.models):
                    self._owners.setdefault(family.name, name)
                    found[family.name] = family
        if len(found) > 1:
            raise self._clash(model, found.values())
        return next(iter(found.values()), None)

    def _clash(self, model: str, families: Iterable[Family]) -> PluginError:
        sides = " and ".join(
            f"{family.name!r} of {self._label(self.owner(family))}"
            for family in sorted(families, key=lambda one: one.name)
        )
        return PluginError(f"two families claim the model {model!r}: {sides}; take it out of one of them")

    @cached_property
    def ids(self) -> dict[str, Family]:
        """The family of each exact id, in lower case."""
        for model, families in self._listing.items():
            if len(families) > 1:
                raise self._clash(model, families)
        return {model: families[0] for model, families in self._listing.items()}

    @cached_property
    def _listing(self) -> dict[str, list[Family]]:
        listing: dict[str, list[Family]] = {}
        for family in self.families.values():
            for model in dict.fromkeys(model.lower() for model in family.models):
                listing.setdefault(model, []).append(family)
        return listing

    @cached_property
    def bare(self) -> dict[str, list[tuple[Family, str]]]:
        """By its bare name, each listed model and its family."""
        found: dict[str, list[tuple[Family, str]]] = {}
        for family in self.families.values():
            for model in family.models:
                found.setdefault(bare_name(model), []).append((family, model))
        return found

    @cached_property
    def organisations(self) -> frozenset[str]:
        """Who made the listed models, in lower case."""
        return frozenset(model.partition("/")[0] for model in self._listing)

    def compile(self, family: Family, source: str, *, trust: Iterable[str] = ()) -> ResponseTemplate:
        """A family's template with the reason for it; compiled once, since only the reason differs.

        Raises:
            TemplateError: it does not load; or it is a stranger's, refused, and not among the names in `trust`.
        """
        owner = self.owner(family)
        distribution = owner.partition(":")[0]
        trusted = distribution == OURS or not {family.name, owner, distribution}.isdisjoint(trust)
        known = self._compiled.get((family.name, trusted))
        if known is None or known[0] is not family:
            known = self._compiled[family.name, trusted] = (family, self._load(family, trusted=trusted))
        return with_source(known[1], source)

    def _load(self, family: Family, *, trusted: bool) -> ResponseTemplate:
        try:
            spec = family.spec
        except Exception as error:  # reading it is a file's affair, or a plugin's
            raise TemplateError([Problem("$", f"cannot be read: {error}")], name=family.name) from error
        if not trusted:
            examine(spec, name=family.name)
        return ResponseTemplate(spec, name=family.name)

    def record(self, family: Family, error: TemplateError) -> None:
        """A family's template does not load: its plugin is broken in this."""
        owner = self.owner(family)
        self._record(owner, self.version(owner), error)

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

    def report(self) -> list[Plugin]:
        """All plugins, used, broken and disabled, every family's template loaded to see whether it does."""
        for family in self.families.values():
            try:
                self.compile(family, "", trust=trusted_names())
            except TemplateError as error:
                self.record(family, error)
        list(self.fitting([""]))  # so that an id pattern that is none is known
        _ = self.ids
        errors: dict[str, list[str]] = {}
        for broken in self.broken:
            errors.setdefault(broken.plugin, []).append(broken.error)
        hooks = {name: self._hooks(plugin) for name, plugin in self._manager.list_name_plugin()}
        return [
            Plugin(
                name,
                self.version(name),
                "disabled" if name in self.disabled else "broken" if name in errors else "used",
                hooks.get(name, ()),
                tuple(family for family, owner in self.owners.items() if owner == name),
                tuple(errors.get(name, ())),
            )
            for name in sorted({*hooks, *errors, *self.disabled})
        ]

    def _hooks(self, plugin: object) -> tuple[str, ...]:
        return tuple(caller.name for caller in self._manager.get_hookcallers(plugin) or ())

    def _label(self, name: str) -> str:
        return f"{name} {self.version(name)}".rstrip()

    def _record(self, name: str, version: str, error: Exception) -> None:
        text = str(error) if isinstance(error, RespzooError) else f"{type(error).__name__}: {error}"
        broken = Broken(name, version, text)
        if broken not in self.broken:
            self.broken.append(broken)
            import logging  # nearly always nothing is broken

            logging.getLogger(__name__).warning("%s", broken)


@lru_cache(maxsize=1)
def loaded() -> Plugins:
    """The process's plugins, loaded when first asked for."""
    plugins = Plugins()
    plugins.load_entry_points()
    return plugins


def report() -> list[Plugin]:
    """What there is to say about each of the process's plugins, for `respzoo plugins`."""
    return loaded().report()


def load_family(name: str, *, source: str = "", trust: Iterable[str] = ()) -> ResponseTemplate:
    """The template of a family by its name."""
    import difflib

    plugins = loaded()
    family = plugins.families.get(name)
    if family is None:
        near = difflib.get_close_matches(name, plugins.families, n=3)
        hint = f"; near names: {', '.join(near)}" if near else ""
        raise UnknownModelError(f"no family {name!r}; known are {', '.join(sorted(plugins.families))}{hint}")
    why = source or f"family {name} of {plugins.owners[name]}, by its name"
    return plugins.compile(family, why, trust=trusted_names(trust))


def load_template(template: object, *, source: str, trust: Iterable[str] = ()) -> ResponseTemplate:
    """A template from whatever pins one: itself, a spec, a JSON file, a folder that holds one, a family's name.

    What the caller gives is the caller's own and is not examined; a family of a plugin is.
    """
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
        return load_family(template, source=f"{source}: family {template}", trust=trust)
    files = [path / "template.json", path / "tokenizer_config.json"] if path.is_dir() else [path]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise UnknownModelError(f"{source}: there is no {' and no '.join(map(str, files))}")
    try:
        spec: Any = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise TemplateError([Problem("$", f"not JSON: {error}")], name=str(file)) from error
    if isinstance(spec, Mapping) and "response_template" in spec:  # a whole tokenizer_config.json
        spec = cast("Mapping[str, Any]", spec)["response_template"]
    return ResponseTemplate(cast("Mapping[str, Any]", spec), name=path.stem, source=f"{source}: {file}")
