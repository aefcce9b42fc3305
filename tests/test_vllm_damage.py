"""What the vLLM adapter says and counts of calls that could not be read: codes, never anybody's text."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import respzoo
from respzoo.events import Dropped
from respzoo_vllm import damage
from respzoo_vllm.forced import ForcedCalls

QWEN = "Qwen/Qwen3-8B"
CODER = "Qwen/Qwen3-Coder-30B-A3B-Instruct"
OSS = "openai/gpt-oss-20b"
LLAMA = "meta-llama/Llama-4-Scout-17B-16E-Instruct"
SECRET = "hunter2"
DAMAGE = [
    json.loads(line) for line in (Path(__file__).parent / "data" / "damage.jsonl").read_text("utf-8").splitlines()
]


def dropped(model: str, text: str) -> list[Dropped]:
    stream = respzoo.get(model).stream(prefix="")
    stream.feed(text)
    stream.finish()
    return stream.dropped


def call(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


@pytest.mark.parametrize(
    ("model", "text", "code"),
    [
        (QWEN, call(f'{{"name": "f", "arguments": {{"a": {SECRET}}}}}'), "bad_json"),
        (QWEN, call(f'{{"name": "f", "arguments": {{"{SECRET}": 1, "{SECRET}": 2}}}}'), "repeated_key"),
        (QWEN, call('{"name": "f", "arguments": {"a": NaN}}'), "bad_json"),
        (QWEN, call('{"name": "f", "arguments": {"a": 1e999}}'), "bad_json"),
        (QWEN, call(f'["{SECRET}"]'), "no_call"),
        (QWEN, call(f'{{"nome": "{SECRET}"}}'), "bad_name"),
        (QWEN, call(f'{{"name": ["{SECRET}"], "arguments": {{}}}}'), "bad_name"),
        (QWEN, call(f'{{"name": "f", "arguments": ["{SECRET}"]}}'), "bad_arguments"),
        (QWEN, call(f'{{"name": "f", "arguments": "{SECRET}"}}'), "bad_json"),
        (QWEN, f'<tool_call>\n{{"name": "f", "arguments": {{"a": "{SECRET}', "cut"),
        (CODER, call(f"<function=f>\n{SECRET}\n</function>"), "bad_tags"),
        (
            CODER,
            call(
                f"<function=f>\n<parameter={SECRET}>\n1\n</parameter>\n<parameter={SECRET}>\n2\n</parameter>\n</function>"
            ),
            "repeated_key",
        ),
        (LLAMA, f"<|python_start|>[f(a={SECRET})]", "bad_python"),
        (LLAMA, f'<|python_start|>[f({SECRET}="1", {SECRET}="2")]<|python_end|>', "repeated_key"),
        (LLAMA, f'<|python_start|>[f(a="{SECRET}', "cut"),
        (OSS, f"<|channel|>commentary to=browser.open<|message|>{SECRET}<|call|>", "stray_text"),
    ],
)
def test_codes(model: str, text: str, code: str) -> None:
    records = dropped(model, text)
    assert [damage.code_of(record) for record in records] == [code]
    assert code in damage.CODES


@pytest.mark.parametrize("case", [case for case in DAMAGE if "raw" in case], ids=lambda case: case["damage"])
def test_what_is_known_of_damage_has_a_code(case: dict[str, Any]) -> None:
    codes = {damage.code_of(record) for record in dropped(case["model"], case["text"])}
    assert codes
    assert "other" not in codes


def test_an_error_that_is_new_is_one_of_the_codes() -> None:
    record: Dropped = {"field": "tool_calls", "raw": SECRET, "error": f"no {SECRET}: tag", "reason": "malformed"}
    assert damage.code_of(record) == "other"
    assert len(damage.CODES) == len(set(damage.CODES)) <= 12


class Metric:
    """As prometheus_client's Counter, as far as it is used."""

    def __init__(self, name: str, documentation: str, labels: list[str]) -> None:
        self.name, self.seen = name, list[dict[str, str]]()
        assert labels == ["family", "reason"]

    def labels(self, **labels: str) -> SimpleNamespace:
        return SimpleNamespace(inc=lambda: self.seen.append(labels))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    damage.counter.cache_clear()
    yield
    damage.counter.cache_clear()


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []

    def info(text: str, *values: object) -> None:
        lines.append(text % values)

    monkeypatch.setattr(damage.logger, "info", info)
    monkeypatch.delenv("RESPZOO_LOG_RAW", raising=False)
    return lines


def test_one_line_and_one_count_a_call_and_no_text(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", SimpleNamespace(Counter=Metric))
    records = dropped(QWEN, f"{call(SECRET)}\n<tool_call>\n{{'{SECRET}")
    assert len(records) == 2
    damage.report("qwen3", records, ["malformed"])
    assert said == [
        "respzoo: qwen3: malformed in tool_calls (bad_json), shown as content",
        "respzoo: qwen3: unfinished in tool_calls (cut), left out",
    ]
    assert damage.counter().name == "respzoo_damaged_calls"
    assert damage.counter().seen == [
        {"family": "qwen3", "reason": "bad_json"},
        {"family": "qwen3", "reason": "cut"},
    ]
    said.clear()
    damage.report("qwen3", records)
    assert all(line.endswith("left out") for line in said)


def test_the_text_is_logged_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    records = dropped(QWEN, call(SECRET))
    for value, expected in (("1", True), ("0", False), ("", False)):
        said.clear()
        monkeypatch.setenv("RESPZOO_LOG_RAW", value)
        damage.report("qwen3", records)
        assert [SECRET in line for line in said] == [expected]
    monkeypatch.setenv("RESPZOO_LOG_RAW", "1")
    assert len(damage.raw_suffix("x" * 10**6)) < 5000


def test_text_between_calls_is_no_damaged_call(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", SimpleNamespace(Counter=Metric))
    damage.report(
        "f",
        [{"field": "", "raw": SECRET, "error": "text between regions, inside their wrapper", "reason": "malformed"}],
    )
    assert said == ["respzoo: f: malformed in the text between calls (stray_text), left out"]
    assert damage.counter().seen == []


def test_without_prometheus(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    damage.report("qwen3", dropped(QWEN, call(SECRET)))
    assert damage.counter() is None
    assert len(said) == 1


def test_a_counter_that_is_there_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Metric("respzoo_damaged_calls", "", ["family", "reason"])

    def twice(*_: object) -> None:
        raise ValueError("Duplicated timeseries in CollectorRegistry")

    registry = SimpleNamespace(_names_to_collectors={"respzoo_damaged_calls_total": known})
    monkeypatch.setitem(sys.modules, "prometheus_client", SimpleNamespace(Counter=twice, REGISTRY=registry))
    assert damage.counter() is known


def test_the_log_is_vllms() -> None:
    assert damage.logger is logging.getLogger("vllm.respzoo")


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_forced_json_that_is_none(size: int) -> None:
    def read(name: str | None, text: str) -> tuple[str, list[tuple[str, str]], list[str], str]:
        forced = ForcedCalls(name)
        shown, calls = "", list[tuple[str, str]]()
        for at in range(0, len(text), size):
            more, some = forced.feed(text[at : at + size])
            shown, calls = shown + more, calls + some
        cut = forced.end()
        return shown, calls, [damage.code_of(record) for record in forced.dropped], cut

    assert read(None, '[{"name": "f", "parameters": {"a": 1}}]') == ("", [("f", '{"a": 1}')], [], "")
    assert read(None, "[{name: 1}]") == ("{name: 1}", [], ["bad_json"], "")
    assert read(None, '[{"nome": "f"}]') == ('{"nome": "f"}', [], ["bad_name"], "")
    assert read("f", '{"a": 1} ') == ("", [("f", '{"a": 1}')], [], "")
    assert read("f", '{"a": "') == ("", [], ["cut"], '{"a": "')
    assert read(None, '[{"name": "f", "parameters": {}}, {"name"') == ("", [("f", "{}")], ["cut"], '{"name"')
    assert read("f", "No.") == ("No.", [], [], "")
