"""Spans: what spells a special token and was not written by one is text."""

from __future__ import annotations

import functools
import itertools
import json
from typing import Any

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from respzoo.guard import Guard, Marks, marks_of
from respzoo.plugins import loaded
from respzoo.template import ResponseTemplate

TOKENS = ("<|end|>", "<|start|>", "[CALL]", "<|en")


def run(guard: Guard, pieces: list[tuple[str, Any]]) -> str:
    return "".join([guard.feed(text, special) for text, special in pieces]) + guard.end()


def spellings(text: str) -> list[str]:
    return [token for token in TOKENS if token in text]


# ------------------------------------------------------------------------------------------------------- hide and show


@pytest.mark.parametrize("token", TOKENS)
def test_a_spelling_is_hidden_and_shown_again(token: str) -> None:
    guard = Guard(Marks(TOKENS))
    text = f"a {token} b{token}{token} <|e [CAL"
    hidden = run(guard, [(text, ())])
    assert guard.used
    assert spellings(hidden) == []
    assert len(hidden) == len(text)
    assert guard.marks.show(hidden) == text


def test_a_special_token_is_left_alone() -> None:
    guard = Guard(Marks(TOKENS))
    text = "a <|end|> b<|start|>"
    assert run(guard, [(text, [(2, 9), (11, 20)])]) == text
    assert not guard.used
    mixed = run(guard, [("<|end|><|end|><|end|>", [(7, 14)])])
    assert mixed[7:14] == "<|end|>"
    assert spellings(mixed[:7]) == spellings(mixed[14:]) == []


def test_what_nobody_knows_is_left_alone() -> None:
    guard = Guard(Marks(TOKENS))
    assert run(guard, [("a <|end|>", None), ("<|sta", ()), ("rt|>", None)]) == "a <|end|><|start|>"
    assert not guard.used


def test_text_waits_no_longer_than_it_must() -> None:
    guard = Guard(Marks(["<|end|>", "[CALL]"]))
    assert guard.feed("so: <|e", ()) == "so: "
    assert guard.held == "<|e"
    assert guard.feed("v [CA", ()) == "<|ev "
    assert guard.feed("<|end|>", [(0, 7)]) == "[CA<|end|>"
    assert guard.held == ""
    assert guard.feed("x", ()) == "x"


def test_tokens_that_overlap() -> None:
    for tokens in (("<|a|>", "<|a|>b"), ("aa", "aaa"), ("ab", "bc", "abcd")):
        marks = Marks(tokens)
        for size in range(1, 7):
            for chars in itertools.product("ab<", repeat=size) if tokens[0] != "<|a|>" else [tuple("<|a|>b<|a|>")]:
                text = "".join(chars)
                whole = run(Guard(marks), [(text, ())])
                assert not any(token in whole for token in tokens)
                assert run(Guard(marks), [(char, ()) for char in text]) == whole
                assert marks.show(whole) == text


PIECES = st.lists(
    st.sampled_from(["<|end|>", "<|start|>", "[CALL]", "<|", "en", "d|>", "[", "CALL]", "x", " ", "\ud800"])
)


@examples(100)
@given(PIECES, st.data())
def test_any_cutting_of_ordinary_text(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    marks = Marks(TOKENS)
    whole = run(Guard(marks), [(text, ())])
    assert spellings(whole) == []
    assert marks.show(whole) == text
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    parts = [text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])]
    guard = Guard(marks)
    assert run(guard, [(part, ()) for part in parts]) == whole
    assert guard.used is (whole != text)


@examples(100)
@given(st.lists(st.tuples(st.sampled_from(["<|end|>", "[CALL]", "<|e", "nd|>", "x"]), st.booleans())))
def test_stretches_say_the_same_as_pieces(pieces: list[tuple[str, bool]]) -> None:
    text, at = "", 0
    stretches: list[tuple[int, int]] = []
    for piece, special in pieces:
        text += piece
        if special:
            stretches.append((at, len(text)))
        at = len(text)
    marks = Marks(TOKENS)
    whole = run(Guard(marks), [(text, stretches)])
    assert run(Guard(marks), [(piece, [(0, len(piece))] if special else ()) for piece, special in pieces]) == whole
    assert marks.show(whole) == text
    assert all(whole[start:end] == text[start:end] for start, end in stretches)


@pytest.mark.parametrize("special", [[(3, 2)], [(0, 9)], [(-1, 2)], [(2, 4), (0, 1)], [(0, 3), (2, 4)]])
def test_stretches_that_are_none(special: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="special: expected stretches"):
        Guard(Marks(TOKENS)).feed("12345", special)


def test_values_are_shown_inside_and_not_changed() -> None:
    marks = Marks(TOKENS)
    hidden, count = marks.hide("<|end|>")
    assert count == 1
    value = {"a": [hidden, 1, None], hidden: {"b": hidden}}
    shown = marks.show(value)
    assert shown == {"a": ["<|end|>", 1, None], "<|end|>": {"b": "<|end|>"}}
    assert value["a"] == [hidden, 1, None]


def test_work_is_linear() -> None:
    """What is held is never longer than a token."""
    guard = Guard(Marks(TOKENS))
    for char in "<|e<|" * 2000:
        guard.feed(char, ())
        assert len(guard.held) < max(map(len, TOKENS))


# ------------------------------------------------------------------------------------------------------- which tokens


@pytest.mark.parametrize(
    ("field", "guarded"),
    [
        ({"open": "<|think|>", "close": "</s>"}, {"<|think|>", "</s>"}),
        ({"open": ["[A]", "x [B] y"], "close": "[C]"}, {"[B]"}),
        ({"open_pattern": r"<\|(?:end|call)\|>\s*", "close": "x"}, {"<|end|>", "<|call|>"}),
        ({"open_pattern": r"a(?:<\|end\|>)?b*", "close_pattern": r"\[B\]|$"}, {"<|end|>", "[B]"}),
        ({"open": "x", "close_pattern": r"(?=<\|(?:start|call)\|>)"}, {"<|start|>", "<|call|>"}),
        ({"open": "x", "close_pattern": r"<\|[a-z]+\|>|.*?</t>"}, set()),
        ({"open_pattern": r"(?i)<\|end\|>", "close": "x"}, {"<|end|>"}),
        ({"open": "x", "close": "y", "content": "json", "content_args": {"string_delims": [['<|"|>', '<|"|>']]}}, {'<|"|>'}),
    ],
)  # fmt: skip
def test_only_what_the_template_spells_is_guarded(field: dict[str, Any], guarded: set[str]) -> None:
    special = {"<|think|>", "</s>", "[B]", "<|end|>", "<|call|>", "<|start|>", '<|"|>', "", "assistant"}
    template = ResponseTemplate({"start_anchor": "@", "defaults": {"x": "<|think|>"}, "fields": {"x": field}})
    marks = marks_of(template, special)
    assert set(marks.tokens if marks else ()) == guarded
    assert marks_of(template, list(special)) is marks


# ------------------------------------------------------------------------------------------------ through the parser
# In these texts «…» is what a special token wrote.

SPECIAL = {
    "gpt_oss": ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>"),
    "mistral_v13": ("[THINK]", "[/THINK]", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[INST]", "[/INST]", "</s>"),
    "kimi_k3": ("<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"),
    "llama4_pythonic": ("<|python_start|>", "<|python_end|>", "<|eot|>", "<|eom|>"),
    "gemma4": ("<|tool_call>", "<tool_call|>", '<|"|>', "<|channel>", "<channel|>", "<turn|>", "<|turn>"),
}


def one_call(**arguments: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "arguments": arguments}}]


CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "harmony: markup quoted in the reasoning": (
        "gpt_oss",
        "«<|channel|>»analysis«<|message|>»It ends with <|end|><|start|>assistant<|channel|>commentary to=functions.f"
        "<|message|>{}<|call|>, I think.«<|end|>»«<|start|>»assistant«<|channel|>»final«<|message|>»Hi.«<|return|>»",
        {
            "reasoning_content": "It ends with <|end|><|start|>assistant<|channel|>commentary to=functions.f<|message|>"
            "{}<|call|>, I think.",
            "content": "Hi.",
        },
    ),
    "harmony: in the answer": (
        "gpt_oss",
        "«<|channel|>»final«<|message|>»Write <|return|> or <|end|>.«<|return|>»",
        {"content": "Write <|return|> or <|end|>."},
    ),
    "harmony: in arguments": (
        "gpt_oss",
        "«<|channel|>»commentary to=functions.f «<|constrain|>»json«<|message|>»"
        '{"a": "<|call|>", "<|end|>": ["<|start|>", 1]}«<|call|>»',
        {"tool_calls": one_call(a="<|call|>", **{"<|end|>": ["<|start|>", 1]})},
    ),
    "harmony: in arguments that are cut": (
        "gpt_oss",
        '«<|channel|>»commentary to=functions.f«<|message|>»{"a": "echo <|call|> and ',
        {},
    ),
    "harmony: in arguments that break": (
        "gpt_oss",
        '«<|channel|>»commentary to=functions.f«<|message|>»{"a": "x}<|call|>\n«<|call|>»'
        "«<|start|>»assistant«<|channel|>»final«<|message|>»Hi.",
        {
            "content": '<|channel|>commentary to=functions.f<|message|>{"a": "x}<|call|>\n<|call|>\nHi.',
        },
    ),
    "mistral: in the reasoning": (
        "mistral_v13",
        '«[THINK]»First [/THINK] then [TOOL_CALLS]f[ARGS]{"a": 1}«[/THINK]»Well.«</s>»',
        {"reasoning_content": 'First [/THINK] then [TOOL_CALLS]f[ARGS]{"a": 1}', "content": "Well."},
    ),
    "mistral: in the answer, and a call": (
        "mistral_v13",
        'Like [TOOL_CALLS]f[ARGS]{"a": 1}</s>:«[TOOL_CALLS]»f«[ARGS]»{"a": "[TOOL_CALLS]f[ARGS]{}"}«</s>»',
        {
            "content": 'Like [TOOL_CALLS]f[ARGS]{"a": 1}</s>:',
            "tool_calls": one_call(a="[TOOL_CALLS]f[ARGS]{}"),
        },
    ),
    "mistral: in arguments that are cut": ("mistral_v13", '«[TOOL_CALLS]»f«[ARGS]»{"a": "x [TOOL_CALLS]g[ARGS]{', {}),
    "kimi k3: in the reasoning": (
        "kimi_k3",
        "«<|open|>»think«<|sep|>»It is <|close|>think<|sep|><|open|>tools<|sep|>.«<|close|>»think«<|sep|>»"
        "«<|open|>»response«<|sep|>»Hi <|close|>response<|sep|>!«<|close|>»response«<|sep|>»",
        {
            "reasoning_content": "It is <|close|>think<|sep|><|open|>tools<|sep|>.",
            "content": "Hi <|close|>response<|sep|>!",
        },
    ),
    "kimi k3: in arguments": (
        "kimi_k3",
        '«<|open|>»tools«<|sep|>»«<|open|>»call tool="f"«<|sep|>»«<|open|>»argument key="a" type="string"«<|sep|>»'
        'x<|close|>argument<|sep|><|open|>argument key="b" type="string"<|sep|>y«<|close|>»argument«<|sep|>»'
        "«<|close|>»call«<|sep|>»«<|close|>»tools«<|sep|>»",
        {"tool_calls": one_call(a='x<|close|>argument<|sep|><|open|>argument key="b" type="string"<|sep|>y')},
    ),
    "gemma: in a verbatim string": (
        "gemma4",
        '«<|tool_call>»call:f{a:«<|"|>»say <|"|>hi<|"|>, <tool_call|>«<|"|>»}«<tool_call|>»',
        {"tool_calls": one_call(a='say <|"|>hi<|"|>, <tool_call|>')},
    ),
}


CASES["pythonic: in arguments"] = (
    "llama4_pythonic",
    '«<|python_start|>»[f(a="x <|python_end|> y", b=["<|eot|>"])]«<|python_end|>»«<|eot|>»',
    {"tool_calls": one_call(a="x <|python_end|> y", b=["<|eot|>"])},
)


def pieces_of(marked: str) -> list[tuple[str, bool]]:
    parts = marked.replace("»", "«").split("«")
    return [(part, bool(at % 2)) for at, part in enumerate(parts) if part]


def fed(stream: Any, pieces: list[tuple[str, bool]], *, cut: int | None) -> list[Any]:
    """What a stream returns for these pieces: as one text, or one after another, ordinary ones cut to a size."""
    if cut is None:
        text, stretches = "", list[tuple[int, int]]()
        for piece, special in pieces:
            if special:
                stretches.append((len(text), len(text) + len(piece)))
            text += piece
        return stream.feed(text, stretches)
    out: list[Any] = []
    for piece, special in pieces:
        if special:
            out += stream.feed(piece, [(0, len(piece))])
        else:
            for at in range(0, len(piece), cut):
                out += stream.feed(piece[at : at + cut], ())
    return out


@functools.cache
def template_of(family: str) -> ResponseTemplate:
    return ResponseTemplate(loaded().families[family].spec, name=family)


@pytest.mark.parametrize("cut", [None, 1, 3, 50])
@pytest.mark.parametrize("name", CASES)
def test_quoted_markup_is_text(name: str, cut: int | None) -> None:
    family, marked, expected = CASES[name]
    template, pieces = template_of(family), pieces_of(marked)
    parser = template.parser(prefix="", special_tokens=SPECIAL[family])
    events = fed(parser, pieces, cut=cut)
    message, last = parser.finalize()
    assert message == {"role": "assistant", **expected}
    stream = template.stream(prefix="", special_tokens=SPECIAL[family], arguments="complete")
    deltas = fed(stream, pieces, cut=cut)
    streamed, more = stream.finish()
    for call in streamed.get("tool_calls", ()):
        call.pop("id", None)
    assert streamed == message
    deltas += more
    for key in ("content", "reasoning_content"):
        assert "".join(delta.get(key, "") for delta in deltas) == expected.get(key, "")
    for out in (events, last, deltas, parser.dropped, stream.dropped):
        assert not any("\ufdd0" <= char <= "\ufdef" for char in json.dumps(out, ensure_ascii=False))
    assert [(region["reason"], region["raw"]) for region in parser.dropped] == [
        (region["reason"], region["raw"]) for region in stream.dropped
    ]


@pytest.mark.parametrize("cut", [None, 1, 3])
@pytest.mark.parametrize("name", CASES)
def test_quoted_markup_in_arguments_that_are_streamed(name: str, cut: int | None) -> None:
    """The same calls, in pieces; of one that breaks off, no more than what it wrote."""
    family, marked, expected = CASES[name]
    stream = template_of(family).stream(prefix="", special_tokens=SPECIAL[family], arguments="stream")
    deltas = fed(stream, pieces_of(marked), cut=cut)
    message, more = stream.finish()
    arguments: dict[int, str] = {}
    for delta in deltas + more:
        for call in delta.get("tool_calls", ()):
            arguments[call["index"]] = arguments.get(call["index"], "") + call["function"]["arguments"]
    calls = message.get("tool_calls", [])
    assert len(arguments) == len(calls)
    whole = [call for call in calls if "status" not in call]
    assert [{key: call[key] for key in ("type", "function")} for call in whole] == expected.get("tool_calls", [])
    for number, call in enumerate(calls):
        given = call["function"]["arguments"]
        assert arguments[number] == given if isinstance(given, str) else json.loads(arguments[number]) == given
        if isinstance(given, str):
            assert given.replace(" ", "").replace("\\n", "\n") in "".join(
                piece for piece, _ in pieces_of(marked)
            ).replace(" ", "")
    assert not any("\ufdd0" <= char <= "\ufdef" for char in json.dumps([deltas, more, message], ensure_ascii=False))
    for key in ("content", "reasoning_content"):
        assert message.get(key) == expected.get(key)


@pytest.mark.parametrize("name", CASES)
def test_without_that_knowledge_it_is_markup(name: str) -> None:
    """Text mode stays as it is: without special tokens, or where nobody knows what they wrote."""
    family, marked, _ = CASES[name]
    template = template_of(family)
    text = "".join(piece for piece, _ in pieces_of(marked))
    results: list[Any] = []
    for options in ({}, {"special_tokens": None}, {"special_tokens": SPECIAL[family]}, {"special_tokens": ["<unk>"]}):
        parser = template.parser(prefix="", **options)
        events = [*parser.feed(text[:20]), *parser.feed(text[20:])]
        message, last = parser.finalize()
        results.append((message, events + last, parser.dropped))
    assert all(result == results[0] for result in results)


def test_that_knowledge_makes_the_difference() -> None:
    different = 0
    for family, marked, expected in CASES.values():
        text = "".join(piece for piece, _ in pieces_of(marked))
        different += template_of(family).parse(text, prefix="", on_malformed="content") != {
            "role": "assistant",
            **expected,
        }
    assert different > len(CASES) / 2


def test_cut_arguments_with_a_quoted_closer_are_no_answer() -> None:
    """Without spans the quoted closer makes the cut call a malformed one, whose text is content."""
    family, marked, _ = CASES["harmony: in arguments that are cut"]
    template, pieces = template_of(family), pieces_of(marked)
    parser = template.parser(prefix="", special_tokens=SPECIAL[family])
    fed(parser, pieces, cut=2)
    message, events = parser.finalize()
    assert message == {"role": "assistant"}
    raw = "".join(piece for piece, _ in pieces)
    assert [(one["reason"], one["raw"]) for one in parser.dropped] == [("unfinished", raw)]
    assert [event.get("raw") for event in events if event["type"] == "region_malformed"] == [raw]


def test_the_prompt_is_read_as_text() -> None:
    template = template_of("gpt_oss")
    prefix = "<|start|>assistant<|channel|>analysis<|message|>Hm "
    parser = template.parser(prefix=prefix, special_tokens=SPECIAL["gpt_oss"])
    assert parser.region == "reasoning_content"
    fed(parser, pieces_of("<|end|>.«<|end|>»"), cut=1)
    assert parser.finalize()[0] == {"role": "assistant", "reasoning_content": "Hm <|end|>."}


def test_what_is_held_is_told() -> None:
    parser = template_of("gpt_oss").parser(prefix="", special_tokens=SPECIAL["gpt_oss"])
    fed(parser, pieces_of("«<|channel|>»analysis«<|message|>»a <|end|> b <|en"), cut=1)
    assert parser.held == "<|en"


def test_finished_is_finished() -> None:
    parser = template_of("gpt_oss").parser(prefix="", special_tokens=SPECIAL["gpt_oss"])
    parser.feed("<|e", ())
    parser.finalize()
    with pytest.raises(RuntimeError):
        parser.feed("x", ())
    with pytest.raises(RuntimeError):
        parser.finalize()


def test_special_tokens_are_many_texts() -> None:
    with pytest.raises(ValueError, match="special_tokens: expected the texts of all special tokens"):
        template_of("gpt_oss").parser(prefix="", special_tokens="<|end|>")


WORDS = {
    "gpt_oss": ["assistant", "analysis", "final", "commentary", " to=functions.f", "json", '{"a": "', '"}', "{}", "x ", "en", "d|>"],
    "kimi_k3": ["think", "response", "tools", "message", 'call tool="f"', 'argument key="a" type="string"', "1", "op", "en|>"],
    "mistral_v13": ["f", "g", '{"a": "', '"}', "{}", "x ", "[TOOL", "_CALLS]", "[/", "TH"],
    "gemma4": ["thought\n", "call:f{", "a:", "b:1", ",", "}", '"|>', "[", "]"],
    "llama4_pythonic": ["[f(a=", "'x'", '"y"', ", b=1", ")]", "[", "python_end|>"],
}  # fmt: skip


@pytest.mark.parametrize("family", WORDS)
@examples(100)
@given(data=st.data())
def test_one_answer_under_every_cutting(family: str, data: st.DataObject) -> None:
    """Of anything: whole with stretches, by special token, ordinary text cut anywhere; and nothing that was hidden
    stays so."""
    template, special_tokens = template_of(family), SPECIAL[family]
    words = st.sampled_from([*special_tokens, *WORDS[family], "\n", "<|", "é", " "])
    drawn = data.draw(st.lists(st.tuples(words, st.booleans()), max_size=25))
    pieces = [(word, special and word in special_tokens) for word, special in drawn]
    results: list[Any] = []
    for cut in (None, 1, data.draw(st.integers(2, 9))):
        parser = template.parser(prefix="", special_tokens=special_tokens)
        events = fed(parser, pieces, cut=cut)
        message, last = parser.finalize()
        merged: list[Any] = []
        for event in events + last:
            if event["type"] == "region_chunk" and merged and merged[-1]["type"] == "region_chunk":
                merged[-1] = {**merged[-1], "text": merged[-1]["text"] + event["text"]}
            else:
                merged.append(event)
        stream = template.stream(prefix="", special_tokens=special_tokens, arguments="complete")
        fed(stream, pieces, cut=cut)
        streamed, _ = stream.finish()
        for call in streamed.get("tool_calls", ()):
            call.pop("id", None)
        results.append((message, merged, parser.dropped, streamed, stream.dropped))
    assert results[1] == results[0]
    assert results[2] == results[0]
    assert not any("\ufdd0" <= char <= "\ufdef" for char in json.dumps(results[0], ensure_ascii=False))


@examples(100)
@given(st.lists(st.sampled_from([*SPECIAL["gpt_oss"], *WORDS["gpt_oss"], "\n"]), max_size=25))
def test_without_any_special_token_it_is_all_text(words: list[str]) -> None:
    parser = template_of("gpt_oss").parser(prefix="", special_tokens=SPECIAL["gpt_oss"])
    parser.feed("".join(words), ())
    text = "".join(words).strip()
    assert parser.finalize()[0] == ({"role": "assistant", "content": text} if text else {"role": "assistant"})
