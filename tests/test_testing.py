"""The tools for golden samples: what they find, what they say, what they refuse to write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from respzoo.plugins import Family, loaded, read_family
from respzoo.testing import Sample, add_up, check, check_family, cuttings, load_samples, main, update

GOOD = {
    "id": "acme/good",
    "tools": [],
    "raw_output": '<think>\na\n</think>\n\nb\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>',
    "generation_prompt": "<|im_start|>assistant\n",
    "expected": {"content": "b", "reasoning_content": "a", "tool_calls": [{"name": "f", "arguments": {"x": 1}}]},
}


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """A family folder with Qwen3's template and one good sample."""
    folder = tmp_path / "acme"
    folder.mkdir()
    (folder / "family.toml").write_text("")
    (folder / "template.json").write_text(json.dumps(loaded().families["qwen3"].spec))
    write(folder, GOOD)
    return folder


def write(folder: Path, *records: Any) -> Family:
    (folder / "samples.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return read_family(folder)


def changed(**more: Any) -> dict[str, Any]:
    return {**GOOD, "id": "acme/changed", "expected": {**GOOD["expected"], **more}}  # type: ignore[dict-item]


def test_a_text_is_cut_in_every_way_and_stays_whole() -> None:
    cuts = dict(cuttings("some text of a model", rounds=3))
    assert list(cuts) == ["whole", "by character", "random 0", "random 1", "random 2"]
    assert all("".join(pieces) == "some text of a model" for pieces in cuts.values())
    assert all(cuts["random 1"])
    assert cuts == dict(cuttings("some text of a model", rounds=3))
    assert dict(cuttings("", rounds=1)) == {"whole": [""], "by character": [], "random 0": []}


def test_deltas_add_up_as_a_client_adds_them() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    deltas: list[dict[str, Any]] = [
        {"reasoning_content": "a"},
        {"content": "b"},
        {"tool_calls": [call]},
        {"content": "c"},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"x":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}]},
    ]
    assert add_up(deltas) == {
        "reasoning_content": "a",
        "content": "bc",
        "tool_calls": [{"name": "f", "arguments": {"x": 1}}],
    }
    assert add_up([]) == {}


def test_a_good_sample_has_no_faults(acme: Path) -> None:
    assert check_family(read_family(acme)) == []


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"content": None}, "content: expected None, got 'b'"),
        ({"reasoning_content": "A"}, "reasoning_content: expected 'A', got 'a'"),
        ({"tool_calls": []}, "tool_calls: expected []"),
        ({"tool_calls": [{"name": "f", "arguments": {"x": "1"}}]}, "tool_calls: expected"),
        ({"tool_calls": [{"name": "f", "arguments": {"x": True}}]}, "tool_calls: expected"),
    ],
)
def test_a_broken_sample_says_how_to_mend_it(acme: Path, more: dict[str, Any], fault: str) -> None:
    *faults, command = check_family(write(acme, GOOD, changed(**more)))
    assert command == f"to take what the parser gives now: respzoo check {acme} --update-samples acme/changed"
    assert all(line.startswith(f"{acme / 'samples.jsonl'}:2: acme/changed, ") for line in faults)
    assert fault in faults[0]
    assert {"whole", "by character"} <= {line.split(", ")[1].split(":")[0] for line in faults}


def test_one_is_one_point_zero_and_the_order_of_keys_is_free(acme: Path) -> None:
    calls = [{"arguments": {"x": 1.0}, "name": "f"}]
    assert check_family(write(acme, changed(tool_calls=calls))) == []


def test_an_error_may_be_expected_instead(acme: Path) -> None:
    record = {
        **GOOD,
        "raw_output": '<tool_call>\n{"name',
        "expected_error": {"reason": "cut", "accept": ["no_tool_calls"]},
    }
    del record["expected"]
    assert check_family(write(acme, record)) == []
    record["raw_output"] = GOOD["raw_output"]
    assert "a call, where cut" in check_family(write(acme, record))[0]
    record["raw_output"] = "<think>a</think>b"
    record["expected_error"] = {"reason": "cut", "accept": ["content_passthrough"]}
    assert "where the text itself was expected" in check_family(write(acme, record))[0]


def test_update_takes_the_new_value_and_leaves_the_rest(acme: Path) -> None:
    family = write(acme, changed(content="old"), {**changed(content="older"), "id": "acme/other"})
    assert update(family, ["acme/changed"]) == ["acme/changed"]
    first, second = load_samples(acme / "samples.jsonl")
    assert first.record["expected"]["content"] == "b"
    assert second.record["expected"]["content"] == "older"
    assert update(read_family(acme)) == ["acme/other"]
    assert update(read_family(acme)) == []
    assert check_family(read_family(acme)) == []


def test_what_raises_is_a_fault(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = loaded().compile(read_family(acme), "test")

    def stream(*_: Any, **__: Any) -> Any:
        raise RuntimeError("boom")

    monkeypatch.setattr(type(template), "stream", stream)  # a template itself never changes
    faults = check(template, Sample(GOOD, "here:1"))
    assert faults[0] == "here:1: acme/good, whole: raised RuntimeError: boom"


def test_a_line_that_is_not_json(acme: Path) -> None:
    (acme / "samples.jsonl").write_text('{"id": "a"}\n\nnot json\n')
    with pytest.raises(ValueError, match=r"samples\.jsonl:3: not JSON"):
        load_samples(acme / "samples.jsonl")


def test_a_family_without_samples(acme: Path) -> None:
    (acme / "samples.jsonl").unlink()
    assert check_family(read_family(acme)) == ["family acme has no samples.jsonl"]


def test_as_a_command(acme: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(acme)]) == 0
    assert capsys.readouterr().out == "acme: all samples hold\n"
    write(acme, changed(content="old"))
    assert main(["check", str(acme)]) == 1
    assert f"respzoo check {acme} --update-samples acme/changed" in capsys.readouterr().out
    assert main(["update", str(acme), "acme/changed"]) == 0
    assert capsys.readouterr().out == "acme/changed\n"
    assert main(["check", str(acme)]) == 0
