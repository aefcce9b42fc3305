"""Free text and strings as an engine reads them fastest: any text, but where certain signs stand something must follow.

A search for patterns says all that a text must not hold, but as rules each of its states costs a mask over all tokens
(see texts.py). Most of a text is not near any pattern. So here xgrammar's own dispatch looks for what the patterns
begin with, and behind such a sign the search's states are rules, until the search is where it began: so many of the
nearest, of the others what costs little. What would need more is not written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from respzoo.grammar.ebnf import Rules, char_class, quote, series
from respzoo.grammar.search import Search
from respzoo.grammar.texts import Texts, Way, steps, written
from respzoo.patterns import Unsupported

__all__ = ["CODE", "dispatch", "quoted", "string_without", "text_without"]

# states behind signs: a closing tag, white space, "</", some name, the first letters of others
_MOST_IN_TEXT = 24
_MOST_IN_STRINGS = 16  # in which a sign can be written escaped
_CONTROLS = [chr(code) for code in range(32)]
_STOPS = frozenset({*_CONTROLS, '"', "\\"})
_HEX = "0123456789abcdefABCDEF"
_DIGIT = "[0-9a-fA-F]"
CODE = f'"u" ([0-9a-cefA-CEF] {_DIGIT}{{3}} | [dD] [0-7] {_DIGIT}{{2}})'
"""A character's code behind a backslash, but for halves of surrogate pairs."""
_JSON_ESCAPES = f'(["\\\\/bfnrt] | {CODE})'
_OUTSIDE = "{}[]:, \t\r\n0123456789+-.eEtrufalsn"  # what JSON is made of beside strings
_ESCAPED = '"\\/bfnrt'  # what may stand behind a backslash, beside a code


def text_without(rules: Rules, texts: Texts) -> str:
    """Such texts, and few of those that need further states."""
    try:
        signs = _signs(texts)
    except Unsupported:
        return texts.without(rules)
    search = texts.search
    free = rules.reserve("free")
    ends: dict[int, list[Way]] = {state: [('""', None)] for state in search.open if search.ends[state]}
    names = written(rules, _behind(search, signs.values(), ends, (), _MOST_IN_TEXT), free)
    tags = {sign: names[state] for sign, state in signs.items() if state in names}
    rules.define(free, dispatch(tags, [sign for sign in signs if sign not in tags], loop=False))
    return free


def string_without(rules: Rules, texts: Texts) -> str:
    """The inside of any string of JSON in which the search finds nothing as it is written, nor has begun to where it
    ends: so what stands around it does not matter."""
    search = texts.search
    try:
        signs = _signs(texts)
        if any(search.after(state, '"') for state in _reached(search, _OUTSIDE)):
            raise Unsupported("what is looked for may begin before a string")
    except Unsupported:
        return quoted(rules, '"', rules.add(_JSON_ESCAPES, "escape"), without=texts.signs)
    free = rules.reserve("free")
    given: dict[int, list[Way]] = {}
    for state in search.open:
        given[state] = [('""', None)] if search.after(state, '"') == 0 else []
        if escaped := _escapes(search, state):
            given[state].append((series(['"\\\\"', rules.add(escaped, "escape"), free]), None))
    names = written(rules, _behind(search, signs.values(), given, _STOPS, _MOST_IN_STRINGS), free)
    tags = {sign: names[state] for sign, state in signs.items() if state in names}
    if escaped := _escapes(search, 0):
        tags["\\"] = rules.add(series([rules.add(escaped, "escape"), free]), "escaped")
    banned = [sign for sign in [*signs, "\\"] if sign not in tags]
    rules.define(free, dispatch(tags, ['"', *_CONTROLS, *banned], loop=False))
    return free


def _signs(texts: Texts) -> dict[str, int]:
    """What the patterns begin with, and the state behind each where it is another than in front."""
    signs = texts.signs
    if "" in signs or any(one in other for one in signs for other in signs if one != other):
        raise Unsupported("patterns that do not all begin with a text of their own")
    behind = {sign: texts.search.after(0, sign) for sign in signs}
    return {sign: state for sign, state in behind.items() if state}


def _behind(
    search: Search, starts: Collection[int], given: Mapping[int, Sequence[Way]], without: Collection[str], most: int
) -> dict[int, list[Way]]:
    """How a text goes on from these states until the search is where it began, or in one of the ways that are `given`.
    The nearest states, and some in which it may stay, go on in every way; the others where only few characters lead."""
    order = [state for state in dict.fromkeys(starts) if not search.found[state]]
    ways: dict[int, list[Way]] = {}
    far = most // 3
    for state in order:
        every = len(ways) < most
        if not every and far and state in search.moves[state]:
            every, far = True, far - 1
        ways[state] = list(given.get(state, ())) if every else []
        for text, to in steps(search, search.moves[state], without=without):
            if not search.found[to] and (every or to != search.moves[state][search.others]):
                ways[state].append((text, to))
                order += [to] if to and to not in order else []
    ended: set[int | None] = {0, None}
    while more := {state for state, on in ways.items() if any(to in ended for _, to in on)} - ended:
        ended |= more
    return {state: [way for way in on if way[1] in ended] for state, on in ways.items() if state in ended}


def _escapes(search: Search, state: int) -> str:
    """What may stand behind a backslash there, so that the search is where it began."""
    chars = [char for char in _ESCAPED if search.after(state, f"\\{char}") == 0]
    codes = {search.after(state, "\\u")}
    for _ in range(4):
        codes = {search.after(one, char) for one in codes for char in _HEX}
    kinds = [char_class(chars, others=False)] if chars else []
    return " | ".join([*kinds, CODE] if codes == {0} else kinds)


def _reached(search: Search, chars: str) -> set[int]:
    """The states that texts of these characters lead to."""
    states = {0}
    while more := {search.after(state, char) for state in states for char in chars} - states:
        states |= more
    return states


def quoted(rules: Rules, mark: str, escapes: str, *, without: Sequence[str] = (), tabs: bool = False) -> str:
    """The inside of a string between such marks, on one line and without these texts as it is written; `escapes` is the
    rule of what may stand behind a backslash; `tabs`: these may stand as they are."""
    controls = [char for char in _CONTROLS if not tabs or char != "\t"]
    return rules.add(dispatch({"\\": escapes}, [mark, *controls, *without]), "quoted")


def dispatch(tags: Mapping[str, str], banned: Sequence[str], *, loop: bool = True) -> str:
    """Any text without what is banned, in which each of the tags is followed by its rule (and ends behind the first,
    but in a `loop`): EBNF of xgrammar's own, which engines read as fast as text can be read."""
    parts = [*(f"({quote(tag)}, {rule})" for tag, rule in tags.items()), f"loop_after_dispatch={str(loop).lower()}"]
    if banned:
        parts.append(f"excludes=({', '.join(map(quote, banned))})")
    return f"TagDispatch({', '.join(parts)})"
