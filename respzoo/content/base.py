"""What a content parser is: how a region's text becomes a value, and which of its characters are the value's own.

A closer inside a quoted string is text, not the end of the region (the reference cuts there). So a structured parser
brings a *lexer*: it tells the parser which delimiters matter at each point of the region, and follows along. A lexer is
made for one region; the watch lists that it switches between are compiled with the template.
"""

from __future__ import annotations

import json.decoder
import re
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, ClassVar, Protocol, cast

from respzoo.content.arguments import Argument
from respzoo.delimiters import Delimiter, Found, WatchList

__all__ = [
    "CONTROLS",
    "ContentParser",
    "Lexer",
    "QuoteRules",
    "QuotedLexer",
    "Raw",
    "ValueParser",
    "ValueParsers",
    "settle_raw",
]

CONTROLS = r"\x00-\x1f"
"""What cannot stand in a string of JSON, as in a character class."""
_scan = cast("Callable[[str, int], tuple[str, int]]", json.decoder.scanstring)  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
_LONG = 256  # characters from which on JSON's own scanner is the quicker one
_WINDOW = 16_384  # of which it sees at once: what it does not know must not cost more

ValueParser = Callable[[str], Any]
ValueParsers = Callable[[Mapping[str, Any]], ValueParser]
"""Makes value parsers of what a template says of them (`{"name": "json", "args": {}}`)."""


class Raw:
    """An argument as the model wrote it, not yet typed: a tool's schema decides what it is, else `parse` does."""

    __slots__ = ("_parse", "text")

    def __init__(self, text: str, parse: ValueParser | None = None) -> None:
        self.text = text
        self._parse = parse

    @property
    def structured(self) -> bool:
        """Whether it is seen to be more than text."""
        return False

    def parts(self, types: Set[str] = frozenset()) -> Any:
        """The value without a schema, what is raw inside it still so; or, of these JSON types, the one that it can be.
        Raises ValueError as the value parser does."""
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

    broken: bool
    """Whether the region can have no value any more."""

    rest: int
    """Once `found` has ended the region: how many characters at the end of the delimiter's text are not its closer's
    either, but what follows."""

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
        arguments: what it takes, for a template in the extended language.
        flat: the value is the text itself, so that its pieces can be shown as they come.
        complete_without_closer: a whole value shows its own end, so that a missing closer does not make it suspect.
    """

    name: ClassVar[str]
    arguments: ClassVar[Mapping[str, Argument]] = {}
    flat: ClassVar[bool] = False
    complete_without_closer: ClassVar[bool] = False

    def __init__(
        self, args: Mapping[str, Any], *, extended: bool = False, value_parser: ValueParsers | None = None
    ) -> None:
        self.args = args
        self.extended = extended
        self._make_value_parser = value_parser

    def extension(self, name: str) -> Any:
        """An argument that only the extended language has; None without it."""
        return self.args.get(name) if self.extended else None

    def value_parser(self, spec: Mapping[str, Any] | None) -> ValueParser | None:
        return None if spec is None or self._make_value_parser is None else self._make_value_parser(spec)

    @property
    def ends_itself(self) -> bool:
        """Whether a region may end where its value does (`ends_with_value`)."""
        return False

    def parse(self, text: str, *, strict: bool = False) -> Any:
        """The value of a region's text. `strict` refuses what no JSON object can hold (a call's arguments).

        Raises:
            ValueError: the text is no such value.
        """
        raise NotImplementedError

    def lexer(
        self,
        field: str,
        close: Delimiter | None,
        *,
        plain: bool,
        ends: bool = False,
        open: Delimiter | None = None,
        behind: Sequence[Delimiter] = (),
    ) -> Callable[[], Lexer] | None:
        """Compile what follows a region of this content: a maker of lexers, or None if a closer is one anywhere.

        Args:
            field, close: the region's field and closer.
            plain: whether no pattern of the template needs the text before it.
            ends: the region ends with its value, which `ends_itself` must allow.
            open: the region's opener.
            behind: what may stand behind the last region of all: a wrapper's closer, a stop marker.
        """
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
        brackets: Sequence[str] = (),
        needed: bool = False,
        plain: bool,
    ) -> None:
        closers = [] if close is None else [close]
        openers = [Delimiter.literal("quote", field, [quote]) for quote in quotes]
        openers += [Delimiter.literal(f"verbatim {number}", field, [pair[0]]) for number, pair in enumerate(verbatim)]
        pairs = zip(("up", "down"), brackets, strict=False)
        openers += [Delimiter.literal(kind, field, list(chars)) for kind, chars in pairs]
        self.outside = WatchList([*closers, *openers], plain=plain)
        self.broken = WatchList(closers, plain=plain)
        self.verbatim = [WatchList([Delimiter.literal("unquote", field, [end])], plain=plain) for _, end in verbatim]
        inside = {quote: rf"[^{quote}\\{breaks}]*+(?:\\.[^{quote}\\{breaks}]*+)*+" for quote in quotes}
        as_json = quotes == '"' and breaks == CONTROLS
        self.skips = {quote: _skip(pattern, as_json=as_json) for quote, pattern in inside.items()}
        self.inside = {quote: re.compile(pattern, re.DOTALL).fullmatch for quote, pattern in inside.items()}
        self.strings = re.compile(
            "|".join(rf"{quote}(?:\\.|[^{quote}\\])*(?:{quote}|\\?\Z)" for quote in quotes), re.DOTALL
        )
        self.find_quote = re.compile(f"[{re.escape(quotes + ''.join(brackets))}]").search
        self.quotes = quotes
        self.brackets = brackets  # those that open and those that close, if the region ends with the first one's fellow
        self.follow = follow  # characters of which one must come after a string, unless the region ends
        self.first = first  # characters of which one must come first, unless all are allowed
        self.needed = needed  # whether nothing at all is no value where the output ends


def _skip(pattern: str, *, as_json: bool) -> Callable[[str, int], int]:
    match = re.compile(pattern, re.DOTALL).match

    def skip(text: str, at: int) -> int:
        if as_json and len(text) - at > _LONG:
            found = match(text, at, at + _LONG)
            assert found is not None
            if found.end() - at < _LONG - 1:
                return found.end()
            at = _scan_json(text, found.end())
        found = match(text, at)
        assert found is not None
        return found.end()

    return skip


class QuotedLexer:
    """Inside a quoted string a closer is text. A string that cannot be one any more (a raw line break in it, or no
    separator behind it: a quote was never closed) stops that: the region is broken then, and its next closer ends it.
    """

    rest = 0

    def __init__(self, rules: QuoteRules) -> None:
        self.rules = rules
        self.watch = rules.outside
        self.skip: Callable[[str, int], int] | None = None
        self.quote = ""
        self.escaped = False
        self.after_string = False
        self.begun = False
        self.broken = False

    @property
    def heeds(self) -> bool:
        return self.watch is self.rules.outside

    @property
    def inside(self) -> Callable[[str], object] | None:
        return None if self.skip is None or self.escaped else self.rules.inside[self.quote]

    def swallow(self, text: str) -> bool:
        rules = self.rules
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
                self.open_string(text[end])
            at = end + 1
        return True

    def open_string(self, quote: str) -> None:
        self.begun = True
        if self.after_string:  # two strings in a row
            self.break_off()
        else:
            self.quote = quote
            self.skip = self.rules.skips[quote]

    def text(self, text: str) -> None:
        if self.watch is not self.rules.outside:
            return
        stripped = text.lstrip()
        if not stripped:
            return
        if not self.begun:
            self.begun = True
            if self.rules.first and stripped[0] not in self.rules.first:
                self.break_off()
        elif self.after_string and stripped[0] not in self.rules.follow:
            self.break_off()
        self.after_string = False

    def break_off(self) -> None:
        """This is no value any more."""
        self.broken = True
        self.skip = None
        self.watch = self.rules.broken

    def stop(self, char: str) -> None:
        if self.escaped:  # the character behind a backslash that ended a chunk
            self.escaped = False
            self.skip = self.rules.skips[self.quote]
        elif char == self.quote:
            self.skip = None
            self.after_string = True
        elif char == "\\":
            self.escaped = True
            self.skip = _nowhere
        else:
            self.break_off()

    def found(self, found: Found, parts: Sequence[str]) -> int | None:
        kind = found.delimiter.kind
        if kind == "close":
            return 0
        if self.broken:
            return None
        if kind == "quote":
            self.open_string(found.text)
            return None
        self.begun = True
        if kind == "unquote":
            self.watch = self.rules.outside
            self.after_string = True
        elif self.after_string:
            self.break_off()
        else:
            self.watch = self.rules.verbatim[int(kind.removeprefix("verbatim "))]
        return None

    def whole(self) -> bool:
        if self.broken or self.skip is not None or self.watch is not self.rules.outside:
            return False
        return self.begun or not self.rules.needed

    def cut(self, text: str) -> bool:
        if self.broken:
            return False
        if not self.whole():
            return True
        bare = self.rules.strings.sub("", text)
        return sum(map(bare.count, "{[(")) > sum(map(bare.count, "}])"))


def _scan_json(text: str, at: int) -> int:
    """From a place inside a string of JSON, go on with JSON's own scanner, which is quicker than a pattern, while it
    knows the way. Returns a place in the string that no escape leads to, at its end if that was found."""
    while True:
        window = text[at : at + _WINDOW]
        # an escape at its end may be cut
        if (last := window.rfind("\\", len(window) - 6)) >= 0:
            run = last + 1 - len(window[: last + 1].rstrip("\\"))
            window = window[:last] if run % 2 else window
        try:
            end = _scan(window + '"', 0)[1] - 1
        except ValueError:
            return at
        at += end
        if end < len(window) or not window or at >= len(text):
            return at


def _nowhere(text: str, at: int) -> int:
    return at
