"""What typing by a tool's schema may do to an argument, said as a check: is this value right for this text?"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

ALL = frozenset(("string", "integer", "number", "boolean", "null", "object", "array"))


def call_parts(value: Any) -> tuple[Any, Any] | None:
    """(name, arguments) if the value has a call's shape."""
    function = value.get("function") if isinstance(value, dict) else None
    if not isinstance(function, dict) or "name" not in function:
        return None
    return function["name"], function.get("arguments")


def is_call_field(spec: Any) -> bool:
    return spec.name == "tool_calls" and isinstance(spec.transform, Mapping) and "function" in spec.transform


def calls_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def call_fault(spec: Any, value: Any, body: str) -> str | None:
    """Why a value of tool_calls is no finished call (the reference returns it all the same)."""
    if not is_call_field(spec):
        return None
    for each in calls_of(value):
        function = each.get("function") if isinstance(each, dict) else None
        if not isinstance(function, dict):
            return "no function"
        name, arguments = function.get("name"), function.get("arguments")
        if not isinstance(name, str) or not name.strip():
            return f"the name is {name!r}"
        if isinstance(arguments, str):
            try:
                arguments = strict_json(arguments)
            except ValueError:
                return "arguments are text that is no JSON"
        if arguments is not None and not isinstance(arguments, dict):
            return f"arguments are {type(arguments).__name__}"
        if has_nan(arguments):
            return "NaN or Infinity"
    if spec.content == "json":
        try:
            json.loads(body, object_pairs_hook=no_duplicates)
        except KeyError as error:
            return f"duplicate key {error}"
        except ValueError:
            pass  # a dialect; its duplicates are the dialect's business
    return None


def has_nan(value: Any) -> bool:
    if isinstance(value, dict):
        return any(has_nan(each) for each in value.values())
    if isinstance(value, list):
        return any(has_nan(each) for each in value)
    return isinstance(value, float) and not math.isfinite(value)


def no_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise KeyError(key)
        found[key] = value
    return found


def strict_json(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise ValueError(name)

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=no_duplicates)
    except KeyError as error:
        raise ValueError(f"duplicate key {error}") from error


def finished(value: Any) -> Any:
    """A call as it leaves the parser: one level of JSON-in-a-string opened, absent arguments `{}`."""
    if isinstance(value, list):
        return [finished(each) for each in value]
    parts = call_parts(value)
    if parts is None:
        return value
    arguments = parts[1]
    if arguments is None:
        arguments = {}
    elif isinstance(arguments, str):
        try:
            opened = strict_json(arguments)
        except ValueError:
            opened = arguments
        arguments = opened if isinstance(opened, dict) else arguments
    return {**value, "function": {**value["function"], "arguments": arguments}}


def schemas_of(tools: Sequence[Any]) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            found[function["name"]] = function.get("parameters") or {}
    return found


def same_value(plain: Any, ours: Any, tools: Sequence[Any], *, raw_text: bool, otherwise: Any = None) -> str | None:
    """None if ours is the plain value, arguments apart that the tools' schemas type. `otherwise`: the value of which
    arguments without a schema are."""
    if isinstance(plain, list) and isinstance(ours, list) and len(plain) == len(ours):
        faults = (same_value(*pair, tools, raw_text=raw_text) for pair in zip(plain, ours, strict=True))
        return next((fault for fault in faults if fault), None)
    if exact(plain, ours):
        return None
    parts, our_parts = call_parts(plain), call_parts(ours)
    if parts is None or our_parts is None or parts[0] != our_parts[0] or not raw_text:
        return "another value"
    (name, arguments), our_arguments = parts, our_parts[1]
    if not isinstance(arguments, dict) or not isinstance(our_arguments, dict) or set(arguments) != set(our_arguments):
        return "other arguments"
    schema = schemas_of(tools).get(name, {})
    other = (call_parts(otherwise) or ("", {}))[1]
    for key, text in arguments.items():
        if exact(text, our_arguments[key]) or (key in other and exact(other[key], our_arguments[key])):
            continue
        if not isinstance(text, str):
            return f"argument {key} was typed already"
        properties = schema.get("properties")
        declared = properties.get(key) if isinstance(properties, Mapping) else None
        fault = typing_fault(text, declared, schema, our_arguments[key])
        if fault:
            return f"argument {key}: {fault}"
    return None


def exact(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True, default=repr) == json.dumps(other, sort_keys=True, default=repr)


def typing_fault(text: str, declared: Any, root: Mapping[str, Any], value: Any) -> str | None:
    """Why `value` is not what the text means under this schema (it is not the text itself: that was asked before)."""
    types = types_of(declared, root, 0)
    if not types:
        return "no schema describes it, so the text must stay"
    if types == {"string"}:
        return "a string must stay the text"
    meant = read(text)
    if meant is NOTHING:
        return "the text is no JSON value"
    if isinstance(meant, float) and meant.is_integer() and isinstance(value, int) and not isinstance(value, bool):
        meant = int(meant)
    if not exact(meant, value):
        return f"the text means {meant!r}"
    if not fits(value, types):
        return f"{value!r} is none of {sorted(types)}"
    if "string" in types and not round_trips(text, value):
        return "where string is allowed, text that does not round-trip stays"
    return None


NOTHING = object()


def read(text: str) -> Any:
    stripped = text.strip()
    words = {"True": True, "False": False, "None": None}
    if stripped in words:
        return words[stripped]
    try:
        return strict_json(stripped)
    except ValueError:
        pass
    if stripped[:1] in ("{", "["):  # as Python writes them
        try:
            return ast.literal_eval(stripped)
        except (ValueError, SyntaxError):
            pass
    return NOTHING


def round_trips(text: str, value: Any) -> bool:
    if value is None or isinstance(value, bool):
        return text.strip() in ("True", "False", "None", "true", "false", "null")
    if isinstance(value, (dict, list)):
        return True
    return json.dumps(value) == text.strip()


def fits(value: Any, types: frozenset[str]) -> bool:
    if value is None:
        return "null" in types
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int):
        return bool(types & {"integer", "number"})
    if isinstance(value, float):
        return "number" in types
    kinds = {str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "") in types


def types_of(schema: Any, root: Mapping[str, Any], depth: int) -> frozenset[str]:
    """The JSON types that a schema allows; none if it does not say."""
    if not isinstance(schema, Mapping) or depth > 20:
        return frozenset()
    if isinstance(reference := schema.get("$ref"), str):
        return types_of(resolve(reference, root), root, depth + 1)
    declared = schema.get("type")
    found = {declared} if isinstance(declared, str) else set(declared) if isinstance(declared, list) else set()
    for key in ("anyOf", "oneOf"):
        for choice in schema.get(key) or ():
            found |= types_of(choice, root, depth + 1)
    if not found:
        every = [types for part in schema.get("allOf") or () if (types := types_of(part, root, depth + 1))]
        found = set(frozenset.intersection(*every)) if every else set()
    if not found and "properties" in schema:
        found = {"object"}
    if not found:
        values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
        found = {kind for value in values for kind in ALL if fits(value, frozenset((kind,)))}
    if schema.get("nullable"):
        found.add("null")
    return frozenset(each for each in found if each in ALL)


def resolve(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    if not reference.startswith("#"):
        return None
    for step in reference[1:].strip("/").split("/"):
        if not step:
            continue
        step = step.replace("~1", "/").replace("~0", "~")
        found = found.get(step) if isinstance(found, Mapping) else None
    return found
