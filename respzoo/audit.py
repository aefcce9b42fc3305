"""What `respzoo check` looks at: a family's template, marks and samples, and what may go wrong with each.

Every check yields remarks: a fault (the family should not be used so), a warning (read it; it may be meant) or a note
(something could not be looked at, or is as expected). Each says what to do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from respzoo.errors import RespzooError, TemplateError
from respzoo.export import DIALECTS, ExportError, export
from respzoo.fields import REASONING
from respzoo.hookspecs import Family
from respzoo.names import bare_name
from respzoo.pieces import Trace
from respzoo.plugins import Plugins
from respzoo.prompts import prompt_after_a_tool_result
from respzoo.template import ResponseTemplate
from respzoo.testing import Sample, check_family, load_samples
from respzoo.trace import trace
from respzoo.trust import examine

__all__ = ["Remark", "audit"]

DAMAGED = {"truncated", "malformed"}
JUNK = "Zq7x"
"""A word that no model writes: wherever it is put, it must come back."""
MOST_SAMPLES = 5
"""How many samples get junk put into them."""


@dataclass(frozen=True)
class Remark:
    """One thing that a check found."""

    level: Literal["fault", "warning", "note"]
    check: str
    where: str
    text: str
    advice: str = ""


def audit(family: Family, plugins: Plugins, *, chat_template: str | None = None) -> list[Remark]:
    """Everything there is to say about a family, in the order of the checks."""
    try:
        spec = json.loads(json.dumps(family.spec))
        template = ResponseTemplate(spec, name=family.name)
    except TemplateError as error:
        return [Remark("fault", "loads", one.path, one.message, "mend template.json there") for one in error.problems]
    except (OSError, ValueError) as error:
        return [Remark("fault", "loads", "template.json", str(error), "it must be one JSON object")]
    samples = load_samples(family.samples) if family.samples is not None else []
    good = [one for one in samples if not DAMAGED & set(one.record.get("tags", ()))][:MOST_SAMPLES]
    return [
        *_in_transformers(spec, family),
        *_patterns(spec),
        *_samples(family, samples),
        *_marks(family, plugins),
        *_names(family, plugins),
        *_anchor(template, samples, chat_template),
        *_closers(template),
        *_lost(template, good),
    ]


def _in_transformers(spec: Mapping[str, Any], family: Family) -> Iterator[Remark]:
    if "dialect" in spec:
        text = 'it says "dialect": "respzoo", which transformers refuses, as it must'
        yield Remark("note", "transformers", "$.dialect", text, "`respzoo export` says it in plain keys, or why not")
    else:
        try:
            from transformers.utils.chat_parsing.response_templates import (
                load_response_template,  # pyright: ignore[reportUnknownVariableType]  (its own hint is a bare dict)
            )
        except ImportError:
            yield Remark("note", "transformers", "", "not looked at: transformers >= 5.20 is not installed")
            return
        try:
            load_response_template(dict(spec))
        except Exception as error:  # whatever it finds
            advice = "it loads here and not there: please report this"
            yield Remark("fault", "transformers", "", f"transformers refuses it: {error}", advice)
    told: dict[str, list[str]] = {}
    for dialect in DIALECTS:
        try:
            losses = export(spec, dialect, name=family.name).losses
        except ExportError as error:
            told.setdefault("refused: " + "; ".join(map(str, error.problems)), []).append(dialect)
        else:
            for loss in losses:
                told.setdefault(str(loss), []).append(dialect)
    for text, dialects in told.items():
        yield Remark("note", "export", ", ".join(dialects), text)


def _patterns(spec: Mapping[str, Any]) -> Iterator[Remark]:
    advice = "write it so that no text can be read in two ways; plain delimiters need no lookarounds"
    try:
        examine(spec)
    except TemplateError as error:
        for one in error.problems:
            yield Remark("fault", "patterns", one.path, one.message, advice)


def _samples(family: Family, samples: list[Sample]) -> Iterator[Remark]:
    if not samples:
        yield Remark("warning", "samples", "samples.jsonl", "there is none", "registry/README.md says what it holds")
        return
    *faults, command = check_family(family) or [""]
    by_place: dict[str, list[str]] = {}
    for line in faults:
        where, _, text = line.partition(": ")
        by_place.setdefault(where, []).append(text)
    for where, (first, *others) in by_place.items():
        more = f" (and {len(others)} more)" if others else ""
        yield Remark("fault", "samples", where, first + more, command)
    damaged = [one for one in samples if DAMAGED & set(one.record.get("tags", ()))]
    if len(samples) < 12 or len(damaged) < 6:
        text = f"{len(samples)} samples, {len(damaged)} of them damaged"
        yield Remark("warning", "samples", "samples.jsonl", text, "the zoo asks for 12, 6 of them damaged")


def _marks(family: Family, plugins: Plugins) -> Iterator[Remark]:
    """Whether what a chat template of this family must hold would be taken for another's, or for both."""
    if not family.marks:
        advice = "add a [[chat_template]] table: marks find fine-tunes and renamed folders"
        yield Remark("warning", "marks", "family.toml", "no marks", advice)
    for number, marks in enumerate(family.marks):
        text = "\n".join(marks.require)
        for other in plugins.families.values():
            if other.name == family.name or (found := other.match_chat_template(text)) is None:
                continue
            where = f"chat_template[{number}]"
            if found.weight >= marks.weight:
                say = f"whatever has {', '.join(map(repr, marks.require))} fits {other.name} as well or better"
                advice = f"require more here, or let {other.name} forbid one of these"
                yield Remark("fault", "marks", where, say, advice)


def _names(family: Family, plugins: Plugins) -> Iterator[Remark]:
    others = [one for one in plugins.families.values() if one.name != family.name]
    try:
        for other in others:
            for model in {model.lower() for model in family.models} & {model.lower() for model in other.models}:
                yield Remark("fault", "ids", model, f"{other.name} lists it, too", "take it out of one of them")
            for model in other.models:
                if pattern := family.match_name(bare_name(model)):
                    text = f"the pattern {pattern!r} fits {model}, which is {other.name}'s"
                    yield Remark("warning", "ids", "id_patterns", text, "make the pattern narrower")
    except re.error as error:
        yield Remark("fault", "ids", "id_patterns", f"no regular expression: {error}", "mend it")


def _anchor(template: ResponseTemplate, samples: list[Sample], chat_template: str | None) -> Iterator[Remark]:
    advice = "the anchor is what every prompt ends with, after a tool's result, too: make start_anchor a list"
    for sample in samples:
        prompt = sample.record.get("generation_prompt")
        if prompt and template.anchor.search(prompt) is None:
            yield Remark("warning", "anchor", sample.where, f"{sample.id}: its prompt {prompt!r} has no anchor", advice)
    if chat_template is None:
        return
    try:
        prompt, result = prompt_after_a_tool_result(chat_template)
    except RespzooError as error:
        yield Remark("note", "anchor", "chat template", str(error))
        return
    if template.anchor.search(prompt) is None:
        yield Remark(
            "fault", "anchor", "chat template", f"no anchor in the prompt, which ends {prompt[-80:]!r}", advice
        )
    elif result in template.after_anchor(prompt):
        text = f"the last anchor stands before the tool's result: {template.after_anchor(prompt)[:200]!r}"
        yield Remark("fault", "anchor", "chat template", text, advice)


def _closers(template: ResponseTemplate) -> Iterator[Remark]:
    """Whether a closer without its opener, as some prompts leave one dangling, becomes part of the answer."""
    for field in template.fields.values():
        if field.key != REASONING or field.open is None or field.close is None or field.initial:
            continue
        for closer in field.close.literals or field.close.markers():
            message = template.parse(f"{closer}Answer.", prefix="", on_malformed="content")
            if closer in str(message.get("content", "")):
                text = f"{closer!r} without its opener stays in the answer"
                advice = "where a prompt ends with it, or models forget the opener, let `content` close with it"
                yield Remark("note", "closers", f"$.fields.{field.name}", text, advice)


def _lost(template: ResponseTemplate, samples: list[Sample]) -> Iterator[Remark]:
    """Put a word at every edge of every piece, and between the tags of structured ones: it must come back."""
    lost: dict[tuple[str, bool], list[str]] = {}
    for sample in samples:
        prefix = sample.prefix(template.spec)
        for at, what, inside in _edges(trace(template, sample.text, prefix=prefix, tools=sample.tools)):
            text = f"{sample.text[:at]} {JUNK} {sample.text[at:]}"
            parser = template.parser(prefix=prefix, tools=sample.tools)
            parser.feed(text)
            message, _ = parser.finalize()
            raws = [one["raw"] for one in parser.dropped]
            if JUNK not in json.dumps(message) and not any(JUNK in raw for raw in raws):
                lost.setdefault((what, inside), []).append(f"{sample.id}: {text[max(0, at - 30) : at + 40]!r}")
    for (what, inside), places in lost.items():
        text = f"a word {what} is lost in {len(places)} samples: {places[0]}"
        if inside:
            advice = "it is in a call that is read all the same; say so in the notes, or use a stricter content parser"
            yield Remark("warning", "lost text", "", text, advice)
        else:
            advice = "text that nobody takes must be content: let the delimiters swallow less"
            yield Remark("fault", "lost text", "", text, advice)


def _edges(found: Trace) -> Iterator[tuple[int, str, bool]]:
    """Places in the output, what they are, and whether they are inside a region."""
    for piece in found.pieces:
        start, end = piece.start - found.prompt, piece.end - found.prompt
        if start < 0:
            continue
        if piece.kind == "text":
            text = found.text[piece.start : piece.end]
            tags = [at + 1 for at, one in enumerate(text) if one == ">" and text[at + 1 : at + 2] in ("\n", "<")]
            yield from ((start + at, f"between tags in {piece.field}", True) for at in tags[:12])
        else:
            name = f"the {piece.kind} of {piece.field}" if piece.field else "what is left out"
            yield start, f"before {name}", piece.kind == "closer"
            yield end, f"behind {name}", piece.kind in ("opener", "wrapper")
