"""Upstream's chat templates, out of trl's wheel and of llama.cpp's tests, render; we read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st
from truth_jinja import ChatTemplate
from truth_turns import IDENTIFIERS, Form, Turn, holds, json_values, texts

CHATML = ("<|im_end|>\n",)
ASSISTANT = "<|im_start|>assistant\n"
SWITCH = ({}, {"enable_thinking": True}, {"enable_thinking": False})
"""Thinking by the template's default, on, and off."""


def unless(**off: Any) -> Callable[[Mapping[str, Any]], bool]:
    """There is reasoning but for these variables."""
    return lambda variables: any(variables.get(key) != value for key, value in off.items())


def when(**on: Any) -> Callable[[Mapping[str, Any]], bool]:
    return lambda variables: all(variables.get(key) == value for key, value in on.items())


def everything(turn: Turn) -> Turn:
    return turn


def beside_calls(turn: Turn) -> Turn:
    """Reasoning is history where no calls follow it, and history has none."""
    return turn if turn.calls else replace(turn, reasoning="")


ON = unless(enable_thinking=False)

SCALARS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none())

HERMES = Form(
    markers=(
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<|im_end|>",
        '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',
    ),
    thought="</think>",
    answer=r"<think>|</think>|<tool_call>|<\|im_end\|>",
)
QUIET = replace(HERMES, reasons=False)
XML = Form(
    markers=(
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<function=f>",
        "</function>",
        "<parameter=k>",
        "</parameter>",
        "\n</parameter>\n",
        "<|im_end|>",
    ),
    thought=r"</think>|<function=",
    answer=r"<think>|</think>|<tool_call>|<function=|<\|im_end\|>",
    value=r"</parameter>(?:\s*</[^<>\s]+>)*\s*(?:<parameter=|</function>|\Z)|<parameter=[^<>\n]+>",
    keys=IDENTIFIERS,
)

THINK = ("<think>", "</think>")
DEEPSEEK = Form(
    markers=(
        *THINK,
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        "<｜tool▁calls▁end｜>",
        "\n```",
        "<｜end▁of▁sentence｜>",
    ),
    thought="</think>|<｜tool",
    answer="<think>|</think>|<｜tool▁call|<｜end▁of▁sentence｜>",
)
DSML = Form(
    markers=(
        *THINK,
        "<｜DSML｜tool_calls>",
        "</｜DSML｜tool_calls>",
        '<｜DSML｜invoke name="f">',
        "</｜DSML｜invoke>",
        "</｜DSML｜parameter>",
        '<｜DSML｜parameter name="k" string="true">',
        "<｜end▁of▁sentence｜>",
    ),
    thought="</think>|<｜DSML｜",
    answer="<think>|</think>|<｜DSML｜|<｜end▁of▁sentence｜>",
    value=r"</｜DSML｜ ?parameter>(?:\s*</[^<>\s]+>)*\s*(?:<｜DSML｜|</｜DSML｜|\Z)|(?:\A|\n)\s*<｜DSML｜parameter ",
    keys=IDENTIFIERS,
)
KIMI = Form(
    markers=(
        *THINK,
        "<|tool_calls_section_begin|>",
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        "<|tool_calls_section_end|>",
        "<|im_end|>",
    ),
    thought=r"</think>|<\|tool_call",
    answer=r"<think>|</think>|<\|tool_call|<\|im_end\|>",
    spaces=True,
)
XTML = Form(
    markers=(
        "<|open|>",
        "<|close|>",
        "<|sep|>",
        "<|close|>think<|sep|>",
        "<|close|>response<|sep|>",
        "<|open|>tools<|sep|>",
        "<|close|>argument<|sep|>",
        "<|close|>call<|sep|>",
        "<|end_of_msg|>",
    ),
    thought=r"<\|close\|>think<\|sep\|>|<\|open\|>",
    answer=r"<\|close\|>response<\|sep\|>|<\|open\|>|<\|end_of_msg\|>",
    value=r"<\|close\|>argument<\|sep\|>\s*<\|(?:open|close)\|>",
    spaces=True,
)
KV = Form(
    markers=(
        *THINK,
        "<tool_call>",
        "</tool_call>",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
        "<|user|>",
        "<|observation|>",
    ),
    thought="</think>",
    answer=r"<think>|</think>|<tool_call>|<\|user\|>|<\|observation\|>|<\|endoftext\|>",
    value=r"</arg_value>(?:\s*</[^<>\s]+>)*\s*(?:<arg_key>|</tool_call>|\Z)",
    keys=IDENTIFIERS,
)
INVOKE = Form(
    markers=(
        *THINK,
        "<minimax:tool_call>",
        "</minimax:tool_call>",
        '<invoke name="f">',
        "</invoke>",
        '<parameter name="k">',
        "</parameter>",
        "[e~[",
    ),
    thought="</think>|<invoke ",
    answer=r"<think>|</think>|<minimax:tool_call>|<invoke|\[e~(?:\[|\Z)",
    value=r"</parameter>(?:\s*</[^<>\s]+>)*\s*(?:<parameter|</invoke>|\Z)|\n\s*<parameter ",
    keys=IDENTIFIERS,
)
TREE_TEXT = texts(("]<]minimax[>[", "]<]minimax[>[<tool_call>", "]<]minimax[>[</k>", "[e~["), spaces=True)
TREE_VALUES = st.one_of(
    TREE_TEXT,
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.lists(TREE_TEXT, min_size=1, max_size=3),
    st.lists(st.integers(), min_size=1, max_size=3),
    st.dictionaries(IDENTIFIERS, st.one_of(TREE_TEXT, st.integers()), min_size=1, max_size=3),
    st.lists(st.dictionaries(IDENTIFIERS, TREE_TEXT, min_size=1, max_size=2), min_size=1, max_size=2),
)
"""Types come from the schema alone, so the items of a list have one. What is null is left out, what is empty is nothing."""
TREE = Form(
    markers=(
        "<mm:think>",
        "</mm:think>",
        "]<]minimax[>[",
        "]<]minimax[>[<tool_call>",
        "]<]minimax[>[</invoke>",
        "]<]minimax[>[</k>",
        "[e~[",
    ),
    thought="</mm:think>",
    answer=r"mm:think>|\]<\]minimax\[>\[|\[e~(?:\[|\Z)",
    value=r"\]<\]minimax\[>\[",
    keys=IDENTIFIERS,
    values=TREE_VALUES,
)
LLAMA = Form(
    markers=("<|python_tag|>", "<|eot_id|>", "<|eom_id|>", '{"name": "f", "parameters": {}}', "<|start_header_id|>"),
    answer=r"\{|<\|python_tag\|>|<\|eot_id\|>|<\|eom_id\|>|<\|start_header",
    reasons=False,
    calls=1,
    both=False,
)
MISTRAL = Form(
    markers=("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]", "[TOOL_RESULTS]", "</s>", "[INST]"),
    thought=r"\[/?THINK\]|\[TOOL_CALLS\]",
    answer=r"\[/?THINK\]|\[TOOL_CALLS\]|</s>",
    reasons=False,
)
GEMMA = Form(
    markers=(
        "<|channel>thought\n",
        "<channel|>",
        "<|tool_call>",
        "<tool_call|>",
        '<|"|>',
        "<turn|>",
        "<|tool_response>",
    ),
    thought=r"<channel\|>|<\|channel>",
    answer=r"<\|?channel|<\|tool_call>|<turn\|>|<\|tool_response>",
    value=r'<\|"\|>',
    keys=IDENTIFIERS,
    inner_keys=IDENTIFIERS,
)
GEMMA_EARLY = (
    "trl/gemma4",
    "trl/gemma4_v2",
    "trl/gemma4_v3",
    "trl/gemma4_v4",
    "llama.cpp/google-gemma-4-31B-it",
    "llama.cpp/google-gemma-4-31B-it-interleaved",
)
NO_NULL = json_values(GEMMA.markers, IDENTIFIERS, nothing=False)
"""What the first versions of Gemma 4's template write for null is None, which is no JSON; the later ones write null."""
NANO = replace(
    HERMES,
    markers=("<think>", "</think>", "<TOOLCALL>", "</TOOLCALL>", "<SPECIAL_12>"),
    answer="<TOOLCALL>|<SPECIAL_1[012]>|<think>|</think>",
    never=lambda turn: bool(turn.calls and (turn.reasoning or turn.content)),
)
MUSE = Form(
    markers=(
        "<|message|>",
        "<|eom|>",
        "<|eot|>",
        "<|start|>",
        "to=user",
        "<atem:function_calls>",
        "</atem:function_calls>",
        "</atem:invoke>",
        "</atem:parameter>",
        '<atem:parameter name="k">',
    ),
    thought=r"<\|eom\|>|<\|eot\|>|<\|start\|>",
    answer=r"<\|eom\|>|<\|eot\|>|<\|start\|>|<atem:",
    value=r"</atem:parameter>(?:\s*</[^<>\s]+>)*\s*(?:<atem:parameter|</atem:invoke>|\Z)|\n\s*<atem:parameter ",
    keys=IDENTIFIERS,
    both=False,
)
LFM = Form(
    markers=(*THINK, "<|tool_call_start|>", "<|tool_call_end|>", "<|im_end|>", "')]", "', g='"),
    thought="</think>",
    answer=r"<think>|</think>|<\|tool_call_start\|>|<\|im_end\|>",
    keys=IDENTIFIERS,
    names=r"[A-Za-z_][A-Za-z0-9_]{0,12}",
    values=json_values(("<|tool_call_end|>", "')]", "', g='", "<think>"), most=2**53 - 1),
)
"""In the language, python-call-list has integers that a double can hold, and of escapes those that JSON has, and `\\'`."""
LFM_RAW = replace(
    LFM,
    value=r"'[ \t\n\r]*(?:[,)]|\Z)",
    blurred=lambda turn: any(
        re.search(r"\\[xU]", repr(value))
        for call in turn.calls
        for value in call.arguments.values()
        if isinstance(value, list)
    ),
)
"""Strings as they are, in single quotes; lists as Python prints them."""
APERTUS = Form(
    markers=("<|tools_prefix|>", "<|tools_suffix|>", "<|inner_prefix|>", "<|inner_suffix|>", "<|assistant_end|>"),
    answer=r"<\|tools_prefix\|>|<\|inner|<\|assistant_end\|>",
    reasons=False,
)
APRIEL = Form(
    markers=("[BEGIN FINAL RESPONSE]", "<tool_calls>", "</tool_calls>", "<|end|>"),
    thought=r"\[BEGIN FINAL RESPONSE\]|<tool_calls>|<\|end\|>",
    answer=r"\[BEGIN FINAL RESPONSE\]|<tool_calls>|<\|end\|>",
    never=lambda turn: not turn.reasoning,
)
GIGA = Form(
    markers=("<|function_call|>", "<|message_sep|>", "<|role_sep|>", "function call<|role_sep|>\n"),
    answer=r"<\|function_call\|>|<\|message_sep\|>|<\|role_sep\|>",
    reasons=False,
    calls=1,
)
SEED = Form(
    markers=(
        "<seed:think>",
        "</seed:think>",
        "<seed:tool_call>",
        "</seed:tool_call>",
        "</function>",
        "<parameter=k>",
        "</parameter>",
        "<seed:eos>",
    ),
    thought="</seed:think>",
    answer="<seed:|</seed:|<function=",
    value=r"</parameter>(?:\s*</[^<>\s]+>)*\s*(?:<parameter=|</function>|\Z)|<parameter=[^<>\n]+>",
    keys=IDENTIFIERS,
    values=st.one_of(
        texts(("</seed:tool_call>", "</function>", "<parameter=k>", "</parameter>"), spaces=True), SCALARS
    ),
)
"""The same of its template: objects and lists as Python prints them."""
HY = Form(
    markers=(
        "<think:opensource>",
        "</think:opensource>",
        "<tool_calls:opensource>",
        "</tool_calls:opensource>",
        "<tool_call:opensource>",
        "<tool_sep:opensource>",
        "</arg_value:opensource>",
        "</tool_call:opensource>",
    ),
    thought="</think",
    answer=r"</?think|<tool_call|<｜hy_",
    value=r"</arg_value(?::\w+)?>(?:\s*</[^<>\s]+>)*\s*(?:<arg_key|</tool_call|\Z)",
    keys=IDENTIFIERS,
)
MINICPM = Form(
    markers=(
        *THINK,
        '<function name="f">',
        "</function>",
        '<param name="k">',
        "</param>",
        "<![CDATA[",
        "]]>",
        "<|im_end|>",
    ),
    thought="</think>|<function ",
    answer=r"<think>|</think>|<function|<\|im_end\|>",
    value=r"\]\]>",
    keys=IDENTIFIERS,
    values=st.one_of(texts((*THINK, "</function>", "</param>", "<![CDATA[", "]]>"), spaces=True), SCALARS),
)
"""Its template writes objects and lists as Python prints them, which is not what it tells the model to write."""

HARMONY = Form(
    markers=("<|start|>", "<|end|>", "<|channel|>final<|message|>", "<|call|>", "<|return|>", "<|message|>"),
    thought=r"<\|end\|>",
    answer=r"<\|(?:end|return)\|>",
    calls=1,
    both=False,
    never=lambda turn: "<|channel|>" in turn.reasoning + turn.content,  # which the template refuses
)
SOLAR = Form(
    markers=(
        "<|begin|>",
        "<|end|>",
        "<|think|>",
        "<|content|>",
        "<|tool_calls|>",
        "<|tool_call:begin|>",
        "<|tool_call:args|>",
        "<|tool_call:end|>",
        "<|calls|>",
    ),
    thought=r"<\|(?:begin|end|content|tool_calls|think)\|>",
    answer=r"<\|(?:begin|end|content|tool_calls|think)\|>",
    both=False,
    spaces=True,
    never=lambda turn: not (turn.content or turn.calls),
)
FUNCTIONARY_31 = replace(
    QUIET, markers=("<function=f>", "</function>", "<|eot_id|>", "<|eom_id|>"), answer=r"<function=|<\|eo[tm]_id\|>"
)
FUNCTIONARY_32 = Form(
    markers=(">>>", ">>>all\n", ">>>f\n{}", "<|eot_id|>"),
    answer=r">>>|all\n|<\|eot_id\|>",
    names=r"[A-Za-z_][A-Za-z0-9_]{0,12}",
    reasons=False,
)
LLAMA_HEAD = "<|start_header_id|>assistant<|end_header_id|>\n\n"
FIRE = replace(QUIET, markers=("functools[", "<|eot_id|>"), answer=r"functools\[|<\|eot_id\|>")
GRANITE = Form(
    markers=(
        "<|tool_call|>",
        "<tool_call>",
        "<|end_of_text|>",
        "<|start_of_role|>",
        "Here is my response:",
        "</response>",
    ),
    answer=r"<\|?tool_call|<\|end_of_text|</?response>|Here(?:'s| is) my|</?think>",
    reasons=False,
    both=False,
)
GRANITE_20B = replace(
    QUIET, markers=("<function_call>", "<|endoftext|>"), answer=r"<function_call>|<\|endoftext\|>", both=False
)
HUNYUAN = replace(
    QUIET,
    markers=("<tool_calls>", "</tool_calls>", "<answer>", "</answer>", "助手：", "<|eos|>"),
    answer=r"<tool_calls>|</?answer>|</?think>|<\|eos\|>|\A助手：",
)
INTERNLM = replace(
    QUIET,
    markers=("<|action_start|>", "<|plugin|>", "<|action_end|>", "<|im_end|>"),
    answer=r"<\|action_start\|>|<\|im_end\|>|</?think>",
)
XLAM = Form(
    markers=("[TOOL_CALLS]", "<tool_call>", "```json\n[", '[{"name": "f", "arguments": {}}]', "</think>"),
    answer=r"\[\s*\{|\[TOOL_CALLS\]|<tool_call>|</?think>|<\|im_end|<\|eot_id",
    reasons=False,
    both=False,
)
PYTHONIC = Form(
    markers=("<|python_start|>", "<|python_end|>", "[f()]", "<|eot|>", ")]"),
    answer=r"\[\s*[A-Za-z_][\w.-]*\(|\{|<\|python_start\|>|<\|eo[tm]",
    value=r'["\\\n\r]',
    keys=IDENTIFIERS,
    names=r"[A-Za-z_][A-Za-z0-9_]{0,12}",
    values=texts(("<|python_end|>", ")]", "'"), spaces=True),
    reasons=False,
    both=False,
)
"""The template writes whatever the value in double quotes, and escapes nothing."""
FUNCTION_GEMMA = Form(
    markers=("<start_function_call>", "<end_function_call>", "<escape>", "call:f{}", "<end_of_turn>"),
    answer=r"<start_function_(?:call|response)>|<end_of_turn>|<eos>|</?think>",
    value="<escape>",
    keys=IDENTIFIERS,
    values=texts(("<end_function_call>", "}", "<escape>"), spaces=True),
    names=r"[A-Za-z_][A-Za-z0-9_]{0,12}",
    reasons=False,
    never=lambda turn: bool(turn.content),
)
"""The template puts every value in <escape>, as the text that Python prints."""
COMMAND = Form(
    markers=(
        "<|START_THINKING|>",
        "<|END_THINKING|>",
        "<|START_ACTION|>",
        "<|END_ACTION|>",
        "<|START_TEXT|>",
        "<|END_TEXT|>",
        "<|END_OF_TURN_TOKEN|>",
    ),
    thought=r"<\|(?:END_THINKING|START_\w+|END_\w+)\|>",
    answer=r"<\|(?:START|END)_\w+\|>|</?co",
    both=False,
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
    *(
        (
            replace(QUIET, both=False),
            ChatTemplate("hermes", f"llama.cpp/NousResearch-Hermes-{n}", CHATML, results=False),
        )
        for n in ("2-Pro-Llama-3-8B-tool_use", "3-Llama-3.1-8B-tool_use")
    ),
    *(
        (
            replace(QUIET, answer=r"</?think>|<tool_call>|<\|end_of_text\|>"),
            ChatTemplate("granite4", f"llama.cpp/ibm-granite-granite-{n}", ("<|end_of_text|>\n",)),
        )
        for n in ("4.0", "4.1")
    ),
    (
        replace(DEEPSEEK, reasons=False),
        ChatTemplate(
            "deepseek_v3",
            "trl/deepseekv3",
            ("<｜end▁of▁sentence｜>",),
            as_text=True,
            results=False,
            anchor="<｜Assistant｜>",
        ),
    ),
    # A second turn with calls lacks its opener: the template remembers that it has written one.
    (
        replace(DEEPSEEK, reasons=False, calls=0),
        ChatTemplate(
            "deepseek_v3", "trl/deepseekv3", ("<｜end▁of▁sentence｜>",), as_text=True, anchor="<｜Assistant｜>"
        ),
    ),
    (
        replace(DEEPSEEK, reasons=False),
        ChatTemplate("deepseek_v31", "llama.cpp/deepseek-ai-DeepSeek-V3.1", ("<｜end▁of▁sentence｜>",)),
    ),
    (
        DSML,
        ChatTemplate(
            "deepseek_v4",
            "llama.cpp/deepseek-ai-DeepSeek-V4",
            ("<｜end▁of▁sentence｜>",),
            SWITCH,
            when(enable_thinking=True),
        ),
    ),
    (
        DSML,
        ChatTemplate(
            "deepseek_v4",
            "llama.cpp/deepseek-ai-DeepSeek-V4-Flash-0731",
            ("<｜end▁of▁sentence｜>",),
            SWITCH,
            when(enable_thinking=True),
        ),
    ),
    (
        DSML,
        ChatTemplate(
            "deepseek_v32",
            "llama.cpp/deepseek-ai-DeepSeek-V3.2",
            ("<｜end▁of▁sentence｜>",),
            SWITCH,
            when(enable_thinking=True),
            results=False,
            anchor="<｜Assistant｜>",
        ),
    ),
    *(
        (
            replace(KIMI, reasons=n == "Kimi-K2-Thinking"),
            ChatTemplate(
                "kimi_k2",
                f"llama.cpp/{n}",
                ("<|im_end|>",),
                call_id=lambda name, index: f"functions.{name}:{index}",
                mutable=True,
                keeps=beside_calls,
            ),
        )
        for n in ("moonshotai-Kimi-K2", "Kimi-K2-Instruct", "Kimi-K2-Thinking")
    ),
    (
        XTML,
        ChatTemplate(
            "kimi_k3",
            "llama.cpp/Kimi-K3",
            ("<|close|>message<|sep|><|end_of_msg|>",),
            ({}, {"thinking": False}),
            unless(thinking=False),
            keeps=lambda turn: turn if turn.reasoning.strip() else replace(turn, reasoning=""),
        ),
    ),
    (KV, ChatTemplate("glm4_moe", "trl/glm4moe", ("",), SWITCH, ON)),
    (KV, ChatTemplate("glm4_moe", "llama.cpp/GLM-4.6", ("",), SWITCH, ON)),
    (KV, ChatTemplate("glm4_moe", "llama.cpp/GLM-4.7-Flash", ("",), SWITCH, ON, anchor="<|assistant|>")),
    (
        replace(
            QUIET,
            answer="<tool_calls>|</?think>|<end_of_sentence>",
            markers=("<tool_calls>", "</tool_calls>", "<end_of_sentence>"),
            both=False,
        ),
        ChatTemplate("minimax_m1", "llama.cpp/MiniMax-M1", ("<end_of_sentence>\n",)),
    ),
    (INVOKE, ChatTemplate("minimax_m2", "llama.cpp/MiniMax-M2", ("[e~[\n",), anchor="]~b]ai\n")),
    (
        TREE,
        ChatTemplate(
            "minimax_m3",
            "llama.cpp/MiniMax-M3",
            ("[e~[\n",),
            ({}, {"thinking_mode": "enabled"}, {"thinking_mode": "disabled"}),
            unless(thinking_mode="disabled"),
            anchor="]~b]ai\n",
        ),
    ),
    *(
        (LLAMA, ChatTemplate("llama3_json", n, ("<|eot_id|>", "<|eom_id|>")))
        for n in ("trl/llama3_1", "trl/llama3_2", "llama.cpp/meta-llama-Llama-3.3-70B-Instruct")
    ),
    (replace(MISTRAL, both=False), ChatTemplate("mistral_v3", "llama.cpp/mistralai-Mistral-Nemo-Instruct-2407", ("",))),
    (MISTRAL, ChatTemplate("mistral_v13", "llama.cpp/unsloth-mistral-Devstral-Small-2507", ("",))),
    (MISTRAL, ChatTemplate("mistral_v13", "llama.cpp/mistralai-Ministral-3-14B-Reasoning-2512", ("",))),
    (replace(MISTRAL, both=False), ChatTemplate("mistral_v13", "llama.cpp/Mistral-Small-3.2-24B-Instruct-2506", ("",))),
    *(
        (
            replace(
                GEMMA,
                reasons=n != "trl/gemma4_v2",
                values=NO_NULL if n in GEMMA_EARLY else None,
            ),
            ChatTemplate(
                "gemma4",
                n,
                ("<turn|>\n", "<|tool_response>"),
                SWITCH,
                when(enable_thinking=True),
                keeps=beside_calls if n in GEMMA_EARLY else everything,
                anchor="<|turn>model\n",
            ),
        )
        for n in (
            "trl/gemma4",
            "trl/gemma4_v2",
            "trl/gemma4_v3",
            "trl/gemma4_v4",
            "trl/gemma4_v5",
            "trl/diffusion_gemma",
            "llama.cpp/google-gemma-4-31B-it",
            "llama.cpp/google-gemma-4-31B-it-interleaved",
        )
    ),
    (
        NANO,
        ChatTemplate(
            "nemotron_v2",
            "llama.cpp/NVIDIA-Nemotron-Nano-v2",
            ("\n<SPECIAL_12>\n", "<SPECIAL_12>\n\n"),
            gives=lambda turn: (
                turn if turn.calls else replace(turn, content=f"{turn.reasoning}\n</think>\n\n{turn.content}")
            ),
            anchor="<SPECIAL_11>Assistant\n",
        ),
    ),
    *(
        (XML, ChatTemplate("nemotron_3", n, CHATML, SWITCH, ON, anchor=ASSISTANT))
        for n in ("trl/nemotron_3_nano", "trl/nemotron_3_super", "trl/nemotron_3_ultra", "trl/nemotron_3_5_lightning")
    ),
    (XML, ChatTemplate("step3p5", "llama.cpp/StepFun3.5-Flash", CHATML)),
    (
        HY,
        ChatTemplate(
            "hy_v3",
            "llama.cpp/tencent-Hy3",
            ("<｜hy_eos:opensource｜>", ""),
            ({"reasoning_effort": "no_think"}, {"reasoning_effort": "high"}),
            when(reasoning_effort="high"),
        ),
    ),
    *(
        (LFM_RAW, ChatTemplate("lfm2_5", n, CHATML, key="thinking"))
        for n in ("trl/lfm2_2_5", "trl/lfm2_2_5_v2", "llama.cpp/LFM2.5-8B-A1B")
    ),
    (LFM, ChatTemplate("lfm2", "trl/lfm2_2_5_vl", CHATML, key="thinking")),
    (replace(LFM, reasons=False), ChatTemplate("lfm2", "trl/lfm2_v2", CHATML)),
    (APERTUS, ChatTemplate("apertus", "llama.cpp/Apertus-8B-Instruct", ("",))),
    (
        APRIEL,
        ChatTemplate(
            "apriel",
            "llama.cpp/Apriel-1.6-15b-Thinker-fixed",
            ("",),
            gives=lambda turn: replace(turn, reasoning="Here are my reasoning steps:\n" + turn.reasoning),
        ),
    ),
    *(
        (GIGA, ChatTemplate("gigachat3", f"llama.cpp/{n}", ("<|message_sep|>\n\n",)))
        for n in ("GigaChat3-10B-A1.8B", "GigaChat3.1-10B-A1.8B")
    ),
    (
        replace(
            KV,
            value=r"</arg_value>(?:\s*</[^<>\s]+>)*\s*(?:<arg_key>|</tool_call>|\Z)",
            answer=KV.answer + r"|<\|role_end",
        ),
        ChatTemplate("ling3", "llama.cpp/inclusionai-ling-3.0-flash", ("<|role_end|>",), SWITCH, ON),
    ),
    *((MUSE, ChatTemplate("muse", n, ("<|eot|>",))) for n in ("trl/muse_glimmer", "llama.cpp/muse-glimmer")),
    (MINICPM, ChatTemplate("minicpm5", "llama.cpp/openbmb-MiniCPM5-1B", CHATML, SWITCH, ON, anchor=ASSISTANT)),
    (
        SEED,
        ChatTemplate(
            "seed_oss",
            "llama.cpp/ByteDance-Seed-OSS",
            ("<seed:eos>", ""),
            ({"eos_token": "<seed:eos>", "bos_token": "<seed:bos>"},),
        ),
    ),
    # Only Laguna XS writes a line break behind its answer; nothing tells the two apart.
    *(
        (
            KV,
            ChatTemplate(
                "poolside_v1",
                f"llama.cpp/poolside-Laguna-{n}",
                ("\n</assistant>\n",),
                SWITCH,
                when(enable_thinking=True),
                anchor="<assistant>",
            ),
        )
        for n in ("XS.2", "XS-2.1")
    ),
    (
        KV,
        ChatTemplate(
            "poolside_v1",
            "llama.cpp/poolside-Laguna-S-2.1",
            ("</assistant>\n",),
            SWITCH,
            when(enable_thinking=True),
            anchor="<assistant>",
        ),
    ),
    (
        COMMAND,
        ChatTemplate(
            "cohere_command4",
            "llama.cpp/Cohere2MoE",
            ("<|END_OF_TURN_TOKEN|>",),
            anchor="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        ),
    ),
    (
        replace(HARMONY, reasons=False),
        ChatTemplate("gpt_oss", "trl/gptoss", ("<|end|>", "<|return|>", "<|call|>"), key="thinking"),
    ),
    (
        replace(HARMONY, calls=0),
        ChatTemplate("gpt_oss", "trl/gptoss", ("<|end|>", "<|return|>", "<|call|>"), key="thinking"),
    ),
    (
        replace(COMMAND, reasons=False, calls=0),
        ChatTemplate("cohere_command3", "trl/cohere2", ("<|END_OF_TURN_TOKEN|>",), results=False),
    ),
    (HERMES, ChatTemplate("bielik", "llama.cpp/Bielik-11B-v3.0-Instruct", CHATML, SWITCH, ON, anchor=ASSISTANT)),
    (
        replace(KV, answer=KV.answer + "|<｜end▁of▁sentence｜>"),
        ChatTemplate(
            "spark25",
            "llama.cpp/Spark2.5",
            ("<｜end▁of▁sentence｜>",),
            SWITCH,
            ON,
            anchor="<｜start▁of▁sentence｜><|Bot|>",
        ),
    ),
    (SOLAR, ChatTemplate("solar_open", "llama.cpp/upstage-Solar-Open-100B", ("<|end|>", "<|calls|>"), key="reasoning")),
    (
        FUNCTIONARY_31,
        ChatTemplate("functionary_v31", "llama.cpp/meetkai-functionary-medium-v3.1", ("<|eot_id|>", "<|eom_id|>")),
    ),
    (
        FUNCTIONARY_32,
        ChatTemplate("functionary_v32", "llama.cpp/meetkai-functionary-medium-v3.2", ("<|eot_id|>",), as_text=True),
    ),
    (
        FIRE,
        ChatTemplate(
            "firefunction_v2",
            "llama.cpp/fireworks-ai-llama-3-firefunction-v2",
            ("<|eot_id|>",),
            ({"functions": "", "datetime": ""},),
            onward=LLAMA_HEAD,
        ),
    ),
    (replace(QUIET, both=False), ChatTemplate("hermes", "vllm/hermes", CHATML, results=False)),
    (replace(XML, reasons=False), ChatTemplate("qwen3_xml", "vllm/qwen3coder", CHATML)),
    (GRANITE, ChatTemplate("granite3", "vllm/granite", ("<|end_of_text|>\n",))),
    (
        GRANITE_20B,
        ChatTemplate(
            "granite_20b_fc",
            "vllm/granite_20b_fc",
            (" <|endoftext|>\n", "\n<|endoftext|>\n"),
            anchor=("\nASSISTANT: ", "\nASSISTANT:"),
        ),
    ),
    (
        HUNYUAN,
        ChatTemplate(
            "hunyuan_a13b",
            "vllm/hunyuan_a13b",
            ("<|eos|>",),
            ({"enable_thinking": False},),
            prefills=True,
            onward="<think>\n\n</think>\n",
        ),
    ),
    (INTERNLM, ChatTemplate("internlm2", "vllm/internlm2_tool", CHATML)),
    (XLAM, ChatTemplate("xlam", "vllm/xlam_qwen", CHATML)),
    (XLAM, ChatTemplate("xlam", "vllm/xlam_llama", ("<|eot_id|>",))),
    (PYTHONIC, ChatTemplate("llama4_pythonic", "vllm/llama4_pythonic", ("<|eot|>",))),
    (FUNCTION_GEMMA, ChatTemplate("functiongemma", "vllm/functiongemma", ("<end_of_turn>",))),
]


@pytest.mark.parametrize(("form", "upstream"), TABLE, ids=[f"{row.family}-{row.source}" for _, row in TABLE])
def test_what_a_chat_template_renders(form: Form, upstream: ChatTemplate) -> None:
    holds(upstream.family, form, upstream.render, keeps=upstream.keeps, examples=40)
