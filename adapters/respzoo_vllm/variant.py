"""A template without the fields that a request does not ask for: their text, markers and all, is content then."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from respzoo import ResponseTemplate
from respzoo.fields import CALLS, CONTENT, REASONING_NAMES
from respzoo_vllm.prompt import syntaxes

__all__ = ["without"]

_GROUP = re.compile(r"(?<!\\)\(\?P?<\w+>")


def without(template: ResponseTemplate, *, reasoning: bool, tools: bool) -> ResponseTemplate:
    """The template without its fields for reasoning, for calls, or for either; `True` keeps them."""
    spec = template.spec
    left_out = [
        name for name in spec["fields"] if (name in REASONING_NAMES and not reasoning) or (name == CALLS and not tools)
    ]
    if not left_out:
        return template
    kept = {name for name in spec["fields"] if name not in left_out}
    fields = {name: _ended_by_kept(field, kept) for name, field in spec["fields"].items() if name in kept}
    made = {**spec}
    if template.implicit is None and CONTENT in fields:
        # Nothing takes what stands between regions: regions that are not read become regions of content.
        shown = [_as_content(syntax) for name in left_out for syntax in _with_closer(spec, name)]
        fields[CONTENT] = [*syntaxes({"fields": fields}, CONTENT), *shown]
        made["dialect"] = "respzoo"
    given: dict[str, Any] = spec.get("defaults") or {}
    made["defaults"] = {name: value for name, value in given.items() if name not in spec["fields"]}
    made["fields"] = fields or {CONTENT: {}}
    return ResponseTemplate(made, name=template.name, source=template.source)


def _ended_by_kept(field: Any, kept: Collection[str]) -> Any:
    """A field, or each of its syntaxes, that only fields which are there end."""
    if isinstance(field, list):
        return [_ended_by_kept(syntax, kept) for syntax in cast("list[Any]", field)]
    ended_by = [name for name in field.get("ended_by", ()) if name in kept]
    rest = {key: value for key, value in field.items() if key != "ended_by"}
    return {**rest, "ended_by": ended_by} if ended_by else rest


def _with_closer(spec: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    return (syntax for syntax in syntaxes(spec, name) if "close" in syntax or "close_pattern" in syntax)


def _as_content(syntax: Mapping[str, Any]) -> dict[str, Any]:
    """A syntax whose text is content, with its opener."""
    pattern = syntax.get("open_pattern")
    if pattern is None:
        literals = [syntax["open"]] if isinstance(syntax["open"], str) else syntax["open"]
        pattern = "|".join(map(re.escape, literals))
    closers = {key: syntax[key] for key in ("close", "close_pattern") if key in syntax}
    return {
        "open_pattern": f"(?P<value>{_GROUP.sub('(?:', pattern)})",
        **{key: _GROUP.sub("(?:", value) if key == "close_pattern" else value for key, value in closers.items()},
        "content": "text",
        "content_args": {"strip": False},
    }
