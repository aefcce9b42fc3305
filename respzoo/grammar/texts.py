"""Free text in a grammar: any characters, but none of certain patterns.

A value in tags may hold its own closing tag, as long as what follows it is not what follows a value's end. A list of
excluded strings cannot say that (`</parameter>`, any white space, `</function>`). So the patterns become one
deterministic automaton that looks for any of them, as small as it can be, and its states become rules, each one
character and the next state: a text is read in time linear in its length. What a state costs is a mask over all tokens,
which xgrammar makes when it compiles the grammar, so the states are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from respzoo.automaton import Automaton
from respzoo.grammar.ebnf import Rules, char_class, may_be_empty, quote, series
from respzoo.patterns import CharSet, Choice, Group, Node, Repeat, Series, Unsupported

__all__ = ["Texts", "dispatch", "quoted"]

_MOST_STATES = 5_000
_ASCII = [chr(code) for code in range(128)]
# \s, beyond ASCII
_SPACES = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_OTHER = "\ufffd"  # stands for all characters that are nowhere named


class Texts:
    """The search for some patterns, as rules of a grammar.

    Attributes:
        signs: what the patterns begin with, as far as that is certain.
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
        self._automaton = Automaton([*patterns, *trailing, *leading])
        self._trailing = range(len(patterns), len(patterns) + len(trailing))
        self._restart = frozenset(
            place for place in self._automaton.start.places if self._automaton.owners[place] < self._trailing.stop
        )
        self._alphabet = _alphabet([chars for chars in self._automaton.nodes if chars is not None])
        self._others = next(number for number, members in enumerate(self._alphabet) if _OTHER in members)
        self._moves: list[list[int]] = []  # by state: the state that each class of characters leads to
        self._found: list[frozenset[int]] = []  # by state: the patterns that have matched
        self._ends: list[bool] = []  # by state: whether a text may end
        self._explore(most)
        self._blocks = self._minimal()
        self.signs = sorted({text for tree in patterns for text, _ in _signs(tree)} - {""})
        self._first: dict[int, int] = {}  # by block: one of its states
        for state, block in enumerate(self._blocks):
            self._first.setdefault(block, state)

    def take(self, text: str) -> bool:
        """Whether none of the patterns matches in a text."""
        state = 0
        for char in text:
            state = self._moves[state][self._class(char)]
            if self._found[state]:
                return False
        return self._ends[state]

    def without(self, rules: Rules) -> str:
        """Any text in which none of the patterns matches."""
        return self._write(rules, lambda block, steps: [*self._stop(block), *steps])

    def _stop(self, block: int) -> list[str]:
        """The end of a text, where it may end."""
        return ['""'] if self._ends[self._first[block]] else []

    def until(self, rules: Rules, pattern: int) -> str:
        """Any text that ends with the first match of any pattern, if that is the one of this number."""
        final = {self._blocks[state]: "" for state, found in enumerate(self._found) if pattern in found}
        return self._write(rules, lambda block, steps: [*self._steps(block, final), *steps])

    def _write(self, rules: Rules, body: Callable[[int, list[str]], list[str]]) -> str:
        """A rule for each state in which nothing has matched yet."""
        blocks = sorted({self._blocks[state] for state, found in enumerate(self._found) if not found})
        names = {block: rules.reserve("text") for block in blocks}
        for block in blocks:
            steps = list(self._steps(block, names))
            # A state that leads to itself is a loop: an engine reads it faster than a rule that calls itself. The loop
            # stands in each of the rule's ways on: behind it a rule for all of them, which may be empty, would be one
            # level more each time that a text comes back to this state.
            loop = next((step for step in steps if step.endswith(f" {names[block]}")), None)
            rest = body(block, [step for step in steps if step != loop])
            if loop is not None:
                again = f"{loop.removesuffix(f' {names[block]}')}*"
                rest = [series([again, one]) for one in rest]
            rules.define(names[block], " | ".join(rest))
        return names[self._blocks[0]]

    def _steps(self, block: int, names: Mapping[int, str]) -> Iterator[str]:
        """One character, and the rule of the state that it leads to."""
        led: dict[int, set[int]] = {}
        for number, state in enumerate(self._moves[self._first[block]]):
            led.setdefault(self._blocks[state], set()).add(number)
        for target, numbers in led.items():
            if target not in names:
                continue
            others = self._others in numbers
            inside = [number for number in range(len(self._alphabet)) if (number in numbers) != others]
            chars = [char for number in inside for char in self._alphabet[number]]
            yield f"{char_class(chars, others=others)} {names[target]}".rstrip()

    def _class(self, char: str) -> int:
        return next((number for number, members in enumerate(self._alphabet) if char in members), self._others)

    def _explore(self, most: int) -> None:
        numbers = {frozenset(self._automaton.start.places): 0}
        order = list(numbers)
        nodes, owners = self._automaton.nodes, self._automaton.owners
        for places in order:
            ended = frozenset(owners[place] for place in places if nodes[place] is None)
            found = ended.difference(self._trailing)
            self._ends.append(found == ended)
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
        blocks = _numbered(list(zip(self._found, self._ends, strict=True)))
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


def quoted(rules: Rules, mark: str, escapes: str, *, without: Sequence[str] = (), tabs: bool = False) -> str:
    """The inside of a string between such marks, on one line and without these texts as it is written; `escapes` is the
    rule of what may stand behind a backslash; `tabs`: these may stand as they are."""
    controls = [chr(code) for code in range(32) if not tabs or code != 9]
    return rules.add(dispatch({"\\": escapes}, [mark, *controls, *without]), "quoted")


def dispatch(tags: Mapping[str, str], banned: Sequence[str]) -> str:
    """Any text without what is banned, in which each of the tags is followed by its rule: EBNF of xgrammar's own, which
    engines read as fast as text can be read."""
    parts = [*(f"({quote(tag)}, {rule})" for tag, rule in tags.items()), "loop_after_dispatch=true"]
    if banned:
        parts.append(f"excludes=({', '.join(map(quote, banned))})")
    return f"TagDispatch({', '.join(parts)})"


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
