"""Grammars on one release of vLLM (test_offline.py): made once, missing for a template, and there for nearly every family."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import ANSWER, FORMAT, NAMED, STRICT, TWO, listening
from driving import (
    MODEL,
    TOOLS,
    ZURICH,
    adjusted,
    both,
    byte_tokenizer,
    chat,
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


@pytest.fixture(autouse=True)
def said() -> Iterator[list[str]]:
    with listening() as lines:
        yield lines


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
