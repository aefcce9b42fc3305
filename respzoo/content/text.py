"""The plain parsers: `text`, `int`, `float`, `bool`. Their value is the region's text or one scalar in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from respzoo.content.arguments import BOOLEAN, PATTERN, Argument
from respzoo.content.base import ContentParser

__all__ = ["Bool", "Float", "Int", "Text"]


class Text(ContentParser):
    """`text`: the text itself; `strip` (default true) takes white space off both ends."""

    name: ClassVar[str] = "text"
    arguments: ClassVar[Mapping[str, Argument]] = {"strip": BOOLEAN, "omit_pattern": PATTERN}
    flat: ClassVar[bool] = True

    def parse(self, text: str, *, strict: bool = False) -> Any:
        return text.strip() if self.args.get("strip", True) else text


class _Scalar(Text):
    arguments: ClassVar[Mapping[str, Argument]] = {"strip": BOOLEAN}


class Int(_Scalar):
    """`int`: a whole number, as Python reads it."""

    name: ClassVar[str] = "int"

    def parse(self, text: str, *, strict: bool = False) -> Any:
        return int(super().parse(text))


class Float(_Scalar):
    """`float`: a number, as Python reads it."""

    name: ClassVar[str] = "float"

    def parse(self, text: str, *, strict: bool = False) -> Any:
        return float(super().parse(text))


class Bool(_Scalar):
    """`bool`: `true` or `1` in any case is True, all else False."""

    name: ClassVar[str] = "bool"

    def parse(self, text: str, *, strict: bool = False) -> Any:
        return super().parse(text).lower() in ("true", "1")
