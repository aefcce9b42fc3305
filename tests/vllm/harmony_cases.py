"""gpt-oss through the adapter, on one release of vLLM (test_offline.py)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import vllm.parser
import vllm.reasoning
from driving import (
    TOOLS,
    WEATHER,
    Reply,
    adjusted,
    both,
    chat,
    finished,
    gate,
    parser_class,
    responses,
    streamed,
    takes,
    whole,
)  # fmt: skip
from harmony import HARMONY, HARMONY_PROMPT, RealTokenizer, harmony_tokenizer, written
from serving import output, part
from vllm.entrypoints.openai.responses.context import HarmonyContext
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest

ROOT = Path(__file__).resolve().parents[2]

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


@pytest.mark.parametrize(("marked", "expected"), QUOTED)
def test_quoted_markup_is_text(marked: str, expected: Reply) -> None:
    tokenizer = harmony_tokenizer()
    cls = parser_class(**HARMONY)
    text, ids = written(marked, tokenizer)
    options: dict[str, Any] = {"prompt": HARMONY_PROMPT, "tokenizer": tokenizer, "ids": ids}
    assert whole(cls, text, chat(), **options) == expected
    for size in (1, 2, 3, 7, 1000):
        assert finished(streamed(cls, text, chat(), size=size, **options)) == expected
    # with the stop token's id and without its text: it closes what was cut, which then is no call
    stopped = {**options, "ids": [*ids, *tokenizer.encode("<|return|>", add_special_tokens=False)]}
    assert whole(cls, text, chat(), **stopped) == (expected if any(expected) else ("", f"{text}<|return|>", []))


ADJUSTS = "adjust_request" in vars(vllm.parser.HarmonyParser)  # since 0.28; before, our parser reads the ids alone


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
    if not ADJUSTS:
        for behind in (1, 4, 30):
            assert finished(streamed(cls, text, chat(), ids=ids, behind=behind, **options)) == expected
        return
    as_text = whole(cls, text, chat(), ids=[], **options)
    assert as_text != expected or marked == QUOTED[1][0]
    for behind in (1, 4, 30):
        said.clear()
        assert finished(streamed(cls, text, chat(), ids=ids, behind=behind, **options)) == as_text
        assert sum("quoted markup will be read as markup" in line for line in said) == 1


THOUGHT = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
PREAMBLE = "<|channel|>commentary<|message|>Let me see.<|end|><|start|>assistant"
FINAL = "<|channel|>final<|message|>Hello!"
ARGUMENTS = '{"city": "Oslo"}'
CALL = f"<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{ARGUMENTS}"
IN_ROLE = f" to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>{ARGUMENTS}"
BROKEN = '<|channel|>commentary to=functions.get_weather<|message|>{"city": }'


def test_a_stop_token_closes_the_call() -> None:
    """Its text never comes: whether a call was cut off or is broken is told by the ids alone."""
    tokenizer, cls = harmony_tokenizer(), parser_class(**HARMONY)
    for text, cut, closed in (
        (BROKEN, ("", "", []), ("", f"{BROKEN}<|call|>", [])),
        (CALL, ("", "", [("get_weather", ARGUMENTS)]), ("", "", [("get_weather", ARGUMENTS)])),
        (CALL[:-3], ("", "", []), ("", f"{CALL[:-3]}<|call|>", [])),
        ("<|channel|>analysis<|message|>Hm", ("Hm", "", []), ("Hm", "", [])),
    ):
        for stop, expected in (("", cut), ("<|call|>", closed)):
            ids = tokenizer.encode(text + stop, add_special_tokens=False)
            options: dict[str, Any] = {"prompt": HARMONY_PROMPT, "tokenizer": tokenizer, "ids": ids}
            assert whole(cls, text, chat(), **options) == expected
            for size in (1, 3, 1000):
                found = streamed(cls, text, chat(), size=size, cut=len(text), **options)
                assert finished(found) == expected


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
    """When a grammar begins is what vLLM's own class says: at once since 0.28, when such grammars hold the reasoning."""
    tokenizer = harmony_tokenizer()
    ours = gate(tokenizer)
    stock = vllm.reasoning.ReasoningParserManager.get_reasoning_parser("openai_gptoss")(tokenizer)
    ids = tokenizer.encode(HARMONY_PROMPT)
    for more in ("", "<|channel|>analysis<|message|>Hm.<|end|>", "<|channel|>final<|message|>", "Hello"):
        ids = [*ids, *tokenizer.encode(more)]
        assert ours.is_reasoning_end(ids) is stock.is_reasoning_end(ids)
        assert ours.is_reasoning_end_streaming(ids, ids[-1:]) is stock.is_reasoning_end_streaming(ids, ids[-1:])
    assert stock.is_reasoning_end(tokenizer.encode(HARMONY_PROMPT)) is ADJUSTS


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


# ------------------------------------------------------------------------------------------------------ grammars

WRONG = CALL.replace('"Oslo"', "3")
STRICT = [{"type": "function", "function": {**WEATHER, "strict": True}}]


@pytest.mark.parametrize("make", [chat, responses])
@pytest.mark.parametrize(
    ("options", "taken", "refused"),
    [
        (
            {"tool_choice": "required"},
            [CALL, IN_ROLE, THOUGHT + CALL, THOUGHT + IN_ROLE],
            [FINAL, THOUGHT + FINAL, WRONG, THOUGHT + WRONG, "Hello!"],
        ),
        (
            {"tools": STRICT},
            [CALL, THOUGHT + CALL, FINAL, THOUGHT + FINAL, THOUGHT + PREAMBLE + CALL],
            [THOUGHT + WRONG],
        ),
    ],
    ids=["required", "strict"],
)
def test_a_grammar_holds_the_reasoning_too(
    make: Any, options: dict[str, Any], taken: list[str], refused: list[str]
) -> None:
    tokenizer = harmony_tokenizer()
    request = adjusted(parser_class(**HARMONY), make(**options), tokenizer=tokenizer)
    assert [text for text in taken if not takes(request, text)] == []
    assert [text for text in refused if takes(request, text)] == []


def test_formats_and_built_in_tools_are_vllms_own(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    built_in = [{"type": "web_search_preview"}, {"type": "function", **WEATHER}]
    for request in (
        chat(tools=None, response_format=schema),
        ResponsesRequest(model="m", input="hi", tools=built_in, tool_choice="required"),
    ):
        stock = request.model_copy(deep=True)
        tokenizer = harmony_tokenizer()
        ours = adjusted(parser_class(**HARMONY), request, tokenizer=tokenizer)
        found = adjusted(parser_class(**HARMONY, reasoning="openai_gptoss", tools="openai"), stock, tokenizer=tokenizer)
        assert ours.structured_outputs == found.structured_outputs
        assert ours.skip_special_tokens is False


# ------------------------------------------------------------------------- beside vLLM's own parser, on real tokens

SAMPLES = [
    json.loads(line)
    for line in (ROOT / "registry" / "respzoo_curated" / "gpt_oss" / "samples.jsonl").read_text("utf-8").splitlines()
]
# A marker that a value quotes is, in these tokens, one: vLLM's parser ends the call there.
ODD = {"truncated", "malformed", "marker-in-arguments"}
WHOLE = [sample for sample in SAMPLES if not ODD & set(sample["tags"])]


def written_ids(sample: dict[str, Any], tokenizer: RealTokenizer) -> list[int]:
    """As the engine writes them: with the stop token, which is not in the text."""
    ids = tokenizer.encode(sample["raw_output"])
    ends = [tokenizer.vocab[f"<|{name}|>"] for name in ("end", "call", "return")]
    stop = "<|call|>" if sample["expected"]["tool_calls"] else "<|return|>"
    return ids if ids[-1] in ends else [*ids, tokenizer.vocab[stop]]


def plain(reply: tuple[str | None, str | None, Any]) -> tuple[str, str, list[tuple[str, Any]]]:
    reasoning, content, calls = reply
    return reasoning or "", content or "", [(call.name, json.loads(call.arguments)) for call in calls or ()]


@pytest.mark.parametrize("sample", WHOLE, ids=lambda sample: sample["id"])
def test_chat_reads_what_vllms_own_parser_reads(sample: dict[str, Any]) -> None:
    tokenizer, tools = RealTokenizer(), sample.get("tools") or TOOLS
    ids = written_ids(sample, tokenizer)
    request = chat(tools)
    found = []
    for reasoning, calls in (("openai_gptoss", "openai"), ("respzoo", "respzoo")):
        parser = parser_class(**HARMONY, reasoning=reasoning, tools=calls)(tokenizer, request.tools)
        parser.is_reasoning_end(tokenizer.encode(HARMONY_PROMPT))
        found.append(
            plain(parser.parse(sample["raw_output"], request, enable_auto_tools=True, model_output_token_ids=ids))
        )
    assert found[0] == found[1]


def test_text_without_markers_is_read_by_its_ids() -> None:
    """Before 0.28 vLLM leaves the special tokens out of the text of gpt-oss, whatever the parser would want."""
    if ADJUSTS:
        return
    tokenizer, cls = RealTokenizer(), parser_class(**HARMONY)
    text = f"{THOUGHT}{CALL.replace('Oslo', 'Zürich 🌦')}<|call|>"
    ids = tokenizer.encode(text)
    bare = re.sub(r"<\|\w+\|>", "", text)
    expected = ("Hm.", "", [("get_weather", {"city": "Zürich 🌦"})])
    parser = cls(tokenizer, chat().tools)
    parser.is_reasoning_end(tokenizer.encode(HARMONY_PROMPT))
    assert plain(parser.parse(bare, chat(), enable_auto_tools=True, model_output_token_ids=ids)) == expected
    parser, reasoning, arguments = cls(tokenizer, chat().tools), "", ""
    for at, one in enumerate(ids):
        delta = parser.parse_delta("", [one], chat(), tokenizer.encode(HARMONY_PROMPT), finished=at == len(ids) - 1)
        reasoning += (delta and delta.reasoning) or ""
        arguments += "".join(call.function.arguments or "" for call in (delta and delta.tool_calls) or ())
    assert (reasoning, json.loads(arguments)) == ("Hm.", {"city": "Zürich 🌦"})


@pytest.mark.parametrize("sample", WHOLE, ids=lambda sample: sample["id"])
def test_responses_are_read_by_vllm(sample: dict[str, Any]) -> None:
    """vLLM's Responses API keeps the messages of openai-harmony: it renders the next turn of them, stores them, and runs
    built-in tools by them. They are made by the class that ours is made of, and hold what ours reads."""
    tokenizer, tools = RealTokenizer(), sample.get("tools") or TOOLS
    ids = written_ids(sample, tokenizer)
    names = frozenset(tool["function"]["name"] for tool in tools)
    parser = parser_class(**HARMONY)(tokenizer, None)
    assert isinstance(parser, vllm.parser.HarmonyParser)
    context = HarmonyContext([], [], names, response_parser=parser)
    context.append_output(
        output(tokenizer.encode(HARMONY_PROMPT), [part(0, sample["raw_output"], ids, "stop")], finished=True)
    )
    thoughts: list[str] = []
    answers: list[str] = []
    calls: list[tuple[str, Any]] = []
    for message in context.messages:
        text = message.content[0].text
        recipient = (message.recipient or "").partition("<|")[0].strip()
        if recipient.startswith("functions."):
            calls.append((recipient.removeprefix("functions."), json.loads(text)))
        else:
            (thoughts if message.channel == "analysis" else answers).append(text)
    request = chat(tools)
    reader = parser_class(**HARMONY)(tokenizer, request.tools)
    reader.is_reasoning_end(tokenizer.encode(HARMONY_PROMPT))
    assert plain(reader.parse(sample["raw_output"], request, enable_auto_tools=True, model_output_token_ids=ids)) == (
        "\n".join(thoughts),
        "\n".join(answers),
        calls,
    )
