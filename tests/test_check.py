"""`respzoo check`: each thing that can be amiss with a family is found, told, and comes with what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import respzoo.audit
from respzoo import prompts, testing
from respzoo.audit import Remark, audit
from respzoo.cli import app
from respzoo.plugins import loaded, read_family

SPEC: dict[str, Any] = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|acme|>",
    "fields": {
        "reasoning_content": {"open": "<think>", "close": "</think>"},
        "tool_calls": {
            "open": "<call>",
            "close": "</call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close": "<|end|>", "content_args": {"strip": False}, "repeats": True, "join": ""},
    },
}
SAMPLE: dict[str, Any] = {
    "id": "acme/good",
    "tools": [],
    "raw_output": '<think>a</think>b<call>{"name": "f", "arguments": {"x": 1}}</call>',
    "generation_prompt": "<|acme|>",
    "expected": {"content": "b", "reasoning_content": "a", "tool_calls": [{"name": "f", "arguments": {"x": 1}}]},
    "tags": [],
}
FACTS = 'title = "Acme"\nmodels = ["acme/One-7B"]\nid_patterns = ["acme-one-7b"]\n[[chat_template]]\nrequire = ["<|acme|>"]\n'
CHAT = (
    "{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}"
    "{% elif m.role == 'tool' %}<|result|>{{ m.content }}"
    "{% else %}<|acme|>{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}{% endif %}"
    "{% endfor %}"
)
runner = CliRunner()


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    folder = tmp_path / "acme"
    folder.mkdir()
    return write(folder)


def write(folder: Path, spec: Any = SPEC, facts: str = FACTS, *samples: Any) -> Path:
    (folder / "template.json").write_text(spec if isinstance(spec, str) else json.dumps(spec))
    (folder / "family.toml").write_text(facts)
    (folder / "samples.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples or [SAMPLE]))
    return folder


def field(name: str, **more: Any) -> dict[str, Any]:
    return {**SPEC, "fields": {**SPEC["fields"], name: {**SPEC["fields"][name], **more}}}


def remarks(folder: Path, check: str, **options: Any) -> list[Remark]:
    return [one for one in audit(read_family(folder), loaded(), **options) if one.check == check]


def run(*arguments: str, code: int = 0) -> Any:
    result = runner.invoke(app, ["check", *arguments])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def test_a_good_family_has_no_faults(acme: Path) -> None:
    found = audit(read_family(acme), loaded())
    assert [one for one in found if one.level == "fault"] == []
    assert [one.text for one in found if one.level == "warning"] == ["1 samples, 0 of them damaged"]
    output = run(str(acme)).stdout
    assert output.splitlines()[-1].startswith("acme: 0 faults, 1 warning")


def test_a_template_that_does_not_load(acme: Path) -> None:
    write(acme, field("content", opne="x"))
    (one,) = audit(read_family(acme), loaded())
    assert (one.level, one.check, one.where) == ("fault", "loads", "$.fields.content.opne")
    write(acme, "{")
    (one,) = audit(read_family(acme), loaded())
    assert (one.level, one.check) == ("fault", "loads")
    assert "$.fields" not in run(str(acme), code=1).stdout


def test_what_transformers_says(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert remarks(acme, "transformers") == []
    write(acme, {**field("reasoning_content", ended_by=["tool_calls"]), "dialect": "respzoo"})
    (one,) = remarks(acme, "transformers")
    assert one.level == "note"
    assert "refuses, as it must" in one.text
    (loss,) = remarks(acme, "export")
    assert loss.where == "transformers, vllm-hf, sglang"
    write(acme)
    from transformers.utils.chat_parsing import response_templates

    def refuse(_: Any) -> None:
        raise ValueError("not like this")

    monkeypatch.setattr(response_templates, "load_response_template", refuse)
    (one,) = remarks(acme, "transformers")
    assert (one.level, one.text) == ("fault", "transformers refuses it: not like this")


def test_a_pattern_that_may_cost_too_much(acme: Path) -> None:
    spec = field("content", close_pattern="(?:a+)+b")
    del spec["fields"]["content"]["close"]
    write(acme, spec)
    (one, *_) = remarks(acme, "patterns")
    assert (one.level, one.where) == ("fault", "$.fields.content.close_pattern")


def test_a_sample_that_does_not_hold(acme: Path) -> None:
    write(acme, SPEC, FACTS, {**SAMPLE, "expected": {**SAMPLE["expected"], "content": "B"}})
    one = remarks(acme, "samples")[0]
    assert one.level == "fault"
    assert "expected 'B', got 'b'" in one.text
    assert one.advice.endswith(f"respzoo check {acme} --update-samples acme/good")


def test_marks_that_another_family_has(acme: Path) -> None:
    marks = loaded().families["qwen3"].marks[0]
    write(acme, SPEC, f"[[chat_template]]\nrequire = {json.dumps(list(marks.require))}\n")
    (one,) = remarks(acme, "marks")
    assert one.level == "fault"
    assert "fits qwen3 as well or better" in one.text
    write(acme, SPEC, 'title = "x"')
    assert remarks(acme, "marks")[0].text == "no marks"


def test_ids_that_another_family_has(acme: Path) -> None:
    write(acme, SPEC, 'models = ["qwen/qwen3-8b"]\nid_patterns = ["qwen3-8b"]')
    found = remarks(acme, "ids")
    assert ("fault", "qwen3 lists it, too") in {(one.level, one.text) for one in found}
    assert any(one.level == "warning" and "which is qwen3's" in one.text for one in found)
    write(acme, SPEC, 'id_patterns = ["("]')
    assert "no regular expression" in remarks(acme, "ids")[0].text


def test_a_prompt_without_the_anchor(acme: Path) -> None:
    write(acme, SPEC, FACTS, {**SAMPLE, "generation_prompt": "<|other|>"})
    assert "has no anchor" in remarks(acme, "anchor")[0].text


def test_an_anchor_that_a_tools_result_hides(acme: Path) -> None:
    good = CHAT + "{% if add_generation_prompt %}<|acme|>{% endif %}"
    assert remarks(acme, "anchor", chat_template=good) == []
    (one,) = remarks(acme, "anchor", chat_template=CHAT)
    assert one.level == "fault"
    assert "stands before the tool's result" in one.text
    assert "make start_anchor a list" in one.advice
    write(acme, {**SPEC, "start_anchor": ["<|acme|>", prompts.RESULT]})
    assert remarks(acme, "anchor", chat_template=CHAT) == []
    (one,) = remarks(acme, "anchor", chat_template="{{ raise_exception('no tools here') }}")
    assert (one.level, "no tools here" in one.text) == ("note", True)
    (one,) = remarks(acme, "anchor", chat_template="{{ messages[0].content }}")
    assert "no anchor in the prompt" in one.text


def test_the_command_takes_a_chat_templates_file(acme: Path, tmp_path: Path) -> None:
    file = tmp_path / "chat_template.jinja"
    file.write_text(CHAT)
    assert "stands before the tool's result" in run(str(acme), "--chat-template", str(file), code=1).stdout


def test_a_closer_without_its_opener(acme: Path) -> None:
    assert remarks(acme, "closers")[0].text == "'</think>' without its opener stays in the answer"
    write(acme, field("content", close=["<|end|>", "</think>"]))
    assert remarks(acme, "closers") == []


def test_text_that_would_be_lost(acme: Path) -> None:
    spec = field("tool_calls", close_pattern=r"</call>[^<]*")
    del spec["fields"]["tool_calls"]["close"]
    write(acme, spec)
    (one,) = remarks(acme, "lost text")
    assert one.level == "fault"
    assert one.text.startswith("a word behind the closer of tool_calls is lost in 1 samples: acme/good")


def test_text_that_is_lost_inside_a_call(acme: Path) -> None:
    spec = field("tool_calls", open_pattern=r"<call (?P<name>\w+)>", content="kv-lines", content_args={})
    del spec["fields"]["tool_calls"]["open"]
    spec["fields"]["tool_calls"]["transform"] = {"function": {"name": "{name}", "arguments": "{content}"}}
    write(acme, spec, FACTS, {**SAMPLE, "raw_output": "<call f>x: 1\n</call>"})
    found = remarks(acme, "lost text")
    assert found
    assert {one.level for one in found} == {"warning"}


def test_a_template_alone_can_be_checked(acme: Path) -> None:
    output = run(str(acme / "template.json")).stdout
    assert output.splitlines()[-1].startswith("unnamed: 0 faults")


def test_for_programs(acme: Path) -> None:
    write(acme, field("content", opne="x"))
    told = json.loads(run(str(acme), "--json", code=1).stdout)
    assert told["family"] == "acme"
    assert told["remarks"][0]["where"] == "$.fields.content.opne"


def test_update_takes_what_holds(acme: Path) -> None:
    write(
        acme,
        SPEC,
        FACTS,
        {**SAMPLE, "expected": {**SAMPLE["expected"], "content": "B"}},
        {**SAMPLE, "id": "acme/other"},
    )
    assert run(str(acme), "--update-samples", "acme/good").stdout == "acme/good\n"
    assert run(str(acme), "--update-samples").stdout == "nothing changed\n"
    assert json.loads(run(str(acme), "--update-samples", "--json").stdout) == {"family": "acme", "changed": []}
    assert "go with --update-samples" in run(str(acme), "acme/good", code=2).stderr


def test_update_refuses_what_breaks_a_promise(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample that loses text (P5) is no value to keep."""
    write(acme, SPEC, FACTS, {**SAMPLE, "expected": {**SAMPLE["expected"], "content": "B"}})
    before = (acme / "samples.jsonl").read_text()
    monkeypatch.setattr(testing, "lost", lambda *_: ["nobody took 'a'"])
    result = run(str(acme), "--update-samples", code=1)
    assert "not a value to keep" in result.stderr
    assert "nobody took 'a'" in result.stderr
    assert (acme / "samples.jsonl").read_text() == before


def test_every_curated_family_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings are told; faults there must be none. (tests/test_families.py replays the samples.)"""
    monkeypatch.setattr(respzoo.audit, "check_family", lambda _: [])  # type: ignore[attr-defined]
    plugins = loaded()
    curated = [family for name, family in plugins.families.items() if plugins.owners[name] == "respzoo:curated"]
    faults = [(family.name, one) for family in curated for one in audit(family, plugins) if one.level == "fault"]
    assert faults == []
