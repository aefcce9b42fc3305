"""A call whose only argument is the region's own text (`<code>…</code>`)."""

from __future__ import annotations

from respzoo.arguments.call import Call, Writer, dump_arguments, escape

__all__ = ["TextCall", "Trimmed"]


class Trimmed:
    """Text as it comes, without the white space at its ends.

    Attributes:
        begun: whether there is more than white space.
        space: white space that counts if more follows.
    """

    __slots__ = ("begun", "space")

    def __init__(self) -> None:
        self.begun = False
        self.space: list[str] = []

    def text(self, text: str) -> str:
        """What is certain with the next piece."""
        if not self.begun:
            text = text.lstrip()
            if not text:
                return ""
            self.begun = True
        shown = text.rstrip()
        space = text[len(shown) :]
        if shown:
            shown = "".join(self.space) + shown
            self.space = []
        if space:
            self.space.append(space)
        return shown


class TextCall(Writer):
    __slots__ = ("_call", "_trimmed")

    def __init__(self, call: Call, key: str, *, strip: bool) -> None:
        super().__init__()
        self.calls.append(call)
        call.write(f'{{{dump_arguments(key)}: "')
        self._call = call
        self._trimmed = Trimmed() if strip else None

    def text(self, text: str) -> None:
        shown = text if self._trimmed is None else self._trimmed.text(text)
        if shown:
            self._call.write(escape(shown))
