"""`kv-lines`: lines of a key, a separator and a value. Lines without a separator are passed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from respzoo.content.arguments import BOOLEAN, CONTENT, STRING, Argument
from respzoo.content.base import ContentParser, Raw, ValueParsers

__all__ = ["KvLines"]


class KvLines(ContentParser):
    name: ClassVar[str] = "kv-lines"
    arguments: ClassVar[Mapping[str, Argument]] = {
        "line_sep": STRING,
        "kv_sep": STRING,
        "strip": BOOLEAN,
        "value_parser": CONTENT,
    }

    def __init__(
        self, args: Mapping[str, Any], *, extended: bool = False, value_parser: ValueParsers | None = None
    ) -> None:
        super().__init__(args, extended=extended, value_parser=value_parser)
        self._value_parser = self.value_parser(args.get("value_parser"))
        self.line_sep = str(args.get("line_sep", "\n"))
        self.kv_sep = str(args.get("kv_sep", ":"))
        self.strips: bool = args.get("strip", True)

    @property
    def takes_text(self) -> bool:
        """Whether a value is its text where the tool's schema says nothing."""
        return self._value_parser is None

    def parse(self, text: str, *, strict: bool = False) -> Any:
        result: dict[str, Any] = {}
        for line in text.split(self.line_sep):
            line = line.strip() if self.strips else line
            key, found, value = line.partition(self.kv_sep)
            if not line or not found:
                continue
            if self.strips:
                key, value = key.strip(), value.strip()
            if strict and key in result:
                raise ValueError(f"the argument {key!r} stands twice in one call")
            result[key] = Raw(value, self._value_parser)
        return result
