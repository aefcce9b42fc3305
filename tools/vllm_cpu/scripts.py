"""What the tiny checkpoint has learnt by heart: prompts, and the answers that it writes to the letter.

An answer is the raw text of a model of the Qwen3 family. Each is there for a case that has gone wrong in some server.
What a model would rather write and what a grammar makes it write differ, so a script may have more than one answer: the
first is what the model writes when it is free, each other is what it goes on with where the first is ruled out.
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

SPELT = "\0"  # in an answer: a token ends here, so that no marker's token is made of what stands around it


@dataclass(frozen=True)
class Script:
    prompt: str
    answer: str
    tools: tuple[bool, ...] = (True, False)  # with tools in the prompt, without
    thinking: tuple[bool | None, ...] = (None,)  # enable_thinking, None: not given
    instead: tuple[str, ...] = ()  # where a grammar forbids what comes before it here
    strict: bool = False  # with strict tools, too
    # After so many tokens of reasoning the engine itself closes it: what then comes.
    cut: tuple[tuple[int, str], ...] = ()


def call(name: str, arguments: dict[str, Any]) -> str:
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False) + "\n</tool_call>"


def tagged(name: str, arguments: dict[str, str]) -> str:
    """A call as Qwen3-Coder writes it."""
    written = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{written}</function>\n</tool_call>"


def forced(thoughts: str, *calls: str) -> tuple[str, ...]:
    """The ways to write calls and nothing else behind the reasoning.

    A grammar may begin right behind the closer or leave the model its blank line, and calls may follow each other
    directly or on lines of their own.
    """
    joints = ("\n", "") if len(calls) > 1 else ("",)
    return tuple(f"<think>\n{thoughts}\n</think>{gap}{joint.join(calls)}" for gap in ("\n\n", "") for joint in joints)


ZURICH = call("get_weather", {"city": "Zürich", "note": 'say "grüezi" \\ 🌦'})
TOKYO = call("get_weather", {"city": "東京", "days": 3})
OSLO = call("get_weather", {"city": "Oslo"})
# long enough that a client would feel it, if it came at the end
STORY = (
    'Morning fog over the fjord, then sun; by noon a fresh "bris" from the west lifts every sail.\n'
    "Ferries run late, gulls do not. Bring wool, a hat & patience: at five o'clock clouds pile up\n"
    "behind Holmenkollen, thunder rolls twice, and warm rain falls on quiet streets until dusk. 🌧"
)
ECHOED = f"say <think>\nJust so.\n</think>\n\n{call('ping', {})}"
QUOTED = "a </tool_call> b <think> c"
OBJECT = '{"x": 1, "y": "é"}'

SCRIPTS = (
    Script(
        "weather twice",
        f"<think>\nTwo cities, so two calls.\n</think>\n\nLet me check both.\n{ZURICH}\n{TOKYO}",
        tools=(True,),
        strict=True,
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
    Script("json please", f"<think>\nJSON then.\n</think>\n\n{OBJECT}", tools=(False,)),
    Script("tag in text", "<think>\nThe tag is <b>.\n</think>\n\nUse a < b and a </b> tag, ok?"),
    Script(
        "text around",
        f"<think>\nOne, then one.\n</think>\n\nBefore.\n{OSLO}\nBetween.\n{call('ping', {})}\nAfter.",
        tools=(True,),
    ),
    # a marker inside of an argument does not end the call
    Script(
        "marker inside",
        "<think>\nQuote it.\n</think>\n\n" + call("get_weather", {"city": "Oslo", "note": QUOTED}) + "\nDone.",
        tools=(True,),
    ),
    # a call that the reasoning only considers is not made
    Script("thought call", f"<think>\nI could write {call('ping', {})} here.\n</think>\n\nBut no.", tools=(True,)),
    Script(
        "long note",
        "<think>\nWrite it down.\n</think>\n\n" + call("get_weather", {"city": "Oslo", "note": STORY}),
        tools=(True,),
    ),
    # characters of several tokens each
    Script("emoji", "<think>\nfamily: 👩‍👧 漢字 naïve\n</think>\n\n👩‍👧 漢字 naïve 🌦️"),
    # under a grammar the answer may begin right behind the closer of the reasoning, and calls follow each other directly
    Script(
        "forced weather",
        f"<think>\nMust call.\n</think>{ZURICH}{TOKYO}",
        tools=(True,),
        instead=forced("Must call.", ZURICH, TOKYO),
    ),
    # what a grammar makes of a reply that would have been another
    Script(
        "phone home",
        "<think>\nRing them?\n</think>\n\nLet us talk.",
        tools=(True,),
        # the last one where the grammar begins with the reply, and so has no room for reasoning
        instead=(*forced("Ring them?", OSLO), OSLO),
    ),
    Script(
        "toss a coin",
        f"<think>\nHeads or tails.\n</think>\n\n{call('ping', {})}",
        tools=(True,),
        instead=forced("Heads or tails.", OSLO),
    ),
    Script(
        "count in words",
        "<think>\nThree days.\n</think>\n\n" + call("get_weather", {"city": "Oslo", "days": "three"}),
        tools=(True,),
        strict=True,
        instead=("<think>\nThree days.\n</think>\n\n" + call("get_weather", {"city": "Oslo", "days": 3}),),
    ),
    # the closer as the one token that it is, and spelt in others
    Script(
        "cite markup",
        "<think>\nQuote it.\n</think>\n\nNo.",
        tools=(True,),
        instead=forced("Quote it.", call("get_weather", {"city": "Oslo", "note": QUOTED})),
    ),
    Script(
        "letter by letter",
        "<think>\nSpell it.\n</think>\n\nNo.",
        tools=(True,),
        instead=forced(
            "Spell it.",
            call("get_weather", {"city": "Oslo", "note": "a </tool\0_call> b"}).replace("\\u0000", SPELT),
        ),
    ),
    # n-grams guess what the prompt goes on with, across the end of the reasoning; the model and the grammar want another
    Script(
        ECHOED,
        "<think>\nJust so.\n</think>\n\nNo.",
        tools=(True,),
        instead=forced("Just so.", OSLO),
    ),
    Script("json now", f"<think>\nStrict JSON.\n</think>{OBJECT}", tools=(False,)),
    Script(
        "fill the form",
        "<think>\nA form.\n</think>\n\nAs I said, x is 1.",
        instead=(
            f"<think>\nA form.\n</think>\n\n{OBJECT}",
            f"<think>\nA form.\n</think>{OBJECT}",
            OBJECT,  # where there is no room for reasoning
        ),
    ),
    Script(
        "decide",
        "<think>\nOne word.\n</think>\n\nMaybe.",
        instead=("<think>\nOne word.\n</think>\n\nno", "<think>\nOne word.\n</think>no"),
    ),
    # reasoning that the engine ends
    Script(
        "ponder",
        "<think>\nOne and two and three and four and five and six.\n</think>\n\nThought through.",
        cut=((8, "\n\nCut short."),),
    ),
    Script(
        "brood first",
        f"<think>\nOne and two and three and four.\n</think>\n\nLet us see.\n{OSLO}",
        tools=(True,),
        cut=((6, f"\n\nLet us see.\n{OSLO}"), (6, f"\n\n{OSLO}"), (6, OSLO)),
    ),
    # the other family: calls in tags
    Script(
        "tagged note",
        "<think>\nTags, then.\n</think>\n\n" + tagged("get_weather", {"city": "Oslo", "note": STORY, "days": "2"}),
        tools=(True,),
    ),
    Script(
        "tagged twice",
        "<think>\nTwo with tags.\n</think>\n\nLook:\n"
        + tagged("get_weather", {"city": "Zürich", "days": "3"})
        + "\n"
        + tagged("ping", {})
        + "\nBoth.",
        tools=(True,),
    ),
    Script(
        "wear badges",
        "<think>\nWhich badge?\n</think>\n\nTalk.",
        tools=(True,),
        instead=forced(
            "Which badge?",
            tagged("get_weather", {"city": "東京", "note": 'a "b" < c', "days": "3"}),
            tagged("ping", {}),
        ),
    ),
    Script(
        "spell numbers",
        "<think>\nThree days.\n</think>\n\n" + tagged("get_weather", {"city": "Oslo", "days": "three"}),
        tools=(True,),
        strict=True,
        instead=("<think>\nThree days.\n</think>\n\n" + tagged("get_weather", {"city": "Oslo", "days": "3"}),),
    ),
    Script(
        "nested quotes",
        "<think>\nQuotes nest.\n</think>\n\nNo.",
        tools=(True,),
        instead=forced(
            "Quotes nest.", tagged("get_weather", {"city": "Oslo", "note": "a </parameter> b </tool\0_call> c"})
        ),
    ),
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

EVENT = {
    "title": "Design review",
    "start": "2026-10-01T15:00:00Z",
    "attendees": [{"name": "Ana", "email": "ana@example.com"}, {"name": "Bo", "email": "bo@example.com"}],
    "location": {"city": "Berlin", "room": "4.12"},
}
NOTE = {"title": "Grüße aus Zürich", "body": "Café ☕ in 東京 — naïve résumé 🚀"}
# canitoolcall's live probe: the answers to its scenarios, by their names
PROBE: dict[str, tuple[str, ...]] = {
    "single-call": ("<think>\nA call.\n</think>\n\n" + call("get_weather", {"city": "Paris"}),),
    "parallel-calls": (
        "<think>\nTwo calls.\n</think>\n\n"
        + call("get_weather", {"city": "Paris"})
        + "\n"
        + call("get_weather", {"city": "Tokyo"}),
    ),
    "no-call": ("<think>\nA sum.\n</think>\n\n42",),
    "nested-args": ("<think>\nAn event.\n</think>\n\n" + call("create_event", EVENT),),
    "unicode-args": ("<think>\nA note.\n</think>\n\n" + call("save_note", NOTE),),
    "empty-args": ("<think>\nThe time.\n</think>\n\n" + call("get_server_time", {}),),
    "forced-tool-choice": (
        "<think>\nLisbon.\n</think>\n\nLisbon lies on the Tejo.",
        *forced("Lisbon.", call("get_weather", {"city": "Lisbon"})),
    ),
    "tool-result-followup": ("<think>\nGot it.\n</think>\n\n18 °C and clear.",),
    "reasoning-then-call": (
        "<think>\nStep by step: 9.9 is 9.90, and 90 is more than 11.\n</think>\n\n"
        + call("record_answer", {"answer": "9.9"}),
    ),
}

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
