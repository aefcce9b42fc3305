"""What we return where a render is ambiguous: text that nobody could tell from markup without the token ids.

The properties beside this file ask for one answer under every cutting in these cases; here is which.
"""

from __future__ import annotations

from typing import Any

import pytest
from truth_turns import Rendered, compiled, read

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "description": "Does it.",
            "parameters": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
        },
    }
]


def call(**arguments: Any) -> list[dict[str, Any]]:
    return [{"name": "f", "arguments": arguments}]


@pytest.mark.parametrize(
    ("family", "output", "reasoning", "content", "calls"),
    [
        pytest.param(
            "qwen3",
            "<think>\nI close with </think> later.\n</think>\n\nHi",
            "I close with ",
            "later.\n</think>\n\nHi",
            [],
            id="the first closer ends the reasoning",
        ),
        pytest.param(
            "qwen3",
            'Write <tool_call>\n{"name": "f", "arguments": {"a": "x"}}\n</tool_call> to call.',
            None,
            "Write to call.",
            call(a="x"),
            id="a call quoted in the answer is a call",
        ),
        pytest.param(
            "qwen3_xml",
            "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n<parameter=b>\ny\n</parameter>\n</function>\n</tool_call>",
            None,
            None,
            call(a="x", b="y"),
            id="a value that quotes a closing tag and another opening one is two values",
        ),
        pytest.param(
            "qwen3_xml",
            "<tool_call>\n<function=f>\n<parameter=a>\nx</parameter>\n</parameter>\n</function>\n</tool_call>",
            None,
            None,
            call(a="x"),
            id="a value that ends with its closing tag has it doubled",
        ),
        pytest.param(
            "gpt_oss",
            "<|channel|>analysis<|message|>It ends with <|end|> there.<|end|><|start|>assistant<|channel|>final<|message|>Hi",
            "It ends with ",
            "there.\nHi",
            [],
            id="what follows a quoted end belongs to no message, and is content",
        ),
        pytest.param(
            "mistral_v13",
            '[TOOL_CALLS]f[ARGS]{"a": "x"}[TOOL_CALLS] is how it begins.',
            None,
            "[TOOL_CALLS] is how it begins.",
            call(a="x"),
            id="an opener that nothing fits behind is text",
        ),
        pytest.param(
            "lfm2_5",
            "<|tool_call_start|>[f(a='it is 'quoted', b='so')]<|tool_call_end|>",
            None,
            None,
            call(a="it is 'quoted", b="so"),
            id="a raw string ends at the quote that another argument follows",
        ),
        pytest.param(
            "minicpm5",
            '<function name="f"><param name="a"><![CDATA[x]]></param></function>',
            None,
            None,
            call(a="x"),
            id="CDATA is a frame",
        ),
    ],
)
def test_what_an_ambiguous_render_is_read_as(
    family: str, output: str, reasoning: str | None, content: str | None, calls: list[dict[str, Any]]
) -> None:
    template = compiled(family)
    anchor = template.spec["start_anchor"]
    rendered = Rendered(anchor if isinstance(anchor, str) else anchor[0], output)
    expected = {"content": content, "reasoning_content": reasoning, "tool_calls": calls}
    assert read(template, rendered, TOOLS, []) == expected
    assert read(template, rendered, TOOLS, range(len(output))) == expected
