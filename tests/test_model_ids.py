"""Some eight hundred real model ids, and the family that each one's name alone leads to."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

import respzoo
from respzoo import zoo
from respzoo.names import bare_name
from respzoo.plugins import loaded

TABLE = Path(__file__).parent / "data" / "model_ids.tsv"
NONE = "-"


class Row(NamedTuple):
    id: str
    family: str
    seen: str
    why: str


def rows(text: str) -> list[Row]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    assert next(reader) == list(Row._fields)
    return [Row(*row) for row in reader]


ROWS = rows(TABLE.read_text("utf-8"))
CALLED = [row for row in ROWS if row.family != NONE]
UNCALLED = [row for row in ROWS if row.family == NONE]


def test_the_table_is_large_and_says_why() -> None:
    assert len(CALLED) >= 600
    assert len(UNCALLED) >= 180
    names = Counter(row.id.lower() for row in ROWS)
    assert [name for name, count in names.items() if count > 1] == []
    assert all(row.seen and row.why for row in ROWS)
    assert all(re.fullmatch(r"(?:[\w.-]+/)*[\w.-]+", row.id) for row in ROWS)
    forms = Counter(row.why for row in CALLED)
    quantised = forms["quantised or converted by others"] + forms["quantised or converted by its owner"]
    assert quantised >= 200
    assert forms["tuned further, or packed anew"] >= 50


def test_every_family_with_names_is_in_the_table() -> None:
    """A family that lists models and is not here would not be tested by them."""
    listing = {family.name for family in loaded().families.values() if family.models}
    assert listing - {row.family for row in CALLED} == set()


def found(ids: Iterable[str], folder: Path) -> dict[str, str]:
    """What each id resolves to without network and with an empty cache; a folder holds nothing but its name."""
    answers: dict[str, str] = {}
    for model in ids:
        given: str | Path = model
        if model.startswith("./"):
            given = folder / "folders" / model
            given.mkdir(parents=True)
        finding = zoo.find(given, local_files_only=True, cache_dir=folder / "cache")
        answers[model] = NONE if finding.template is None else finding.template.name
    return answers


@pytest.mark.parametrize("table", [CALLED, UNCALLED], ids=["resolve", "do not resolve"])
def test_ids(table: list[Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(zoo.PIN, raising=False)
    expected = {row.id: row.family for row in table}
    answers = found(expected, tmp_path)
    wrong = {row.id: (answers[row.id], row.family, row.why) for row in table if answers[row.id] != row.family}
    assert wrong == {}, "id: (found, expected, why)"


def test_no_pattern_fits_a_model_that_must_not_resolve() -> None:
    """By the patterns alone, too: a base model is not kept out by its suffix only where the suffix is the difference."""
    families = loaded().families.values()
    names = {row.id: bare_name(row.id) for row in UNCALLED if not re.search(r"(?i)\bbase|draft|dflash|eagle", row.id)}
    fitting = {model: [one.name for one in families if one.match_name(name)] for model, name in names.items()}
    assert {model: fits for model, fits in fitting.items() if fits} == {}


def test_who_is_refused_is_told_what_would_settle_it(tmp_path: Path) -> None:
    for model in ("tngtech/DeepSeek-TNG-R1T2-Chimera", "Qwen/Qwen3-8B-Base", "arcee-ai/Trinity-Large-Thinking"):
        with pytest.raises(respzoo.UnknownModelError) as caught:
            respzoo.get(model, local_files_only=True, cache_dir=tmp_path)
        text = str(caught.value)
        assert "not cached" in text
        assert "template=" in text
        assert "exact id: no family lists it" in text


NEARLY = """
    command-a deepseek-r10 deepseek-v30 gemma-40-31b-it glm-4.55 glm-50 gpt-ossified-20b hermes-30-llama-3.1-8b
    kimi-k20-instruct llama-3.1-8b-instructor llama-31-8b-instruct minimax-m25 mistral-small my-finetune my-qwen3-8b-run
    not-qwen3-8b phi-4-minimal-instruct qwen3 qwen35-9b qwen3-8bit smollm31-3b xqwq-32b olmo-30-7b-instruct step-33.5-flash
""".split()


def test_what_is_only_nearly_a_name_is_none(tmp_path: Path) -> None:
    """Made up: a character more or less, a name that merely contains one."""
    answers = found([f"someone/{name}" for name in NEARLY], tmp_path)
    assert {model: family for model, family in answers.items() if family != NONE} == {}
