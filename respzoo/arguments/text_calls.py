"""A call whose only argument is the region's own text (`<code>…</code>`)."""

from __future__ import annotations

from respzoo.arguments.call import Call, Writer, dump_arguments, escape

__all__ = ["TextCall"]


class TextCall(Writer):
    def __init__(self, call: Call, key: str, *, strip: bool) -> None:
        super().__init__()
        self.calls.append(call)
        call.write(f'{{{dump_arguments(key)}: "')
        self._call = call
        self._strip = strip
        self._begun = not strip
        self._space: list[str] = []  # white space that counts if more follows

    def text(self, text: str) -> None:
        if not self._strip:
            self._call.write(escape(text))
            return
        if not self._begun:
            text = text.lstrip()
            if not text:
                return
            self._begun = True
        shown = text.rstrip()
        if shown:
            self._call.write(escape("".join(self._space) + shown))
            self._space = []
        if len(shown) < len(text):
            self._space.append(text[len(shown) :])
