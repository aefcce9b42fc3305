"""A template in the words of another reader of the language.

Readers differ in what they call the field of reasoning and in which keys they take, and none but this one knows the
extensions of `"dialect": "respzoo"` (docs/language.md). An extension is said in plain keys where there is a near form;
what that form does not read is a *loss*, and it is named. Where the other reader would read something *else* than was
written, no form is near enough, and the export is refused, with the key and the reason.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import regex

from respzoo.errors import Problem, RespzooError, TemplateError
from respzoo.fields import CALLS, CONTENT, REASONING, REASONING_NAMES
from respzoo.nearest import Nearest, each, pattern_of
from respzoo.spec import compile_spec

__all__ = ["DIALECTS", "Dialect", "Export", "ExportError", "export"]

Dialect = Literal["transformers", "vllm-hf", "sglang"]
DIALECTS: tuple[Dialect, ...] = ("transformers", "vllm-hf", "sglang")

_SERVERS = frozenset({"vllm-hf", "sglang"})
_PLAIN_ARGS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"strip"}),
    "int": frozenset({"strip"}),
    "float": frozenset({"strip"}),
    "bool": frozenset({"strip"}),
    "json": frozenset({"unquoted_keys", "string_delims", "allow_non_json", "strip"}),
    "xml-inline": frozenset({"tag_pattern", "value_parser", "merge_duplicates"}),
    "kv-lines": frozenset({"line_sep", "kv_sep", "strip", "value_parser"}),
    "python-call-list": frozenset(),
}
_LOST_ARGS = {
    ("text", "omit_pattern"): "what it leaves out stays in the text",
    ("xml-inline", "types"): "types that the model writes are not read; the tools' schemas alone type the values",
    ("xml-inline", "unescape_keys"): "entities in keys stay as they are written",
}
_REFUSED_ARGS = {
    ("json", "sequence"): "only one JSON value a region can be read there",
    ("python-call-list", "sequence"): "only a list in brackets can be read there",
    ("python-call-list", "raw_strings"): "strings would be read with escapes that the model does not write",
}
_PATHS = regex.compile(r"\{(\w+(?:\.\w+)*(?:\|\w+(?:\.\w+)*)*)(\?)?\}")


class ExportError(RespzooError, ValueError):
    """A template that a reader cannot be told. `problems` names each key and why."""

    def __init__(self, problems: list[Problem], *, name: str, dialect: str) -> None:
        self.problems = tuple(problems)
        what = f"template {name!r}" if name else "the template"
        super().__init__("\n  ".join([f"{what} cannot be exported to {dialect}:", *map(str, problems)]))


@dataclass(frozen=True)
class Export:
    """A template for another reader, and what that reader will not read of it."""

    spec: dict[str, Any]
    losses: tuple[Problem, ...]


def export(spec: Mapping[str, Any], dialect: Dialect, *, name: str = "") -> Export:
    """Say a template in the words of another reader: `transformers`, vLLM's `hf` parser, or SGLang's.

    Raises:
        ExportError: there is no near form of something in it.
        TemplateError: it is no template to begin with.
        ValueError: no such dialect.
    """
    if dialect not in DIALECTS:
        raise ValueError(f"dialect: expected one of {', '.join(DIALECTS)}, found {dialect!r}")
    compile_spec(spec, name=name)
    work = _Exporter(copy.deepcopy(dict(spec)), dialect)
    result = work.run()
    if work.refused:
        raise ExportError(work.refused, name=name, dialect=dialect)
    try:
        compile_spec(result)
    except TemplateError as error:  # a key of the dialect that nobody here has been told of
        raise ExportError(list(error.problems), name=name, dialect=dialect) from error
    return Export(result, tuple(work.losses))


class _Exporter(Nearest):
    def __init__(self, spec: dict[str, Any], dialect: Dialect) -> None:
        super().__init__(dialect, extended="dialect" in spec)
        self.spec = spec
        self.serves = dialect in _SERVERS
        self.reasoning = "thinking" if self.serves else REASONING

    def run(self) -> dict[str, Any]:
        raw: dict[str, Any] = self.spec["fields"]
        for name, value in raw.items():
            for path, piece in each(name, value):
                self.opener(path, piece)
        syntaxes = {name: list(each(name, value)) for name, value in raw.items()}
        merged = {name: self.merge(f"$.fields.{name}", pieces) for name, pieces in syntaxes.items()}
        for name, field in merged.items():
            path = f"$.fields.{name}"
            self._content(path, field)
            if "transform" in field:
                field["transform"] = self._transform(f"{path}.transform", field["transform"])
            if not self.serves and field.get("transform_each") and field.pop("repeats", False):
                self.lose(f"{path}.repeats", "of two regions of calls the later counts")  # or each call is in a list
            if field.get("transform_each") == "pairs":
                self.refuse(f"{path}.transform_each", "names that are keys cannot be read there")
        self.delimiters(merged, syntaxes)
        fields: dict[str, Any] = {}
        for name, field in merged.items():
            key = self.reasoning if name in REASONING_NAMES else name
            if key in fields:
                self.refuse(f"$.fields.{name}", f"two fields of reasoning; {self.dialect} has one")
            if self.serves:
                self._serve(f"$.fields.{name}", key, field)
            fields[key] = field
        return {**self._top(), "fields": fields}

    def _top(self) -> dict[str, Any]:
        top = {key: value for key, value in self.spec.items() if key not in ("dialect", "fields")}
        if "defaults" in top:
            defaults = {
                self.reasoning if key in REASONING_NAMES else key: top["defaults"][key] for key in top["defaults"]
            }
            for key in [key for key in defaults if self.serves and key != "role"]:
                del defaults[key]
                self.lose(f"$.defaults.{key}", "a server's message has no defaults but its role")
            top["defaults"] = defaults
        return top

    # -------------------------------------------------------------------------------------------- content, transforms

    def _content(self, path: str, field: dict[str, Any]) -> None:
        content = field.get("content", "text")
        args = field.get("content_args")
        if isinstance(args, dict):
            self._args(f"{path}.content_args", content, cast("dict[str, Any]", args))
            if not args:
                del field["content_args"]
        self._parser(f"{path}.content", content)

    def _parser(self, path: str, content: str) -> None:
        if content not in _PLAIN_ARGS or (self.serves and content == "python-call-list"):
            self.refuse(path, f"{self.dialect} has no content parser {content!r}")

    def _args(self, path: str, content: str, args: dict[str, Any]) -> None:
        if args.get("unquoted_keys") == "loose":
            args["unquoted_keys"] = True
            self.lose(f"{path}.unquoted_keys", "bare keys that are no plain words make the region malformed")
        for key in [key for key in args if key not in _PLAIN_ARGS.get(content, args)]:
            value = args.pop(key)
            if not value:
                continue
            if (content, key) in _LOST_ARGS:
                self.lose(f"{path}.{key}", _LOST_ARGS[content, key])
            else:
                self.refuse(f"{path}.{key}", _REFUSED_ARGS.get((content, key), f"{self.dialect} has no such argument"))
        inner = args.get("value_parser")
        if isinstance(inner, dict):
            inner = cast("dict[str, Any]", inner)
            self._parser(f"{path}.value_parser.name", inner.get("name", "text"))
            self._args(f"{path}.value_parser.args", inner.get("name", "text"), inner.get("args", {}))

    def _transform(self, path: str, transform: Any) -> Any:
        if isinstance(transform, list):
            items = cast("list[Any]", transform)
            return [self._transform(f"{path}[{number}]", item) for number, item in enumerate(items)]
        if isinstance(transform, dict):
            told: dict[str, Any] = {}
            for key, value in cast("dict[str, Any]", transform).items():
                if isinstance(value, str) and value.endswith("?}") and key not in ("name", "arguments", "function"):
                    self.lose(f"{path}.{key}", "a key that may be missing cannot be said; it is left out")
                else:
                    told[key] = self._transform(f"{path}.{key}", value)
            return told
        match = _PATHS.fullmatch(transform) if isinstance(transform, str) else None
        if match is None:
            return transform
        first, *others = match[1].split("|")
        if match[2]:
            self.lose(path, f"a call without {first} is malformed there")
        if others:
            self.lose(path, f"a call that writes {' or '.join(others)} instead of {first} is malformed there")
        return f"{{{first}}}"

    # --------------------------------------------------------------------------------------------------------- servers

    def _serve(self, path: str, key: str, field: dict[str, Any]) -> None:
        """What vLLM's and SGLang's adapters ask of the three fields that they know."""
        if key not in (self.reasoning, CONTENT, CALLS):
            self.refuse(path, f"{self.dialect} knows the fields {self.reasoning}, {CONTENT} and {CALLS} only")
            return
        if key == CALLS:
            if self.dialect == "sglang" and pattern_of(field, "open") is None:
                self.refuse(path, "sglang needs an opener for calls")
            return
        if field.get("content", "text") != "text" or "transform" in field:
            self.refuse(path, f"{self.dialect} streams this field as it comes: no content but text, no transform")
        if join := field.pop("join", None):
            self.lose(f"{path}.join", f"its pieces follow one another without {join!r}")
        field.pop("repeats", None)  # they stream the pieces, and take reasoning that repeats for one that never ends
