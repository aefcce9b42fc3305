"""What installed distributions announce: read here, and as `importlib.metadata` reads it."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
import zipfile
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from respzoo.installed import Announced, announced

POINTS = """\
[console_scripts]
acme = acme.cli:main

[acme.group]
# a comment
one = acme.plugins:plugin
two=acme.plugins
deep = acme.plugins : kinds.first [extra]

[other]
three = acme.other:plugin
"""


def distribution(folder: Path, directory: str, name: str, version: str, points: str = POINTS) -> None:
    info = folder / directory
    info.mkdir(parents=True)
    metadata = "METADATA" if directory.endswith(".dist-info") else "PKG-INFO"
    (info / metadata).write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: in the text\n")
    (info / "entry_points.txt").write_text(points)


def by_metadata(group: str) -> list[Announced]:
    found = importlib.metadata.entry_points(group=group)
    rows = [
        Announced(one.dist.name, one.dist.version, one.name, one.module, one.attr or "") for one in found if one.dist
    ]
    return sorted(rows, key=lambda row: (row.distribution, row.name))


@pytest.mark.parametrize("group", ["acme.group", "other", "console_scripts", "respzoo", "pytest11", "none"])
def test_the_same_as_importlib_metadata(group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    distribution(first, "acme_one-1.2.dist-info", "acme-one", "1.2")
    distribution(second, "acme_one-0.9.dist-info", "acme-one", "0.9", POINTS.replace("one =", "old ="))
    distribution(second, "acme.Two-2!3.0.dev1+local.dist-info", "acme.Two", "2!3.0.dev1+local")
    distribution(second, "acme_three-4-py3.11.egg-info", "acme-three", "4")
    distribution(second, "acme_bare.egg-info", "acme-bare", "5")
    (second / "acme_nothing-1.dist-info").mkdir()
    (second / "not.dist-info").write_text("a file")
    monkeypatch.setattr(sys, "path", [str(first), str(second), str(tmp_path / "missing"), *sys.path])
    importlib.invalidate_caches()
    assert announced(group) == by_metadata(group)
    if group == "acme.group":
        assert {(one.distribution, one.version) for one in announced(group)} == {
            ("acme-one", "1.2"),
            ("acme.Two", "2!3.0.dev1+local"),
            ("acme-three", "4"),
            ("acme-bare", "5"),
        }


def test_on_a_path_that_is_no_folder_importlib_metadata_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "bundle.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("acme-7.dist-info/METADATA", "Metadata-Version: 2.1\nName: acme\nVersion: 7\n")
        file.writestr("acme-7.dist-info/entry_points.txt", POINTS)
    monkeypatch.syspath_prepend(archive)
    assert announced("other") == [Announced("acme", "7", "three", "acme.other", "plugin")]


def test_another_finder_of_distributions_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    class Finder:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
            return None

        @staticmethod
        def find_distributions(context: Any) -> list[Any]:
            asked.append(context)
            return []

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert "respzoo" in {one.distribution for one in announced("respzoo")}
    assert asked


def test_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_announced.py").write_text("class kinds:\n    first = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert Announced("acme", "1", "deep", "acme_announced", "kinds.first").load() == 1
    assert Announced("acme", "1", "module", "acme_announced", "").load() is sys.modules["acme_announced"]
    with pytest.raises(AttributeError):
        Announced("acme", "1", "gone", "acme_announced", "gone").load()
