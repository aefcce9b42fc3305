"""Names of models: bare, as others upload them again, and of models that were not taught to chat."""

from __future__ import annotations

import pytest

from respzoo.names import bare_forms, bare_name, is_chat


@pytest.mark.parametrize(
    ("model", "bare"),
    [
        ("unsloth/Qwen3.5-27B-MTP-GGUF", "qwen3.5-27b"),
        ("x/Qwen3-8B-BNB-NF4", "qwen3-8b"),
        ("x/Qwen3-8B-NVFP4-v2", "qwen3-8b"),
        ("x/Qwen3-8B-FP8-ct", "qwen3-8b"),
        ("Barrrrry/DeepSeek-R1-W4AFP8", "deepseek-r1"),
        ("unsloth/gemma-4-E2B-it-UD-MLX-4bit", "gemma-4-e2b-it"),
        ("BF16/Qwen3.8-27B-BF16-00001-of-00002.gguf", "qwen3.8-27b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-instruct-v0.3"),
        ("deepseek-ai/DeepSeek-V3", "deepseek-v3"),
        ("mistral-community/Codestral-22B-v0.1", "codestral-22b-v0.1"),
    ],
)
def test_what_a_quantised_form_adds(model: str, bare: str) -> None:
    assert bare_name(model) == bare


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("bartowski/Qwen_Qwen3-8B-GGUF", "qwen3-8b"),
        ("huihui-ai/Huihui-Qwen3.5-27B-abliterated", "qwen3.5-27b-abliterated"),
        ("mradermacher/Huihui-GLM-4.7-Flash-abliterated-i1-GGUF", "glm-4.7-flash-abliterated"),
        ("acme/acme-Qwen3-8B", "qwen3-8b"),
        ("DevQuasar/deepseek-ai.DeepSeek-V3.2-GGUF", "deepseek-v3.2"),
        ("DevQuasar/ibm-granite.granite-4.0-1b-GGUF", "granite-4.0-1b"),
        ("Qwen3-8B", "qwen3-8b"),
    ],
)
def test_what_uploading_again_adds(model: str, form: str) -> None:
    assert form in bare_forms([model], {"deepseek-ai", "ibm-granite"})


def test_a_dot_in_a_name_parts_no_owner_from_it() -> None:
    assert bare_forms(["Qwen/Qwen2.5-7B-Instruct"], {"qwen"}) == {"qwen2.5-7b-instruct"}
    assert bare_forms(["", "x/y"], set()) == {"y"}


@pytest.mark.parametrize(
    "name",
    [
        "qwen3-8b-base", "gemma-3-4b-pt", "qwen3-embedding-8b", "qwen3-vl-reranker-8b", "qwen2.5-math-7b-prm800k",
        "qwen2.5-math-prm-7b", "qwen3-8b-dflash-b16", "qwen3.8-27b-dflash2", "qwen3-8b_eagle3", "minimax-m2.5-eagel-model-0318",
        "deepseek-r1-nextn", "lfm2-colbert-350m", "qwen3-omni-30b-a3b-captioner", "qwen3-8b-speculator.eagle3", "qwen3-asr-1.7b",
        "hunyuan-7b-pretrain", "granite-guardian-3.1-8b",
    ],
)  # fmt: skip
def test_a_name_of_a_model_that_does_not_chat(name: str) -> None:
    assert not is_chat(name)


@pytest.mark.parametrize(
    "name",
    [
        "qwen3-8b",
        "ai21-jamba-large-1.6",
        "qwen3-8b-basement",
        "nemotron-3-nano-30b",
        "gpt-oss-safeguard-20b",
        "eaglet-8b",
    ],
)
def test_a_name_of_one_that_may(name: str) -> None:
    assert is_chat(name)
