"""What holds a model to the calls that a request asks for, on one release of vLLM (test_offline.py).

Which families have a grammar, and that it says their calls, is respzoo's own affair (tests/grammars). Here it is vLLM's
requests: what becomes of each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asking import ANSWER, FORMAT, NAMED, NOBODY, OSLO, SCHEMA, STRICT, TWO, WRONG, call, listening
from driving import PROMPT, TOKENIZER, WEATHER, adjusted, both, chat, encode, parser_class, responses, takes

from respzoo_vllm import engine, grammar
from respzoo_vllm.plan import Plan

Make = Callable[..., Any]
APIS = pytest.mark.parametrize("make", [chat, responses])


@pytest.fixture(autouse=True)
def said() -> Iterator[list[str]]:
    with listening() as lines:
        yield lines


@APIS
@pytest.mark.parametrize(
    ("options", "taken", "refused"),
    [
        (
            {"tool_choice": "required", "tools": TWO},
            [OSLO, call("ping"), f"{OSLO}\n{OSLO}", f"{call('ping')}{OSLO}"],
            ["Hello!", "", f"Hm. {OSLO}", WRONG, NOBODY, OSLO[:-1]],
        ),
        (
            {"tool_choice": NAMED, "tools": TWO},
            [OSLO],
            ["Hello!", call("ping"), WRONG, f"{OSLO}\n{OSLO}"],
        ),
        (
            {"tools": STRICT},
            ["Hello!", OSLO, f"Let me see. {OSLO}\n{OSLO}", "a < b <tool> c"],
            [WRONG, NOBODY, f"Let me see. {WRONG}", '<tool_call>\n{"name": '],
        ),
        (
            {"parallel_tool_calls": False},
            ["Hello!", OSLO, WRONG, f"Let me see. {OSLO}"],
            [f"{OSLO}\n{OSLO}", NOBODY],
        ),
        ({"tool_choice": "required", "parallel_tool_calls": False}, [OSLO], [f"{OSLO}\n{OSLO}", "Hello!", WRONG]),
        (
            {"tool_choice": "required", "tools": [{"type": "function", "function": {**WEATHER, "strict": False}}]},
            [OSLO, WRONG],
            ["Hello!", NOBODY],
        ),
        ({"response_format": FORMAT}, [ANSWER, OSLO, f"{OSLO}\n{OSLO}"], ["Hello!", '{"answer": "42"}', NOBODY]),
        ({"response_format": FORMAT, "tools": STRICT}, [ANSWER, OSLO], ["Hello!", WRONG]),
        (
            {"response_format": FORMAT, "parallel_tool_calls": False},
            [ANSWER, OSLO],
            [f"{OSLO}\n{OSLO}", "Hello!"],
        ),
    ],
    ids=["required", "named", "strict", "single", "required single", "not strict", "format", "strict format", "single format"],
)  # fmt: skip
def test_what_a_grammar_lets_through(
    make: Make, options: dict[str, Any], taken: list[str], refused: list[str], said: list[str]
) -> None:
    cls = parser_class()
    request = adjusted(cls, make(**options))
    assert [text for text in taken if not takes(request, text)] == []
    assert [text for text in refused if takes(request, text)] == []
    assert said == []
    # what vLLM would otherwise put in its place is gone
    assert getattr(request, "response_format", None) is None
    assert getattr(request, "text", None) is None
    assert engine.structured_outputs(request) == request.structured_outputs
    assert request.skip_special_tokens is False


@APIS
@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        ({"tool_choice": "required"}, OSLO, ("", [("get_weather", '{"city": "Oslo", "days": 3}')])),
        ({"tool_choice": NAMED}, OSLO, ("", [("get_weather", '{"city": "Oslo", "days": 3}')])),
        ({"response_format": FORMAT}, ANSWER, (ANSWER, [])),
        ({"response_format": FORMAT}, OSLO, ("", [("get_weather", '{"city": "Oslo", "days": 3}')])),
    ],
    ids=["required", "named", "answer", "call"],
)
def test_what_was_held_is_read_as_it_was_written(
    make: Make, options: dict[str, Any], text: str, expected: tuple[str, list[tuple[str, str]]]
) -> None:
    cls = parser_class()
    request = adjusted(cls, make(**options))
    assert both(cls, f"<think>\nHm.\n</think>\n\n{text}", request) == ("Hm.", *expected)


@APIS
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tools": None, "response_format": FORMAT},
        {"tool_choice": "none", "response_format": FORMAT},
        {"tools": None},
    ],
    ids=["auto", "no tools", "none", "nothing"],
)
def test_what_asks_nothing_of_calls_stays(make: Make, options: dict[str, Any], said: list[str]) -> None:
    request, same = make(**options), make(**options)
    assert adjusted(parser_class(), request) is request
    assert request.structured_outputs is None
    for name in ("response_format", "text"):
        assert getattr(request, name, None) == getattr(same, name, None)
    assert said == []


@pytest.mark.parametrize(
    ("outputs", "answer", "refused"),
    [
        ({"json_object": True}, '{"a": [1]}', "[1]"),
        ({"json": json.dumps(SCHEMA)}, ANSWER, "[1]"),
        ({"regex": "ab+"}, "abb", "ba"),
        ({"choice": ["yes", "no"]}, "no", "perhaps"),
        ({"grammar": 'root ::= "a" | "b"'}, "b", "c"),
        (
            {
                "structural_tag": json.dumps(
                    {"type": "structural_tag", "format": {"type": "const_string", "value": "x"}}
                )
            },
            "x",
            "y",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
@APIS
def test_structured_outputs_beside_tools(
    make: Make, outputs: dict[str, Any], answer: str, refused: str, said: list[str]
) -> None:
    request = adjusted(parser_class(), make(structured_outputs=outputs))
    assert takes(request, answer)
    assert takes(request, OSLO)
    assert not takes(request, refused)
    assert said == []


@APIS
def test_forced_calls_go_before_a_response_format(make: Make, said: list[str]) -> None:
    cls = parser_class()
    for _ in range(2):
        request = adjusted(cls, make(tool_choice="required", response_format=FORMAT))
        assert takes(request, OSLO)
        assert not takes(request, ANSWER)
    assert said == ["respzoo: structured outputs are ignored, because tool_choice forces a call"]


@APIS
def test_a_response_format_that_xgrammar_does_not_take(make: Make, said: list[str]) -> None:
    """It alone holds, as vLLM has it: another engine for grammars may take it."""
    odd = {**FORMAT, "json_schema": {"name": "a", "schema": {"type": "integer", "multipleOf": 7}}}
    request = adjusted(parser_class(), make(response_format=odd))
    assert request.structured_outputs is None
    assert engine.structured_outputs(request).json is not None
    assert said == [
        "respzoo: qwen3: the response format alone holds the answer, and no call can be made: "
        "xgrammar does not take the response format"
    ]


@APIS
def test_the_servers_strictness(make: Make) -> None:
    if not hasattr(engine.DelegatingParser, "tool_strict_level"):  # before 0.32 a server has none
        assert adjusted(parser_class(), make()).structured_outputs is None
        return
    frames = adjusted(parser_class(tool_strict_level="function"), make())
    assert [takes(frames, text) for text in ("Hello!", OSLO, WRONG, NOBODY)] == [True, True, True, False]
    mixed = adjusted(parser_class(tool_strict_level="function"), make(tools=[*STRICT, TWO[1]]))
    assert [takes(mixed, text) for text in (OSLO, WRONG, call("ping", a=1))] == [True, False, True]
    arguments = adjusted(parser_class(tool_strict_level="parameter"), make())
    assert [takes(arguments, text) for text in ("Hello!", OSLO, WRONG, NOBODY)] == [True, True, False, False]
    assert adjusted(parser_class(tool_strict_level="auto"), make()).structured_outputs is None


# ------------------------------------------------------------------------------------------------ where it begins

THOUGHT = "<think>\nHm. <tool_call>, perhaps?\n</think>\n\n"


def test_it_begins_behind_the_reasoning() -> None:
    request = adjusted(parser_class(), chat(tool_choice="required"))
    assert [takes(request, text) for text in (OSLO, THOUGHT + OSLO)] == [True, False]


def ended(cls: Any, request: Any, prompt: str) -> Any:
    """What vLLM's chat tells the engine of the reasoning: True, and the grammar begins with the reply."""
    parser, ids = cls(TOKENIZER, request.tools), encode(prompt)
    if hasattr(request, "resolve_reasoning_ended"):  # since 0.32
        return request.resolve_reasoning_ended(parser, ids)
    return True if not request.include_reasoning else parser.is_reasoning_end(ids)


@pytest.mark.parametrize(
    ("begun", "prompt", "taken", "refused"),
    [
        # unknown to the parser up to 0.32: the grammar is for either
        (None, PROMPT, [OSLO, THOUGHT + OSLO], ["Hello!", THOUGHT + "Hello!", WRONG]),
        (None, PROMPT + "<think>\n", [f"Hm.\n</think>\n\n{OSLO}"], ["Hello!", "Hm.\n</think>\n\nHello!"]),
        ("", PROMPT, [OSLO, THOUGHT + OSLO], ["Hello!", f"Hm.\n</think>\n\n{OSLO}"]),
        ("<think>\n", PROMPT + "<think>\n", [f"Hm.\n</think>\n\n{OSLO}"], ["Hello!", "Hm.\n</think>\n\nHello!"]),
        ("<think>\n\n</think>\n\n", PROMPT + "<think>\n\n</think>\n\n", [OSLO], ["Hello!"]),
    ],
)
def test_hidden_reasoning_is_held_as_well(begun: str | None, prompt: str, taken: list[str], refused: list[str]) -> None:
    cls = parser_class()
    request = adjusted(
        cls, chat(tool_choice="required", include_reasoning=False), None if begun is None else PROMPT + begun
    )
    assert ended(cls, request, prompt) is True
    assert [text for text in taken if not takes(request, text)] == []
    assert [text for text in refused if takes(request, text)] == []


def test_reasoning_that_is_shown_is_free() -> None:
    cls = parser_class()
    request = adjusted(cls, chat(tool_choice="required"))
    assert ended(cls, request, PROMPT) is False
    assert ended(cls, request, PROMPT + "<think>\n\n</think>\n\n") is True


def test_without_a_reasoning_parser_it_begins_with_the_reply() -> None:
    cls = parser_class(reasoning=None)
    request = adjusted(cls, chat(tool_choice="required"))
    assert [takes(request, text) for text in (OSLO, THOUGHT + OSLO)] == [True, False]
    free = adjusted(cls, chat(tools=STRICT))
    assert [takes(free, text) for text in (THOUGHT.replace("<tool_call>", "it") + OSLO, WRONG)] == [True, False]


def test_responses_hides_reasoning_that_is_free() -> None:
    request = adjusted(parser_class(), responses(tool_choice="required", include_reasoning=False))
    assert [takes(request, text) for text in (OSLO, THOUGHT + OSLO)] == [True, False]


def test_texts_at_which_the_engine_stops() -> None:
    """They never come: a call may end without them."""

    class Config:
        def try_get_generation_config(self) -> dict[str, Any]:
            return {"eos_token_id": [*encode("</tool_call>"), *encode("<|im_end|>")]}

    plan = Plan(TOKENIZER, parser_class().template)
    assert grammar.stop_texts(plan, Config()) == {"<|im_end|>"}  # of special tokens only
    assert grammar.stop_texts(Plan(TOKENIZER, parser_class().template), None) == {"<|im_end|>"}
