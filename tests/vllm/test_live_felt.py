"""The time a user feels: a long argument through a real vLLM server comes token by token, from its first byte on.

In JSON, and in the tags of the server whose template was pinned.
"""

from __future__ import annotations

import json
from itertools import pairwise

import scripts
from live import FLAT_TOOLS, Live, chat_request

import respzoo

# The prompt, the template by which the server reads, and the arguments.
AS_JSON = ("long note", "qwen3", {"city": "Oslo", "note": scripts.STORY})
AS_TAGS = ("tagged note", "qwen3_xml", {"city": "Oslo", "note": scripts.STORY, "days": 2})
SHARE = 0.8  # of the tokens, at least, come in a chunk of their own
ATTEMPTS = 5  # on a busy machine vLLM sends some tokens together

Case = tuple[str, str, dict[str, object]]


def certain(live: Live, case: Case) -> list[str]:
    """What is certain of the arguments after so many tokens of the answer: the model writes its script to the letter."""
    from tokenizers.decoders import DecodeStream

    prompt, template, arguments = case
    answer = next(script.answer for script in scripts.SCRIPTS if script.prompt == prompt)
    texts = DecodeStream(skip_special_tokens=False)
    stream = respzoo.get("tiny", template=template).stream(prefix="<|im_start|>assistant\n", tools=scripts.TOOLS)
    found = [""]
    for id in live.tokenizer(answer).input_ids:
        deltas = stream.feed(texts.step(live.tokenizer.backend_tokenizer, id) or "")
        calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
        found.append(found[-1] + "".join(call["function"]["arguments"] for call in calls))
    return [*found, json.dumps(arguments, ensure_ascii=False)]


def chat_pieces(live: Live, prompt: str) -> list[tuple[int, str]]:
    """The arguments in a stream of chunks: after so many tokens, these."""
    options = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}, "max_tokens": 400}
    got: list[tuple[int, str]] = []
    for chunk in live.openai.chat.completions.create(stream=True, **chat_request(prompt, options)):
        for choice in chunk.choices:
            for call in choice.delta.tool_calls or ():
                if call.function.arguments:
                    got.append((chunk.usage.completion_tokens, (got[-1][1] if got else "") + call.function.arguments))
    return got


def follow_chat(live: Live, case: Case) -> None:
    prompt, _, arguments = case
    known = certain(live, case)
    news = [count for count, (before, after) in enumerate(pairwise(known), 1) if before != after]
    assert len(news) > 100  # tokens that bring something; how many, the tokenizer says that is trained with the model
    assert news[0] < 0.2 * len(known)
    for attempt in range(1, ATTEMPTS + 1):
        got = chat_pieces(live, prompt)
        assert [(count, text) for count, text in got if text != known[count]] == []
        assert json.loads(got[-1][1]) == arguments
        assert len(got) <= len(news)
        # the first byte comes with the bracket's token, not with the call's last
        if len(got) >= SHARE * len(news) and abs(got[0][0] - news[0]) <= 2:
            return
        assert attempt < ATTEMPTS, f"{len(got)} chunks from token {got[0][0]} on for {len(news)} from {news[0]} on"


def response_pieces(live: Live, prompt: str) -> tuple[list[str], str]:
    """The arguments in a stream of events, and as the last of them says."""
    kinds: list[str] = []
    pieces: list[str] = []
    whole = ""
    for event in live.responses.events(prompt, max_output_tokens=400, tools=FLAT_TOOLS):
        kinds.append(event.type)
        if event.type == "response.function_call_arguments.delta":
            pieces.append(event.delta)
        elif event.type == "response.function_call_arguments.done":
            whole = event.arguments
    first = kinds.index("response.function_call_arguments.delta")
    assert kinds[first - 1] == "response.output_item.added"
    assert len(kinds) - first > len(pieces)
    return pieces, whole


def follow_responses(live: Live, case: Case) -> None:
    prompt, _, arguments = case
    news = sum(before != after for before, after in pairwise(certain(live, case)))
    for attempt in range(1, ATTEMPTS + 1):
        pieces, whole = response_pieces(live, prompt)
        assert json.loads("".join(pieces)) == json.loads(whole) == arguments
        assert len(pieces) <= news
        if len(pieces) >= SHARE * news:
            return
        assert attempt < ATTEMPTS, f"{len(pieces)} events for {news} tokens"


def test_json_in_chat(live: Live) -> None:
    follow_chat(live, AS_JSON)


def test_json_in_responses(live: Live) -> None:
    follow_responses(live, AS_JSON)


def test_tags_in_chat(tagged: Live) -> None:
    follow_chat(tagged, AS_TAGS)


def test_tags_in_responses(tagged: Live) -> None:
    follow_responses(tagged, AS_TAGS)
