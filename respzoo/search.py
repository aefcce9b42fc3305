"""Find delimiters whose patterns the automaton does not know, by the `regex` module's partial matching.

All that is undecided is searched, so a pattern is tried only where the outline of it says that it may begin, and a
search remembers where it has looked. It has until a deadline: the module may take longer for a pattern than any text is
worth.
"""

from __future__ import annotations

import regex

from respzoo.allowance import left_until
from respzoo.delimiters import WEAK, Delimiter, Found, Partial, WatchList

__all__ = ["Searched", "search"]

_SOLID = regex.compile(r"\S")
Searched = dict[tuple[int, bool], tuple[regex.Match[str] | None, int]]
"""What is known of one text, by delimiter: see `_settled_match`."""


def search(
    watch: WatchList, text: str, at: int, searched: Searched, *, end: bool, deadline: float
) -> tuple[int, Found | Partial | None, int]:
    """The first delimiter in `text` from `at` on.

    Returns up to where the text is decided, what follows there if that is known, and where to go on.

    Raises:
        TimeoutError: the deadline (of `time.thread_time`) has passed.
    """
    hold = len(text)
    best: tuple[tuple[int, tuple[bool, int, int, str]], Delimiter, regex.Match[str]] | None = None
    for delimiter in watch.delimiters:
        match, held_from = _settled_match(delimiter, text, at, searched, end=end, deadline=deadline)
        hold = min(hold, held_from)
        if match is not None:
            key = (match.start(), delimiter.rank(match.end() - match.start()))
            if best is None or key < best[0]:
                best = (key, delimiter, match)
    if end:
        tail, delimiters = _partial_tail(watch, text, at, deadline)
        if delimiters and (best is None or (tail <= best[0][0] and best[1].order == WEAK)):
            return tail, Partial(delimiters, text[tail:]), len(text)
    if best is not None and best[0][0] < hold:
        _, delimiter, match = best
        groups = {name: value for name, value in match.groupdict().items() if value is not None}
        begin = match.start()
        spans = {name: (match.start(name) - begin, match.end(name) - begin) for name in groups}
        return begin, Found(delimiter, match[0], groups, spans), match.end()
    decided = len(text) if end else hold
    return decided, None, decided


def _settled_match(
    delimiter: Delimiter, text: str, at: int, searched: Searched, *, end: bool, deadline: float
) -> tuple[regex.Match[str] | None, int]:
    """The first whole match that nothing can change any more, and from where on the text must be held for one that
    may still come or change."""
    known = searched.get((id(delimiter), end))
    if known is not None and (known[1] if known[0] is None else known[0].start()) >= at:
        return known
    match = _first_match(delimiter, text, at, end=end, deadline=deadline)
    if match is None:
        result = None, len(text)
    elif match.partial or (not end and _can_grow(delimiter, match, text, deadline)):
        result = None, match.start()
    else:
        result = match, len(text)
    searched[id(delimiter), end] = result
    return result


def _first_match(delimiter: Delimiter, text: str, at: int, *, end: bool, deadline: float) -> regex.Match[str] | None:
    """The match, whole or (but at the end) partial, that begins first."""
    outline = delimiter.outline
    left = left_until(deadline)
    # at the end one search does: the module sees at once that a text lacks what every match holds
    if outline is None or (end and not delimiter.sweeps):
        match = delimiter.pattern.search(text, at, partial=not end, timeout=left)
        if match is None or end or match.partial or match.start() == at:
            return match
        # the module prefers a whole match to a partial one that begins earlier
        partial = delimiter.probe.search(text, at, partial=True, timeout=left_until(deadline))
        return partial if partial is not None and partial.start() < match.start() else match
    # only where it may begin is it tried: a partial search costs the module far more than a partial match
    looked = at
    while True:
        begin = outline.begins(text, looked)
        core = len(text) if begin is None else begin.start()
        if begin is None and (end or not outline.leads):
            return None
        start = looked + len(text[looked:core].rstrip()) if outline.leads else core
        for place in sorted({start, *range(max(start, core - 2), core + 1)}):
            match = delimiter.pattern.match(text, place, partial=not end, timeout=left)
            if match is not None and place < len(text):
                return match
        if begin is None:
            return None
        looked = core + 1
        left = left_until(deadline)
        if delimiter.sweeps and text[core].isspace():
            solid = _SOLID.search(text, core)
            looked = len(text) if solid is None else solid.start()


def _can_grow(delimiter: Delimiter, match: regex.Match[str], text: str, deadline: float) -> bool:
    """Whether a whole match could still become another one as more text comes."""
    at_edge = match.end() == len(text)
    if delimiter.literals is not None:
        if not at_edge:
            return False
        return any(other != match[0] and other.startswith(match[0]) for other in delimiter.literals)
    if at_edge:
        return True
    # an end-of-text assertion may have held at the edge only: does the match survive one more character?
    longer = delimiter.pattern.match(text + "\0", match.start(), timeout=left_until(deadline))
    if longer is None or longer.span() != match.span() or longer.groupdict() != match.groupdict():
        return True
    if delimiter.lazy:
        return _prefers_more(delimiter, match, text)
    return delimiter.probe.match(text, match.start(), partial=True, timeout=left_until(deadline)) is not None


def _prefers_more(delimiter: Delimiter, match: regex.Match[str], text: str) -> bool:
    """Whether a match with a lazy part could still become one that is preferred to it. What such a part could take
    besides is none; only the automaton knows one from the other, and it does not know what a pattern looks at."""
    if delimiter.outline is None:
        return False
    (automaton,) = delimiter.outline.automata
    state, ended = automaton.start, None
    for at in range(match.start(), len(text)):
        after = state.step(text[at])
        if after is None:
            return False
        state = after
        if state.matched:
            ended = at + 1
    return ended == match.end() and not state.ended


def _partial_tail(watch: WatchList, text: str, at: int, deadline: float) -> tuple[int, tuple[Delimiter, ...]]:
    """Where text that had begun to be a delimiter begins at the end of the output, and which it could have been."""
    tail = len(text)
    delimiters: list[Delimiter] = []
    for delimiter in watch.delimiters:
        if delimiter.order == WEAK:
            continue
        match = _first_match(delimiter, text, at, end=False, deadline=deadline)
        if match is not None and match.partial and match.start() < len(text):
            if match.start() < tail:
                tail, delimiters = match.start(), []
            if match.start() == tail:
                delimiters.append(delimiter)
    return tail, tuple(delimiters)
