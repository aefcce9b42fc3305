"""A search for some patterns as one deterministic automaton, as small as it can be."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from respzoo.automaton import Automaton
from respzoo.patterns import CharSet, Node, Unsupported

__all__ = ["Search", "smallest"]

_ASCII = [chr(code) for code in range(128)]
# \s, beyond ASCII
_SPACES = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
# stands for all characters that are nowhere named: a letter, as most of them are, so that `\w` takes all
_OTHER = "\U00010480"


class Search:
    """It goes from state to state, the first of which is 0, with each character of a text.

    Attributes:
        alphabet: all characters, those together that no pattern tells apart.
        others: the place in it of all that are nowhere named.
        moves: by state: the state that each class of characters leads to.
        found: by state: the patterns that have matched. Where the text goes on from there does not matter.
        ends: by state: whether a text may end.
    """

    def __init__(self, patterns: Sequence[Node], leading: Sequence[Node], trailing: Sequence[Node], most: int) -> None:
        """See `Texts`."""
        self._automaton = Automaton([*patterns, *trailing, *leading])
        self._trailing = range(len(patterns), len(patterns) + len(trailing))
        self._restart = frozenset(
            place for place in self._automaton.start.places if self._automaton.owners[place] < self._trailing.stop
        )
        self.alphabet = _alphabet([chars for chars in self._automaton.nodes if chars is not None])
        self.others = next(number for number, members in enumerate(self.alphabet) if _OTHER in members)
        self.moves: list[list[int]] = []
        self.found: list[frozenset[int]] = []
        self.ends: list[bool] = []
        self._explore(most)
        blocks = smallest(list(zip(self.found, self.ends, strict=True)), self.moves)
        first = [blocks.index(block) for block in range(max(blocks) + 1)]
        self.moves = [[blocks[target] for target in self.moves[state]] for state in first]
        self.found = [self.found[state] for state in first]
        self.ends = [self.ends[state] for state in first]

    @property
    def open(self) -> list[int]:
        """The states in which nothing has been found."""
        return [state for state, found in enumerate(self.found) if not found]

    def after(self, state: int, text: str) -> int:
        """The state that a text leads to; one where something has been found stays."""
        for char in text:
            if self.found[state]:
                break
            place = next((number for number, members in enumerate(self.alphabet) if char in members), self.others)
            state = self.moves[state][place]
        return state

    def _explore(self, most: int) -> None:
        numbers = {frozenset(self._automaton.start.places): 0}
        order = list(numbers)
        nodes, owners = self._automaton.nodes, self._automaton.owners
        for places in order:
            ended = frozenset(owners[place] for place in places if nodes[place] is None)
            found = ended.difference(self._trailing)
            self.ends.append(found == ended)
            moves: list[int] = []
            for members in self.alphabet:
                # a text in which a pattern has matched is none of ours: where it goes on does not matter
                after = self._restart if found else self._step(places, members[0])
                if after not in numbers:
                    if len(order) >= most:
                        raise Unsupported(f"a search of more than {most} states")
                    numbers[after] = len(order)
                    order.append(after)
                moves.append(numbers[after])
            self.found.append(found)
            self.moves.append(moves)

    def _step(self, places: frozenset[int], char: str) -> frozenset[int]:
        after = set(self._restart)
        for place in places:
            chars = self._automaton.nodes[place]
            if chars is not None and chars.accepts(char):
                after.update(self._automaton.follow[place])
        return frozenset(after)


def smallest(labels: Sequence[Hashable], moves: Sequence[Sequence[int]]) -> list[int]:
    """By state: the number of its block, counted as they come. States of one block have one label, and cannot be told
    apart by what follows."""
    blocks = _numbered(labels)
    while True:
        refined = _numbered(
            [(block, *(blocks[target] for target in ways)) for block, ways in zip(blocks, moves, strict=True)]
        )
        if max(refined) == max(blocks):
            return blocks
        blocks = refined


def _numbered(keys: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _alphabet(sets: Sequence[CharSet]) -> list[list[str]]:
    """All characters, those together that no set tells apart."""
    unique = list(dict.fromkeys(sets))
    named = {chars.literal for chars in unique if chars.literal is not None}
    classes = [chars for chars in unique if chars.literal is None]
    named |= {char for chars in classes for char in chars.source if ord(char) > 127}
    if classes:
        named |= set(_SPACES)
    together: dict[tuple[bool, ...], list[str]] = {}
    for char in [*sorted(named | set(_ASCII)), _OTHER]:
        together.setdefault(tuple(chars.accepts(char) for chars in unique), []).append(char)
    return list(together.values())
