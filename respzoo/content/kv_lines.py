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

    def parse(self, text: str, *, strict: bool = False) -> Any:
        line_sep, kv_sep = self.args.get("line_sep", "\n"), self.args.get("kv_sep", ":")
        strip = self.args.get("strip", True)
        result: dict[str, Any] = {}
        for line in text.split(line_sep):
            line = line.strip() if strip else line
            key, found, value = line.partition(kv_sep)
            if not line or not found:
                continue
            if strip:
                key, value = key.strip(), value.strip()
            if strict and key in result:
                raise ValueError(f"the argument {key!r} stands twice in one call")
            result[key] = Raw(value, self._value_parser)
        return result
