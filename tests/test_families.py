"""One audit over every curated family: its template here and in transformers, its samples under every cutting."""

from __future__ import annotations

import importlib
import json
import re
import warnings
import zlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import regex
from examples import ASKED

from respzoo import ResponseTemplate, TemplateError
from respzoo.hookspecs import Family
from respzoo.plugins import loaded
from respzoo.testing import Sample, add_up, check, how_to_update, load_samples, plain

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


NAMED = set(
    """apertus apriel cohere_command3 cohere_command4 cohere_command5 deepseek_r1 deepseek_v3 deepseek_v31 deepseek_v32
    deepseek_v4 deepseek_v41 ernie45 exaone4 functiongemma gemma4 gigachat3 glm4_moe gpt_oss granite3 granite4 granite_4_2
    hermes hunyuan_a13b hy_v3 hy_v4 inkling internlm2 jamba kimi_k2 kimi_k3 lfm2 ling3 llama3_json llama4_pythonic longcat
    mimo minicpm5 minimax_m1 minimax_m2 minimax_m3 mistral_v11_think mistral_v13 mistral_v3 muse nemotron_3 nemotron_v2
    olmo3 phi4_mini qwen3 qwen3_xml seed_oss smollm3 step3 step3p5 xlam""".split()
)
"""What the zoo promises to have."""


def test_the_families_are_there() -> None:
    assert loaded().broken == []
    assert not NAMED - FAMILIES.keys()
    assert len(FAMILIES) >= 55


def syntaxes(family: Family, name: str) -> list[Mapping[str, Any]]:
    """A field of a template, with each of its syntaxes."""
    field = family.spec["fields"].get(name, [])
    return field if isinstance(field, list) else [field]


EXTENSIONS = {"omit_pattern", "sequence", "raw_strings", "types", "unescape_keys"}
"""Arguments of content parsers that the dialect has, and the plain language ignores."""


def reads_otherwise(field: Mapping[str, Any]) -> bool:
    """Whether a field uses what the plain language takes for something else."""
    paths = re.findall(r"\{([^{}\"]*)\}", json.dumps(field.get("transform")))
    return bool(EXTENSIONS & field.get("content_args", {}).keys()) or any(set("|?") & set(path) for path in paths)


def in_dialect(family: Family) -> bool:
    return "dialect" in family.spec


# ----------------------------------------------------------------------------------------------------------- templates


@every_family
def test_the_template_loads_here(family: Family) -> None:
    template = ResponseTemplate(family.spec, name=family.name)
    assert dict(template.spec) == family.spec


@pytest.fixture(scope="session")
def reference() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("transformers.utils.chat_parsing.response_templates")


@every_family
def test_a_plain_template_loads_in_transformers_and_one_in_the_dialect_is_refused(
    family: Family, reference: Any
) -> None:
    spec = json.loads(json.dumps(family.spec))
    if not in_dialect(family):
        assert reference.load_response_template(spec)
        return
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        reference.load_response_template(spec)


@every_family
def test_the_dialect_is_needed(family: Family) -> None:
    """A template that says it is in the dialect would not load as a plain one, or would read another way."""
    if not in_dialect(family):
        return
    spec = {key: value for key, value in family.spec.items() if key != "dialect"}
    fields = [field for name in spec["fields"] for field in syntaxes(family, name)]
    if not any(reads_otherwise(field) for field in fields):
        with pytest.raises(TemplateError):
            ResponseTemplate(spec)


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
    for name in family.spec["fields"]:
        for field in syntaxes(family, name):
            for delimiters in (field, field.get("within", {})):
                for key in ("open_pattern", "close_pattern"):
                    assert not re.search(r"\(\?<?[=!]", delimiters.get(key, "")), delimiters[key]


@every_family
def test_text_around_calls_adds_up(family: Family) -> None:
    expected = [sample.record["expected"] for owner, sample in SAMPLES.values() if owner is family]
    if any(message["content"] and message["tool_calls"] for message in expected):
        content = syntaxes(family, "content")
        assert content[0]["repeats"]
        assert "join" in content[0]
        assert all(syntax.get("content_args", {}).get("strip") is False for syntax in content)


# ---------------------------------------------------------------------------------------------------------- family.toml


@every_family
def test_the_family_says_what_it_is(family: Family) -> None:
    assert family.title
    assert family.marks or family.models  # a model that nobody can name yet is known by its chat template
    assert bool(family.id_patterns) == bool(family.models)
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
    wanted = {"malformed", "truncated", "unicode"}
    if "tool_calls" in family.spec["fields"]:
        wanted |= {"marker-in-arguments", "empty-arguments", "string-escapes", "parallel-calls"}
    if "reasoning_content" in family.spec["fields"]:
        wanted.add("reasoning")
    assert not wanted - set(tags)


@every_family
def test_the_samples_are_well_formed(family: Family, fixture_schema: jsonschema.Draft202012Validator) -> None:
    for record in (sample.record for owner, sample in SAMPLES.values() if owner is family):
        told = record["id"]
        assert [error.message for error in fixture_schema.iter_errors(record)] == [], told
        assert record["family"] == family.name.replace("_", "-"), told
        assert told.startswith(record["family"] + "/")
        assert "expected" in record, told
        assert ("x-derived" in record["tags"]) == record["notes"].startswith("Written for this zoo"), told
        offered = {tool["function"]["name"] for tool in record["tools"]}
        assert {call["name"] for call in record["expected"]["tool_calls"]} <= offered, told


def read(template: ResponseTemplate, sample: Sample, pieces: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The message, and what its deltas add up to."""
    stream = template.stream(prefix=sample.prefix(template.spec), tools=sample.tools)
    deltas = [delta for piece in pieces for delta in stream.feed(piece)]
    message, last = stream.finish()
    return plain(message), plain(add_up([*deltas, *last]))


def places(sample: Sample) -> Sequence[int]:
    """Where to cut it in two: in some twenty places, others in each sample; everywhere by RESPZOO_EXAMPLES."""
    size = len(sample.text)
    step = 1 if ASKED else max(1, size // 20)
    return range(1 + zlib.crc32(sample.id.encode()) % step, size, step)


@pytest.mark.parametrize(("family", "sample"), SAMPLES.values(), ids=SAMPLES)
def test_a_sample_holds_under_every_cutting(family: Family, sample: Sample) -> None:
    template = loaded().compile(family, "audit")
    faults = check(template, sample)
    assert not faults, "\n".join([*faults, how_to_update(family, [sample.id])])
    whole, _ = read(template, sample, [sample.text])
    for place in places(sample):
        message, added = read(template, sample, [sample.text[:place], sample.text[place:]])
        assert message == added == whole, f"cut at {place}, {sample.text[:place]!r}"


@every_family
def test_a_template_does_not_depend_on_what_regex_remembers(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    """It drops compiled patterns as it likes: those of one source need not be one object, nor equal."""
    remembering = regex.compile

    def compile_anew(*args: Any, **options: Any) -> Any:
        regex.purge()
        return remembering(*args, **options)

    monkeypatch.setattr(regex, "compile", compile_anew)
    anew = ResponseTemplate(family.spec, name=family.name)
    monkeypatch.undo()
    known = ResponseTemplate(family.spec, name=family.name)
    assert anew.wrappers.keys() == known.wrappers.keys()
    assert [field.within for field in anew.fields.values()] == [field.within for field in known.fields.values()]


# ------------------------------------------------------------------------------------------------------- chat templates

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
        (CHATML + "<tool_call><function=f><parameter=p> truncate_history_thinking", "nemotron_3"),
        (CHATML + "<tool_call><function=f><parameter=p> '<|im_start|>tool_response'", "step3p5"),
        (CHATML + "<|tool_call_start|>[f()]<|tool_call_end|>", None),  # LFM2
        (CHATML, None),
        ("<|CHATBOT_TOKEN|>{% if tools %}<|START_ACTION|>[{% else %}<|START_RESPONSE|>", "cohere_command3"),
        ("<|CHATBOT_TOKEN|><|START_ACTION|><|START_RESPONSE|><|START_TEXT|>", "cohere_command4"),
        ("<|CHATBOT_TOKEN|>{{ message.content }}", None),  # Aya
    ],
)
def test_marks_tell_the_near_ones_apart(text: str, family: str | None) -> None:
    found = [one.name for one in FAMILIES.values() if one.match_chat_template(text)]
    assert found == ([family] if family else [])
