"""What a region of calls must be: named, with an object of arguments, each typed by its tool's schema."""

from __future__ import annotations

from typing import Any, cast

from respzoo.content import Raw, load_strictly, settle_raw
from respzoo.schema import Tools

__all__ = ["finish_value"]


def finish_value(value: Any, tools: Tools, *, calls: bool) -> Any:
    """Type the arguments of the calls in a region's value, and settle what is still raw in it.

    Raises:
        ValueError: `calls`, and something in it is no call.
    """
    if isinstance(value, list):
        return [finish_value(item, tools, calls=calls) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        if calls:
            raise ValueError(f"expected a call, found {type(value).__name__}")
        return settle_raw(value)
    value = cast("dict[str, Any]", value)
    if "function" in value:
        function = value["function"]
        if isinstance(function, dict):
            settled = _settled(value)
            if calls and "id" in settled:
                settled = _with_text_id(settled)
            return {**settled, "function": _finish_call(cast("dict[str, Any]", function), tools, calls=calls)}
        if calls:
            raise ValueError(f"expected a call's name and arguments, found {type(function).__name__}")
    elif calls:
        return _finish_call(value, tools, calls=calls)
    return settle_raw(value)


def _settled(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item if key == "function" else settle_raw(item) for key, item in value.items()}


def _with_text_id(call: dict[str, Any]) -> dict[str, Any]:
    """A call's own id is text: a number becomes one, anything else is none."""
    id: Any = call["id"]
    if isinstance(id, int) and not isinstance(id, bool):
        return {**call, "id": str(id)}
    return call if isinstance(id, str) and id else {key: value for key, value in call.items() if key != "id"}


def _finish_call(call: dict[str, Any], tools: Tools, *, calls: bool) -> dict[str, Any]:
    call = {key: item if key == "arguments" else settle_raw(item) for key, item in call.items()}
    name, arguments = call.get("name"), call.get("arguments")
    if calls:
        if not isinstance(name, str) or not name:
            raise ValueError("a call without a name" if name is None else f"a call's name cannot be {name!r}")
        arguments = _open_arguments(arguments)
    if isinstance(name, str) and isinstance(arguments, dict):
        arguments = tools.typed(name, cast("dict[str, Any]", arguments))
    elif "arguments" in call:
        arguments = settle_raw(arguments)
    if calls or "arguments" in call:
        call["arguments"] = arguments
    return call


def _open_arguments(arguments: Any) -> Any:
    """A call's arguments as an object: absent ones are none, one level of JSON in a string is opened."""
    if isinstance(arguments, Raw):
        arguments = arguments.value()
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, str):
        arguments = load_strictly(arguments)
    if not isinstance(arguments, dict):
        raise ValueError(f"a call's arguments cannot be a {type(arguments).__name__}")
    return cast("dict[str, Any]", arguments)
