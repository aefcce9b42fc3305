"""All that the adapter takes from vLLM, and the only file that imports it.

Names have moved from release to release (0.24 to 0.33 are known); `engine.NAME` looks in each place, newest first, when
it is first asked for, so that importing this file costs nothing.

The plug: both managers learn the name `respzoo`, and `ParserManager.get_parser`, which would compose a reasoning and a
tool parser that do not know each other, is wrapped to return one parser that reads both.
"""

from __future__ import annotations

import functools
import inspect
from importlib import import_module
from typing import Any

NAME = "respzoo"

PLACES: dict[str, tuple[str, ...]] = {
    "DeltaMessage": ("vllm.entrypoints.generate.base.protocol", "vllm.entrypoints.openai.engine.protocol"),
    "DeltaToolCall": ("vllm.entrypoints.generate.base.protocol", "vllm.entrypoints.openai.engine.protocol"),
    "DeltaFunctionCall": ("vllm.entrypoints.generate.base.protocol", "vllm.entrypoints.openai.engine.protocol"),
    "FunctionCall": ("vllm.entrypoints.generate.base.protocol", "vllm.entrypoints.openai.engine.protocol"),
    "make_tool_call_id": ("vllm.renderers.chat_utils", "vllm.entrypoints.chat_utils"),
    "record_tool_parser_invocation": ("vllm.parser.metrics",),
    "DelegatingParser": ("vllm.parser.abstract_parser",),
    "Parser": ("vllm.parser.abstract_parser",),
    "ParserManager": ("vllm.parser.parser_manager",),
    "ReasoningParser": ("vllm.reasoning.abs_reasoning_parsers",),
    "ReasoningParserManager": ("vllm.reasoning",),
    "ToolParser": ("vllm.tool_parsers.abstract_tool_parser",),
    "ToolParserManager": ("vllm.tool_parsers",),
    "SUPPORTED_STRUCTURAL_TAG_MODELS": ("vllm.tool_parsers.structural_tag_registry",),
}
# The stock pair that HarmonyParser insists on.
HARMONY_REASONING, HARMONY_TOOLS = "openai_gptoss", "openai"


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for place in PLACES[name]:
        try:
            found = getattr(import_module(place), name)
        except (ImportError, AttributeError):
            continue
        globals()[name] = found
        return found
    raise ImportError(f"this release of vLLM has no {name} in {' or '.join(PLACES[name])}")


def known_structural_tag(model: str) -> bool:
    """Whether this release can build the grammar of that name."""
    return model in __getattr__("SUPPORTED_STRUCTURAL_TAG_MODELS")


def install() -> None:
    """Make `respzoo` a value of both flags, and have one parser stand where vLLM would compose two."""
    __getattr__("ReasoningParserManager").register_lazy_module(NAME, "respzoo_vllm.parser", "RespzooReasoningParser")
    __getattr__("ToolParserManager").register_lazy_module(NAME, "respzoo_vllm.parser", "RespzooToolParser")
    manager = __getattr__("ParserManager")
    stock = manager.get_parser
    if getattr(stock, "respzoo", False):
        return
    function = stock.__func__
    signature = inspect.signature(function)

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
        from respzoo_vllm import parser

        return parser.unified(given, function)

    get_parser.respzoo = True  # type: ignore[attr-defined]
    manager.get_parser = classmethod(get_parser)
