"""Upstream's chat templates, as packages carry them, render; we read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import truth_forms as forms
from truth_jinja import ChatTemplate
from truth_turns import Form, Turn, holds

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


def behind_a_space(turn: Turn) -> Turn:
    """Jamba writes a space behind the header; it stays in an answer."""
    return replace(turn, content=f" {turn.content}") if turn.content else turn


ON = unless(enable_thinking=False)

TABLE: list[tuple[Form, ChatTemplate]] = [
    (forms.HERMES, ChatTemplate("qwen3", "trl/qwen3", CHATML, SWITCH, ON)),
    (forms.HERMES, ChatTemplate("qwen3", "llama.cpp/Qwen-Qwen3-0.6B", CHATML, SWITCH, ON)),
    (forms.QUIET, ChatTemplate("qwen3", "trl/qwen2_5", CHATML)),
    (forms.QUIET, ChatTemplate("qwen3", "trl/qwen3_instruct_2507", CHATML)),
    (forms.QUIET, ChatTemplate("qwen3", "trl/qwen3_vl", CHATML)),
    (forms.QUIET, ChatTemplate("qwen3", "llama.cpp/Qwen-QwQ-32B", CHATML, anchor=ASSISTANT)),
    (replace(forms.QUIET, calls=0), ChatTemplate("smollm3", "llama.cpp/HuggingFaceTB-SmolLM3-3B", CHATML, SWITCH)),
    (forms.XML, ChatTemplate("qwen3_xml", "trl/qwen3_5_think", CHATML, SWITCH, ON)),
    (forms.XML, ChatTemplate("qwen3_xml", "trl/qwen3_5_nothink", CHATML, SWITCH, when(enable_thinking=True))),
    (forms.XML, ChatTemplate("qwen3_xml", "trl/qwen3_6", CHATML, SWITCH, ON)),
    (forms.XML, ChatTemplate("qwen3_xml", "trl/qwen3_8", CHATML, SWITCH, ON)),
    (replace(forms.XML, reasons=False), ChatTemplate("qwen3_xml", "llama.cpp/Qwen3-Coder", CHATML)),
    *(
        (
            replace(forms.QUIET, both=False),
            ChatTemplate("hermes", f"llama.cpp/NousResearch-Hermes-{n}", CHATML, results=False),
        )
        for n in ("2-Pro-Llama-3-8B-tool_use", "3-Llama-3.1-8B-tool_use")
    ),
    *(
        (
            replace(forms.QUIET, answer=r"</?think>|<tool_call>|<\|end_of_text\|>"),
            ChatTemplate("granite4", f"llama.cpp/ibm-granite-granite-{n}", ("<|end_of_text|>\n",)),
        )
        for n in ("4.0", "4.1")
    ),
    (
        replace(forms.DEEPSEEK, reasons=False),
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
        replace(forms.DEEPSEEK, reasons=False, calls=0),
        ChatTemplate(
            "deepseek_v3", "trl/deepseekv3", ("<｜end▁of▁sentence｜>",), as_text=True, anchor="<｜Assistant｜>"
        ),
    ),
    (
        replace(forms.DEEPSEEK, reasons=False),
        ChatTemplate("deepseek_v31", "llama.cpp/deepseek-ai-DeepSeek-V3.1", ("<｜end▁of▁sentence｜>",)),
    ),
    (
        forms.DSML,
        ChatTemplate(
            "deepseek_v4",
            "llama.cpp/deepseek-ai-DeepSeek-V4",
            ("<｜end▁of▁sentence｜>",),
            SWITCH,
            when(enable_thinking=True),
        ),
    ),
    (
        forms.DSML,
        ChatTemplate(
            "deepseek_v4",
            "llama.cpp/deepseek-ai-DeepSeek-V4-Flash-0731",
            ("<｜end▁of▁sentence｜>",),
            SWITCH,
            when(enable_thinking=True),
        ),
    ),
    (
        forms.DSML,
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
            replace(forms.KIMI, reasons=n == "Kimi-K2-Thinking"),
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
        forms.XTML,
        ChatTemplate(
            "kimi_k3",
            "llama.cpp/Kimi-K3",
            ("<|close|>message<|sep|><|end_of_msg|>",),
            ({}, {"thinking": False}),
            unless(thinking=False),
            keeps=lambda turn: turn if turn.reasoning.strip() else replace(turn, reasoning=""),
        ),
    ),
    (forms.KV, ChatTemplate("glm4_moe", "trl/glm4moe", ("",), SWITCH, ON)),
    (forms.KV, ChatTemplate("glm4_moe", "llama.cpp/GLM-4.6", ("",), SWITCH, ON)),
    (forms.KV, ChatTemplate("glm4_moe", "llama.cpp/GLM-4.7-Flash", ("",), SWITCH, ON, anchor="<|assistant|>")),
    (
        replace(
            forms.QUIET,
            answer="<tool_calls>|</?think>|<end_of_sentence>",
            markers=("<tool_calls>", "</tool_calls>", "<end_of_sentence>"),
            both=False,
        ),
        ChatTemplate("minimax_m1", "llama.cpp/MiniMax-M1", ("<end_of_sentence>\n",)),
    ),
    (forms.INVOKE, ChatTemplate("minimax_m2", "llama.cpp/MiniMax-M2", ("[e~[\n",), anchor="]~b]ai\n")),
    (
        forms.TREE,
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
        (forms.LLAMA, ChatTemplate("llama3_json", n, ("<|eot_id|>", "<|eom_id|>")))
        for n in ("trl/llama3_1", "trl/llama3_2", "llama.cpp/meta-llama-Llama-3.3-70B-Instruct")
    ),
    (
        replace(forms.MISTRAL, both=False),
        ChatTemplate("mistral_v3", "llama.cpp/mistralai-Mistral-Nemo-Instruct-2407", ("",)),
    ),
    (forms.MISTRAL, ChatTemplate("mistral_v13", "llama.cpp/unsloth-mistral-Devstral-Small-2507", ("",))),
    (forms.MISTRAL, ChatTemplate("mistral_v13", "llama.cpp/mistralai-Ministral-3-14B-Reasoning-2512", ("",))),
    (
        replace(forms.MISTRAL, both=False),
        ChatTemplate("mistral_v13", "llama.cpp/Mistral-Small-3.2-24B-Instruct-2506", ("",)),
    ),
    *(
        (
            replace(
                forms.GEMMA,
                reasons=n != "trl/gemma4_v2",
                values=forms.NO_NULL if n in forms.GEMMA_EARLY else None,
            ),
            ChatTemplate(
                "gemma4",
                n,
                ("<turn|>\n", "<|tool_response>"),
                SWITCH,
                when(enable_thinking=True),
                keeps=beside_calls if n in forms.GEMMA_EARLY else everything,
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
        forms.NANO,
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
        (forms.XML, ChatTemplate("nemotron_3", n, CHATML, SWITCH, ON, anchor=ASSISTANT))
        for n in ("trl/nemotron_3_nano", "trl/nemotron_3_super", "trl/nemotron_3_ultra", "trl/nemotron_3_5_lightning")
    ),
    (forms.XML, ChatTemplate("step3p5", "llama.cpp/StepFun3.5-Flash", CHATML)),
    (
        forms.HY,
        ChatTemplate(
            "hy_v3",
            "llama.cpp/tencent-Hy3",
            ("<｜hy_eos:opensource｜>", ""),
            ({"reasoning_effort": "no_think"}, {"reasoning_effort": "high"}),
            when(reasoning_effort="high"),
        ),
    ),
    *(
        (forms.LFM_RAW, ChatTemplate("lfm2_5", n, CHATML, key="thinking"))
        for n in ("trl/lfm2_2_5", "trl/lfm2_2_5_v2", "llama.cpp/LFM2.5-8B-A1B")
    ),
    (forms.LFM, ChatTemplate("lfm2", "trl/lfm2_2_5_vl", CHATML, key="thinking")),
    (replace(forms.LFM, reasons=False), ChatTemplate("lfm2", "trl/lfm2_v2", CHATML)),
    (forms.APERTUS, ChatTemplate("apertus", "llama.cpp/Apertus-8B-Instruct", ("",))),
    (
        forms.APRIEL,
        ChatTemplate(
            "apriel",
            "llama.cpp/Apriel-1.6-15b-Thinker-fixed",
            ("",),
            gives=lambda turn: replace(turn, reasoning="Here are my reasoning steps:\n" + turn.reasoning),
        ),
    ),
    *(
        (forms.GIGA, ChatTemplate("gigachat3", f"llama.cpp/{n}", ("<|message_sep|>\n\n",)))
        for n in ("GigaChat3-10B-A1.8B", "GigaChat3.1-10B-A1.8B")
    ),
    (
        replace(
            forms.KV,
            value=r"</arg_value>(?:\s*</[^<>\s]+>)*\s*(?:<arg_key>|</tool_call>|\Z)",
            answer=forms.KV.answer + r"|<\|role_end",
        ),
        ChatTemplate("ling3", "llama.cpp/inclusionai-ling-3.0-flash", ("<|role_end|>",), SWITCH, ON),
    ),
    *((forms.MUSE, ChatTemplate("muse", n, ("<|eot|>",))) for n in ("trl/muse_glimmer", "llama.cpp/muse-glimmer")),
    (forms.MINICPM, ChatTemplate("minicpm5", "llama.cpp/openbmb-MiniCPM5-1B", CHATML, SWITCH, ON, anchor=ASSISTANT)),
    (
        forms.SEED,
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
            forms.KV,
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
        forms.KV,
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
        forms.COMMAND,
        ChatTemplate(
            "cohere_command4",
            "llama.cpp/Cohere2MoE",
            ("<|END_OF_TURN_TOKEN|>",),
            anchor="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        ),
    ),
    (
        replace(forms.HARMONY, reasons=False),
        ChatTemplate("gpt_oss", "trl/gptoss", ("<|end|>", "<|return|>", "<|call|>"), key="thinking"),
    ),
    (
        replace(forms.HARMONY, calls=0),
        ChatTemplate("gpt_oss", "trl/gptoss", ("<|end|>", "<|return|>", "<|call|>"), key="thinking"),
    ),
    (
        replace(forms.COMMAND, reasons=False, calls=0),
        ChatTemplate("cohere_command3", "trl/cohere2", ("<|END_OF_TURN_TOKEN|>",), results=False),
    ),
    (forms.HERMES, ChatTemplate("bielik", "llama.cpp/Bielik-11B-v3.0-Instruct", CHATML, SWITCH, ON, anchor=ASSISTANT)),
    (
        replace(forms.KV, answer=forms.KV.answer + "|<｜end▁of▁sentence｜>"),
        ChatTemplate(
            "spark25",
            "llama.cpp/Spark2.5",
            ("<｜end▁of▁sentence｜>",),
            SWITCH,
            ON,
            anchor="<｜start▁of▁sentence｜><|Bot|>",
        ),
    ),
    (
        forms.SOLAR,
        ChatTemplate("solar_open", "llama.cpp/upstage-Solar-Open-100B", ("<|end|>", "<|calls|>"), key="reasoning"),
    ),
    (
        forms.FUNCTIONARY_31,
        ChatTemplate("functionary_v31", "llama.cpp/meetkai-functionary-medium-v3.1", ("<|eot_id|>", "<|eom_id|>")),
    ),
    (
        forms.FUNCTIONARY_32,
        ChatTemplate("functionary_v32", "llama.cpp/meetkai-functionary-medium-v3.2", ("<|eot_id|>",), as_text=True),
    ),
    (
        forms.FIRE,
        ChatTemplate(
            "firefunction_v2",
            "llama.cpp/fireworks-ai-llama-3-firefunction-v2",
            ("<|eot_id|>",),
            ({"functions": "", "datetime": ""},),
            onward=forms.LLAMA_HEAD,
        ),
    ),
    (replace(forms.QUIET, both=False), ChatTemplate("hermes", "vllm/hermes", CHATML, results=False)),
    (replace(forms.XML, reasons=False), ChatTemplate("qwen3_xml", "vllm/qwen3coder", CHATML)),
    (forms.GRANITE, ChatTemplate("granite3", "vllm/granite", ("<|end_of_text|>\n",))),
    (
        forms.GRANITE_20B,
        ChatTemplate(
            "granite_20b_fc",
            "vllm/granite_20b_fc",
            (" <|endoftext|>\n", "\n<|endoftext|>\n"),
            anchor=("\nASSISTANT: ", "\nASSISTANT:"),
        ),
    ),
    (
        forms.HUNYUAN,
        ChatTemplate(
            "hunyuan_a13b",
            "vllm/hunyuan_a13b",
            ("<|eos|>",),
            ({"enable_thinking": False},),
            prefills=True,
            onward="<think>\n\n</think>\n",
        ),
    ),
    (forms.INTERNLM, ChatTemplate("internlm2", "vllm/internlm2_tool", CHATML)),
    (forms.XLAM, ChatTemplate("xlam", "vllm/xlam_qwen", CHATML)),
    (forms.XLAM, ChatTemplate("xlam", "vllm/xlam_llama", ("<|eot_id|>",))),
    (forms.PYTHONIC, ChatTemplate("llama4_pythonic", "vllm/llama4_pythonic", ("<|eot|>",))),
    (forms.FUNCTION_GEMMA, ChatTemplate("functiongemma", "vllm/functiongemma", ("<end_of_turn>",))),
    (forms.EXAONE, ChatTemplate("exaone4", "axolotl/exaone4", ("[|endofturn|]\n",), results=False)),
    (forms.JAMBA, ChatTemplate("jamba", "axolotl/jamba", ("<|eom|>",), keeps=behind_a_space)),
    (
        replace(forms.DEEPSEEK, reasons=False),
        ChatTemplate("deepseek_r1", "xinference/deepseek-r1-0528", ("<｜end▁of▁sentence｜>",)),
    ),
    (
        replace(forms.DEEPSEEK, reasons=False),
        ChatTemplate(
            "deepseek_v3", "xinference/deepseek-v3-0324", ("<｜end▁of▁sentence｜>",), as_text=True, results=False
        ),
    ),
    (
        forms.KIMI,
        ChatTemplate(
            "kimi_k2",
            "xinference/Kimi-K2.5",
            ("<|im_end|>",),
            call_id=lambda name, index: f"functions.{name}:{index}",
            keeps=beside_calls,
            mutable=True,
        ),
    ),
    (forms.INVOKE, ChatTemplate("minimax_m2", "xinference/MiniMax-M2.5", ("[e~[\n",), anchor="]~b]ai\n")),
    (forms.KV, ChatTemplate("glm4_moe", "xinference/glm-5.2", ("",), anchor="<|assistant|>")),
    (
        replace(forms.COMMAND, reasons=False),
        ChatTemplate(
            "cohere_command3",
            "axolotl/command_a_tool_use",
            ("<|END_OF_TURN_TOKEN|>",),
            onward="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
            results=False,
        ),
    ),
]


@pytest.mark.parametrize(("form", "upstream"), TABLE, ids=[f"{row.family}-{row.source}" for _, row in TABLE])
def test_what_a_chat_template_renders(form: Form, upstream: ChatTemplate) -> None:
    holds(upstream.family, form, upstream.render, keeps=upstream.keeps, times=30)
