"""The search for a model's template: rung by rung, each leaving a line in the trail.

    pinned        template= of the caller, or RESPZOO_TEMPLATE
    plugin        a plugin's own rules (respzoo_find)
    checkpoint    `response_template` in the tokenizer config, if it loads and may be trusted (trust.py)
    exact id      a family lists the model
    marks         a family's marks are in the chat template; the most specific win, and a tie ends the search
    same model    a listed model under another organisation, or quantised
    base model    what the model card or the config names as its origin, by the rungs above; its own origin in turn
    id pattern    a family's pattern fits the name
    model type    `model_type` or `architectures` of the config, where only one family has them

A chat template at hand is stronger than any name: where its marks say another family than the name does, the marks win,
and where it shares nothing with a family, a mere likeness is not believed. An exact id is answered without touching the
Hub (`prefer="hub"` asks all the same); for others the Hub is asked, briefly, and whatever it answers or fails to answer
the families are still there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from respzoo import hub
from respzoo.errors import Problem, TemplateError, UnknownModelError
from respzoo.hookspecs import Family
from respzoo.names import bare_forms, is_chat
from respzoo.plugins import Plugins, load_template
from respzoo.template import ResponseTemplate
from respzoo.trust import examine, trusted_names

__all__ = ["PIN", "Finding", "Prefer", "Rung", "Search"]

PIN = "RESPZOO_TEMPLATE"
"""The environment variable that pins one template for a whole process: a path, or a family's name."""

Prefer = Literal["curated", "hub"]

HOW_TO_ADD = (
    "to give it one: respzoo.get(model, template=…), or RESPZOO_TEMPLATE=path for a server; `response_template` in the "
    "checkpoint's tokenizer_config.json; or a family folder in a plugin (registry/README.md: five minutes)"
)

_MOST_BASES = 4  # models that are looked at for being another's base
_DEEPEST = 3  # how far a base's own bases are followed
_LONGEST_PATH = 1_024


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


class _Undecided(Exception):
    """Two families are equally likely, and any choice would be a guess."""


@dataclass
class Search:
    """One search, and its trail. The options are those of `zoo.get`."""

    model: Any
    plugins: Plugins
    tokenizer: object = None
    chat_template: str | None = None
    template: object = None
    prefer: Prefer | None = None
    trust: str | Iterable[str] | None = None
    revision: str | None = None
    token: str | bool | None = None
    local_files_only: bool = False
    cache_dir: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.prefer not in (None, "curated", "hub"):
            raise ValueError(f"prefer must be 'curated' or 'hub', not {self.prefer!r}")
        self.trail: list[Rung] = []
        self.trusted = trusted_names(self.trust)
        self.folder: Path | None = None
        self.file: Path | None = None
        self.name: str = ""
        self._until: float | None = None
        if isinstance(self.model, str | os.PathLike):
            self._take(os.fspath(self.model))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        elif hasattr(self.model, "chat_template") or hasattr(self.model, "name_or_path"):
            self.tokenizer = self.tokenizer or self.model
            self._take(getattr(self.model, "name_or_path", "") or "", folder=False)
        else:
            raise TypeError(
                "model must be an id, a folder, a tokenizer, a chat template or its file, "
                f"not {type(self.model).__name__}"
            )
        self.names = [self.name]

    def _take(self, text: str, *, folder: bool = True) -> None:
        """An id, a path or a chat template."""
        if "{{" in text or "{%" in text:
            self.chat_template = self.chat_template or text
            return
        path = Path(text) if text and len(text) < _LONGEST_PATH and "\n" not in text else None
        if path is not None and path.is_dir():
            self.folder = path if folder else None
            self.name = hub.name_of_folder(path)
        elif path is not None and path.is_file():
            self.file = path
        else:
            self.name = text

    def run(self) -> Finding:
        try:
            answer = next((answer for answer in self._rungs() if answer is not None), None)
        except _Undecided:
            answer = None
        near = () if answer is not None else tuple(self._near())
        shown = self.folder or self.file or self.name or "the chat template"
        return Finding(str(shown), answer, tuple(self.trail), near)

    def _rungs(self) -> Iterator[ResponseTemplate | None]:
        """The ladder; a rung that does not hold gives None."""
        yield self._pinned()
        here = self._at_hand()
        yield self._by_plugin(here)
        curated_first = self.prefer == "curated"
        if not curated_first:
            yield self._by_checkpoint(here)
        there: hub.Checkpoint | None = None
        unsettled = not here.chat_template and self._listed is None
        if not self.folder and not self.file and (self.prefer == "hub" or unsettled):
            there = self._ask_hub(self.name)
        if there is not None:
            here.chat_template = here.chat_template or there.chat_template
            here.config = here.config or there.config
            if there.found:
                yield self._by_plugin(here)
            if not curated_first:
                yield self._by_checkpoint(there)
        yield self._by_exact_id(here.chat_template)
        yield self._by_marks(here.chat_template)
        yield self._by_same_name(here.chat_template)
        yield self._by_base(here, there)
        yield self._by_pattern(here.chat_template)
        yield self._by_type(here)
        if curated_first:
            yield self._by_checkpoint(here)
            if there is not None:
                yield self._by_checkpoint(there)

    def _note(self, name: str, text: str) -> None:
        self.trail.append(Rung(name, text))

    # what there is to look at

    def _at_hand(self) -> hub.Checkpoint:
        """What the caller gave and what lies in the folder; no network."""
        checkpoint = hub.Checkpoint("the caller")
        if self.folder is not None:
            checkpoint = hub.read_folder(self.folder)
        elif self.file is not None:
            checkpoint = hub.read_file(self.file)
        if self.tokenizer is not None:
            given = hub.read_tokenizer(self.tokenizer)
            checkpoint.where = given.where
            checkpoint.response_template = given.response_template or checkpoint.response_template
            checkpoint.chat_template = given.chat_template or checkpoint.chat_template
        checkpoint.chat_template = self.chat_template or checkpoint.chat_template
        if checkpoint.outcomes:
            self._note("file" if self.folder is None else "folder", str(checkpoint))
        if self.folder is not None and isinstance(origin := checkpoint.config.get("_name_or_path"), str) and origin:
            self.names.append(origin)
        return checkpoint

    def _ask_hub(self, model: str, files: tuple[str, ...] = hub.FILES) -> hub.Checkpoint | None:
        """What the Hub says; all that one search asks it has one deadline."""
        if not hub.is_hub_id(model):
            self._note("Hub", f"not asked: {model!r} is neither a folder nor an id" if model else "no id")
            return None
        if self._until is None:
            self._until = time.monotonic() + hub.TIMEOUT
        left = self._until - time.monotonic()
        if left <= 0:
            self._note("Hub", f"not asked for {model}: {hub.TIMEOUT:g} s are over")
            return None
        checkpoint = hub.read_hub(
            model,
            revision=self.revision if model == self.name else None,
            token=self.token,
            local_files_only=self.local_files_only,
            cache_dir=None if self.cache_dir is None else os.fspath(self.cache_dir),
            timeout=left,
            files=files,
        )
        self._note("Hub", f"{checkpoint}" if model == self.name else f"{model}: {checkpoint}")
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
        source = "pinned by " + (PIN if self.template is None else "template=")
        answer = load_template(pin, source=source, trust=self.trusted)
        self._note("pinned", answer.source)
        return answer

    def _by_plugin(self, here: hub.Checkpoint) -> ResponseTemplate | None:
        answer = self.plugins.find(self.name, here.chat_template, here.config)
        if answer is None:
            return None
        family, plugin = answer
        return self._give(family, "plugin", f"respzoo_find of {plugin} answered {family.name}")

    def _by_checkpoint(self, checkpoint: hub.Checkpoint) -> ResponseTemplate | None:
        spec = checkpoint.response_template
        if spec is None:
            return None
        source = f"response_template of {checkpoint.where}"
        source += f" ({self.name})" if self.folder is None and self.name else ""
        try:
            if self.trusted.isdisjoint({self.name, str(self.folder or self.file or self.name)}):
                examine(spec, name=self.name)
            answer = ResponseTemplate(spec, name=self.name, source=source)
        except TemplateError as error:
            hint = f"; trust={self.name!r} takes it all the same" if _is_refused(error.problems) else ""
            self._note("checkpoint", f"{source} does not load: {error}{hint}")
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
        if len(families) > 1:
            names = " and ".join(sorted(family.name for family in families))
            self._note("marks", f"the chat template fits {names} alike; template= or RESPZOO_TEMPLATE settles it")
            raise _Undecided
        if not families:
            self._note("marks", "no family knows the chat template")
            return None
        family = families[0]
        marks = family.match_chat_template(chat_template)
        said = ", ".join(map(repr, marks.require)) if marks else ""
        text = f"{self._label(family)}: the chat template has {said}{self._despite(family)}"
        return self._give(family, "marks", text)

    def _despite(self, family: Family) -> str:
        """What the name says, where that is another family than the chat template's."""
        if self._listed is not None:
            other, why = self._listed[0], f"{self._listed[0].name} lists {self._listed[1]}"
        elif len(found := self._same_name(self._bare) or self._fitting(self._bare)) == 1:
            other, why = next(iter(found.values()))
            why = f"by its name it would be {other.name} ({why})"
        else:
            return ""
        return "" if other is family else f", though {why}"

    def _same_name(self, bare: Iterable[str]) -> dict[str, tuple[Family, str]]:
        listed = self.plugins.bare
        same = [pair for name in sorted(bare) for pair in listed.get(name, ())]
        return {family.name: (family, f"another name of {model}") for family, model in same}

    def _fitting(self, bare: Iterable[str]) -> dict[str, tuple[Family, str]]:
        fitting = self.plugins.fitting(list(filter(is_chat, bare)))
        return {family.name: (family, f"the name fits {pattern}") for family, pattern in fitting}

    def _by_same_name(self, chat_template: str | None) -> ResponseTemplate | None:
        return self._by_likeness("same model", self._same_name(self._bare), chat_template)

    def _by_pattern(self, chat_template: str | None) -> ResponseTemplate | None:
        return self._by_likeness("id pattern", self._fitting(self._bare), chat_template)

    def _by_base(self, here: hub.Checkpoint, asked: hub.Checkpoint | None) -> ResponseTemplate | None:
        """By what it was made from: breadth first, each model once, no deeper than `_DEEPEST`."""
        if not all(map(is_chat, self._bare)):
            return None
        waiting = [(base, 1) for base in self._bases(here, asked)]
        seen = {name.lower() for name in self.names}
        found: dict[str, tuple[Family, str]] = {}
        tried: list[str] = []
        while waiting and len(tried) < _MOST_BASES:
            base, depth = waiting.pop(0)
            if base.lower() in seen:
                continue
            seen.add(base.lower())
            tried.append(base)
            if (family := self.plugins.listed(base)) is not None:
                found.setdefault(family.name, (family, f"its base model is {base}"))
                continue
            there = self._ask_hub(base, (*hub.FILES, hub.CARD))
            template = there.chat_template if there is not None else None
            marked = self._marked(template) if template else []
            bare = self._forms([base])
            if len(marked) == 1:
                found.setdefault(marked[0].name, (marked[0], f"the chat template of its base model {base}"))
            elif not marked and (like := self._same_name(bare)):
                found = {
                    name: (family, f"its base model {base}: {why}") for name, (family, why) in like.items()
                } | found
            elif there is not None and there.base_models and depth < _DEEPEST:
                waiting += [(one, depth + 1) for one in there.base_models]
            elif not marked:
                like = self._fitting(bare)
                found = {
                    name: (family, f"its base model {base}: {why}") for name, (family, why) in like.items()
                } | found
        if not tried:
            self._note("base model", "none is named")
            return None
        return self._by_likeness("base model", found, here.chat_template, ", ".join(tried))

    def _bases(self, here: hub.Checkpoint, asked: hub.Checkpoint | None) -> tuple[str, ...]:
        """The models named as its base; the model card is read now, unless the Hub has just failed to answer."""
        if self.folder is not None:
            card = hub.read_folder(self.folder, (hub.CARD,))
        elif self.name and (asked is None or asked.answered):
            card = self._ask_hub(self.name, (hub.CARD,))
        else:
            card = None
        here.card = card.card if card is not None else ()
        return here.base_models

    def _by_type(self, here: hub.Checkpoint) -> ResponseTemplate | None:
        """By the config, where families say that none but theirs have such a one."""
        kind, architectures = here.config.get("model_type"), here.config.get("architectures")
        architecture = (
            cast("list[Any]", architectures)[0] if isinstance(architectures, list) and architectures else None
        )
        if not all(map(is_chat, self._bare)):
            return None
        families = self.plugins.families.values()
        found = {one.name: (one, f"its model_type is {kind}") for one in families if kind in one.model_types}
        found |= {one.name: (one, f"it is a {architecture}") for one in families if architecture in one.architectures}
        return self._by_likeness("model type", found, here.chat_template)

    def _by_likeness(
        self, rung: str, found: Mapping[str, tuple[Family, str]], chat_template: str | None, tried: str = ""
    ) -> ResponseTemplate | None:
        if len(found) != 1:
            nothing = f"no family knows {tried}" if tried else "none"
            self._note(rung, f"{' and '.join(sorted(found))} alike" if found else nothing)
            return None
        family, why = next(iter(found.values()))
        if chat_template and not family.knows_chat_template(chat_template):
            self._note(rung, f"{why}, but the chat template has none of the marks of {family.name}")
            return None
        return self._give(family, rung, f"{self._label(family)}: {why}")

    @cached_property
    def _bare(self) -> set[str]:
        return self._forms(self.names)

    def _forms(self, names: Iterable[str]) -> set[str]:
        return bare_forms(names, self.plugins.organisations)

    def _give(self, family: Family, rung: str, source: str) -> ResponseTemplate | None:
        """A family's template. None if it does not load, which is its plugin's fault: the search goes on."""
        try:
            answer = self.plugins.compile(family, source, trust=self.trusted)
        except TemplateError as error:
            self.plugins.record(family, error)
            self._note(rung, f"{source}; but its template does not load: {error}")
            return None
        self._note(rung, source)
        return answer

    def _label(self, family: Family) -> str:
        return f"family {family.name} of {self.plugins.owner(family) or 'a plugin'}"

    def _near(self) -> list[str]:
        import difflib

        names = {name: pairs[0][1] for name, pairs in self.plugins.bare.items()}
        found: list[str] = []
        for name in sorted(self._bare):
            like = [near for near in names if near[:2] == name[:2]]  # comparing all takes long
            found += difflib.get_close_matches(name, like, n=5)
        return list(dict.fromkeys(names[near] for near in found))[:5]


def _is_refused(problems: Iterable[Problem]) -> bool:
    return any("untrusted" in problem.message for problem in problems)
