"""Calls written as Python: `[f(a="x", b=[1]), g()]`."""

from __future__ import annotations

from functools import partial

from respzoo.arguments.call import Call
from respzoo.arguments.token_calls import TokenCalls
from respzoo.arguments.tokens import Syntax, Token
from respzoo.arguments.value import ValueText
from respzoo.content.python_call_list import read_literal

__all__ = ["PythonCalls", "python_syntax"]


def python_syntax(*, raw_strings: bool, as_python: bool) -> Syntax:
    """How Python's literals write strings; `raw_strings`, `as_python` as in `PythonCallList`."""
    return Syntax(quotes="'\"", breaks="\n\r", python=as_python, raw=raw_strings)


class PythonCalls(TokenCalls):
    """Follows the list, or with no brackets around it the sequence, call by call."""

    __slots__ = ("_call", "_value", "_word")

    def __init__(self, syntax: Syntax) -> None:
        super().__init__(syntax)
        self._word = ""
        self._call: Call | None = None
        self._value: ValueText | None = None

    @property
    def _in_value(self) -> bool:
        return self._value is not None

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
        elif value is not None and (value.nested or not (kind == "punct" and text in ",)")):
            value.token(token)
            self._failed |= value.failed
        elif value is not None:
            self._failed |= not value.whole
            self._value = None
            if text == ")":
                self._call = None
        elif kind == "word":
            self._word = text
        elif (kind, text) == ("punct", "="):
            call.argument(self._word)
            constant = partial(read_literal, as_python=self._tokens.syntax.python)
            self._value = ValueText(call, constant=constant, inside=True)
        elif (kind, text) == ("punct", ")"):
            self._call = None
