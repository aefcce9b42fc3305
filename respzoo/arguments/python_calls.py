"""Calls written as Python: `[f(a="x", b=[1]), g()]`."""

from __future__ import annotations

from respzoo.arguments.call import Call, Writer
from respzoo.arguments.tokens import Syntax, Token, Tokens
from respzoo.arguments.value import ValueText

__all__ = ["PythonCalls"]


class PythonCalls(Writer):
    """Follows the list, or with no brackets around it the sequence, call by call."""

    def __init__(self, *, raw_strings: bool) -> None:
        super().__init__()
        self._tokens = Tokens(Syntax(quotes="'\"", raw=raw_strings))
        self._word = ""
        self._call: Call | None = None
        self._value: ValueText | None = None
        self._failed = False

    def quick(self, text: str) -> str | None:
        return None if self._value is None or self._failed else self._tokens.quick(text)

    def text(self, text: str) -> None:
        for token in self._tokens.feed(text):
            if self._failed:
                return
            self._token(token)
        self._failed |= self._tokens.failed

    def _token(self, token: Token) -> None:
        kind, text = token
        call, value = self._call, self._value
        if call is None:
            if kind == "word":
                self._word = text
            elif (kind, text) == ("punct", "("):
                self._call = Call(self._word)
                self.calls.append(self._call)
                self._call.write("{")
        elif value is not None and (value.depth > 1 or not (kind == "punct" and text in ",)")):
            value.token(token)
            self._failed |= value.failed
        elif value is not None:
            value.flush()
            self._failed |= value.failed
            self._value = None
            if text == ")":
                self._call = None
        elif kind == "word":
            self._word = text
        elif (kind, text) == ("punct", "="):
            call.argument(self._word)
            self._value = ValueText(call.write, python=True, depth=1)
        elif (kind, text) == ("punct", ")"):
            self._call = None
