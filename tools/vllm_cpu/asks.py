"""What load.py asks, and the reply that is right, to the byte: the model knows its answers by heart.

What respzoo makes of an answer in one piece is right, however a server cut it; and for answers to their end `plainly`
says the same without respzoo.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import checkpoint
import scripts

if TYPE_CHECKING:
    from respzoo import ResponseTemplate

ASSISTANT = "<|im_start|>assistant\n"
END = "<|im_end|>"
MARKER = re.compile(r"</?tool_call>")
FLAT_TOOLS = [{"type": "function", **tool["function"]} for tool in scripts.TOOLS]
SCHEMA = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "string"}},
    "required": ["x", "y"],
}
# The shares of requests; the others are read as they come, to their end, streamed.
WHOLE, HANG_UP, SLOW, BY_TOKENS, BY_STOP = 0.15, 0.2, 0.05, 0.3, 0.15


@dataclass(frozen=True)
class Reply:
    reasoning: str = ""
    content: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str = ""

    def begins(self, other: Reply) -> bool:
        """Whether this is what a client has of the other when it hangs up."""
        calls = self.calls
        return (
            other.reasoning.startswith(self.reasoning)
            and other.content.startswith(self.content)
            and len(calls) <= len(other.calls)
            and all(
                name == whole and text.startswith(part)
                for (name, part), (whole, text) in zip(calls, other.calls, strict=False)
            )
        )


@dataclass(frozen=True)
class Case:
    """A prompt, and what the model writes to it."""

    label: str
    messages: list[dict[str, Any]]
    answer: str
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    tools: list[dict[str, Any]] | None = None
    prefix: str = ASSISTANT  # the prompt's end
    reads_calls: bool = True
    shows_reasoning: bool = True
    constrained: bool = False  # a grammar may end the answer otherwise, so its tokens are not known
    most_calls: int | None = None
    chat_only: bool = False


def cases() -> list[Case]:
    """Every prompt that the checkpoint knows, in every way that it knows it."""
    found: list[Case] = []
    for script in scripts.SCRIPTS:
        asked = [{"role": "user", "content": script.prompt}]
        for with_tools in script.tools:
            for thinking in script.thinking:
                label = script.prompt if with_tools else f"{script.prompt}, without tools"
                case = Case(label, asked, script.answer, tools=scripts.TOOLS if with_tools else None)
                if thinking is not None:
                    options = {"chat_template_kwargs": {"enable_thinking": thinking}}
                    prefix = ASSISTANT if thinking else ASSISTANT + "<think>\n\n</think>\n\n"
                    label += f", thinking {'on' if thinking else 'off'}"
                    case = replace(case, label=label, options=options, prefix=prefix)
                found.append(case)
                if with_tools and thinking is None:
                    none = {"tool_choice": "none"}
                    found.append(replace(case, label=f"{case.label}, no calls", options=none, reads_calls=False))
        hidden = {"include_reasoning": False}
        if None in script.thinking:
            tools = scripts.TOOLS if True in script.tools else None
            label = f"{script.prompt}, reasoning hidden"
            found.append(Case(label, asked, script.answer, hidden, tools, shows_reasoning=False))
    for prompt, given, added in scripts.PREFILLED:
        messages = [{"role": "user", "content": prompt}, {"role": "assistant", "content": given}]
        going_on = {"continue_final_message": True, "add_generation_prompt": False}
        found.append(Case(prompt, messages, added, going_on, scripts.TOOLS, prefix=ASSISTANT + given, chat_only=True))
    found.append(Case("follow-up", scripts.FOLLOW_UP, scripts.FOLLOW_UP_ANSWER, tools=scripts.TOOLS, chat_only=True))
    return found + probe_cases() + constrained_cases()


def constrained_cases() -> list[Case]:
    """What the model was taught to write under a grammar, in JSON as the template that is served has it."""
    found: list[Case] = []

    def add(script: scripts.Script, what: str, answer: str, options: dict[str, Any], **more: Any) -> None:
        asked = [{"role": "user", "content": script.prompt}]
        found.append(Case(f"{script.prompt}, {what}", asked, answer, options, constrained=True, **more))

    named = {"type": "function", "function": {"name": "get_weather"}}
    schema = {"type": "json_schema", "json_schema": {"name": "o", "schema": SCHEMA}}
    for script in scripts.SCRIPTS:
        forced = script.instead[0] if script.instead else script.answer
        if "<function=" in forced:
            continue
        if script.strict:
            add(script, "strict", forced, {}, tools=scripts.STRICT_TOOLS, chat_only=True)
        elif script.instead and "<tool_call>" in forced:
            willing = script.answer if "<tool_call>" in script.answer else forced
            add(script, "required", willing, {"tool_choice": "required"}, tools=scripts.TOOLS)
            add(script, "named", forced, {"tool_choice": named}, tools=scripts.TOOLS, most_calls=1)
        if script.prompt in ("json now", "fill the form"):
            add(script, "schema", forced, {"response_format": schema}, chat_only=True)
        if script.prompt == "weather twice":
            one = {"parallel_tool_calls": False}
            add(script, "one call", forced, one, tools=scripts.TOOLS, most_calls=1)
    return found


def probe_cases() -> list[Case]:
    """The scenarios of canitoolcall's probe."""
    return [
        Case(
            f"probe {name}", list(scenario.messages), scripts.PROBE[name][0], tools=list(scenario.tools), chat_only=True
        )
        for name, scenario in checkpoint.scenarios().items()
    ]


@dataclass(frozen=True)
class Ask:
    """One request, and the replies to it."""

    label: str
    api: str
    body: dict[str, Any]
    expected: list[Reply]
    ids: tuple[int, ...] | None = None  # of the tokens that the model writes; None: not known
    manner: str = "reads"  # or "is slow", "hangs up"


class Asker:
    """Knows the cases, and what comes of each."""

    def __init__(self, model: Path) -> None:
        from tokenizers import Tokenizer

        import respzoo

        self.model = model
        self.tokenizer: Any = Tokenizer.from_file(str(model / "tokenizer.json"))
        self.special = {token.content for token in self.tokenizer.get_added_tokens_decoder().values() if token.special}
        self.template = respzoo.get(str(model))
        self.cases = cases()
        self.reply = lru_cache(maxsize=None)(self._reply)

    def ids(self, case: Case) -> list[int]:
        return [id for piece in (case.answer + END).split(scripts.SPELT) for id in self.tokenizer.encode(piece).ids]

    def decode(self, ids: Sequence[int]) -> str:
        """What a server has sent of these: a character whose tokens are not all there is not."""
        from tokenizers.decoders import DecodeStream

        texts = DecodeStream(skip_special_tokens=False)
        return "".join(texts.step(self.tokenizer, token) or "" for token in ids)

    @cached_property
    def variants(self) -> dict[bool, ResponseTemplate]:
        from respzoo_vllm.variant import without

        return {calls: without(self.template, reasoning=True, tools=calls) for calls in (False, True)}

    def _reply(self, at: int, text: str, streamed: bool, cut: bool) -> Reply:
        """What respzoo makes of a text in one piece."""
        from respzoo import MessageStream

        case = self.cases[at]
        calls = case.reads_calls and case.tools is not None
        stream = MessageStream(
            self.variants[calls],
            prefix=case.prefix,
            tools=case.tools if calls else None,
            arguments="stream" if streamed else "complete",
            special_tokens=self.special,
        )
        deltas = stream.feed(*with_markers(text))
        message, last = stream.finish()
        reply = joined([*deltas, *last])
        if case.most_calls is not None:
            reply = replace(reply, calls=reply.calls[: case.most_calls])
        whole = [made for made in message.get("tool_calls", ()) if "status" not in made]
        # of a call that the request names, vLLM says what OpenAI says: it stopped
        named = isinstance(case.options.get("tool_choice"), dict)
        finish = "length" if cut else "tool_calls" if whole and not named else "stop"
        return replace(reply, reasoning=reply.reasoning if case.shows_reasoning else "", finish=finish)

    def faults(self) -> Iterator[str]:
        """Where respzoo and `plainly` differ on a reply to its end."""
        for at, case in enumerate(self.cases):
            if case.prefix != ASSISTANT and not case.prefix.endswith("</think>\n\n"):
                continue  # where a turn goes on, reading begins in its middle
            if not case.reads_calls and case.answer.count("<think>") > 1:
                continue  # in text, a second one opens reasoning again
            expected = plainly(case)
            found = self.reply(at, case.answer, False, False)
            if found != expected:
                yield f"{case.label}: respzoo reads {found}, expected {expected}"

    def ask(self, draw: random.Random, at: int | None = None, **given: Any) -> Ask:
        """A request drawn at random; `at` and `given` settle parts of it."""
        at = draw.randrange(len(self.cases)) if at is None else at
        case = self.cases[at]
        streamed: bool = given.get("streamed", draw.random() >= WHOLE)
        api: str = given.get("api", "chat" if case.chat_only or draw.random() < 0.6 else "responses")
        manner: str = given.get("manner", pick(draw, {"hangs up": HANG_UP, "is slow": SLOW}, "reads"))
        end: str = (
            "end" if case.constrained else given.get("end", pick(draw, {"tokens": BY_TOKENS, "stop": BY_STOP}, "end"))
        )
        ids = self.ids(case)
        body: dict[str, Any] = {"model": "tiny", "temperature": 0, "stream": streamed, **case.options}
        text, limit = case.answer, len(ids) + 8
        if end == "tokens":
            limit = draw.randint(1, len(ids) - 1)
            ids = ids[:limit]
            text = self.decode(ids)
        elif end == "stop":
            start = draw.randrange(len(text))
            stop = text[start : start + draw.randint(1, 8)]
            shown = draw.random() < 0.3
            text = text[: text.index(stop) + len(stop) * shown]
            body |= {"stop": [stop], "include_stop_str_in_output": shown}
        expected = [self.reply(at, text, streamed, end == "tokens")]
        if api == "chat":
            body |= {"messages": case.messages, "max_tokens": limit}
            if streamed:
                usage = {"include_usage": True, "continuous_usage_stats": draw.random() < 0.3}
                body |= {"stream_options": usage, "return_token_ids": draw.random() < 0.7}
                if manner == "is slow":  # enough bytes that the server has to wait
                    body |= {"logprobs": True, "top_logprobs": 20}
            if not case.constrained and draw.random() < 0.1:
                body |= {"n": 2, "temperature": 0.01}
                expected *= 2
            if case.tools is not None:
                body["tools"] = case.tools
        else:
            body |= {"input": case.messages[0]["content"], "max_output_tokens": limit}
            if case.tools is not None:
                body["tools"] = FLAT_TOOLS
            choice = body.get("tool_choice")
            if isinstance(choice, dict):
                body["tool_choice"] = {"type": "function", **choice["function"]}
        known = tuple(ids) if end != "stop" and not case.constrained else None
        label = f"{case.label}, {api}, {'streamed' if streamed else 'whole'}, {end}"
        return Ask(label, api, body, expected, known, manner)


def with_markers(answer: str) -> tuple[str, list[tuple[int, int]]]:
    """The text of an answer, and where special tokens wrote it: markers that are not spelt."""
    text = ""
    spans: list[tuple[int, int]] = []
    for piece in answer.split(scripts.SPELT):
        spans += [(len(text) + match.start(), len(text) + match.end()) for match in MARKER.finditer(piece)]
        text += piece
    return text, spans


def pick(draw: random.Random, shares: Mapping[str, float], rest: str) -> str:
    at = draw.random()
    for name, share in shares.items():
        if at < share:
            return name
        at -= share
    return rest


def joined(deltas: Sequence[Mapping[str, Any]]) -> Reply:
    reasoning = content = ""
    calls: dict[int, tuple[str, str]] = {}
    for delta in deltas:
        reasoning += delta.get("reasoning_content", "")
        content += delta.get("content", "")
        for call in delta.get("tool_calls", ()):
            name, arguments = calls.get(call["index"], ("", ""))
            function = call["function"]
            calls[call["index"]] = (name + function.get("name", ""), arguments + function.get("arguments", ""))
    return Reply(reasoning, content, tuple(calls[index] for index in sorted(calls)))


def plainly(case: Case) -> Reply:
    """The reply that an answer is, to its end and whole, read with nothing but `str` and `json`."""
    reasoning, content = "", case.answer.replace(scripts.SPELT, "")
    calls: list[tuple[str, str]] = []
    if content.startswith("<think>"):
        reasoning, closed, content = content.removeprefix("<think>").partition("</think>")
        reasoning = reasoning.removeprefix("\n")
        if closed:
            reasoning, content = reasoning.removesuffix("\n"), content.lstrip()
    parts = [content]
    while case.tools is not None and case.reads_calls and (at := parts[-1].find("<tool_call>")) >= 0:
        rest = parts.pop()
        inside = rest[at + len("<tool_call>") :].lstrip()
        try:
            value, end = json.JSONDecoder().raw_decode(inside)
            name, arguments = value["name"], value["arguments"]
            after = inside[end:].lstrip()
        except (ValueError, KeyError):
            raw, closer, after = rest.partition("</tool_call>")
            parts += [raw + closer, after]
        else:
            calls.append((name, json.dumps(arguments, ensure_ascii=False)))
            parts += [rest[:at].rstrip(), after.removeprefix("</tool_call>")]
    made = tuple(calls[: case.most_calls])
    shown = reasoning if case.shows_reasoning else ""
    named = isinstance(case.options.get("tool_choice"), dict)
    return Reply(shown, "".join(parts), made, "tool_calls" if made and not named else "stop")
