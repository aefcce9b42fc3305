"""Which stretches of a text special tokens wrote: told from the token ids, or not at all.

Ids are decoded run by run, the special tokens between them as they are spelled. The runs must make up the text, but for
an end that is not there (a stop token or string) and for what decoding in one piece does otherwise: a space more or
less beside a special token, a character whose bytes lie in several pieces. Else ids and text do not belong together:
then nobody knows (None), and markup in the text is read as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

__all__ = ["Span", "special_texts", "stretches"]

Span = tuple[int, int]
_HALF = "\ufffd"  # what half a character decodes to


def special_texts(tokenizer: Any) -> dict[int, str]:
    """A tokenizer's special tokens by id: the texts that stand for control, not for themselves."""
    found: dict[int, str] = {}
    ids, texts = (getattr(tokenizer, name, None) for name in ("all_special_ids", "all_special_tokens"))
    if isinstance(ids, list | tuple) and isinstance(texts, list | tuple):
        found.update(zip(cast("list[int]", ids), map(str, cast("list[Any]", texts)), strict=False))
    added = getattr(tokenizer, "added_tokens_decoder", None)
    if not isinstance(added, Mapping) and callable(decoder := getattr(tokenizer, "get_added_tokens_decoder", None)):
        added = decoder()
    if isinstance(added, Mapping):
        for token_id, token in cast("Mapping[int, Any]", added).items():
            if getattr(token, "special", False):
                found[token_id] = str(token)
    return {token_id: text for token_id, text in found.items() if text}


def stretches(
    text: str, ids: Sequence[int], special: Mapping[int, str], decode: Callable[[list[int]], str]
) -> list[Span] | None:
    """The places in a text that the special tokens among its ids wrote. None: ids and text do not belong together."""
    segments: list[tuple[str, bool]] = []
    run: list[int] = []
    for token_id in ids:
        spelled = special.get(token_id)
        if spelled is None:
            run.append(token_id)
            continue
        if run:
            segments.append((decode(run), False))
            run = []
        segments.append((spelled, True))
    if run:
        segments.append((decode(run), False))
    whole = "".join(segment for segment, _ in segments)
    if whole.startswith(text):
        return _places(segments, len(text))
    match = _loosely(segments).fullmatch(text)
    if match is None:
        return None
    groups = enumerate(segments, start=1)
    return [match.span(number) for number, (_, is_special) in groups if is_special and match.start(number) >= 0]


def _places(segments: Sequence[tuple[str, bool]], size: int) -> list[Span]:
    places: list[Span] = []
    at = 0
    for segment, is_special in segments:
        if is_special and at + len(segment) <= size:
            places.append((at, at + len(segment)))
        at += len(segment)
    return places


def _loosely(segments: Sequence[tuple[str, bool]]) -> re.Pattern[str]:
    """The segments in order. A half character may be a whole one here; it never is what a special token begins with."""
    firsts = "".join({re.escape(segment[0]) for segment, is_special in segments if is_special})
    half = rf"[^{firsts}]{{0,4}}" if firsts else ".{0,4}"
    source = ""
    for number, (segment, is_special) in enumerate(segments):
        spelled = "".join(half if part[:1] == _HALF else re.escape(part) for part in re.split(f"({_HALF}+)", segment))
        last = is_special and number == len(segments) - 1
        source += f" ?({spelled})" + ("?" if last else "")
    return re.compile(source + " ?", re.DOTALL)
