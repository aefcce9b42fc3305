"""The plug into vLLM: what it costs a process that parses nothing, and what it does in a vLLM that nobody knows yet.

Such a vLLM is made here, of as little as the adapter needs: tests/vllm has the real ones.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from respzoo_vllm import arrival

# ------------------------------------------------------------------------------------------------------ what it costs

PLUGGED = {"respzoo_vllm", "respzoo_vllm.arrival", "respzoo_vllm.engine", "respzoo_vllm.plugin"}


def run(code: str, *path: Path) -> str:
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, path)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def test_a_worker_imports_next_to_nothing_and_opens_nothing() -> None:
    """vLLM itself, openai, xgrammar, respzoo: all of them come when somebody parses. Modules are counted, not seconds."""
    code = """
        import importlib.metadata, json, socket, sys

        def closed(*_, **__):
            raise AssertionError("a socket")

        socket.socket = socket.create_connection = socket.getaddrinfo = closed
        (point,) = importlib.metadata.entry_points(group="vllm.general_plugins", name="respzoo")
        before = set(sys.modules)
        register = point.load()
        register()
        register()
        print(json.dumps(sorted(set(sys.modules) - before)))
    """
    new = json.loads(run(code))
    assert {name for name in new if name.split(".")[0] not in sys.stdlib_module_names} == PLUGGED
    assert len(new) <= 40


# ---------------------------------------------------------------------------------------------------- when imported


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = "respzoo_test_later"
    (tmp_path / f"{name}.py").write_text("made = ['module']\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def test_acts_once_the_module_is_there(later: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(sys.meta_path)

    def act(module: ModuleType) -> None:
        module.made.append("act")

    arrival.when_imported(later, act)
    assert later not in sys.modules
    made = __import__(later).made
    assert made == ["module", "act"]
    assert sys.meta_path == before
    arrival.when_imported(later, act)
    assert made == ["module", "act", "act"]
    monkeypatch.delitem(sys.modules, later)
    assert __import__(later).made == ["module"]


def test_a_module_that_never_comes_is_nobodys_error() -> None:
    arrival.when_imported("respzoo_test_never", lambda module: pytest.fail(module.__name__))
    with pytest.raises(ModuleNotFoundError):
        __import__("respzoo_test_never")
    arrival._watcher.waiting.pop("respzoo_test_never")  # type: ignore[reportPrivateUsage]


def test_an_act_that_fails_does_not_fail_the_import(later: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def exception(text: str, *values: object) -> None:
        said.append(text % values)

    def act(module: ModuleType) -> None:
        raise ValueError(module)

    monkeypatch.setattr(logging.getLogger("vllm.respzoo"), "exception", exception)
    arrival.when_imported(later, act)
    assert __import__(later).made == ["module"]
    assert said == [f"respzoo could not be plugged into {later}"]


# ----------------------------------------------------------------------------------------- a vLLM that nobody knows

# What the split parsers stand on, in no place that is known: where a real release would have it, it is imported.
BASES = """
class Plain:
    def __init__(self, **fields):
        vars(self).update({"reasoning": None, "content": None, "tool_calls": [], **fields})

class DeltaMessage(Plain):
    pass

class ExtractedToolCallInformation(Plain):
    pass
"""
REASONING = """
class ReasoningParser:
    def __init__(self, tokenizer, *args, **kwargs):
        self.model_tokenizer = tokenizer

class ReasoningParserManager:
    lazy = {}

    @classmethod
    def register_lazy_module(cls, name, module_path, class_name):
        cls.lazy[name] = module_path, class_name
"""
TOOLS = """
from vllm.tool_parsers.abstract_tool_parser import ToolParser

class ToolParserManager:
    lazy = {}

    @classmethod
    def register_lazy_module(cls, name, module_path, class_name):
        cls.lazy[name] = module_path, class_name
"""
ABSTRACT_TOOLS = """
from vllm.new_place import DeltaMessage, ExtractedToolCallInformation

class ToolParser:
    def __init__(self, tokenizer, tools=None):
        self.model_tokenizer = tokenizer

    def adjust_request(self, request):
        return request
"""
MANAGERS = {
    "no manager": None,
    "no get_parser": "class ParserManager:\n    pass\n",
    "get_parser is no class method": "class ParserManager:\n    get_parser = 3\n",
    "another signature": "class ParserManager:\n    @classmethod\n    def get_parser(cls, config):\n        return 'stock'\n",
    "other bases": (
        "class ParserManager:\n    @classmethod\n"
        "    def get_parser(cls, tool_parser_name=None, reasoning_parser_name=None, model_name=None):\n"
        "        return 'stock'\n"
    ),
}
DRIVE = """
    import importlib, json, logging, sys

    sys.path.insert(0, sys.argv[1])
    said = []
    logger = logging.getLogger("vllm.respzoo")
    handler = logging.Handler()
    handler.emit = lambda record: said.append([record.levelname, record.getMessage()])
    logger.addHandler(handler)
    from respzoo_vllm import plugin

    plugin.register()
    import vllm.reasoning, vllm.tool_parsers

    try:
        from vllm.parser.parser_manager import ParserManager
    except ImportError:
        pass
    else:
        for arguments in ({"config": 1}, {"tool_parser_name": "respzoo", "reasoning_parser_name": "respzoo"}):
            try:
                assert ParserManager.get_parser(**arguments) == "stock"
            except (AttributeError, TypeError):
                pass

    def load(manager):
        module, name = manager.lazy["respzoo"]
        return getattr(importlib.import_module(module), name)

    class Tokenizer:
        name_or_path = "Qwen/Qwen3-8B"
        chat_template = None
        def get_vocab(self): return {}
        def get_added_vocab(self): return {}
        def encode(self, text): return list(map(ord, text))
        def decode(self, ids, **_): return "".join(map(chr, ids))

    class Request:
        tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
        tool_choice = "auto"

    tokenizer, request = Tokenizer(), Request()
    TEXT = '<think>\\nHm.\\n</think>\\n\\nLook.\\n<tool_call>\\n{"name": "f", "arguments": {"a": 1}}\\n</tool_call>'

    def parsers():
        made = load(vllm.reasoning.ReasoningParserManager)(tokenizer), load(vllm.tool_parsers.ToolParserManager)(tokenizer)
        assert made[0].is_reasoning_end(tokenizer.encode("<|im_start|>assistant\\n")) is False
        return made

    reasoner, caller = parsers()
    reasoning, content = reasoner.extract_reasoning(TEXT, request)
    found = caller.extract_tool_calls(content, request)
    whole = [reasoning, found.content, [call["function"] for call in found.tool_calls]]

    reasoner, caller = parsers()
    reasoning, content, calls = "", "", {}

    def take(delta):
        global reasoning, content
        if delta is None:
            return
        reasoning += delta.reasoning or ""
        content += delta.content or ""
        for call in delta.tool_calls:
            known = calls.setdefault(call["index"], {"name": None, "arguments": ""})
            known["name"] = call["function"].get("name") or known["name"]
            known["arguments"] += call["function"]["arguments"]

    over = False
    for char in TEXT:
        rest = char
        if not over:
            delta = reasoner.extract_reasoning_streaming("", "", char, [], [], [ord(char)])
            over = reasoner.has_engine_confirmed_reasoning_end()
            rest = (delta.content if delta is not None else None) or "" if over else ""
            if delta is not None:
                delta.content = None
            take(delta)
        if over:
            take(caller.extract_tool_calls_streaming("", "", rest, [], [], [], request))
    take(caller.finish_streaming())
    print(json.dumps({"said": said, "whole": whole, "streamed": [reasoning, content, list(calls.values())]}))
"""


@pytest.mark.parametrize("manager", MANAGERS)
def test_an_unknown_release_has_two_parsers_and_one_warning(tmp_path: Path, manager: str) -> None:
    files = {
        "vllm/__init__.py": "",
        "vllm/new_place.py": BASES,
        "vllm/reasoning/__init__.py": REASONING,
        "vllm/tool_parsers/__init__.py": TOOLS,
        "vllm/tool_parsers/abstract_tool_parser.py": ABSTRACT_TOOLS,
        "vllm/parser/__init__.py": "",
    }
    source = MANAGERS[manager]
    if source is not None:
        files["vllm/parser/parser_manager.py"] = source
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = json.loads(run(DRIVE, tmp_path))
    ((level, line),) = found["said"]
    assert level == "WARNING"
    assert line.startswith(
        "respzoo does not know this release of vLLM well enough to read reasoning and calls as one ("
    )
    expected = ["Hm.", "Look.", [{"name": "f", "arguments": '{"a": 1}'}]]
    assert found["whole"] == expected
    assert found["streamed"] == expected


def test_managers_that_are_other_ones_are_no_crash(tmp_path: Path) -> None:
    for name in ("vllm", "vllm/reasoning", "vllm/tool_parsers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    code = """
        import sys

        sys.path.insert(0, sys.argv[1])
        from respzoo_vllm import plugin

        plugin.register()
        import vllm.reasoning, vllm.tool_parsers
    """
    run(code, tmp_path)
