"""Golden samples: load them, replay them under every cutting, say what differs and how to take the new value.

A sample is one line of JSON in canitoolcall's fixture format: a raw output, the tools offered, the end of the prompt,
and the message that a correct parse gives. `check` replays one through `parse` and through `MessageStream`, whole, by
character and cut at random, and holds it to the promises: one answer whatever the cutting, deltas that add up to the
message, nothing raised.

    python -m respzoo.testing check qwen3          a family by name, or its folder
    python -m respzoo.testing update qwen3 ID…     write what the parser gives now into samples.jsonl

`respzoo check` does this and looks at the template and its marks, too; the form above needs no typer and no rich.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from respzoo.events import Event, merge
from respzoo.lost import lost
from respzoo.plugins import Family, loaded, read_family
from respzoo.template import ResponseTemplate
from respzoo.trace import trace

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = [
    "Replay",
    "Sample",
    "add_up",
    "check",
    "check_family",
    "cuttings",
    "how_to_update",
    "load_samples",
    "replay",
    "update",
]

TEXTS = ("reasoning_content", "content")


@dataclass(frozen=True)
class Sample:
    """One raw output and what it means."""

    record: Mapping[str, Any]
    """The line as it stands."""
    where: str
    """`file:line`."""

    @property
    def id(self) -> str:
        return self.record["id"]

    @property
    def text(self) -> str:
        return self.record["raw_output"]

    @property
    def tools(self) -> list[dict[str, Any]] | None:
        return self.record["tools"] or None

    def prefix(self, spec: Mapping[str, Any]) -> str:
        """The end of the prompt; by default the template's own anchor."""
        anchor = spec.get("start_anchor", "")
        return self.record.get("generation_prompt", anchor if isinstance(anchor, str) else anchor[0])


def load_samples(file: Traversable | Path) -> list[Sample]:
    """The samples of a file of JSON lines."""
    samples: list[Sample] = []
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if line.strip():
            try:
                samples.append(Sample(json.loads(line), f"{file}:{number}"))
            except ValueError as error:
                raise ValueError(f"{file}:{number}: not JSON: {error}") from error
    return samples


def cuttings(text: str, *, seed: int = 0, rounds: int = 4) -> Iterator[tuple[str, list[str]]]:
    """A text whole, by character, and cut at random in pieces of 1 to 12 characters; each with its name."""
    yield "whole", [text]
    yield "by character", list(text)
    for number in range(seed, seed + rounds):
        chance = random.Random(number)
        pieces: list[str] = []
        rest = text
        while rest:
            size = chance.randint(1, 12)
            pieces.append(rest[:size])
            rest = rest[size:]
        yield f"random {number}", pieces


@dataclass(frozen=True)
class Replay:
    """What one cutting of a text gave."""

    message: Mapping[str, Any]
    """Of the stream's finish."""
    deltas: Sequence[Mapping[str, Any]]
    events: Sequence[Event]
    """Of a parser fed alike, neighbouring chunks joined."""


def replay(template: ResponseTemplate, sample: Sample, pieces: Sequence[str]) -> Replay:
    """Feed the pieces to a stream and to a parser."""
    prefix = sample.prefix(template.spec)
    stream = template.stream(prefix=prefix, tools=sample.tools)
    parser = template.parser(prefix=prefix, tools=sample.tools)
    deltas: list[Mapping[str, Any]] = []
    events: list[Event] = []
    for piece in pieces:
        deltas += stream.feed(piece)
        events += parser.feed(piece)
    message, last = stream.finish()
    return Replay(message, [*deltas, *last], merge([*events, *parser.finalize()[1]]))


def add_up(deltas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a client holds once it has put a stream's deltas together: texts, and the calls that are whole."""
    held: dict[str, Any] = {}
    calls: dict[int, dict[str, str]] = {}
    for delta in deltas:
        for key in TEXTS:
            if key in delta:
                held[key] = held.get(key, "") + delta[key]
        for call in delta.get("tool_calls", ()):
            known = calls.setdefault(call["index"], {"name": "", "arguments": ""})
            function = call.get("function", {})
            known["name"] += function.get("name") or ""
            known["arguments"] += function.get("arguments") or ""
    whole: list[dict[str, Any]] = []
    for index in sorted(calls):
        with contextlib.suppress(ValueError):  # a call that broke off has arguments that nobody can read
            whole.append({"name": calls[index]["name"], "arguments": json.loads(calls[index]["arguments"])})
    if whole:
        held["tool_calls"] = whole
    return held


def plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message in the samples' own form: absent texts are None, whole calls only, with name and arguments."""
    whole = [call for call in message.get("tool_calls") or () if call.get("status") != "incomplete"]
    calls = [call.get("function", call) for call in whole]
    return {
        "content": message.get("content") or None,
        "reasoning_content": message.get("reasoning_content") or None,
        "tool_calls": [{"name": call["name"], "arguments": call["arguments"]} for call in calls],
    }


def check(template: ResponseTemplate, sample: Sample) -> list[str]:
    """Every way in which a sample does not hold, each a line with its place."""
    faults: list[str] = []
    first: Replay | None = None

    def fault(name: str, text: str) -> None:
        faults.append(f"{sample.where}: {sample.id}, {name}: {text}")

    for name, pieces in cuttings(sample.text):
        try:
            this = replay(template, sample, pieces)
            held = add_up(this.deltas)
        except Exception as error:  # the promise is that nothing is raised, so anything is a fault of the sample's
            fault(name, f"raised {type(error).__name__}: {error}")
            continue
        for text in [*_wrong(sample, plain(this.message)), *_differences(plain(this.message), plain(held), "deltas")]:
            fault(name, text)
        if first is None:
            first = this
        elif _strict(this.events) != _strict(first.events):
            fault(name, f"other events than whole: {this.events} instead of {first.events}")
    parsed = template.parse(
        sample.text, prefix=sample.prefix(template.spec), tools=sample.tools, on_malformed="content"
    )
    if first is not None:
        for text in _differences(plain(first.message), plain(parsed), "parse"):
            fault("parse", text)
    found = trace(template, sample.text, prefix=sample.prefix(template.spec), tools=sample.tools)
    for text in lost(found, template):
        fault("lost", text)
    return faults


def _wrong(sample: Sample, got: Mapping[str, Any]) -> Iterator[str]:
    expected = sample.record.get("expected")
    if expected is not None:
        yield from _differences(expected, got, "got")
    elif got["tool_calls"]:
        yield f"a call, where {sample.record['expected_error']['reason']}"
    elif sample.record["expected_error"]["accept"] == ["content_passthrough"] and got["content"] != sample.text:
        yield f"content {got['content']!r}, where the text itself was expected"


def _differences(expected: Mapping[str, Any], got: Mapping[str, Any], label: str) -> Iterator[str]:
    for key in ("reasoning_content", "content", "tool_calls"):
        if _strict(expected[key]) != _strict(got[key]):
            yield f"{key}: expected {expected[key]!r}, {label} {got[key]!r}"


def _strict(value: Any) -> str:
    """Text that tells `true` from `1` and `"1"`, not `1` from `1.0`, and ignores the order of keys."""

    def number(value: Any) -> Any:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, Mapping):
            return {key: number(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        return [number(item) for item in value] if isinstance(value, list | tuple) else value  # pyright: ignore[reportUnknownVariableType]

    return json.dumps(number(value), sort_keys=True, ensure_ascii=False)


def check_family(family: Family) -> list[str]:
    """Replay all samples of a family; the last line says how to take the new values."""
    if family.samples is None:
        return [f"family {family.name} has no samples.jsonl"]
    template = ResponseTemplate(family.spec, name=family.name)
    samples = load_samples(family.samples)
    found = {sample.id: faults for sample in samples if (faults := check(template, sample))}
    if not found:
        return []
    return [*(line for faults in found.values() for line in faults), how_to_update(family, list(found))]


def how_to_update(family: Family, ids: Sequence[str]) -> str:
    """The command that takes what the parser gives now."""
    where = family.samples.parent if isinstance(family.samples, Path) else family.name
    return f"to take what the parser gives now: respzoo check {where} --update-samples {' '.join(ids)}"


def update(family: Family, ids: Sequence[str] = ()) -> list[str]:
    """Write what the parser gives into the samples' `expected`; returns the ids changed.

    A sample that breaks a promise (another answer under another cutting, deltas that do not add up, text that is lost)
    is refused.
    """
    if not isinstance(family.samples, Path):
        raise ValueError(f"the samples of {family.name} are not a file that can be written")
    template = ResponseTemplate(family.spec, name=family.name)
    lines: list[str] = []
    changed: list[str] = []
    for sample in load_samples(family.samples):
        record = dict(sample.record)
        if not ids or sample.id in ids:
            whole = replay(template, sample, [sample.text])
            record["expected"] = plain(whole.message)
            record.pop("expected_error", None)
            if faults := check(template, Sample(record, sample.where)):
                raise ValueError("\n".join(["not a value to keep:", *faults]))
            if _strict(record) != _strict(sample.record):
                changed.append(sample.id)
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    family.samples.write_text("".join(lines), "utf-8")
    return changed


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("respzoo.testing", description="Check or update a family's golden samples.")
    parser.add_argument("command", choices=("check", "update"))
    parser.add_argument("family", help="a family's name, or its folder")
    parser.add_argument("ids", nargs="*", help="update these samples only")
    options = parser.parse_args(arguments)
    folder = Path(options.family)
    family = read_family(folder) if folder.is_dir() else loaded().families[options.family]
    if options.command == "update":
        print("\n".join(update(family, options.ids)) or "nothing changed")
        return 0
    faults = check_family(family)
    print("\n".join(faults) or f"{family.name}: all samples hold")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
