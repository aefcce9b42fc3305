"""Promise P5, held against a trace: nothing that a model wrote is lost."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from respzoo.fields import CONTENT, CompiledTemplate
from respzoo.pieces import Trace
from respzoo.trace import length_of

__all__ = ["lost"]


def lost(found: Trace, template: CompiledTemplate) -> Iterator[str]:
    """Text that came back nowhere: in no field, in no record of what was dropped, and no delimiter either (P5)."""
    dropped = [raw for one in found.dropped if (raw := one["raw"].strip())]
    fields = {one.name: one for one in template.fields.values()}
    for piece in found.pieces:
        text = found.text[piece.start : piece.end].strip()
        one = fields.get(piece.field)
        if piece.kind == "swallowed":
            rest = _unknown(found.text, piece.start, piece.end, template, dropped)
            if rest and not any(rest in raw for raw in dropped):
                yield f"nobody took {rest!r}"
        elif piece.kind == "text" and piece.fault is None and one is not None and one.flat:
            value = found.message.get(one.key)
            if isinstance(value, str) and text not in value:
                yield f"{piece.field} lacks {text!r}"
    content = str(found.message.get(CONTENT) or "")
    for fault in found.faults:
        raw = found.text[max(fault.start, found.prompt) : fault.end].strip()
        if fault.reason == "malformed" and fault.field and raw not in content:
            yield f"the malformed {raw!r} is not in the content"


def _unknown(text: str, start: int, end: int, template: CompiledTemplate, dropped: list[str]) -> str:
    """What is left of a piece once every delimiter, every record and what a field leaves out is taken off its front."""
    known = [one for each in template.fields.values() for one in (each.open, each.close) if one is not None]
    known += [one for each in template.wrappers.values() for one in (each.open, each.close)]
    given = [each.content.args.get("omit_pattern") for each in template.fields.values()]
    patterns = [template.anchor, *(regex.compile(pattern, regex.DOTALL) for pattern in given if pattern)]
    while start < end:
        lengths = [len(text[start:end]) - len(text[start:end].lstrip())]
        lengths += [length_of(one, text, start) for one in known]
        lengths += [match.end() - start for pattern in patterns if (match := pattern.match(text, start))]
        lengths += [len(raw) for raw in dropped if text.startswith(raw, start)]
        longest = max(length for length in lengths if length <= end - start)
        if not longest:
            break
        start += longest
    return text[start:end].strip()
