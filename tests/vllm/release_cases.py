"""Replies and requests through the adapter, on one release of vLLM: the one that is on the path. test_offline.py runs
this file, and its neighbours, once a release."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from driving import (
    CUT,
    PROMPT,
    TOKENIZER,
    TOKYO,
    TWICE,
    WEATHER,
    ZURICH,
    Reply,
    both,
    byte_tokenizer,
    chat,
    encode,
    finished,
    parser_class,
    streamed,
    tokenizer_of,
    whole,
)  # fmt: skip
from harmony import harmony_tokenizer
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest

# ---------------------------------------------------------------------------------------------------------- replies


def test_reasoning_content_calls() -> None:
    assert both(parser_class(), TWICE, chat()) == (
        "Two, I think.",
        "Let me check.",
        [("get_weather", '{"city": "Zürich 🌦"}'), ("get_weather", '{"city": "東京", "days": 3}')],
    )


def test_responses() -> None:
    request = ResponsesRequest(model="m", input="hi", tools=[{"type": "function", **WEATHER}])
    assert both(parser_class(), TWICE, request) == (
        "Two, I think.",
        "Let me check.",
        [("get_weather", '{"city": "Zürich 🌦"}'), ("get_weather", '{"city": "東京", "days": 3}')],
    )


@pytest.mark.parametrize(
    ("prompt", "text", "expected"),
    [
        ("", "Hello, friend!", ("", "Hello, friend!", [])),
        ("<think>\n", "Hm.\n</think>\n\nHello!", ("Hm.", "Hello!", [])),
        ("<think>\n", "Hm. Still", ("Hm. Still", "", [])),
        ("<think>\n\n</think>\n\n", "Hello!", ("", "Hello!", [])),
        # a turn that the client began
        ("The answer is", " 42.\n", ("", " 42.\n", [])),
        ("<think>\nEasy", " enough.\n</think>\n\nDone.", (" enough.", "Done.", [])),
        (
            '<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "get_weather",',
            ' "arguments": {"city": "Oslo"}}\n</tool_call>',
            ("", "", [("get_weather", '{"city": "Oslo"}')]),
        ),
    ],
)
def test_what_the_prompt_began(prompt: str, text: str, expected: Reply) -> None:
    assert both(parser_class(), text, chat(), prompt=PROMPT + prompt) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # broken JSON comes back as text, and what follows is read as ever
        (
            f'<tool_call>\n{{"name": \n</tool_call>\n{ZURICH}',
            ("", '<tool_call>\n{"name": \n</tool_call>', [("get_weather", '{"city": "Zürich 🌦"}')]),
        ),
        ('<tool_call>\n{"nome": "x"}\n</tool_call>', ("", '<tool_call>\n{"nome": "x"}\n</tool_call>', [])),
        ('<tool_call>\n["get_weather"]\n</tool_call>', ("", '<tool_call>\n["get_weather"]\n</tool_call>', [])),
        # text around calls
        (f"A.\n{ZURICH}\nB.", ("", "A.\nB.", [("get_weather", '{"city": "Zürich 🌦"}')])),
        # a call in the reasoning is a thought, markup in a string is a string
        (f"<think>\nMaybe {ZURICH}?\n</think>\n\nNo.", (f"Maybe {ZURICH}?", "No.", [])),
        (
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": "a </tool_call> b"}}\n</tool_call>',
            ("", "", [("get_weather", '{"city": "a </tool_call> b"}')]),
        ),
    ],
)
def test_odd_replies(text: str, expected: Reply) -> None:
    assert both(parser_class(), text, chat()) == expected


@pytest.mark.parametrize("arguments", ["complete", "stream"])
def test_cut_anywhere(monkeypatch: pytest.MonkeyPatch, arguments: str) -> None:
    """A reply that the token limit cuts: whole equals streamed, and no call is made of half a call; one that has begun to
    be streamed is no more than the beginning of the call."""
    monkeypatch.setenv("RESPZOO_ARGUMENTS", arguments)
    cls, request, ids = parser_class(), chat(), encode(TWICE)
    calls = [("get_weather", '{"city": "Zürich 🌦"}'), ("get_weather", '{"city": "東京", "days": 3}')]
    for end in range(len(ids)):
        text = TOKENIZER.decode(ids[:end])
        if text.endswith("\ufffd"):
            continue  # a server shows no half of a character
        found = whole(cls, text, request)
        stream = streamed(cls, text, request)
        assert finished(stream) == found, text
        begun = stream[2][len(found[2]) :]
        assert len(begun) <= (arguments == "stream"), text
        for (name, some), (expected, all_of_it) in zip(begun, calls[len(found[2]) :], strict=False):
            assert name == expected
            assert all_of_it.startswith(some)
        assert "Two, I think.\n".startswith(found[0]), text
        assert "Let me check.\n".startswith(found[1]), text
        assert found[2] == calls[: len(found[2])], text


# ------------------------------------------------------------------------------------------------- flags and requests


def test_reasoning_flag_alone() -> None:
    cls = parser_class(tools=None)
    assert both(cls, TWICE, chat()) == ("Two, I think.", f"Let me check.\n{ZURICH}\n{TOKYO}", [])


def test_tools_flag_alone() -> None:
    cls = parser_class(reasoning=None)
    assert both(cls, TWICE, chat()) == (
        "",
        "<think>\nTwo, I think.\n</think>\n\nLet me check.",
        [("get_weather", '{"city": "Zürich 🌦"}'), ("get_weather", '{"city": "東京", "days": 3}')],
    )
    # the marker that the prompt wrote is the prompt's
    assert both(cls, "Hm.\n</think>\n\nHello!", chat(), prompt=PROMPT + "<think>\n")[1] == "Hm.\n</think>\n\nHello!"


@pytest.mark.parametrize("request_", [chat(tool_choice="none"), chat(tools=None)], ids=["none", "no tools"])
def test_calls_that_nobody_asked_for_are_text(request_: Any) -> None:
    assert both(parser_class(), TWICE, request_) == ("Two, I think.", f"Let me check.\n{ZURICH}\n{TOKYO}", [])


def test_reasoning_hidden() -> None:
    request = chat(include_reasoning=False)
    assert streamed(parser_class(), TWICE, request)[:2] == ("", "Let me check.")


def test_arguments_are_typed_by_the_schema() -> None:
    cls = parser_class(model="Qwen/Qwen3-Coder-30B-A3B-Instruct")
    text = (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\n0123\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
        "</function>\n</tool_call>"
    )
    assert both(cls, text, chat()) == ("", "", [("get_weather", '{"city": "0123", "days": 3}')])


def test_special_tokens_are_kept() -> None:
    for request in (chat(), chat(tools=None), ResponsesRequest(model="m", input="hi")):
        request = parser_class()(TOKENIZER, request.tools).adjust_request(request)
        assert request.skip_special_tokens is False


def test_parsers_do_not_share_state() -> None:
    cls, request = parser_class(), chat()
    parsers = [cls(TOKENIZER, request.tools) for _ in range(2)]
    prompt = encode(PROMPT)
    texts = ["", ""]
    for piece in ("<think>\nA", "b.\n</think>\n\n", "C"):
        for number, parser in enumerate(parsers):
            delta = parser.parse_delta(piece, encode(piece), request, prompt, finished=piece == "C")
            texts[number] += (delta and (delta.reasoning or delta.content)) or ""
    assert texts == ["Ab.C", "Ab.C"]


def test_one_parser_reads_several_choices() -> None:
    """Up to 0.31, the choices of a whole reply are read by one parser."""
    parser = parser_class()(TOKENIZER, None)
    parser.is_reasoning_end(encode(PROMPT + "<think>\n"))
    for _ in range(2):
        assert parser.parse("Hm.\n</think>\n\nHello!", chat())[:2] == ("Hm.", "Hello!")


def test_reply_to_an_unknown_prompt() -> None:
    """Up to 0.31, a whole reply of the Responses API is read without its prompt."""
    parser = parser_class()(TOKENIZER, None)
    assert parser.parse("Hm.\n</think>\n\nHello!", chat())[:2] == ("Hm.", "Hello!")


def test_next_turn_has_its_own_prompt() -> None:
    """A built-in tool of the Responses API makes one parser read several turns."""
    parser, request = parser_class()(TOKENIZER, None), chat()
    first = parser.parse_delta("Hm.", encode("Hm."), request, encode(PROMPT + "<think>\n"), finished=True)
    second = parser.parse_delta("Hello!", encode("Hello!"), request, encode(PROMPT), finished=True)
    assert (first.reasoning, second.content) == ("Hm.", "Hello!")


# ---------------------------------------------------------------------------------------------------------- damage


BROKEN = '<tool_call>\n{"name": \n</tool_call>'


@pytest.mark.parametrize(
    ("variables", "text", "expected"),
    [
        ({}, BROKEN, BROKEN),
        ({}, CUT, ""),
        ({"RESPZOO_ON_MALFORMED": "drop"}, BROKEN, ""),
        ({"RESPZOO_ON_UNFINISHED": "content"}, CUT, CUT),
        (
            {"RESPZOO_ON_MALFORMED": "", "RESPZOO_ON_UNFINISHED": "drop", "RESPZOO_ARGUMENTS": "complete"},
            BROKEN,
            BROKEN,
        ),
    ],
)
def test_policies(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], text: str, expected: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    cls = parser_class()
    assert cls.policies["arguments"] == (variables.get("RESPZOO_ARGUMENTS") or "stream")
    assert both(cls, "Hm. " + text, chat()) == ("", ("Hm. " + expected).strip(), [])


ROOT = Path(__file__).resolve().parents[2]
DAMAGE = [json.loads(line) for line in (ROOT / "tests" / "data" / "damage.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("case", DAMAGE, ids=lambda case: f"{case['damage']}-{case['model']}".replace(" ", "_"))
def test_damage(case: dict[str, Any]) -> None:
    """docs/damage.md through the adapter: what the reply has, and so what vLLM calls its end."""
    lines = [line.split("|") for line in (ROOT / "docs" / "damage.md").read_text("utf-8").splitlines()]
    (row,) = (cells for cells in lines if len(cells) == 11 and cells[1].strip() == case["damage"])
    harmony = "gpt-oss" in case["model"]
    cls = parser_class(model=case["model"], is_harmony=harmony)
    tokenizer = harmony_tokenizer() if harmony else tokenizer_of(byte_tokenizer(), case["model"])
    offered = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}}]
    reasoning, content, calls = both(
        cls, case["text"], chat(offered if case.get("tools", True) else None), prompt="", tokenizer=tokenizer
    )
    if not case.get("tools", True):
        case = {
            "content": case["text"].removesuffix("<|call|>")
        }  # harmony has no text outside regions: its closer ends one
    assert (reasoning, content) == (case.get("reasoning_content", ""), case.get("content", ""))
    assert [(name, json.loads(arguments)) for name, arguments in calls] == [(n, a) for n, a in case.get("calls", ())]
    found = {"reasoning_content": reasoning, "content": content, "tool_calls": calls}
    assert set(re.findall(r"`(\w+)`", row[8])) == {name for name, value in found.items() if value}


def test_markers_that_are_no_special_tokens_are_found_as_text() -> None:
    """Qwen3's are added tokens, not special ones: a model may well spell them."""
    text = f"<think>\nHm.\n</think>\n\n{ZURICH}"
    ids = [one for char in text for one in encode(char)]
    expected = ("Hm.", "", [("get_weather", '{"city": "Zürich 🌦"}')])
    assert whole(parser_class(), text, chat(), ids=ids) == expected
    assert streamed(parser_class(), text, chat(), ids=ids) == expected
