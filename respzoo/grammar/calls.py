"""One syntax of a template's calls as formats: its regions, for the tools that may be called."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any

from respzoo.content.python_call_list import NAME
from respzoo.delimiters import Delimiter
from respzoo.fields import Field, Wrapper
from respzoo.grammar.ebnf import GAP, Rules, choice, fill, may_be_empty, quote, series, spell
from respzoo.grammar.formats import Format, either, grammar, json_schema, sequence, star
from respzoo.grammar.notations import WORD, json_between_marks, python
from respzoo.grammar.openers import Opener, openers_of
from respzoo.grammar.schemas import Values, alternatives, arranged, constants, objects_of, types_of
from respzoo.grammar.shapes import Shape, Tool, rebased, shape_of
from respzoo.grammar.tags import InlineTags, TreeTags
from respzoo.grammar.texts import Texts
from respzoo.patterns import Node, Series, Unsupported, read

__all__ = ["Syntax"]

_RAW_END = r"'[ \t\n\r]*(?:,[ \t\n\r]*[A-Za-z_][A-Za-z0-9_.\-]*[ \t\n\r]*=|\))"


class Syntax:
    """How calls are written in one of a template's syntaxes.

    Raises:
        Unsupported: it cannot be said in a grammar.
    """

    def __init__(self, field: Field, stops: Collection[str]) -> None:
        if field.open is None:
            raise Unsupported("regions without an opener")
        self.field = field
        self.openers = openers_of(field.open)
        self.shape: Shape = shape_of(field, [*field.open.pattern.groupindex, "content"])
        self._stops = stops
        args = field.content.args
        self._marks: Any = args.get("string_delims") or []
        self._kind = field.content.name
        if self._kind == "json" and (self._marks or args.get("unquoted_keys")):
            self._kind = "marked json"
        if self._kind not in ("json", "marked json", "python-call-list", "xml-inline", "xml-tree"):
            raise Unsupported(f"arguments in {field.content.name!r}")
        if self._kind == "python-call-list" and not self.shape.listed:
            raise Unsupported("calls in Python that are no list")
        if self._kind != "python-call-list" and self._kind != "json" and not self.shape.in_opener:
            raise Unsupported("a name that stands among the arguments")
        if self.shape.in_opener and not any(opener.names for opener in self.openers):
            raise Unsupported("an opener without the tool's name")

    @property
    def sequence(self) -> bool:
        """Whether calls follow one another in a region without brackets around them."""
        return bool(self.field.extended and self.field.content.args.get("sequence"))

    @cached_property
    def closer(self) -> str:
        """The region's closer. It may be missing where the value ends the region, and where it is a token at which the
        engine stops, whose text never comes."""
        delimiter = self.field.close
        if delimiter is None:
            return '""'
        written = spell(delimiter.tree())
        return f"({written})?" if self.field.ends_with_value or self._stops_at(delimiter) else written

    def end_of(self, wrapper: Wrapper) -> Format:
        """The closer of a wrapper, which may be missing where the engine leaves it out."""
        written = spell(wrapper.close.tree())
        return grammar(f"root ::= {series([GAP, f'({written})?' if self._stops_at(wrapper.close) else written])}")

    def _stops_at(self, closer: Delimiter) -> bool:
        return any(text.strip() in self._stops for text in closer.literals or closer.markers())

    def region(self, opener: Opener, tools: Sequence[Tool], *, single: bool) -> Format:
        """What follows an opener's head: the rest of the opener, one call (or with lists, if not `single`, several),
        and the closer."""
        match self._kind:
            case "json":
                return self._json(opener, tools, single=single)
            case "python-call-list":
                return self._python(opener, tools, single=single)
            case _:
                return self._arguments(opener, tools)

    def sign(self, opener: Opener, tools: Sequence[Tool]) -> Node:
        """The pattern that tells an opener without a head from text: the tools' names, or the first bracket of the
        value."""
        given = () if opener.names else opener.given.items[:1]
        return fill(Series((*opener.rest.items, *given)), {"name": [tool.name for tool in tools]})

    def beginning(self, opener: Opener, tools: Sequence[Tool]) -> Node:
        """All that is seen of a call before it is one."""
        items = (*opener.rest.items, *opener.given.items)
        start = next((at for at, item in enumerate(items) if not may_be_empty(item)), len(items))
        return fill(Series(items[start:]), {"name": [tool.name for tool in tools]})

    def behind_sign(self, opener: Opener, tools: Sequence[Tool], *, single: bool) -> Format:
        """What follows a sign."""
        if opener.names:
            return self.region(opener.done(), tools, single=single)
        if self._kind != "json" or not self.shape.listed or spell(opener.given.items[0]) != '"["':
            raise Unsupported("calls that begin as text does")
        return sequence([grammar(f"root ::= {GAP}"), self._open_list(tools, single=single), self._end()])

    # one call a region, or a list of them, as JSON

    def _json(self, opener: Opener, tools: Sequence[Tool], *, single: bool) -> Format:
        if self.shape.listed:
            begin = _piece(fill(opener.rest, {}), opener)
            return sequence([begin, self._json_list(tools, single=single, bare=opener.looks_at_keys), self._end()])
        if self.shape.in_opener:
            calls = [
                sequence([_piece(opener.named(tool.name), opener), json_schema(dict(tool.schema)), self._end()])
                for tool in tools
            ]
            return either(calls)
        values = [json_schema(schema) for tool in tools for schema in self._objects(tool, bare=opener.looks_at_keys)]
        return sequence([_piece(fill(opener.rest, {}), opener), either(values), self._end()])

    def _objects(self, tool: Tool, *, bare: bool) -> list[dict[str, Any]]:
        """The schemas of one call's object."""
        parameters = rebased(dict(tool.schema), "#/$defs/parameters")
        written = self.shape.schemas(tool, {"$ref": "#/$defs/parameters"}, bare=bare)
        return [{**schema, "$defs": {"parameters": parameters}} for schema in written]

    def _open_list(self, tools: Sequence[Tool], *, single: bool) -> Format:
        """A list of calls behind its opening bracket."""
        definitions, item = self._items(tools, bare=True)
        one = json_schema({**item, "$defs": definitions})
        more = [] if single else [star(sequence([grammar(f'root ::= {GAP} "," {GAP}'), one]))]
        return sequence([one, *more, grammar(f'root ::= {GAP} "]"')])

    def _json_list(self, tools: Sequence[Tool], *, single: bool, bare: bool) -> Format:
        definitions, item = self._items(tools, bare=bare)
        if self.sequence:
            one = json_schema({**item, "$defs": definitions})
            between = grammar(f"root ::= [ \\t]{{0,4}} [,;\\r\\n] {GAP}")
            return one if single else sequence([one, star(sequence([between, one]))])
        schema: dict[str, Any] = {"type": "array", "items": item, "minItems": 1, "$defs": definitions}
        return json_schema({**schema, "maxItems": 1} if single else schema)

    def _items(self, tools: Sequence[Tool], *, bare: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """The definitions and the schema of a list's item."""
        definitions: dict[str, Any] = {}
        items: list[dict[str, Any]] = []
        for number, tool in enumerate(tools):
            place = f"parameters{number}"
            definitions[place] = rebased(dict(tool.schema), f"#/$defs/{place}")
            items += self.shape.schemas(tool, {"$ref": f"#/$defs/{place}"}, bare=bare)
        return definitions, items[0] if len(items) == 1 else {"anyOf": items}

    def _end(self) -> Format:
        return grammar(f"root ::= {series([GAP, self.closer])}")

    # arguments in a notation of their own

    def _arguments(self, opener: Opener, tools: Sequence[Tool]) -> Format:
        rules = Rules()
        body: Callable[[Tool], str]
        match self._kind:
            case "xml-inline":
                body = InlineTags(rules, self.field).arguments
            case "xml-tree":
                body = TreeTags(rules, self.field).arguments
            case _:
                body = self._marked(rules, opener)
        calls = [series([spell(opener.named(tool.name)), body(tool), self.closer]) for tool in tools]
        return grammar(rules.text(choice(calls)))

    def _marked(self, rules: Rules, opener: Opener) -> Callable[[Tool], str]:
        """What writes a call's arguments as JSON with marks of the model's own."""
        loose = self.field.content.args.get("unquoted_keys") == "loose"
        notation = json_between_marks(rules, self._marks or [['"', '"']], loose=loose)
        before = _before_value(opener)

        def body(tool: Tool) -> str:
            values, root = Values(rules, notation, tool.schema), tool.schema
            return series([before, choice(values.object(part) for part in objects_of(root)), GAP])

        return body

    def _python(self, opener: Opener, tools: Sequence[Tool], *, single: bool) -> Format:
        rules = Rules()
        write = _PythonArguments(rules, raw=bool(self.field.extended and self.field.content.args.get("raw_strings")))
        calls = [series([quote(f"{_as_name(tool.name)}("), write.all(tool), '")"']) for tool in tools]
        call = rules.add(choice(calls), "call")
        between = f"[ \\t]{{0,4}} [,;\\n] {GAP}" if self.sequence else f'"," {GAP}'
        listed = call if single else f"{call} ({between} {call})*"
        if not self.sequence:
            listed = series(['"["', GAP, listed, GAP, '"]"'])
        return grammar(rules.text(series([spell(fill(opener.rest, {})), GAP, listed, GAP, self.closer])))


class _PythonArguments:
    """The keyword arguments of Python calls. `raw`: a string in single quotes is as it stands."""

    def __init__(self, rules: Rules, *, raw: bool) -> None:
        self._rules = rules
        self._notation = python(rules)
        self._raw = f'"\'" {Texts([read(_RAW_END)]).without(rules)} "\'"' if raw else ""

    def all(self, tool: Tool) -> str:
        values = Values(self._rules, self._notation, tool.schema)
        bodies: list[str] = []
        for properties in objects_of(tool.schema):
            pairs = [
                (series([quote(f"{_as_name(key)}="), self._value(values, schema, tool)]), needed)
                for key, schema, needed in properties.named
            ]
            others = properties.others
            other = None if others is None else series([WORD, '"="', self._value(values, others, tool)])
            bodies.append(arranged(self._rules, pairs, other, '"," " "?'))
        return choice(bodies)

    def _value(self, values: Values, schema: Any, tool: Tool) -> str:
        value = values.value(schema)
        parts = [part for part in alternatives(schema, tool.schema) if constants(part) is None]
        if self._raw and any("string" in types_of(part) for part in parts):
            return choice([value, self._raw])
        return value


def _piece(node: Node, opener: Opener) -> Format:
    """A piece of an opener, and what may stand behind it."""
    return grammar(f"root ::= {series([spell(node), _before_value(opener)])}")


def _before_value(opener: Opener) -> str:
    """White space, where the opener does not look at what comes there."""
    return spell(opener.before_value) if opener.given.items else GAP


def _as_name(name: str) -> str:
    if NAME.fullmatch(name) is None:
        raise Unsupported(f"{name!r} cannot be written as a name in Python")
    return name
