"""From a model to its response template, with the reason why.

The search is a ladder; the first rung that holds gives the answer, and every rung tried leaves a line in the trail:

    pinned        template= of the caller, or RESPZOO_TEMPLATE
    plugin        a plugin's own rules (respzoo_find)
    checkpoint    `response_template` in the tokenizer config, if it loads
    exact id      a family lists the model
    marks         a family's marks are in the chat template
    same model    a listed model under another organisation, or quantised
    id pattern    a family's pattern fits the name

A chat template at hand is stronger than any name: where its marks say another family than the name does, the marks win,
and where it shares nothing with a family, a mere pattern is not believed. An exact id is answered without touching the
Hub (`prefer="hub"` asks all the same); for others the Hub is asked, briefly, and whatever it answers or fails to answer
the families are still there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from respzoo import hub
from respzoo.errors import TemplateError, UnknownModelError
from respzoo.hookspecs import Family
from respzoo.plugins import Plugins, load_template, loaded
from respzoo.template import ResponseTemplate

__all__ = ["PIN", "Finding", "Rung", "find", "forget", "get", "load_template"]

PIN = "RESPZOO_TEMPLATE"
"""The environment variable that pins one template for a whole process: a path, or a family's name."""

Prefer = Literal["curated", "hub"]

HOW_TO_ADD = (
    "to give it one: respzoo.get(model, template=…), or RESPZOO_TEMPLATE=path for a server; `response_template` in the "
    "checkpoint's tokenizer_config.json; or a family folder in a plugin (registry/README.md: five minutes)"
)


class Rung(NamedTuple):
    """One step of the search and what it found."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


@dataclass(frozen=True)
class Finding:
    """The outcome of a search: the template, if there is one, and every rung that was tried."""

    model: str
    template: ResponseTemplate | None
    trail: tuple[Rung, ...]
    near: tuple[str, ...] = ()

    def error(self) -> UnknownModelError:
        lines = [f"no response template is known for {self.model!r}", *(f"  {rung}" for rung in self.trail)]
        if self.near:
            lines.append(f"near names: {', '.join(self.near)}")
        return UnknownModelError("\n".join([*lines, HOW_TO_ADD]))


_answers: dict[tuple[object, ...], ResponseTemplate] = {}


def get(
    model: object,
    *,
    tokenizer: object = None,
    chat_template: str | None = None,
    template: object = None,
    prefer: Prefer | None = None,
    revision: str | None = None,
    token: str | bool | None = None,
    local_files_only: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
) -> ResponseTemplate:
    """The response template of a model: an id on the Hub, a local folder, or a tokenizer object.

    `tokenizer` and `chat_template` add what the caller has at hand; `template` (a template, a spec, a path or a
    family's name) settles it. `prefer="hub"` lets the checkpoint's own template go before the families even for ids
    that they list, `prefer="curated"` lets the families go first. The rest is passed to huggingface_hub. Raises
    UnknownModelError.
    """
    key: tuple[object, ...] | None = None
    if isinstance(model, str) and tokenizer is None and template is None:
        key = (model, chat_template, prefer, revision, token, local_files_only, cache_dir, os.environ.get(PIN))
        if (answer := _answers.get(key)) is not None:
            return answer
    search = _Search(
        model, tokenizer, chat_template, template, prefer, revision, token, local_files_only, cache_dir, loaded()
    )
    finding = search.run()
    if finding.template is None:
        raise finding.error()
    if key is not None and search.folder is None:  # a folder's files may change under our feet
        _answers[key] = finding.template
    return finding.template


def find(model: object, **options: Any) -> Finding:
    """As `get`, never from memory and never raising for an unknown model: the answer with the whole trail."""
    return _Search(model, plugins=loaded(), **options).run()


def forget() -> None:
    """Forget all answers (the plugins stay loaded)."""
    _answers.clear()


@dataclass
class _Search:
    """One search, and its trail."""

    model: Any
    tokenizer: object = None
    chat_template: str | None = None
    template: object = None
    prefer: Prefer | None = None
    revision: str | None = None
    token: str | bool | None = None
    local_files_only: bool = False
    cache_dir: str | os.PathLike[str] | None = None
    plugins: Plugins = field(default_factory=loaded)

    def __post_init__(self) -> None:
        if self.prefer not in (None, "curated", "hub"):
            raise ValueError(f"prefer must be 'curated' or 'hub', not {self.prefer!r}")
        self.trail: list[Rung] = []
        self.folder: Path | None = None
        if isinstance(self.model, str | os.PathLike):
            self.name: str = os.fspath(self.model)  # pyright: ignore[reportUnknownMemberType]  (PathLike of what)
            self.folder = Path(self.name) if self.name and Path(self.name).is_dir() else None
        elif hasattr(self.model, "chat_template") or hasattr(self.model, "name_or_path"):
            self.tokenizer = self.tokenizer or self.model
            self.name = getattr(self.model, "name_or_path", "") or ""
        else:
            raise TypeError(f"model must be an id, a folder or a tokenizer, not {type(self.model).__name__}")
        if self.name and Path(self.name).is_dir():
            self.name = hub.name_of_folder(Path(self.name))
        self.names = [self.name]

    def run(self) -> Finding:
        answer = next((answer for answer in self._rungs() if answer is not None), None)
        near = () if answer is not None else tuple(self._near())
        return Finding(str(self.folder or self.name), answer, tuple(self.trail), near)

    def _rungs(self) -> Iterator[ResponseTemplate | None]:
        """The ladder; a rung that does not hold gives None."""
        yield self._pinned()
        here = self._at_hand()
        yield self._by_plugin(here)
        ask_hub = self.folder is None and (self.prefer == "hub" or (not here.chat_template and self._listed is None))
        curated_first = self.prefer == "curated"
        if not curated_first:
            yield self._by_checkpoint(here)
        there: hub.Checkpoint | None = None
        if ask_hub and (there := self._ask_hub()) is not None:
            here.chat_template = here.chat_template or there.chat_template
            here.config = here.config or there.config
            if there.found:
                yield self._by_plugin(here)
            if not curated_first:
                yield self._by_checkpoint(there)
        yield self._by_exact_id(here.chat_template)
        yield self._by_marks(here.chat_template)
        yield self._by_same_name(here.chat_template)
        yield self._by_pattern(here.chat_template)
        if curated_first:
            yield self._by_checkpoint(here)
            if there is not None:
                yield self._by_checkpoint(there)

    def _note(self, name: str, text: str) -> None:
        self.trail.append(Rung(name, text))

    # what there is to look at

    def _at_hand(self) -> hub.Checkpoint:
        """What the caller gave and what lies in the folder; no network."""
        checkpoint = hub.read_folder(self.folder) if self.folder is not None else hub.Checkpoint("the caller")
        if self.tokenizer is not None:
            given = hub.read_tokenizer(self.tokenizer)
            checkpoint.where = given.where
            checkpoint.response_template = given.response_template or checkpoint.response_template
            checkpoint.chat_template = given.chat_template or checkpoint.chat_template
        checkpoint.chat_template = self.chat_template or checkpoint.chat_template
        if self.folder is not None:
            self._note("folder", str(checkpoint))
            if isinstance(origin := checkpoint.config.get("_name_or_path"), str) and origin:
                self.names.append(origin)
        return checkpoint

    def _ask_hub(self) -> hub.Checkpoint | None:
        if not hub.is_hub_id(self.name):
            self._note("Hub", f"not asked: {self.name!r} is neither a folder nor an id" if self.name else "no id")
            return None
        checkpoint = hub.read_hub(
            self.name,
            revision=self.revision,
            token=self.token,
            local_files_only=self.local_files_only,
            cache_dir=None if self.cache_dir is None else os.fspath(self.cache_dir),
        )
        self._note("Hub", str(checkpoint))
        return checkpoint

    @cached_property
    def _listed(self) -> tuple[Family, str] | None:
        """The family that lists one of the model's names, and that name."""
        return next(((family, name) for name in self.names if name and (family := self.plugins.listed(name))), None)

    # the rungs

    def _pinned(self) -> ResponseTemplate | None:
        pin = self.template if self.template is not None else os.environ.get(PIN)
        if not pin:
            return None
        answer = load_template(pin, source="pinned by " + (PIN if self.template is None else "template="))
        self._note("pinned", answer.source)
        return answer

    def _by_plugin(self, here: hub.Checkpoint) -> ResponseTemplate | None:
        answer = self.plugins.find(self.name, here.chat_template, here.config)
        if answer is None:
            return None
        family, plugin = answer
        return self._give(family, "plugin", f"respzoo_find of {plugin} answered {family.name}")

    def _by_checkpoint(self, checkpoint: hub.Checkpoint) -> ResponseTemplate | None:
        if checkpoint.response_template is None:
            return None
        source = f"response_template of {checkpoint.where}" + (f" ({self.name})" if self.folder is None else "")
        try:
            answer = ResponseTemplate(checkpoint.response_template, name=self.name, source=source)
        except TemplateError as error:
            self._note("checkpoint", f"{source} does not load: {error}")
            return None
        self._note("checkpoint", source)
        return answer

    def _by_exact_id(self, chat_template: str | None) -> ResponseTemplate | None:
        if self._listed is None:
            self._note("exact id", "no family lists it")
            return None
        family, name = self._listed
        if chat_template and not family.match_chat_template(chat_template) and (others := self._marked(chat_template)):
            self._note("exact id", f"{family.name} lists {name}, but the chat template is of {others[0].name}")
            return None
        return self._give(family, "exact id", f"{self._label(family)} lists {name}")

    def _marked(self, chat_template: str) -> list[Family]:
        """The families whose marks say most about a chat template: none, one, or several that tie."""
        families = self.plugins.families.values()
        found = [(marks.weight, family) for family in families if (marks := family.match_chat_template(chat_template))]
        best = max((weight for weight, _ in found), default=None)
        return [family for weight, family in found if weight == best]

    def _by_marks(self, chat_template: str | None) -> ResponseTemplate | None:
        if not chat_template:
            self._note("marks", "no chat template at hand")
            return None
        families = self._marked(chat_template)
        if len(families) != 1:
            names = " and ".join(sorted(family.name for family in families))
            self._note("marks", f"the chat template fits {names} alike" if families else "no family knows it")
            return None
        marks = families[0].match_chat_template(chat_template)
        said = ", ".join(map(repr, marks.require)) if marks else ""
        despite = f", though {self._listed[0].name} lists {self._listed[1]}" if self._listed else ""
        text = f"{self._label(families[0])}: the chat template has {said}{despite}"
        return self._give(families[0], "marks", text)

    def _by_same_name(self, chat_template: str | None) -> ResponseTemplate | None:
        families = self.plugins.families.values()
        same = [(family, model) for family in families for model in family.models if hub.bare_name(model) in self._bare]
        found = {family.name: (family, f"another name of {model}") for family, model in same}
        return self._by_name("same model", found, chat_template)

    def _by_pattern(self, chat_template: str | None) -> ResponseTemplate | None:
        fitting = self.plugins.fitting(self._bare)
        found = {family.name: (family, f"the name fits {pattern}") for family, pattern in fitting}
        return self._by_name("id pattern", found, chat_template)

    def _by_name(
        self, rung: str, found: Mapping[str, tuple[Family, str]], chat_template: str | None
    ) -> ResponseTemplate | None:
        if len(found) != 1:
            self._note(rung, f"{' and '.join(sorted(found))} alike" if found else "none")
            return None
        family, why = next(iter(found.values()))
        if chat_template and not family.knows_chat_template(chat_template):
            self._note(rung, f"{why}, but the chat template has none of the marks of {family.name}")
            return None
        return self._give(family, rung, f"{self._label(family)}: {why}")

    @cached_property
    def _bare(self) -> set[str]:
        """The bare forms of the model's names; `org_name` is how some re-upload with the first owner in the name."""
        names = {hub.bare_name(name) for name in self.names if name}
        return names | {name.partition("_")[2] for name in names if "_" in name}

    def _give(self, family: Family, rung: str, source: str) -> ResponseTemplate:
        self._note(rung, source)
        return self.plugins.compile(family, source)

    def _label(self, family: Family) -> str:
        return f"family {family.name} of {self.plugins.owner(family) or 'a plugin'}"

    def _near(self) -> list[str]:
        import difflib

        names = {hub.bare_name(model): model for family in self.plugins.families.values() for model in family.models}
        found = [near for name in sorted(self._bare) for near in difflib.get_close_matches(name, names, n=5)]
        return list(dict.fromkeys(names[near] for near in found))[:5]
