"""From a model to its template: every rung of the search, its reason, and who must not be confused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import respzoo
from respzoo import hub, zoo
from respzoo.hookspecs import Family, Marks
from respzoo.names import bare_name
from respzoo.plugins import Plugins, hookimpl, loaded

SPEC = {"start_anchor": "<a>", "fields": {"content": {"close": "</a>"}}}
JSON_CALLS = "<|im_start|> <tool_call> {name, <args-json-object>} "
XML_CALLS = "<|im_start|> <tool_call> <function=f> <parameter=p> "


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A Hub that never answers, and the ids it was asked for."""
    asked: list[str] = []

    def read_hub(model: str, **options: Any) -> hub.Checkpoint:
        asked.append(model)
        return hub.Checkpoint("the Hub", {name: hub.Outcome("offline", "a test") for name in hub.FILES})

    monkeypatch.setattr(hub, "read_hub", read_hub)
    monkeypatch.delenv(zoo.PIN, raising=False)
    zoo.forget()
    yield asked
    zoo.forget()


class Tokenizer:
    """As much of a tokenizer as is looked at."""

    def __init__(self, name: str = "", chat_template: Any = None, response_template: Any = None) -> None:
        self.name_or_path = name
        self.chat_template = chat_template
        self.response_template = response_template


def checkpoint(folder: Path, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


# ------------------------------------------------------------------------------------------------------ ids and names

RESOLVED = {
    # exact, whatever the case
    "Qwen/Qwen3-8B": "qwen3",
    "qwen/qwen3-8b": "qwen3",
    "Qwen/Qwen2.5-7B-Instruct": "qwen3",
    "Qwen/Qwen2.5-VL-7B-Instruct": "qwen3",
    "Qwen/QwQ-32B": "qwen3",
    "Qwen/Qwen3-4B-Thinking-2507": "qwen3",
    "Qwen/Qwen3-30B-A3B-Instruct-2507": "qwen3",
    "Qwen/Qwen3-Next-80B-A3B-Thinking": "qwen3",
    "Qwen/Qwen3-Coder-30B-A3B-Instruct": "qwen3_xml",
    "Qwen/Qwen3-Coder-Next": "qwen3_xml",
    "Qwen/Qwen3.5-9B": "qwen3_xml",
    "Qwen/Qwen3.6-35B-A3B": "qwen3_xml",
    "Qwen/Qwen3.8-27B": "qwen3_xml",
    "openai/gpt-oss-20b": "gpt_oss",
    "openai/gpt-oss-safeguard-120b": "gpt_oss",
    "HuggingFaceTB/SmolLM3-3B": "smollm3",
    "CohereLabs/c4ai-command-r7b-12-2024": "cohere_command3",
    "CohereLabs/command-a-reasoning-08-2025": "cohere_command3",
    # quantised and uploaded again
    "Qwen/Qwen3-8B-FP8": "qwen3",
    "Qwen/Qwen3-8B-AWQ": "qwen3",
    "Qwen/Qwen3-30B-A3B-GPTQ-Int4": "qwen3",
    "Qwen/Qwen3-8B-GGUF": "qwen3",
    "unsloth/Qwen3-8B": "qwen3",
    "unsloth/Qwen3-8B-unsloth-bnb-4bit": "qwen3",
    "unsloth/Qwen3-30B-A3B-Instruct-2507-GGUF": "qwen3",
    "lmstudio-community/Qwen3-8B-GGUF": "qwen3",
    "lmstudio-community/Qwen3-8B-MLX-4bit": "qwen3",
    "mlx-community/Qwen3-8B-4bit": "qwen3",
    "mlx-community/Qwen3-4B-Thinking-2507-8bit": "qwen3",
    "bartowski/Qwen_Qwen3-8B-GGUF": "qwen3",
    "RedHatAI/Qwen3-8B-quantized.w4a16": "qwen3",
    "nvidia/Qwen3-30B-A3B-NVFP4": "qwen3",
    "Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8": "qwen3_xml",
    "unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF": "qwen3_xml",
    "mlx-community/Qwen3-Coder-Next-4bit": "qwen3_xml",
    "unsloth/gpt-oss-20b-BF16": "gpt_oss",
    "bartowski/openai_gpt-oss-120b-GGUF": "gpt_oss",
    "mlx-community/gpt-oss-20b-MXFP4-Q8": "gpt_oss",
    "unsloth/SmolLM3-3B-GGUF": "smollm3",
    "HuggingFaceTB/SmolLM3-3B-ONNX": "smollm3",
    "CohereForAI/c4ai-command-r7b-12-2024": "cohere_command3",
    "mlx-community/c4ai-command-a-03-2025-4bit": "cohere_command3",
    # tuned further under a name that still begins as the model's
    "someone/Qwen3-8B-abliterated": "qwen3",
    "someone/Qwen2.5-14B-Instruct-roleplay": "qwen3",
    "someone/gpt-oss-20b-derestricted": "gpt_oss",
    "Qwen/Qwen3.7-12B": "qwen3_xml",
    "Qwen3-8B": "qwen3",
}

UNKNOWN = [
    "Qwen/Qwen3-Embedding-8B",
    "CohereLabs/aya-expanse-8b",
    "openai/gpt-ossified",
    "someone/my-finetune",
    "",
]


@pytest.mark.parametrize(("model", "family"), RESOLVED.items())
def test_a_name_resolves(model: str, family: str) -> None:
    assert respzoo.get(model).name == family


@pytest.mark.parametrize("model", UNKNOWN)
def test_a_name_does_not_resolve(model: str) -> None:
    with pytest.raises(respzoo.UnknownModelError):
        respzoo.get(model)


@pytest.mark.parametrize("family", loaded().families.values(), ids=lambda family: family.name)
def test_every_listed_id_is_its_own_familys_by_every_rung(family: Family) -> None:
    """What a list says, no pattern and no other name contradicts."""
    others = [other for other in loaded().families.values() if other is not family]
    assert not family.models or family.match_name(bare_name(family.models[0]))
    for model in family.models:
        assert respzoo.get(model).name == family.name
        assert respzoo.get(f"elsewhere/{model.partition('/')[2]}-FP8").name == family.name
        assert not [other.name for other in others if other.match_name(bare_name(model))]


def test_only_unlisted_ids_ask_the_hub(no_hub: list[str]) -> None:
    respzoo.get("Qwen/Qwen3-8B")
    respzoo.get("Qwen/Qwen3-8B", chat_template=JSON_CALLS)
    assert no_hub == []
    respzoo.get("elsewhere/Qwen3-8B")
    assert no_hub == ["elsewhere/Qwen3-8B"]
    respzoo.get("elsewhere/Qwen3-8B")  # remembered
    assert no_hub == ["elsewhere/Qwen3-8B"]
    respzoo.get("Qwen/Qwen3-8B", prefer="hub")
    assert no_hub == ["elsewhere/Qwen3-8B", "Qwen/Qwen3-8B"]


# ------------------------------------------------------------------------------------------------- the reason why


@pytest.mark.parametrize(
    ("model", "options", "source"),
    [
        ("Qwen/Qwen3-8B", {}, "family qwen3 of respzoo:curated lists Qwen/Qwen3-8B"),
        ("x/Qwen3-8B-FP8", {}, "family qwen3 of respzoo:curated: another name of Qwen/Qwen3-8B"),
        ("x/gpt-oss-7b", {}, r"family gpt_oss of respzoo:curated: the name fits gpt-oss-(?:safeguard-)?\d+b(?:-.*)?"),
        (
            "x/y",
            {"chat_template": JSON_CALLS},
            "family qwen3 of respzoo:curated: the chat template has '<|im_start|>', '<tool_call>', '<args-json-object>'",
        ),
        ("x/y", {"template": "qwen3_xml"}, "pinned by template=: family qwen3_xml"),
        ("x/y", {"template": SPEC}, "pinned by template="),
    ],
)
def test_the_source_says_why(model: str, options: dict[str, Any], source: str) -> None:
    assert respzoo.get(model, **options).source == source


def test_the_trail_holds_every_rung() -> None:
    finding = zoo.find("x/Qwen3-8B-FP8")
    assert [rung.name for rung in finding.trail] == ["Hub", "exact id", "marks", "same model"]
    assert finding.template is not None


def test_an_unknown_model_is_told_what_was_tried_and_what_to_do() -> None:
    with pytest.raises(LookupError) as caught:
        respzoo.get("Qwen/Qwen3-Coder-Nxet")
    text = str(caught.value)
    assert text.startswith("no response template is known for 'Qwen/Qwen3-Coder-Nxet'\n")
    assert "near names: Qwen/Qwen3-Coder-Next" in text
    assert "Hub: the Hub: tokenizer_config.json, chat_template.jinja, config.json offline (a test)" in text
    for way in ("template=", "RESPZOO_TEMPLATE", "response_template", "registry/README.md"):
        assert way in text


# ------------------------------------------------------------------------------------------------------- chat templates


def test_a_chat_template_beats_the_name() -> None:
    template = respzoo.get("Qwen/Qwen3-8B", chat_template=XML_CALLS)
    assert template.name == "qwen3_xml"
    assert template.source.endswith("though qwen3 lists Qwen/Qwen3-8B")
    assert respzoo.get("Qwen/Qwen3-Coder-Next", chat_template=JSON_CALLS).name == "qwen3"
    assert respzoo.get("x/Qwen3-8B-FP8", chat_template=XML_CALLS).name == "qwen3_xml"


def test_a_chat_template_that_nobody_knows_does_not_beat_an_exact_id() -> None:
    assert respzoo.get("Qwen/Qwen3-8B", chat_template="{{ messages }}").name == "qwen3"


def test_a_likely_name_is_not_believed_against_a_foreign_chat_template() -> None:
    with pytest.raises(respzoo.UnknownModelError, match="has none of the marks of qwen3"):
        respzoo.get("x/Qwen3-8B-llama-chat", chat_template="<|start_header_id|>")
    assert respzoo.get("x/Qwen3-8B-plain", chat_template="<|im_start|>").name == "qwen3"


def test_a_chat_template_alone(tmp_path: Path, no_hub: list[str]) -> None:
    text = "{{ '" + XML_CALLS + "' }}"
    assert respzoo.get(text).name == "qwen3_xml"
    file = tmp_path / "chat_template.jinja"
    file.write_text(XML_CALLS)
    assert respzoo.get(file).name == "qwen3_xml"
    file.write_text(JSON_CALLS)
    assert respzoo.get(str(file)).name == "qwen3"  # read anew
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": JSON_CALLS}))
    assert respzoo.get(config).name == "qwen3"
    config.write_text(json.dumps({"chat_template": JSON_CALLS, "response_template": SPEC}))
    assert respzoo.get(config).source == f"response_template of file {config}"
    with pytest.raises(
        respzoo.UnknownModelError, match=r"(?s)for 'the chat template'\n.*no family knows the chat template"
    ):
        respzoo.get("{{ messages }}")
    assert no_hub == []


def test_a_path_too_long_for_the_file_system_is_no_fault() -> None:
    with pytest.raises(respzoo.UnknownModelError):
        respzoo.get("x" * 5_000)


@pytest.mark.parametrize(
    ("model", "despite"),
    [
        ("x/Qwen3-8B-FP8", ", though by its name it would be qwen3 (another name of Qwen/Qwen3-8B)"),
        ("x/Qwen3-9B-tuned", ", though by its name it would be qwen3 (the name fits "),
        ("x/Qwen3-Coder-9b-tuned", "'<parameter='"),
        ("x/y", "'<parameter='"),
    ],
)
def test_the_reason_says_that_the_name_says_otherwise(model: str, despite: str) -> None:
    source = respzoo.get(model, chat_template=XML_CALLS).source
    assert despite in source
    assert ("though" in source) == ("though" in despite)


def test_marks_that_say_more_win_and_a_tie_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Two:
        @hookimpl
        def respzoo_templates(self) -> list[Family]:
            one, two = Marks(("<one>",)), Marks(("<one>", "<two>"))
            return [
                Family("a", SPEC, marks=(one,), id_patterns=("a-.*",), models=("x/a-exactly",)),
                Family("b", SPEC, marks=(two,)),
                Family("c", SPEC, marks=(one,)),
            ]

    plugins = Plugins()
    plugins.register(Two(), "two")
    monkeypatch.setattr(zoo, "loaded", lambda: plugins)
    assert respzoo.get("x/y", chat_template="<one><two>").name == "b"
    for model in ("x/y", "x/a-7b"):  # no name breaks a tie
        with pytest.raises(respzoo.UnknownModelError, match="the chat template fits a and c alike"):
            respzoo.get(model, chat_template="<one>")
    assert respzoo.get("x/a-exactly", chat_template="<one>").name == "a"


# --------------------------------------------------------------------------------------------- folders and tokenizers


def test_a_folder_brings_its_own_template(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "mine", response_template=SPEC, chat_template=JSON_CALLS)
    for given in (folder, str(folder)):
        template = respzoo.get(given)
        assert template.spec == SPEC
        assert template.source == f"response_template of folder {folder}"
    assert respzoo.get(folder, prefer="curated").name == "qwen3"


def test_a_folder_is_read_anew(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "mine", chat_template=JSON_CALLS)
    assert respzoo.get(str(folder)).name == "qwen3"
    checkpoint(folder, chat_template=XML_CALLS)
    assert respzoo.get(str(folder)).name == "qwen3_xml"


def test_a_folder_is_known_by_its_chat_template_or_its_name(tmp_path: Path, no_hub: list[str]) -> None:
    assert respzoo.get(checkpoint(tmp_path / "run-17", chat_template=XML_CALLS)).name == "qwen3_xml"
    assert respzoo.get(checkpoint(tmp_path / "Qwen3-8B-FP8")).name == "qwen3"
    assert respzoo.get(checkpoint(tmp_path / "Qwen" / "Qwen3-8B")).source.endswith("lists Qwen/Qwen3-8B")
    tuned = checkpoint(tmp_path / "run-18")
    (tuned / "config.json").write_text(json.dumps({"_name_or_path": "openai/gpt-oss-20b"}))
    assert respzoo.get(tuned).source.endswith("lists openai/gpt-oss-20b")
    with pytest.raises(respzoo.UnknownModelError, match="run-19"):
        respzoo.get(checkpoint(tmp_path / "run-19"))
    assert no_hub == []


def test_a_folder_is_known_by_the_models_that_its_card_names(tmp_path: Path, no_hub: list[str]) -> None:
    folder = checkpoint(tmp_path / "run-20")
    card = folder / "README.md"
    for head in (
        "base_model: openai/gpt-oss-20b",
        'base_model:\n- "openai/gpt-oss-20b" # the one',
        "license: mit\nbase_model: ['openai/gpt-oss-20b', openai/gpt-oss-120b]\ntags: [a]",
        "base_model:\n  - openai/gpt-oss-20b\nbase_model_relation: finetune",
    ):
        card.write_text(f"---\n{head}\n---\n# base_model: Qwen/Qwen3-8B\n")
        assert respzoo.get(folder).source == "family gpt_oss of respzoo:curated: its base model is openai/gpt-oss-20b"
    card.write_text("---\nbase_model: unsloth/gpt-oss-20b-BF16\n---\n")
    assert "its base model unsloth/gpt-oss-20b-BF16: another name of openai" in respzoo.get(folder).source
    card.write_text("---\nbase_model: [openai/gpt-oss-20b, Qwen/Qwen3-8B]\n---\n")
    with pytest.raises(respzoo.UnknownModelError, match="base model: gpt_oss and qwen3 alike"):
        respzoo.get(folder)
    card.write_text("---\nbase_model: openai/gpt-oss-20b\n---\n")
    checkpoint(folder, chat_template="<|start_header_id|>")
    with pytest.raises(respzoo.UnknownModelError, match="but the chat template has none of the marks of gpt_oss"):
        respzoo.get(folder)
    for head in ("base_model: Qwen/Qwen3-8B-Base", "license: mit", "base_model:", "base_model: ''"):
        card.write_text(f"---\n{head}\n---\n")
        with pytest.raises(respzoo.UnknownModelError):
            respzoo.get(folder)
    assert no_hub == ["unsloth/gpt-oss-20b-BF16", "Qwen/Qwen3-8B-Base"]


def test_a_folder_is_known_by_a_type_that_only_one_family_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_hub: list[str]
) -> None:
    class Three:
        @hookimpl
        def respzoo_templates(self) -> list[Family]:
            return [
                Family("a", SPEC, model_types=("acme",), marks=(Marks(("<a>",)),)),
                Family("b", SPEC, architectures=("AcmeForCausalLM", "Shared"), model_types=("acme_b",)),
                Family("c", SPEC, architectures=("Shared",)),
            ]

    plugins = Plugins()
    plugins.register(Three(), "three")
    monkeypatch.setattr(zoo, "loaded", lambda: plugins)
    folder = checkpoint(tmp_path / "run-21")

    def config(**values: Any) -> Path:
        (folder / "config.json").write_text(json.dumps(values))
        return folder

    assert respzoo.get(config(model_type="acme")).source == "family a of three: its model_type is acme"
    assert respzoo.get(config(architectures=["AcmeForCausalLM"])).name == "b"
    unclear: list[dict[str, Any]] = [
        {"architectures": ["Shared"]},
        {"model_type": "acme", "architectures": ["AcmeForCausalLM"]},
        {"model_type": "other"},
        {"model_type": ["acme"], "architectures": "AcmeForCausalLM"},
        {"architectures": []},
    ]
    for values in unclear:
        with pytest.raises(respzoo.UnknownModelError):
            respzoo.get(config(**values))
    checkpoint(folder, chat_template="<other>")
    with pytest.raises(respzoo.UnknownModelError, match="none of the marks of a"):
        respzoo.get(config(model_type="acme"))
    assert no_hub == []


def test_a_folder_whose_template_does_not_load(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "mine", response_template={"fields": 1}, chat_template=JSON_CALLS)
    finding = zoo.find(folder)
    assert finding.template is not None
    assert finding.template.name == "qwen3"
    assert any("does not load" in rung.text for rung in finding.trail)


def test_a_tokenizer(no_hub: list[str]) -> None:
    assert respzoo.get(Tokenizer("Qwen/Qwen3-8B")).name == "qwen3"
    assert respzoo.get(Tokenizer("x/y", XML_CALLS)).name == "qwen3_xml"
    assert respzoo.get(Tokenizer("x/y", {"default": "x", "tool_use": JSON_CALLS})).name == "qwen3"
    own = respzoo.get(Tokenizer("Qwen/Qwen3-8B", JSON_CALLS, SPEC))
    assert own.spec == SPEC
    assert own.source == "response_template of tokenizer Tokenizer (Qwen/Qwen3-8B)"
    assert respzoo.get("Qwen/Qwen3-8B", tokenizer=Tokenizer("", XML_CALLS)).name == "qwen3_xml"
    assert no_hub == []


def test_a_tokenizer_of_a_folder(tmp_path: Path) -> None:
    assert respzoo.get(Tokenizer(str(checkpoint(tmp_path / "gpt-oss-20b")))).name == "gpt_oss"


@pytest.mark.parametrize("model", [3, None, b"Qwen/Qwen3-8B", {"fields": {}}])
def test_what_is_no_model(model: object) -> None:
    with pytest.raises(TypeError, match="an id, a folder, a tokenizer, a chat template or its file"):
        respzoo.get(model)


def test_what_is_no_preference() -> None:
    with pytest.raises(ValueError, match="prefer must be 'curated' or 'hub'"):
        respzoo.get("x/y", prefer="best")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------- pins and plugins


def test_a_pin_settles_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_hub: list[str]) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(SPEC))
    monkeypatch.setenv(zoo.PIN, str(file))
    for model in ("Qwen/Qwen3-8B", "x/y", Tokenizer("x/y", JSON_CALLS)):
        assert respzoo.get(model).spec == SPEC
    assert respzoo.get("x/y").source == f"pinned by RESPZOO_TEMPLATE: {file}"
    assert respzoo.get("x/y", template="gpt_oss").name == "gpt_oss"
    monkeypatch.setenv(zoo.PIN, "qwen3_xml")
    assert respzoo.get("Qwen/Qwen3-8B").name == "qwen3_xml"
    monkeypatch.delenv(zoo.PIN)
    assert respzoo.get("Qwen/Qwen3-8B").name == "qwen3"
    monkeypatch.setenv(zoo.PIN, str(tmp_path / "gone.json"))
    with pytest.raises(respzoo.UnknownModelError, match=r"pinned by RESPZOO_TEMPLATE: there is no .*gone\.json"):
        respzoo.get("Qwen/Qwen3-8B")
    assert no_hub == []


def test_a_plugins_rules_go_before_all_but_a_pin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Rules:
        @hookimpl
        def respzoo_find(self, model: str, chat_template: str | None, config: Mapping[str, Any]) -> str | None:
            return "gpt_oss" if config.get("model_type") == "acme" or model.startswith("Qwen/") else None

    plugins = Plugins()
    plugins.load_entry_points()
    plugins.register(Rules(), "acme")
    monkeypatch.setattr(zoo, "loaded", lambda: plugins)
    assert respzoo.get("Qwen/Qwen3-8B").source == "respzoo_find of acme answered gpt_oss"
    assert respzoo.get("Qwen/Qwen3-8B", template="qwen3").name == "qwen3"
    folder = checkpoint(tmp_path / "mine", chat_template=JSON_CALLS, response_template=SPEC)
    assert respzoo.get(folder).spec == SPEC
    (folder / "config.json").write_text('{"model_type": "acme"}')
    assert respzoo.get(folder).name == "gpt_oss"


# ----------------------------------------------------------------------------------------------------------- speed


def test_asking_again_costs_nothing() -> None:
    first = respzoo.get("Qwen/Qwen3-8B")
    assert respzoo.get("Qwen/Qwen3-8B") is first
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: called.append(f"{event} {frame.f_code.co_qualname}"))
    try:
        respzoo.get("Qwen/Qwen3-8B")
    finally:
        sys.setprofile(None)
    assert len(called) < 60, called


def test_a_curated_id_imports_no_client() -> None:
    code = "import sys, respzoo; respzoo.get('Qwen/Qwen3-8B'); print({'huggingface_hub', 'typer'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
