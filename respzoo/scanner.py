"""Find the next delimiter in a text that is still growing, and hold back what may become one.

Strategy. A *watch list* is compiled once: the delimiters that matter in one state of the parser. Its literals and
patterns become one automaton. A stream's *scanner* walks the text with it:

- a chunk in which no delimiter can begin costs one search for the characters that could (`WatchList.begins`);
- from such a character on, every place where a delimiter may have begun is a *candidate*, advanced once a character;
  the text from the first living candidate on is held, everything before it is decided;
- a candidate ends as the `regex` module would end it: earliest start first, then the preferred way to match. One that
  has matched but could still match differently (`</f>(?:\\s*</t>)?`) waits, so that every cutting agrees.

Two candidates in the same state have the same future, so the later one is dropped; the work a character is therefore
bounded by the template, not by the text. Patterns that the automaton does not know are searched for (search.py), over
what is undecided only.

What template and text together can do against this is counted: no candidate is followed for more than `_MOST_HELD`
characters, and what is walked again, many candidates in many states, and the `regex` module's time are taken from the
stream's allowance (allowance.py). When it is used up, `advance` raises TimeoutError.
"""

from __future__ import annotations

from respzoo.allowance import Allowance, left_until
from respzoo.automaton import LONGEST_LEAP, State
from respzoo.delimiters import WEAK, Delimiter, Found, Partial, WatchList
from respzoo.search import Searched, search

__all__ = ["Scanner"]

_BEHIND = 4_096  # characters of decided text that a pattern may look behind at
_SHARE = 16
_MOST_HELD = 262_144  # characters from where a delimiter may have begun
_MANY = 16  # candidates at once that are taken for granted


class _Candidate:
    """A place where a delimiter may have begun: its offset in the held text, and how far it has come."""

    __slots__ = ("ends", "start", "state")

    def __init__(self, start: int, state: State) -> None:
        self.start = start
        self.state: State | None = state
        self.ends: dict[int, int] | None = None


def _step(candidate: _Candidate, char: str, stop: int) -> State | None:
    """Take one more character, which ends at `stop`. Returns the candidate's state."""
    state = candidate.state
    if state is None:
        return None
    state = candidate.state = state.step(char)
    if state is not None and state.matched:
        ends = candidate.ends = {} if candidate.ends is None else candidate.ends
        for number in state.matched:
            ends[number] = stop
    return state


class Scanner:
    """One stream's search. `load` text, then call `advance` until it finds nothing more.

    `text[at:]` is what is left to walk of the current chunk; a content parser that knows its own way through a stretch
    (a JSON string) may move `at` itself while nothing is held.
    """

    __slots__ = (
        "_candidates",
        "_held",
        "_keep",
        "_late",
        "_length",
        "_patience",
        "_searched",
        "allowance",
        "at",
        "text",
    )

    def __init__(self, *, keep: bool = False) -> None:
        """`keep=True` keeps text that is decided, for patterns that look behind; such a template has no automaton."""
        self.text: str = ""
        self.at: int = 0
        self._keep = keep
        self._held: list[str] | tuple[()] = ()  # held text of earlier chunks
        self._length = 0  # and its length
        self._candidates: list[_Candidate] | tuple[()] = ()
        self._late: list[str] | None = None  # text that is not searched before `_patience` more characters have come
        self._patience = 0
        self._searched: Searched | None = None
        self.allowance = Allowance()

    @property
    def idle(self) -> bool:
        """Whether nothing is held and nothing is left to walk."""
        return not self._held and not self._late and self.at >= len(self.text)

    @property
    def held(self) -> str:
        """The text that is undecided, or left to walk."""
        return "".join([*self._held, self.text[self.at :], *(self._late or ())])

    @property
    def undecided(self) -> int:
        """How many characters are held or left to walk."""
        return self._length + sum(map(len, self._late or ())) + len(self.text) - self.at

    def waiting(self, watch: WatchList) -> Delimiter | None:
        """The delimiter that the held text is already, if it only waits for what may lengthen it."""
        if watch.automaton is None:
            try:
                deadline = self.allowance.deadline()
                for one in watch.delimiters:
                    if one.pattern.match(self.text, self.at, timeout=left_until(deadline)) is not None:
                        return one
            except TimeoutError:  # this is only a question; the next `advance` has to act on it
                pass
            return None
        first = self._candidates[0] if self._candidates else None
        if first is None or first.ends is None:
            return None
        return watch.delimiters[max(first.ends, key=first.ends.__getitem__)]

    def load(self, text: str) -> None:
        """Add a chunk."""
        if self._patience:
            self._late = self._late or []
            self._late.append(text)
            self._patience = max(0, self._patience - len(text))
            if self._patience:
                return
            text = "".join(self._late)
            self._late = None
        self.allowance.grow(len(text))
        self._searched = None
        if self.at >= len(self.text) and not self._keep:
            self.text, self.at = text, 0
            return
        kept = self.at - _BEHIND if self._keep else self.at
        if not self._keep or kept > _BEHIND:
            self.text = self.text[kept:]
            self.at -= kept
        self.text += text

    # ------------------------------------------------------------------------------------------ the automaton's way

    def advance(self, watch: WatchList, *, end: bool = False) -> tuple[str, Found | Partial | None]:
        """Walk on. Returns the text that is decided, and the delimiter that follows it, if one was found.

        With `end`, no more text will come: what is held is decided too, and text that had begun to be a delimiter is
        returned as `Partial`.

        Raises:
            TimeoutError: the stream's allowance is used up; `give_up` then has the text that is not decided.
        """
        automaton, begins = watch.automaton, watch.begins
        if automaton is None or begins is None:
            return self._advance_by_search(watch, end=end)
        text, at = self.text, self.at
        size = len(text)
        decided_from = at  # of this chunk; nothing is decided of it while older text is held
        mark = at  # where the held text begins in this chunk
        candidates = self._candidates
        if candidates:
            mark = decided_from
        start = automaton.start
        begun = start.next
        while True:
            if not candidates:
                if self._held:  # nothing of it was a delimiter
                    self.text, self.at = "".join(self._held) + text[decided_from:], 0
                    skip = self._length + at - decided_from
                    self._held, self._length = (), 0
                    text, decided_from = self.text, 0
                    at, size = skip, len(text)
                begin = begins(text, at) if at < size else None
                found_at = -1 if begin is None else begin.start()
                if found_at < 0:
                    stop = size
                    if watch.leads and not end and at < size:
                        stop = at + len(text[at:].rstrip())
                    if stop == size:
                        self.text, self.at = "", 0
                        return text[decided_from:], None
                    found_at = stop
                elif watch.leads:
                    found_at = at + len(text[at:found_at].rstrip())
                at = mark = found_at
                if size - mark <= LONGEST_LEAP and (after := automaton.leap(text[mark:])) is not None:
                    first = _Candidate(self._length, after)
                    candidates = self._candidates = [first]
                    first.ends = dict.fromkeys(after.matched, self._length + size - mark)
                    at = size
                    if after.ended:
                        return self._commit(watch, first, decided_from, mark, at)
            base = self._length - mark  # offset in the held text = place in the chunk + base
            stop = min(size, (candidates[0].start if candidates else at + base) + _MOST_HELD - base)
            while at < stop:
                char = text[at]
                at += 1
                if len(candidates) == 1 and (only := candidates[0]).ends is None and begun.get(char, start) is None:
                    # nearly always: one candidate, which has not matched, and no other begins
                    state = only.state
                    assert state is not None
                    after = state.next.get(char, start)
                    if after is start:  # no state leads back to the start: it has not been made yet
                        after = state.step(char)
                    if after is None:
                        candidates.clear()
                        break
                    only.state = after
                    if not after.matched:
                        continue
                    only.ends = dict.fromkeys(after.matched, at + base)
                    if at == size and only.start == self._length and size - mark <= LONGEST_LEAP:
                        automaton.note(text[mark:], after)
                elif candidates and candidates[0].ends is not None:
                    # a match that waits to grow: no later candidate matters any more
                    _step(candidates[0], char, at + base)
                    del candidates[1:]
                else:
                    candidates = self._step_all(char, at + base, start)
                    if not candidates:
                        break
                    if len(candidates) > _MANY:
                        self.allowance.walk(sum(len(one.state.places) for one in candidates if one.state is not None))
                first = candidates[0]
                if first.ends is not None and (first.state is None or first.state.ended):
                    return self._commit(watch, first, decided_from, mark, at)
            if not candidates:
                continue
            if at + base - candidates[0].start < _MOST_HELD:
                if at == size:
                    break
            elif candidates[0].ends is not None:
                return self._commit(watch, candidates[0], decided_from, mark, at)
            else:
                candidates.clear()  # all this is text
        # the chunk is walked, and something in it may still become a delimiter
        if end:
            for candidate in candidates:
                if candidate.ends is not None and not self._gives_way(watch, candidate):
                    return self._commit(watch, candidate, decided_from, mark, size)
        first = candidates[0]
        before = "" if self._held else text[decided_from:mark]
        self._held = self._held or []
        self._held.append(text[mark:])
        self._length += size - mark
        self.at = size
        if first.start:
            whole = "".join(self._held)
            before += whole[: first.start]
            self._held, self._length = [whole[first.start :]], len(whole) - first.start
            shift = first.start
            for candidate in candidates:
                candidate.start -= shift
                if candidate.ends is not None:
                    candidate.ends = {number: stop - shift for number, stop in candidate.ends.items()}
        if not end:
            return before, None
        rest = "".join(self._held)
        pending = first.state.pending if first.state is not None else ()
        self.reset()
        return before, Partial(tuple(watch.delimiters[number] for number in pending), rest)

    @staticmethod
    def _gives_way(watch: WatchList, candidate: _Candidate) -> bool:
        """Whether only weak delimiters have matched and a stronger one has begun."""
        pending = () if candidate.state is None else candidate.state.pending
        return all(watch.delimiters[number].order == WEAK for number in candidate.ends or ()) and any(
            watch.delimiters[number].order != WEAK for number in pending
        )

    def give_up(self) -> str:
        """Forget everything. Returns the text that was not decided."""
        text = "".join([*self._held, self.text[self.at :], *(self._late or ())])
        self.reset()
        return text

    def walk_again(self) -> None:
        """Walk what is held from its beginning: the delimiters that matter have changed."""
        self.allowance.walk(self._length)
        if self._held:
            self.text, self.at = "".join(self._held) + self.text[self.at :], 0
            self._held, self._length, self._candidates = (), 0, ()
        if self._late:
            self.text += "".join(self._late)
            self._late = None
        self._patience = 0
        self._searched = None

    def unread(self, text: str) -> None:
        """Put back the last text that was returned, to be walked by another watch list."""
        self.walk_again()
        if self._keep:
            self.at -= len(text)
        else:
            self.text, self.at = text + self.text[self.at :], 0

    def reset(self) -> None:
        """Forget what is held and what is left to walk."""
        self.text, self.at = "", 0
        self._held, self._length = (), 0
        self._candidates = ()
        self._late, self._patience = None, 0
        self._searched = None

    def _step_all(self, char: str, stop: int, start: State) -> list[_Candidate]:
        alive: list[_Candidate] = []
        states: set[State] = set()
        for candidate in self._candidates:
            state = _step(candidate, char, stop)
            if state in states:  # an earlier candidate has the same future
                candidate.state = state = None
            if state is not None:
                states.add(state)
            elif candidate.ends is None:
                continue
            alive.append(candidate)
        begun = start.step(char)
        if begun is not None and begun not in states:
            candidate = _Candidate(stop - 1, begun)
            if begun.matched:
                candidate.ends = dict.fromkeys(begun.matched, stop)
            alive.append(candidate)
        self._candidates = alive
        return alive

    def _commit(
        self, watch: WatchList, candidate: _Candidate, decided_from: int, mark: int, at: int
    ) -> tuple[str, Found | None]:
        text = self.text
        before = "" if self._held else text[decided_from:mark]
        whole = "".join([*self._held, text[mark:at]])
        assert candidate.ends is not None
        ends = candidate.ends.items()
        if len(ends) == 1:
            ((number, stop),) = ends
        else:
            number, stop = min(ends, key=lambda item: watch.delimiters[item[0]].rank(item[1]))
        delimiter = watch.delimiters[number]
        groups: dict[str, str] = {}
        spans: dict[str, tuple[int, int]] = {}
        if delimiter.has_groups:
            deadline = self.allowance.deadline()
            match = delimiter.pattern.fullmatch(whole, candidate.start, stop, timeout=left_until(deadline))
            self.allowance.settle(deadline)
            assert match is not None
            groups = {name: value for name, value in match.groupdict().items() if value is not None}
            spans = {name: (match.start(name) - candidate.start, match.end(name) - candidate.start) for name in groups}
        found = Found(delimiter, whole[candidate.start : stop], groups, spans)
        self.allowance.walk(len(whole) - stop)
        if stop >= self._length:
            after = mark + stop - self._length
            self.text, self.at = (text, after) if after < len(text) else ("", 0)
        else:  # it ended in an older chunk: what was held behind it is walked again
            self.text, self.at = whole[stop:] + text[at:], 0
        self._held, self._length, self._candidates = (), 0, ()
        return before + whole[: candidate.start], found

    # ---------------------------------------------------------------------------------------- the regex module's way

    def _advance_by_search(self, watch: WatchList, *, end: bool) -> tuple[str, Found | Partial | None]:
        # `text` is all that is kept and `at` the first undecided character: nothing is walked, all is searched
        if self._patience:
            if not end:
                return "", None
            self._patience = 0
            self.load("".join(self._late or ()))
            self._late = None
        text, at = self.text, self.at
        deadline = self.allowance.deadline()
        self._searched = searched = self._searched or {}
        hold, found, self.at = search(watch, text, at, searched, end=end, deadline=deadline)
        self.allowance.settle(deadline)
        if found is None and not end:
            # a search goes over all that is held: the more that is, the more must come before the next one
            self._patience = (len(text) - hold) // _SHARE
        return text[at:hold], found
