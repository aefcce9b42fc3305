"""The other readers of the language, run by their own code: transformers, vLLM's `hf` parser, SGLang's detectors.

vLLM's and SGLang's are their Python files out of their wheels; of what these import, what has to do with templates is
theirs, and the rest (servers, protocols, grammars) is stood in for by the least that lets them run.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import releases

ROOT = Path(__file__).resolve().parents[2]
VLLM, SGLANG = "0.33.0", "0.5.23"

Message = dict[str, Any]
TALLY: dict[str, Counter[str]] = {}
"""Of each reader, how many samples come out as here, and how many by which difference."""


class _Record:
    """Takes any keywords as attributes; what was not given is None."""

    def __init_subclass__(cls, **_: Any) -> None: ...

    def __init__(self, *_: Any, **values: Any) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


def _stand_in(name: str, **values: Any) -> None:
    """A module of that name, with these values; any other name in it is an empty class."""

    class Module(ModuleType):
        def __getattr__(self, key: str) -> Any:
            if key.startswith("__"):
                raise AttributeError(key)
            return type(key, (_Record,), {})

    module = Module(name)
    module.__dict__.update(values)
    sys.modules[name] = module


def _package(name: str, folder: Path) -> None:
    """A package whose own `__init__` is not run."""
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    sys.modules[name] = module


def _fetched(name: str, version: str, platform: str) -> Path:
    """The Python files of a wheel."""

    def wheel(folder: Path) -> Path:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "download", "--no-deps"]
        for_it = ["--only-binary=:all:", "--python-version=3.11", "--implementation=cp", f"--platform={platform}"]
        subprocess.run([*pip, *for_it, "-d", str(folder), f"{name}=={version}"], check=True)
        (found,) = folder.glob("*.whl")
        return found

    return releases.unpacked(ROOT / ".cache" / f"{name}-src" / version, name, wheel)


@contextmanager
def readers() -> Generator[dict[str, Any], None, None]:
    """The three of them, by dialect. Afterwards nothing that stood in for a package is left."""
    before = dict(sys.modules)
    try:
        yield {reader.dialect: reader for reader in (Transformers(), Vllm(), Sglang())}
    finally:
        for name in sys.modules.keys() - before.keys():
            if name.partition(".")[0] in {"vllm", "sglang", "openai", "xgrammar", "msgspec"}:
                del sys.modules[name]
        sys.modules.update(before)  # and what was there is there again


class Transformers:
    """`transformers.utils.chat_parsing`."""

    dialect = "transformers"

    def __init__(self) -> None:
        self.templates = importlib.import_module("transformers.utils.chat_parsing.response_templates")
        self.parsing = importlib.import_module("transformers.utils.chat_parsing.response_parser")

    def load(self, spec: Mapping[str, Any]) -> Any:
        return self.templates.load_response_template(spec)

    def parse(self, spec: Mapping[str, Any], text: str, prefix: str, tools: list[Any] | None) -> Message:
        parsed = self.feed(spec, [text], prefix, tools)
        functions = [call["function"] for call in parsed.get("tool_calls") or []]
        calls = [{key: function[key] for key in ("name", "arguments") if key in function} for function in functions]
        return _message(parsed.get("reasoning_content"), parsed.get("content"), calls)

    def feed(self, spec: Mapping[str, Any], pieces: list[str], prefix: str, tools: list[Any] | None) -> Message:
        parser = self.parsing.ResponseParser(spec, prefix=prefix, tools=tools)
        for piece in pieces:
            parser.feed(piece)
        return parser.finalize()[0]


class Vllm:
    """vLLM's parser for `--reasoning-parser hf --tool-call-parser hf`."""

    dialect = "vllm-hf"

    def __init__(self) -> None:
        sys.path.insert(0, str(ROOT / "tools" / "vllm_cpu"))
        releases = importlib.import_module("releases")
        folder = releases.fetch(VLLM) / "vllm"
        _package("vllm", folder)
        _package("vllm.parser", folder / "parser")
        logger = SimpleNamespace(warning=lambda *_: None, warning_once=lambda *_: None)
        _stand_in("openai")
        _stand_in("openai.types")
        _stand_in("openai.types.responses")
        _stand_in("vllm.entrypoints.generate.base.protocol", DeltaMessage=_Delta)
        _stand_in("vllm.entrypoints.openai.chat_completion.protocol")
        _stand_in("vllm.exceptions")
        _stand_in("vllm.logger", init_logger=lambda _: logger)
        _stand_in("vllm.parser.abstract_parser", Parser=_VllmParser)
        _stand_in("vllm.reasoning.abs_reasoning_parsers")
        _stand_in("vllm.renderers.chat_utils", make_tool_call_id=lambda **_: "id")
        _stand_in("vllm.tool_parsers.abstract_tool_parser")
        _stand_in("vllm.tool_parsers.utils", iter_response_function_tool_dicts=lambda _: [])
        self.parser = importlib.import_module("vllm.parser.response_template")

    def load(self, spec: Mapping[str, Any]) -> Any:
        return self.parser.validate_response_template_for_serving(spec)

    def parse(self, spec: Mapping[str, Any], text: str, prefix: str, tools: list[Any] | None) -> Message:
        tokenizer = SimpleNamespace(decode=lambda ids, **_: "".join(map(chr, ids)))
        parser = self.parser.ResponseTemplateParser(tokenizer, tools, response_template=spec)
        parser.set_prompt_token_ids(list(map(ord, prefix)))
        request = SimpleNamespace(tool_choice="auto", tools=tools)
        reasoning, content, calls = parser.parse(text, request, enable_auto_tools=True)
        return _message(
            reasoning, content, [{"name": call.name, "arguments": json.loads(call.arguments)} for call in calls or []]
        )


class _Delta(_Record):
    tool_calls = ()


class _VllmParser:
    """What vLLM's base class keeps for its parsers."""

    def __init__(self, tokenizer: Any, tools: Any = None, **_: Any) -> None:
        self.model_tokenizer = tokenizer
        self._reasoning_parser = self._tool_parser = object()
        self._stream_state = SimpleNamespace(tool_call_id_type="random", history_tool_call_cnt=0)

    def _initialize_history_tool_call_cnt(self, request: Any) -> None: ...


class Sglang:
    """SGLang's detectors for `--reasoning-parser response_template --tool-call-parser response_template`."""

    dialect = "sglang"

    def __init__(self) -> None:
        folder = _fetched("sglang", SGLANG, "manylinux_2_34_x86_64") / "sglang"
        _package("sglang", folder)
        _package("sglang.srt", folder / "srt")
        _package("sglang.srt.parser", folder / "srt" / "parser")
        _package("sglang.srt.function_call", folder / "srt" / "function_call")
        flag = SimpleNamespace(get=lambda: False)
        levels = SimpleNamespace(PARAMETER=2)
        envs = SimpleNamespace(SGLANG_FORWARD_UNKNOWN_TOOLS=flag, SGLANG_TOOL_STRICT_LEVEL=SimpleNamespace(get=int))
        _stand_in("msgspec", Struct=_Record)
        _stand_in("xgrammar")
        _stand_in("xgrammar.structural_tag")
        _stand_in("sglang.srt.entrypoints.openai.protocol")
        _stand_in("sglang.srt.environ", envs=envs, ToolStrictLevel=levels)
        _stand_in("sglang.srt.function_call.base_format_detector", BaseFormatDetector=_SglangDetector)
        _stand_in("sglang.srt.function_call.core_types")
        self.detectors = importlib.import_module("sglang.srt.parser.response_template")

    def load(self, spec: Mapping[str, Any]) -> Any:
        return self.detectors.validate_response_template_for_serving(spec)

    def parse(self, spec: Mapping[str, Any], text: str, prefix: str, tools: list[Any] | None) -> Message:
        first = self.detectors.ResponseTemplateReasoningDetector(response_template=spec, prefix=prefix, tools=tools)
        split = first.detect_and_parse(text)
        if "tool_calls" not in spec["fields"]:
            return _message(split.reasoning_text, split.normal_text, [])
        second = self.detectors.ResponseTemplateToolDetector(response_template=spec, prefix=prefix, tools=tools)
        offered = [_SglangTool(tool) for tool in tools or []]
        found = second.detect_and_parse(split.normal_text, offered)
        calls = [{"name": call.name, "arguments": json.loads(call.parameters)} for call in found.calls]
        return _message(split.reasoning_text, found.normal_text, calls)


class _SglangTool:
    def __init__(self, tool: Mapping[str, Any]) -> None:
        self.tool = tool
        self.function = SimpleNamespace(name=tool["function"]["name"])

    def model_dump(self) -> Mapping[str, Any]:
        return self.tool


class _SglangDetector:
    """What SGLang's base class keeps for its detectors."""

    def __init__(self) -> None:
        self.current_tool_id = -1
        self.current_tool_name_sent = False

    def _get_tool_indices(self, tools: list[_SglangTool]) -> dict[str, int]:
        return {tool.function.name: number for number, tool in enumerate(tools)}


def _message(reasoning: Any, content: Any, calls: list[Any]) -> Message:
    """In the form of the samples; `repeats` without `join` makes a list of texts."""
    content = "".join(content) if isinstance(content, list) else content
    reasoning = "".join(reasoning) if isinstance(reasoning, list) else reasoning
    return {"reasoning_content": reasoning or None, "content": content or None, "tool_calls": calls}
