"""Read a response template: check all of it, then compile it into tables that never change.

The language is that of transformers (`transformers.utils.chat_parsing`, manual page "Response Parsing"): every
template that loads there loads here, every one that it refuses is refused, with all problems at once.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import regex

from respzoo.content import NAMES, ContentParser, Lexer, make
from respzoo.delimiters import WEAK, Delimiter, WatchList
from respzoo.errors import Problem, TemplateError

__all__ = [
    "CALLS",
    "CONTENT",
    "REASONING",
    "REASONING_NAMES",
    "CompiledTemplate",
    "Field",
    "apply_transform",
    "compile_spec",
]

REASONING = "reasoning_content"
CONTENT = "content"
CALLS = "tool_calls"
REASONING_NAMES = frozenset({REASONING, "thinking", "reasoning"})
"""What templates call the field of reasoning."""

_TEMPLATE_KEYS = frozenset({"version", "defaults", "fields", "start_anchor", "start_anchor_pattern"})
_FIELD_KEYS = frozenset({"open", "open_pattern", "close", "close_pattern", "content", "content_args"}) | frozenset(
    {"repeats", "join", "optional", "transform", "transform_each"}
)
_PLACEHOLDER = regex.compile(r"\{(\w+(?:\.\w+)*)\}")


@dataclass(frozen=True)
class Field:
    """One field of a message, compiled."""

    name: str
    key: str
    """Its name in the message: the names of reasoning are one."""
    open: Delimiter | None
    close: Delimiter | None
    content: ContentParser
    repeats: bool
    join: str | None
    optional: bool
    transform: Any
    transform_each: bool
    watch: WatchList
    """What ends a region of this field, where its content has no lexer."""
    lexer: Callable[[], Lexer] | None

    @property
    def flat(self) -> bool:
        """Whether the value is the region's own text, so that it can be shown as it comes."""
        return self.content.name == "text" and self.transform is None

    @property
    def strip(self) -> bool:
        return bool(self.content.args.get("strip", True))


@dataclass(frozen=True)
class CompiledTemplate:
    """A response template, ready to run. Shared by all streams; nothing in it changes."""

    spec: Mapping[str, Any]
    defaults: Mapping[str, Any]
    fields: Mapping[str, Field]
    implicit: Field | None
    anchor: regex.Pattern[str]
    anchor_literals: tuple[str, ...] | None
    outside: WatchList
    """What matters outside of explicit regions: every opener, and the implicit field's closer."""
    keeps_text: bool
    """Whether a pattern may look at text before it, so that all of it is kept."""

    def after_anchor(self, prompt: str) -> str:
        """The part of a prompt that the template has written of the assistant's message: what follows the last anchor.
        Empty when there is no anchor in it."""
        if self.anchor_literals is not None and len(self.anchor_literals) == 1:
            _, found, after = prompt.rpartition(self.anchor_literals[0])
            return after if found else ""
        end = None
        for match in self.anchor.finditer(prompt):
            end = match.end()
        return "" if end is None else prompt[end:]


class _Problems:
    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, path: str, message: str) -> None:
        self.found.append(Problem(path, message))


def compile_spec(spec: Any, *, name: str = "") -> CompiledTemplate:
    """Check and compile a response template's plain dict.

    Raises:
        TemplateError: with every problem and its place.
    """
    problems = _Problems()
    if not isinstance(spec, Mapping):
        raise TemplateError([Problem("$", f"expected a dict, found {_kind(spec)}")], name=name)
    spec = cast("Mapping[str, Any]", spec)
    if spec.get("version", 1) != 1:
        problems.add("$.version", f"expected 1, the only version there is, found {spec['version']!r}")
    for key in sorted(set(spec) - _TEMPLATE_KEYS, key=str):
        problems.add(f"$.{key}", f"unknown key; a template has {_listed(_TEMPLATE_KEYS)}")
    defaults = spec.get("defaults", {})
    if not isinstance(defaults, dict):
        problems.add("$.defaults", f"expected a dict, found {_kind(defaults)}")
    anchor = _delimiter(problems, "$", spec, "start_anchor", "start_anchor_pattern", "anchor", "", 0)
    if anchor is None and "start_anchor" not in spec and "start_anchor_pattern" not in spec:
        problems.add("$", "expected 'start_anchor' or 'start_anchor_pattern': where in a prompt the answer begins")
    raw_fields = spec.get("fields", {})
    drafts: list[dict[str, Any]] = []
    if not isinstance(raw_fields, dict) or not raw_fields:
        found = _kind(raw_fields) if not isinstance(raw_fields, dict) else "an empty one"
        problems.add("$.fields", f"expected a dict with at least one field, found {found}")
    else:
        drafts = [_field(problems, key, raw) for key, raw in cast("dict[str, Any]", raw_fields).items()]
        implicit = [key for key, raw in cast("dict[str, Any]", raw_fields).items() if _is_implicit(raw)]
        if len(implicit) > 1:
            problems.add(
                "$.fields",
                f"only one field may go without 'open' or 'open_pattern' (it takes what no other does), "
                f"found {_listed(implicit, sort=False)}",
            )
    if problems.found or anchor is None:
        raise TemplateError(problems.found, name=name)
    return _assemble(cast("Mapping[str, Any]", spec), cast("dict[str, Any]", defaults), drafts, anchor)


def _assemble(
    spec: Mapping[str, Any], defaults: dict[str, Any], drafts: list[dict[str, Any]], anchor: Delimiter
) -> CompiledTemplate:
    delimiters = [draft[side] for draft in drafts for side in ("open", "close") if draft[side] is not None]
    keeps_text = any(delimiter.looks_behind for delimiter in delimiters)
    plain = not keeps_text
    fields: dict[str, Field] = {}
    for draft in drafts:
        close: Delimiter | None = draft["close"]
        content: ContentParser = draft["content"]
        lexer = None if draft["open"] is None else _lexer(content, draft["name"], close, plain=plain)
        watch = WatchList([] if close is None else [close], plain=plain)
        fields[draft["name"]] = Field(**draft, watch=watch, lexer=lexer)
    implicit = next((field for field in fields.values() if field.open is None), None)
    outside = [field.open for field in fields.values() if field.open is not None]
    if implicit is None:
        outside += _sink_delimiters(fields.values(), anchor)
    elif implicit.close is not None:
        outside.append(implicit.close)
    return CompiledTemplate(
        spec=spec,
        defaults=copy.deepcopy(defaults),
        fields=fields,
        implicit=implicit,
        anchor=anchor.pattern,
        anchor_literals=anchor.literals,
        outside=WatchList(outside, plain=plain),
        keeps_text=keeps_text,
    )


def _lexer(content: ContentParser, field: str, close: Delimiter | None, *, plain: bool) -> Callable[[], Lexer] | None:
    try:
        return content.lexer(field, close, plain=plain)
    except Exception:  # noqa: BLE001
        return None  # content_args of a shape that `parse` will refuse, region by region, as in the reference


def _sink_delimiters(fields: Iterable[Field], anchor: Delimiter) -> list[Delimiter]:
    """In a template without an implicit field: what is seen between regions and is nobody's text.

    `anchor`: the start of a turn, written again between messages; `closer`: a closer with nothing to close; `marker`:
    another marker of the template's own out of its place, so that what follows is broken markup, not an answer.
    """
    closers: dict[str, None] = {}
    markers: dict[str, None] = {}
    for field in fields:
        for delimiter in (field.open, field.close):
            if delimiter is None:
                continue
            written = delimiter.markers()
            markers.update(dict.fromkeys(written))
            if delimiter is field.close:
                closers.update(dict.fromkeys(delimiter.literals or (written if len(written) == 1 else ())))
    markers = {text: None for text in markers if text not in closers}
    result = [
        Delimiter.literal(kind, "", list(texts), order=WEAK)
        for kind, texts in (("marker", markers), ("closer", closers))
        if texts
    ]
    if anchor.literals is not None:
        result.append(Delimiter.literal("anchor", "", anchor.literals, order=WEAK))
    return result


def _is_implicit(raw: Any) -> bool:
    return isinstance(raw, dict) and "open" not in raw and "open_pattern" not in raw


def _field(problems: _Problems, name: str, raw: Any) -> dict[str, Any]:
    path = f"$.fields.{name}"
    if not isinstance(raw, dict):
        problems.add(path, f"expected a dict, found {_kind(raw)}")
        return {}
    raw = cast("dict[str, Any]", raw)
    for key in sorted(set(raw) - _FIELD_KEYS, key=str):
        problems.add(f"{path}.{key}", f"unknown key; a field has {_listed(_FIELD_KEYS)}")
    opener = _delimiter(problems, path, raw, "open", "open_pattern", "open", name, 0)
    closer = _delimiter(problems, path, raw, "close", "close_pattern", "close", name, 1)
    content = _content(problems, path, raw)
    join = raw.get("join")
    if join is not None and not isinstance(join, str):
        problems.add(f"{path}.join", f"expected a string, found {_kind(join)}")
    elif join is not None and not raw.get("repeats", False):
        problems.add(f"{path}.join", "needs 'repeats': true; it joins the repeats")
    transform, each = raw.get("transform"), raw.get("transform_each", False)
    if not isinstance(each, bool):
        problems.add(f"{path}.transform_each", f"expected true or false, found {_kind(each)}")
    elif each and transform is None:
        problems.add(f"{path}.transform_each", "needs a 'transform' to apply to each element")
    if transform is not None:
        _check_transform(problems, f"{path}.transform", transform)
    else:
        groups = {group for delimiter in (opener, closer) if delimiter for group in delimiter.pattern.groupindex}
        if groups:
            problems.add(
                path,
                f"named group(s) {_listed(groups)} in its patterns go nowhere without a 'transform'; "
                "add one that uses them, or make the groups unnamed",
            )
    return {
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
    }


def _content(problems: _Problems, path: str, raw: Mapping[str, Any]) -> ContentParser | None:
    content = raw.get("content", "text")
    if not isinstance(content, str) or content not in NAMES:
        problems.add(f"{path}.content", f"expected one of {_listed(NAMES, sort=False)}, found {content!r}")
        return None
    args = raw.get("content_args")
    try:
        return make(content, cast("Mapping[str, Any]", args) if isinstance(args, Mapping) else {})
    except Exception as error:  # noqa: BLE001  arguments of any shape
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
    problems: _Problems,
    path: str,
    raw: Mapping[str, Any],
    literal: str,
    pattern: str,
    kind: str,
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
            problems.add(f"{path}.{literal}", f"expected a string or a list of strings, found {_kind(value)}")
        elif not texts or not all(isinstance(text, str) and text for text in cast("list[Any]", texts)):
            problems.add(f"{path}.{literal}", f"expected strings, at least one and none empty, found {_short(value)}")
        else:
            return Delimiter.literal(kind, field, cast("list[str]", texts), order)
    elif pattern in raw:
        source = raw[pattern]
        if not isinstance(source, str):
            problems.add(f"{path}.{pattern}", f"expected a regular expression as a string, found {_kind(source)}")
            return None
        try:
            return Delimiter.regex(kind, field, source, order)
        except regex.error as error:
            caret = " " * int(getattr(error, "pos", None) or 0) + "^"
            why = getattr(error, "msg", str(error))
            problems.add(f"{path}.{pattern}", f"invalid regular expression, {why}:\n    {source}\n    {caret}")
    return None


def _check_transform(problems: _Problems, path: str, transform: Any) -> None:
    if isinstance(transform, dict):
        for key, value in cast("dict[str, Any]", transform).items():
            _check_transform(problems, f"{path}.{key}", value)
    elif isinstance(transform, list):
        for index, value in enumerate(cast("list[Any]", transform)):
            _check_transform(problems, f"{path}[{index}]", value)
    elif isinstance(transform, str) and _PLACEHOLDER.search(transform) and not _PLACEHOLDER.fullmatch(transform):
        problems.add(path, f"{transform!r} mixes a {{placeholder}} with other text; it must stand alone")


def apply_transform(transform: Any, scope: Mapping[str, Any]) -> Any:
    """Fill a transform: a string that is wholly `{name}` or `{name.key}` becomes what it names in `scope`.

    Raises:
        ValueError: a name or key that is not there.
    """
    if isinstance(transform, dict):
        return {key: apply_transform(value, scope) for key, value in cast("dict[str, Any]", transform).items()}
    if isinstance(transform, list):
        return [apply_transform(value, scope) for value in cast("list[Any]", transform)]
    match = _PLACEHOLDER.fullmatch(transform) if isinstance(transform, str) else None
    if match is None:
        return transform
    value: Any = scope
    for key in match[1].split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise ValueError(f"the transform's {match[0]} finds no {key!r} in what the model wrote")
        value = cast("Mapping[str, Any]", value)[key]
    return value


def _kind(value: Any) -> str:
    return "null" if value is None else f"{type(value).__name__} {_short(value)}"


def _short(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _listed(names: Sequence[str] | frozenset[str] | set[str], *, sort: bool = True) -> str:
    return ", ".join(repr(name) for name in (sorted(names) if sort else names))
