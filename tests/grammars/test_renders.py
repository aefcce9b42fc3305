"""What upstream's chat templates render, the grammars take: calls as the models have seen them in training.

The turns are those of tests/truth. Several share one grammar, of tools whose schemas fit their arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from machine import family, machine, tag_of
from test_chat_templates import TABLE
from truth_jinja import ChatTemplate
from truth_turns import Call, Form, Rendered, Turn, can_be, drafts, strings, told_apart

from respzoo.fields import CALLS, REASONING_NAMES
from respzoo.parser import ResponseParser

TOGETHER = 10
"""Turns to one grammar."""
ONCE = settings(
    max_examples=1,
    derandomize=True,
    phases=(Phase.generate,),  # a smaller example would need another grammar each
    suppress_health_check=list(HealthCheck),
)


Render = Callable[[Turn, Callable[..., Any]], tuple[Turn, Rendered]]
"""What a program makes of a turn: what of it it could say, and that. It draws what is not the turn's."""

EMPTY_ANSWER = "<|open|>response<|sep|><|close|>response<|sep|>"
"""Kimi K3's chat template writes it before calls; where calls are forced there is no answer, not an empty one either."""


def tame(value: Any) -> Any:
    """The value with numbers of at most 16 digits and no long exponents, where grammars stop, and without DEL in keys,
    which xgrammar would have escaped."""
    if isinstance(value, dict):
        return {key.replace("\x7f", ""): tame(item) for key, item in value.items()}
    if isinstance(value, list):
        return [tame(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return value % 10**15 if value >= 0 else -(-value % 10**15)
    return round(value % 1000, 3) if isinstance(value, float) else value


def declared(value: Any, schema: Any) -> Any:
    """The value with keys in the order in which its schema declares them."""
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        known = {key: declared(value[key], of_key) for key, of_key in properties.items() if key in value}
        return {**known, **value, **known}
    if isinstance(value, list):
        return [declared(item, schema.get("items", {})) for item in value]
    return value


def one_toolbox(given_turns: Sequence[Turn]) -> tuple[list[Turn], list[Any]]:
    """The turns with calls of tools that are the same in all of them, and these tools."""
    tamed = [Call(call.name, tame(dict(call.arguments))) for turn in given_turns for call in turn.calls]
    calls = told_apart(tamed)
    tools = Turn(calls=calls).tools()
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    left = iter([Call(call.name, declared(dict(call.arguments), schemas[call.name])) for call in calls])
    return [replace(turn, calls=[next(left) for _ in turn.calls]) for turn in given_turns], tools


@pytest.mark.parametrize(("form", "upstream"), TABLE, ids=[f"{row.family}-{row.source}" for _, row in TABLE])
def test_a_render_is_taken(form: Form, upstream: ChatTemplate) -> None:
    takes(upstream.family, form, upstream.render, upstream.stop)


def takes(name: str, form: Form, render: Render, stop_tokens: Sequence[str]) -> None:
    """What a program renders, this family's grammar takes."""
    template, xgrammar = family(name), machine(name)
    notations = {field.content.name for field in template.fields.values() if field.name == CALLS}
    in_tags, in_python = bool(notations & {"xml-inline", "xml-tree"}), "python-call-list" in notations
    closers = [
        literal
        for field in template.fields.values()
        if field.name in REASONING_NAMES and field.close is not None
        for literal in field.close.literals or ()
    ]
    stops = [stop.strip() for stop in stop_tokens if stop.strip()]

    def quotes(turn: Turn) -> bool:
        """Whether there is markup in a text beside the calls, or the beginning of some in a value in tags, but for
        closers: the parser knows by what follows, a grammar does not."""
        beside = any(marker in text for marker in form.markers for text in (turn.reasoning, turn.content))
        begun = {marker[: len(marker) // 2 + 1] for marker in form.markers}
        values = [value for call in turn.calls for value in call.arguments.values()]
        whole = [value for value in values if isinstance(value, str)]
        inner = [text for value in values if not isinstance(value, str) for text in strings({"": value})]
        inside = any(mark in text for mark in begun if "/" not in mark for text in [*whole, *inner])
        control = any(ord(char) < 32 for text in [*whole, *inner] for char in text)  # which Python writes otherwise
        return beside or (in_tags and inside) or (in_python and control)

    @ONCE
    # drafts, since a filter of hypothesis's would give up all turns for one of them
    @given(st.lists(drafts(form), min_size=TOGETHER, max_size=TOGETHER), st.data())
    def property_(drawn: list[Turn], data: st.DataObject) -> None:
        drawn = [turn for turn in drawn if can_be(form, turn)]
        certain, tools = one_toolbox([turn for turn in drawn if not form.ambiguous(turn) and not quotes(turn)])
        compiled: dict[Any, Any] = {}
        for turn in certain:
            turn, rendered = render(turn, data.draw)
            if not (turn.reasoning or turn.content or turn.calls):
                continue
            text = rendered.output
            for stop in stop_tokens:
                text = text.removesuffix(stop.rstrip())
            prefix = rendered.prefix
            for closer in closers:  # history has the closer that a prompt would end with
                if text.lstrip().startswith(closer):
                    prefix, text = (
                        prefix + text[: text.index(closer)] + closer,
                        text[text.index(closer) + len(closer) :],
                    )
            if turn.calls and not turn.content:
                text = text.replace(EMPTY_ANSWER, "", 1)
            region = ResponseParser(template, prefix=prefix).region
            choices = ["auto"] if turn.content or not turn.calls else ["auto", "required"]
            for choice in choices:
                if not tools:
                    continue
                if (region, choice) not in compiled:
                    tag = tag_of(
                        template,
                        tools,
                        tool_choice=choice,
                        strict=True,
                        reasoning=True,
                        prefix=prefix,
                        stops=stops,
                    )
                    compiled[region, choice] = xgrammar.compile(tag)
                stuck = xgrammar.stuck(compiled[region, choice], text)
                assert stuck is None, f"{choice}: {stuck}"

    property_()
