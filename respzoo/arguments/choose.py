"""Which writer follows a region."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from respzoo.arguments.call import Call, Writer
from respzoo.arguments.json_calls import JsonCalls, Shape
from respzoo.arguments.line_calls import LineCalls
from respzoo.arguments.python_calls import PythonCalls, python_syntax
from respzoo.arguments.route import Route, Source, route_of
from respzoo.arguments.tag_calls import TagCalls
from respzoo.arguments.text_calls import TextCall
from respzoo.arguments.tokens import Syntax
from respzoo.arguments.tree_calls import TreeCalls, tree_watch
from respzoo.content import Json
from respzoo.content.kv_lines import KvLines
from respzoo.content.python_call_list import PythonCallList
from respzoo.content.xml_inline import XmlInline
from respzoo.content.xml_tree import XmlTree
from respzoo.fields import Field
from respzoo.schema import Tools

__all__ = ["writer_of"]

_LISTED = Route(Source(paths=(("name",),)), Source(), Source(paths=(("arguments",),)))


def writer_of(field: Field, captures: Mapping[str, str], tools: Tools) -> Writer:
    """The writer of a region of calls; one that says nothing where nothing is certain before the end."""
    known: dict[str, Any] = vars(field)
    if (made := known.get("_writer")) is None:
        made = known["_writer"] = _maker(field)
    return made(captures, tools)


def _maker(field: Field) -> Callable[[Mapping[str, str], Tools], Writer]:
    """What makes the writers of a field's regions of what their openers caught."""
    route = route_of(field)
    if route is None:
        return _silent
    content = field.content
    if isinstance(content, Json) and not route.wrapped:
        delims: list[Any] = content.args.get("string_delims") or []
        shape = Shape(
            route,
            Syntax(
                verbatim=tuple((pair[0], pair[1]) for pair in delims),
                bare_keys=bool(content.args.get("unquoted_keys")),
            ),
            each=bool(field.transform_each),
            pairs=field.transform_each == "pairs",
            sequence=bool(content.extension("sequence")),
        )
        return lambda captures, tools: JsonCalls(shape, captures)
    if isinstance(content, PythonCallList):
        syntax = python_syntax(raw_strings=bool(content.extension("raw_strings")), as_python=content.extended)
        as_listed = field.transform_each is True and route == _LISTED
        return (lambda captures, tools: PythonCalls(syntax)) if as_listed else _silent
    if route.arguments.paths != ((),):
        return _silent
    return lambda captures, tools: _of_one(field, route, captures, tools)


def _silent(captures: Mapping[str, str], tools: Tools) -> Writer:
    return Writer()


def _of_one(field: Field, route: Route, captures: Mapping[str, str], tools: Tools) -> Writer:
    """The writer of a region that is one call, whose name its opener has caught."""
    content = field.content
    name = route.name.caught(captures)
    if not name:
        return Writer()
    call = Call(name, route.id.caught(captures))
    if content.name == "text":
        return TextCall(call, route.wrapped, strip=field.strip) if route.wrapped else Writer()
    if route.wrapped:
        return Writer()
    if isinstance(content, KvLines):
        return LineCalls(call, content, tools) if content.line_sep and content.kv_sep else Writer()
    if isinstance(content, XmlInline) and field.close is not None and not content.args.get("merge_duplicates"):
        return TagCalls(call, content, tools, field.close, field.behind)
    if isinstance(content, XmlTree) and (watch := tree_watch(content.tags.pattern)) is not None:
        return TreeCalls(call, content, tools, watch)
    return Writer()
