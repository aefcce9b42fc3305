"""What has come of one reply to a client of load.py: chat and Responses, streamed and whole."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from asks import Reply


class WrongStream(Exception):
    """Events that make no stream, whatever they say."""


@dataclass
class Received:
    """What has come of one reply."""

    replies: dict[int, Reply] = field(default_factory=dict[int, Reply])
    calls: dict[tuple[int, int], list[str]] = field(default_factory=dict[tuple[int, int], list[str]])
    call_ids: set[str] = field(default_factory=set[str])
    ids: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    most: int = 0  # tokens in an event
    events: int = 0
    tokens: int | None = None
    error: str = ""
    done: bool = False
    final: Reply | None = None

    def all(self) -> list[Reply]:
        found = dict(self.replies)
        for (index, _), (name, arguments) in sorted(self.calls.items()):
            found[index] = replace(found[index], calls=(*found[index].calls, (name, arguments)))
        return [found[index] for index in sorted(found)]

    def add(self, index: int, reasoning: str = "", content: str = "", finish: str = "") -> None:
        old = self.replies.get(index) or Reply()
        if old.finish:
            raise WrongStream(f"more, after {old.finish}")
        self.replies[index] = Reply(old.reasoning + reasoning, old.content + content, (), finish)

    def begin_call(self, key: tuple[int, int], call_id: str, name: str) -> None:
        if not call_id or call_id in self.call_ids:
            raise WrongStream(f"the call's id {call_id!r} is no new one")
        if key[1] and (key[0], key[1] - 1) not in self.calls:
            raise WrongStream(f"call {key[1]} comes before the one before it")
        self.call_ids.add(call_id)
        self.calls[key] = [name, ""]

    # chat

    def chat_event(self, event: dict[str, Any]) -> None:
        for choice in event["choices"]:
            index, delta = choice["index"], choice["delta"]
            reasoning, content = delta.get("reasoning") or "", delta.get("content") or ""
            self.add(index, reasoning, content, choice.get("finish_reason") or "")
            for call in delta.get("tool_calls") or ():
                key, function = (index, call["index"]), call["function"]
                if key not in self.calls:
                    self.begin_call(key, call.get("id"), function["name"])
                elif function.get("name"):
                    raise WrongStream(f"a second name for a call: {function['name']}")
                self.calls[key][1] += function.get("arguments") or ""
            if new := choice.get("token_ids"):
                self.ids.setdefault(index, []).extend(new)
                self.most = max(self.most, len(new))
        if usage := event.get("usage"):
            self.tokens = usage["completion_tokens"]

    def chat_whole(self, body: dict[str, Any]) -> None:
        for choice in body["choices"]:
            message, index = choice["message"], choice["index"]
            self.add(index, message.get("reasoning") or "", message.get("content") or "", choice["finish_reason"])
            for at, call in enumerate(message.get("tool_calls") or ()):
                self.begin_call((index, at), call["id"], call["function"]["name"])
                self.calls[index, at][1] = call["function"]["arguments"]
        self.tokens = body["usage"]["completion_tokens"]

    # Responses

    def responses_event(self, event: dict[str, Any]) -> None:
        kind: str = event["type"]
        if event["sequence_number"] != self.events - 1:
            raise WrongStream(f"event {event['sequence_number']} is the one of number {self.events - 1}")
        if kind == "response.output_item.added" and event["item"]["type"] == "function_call":
            self.add(0)
            self.begin_call((0, len(self.calls)), event["item"]["call_id"], event["item"]["name"])
        elif kind == "response.function_call_arguments.delta":
            self.calls[0, len(self.calls) - 1][1] += event["delta"]
        elif kind == "response.reasoning_text.delta":
            self.add(0, reasoning=event["delta"])
        elif kind == "response.output_text.delta":
            self.add(0, content=event["delta"])
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            last = Received()
            last.responses_whole(event["response"])
            (self.final,) = last.all()
            self.tokens, self.done = last.tokens, True
            self.add(0, finish=self.final.finish)

    def responses_whole(self, body: dict[str, Any]) -> None:
        self.add(0)
        for item in body["output"]:
            if item["type"] == "reasoning":
                self.add(0, reasoning="".join(part["text"] for part in item["content"] or ()))
            elif item["type"] == "message":
                self.add(0, content="".join(part["text"] for part in item["content"]))
            else:
                self.begin_call((0, len(self.calls)), item["call_id"], item["name"])
                self.calls[0, len(self.calls) - 1][1] = item["arguments"]
        self.tokens = body["usage"]["output_tokens"]
        self.add(0, finish={"completed": "stop", "incomplete": "length"}.get(body["status"], str(body["status"])))

    def take(self, api: str, data: bytes) -> None:
        """One event of a stream."""
        if self.done and api == "chat":
            raise WrongStream("more, after [DONE]")
        if data == b"[DONE]":
            self.done = True
            return
        event = json.loads(data)
        self.events += 1
        if event.get("error"):
            self.error = json.dumps(event["error"])
        elif api == "chat":
            self.chat_event(event)
        else:
            self.responses_event(event)
