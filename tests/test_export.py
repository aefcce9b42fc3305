"""Templates in the words of other readers, key by key. tests/readers runs the results in those readers' own code."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from respzoo.errors import TemplateError
from respzoo.export import DIALECTS, Dialect, Export, ExportError, export
from respzoo.plugins import loaded
from respzoo.template import ResponseTemplate

CALL = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}


def spec(**fields: Any) -> dict[str, Any]:
    return {"dialect": "respzoo", "start_anchor": "[bot]", "defaults": {"role": "assistant"}, "fields": fields}


def calls(**more: Any) -> dict[str, Any]:
    return {"open": "<call>", "close": "</call>", "repeats": True, "content": "json", **more}


def lost(told: Export) -> dict[str, str]:
    return {loss.path: loss.message for loss in told.losses}


def parsed(told: Export, text: str) -> dict[str, Any]:
    """What the exported template makes of a text, here: without the dialect, and so without its help."""
    return ResponseTemplate(told.spec).parse(text, prefix="[bot]", on_malformed="content")


def test_plain_keys_stay_as_they_are_in_transformers() -> None:
    family = loaded().families["qwen3"]
    told = export(family.spec, "transformers")
    assert told.spec == family.spec
    assert told.losses == ()


def test_nothing_that_is_given_is_changed() -> None:
    given = spec(reasoning={"open": "<t>", "close": "</t>", "ended_by": ["tool_calls"]}, tool_calls=calls(), content={})
    before = copy.deepcopy(given)
    export(given, "sglang")
    assert given == before


@pytest.mark.parametrize(
    ("dialect", "name"), [("transformers", "reasoning_content"), ("vllm-hf", "thinking"), ("sglang", "thinking")]
)
@pytest.mark.parametrize("given", ["reasoning_content", "thinking", "reasoning"])
def test_reasoning_is_called_as_the_reader_calls_it(dialect: Dialect, name: str, given: str) -> None:
    template = {**spec(**{given: {"open": "<t>", "close": "</t>"}, "content": {}}), "defaults": {given: None}}
    told = export(template, dialect)
    assert list(told.spec["fields"]) == [name, "content"]
    assert list(told.spec["defaults"]) == ([name] if dialect == "transformers" else [])


@pytest.mark.parametrize("dialect", ["vllm-hf", "sglang"])
def test_servers_know_three_fields_and_stream_text(dialect: Dialect) -> None:
    told = export(spec(content={"repeats": True, "join": "\n"}, tool_calls=calls()), dialect)
    assert told.spec["fields"]["content"] == {}
    assert "'\\n'" in lost(told)["$.fields.content.join"]
    for bad in (
        {"thoughts": {"open": "<t>"}},
        {"content": {"content": "json"}},
        {"content": {"transform": "{content}"}},
    ):
        with pytest.raises(ExportError):
            export(spec(**bad), dialect)
    with pytest.raises(ExportError, match="no content parser 'python-call-list'"):
        export(spec(tool_calls=calls(content="python-call-list")), dialect)


def test_sglang_needs_an_opener_for_calls() -> None:
    with pytest.raises(ExportError, match="needs an opener"):
        export(spec(tool_calls={"content": "json"}), "sglang")


# -------------------------------------------------------------------------------------------------- several syntaxes


def test_syntaxes_that_differ_in_their_delimiters_become_alternatives() -> None:
    two = [calls(transform={"function": "{content}"}), {**calls(transform={"function": "{content}"}), "open": "[call]"}]
    del two[1]["repeats"]
    told = export(spec(tool_calls=two, content={}), "transformers")
    assert told.spec["fields"]["tool_calls"]["open"] == ["<call>", "[call]"]
    assert told.spec["fields"]["tool_calls"]["close"] == "</call>" or told.spec["fields"]["tool_calls"]["close"] == [
        "</call>"
    ]
    assert told.losses == ()
    two[1]["close"] = "[/call]"
    assert (
        "the closer of another" in lost(export(spec(tool_calls=two, content={}), "transformers"))["$.fields.tool_calls"]
    )


def test_a_syntax_of_another_content_is_lost() -> None:
    two = [
        calls(transform={"function": "{content}"}),
        {"open": "<py>", "close": "</py>", "content": "python-call-list"},
    ]
    told = export(spec(tool_calls=two, content={}), "sglang")
    assert lost(told) == {"$.fields.tool_calls[1]": "what is written in this syntax is content there"}
    assert parsed(told, "<py>[f()]</py>") == {"role": "assistant", "content": "<py>[f()]</py>"}


def test_a_lost_syntax_is_not_taken_for_the_first() -> None:
    tags = {"tag_pattern": "<(?P<key>[a-z]+)>(?P<value>.*?)</[a-z]+>"}
    first = {
        "open_pattern": "<call (?P<name>[a-z]+)>",
        "close": "</call>",
        "content": "xml-inline",
        "content_args": tags,
    }
    second = {"open_pattern": r"<call (?P<name>[a-z]+)>(?P<value>\{)", "close": "</call>", "content": "json"}
    both = [{**first, "transform": CALL, "repeats": True}, {**second, "transform": CALL}]
    told = export(spec(tool_calls=both, content={}), "transformers")
    assert parsed(told, "<call f><x>1</x></call>")["tool_calls"][0]["function"] == {
        "name": "f",
        "arguments": {"x": "1"},
    }
    assert parsed(told, '<call f>{"x": 1}</call>') == {"role": "assistant", "content": '<call f>{"x": 1}</call>'}
    both[0]["open_pattern"] = both[1]["open_pattern"] = "<call (?P<name>a|b)>"
    with pytest.raises(ExportError, match="would take this one for the first"):
        export(spec(tool_calls=both, content={}), "transformers")


def test_text_with_and_without_markers() -> None:
    content = [{"open": "<answer>", "close": "</answer>", "repeats": True, "join": ""}, {"close": "[end]"}]
    told = export(spec(content=content), "transformers")
    assert parsed(told, "<answer>Yes.</answer>[end]")["content"] == "Yes."
    assert parsed(told, "Yes.[end]")["content"] == "Yes."


# -------------------------------------------------------------------------------------------------------- delimiters


def test_a_wrapper_is_swallowed_by_what_stands_around_it() -> None:
    field = calls(transform={"function": "{content}"}, within={"open": "<calls>", "close": "</calls>"})
    text = 'A<calls><call>{"name": "f"}</call>\n<call>{"name": "g"}</call>\n</calls>B'
    told = export(spec(tool_calls=field, content={"repeats": True, "join": ""}), "transformers")
    message = parsed(told, text)
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["f", "g"]
    assert message["content"].split() == ["A", "B"] or message["content"] == "AB"
    assert "$.fields.tool_calls.within" in lost(told)
    closed = export(spec(tool_calls=field, thoughts={"open": "<t>", "close": "</t>"}), "transformers")
    assert closed.spec["fields"]["tool_calls"]["close_pattern"] == r"(?:</call>)(?:\s*(?:</calls>))?"


def test_reasoning_that_a_call_ends() -> None:
    thought = {"open": "<t>", "close": "</t>", "ended_by": ["tool_calls"]}
    told = export(
        spec(reasoning_content=thought, tool_calls=calls(transform={"function": "{content}"}), content={}),
        "transformers",
    )
    message = parsed(told, '<t>Hm. <call>{"name": "f"}</call>')
    assert message["reasoning_content"] == "Hm."
    assert message["tool_calls"]
    assert "$.fields.reasoning_content.ended_by" in lost(told)


def test_reasoning_without_an_opener() -> None:
    thought = {"initial": True, "open": "<t>", "close": "</t>"}
    for field in (thought, {key: value for key, value in thought.items() if key != "open"}):
        told = export(spec(reasoning_content=field, content={}), "transformers")
        assert parsed(told, "Hm.</t>Yes.") == {"role": "assistant", "reasoning_content": "Hm.", "content": "Yes."}
    told = export(spec(reasoning_content=thought, content={}), "transformers")
    assert parsed(told, "<t>Hm.</t>Yes.") == {"role": "assistant", "reasoning_content": "Hm.", "content": "Yes."}


def test_a_region_that_ends_with_its_value() -> None:
    field = calls(transform=CALL, ends_with_value=True, open_pattern=r"\[CALL\](?P<name>\w+)")
    del field["open"], field["close"]
    told = export(spec(tool_calls=field, content={"close": "</s>"}), "transformers")
    message = parsed(told, "[CALL]f{}[CALL]g{}</s>")
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["f", "g"]
    assert (
        r"(?:\Z)" in export(spec(tool_calls=field, content={}), "sglang").spec["fields"]["tool_calls"]["close_pattern"]
    )


def test_what_the_opener_leaves_to_the_value() -> None:
    field = calls(transform={"function": "{content}"}, open_pattern=r"(?P<value>\{\"name\")", leading=True)
    del field["open"], field["close"], field["repeats"]
    told = export(spec(tool_calls=field, content={}), "transformers")
    assert told.spec["fields"]["tool_calls"]["open_pattern"] == r"\A(?:(?=\{\"name\"))"
    assert parsed(told, '{"name": "f"}')["tool_calls"]["function"] == {"name": "f", "arguments": {}}
    assert "$.fields.tool_calls.leading" in lost(told)


# ------------------------------------------------------------------------------------------------ content, transforms


@pytest.mark.parametrize(
    ("field", "path"),
    [
        (calls(content_args={"sequence": True}, transform={"function": "{content}"}), "content_args.sequence"),
        (calls(content="python-call-list", content_args={"sequence": True}), "content_args.sequence"),
        (
            calls(transform_each="pairs", transform={"function": {"name": "{key}", "arguments": "{value}"}}),
            "transform_each",
        ),
    ],
)
def test_what_would_be_read_as_something_else_is_refused_by_name(field: dict[str, Any], path: str) -> None:
    with pytest.raises(ExportError) as caught:
        export(spec(tool_calls=field), "transformers", name="acme")
    assert [problem.path for problem in caught.value.problems] == [f"$.fields.tool_calls.{path}"]
    assert str(caught.value).startswith("template 'acme' cannot be exported to transformers:\n  $.fields.tool_calls.")


def test_what_is_only_not_read_is_a_loss() -> None:
    transform = {
        "id": "{content.id?}",
        "function": {"name": "{content.name}", "arguments": "{content.parameters|content.arguments}"},
    }
    field = calls(content_args={"unquoted_keys": "loose"}, transform=transform)
    told = export(spec(tool_calls=field, content={"content_args": {"omit_pattern": "<co>"}}), "transformers")
    assert told.spec["fields"]["tool_calls"]["transform"] == {
        "function": {"name": "{content.name}", "arguments": "{content.parameters}"}
    }
    assert told.spec["fields"]["tool_calls"]["content_args"] == {"unquoted_keys": True}
    assert told.spec["fields"]["content"] == {}
    assert lost(told).keys() == {
        "$.fields.tool_calls.content_args.unquoted_keys",
        "$.fields.tool_calls.transform.id",
        "$.fields.tool_calls.transform.function.arguments",
        "$.fields.content.content_args.omit_pattern",
    }


def test_lists_in_lists_are_no_calls_in_transformers() -> None:
    each = calls(transform_each=True, transform={"function": {"name": "{name}", "arguments": "{arguments}"}})
    assert "repeats" not in export(spec(tool_calls=each), "transformers").spec["fields"]["tool_calls"]
    assert export(spec(tool_calls=each), "vllm-hf").spec["fields"]["tool_calls"]["repeats"] is True


def test_only_a_template_can_be_exported() -> None:
    with pytest.raises(TemplateError):
        export({"fields": {}}, "transformers")
    with pytest.raises(ValueError, match=f"expected one of {', '.join(DIALECTS)}"):
        export(spec(content={}), "mlx")  # type: ignore[arg-type]
