"""What is read, by which templates, and how it is cut; the two parsers behind one face.

The texts are the raw outputs of canitoolcall's fixtures, each with its tools and its prompt. Every template reads every
text. A template whose delimiters occur in a text reads it in every cutting; the others, for which the text is all one
region, read it whole.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from canitoolcall.fixtures import load_families, load_fixtures
from transformers.utils.chat_parsing import ResponseParser as ReferenceParser
from transformers.utils.chat_parsing.response_templates import ResponseTemplate as ReferenceTemplate
from transformers.utils.chat_parsing.response_templates import load_response_template

import respzoo
from respzoo.events import merge

TEMPLATES = Path(__file__).parents[1] / "data" / "templates"
CURATED = Path(__file__).parents[2] / "registry" / "respzoo_curated"
EARLIER_TURN = "What is the weather?"
# A text that each start_anchor_pattern of the templates matches.
ANCHORS_OF_PATTERNS = (
    "<|begin_assistant|>\nHere are my reasoning steps:\n",
    "<|response|>",
    "<|plamo:op|>assistant\n",
    "<|bom|><|assistant|>",
    "ASSISTANT:",
    "<|im_start|>assistant\n",
)


@cache
def specs() -> dict[str, dict[str, Any]]:
    """Every template by name: the drafts, the manual's, the curated ones, and those of `transformers serve`."""
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(TEMPLATES.glob("*.json"))}
    for path in sorted(CURATED.glob("*/template.json")):
        spec = json.loads(path.read_text(encoding="utf-8"))
        if "dialect" not in spec:  # the reference does not speak it
            found[f"curated_{path.parent.name}"] = spec
    for types, spec in serve_fallbacks().items():
        found[f"serve_{types[0]}"] = spec
    return found


def serve_fallbacks() -> dict[tuple[str, ...], dict[str, Any]]:
    """From the installed package. The import wants neither torch nor a server, only what transformers itself wants."""
    from transformers.cli.serving import utils

    return utils._RESPONSE_TEMPLATE_FALLBACKS  # noqa: SLF001 - there is no public name for them


@cache
def reference_template(name: str) -> ReferenceTemplate:
    return load_response_template(specs()[name])


@cache
def our_template(name: str) -> respzoo.ResponseTemplate:
    return respzoo.ResponseTemplate(specs()[name], name=name)


@dataclass(frozen=True)
class Case:
    """One text for one template. `family` and `id` say where the text comes from."""

    id: str
    family: str
    prompt: str
    text: str
    tools: Sequence[Mapping[str, Any]] = ()

    @property
    def seed(self) -> int:
        return zlib.crc32(self.id.encode())


@cache
def cases() -> tuple[Case, ...]:
    families = load_families()
    found: list[Case] = []
    for fixture in load_fixtures():
        model = families[fixture.family].reference_for(fixture.reference_model)
        prompt = fixture.generation_prompt
        if prompt is None:
            prompt = (model.default_generation_prompt if model else None) or ""
        stop = model.stop_tokens[0] if model and model.stop_tokens else ""
        earlier = f"{prompt}{EARLIER_TURN}{stop}\n"
        found.append(Case(fixture.id, fixture.family, earlier + prompt, fixture.raw_output, fixture.tools))
    return tuple(found)


@cache
def own_anchor(name: str) -> str:
    """A text that the template's anchor matches whole."""
    template = reference_template(name)
    if template.start_anchor_literals:
        return template.start_anchor_literals[0]
    for text in ANCHORS_OF_PATTERNS:
        if template.start_anchor_re.fullmatch(text):
            return text
    raise AssertionError(f"{name}: add a text that its start_anchor_pattern matches to ANCHORS_OF_PATTERNS")


def prefix_for(name: str, case: Case) -> str:
    """The case's own prompt, if the template finds its anchor there, otherwise a prompt of the template's own making."""
    if reference_template(name).start_anchor_re.search(case.prompt):
        return case.prompt
    return f"user: {EARLIER_TURN}\n{own_anchor(name)}An earlier answer.\n{own_anchor(name)}"


@cache
def delimiters(name: str) -> tuple[Any, ...]:
    fields = reference_template(name).fields.values()
    openers = [each.open_re for each in fields if each.open_re is not None]
    return (*openers, *(each.close_re for each in fields if each.close_re is not None))


def touches(name: str, text: str) -> bool:
    """Whether any delimiter of the template occurs in the text (at its very end does not count: `\\Z` always does)."""
    return any(match.start() < len(text) for each in delimiters(name) if (match := each.search(text)))


def cuttings(text: str, seed: int) -> dict[str, list[str]]:
    """The ways in which a text is fed."""
    rng = random.Random(seed)
    pieces: list[str] = []
    at = 0
    while at < len(text):
        size = rng.choice((1, 1, 2, 3, 5, 8, 21))
        pieces.append(text[at : at + size])
        at += size
    return {"whole": [text], "by character": list(text), "at random": pieces}


@dataclass
class Outcome:
    """What a parser made of one cutting."""

    message: dict[str, Any] | None
    events: list[dict[str, Any]]
    error: str | None = None
    dropped: list[dict[str, Any]] = field(default_factory=list)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Outcome):
            return NotImplemented
        mine, theirs = (
            (self.message, self.events, self.error is None),
            (
                other.message,
                other.events,
                other.error is None,
            ),
        )
        return json_like(mine) == json_like(theirs)

    def __str__(self) -> str:
        told = "\n".join(f"    {event}" for event in self.events)
        dropped = f"\n    dropped: {self.dropped}" if self.dropped else ""
        return f"    message: {self.message if self.error is None else self.error}\n{told}{dropped}"


def json_like(value: Any) -> str:
    """A form in which 1, 1.0 and True differ, NaN equals itself, and the order of keys does not count."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=repr)


def read_reference(spec: Any, prefix: str, tools: Sequence[Any], pieces: Iterable[str]) -> Outcome:
    events: list[dict[str, Any]] = []
    try:
        parser = ReferenceParser(spec, prefix=prefix, tools=list(tools))
        events += parser.initial_events
        for piece in pieces:
            events += parser.feed(piece)
        message, last = parser.finalize()
        events += last
    except Exception as error:  # noqa: BLE001 - whatever it raises, the message is lost
        return Outcome(None, merge(events), f"{type(error).__name__}: {error}")
    return Outcome(message, merge(events))


def read_ours(template: Any, prefix: str, tools: Sequence[Any], pieces: Iterable[str]) -> Outcome:
    """P7: nothing that a model wrote makes this raise."""
    parser = respzoo.ResponseParser(template, prefix=prefix, tools=list(tools))
    events = list(parser.initial_events)
    for piece in pieces:
        events += parser.feed(piece)
    message, last = parser.finalize()
    events += last
    return Outcome(message, merge(events), None, list(parser.dropped))


def trivial_space(text: str) -> str:
    return re.sub(r"\s+", "", text)


class Tally:
    """How many readings agreed, and how many differed, by the name of the difference."""

    def __init__(self) -> None:
        self.readings: Counter[str] = Counter()
        self.names: Counter[str] = Counter()
        self.first: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.readings)

    def add(self, what: str, names: Iterable[str], example: str) -> None:
        named = sorted(set(names))
        self.readings[what] += 1
        if named:
            self.readings[f"{what}, differing"] += 1
        for name in named:
            self.names[name] += 1
            self.first.setdefault(name, example)

    def lines(self) -> Iterator[str]:
        for what in sorted(each for each in self.readings if "," not in each):
            differing = self.readings[f"{what}, differing"]
            yield f"{what}: {self.readings[what]:,} readings, {differing:,} of them differ, each for named reasons"
        for name, count in sorted(self.names.items()):
            yield f"  {name}: {count:,} (first: {self.first[name]})"


TALLY = Tally()
