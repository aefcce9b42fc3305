"""The whole tag: reasoning, text, calls and an answer's format, put together as a request asks for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from respzoo.fields import CALLS, CONTENT, REASONING_NAMES, CompiledTemplate, Field, Wrapper
from respzoo.grammar.calls import Syntax
from respzoo.grammar.ebnf import GAP, Rules, fill, spell
from respzoo.grammar.formats import Format, dispatch, either, grammar, json_schema, optional, plus, sequence, star
from respzoo.grammar.openers import Opener, distinct, openers_of, spellings
from respzoo.grammar.shapes import Tool
from respzoo.grammar.texts import Texts
from respzoo.parser import ResponseParser
from respzoo.patterns import Node, Unsupported
from respzoo.schema import Tool as GivenTool
from respzoo.schema import read_functions

__all__ = ["Built", "ToolChoice", "build"]

ToolChoice = Literal["auto", "required", "none"] | str | Mapping[str, Any]
"""As in OpenAI's API; a function may also be called by its name alone."""


class Built(NamedTuple):
    """A structural tag, or why there is none."""

    tag: dict[str, Any] | None
    reason: str | None


def build(
    template: CompiledTemplate,
    tools: Iterable[GivenTool] | None,
    *,
    tool_choice: ToolChoice = "auto",
    parallel: bool = True,
    strict: bool | None = None,
    reasoning: bool = False,
    prefix: str = "",
    response_format: Mapping[str, Any] | None = None,
    stops: Collection[str] = (),
) -> Built:
    """See `ResponseTemplate.structural_tag`."""
    wanted = list(read_functions(tools))
    named = _named(tool_choice)
    if named is not None:
        wanted = [function for function in wanted if function["name"] == named]
        if not wanted:
            raise ValueError(f"tool_choice names {named!r}, which is not among the tools")
    forced = named is not None or tool_choice == "required"
    if forced and not wanted:
        raise ValueError("tool_choice demands a call, but there are no tools")
    answer = None if forced else _answer(response_format)
    chosen = [_tool(function, forced=forced, strict=strict) for function in wanted] if tool_choice != "none" else []
    if not forced and answer is None and not (chosen and (not parallel or any(tool.exact for tool in chosen))):
        return Built(None, "nothing is asked of the model: no call is forced or limited, no tool is strict")
    single = not parallel or named is not None
    try:
        message = _message(template, chosen, answer, forced=forced, single=single, stops=stops)
        if reasoning:
            message = _after_reasoning(template, prefix, message)
    except Unsupported as error:
        return Built(None, str(error))
    return Built({"type": "structural_tag", "format": message}, None)


def _named(tool_choice: ToolChoice) -> str | None:
    if isinstance(tool_choice, str):
        return None if tool_choice in ("auto", "required", "none") else tool_choice
    function: Any = tool_choice.get("function", tool_choice)
    name: Any = cast("Mapping[str, Any]", function).get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        raise ValueError(
            f"tool_choice: expected 'auto', 'required', 'none' or a function's name, found {tool_choice!r}"
        )
    return name


def _tool(function: Mapping[str, Any], *, forced: bool, strict: bool | None) -> Tool:
    given: Any = function.get("parameters")
    parameters: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
    exact = strict
    if exact is None:
        exact = function.get("strict") is not False if forced else function.get("strict") is True
    return Tool(function["name"], parameters, exact)


def _answer(response_format: Mapping[str, Any] | None) -> Format | None:
    """The format of an answer without calls."""
    match response_format:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return json_schema({"type": "object"})
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            return json_schema(schema)
        case {"type": "structural_tag", "format": dict()}:
            return dict(cast("Mapping[str, Any]", response_format["format"]))
        case _:
            raise ValueError(
                "response_format: expected the type 'text', 'json_object', 'json_schema' with a 'schema' in its "
                f"'json_schema', or 'structural_tag' with a 'format', found {response_format!r}"
            )


def _message(
    template: CompiledTemplate,
    tools: Sequence[Tool],
    answer: Format | None,
    *,
    forced: bool,
    single: bool,
    stops: Collection[str],
) -> Format:
    if not tools:
        assert answer is not None
        return _shown(template, answer, stops)
    syntaxes, faults = _syntaxes(template, stops)
    if not syntaxes:
        raise Unsupported("; ".join(dict.fromkeys(faults)) or "the template has no calls")
    if forced:
        return _only_calls(template, syntaxes, tools, single=single)
    if answer is not None:
        calls = _only_calls(template, syntaxes, tools, single=single)
        return either([calls, _shown(template, answer, stops)])
    return _text_and_calls(template, syntaxes, tools, single=single)


def _syntaxes(template: CompiledTemplate, stops: Collection[str]) -> tuple[list[Syntax], list[str]]:
    """The syntaxes of calls that a grammar can say, and what is wrong with the others."""
    found: list[Syntax] = []
    faults: list[str] = []
    for field in template.fields.values():
        if field.name != CALLS:
            continue
        try:
            found.append(Syntax(field, stops))
        except Unsupported as error:
            faults.append(f"{field.id}: {error}")
    return found, faults


def _shown(template: CompiledTemplate, answer: Format, stops: Collection[str]) -> Format:
    """An answer where the template has its content, behind white space as in front of calls: what a model writes first
    must not decide between the two."""
    answer = sequence([grammar(f"root ::= {GAP}"), answer])
    if template.implicit is not None and template.implicit.name == CONTENT:
        return answer
    field = next((one for one in template.fields.values() if one.name == CONTENT and one.open is not None), None)
    if field is None or field.open is None:
        return answer
    closer = _spelled(field.close.tree()) if field.close is not None else grammar('root ::= ""')
    return sequence([_spelled(field.open.tree()), answer, optional(closer)])


def _spelled(node: Node) -> Format:
    return grammar(f"root ::= {spell(node)}")


# calls and nothing else


def _only_calls(
    template: CompiledTemplate, syntaxes: Sequence[Syntax], tools: Sequence[Tool], *, single: bool
) -> Format:
    first: list[Format] = []
    others: list[Format] = []
    faults: list[str] = []
    for group in _by_wrapper(syntaxes):
        try:
            calls = _calls(template, group, tools, single=single)
        except Unsupported as error:
            faults.append(str(error))
        else:
            (first if group[0].field.leading else others).append(calls)
    if not first and not others:
        raise Unsupported("; ".join(dict.fromkeys(faults)))
    if first and others and not single:
        first = [sequence([calls, star(either(others))]) for calls in first]
    return either([*first, *others])


def _by_wrapper(syntaxes: Sequence[Syntax]) -> list[list[Syntax]]:
    """Syntaxes that may be mixed: those of one wrapper, those of none."""
    groups: dict[tuple[str | None, bool], list[Syntax]] = {}
    for syntax in syntaxes:
        groups.setdefault((syntax.field.within, syntax.field.leading), []).append(syntax)
    return list(groups.values())


def _calls(template: CompiledTemplate, group: Sequence[Syntax], tools: Sequence[Tool], *, single: bool) -> Format:
    """A message's calls in some syntaxes of one wrapper, that and all."""
    regions = _regions(group, tools, single=single)
    wrapper = _wrapper(template, group[0].field)
    if wrapper is None:
        return regions
    return sequence([_spelled(wrapper.open.tree()), regions, group[0].end_of(wrapper)])


def _regions(group: Sequence[Syntax], tools: Sequence[Tool], *, single: bool) -> Format:
    """The same without the wrapper."""
    regions = either(
        [syntax.region(opener.whole(), tools, single=single) for syntax in group for opener in syntax.openers]
    )
    return plus(regions) if not single and any(syntax.field.repeats for syntax in group) else regions


def _wrapper(template: CompiledTemplate, field: Field) -> Wrapper | None:
    return None if field.within is None else template.wrappers[field.within]


# text, and calls in it


def _text_and_calls(
    template: CompiledTemplate, syntaxes: Sequence[Syntax], tools: Sequence[Tool], *, single: bool
) -> Format:
    leading = [syntax for syntax in syntaxes if syntax.field.leading]
    follows = _continuations(template, [one for one in syntaxes if not one.field.leading], tools, single=single)
    signs = [syntax.beginning(opener.whole(), tools) for syntax in leading for opener in syntax.openers]
    body = _mixed(follows, single=single, leading=signs)
    if not leading:
        return body
    begun = [_calls(template, group, tools, single=single) for group in _by_wrapper(leading)]
    if not single:
        begun = [sequence([calls, _mixed(follows, single=False, leading=[])]) for calls in begun]
    return either([*begun, body])


_Continuations = Mapping[Node, Sequence[Format]]


def _continuations(
    template: CompiledTemplate, syntaxes: Sequence[Syntax], tools: Sequence[Tool], *, single: bool
) -> _Continuations:
    """What tells calls from text, and what follows it."""
    found: dict[Node, list[Format]] = {}
    regions = [(syntax, opener) for syntax in syntaxes for opener in syntax.openers]
    wrapped: list[tuple[Opener, Format]] = []
    for group in _by_wrapper(syntaxes):
        wrapper = _wrapper(template, group[0].field)
        if wrapper is None:
            continue
        inside = sequence([_regions(group, tools, single=single), group[0].end_of(wrapper)])
        wrapped += [(opener, inside) for opener in openers_of(wrapper.open) if opener.head is not None]
    others = [one.open for one in template.fields.values() if one.name != CALLS and one.open is not None]
    marks = [mark for other in others for mark in [*(other.literals or ()), *other.markers()]]
    openers = distinct(
        [opener.marked(marks) for opener in [*(one for one, _ in wrapped), *(one for _, one in regions)]]
    )
    for opener, (_, inside) in zip(openers, wrapped, strict=False):
        assert opener.head is not None
        found.setdefault(opener.head, []).append(sequence([_spelled(fill(opener.rest, {})), inside]))
    for opener, (syntax, _) in zip(openers[len(wrapped) :], regions, strict=True):
        if opener.head is not None:
            found.setdefault(opener.head, []).append(syntax.region(opener, tools, single=single))
            continue
        for own in [[tool] for tool in tools] if opener.names else [tools]:
            found.setdefault(syntax.sign(opener, own), []).append(syntax.behind_sign(opener, own, single=single))
    return found


def _mixed(follows: _Continuations, *, single: bool, leading: Sequence[Node]) -> Format:
    """Text with calls in it; `leading` patterns are not its beginning."""
    if follows and not leading and not single and all(map(spellings, follows)):
        formats = {head: either(after) for head, after in follows.items()}
        return dispatch([(text, format) for head, format in formats.items() for text in spellings(head)])
    texts = Texts(list(follows), leading=leading)
    free = _written(texts.without)
    if not follows:
        return free
    calls = either(
        [
            sequence([_written(lambda rules, number=number: texts.until(rules, number)), either(formats)])
            for number, formats in enumerate(follows.values())
        ]
    )
    return either([free, calls]) if single else sequence([star(calls), free])


def _written(write: Callable[[Rules], str]) -> Format:
    """A grammar that is what `write` says with its rules."""
    rules = Rules()
    root = write(rules)
    return grammar(rules.text(root))


# the reasoning before it


def _after_reasoning(template: CompiledTemplate, prefix: str, message: Format) -> Format:
    """The message behind its reasoning, which the prompt may have begun."""
    fields = [field for field in template.fields.values() if field.name in REASONING_NAMES and field.close is not None]
    parser = ResponseParser(template, prefix=prefix)
    if parser.region in REASONING_NAMES:
        inside = [_until_closer(template, field) for field in fields]
        return sequence([either(inside), message]) if inside else message
    if parser.region == CONTENT:  # the prompt has begun the answer: to call, the model closes it
        shown = [one for one in template.fields.values() if one.name == CONTENT and one.open and one.close]
        ends = [_spelled(one.close.tree()) for one in shown if one.close is not None]
        message = sequence([optional(either(ends)), message]) if ends else message
    openers = [(field.open, field) for field in fields if field.open is not None]
    opened = [sequence([_spelled(open.tree()), _until_closer(template, field)]) for open, field in openers]
    if not opened:
        return message
    repeats = any(field.repeats for field in fields)
    return sequence([(star if repeats else optional)(either(opened)), message])


def _until_closer(template: CompiledTemplate, field: Field) -> Format:
    """Text up to a field's closer, without what else would end it."""
    assert field.close is not None
    openers = [one.open for one in template.fields.values() if one.name in field.ended_by and one.open is not None]
    openers += [one.open for one in template.wrappers.values() if one.field in field.ended_by]
    texts = Texts([field.close.tree(), *(opener.tree() for opener in openers)])
    return _written(lambda rules: texts.until(rules, 0))
