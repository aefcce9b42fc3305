"""The time a user feels: a long argument through a real vLLM server comes token by token, from its first byte on.

The server reads both syntaxes, JSON and tags, by a template that has them both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import scripts

import respzoo

pytestmark = pytest.mark.live

FLAT_TOOLS = [{"type": "function", **tool["function"]} for tool in scripts.TOOLS]
ARGUMENTS = {
    "long note": {"city": "Oslo", "note": scripts.STORY},
    "tagged note": {"city": "Oslo", "note": scripts.STORY, "days": 2},
}
SHARE = 0.8  # of the tokens, at least, come in a chunk of their own; on a busy machine vLLM sends some together


def both_syntaxes() -> dict[str, Any]:
    tags, plain = (respzoo.get("tiny", template=name).spec for name in ("qwen3_xml", "qwen3"))
    as_json = {key: value for key, value in plain["fields"]["tool_calls"].items() if key != "repeats"}
    as_json["open_pattern"] = r"\s*<tool_call>\s*(?P<value>\{)"
    return {**tags, "fields": {**tags["fields"], "tool_calls": [tags["fields"]["tool_calls"], as_json]}}


@dataclass
class Asked:
    """What can be known of a streamed reply beforehand: the model writes its script to the letter."""

    client: Any
    model: Path
    template: dict[str, Any]

    @cached_property
    def tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.model)

    def certain(self, prompt: str) -> list[str]:
        """What is certain of the arguments after so many tokens of the answer."""
        from tokenizers.decoders import DecodeStream

        answer = next(script.answer for script in scripts.SCRIPTS if script.prompt == prompt)
        texts = DecodeStream(skip_special_tokens=False)
        stream = respzoo.ResponseTemplate(self.template).stream(prefix="<|im_start|>assistant\n", tools=scripts.TOOLS)
        certain = [""]
        for id in self.tokenizer(answer).input_ids:
            deltas = stream.feed(texts.step(self.tokenizer.backend_tokenizer, id) or "")
            calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
            certain.append(certain[-1] + "".join(call["function"]["arguments"] for call in calls))
        return [*certain, json.dumps(ARGUMENTS[prompt], ensure_ascii=False)]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    import checkpoint
    from server import Server

    folder = tmp_path_factory.mktemp("felt")
    path = folder / "template.json"
    path.write_text(json.dumps(both_syntaxes()))
    model = checkpoint.build()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RESPZOO_TEMPLATE", str(path))
        with Server(sys.executable, model, log=folder / "server.log") as running, running.client() as client:
            yield Asked(client, model, both_syntaxes())


@pytest.mark.parametrize("prompt", ARGUMENTS)
def test_chat(asked: Asked, prompt: str) -> None:
    chunks = asked.client.chat.completions.create(
        model="tiny",
        messages=[{"role": "user", "content": prompt}],
        temperature=0,
        max_tokens=400,
        tools=scripts.TOOLS,
        stream=True,
        stream_options={"include_usage": True, "continuous_usage_stats": True},
    )
    got: list[tuple[int, str]] = []  # after so many tokens, these arguments
    for chunk in chunks:
        for choice in chunk.choices:
            for call in choice.delta.tool_calls or ():
                if call.function.arguments:
                    got.append((chunk.usage.completion_tokens, (got[-1][1] if got else "") + call.function.arguments))
    certain = asked.certain(prompt)
    assert [(count, text) for count, text in got if text != certain[count]] == []
    assert json.loads(got[-1][1]) == ARGUMENTS[prompt]
    news = [count for count, (before, after) in enumerate(pairwise(certain), 1) if before != after]
    assert len(news) > 100  # tokens that bring something; how many, the tokenizer says that is trained with the model
    assert SHARE * len(news) <= len(got) <= len(news)
    # and the first byte with the bracket's token, not with the call's last
    assert abs(got[0][0] - news[0]) <= 2
    assert news[0] < 0.2 * len(certain)


@pytest.mark.parametrize("prompt", ARGUMENTS)
def test_responses(asked: Asked, prompt: str) -> None:
    events = asked.client.responses.create(
        model="tiny", input=prompt, temperature=0, max_output_tokens=400, tools=FLAT_TOOLS, stream=True
    )
    kinds: list[str] = []
    pieces: list[str] = []
    whole = ""
    for event in events:
        kinds.append(event.type)
        if event.type == "response.function_call_arguments.delta":
            pieces.append(event.delta)
        elif event.type == "response.function_call_arguments.done":
            whole = event.arguments
    assert json.loads("".join(pieces)) == json.loads(whole) == ARGUMENTS[prompt]
    certain = asked.certain(prompt)
    news = sum(before != after for before, after in pairwise(certain))
    assert SHARE * news <= len(pieces) <= news
    first = kinds.index("response.function_call_arguments.delta")
    assert kinds[first - 1] == "response.output_item.added"
    assert len(kinds) - first > len(pieces)
