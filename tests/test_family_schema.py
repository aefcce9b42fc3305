"""The schemas that editors read: valid for every curated file, named for each, and no laxer than the loader."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from respzoo.folders import FAMILY_KEYS, read_family
from respzoo.plugins import PluginError

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = sorted(file.parent for file in (ROOT / "registry" / "respzoo_curated").glob("*/family.toml"))
SCHEMA = json.loads((ROOT / "respzoo" / "family.schema.json").read_text("utf-8"))
LINE = "#:schema ../../../respzoo/family.schema.json"

validator = jsonschema.Draft202012Validator(SCHEMA)
each = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def test_it_is_a_schema_and_knows_every_key() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"].keys() == set(FAMILY_KEYS)
    assert all(value["description"] for value in SCHEMA["properties"].values())


@each
def test_it_is_valid_for_every_curated_family(folder: Path) -> None:
    table = tomllib.loads((folder / "family.toml").read_text("utf-8"))
    assert [error.message for error in validator.iter_errors(table)] == []


@each
def test_it_is_named_in_each(folder: Path) -> None:
    first = (folder / "family.toml").read_text("utf-8").partition("\n")[0]
    assert first == LINE, f"the first line of {folder.name}/family.toml must be {LINE}"
    assert (folder / LINE.removeprefix("#:schema ")).resolve() == ROOT / "respzoo" / "family.schema.json"


@each
def test_templates_are_mapped_to_theirs(folder: Path) -> None:
    """A template has no room for the name of its schema: transformers refuses keys that it does not know."""
    (mapping,) = json.loads((ROOT / ".vscode" / "settings.json").read_text("utf-8"))["json.schemas"]
    (pattern,) = mapping["fileMatch"]
    assert (folder / "template.json").relative_to(ROOT).match(pattern.removeprefix("/"))
    assert (ROOT / mapping["url"]).resolve() == ROOT / "respzoo" / "template.schema.json"


@pytest.mark.parametrize(
    "table",
    [
        {"titel": "x"},
        {"title": 1},
        {"models": "a/b"},
        {"models": [1]},
        {"id_patterns": "x"},
        {"sources": {}},
        {"notes": []},
        {"chat_template": {}},
        {"chat_template": [{"require": ["a"], "want": []}]},
        {"chat_template": [{"forbid": ["a"]}]},
        {"chat_template": [{"require": []}]},
        {"chat_template": [{"require": [""]}]},
    ],
)
def test_what_the_loader_refuses_it_refuses(table: dict[str, Any], tmp_path: Path) -> None:
    assert not validator.is_valid(table)
    folder = tmp_path / "acme"
    folder.mkdir()
    lines = [f"{key} = {_toml(value)}" for key, value in table.items()]
    (folder / "family.toml").write_text("\n".join(lines))
    with pytest.raises(PluginError):
        read_family(folder)


def _toml(value: Any) -> str:
    """JSON is TOML but for the tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(map(_toml, value)) + "]" if isinstance(value, list) else json.dumps(value)
