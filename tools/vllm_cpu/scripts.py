"""What the tiny checkpoint has learnt by heart: prompts, and the answers that it writes to the letter.

An answer is the raw text of a model of the Qwen3 family. Each is there for a case that has gone wrong in some server.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

WEATHER = {
    "name": "get_weather",
    "description": "Weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["city"],
    },
}
PING = {"name": "ping", "description": "Ping", "parameters": {"type": "object", "properties": {}}}
TOOLS: list[dict[str, Any]] = [{"type": "function", "function": WEATHER}, {"type": "function", "function": PING}]
STRICT_TOOLS = [{"type": "function", "function": {**tool["function"], "strict": True}} for tool in TOOLS]


@dataclass(frozen=True)
class Script:
    prompt: str
    answer: str
    tools: tuple[bool, ...] = (True, False)  # with tools in the prompt, without
    thinking: tuple[bool | None, ...] = (None,)  # enable_thinking, None: not given


def call(name: str, arguments: dict[str, Any]) -> str:
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False) + "\n</tool_call>"


ZURICH = call("get_weather", {"city": "Zürich", "note": 'say "grüezi" \\ 🌦'})
TOKYO = call("get_weather", {"city": "東京", "days": 3})
OSLO = call("get_weather", {"city": "Oslo"})
# long enough that a client would feel it, if it came at the end
STORY = (
    'Morning fog over the fjord, then sun; by noon a fresh "bris" from the west lifts every sail.\n'
    "Ferries run late, gulls do not. Bring wool, a hat & patience: at five o'clock clouds pile up\n"
    "behind Holmenkollen, thunder rolls twice, and warm rain falls on quiet streets until dusk. 🌧"
)

SCRIPTS = (
    Script(
        "weather twice",
        f"<think>\nTwo cities, so two calls.\n</think>\n\nLet me check both.\n{ZURICH}\n{TOKYO}",
        tools=(True,),
    ),
    Script("answer plainly", "<think>\nEasy one.\n</think>\n\nThe answer is **42**."),
    Script("no thinking", "Hello there, friend!"),
    Script("never close", "<think>\nI keep thinking and thinking"),
    # JSON that stops in the middle, and its closer: text, not a call, and not a 500
    Script(
        "broken call",
        '<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "get_weather", "arguments": {"city": \n</tool_call>',
        tools=(True,),
    ),
    # good JSON, but no call, with a good call and text behind it
    Script(
        "odd call",
        f'<think>\nHm.\n</think>\n\nA: <tool_call>\n{{"nome": "ping"}}\n</tool_call> B: {call("ping", {})} C.',
        tools=(True,),
    ),
    Script("call ping", call("ping", {}), tools=(True,), thinking=(None, False)),
    Script("quick reply", "Direct, no thoughts.", thinking=(False,)),
    # under a grammar the answer begins right behind the closer of the reasoning, and calls follow each other directly
    Script("forced weather", f"<think>\nMust call.\n</think>{ZURICH}{TOKYO}", tools=(True,)),
    Script("json now", '<think>\nStrict JSON.\n</think>{"x": 1, "y": "é"}', tools=(False,)),
    Script("json please", '<think>\nJSON then.\n</think>\n\n{"x": 1, "y": "é"}', tools=(False,)),
    Script("tag in text", "<think>\nThe tag is <b>.\n</think>\n\nUse a < b and a </b> tag, ok?"),
    Script(
        "text around",
        f"<think>\nOne, then one.\n</think>\n\nBefore.\n{OSLO}\nBetween.\n{call('ping', {})}\nAfter.",
        tools=(True,),
    ),
    # a marker inside of an argument does not end the call
    Script(
        "marker inside",
        "<think>\nQuote it.\n</think>\n\n"
        + call("get_weather", {"city": "Oslo", "note": "a </tool_call> b <think> c"})
        + "\nDone.",
        tools=(True,),
    ),
    # a call that the reasoning only considers is not made
    Script("thought call", f"<think>\nI could write {call('ping', {})} here.\n</think>\n\nBut no.", tools=(True,)),
    Script(
        "long note",
        "<think>\nWrite it down.\n</think>\n\n" + call("get_weather", {"city": "Oslo", "note": STORY}),
        tools=(True,),
    ),
    Script(
        "tagged note",
        "<think>\nTags, then.\n</think>\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
        f"<parameter=note>\n{STORY}\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
        tools=(True,),
    ),
    # characters of several tokens each
    Script("emoji", "<think>\nfamily: 👩‍👧 漢字 naïve\n</think>\n\n👩‍👧 漢字 naïve 🌦️"),
)

# A turn that the client began and the model goes on with (continue_final_message): what it was given, what it adds.
PREFILLED = (
    ("finish it", "The answer is", " **42**, as I said."),
    ("think on", "<think>\nEasy", " enough.\n</think>\n\nDone thinking."),
    (
        "call on",
        '<think>\nCall.\n</think>\n\n<tool_call>\n{"name": "get_weather",',
        ' "arguments": {"city": "Oslo"}}\n</tool_call>',
    ),
)

FOLLOW_UP: list[dict[str, Any]] = [
    {"role": "user", "content": "weather twice"},
    {
        "role": "assistant",
        "content": "Let me check both.",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "sunny"},
]
FOLLOW_UP_ANSWER = "<think>\nGot it.\n</think>\n\nIt is sunny ☀️."

CHAT_TEMPLATE = r"""{%- if tools %}<|im_start|>system
{%- if messages[0].role == 'system' %}{{ '\n' + messages[0].content + '\n' }}{%- endif %}
# Tools
<tools>{% for tool in tools %}
{{ tool | tojson }}{% endfor %}
</tools>
For each call, write a json object inside <tool_call></tool_call> tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for m in messages %}{% if m.role == 'user' %}<|im_start|>user
{{ m.content }}<|im_end|>
{% elif m.role == 'assistant' %}<|im_start|>assistant
{{ m.content or '' }}{% for tc in m.tool_calls or [] %}
<tool_call>
{{ '{"name": "' ~ tc.function.name ~ '", "arguments": ' }}{{ tc.function.arguments if tc.function.arguments is string else tc.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% elif m.role == 'tool' %}<|im_start|>user
<tool_response>
{{ m.content }}
</tool_response><|im_end|>
{% endif %}{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% endif %}{% endif %}"""
