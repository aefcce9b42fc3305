"""A value's JSON text as `json.dumps` would write it, from its tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from respzoo.arguments.call import Call, dump_arguments, escape
from respzoo.arguments.tokens import Token
from respzoo.content import load_strictly

__all__ = ["ValueText"]

# what must come next
_VALUE = "a value"
_FIRST_VALUE = "a value, or the list's end"
_KEY = "a key"
_FIRST_KEY = "a key, or the object's end"
_COLON = "what a key names"
_BEHIND = "what follows a value"


class ValueText:
    """Writes one value; of an object or list all but its last bracket.

    Attributes:
        done: the last bracket has been read.
        failed: this is no value; nothing more is written.
    """

    __slots__ = ("_bare_keys", "_call", "_constant", "_inside", "_next", "_open", "done", "failed")

    def __init__(
        self,
        call: Call,
        *,
        bare_keys: bool = False,
        constant: Callable[[str], Any] = load_strictly,
        inside: bool = False,
    ) -> None:
        """`call`: which goes on with it. `bare_keys`: those without quotes count. `constant`: reads words. `inside`:
        the value is a part of another, so that its last bracket is written, too."""
        self._call = call
        self._bare_keys = bare_keys
        self._constant = constant
        self._inside = inside
        self._open: list[str] = []
        self._next = _VALUE
        self.done = False
        self.failed = False

    @property
    def nested(self) -> bool:
        """Whether a bracket is open."""
        return bool(self._open)

    @property
    def whole(self) -> bool:
        return not self._open and self._next == _BEHIND

    def token(self, token: Token) -> None:
        kind, text = token
        if self.failed or self.done:
            return
        if kind == "part":
            self._call.write(escape(text))
        elif kind == "end":
            self._call.write('"')
        elif kind == "punct":
            self._punct(text)
        elif self._next in (_VALUE, _FIRST_VALUE):
            self._next = _BEHIND
            self._call.write('"' if kind == "string" else self._word(text))
        elif self._next in (_KEY, _FIRST_KEY) and (kind == "string" or self._bare_keys):
            self._next = _COLON
            self._call.write('"' if kind == "string" else dump_arguments(text))
        else:
            self.failed = True

    def _word(self, word: str) -> str:
        try:
            return json.dumps(self._constant(word))
        except (ValueError, RecursionError):
            self.failed = True
            return ""

    def _punct(self, char: str) -> None:
        expected = self._next
        if char in "{[" and expected in (_VALUE, _FIRST_VALUE):
            self._open.append(char)
            self._next = _FIRST_KEY if char == "{" else _FIRST_VALUE
            self._call.write(char)
        elif char == ":" and expected == _COLON:
            self._next = _VALUE
            self._call.write(": ")
        elif char == "," and expected == _BEHIND and self._open:
            self._next = _KEY if self._open[-1] == "{" else _VALUE
            self._call.write(", ")
        elif char in "}]" and self._closes(char):
            self._open.pop()
            self._next = _BEHIND
            if self._open or self._inside:
                self._call.write(char)
            else:
                self.done = True
        else:
            self.failed = True

    def _closes(self, char: str) -> bool:
        fellow, empty = ("{", _FIRST_KEY) if char == "}" else ("[", _FIRST_VALUE)
        return self._open[-1:] == [fellow] and self._next in (_BEHIND, empty)
