"""A table of real model ids: each resolves to its family by its name alone, and those that must not do not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from respzoo import hub, zoo
from respzoo.plugins import loaded

DATA = Path(__file__).parent / "data"


def rows(name: str) -> list[list[str]]:
    lines = (DATA / name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


KNOWN = rows("model_ids.tsv")
UNKNOWN = [model for (model,) in rows("model_ids_unknown.txt")]


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Names alone: the Hub says nothing."""

    def read_hub(model: str, **options: object) -> hub.Checkpoint:
        return hub.Checkpoint("the Hub", {name: hub.Outcome("offline", "a test") for name in hub.FILES})

    monkeypatch.setattr(hub, "read_hub", read_hub)
    monkeypatch.delenv(zoo.PIN, raising=False)
    zoo.forget()
    yield
    zoo.forget()


def test_the_tables_are_large_and_tidy() -> None:
    ids = [model for model, *_ in KNOWN] + UNKNOWN
    assert len(KNOWN) >= 300
    assert len(UNKNOWN) >= 60
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+", model, re.ASCII) for model in ids)
    assert all(len(row) == 3 and row[2] for row in KNOWN), "an id without a source"
    assert [family for _, family, _ in KNOWN] == sorted(family for _, family, _ in KNOWN)


def test_every_family_has_ids_in_the_table() -> None:
    families = loaded().families.items()
    curated = {name for name, one in families if loaded().owner(one) == "respzoo:curated" and one.models}
    counts = Counter(family for _, family, _ in KNOWN)
    assert counts.keys() == curated
    listed = [model for model, _, _ in KNOWN if model.lower() in loaded().ids]
    assert len(KNOWN) - len(listed) >= 300, "enough that are not simply listed: re-uploads, quantised, tuned further"


def test_every_id_of_the_table_resolves_to_its_family() -> None:
    wrong: list[str] = []
    for model, family, _ in KNOWN:
        template = zoo.find(model).template
        if template is None or template.name != family:
            wrong.append(f"{model}: {template.name if template else None}, not {family}")
    assert not wrong, "\n".join(wrong)


def test_no_id_that_must_not_resolve_does() -> None:
    wrong: list[str] = []
    for model in UNKNOWN:
        finding = zoo.find(model)
        if finding.template is not None:
            wrong.append(f"{model}: {finding.template.name}, {finding.trail[-1]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B-Base", "Qwen/Qwen3-Reranker-4B", "google/gemma-4-E2B-it-assistant"])
def test_not_by_its_base_model_and_its_config_either(model: str, tmp_path: Path) -> None:
    """A re-ranker made from a model that chats has its card and its config."""
    folder = tmp_path / model
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("---\nbase_model: Qwen/Qwen3-8B\n---\n")
    (folder / "config.json").write_text('{"model_type": "gemma4"}')
    finding = zoo.find(folder)
    if "assistant" not in model:
        assert finding.template is None
    else:
        assert "base model" in str(finding.trail[-1])


def test_upper_and_lower_case_are_one() -> None:
    for model, family, _ in KNOWN[::10]:
        template = zoo.find(model.upper()).template
        assert template is not None
        assert template.name == family
