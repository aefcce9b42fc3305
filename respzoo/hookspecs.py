"""The plugin door: what a plugin may tell respzoo, and the record in which it says so.

A plugin is any object or module with functions marked `@hookimpl` and named as the hooks below, announced under the
entry point group `respzoo`. A folder of families needs no code: `respzoo.plugins.TemplateFolder` makes a plugin of it.

This module costs nothing to import: no plugin is looked for, no template compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

__all__ = ["PROJECT", "Family", "Marks", "hookimpl", "hookspec", "respzoo_find", "respzoo_templates"]

PROJECT = "respzoo"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

Spec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Marks:
    """Pieces of text that tell one family's chat template: all of `require` are in it, none of `forbid`."""

    require: tuple[str, ...]
    forbid: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.require or not all(self.require + self.forbid):
            raise ValueError("marks need at least one text to require, and no text may be empty")

    def match(self, chat_template: str) -> bool:
        return all(mark in chat_template for mark in self.require) and not any(
            mark in chat_template for mark in self.forbid
        )

    @property
    def weight(self) -> tuple[int, int]:
        """How much a match says: the number of required marks, then their length."""
        return len(self.require), sum(map(len, self.require))


@dataclass(frozen=True)
class Family:
    """Models that write alike, and the response template that reads them."""

    name: str
    """Unique over all plugins, a Python identifier in lower case: `qwen3_xml`."""
    template: Spec | Callable[[], Spec] = field(repr=False)
    """The plain template, or a function that reads it when it is first needed."""
    title: str = ""
    """For people: `Qwen3-Coder and Qwen3.5 onwards (XML calls)`."""
    models: tuple[str, ...] = ()
    """Ids on the Hub, spelled as there; compared without regard to case."""
    id_patterns: tuple[str, ...] = ()
    """Regular expressions for a whole model name: no organisation, lower case, no suffix of a quantisation."""
    model_types: tuple[str, ...] = ()
    """`model_type` of a config.json, where none but the family's models have it."""
    architectures: tuple[str, ...] = ()
    """The same for its `architectures`."""
    marks: tuple[Marks, ...] = ()
    """Ways to recognise the family's chat template; one of them is enough."""
    sources: tuple[str, ...] = ()
    """Where the facts come from: files, pages, fixtures."""
    notes: str = ""
    """What the template does not cover, and why it is as it is."""
    samples: Traversable | Path | None = field(default=None, repr=False)
    """Golden samples (JSON lines); `respzoo.testing` replays them."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise ValueError(f"family name {self.name!r} is not lower case letters, digits and underscores")

    @cached_property
    def spec(self) -> Spec:
        """The plain template, read once."""
        return self.template() if callable(self.template) else self.template

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(pattern) for pattern in self.id_patterns)

    def match_name(self, name: str) -> str | None:
        """The id pattern that fits a bare, lower-case model name."""
        return next((pattern.pattern for pattern in self._patterns if pattern.fullmatch(name)), None)

    def match_chat_template(self, chat_template: str) -> Marks | None:
        """The weightiest of the family's marks that fit a chat template."""
        found = [marks for marks in self.marks if marks.match(chat_template)]
        return max(found, key=lambda marks: marks.weight, default=None)

    def knows_chat_template(self, chat_template: str) -> bool:
        """Whether a chat template could at all be the family's: it shares a required mark (or none are stated)."""
        return not self.marks or any(mark in chat_template for marks in self.marks for mark in marks.require)


@hookspec
def respzoo_templates() -> Iterable[Family]:  # pyright: ignore[reportReturnType]  (a hook's body is its plugins)
    """Return the families that this plugin knows."""


@hookspec(firstresult=True)
def respzoo_find(model: str, chat_template: str | None, config: Mapping[str, Any]) -> Family | str | None:
    """Return the family (or its name) for a model by rules of one's own, or None to leave it to the others."""
