"""What the texts of each family look like: markup to quote in them, and what no reader could tell from markup.

`thought`, `answer` and `value` say where a render is ambiguous. Of a value in tags: a closing tag that another tag, the
call's end or the value's own closing tag follows, and an opening tag where one may have been left out before it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import strategies as st
from truth_turns import IDENTIFIERS, Form, json_values, texts

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
    value=r"</｜DSML｜ ?parameter>(?:\s*</[^<>\s]+>)*\s*(?:<｜DSML｜|</｜DSML｜|\Z)|(?:\A|\n|<｜DSML｜ ?invoke [^>]*>)\s*<｜DSML｜ ?parameter ",
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
    thought=r"</think>|<tool_call>\s*[\w.:/-]",
    answer=r"<think>|</think>|<tool_call>|<\|user\|>|<\|observation\|>|<\|endoftext\|>",
    value=r"</arg_value>(?:\s*</[^<>\s]+>)*\s*(?:<arg_key>|</tool_call>|\Z)|<tool_call>[^<>]*<arg_key>",
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
    value=r"</parameter>(?:\s*</[^<>\s]+>)*\s*(?:<parameter|</invoke>|\Z)|(?:\n|<invoke [^>]*>)\s*<parameter ",
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
    value=r"</atem:parameter>(?:\s*</[^<>\s]+>)*\s*(?:<atem:parameter|</atem:invoke>|\Z)|(?:\n|<atem:invoke [^>]*>)\s*<atem:parameter ",
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
    value=r"</arg_value(?::\w+)?>(?:\s*</[^<>\s]+>)*\s*(?:<arg_key|</tool_call|\Z)|<tool_call[^<>]*>[^<>]*(?:<tool_sep[^<>]*>)?\s*<arg_key",
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
    values=texts(("<|python_end|>", ")]", "'"), spaces=False),
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
EXAONE = replace(
    QUIET,
    markers=("<think>", "</think>", "<tool_call>", "</tool_call>", "[|endofturn|]"),
    answer=r"</?think>|<tool_call>|\[\|endofturn\|\]",
)
JAMBA = replace(QUIET, markers=("<tool_calls>", "</tool_calls>", "<|eom|>"), answer=r"<tool_calls>|<\|eom\|>")
