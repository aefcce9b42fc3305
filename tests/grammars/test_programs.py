"""Programs of the models' makers judge the grammars: what they render is taken, and what is drawn they read as we do.

cohere_melody renders and reads, mistral-common renders token by token, openai-harmony renders and reads. What
tests/truth asks them of the parser is asked of the grammar here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import cohere_melody
import pytest
import test_cohere
import test_harmony
import test_mistral
from machine import family, machine, tag_of
from test_renders import Render, takes
from toolbox import TOOLS, only_calls, read
from truth_turns import Form

STOPS = ["<|END_OF_TURN_TOKEN|>", "</s>", "<|call|>", "<|return|>", "<|end|>"]
WEATHER, NESTED, CHOICES, UNIONS, REFERS, *_ = TOOLS
PING = TOOLS[-1]


def rows(asked: Callable[..., None]) -> list[dict[str, Any]]:
    """The arguments of each of a parametrized test's cases."""
    sides: list[list[dict[str, Any]]] = []
    for mark in vars(asked)["pytestmark"]:
        names, values = mark.args
        names = [names] if isinstance(names, str) else list(names)
        sides.append([dict(zip(names, one if len(names) > 1 else [one], strict=True)) for one in values])
    return [{key: value for side in sides for key, value in side.items()} for sides in product(*sides)]


CASES = [
    pytest.param(module, partial(asked, **row), id=f"{row['family']}-{row.get('version', 'melody')}")
    for module, asked in (
        (test_cohere, test_cohere.test_what_melody_renders),
        (test_mistral, test_mistral.test_what_mistral_common_encodes),
    )
    for row in rows(asked)
    if not row.get("with_ids")
]
CASES += [
    pytest.param(test_mistral, test_mistral.test_what_the_chat_template_of_v11_writes_with_plain_thinking, id="v11"),
    pytest.param(test_harmony, test_harmony.test_what_harmony_renders, id="harmony"),
]


@pytest.mark.parametrize(("module", "ask"), CASES)
def test_what_they_render_is_taken(module: Any, ask: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def of_the_grammar(name: str, form: Form, render: Render, **_: Any) -> None:
        asked.append(name)
        takes(name, form, render, STOPS)

    monkeypatch.setattr(module, "holds", of_the_grammar)
    ask()
    assert len(asked) == 1


MELODY = {
    "cohere_command3": cohere_melody.PyFilter.cmd3,
    "cohere_command4": cohere_melody.PyFilter.cmd4,
    "cohere_command5": cohere_melody.PyFilter.cmd5,
}


IN_JSON = '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "%s", "parameters": '
BEGUN = {
    "cohere_command3": IN_JSON,
    "cohere_command4": IN_JSON,
    "cohere_command5": '<cofl:tool_calls><cofl:tool_call id="0" name="%s">',
}
"""How melody wants a call to begin; the template knows more ways."""


@pytest.mark.parametrize("name", MELODY)
def test_what_is_drawn_melody_reads_as_we_do(name: str) -> None:
    judged = 0
    for one in (WEATHER, NESTED, CHOICES, UNIONS, REFERS):
        begun = BEGUN[name] % one["function"]["name"]
        compiled = machine(name).compile(tag_of(family(name), [one], tool_choice="required", parallel=False))
        texts = machine(name).draws(compiled, [one], 8, seed=9, shy=True, eager=1, begun=begun)
        # melody takes special tokens in strings for themselves
        texts = [text for text in texts if "<|" not in text.removeprefix(begun).removesuffix("<|END_ACTION|>")]
        judged += len(texts)
        for text in texts:
            reading = read(family(name), text, [one])
            assert not only_calls(reading, [one]), text
            theirs = MELODY[name]().process_full_text(f"Hm.<|END_THINKING|>{text}")
            calls = [{"name": call.name, "arguments": json.loads(call.arguments or "{}")} for call in theirs.tool_calls]
            assert calls == reading.calls, text
    assert judged > 10


def test_what_is_drawn_harmony_reads_as_we_do() -> None:
    from openai_harmony import Role

    name, encoding = "gpt_oss", test_harmony.encoding()
    for one, kind in product((WEATHER, NESTED, UNIONS, REFERS), (" <|constrain|>json", "")):
        begun = f"<|channel|>commentary to=functions.{one['function']['name']}{kind}<|message|>"
        compiled = machine(name).compile(tag_of(family(name), [one], tool_choice="required", parallel=False))
        texts = machine(name).draws(compiled, [one], 6, seed=9, begun=begun)
        assert texts
        for text in texts:
            reading = read(family(name), text, [one])
            assert not only_calls(reading, [one]), text
            body, mark, closer = text.removeprefix(begun).rpartition("<|")  # in the body, special tokens are quoted
            tokens = encoding.encode(begun, allowed_special="all") + encoding.encode(body, disallowed_special=())
            tokens += encoding.encode(mark + closer, allowed_special="all")
            messages = encoding.parse_messages_from_completion_tokens(tokens, Role.ASSISTANT)
            calls = [
                {"name": message.recipient.removeprefix("functions."), "arguments": json.loads(message.content[0].text)}
                for message in messages
            ]
            assert calls == reading.calls, text
