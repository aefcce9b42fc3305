"""What /metrics shows of damaged calls, on one release of vLLM (test_offline.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import prometheus_client
import pytest
from driving import CUT, ZURICH, both, chat, parser_class, streamed, whole
from vllm.v1.metrics.prometheus import get_prometheus_registry

BROKEN = '<tool_call>\n{"name": "get_weather", "arguments": {"city": }}\n</tool_call>'


def counted(reason: str) -> float:
    labels = {"family": "qwen3", "reason": reason}
    return get_prometheus_registry().get_sample_value("respzoo_damaged_calls_total", labels) or 0.0


@pytest.mark.parametrize(("text", "reason"), [(BROKEN, "bad_json"), (CUT, "cut"), (f"{ZURICH}{CUT}", "cut")])
def test_each_damaged_call_counts_once(text: str, reason: str) -> None:
    cls = parser_class()
    before = counted(reason)
    whole(cls, text, chat())
    assert counted(reason) == before + 1
    streamed(cls, text, chat())
    assert counted(reason) == before + 2


def test_calls_that_are_well_count_nothing() -> None:
    cls = parser_class()
    before = prometheus_client.generate_latest(get_prometheus_registry())
    both(cls, f"<think>\nHm.\n</think>\n\nLook.\n{ZURICH}", chat())
    both(cls, CUT, chat(tools=None))
    lines = [
        [line for line in text.splitlines() if line.startswith(b"respzoo_")]
        for text in (before, prometheus_client.generate_latest(get_prometheus_registry()))
    ]
    assert lines[0] == lines[1]


def test_several_api_servers_count_together(tmp_path: Path) -> None:
    """Where vLLM runs several, they share a folder (PROMETHEUS_MULTIPROC_DIR), and any of them shows the sum."""
    code = """
from respzoo_vllm import damage

record = {"field": "tool_calls", "raw": "", "error": "", "reason": "unfinished"}
damage.report("qwen3", [record, record])
"""
    show = """
from prometheus_client import CollectorRegistry, generate_latest, multiprocess

registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    shown = subprocess.run([sys.executable, "-c", show], env=environment, check=True, capture_output=True, text=True)
    assert 'respzoo_damaged_calls_total{family="qwen3",reason="cut"} 4.0' in shown.stdout
