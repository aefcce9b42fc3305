"""A compiled template: its fields with their delimiters, the wrappers around them, and what to look for where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import regex

from respzoo.allowance import seconds_for
from respzoo.content import ContentParser, Lexer
from respzoo.delimiters import Delimiter, WatchList
from respzoo.events import Event

__all__ = ["CALLS", "CONTENT", "GIVEN_BACK", "REASONING", "REASONING_NAMES", "CompiledTemplate", "Field", "Wrapper"]

REASONING = "reasoning_content"
CONTENT = "content"
CALLS = "tool_calls"
REASONING_NAMES = frozenset({REASONING, "thinking", "reasoning"})
"""What templates call the field of reasoning."""


GIVEN_BACK = "value"
"""In the dialect, the group of an opener whose text is the beginning of the region's own."""


@dataclass(frozen=True)
class Field:
    """One field of a message, compiled; or one of the syntaxes that it is written in."""

    id: str
    """Its name, numbered where the field has several syntaxes."""
    name: str
    key: str
    """Its name in the message: the names of reasoning are one."""
    open: Delimiter | None
    close: Delimiter | None
    content: ContentParser
    repeats: bool
    join: str | None
    optional: bool
    transform: Any
    transform_each: bool | Literal["pairs"]
    extended: bool
    """Whether the template is in respzoo's dialect."""
    within: str | None
    """The wrapper that its regions stand in."""
    initial: bool
    ended_by: tuple[str, ...]
    """The fields whose openers end a region of this one."""
    ends_with_value: bool
    leading: bool
    """Whether its regions begin only before any content."""
    watch: WatchList
    """What ends a region of this field, where its content has no lexer."""
    lexer: Callable[[], Lexer] | None
    behind: tuple[Delimiter, ...]
    """What may stand behind the last region of this field: its wrapper's closer, the implicit field's."""

    @cached_property
    def flat(self) -> bool:
        """Whether the value is the region's own text, so that it can be shown as it comes."""
        return self.content.name == "text" and self.transform is None

    @cached_property
    def chunk(self) -> Event:
        """What the event of a chunk of one of its regions is copied from."""
        return {"type": "region_chunk", "field": self.name, "text": "", "dirty": not self.content.flat}

    @cached_property
    def strip(self) -> bool:
        return bool(self.content.args.get("strip", True))

    @cached_property
    def leaves_late(self) -> bool:
        """Whether its closer, or its wrapper's, may follow a region that has ended without it."""
        return (self.close is not None and bool(self.ended_by or self.ends_with_value)) or self.within is not None


@dataclass(frozen=True)
class Wrapper:
    """What stands around regions of a field."""

    id: str
    field: str
    """The name of the field."""
    open: Delimiter
    close: Delimiter
    watch: WatchList
    """What is looked for inside: the field's openers, and the wrapper's closer."""


@dataclass(frozen=True)
class CompiledTemplate:
    """A response template, ready to run. Shared by all streams; nothing in it changes."""

    spec: Mapping[str, Any]
    defaults: Mapping[str, Any]
    fields: Mapping[str, Field]
    """By id."""
    wrappers: Mapping[str, Wrapper]
    """By id."""
    implicit: Field | None
    initial: Field | None
    """The field in which a message begins."""
    anchor: regex.Pattern[str]
    anchor_literals: tuple[str, ...] | None
    outside: Mapping[tuple[bool, bool], WatchList]
    """What matters outside of explicit regions: every opener, and the implicit field's closer. Which list counts
    depends on whether a closer may still come whose region has ended without it, and on whether there is content."""
    keeps_text: bool
    """Whether a pattern may look at text before it, so that all of it is kept."""

    @cached_property
    def by_key(self) -> Mapping[str, Field]:
        """The first field of each key in the message."""
        first: dict[str, Field] = {}
        for field in self.fields.values():
            first.setdefault(field.key, field)
        return first

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The names of the fields that are reasoning or content, and which."""
        found = {field.name: field.key for field in self.fields.values() if field.key in (REASONING, CONTENT)}
        return {CONTENT: CONTENT, **found}

    @cached_property
    def heeds_content(self) -> bool:
        """Whether it matters that there is content already."""
        return self.outside[False, True] is not self.outside[False, False]

    def after_anchor(self, prompt: str) -> str:
        """The part of a prompt that the template has written of the assistant's message: what follows the last anchor.
        Empty when there is no anchor in it."""
        if self.anchor_literals is not None and len(self.anchor_literals) == 1:
            _, found, after = prompt.rpartition(self.anchor_literals[0])
            return after if found else ""
        end = None
        try:
            for match in self.anchor.finditer(prompt, timeout=seconds_for(prompt)):
                end = match.end()
        except TimeoutError:  # as if there were none: the message starts empty
            return ""
        return "" if end is None else prompt[end:]
