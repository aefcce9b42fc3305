"""Free text in a grammar: any characters, but none of certain patterns.

A value in tags may hold its own closing tag, as long as what follows it is not what follows a value's end. A list of
excluded strings cannot say that (`</parameter>`, any white space, `</function>`). So the states of a search for the
patterns become rules, each one character and the next state: a text is read in time linear in its length. What a state
costs is a mask over all tokens, which xgrammar makes when it compiles the grammar, so the states are few.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from respzoo.grammar.ebnf import Rules, char_class, may_be_empty, series
from respzoo.grammar.search import Search
from respzoo.patterns import CharSet, Choice, Group, Node, Repeat, Series

__all__ = ["Texts", "Way", "steps", "written"]

_MOST_STATES = 5_000

Way = tuple[str, int | None]
"""How a text goes on: what is written, and the state behind it. None: there the text ends."""


class Texts:
    """Texts that a search for some patterns takes, as rules of a grammar.

    Attributes:
        search: the search.
        signs: what the patterns begin with, as far as that is certain; an empty one: nothing is.
    """

    def __init__(
        self,
        patterns: Sequence[Node],
        *,
        leading: Sequence[Node] = (),
        trailing: Sequence[Node] = (),
        most: int = _MOST_STATES,
    ) -> None:
        """`leading` patterns count at the text's very beginning only, `trailing` ones at its very end; `most`: states.

        Raises:
            Unsupported: a pattern may match no text at all, or there are more states.
        """
        self.search = Search(patterns, leading, trailing, most)
        self.signs = sorted({text for tree in patterns for text, _ in _signs(tree)})

    def take(self, text: str) -> bool:
        """Whether none of the patterns matches in a text."""
        state = self.search.after(0, text)
        return not self.search.found[state] and self.search.ends[state]

    def without(self, rules: Rules) -> str:
        """Any text in which none of the patterns matches."""
        search = self.search
        ends: dict[int, list[Way]] = {state: [('""', None)] if search.ends[state] else [] for state in search.open}
        return written(rules, {state: [*ends[state], *self._on(state)] for state in search.open})[0]

    def until(self, rules: Rules, pattern: int) -> str:
        """Any text that ends with the first match of any pattern, if that is the one of this number."""
        last = {state for state, found in enumerate(self.search.found) if pattern in found}
        ends: dict[int, list[Way]] = {
            state: [(text, None) for text, _ in self._on(state, last)] for state in self.search.open
        }
        return written(rules, {state: [*ends[state], *self._on(state)] for state in self.search.open})[0]

    def _on(self, state: int, targets: Collection[int] | None = None) -> list[Way]:
        targets = self.search.open if targets is None else targets
        return [way for way in steps(self.search, self.search.moves[state]) if way[1] in targets]


def steps(search: Search, moves: Sequence[int], *, without: Collection[str] = ()) -> Iterator[tuple[str, int]]:
    """One character, but for some, and the state that it leads to; `moves`: that of each class of characters."""
    led: dict[int, set[int]] = {}
    for number, state in enumerate(moves):
        led.setdefault(state, set()).add(number)
    for target, numbers in led.items():
        others = search.others in numbers
        inside = [number for number in range(len(search.alphabet)) if (number in numbers) != others]
        chars = {char for number in inside for char in search.alphabet[number]}
        chars = chars.union(without) if others else chars.difference(without)
        if chars or others:
            yield char_class(chars, others=others), target


def written(rules: Rules, ways: Mapping[int, Sequence[Way]], start: str = "") -> dict[int, str]:
    """A rule for each state: their names. `start`: that of the first state, if it has one."""
    names = {state: rules.reserve("text") for state in ways}
    if start:
        names[0] = start
    for state, given in ways.items():
        # A state that leads to itself is a loop: an engine reads it faster than a rule that calls itself. The loop
        # stands in each of the rule's ways on: behind it a rule for all of them, which may be empty, would be one
        # level more each time that a text comes back to this state.
        loop = next((f"{text}*" for text, target in given if target == state and text.startswith("[")), "")
        on = [(text, target) for text, target in given if f"{text}*" != loop]
        rules.define(
            names[state],
            " | ".join(series([loop, text, "" if target is None else names[target]]) for text, target in on),
        )
    return names


def _signs(node: Node) -> list[tuple[str, bool]]:
    """The texts with one of which each match begins, but for what need not be there (an empty one: none is certain),
    and whether a match may end with it."""
    match node:
        case CharSet():
            return [(node.literal, True)] if node.literal is not None else [("", False)]
        case Group():
            return _signs(node.item)
        case Choice():
            return [found for branch in node.branches for found in _signs(branch)]
        case Repeat():
            return [("", False)]
        case Series():
            found: list[tuple[str, bool]] = [("", True)]
            for item in node.items:
                if may_be_empty(item) and all(not text for text, _ in found):
                    continue
                more = _signs(item)
                found = [
                    (text + further, whole and going)
                    for text, whole in found
                    for further, going in (more if whole else [("", False)])
                ]
            return found
