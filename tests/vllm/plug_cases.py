"""How the adapter stands in vLLM, on one release of it (test_offline.py)."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import vllm.parser
from driving import MODEL, TOKENIZER, ZURICH, both, chat, parser_class

import respzoo
from respzoo_vllm import engine, plugin, split

# --------------------------------------------------------------------------------------------------------- the plug


def test_start_says_which_template_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    from respzoo_vllm import plan

    said: list[str] = []
    monkeypatch.setattr(plan, "_announced", set())
    monkeypatch.setattr(plan.logger, "info", lambda text, *values: said.append(text % values))
    parser_class()
    parser_class()
    assert said == [f"respzoo reads {MODEL} with the response template qwen3: {respzoo.get(MODEL).source}"]
    assert plan.logger.name.startswith("vllm.")  # whose handlers vLLM sets up


def test_start_fails_without_a_template() -> None:
    with pytest.raises(respzoo.UnknownModelError) as raised:
        parser_class(model="nobody/knows-this-model")
    assert "nobody/knows-this-model" in str(raised.value)
    with pytest.raises(respzoo.UnknownModelError):
        respzoo.get("nobody/knows-this-model")


@pytest.mark.parametrize("model", ["moonshotai/Kimi-K3", "google/gemma-4-31B-it", "zai-org/GLM-4.5"])
@pytest.mark.parametrize("options", [{}, {"reasoning": None}, {"tools": None}], ids=["both", "tools", "reasoning"])
def test_any_flag_alone(model: str, options: dict[str, Any]) -> None:
    """A template without the fields that nobody asked for is one, whatever its other fields say of them."""
    cls = parser_class(model=model, **options)
    for request in (chat(), chat(tools=None), chat(tool_choice="none")):
        assert both(cls, "Hello!", request, prompt="")[1] == "Hello!"


@pytest.mark.parametrize("name", ["RESPZOO_ON_MALFORMED", "RESPZOO_ON_UNFINISHED", "RESPZOO_ARGUMENTS"])
def test_start_fails_with_a_policy_that_is_none(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "perhaps")
    with pytest.raises(ValueError, match=f"{name}: expected '.*' or '.*', found 'perhaps'"):
        parser_class()


def test_template_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESPZOO_TEMPLATE", "qwen3")
    assert parser_class(model="nobody/knows-this-model").template.name == "qwen3"


def test_no_other_parser_beside() -> None:
    with pytest.raises(TypeError, match="cannot be combined"):
        parser_class(tools="hermes")


def test_other_parsers_are_left_alone() -> None:
    cls = parser_class(reasoning="qwen3", tools="hermes")
    assert "respzoo" not in cls.__module__
    assert parser_class(reasoning=None, tools=None) is None


def test_registering_again_changes_nothing() -> None:
    before = vllm.parser.ParserManager.get_parser
    plugin.register()
    assert vllm.parser.ParserManager.get_parser == before


def test_a_release_that_it_does_not_fit_starts_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(engine, "install", lambda: 1 / 0)
    monkeypatch.setattr(logging.getLogger("vllm.respzoo"), "exception", said.append)
    plugin.register()
    assert said == ["respzoo could not be plugged into this release of vLLM"]


def test_names_that_moved() -> None:
    for name in engine.PLACES:
        assert getattr(engine, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        engine.nothing  # noqa: B018


# ------------------------------------------------------------------------------------- what a release may change


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    lines: list[str] = []
    monkeypatch.setattr(logging.getLogger("vllm.respzoo"), "warning", lambda text, *values: lines.append(text % values))
    monkeypatch.setattr(engine, "_reasons", [])
    engine.say_that_two_read.cache_clear()
    yield lines
    engine.say_that_two_read.cache_clear()


def parse_of_to_come(self: Any, model_output: str, *, request: Any) -> Any:
    """Without what the unified parser needs."""


def delta_of_to_come(
    self: Any, delta_text: str, delta_token_ids: Any, request: Any, prompt_token_ids: Any, chunk: int, *, finished: bool
) -> Any:
    """With more than it is known to be given."""


@pytest.mark.parametrize(("method", "to_come"), [("parse", parse_of_to_come), ("parse_delta", delta_of_to_come)])
def test_a_base_that_is_called_otherwise(
    monkeypatch: pytest.MonkeyPatch, said: list[str], method: str, to_come: Any
) -> None:
    """vLLM composes two parsers, and they read as well (split_cases.py has the rest)."""
    with monkeypatch.context() as patch:
        patch.setattr(engine.DelegatingParser, method, to_come)
        found = [parser_class() for _ in range(2)]
    for cls in found:
        assert issubclass(cls, engine.DelegatingParser)
        assert not hasattr(cls, "policies")
        assert (cls.reasoning_parser_cls, cls.tool_parser_cls) == (
            split.RespzooReasoningParser,
            split.RespzooToolParser,
        )
        parser = cls(TOKENIZER, chat().tools)
        assert parser.parse(f"<think>\nHm.\n</think>\n\nLook.{ZURICH}", chat(), enable_auto_tools=True)[:2] == (
            "Hm.",
            "Look.",
        )
    (line,) = said
    assert f"DelegatingParser.{method} takes" in line
    assert hasattr(parser_class(), "policies")


def test_a_name_that_moved_to_nobody_knows_where(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    for name in ("DeltaMessage", "ExtractedToolCallInformation"):
        monkeypatch.delitem(vars(engine), name, raising=False)
        *known, _ = engine.PLACES[name]
        for place in known:
            monkeypatch.setitem(sys.modules, place, None)
        assert getattr(engine, name).__name__ == name
        monkeypatch.delitem(vars(engine), name)


def test_a_parser_that_cannot_be_made_is_left_out(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    import respzoo_vllm

    monkeypatch.delattr(respzoo_vllm, "parser")
    monkeypatch.setitem(sys.modules, "respzoo_vllm.parser", None)
    cls = parser_class()
    assert (cls.reasoning_parser_cls, cls.tool_parser_cls) == (split.RespzooReasoningParser, split.RespzooToolParser)
    assert len(said) == 1


def test_what_it_costs_a_worker() -> None:
    """The plugin is called before anything else is imported; what it needs is not vLLM's parsers."""
    code = """
import sys
import vllm.plugins

before = set(sys.modules)
vllm.plugins.load_general_plugins()
print("\\n".join(set(sys.modules) - before))
"""
    alone = {**os.environ, "VLLM_PLUGINS": "respzoo"}  # without vLLM's own plugins
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=alone)
    ours = {name for name in run.stdout.split() if name.startswith("respzoo")}
    assert ours == {"respzoo_vllm", "respzoo_vllm.arrival", "respzoo_vllm.engine", "respzoo_vllm.plugin"}
    assert not [name for name in run.stdout.split() if name.startswith(("vllm.", "openai", "transformers", "xgrammar"))]
