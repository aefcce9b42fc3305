"""The promise (P3, P4, P5, P7) over templates and texts that hypothesis makes up, beside the reference.

A text is put together from the template's own markers, whole and broken off, values whole and broken, white space and
words, so that most of what a model could get wrong is a few steps away. The profile is deterministic; for a long run
with fresh examples: RESPZOO_EXAMPLES=20000 pytest tests/test_properties.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from examples import examples
from hypothesis import HealthCheck, Phase, assume, given, note
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent / "differential"))

from diff_cases import Case, json_like
from diff_compare import compare
from diff_made_up import TOOLS, prompts, templates, texts
from transformers.utils.chat_parsing.response_templates import load_response_template

import respzoo
from respzoo.events import merge

profile = examples(
    400,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def cut_at(text: str, places: Iterable[int]) -> list[str]:
    ends = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    return [text[begin:end] for begin, end in pairwise(ends)] or [""]


def add_up(deltas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What an OpenAI client makes of deltas."""
    message: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    for delta in deltas:
        assert len(delta) >= 1, "an empty delta"
        for name, value in delta.items():
            if name != "tool_calls":
                assert isinstance(value, str)
                assert value, f"an empty piece of {name}"
                message[name] = message.get(name, "") + value
                continue
            for part in value:
                function = part.get("function", {})
                if part["index"] not in calls:
                    assert part["index"] == len(calls), "calls come in order"
                    assert part["type"] == "function"
                    assert part["id"]
                    assert function["name"]
                    calls[part["index"]] = {"name": function["name"], "arguments": ""}
                else:
                    assert "id" not in part
                    assert "name" not in function
                calls[part["index"]]["arguments"] += function.get("arguments", "")
    if calls:
        message["tool_calls"] = [
            {"type": "function", "function": {"name": call["name"], "arguments": read(call["arguments"])}}
            for call in calls.values()
        ]
    return message


def read(arguments: str) -> Any:
    """Arguments as a client reads them; those of a call that broke off stay what was sent of them."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def streamed(
    template: Any, prompt: str, parts: Sequence[str], **policy: str
) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    """(the final message, what the deltas add up to, what was dropped)"""
    stream = respzoo.MessageStream(template, prefix=prompt, tools=TOOLS, **policy)
    deltas = [delta for part in parts for delta in stream.feed(part)]
    message, last = stream.finish()
    for call in message.get("tool_calls") or ():
        if call.pop("status", None) == "incomplete":  # its name had been sent when it broke off; its text was no JSON
            assert isinstance(call["function"]["arguments"], str)
    return message, add_up([*deltas, *last]), list(stream.dropped)


@profile
@given(templates(), prompts, texts)
def test_the_reference_agrees_but_for_named_differences(spec: dict[str, Any], prompt: str, text: str) -> None:
    """And P3 for every cutting that compare makes, P5 by its walk through the text, P7."""
    names = compare(
        load_response_template(spec),
        respzoo.ResponseTemplate(spec),
        Case("made up", "", prompt, text, TOOLS),
        prompt,
        every_cut=True,
        reference_cuts=True,
    )
    note(f"differences: {sorted(names)}")


@profile
@given(templates(), prompts, texts, st.lists(st.integers(0, 10_000), max_size=12))
def test_one_answer_however_the_text_is_cut(spec: dict[str, Any], prompt: str, text: str, places: list[int]) -> None:
    template = respzoo.ResponseTemplate(spec)

    def read(parts: Sequence[str]) -> Any:
        parser = respzoo.ResponseParser(template, prefix=prompt, tools=TOOLS)
        events = [event for part in parts for event in parser.feed(part)]
        message, last = parser.finalize()
        return json_like((message, merge([*parser.initial_events, *events, *last]), list(parser.dropped)))

    whole = read([text])
    assert read(cut_at(text, places)) == whole
    assert read(list(text)) == whole


@profile
@given(
    templates(),
    prompts,
    texts,
    st.lists(st.integers(0, 10_000), max_size=12),
    st.sampled_from(("stream", "complete")),
    st.sampled_from(("content", "drop")),
    st.sampled_from(("content", "drop")),
)
def test_deltas_add_up_to_the_message(
    spec: dict[str, Any], prompt: str, text: str, places: list[int], calls: str, malformed: str, unfinished: str
) -> None:
    template = respzoo.ResponseTemplate(spec)
    policy = {"arguments": calls, "on_malformed": malformed, "on_unfinished": unfinished}
    message, total, dropped = streamed(template, prompt, [text], **policy)
    assume(all(isinstance(message.get(name, ""), str) for name in ("content", "reasoning_content")))
    sent = ("reasoning_content", "content", "tool_calls")  # other fields have no delta; defaults may be empty
    visible = {name: message[name] for name in sent if message.get(name)}
    assert json_like(total) == json_like(visible)
    for parts in (list(text), cut_at(text, places)):
        other, other_total, other_dropped = streamed(template, prompt, parts, **policy)
        assert json_like((other, other_dropped)) == json_like((message, dropped))
        assert json_like(other_total) == json_like(total)


@profile
@given(templates(), st.sampled_from(("", "<s>", "<s><t>")), texts)
def test_every_word_is_somewhere(spec: dict[str, Any], prompt: str, text: str) -> None:
    """P5, told from the text: what no delimiter swallowed is in the message, or in the record of what was dropped."""
    words = [f"w{number}w" for number in range(3)]
    marked = f"{words[0]} {text} {words[1]} {text}{words[2]}"
    template = respzoo.ResponseTemplate(spec)
    message, _, dropped = streamed(template, prompt, [marked])
    parser = respzoo.ResponseParser(template, prefix=prompt, tools=TOOLS)
    events = [*parser.feed(marked), *parser.finalize()[1]]
    # a structured region's text that its syntax passes over: xml and kv-lines have such places
    passed_over = "".join(event.get("text", "") for event in events if event.get("dirty"))
    everywhere = json.dumps([message, dropped], ensure_ascii=False) + passed_over
    fields = load_response_template(spec).fields.values()
    patterns = [pattern for field in fields for pattern in (field.open_re, field.close_re) if pattern is not None]
    swallowed = "".join(match.group() for pattern in patterns for match in pattern.finditer(marked))
    lost = [word for word in words if word not in everywhere and word not in swallowed]
    assert not lost, f"{lost} lost: {message}, dropped {dropped}"
