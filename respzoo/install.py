"""A template written into a checkpoint: one member of its tokenizer_config.json, and not one byte of the others.

The file is edited as text. Its members are found with json's own scanner, the new one takes the file's indentation and
line ends, and the whole is written beside the file and moved over it, so that no reader ever sees half of it.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from respzoo.errors import RespzooError

__all__ = ["CONFIG", "KEY", "Change", "InstallError", "prepare"]

CONFIG = "tokenizer_config.json"
KEY = "response_template"

_SPACE = re.compile(r"[ \t\n\r]*")


class InstallError(RespzooError):
    """A checkpoint into which no template can be written."""


class _Member(NamedTuple):
    """One member of the outermost object: its key, its value, and where they stand."""

    key: str
    value: Any
    start: int
    value_start: int
    end: int


@dataclass(frozen=True)
class Change:
    """What is to be written, and what is there."""

    file: Path
    before: str
    after: str
    old: Any
    """The template that is there; None: none."""
    new: Mapping[str, Any]

    @property
    def nothing(self) -> bool:
        """Whether the very template is there already."""
        return self.old == self.new

    @property
    def replaces(self) -> bool:
        """Whether another template would be lost."""
        return self.old is not None and not self.nothing

    def diff(self) -> str:
        lines = (self.before.splitlines(keepends=True), self.after.splitlines(keepends=True))
        return "".join(difflib.unified_diff(*lines, f"{self.file} (as it is)", str(self.file)))

    def write(self) -> None:
        """Write it, whole or not at all. A link (as in the Hub's cache) is replaced by a file; its target stays."""
        handle, name = tempfile.mkstemp(dir=self.file.parent, prefix=f".{self.file.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self.after.encode("utf-8", "surrogatepass"))
                file.flush()
                os.fsync(file.fileno())
            shutil.copymode(self.file, name)
            os.replace(name, self.file)
        except BaseException:
            os.unlink(name)
            raise


def prepare(folder: Path, template: Mapping[str, Any]) -> Change:
    """What it takes to give the checkpoint in `folder` this template. Nothing is written yet.

    Raises:
        InstallError: there is no tokenizer_config.json, or it is not a JSON object.
    """
    file = folder / CONFIG
    try:
        before = file.read_bytes().decode("utf-8", "surrogatepass")
        members = list(_members(before))
    except FileNotFoundError as error:
        raise InstallError(f"there is no {file}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise InstallError(f"{file} cannot be read: {error}") from error
    there = [member for member in members if member.key == KEY]
    line_end = "\r\n" if "\r\n" in before else "\n"
    indent = _indent(before, members)
    if there:
        last = there[-1]  # the one that readers take
        value = _dump(template, indent, line_end)
        after = before[: last.value_start] + value + before[last.end :]
    else:
        after = _appended(before, members, f'"{KEY}": {_dump(template, indent, line_end)}', indent, line_end)
    kept = {member.key: member.value for member in members if member.key != KEY}
    if json.dumps(json.loads(after)) != json.dumps(_in_place(members, kept, template)):
        raise InstallError(f"{file} would not say the same: this is a fault of respzoo's, please report it")
    return Change(file, before, after, there[-1].value if there else None, template)


def _in_place(members: list[_Member], kept: Mapping[str, Any], template: Mapping[str, Any]) -> dict[str, Any]:
    """What the file has to say: its members in their order, the template among them or behind."""
    return {**{member.key: kept.get(member.key, template) for member in members}, KEY: template}


def _members(text: str) -> Iterator[_Member]:
    decoder = json.JSONDecoder()
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        raise ValueError("not a JSON object")
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        start = at
        key, at = decoder.raw_decode(text, at)
        at = _skip(text, at)
        if not isinstance(key, str) or text[at : at + 1] != ":":
            raise ValueError(f"expected a key and a colon at character {start}")
        value_start = _skip(text, at + 1)
        value, at = decoder.raw_decode(text, value_start)
        yield _Member(key, value, start, value_start, at)
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
            if text[at : at + 1] == "}":
                raise ValueError(f"a comma before the end at character {at}")
        elif text[at : at + 1] != "}":
            raise ValueError(f"expected a comma or the object's end at character {at}")
    if _skip(text, at + 1) != len(text):
        raise ValueError(f"text behind the object at character {at + 1}")


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _indent(text: str, members: list[_Member]) -> str | None:
    """The white space before each member, None if they stand on one line."""
    if not members:
        return "  "
    head = text[: members[0].start]
    return head.rpartition("\n")[2] if "\n" in head else None


def _dump(template: Mapping[str, Any], indent: str | None, line_end: str) -> str:
    if indent is None:
        return json.dumps(template, ensure_ascii=False)
    lines = json.dumps(template, ensure_ascii=False, indent=indent or 2).split("\n")
    return line_end.join([lines[0], *(indent + line for line in lines[1:])])


def _appended(text: str, members: list[_Member], member: str, indent: str | None, line_end: str) -> str:
    if indent is None:
        end = members[-1].end
        return f"{text[:end]}, {member}{text[end:]}"
    if members:
        end = members[-1].end
        return f"{text[:end]},{line_end}{indent}{member}{text[end:]}"
    start = text.index("{") + 1
    return f"{text[:start]}{line_end}{indent}{member}{line_end}{text[text.rindex('}') :]}"
