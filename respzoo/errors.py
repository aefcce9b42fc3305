"""Everything respzoo raises.

    RespzooError
    ├── TemplateError      (ValueError)   the author's: a response template that cannot be loaded
    ├── ParseError         (ValueError)   the model's: text that breaks its template, where the caller asked to be told
    └── UnknownModelError  (LookupError)  no template is known for a model

Two kinds of fault are kept apart. A template's author gets every problem at once, each with its place. What a model
wrote never raises inside a stream: it is a `region_malformed` event there, and a `ParseError` only from the one-shot
functions, whose caller can choose otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["ParseError", "Problem", "RespzooError", "TemplateError", "UnknownModelError"]


class RespzooError(Exception):
    """Base class of all errors that respzoo raises."""


class Problem(NamedTuple):
    """One thing wrong with a response template."""

    path: str
    """Where it is, as a JSON path: `$.fields.tool_calls.open_pattern`."""
    message: str
    """What was found there and what would be right."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class TemplateError(RespzooError, ValueError):
    """A response template that cannot be loaded. `problems` holds all that is wrong with it, in document order."""

    def __init__(self, problems: Sequence[Problem], *, name: str = "") -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.name = name
        count = len(self.problems)
        head = f"response template{f' {name!r}' if name else ''} has {count} problem{'s' if count != 1 else ''}"
        super().__init__("\n  ".join([f"{head}:", *map(str, self.problems)]))

    def __reduce__(self) -> tuple[Any, ...]:  # a worker process may have to send it
        return _remake, (type(self), self.args, vars(self))


class ParseError(RespzooError, ValueError):
    """A model's text broke its template.

    `message` is what could be parsed all the same (a malformed region is in none of its fields), `raw` the text of the
    first malformed region, delimiters and all, `field` the field it was meant for.
    """

    def __init__(self, text: str, *, message: Mapping[str, Any], raw: str, field: str | None) -> None:
        super().__init__(text)
        self.message: dict[str, Any] = dict(message)
        self.raw = raw
        self.field = field

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (type(self), self.args, vars(self))


class UnknownModelError(RespzooError, LookupError):
    """No response template is known for a model; the text says what was tried, near names, and how to add one."""


def _remake(kind: type[Exception], args: tuple[Any, ...], state: dict[str, Any]) -> Exception:
    """An error that was pickled, without running its `__init__` again."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error
