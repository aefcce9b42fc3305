"""A request's functions as JSON schemas, whichever API it came by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from respzoo_vllm import engine

__all__ = ["tool_dicts"]


def tool_dicts(tools: Iterable[Any]) -> list[dict[str, Any]]:
    """Chat has functions under `function`. Responses has them flat, in namespaces, or as custom tools that take one
    text; its other tools are built in, and no functions. Names are those that the model is shown."""
    found: list[dict[str, Any]] = []
    for tool in tools:
        plain = cast("dict[str, Any]", tool if isinstance(tool, dict) else _dump(tool))
        if isinstance(plain.get("function"), dict):
            found.append(plain)
        else:
            found += [{"type": "function", "function": function} for function in _flat(plain)]
    return found


def _dump(tool: Any) -> dict[str, Any]:
    """A request's tool as it was asked; one of chat's without pydantic, which would walk through its schema."""
    function = getattr(tool, "function", None)
    if getattr(tool, "type", None) != "function" or not isinstance(getattr(function, "name", None), str):
        return tool.model_dump(exclude_none=True)
    given: dict[str, Any] = {**vars(function), **(getattr(function, "__pydantic_extra__", None) or {})}
    return {"type": "function", "function": {key: value for key, value in given.items() if value is not None}}


def _flat(tool: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    match tool.get("type"):
        case "function":
            yield dict(tool)
        case "namespace":
            for inner in tool.get("tools") or ():
                if inner.get("type") == "function":
                    yield {**inner, "name": f"{tool['name']}__{inner['name']}"}
        case "custom" if engine.custom_tool_parameters is not None:  # before, vLLM does not show them to the model
            yield {"name": tool["name"], "parameters": engine.custom_tool_parameters()}
        case _:
            pass
