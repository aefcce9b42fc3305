"""P1: what the reference loads, we load; what it refuses, we refuse, with all problems and their places."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from diff_cases import specs
from examples import examples
from hypothesis import given, note
from hypothesis import strategies as st
from transformers.utils.chat_parsing.response_templates import load_response_template

import respzoo

KEYS = (
    "version defaults fields start_anchor start_anchor_pattern open open_pattern close close_pattern content content_args "
    "repeats join optional transform transform_each strip tag_pattern value_parser name args unknown"
).split()
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 1.5, "", "x", "<x>", "(", "[a-", "(?P<name>x)", "(?P<name>", "{content}", "a {content}",
    "json", "text", "no-such-parser", [], [""], ["a", 1], ["a", "ab"], {}, {"a": 1}, {"open": "<x>"}, {"content": "text"},
    {"name": "json"}, {"x": "{content.a.b}"}, {"x": ["{name}", "b {c}"]},
)  # fmt: skip


@pytest.mark.parametrize("name", list(specs()))
def test_a_template_of_the_reference_loads(name: str) -> None:
    load_response_template(specs()[name])
    template = respzoo.ResponseTemplate(specs()[name])
    assert template.spec == specs()[name]
    load_response_template(copy.deepcopy(dict(template.spec)))


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield (*path, key)
            yield from places(value, (*path, key))


@st.composite
def spoilt(draw: st.DrawFn) -> Any:
    """A template with one to three faults in it, or what may be faults."""
    spec = copy.deepcopy(specs()[draw(st.sampled_from(("qwen3", "manual_gpt_oss", "every_parser", "kimi_k2")))])
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(spec))
        if not found:
            break
        *way, last = draw(st.sampled_from(found))
        owner = spec
        for step in way:
            owner = owner[step]
        action = draw(st.sampled_from(("replace", "delete", "add")))
        if action == "delete":
            del owner[last]
        else:
            key = last if action == "replace" else draw(st.sampled_from(KEYS))
            owner[key] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))
    return spec


@examples(500)
@given(spoilt())
def test_both_load_or_both_refuse(spec: Any) -> None:
    try:
        load_response_template(copy.deepcopy(spec))
        refusal = None
    except Exception as error:  # noqa: BLE001 - it refuses with whatever it trips over
        refusal = f"{type(error).__name__}: {error}"
    note(f"the reference: {refusal}")
    ours = our_refusal(spec)
    if refusal is None:
        assert ours is None, f"the reference loads it, we do not: {ours}"
    else:
        assert ours is not None, f"the reference refuses it ({refusal}), we do not"
        assert ours.problems
        assert all(problem.path.startswith("$") and problem.message for problem in ours.problems)


def our_refusal(spec: Any) -> respzoo.TemplateError | None:
    try:
        respzoo.ResponseTemplate(spec)
    except respzoo.TemplateError as error:
        return error
    return None


@pytest.mark.parametrize("spec", [None, [], "", 1, "qwen3"])
def test_what_is_no_dict_is_refused(spec: Any) -> None:
    with pytest.raises(respzoo.TemplateError):
        respzoo.ResponseTemplate(spec)
