"""The search for delimiters in a growing text: one sequence, however the text is cut, and the one of the whole text."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from respzoo.delimiters import WEAK, Delimiter, Found, Partial, WatchList
from respzoo.scanner import Scanner
from respzoo.testing import cuttings


def literal(name: str, *texts: str, order: int = 0) -> Delimiter:
    return Delimiter.literal("open", name, texts, order)


def pattern(name: str, source: str, order: int = 0) -> Delimiter:
    return Delimiter.regex("open", name, source, order)


def watched(delimiters: Sequence[Delimiter], *, keep: bool = False) -> WatchList:
    return WatchList(delimiters, plain=not keep)


def scan(watch: WatchList, pieces: Iterable[str], *, keep: bool = False) -> list[Any]:
    """What a scanner makes of a text: decided text (joined), (name, text, groups) of a delimiter, what had begun."""
    scanner = Scanner(keep=keep)
    out: list[Any] = []

    def text(more: str) -> None:
        if more and out and isinstance(out[-1], str):
            out[-1] += more
        elif more:
            out.append(more)

    def advance(*, end: bool) -> None:
        while True:
            before, found = scanner.advance(watch, end=end)
            text(before)
            if isinstance(found, Found):
                out.append((found.delimiter.field, found.text, dict(found.groups)))
                continue
            if isinstance(found, Partial):
                out.append(("…", found.text, {one.field for one in found.delimiters}))
            return

    for piece in pieces:
        scanner.load(piece)
        advance(end=False)
    advance(end=True)
    return out


def by_definition(delimiters: Sequence[Delimiter], text: str) -> list[Any]:
    """The same from the rules: the whole text known, the earliest start, then the longest, opens before closes, names
    in order; weak ones last. Text that had begun to be a delimiter at the end is left undivided."""
    out: list[Any] = []
    at = 0
    while at < len(text):
        best = None
        for delimiter in delimiters:
            match = delimiter.pattern.search(text, at)
            if match is not None:
                key = (match.start(), delimiter.order == WEAK, -len(match[0]), delimiter.order, delimiter.field)
                if best is None or key < best[0]:
                    best = (key, delimiter, match)
        if best is None:
            break
        _, delimiter, match = best
        out += [text[at : match.start()]] if match.start() > at else []
        groups = {name: value for name, value in match.groupdict().items() if value is not None}
        out.append((delimiter.field, match[0], groups))
        at = match.end()
    return out + ([text[at:]] if at < len(text) else [])


def without_partial(sequence: list[Any]) -> list[Any]:
    """A sequence with what had begun to be a delimiter taken for the text that it is."""
    if sequence and sequence[-1][0] == "…":
        *rest, (_, begun, _) = sequence
        return [*rest[:-1], rest[-1] + begun] if rest and isinstance(rest[-1], str) else [*rest, begun]
    return sequence


def same_however_cut(delimiters: Sequence[Delimiter], text: str, *, keep: bool = False, seed: int = 0) -> list[Any]:
    watch = watched(delimiters, keep=keep)
    whole = scan(watch, [text], keep=keep)
    for how, pieces in cuttings(text, seed=seed, rounds=3):
        assert scan(watch, pieces, keep=keep) == whole, f"{how}: {text!r}"
    assert "".join(part if isinstance(part, str) else part[1] for part in whole) == text
    return whole


LISTS: dict[str, list[Delimiter]] = {
    "one literal": [literal("a", "<c>")],
    "literals": [literal("a", "<c>", "<cc>"), literal("b", "</c>", order=1)],
    "a literal that lengthens": [literal("a", "<t>", "<t>!", "<t>!!x"), literal("b", "</t>", "</t>\n\n", order=1)],
    "an optional tail": [pattern("a", r"</f>(?:\s*</t>)?"), literal("b", "<c>")],
    "a tail that repeats": [pattern("a", r"\s*(?:</t>|</tt>)+\s*", 1), literal("b", "<c>")],
    "white space leads": [pattern("a", r"\s*<c>\s*"), pattern("b", r"\n?</c>", 1), literal("c", "<t>")],
    "names": [
        pattern("a", r"<c>\s*<f=(?P<name>[^>\n]+)>"),
        literal("b", "<c>", order=WEAK),
        literal("c", "</c>", order=1),
    ],
    "a long opener": [pattern("a", r"<c> to=(?P<name>\w+)[^<]*<t>"), literal("b", "<c>!")],
    "lazy": [pattern("a", r"<c>.*?<t>"), literal("b", "</c>", order=1)],
    "first branch first": [pattern("a", r"<c|<c>|<c>\n"), pattern("b", r"(?:</c|</c>)(?:>\n)?", 1)],
    "weak": [literal("z", "<c>", "<t>", order=WEAK), pattern("a", r"<c>\s*<f>"), literal("y", "</c>", order=WEAK)],
    "ties": [literal("b", "<c>", order=1), literal("c", "<c>"), literal("a", "<c>", order=1)],
}
OPAQUE: dict[str, list[Delimiter]] = {
    "a lookahead": [pattern("a", r"<c>(?=\s*<f)"), literal("b", "</c>", order=1)],
    "the end or a closer": [pattern("b", r"</c>|\Z", 1), literal("a", "<c>")],
    "the end behind white space": [pattern("b", r"\s*(?:</c>|$)", 1), literal("a", "<t>")],
    "not before": [pattern("a", r"<c>(?!!)"), literal("b", "<c>!!")],
    "once anywhere behind": [pattern("a", r"<t>(?=.*?</c>)"), literal("b", "<c>")],
    "atomic": [pattern("a", r"(?><c>\s*)<f>"), literal("b", "</c>", order=1)],
    "flags": [pattern("a", r"(?i:<C>)\n?"), literal("b", "</c>", order=1)],
    "lazy, with a tail": [pattern("a", r"</?[ct].*?>(?:\s*!)?(?!x)"), literal("b", "f")],
    "back-reference": [pattern("a", r"<(?P<x>c|t)></(?P=x)>"), literal("b", "<f>")],
}
BEHIND: dict[str, list[Delimiter]] = {
    "a look behind": [pattern("a", r"(?<=\n)<c>"), literal("b", "</c>", order=1)],
    "not behind": [pattern("a", r"(?<!!)<c>\n?"), literal("b", "</c>", order=1)],
    "not behind, lazy, with a tail": [pattern("a", r"(?<!x)</?[ct].*?>(?:\s*!)?"), literal("b", "f")],
    "not behind, lazy, with a choice": [pattern("a", r"(?<!x)</?[ct].*?(?:>\s*!|>)"), literal("b", "f")],
    "the start": [pattern("a", r"^\s*<t>|<c>"), literal("b", "</c>", order=1)],
    "a word's edge": [pattern("a", r"\bf\b"), literal("b", "<c>")],
}
PIECES = ("<c>", "<cc>", "</c>", "<t>", "</t>", "</tt>", "</f>", "<f>", "<f=x>", "<f", " to=f", "!", "!!", "x", "<", "</", ">",
          "\n", "\n\n", " ", "f", "<c", "c>", "ü")  # fmt: skip


def made_up(chance: random.Random) -> str:
    return "".join(chance.choice(PIECES) for _ in range(chance.randint(0, 12)))


def ends_with_begun(sequence: list[Any]) -> bool:
    return bool(sequence) and sequence[-1][0] == "…"


@pytest.mark.parametrize("name", LISTS)
def test_one_sequence(name: str) -> None:
    delimiters = LISTS[name]
    assert watched(delimiters).automaton is not None
    chance = random.Random(name)
    for seed in range(100):
        text = made_up(chance)
        found = same_however_cut(delimiters, text, seed=seed)
        if not (ends_with_begun(found) and any(one.order == WEAK for one in delimiters)):
            assert without_partial(found) == by_definition(delimiters, text), text


@pytest.mark.parametrize("name", [*OPAQUE, *BEHIND])
def test_one_sequence_of_what_only_the_regex_module_knows(name: str) -> None:
    keep = name in BEHIND
    delimiters = BEHIND[name] if keep else OPAQUE[name]
    assert any(one.looks_behind for one in delimiters) is keep
    assert watched(delimiters, keep=keep).automaton is None
    chance = random.Random(name)
    for seed in range(100):
        text = made_up(chance)
        # an empty delimiter could be found for ever at one place: that is the parser's to stop
        if any(one.pattern.search(text + "\0") is not None and one.pattern.fullmatch("") for one in delimiters):
            continue
        if any(one.pattern.fullmatch("") for one in delimiters):
            continue
        found = same_however_cut(delimiters, text, keep=keep, seed=seed)
        assert without_partial(found) == by_definition(delimiters, text), text


@pytest.mark.parametrize("source", [r"</c>|\Z", r"\s*(?:</c>|$)", r"</c>|$"])
@pytest.mark.parametrize("text", ["a</c>b", "ab", "a\n", "a \n ", "a</c", "", "a</c>\n"])
def test_the_end_of_the_text_is_no_end_before_it(source: str, text: str) -> None:
    """`\\Z` and `$` hold at the edge of every chunk: only at the end of all do they count."""
    watch = watched([pattern("b", source, 1)])
    for _, pieces in cuttings(text):
        scanner = Scanner()
        decided = ""
        for piece in pieces:
            scanner.load(piece)
            while True:
                before, found = scanner.advance(watch)
                decided += before
                if found is None:
                    break
                assert isinstance(found, Found)
                assert "</c>" in found.text
                decided += found.text
        rest, found = scanner.advance(watch, end=True)
        assert text.startswith(decided + rest)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a</f>\n</t>b", ["a", ("x", "</f>\n</t>", {}), "b"]),
        ("a</f>\nb", ["a", ("x", "</f>", {}), "\nb"]),
        ("a</f>\n</", ["a", ("x", "</f>", {}), "\n", ("…", "</", {"x"})]),
        ("a</f>", ["a", ("x", "</f>", {})]),
        ("a</f>\n</t", ["a", ("x", "</f>", {}), "\n</t"]),
        ("a</f></f></t>", ["a", ("x", "</f>", {}), ("x", "</f></t>", {})]),
    ],
)
def test_d5_an_optional_tail_waits(text: str, expected: list[Any]) -> None:
    assert same_however_cut([pattern("x", r"</f>(?:\s*</t>)?")], text) == expected


def test_d5_what_follows_a_held_match_is_searched_again() -> None:
    delimiters = [pattern("x", r"</f>(?:\s*</t>)?"), pattern("y", r"\s*<c>")]
    assert same_however_cut(delimiters, "</f> \n<c>z") == [("x", "</f>", {}), ("y", " \n<c>", {}), "z"]
    assert same_however_cut(delimiters, "</f> </t <c>") == [("x", "</f>", {}), " </t", ("y", " <c>", {})]


def test_ties() -> None:
    """The earliest start, then the longest, then opens before closes, then the field's name."""
    long, short = literal("long", "<c>d", order=1), literal("short", "<c>")
    assert same_however_cut([short, long], "<c>d<c>") == [("long", "<c>d", {}), ("short", "<c>", {})]
    opens, closes = literal("z", "<c>"), literal("a", "<c>", order=1)
    assert same_however_cut([closes, opens], "<c>") == [("z", "<c>", {})]
    assert same_however_cut([literal("b", "<c>"), literal("a", "<c>")], "<c>") == [("a", "<c>", {})]
    early = pattern("early", r"\n<c>", 1)
    assert same_however_cut([opens, early], "\n<c>") == [("early", "\n<c>", {})]


def test_weak_delimiters_give_way() -> None:
    weak, strong = literal("weak", "<c>long", order=WEAK), literal("strong", "<c>", order=1)
    assert same_however_cut([weak, strong], "<c>long") == [("strong", "<c>", {}), "long"]
    opener = pattern("opener", r"<c>\s*<f>")
    marker = literal("weak", "<c>", order=WEAK)
    assert same_however_cut([marker, opener], "<c>\n<f>") == [("opener", "<c>\n<f>", {})]
    assert same_however_cut([marker, opener], "<c>\nf") == [("weak", "<c>", {}), "\nf"]
    assert same_however_cut([marker, opener], "a<c>\n") == ["a", ("…", "<c>\n", {"opener"})]


def test_what_had_begun_is_told() -> None:
    delimiters = [literal("call", "<tool_call>"), literal("think", "<think>"), literal("tall", "<tool_tall>")]
    assert same_however_cut(delimiters, "a <tool_") == ["a ", ("…", "<tool_", {"call", "tall"})]
    assert same_however_cut(delimiters, "a <") == ["a ", ("…", "<", {"call", "think", "tall"})]
    assert same_however_cut(delimiters, "a <x") == ["a <x"]


def test_groups_and_spans() -> None:
    delimiter = pattern("x", r"\s*<f=(?P<name>\w+)(?: id=(?P<id>\d+))?>")
    for _, pieces in cuttings("text  <f=get id=12><f=g>"):
        scanner = Scanner()
        founds: list[Found] = []
        for piece in pieces:
            scanner.load(piece)
            while isinstance(found := scanner.advance(WatchList([delimiter]))[1], Found):
                founds.append(found)
        assert [(found.text, dict(found.groups)) for found in founds] == [
            ("  <f=get id=12>", {"name": "get", "id": "12"}),
            ("<f=g>", {"name": "g"}),
        ]
        first = founds[0]
        assert {name: first.text[begin:end] for name, (begin, end) in first.spans.items()} == dict(first.groups)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 300])
def test_long_white_space(size: int) -> None:
    delimiters = [pattern("a", r"\s*<c>"), pattern("b", r"\n*</c>", 1)]
    space = " \n\t" * size
    assert same_however_cut(delimiters, f"x{space}<c>y") == ["x", ("a", f"{space}<c>", {}), "y"]
    assert same_however_cut(delimiters, f"x{space}y") == [f"x{space}y"]
    newlines = "\n" * size
    assert same_however_cut(delimiters, f"x {newlines}</c>") == ["x ", ("b", f"{newlines}</c>", {})]
    begun = same_however_cut(delimiters, f"x{space}")
    assert without_partial(begun) == [f"x{space}"]


def test_an_empty_watch_list_finds_nothing() -> None:
    assert same_however_cut([], "<c> \n") == ["<c> \n"]
    assert scan(WatchList([]), []) == []


def test_a_watch_list_may_change_between_two_delimiters() -> None:
    inside, outside = WatchList([literal("close", "</c>")]), WatchList([literal("open", "<c>")])
    for _, pieces in cuttings("</c><c><c></c><c>"):
        scanner, watch, seen = Scanner(), outside, []
        for piece in pieces:
            scanner.load(piece)
            while True:
                text, found = scanner.advance(watch)
                seen += [text] if text else []
                if not isinstance(found, Found):
                    break
                seen.append(found.text)
                watch = inside if found.delimiter.field == "open" else outside
        assert "".join(seen) == "</c><c><c></c><c>"
        assert [part for part in seen if part in ("<c>", "</c>")][-3:] == ["<c>", "</c>", "<c>"] or len(pieces) > 1


def test_waiting_and_idle() -> None:
    for watch in (
        WatchList([pattern("x", r"</f>(?:\s*</t>)?", 1), literal("y", "<c>")]),
        WatchList([pattern("x", r"</f>(?:\s*</t>(?=.?))?", 1), literal("y", "<c>")]),
    ):
        scanner = Scanner()
        assert scanner.idle
        scanner.load("a</f")
        assert scanner.advance(watch) == ("a", None)
        assert not scanner.idle
        assert scanner.waiting(watch) is None
        scanner.load(">\n")
        assert scanner.advance(watch) == ("", None)
        waiting = scanner.waiting(watch)
        assert waiting is not None
        assert waiting.field == "x"
        scanner.load("b")
        _, found = scanner.advance(watch)
        assert isinstance(found, Found)
        assert scanner.advance(watch) == ("\nb", None)
        assert scanner.idle


@pytest.mark.parametrize(
    ("watch", "unit"),
    [
        (WatchList([literal("a", "<c>")]), "some text "),
        (WatchList([pattern("a", r"\s*<c>")]), "some text\n"),
        (WatchList([pattern("a", r"<c>(?=x)"), literal("b", "<t>")]), "some <text\n"),
        (WatchList([literal("a", "<c>")]), "<c"),
    ],
)
def test_decided_text_is_not_kept(watch: WatchList, unit: str) -> None:
    scanner = Scanner()
    tracemalloc.start()
    try:
        for _ in range(6_000):
            scanner.load(unit)
            while scanner.advance(watch)[1] is not None:
                pass
        assert tracemalloc.get_traced_memory()[0] < 20_000
    finally:
        tracemalloc.stop()


def test_what_is_held_takes_its_own_size() -> None:
    """A long opener is kept, once, whatever the pieces."""
    watch = WatchList([pattern("a", r"<c> to=(?P<name>\w+)[^<]*<t>")])
    scanner = Scanner()
    scanner.load("<c> to=f")
    assert scanner.advance(watch) == ("", None)
    for _ in range(5_000):
        scanner.load(" more of it")
        assert scanner.advance(watch) == ("", None)
    scanner.load("<t>rest")
    _, found = scanner.advance(watch)
    assert isinstance(found, Found)
    assert len(found.text) == len("<c> to=f<t>") + 5_000 * len(" more of it")
    assert found.groups == {"name": "f"}
    assert scanner.advance(watch) == ("rest", None)


# ----------------------------------------------------------------------------------------------- what is never endless


def test_no_candidate_is_followed_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit what was held is text, and a match that waits to grow is the match, at the same place however the
    text is cut."""
    monkeypatch.setattr("respzoo.scanner._MOST_HELD", 20)
    watch = watched([pattern("a", r"<a[^>]*>"), pattern("b", r"<b>(?:\s*</b>)?")])
    for text, expected in (
        ("<a" + "x" * 17 + ">.", [("a", "<a" + "x" * 17 + ">", {}), "."]),
        ("<a" + "x" * 18 + ">.", ["<a" + "x" * 18 + ">."]),
        ("<a" + "x" * 30 + "<a>", ["<a" + "x" * 30, ("a", "<a>", {})]),
        ("<b>" + " " * 12 + "</b>", [("b", "<b>" + " " * 12 + "</b>", {})]),
        ("<b>" + " " * 14 + "</b>.", [("b", "<b>", {}), " " * 14 + "</b>."]),
        ("<a" * 10 + ">", ["<a" * 10 + ">"]),
    ):
        for _, pieces in cuttings(text):
            assert scan(watch, pieces) == expected, text


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("respzoo.scanner._MOST_HELD", 20_000)
    watch = watched([pattern("a", r"<a[^>]*>")])
    scanner = Scanner()
    tracemalloc.start()
    for _ in range(200):
        scanner.load("<a" + "x" * 998)
        scanner.advance(watch)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert scanner.undecided <= 20_000
    assert kept < 60_000


def test_what_is_walked_again_is_counted() -> None:
    """Each `a` is a match that waits for a `b` behind more of them: a text without one is walked anew from each."""
    watch = watched([pattern("a", "a(?:a*b)?")])
    text = "a" * 10_000 + "c"
    scanner = Scanner()
    scanner.load(text)
    done: list[str] = []

    def walk() -> None:
        while True:
            before, found = scanner.advance(watch)
            assert isinstance(found, Found)
            done.append(before + found.text)

    with pytest.raises(TimeoutError):
        walk()
    assert 100 < len(done) < 1_000
    assert "".join(done) + scanner.give_up() == text
    assert scanner.idle


def test_many_candidates_are_counted() -> None:
    """Each of these begins anew at every character, and no two beginnings are ever alike."""
    counts = [pattern(str(size), f"(?:{'a' * size})*b") for size in (2, 3, 5, 7, 11, 13)]
    scanner = Scanner()
    scanner.load("a" * 20_000)
    with pytest.raises(TimeoutError):
        scanner.advance(watched(counts))
    assert scanner.give_up() == "a" * 20_000


def test_the_regex_modules_time_is_counted() -> None:
    watch = watched([pattern("a", r"(?=x)(?:a|a)*(?=b)c"), pattern("b", r"(?:a|a)*(?!x)d(?=b)")])
    scanner = Scanner()
    text = "a" * 60 + "xc"
    scanner.load(text)
    began = time.thread_time()
    with pytest.raises(TimeoutError):
        scanner.advance(watch, end=True)
    assert time.thread_time() - began < 10
    assert scanner.waiting(watch) is None, "a question never raises"
    assert scanner.give_up() == text
