"""One audit over every curated family: its template here and in transformers, its samples under every cutting."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import warnings
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from respzoo import ResponseTemplate
from respzoo.hookspecs import Family
from respzoo.plugins import loaded
from respzoo.testing import Sample, check, how_to_update, load_samples

ROOT = Path(__file__).parents[1]
FAMILIES = {name: family for name, family in loaded().families.items() if loaded().owners[name] == "respzoo:curated"}
SAMPLES = {
    sample.id: (family, sample)
    for family in FAMILIES.values()
    if family.samples is not None
    for sample in load_samples(family.samples)
}
DAMAGED = {"truncated", "malformed"}

every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


@pytest.fixture(scope="session")
def fixture_schema() -> jsonschema.Draft202012Validator:
    """canitoolcall's schema of one fixture."""
    text = files("canitoolcall").joinpath("_data/spec/fixture.schema.json").read_text("utf-8")
    return jsonschema.Draft202012Validator(json.loads(text), format_checker=jsonschema.FormatChecker())


@pytest.fixture(scope="session")
def template_schema() -> jsonschema.Draft202012Validator:
    schema = json.loads(files("respzoo").joinpath("template.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_five_families_are_there() -> None:
    assert FAMILIES.keys() == {"smollm3", "qwen3", "qwen3_xml", "gpt_oss", "cohere_command3"}
    assert loaded().broken == []


# ----------------------------------------------------------------------------------------------------------- templates


@every_family
def test_the_template_loads_here(family: Family) -> None:
    template = ResponseTemplate(family.spec, name=family.name)
    assert dict(template.spec) == family.spec


@every_family
def test_the_template_loads_in_transformers(family: Family) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = importlib.import_module("transformers.utils.chat_parsing.response_templates")
    assert reference.load_response_template(json.loads(json.dumps(family.spec)))


@every_family
def test_the_template_fits_its_schema(family: Family, template_schema: jsonschema.Draft202012Validator) -> None:
    assert [error.message for error in template_schema.iter_errors(family.spec)] == []


@pytest.mark.parametrize(
    "spec",
    [
        {"fields": {"content": {}}},
        {"start_anchor": "a", "fields": {}},
        {"start_anchor": "a", "start_anchor_pattern": "a", "fields": {"content": {}}},
        {"start_anchor": "", "fields": {"content": {}}},
        {"start_anchor": "a", "fields": {"content": {"opne": "x"}}},
        {"start_anchor": "a", "fields": {"content": {"open": "x", "open_pattern": "x"}}},
        {"start_anchor": "a", "fields": {"content": {"open": []}}},
        {"start_anchor": "a", "fields": {"content": {"join": ""}}},
        {"start_anchor": "a", "fields": {"content": {"transform_each": True}}},
        {"start_anchor": "a", "fields": {"content": {"content": "yaml"}}},
        {"start_anchor": "a", "fields": {"content": {"content": "xml-inline"}}},
        {"start_anchor": "a", "version": 2, "fields": {"content": {}}},
    ],
)
def test_the_schema_refuses(spec: Any, template_schema: jsonschema.Draft202012Validator) -> None:
    assert not template_schema.is_valid(spec)


def test_the_schema_takes_every_template_we_test_with(template_schema: jsonschema.Draft202012Validator) -> None:
    drafts = sorted((ROOT / "tests" / "data" / "templates").rglob("*.json"))
    assert drafts
    for draft in drafts:
        spec = json.loads(draft.read_text("utf-8"))
        if "fields" in spec:
            assert [error.message for error in template_schema.iter_errors(spec)] == [], draft.name


@every_family
def test_delimiters_are_plain(family: Family) -> None:
    """No lookarounds: completeness is the parser's business, and a lookahead makes other parsers quadratic."""
    for field in family.spec["fields"].values():
        for key in ("open_pattern", "close_pattern"):
            assert not re.search(r"\(\?<?[=!]", field.get(key, "")), field[key]


@every_family
def test_text_around_calls_adds_up(family: Family) -> None:
    content = family.spec["fields"]["content"]
    assert content["repeats"]
    assert content["content_args"] == {"strip": False}
    assert "join" in content


# ---------------------------------------------------------------------------------------------------------- family.toml


@every_family
def test_the_family_says_what_it_is(family: Family) -> None:
    assert family.title
    assert family.models
    assert family.marks
    assert family.id_patterns
    assert len(family.sources) >= 2
    assert len(set(family.models)) == len(family.models)
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+", model) for model in family.models)


# -------------------------------------------------------------------------------------------------------------- samples


@every_family
def test_there_are_enough_samples(family: Family) -> None:
    samples = [sample for owner, sample in SAMPLES.values() if owner is family]
    assert len(samples) >= 12
    assert len({sample.text for sample in samples}) == len(samples)
    tags = [tag for sample in samples for tag in sample.record["tags"]]
    damaged = [sample for sample in samples if DAMAGED & set(sample.record["tags"])]
    assert len(damaged) >= 6
    for wanted in (
        "malformed",
        "truncated",
        "marker-in-arguments",
        "empty-arguments",
        "unicode",
        "string-escapes",
        "parallel-calls",
        "reasoning",
    ):
        assert wanted in tags, wanted


@pytest.mark.parametrize(("family", "sample"), SAMPLES.values(), ids=SAMPLES)
def test_a_sample_is_well_formed(
    family: Family, sample: Sample, fixture_schema: jsonschema.Draft202012Validator
) -> None:
    record = sample.record
    assert [error.message for error in fixture_schema.iter_errors(record)] == []
    assert record["family"] == family.name.replace("_", "-")
    assert record["id"].startswith(record["family"] + "/")
    assert "expected" in record
    assert ("x-derived" in record["tags"]) == record["notes"].startswith("Written for this zoo")
    offered = {tool["function"]["name"] for tool in record["tools"]}
    assert {call["name"] for call in record["expected"]["tool_calls"]} <= offered


@pytest.mark.parametrize(("family", "sample"), SAMPLES.values(), ids=SAMPLES)
def test_a_sample_holds_under_every_cutting(family: Family, sample: Sample) -> None:
    faults = check(loaded().compile(family, "audit"), sample)
    assert not faults, "\n".join([*faults, how_to_update(family, [sample.id])])


# ------------------------------------------------------------------------------------------------------- chat templates

UPSTREAM = {
    "qwen2_5": "qwen3",
    "qwen2_5_vl": "qwen3",
    "qwen3": "qwen3",
    "qwen3_vl": "qwen3",
    "qwen3_instruct_2507": "qwen3",
    "qwen3_5_think": "qwen3_xml",
    "qwen3_5_nothink": "qwen3_xml",
    "qwen3_6": "qwen3_xml",
    "qwen3_8": "qwen3_xml",
    "gptoss": "gpt_oss",
    "cohere2": "cohere_command3",
}
"""Files of trl's chat_templates, which are upstream's to the byte; what is not named here is no family's of ours."""


@pytest.fixture(scope="session")
def trl_chat_templates() -> dict[str, str]:
    """trl's chat templates out of its wheel; trl itself would bring torch."""
    folder = ROOT / ".cache" / "trl"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), "trl==1.16.0"]
    if not list(folder.glob("trl-1.16.0-*.whl")) and subprocess.run(command, check=False).returncode:
        pytest.skip("trl's wheel cannot be had: no package index")
    (wheel,) = folder.glob("trl-1.16.0-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if re.fullmatch(r"trl/chat_templates/\w+\.jinja", name)]
        return {Path(name).stem: archive.read(name).decode() for name in names}


def test_upstreams_chat_templates_are_recognised_as_their_family_and_no_other(
    trl_chat_templates: dict[str, str],
) -> None:
    assert UPSTREAM.keys() <= trl_chat_templates.keys()
    for name, text in trl_chat_templates.items():
        owner = UPSTREAM.get(name.removesuffix("_training"))
        found = [family.name for family in FAMILIES.values() if family.match_chat_template(text)]
        assert found == ([owner] if owner else []), name


CHATML = "{{ '<|im_start|>' + message.role }}"


@pytest.mark.parametrize(
    ("text", "family"),
    [
        (CHATML + "{%- if xml_tools or python_tools %}<tool_call>{<args-json-object>}</tool_call>", "smollm3"),
        (
            CHATML + r'"<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>"',
            "qwen3",
        ),
        (CHATML + r"<tool_call>\n<function=f>\n<parameter=p>\nv\n</parameter>", "qwen3_xml"),
        (CHATML + "<tool_call><function=f><parameter=p> truncate_history_thinking", None),  # Nemotron 3
        (CHATML + "<tool_call><function=f><parameter=p> '<|im_start|>tool_response'", None),  # Step 3.7
        (CHATML + "<|tool_call_start|>[f()]<|tool_call_end|>", None),  # LFM2
        (CHATML, None),
        ("<|CHATBOT_TOKEN|>{% if tools %}<|START_ACTION|>[{% else %}<|START_RESPONSE|>", "cohere_command3"),
        ("<|CHATBOT_TOKEN|><|START_ACTION|><|START_RESPONSE|><|START_TEXT|>", None),  # Command A+
        ("<|CHATBOT_TOKEN|>{{ message.content }}", None),  # Aya
    ],
)
def test_marks_tell_the_near_ones_apart(text: str, family: str | None) -> None:
    found = [one.name for one in FAMILIES.values() if one.match_chat_template(text)]
    assert found == ([family] if family else [])
