"""The JSON that vLLM makes a model write when a call is forced and no grammar of the model's own syntax exists.

`tool_choice="required"` gives an array of `{"name": …, "parameters": …}`, a named function the object of its arguments.
A call goes out when it is whole, so that a reply which the token limit cut holds the same calls streamed or not; what
is no such JSON is the answer's text.
"""

from __future__ import annotations

import json
from typing import Any, Literal, cast

from respzoo.events import Dropped
from respzoo.fields import CALLS

__all__ = ["ForcedCalls"]


class ForcedCalls:
    """Reads the content of one reply, piece by piece, in time linear in its length."""

    def __init__(self, name: str | None) -> None:
        """For the function of that name, or for an array of calls."""
        self.count = 0  # of calls that have gone out
        self.dropped: list[Dropped] = []  # what became no call, as `MessageStream.dropped`
        self._name = name
        self._level = 1 if name is None else 0  # how deep a call's object lies
        self._depth = 0
        self._call: list[str] = []  # the pieces of the call that is being written
        self._in_string = self._escaped = self._done = self._plain = False

    def feed(self, text: str) -> tuple[str, list[tuple[str, str]]]:
        """The text that is not part of forced calls, and the calls (name, arguments) that are whole with it."""
        if self._plain:
            return text, []
        calls: list[tuple[str, str]] = []
        shown: list[str] = []
        start = 0
        for at, character in enumerate(text):
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                elif character == "\\":
                    self._escaped = True
                elif character == '"':
                    self._in_string = False
            elif character == '"' and self._depth:
                self._in_string = True
            elif character in "[{" and not self._done and (self._depth or character == "{["[self._level]):
                if self._depth == self._level:
                    self._call, start = [], at
                self._depth += 1
            elif character in "]}" and self._depth:
                self._depth -= 1
                if self._depth == self._level:
                    self._call.append(text[start : at + 1])
                    raw = "".join(self._call)
                    call = self._read(raw)
                    if call is None:
                        shown.append(raw)
                    else:
                        calls.append(call)
                    self._call, start = [], at + 1
                self._done = not self._depth
            elif not self._depth and not self._done and not character.isspace():
                self._plain = True
                return "".join(shown) + text[at:], calls
        if self._depth > self._level:
            self._call.append(text[start:])
        return "".join(shown), calls

    def end(self) -> str:
        """The output has ended. Returns the text of a call that it cut."""
        raw = "".join(self._call)
        if raw:
            self._drop(raw, "the output ended inside it", "unfinished")
        return raw

    def _read(self, text: str) -> tuple[str, str] | None:
        try:
            value: Any = json.loads(text)
        except ValueError as error:  # no grammar held the model to JSON
            self._drop(text, f"not JSON: {error}", "malformed")
            return None
        found = cast("dict[str, Any]", value)
        if self._name is not None:
            return self._name, json.dumps(found, ensure_ascii=False)
        name, arguments = found.get("name"), found.get("parameters", {})
        if not isinstance(name, str):
            self._drop(text, "a call without a name", "malformed")
            return None
        return name, json.dumps(arguments, ensure_ascii=False)

    def _drop(self, raw: str, error: str, reason: Literal["malformed", "unfinished"]) -> None:
        self.dropped.append({"field": CALLS, "raw": raw, "error": error, "reason": reason})
