"""What holds a model to the calls that a request asks for: structural tags made of the template alone.

`respzoo.grammar` says a template's calls for xgrammar. Here a request of vLLM's is read, as its own
`_apply_structural_tag` does and on every release the same; the tag is made once for what was asked, and vLLM is given
it. Where a template cannot be said in a grammar, forced calls are vLLM's own JSON (forced.py reads it), other requests
stay as they are, and the log says why, once.

When a grammar begins is vLLM's choice: behind the reasoning, as the reasoning parser tells the engine; but from the
first token where the reasoning is hidden (`include_reasoning=false`, chat), where no reasoning parser is there, and for
harmony.
"""

# vLLM is not there where types are checked, so what its requests have is unknown.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

from respzoo import ResponseTemplate
from respzoo_vllm import engine
from respzoo_vllm.plan import Plan, logger
from respzoo_vllm.tools import tool_dicts

__all__ = [
    "HARMONY_STOPS", "Grammar", "Request", "forced_name", "grammar_for", "holds_json", "is_chat", "read", "say_why_not",
    "set_grammar", "stop_texts",
]  # fmt: skip

_ENTRIES, _CHARACTERS = 128, 8_000_000  # how much is kept
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
HARMONY_STOPS = ("<|call|>", "<|return|>")
_FORCED_JSON = "tool_calling_response"  # vLLM's name for the format of forced calls (Responses)


class Grammar(NamedTuple):
    """A structural tag as JSON, or why there is none."""

    tag: str | None
    reason: str = ""


class Request(NamedTuple):
    """What a request asks of a grammar for its calls."""

    choice: str | dict[str, str]
    """`"auto"`, `"required"`, or the function of that name."""
    tools: list[dict[str, Any]]
    single: bool
    """Whether at most one call may be made."""
    strict: bool | None
    response_format: dict[str, Any] | None
    """Of an answer that may be given instead of calls."""
    from_start: bool
    """Whether the grammar begins with the reply, reasoning and all, rather than behind the reasoning."""
    inside: bool | None
    """Whether the prompt has begun the reasoning. None: nobody knows."""

    @property
    def forced(self) -> bool:
        return self.choice != "auto"


def forced_name(choice: Any) -> str | None:
    """The name of the one function that a tool choice names."""
    if getattr(choice, "type", None) in ("function", "custom"):
        return str(getattr(choice, "function", choice).name)
    return None


def is_chat(request: Any) -> bool:
    """Whether a request came by the chat API rather than by Responses. (Both take fields that they do not know.)"""
    return "response_format" in type(request).model_fields


def holds_json(request: Any) -> bool:
    """Whether vLLM's own JSON for forced calls holds the model."""
    text_format = getattr(getattr(request, "text", None), "format", None)
    if getattr(text_format, "name", None) == _FORCED_JSON:
        return True
    outputs = getattr(request, "structured_outputs", None)
    return is_chat(request) and getattr(outputs, "json", None) is not None


def read(
    request: Any,
    *,
    level: int,
    calls: bool,
    frames: bool,
    hides_reasoning: bool,
    reads_reasoning: bool,
    harmony: bool,
    inside: bool | None,
) -> Request | None:
    """What a request asks, or None if it needs no grammar of ours.

    Args:
        request: vLLM's, of either API.
        level: the server's `--tool-strict-level`: 0 as the request says, 1 the frames of all calls, 2 their arguments.
        calls: whether calls are read at all.
        frames: whether an answer needs a frame around its format.
        hides_reasoning: whether vLLM lets the grammar begin before reasoning that is read.
        reads_reasoning: whether reasoning is read at all.
        harmony: whether the reply is harmony's.
        inside: whether the prompt has begun the reasoning; None if it is not known.
    """
    name = forced_name(request.tool_choice)
    asked = calls and bool(request.tools) and (name is not None or request.tool_choice in ("auto", "required"))
    if asked and not frames and not _wants(request, level):
        return None  # nearly always
    tools = tool_dicts(request.tools) if asked else []
    if harmony and (not tools or len(tools) < len(request.tools)):
        return None  # its answers' formats, and calls of built-in tools, are as vLLM's own grammar for it says
    outputs = engine.structured_outputs(request) if tools or frames else None
    choice: str | dict[str, str] = "auto"
    single = bool(tools) and request.parallel_tool_calls is False
    if not tools:
        if asked or outputs is None:
            return None
    elif name is not None or request.tool_choice == "required":
        choice = "required" if name is None else {"type": "function", "name": name}
        if outputs is not None:
            _say_once("structured outputs are ignored, because tool_choice forces a call")
    else:
        if level == 1:
            tools = [_framed(tool) for tool in tools]
        if not (single or level or outputs is not None or any(_is_strict(tool) for tool in tools)):
            return None
    return Request(
        choice=choice,
        tools=tools,
        single=single,
        strict=True if level >= 2 else None,
        response_format=None if outputs is None or choice != "auto" else _format_of(outputs),
        from_start=harmony or (reads_reasoning and hides_reasoning),
        inside=False if harmony else inside,
    )


def _wants(request: Any, level: int) -> bool:
    """Whether a request may want a grammar for its calls, told without a look at the tools' schemas."""
    if request.tool_choice != "auto" or level or request.parallel_tool_calls is False:
        return True
    if engine.structured_outputs(request) is not None:
        return True
    functions = [getattr(tool, "function", tool) for tool in request.tools]
    return any(getattr(one, "strict", None) or getattr(one, "type", None) == "namespace" for one in functions)


def _is_strict(tool: Mapping[str, Any]) -> bool:
    return tool["function"].get("strict") is True


def _framed(tool: Mapping[str, Any]) -> dict[str, Any]:
    """The tool as one whose call is held by a grammar, whatever its arguments are."""
    if _is_strict(tool):
        return dict(tool)
    return {**tool, "function": {"name": tool["function"]["name"], "strict": True, "parameters": {"type": "object"}}}


def _format_of(outputs: Any) -> dict[str, Any]:
    """The response format that structured outputs of vLLM's amount to."""
    if outputs.json_object:
        return {"type": "json_object"}
    if outputs.json is not None:
        schema = json.loads(outputs.json) if isinstance(outputs.json, str) else outputs.json
        return {"type": "json_schema", "json_schema": {"schema": schema}}
    return {"type": "structural_tag", "format": engine.format_of(outputs)}


def grammar_for(plan: Plan, request: Request, *, reads_reasoning: bool, stops: Collection[str]) -> Grammar:
    """The grammar for what was asked, made once: requests of one client ask the same over and over."""
    key = json.dumps([*request, reads_reasoning, sorted(stops)], ensure_ascii=False)
    kept = plan.grammars
    found = cast("Grammar | None", kept.pop(key, None))
    if found is None:
        found = _make(plan.variant(reasoning=reads_reasoning, tools=bool(request.tools)), plan, request, stops)
    kept[key] = found
    _shorten(kept)
    return found


def _shorten(kept: OrderedDict[str, Any]) -> None:
    size = sum(len(key) + len(grammar.tag or "") for key, grammar in kept.items()) if len(kept) > 1 else 0
    while len(kept) > 1 and (len(kept) > _ENTRIES or size > _CHARACTERS):
        key, grammar = kept.popitem(last=False)
        size -= len(key) + len(grammar.tag or "")


def _make(template: ResponseTemplate, plan: Plan, request: Request, stops: Collection[str]) -> Grammar:
    arguments: dict[str, Any] = {
        "tool_choice": request.choice,
        "parallel": not request.single,
        "strict": request.strict,
        "response_format": request.response_format,
        "stops": stops,
    }
    answer = request.response_format
    if answer is not None and not _takes(answer):
        return Grammar(None, "xgrammar does not take the response format")
    states: Sequence[bool | None] = (None,)
    if request.from_start:
        states = (False, True) if request.inside is None else (request.inside,)
    formats: list[Any] = []
    for inside in states:
        begun: dict[str, Any] = {} if inside is None else {"reasoning": True, "prefix": plan.prefix(inside=inside)}
        try:
            tag = template.structural_tag(request.tools, **arguments, **begun)
            reason = None if tag else template.structural_tag_reason(request.tools, **arguments, **begun)
        except ValueError as error:
            tag, reason = None, str(error)
        if tag is None:
            return Grammar(None, _without_names(reason or "", request))
        if tag["format"] not in formats:
            formats.append(tag["format"])
    made = formats[0] if len(formats) == 1 else {"type": "or", "elements": formats}
    tag = json.dumps({"type": "structural_tag", "format": made}, ensure_ascii=False)
    return (
        Grammar(tag)
        if engine.xgrammar_takes(structural_tag=tag)
        else Grammar(None, "xgrammar does not take the grammar")
    )


def _takes(answer: Mapping[str, Any]) -> bool:
    if answer["type"] == "json_schema":
        return engine.xgrammar_takes(json=answer["json_schema"]["schema"])
    return answer["type"] == "json_object" or engine.xgrammar_takes(structural_tag=json.dumps(answer))


def _without_names(reason: str, request: Request) -> str:
    """A reason without what the request wrote: names of tools, keys and values of schemas."""
    written = json.dumps([request.choice, request.tools], ensure_ascii=False)
    return _QUOTED.sub(lambda match: "…" if match[0][1:-1] in written else match[0], reason)


def set_grammar(request: Any, tag: str) -> None:
    """Put the grammar in the place of what the request said of its format, as vLLM does with its own."""
    request.structured_outputs = engine.StructuredOutputsParams(structural_tag=tag)
    if is_chat(request):
        request.response_format = None
    else:
        request.text = None


def say_why_not(family: str, request: Request, reason: str) -> None:
    """One line for a request that no grammar of ours holds."""
    if not request.tools:
        what = "the response format holds the answer without its frame"
    elif request.forced:
        what = "forced calls are vLLM's JSON"
    elif request.response_format is not None:
        what = "the response format alone holds the answer, and no call can be made"
    else:
        what = "calls are not held by a grammar (strict tools, parallel_tool_calls=false)"
    _say_once(f"{family}: {what}: {reason}")


_said: set[str] = set()


def _say_once(text: str) -> None:
    if text not in _said and len(_said) < _ENTRIES:
        _said.add(text)
        logger.warning("respzoo: %s", text)


def stop_texts(plan: Plan, model_config: Any) -> frozenset[str]:
    """The texts of the tokens at which the engine stops, and which it leaves out of the reply."""
    if plan.stops is None:
        tokenizer = plan.reader.tokenizer
        ids: set[int] = {one for one in [getattr(tokenizer, "eos_token_id", None)] if isinstance(one, int)}
        config = cast("dict[str, Any]", {} if model_config is None else model_config.try_get_generation_config() or {})
        given: Any = config.get("eos_token_id")
        several = cast("list[Any]", given if isinstance(given, list) else [given])
        ids.update(one for one in several if isinstance(one, int))
        texts = {plan.special.get(one, "") for one in ids} - {""}
        plan.stops = frozenset(texts.union(HARMONY_STOPS if plan.harmony else ()))
    return plan.stops
