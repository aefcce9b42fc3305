"""Free text in a grammar: any characters, but none of certain patterns.

A value in tags may hold its own closing tag, as long as what follows it is not what follows a value's end. A list of
excluded strings cannot say that (`</parameter>`, any white space, `</function>`). So the patterns become one
deterministic automaton that looks for any of them, as small as it can be, and its states become rules, each one
character and the next state: a grammar of this kind is read in time linear in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from respzoo.automaton import Automaton
from respzoo.grammar.ebnf import Rules, char_class
from respzoo.patterns import CharSet, Node, Unsupported

__all__ = ["Texts"]

_MOST_STATES = 5_000
_ASCII = [chr(code) for code in range(128)]
# \s, beyond ASCII
_SPACES = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_OTHER = "\ufffd"  # stands for all characters that are nowhere named


class Texts:
    """The search for some patterns, as rules of a grammar."""

    def __init__(self, patterns: Sequence[Node], *, leading: Sequence[Node] = (), most: int = _MOST_STATES) -> None:
        """`leading`: patterns that count at the text's very beginning only; `most`: states.

        Raises:
            Unsupported: a pattern may match no text at all, or there are more states.
        """
        self._automaton = Automaton([*patterns, *leading])
        self._restart = frozenset(
            place for place in self._automaton.start.places if self._automaton.owners[place] < len(patterns)
        )
        self._alphabet = _alphabet([chars for chars in self._automaton.nodes if chars is not None])
        self._others = next(number for number, members in enumerate(self._alphabet) if _OTHER in members)
        self._moves: list[list[int]] = []  # by state: the state that each class of characters leads to
        self._found: list[frozenset[int]] = []  # by state: the patterns that have matched
        self._explore(most)
        self._blocks = self._minimal()
        self._first: dict[int, int] = {}  # by block: one of its states
        for state, block in enumerate(self._blocks):
            self._first.setdefault(block, state)

    def take(self, text: str) -> bool:
        """Whether none of the patterns matches in a text."""
        state = 0
        for char in text:
            number = next((at for at, members in enumerate(self._alphabet) if char in members), self._others)
            state = self._moves[state][number]
            if self._found[state]:
                return False
        return True

    def without(self, rules: Rules) -> str:
        """Any text in which none of the patterns matches."""
        return self._write(rules, "text", lambda block, steps: ['""', *steps])

    def until(self, rules: Rules, pattern: int) -> str:
        """Any text that ends with the first match of any pattern, if that is the one of this number."""
        final = {self._blocks[state]: "" for state, found in enumerate(self._found) if pattern in found}
        return self._write(rules, "text", lambda block, steps: [*self._steps(block, final), *steps])

    def quoted(self, rules: Rules, mark: str, escapes: str) -> str:
        """The inside of a string between such marks, on one line and without a match of the patterns as it is written;
        `escapes` are the expressions of what may stand behind a backslash."""
        start = rules.reserve("quoted")
        escaped = f'"\\\\" {escapes} {start}'
        banned = {mark, "\\", *map(chr, range(32))}
        name = self._write(rules, "quoted", lambda block, steps: ['""', *steps, escaped], banned)
        rules.define(start, name)
        return start

    def _write(
        self, rules: Rules, hint: str, body: Callable[[int, list[str]], list[str]], banned: Collection[str] = ()
    ) -> str:
        """A rule for each state in which nothing has matched yet."""
        blocks = sorted({self._blocks[state] for state, found in enumerate(self._found) if not found})
        names = {block: rules.reserve(hint) for block in blocks}
        for block in blocks:
            rules.define(names[block], " | ".join(body(block, list(self._steps(block, names, banned)))))
        return names[self._blocks[0]]

    def _steps(self, block: int, names: Mapping[int, str], banned: Collection[str] = ()) -> Iterator[str]:
        """One character that is not banned, and the rule of the state that it leads to."""
        led: dict[int, set[int]] = {}
        for number, state in enumerate(self._moves[self._first[block]]):
            led.setdefault(self._blocks[state], set()).add(number)
        for target, numbers in led.items():
            if target not in names:
                continue
            others = self._others in numbers
            chars = [
                char
                for number, members in enumerate(self._alphabet)
                if (number in numbers) != others
                for char in members
                if char not in banned
            ]
            if others:
                chars += banned
            if others or chars:
                yield f"{char_class(chars, others=others)} {names[target]}".rstrip()

    def _explore(self, most: int) -> None:
        numbers = {frozenset(self._automaton.start.places): 0}
        order = list(numbers)
        nodes, owners = self._automaton.nodes, self._automaton.owners
        for places in order:
            found = frozenset(owners[place] for place in places if nodes[place] is None)
            moves: list[int] = []
            for members in self._alphabet:
                # a text in which a pattern has matched is none of ours: where it goes on does not matter
                after = self._restart if found else self._step(places, members[0])
                if after not in numbers:
                    if len(order) >= most:
                        raise Unsupported(f"a search of more than {most} states")
                    numbers[after] = len(order)
                    order.append(after)
                moves.append(numbers[after])
            self._found.append(found)
            self._moves.append(moves)

    def _step(self, places: frozenset[int], char: str) -> frozenset[int]:
        after = set(self._restart)
        for place in places:
            chars = self._automaton.nodes[place]
            if chars is not None and chars.accepts(char):
                after.update(self._automaton.follow[place])
        return frozenset(after)

    def _minimal(self) -> list[int]:
        """Each state's block: states of one block cannot be told apart by what follows."""
        blocks = _numbered(self._found)
        while True:
            refined = _numbered(
                [
                    (block, *(blocks[target] for target in moves))
                    for block, moves in zip(blocks, self._moves, strict=True)
                ]
            )
            if max(refined) == max(blocks):
                return blocks
            blocks = refined


def _numbered(keys: Sequence[object]) -> list[int]:
    numbers: dict[object, int] = {}
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
