"""Upstream's chat templates, out of trl's wheel and of llama.cpp's tests, render; we read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st
from truth_jinja import ChatTemplate
from truth_turns import IDENTIFIERS, Form, Turn, holds

CHATML = ("<|im_end|>\n",)
ASSISTANT = "<|im_start|>assistant\n"
SWITCH = ({}, {"enable_thinking": True}, {"enable_thinking": False})
"""Thinking by the template's default, on, and off."""


def unless(**off: Any) -> Callable[[Mapping[str, Any]], bool]:
    """There is reasoning but for these variables."""
    return lambda variables: any(variables.get(key) != value for key, value in off.items())


def when(**on: Any) -> Callable[[Mapping[str, Any]], bool]:
    return lambda variables: all(variables.get(key) == value for key, value in on.items())


ON = unless(enable_thinking=False)

SCALARS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none())

HERMES = Form(
    markers=("<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>", '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'),
    thought="</think>",
    answer=r"<think>|</think>|<tool_call>|<\|im_end\|>",
)
QUIET = replace(HERMES, reasons=False)
XML = Form(
    markers=("<think>", "</think>", "<tool_call>", "</tool_call>", "<function=f>", "</function>", "<parameter=k>", "</parameter>", "\n</parameter>\n", "<|im_end|>"),
    thought="</think>",
    answer=r"<think>|</think>|<tool_call>|<function=|<\|im_end\|>",
    value=r"</parameter>\s*(?:<parameter=|</function>)",
    keys=IDENTIFIERS,
)

TABLE: list[tuple[Form, ChatTemplate]] = [
    (HERMES, ChatTemplate("qwen3", "trl/qwen3", CHATML, SWITCH, ON)),
    (HERMES, ChatTemplate("qwen3", "llama.cpp/Qwen-Qwen3-0.6B", CHATML, SWITCH, ON)),
    (QUIET, ChatTemplate("qwen3", "trl/qwen2_5", CHATML)),
    (QUIET, ChatTemplate("qwen3", "trl/qwen3_instruct_2507", CHATML)),
    (QUIET, ChatTemplate("qwen3", "trl/qwen3_vl", CHATML)),
    (QUIET, ChatTemplate("qwen3", "llama.cpp/Qwen-QwQ-32B", CHATML, anchor=ASSISTANT)),
    (replace(QUIET, calls=0), ChatTemplate("smollm3", "llama.cpp/HuggingFaceTB-SmolLM3-3B", CHATML, SWITCH)),
    (XML, ChatTemplate("qwen3_xml", "trl/qwen3_5_think", CHATML, SWITCH, ON)),
    (XML, ChatTemplate("qwen3_xml", "trl/qwen3_5_nothink", CHATML, SWITCH, when(enable_thinking=True))),
    (XML, ChatTemplate("qwen3_xml", "trl/qwen3_6", CHATML, SWITCH, ON)),
    (XML, ChatTemplate("qwen3_xml", "trl/qwen3_8", CHATML, SWITCH, ON)),
    (replace(XML, reasons=False), ChatTemplate("qwen3_xml", "llama.cpp/Qwen3-Coder", CHATML)),
]


@pytest.mark.parametrize(("form", "upstream"), TABLE, ids=[f"{row.family}-{row.source}" for _, row in TABLE])
def test_what_a_chat_template_renders(form: Form, upstream: ChatTemplate) -> None:
    holds(upstream.family, form, upstream.render, keeps=upstream.keeps, examples=40)
