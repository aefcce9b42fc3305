"""What holds a model to the calls that a request asks for, on one release of vLLM (test_offline.py).

Which families have a grammar, and that it says their calls, is respzoo's own affair (tests/grammar). Here it is vLLM's
requests: what becomes of each, and what if there is no grammar.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driving import (
    MODEL,
    PROMPT,
    TOKENIZER,
    TOOLS,
    WEATHER,
    ZURICH,
    adjusted,
    both,
    byte_tokenizer,
    chat,
    encode,
    parser_class,
    responses,
    takes,
    tokenizer_of,
)  # fmt: skip

from respzoo import ResponseTemplate
from respzoo.plugins import loaded
from respzoo_vllm import engine, grammar

Make = Callable[..., Any]
APIS = pytest.mark.parametrize("make", [chat, responses])

PING = {"name": "ping", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}
STRICT = [{"type": "function", "function": {**WEATHER, "strict": True}}]
TWO = [*TOOLS, {"type": "function", "function": PING}]
NAMED = {"type": "function", "function": {"name": "get_weather"}}
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}


def call(name: str, **arguments: Any) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {json.dumps(arguments)}}}\n</tool_call>'


OSLO = call("get_weather", city="Oslo", days=3)
WRONG = call("get_weather", city="Oslo", days="three")
NOBODY = call("get_whether", city="Oslo")
ANSWER = '{"answer": 42}'


@pytest.fixture(autouse=True)
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(grammar, "_said", set())
    monkeypatch.setattr(grammar.logger, "warning", lambda text, *values: lines.append(text % values))
    return lines


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

    from respzoo_vllm.plan import Plan

    plan = Plan(TOKENIZER, parser_class().template)
    assert grammar.stop_texts(plan, Config()) == {"<|im_end|>"}  # of special tokens only
    assert grammar.stop_texts(Plan(TOKENIZER, parser_class().template), None) == {"<|im_end|>"}


# ---------------------------------------------------------------------------------------------------- made once


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []
    stock = ResponseTemplate.structural_tag

    def structural_tag(self: ResponseTemplate, tools: Any, **options: Any) -> Any:
        made.append(options)
        return stock(self, tools, **options)

    monkeypatch.setattr(ResponseTemplate, "structural_tag", structural_tag)
    return made


def fresh(tokenizer_name: str = MODEL) -> Any:
    """A tokenizer of its own, and so a plan. It knows what vLLM's class for harmony insists on."""
    tokenizer = tokenizer_of(byte_tokenizer(), tokenizer_name)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|end|>"]})
    return tokenizer


def test_a_grammar_is_made_once_for_what_is_asked(built: list[Any]) -> None:
    cls, tokenizer = parser_class(), fresh()
    for make in (chat, responses, chat):
        for tools in (TOOLS, json.loads(json.dumps(TOOLS))):
            adjusted(cls, make(tools=tools, tool_choice="required"), tokenizer=tokenizer)
    first = len(built)
    assert first <= 2  # chat's functions and Responses' are written with other defaults
    adjusted(cls, chat(tools=TWO, tool_choice="required"), tokenizer=tokenizer)
    adjusted(cls, chat(tool_choice=NAMED), tokenizer=tokenizer)
    adjusted(cls, chat(tool_choice="required", parallel_tool_calls=False), tokenizer=tokenizer)
    assert len(built) == first + 3


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch, built: list[Any]) -> None:
    monkeypatch.setattr(grammar.engine, "xgrammar_takes", lambda **_: True)
    cls, tokenizer = parser_class(), fresh()
    plan = cls(tokenizer, None)._plan

    def ask(name: str, note: str = "") -> None:
        tools = [{"type": "function", "function": {"name": name, "description": note}}]
        adjusted(cls, chat(tools=tools, tool_choice="required"), tokenizer=tokenizer)

    for number in range(grammar._ENTRIES + 50):
        ask(f"f{number}")
    assert len(plan.grammars) == grammar._ENTRIES
    made = len(built)
    ask(f"f{grammar._ENTRIES + 49}")
    assert len(built) == made
    ask("f0")  # long gone
    assert len(built) == made + 1
    monkeypatch.setattr(grammar, "_CHARACTERS", 100_000)
    for number in range(30):
        ask(f"g{number}", "x" * 20_000)
    assert len(plan.grammars) <= 5


# ------------------------------------------------------------------------------------------- where there is none

FORCED = '[{"name": "get_weather", "parameters": {"city": "Oslo ]}"}}, {"name": "get_weather", "parameters": {}}]'


@pytest.fixture
def no_grammar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The class for a template whose calls no grammar can say: their arguments are in a notation of lines."""
    spec = json.loads(json.dumps(loaded().families["qwen3"].spec))
    calls = spec["fields"]["tool_calls"]
    lines = {
        "open_pattern": r"<tool_call>\s*(?P<name>\w+)\n",
        "close": "</tool_call>",
        "repeats": True,
        "content": "kv-lines",
        "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
    }
    spec["fields"]["tool_calls"] = {key: value for key, value in {**calls, **lines}.items() if key != "open"}
    path = tmp_path / "lines.json"
    path.write_text(json.dumps(spec))
    monkeypatch.setenv("RESPZOO_TEMPLATE", str(path))
    return parser_class()


@APIS
@pytest.mark.parametrize(
    ("choice", "text", "expected"),
    [
        ("required", FORCED, [("get_weather", '{"city": "Oslo ]}"}'), ("get_weather", "{}")]),
        ("required", FORCED[:-4], [("get_weather", '{"city": "Oslo ]}"}')]),
        (NAMED, '{"days": 3}', [("get_weather", '{"days": 3}')]),
        (NAMED, '{"days": ', []),
    ],
)
def test_forced_calls_are_vllms_json(
    no_grammar: Any, make: Make, choice: Any, text: str, expected: list[tuple[str, str]], said: list[str]
) -> None:
    for _ in range(2):
        request = adjusted(no_grammar, make(tool_choice=choice))
    assert engine.structured_outputs(request).json is not None
    assert both(no_grammar, f"<think>\nHm.\n</think>{text}", request) == ("Hm.", "", expected)
    # a model that no grammar held: its text
    assert both(no_grammar, "<think>\nHm.\n</think>\n\nNo [call].", request) == ("Hm.", "No [call].", [])
    (line,) = said
    assert "forced calls are vLLM's JSON: " in line
    assert "kv-lines" in line


@APIS
@pytest.mark.parametrize(
    ("options", "fate"),
    [
        ({"tools": STRICT}, "calls are not held by a grammar"),
        ({"parallel_tool_calls": False}, "calls are not held by a grammar"),
        ({"response_format": FORMAT}, "the response format alone holds the answer, and no call can be made"),
    ],
    ids=["strict", "single", "format"],
)
def test_other_requests_stay_as_they_are(
    no_grammar: Any, make: Make, options: dict[str, Any], fate: str, said: list[str]
) -> None:
    for _ in range(2):
        request = adjusted(no_grammar, make(**options))
    assert request.structured_outputs is None
    assert (engine.structured_outputs(request) is None) == ("response_format" not in options)
    (line,) = said
    assert f": {fate}" in line
    assert "kv-lines" in line


@APIS
def test_the_operator_may_forbid_grammars(
    monkeypatch: pytest.MonkeyPatch, make: Make, said: list[str], built: list[Any]
) -> None:
    monkeypatch.setenv("VLLM_ENFORCE_STRICT_TOOL_CALLING", "0")
    cls = parser_class()
    request = adjusted(cls, make(tool_choice="required"))
    assert engine.structured_outputs(request).json is not None
    assert both(cls, f"<think>\nHm.\n</think>{FORCED}", request)[2][1] == ("get_weather", "{}")
    assert adjusted(cls, make(tools=STRICT)).structured_outputs is None
    assert len(said) == 2
    assert all(line.endswith(": VLLM_ENFORCE_STRICT_TOOL_CALLING=0") for line in said)
    assert built == []


def test_no_name_of_a_tool_is_logged(no_grammar: Any, monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    """Reasons may quote what the request wrote."""
    secret = "hunter-2"

    def reason(self: ResponseTemplate, tools: Any, **options: Any) -> str:
        return f"{secret!r} is no name, and {'kv-lines'!r} no notation"

    monkeypatch.setattr(ResponseTemplate, "structural_tag_reason", reason)
    tools = [{"type": "function", "function": {"name": secret}}]
    adjusted(no_grammar, chat(tools=tools, tool_choice="required"), tokenizer=fresh())
    assert said[0].endswith("… is no name, and 'kv-lines' no notation")


def test_only_so_much_is_said(said: list[str]) -> None:
    for number in range(1000):
        grammar._say_once(str(number))
    assert len(said) <= grammar._ENTRIES


# ------------------------------------------------------------------------------------------------ every family

FAMILIES = {name: family for name, family in loaded().families.items() if loaded().owners[name] == "respzoo:curated"}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family(monkeypatch: pytest.MonkeyPatch, name: str, said: list[str]) -> None:
    """A grammar that vLLM takes, or vLLM's JSON and one line that says why. Never silence."""
    monkeypatch.setenv("RESPZOO_TEMPLATE", name)
    cls, tokenizer = parser_class(model="nobody/knows"), fresh()
    for options in ({"tool_choice": "required"}, {"tool_choice": NAMED, "parallel_tool_calls": False}):
        request = adjusted(cls, chat(**options), tokenizer=tokenizer)
        outputs = engine.structured_outputs(request)
        if outputs.structural_tag is not None:
            assert engine.xgrammar_takes(structural_tag=outputs.structural_tag)
            assert said == []
        else:
            assert outputs.json is not None
            assert len(said) == 1
    said.clear()
    grammar._said.clear()
    request = adjusted(cls, chat(tools=STRICT), tokenizer=tokenizer)
    assert (request.structured_outputs is None) == (len(said) == 1)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("solar_open", "<|content|>", ""),
        ("inkling", "<|content_text|>", "<|end_message|>"),
        ("beam", "<|start|>assistant<|channel|>final<|message|>", "<|return|>"),
    ],
)
@APIS
def test_an_answers_format_in_its_frame(
    monkeypatch: pytest.MonkeyPatch, make: Make, name: str, before: str, after: str
) -> None:
    """Where an answer stands between markers, as its reasoning does, vLLM's bare format would forbid them."""
    monkeypatch.setenv("RESPZOO_TEMPLATE", name)
    cls, tokenizer = parser_class(model="nobody/knows"), fresh()
    for tools in (None, TOOLS):
        request = adjusted(cls, make(tools=tools, response_format=FORMAT), tokenizer=tokenizer)
        assert takes(request, before + ANSWER)
        assert takes(request, before + ANSWER + after)
        assert not takes(request, ANSWER)
        assert not takes(request, f"{before}Hello!{after}")
    assert both(cls, before + ANSWER + after, request, prompt="", tokenizer=tokenizer) == ("", ANSWER, [])
    assert adjusted(cls, make(tools=None), tokenizer=tokenizer).structured_outputs is None


def test_most_families_have_a_grammar() -> None:
    without = [
        name
        for name, family in FAMILIES.items()
        if ResponseTemplate(family.spec, name=name).structural_tag(TOOLS, tool_choice="required") is None
    ]
    assert len(without) <= 10, without


def test_a_real_prompt_and_reply_in_another_syntax() -> None:
    """XML-like calls: values typed by the schema."""
    cls = parser_class(model="Qwen/Qwen3-Coder-30B-A3B-Instruct")
    request = adjusted(cls, chat(tool_choice="required"))

    def written(days: str) -> str:
        return (
            f"<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n{days}\n"
            "</parameter>\n</function>\n</tool_call>"
        )

    assert takes(request, written("3"))
    assert not takes(request, written("three"))
    assert not takes(request, ZURICH)
    assert both(cls, written("3"), request) == ("", "", [("get_weather", '{"city": "Oslo", "days": 3}')])
