"""The plain parsers: `text`, `int`, `float`, `bool`. Their value is the region's text or one scalar in it."""

from __future__ import annotations

from typing import Any, ClassVar

from respzoo.content.base import ContentParser

__all__ = ["Bool", "Float", "Int", "Text"]


class Text(ContentParser):
    """`text`: the text itself; `strip` (default true) takes white space off both ends."""

    name: ClassVar[str] = "text"
    flat: ClassVar[bool] = True

    def parse(self, text: str, *, strict: bool = False) -> Any:
        return text.strip() if self.args.get("strip", True) else text


class Int(Text):
    """`int`: a whole number, as Python reads it."""

    name: ClassVar[str] = "int"

    def parse(self, text: str, *, strict: bool = False) -> Any:
        return int(super().parse(text))


class Float(Text):
    """`float`: a number, as Python reads it."""

    name: ClassVar[str] = "float"

    def parse(self, text: str, *, strict: bool = False) -> Any:
        return float(super().parse(text))


class Bool(Text):
    """`bool`: `true` or `1` in any case is True, all else False."""

    name: ClassVar[str] = "bool"

    def parse(self, text: str, *, strict: bool = False) -> Any:
        return super().parse(text).lower() in ("true", "1")
