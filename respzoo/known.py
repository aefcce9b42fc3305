"""The tokens that are plain text in one state of the parser, learnt as they come.

A stream is a few thousand different tokens, again and again. Where one was text of its region and nothing more, it is
so wherever the parser is in the same state, in every stream: one look into a set says what took several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["NOTHING", "Known", "Strings"]

_MOST = 4_096  # of one set: what has not been learnt by then is looked at each time
_LONGEST = 32  # characters of what is learnt
_ENDS = frozenset(".!?。")  # of sentences; lines end with an escape in a string, and elsewhere with what is not learnt


class Known:
    """The tokens that are known in one state, and what each is sent as. Shared by all streams.

    Attributes:
        texts: what each is sent as; an empty text if it is white space that has to wait. A plain dict, which is
            looked at more quickly than any other; what is kept of a stream are these texts, and not those that it came
            with.
        others: further tokens of the same kind, which are looked at each time all the same: ends of sentences and
            lines, so that there is an occasion to join the pieces between them.
        refused: tokens that are known to be none, beside a set in which they are.
    """

    __slots__ = ("_beside", "others", "refused", "texts")

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.others: set[str] = set()
        self.refused: set[str] = set()
        self._beside: dict[object, Known] | None = None

    def learn(self, text: str) -> None:
        """In this state the whole of this text is the region's; white space at its end may matter to somebody else."""
        if text not in self.others and text and not text[-1].isspace():
            self.keep(text)

    def keep(self, text: str) -> None:
        """The same, where white space matters to nobody."""
        if len(self.texts) + len(self.others) < _MOST and len(text) <= _LONGEST:
            if text in _ENDS or text.endswith("\\n"):
                self.others.add(text)
            else:
                self.texts[text] = text

    def wait(self, text: str) -> None:
        """In this state this is white space that a delimiter may begin with."""
        if len(self.texts) < _MOST and len(text) <= _LONGEST:
            self.texts[text] = ""

    def beside(self, other: object) -> Known:
        """The set for those streams in which this other thing matters, too: some of these."""
        found = None if self._beside is None else self._beside.get(other)
        if found is None:
            self._beside = self._beside or {}
            found = self._beside.setdefault(other, Known())
        return found


class _Nothing(Known):
    __slots__ = ()

    def keep(self, text: str) -> None:
        """Nothing is known here."""

    def wait(self, text: str) -> None:
        """Nor this."""

    def beside(self, other: object) -> Known:
        return self


NOTHING: Final[Known] = _Nothing()
"""No token: each is looked at."""


class Strings(dict[str, "bool | None"]):
    """What a text does inside a quoted string. None: the string may end in it. Else it goes on with the string, and
    this tells whether it ends with a backslash that escapes what comes next. Shared by all streams.

    Attributes:
        known: the tokens that go on with the string.
        anywhere: the texts of those that do so behind such a backslash, too.
    """

    __slots__ = ("_inside", "anywhere", "known")

    def __init__(self, inside: Callable[[str], object]) -> None:
        """`inside` tells whether a text goes on with the string, no escape left open (None: it does not)."""
        super().__init__()
        self._inside = inside
        self.known = Known()
        self.anywhere: dict[str, str] = {}

    def __missing__(self, text: str) -> bool | None:
        found: bool | None = None
        if self._inside(text) is not None:
            found = False
        elif text[-1:] == "\\" and self._inside(text[:-1]) is not None:
            found = True
        if len(self) < _MOST and len(text) <= _LONGEST:
            self[text] = found
            if found is False and text:
                self.known.keep(text)
                if text in self.known.texts and text[0] != "\\":
                    self.anywhere[text] = text
        return found
