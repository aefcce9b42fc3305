"""What a request may ask beside tools, on one release of vLLM (test_offline.py): its own chat and Anthropic servers,
without an engine, and what its engine asks of the reasoning parser."""

from __future__ import annotations

import json
from typing import Any

import pytest
from driving import (
    CUT,
    PROMPT,
    TOKENIZER,
    TOKYO,
    TWICE,
    ZURICH,
    adjusted,
    both,
    byte_tokenizer,
    chat,
    encode,
    parser_class,
    streamed,
    tokenizer_of,
    whole,
)  # fmt: skip
from serving import Choice, Messages, Serving, Written
from vllm.config import reasoning as reasoning_config
from vllm.entrypoints.anthropic.protocol import AnthropicMessagesRequest

import respzoo
from respzoo.plugins import loaded
from respzoo_vllm import split

CALLS = [("get_weather", '{"city": "Zürich 🌦"}'), ("get_weather", '{"city": "東京", "days": 3}')]
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def served(text: str, *, size: int = 1, prompt: str = PROMPT, finish: str = "stop", **options: Any) -> Choice:
    cls = parser_class()
    request = adjusted(cls, chat(**options))
    (choice,) = Serving(cls).reply(request, Written(text, finish), size=size, prompt=prompt).choices
    return choice


# ------------------------------------------------------------------------------------ several tokens, several choices


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 1000])
def test_several_tokens_a_step(size: int) -> None:
    """As speculative decoding accepts them: a delta may end the reasoning, hold an answer and begin two calls."""
    assert served(TWICE, stream=True, size=size) == Choice("Two, I think.", "Let me check.", CALLS, "tool_calls")


@STREAMS
def test_choices(stream: bool) -> None:
    cls = parser_class()
    written = [
        Written(TWICE),
        Written("Hello!"),
        Written("<think>\nHm", "length"),
        Written(f"<think>\n\n</think>\n\n{TOKYO}"),
    ]
    reply = Serving(cls).reply(adjusted(cls, chat(n=4, stream=stream)), *written)
    assert reply.choices == [
        Choice("Two, I think.", "Let me check.", CALLS, "tool_calls"),
        Choice("", "Hello!", [], "stop"),
        Choice("Hm", "", [], "length"),
        Choice("", "", CALLS[1:], "tool_calls"),
    ]


# ---------------------------------------------------------------------------------------------------- stop strings


@pytest.mark.parametrize(
    ("text", "stop", "expected"),
    [
        (TWICE, "I think", ("Two, ", "", [])),
        (TWICE, "</think>", ("Two, I think.\n", "", [])),
        (TWICE, "check", ("Two, I think.", "Let me ", [])),
        (TWICE, "Zürich", ("Two, I think.", "Let me check.", [])),
        # nothing is missing but a closer, which a server may take for a stop token
        (TWICE, "</tool_call>", ("Two, I think.", "Let me check.", CALLS[:1])),
        (TWICE, "東京", ("Two, I think.", "Let me check.", CALLS[:1])),
        ("Hello, friend!", "friend", ("", "Hello, ", [])),
    ],
)
@pytest.mark.parametrize("included", [False, True])
def test_a_stop_string_inside_a_region(
    text: str, stop: str, expected: tuple[str, str, list[tuple[str, str]]], included: bool
) -> None:
    """vLLM holds back as many characters as the string has, and its ids go on where its text is cut."""
    cls, request = parser_class(), chat()
    end = text.index(stop) + (len(stop) if included else 0)
    ids = encode(text[: text.index(stop) + len(stop)])
    found = whole(cls, text[:end], request, ids=ids)
    for size in (1, 3):
        reply = streamed(cls, text[:end], request, ids=ids, size=size, behind=len(stop) - 1, cut=end)
        assert (reply[0], reply[1], [call for call in reply[2] if call in found[2]]) == found
    if not included:
        assert found == expected


# ------------------------------------------------------------------------------------------- echo, and turns begun


@STREAMS
@pytest.mark.parametrize("name", ["echo", "no echo"])
def test_a_turn_that_the_client_began(stream: bool, name: str) -> None:
    """The last message is the beginning of the reply; `echo` sends it once more, in front."""
    cls = parser_class()
    request = adjusted(
        cls, chat(stream=stream, echo=name == "echo", continue_final_message=True, add_generation_prompt=False)
    )
    request.messages = [*request.messages, {"role": "assistant", "content": "The answer is"}]
    conversation = [{"role": "assistant", "content": "The answer is"}]
    reply = Serving(cls).reply(
        request, Written(f" 42.\n{ZURICH}"), prompt=f"{PROMPT}The answer is", conversation=conversation
    )
    begun = "The answer is" if name == "echo" else ""
    assert reply.choices == [Choice("", f"{begun} 42.", CALLS[:1], "tool_calls")]


@STREAMS
@pytest.mark.parametrize(
    ("begun", "text", "expected"),
    [
        ("<think>\nEasy", " enough.\n</think>\n\nDone.", Choice(" enough.", "Done.", [], "stop")),
        (f"<think>\nHm.\n</think>\n\n{CUT[:40]}", CUT[40:] + 'lo"}}\n</tool_call>', Choice("", "", [], "tool_calls")),
    ],
    ids=["reasoning", "call"],
)
def test_a_region_that_the_prompt_began(stream: bool, begun: str, text: str, expected: Choice) -> None:
    found = served(text, prompt=PROMPT + begun, stream=stream)
    assert (found.reasoning, found.content, found.finish) == (expected.reasoning, expected.content, expected.finish)


# ------------------------------------------------------------------------------------------------------- reasoning


@STREAMS
def test_hidden_reasoning(stream: bool) -> None:
    found = served(TWICE, stream=stream, include_reasoning=False)
    assert found == Choice("", "Let me check.", CALLS, "tool_calls")


COUNTED = (
    "completion_tokens_details"
    in __import__("vllm.entrypoints.openai.chat_completion.serving", fromlist=["UsageInfo"]).UsageInfo.model_fields
)  # since 0.28


@STREAMS
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize(
    ("prompt", "text", "thought"),
    [
        (PROMPT, TWICE, "\nTwo, I think.\n"),
        (PROMPT + "<think>\n", "Hm, so.\n</think>\n\nYes.", "Hm, so.\n"),
        (PROMPT + "<think>\n", "Hm, so", "Hm, so"),
        (PROMPT, "Yes.", ""),
    ],
)
def test_reasoning_tokens_in_usage(stream: bool, hidden: bool, prompt: str, text: str, thought: str) -> None:
    cls = parser_class()
    options = {"stream_options": {"include_usage": True}} if stream else {}
    request = adjusted(cls, chat(stream=stream, include_reasoning=not hidden, **options))
    reply = Serving(cls).reply(request, Written(text), prompt=prompt)
    assert reply.reasoning_tokens == (len(encode(thought)) if COUNTED else None)


def test_thinking_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM forces the end of reasoning by the tokens that the parser names."""
    monkeypatch.setattr(reasoning_config, "cached_tokenizer_from_config", lambda **_: TOKENIZER)
    config = reasoning_config.ReasoningConfig(reasoning_parser="respzoo")
    config.initialize_token_ids(None)
    assert config.reasoning_start_token_ids == encode("<think>")
    assert config.reasoning_end_token_ids == encode("</think>")
    if hasattr(config, "natural_reasoning_end_token_ids"):
        # an end of the operator's own, with a word before it; how the model ends it by itself is known all the same
        config = reasoning_config.ReasoningConfig(reasoning_parser="respzoo", reasoning_end_str=" Enough.</think>")
        config.initialize_token_ids(None)
        assert config.natural_reasoning_end_token_ids == encode("</think>")
    # what a forced end makes of the reply
    text = "<think>\nHm, and so" + TOKENIZER.decode(encode("</think>")) + "Yes."
    assert both(parser_class(), text, chat()) == ("Hm, and so", "Yes.", [])


FAMILIES = [name for name in loaded().families if loaded().owners[name] == "respzoo:curated"]
# Families whose markers are patterns: what of them is a token of the tokenizer.
TOKENS = {
    "beam": (None, "<|end|>"),  # as gpt_oss
    "solar_open": (None, "<|end|>"),
    "apriel": ("<thinking>", "</thinking>"),
    "gpt_oss": (None, "<|end|>"),  # the channel is a word between tokens
    "hunyuan_a13b": ("<think>", "</think>"),
    "hy_v3": ("<think:6124c78e>", "</think:6124c78e>"),
    "hy_v4": ("<think:6124c78e>", "</think:6124c78e>"),
    "hyperclovax": (None, "<|im_end|>"),  # `/think` is spelled
    "inkling": ("<|content_thinking|>", "<|end_message|>"),
    "k2_horizon": ("<ifm|think>", "</ifm|think>"),
    "muse": ("<|message|>", "<|eom|>"),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_what_every_familys_budget_is_counted_by(name: str) -> None:
    """The strings are the family's own: between them is reasoning."""
    template = respzoo.get("any", template=name)
    tokenizer = tokenizer_of(byte_tokenizer(), name)
    tokenizer.add_tokens([token for token in TOKENS.get(name, ()) if token])
    tokenizer.add_tokens(["<ifm|think_fast>", "</ifm|think_fast>"] if name == "k2_horizon" else [])
    parser = type("Reasoning", (split.RespzooReasoningParser,), {"template": template})(tokenizer)
    found = parser.reasoning_start_str, parser.reasoning_end_str
    if name in TOKENS:
        assert found == TOKENS[name]
    elif not any(field in template.spec["fields"] for field in ("reasoning_content", "thinking", "reasoning")):
        assert found == (None, None)
    else:
        assert None not in found
    if None not in found:
        message = template.parse(f"{found[0]}Hm.{found[1]}", prefix="", on_malformed="content")
        assert message["reasoning_content"].strip() == "Hm."


# ----------------------------------------------------------------------------------------------- Anthropic Messages


@STREAMS
@pytest.mark.parametrize(
    ("text", "finish", "blocks", "stop_reason"),
    [
        (
            TWICE,
            "stop",
            [
                ("thinking", "Two, I think."),
                ("text", "Let me check."),
                *(("tool_use", json.loads(arguments)) for _, arguments in CALLS),
            ],
            "tool_use",
        ),
        ("<think>\nHm.\n</think>\n\nHello!", "stop", [("thinking", "Hm."), ("text", "Hello!")], "end_turn"),
        ("Hello, and", "length", [("text", "Hello, and")], "max_tokens"),
        (f"{ZURICH} And", "length", [("tool_use", json.loads(CALLS[0][1])), ("text", " And")], "max_tokens"),
    ],
    ids=["calls", "answer", "cut", "cut behind a call"],
)
def test_messages(stream: bool, text: str, finish: str, blocks: list[tuple[str, Any]], stop_reason: str) -> None:
    """Anthropic's API is chat's with other words: the same parser, the same requests."""
    convert = getattr(Messages, "to_chat_completion_request", None) or Messages._convert_anthropic_to_openai_request
    asked = AnthropicMessagesRequest(
        model="m",
        max_tokens=100,
        stream=stream,
        messages=[{"role": "user", "content": "hi"}],
        tools=[{"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}],
    )
    cls = parser_class()
    request = adjusted(cls, convert(asked))
    assert request.skip_special_tokens is False
    found = Messages(cls).reply(request, Written(text, finish))
    assert sorted(map(repr, found.blocks)) == sorted(map(repr, blocks))
    assert found.stop_reason == stop_reason


@pytest.mark.parametrize(
    ("choice", "expected"), [({"type": "any"}, "required"), ({"type": "tool", "name": "get_weather"}, "named")]
)
def test_forced_calls_of_messages(choice: dict[str, Any], expected: str) -> None:
    convert = getattr(Messages, "to_chat_completion_request", None) or Messages._convert_anthropic_to_openai_request
    asked = AnthropicMessagesRequest(
        model="m",
        max_tokens=100,
        messages=[{"role": "user", "content": "hi"}],
        tools=[{"name": "get_weather", "input_schema": {"type": "object"}}],
        tool_choice=choice,
    )
    request = adjusted(parser_class(), convert(asked))
    assert ("plus" in request.structured_outputs.structural_tag) == (expected == "required")
