"""How vLLM says that a reply ended, on one release of it (test_offline.py): its own chat server, without an engine."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from driving import CUT, TOKENIZER, TOOLS, ZURICH, adjusted, chat, parser_class
from serving import Serving, Written
from vllm.entrypoints.openai.chat_completion import serving as serving_module

from respzoo_vllm import ending

NAMED = {"type": "function", "function": {"name": "get_weather"}}
BROKEN = '<tool_call>\n{"name": "get_weather", "arguments": {"city": }}\n</tool_call>'
SINCE_0_33 = hasattr(serving_module, "resolve_finish_reason")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("options", "text", "finish", "expected"),
    [
        ({}, f"Look. {ZURICH}", "stop", "tool_calls"),
        ({}, "Hello!", "stop", "stop"),
        ({}, "Hello, and", "length", "length"),
        ({}, "<think>\nHm", "length", "length"),
        # cut: behind a call, in a call, in one behind another
        ({}, f"{ZURICH}\nAnd", "length", "length"),
        ({}, ZURICH, "length", "length"),
        ({}, CUT, "length", "length"),
        ({}, f"{ZURICH}\n{CUT}", "length", "length"),
        ({"tool_choice": "required"}, ZURICH, "stop", "tool_calls"),
        ({"tool_choice": "required"}, f"{ZURICH}\n{CUT}", "length", "length"),
        ({"tool_choice": "required"}, CUT, "length", "length"),
        # a model that no grammar held
        ({"tool_choice": "required"}, "Hello!", "stop", "stop"),
        # OpenAI's word for a named function
        ({"tool_choice": NAMED}, ZURICH, "stop", "stop"),
        ({"tool_choice": NAMED}, CUT, "length", "length"),
        ({"tools": None}, ZURICH, "stop", "stop"),
        ({"tool_choice": "none"}, ZURICH, "stop", "stop"),
    ],
)
def test_ends(options: dict[str, Any], text: str, finish: str, expected: str, stream: bool) -> None:
    cls = parser_class()
    request = adjusted(cls, chat(stream=stream, **options))
    (choice,) = Serving(cls).reply(request, Written(text, finish)).choices
    assert choice.finish == expected
    whole = [call for call in choice.calls if call[1].endswith("}")]
    asked = options.get("tools", TOOLS) is not None and options.get("tool_choice") != "none"
    assert len(whole) == (text.count(ZURICH) if asked else 0)


@pytest.mark.parametrize("text", [BROKEN, f"Look.\n{CUT}"], ids=["broken", "stopped"])
@pytest.mark.parametrize("arguments", ["stream", "complete"])
def test_a_call_that_came_to_nothing(monkeypatch: pytest.MonkeyPatch, text: str, arguments: str) -> None:
    """The model went on to the end, or a stop string ended it: there is no call, although a stream has begun to send
    one."""
    monkeypatch.setenv("RESPZOO_ARGUMENTS", arguments)
    cls = parser_class()
    serving = Serving(cls)
    assert serving.reply(adjusted(cls, chat()), Written(text)).choices[0].finish == "stop"
    streamed = serving.reply(adjusted(cls, chat(stream=True)), Written(text)).choices[0]
    assert streamed.finish == "stop"
    behind = serving.reply(adjusted(cls, chat(stream=True)), Written(f"{ZURICH}\n{text}")).choices[0]
    assert behind.finish == "tool_calls"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_choices_end_each_by_itself(stream: bool) -> None:
    cls = parser_class()
    request = adjusted(cls, chat(n=4, stream=stream))
    written = [Written(BROKEN), Written(ZURICH), Written(f"{ZURICH} And", "length"), Written("Hello!")]
    found = Serving(cls).reply(request, *written).choices
    assert [one.finish for one in found] == ["stop", "tool_calls", "length", "stop"]


def test_a_text_may_quote_it() -> None:
    cls = parser_class()
    text = '{"finish_reason":"tool_calls"}'
    for finish in ("stop", "length"):
        found = Serving(cls).reply(adjusted(cls, chat(stream=True)), Written(text, finish)).choices[0]
        assert (found.content, found.finish) == (text, finish)


def test_other_parsers_are_left_alone() -> None:
    cls = parser_class(reasoning="qwen3", tools="hermes")
    found = Serving(cls).reply(chat(), Written(f"<think>\n\n</think>\n\n{ZURICH}", "length")).choices[0]
    assert found.finish == ("length" if SINCE_0_33 else "tool_calls")


def test_errors_and_cancellations_pass() -> None:
    """What vLLM makes of a result that never came is not touched."""
    cls = parser_class()

    async def nothing() -> Any:
        return
        yield

    serving = Serving(cls)
    serving.create_error_response = lambda *_, **__: "error"  # type: ignore[method-assign]
    made = serving.chat_completion_full_generator(chat(), nothing(), "id", "m", [], TOKENIZER, None)
    assert asyncio.run(made) == "error"


def test_what_is_not_as_it_is_known_stays() -> None:
    def plain(self: Any, request: Any, result_generator: Any) -> None:
        """No coroutine."""

    chat = SimpleNamespace(chat_completion_full_generator=plain, chat_completion_stream_generator=plain)
    module = SimpleNamespace(OpenAIServingChat=chat)
    ending.mend_serving(module)
    assert chat.chat_completion_full_generator is chat.chat_completion_stream_generator is plain
    with pytest.raises(AttributeError):  # which whoever waits for the module logs (tests/test_vllm_plug.py)
        ending.mend_streams(SimpleNamespace())
