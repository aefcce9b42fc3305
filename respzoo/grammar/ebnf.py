"""Grammars in xgrammar's EBNF, made of rules, and what a pattern's tree says in it.

https://xgrammar.mlc.ai/docs/ has the notation: rules `name ::= …`, strings in double quotes, classes in brackets.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import regex

from respzoo.patterns import CharSet, Choice, Group, Node, Repeat, Series, Unsupported, groups

__all__ = [
    "GAP",
    "Rules",
    "before",
    "char_class",
    "choice",
    "fill",
    "fitting",
    "holds",
    "may_be_empty",
    "quote",
    "require",
    "series",
    "spell",
]

_GAP = 16
_WHITE = " \t\r\n"
GAP = "[ \\t\\r\\n]{0,16}"
"""White space where a pattern allows any amount: a model that may write it for ever may do so."""

_PIECES = re.compile(r'"(?:[^"\\]|\\.)*"|(\[ (?:\\[trn])+\]\{0,\d+\})|\[(?:[^\]\\]|\\.)*\]')
"""A string, white space (the group) or a class."""
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_PROBES = "é漢\u2028\u00a0😀"  # a class that takes all of these takes all that is not ASCII
_LAST_ASCII, _LAST = 0x7F, 0x10FFFF
_ASCII = [chr(code) for code in range(128)]


class Rules:
    """The rules of one grammar. Equal bodies are one rule."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._bodies: dict[str, str] = {}

    def reserve(self, hint: str) -> str:
        """A name for a rule whose body comes later, with `define`: it may refer to itself."""
        name = f"{hint}_{len(self._bodies)}"
        self._bodies[name] = ""
        return name

    def define(self, name: str, body: str) -> None:
        self._bodies[name] = body

    def add(self, body: str, hint: str) -> str:
        """The name of a rule with this body."""
        name = self._names.get(body)
        if name is None:
            name = self._names[body] = self.reserve(hint)
            self.define(name, body)
        return name

    def text(self, root: str) -> str:
        """The whole grammar; `root` is what it begins with. White space that stands in it again and again is one rule:
        xgrammar 0.2.1 unrolls it each time, and counts no more than 32,767 rules."""
        text = "\n".join([f"root ::= {root}", *(f"{name} ::= {body}" for name, body in self._bodies.items())])
        found = Counter(piece[1] for piece in _PIECES.finditer(text) if piece[1])
        names = {gap: f"gap_{number}" for number, gap in enumerate(sorted(found)) if found[gap] > 1}
        text = _PIECES.sub(lambda piece: names.get(piece[0], piece[0]), text)
        return "\n".join([text, *(f"{name} ::= {gap}" for gap, name in names.items())])


def _escape(char: str, special: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char in special:
        return "\\" + char
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def quote(text: str) -> str:
    """A string as EBNF."""
    return '"' + "".join(_escape(char, "") for char in text) + '"'


def series(parts: Iterable[str]) -> str:
    """Expressions one after another."""
    return " ".join(part for part in parts if part and part != '""') or '""'


def choice(parts: Iterable[str]) -> str:
    """One of the expressions."""
    unique = list(dict.fromkeys(parts))
    if not unique:
        raise Unsupported("nothing to choose from")
    return unique[0] if len(unique) == 1 else f"({' | '.join(unique)})"


def char_class(chars: Iterable[str], *, others: bool) -> str:
    """These characters, or with `others` all but these. Such a class names none beyond ASCII, which xgrammar before
    0.2.8 cannot exclude: then it is said by what is left."""
    codes = sorted(map(ord, set(chars)))
    if others and (not codes or codes[-1] > _LAST_ASCII):
        ends = [(low, high) for low, high in zip([0, *(code + 1 for code in codes)], [*codes, _LAST + 1], strict=True)]
        return f"[{''.join(_range(low, high - 1) for low, high in ends if low < high)}]"
    return f"[{'^' if others else ''}{''.join(_ranges(codes))}]"


def _ranges(codes: Sequence[int]) -> Iterator[str]:
    start = 0
    for end in range(1, len(codes) + 1):
        if end == len(codes) or codes[end] != codes[end - 1] + 1:
            yield _range(codes[start], codes[end - 1])
            start = end


def _range(first: int, last: int) -> str:
    if last - first > 1:
        return f"{_escape(chr(first), ']-^[')}-{_escape(chr(last), ']-^[')}"
    return "".join(_escape(chr(code), "]-^[") for code in range(first, last + 1))


def _class_of(node: CharSet) -> str:
    """A class that takes no character that the pattern's does not."""
    if node.literal is not None:
        return quote(node.literal)
    if node.spaces_only:
        return f"[{''.join(_ESCAPES.get(char, char) for char in _WHITE if node.accepts(char))}]"
    accepts = node.accepts
    named = {char for char in node.source if ord(char) > 127}
    if all(map(accepts, _PROBES)):
        return char_class([char for char in [*_ASCII, *named] if not accepts(char)], others=True)
    return char_class([char for char in [*_ASCII, *named] if accepts(char)], others=False)


def _literal(text: str) -> Series:
    """The tree of a pattern that matches this text."""
    return Series(tuple(CharSet("", char, char.isspace()) for char in text))


def fill(node: Node, texts: Mapping[str, Sequence[str]]) -> Node:
    """A pattern's tree in which named groups match nothing but one of these texts; an optional part that holds one of
    these groups is not optional then."""
    match node:
        case CharSet():
            return node
        case Group():
            if node.name is not None and node.name in texts:
                return Choice(tuple(map(_literal, texts[node.name])))
            return fill(node.item, texts)
        case Series():
            return Series(tuple(fill(item, texts) for item in node.items))
        case Choice():
            return Choice(tuple(fill(branch, texts) for branch in node.branches))
        case Repeat():
            item = fill(node.item, texts)
            if node.low == 0 and node.high == 1 and holds(node.item, texts):
                return item
            return Repeat(item, node.low, node.high, node.lazy)


def before(node: Node, names: Collection[str]) -> Series:
    """What every match begins with: the tree up to the first of these groups, without an end that need not be there."""
    items, _ = _before(node, names)
    while items and may_be_empty(items[-1]):
        items.pop()
    return Series(tuple(items))


def _before(node: Node, names: Collection[str]) -> tuple[list[Node], bool]:
    """The items before one of the groups, and whether there was one."""
    match node:
        case Group() if node.name in names:
            return [], True
        case Group():
            return _before(node.item, names)
        case Series():
            found: list[Node] = []
            for item in node.items:
                items, ended = _before(item, names)
                found += items
                if ended:
                    return found, True
            return found, False
        case Choice() if holds(node, names):
            return [Choice(tuple(Series(tuple(_before(branch, names)[0])) for branch in node.branches))], True
        case Repeat() if holds(node, names):
            return [], True
        case _:
            return [node], False


def may_be_empty(node: Node) -> bool:
    """Whether a tree matches no text."""
    match node:
        case CharSet():
            return False
        case Group():
            return may_be_empty(node.item)
        case Series():
            return all(map(may_be_empty, node.items))
        case Choice():
            return any(map(may_be_empty, node.branches))
        case Repeat():
            return node.low == 0 or may_be_empty(node.item)


def holds(node: Node, names: Collection[str]) -> bool:
    """Whether one of these groups is in a tree."""
    return any(group.name in names for group in groups(node))


def require(source: str, tree: Node, name: str, text: str) -> None:
    """Raise `Unsupported` if a group of this name cannot catch this text."""
    places = [group for group in groups(tree) if group.name == name]
    if not any(regex.fullmatch(source[place.start : place.end], text, regex.DOTALL) for place in places):
        raise Unsupported(f"{text!r} cannot be written as a {name}")


def fitting(source: str, node: Node, name: str, text: str) -> Node:
    """A pattern's tree without the branches in which a group of this name cannot catch this text."""

    def fits(branch: Node) -> bool:
        places = [group for group in groups(branch) if group.name == name]
        return all(regex.fullmatch(source[place.start : place.end], text, regex.DOTALL) for place in places)

    match node:
        case Series():
            return Series(tuple(fitting(source, item, name, text) for item in node.items))
        case Choice() if holds(node, {name}):
            kept = [fitting(source, branch, name, text) for branch in node.branches if fits(branch)]
            return Choice(tuple(kept)) if kept else node
        case _:
            return node


def spell(node: Node) -> str:
    """A tree as EBNF: texts that the pattern matches, with less white space than it allows."""
    match node:
        case CharSet():
            return _class_of(node)
        case Group():
            return spell(node.item)
        case Series():
            parts: list[str] = []
            run = ""
            for item in node.items:
                if isinstance(item, CharSet) and item.literal is not None:
                    run += item.literal
                    continue
                if run:
                    parts.append(quote(run))
                    run = ""
                parts.append(spell(item))
            return series([*parts, quote(run) if run else ""])
        case Choice():
            return choice(spell(branch) for branch in node.branches)
        case Repeat():
            return _repeated(node)


def _repeated(node: Repeat) -> str:
    item = spell(node.item)
    if isinstance(node.item, CharSet) and node.item.spaces_only and node.high is None:
        return f"{item}{{{node.low},{max(node.low, _GAP)}}}"
    if node.high == 0:
        return '""'
    if node.high is None:
        counts = {0: "*", 1: "+"}.get(node.low, f"{{{node.low},}}")
    else:
        counts = "?" if (node.low, node.high) == (0, 1) else f"{{{node.low},{node.high}}}"
    return f"({item}){counts}"
