"""All that the adapter takes from vLLM, and the only file that imports it.

Names have moved from release to release (0.24 to 0.33 are known); `engine.NAME` looks in each place, newest first, when
it is first asked for, so that importing this file costs nothing.

The plug: both managers learn the name `respzoo`, and `ParserManager.get_parser`, which would compose a reasoning and a
tool parser that do not know each other, is wrapped to return one parser that reads both. A release to come where that
does not fit composes two of ours (split.py) and says so once.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import logging
from importlib import import_module
from typing import Any

from respzoo_vllm.arrival import when_imported

NAME = "respzoo"

PLACES: dict[str, tuple[str, ...]] = {
    "DeltaMessage": (
        "vllm.entrypoints.generate.base.protocol",
        "vllm.entrypoints.openai.engine.protocol",
        "vllm.tool_parsers.abstract_tool_parser",  # imports it, wherever it is
    ),
    "ExtractedToolCallInformation": (
        "vllm.entrypoints.generate.base.protocol",
        "vllm.entrypoints.openai.engine.protocol",
        "vllm.tool_parsers.abstract_tool_parser",
    ),
    "DeltaToolCall": ("vllm.entrypoints.generate.base.protocol", "vllm.entrypoints.openai.engine.protocol"),
    "DeltaFunctionCall": ("vllm.entrypoints.generate.base.protocol", "vllm.entrypoints.openai.engine.protocol"),
    "FunctionCall": ("vllm.entrypoints.generate.base.protocol", "vllm.entrypoints.openai.engine.protocol"),
    "make_tool_call_id": ("vllm.renderers.chat_utils", "vllm.entrypoints.chat_utils"),
    "SamplingParams": ("vllm.sampling_params",),
    "StructuredOutputsParams": ("vllm.sampling_params",),
    "validate_xgrammar_grammar": ("vllm.v1.structured_output.backend_xgrammar",),
    "record_tool_parser_invocation": ("vllm.parser.metrics",),
    "DelegatingParser": ("vllm.parser.abstract_parser",),
    "Parser": ("vllm.parser.abstract_parser",),
    "ReasoningParser": ("vllm.reasoning.abs_reasoning_parsers", "vllm.reasoning"),
    "ToolParser": ("vllm.tool_parsers.abstract_tool_parser", "vllm.tool_parsers"),
}
# What only some releases have.
OPTIONAL: dict[str, tuple[str, ...]] = {
    "custom_tool_parameters": ("vllm.tool_parsers.utils",),  # since 0.32
    "structured_outputs_to_format": ("vllm.parser.abstract_parser",),  # since 0.32
}
# What the plug counts on: arguments of `ParserManager.get_parser`, and of what the unified parser overrides.
_ARGUMENTS = {"tool_parser_name", "reasoning_parser_name", "model_name"}
_METHODS = {
    "parse": {"model_output", "request", "enable_auto_tools", "model_output_token_ids"},
    "parse_delta": {"delta_text", "delta_token_ids", "request", "prompt_token_ids", "finished"},
    "adjust_request": {"request"},
    "is_reasoning_end": {"input_ids"},
}
_reasons: list[str] = []  # why the plug does not fit
# The stock pair that HarmonyParser insists on.
HARMONY_REASONING, HARMONY_TOOLS = "openai_gptoss", "openai"


def __getattr__(name: str) -> Any:
    places = PLACES.get(name) or OPTIONAL.get(name)
    if places is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for place in places:
        try:
            found = getattr(import_module(place), name)
        except (ImportError, AttributeError):
            continue
        globals()[name] = found
        return found
    if name in PLACES:
        raise ImportError(f"this release of vLLM has no {name} in {' or '.join(places)}")
    globals()[name] = None
    return None


def harmony_reasoning(tokenizer: Any) -> Any:
    """vLLM's own reasoning parser for harmony."""
    manager = import_module("vllm.reasoning").ReasoningParserManager
    return manager.get_reasoning_parser(HARMONY_REASONING)(tokenizer)


def tags_allowed() -> bool:
    """Whether the operator lets calls be held by structural tags."""
    return bool(getattr(import_module("vllm.envs"), "VLLM_ENFORCE_STRICT_TOOL_CALLING", True))


def structured_outputs(request: Any) -> Any:
    """What a request says of its answer's format, its response format first: a StructuredOutputsParams, or None.

    Raises:
        ValueError: as vLLM, where a request says it twice.
    """
    if hasattr(request, "extract_structured_outputs"):  # since 0.28
        return request.extract_structured_outputs()
    given = request.structured_outputs
    wanted: Any = (
        request.response_format if hasattr(request, "response_format") else getattr(request.text, "format", None)
    )
    said: dict[str, Any]
    match wanted and wanted.type:
        case "json_object":
            said = {"json_object": True}
        case "json_schema":
            schema = getattr(wanted, "json_schema", None)
            said = {"json": wanted.schema_ if schema is None else schema.json_schema}
        case "structural_tag":
            said = {"structural_tag": json.dumps(wanted.model_dump(by_alias=True))}
        case _:
            return given
    params = __getattr__("StructuredOutputsParams")
    return params(**said) if given is None else dataclasses.replace(given, **said)


def format_of(outputs: Any) -> dict[str, Any]:
    """Structured outputs that are no JSON schema as a format of xgrammar's.

    Raises:
        ValueError: they are none.
    """
    if (convert := __getattr__("structured_outputs_to_format")) is not None:
        return convert(outputs).model_dump()
    if outputs.regex is not None:
        return {"type": "regex", "pattern": outputs.regex}
    if outputs.choice is not None:
        return {"type": "or", "elements": [{"type": "const_string", "value": choice} for choice in outputs.choice]}
    if outputs.grammar is not None:
        if "::=" not in outputs.grammar:
            raise ValueError("a grammar in Lark's notation")
        return {"type": "grammar", "grammar": outputs.grammar}
    found = json.loads(outputs.structural_tag)
    if "structures" not in found:
        return found["format"]
    tags = [
        {
            "type": "tag",
            "begin": one["begin"],
            "content": {"type": "json_schema", "json_schema": one["schema"]},
            "end": one["end"],
        }
        for one in found["structures"]
    ]
    return {"type": "triggered_tags", "triggers": found["triggers"], "tags": tags}


def xgrammar_takes(**outputs: Any) -> bool:
    """Whether vLLM would let structured outputs through to xgrammar."""
    try:
        made = __getattr__("SamplingParams")(structured_outputs=__getattr__("StructuredOutputsParams")(**outputs))
        __getattr__("validate_xgrammar_grammar")(made)
    except Exception:  # noqa: BLE001  (vLLM's own errors are of one kind on one release and of another on the next)
        return False
    return True


def install() -> None:
    """Make `respzoo` a value of both flags, and have one parser stand where vLLM would compose two: each of it when
    vLLM imports what it changes. Harmless to repeat."""
    when_imported("vllm.reasoning", _know_reasoning)
    when_imported("vllm.tool_parsers", _know_tools)
    when_imported("vllm.parser.parser_manager", _plug)
    chat = "vllm.entrypoints.openai.chat_completion"
    when_imported(f"{chat}.serving", _mend_serving)
    when_imported(f"{chat}.stream_processor", _mend_streams)
    when_imported("vllm.entrypoints.openai.responses.serving", _mend_responses)


def _know_reasoning(module: Any) -> None:
    module.ReasoningParserManager.register_lazy_module(NAME, "respzoo_vllm.split", "RespzooReasoningParser")


def _know_tools(module: Any) -> None:
    module.ToolParserManager.register_lazy_module(NAME, "respzoo_vllm.split", "RespzooToolParser")


def _mend_serving(module: Any) -> None:
    from respzoo_vllm import ending

    ending.mend_serving(module)


def _mend_streams(module: Any) -> None:
    from respzoo_vllm import ending

    ending.mend_streams(module)


def _mend_responses(module: Any) -> None:
    from respzoo_vllm import order

    order.mend_responses(module)


def _plug(module: Any) -> None:
    """Wrap `ParserManager.get_parser`. Where it is not as it is known, it stays, and vLLM composes two parsers."""
    try:
        manager = module.ParserManager
        stock = manager.get_parser
        if getattr(stock, "respzoo", False):
            return
        function = stock.__func__
        signature = inspect.signature(function)
        if missing := _ARGUMENTS - signature.parameters.keys():
            raise TypeError(f"get_parser has no {' and no '.join(sorted(missing))}")
    except Exception as error:  # noqa: BLE001  (whatever a release to come is like, it starts)
        _reasons.append(f"{type(error).__name__}: {error}")
        return

    @functools.wraps(function)
    def get_parser(cls: Any, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(cls, *args, **kwargs)
        names = {given.arguments.get("reasoning_parser_name"), given.arguments.get("tool_parser_name")}
        if NAME not in names:
            return function(cls, *args, **kwargs)
        if others := names - {NAME, None, ""}:
            raise TypeError(
                f"the parser {NAME!r} reads reasoning and calls as one, and cannot be combined with {others}"
            )
        try:
            _check_fit()
            from respzoo_vllm import parser
        except Exception as error:  # noqa: BLE001  (as above)
            _reasons.append(f"{type(error).__name__}: {error}")
            say_that_two_read()
            return function(cls, *args, **kwargs)
        return parser.unified(given, function)

    get_parser.respzoo = True  # type: ignore[attr-defined]
    manager.get_parser = classmethod(get_parser)


def _check_fit() -> None:
    """Raises TypeError if what the unified parser takes the place of is not called as it is known."""
    parser = __getattr__("DelegatingParser")
    for name, known in _METHODS.items():
        found = inspect.signature(getattr(parser, name)).parameters
        needed = {
            one.name
            for one in found.values()
            if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        }
        if not known <= found.keys() or not needed <= known | {"self"}:
            raise TypeError(f"{parser.__name__}.{name} takes {', '.join(found)}")


@functools.cache
def say_that_two_read() -> None:
    """Warn, once in a process, that reasoning and calls are read by two parsers, and why."""
    logging.getLogger("vllm.respzoo").warning(
        "respzoo does not know this release of vLLM well enough to read reasoning and calls as one (%s): two parsers "
        "read them, without respzoo's grammars",
        "; ".join(_reasons) or "it composes its parsers in another place",
    )
