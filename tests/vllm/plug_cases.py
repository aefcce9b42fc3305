"""How the adapter stands in vLLM, on one release of it (test_offline.py)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import vllm.parser
from driving import MODEL, both, chat, parser_class

import respzoo
from respzoo_vllm import plugin

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
    from respzoo_vllm import engine

    said: list[str] = []
    monkeypatch.setattr(engine, "install", lambda: 1 / 0)
    monkeypatch.setattr(logging.getLogger("vllm.respzoo"), "exception", said.append)
    plugin.register()
    assert said == ["respzoo could not be plugged into this release of vLLM"]


def test_names_that_moved() -> None:
    from respzoo_vllm import engine

    for name in engine.PLACES:
        assert getattr(engine, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        engine.nothing  # noqa: B018
