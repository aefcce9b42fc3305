"""Some 340 chat templates that packages carry: each has the marks of one family, or of none, as written down.

The packages and where they keep the texts: trl, chat_templates; llama.cpp, models/templates (in llama-cpp-python's
sources); vLLM, examples; mistral-common, which makes them; xinference, one file a model; unsloth, constants of a
module; axolotl, utils/chat_templates. They are fetched as those of tests/truth are, and kept in .cache/truth.
"""

from __future__ import annotations

import ast
import csv
import itertools
import json
import site
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mistral_common.integrations.chat_templates.chat_templates import generate_chat_template
from mistral_common.tokens.tokenizers.base import TokenizerVersion

from respzoo import zoo
from respzoo.hookspecs import Family, Marks
from respzoo.plugins import loaded

sys.path.insert(0, str(Path(__file__).parent / "truth"))

from truth_programs import (
    XINFERENCE,
    axolotl_templates,
    llama_cpp_templates,
    trl_templates,
    vllm_templates,
    wheel,
    xinference_templates,
)

TABLE = Path(__file__).parent / "data" / "chat_templates.tsv"
NONE = "-"
SILENT = "says nothing of tools or thinking"
UNSLOTH = "unsloth==2026.10.9"

FAMILIES = {name: family for name, family in loaded().families.items() if loaded().owners[name] == "respzoo:curated"}


class Row(NamedTuple):
    source: str
    name: str
    family: str
    why: str


def rows() -> Iterator[Row]:
    lines = [line for line in TABLE.read_text("utf-8").splitlines() if not line.startswith("#")]
    reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    assert next(reader) == list(Row._fields)
    return (Row(*row) for row in reader)


ROWS = list(rows())


# ------------------------------------------------------------------------------------------------------------ the texts


@cache
def without_training() -> dict[str, str]:
    """trl's, without the copies that mark what to train on (see below)."""
    return {name: text for name, text in trl_templates().items() if not name.endswith("_training")}


@cache
def xinference_models() -> dict[str, Any]:
    with zipfile.ZipFile(wheel(XINFERENCE)) as archive:
        files = [name for name in archive.namelist() if name.startswith("xinference/model/llm/models/")]
        models: dict[str, Any] = {Path(name).stem: json.loads(archive.read(name)) for name in files if "json" in name}
    return {name: model[0] if isinstance(model, list) else model for name, model in models.items()}


def xinference_ids(model: dict[str, Any]) -> Iterator[str]:
    """The ids on the Hub of one of xinference's models, in all the sizes and quantised forms that it lists."""
    for spec in model["model_specs"]:
        source = spec["model_src"].get("huggingface", {})
        for quantization in source.get("quantizations") or [""]:
            if name := source.get("model_id"):
                yield name.replace("{quantization}", quantization)


@cache
def unsloth_templates() -> dict[str, str]:
    """Of the module only what is a constant; the module itself does not run."""
    found: dict[str, str] = {}
    with zipfile.ZipFile(wheel(UNSLOTH)) as archive:
        for statement in ast.parse(archive.read("unsloth/chat_templates.py")).body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))) if "{%" in text:
                    found[name.removesuffix("_template")] = text
                case _:
                    pass
        for name in archive.namelist():
            if name.startswith("studio/backend/assets/chat_templates/") and name.endswith(".jinja"):
                found[Path(name).stem] = archive.read(name).decode()
    return found


MISTRAL = {
    "v1": (True, False, False),
    "v2": (True, False, False),
    "v3": (False, False, False),
    "v7": (False, False, False),
    "v11": (False, False, False),
    "v11-plain-thinking": (False, False, True),
    "v13": (False, False, False),
    "v13-thinking": (False, True, False),
    "v15-thinking": (False, True, False),
}
"""Whether the tokenizer is sentencepiece's, whether it has tokens for thinking, whether it thinks in plain text."""


@cache
def mistral_templates() -> dict[str, str]:
    found: dict[str, str] = {}
    for name, (spm, thinking, plain) in MISTRAL.items():
        version = TokenizerVersion(name.partition("-")[0])
        found[name] = generate_chat_template(
            spm=spm,
            tokenizer_version=version,
            image_support=False,
            audio_support=False,
            thinking_support=thinking,
            default_system_prompt=None,
            plain_thinking_support=plain,
            use_special_token_variables=True,
            model_settings_fields=None,
            reasoning_effort_values=("none", "high") if version.supports_model_settings else None,
            reasoning_effort_default="none" if version.supports_model_settings else None,
        )
    return found


SOURCES: dict[str, Callable[[], dict[str, str]]] = {
    "trl": without_training,
    "llama.cpp": llama_cpp_templates,
    "vllm": vllm_templates,
    "mistral-common": mistral_templates,
    "xinference": xinference_templates,
    "unsloth": unsloth_templates,
    "axolotl": axolotl_templates,
}


def text_of(row: Row) -> str:
    return SOURCES[row.source]()[row.name]


def marked(text: str) -> dict[str, Marks]:
    """The families whose marks a chat template has."""
    return {name: marks for name, family in FAMILIES.items() if (marks := family.match_chat_template(text))}


# ------------------------------------------------------------------------------------------------------------ the table


@pytest.mark.parametrize("source", SOURCES)
def test_each_chat_template_has_the_marks_of_its_family_and_of_no_other(source: str) -> None:
    texts = SOURCES[source]()
    expected = {row.name: row for row in ROWS if row.source == source}
    assert texts.keys() == expected.keys()
    found = {name: " ".join(marked(text)) or NONE for name, text in texts.items()}
    wrong = {name: (found[name], row.family) for name, row in expected.items() if found[name] != row.family}
    assert wrong == {}, "name: (found, expected)"


def test_the_table_is_large_and_says_why() -> None:
    assert len(ROWS) >= 340
    assert len({(row.source, row.name) for row in ROWS}) == len(ROWS)
    assert {row.family for row in ROWS} <= {NONE, *FAMILIES}
    assert len({row.family for row in ROWS}) >= 55
    assert [row for row in ROWS if row.family == NONE and not row.why] == []


def test_what_is_said_to_be_silent_is() -> None:
    silent = [row for row in ROWS if row.why == SILENT]
    assert silent
    for row in silent:
        assert row.family == NONE
        assert not any(word in text_of(row).lower() for word in ("tool", "think", "function")), row


def test_copies_for_training_have_the_marks_of_what_they_are_copied_from() -> None:
    texts = trl_templates()
    copies = [name for name in texts if name.endswith("_training")]
    assert copies
    for name in copies:
        assert marked(texts[name]).keys() == marked(texts[name.removesuffix("_training")]).keys(), name


def test_no_jinja_file_of_an_installed_package_has_the_marks_of_two_families() -> None:
    files = [file for folder in site.getsitepackages() for file in Path(folder).rglob("*.jinja")]
    assert files
    assert [file for file in files if len(marked(file.read_text("utf-8"))) > 1] == []


def test_the_search_gives_each_chat_template_its_family() -> None:
    """The whole way, from the text alone: marks are what answers, and a text with none is refused."""
    for row in ROWS:
        finding = zoo.find("someone/run-17", chat_template=text_of(row), local_files_only=True, cache_dir=TABLE.parent)
        assert (NONE if finding.template is None else finding.template.name) == row.family, row
        assert [rung.text for rung in finding.trail if "alike" in rung.text] == []


CHATS_ALL_THE_SAME = {"codestral-v0.1"}
"""What xinference only lets complete text, though its tokenizer has calls."""


def test_names_and_chat_templates_agree(tmp_path: Path) -> None:
    """Over seven hundred ids of which xinference knows the chat template, or that there is none: a name leads to the
    chat template's family, or nowhere."""
    rows = {row.name: row for row in ROWS if row.source == "xinference"}
    told: dict[str, tuple[str, str | None]] = {}
    for name, model in xinference_models().items():
        row = rows.get(name)
        if name in CHATS_ALL_THE_SAME or (row and (row.family == NONE or row.why.startswith("xinference's own"))):
            continue
        chats = "chat" in model["model_ability"]
        for model_id in xinference_ids(model):
            finding = zoo.find(model_id, local_files_only=True, cache_dir=tmp_path)
            if finding.template is not None:
                by_name = finding.template.name
                told[model_id] = by_name, row.family if row is not None else by_name if chats else None
    assert len(told) >= 700
    assert {model_id: both for model_id, both in told.items() if both[0] != both[1]} == {}, "by name, by chat template"


# -------------------------------------------------------------------------------------------------- marks beside marks

PAIRS = [
    (one, marks, other)
    for one, other in itertools.permutations(FAMILIES.values(), 2)
    for marks in one.marks
]  # fmt: skip


def test_no_forbidden_mark_makes_a_form_impossible() -> None:
    for family in FAMILIES.values():
        for marks in family.marks:
            assert marks.match("\n".join(marks.require)), (family.name, marks)


def test_no_familys_marks_are_anothers() -> None:
    """What one family requires is not, by itself, as good a reason for another."""
    alike = [
        (one.name, other.name, marks.require)
        for one, marks, other in PAIRS
        if (theirs := other.match_chat_template("\n".join(marks.require))) is not None and theirs.weight >= marks.weight
    ]
    assert alike == []


def test_a_familys_marks_are_in_no_others_chat_template() -> None:
    """Every pair of families of which one has a chat template in the table."""
    texts = [(row, text_of(row)) for row in ROWS if row.family != NONE]
    known = {row.family for row, _ in texts}
    assert len(known) >= 55
    confused = [
        (other.name, row)
        for row, text in texts
        for other in FAMILIES.values()
        if other.name != row.family and other.match_chat_template(text)
    ]
    assert confused == []


def test_two_families_never_tie_in_silence(tmp_path: Path) -> None:
    """A text with all that two families require, if both take it and with the same weight, is nobody's, and both are
    named."""
    ties = 0
    for one, other in itertools.combinations(FAMILIES.values(), 2):
        for mine, theirs in itertools.product(one.marks, other.marks):
            text = "{{ '" + "\n".join(dict.fromkeys(mine.require + theirs.require)) + "' }}"
            if not tied(text, one, other):
                continue
            ties += 1
            finding = zoo.find("someone/run-17", chat_template=text, local_files_only=True, cache_dir=tmp_path)
            assert finding.template is None or finding.template.name not in (one.name, other.name), (one, other)
            if finding.template is None:
                named = [rung.text for rung in finding.trail if rung.name == "marks" and "alike" in rung.text]
                assert len(named) == 1, (one.name, other.name, finding.trail)
    assert ties, "the marks have changed so that nothing ties: give this test a pair of its own"


def tied(text: str, one: Family, other: Family) -> bool:
    mine, theirs = one.match_chat_template(text), other.match_chat_template(text)
    return mine is not None and theirs is not None and mine.weight == theirs.weight
