"""Arguments that are lines of a key and a value: text goes as it comes, any other value when its line has ended."""

from __future__ import annotations

from respzoo.arguments.call import Call, Writer, dump_arguments, escape
from respzoo.arguments.text_calls import Trimmed
from respzoo.content.kv_lines import KvLines
from respzoo.schema import Tools

__all__ = ["LineCalls"]


class LineCalls(Writer):
    """Follows one call, whose name is known."""

    __slots__ = (
        "_call", "_content", "_end", "_failed", "_goes", "_held", "_keys", "_line", "_tools", "_trimmed", "_waits",
    )  # fmt: skip

    def __init__(self, call: Call, content: KvLines, tools: Tools) -> None:
        super().__init__()
        self.calls.append(call)
        call.write("{")
        self._call = call
        self._content = content
        self._tools = tools
        self._keys: set[str] = set()
        self._line: list[str] = []  # a line that waits
        self._end = ""  # of it, where the separator may have begun
        self._waits = False  # whether it waits for its own end
        self._goes = False  # whether the text that comes is the value's
        self._trimmed: Trimmed | None = None
        self._held = ""  # what may be the beginning of the end of the line
        self._failed = False

    @property
    def barred(self) -> str | None:
        trimmed = self._trimmed
        waits = self._held or (trimmed is not None and (not trimmed.begun or trimmed.space))
        return "\\" + self._content.line_sep[0] if self._goes and not waits else None

    def quick(self, text: str) -> str | None:
        trimmed = self._trimmed
        if not self._goes or self._held or self._content.line_sep[0] in text:
            return None
        if trimmed is not None and (not trimmed.begun or trimmed.space or text[-1].isspace()):
            return None
        return escape(text)

    def text(self, text: str) -> None:
        line_sep = self._content.line_sep
        if self._failed:
            return
        text, self._held = self._held + text, ""
        *lines, rest = text.split(line_sep)
        begun = next((size for size in range(len(line_sep) - 1, 0, -1) if rest.endswith(line_sep[:size])), 0)
        for line in lines:
            self._piece(line)
            self._ends()
        self._held = rest[len(rest) - begun :]
        self._piece(rest[: len(rest) - begun])

    def _piece(self, text: str) -> None:
        if not text or self._failed:
            return
        if self._goes:
            self._value(text)
            return
        self._line.append(text)
        if self._waits:
            return
        kv_sep = self._content.kv_sep
        end = self._end + text
        if kv_sep not in end:
            self._end = end[len(end) - len(kv_sep) + 1 :]
            return
        self._waits = True
        key, _, value = "".join(self._line).partition(kv_sep)
        strips = self._content.strips
        key = key.strip() if strips else key
        types = self._tools.types(self._call.name, key)
        is_text = types == {"string"} or (not types and self._content.takes_text)
        # white space around a line is none of a separator's
        if is_text and kv_sep.strip() == kv_sep and key not in self._keys:
            self._keys.add(key)
            self._call.argument(key)
            self._call.write('"')
            self._goes, self._trimmed = True, Trimmed() if strips else None
            self._value(value)

    def _value(self, text: str) -> None:
        shown = text if self._trimmed is None else self._trimmed.text(text)
        if shown:
            self._call.write(escape(shown))

    def _ends(self) -> None:
        """The line has ended."""
        if self._goes:
            self._call.write('"')
        elif not self._failed:
            self._whole("".join(self._line))
        self._line.clear()
        self._end = ""
        self._waits = self._goes = False

    def _whole(self, line: str) -> None:
        try:
            arguments = self._tools.typed(self._call.name, self._content.parse(line))
        except Exception:  # noqa: BLE001  what a value parser makes of it: the region will be malformed
            self._failed = True
            return
        for key, value in arguments.items():
            if key in self._keys:
                self._failed = True
                return
            self._keys.add(key)
            self._call.argument(key)
            self._call.write(dump_arguments(value))
