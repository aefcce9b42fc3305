"""Type a call's arguments by the tool's JSON Schema.

What came as JSON keeps its type. What came as raw text (xml-inline, kv-lines) is read by its schema: a string stays
the text; integer, number, boolean, null, object and array by JSON's own grammar, with Python's True, False and None
where models write them; where a string is one of several types, text that would not come back exactly stays a string
(`02139`); what does not fit stays the text. Without a schema it is the text, unless the template says otherwise.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from respzoo.content import Raw, load_strictly, settle_raw

__all__ = ["Tool", "Tools", "json_type", "pointed", "read_functions", "read_tools"]

Tool = Mapping[str, Any] | Callable[..., Any]
"""A tool as `apply_chat_template` takes it: a JSON schema or a Python function."""

Schema = Mapping[str, Any]

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_CONSTANTS = {"true": True, "True": True, "false": False, "False": False}
_MOST_STEPS = 64  # through references and unions


class Tools:
    """The tools that a model was offered: typing for the arguments of its calls."""

    __slots__ = ("_parameters",)

    def __init__(self, parameters: Mapping[str, Schema]) -> None:
        self._parameters = parameters

    def __bool__(self) -> bool:
        return bool(self._parameters)

    def __contains__(self, name: object) -> bool:
        return name in self._parameters

    def types(self, name: str, key: str) -> set[str]:
        """The JSON types that this argument of a call of `name` may have; none if nothing is said of it."""
        root = self._parameters.get(name)
        if root is None:
            return set()
        properties, others = _properties(root, root)
        return _types(_resolve(properties.get(key, others), root))[0]

    def typed(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call of `name`, each by its schema. Raises ValueError as a value parser does."""
        if not any(map(_has_raw, arguments.values())):
            return dict(arguments)
        root = self._parameters.get(name)
        if root is None:
            return cast("dict[str, Any]", settle_raw(dict(arguments)))
        properties, others = _properties(root, root)
        return {key: _typed(value, properties.get(key, others), root) for key, value in arguments.items()}


def read_tools(tools: Iterable[Tool] | None) -> Tools:
    """Tools as `apply_chat_template` takes them: JSON schemas (bare, or under `function`), or Python functions.

    Raises:
        TypeError: a Python function, without transformers to read its schema from its docstring.
    """
    parameters: dict[str, Schema] = {}
    for function in read_functions(tools):
        given = function.get("parameters")
        parameters[function["name"]] = cast("Schema", given) if isinstance(given, Mapping) else {}
    return Tools(parameters)


def read_functions(tools: Iterable[Tool] | None) -> Iterator[Schema]:
    """What each tool says of its function (`name`, `parameters` and more); raises as `read_tools`."""
    for tool in tools or ():
        schema: Any = tool
        if not isinstance(tool, dict) and (inspect.isfunction(tool) or inspect.ismethod(tool)):
            schema = _function_schema(tool)
        if not isinstance(schema, Mapping):
            continue
        schema = cast("Schema", schema)
        function: Any = schema.get("function", schema)
        if isinstance(function, Mapping) and isinstance(cast("Schema", function).get("name"), str):
            yield cast("Schema", function)


def _function_schema(tool: Callable[..., Any]) -> Any:
    try:
        from transformers.utils.chat_template_utils import get_json_schema  # pyright: ignore[reportUnknownVariableType]
    except ImportError as error:
        raise TypeError(
            f"tool {tool.__name__!r} is a Python function; reading its schema needs transformers "
            "(pip install transformers), or pass the tool as a JSON schema"
        ) from error
    return cast("Any", get_json_schema(tool))


def _resolve(schema: Any, root: Schema) -> list[Schema]:
    """The alternatives that a schema allows, its references and unions followed."""
    found: list[Schema] = []
    stack = [schema]
    for _ in range(_MOST_STEPS):
        if not stack:
            break
        at = stack.pop(0)
        if not isinstance(at, Mapping):
            continue
        at = cast("Schema", at)
        found.append(at)
        reference = at.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            stack.append(pointed(root, reference))
        for union in ("anyOf", "oneOf", "allOf"):
            choices = at.get(union)
            if isinstance(choices, Sequence) and not isinstance(choices, str):
                stack.extend(cast("Sequence[Any]", choices))
    return found


def pointed(root: Schema, reference: str) -> Any:
    """What a reference within a schema (`#/$defs/place`) points at; None where there is nothing."""
    at: Any = root
    for step in reference.lstrip("#").split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        at = cast("Schema", at).get(step) if isinstance(at, Mapping) else None
    return at


def _properties(schema: Any, root: Schema) -> tuple[dict[str, Any], Any]:
    """The schemas of an object's keys, and the one for all other keys."""
    properties: dict[str, Any] = {}
    others: Any = None
    for part in _resolve(schema, root):
        given = part.get("properties")
        if isinstance(given, Mapping):
            properties.update(cast("Mapping[str, Any]", given))
        if isinstance(part.get("additionalProperties"), Mapping):
            others = part["additionalProperties"]
    return properties, others


_JSON_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
    (type(None), "null"),
)


def json_type(value: Any) -> str:
    """What JSON Schema calls a value's type."""
    return next(name for kind, name in _JSON_TYPES if isinstance(value, kind))


def _types(alternatives: Sequence[Schema]) -> tuple[set[str], list[Any], bool]:
    """The type names that the alternatives allow, the values that they name one by one, and whether any text fits."""
    types: set[str] = set()
    values: list[Any] = []
    any_text = False
    for part in alternatives:
        declared = part.get("type")
        own: set[str] = set()
        if isinstance(declared, str):
            own.add(declared)
        elif isinstance(declared, Sequence):
            own.update(name for name in cast("Sequence[Any]", declared) if isinstance(name, str))
        types |= own
        if part.get("nullable") is True:
            types.add("null")
        named = list(cast("Sequence[Any]", part["enum"])) if isinstance(part.get("enum"), Sequence) else []
        if "const" in part:
            named.append(part["const"])
        values += named
        any_text = any_text or ("string" in own and not named)
        if declared is None:
            types.update(map(json_type, named))
    return types, values, any_text


def _has_raw(value: Any) -> bool:
    """Whether there is anything to type in it."""
    if isinstance(value, str):
        return False
    if isinstance(value, dict):
        return any(map(_has_raw, cast("dict[str, Any]", value).values()))
    if isinstance(value, list):
        return any(map(_has_raw, cast("list[Any]", value)))
    return isinstance(value, Raw)


def _typed(value: Any, schema: Any, root: Schema) -> Any:
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if not any(isinstance(item, Raw) for item in items):
            return settle_raw(items)
        # a key that came more than once: each by the items' schema, where there is one
        of_items = next((part["items"] for part in _resolve(schema, root) if "items" in part), schema)
        return [_typed(item, of_items, root) for item in items]
    if isinstance(value, dict):
        properties, others = _properties(schema, root)
        pairs = cast("dict[str, Any]", value).items()
        return {key: _typed(item, properties.get(key, others), root) for key, item in pairs}
    if not isinstance(value, Raw):
        return value
    types, values, any_text = _types(_resolve(schema, root))
    if not types:
        return value.value()
    read = _read(value.text, types, values, any_text=any_text)
    if read is value.text and types & {"object", "array"} and (not any_text or value.structured):
        # not JSON, but perhaps what the template's own value parser takes apart
        parts = value.parts(types)
        if isinstance(parts, dict | list):
            return _typed(parts, schema, root)
    return read


def _read(text: str, types: set[str], values: Sequence[Any], *, any_text: bool) -> Any:
    if any(isinstance(named, str) and named == text for named in values):
        return text
    stripped = text.strip()
    for read in _readers(types):
        try:
            value = read(stripped)
        except (ValueError, RecursionError):
            continue
        if not any_text or _comes_back(value, text):
            return value
    return text


def _readers(types: set[str]) -> list[Callable[[str], Any]]:
    readers: list[Callable[[str], Any]] = []
    if "null" in types:
        readers.append(_null)
    if "boolean" in types:
        readers.append(_boolean)
    if "integer" in types:
        readers.append(_integer)
    if "number" in types:
        readers.append(_number)
    if "object" in types:
        readers.append(lambda text: _structure(text, dict))
    if "array" in types:
        readers.append(lambda text: _structure(text, list))
    return readers


def _comes_back(value: Any, text: str) -> bool:
    if json.dumps(value, ensure_ascii=False) == text:
        return True
    return isinstance(value, dict | list) and json.dumps(value, ensure_ascii=False, separators=(",", ":")) == text


def _null(text: str) -> None:
    if text not in ("null", "None"):
        raise ValueError("not null")


def _boolean(text: str) -> bool:
    if text not in _CONSTANTS:
        raise ValueError("not a boolean")
    return _CONSTANTS[text]


def _number(text: str) -> int | float:
    if _NUMBER.fullmatch(text) is None:
        raise ValueError("not a number")
    if text.lstrip("-").isdigit():
        return int(text)
    number = float(text)
    if math.isinf(number):
        raise ValueError("too large")
    return number


def _integer(text: str) -> int:
    number = _number(text)
    if isinstance(number, float):
        if not number.is_integer():
            raise ValueError("not whole")
        return int(number)
    return number


def _structure(text: str, kind: type) -> Any:
    try:
        value = load_strictly(text)
    except ValueError:
        from respzoo.content.python_call_list import read_literal  # nearly always it is JSON

        value = read_literal(text)
    if not isinstance(value, kind):
        raise ValueError(f"not a {kind.__name__}")
    return value
