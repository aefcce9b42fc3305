"""What a content parser is: how a region's text becomes a value, and which of its characters are the value's own.

A closer inside a quoted string is text, not the end of the region (the reference cuts there). So a structured parser
brings a *lexer*: it tells the parser which delimiters matter at each point of the region, and follows along. A lexer is
made for one region; the watch lists that it switches between are compiled with the template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, cast

from respzoo.delimiters import Delimiter, Found, WatchList

__all__ = ["ContentParser", "Lexer", "QuoteRules", "QuotedLexer", "Raw", "ValueParser", "settle_raw"]

ValueParser = Callable[[str], Any]


class Raw:
    """An argument as the model wrote it, not yet typed: a tool's schema decides what it is, else `parse` does."""

    __slots__ = ("_parse", "text")

    def __init__(self, text: str, parse: ValueParser | None = None) -> None:
        self.text = text
        self._parse = parse

    def parts(self) -> Any:
        """The value without a schema, what is raw inside it still so. Raises ValueError as the value parser does."""
        return self.text if self._parse is None else self._parse(self.text)

    def value(self) -> Any:
        """The value without a schema. Raises ValueError as the value parser does."""
        return settle_raw(self.parts())


def settle_raw(value: Any) -> Any:
    """A value in which every argument still untyped has its value without a schema. Raises ValueError."""
    if isinstance(value, Raw):
        return value.value()
    if isinstance(value, dict):
        return {key: settle_raw(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [settle_raw(item) for item in cast("list[Any]", value)]
    return value


class Lexer(Protocol):
    """Follows one region. `parts` (the region's text so far, piece by piece) is the parser's own list."""

    watch: WatchList
    """What can end the present stretch."""
    skip: Callable[[str, int], int] | None
    """Inside a quoted string: from a place in a text, where its ordinary characters end. Then `watch` is not used."""

    quote: str
    """Inside a quoted string: what ends it."""

    @property
    def heeds(self) -> bool:
        """Outside of strings: whether the lexer must be shown all text."""
        ...

    @property
    def inside(self) -> Callable[[str], object] | None:
        """Inside a quoted string: tells whether a text goes on with it and nothing else (None: it does not)."""
        ...

    def swallow(self, text: str) -> bool:
        """Follow a whole text at once, if the region cannot end in it nor at its end. False: nothing was done."""
        ...

    def stop(self, char: str) -> None:
        """`skip` stopped at this character; it is in `parts` now."""
        ...

    def text(self, text: str) -> None:
        """This text, free of delimiters, is about to join `parts`."""
        ...

    def found(self, found: Found, parts: Sequence[str]) -> int | None:
        """A delimiter was found behind `parts`. None: the region goes on, and its text joins `parts`. A number: the
        region ends here, and so many characters of the delimiter's text still belong to it."""
        ...

    def whole(self) -> bool:
        """At the end of the output, with no closer seen: could what is there be all of a value?"""
        ...

    def cut(self, text: str) -> bool:
        """At the end of the output, with no closer to come: was this text, no value, cut off or broken?"""
        ...


class ContentParser:
    """One way to read a region's text. Subclasses are made once, with the field's `content_args`.

    Attributes:
        name: as in a template's `content`.
        flat: the value is the text itself, so that its pieces can be shown as they come.
        complete_without_closer: a whole value shows its own end, so that a missing closer does not make it suspect.
    """

    name: ClassVar[str]
    flat: ClassVar[bool] = False
    complete_without_closer: ClassVar[bool] = False

    def __init__(self, args: Mapping[str, Any]) -> None:
        self.args = args

    def parse(self, text: str, *, strict: bool = False) -> Any:
        """The value of a region's text. `strict` refuses what no JSON object can hold (a call's arguments).

        Raises:
            ValueError: the text is no such value.
        """
        raise NotImplementedError

    def lexer(self, field: str, close: Delimiter | None, *, plain: bool) -> Callable[[], Lexer] | None:
        """Compile what follows a region of this content: a maker of lexers, or None if a closer is one anywhere."""
        return None

    def parse_lexed(self, lexer: Lexer | None, text: str, *, strict: bool = False) -> Any:
        """The value, with what the region's lexer has learnt on its way."""
        return self.parse(text, strict=strict)


class QuoteRules:
    """How a syntax quotes: its escaped strings (`"…"`), its verbatim ones (`<|"|>…<|"|>`), what may follow either."""

    def __init__(
        self,
        field: str,
        close: Delimiter | None,
        *,
        quotes: str,
        breaks: str,
        verbatim: Sequence[tuple[str, str]] = (),
        follow: str,
        first: str = "",
        plain: bool,
    ) -> None:
        closers = [] if close is None else [close]
        openers = [Delimiter.literal("quote", field, [quote]) for quote in quotes]
        openers += [Delimiter.literal(f"verbatim {number}", field, [pair[0]]) for number, pair in enumerate(verbatim)]
        self.outside = WatchList([*closers, *openers], plain=plain)
        self.broken = WatchList(closers, plain=plain)
        self.verbatim = [WatchList([Delimiter.literal("unquote", field, [end])], plain=plain) for _, end in verbatim]
        inside = {quote: rf"[^{quote}\\{breaks}]*(?:\\.[^{quote}\\{breaks}]*)*" for quote in quotes}
        self.skips = {quote: _skip(pattern) for quote, pattern in inside.items()}
        self.inside = {quote: re.compile(pattern, re.DOTALL).fullmatch for quote, pattern in inside.items()}
        self.strings = re.compile("|".join(rf"{quote}(?:\\.|[^{quote}\\])*{quote}" for quote in quotes), re.DOTALL)
        self.find_quote = re.compile(f"[{quotes}]").search
        self.follow = follow  # characters of which one must come after a string, unless the region ends
        self.first = first  # characters of which one must come first, unless all are allowed


def _skip(pattern: str) -> Callable[[str, int], int]:
    match = re.compile(pattern, re.DOTALL).match

    def skip(text: str, at: int) -> int:
        found = match(text, at)
        assert found is not None
        return found.end()

    return skip


class QuotedLexer:
    """Inside a quoted string a closer is text. A string that cannot be one any more (a raw line break in it, or no
    separator behind it: a quote was never closed) stops that: the region is broken then, and its next closer ends it.
    """

    def __init__(self, rules: QuoteRules) -> None:
        self._rules = rules
        self.watch = rules.outside
        self.skip: Callable[[str, int], int] | None = None
        self.quote = ""
        self._escaped = False
        self._after_string = False
        self._begun = False
        self.broken = False

    @property
    def heeds(self) -> bool:
        return self.watch is self._rules.outside

    @property
    def inside(self) -> Callable[[str], object] | None:
        return None if self.skip is None or self._escaped else self._rules.inside[self.quote]

    def swallow(self, text: str) -> bool:
        rules = self._rules
        closers = rules.broken
        if rules.verbatim or closers.begins is None or closers.begins(text) is not None:
            return False
        if closers.leads and text[-1].isspace():
            return False
        at, size = 0, len(text)
        while at < size and not self.broken:
            if self.skip is not None:
                at = self.skip(text, at)
                if at < size:
                    self.stop(text[at])
                at += 1
                continue
            match = rules.find_quote(text, at)
            end = size if match is None else match.start()
            if end > at:
                self.text(text[at:end])
            if end < size and not self.broken:
                self._open(text[end])
            at = end + 1
        return True

    def _open(self, quote: str) -> None:
        self._begun = True
        if self._after_string:  # two strings in a row
            self._break()
        else:
            self.quote = quote
            self.skip = self._rules.skips[quote]

    def text(self, text: str) -> None:
        if self.watch is not self._rules.outside:
            return
        stripped = text.lstrip()
        if not stripped:
            return
        if not self._begun:
            self._begun = True
            if self._rules.first and stripped[0] not in self._rules.first:
                self._break()
        elif self._after_string and stripped[0] not in self._rules.follow:
            self._break()
        self._after_string = False

    def _break(self) -> None:
        self.broken = True
        self.skip = None
        self.watch = self._rules.broken

    def stop(self, char: str) -> None:
        if self._escaped:  # the character behind a backslash that ended a chunk
            self._escaped = False
            self.skip = self._rules.skips[self.quote]
        elif char == self.quote:
            self.skip = None
            self._after_string = True
        elif char == "\\":
            self._escaped = True
            self.skip = _nowhere
        else:
            self._break()

    def found(self, found: Found, parts: Sequence[str]) -> int | None:
        kind = found.delimiter.kind
        if kind == "close":
            return 0
        if self.broken:
            return None
        if kind == "quote":
            self._open(found.text)
            return None
        self._begun = True
        if kind == "unquote":
            self.watch = self._rules.outside
            self._after_string = True
        elif self._after_string:
            self._break()
        else:
            self.watch = self._rules.verbatim[int(kind.removeprefix("verbatim "))]
        return None

    def whole(self) -> bool:
        return not self.broken and self.skip is None and self.watch is self._rules.outside

    def cut(self, text: str) -> bool:
        if self.broken:
            return False
        bare = self._rules.strings.sub("", text)
        return not self.whole() or sum(map(bare.count, "{[(")) > sum(map(bare.count, "}])"))


def _nowhere(text: str, at: int) -> int:
    return at
