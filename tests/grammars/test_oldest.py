"""What tags are made of, the oldest xgrammar knows that a supported vLLM may bring.

vLLM 0.24 and 0.28 require `xgrammar>=0.2.1,<1.0.0`, 0.32 and 0.33 `xgrammar==0.2.8` (the Requires-Dist of their wheels).
These tests run with 0.2.8; what 0.2.1 knows stands here as data, from its own wheel and sources. All families' tags
compile with 0.2.1, 0.2.2 and 0.2.7 in fact, and all tests of grammars pass with 0.2.9; the tests keep what had to be done
for that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from machine import CALLING, family, tag_of
from test_compiles import FORM
from toolbox import TOOLS

FORMATS = {
    "grammar": {"grammar"},
    "json_schema": {"json_schema", "style"},
    "sequence": {"elements"},
    "or": {"elements"},
    "optional": {"content"},
    "plus": {"content"},
    "star": {"content"},
    "dispatch": {"rules", "loop", "excludes"},
}
"""Formats and their fields that we use: xgrammar/structural_tag.py in the wheel of 0.2.1."""

DISPATCH = {"loop_after_dispatch", "excludes"}
"""The names that TagDispatch takes: cpp/grammar_parser.cc at v0.2.1, ParseTagDispatch."""

MOST_RULES = 32_767
"""0.2.1 keeps a rule's number in 16 bits, and ends the process beyond that (mended in 0.2.2, pull request 652). A counted
repeat is so many rules there."""

PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|(\[(?:[^\]\\]|\\.)*\])')
"""A string, or a class (the group)."""
BEYOND_ASCII = re.compile(r"(?<!\\)(?:\\\\)*\\(?:u(?!00[0-7])|U)|[^\x00-\x7f]")
COUNTED = re.compile(r"\{(\d+),(\d*)\}")
REQUESTS: list[dict[str, Any]] = [
    {"tool_choice": "required"},
    {"tool_choice": "auto", "strict": True, "reasoning": True},
    {"tool_choice": "auto", "parallel": False},
    {"tool_choice": "auto", "response_format": FORM, "strict": True},
]


def formats(tag: Any) -> Iterator[dict[str, Any]]:
    """Every format in a tag."""
    yield tag
    for inner in [*tag.get("elements", []), *([tag["content"]] if "content" in tag else [])]:
        yield from formats(inner)
    for _, inner in tag.get("rules", []):
        yield from formats(inner)


@pytest.mark.parametrize("name", CALLING)
def test_the_oldest_xgrammar_knows_it(name: str) -> None:
    for request in REQUESTS:
        rules = 0
        for one in formats(tag_of(family(name), TOOLS, **request)["format"]):
            assert one.keys() - {"type"} <= FORMATS[one["type"]], one["type"]
            if one["type"] != "grammar":
                continue
            bare = PIECE.sub("", one["grammar"])
            classes = [piece[1] for piece in PIECE.finditer(one["grammar"]) if piece[1]]
            rules += bare.count("::=") + sum(int(most or least) for least, most in COUNTED.findall(bare))
            assert set(re.findall(r"(?:\(|, )(\w+)=", bare)) <= DISPATCH
            beyond = [chars for chars in classes if chars.startswith("[^") and BEYOND_ASCII.search(chars)]
            assert not beyond, "0.2.7 and older cannot exclude characters beyond ASCII: bitset::set, 128 >= 128"
        assert rules < MOST_RULES / 2, "and what is not counted here"
