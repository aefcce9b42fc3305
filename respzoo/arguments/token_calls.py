"""What writers have in common that read a region token by token."""

from __future__ import annotations

from abc import ABC, abstractmethod

from respzoo.arguments.call import Writer
from respzoo.arguments.tokens import Syntax, Token, Tokens

__all__ = ["TokenCalls"]


class TokenCalls(Writer, ABC):
    __slots__ = ("_failed", "_tokens")

    def __init__(self, syntax: Syntax) -> None:
        super().__init__()
        self._tokens = Tokens(syntax)
        self._failed = False

    @property
    @abstractmethod
    def _in_value(self) -> bool:
        """Whether what the tokens tell is written as it comes."""

    @abstractmethod
    def _token(self, token: Token) -> None:
        """Take the next one."""

    @property
    def barred(self) -> str | None:
        return self._tokens.barred if self._in_value and not self._failed else None

    def quick(self, text: str) -> str | None:
        return None if self._failed or not self._in_value else self._tokens.quick(text)

    def text(self, text: str) -> None:
        for token in self._tokens.feed(text):
            if self._failed:
                return
            self._token(token)
        self._failed |= self._tokens.failed
