"""Arguments that are lines of a key and a value: each goes when its line has ended."""

from __future__ import annotations

from collections.abc import Callable

from respzoo.arguments.call import Call, Writer, dump_arguments

__all__ = ["LineCalls"]


class LineCalls(Writer):
    """`typed`: the arguments that are in these lines."""

    def __init__(self, call: Call, line_sep: str, typed: Callable[[str], dict[str, object]]) -> None:
        super().__init__()
        self.calls.append(call)
        call.write("{")
        self._call = call
        self._line_sep = line_sep
        self._typed = typed
        self._line: list[str] = []
        self._failed = False

    def text(self, text: str) -> None:
        if self._failed:
            return
        if self._line_sep not in text and len(self._line_sep) == 1:
            self._line.append(text)
            return
        *lines, rest = "".join([*self._line, text]).split(self._line_sep)
        self._line = [rest]
        for line in lines:
            try:
                arguments = self._typed(line)
            except Exception:  # noqa: BLE001  what a value parser makes of it: the region will be malformed
                self._failed = True
                return
            for key, value in arguments.items():
                self._call.argument(key)
                self._call.write(dump_arguments(value))
