"""Drives the adapter as vLLM's API server and engine core do, on whichever release is on the path. Nothing is served.

The tokenizer is Qwen3's own.
"""

from __future__ import annotations

import json
from typing import Any

import qwen_tokens
import xgrammar
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from tokenizers.decoders import DecodeStream
from transformers import PreTrainedTokenizerFast

from respzoo_vllm import plugin

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
CUT = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os'
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
    cut: int | None = None,
) -> Reply:
    """As the API server streams: `size` tokens a delta, the text of a character with its last token, `behind` characters
    of it later still, as where a request has stop strings, and only `cut` characters in all."""
    parser = cls(tokenizer, request.tools)
    prompt_ids = tokenizer.encode(prompt, add_special_tokens=False)
    if ids is None:
        ids = tokenizer.encode(text, add_special_tokens=False)
    held, sent = "", 0
    detokenizer = DecodeStream(skip_special_tokens=False)
    reasoning, content = "", ""
    calls: dict[int, list[str]] = {}
    seen: set[str] = set()
    for start in range(0, max(len(ids), 1), size):
        part = ids[start : start + size]
        finished = start + size >= len(ids)
        held += "".join(detokenizer.step(tokenizer.backend_tokenizer, token) or "" for token in part)
        shown = len(held) if finished else max(0, len(held) - behind)
        shown = shown if cut is None else min(shown, cut - sent)
        sent += shown
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


def responses(tools: list[dict[str, Any]] | None = TOOLS, **options: Any) -> ResponsesRequest:
    """The same as `chat` would ask, by the Responses API."""
    flat = None if tools is None else [{"type": "function", **tool["function"]} for tool in tools]
    choice = options.get("tool_choice")
    if isinstance(choice, dict):
        options["tool_choice"] = {"type": "function", "name": choice["function"]["name"]}
    if (format := options.pop("response_format", None)) is not None:
        options["text"] = {"format": {"type": format["type"], **format.get("json_schema", {})}}
    return ResponsesRequest(model="m", input="hi", tools=flat or [], **options)


def adjusted(cls: Any, request: Any, prompt: str | None = None, tokenizer: Any = TOKENIZER) -> Any:
    """The request as the parser lets vLLM carry it out; the prompt is told as since 0.33."""
    parser = cls(tokenizer, request.tools)
    if prompt is not None:
        parser.set_prompt_token_ids(tokenizer.encode(prompt, add_special_tokens=False))
    return parser.adjust_request(request)


_BYTES = xgrammar.TokenizerInfo(
    [bytes([number]) for number in range(256)] + [b"<end>"], vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256]
)
_COMPILER = xgrammar.GrammarCompiler(_BYTES)


def takes(request: Any, text: str) -> bool:
    """Whether the request's grammar lets a model write just this."""
    matcher = xgrammar.GrammarMatcher(_COMPILER.compile_structural_tag(request.structured_outputs.structural_tag))
    return matcher.accept_string(text) and matcher.accept_token(256)
