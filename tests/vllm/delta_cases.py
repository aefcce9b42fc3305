"""The objects that respzoo_vllm.deltas builds are those of vLLM's constructors, in every respect. test_offline.py runs
this file once a release."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pydantic
import pytest

from respzoo_vllm import plugin

plugin.register()

from vllm.entrypoints.openai.chat_completion import protocol

from respzoo_vllm import deltas, engine

CLASSES = (engine.DeltaMessage, engine.DeltaToolCall, engine.DeltaFunctionCall)
SAFE = deltas.ordinary(*CLASSES)
TEXTS = ["", "a", " ", "\n\n", "über 東京 🌦", '{"a": "\\"', "<tool_call>", "x" * 10_000]
KINDS: list[tuple[str, Callable[[Any, str], Any]]] = [
    ("content", lambda makers, text: makers.content(text)),
    ("reasoning", lambda makers, text: makers.reasoning(text)),
    ("rest", lambda makers, text: makers.rest(0, text)),
    ("rest of another", lambda makers, text: makers.rest(17, text)),
]
QUICK = deltas.Makers(deltas.content, deltas.reasoning, deltas.rest)
DUMPS: list[dict[str, Any]] = [
    {},
    {"exclude_unset": True},
    {"exclude_none": True},
    {"exclude_defaults": True},
    {"exclude_unset": True, "exclude_none": True},
    {"by_alias": True},
    {"exclude": {"content"}},
    {"include": {"content", "tool_calls"}},
    {"round_trip": True},
]


def models(made: Any) -> list[Any]:
    """An object and all that it holds."""
    return [made, *(inner for call in made.tool_calls for inner in (call, call.function))]


@pytest.fixture(params=TEXTS, ids=range(len(TEXTS)))
def text(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=KINDS, ids=[name for name, _ in KINDS])
def both(request: pytest.FixtureRequest, text: str) -> tuple[Any, Any]:
    """One object as we build it, and as the constructor does."""
    _, make = request.param
    return make(QUICK, text), make(SAFE, text)


def test_this_release_is_known() -> None:
    assert deltas.content.__qualname__.startswith("quick.")
    assert deltas.made_by(*CLASSES).rest.__qualname__.startswith("quick.")


def test_equal(both: tuple[Any, Any]) -> None:
    made, safe = both
    assert made == safe
    assert safe == made
    assert repr(made) == repr(safe)
    assert str(made) == str(safe)
    for one, other in zip(models(made), models(safe), strict=True):
        assert type(one) is type(other)
        assert list(vars(one).items()) == list(vars(other).items())
        assert one.model_fields_set == other.model_fields_set
        assert one.model_extra == other.model_extra
        assert one.__pydantic_private__ == other.__pydantic_private__
        assert list(one) == list(other)


@pytest.mark.parametrize("options", DUMPS, ids=str)
def test_dumped(both: tuple[Any, Any], options: dict[str, Any]) -> None:
    made, safe = both
    for one, other in zip(models(made), models(safe), strict=True):
        assert one.model_dump(**options) == other.model_dump(**options)
        assert one.model_dump(mode="json", **options) == other.model_dump(mode="json", **options)
        assert one.model_dump_json(**options) == other.model_dump_json(**options)


def test_in_a_chunk(both: tuple[Any, Any]) -> None:
    """What the server sends."""
    found = [
        protocol.ChatCompletionStreamResponse(
            id="x",
            created=0,
            model="m",
            choices=[protocol.ChatCompletionResponseStreamChoice(index=0, delta=delta, finish_reason=None)],
        ).model_dump_json(exclude_unset=True)
        for delta in both
    ]
    assert found[0] == found[1]


def test_copied(both: tuple[Any, Any]) -> None:
    made, safe = both
    for copied in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)), lambda one: one.model_copy()):
        one = copied(made)
        assert one == made == safe
        assert one.model_fields_set == safe.model_fields_set
    assert pickle.dumps(made) == pickle.dumps(safe)
    assert made.model_copy(update={"role": "assistant"}) == safe.model_copy(update={"role": "assistant"})
    assert made.model_copy(deep=True) == safe
    assert type(made).model_validate(made) == safe
    assert type(made).model_validate(made.model_dump()) == type(made).model_validate(safe.model_dump())


def test_changed(both: tuple[Any, Any]) -> None:
    """vLLM itself sets a role and adds calls."""
    for delta in both:
        delta.role = "assistant"
        delta.tool_calls.append(engine.DeltaToolCall(index=3))
        delta.anything = 1
        del delta.content
    made, safe = both
    assert made == safe
    assert made.model_fields_set == safe.model_fields_set
    assert made.model_extra == safe.model_extra
    with pytest.raises(AttributeError):
        _ = made.content


def test_nothing_is_shared(text: str) -> None:
    for _, make in KINDS:
        one, other = make(QUICK, text), make(QUICK, text)
        for held, others in zip(models(one), models(other), strict=True):
            assert held is not others
            assert vars(held) is not vars(others)
            assert held.model_fields_set is not others.model_fields_set
            assert held.model_extra is None or held.model_extra is not others.model_extra
        one.tool_calls.append(engine.DeltaToolCall(index=3))
        one.role = "assistant"
        one.anything = 1
        assert other == make(QUICK, text) == make(SAFE, text)
        assert other.model_fields_set == make(SAFE, text).model_fields_set


# ------------------------------------------------------------------------------------------------- another release


class Checks(engine.DeltaMessage):
    @pydantic.field_validator("content")
    @classmethod
    def no_space(cls, value: str | None) -> str | None:
        return value and value.strip()


class ChecksAll(engine.DeltaMessage):
    @pydantic.model_validator(mode="after")
    def no_space(self) -> ChecksAll:
        return self


class Begins(engine.DeltaMessage):
    def model_post_init(self, context: Any) -> None:
        self.role = "assistant"


class Keeps(engine.DeltaMessage):
    _secret: int = pydantic.PrivateAttr(default=3)


class Shares(engine.DeltaMessage):
    parts: list[str] = pydantic.Field(default_factory=list)


class Own(engine.DeltaMessage):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)


class NoCalls(engine.DeltaMessage):
    tool_calls: list[Any] | None = None  # type: ignore[assignment]


class ClosedCall(engine.DeltaToolCall):
    model_config = pydantic.ConfigDict(extra="ignore")


class OneMore(engine.DeltaMessage):
    """A field more is nothing that has to be known."""

    refusal: str | None = None


class Bare:
    """Not of pydantic at all."""

    def __init__(self, **given: Any) -> None:
        self.given = given


@pytest.mark.parametrize("message", [Checks, ChecksAll, Begins, Keeps, Shares, Own, NoCalls, Bare])
def test_what_is_not_known_is_constructed(message: Any) -> None:
    made = deltas.made_by(message, engine.DeltaToolCall, engine.DeltaFunctionCall)
    assert all(make.__qualname__.startswith("ordinary.") for make in made)
    assert isinstance(made.content(" a "), message)


def test_what_is_not_known_of_a_call() -> None:
    class Message(engine.DeltaMessage):
        tool_calls: list[ClosedCall] = pydantic.Field(default_factory=list)  # type: ignore[assignment]

    made = deltas.made_by(Message, ClosedCall, engine.DeltaFunctionCall)
    assert made.rest.__qualname__.startswith("ordinary.")


def test_a_field_more() -> None:
    made = deltas.made_by(OneMore, engine.DeltaToolCall, engine.DeltaFunctionCall)
    assert made.content.__qualname__.startswith("quick.")
    assert made.content("a") == OneMore(content="a")
    assert json.loads(made.content("a").model_dump_json())["refusal"] is None
