"""The message as it grows: the fields' values so far, and the record of what became none."""

from __future__ import annotations

import copy
from typing import Any, Literal, cast

from respzoo.events import Dropped
from respzoo.fields import CALLS, CONTENT, CompiledTemplate, Field

__all__ = ["Draft"]


class Draft:
    """One message in the making.

    Text fields add up: what is written of one in several places is one text, joined by its `join` or, verbatim and
    stripped once, by nothing; and so do calls. (The reference lets a later piece overwrite an earlier one.)
    """

    __slots__ = ("_fields", "_pieces", "_template", "_values", "dropped")

    def __init__(self, template: CompiledTemplate) -> None:
        self._template = template
        self._fields = template.by_key
        self._values: dict[str, Any] = {}
        self._pieces: dict[str, list[str]] | None = None
        self.dropped: list[Dropped] | tuple[()] = ()
        for name, value in template.defaults.items():
            field = template.fields.get(name)
            self._values[name if field is None else field.key] = (
                value if isinstance(value, str) else copy.deepcopy(value)
            )

    def keep(self, field: Field, value: Any, body: str) -> None:
        """A region of `field` with this text has this value."""
        if field.join is not None:
            self._piece(field, value)
        elif field.extended and field.key == CALLS:  # in the dialect always one list, whatever the syntaxes
            calls = self._values[CALLS] = _as_list(self._values.get(CALLS) or [])
            calls += _as_list(value)
        elif field.repeats:
            self._values.setdefault(field.key, []).append(value)
        elif field.flat:
            self._piece(field, body)
        elif field.key == CALLS and (before := self._values.get(CALLS)):
            # a second region of calls, in a template that expects one: no call is lost
            self._values[CALLS] = _as_list(before) + _as_list(value)
        else:
            self._values[field.key] = value

    def mark(self, field: Field) -> None:
        """A region of `field` has a value, which another keeps."""
        self._values.setdefault(field.key, [] if field.repeats else None)

    def _piece(self, field: Field, text: str) -> None:
        if self._pieces is None:
            self._pieces = {}
        pieces = self._pieces.get(field.key)
        if pieces is None:
            pieces = self._pieces[field.key] = []
            default = self._values.get(field.key)
            if field.join is not None and isinstance(default, str):
                pieces.append(default)
        pieces.append(text)

    def drop(
        self, field: str, raw: str, error: str, reason: Literal["malformed", "unfinished"], *, as_content: bool
    ) -> None:
        """A region became no value; `as_content` returns its text as content all the same."""
        self.dropped = self.dropped or []
        self.dropped.append({"field": field, "raw": raw, "error": error, "reason": reason})
        import logging  # most answers are whole

        logging.getLogger("respzoo").debug(
            "%s %s region of %d characters: %s", reason, field or "unknown", len(raw), error
        )
        if as_content and raw:  # a field that is missing has no text
            self.add_content(raw)

    def add_content(self, raw: str) -> None:
        """Text that no field could take is content."""
        field = self._fields.get(CONTENT)
        if field is not None and (field.flat or field.repeats):
            self.keep(field, raw, raw)
        else:
            before = self._values.get(CONTENT)
            self._values[CONTENT] = raw if before is None else f"{before}{raw}"

    def missing(self) -> list[Field]:
        """The required fields that have no value."""
        by_name = {field.name: field for field in self._template.fields.values() if not field.optional}
        known = {*self._values, *(self._pieces or ())}
        return [field for field in by_name.values() if field.key not in known]

    def message(self) -> dict[str, Any]:
        """The message, without fields that are empty and no defaults."""
        values = dict(self._values)
        for key, pieces in (self._pieces or {}).items():
            field = self._fields[key]
            values[key] = field.content.parse("".join(pieces)) if field.join is None else field.join.join(pieces)
        kept = {field.key for field in self._template.fields.values() if field.name in self._template.defaults}
        kept.update(self._template.defaults)
        return {key: value for key, value in values.items() if key in kept or not _is_empty(value)}


def _as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not cast("Any", value))
