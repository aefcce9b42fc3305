"""The adapter on one release of vLLM, whichever is on the path. test_offline.py runs this file once a release.

Nothing is served: the adapter is driven as the API server and the engine core do, with Qwen3's real tokenizer.
"""

from __future__ import annotations

import functools
import json
import logging
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import qwen_tokens
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from tokenizers.decoders import DecodeStream
from transformers import PreTrainedTokenizerFast

import respzoo
from respzoo_vllm import plugin
from respzoo_vllm.prompt import WINDOW

plugin.register()

import vllm.parser
import vllm.reasoning
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest

MODEL = "Qwen/Qwen3-8B"
PROMPT = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
WEATHER = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
}
TOOLS = [{"type": "function", "function": WEATHER}]
ZURICH = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Zürich 🌦"}}\n</tool_call>'
TOKYO = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "東京", "days": 3}}\n</tool_call>'
TWICE = f"<think>\nTwo, I think.\n</think>\n\nLet me check.\n{ZURICH}\n{TOKYO}"

Reply = tuple[str, str, list[tuple[str, str]]]
"""Reasoning, content, calls."""


def tokenizer_of(inner: Tokenizer, name: str = MODEL, chat_template: str | None = None) -> PreTrainedTokenizerFast:
    made = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>", clean_up_tokenization_spaces=False)
    made.name_or_path = name
    made.chat_template = chat_template
    return made


TOKENIZER = tokenizer_of(qwen_tokens.load())


def encode(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False)


def parser_class(
    *, reasoning: str | None = "respzoo", tools: str | None = "respzoo", model: str = MODEL, **options: Any
) -> Any:
    return vllm.parser.ParserManager.get_parser(
        tool_parser_name=tools,
        reasoning_parser_name=reasoning,
        enable_auto_tools=tools is not None,
        model_name=model,
        **options,
    )


def chat(tools: list[dict[str, Any]] | None = TOOLS, **options: Any) -> ChatCompletionRequest:
    return ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "hi"}], tools=tools, **options)


def whole(
    cls: Any, text: str, request: Any, prompt: str = PROMPT, tokenizer: Any = TOKENIZER, ids: list[int] | None = None
) -> Reply:
    parser = cls(tokenizer, request.tools)
    prompt_ids = tokenizer.encode(prompt, add_special_tokens=False)
    if hasattr(parser, "set_prompt_token_ids") and "set_prompt_token_ids" in dir(vllm.parser.Parser):
        parser.set_prompt_token_ids(prompt_ids)
    else:
        parser.is_reasoning_end(prompt_ids)
    if ids is None:
        ids = tokenizer.encode(text, add_special_tokens=False)
    reasoning, content, calls = parser.parse(text, request, enable_auto_tools=True, model_output_token_ids=ids)
    return reasoning or "", content or "", [(call.name, call.arguments) for call in calls or ()]


def streamed(
    cls: Any,
    text: str,
    request: Any,
    prompt: str = PROMPT,
    tokenizer: Any = TOKENIZER,
    size: int = 1,
    ids: list[int] | None = None,
    behind: int = 0,
) -> Reply:
    """As the API server streams: `size` tokens a delta, the text of a character with its last token, `behind` characters
    of it later still, as where a request has stop strings."""
    parser = cls(tokenizer, request.tools)
    prompt_ids = tokenizer.encode(prompt, add_special_tokens=False)
    if ids is None:
        ids = tokenizer.encode(text, add_special_tokens=False)
    held = ""
    detokenizer = DecodeStream(skip_special_tokens=False)
    reasoning, content = "", ""
    calls: dict[int, list[str]] = {}
    seen: set[str] = set()
    for start in range(0, max(len(ids), 1), size):
        part = ids[start : start + size]
        finished = start + size >= len(ids)
        held += "".join(detokenizer.step(tokenizer.backend_tokenizer, token) or "" for token in part)
        shown = len(held) if finished else max(0, len(held) - behind)
        delta = parser.parse_delta(held[:shown], part, request, prompt_ids, finished=finished)
        held = held[shown:]
        if delta is None:
            continue
        reasoning += delta.reasoning or ""
        content += delta.content or ""
        for call in delta.tool_calls or ():
            if call.index not in calls:
                assert call.id not in seen
                assert call.type == "function"
                seen.add(call.id)
                calls[call.index] = [call.function.name, ""]
            calls[call.index][1] += call.function.arguments or ""
    return reasoning, content, [(name, arguments) for name, arguments in calls.values()]


def finished(reply: Reply) -> Reply:
    """Without a call that was begun and that the model did not finish: a stream takes nothing back."""
    return reply[0], reply[1], [(name, arguments) for name, arguments in reply[2] if is_json(arguments)]


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def both(cls: Any, text: str, request: Any, **options: Any) -> Reply:
    """The reply, which must be the same whole and streamed by one, three and fifty tokens."""
    found = whole(cls, text, request, **options)
    assert finished(found) == found
    for size in (1, 3, 50):
        assert finished(streamed(cls, text, request, size=size, **options)) == found
    return found


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


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, None),
        ({"tool_choice": "required"}, "tags_with_separator"),
        ({"tool_choice": {"type": "function", "function": {"name": "get_weather"}}}, "tags_with_separator"),
        ({"tools": [{"type": "function", "function": {**WEATHER, "strict": True}}]}, "triggered_tags"),
    ],
    ids=["auto", "required", "named", "strict"],
)
def test_grammars_are_the_stock_ones(options: dict[str, Any], expected: str | None) -> None:
    request = chat(**options)
    adjusted = parser_class()(TOKENIZER, request.tools).adjust_request(request)
    stock = chat(**options)
    hermes = parser_class(reasoning="qwen3", tools="hermes")(TOKENIZER, stock.tools).adjust_request(stock)
    assert adjusted.structured_outputs == hermes.structured_outputs
    if expected is None:
        assert adjusted.structured_outputs is None
    else:
        assert expected in adjusted.structured_outputs.structural_tag


FORCED = '[{"name": "get_weather", "parameters": {"city": "Oslo ]}"}}, {"name": "get_weather", "parameters": {}}]'


@pytest.mark.parametrize(
    ("choice", "text", "expected"),
    [
        ("required", FORCED, [("get_weather", '{"city": "Oslo ]}"}'), ("get_weather", "{}")]),
        ("required", FORCED[:-4], [("get_weather", '{"city": "Oslo ]}"}')]),
        ({"type": "function", "function": {"name": "get_weather"}}, '{"days": 3}', [("get_weather", '{"days": 3}')]),
        ({"type": "function", "function": {"name": "get_weather"}}, '{"days": ', []),
    ],
)
def test_forced_calls_without_a_grammar_of_their_own(
    monkeypatch: pytest.MonkeyPatch, choice: Any, text: str, expected: list[tuple[str, str]]
) -> None:
    """vLLM then holds the model to plain JSON, as it does for any family that it has no grammar for."""
    monkeypatch.setenv("VLLM_ENFORCE_STRICT_TOOL_CALLING", "0")
    cls = parser_class()
    request = cls(TOKENIZER, None).adjust_request(chat(tool_choice=choice))
    assert request.structured_outputs.json is not None
    assert both(cls, f"<think>\nHm.\n</think>{text}", request) == ("Hm.", "", expected)
    # a model that no grammar held: its text
    assert both(cls, "<think>\nHm.\n</think>\n\nNo [call].", request) == ("Hm.", "No [call].", [])


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


# ------------------------------------------------------------------------------------------- what the engine core asks


def byte_tokenizer() -> Tokenizer:
    """A token a byte, and no added ones."""
    made = Tokenizer(models.BPE({char: at for at, char in enumerate(pre_tokenizers.ByteLevel.alphabet())}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    return made


def gate(tokenizer: Any = TOKENIZER) -> Any:
    """As the engine core makes it: by name, with nothing but the tokenizer."""
    cls = vllm.reasoning.ReasoningParserManager.get_reasoning_parser("respzoo")
    return cls(tokenizer=tokenizer, chat_template_kwargs={})


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (PROMPT, False),
        (PROMPT + "<think>\n", False),
        (PROMPT + "<think>\nHm", False),
        (PROMPT + "<think>\n\n</think>\n\n", True),
        (PROMPT + "<think>\nHm.\n</think>", True),
        (PROMPT + "The answer", True),
        (PROMPT + "<tool_call>\n", True),
        # the turns before do not count
        ("<|im_start|>assistant\n<think>\nHm.\n</think>\n\nYes.<|im_end|>\n" + PROMPT, False),
        ("no anchor at all </think>", False),
    ],
)
def test_whether_reasoning_is_over(prompt: str, expected: bool) -> None:
    assert gate().is_reasoning_end(encode(prompt)) is expected
    assert parser_class()(TOKENIZER, None).is_reasoning_end(encode(prompt)) is expected


def test_models_that_do_not_reason() -> None:
    plain = tokenizer_of(
        qwen_tokens.load(),
        chat_template="{{ '<|im_start|>' }} <tool_call> {\"name\": <function-name>, <args-json-object>",
    )
    assert gate(plain).is_reasoning_end(encode(PROMPT)) is True


def test_where_reasoning_ends() -> None:
    reasoning = gate()
    ids = encode(PROMPT + "<think>\nHm.\n</think>\n\nYes")
    end = ids.index(encode("</think>")[0])
    for at in range(len(encode(PROMPT)), len(ids)):
        assert reasoning.is_reasoning_end_streaming(ids[: at + 1], [ids[at]]) is (at == end)
    assert reasoning.is_reasoning_end_streaming(ids, ids[end - 2 :]) is True
    assert (reasoning.reasoning_start_str, reasoning.reasoning_end_str) == ("<think>", "</think>")


class Watched:
    """A tokenizer that tells how many ids it was asked to decode."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.decoded = tokenizer, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokenizer, name)

    def decode(self, ids: Sequence[int], **options: Any) -> str:
        self.decoded += len(ids)
        return self.tokenizer.decode(ids, **options)


def test_work_does_not_grow_with_the_prompt() -> None:
    watched = Watched(TOKENIZER)
    long = encode("word and more ") * 30_000
    reasoning = gate(watched)
    assert reasoning.is_reasoning_end(long + encode(PROMPT)) is False
    parser = parser_class()(watched, None)
    parser.parse_delta("Hm", encode("Hm"), chat(), long + encode(PROMPT), finished=False)
    assert watched.decoded <= 4 * WINDOW
    begun = time.process_time()
    for _ in range(2000):
        reasoning.is_reasoning_end_streaming(long, long[-1:])
    assert (time.process_time() - begun) / 2000 < 20e-6
    assert watched.decoded <= 4 * WINDOW


def test_markers_of_several_tokens() -> None:
    """Nothing is an added token: a window of the marker's length is decoded, no more."""
    bare = Watched(tokenizer_of(byte_tokenizer()))
    reasoning = gate(bare)
    prompt = bare.encode("<|im_start|>user\nlong " + "word " * 5000 + PROMPT)
    assert reasoning.is_reasoning_end(prompt) is False
    assert bare.decoded < 8 * WINDOW
    ids = bare.encode("<think>\nHm.\n</think>\n\nYes, </b>")
    bare.decoded = 0
    ends = [at for at in range(len(ids)) if reasoning.is_reasoning_end_streaming(ids[: at + 1], [ids[at]])]
    assert len(ends) == 1
    assert bare.tokenizer.decode(ids[: ends[0] + 1]).endswith("</think>")
    assert bare.decoded <= len(ids) * 2 * (len("</think>") + 1)


def test_reasoning_tokens() -> None:
    cls, request = parser_class(), chat()
    ids = encode("<think>\nHm, so.\n</think>\n\nYes.")
    expected = len(encode("\nHm, so.\n"))
    parser = cls(TOKENIZER, None)
    parser.parse_delta("", [], request, encode(PROMPT), finished=False)
    assert parser.count_reasoning_tokens(ids) == expected
    parser = cls(TOKENIZER, None)
    parser.parse_delta("", [], request, encode(PROMPT + "<think>\n"), finished=False)
    assert parser.count_reasoning_tokens(ids[1:]) == expected
    assert parser_class(reasoning=None)(TOKENIZER, None).count_reasoning_tokens(ids) == 0


# --------------------------------------------------------------------------------------------------------- the plug


def test_start_says_which_template_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    from respzoo_vllm import plan

    said: list[str] = []
    monkeypatch.setattr(plan, "_announced", set())
    monkeypatch.setattr(plan.logger, "info", lambda text, *values: said.append(text % values))
    parser_class()
    parser_class()
    assert said == [f"respzoo reads {MODEL} with the response template qwen3: {respzoo.get(MODEL).source}"]
    assert plan.logger.name.startswith("vllm.")  # whose handlers vLLM sets up


def test_start_fails_without_a_template() -> None:
    with pytest.raises(respzoo.UnknownModelError) as raised:
        parser_class(model="nobody/knows-this-model")
    assert "nobody/knows-this-model" in str(raised.value)
    with pytest.raises(respzoo.UnknownModelError):
        respzoo.get("nobody/knows-this-model")


@pytest.mark.parametrize("model", ["moonshotai/Kimi-K3", "google/gemma-4-31B-it", "zai-org/GLM-4.5"])
@pytest.mark.parametrize("options", [{}, {"reasoning": None}, {"tools": None}], ids=["both", "tools", "reasoning"])
def test_any_flag_alone(model: str, options: dict[str, Any]) -> None:
    """A template without the fields that nobody asked for is one, whatever its other fields say of them."""
    cls = parser_class(model=model, **options)
    for request in (chat(), chat(tools=None), chat(tool_choice="none")):
        assert both(cls, "Hello!", request, prompt="")[1] == "Hello!"


BROKEN = '<tool_call>\n{"name": \n</tool_call>'
CUT = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os'


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


@pytest.mark.parametrize("name", ["RESPZOO_ON_MALFORMED", "RESPZOO_ON_UNFINISHED", "RESPZOO_ARGUMENTS"])
def test_start_fails_with_a_policy_that_is_none(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "perhaps")
    with pytest.raises(ValueError, match=f"{name}: expected '.*' or '.*', found 'perhaps'"):
        parser_class()


def test_template_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESPZOO_TEMPLATE", "qwen3")
    assert parser_class(model="nobody/knows-this-model").template.name == "qwen3"


def test_no_other_parser_beside() -> None:
    with pytest.raises(TypeError, match="cannot be combined"):
        parser_class(tools="hermes")


def test_other_parsers_are_left_alone() -> None:
    cls = parser_class(reasoning="qwen3", tools="hermes")
    assert "respzoo" not in cls.__module__
    assert parser_class(reasoning=None, tools=None) is None


def test_registering_again_changes_nothing() -> None:
    before = vllm.parser.ParserManager.get_parser
    plugin.register()
    assert vllm.parser.ParserManager.get_parser == before


def test_a_release_that_it_does_not_fit_starts_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from respzoo_vllm import engine

    said: list[str] = []
    monkeypatch.setattr(engine, "install", lambda: 1 / 0)
    monkeypatch.setattr(logging.getLogger("vllm.respzoo"), "exception", said.append)
    plugin.register()
    assert said == ["respzoo could not be plugged into this release of vLLM"]


def test_names_that_moved() -> None:
    from respzoo_vllm import engine

    for name in engine.PLACES:
        assert getattr(engine, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        engine.nothing  # noqa: B018


# ----------------------------------------------------------------------------------------------------------- gpt-oss


@functools.cache
def harmony_tokenizer() -> PreTrainedTokenizerFast:
    inner = byte_tokenizer()
    names = ("start", "end", "message", "channel", "constrain", "return", "call")
    inner.add_special_tokens([AddedToken(f"<|{name}|>", special=True, normalized=False) for name in names])
    return tokenizer_of(inner, "openai/gpt-oss-20b")


HARMONY_PROMPT = "<|start|>user<|message|>hi<|end|><|start|>assistant"
HARMONY: dict[str, Any] = {"model": "openai/gpt-oss-20b", "is_harmony": True}
# What is between « and » is written by special tokens; anything else is spelled out.
QUOTED = [
    (
        "«<|channel|>»analysis«<|message|>»It writes <|end|><|start|>assistant<|channel|>commentary to=functions.get_weather"
        ' <|constrain|>json<|message|>{"city": "Oslo"}<|call|>, 🌦.«<|end|>»«<|start|>»assistant«<|channel|>»final«<|message|>»Hi!',
        (
            "It writes <|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
            '{"city": "Oslo"}<|call|>, 🌦.',
            "Hi!",
            [],
        ),
    ),
    (
        '«<|channel|>»commentary to=functions.get_weather «<|constrain|>»json«<|message|>»{"city": "<|call|> 🌦"}«<|call|>»',
        ("", "", [("get_weather", '{"city": "<|call|> 🌦"}')]),
    ),
    # cut in a string that quotes the closer: no call, and no content either
    ('«<|channel|>»commentary to=functions.get_weather«<|message|>»{"city": "<|call|> and', ("", "", [])),
]


def written(marked: str, tokenizer: Any) -> tuple[str, list[int]]:
    """The text, and the ids of a model that quotes markup letter by letter."""
    parts = marked.replace("»", "«").split("«")
    ids: list[int] = []
    for at, part in enumerate(parts):
        for piece in [part] if at % 2 else part:
            ids += tokenizer.encode(piece, add_special_tokens=False)
    return "".join(parts), ids


@pytest.mark.parametrize(("marked", "expected"), QUOTED)
def test_quoted_markup_is_text(marked: str, expected: Reply) -> None:
    tokenizer = harmony_tokenizer()
    cls = parser_class(**HARMONY)
    text, ids = written(marked, tokenizer)
    options: dict[str, Any] = {"prompt": HARMONY_PROMPT, "tokenizer": tokenizer, "ids": ids}
    assert whole(cls, text, chat(), **options) == expected
    for size in (1, 2, 3, 7, 1000):
        assert finished(streamed(cls, text, chat(), size=size, **options)) == expected
    # with the stop token's id and without its text
    stopped = {**options, "ids": [*ids, *tokenizer.encode("<|return|>", add_special_tokens=False)]}
    assert whole(cls, text, chat(), **stopped) == expected


@pytest.mark.parametrize(("marked", "expected"), QUOTED)
def test_where_text_is_behind_its_ids_it_is_read_as_text(
    monkeypatch: pytest.MonkeyPatch, marked: str, expected: Reply
) -> None:
    """Never wrongly taken for quoted: what nobody can tell is markup, and the log says so."""
    from respzoo_vllm import spans

    said: list[str] = []
    monkeypatch.setattr(spans.logger, "info", lambda text, *values: said.append(text % values))
    tokenizer, cls = harmony_tokenizer(), parser_class(**HARMONY)
    text, ids = written(marked, tokenizer)
    options: dict[str, Any] = {"prompt": HARMONY_PROMPT, "tokenizer": tokenizer}
    as_text = whole(cls, text, chat(), ids=[], **options)
    assert as_text != expected or marked == QUOTED[1][0]
    for behind in (1, 4, 30):
        said.clear()
        assert finished(streamed(cls, text, chat(), ids=ids, behind=behind, **options)) == as_text
        assert sum("quoted markup will be read as markup" in line for line in said) == 1


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello!<|return|>",
            ("Hm.", "Hello!", []),
        ),
        (
            "<|channel|>analysis<|message|>Need it.<|end|><|start|>assistant<|channel|>commentary"
            ' to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>',
            ("Need it.", "", [("get_weather", '{"city": "Oslo"}')]),
        ),
        # the stop token is not in the text that the server hands on
        (
            '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}',
            ("", "", [("get_weather", '{"city": "Oslo"}')]),
        ),
        ("<|channel|>analysis<|message|>Hm, and", ("Hm, and", "", [])),
    ],
)
def test_harmony(text: str, expected: Reply) -> None:
    cls = parser_class(model="openai/gpt-oss-20b", is_harmony=True)
    assert issubclass(cls, vllm.parser.HarmonyParser)
    assert both(cls, text, chat(), prompt=HARMONY_PROMPT, tokenizer=harmony_tokenizer()) == expected


def test_harmony_in_the_engine_core() -> None:
    """vLLM's grammars for harmony hold the reasoning too, so it waits for none."""
    tokenizer = harmony_tokenizer()
    reasoning = gate(tokenizer)
    assert reasoning.is_reasoning_end(tokenizer.encode(HARMONY_PROMPT)) is True
    assert reasoning.is_reasoning_end_streaming([1, 2], [2]) is True


def test_harmony_reasoning_tokens() -> None:
    tokenizer = harmony_tokenizer()
    parser = parser_class(model="openai/gpt-oss-20b", is_harmony=True)(tokenizer, None)
    text = "<|channel|>analysis<|message|>Hm, so.<|end|><|start|>assistant<|channel|>final<|message|>Hello!"
    parser.parse_delta("", [], chat(), tokenizer.encode(HARMONY_PROMPT), finished=False)
    assert parser.count_reasoning_tokens(tokenizer.encode(text)) == len(tokenizer.encode("Hm, so."))


def test_harmony_request() -> None:
    request = chat()
    cls = parser_class(model="openai/gpt-oss-20b", is_harmony=True)
    assert cls(harmony_tokenizer(), request.tools).adjust_request(request).skip_special_tokens is False
