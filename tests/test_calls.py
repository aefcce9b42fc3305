"""What a finished call is: a name, and an object of arguments."""

from __future__ import annotations

from typing import Any

import pytest

from respzoo.calls import finish_value
from respzoo.content import Raw
from respzoo.schema import read_tools

TOOLS = read_tools([{"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}])


def finish(value: Any) -> Any:
    return finish_value(value, TOOLS, calls=True)


def call(name: Any, *arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments[0]} if arguments else {"name": name}
    return {"type": "function", "function": function}


def test_arguments_are_typed() -> None:
    assert finish(call("f", {"n": Raw("7"), "m": Raw("7")})) == call("f", {"n": 7, "m": "7"})
    assert finish(call("g", {"n": Raw("7")})) == call("g", {"n": "7"})
    assert finish({"name": "f", "arguments": {"n": Raw("7")}}) == {"name": "f", "arguments": {"n": 7}}


@pytest.mark.parametrize("given", [call("f"), call("f", None), call("f", ""), call("f", {}), call("f", Raw(""))])
def test_absent_arguments_are_none(given: Any) -> None:
    assert finish(given) == call("f", {})


@pytest.mark.parametrize("text", ['{"n": 7}', ' {"n": 7}\n'])
def test_one_level_of_json_in_a_string_is_opened(text: str) -> None:
    assert finish(call("f", text)) == call("f", {"n": 7})
    assert finish(call("f", Raw(text))) == call("f", {"n": 7})


def test_json_in_a_string_keeps_its_types() -> None:
    assert finish(call("f", '{"n": "7", "m": "{}"}')) == call("f", {"n": "7", "m": "{}"})


@pytest.mark.parametrize(
    "arguments",
    ['"{}"', '"{\\"n\\": 1}"', "[]", "7", "null", "plain", '{"n": ', '{"n": 1, "n": 2}', '{"n": NaN}', '{"n": Infinity}',
     '{"n": 1e999}', [], [1], 7, True, 1.5, "   "],
    ids=repr,
)  # fmt: skip
def test_other_arguments_are_malformed(arguments: Any) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        finish(call("f", arguments))


@pytest.mark.parametrize("name", ["", None, 7, [], {}, True, "missing"], ids=repr)
def test_a_call_needs_a_name(name: Any) -> None:
    given = {"type": "function", "function": {"arguments": {}}} if name == "missing" else call(name, {})
    with pytest.raises(ValueError, match="name"):
        finish(given)


@pytest.mark.parametrize("function", [None, "f", 7, [], True], ids=repr)
def test_a_function_is_an_object(function: Any) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        finish({"type": "function", "function": function})


def test_lists_of_calls() -> None:
    assert finish([call("f"), call("g", {"a": 1})]) == [call("f", {}), call("g", {"a": 1})]
    assert finish([]) == []
    with pytest.raises(ValueError, match="name"):
        finish([call("f"), call("")])


def test_other_keys_of_a_call_stay() -> None:
    given = {"id": "x1", "type": "function", "function": {"name": "f", "arguments": {}, "strict": True}}
    assert finish(given) == given
    assert finish({"id": Raw("x1"), **call("f", {})}) == {"id": "x1", **call("f", {})}


def test_elsewhere_nothing_is_asked_of_a_value() -> None:
    for value in (7, "x", None, [1, {"a": 2}], {"name": ""}, {"function": 7}, {"function": {"name": "f"}}):
        assert finish_value(value, TOOLS, calls=False) == value
    assert finish_value({"a": Raw("7")}, TOOLS, calls=False) == {"a": "7"}
    assert finish_value({"function": {"name": "f", "arguments": {"n": Raw("7")}}}, TOOLS, calls=False) == {
        "function": {"name": "f", "arguments": {"n": 7}}
    }
