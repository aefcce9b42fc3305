"""`parse_response`: one output or a batch, text or token ids, a template in each of its forms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import respzoo

SMOL = json.loads((Path(__file__).parent / "data" / "templates" / "manual_smollm.json").read_text("utf-8"))
START = SMOL["start_anchor"]
BAD = '<tool_call>{"name": }</tool_call>'


def answer(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


class Tokenizer:
    """One id a character."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def decode(self, ids: Any) -> str:
        self.asked.append(ids)
        assert isinstance(ids, list)
        assert all(type(one) is int for one in ids)
        return "".join(map(chr, ids))


class Tensor:
    """What a framework's tensor has of what matters here; no len, no iteration."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def tolist(self) -> Any:
        return self.value


def ids(text: str) -> list[int]:
    return list(map(ord, text))


def parse(text: Any, *, prefix: Any = "", **more: Any) -> Any:
    return respzoo.parse_response(text, SMOL, prefix=prefix, **more)


def test_one_text() -> None:
    assert parse("Hi.") == answer("Hi.")
    assert parse("a</think>b", prefix=f"{START}<think>") == {
        "role": "assistant",
        "reasoning_content": "a",
        "content": "b",
    }


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_batch_of_texts(kind: type) -> None:
    assert parse(kind(["a", "b"])) == [answer("a"), answer("b")]
    assert parse(kind(["a"])) == [answer("a")]
    assert parse(kind([])) == []
    assert parse(kind([])) == parse([], prefix="x") == parse([], prefix=[])


def test_prefixes_one_or_each() -> None:
    thinking = f"{START}<think>"
    both = ["a</think>b", "c</think>d"]
    expected = [{"role": "assistant", "reasoning_content": r, "content": c} for r, c in ("ab", "cd")]
    assert parse(both, prefix=thinking) == expected
    assert parse(both, prefix=[thinking, thinking]) == expected
    assert parse(both, prefix=(thinking, START)) == [expected[0], answer("c</think>d")]
    assert parse("a</think>b", prefix=[thinking]) == expected[0]
    assert parse(both, prefix=[]) == [answer("a</think>b"), answer("c</think>d")]


@pytest.mark.parametrize(
    ("texts", "prefixes"),
    [(["a", "b"], ["x", "y", "z"]), (["a", "b", "c"], ["x", "y"]), ("a", ["x", "y"]), ([], ["x", "y"])],
)
def test_prefixes_that_do_not_go_with_the_texts(texts: Any, prefixes: Any) -> None:
    with pytest.raises(ValueError, match="prefixes; give one for all, or one each"):
        parse(texts, prefix=prefixes)


ONE: list[Any] = [
    ids("Hi."),
    tuple(ids("Hi.")),
    np.array(ids("Hi.")),
    np.array(ids("Hi."), dtype=np.int32),
    Tensor(ids("Hi.")),
]
TWO: list[Any] = [
    [ids("a"), ids("bc")],
    (tuple(ids("a")), ids("bc")),
    [np.array(ids("a")), np.array(ids("bc"))],
    [Tensor(ids("a")), Tensor(ids("bc"))],
]


def as_lists(tokenizer: Tokenizer) -> Tokenizer:
    decode = tokenizer.decode
    tokenizer.decode = lambda ids: decode(list(ids))  # type: ignore[method-assign]
    return tokenizer


@pytest.mark.parametrize("given", ONE, ids=lambda given: type(given).__name__)
def test_token_ids_of_one_output(given: Any) -> None:
    assert parse(given, tokenizer=as_lists(Tokenizer())) == answer("Hi.")


@pytest.mark.parametrize("given", TWO, ids=lambda given: f"{type(given).__name__} of {type(given[0]).__name__}")
def test_token_ids_of_a_batch(given: Any) -> None:
    assert parse(given, tokenizer=as_lists(Tokenizer())) == [answer("a"), answer("bc")]


@pytest.mark.parametrize("make", [np.array, Tensor])
def test_two_dimensions_are_a_batch(make: Any) -> None:
    assert parse(make([ids("ab"), ids("cd")]), tokenizer=Tokenizer()) == [answer("ab"), answer("cd")]
    assert parse(make([ids("ab")]), tokenizer=Tokenizer()) == [answer("ab")]


def test_a_tensor_on_the_way_is_asked_once() -> None:
    tokenizer = Tokenizer()
    parse(Tensor([ids("ab"), ids("cd")]), prefix=Tensor(ids(START)), tokenizer=tokenizer)
    assert sorted(map(len, tokenizer.asked)) == [2, 2, len(START)]


@pytest.mark.parametrize("make", [list, tuple, np.array, Tensor])
def test_prefixes_as_token_ids(make: Any) -> None:
    prefix = make(ids(f"{START}<think>"))
    thought = {"role": "assistant", "reasoning_content": "a", "content": "b"}
    assert parse(ids("a</think>b"), prefix=prefix, tokenizer=as_lists(Tokenizer())) == thought
    assert parse("a</think>b", prefix=prefix, tokenizer=as_lists(Tokenizer())) == thought
    assert parse(["a</think>b", "a</think>b"], prefix=prefix, tokenizer=as_lists(Tokenizer())) == [thought, thought]
    assert parse(["a</think>b"], prefix=[prefix], tokenizer=as_lists(Tokenizer())) == [thought]


@pytest.mark.parametrize("nothing", ["", [], (), np.array([], dtype=int), Tensor([])])
def test_no_prefix(nothing: Any) -> None:
    assert parse(ids("Hi."), prefix=nothing, tokenizer=Tokenizer()) == answer("Hi.")
    assert parse("Hi.", prefix=nothing) == answer("Hi.")


def test_an_empty_output_as_ids() -> None:
    assert parse(np.array([], dtype=int), tokenizer=Tokenizer()) in ([], {"role": "assistant"})
    assert parse([[], ids("a")], tokenizer=as_lists(Tokenizer())) == [{"role": "assistant"}, answer("a")]
    assert parse([ids("a"), []], tokenizer=as_lists(Tokenizer())) == [answer("a"), {"role": "assistant"}]


def test_the_reference_takes_the_same() -> None:
    """A tokenizer of transformers, without a vocabulary to download: its own method beside ours."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    letters = {chr(code): code for code in range(32, 127)}
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={**letters, "\n": 10}, merges=[]))
    backend.decoder = tokenizers.decoders.Fuse()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend)
    text = "<think>a</think>b"
    for given in (text, [text, "c"], ids(text), [ids(text), ids("c d")], np.array([ids("ab"), ids("cd")])):
        theirs = tokenizer.parse_response(given, SMOL, prefix="")
        ours = parse(given, tokenizer=tokenizer)
        for one in theirs if isinstance(theirs, list) else [theirs]:
            if "thinking" in one:
                one["reasoning_content"] = one.pop("thinking")
        assert ours == theirs


# ------------------------------------------------------------------------------------------------ templates, policies


def test_a_template_in_each_of_its_forms() -> None:
    text = "<think>\nHm.\n</think>\n\nYes."
    expected = {"role": "assistant", "reasoning_content": "Hm.", "content": "Yes."}
    for template in (SMOL, respzoo.ResponseTemplate(SMOL), "Qwen/Qwen3-8B", respzoo.get("Qwen/Qwen3-8B")):
        assert respzoo.parse_response(text, template, prefix="") == expected
        assert respzoo.parse_response([text], template, prefix="") == [expected]


def test_an_unknown_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(respzoo.UnknownModelError, match="no-such-model"):
        respzoo.parse_response("x", "nobody/no-such-model", prefix="")


def test_a_dict_that_is_no_template() -> None:
    with pytest.raises(respzoo.TemplateError):
        respzoo.parse_response("x", {"fields": {}}, prefix="")


@pytest.mark.parametrize("template", [None, 5, ["x"]])
def test_what_is_no_template_at_all(template: Any) -> None:
    with pytest.raises((respzoo.TemplateError, TypeError)):
        respzoo.parse_response("x", template, prefix="")


def test_tools_are_for_the_whole_batch() -> None:
    spec = json.loads((Path(__file__).parent / "data" / "templates" / "manual_qwen3_xml.json").read_text("utf-8"))
    text = "<tool_call><function=f><parameter=n>7</parameter></function></tool_call>"
    tools = [{"name": "f", "parameters": {"properties": {"n": {"type": "string"}}}}]
    for given in (tools, iter(tools)):
        messages = respzoo.parse_response([text, text], spec, prefix="", tools=given)
        assert [one["tool_calls"][0]["function"]["arguments"] for one in messages] == [{"n": "7"}, {"n": "7"}]


def test_malformed_outputs() -> None:
    for text in (BAD, ["fine", BAD]):
        with pytest.raises(respzoo.ParseError) as caught:
            parse(text)
        assert caught.value.raw == BAD
    assert parse(["fine", BAD], on_malformed="content") == [answer("fine"), answer(BAD)]
    assert parse(["fine", BAD], on_malformed="drop") == [answer("fine"), {"role": "assistant"}]


# ------------------------------------------------------------------------------------------------------------- errors


def test_the_prefix_must_be_given() -> None:
    with pytest.raises(ValueError, match=r"prefix: expected the prompt.*prefix=''"):
        parse("x", prefix=None)
    with pytest.raises(TypeError, match="prefix"):
        respzoo.parse_response("x", SMOL)  # type: ignore[call-arg]


@pytest.mark.parametrize("given", [[1, 2], np.array([1, 2]), [[1], [2]], Tensor([1])])
def test_token_ids_need_a_tokenizer(given: Any) -> None:
    with pytest.raises(TypeError, match="text: token ids need tokenizer="):
        parse(given)
    with pytest.raises(TypeError, match="prefix: token ids need tokenizer="):
        parse("x", prefix=given)


@pytest.mark.parametrize(
    "given", [None, 5, 1.5, object(), {"a": 1}, {1, 2}, iter("ab")], ids=lambda given: type(given).__name__
)
def test_neither_text_nor_ids(given: Any) -> None:
    with pytest.raises(TypeError, match=r"text: expected text or token ids, found \w+"):
        parse(given, tokenizer=Tokenizer())


@pytest.mark.parametrize(
    "given", [b"bytes", ["a", 5], [5, "a"], ["a", ["b"]], [["a"], ["b"]], [[5], "a"], [None], [1.5]], ids=repr
)
def test_mixtures(given: Any) -> None:
    """Never a message from half of what was given."""
    with pytest.raises(TypeError, match="text"):
        parse(given, tokenizer=Tokenizer())


def test_a_decoder_that_gives_no_text() -> None:
    class Batchy:
        def decode(self, ids: Sequence[int]) -> list[str]:
            return ["x" for _ in ids]

    with pytest.raises(TypeError, match=r"decode returned list"):
        parse([1, 2], tokenizer=Batchy())
