"""The objects that vLLM sends, built quickly.

One goes out for nearly every token, and making it is most of what a token costs: pydantic checks what is known to be
right, and vLLM's own validator walks through the names once more. Here the kinds that every stream is made of are
filled as the constructor leaves them: the fields in its order, which of them were given, what is extra or private.
Whether that is all, examples tell when this module is imported. Where one is not like the constructor's own object, or
the class has more to it than is known, the constructor is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from respzoo_vllm import engine
from respzoo_vllm.plan import logger

__all__ = ["Makers", "content", "made_by", "ordinary", "quick", "reasoning", "rest"]

_SLOTS = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_KNOWN_VALIDATORS = {"__log_extra_fields__"}  # says in the debug log which names of a request are unknown
_TEXTS = ("", "a", " \n", "<b>\u00e4\U0001f600</b>")


class Makers(NamedTuple):
    """What makes the objects of most tokens."""

    content: Callable[[str], Any]
    """A DeltaMessage of content."""
    reasoning: Callable[[str], Any]
    """One of reasoning."""
    rest: Callable[[int, str], Any]
    """One in which a call that was announced goes on: its index, and more of its arguments."""


def ordinary(message: Any, call: Any, function: Any) -> Makers:
    """By the constructors of DeltaMessage, DeltaToolCall and DeltaFunctionCall."""

    def content(text: str) -> Any:
        return message(content=text)

    def reasoning(text: str) -> Any:
        return message(reasoning=text)

    def rest(index: int, text: str) -> Any:
        return message(tool_calls=[call(index=index, function=function(arguments=text))])

    return Makers(content, reasoning, rest)


def quick(message: Any, call: Any, function: Any) -> Makers:
    """By filling new objects as the constructors do: what is not given, as it is in an example."""
    new = object.__new__
    set_fields, set_given, set_extra, set_private = (_setter(message, slot) for slot in _SLOTS)
    message_fields, call_fields, function_fields = (
        cast("dict[str, Any]", vars(example)).copy for example in (message(), call(index=0), function())
    )

    def of_text(name: str) -> Callable[[str], Any]:
        def make(text: str) -> Any:
            made = new(message)
            fields = message_fields()
            fields[name] = text
            fields["tool_calls"] = []
            set_fields(made, fields)
            set_given(made, {name})
            set_extra(made, {})
            set_private(made, None)
            return made

        return make

    def rest(index: int, text: str) -> Any:
        inner = new(function)
        fields = function_fields()
        fields["arguments"] = text
        set_fields(inner, fields)
        set_given(inner, {"arguments"})
        set_extra(inner, None)
        set_private(inner, None)
        middle = new(call)
        fields = call_fields()
        fields["index"] = index
        fields["function"] = inner
        set_fields(middle, fields)
        set_given(middle, {"index", "function"})
        set_extra(middle, {})
        set_private(middle, None)
        made = new(message)
        fields = message_fields()
        fields["tool_calls"] = [middle]
        set_fields(made, fields)
        set_given(made, {"tool_calls"})
        set_extra(made, {})
        set_private(made, None)
        return made

    return Makers(of_text("content"), of_text("reasoning"), rest)


def _setter(cls: type, slot: str) -> Callable[[Any, Any], None]:
    """Sets what the class's own `__setattr__` guards."""
    return next(vars(base)[slot].__set__ for base in cls.__mro__ if slot in vars(base))


def made_by(message: Any, call: Any, function: Any) -> Makers:
    """The quick makers, if what they make is what the constructors make; else these."""
    safe = ordinary(message, call, function)
    try:
        if all(map(_is_plain, (message, call, function))):
            made = quick(message, call, function)
            if all(_state(one) == _state(other) for one, other in _pairs(made, safe)):
                return made
    except Exception:  # noqa: BLE001  whatever a pydantic of another build is unlike
        pass
    logger.info("respzoo: the DeltaMessage of this vLLM is not one that is known; its constructor takes longer")
    return safe


def _is_plain(cls: Any) -> bool:
    """Whether nothing but pydantic's own checks looks at what a class is given, and no default of it could be shared by
    mistake."""
    found = cls.__pydantic_decorators__
    return (
        not cls.__pydantic_custom_init__
        and cls.__pydantic_post_init__ is None
        and not found.validators
        and not found.field_validators
        and not found.root_validators
        and set(found.model_validators) <= _KNOWN_VALIDATORS
        and all(
            name == "tool_calls" or field.is_required() or field.get_default(call_default_factory=True) is None
            for name, field in cls.__pydantic_fields__.items()
        )
    )


def _pairs(made: Makers, safe: Makers) -> list[tuple[Any, Any]]:
    """Examples of what either makes."""
    pairs = [(one(text), other(text)) for text in _TEXTS for one, other in zip(made[:2], safe[:2], strict=True)]
    return pairs + [(made.rest(at, text), safe.rest(at, text)) for at, text in enumerate(_TEXTS)]


def _state(value: Any) -> Any:
    """All that an object of a model holds, and what these hold."""
    if isinstance(value, list):
        return list(map(_state, cast("list[Any]", value)))
    if not hasattr(value, "__pydantic_fields__"):
        return value.__class__, value
    fields = [(name, _state(item)) for name, item in cast("dict[str, Any]", vars(value)).items()]
    return value.__class__, fields, *(getattr(value, slot) for slot in _SLOTS[1:])


content, reasoning, rest = made_by(engine.DeltaMessage, engine.DeltaToolCall, engine.DeltaFunctionCall)
