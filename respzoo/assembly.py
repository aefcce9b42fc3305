"""From what the fields of a template say to the tables that the parser runs: which delimiters are looked for where."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import regex

from respzoo.content import Borders, ContentParser, Lexer
from respzoo.delimiters import WEAK, Delimiter, WatchList
from respzoo.fields import GIVEN_BACK, CompiledTemplate, Field, Wrapper

__all__ = ["FieldSpec", "assemble"]


@dataclass
class FieldSpec:
    """What one field says, or one of its syntaxes, before all are known."""

    path: str
    has_opener: bool
    values: dict[str, Any]
    """Those of `Field` but what depends on other fields."""
    wrapper: tuple[Delimiter, Delimiter] | None = None
    omit: Delimiter | None = None

    @property
    def name(self) -> str:
        return self.values["name"]

    @property
    def open(self) -> Delimiter | None:
        return self.values["open"]

    @property
    def close(self) -> Delimiter | None:
        return self.values["close"]

    @property
    def is_implicit(self) -> bool:
        return not self.has_opener and not self.values["initial"]

    @property
    def is_flat(self) -> bool:
        content: ContentParser | None = self.values["content"]
        return content is not None and content.name == "text" and self.values["transform"] is None


def assemble(
    spec: Mapping[str, Any], defaults: dict[str, Any], drafts: Sequence[FieldSpec], anchor: Delimiter
) -> CompiledTemplate:
    wrapper_ids, wrapping = _share_wrappers(drafts)
    every = [
        delimiter for draft in drafts for delimiter in (draft.open, draft.close, draft.omit) if delimiter is not None
    ]
    every += [delimiter for pair in wrapping.values() for delimiter in pair]
    keeps_text = any(delimiter.looks_behind for delimiter in every)
    plain = not keeps_text

    def openers(names: Iterable[str], *, sure: bool = False) -> list[Delimiter]:
        """What opens regions of these fields, or wrappers around them; `sure`: only wrappers with a region in them."""
        of = [draft for draft in drafts if draft.name in names]
        found = [draft.open for draft in of if draft.open is not None]
        for id in dict.fromkeys(wrapper_ids[draft.values["id"]] for draft in of if draft.wrapper is not None):
            inside = [draft.open for draft in of if wrapper_ids.get(draft.values["id"]) == id]
            found.append(_entered(wrapping[id][0], inside) if sure else wrapping[id][0])
        return found

    def behind(id: str) -> list[Delimiter]:
        """What may stand behind the last region of this field: its wrapper's closer, the implicit field's."""
        closers = [wrapping[wrapper_ids[id]][1] if id in wrapper_ids else None]
        closers += [draft.close for draft in drafts if draft.is_implicit]
        return [closer for closer in closers if closer is not None]

    fields: dict[str, Field] = {}
    for draft in drafts:
        values, close = draft.values, draft.close
        ends = [close, draft.omit, *openers(values["ended_by"], sure=True)]
        if values["initial"] and draft.open is not None:
            ends.append(draft.open)
        fields[values["id"]] = Field(
            **values,
            within=wrapper_ids.get(values["id"]),
            watch=WatchList([one for one in ends if one is not None], plain=plain),
            lexer=None if draft.open is None else _lexer(draft, behind(values["id"]), plain=plain),
            behind=tuple(behind(values["id"])),
        )
    implicit = next((field for field in fields.values() if field.open is None and not field.initial), None)
    wrappers = {
        id: Wrapper(
            id,
            fields[id].name,
            *pair,
            WatchList([*_openers_within(fields.values(), id), pair[1]], plain=plain),
        )
        for id, pair in wrapping.items()
    }
    always = [] if implicit is not None else _sink_delimiters(every, fields.values(), anchor)
    if implicit is not None:
        omit = next((draft.omit for draft in drafts if draft.is_implicit), None)
        always = [one for one in (implicit.close, omit) if one is not None]
    late = _late_closers(fields.values(), wrappers)
    first = openers({field.name for field in fields.values()})
    leading = [field.open for field in fields.values() if field.leading]
    then = [opener for opener in first if opener not in leading]
    lists: dict[tuple[bool, bool], WatchList] = {}
    for is_late, closers in ((False, []), (True, late)):
        lists[is_late, False] = (
            WatchList([*first, *always, *closers], plain=plain) if closers or not is_late else lists[False, False]
        )
        lists[is_late, True] = WatchList([*then, *always, *closers], plain=plain) if leading else lists[is_late, False]
    return CompiledTemplate(
        spec=spec,
        defaults=copy.deepcopy(defaults),
        fields=fields,
        wrappers=wrappers,
        implicit=implicit,
        initial=next((field for field in fields.values() if field.initial), None),
        anchor=anchor.pattern,
        anchor_literals=anchor.literals,
        outside=lists,
        keeps_text=keeps_text,
    )


def _share_wrappers(drafts: Iterable[FieldSpec]) -> tuple[dict[str, str], dict[str, tuple[Delimiter, Delimiter]]]:
    """One wrapper for all syntaxes of a field that say the same. Returns each field's wrapper, and the wrappers by the
    id of the first field in them."""
    ids: dict[str, str] = {}
    wrapping: dict[str, tuple[Delimiter, Delimiter]] = {}
    first: dict[tuple[str, ...], str] = {}
    for draft in drafts:
        if draft.wrapper is not None:
            # by their sources: `regex` compiles a pattern anew once its cache has dropped it, and the two are not equal
            said = tuple(delimiter.pattern.pattern for delimiter in draft.wrapper)
            id = ids[draft.values["id"]] = first.setdefault(said, draft.values["id"])
            wrapping.setdefault(id, draft.wrapper)
    return ids, wrapping


def _entered(wrapper: Delimiter, openers: Iterable[Delimiter | None]) -> Delimiter:
    """A wrapper's opener that one of these follows, which is given back: a wrapper that is only mentioned ends no
    thought."""
    sources = "|".join(opener.pattern.pattern for opener in openers if opener is not None)
    sources = _GROUP.sub("(?:", sources)
    return Delimiter.regex("wrap", wrapper.field, rf"(?:{wrapper.pattern.pattern})(?P<{GIVEN_BACK}>\s*(?:{sources}))")


_GROUP = regex.compile(r"\(\?P?<\w+>")


def _openers_within(fields: Iterable[Field], wrapper: str) -> list[Delimiter]:
    return [field.open for field in fields if field.within == wrapper and field.open is not None]


def _late_closers(fields: Iterable[Field], wrappers: Mapping[str, Wrapper]) -> list[Delimiter]:
    """Closers that may come when what they close has ended without them."""
    sources: dict[str, None] = {}
    for field in fields:
        if field.leaves_late and field.close is not None and (field.ended_by or field.ends_with_value):
            sources[field.close.pattern.pattern] = None
    sources.update((wrapper.close.pattern.pattern, None) for wrapper in wrappers.values())
    return [Delimiter.regex("late", "", rf"\s*(?:{source})", 2) for source in sources]


def _lexer(draft: FieldSpec, behind: Sequence[Delimiter], *, plain: bool) -> Callable[[], Lexer] | None:
    values = draft.values
    content: ContentParser = values["content"]
    borders = Borders(values["id"], draft.close, plain, values["ends_with_value"], draft.open, behind)
    try:
        return content.lexer(borders)
    except Exception:  # noqa: BLE001
        return None  # content_args of a shape that `parse` will refuse, region by region, as in the reference


def _sink_delimiters(every: Iterable[Delimiter], fields: Iterable[Field], anchor: Delimiter) -> list[Delimiter]:
    """In a template without an implicit field: what is seen between regions and is nobody's text.

    `anchor`: the start of a turn, written again between messages; `closer`: a closer with nothing to close; `marker`:
    another marker of the template's own out of its place, so that what follows is broken markup, not an answer.
    """
    closers: dict[str, None] = {}
    markers: dict[str, None] = {}
    own = [field.close for field in fields]
    for delimiter in every:
        written = delimiter.markers()
        markers.update(dict.fromkeys(written))
        if delimiter in own or delimiter.kind == "unwrap":
            closers.update(dict.fromkeys(delimiter.literals or (written if len(written) == 1 else ())))
    markers = {text: None for text in markers if text not in closers}
    result = [
        Delimiter.literal(what, "", list(texts), order=WEAK)
        for what, texts in (("marker", markers), ("closer", closers))
        if texts
    ]
    if anchor.literals is not None:
        result.append(Delimiter.literal("anchor", "", anchor.literals, order=WEAK))
    return result
