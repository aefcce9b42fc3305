"""The door for templates that nobody here has read.

What the caller gives (a dict, `template=`, RESPZOO_TEMPLATE) is the caller's own and loads as in transformers; the
zoo's curated families are respzoo's own, and a test examines them. Whatever else the zoo finds is untrusted, since it
comes from strangers and runs inside a server: a `response_template` in a checkpoint or on a tokenizer, the families of
plugins. `zoo` and `plugins` send it through `examine` before anything of it is compiled; what is too large or has a
pattern with a hazard (hazards.py) is refused, with each place and the reason. A caller who has read one says so by
name: `respzoo.get(m, trust="org/model")`, or RESPZOO_TRUST="org/model,family" for a server.

Trusted or not, a template has an allowance (allowance.py): no pattern and no text can stall a stream.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from respzoo.errors import Problem, TemplateError

if TYPE_CHECKING:
    from respzoo.hazards import Limits

__all__ = ["ENVIRONMENT", "examine", "trusted_names"]

ENVIRONMENT = "RESPZOO_TRUST"
"""The environment variable with the names, comma between them, of what is trusted unread."""

_TOGETHER = 3  # times the places and moves of one pattern are allowed to all of a template


def trusted_names(trust: str | Iterable[str] | None = None) -> frozenset[str]:
    """What the caller and the environment trust by name: ids, folders, families."""
    given = [trust] if isinstance(trust, str) else list(trust or ())
    return frozenset(given) | {name.strip() for name in os.environ.get(ENVIRONMENT, "").split(",") if name.strip()}


def examine(spec: Any, *, name: str = "") -> None:
    """Refuse an unread template that is too large or has a pattern that may cost too much.

    Whether it is a template at all is not asked here.

    Raises:
        TemplateError: with every problem, its place and the reason.
    """
    from respzoo.hazards import LIMITS as limits
    from respzoo.hazards import examine_pattern

    problem = _too_large(spec, limits)
    if problem is not None:
        raise TemplateError([problem], name=name)
    problems: list[Problem] = []
    patterns: list[tuple[str, str]] = []
    for path, key, value in _entries(spec, "$"):
        if (key.endswith("pattern") or key in ("open_tag", "close_tag")) and isinstance(value, str):
            patterns.append((path, value))
        elif key in ("open", "close", "start_anchor") and isinstance(value, str | list):
            problems += _literals(path, [value] if isinstance(value, str) else cast("list[Any]", value), limits)
        elif path == "$.fields" and isinstance(value, Mapping):
            fields = list(cast("Mapping[str, Any]", value).values())
            count = sum(len(cast("list[Any]", field)) if isinstance(field, list) else 1 for field in fields)
            if count > limits.fields:
                problems.append(Problem(path, f"{count} fields; at most {limits.fields}"))
    if len(patterns) > limits.patterns:
        problems.append(Problem("$", f"{len(patterns)} patterns; at most {limits.patterns}"))
        patterns = []
    places = moves = 0
    for path, source in patterns:
        reading = examine_pattern(source, limits)
        problems += [Problem(path, f"refused in an untrusted template: {fault}") for fault in reading.faults]
        places, moves = places + reading.places, moves + reading.moves
    if places > _TOGETHER * limits.places or moves > _TOGETHER * limits.moves:
        problems.append(Problem("$", f"patterns of {places} places and {moves} moves together, more than are examined"))
    if problems:
        raise TemplateError(problems, name=name)


def _too_large(spec: Any, limits: Limits) -> Problem | None:
    characters = 0
    for values, (path, key, value) in enumerate(_entries(spec, "$", limits.nesting)):
        characters += len(key) + (len(value) if isinstance(value, str) else 0)
        if path.startswith("…"):
            return Problem("$" + path[1:], f"nested deeper than {limits.nesting} levels")
        if characters > limits.characters:
            return Problem("$", f"more than {limits.characters} characters; a template needs some hundreds")
        if values > limits.values:
            return Problem("$", f"more than {limits.values} values; a template needs some dozens")
    return None


def _entries(value: Any, path: str, nesting: int = 1_000) -> Iterator[tuple[str, str, Any]]:
    """Every value inside a value, in order: its JSON path, its key (its list's key for an element), itself."""
    stack: list[tuple[str, str, Any, int]] = [(path, "", value, 0)]
    while stack:
        path, key, value, depth = stack.pop()
        yield (path if depth <= nesting else "…" + path[1:]), key, value
        if isinstance(value, Mapping):
            items = [(f"{path}.{name}", str(name), item) for name, item in cast("Mapping[Any, Any]", value).items()]
        elif isinstance(value, list):
            items = [(f"{path}[{index}]", "", item) for index, item in enumerate(cast("list[Any]", value))]
        else:
            continue
        stack += [(at, name, item, depth + 1) for at, name, item in reversed(items)]


def _literals(path: str, texts: list[Any], limits: Limits) -> Iterator[Problem]:
    if len(texts) > limits.literals:
        yield Problem(path, f"{len(texts)} alternatives; at most {limits.literals}")
    for text in texts:
        if isinstance(text, str) and len(text) > limits.literal:
            yield Problem(path, f"a delimiter of {len(text)} characters ({text[:20]!r}…); at most {limits.literal}")
