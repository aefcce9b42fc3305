"""Read a response template: check all of it, then compile it into tables that never change.

The language is that of transformers (`transformers.utils.chat_parsing`, manual page "Response Parsing"): every
template that loads there loads here, every one that it refuses is refused, with all problems at once. A template that
says `"dialect": "respzoo"` may use the extensions of docs/language.md besides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import regex

from respzoo.assembly import FieldSpec, assemble
from respzoo.content import EXTENDED_NAMES, NAMES, ContentParser, make
from respzoo.delimiters import Delimiter
from respzoo.errors import Problem, TemplateError
from respzoo.fields import GIVEN_BACK, REASONING, REASONING_NAMES, CompiledTemplate
from respzoo.problems import Problems, kind, listed, short
from respzoo.transform import check_transform

__all__ = ["DIALECT", "GIVEN_BACK", "compile_spec"]

DIALECT = "respzoo"

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
    drafts: list[FieldSpec] = []
    if not isinstance(raw_fields, dict) or not raw_fields:
        found = kind(raw_fields) if not isinstance(raw_fields, dict) else "an empty one"
        problems.add("$.fields", f"expected a dict with at least one field, found {found}")
    else:
        for key, raw in cast("dict[str, Any]", raw_fields).items():
            drafts += _field(problems, key, raw, extended=extended)
        _check_together(problems, drafts)
    if problems.found or anchor is None:
        raise TemplateError(problems.found, name=name)
    return assemble(spec, cast("dict[str, Any]", defaults), drafts, anchor)


# ---------------------------------------------------------------------------------------------------------- reading it


def _field(problems: Problems, name: str, raw: Any, *, extended: bool) -> list[FieldSpec]:
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


def _syntax(problems: Problems, path: str, name: str, id: str, raw: Any, *, extended: bool) -> list[FieldSpec]:
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
    draft = FieldSpec(
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


def _extensions(problems: Problems, draft: FieldSpec, raw: Mapping[str, Any]) -> None:
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


def _wrapper(problems: Problems, path: str, draft: FieldSpec, raw: Any) -> tuple[Delimiter, Delimiter] | None:
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


def _check_together(problems: Problems, drafts: Sequence[FieldSpec]) -> None:
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
