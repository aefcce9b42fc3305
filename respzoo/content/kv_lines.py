"""`kv-lines`: lines of a key, a separator and a value. Lines without a separator are passed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from respzoo.content.base import ContentParser, Raw, ValueParser

__all__ = ["KvLines"]


class KvLines(ContentParser):
    name: ClassVar[str] = "kv-lines"

    def __init__(self, args: Mapping[str, Any], value_parser: ValueParser | None = None) -> None:
        super().__init__(args)
        self._value_parser = value_parser

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
            result[key] = Raw(value, self._value_parser)
        return result
