"""canitoolcall's live probe against a server with our flags: the tiny checkpoint knows an answer to each scenario."""

from __future__ import annotations

from live import NAMED, Live


def test_probe(live: Live) -> None:
    from canitoolcall.probe import BUILTIN_SCENARIOS, EQUIVALENCE_CHECK, SCENARIO_CHECK, probe

    report = probe(f"http://127.0.0.1:{live.server.port}/v1", "tiny", timeout_s=120)
    ways = [(SCENARIO_CHECK, False), (SCENARIO_CHECK, True), (EQUIVALENCE_CHECK, True)]
    expected = [(scenario.id, *way, "pass") for scenario in BUILTIN_SCENARIOS for way in ways]
    assert [(one.scenario_id, one.check, one.stream, one.status) for one in report.outcomes] == expected, (
        report.render_text()
    )
    # The only thing that it finds odd: vLLM, as OpenAI's API, ends a reply with a named call by `stop`.
    odd = {(one.scenario_id, warning.partition(" although")[0]) for one in report.outcomes for warning in one.warnings}
    forced = {scenario.id for scenario in BUILTIN_SCENARIOS if scenario.tool_choice == NAMED}
    assert odd == {(name, "finish_reason is 'stop'") for name in forced}
    # More than the probe compares: both ways, the same to the letter.
    observed = {(one.scenario_id, one.stream): one.observed for one in report.outcomes if one.check == SCENARIO_CHECK}
    for scenario in BUILTIN_SCENARIOS:
        whole, streamed = (observed[scenario.id, stream] for stream in (False, True))
        assert whole is not None
        assert streamed is not None
        for name in ("reasoning_content", "content"):
            assert (getattr(whole, name) or "") == (getattr(streamed, name) or "")
        assert [(call.name, call.arguments_raw) for call in whole.tool_calls] == [
            (call.name, call.arguments_raw) for call in streamed.tool_calls
        ]
