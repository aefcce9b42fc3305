"""XML's character entities, as models' markup escapes names with them."""

from __future__ import annotations

import re

__all__ = ["unescape"]

_ENTITY = re.compile(r"&(?:(?P<name>amp|quot|lt|gt|apos)|#(?P<code>[0-9]{1,7})|#[xX](?P<hex>[0-9a-fA-F]{1,6}));")
_NAMES = {"amp": "&", "quot": '"', "lt": "<", "gt": ">", "apos": "'"}


def unescape(text: str) -> str:
    """The text with its entities read, once; what is none stays as it is."""
    return _ENTITY.sub(_char, text) if "&" in text else text


def _char(match: re.Match[str]) -> str:
    if match["name"] is not None:
        return _NAMES[match["name"]]
    code = int(match["code"]) if match["code"] is not None else int(match["hex"], 16)
    return match[0] if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else chr(code)
