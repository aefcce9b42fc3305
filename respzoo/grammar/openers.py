"""How a syntax's calls begin: what tells them from text (the head), and the rest of the opener.

Where a model may write text or calls, a grammar has to see a call coming before the tool's name is there: the head is
the opener up to that name, as far as it is a marker. An opener without one (`get_weather\\n{`) is a head, name and all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import regex

from respzoo.delimiters import Delimiter
from respzoo.fields import GIVEN_BACK
from respzoo.grammar.ebnf import fill, fitting, holds, may_be_empty, require
from respzoo.patterns import CharSet, Choice, Group, Node, Repeat, Series

__all__ = ["Opener", "distinct", "openers_of", "spellings"]

_MOST_SPELLINGS = 64
_WHOLE_MARKER = regex.compile(r"<[^<>\s]+>|\[[A-Z_]+\]")
_MARKER = regex.compile(r"[<\[{|]|=\w+\.")


@dataclass(frozen=True)
class Opener:
    """One way to begin a call.

    Attributes:
        lead: what may stand before the head.
        head: what begins a call, whichever tool it is of. None: nothing but the name tells.
        rest: what follows the head, or all of it.
        given: the beginning of the region's value, which the pattern looks at, too.
    """

    lead: Series
    head: Series | None
    rest: Series
    given: Series
    source: str

    def named(self, name: str) -> Node:
        """What follows the head for a tool of this name.

        Raises:
            Unsupported: the pattern takes no such name.
        """
        rest = _apart(self.rest)
        if self.names:
            require(self.source, rest, "name", name)
            rest = fitting(self.source, rest, "name", name)
        return fill(rest, {"name": [name]})

    @property
    def before_value(self) -> Series:
        """What may stand between the opener and the value that it looks at."""
        return Series(tuple(item for item in self.given.items[:1] if _is_space(item)))

    @property
    def looks_at_keys(self) -> bool:
        """Whether it looks at a JSON object's first keys."""
        return '"' in _letters(self.given)

    @property
    def names(self) -> bool:
        """Whether the tool's name stands in it."""
        return holds(self.rest, {"name"})

    def whole(self) -> Opener:
        """The same without a head."""
        head = self.head.items if self.head else ()
        return replace(self, lead=Series(()), head=None, rest=Series((*self.lead.items, *head, *self.rest.items)))

    def done(self) -> Opener:
        """What is left of it behind all of it."""
        return replace(self, lead=Series(()), head=None, rest=Series(()))

    def marked(self, others: Collection[str]) -> Opener:
        """The same with a head that is one whole marker, if it begins with one that nothing else has in it."""
        if self.head is None:
            return self
        items = self.head.items
        literals = list(takewhile(lambda item: isinstance(item, CharSet) and item.literal is not None, items))
        text = _letters(Series(tuple(literals)))
        found = _WHOLE_MARKER.match(text)
        if found is None or any(found[0] in other for other in others):
            return self
        return self.cut(len(found[0]))

    def cut(self, length: int) -> Opener:
        """The same with no more than the first items of its head."""
        assert self.head is not None
        items = self.head.items
        return replace(self, head=Series(items[:length]), rest=Series((*items[length:], *self.rest.items)))


def openers_of(delimiter: Delimiter) -> list[Opener]:
    """The ways in which this delimiter can be written.

    Raises:
        Unsupported: its pattern is beyond the automaton.
    """
    source = delimiter.pattern.pattern
    return [_split(items, given, source) for items, given in _variants(_items(delimiter.tree()))]


def distinct(openers: Sequence[Opener]) -> list[Opener]:
    """The same; where one's head is the beginning of another's, that one's is cut: the first to be seen decides."""
    heads = sorted({opener.head.items for opener in openers if opener.head is not None}, key=len)
    found: list[Opener] = []
    for opener in openers:
        if opener.head is not None:
            items = opener.head.items
            shortest = next(head for head in heads if items[: len(head)] == head)
            opener = opener.cut(len(shortest))
        found.append(opener)
    return found


def spellings(head: Node) -> list[str]:
    """The texts in which a head is written: one space where there must be white space, none where there may be. None at
    all for a head that holds more than fixed texts and white space."""
    match head:
        case CharSet():
            if head.literal is None:
                return [" "] if head.spaces_only else []
            return [head.literal]
        case Group():
            return spellings(head.item)
        case Choice():
            branches = [spellings(branch) for branch in head.branches]
            return [text for branch in branches for text in branch] if all(branches) else []
        case Repeat():
            if _is_space(head):
                return [" " if head.low else ""]
            return ["", *spellings(head.item)] if (head.low, head.high) == (0, 1) and spellings(head.item) else []
        case Series():
            found = [""]
            for item in head.items:
                found = [text + more for text in found for more in spellings(item)][:_MOST_SPELLINGS]
            return found


def _is_space(node: Node) -> bool:
    return isinstance(node, Repeat) and isinstance(node.item, CharSet) and node.item.spaces_only


def _items(node: Node) -> tuple[Node, ...]:
    return node.items if isinstance(node, Series) else (node,)


def _variants(items: Sequence[Node]) -> Iterator[tuple[tuple[Node, ...], Series]]:
    """The series with each choice that decides about names or given text taken, and apart from it what is given
    back."""
    for at, item in enumerate(items):
        if isinstance(item, Group) and item.name == GIVEN_BACK:
            yield tuple(items[:at]), Series((*_items(item.item), *items[at + 1 :]))
            return
        if isinstance(item, Group) and item.name != "name" and item.name != "id":
            yield from _variants([*items[:at], *_items(item.item), *items[at + 1 :]])
            return
        if isinstance(item, Choice) and holds(item, {"name", GIVEN_BACK}):
            for branch in item.branches:
                yield from _variants([*items[:at], *_items(branch), *items[at + 1 :]])
            return
    yield tuple(items), Series(())


def _split(items: tuple[Node, ...], given: Series, source: str) -> Opener:
    start = next((at for at, item in enumerate(items) if not may_be_empty(item)), len(items))
    end = next((at for at, item in enumerate(items) if holds(item, {"name", "id"})), len(items))
    while end > start and may_be_empty(items[end - 1]):
        end -= 1
    head = Series(items[start:end])
    names = holds(Series(items), {"name"})
    if (names or given.items) and not _MARKER.search(_letters(head)):
        return Opener(Series(()), None, Series(items), given, source)
    return Opener(Series(items[:start]), head, Series(items[end:]), given, source)


def _apart(series: Series) -> Series:
    """The series with white space between a name and anything that may follow it: the name must end there."""
    items = list(series.items)
    for at, item in enumerate(items[:-1]):
        follows = items[at + 1]
        if isinstance(item, Group) and item.name == "name" and isinstance(follows, Repeat) and follows.low == 0:
            loose = isinstance(follows.item, CharSet) and follows.item.literal is None and not follows.item.spaces_only
            if loose:
                items[at + 1] = Choice((Series(()), Series((CharSet(" ", " ", spaces_only=True), follows))))
    return Series(tuple(items))


def _letters(node: Node) -> str:
    """The literal characters of what must be there."""
    match node:
        case CharSet():
            return node.literal or ""
        case Group():
            return _letters(node.item)
        case Series():
            return "".join(map(_letters, node.items))
        case Choice():
            return min(map(_letters, node.branches), key=len)
        case Repeat():
            return _letters(node.item) if node.low else ""
