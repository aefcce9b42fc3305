"""Random assistant turns, and the question that every ground truth asks: does our template give back what was rendered?

A turn is reasoning, an answer and calls. Its texts are words of many scripts, white space, and the markup of the family
itself, whole and broken off. What a program that is not ours renders from it is parsed whole, by character and cut at
random, and has to be that turn.

Some renders are ambiguous: no reader of the text could tell a marker that was quoted from one that was meant. Each form
says by patterns which texts those are, as narrowly as they can be said; for these the property asks only for one answer
under every cutting. What that answer is, is pinned by examples beside the property.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from examples import examples
from hypothesis import HealthCheck, Phase, assume, given, note
from hypothesis import strategies as st

import respzoo
from respzoo.plugins import loaded
from respzoo.testing import add_up, plain


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    reasoning: str = ""
    content: str = ""
    calls: Sequence[Call] = ()

    def message(self) -> dict[str, Any]:
        """As the samples write it."""
        return {
            "content": self.content or None,
            "reasoning_content": self.reasoning or None,
            "tool_calls": [{"name": call.name, "arguments": dict(call.arguments)} for call in self.calls],
        }

    def tools(self) -> list[dict[str, Any]]:
        """Tools whose schemas fit the arguments."""
        properties: dict[str, dict[str, Any]] = {"offered": {}}
        for call in self.calls:
            properties.setdefault(call.name, {}).update({key: schema(value) for key, value in call.arguments.items()})
        return [
            {
                "type": "function",
                "function": {
                    "name": name,
                    "description": "Does it.",
                    "parameters": {"type": "object", "properties": known},
                },
            }
            for name, known in properties.items()
        ]


def schema(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {"type": "object", "properties": {key: schema(item) for key, item in value.items()}}
    if isinstance(value, list):
        items = [schema(item) for item in value]
        return (
            {"type": "array", "items": items[0] if all(item == items[0] for item in items) else {}}
            if items
            else {"type": "array"}
        )
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    return {"type": names[type(value)]}


def told_apart(calls: Sequence[Call]) -> list[Call]:
    """One tool has one schema: a call whose arguments would want another is one of another tool."""
    known: dict[str, dict[str, Any]] = {}
    made: list[Call] = []
    for index, call in enumerate(calls):
        schemas = {key: schema(value) for key, value in call.arguments.items()}
        name = call.name
        if any(known.get(name, {}).get(key, fits) != fits for key, fits in schemas.items()):
            name = f"{name}{index}"
        known.setdefault(name, {}).update(schemas)
        made.append(Call(name, call.arguments))
    return made


@dataclass(frozen=True)
class Form:
    """How a family's texts look to who makes them up."""

    markers: Sequence[str]
    """Markup to quote in texts and values."""
    thought: str = ""
    """A pattern of what ends, or begins, something in reasoning: where it is found the render is ambiguous."""
    answer: str = ""
    """The same for the answer."""
    value: str = ""
    """The same for a string among the arguments, wherever it stands."""
    key: str = ""
    """The same for a key."""
    keys: st.SearchStrategy[str] | None = None
    """Names of arguments; by default any text, as in JSON."""
    inner_keys: st.SearchStrategy[str] | None = None
    """Keys of objects among the arguments; by default any text."""
    names: str = r"[A-Za-z_][A-Za-z0-9_.-]{0,12}"
    """Names of functions."""
    spaces: bool = False
    """The renderer keeps white space at the ends of texts, and so must we; else none is put there."""
    reasons: bool = True
    calls: int = 3
    """The most calls in one turn."""
    both: bool = True
    """An answer may stand beside calls."""
    values: st.SearchStrategy[Any] | None = None
    """Arguments; by default any JSON."""
    never: Callable[[Turn], bool] = field(default=lambda turn: False)
    """Turns that the program cannot render, or that say nothing: not drawn."""
    blurred: Callable[[Turn], bool] = field(default=lambda turn: False)
    """Ambiguous turns that no pattern can tell."""

    def ambiguous(self, turn: Turn) -> bool:
        found = (
            (self.thought and re.search(self.thought, turn.reasoning))
            or (self.answer and re.search(self.answer, turn.content))
            or any(
                (self.value and any(re.search(self.value, text) for text in strings(call.arguments)))
                or (self.key and any(re.search(self.key, key) for key in call.arguments))
                for call in turn.calls
            )
        )
        return bool(found) or self.blurred(turn)


def strings(value: Any) -> list[str]:
    """Every string in a value, the keys below the arguments' own among them."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        inner = list(value.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        keys = [key for item in inner if isinstance(item, Mapping) for key in item]  # pyright: ignore[reportUnknownVariableType]
        return [*keys, *(text for item in inner for text in strings(item))]
    if isinstance(value, list):
        keys = [key for item in value if isinstance(item, Mapping) for key in item]  # pyright: ignore[reportUnknownVariableType]
        return [*keys, *(text for item in value for text in strings(item))]  # pyright: ignore[reportUnknownVariableType]
    return []


WORDS = [
    "a",
    "the",
    "Paris",
    "naïve",
    "日本",
    "🙂",
    "'",
    '"',
    "\\",
    "\\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "<",
    ">",
    "/",
    "&amp;",
    "null",
    "0",
    "-1",
    "```",
    "|",
    "$",
    "%",
    "{{",
    "é́",
]
SPACE = [" ", "\n", "\t", "\n\n", "  ", "\r\n", "\u00a0", "\u2028", "\x85", "\x1c"]
EDGES = ["", "", "", "", " ", "\n", "\n\n", "  ", "\t"]
ODD = ["\x01", "\x7f", "\ufeff", "\u202e", "\ue000", "\U0010ffff", "ﬀ", "İ", "ſ", "\u0301", "👩\u200d👧", "﷽"]


def texts(markers: Sequence[str], *, spaces: bool) -> st.SearchStrategy[str]:
    """Words, white space, any characters, and markup: broken off, and in one text of four whole."""
    broken = {piece for marker in markers for piece in (marker[:-1], marker[1:], marker[: len(marker) // 2])}
    pieces = [*WORDS, *SPACE, *WORDS, *SPACE, *ODD, *sorted(broken - {""})]
    text = st.lists(st.sampled_from(pieces), max_size=6).map("".join)
    marked = st.lists(st.sampled_from([*pieces, *list(markers) * 4]), min_size=1, max_size=6).map("".join)
    text = st.one_of(text, text, marked, st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
    if not spaces:
        return text.map(str.strip)
    return st.tuples(st.sampled_from(EDGES), text, st.sampled_from(EDGES)).map("".join)


def json_values(
    markers: Sequence[str],
    keys: st.SearchStrategy[str] | None = None,
    *,
    nothing: bool = True,
    most: int = 10**20,
    exact: bool = True,
) -> st.SearchStrategy[Any]:
    """`exact`: floats to the last bit; else few enough digits for a careless reader."""
    text = texts(markers, spaces=True)
    keys = text if keys is None else keys
    few = st.integers(-(10**6), 10**6).map(lambda number: number / 64)
    number = st.one_of(st.integers(-most, most), st.floats(allow_nan=False, allow_infinity=False) if exact else few)
    scalar = st.one_of(text, text, number, st.sampled_from([True, False, None] if nothing else [True, False]))
    flat = st.one_of(scalar, st.lists(scalar, max_size=2), st.dictionaries(keys, scalar, max_size=2))
    return st.one_of(scalar, flat, st.lists(flat, max_size=2), st.dictionaries(keys, flat, max_size=2))


IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
"""Argument names as Python functions have them."""


def turns(form: Form) -> st.SearchStrategy[Turn]:
    """Turns that say something, and can be written in this form."""
    return drafts(form).filter(lambda turn: can_be(form, turn))


def can_be(form: Form, turn: Turn) -> bool:
    return bool(turn.reasoning or turn.content or turn.calls) and not form.never(turn)


def drafts(form: Form) -> st.SearchStrategy[Turn]:
    """Turns of which some cannot be written."""
    text = texts(form.markers, spaces=form.spaces)
    keys = texts(form.markers, spaces=True) if form.keys is None else form.keys
    values = json_values(form.markers, form.inner_keys) if form.values is None else form.values
    call = st.builds(
        Call,
        st.from_regex(form.names, fullmatch=True),
        st.dictionaries(keys, values, max_size=3),
    )
    nothing = st.just("")
    turn = st.builds(
        Turn,
        st.one_of(nothing, text) if form.reasons else nothing,
        st.one_of(nothing, text, text),
        st.lists(call, max_size=form.calls).map(told_apart),
    )
    if not form.both:
        turn = turn.map(lambda turn: replace(turn, content="") if turn.calls else turn)
    return turn


@dataclass(frozen=True)
class Rendered:
    prefix: str
    """The prompt."""
    output: str
    """What the model would have written, with or without its stop token."""
    special: Sequence[tuple[int, int]] | None = None
    """Which stretches of it special tokens wrote, if the renderer writes token ids."""
    special_tokens: Sequence[str] | None = None
    """Their texts; given, our parser is told of them and quoted markup is text."""

    @classmethod
    def of_tokens(cls, prefix: str, pieces: Sequence[tuple[str, bool]], special_tokens: Sequence[str]) -> Rendered:
        """Of pieces of text, each with whether a special token wrote it."""
        special: list[tuple[int, int]] = []
        at = 0
        for text, is_special in pieces:
            if is_special:
                special.append((at, at + len(text)))
            at += len(text)
        return cls(prefix, "".join(text for text, _ in pieces), special, special_tokens)

    def without_tokens(self) -> Rendered:
        return Rendered(self.prefix, self.output)

    def cut(self, places: Sequence[int]) -> list[tuple[str, list[tuple[int, int]] | None]]:
        """The output in pieces, each with its own stretches; a special token comes whole."""
        inside = {place for begin, end in self.special or () for place in range(begin + 1, end)}
        size = len(self.output)
        ends = sorted(({place % (size + 1) for place in places} - inside) | {0, size})
        return [
            (
                self.output[begin:end],
                None
                if self.special is None
                else [(a - begin, b - begin) for a, b in self.special if begin <= a and b <= end],
            )
            for begin, end in pairwise(ends)
        ]


def read(
    template: respzoo.ResponseTemplate, rendered: Rendered, tools: list[dict[str, Any]], places: Sequence[int]
) -> dict[str, Any]:
    """The message by the stream's finish, which is what its deltas add up to."""
    stream = template.stream(prefix=rendered.prefix, tools=tools, special_tokens=rendered.special_tokens)
    deltas = [delta for piece, special in rendered.cut(places) for delta in stream.feed(piece, special)]
    message, last = stream.finish()
    got = plain(message)
    assert strict(plain(add_up([*deltas, *last]))) == strict(got), "deltas do not add up"
    return got


def strict(value: Any) -> str:
    """Text that tells true from 1, 1 from 1.0 and both from "1", and ignores the order of keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def compiled(family: str) -> respzoo.ResponseTemplate:
    return loaded().compile(loaded().families[family], "ground truth")


def holds(
    family: str,
    form: Form,
    render: Callable[[Turn, Callable[..., Any]], tuple[Turn, Rendered]],
    *,
    times: int,
    keeps: Callable[[Turn], Turn] = lambda turn: turn,
) -> None:
    """What `render` writes for any turn, the family's template reads as that turn.

    `render` gets hypothesis' draw, for what is not the turn's (the conversation before it, thinking on or off), and
    returns what it rendered with the turn that it could say.
    `keeps` says what of a turn the program writes at all.
    """
    template = compiled(family)
    drawn = turns(form)
    seen: Counter[bool] = Counter()

    @examples(
        times,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def property_(data: st.DataObject) -> None:
        turn = data.draw(drawn)
        turn, rendered = render(turn, data.draw)
        assume(bool(turn.reasoning or turn.content or turn.calls))
        places = data.draw(st.lists(st.integers(0, 10_000), max_size=8))
        note(f"prefix ends {rendered.prefix[-80:]!r}\noutput {rendered.output!r}")
        tools = turn.tools()
        whole = read(template, rendered, tools, [])
        for cutting in (places, range(len(rendered.output))):
            assert strict(read(template, rendered, tools, cutting)) == strict(whole)
        certain = rendered.special_tokens is not None or not form.ambiguous(turn)
        seen[certain] += 1
        if certain:
            expected = keeps(turn).message()
            assert strict(whole) == strict(expected), f"\ngot      {whole}\nexpected {expected}"

    property_()
    assert seen[True] > times // 4, f"too few certain renders: {seen}"
