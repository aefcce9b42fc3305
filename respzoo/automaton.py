"""Run delimiters' patterns over a text that is still growing.

A delimiter must be found in a stream: at every character the parser has to know whether the text so far is a match,
may become one, or cannot. Asking a regex engine means asking anew for each token, over all that is held back. So the
patterns' trees become a small automaton that sees each character once. It keeps the order in which a backtracking
engine would try its alternatives (greedy, lazy, first branch first), and so ends a match exactly where the `regex`
module does.

It is a lazy DFA: its states are made when a text first reaches them, and are shared by all streams. Its memory is
bounded, whatever the pattern: the places are counted while it is built, and of states and moves only so many are kept
(`_MOST_CELLS`); past that all are forgotten but those that a stream stands in, and made anew. A step that finds its
move is a dictionary's; one that makes it costs what there are places, so that no text costs more than that a character.
"""

from __future__ import annotations

from collections.abc import Sequence

from respzoo.patterns import CharSet, Choice, Group, Node, Repeat, Series, Unsupported

__all__ = ["LONGEST_LEAP", "Automaton", "State", "beginnings"]

LONGEST_LEAP = 48
"""Characters of a text that is worth noting."""

_MOST_NODES = 20_000
_MOST_MOVES = 200_000  # from place to place: optional parts in a row lead to one another
_MOST_CHARS = 2_000  # of one state's moves: a class met by a large alphabet
_MOST_LEAPS = 64
_MOST_CELLS = 200_000  # of memory in states and their moves, a place or a move each

# A program is a list of nodes, each (char set, next nodes in order of preference). A node with the set None is where
# a pattern has matched. Empty moves are resolved while it is built: `tails` are what may follow, in order.


class State:
    """What the automaton knows after some text: the places it may be at, the preferred first, pattern by pattern.

    Attributes:
        matched: the patterns of which the text so far is a match.
        ended: whether no further text can change that: nothing preferred to the match is still possible.
        pending: the patterns that more text could still complete.
    """

    __slots__ = ("automaton", "ended", "matched", "next", "pending", "places")

    def __init__(self, automaton: Automaton, places: tuple[int, ...]) -> None:
        self.automaton = automaton
        self.places = places
        nodes, owners = automaton.nodes, automaton.owners
        self.matched = tuple(owners[place] for place in places if nodes[place] is None)
        self.pending = tuple(sorted({owners[place] for place in places if nodes[place] is not None}))
        self.ended = not self.pending
        self.next: dict[str, State | None] = {}

    def step(self, char: str) -> State | None:
        """The state after one more character; None when no pattern can match any more."""
        try:
            return self.next[char]
        except KeyError:
            return self.automaton.extend(self, char)


class Automaton:
    """All patterns of a watch list at once. Pattern numbers are their places in `trees`."""

    def __init__(self, trees: Sequence[Node]) -> None:
        self.nodes: list[CharSet | None] = []
        self.owners: list[int] = []
        self.follow: list[tuple[int, ...]] = []
        self._states: dict[tuple[int, ...], State] = {}
        self._cells = 0
        self._leaps: dict[str, State] = {}
        self.moves = 0
        starts: list[int] = []
        try:
            for owner, tree in enumerate(trees):
                self._owner = owner
                starts.extend(self._build(tree, (self._add(None, ()),)))
        except RecursionError as error:
            raise Unsupported("groups nested too deeply") from error
        self.start = self.state(tuple(dict.fromkeys(starts)))
        if self.start.matched:
            raise Unsupported("a pattern that matches the empty text")

    def _add(self, chars: CharSet | None, follow: tuple[int, ...]) -> int:
        if len(self.nodes) >= _MOST_NODES:  # counted repeats multiply where they are nested
            raise Unsupported(f"an automaton of more than {_MOST_NODES} places")
        self.nodes.append(chars)
        self.owners.append(self._owner)
        self.follow.append(follow)
        self.moves += len(follow)
        if self.moves > _MOST_MOVES:
            raise Unsupported(f"an automaton of more than {_MOST_MOVES} moves")
        return len(self.nodes) - 1

    def _build(self, node: Node, tails: tuple[int, ...]) -> tuple[int, ...]:
        """Lay `node` before `tails`; returns its entries, in order of preference."""
        match node:
            case CharSet():
                return (self._add(node, tails),)
            case Group():
                return self._build(node.item, tails)
            case Series():
                for item in reversed(node.items):
                    tails = self._build(item, tails)
                return tails
            case Choice():
                entries = [entry for branch in node.branches for entry in self._build(branch, tails)]
                return tuple(dict.fromkeys(entries))
            case Repeat():
                return self._repeat(node, tails)

    def _repeat(self, node: Repeat, tails: tuple[int, ...]) -> tuple[int, ...]:
        if node.high is None:
            # a loop: its body is followed by itself or by the tails, whichever is preferred
            loop = self._add(CharSet("(?!)"), ())  # a place that is never entered holds the loop's follow list
            body = self._build(node.item, (loop,))
            if loop in body:
                raise Unsupported("a repeat of what may be empty")
            around = self._prefer(body, tails, node.lazy)
            for index in range(loop + 1, len(self.nodes)):
                if loop in self.follow[index]:
                    self.follow[index] = _splice(self.follow[index], loop, around)
                    self.moves += len(around)
            entries = around
            copies = node.low
            if copies == 0:
                return entries
            tails = entries
            copies -= 1
            entries = self._build(node.item, tails)
        else:
            entries = tails
            for _ in range(node.high - node.low):
                entries = self._prefer(self._build(node.item, entries), tails, node.lazy)
            copies = node.low
        for _ in range(copies):
            entries = self._build(node.item, entries)
        return entries

    @staticmethod
    def _prefer(body: tuple[int, ...], tails: tuple[int, ...], lazy: bool) -> tuple[int, ...]:
        return tuple(dict.fromkeys(tails + body if lazy else body + tails))

    def state(self, places: tuple[int, ...]) -> State:
        """The state for these places; after a match, what is less preferred in the same pattern is cut off."""
        kept: list[int] = []
        done: set[int] = set()
        for place in places:
            owner = self.owners[place]
            if owner in done:
                continue
            kept.append(place)
            if self.nodes[place] is None:
                done.add(owner)
        key = tuple(kept)
        state = self._states.get(key)
        if state is None:
            self._remember(len(key) + 1)
            state = self._states.setdefault(key, State(self, key))
        return state

    def _remember(self, cells: int) -> None:
        """Make room. States lead to one another, so that all moves are forgotten with them."""
        if self._cells > _MOST_CELLS:
            for state in list(self._states.values()):
                state.next.clear()
            self._states = {self.start.places: self.start}
            self._cells = 0
        self._cells += cells

    def extend(self, state: State, char: str) -> State | None:
        places: dict[int, None] = {}
        for place in state.places:
            chars = self.nodes[place]
            if chars is not None and chars.accepts(char):
                places.update(dict.fromkeys(self.follow[place]))
        result = self.state(tuple(places)) if places else None
        self._remember(1)
        if len(state.next) > _MOST_CHARS:
            state.next.clear()
        state.next[char] = result
        return result

    def leap(self, text: str) -> State | None:
        """Where a text that was noted leads from the start."""
        return self._leaps.get(text)

    def note(self, text: str, state: State) -> None:
        """Markers come as one token, and are walked but once: a match that began with this text was the only one that
        did, and none of it had matched before its end."""
        if len(self._leaps) < _MOST_LEAPS:
            self._leaps[text] = state


def _splice(follow: tuple[int, ...], loop: int, around: tuple[int, ...]) -> tuple[int, ...]:
    at = follow.index(loop)
    return tuple(dict.fromkeys(follow[:at] + around + follow[at + 1 :]))


def beginnings(automaton: Automaton) -> tuple[dict[CharSet, set[CharSet | None]], bool]:
    """What a match can begin with: its first character that is not leading white space, each with what can come next
    (None: the match may end there), and whether any white space may lead. White space with which a match could also end
    counts as a first character itself."""
    nodes, follow = automaton.nodes, automaton.follow
    firsts: dict[CharSet, set[CharSet | None]] = {}
    leads = False
    stack = list(automaton.start.places)
    seen = set(stack)
    while stack:
        place = stack.pop()
        chars = nodes[place]
        after = [nodes[one] for one in follow[place]]
        if chars is None:
            continue
        if chars.spaces_only and None not in after:
            leads = True
            stack.extend(one for one in follow[place] if one not in seen)
            seen.update(follow[place])
        else:
            firsts.setdefault(chars, set()).update(after)
    return firsts, leads
