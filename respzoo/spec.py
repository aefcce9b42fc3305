"""Read a response template: check all of it, then compile it into tables that never change.

The language is that of transformers (`transformers.utils.chat_parsing`, manual page "Response Parsing"): every
template that loads there loads here, every one that it refuses is refused, with all problems at once. A template that
says `"dialect": "respzoo"` may use the extensions of docs/language.md besides.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import regex

from respzoo.content import EXTENDED_NAMES, NAMES, ContentParser, Lexer, make
from respzoo.delimiters import WEAK, Delimiter, WatchList
from respzoo.errors import Problem, TemplateError
from respzoo.fields import REASONING, REASONING_NAMES, CompiledTemplate, Field, Wrapper
from respzoo.problems import Problems, kind, listed, short
from respzoo.transform import check_transform

__all__ = ["DIALECT", "GIVEN_BACK", "compile_spec"]

DIALECT = "respzoo"
GIVEN_BACK = "value"
"""In the dialect, the group of an opener whose text is the beginning of the region's own."""

_TEMPLATE_KEYS = frozenset({"version", "defaults", "fields", "start_anchor", "start_anchor_pattern"})
_FIELD_KEYS = frozenset({"open", "open_pattern", "close", "close_pattern", "content", "content_args"}) | frozenset(
    {"repeats", "join", "optional", "transform", "transform_each"}
)
_FLAGS = ("initial", "leading", "ends_with_value")
_EXTENSION_KEYS = frozenset({"within", "ended_by", *_FLAGS})
_SHARED_KEYS = ("repeats", "join", "optional")
"""What the first of several syntaxes says for all."""


def compile_spec(spec: Any, *, name: str = "") -> CompiledTemplate:
    """Check and compile a response template's plain dict.

    Raises:
        TemplateError: with every problem and its place.
    """
    problems = Problems()
    if not isinstance(spec, Mapping):
        raise TemplateError([Problem("$", f"expected a dict, found {kind(spec)}")], name=name)
    spec = cast("Mapping[str, Any]", spec)
    extended = spec.get("dialect") == DIALECT
    if spec.get("version", 1) != 1:
        problems.add("$.version", f"expected 1, the only version there is, found {spec['version']!r}")
    for key in sorted(set(spec) - _TEMPLATE_KEYS, key=str):
        if key != "dialect":
            problems.add(f"$.{key}", f"unknown key; a template has {listed(_TEMPLATE_KEYS)}")
        elif not extended:
            problems.add("$.dialect", f"expected {DIALECT!r}, found {short(spec[key])}")
    defaults = spec.get("defaults", {})
    if not isinstance(defaults, dict):
        problems.add("$.defaults", f"expected a dict, found {kind(defaults)}")
    anchor = _delimiter(problems, "$", spec, "start_anchor", "start_anchor_pattern", "anchor", "", 0)
    if anchor is None and "start_anchor" not in spec and "start_anchor_pattern" not in spec:
        problems.add("$", "expected 'start_anchor' or 'start_anchor_pattern': where in a prompt the answer begins")
    raw_fields = spec.get("fields", {})
    drafts: list[_Draft] = []
    if not isinstance(raw_fields, dict) or not raw_fields:
        found = kind(raw_fields) if not isinstance(raw_fields, dict) else "an empty one"
        problems.add("$.fields", f"expected a dict with at least one field, found {found}")
    else:
        for key, raw in cast("dict[str, Any]", raw_fields).items():
            drafts += _field(problems, key, raw, extended=extended)
        _check_together(problems, drafts)
    if problems.found or anchor is None:
        raise TemplateError(problems.found, name=name)
    return _assemble(spec, cast("dict[str, Any]", defaults), drafts, anchor)


@dataclass
class _Draft:
    """What a field says, before all are known."""

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


# ---------------------------------------------------------------------------------------------------------- reading it


def _field(problems: Problems, name: str, raw: Any, *, extended: bool) -> list[_Draft]:
    """One field; with the dialect, a list of its syntaxes."""
    path = f"$.fields.{name}"
    if not (extended and isinstance(raw, list)):
        return _syntax(problems, path, name, name, raw, extended=extended)
    syntaxes = cast("list[Any]", raw)
    if not syntaxes:
        problems.add(path, "expected a field or a list of its syntaxes, found an empty list")
        return []
    first = cast("dict[str, Any]", syntaxes[0] if isinstance(syntaxes[0], dict) else {})
    drafts = _syntax(problems, f"{path}[0]", name, name, syntaxes[0], extended=True)
    for number, other in enumerate(syntaxes[1:], 1):
        where = f"{path}[{number}]"
        if isinstance(other, dict):
            for key in _SHARED_KEYS:
                if key in other:
                    problems.add(f"{where}.{key}", "the first syntax of a field says this for all; take it out here")
            other = {**other, **{key: first[key] for key in _SHARED_KEYS if key in first}}  # pyright: ignore[reportUnknownVariableType]
        drafts += _syntax(problems, where, name, f"{name}[{number}]", other, extended=True)
    if len({draft.is_flat for draft in drafts}) > 1:
        problems.add(path, "one field cannot be plain text in one syntax and a value in another")
    return drafts


def _syntax(problems: Problems, path: str, name: str, id: str, raw: Any, *, extended: bool) -> list[_Draft]:
    if not isinstance(raw, dict):
        problems.add(path, f"expected a dict, found {kind(raw)}")
        return []
    raw = cast("dict[str, Any]", raw)
    for key in sorted(set(raw) - _FIELD_KEYS, key=str):
        if key not in _EXTENSION_KEYS:
            problems.add(f"{path}.{key}", f"unknown key; a field has {listed(_FIELD_KEYS)}")
        elif not extended:
            problems.add(
                f"{path}.{key}", f'an extension of respzoo\'s; a template that uses it says "dialect": "{DIALECT}"'
            )
    opener = _delimiter(problems, path, raw, "open", "open_pattern", "open", id, 0)
    closer = _delimiter(problems, path, raw, "close", "close_pattern", "close", id, 1)
    content = _content(problems, path, raw, extended=extended)
    join = raw.get("join")
    if join is not None and not isinstance(join, str):
        problems.add(f"{path}.join", f"expected a string, found {kind(join)}")
    elif join is not None and not raw.get("repeats", False):
        problems.add(f"{path}.join", "needs 'repeats': true; it joins the repeats")
    transform, each = raw.get("transform"), raw.get("transform_each", False)
    if not isinstance(each, bool) and not (extended and each == "pairs"):
        expected = "true, false or 'pairs'" if extended else "true or false"
        problems.add(f"{path}.transform_each", f"expected {expected}, found {kind(each)}")
    elif each and transform is None:
        problems.add(f"{path}.transform_each", "needs a 'transform' to apply to each element")
    if transform is not None:
        check_transform(problems, f"{path}.transform", transform, extended=extended)
    else:
        groups = {group for delimiter in (opener, closer) if delimiter for group in delimiter.pattern.groupindex}
        if groups - ({GIVEN_BACK} if extended else set()):
            problems.add(
                path,
                f"named group(s) {listed(groups)} in its patterns go nowhere without a 'transform'; "
                "add one that uses them, or make the groups unnamed",
            )
    draft = _Draft(
        path,
        "open" in raw or "open_pattern" in raw,
        {
            "id": id,
            "name": name,
            "key": REASONING if name in REASONING_NAMES else name,
            "open": opener,
            "close": closer,
            "content": content,
            "repeats": bool(raw.get("repeats", False)),
            "join": join,
            "optional": bool(raw.get("optional", True)),
            "transform": transform,
            "transform_each": each,
            "extended": extended,
            "ended_by": (),
            **dict.fromkeys(_FLAGS, False),
        },
    )
    if extended:
        _extensions(problems, draft, raw)
    return [draft]


def _extensions(problems: Problems, draft: _Draft, raw: Mapping[str, Any]) -> None:
    path, values = draft.path, draft.values
    for key in _FLAGS:
        value = raw.get(key, False)
        values[key] = value is True
        if not isinstance(value, bool):
            problems.add(f"{path}.{key}", f"expected true or false, found {kind(value)}")
    ended_by: Any = raw.get("ended_by", [])
    if not isinstance(ended_by, list) or not all(isinstance(name, str) for name in cast("list[Any]", ended_by)):
        problems.add(f"{path}.ended_by", f"expected a list of fields' names, found {kind(ended_by)}")
    else:
        values["ended_by"] = tuple(cast("list[str]", ended_by))
    for key in ("initial", "ended_by"):
        if values[key] and not draft.is_flat:
            problems.add(f"{path}.{key}", "only for a field of text without a transform")
    if values["ended_by"] and draft.is_implicit:
        problems.add(f"{path}.ended_by", "every opener ends the implicit field already")
    if values["leading"] and not draft.has_opener:
        problems.add(f"{path}.leading", "needs an 'open'; it says where that counts")
    content: ContentParser | None = values["content"]
    if values["ends_with_value"]:
        if draft.is_implicit:
            problems.add(f"{path}.ends_with_value", "the implicit field ends where another begins; give it an 'open'")
        elif content is not None and not content.ends_itself:
            problems.add(f"{path}.ends_with_value", f"a value of content {content.name!r} does not show its own end")
    if draft.is_flat and content is not None and "omit_pattern" in content.args:
        args = cast("Mapping[str, Any]", raw["content_args"])
        draft.omit = _delimiter(problems, f"{path}.content_args", args, "", "omit_pattern", "omit", values["id"], 2)
        if draft.omit is not None and draft.omit.pattern.match("") is not None:
            problems.add(f"{path}.content_args.omit_pattern", "matches the empty text")
    if "within" in raw:
        draft.wrapper = _wrapper(problems, f"{path}.within", draft, raw["within"])


def _wrapper(problems: Problems, path: str, draft: _Draft, raw: Any) -> tuple[Delimiter, Delimiter] | None:
    if not draft.has_opener:
        problems.add(path, "needs an 'open' of the field's own")
    if not isinstance(raw, dict):
        problems.add(path, f"expected a dict with an 'open' and a 'close', found {kind(raw)}")
        return None
    raw = cast("dict[str, Any]", raw)
    for key in sorted(set(raw) - {"open", "open_pattern", "close", "close_pattern"}, key=str):
        problems.add(f"{path}.{key}", "unknown key; a wrapper has 'open' or 'open_pattern', 'close' or 'close_pattern'")
    opener = _delimiter(problems, path, raw, "open", "open_pattern", "wrap", draft.values["id"], 0)
    closer = _delimiter(problems, path, raw, "close", "close_pattern", "unwrap", draft.values["id"], 1)
    for side, delimiter in (("open", opener), ("close", closer)):
        if side not in raw and f"{side}_pattern" not in raw:
            problems.add(path, f"expected '{side}' or '{side}_pattern'")
        elif delimiter is not None and delimiter.has_groups:
            problems.add(path, f"named group(s) {listed(delimiter.pattern.groupindex)} of a wrapper go nowhere")
    return None if opener is None or closer is None else (opener, closer)


def _check_together(problems: Problems, drafts: Sequence[_Draft]) -> None:
    implicit = [draft.values["id"] for draft in drafts if draft.is_implicit]
    if len(implicit) > 1:
        problems.add(
            "$.fields",
            f"only one field may go without 'open' or 'open_pattern' (it takes what no other does), "
            f"found {listed(implicit, sort=False)}",
        )
    initial = [draft.values["id"] for draft in drafts if draft.values["initial"]]
    if len(initial) > 1:
        problems.add("$.fields", f"only one field may be 'initial', found {listed(initial, sort=False)}")
    names = {draft.name for draft in drafts if draft.has_opener}
    for draft in drafts:
        for name in draft.values["ended_by"]:
            if name not in names or name == draft.name:
                problems.add(f"{draft.path}.ended_by", f"expected other fields that have an opener, found {name!r}")


def _content(problems: Problems, path: str, raw: Mapping[str, Any], *, extended: bool) -> ContentParser | None:
    content = raw.get("content", "text")
    names = EXTENDED_NAMES if extended else NAMES
    if not isinstance(content, str) or content not in names:
        problems.add(f"{path}.content", f"expected one of {listed(names, sort=False)}, found {content!r}")
        return None
    args = raw.get("content_args")
    try:
        return make(content, cast("Mapping[str, Any]", args) if isinstance(args, Mapping) else {}, extended=extended)
    except Exception as error:  # noqa: BLE001  arguments of any shape
        if extended:
            problems.add(f"{path}.content_args", str(error))
        # the reference finds out at the first region; so do we, and every region of the field is malformed
        return _Broken(content, f"{path}.content_args cannot be used: {error!r}")


class _Broken(ContentParser):
    """A content parser whose arguments cannot work: every region of it is malformed, as in the reference."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__({})
        self.name = name  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
        self._why = why

    def parse(self, text: str, *, strict: bool = False) -> Any:
        raise ValueError(self._why)


def _delimiter(
    problems: Problems,
    path: str,
    raw: Mapping[str, Any],
    literal: str,
    pattern: str,
    what: str,
    field: str,
    order: int,
) -> Delimiter | None:
    if literal in raw and pattern in raw:
        problems.add(path, f"has both '{literal}' and '{pattern}'; keep one")
        return None
    if literal in raw:
        value = raw[literal]
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list):
            problems.add(f"{path}.{literal}", f"expected a string or a list of strings, found {kind(value)}")
        elif not texts or not all(isinstance(text, str) and text for text in cast("list[Any]", texts)):
            problems.add(f"{path}.{literal}", f"expected strings, at least one and none empty, found {short(value)}")
        else:
            return Delimiter.literal(what, field, cast("list[str]", texts), order)
    elif pattern in raw:
        source = raw[pattern]
        if not isinstance(source, str):
            problems.add(f"{path}.{pattern}", f"expected a regular expression as a string, found {kind(source)}")
            return None
        try:
            return Delimiter.regex(what, field, source, order)
        except RecursionError:
            problems.add(f"{path}.{pattern}", "its groups are nested too deeply for the regex module")
        except regex.error as error:
            caret = " " * int(getattr(error, "pos", None) or 0) + "^"
            why = getattr(error, "msg", str(error))
            problems.add(f"{path}.{pattern}", f"invalid regular expression, {why}:\n    {source}\n    {caret}")
    return None


# -------------------------------------------------------------------------------------------------- putting it together


def _assemble(
    spec: Mapping[str, Any], defaults: dict[str, Any], drafts: Sequence[_Draft], anchor: Delimiter
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


def _share_wrappers(drafts: Iterable[_Draft]) -> tuple[dict[str, str], dict[str, tuple[Delimiter, Delimiter]]]:
    """One wrapper for all syntaxes of a field that say the same. Returns each field's wrapper, and the wrappers by the
    id of the first field in them."""
    ids: dict[str, str] = {}
    wrapping: dict[str, tuple[Delimiter, Delimiter]] = {}
    for draft in drafts:
        if draft.wrapper is not None:
            patterns = [delimiter.pattern for delimiter in draft.wrapper]
            same = (id for id, pair in wrapping.items() if [delimiter.pattern for delimiter in pair] == patterns)
            id = ids[draft.values["id"]] = next(same, draft.values["id"])
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


def _lexer(draft: _Draft, behind: Sequence[Delimiter], *, plain: bool) -> Callable[[], Lexer] | None:
    values, content = draft.values, cast("ContentParser", draft.values["content"])
    try:
        return content.lexer(
            values["id"], draft.close, plain=plain, ends=values["ends_with_value"], open=draft.open, behind=behind
        )
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
