"""The plugins that installed distributions announce, read off their metadata.

`importlib.metadata` finds the same, but importing it takes longer than all else that finding a template does. So where
the path is made of plain folders, as it nearly always is, their `*.dist-info/entry_points.txt` are read here; otherwise
it is asked after all.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from typing import Any, NamedTuple

__all__ = ["Announced", "announced"]

# compiled when they are needed, and kept by `re`
_SECTION = r"^\[(.*)\]\s*$"
_ENTRY = r"^\s*([^=\s#;][^=]*?)\s*=\s*([\w.]+)\s*(?::\s*([\w.]+))?\s*(?:\[.*\])?\s*$"
_FIELD = r"(?m)^(Name|Version):\s*(\S+)"


class Announced(NamedTuple):
    """One entry point of a distribution."""

    distribution: str
    version: str
    name: str
    module: str
    attribute: str

    def load(self) -> Any:
        """Import what it names; that may raise anything."""
        found: Any = importlib.import_module(self.module)
        for part in filter(None, self.attribute.split(".")):
            found = getattr(found, part)
        return found


def announced(group: str) -> list[Announced]:
    """All entry points of a group, by distribution; of one that is installed twice, those that would be imported."""
    plain = all(finder is PathFinder or not hasattr(finder, "find_distributions") for finder in sys.meta_path)
    folders = [os.path.realpath(entry or os.curdir) for entry in sys.path]
    plain = plain and not any(os.path.isfile(folder) or folder.endswith(".egg") for folder in folders)
    found = _read(group, folders) if plain else _asked(group)
    return sorted(found, key=lambda entry: (entry.distribution, entry.name))


def _asked(group: str) -> Iterator[Announced]:
    from importlib.metadata import entry_points

    for entry in entry_points(group=group):
        name, version = (entry.dist.name, entry.dist.version) if entry.dist else ("", "")
        yield Announced(name, version, entry.name, entry.module, entry.attr or "")


def _read(group: str, folders: list[str]) -> Iterator[Announced]:
    seen: set[str] = set()
    for folder in dict.fromkeys(folders):
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        for name in names:
            if not name.endswith((".dist-info", ".egg-info")):
                continue
            distribution, _, version = name.rpartition(".")[0].partition("-")
            known = re.sub(r"[-_.]+", "-", distribution).lower()
            if known not in seen:
                seen.add(known)
                yield from _entries(group, os.path.join(folder, name), distribution, version.partition("-py")[0])


def _entries(group: str, folder: str, distribution: str, version: str) -> Iterator[Announced]:
    text = _text(folder, "entry_points.txt")
    if f"[{group}]" not in text:
        return
    metadata = _text(folder, "METADATA") or _text(folder, "PKG-INFO")
    fields = dict(re.findall(_FIELD, metadata.partition("\n\n")[0]))
    section = ""
    for line in text.splitlines():
        if head := re.match(_SECTION, line):
            section = head[1]
        elif section == group and (entry := re.match(_ENTRY, line)):
            name, version = fields.get("Name", distribution), fields.get("Version", version)
            yield Announced(name, version, entry[1], entry[2], entry[3] or "")


def _text(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return ""
