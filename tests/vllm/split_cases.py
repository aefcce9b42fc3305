"""The two parsers that vLLM composes where the unified one cannot be put in, on one release of vLLM (test_offline.py):
driven by vLLM's own DelegatingParser."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from driving import (
    CUT,
    PROMPT,
    TOKENIZER,
    TOKYO,
    TWICE,
    ZURICH,
    Reply,
    byte_tokenizer,
    chat,
    encode,
    finished,
    responses,
    streamed,
    tokenizer_of,
)  # fmt: skip

from respzoo_vllm import engine, split

CALLS = [("get_weather", '{"city": "Zürich 🌦"}'), ("get_weather", '{"city": "東京", "days": 3}')]


def composed(*, reasoning: bool = True, tools: bool = True) -> Any:
    """As `ParserManager.get_parser` composes any two."""
    return type(
        "Composed",
        (engine.DelegatingParser,),
        {
            "reasoning_parser_cls": split.RespzooReasoningParser if reasoning else None,
            "tool_parser_cls": split.RespzooToolParser if tools else None,
        },
    )


def whole(cls: Any, text: str, request: Any, prompt: str = PROMPT, tokenizer: Any = TOKENIZER) -> Reply:
    """As chat reads a whole reply: it asks of the prompt first."""
    parser = cls(tokenizer, request.tools)
    parser.is_reasoning_end(tokenizer.encode(prompt, add_special_tokens=False))
    reasoning, content, calls = parser.parse(text, request, enable_auto_tools=True)
    return reasoning or "", content or "", [(call.name, call.arguments) for call in calls or ()]


def both(cls: Any, text: str, request: Any, **options: Any) -> Reply:
    found = whole(cls, text, request, **options)
    for size in (1, 2, 3, 50):
        assert finished(streamed(cls, text, request, size=size, **options)) == found, size
    return found


@pytest.fixture(autouse=True)
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    lines: list[str] = []
    logger = logging.getLogger("vllm.respzoo")
    monkeypatch.setattr(logger, "warning", lambda text, *values: lines.append(text % values))
    engine.say_that_two_read.cache_clear()
    yield lines
    engine.say_that_two_read.cache_clear()
    assert len(lines) <= 1


@pytest.mark.parametrize("make", [chat, responses])
@pytest.mark.parametrize(
    ("prompt", "text", "expected"),
    [
        (PROMPT, TWICE, ("Two, I think.", "Let me check.", CALLS)),
        (PROMPT, "Hello, friend! \n 1 < 2", ("", "Hello, friend! \n 1 < 2", [])),
        (PROMPT, f"<think>\nHm.\n</think>\n\n{ZURICH}", ("Hm.", "", CALLS[:1])),
        (PROMPT, f"{ZURICH}\n{TOKYO}", ("", "", CALLS)),
        (PROMPT, "<think>\n\n</think>\n\nHello!", ("", "Hello!", [])),
        (PROMPT, "<think>\nNo end", ("No end", "", [])),
        (PROMPT + "<think>\n", "Hm.\n</think>\n\nHello!", ("Hm.", "Hello!", [])),
        (PROMPT + "<think>\n", f"Hm.\n</think>{ZURICH}", ("Hm.", "", CALLS[:1])),
        (PROMPT + "<think>\n\n</think>\n\n", "Hello!", ("", "Hello!", [])),
        (PROMPT + "<think>\n\n</think>\n\n", ZURICH, ("", "", CALLS[:1])),
        # damage is as in docs/damage.md
        (PROMPT, f'<tool_call>\n{{"name": \n</tool_call>{ZURICH}', ("", '<tool_call>\n{"name": \n</tool_call>', CALLS[:1])),
        (PROMPT, f"<think>\nHm.\n</think>{ZURICH}{CUT}", ("Hm.", "", CALLS[:1])),
    ],
)  # fmt: skip
def test_replies(make: Any, prompt: str, text: str, expected: Reply, said: list[str]) -> None:
    assert both(composed(), text, make(), prompt=prompt) == expected
    assert len(said) == 1


def test_either_alone() -> None:
    calls = f"Let me check.\n{ZURICH}\n{TOKYO}"
    assert both(composed(tools=False), TWICE, chat()) == ("Two, I think.", calls, [])
    alone = composed(reasoning=False)
    assert both(alone, TWICE, chat()) == ("", "<think>\nTwo, I think.\n</think>\n\nLet me check.", CALLS)


@pytest.mark.parametrize("request_", [chat(tool_choice="none"), chat(tools=None)], ids=["none", "no tools"])
def test_calls_that_nobody_asked_for_are_text(request_: Any) -> None:
    assert both(composed(), TWICE, request_) == ("Two, I think.", f"Let me check.\n{ZURICH}\n{TOKYO}", [])


@pytest.mark.parametrize(
    ("model", "prompt", "text", "expected"),
    [
        (
            "deepseek-ai/DeepSeek-R1",
            "<｜Assistant｜><think>\n",
            "Hm.\n</think>\n\nHello!",
            ("Hm.", "Hello!", []),
        ),
        (
            "Qwen/Qwen3-Coder-30B-A3B-Instruct",
            PROMPT,
            "Look.\n<tool_call>\n<function=get_weather>\n<parameter=city>\n0123\n</parameter>\n<parameter=days>\n3\n"
            "</parameter>\n</function>\n</tool_call>",
            ("", "Look.", [("get_weather", '{"city": "0123", "days": 3}')]),
        ),
        (
            "meta-llama/Llama-4-Scout-17B-16E-Instruct",
            "<|header_start|>assistant<|header_end|>\n\n",
            '<|python_start|>[get_weather(city="Oslo", days=3)]<|python_end|>',
            ("", "", [("get_weather", '{"city": "Oslo", "days": 3}')]),
        ),
        (
            "zai-org/GLM-4.5",
            "<|assistant|>",
            "\n<think>Hm.</think>\nLook.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n"
            "</tool_call>",
            ("Hm.", "Look.", [("get_weather", '{"city": "Oslo"}')]),
        ),
    ],
)
def test_other_families(model: str, prompt: str, text: str, expected: Reply) -> None:
    """Their markers are no single tokens here: all is told by the text."""
    assert both(composed(), text, chat(), prompt=prompt, tokenizer=tokenizer_of(byte_tokenizer(), model)) == expected


def test_hidden_reasoning() -> None:
    if "include_reasoning" in vars(engine.DelegatingParser)["parse_delta"].__code__.co_names:  # since 0.28
        assert streamed(composed(), TWICE, chat(include_reasoning=False))[:2] == ("", "Let me check.")


def test_content_ids() -> None:
    parser = split.RespzooReasoningParser(TOKENIZER)
    ids = encode("<think>\nHm.\n</think>\n\nYes.")
    assert TOKENIZER.decode(parser.extract_content_ids(ids)) == "\n\nYes."
    assert parser.extract_content_ids(encode("<think>\nHm.")) == []
    bare = tokenizer_of(byte_tokenizer())
    parser = split.RespzooReasoningParser(bare)
    assert bare.decode(parser.extract_content_ids(bare.encode("<think>\nHm.\n</think>\n\nYes."))) == "\n\nYes."


def test_reasoning_tokens() -> None:
    parser = split.RespzooReasoningParser(TOKENIZER)
    parser.is_reasoning_end(encode(PROMPT + "<think>\n"))
    parser.extract_reasoning("Hm.\n</think>\n\nYes.", chat())
    assert parser.count_reasoning_tokens(encode("Hm.\n</think>\n\nYes.")) == len(encode("Hm.\n"))


@pytest.mark.parametrize("make", [chat, responses])
def test_special_tokens_are_kept(make: Any) -> None:
    for cls in (composed(), composed(tools=False), composed(reasoning=False)):
        request = make()
        assert cls(TOKENIZER, request.tools).adjust_request(request).skip_special_tokens is False


def test_forced_calls_are_vllms_own(said: list[str]) -> None:
    """Without the unified parser there are no grammars of ours."""
    cls = composed()
    request = cls(TOKENIZER, None).adjust_request(chat(tool_choice="required"))
    assert request.structured_outputs.json is not None
    forced = '[{"name": "get_weather", "parameters": {"city": "Oslo"}}]'
    text = f"<think>\nHm.\n</think>{forced}"
    assert whole(cls, text, request) == ("Hm.", "", [("get_weather", '{"city": "Oslo"}')])


def test_a_model_that_nobody_knows(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """All is content; the log says so. (The server would not have started, were it known which model it serves.)"""
    errors: list[str] = []
    monkeypatch.setattr(logging.getLogger("vllm.respzoo"), "exception", errors.append)
    tokenizer = tokenizer_of(byte_tokenizer(), "nobody/knows-this-model")
    assert both(composed(), TWICE, chat(), tokenizer=tokenizer) == ("", TWICE, [])
    assert errors


def test_the_other_half_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    from respzoo_vllm import damage

    lines: list[str] = []
    monkeypatch.setattr(damage.logger, "info", lambda text, *values: lines.append(text % values))
    streamed(composed(), f"<think>\nHm.\n</think>{CUT}", chat())
    assert lines == ["respzoo: qwen3: unfinished in tool_calls (cut), left out"]
