"""What a content parser is: how a region's text becomes a value, and which of its characters are the value's own.

A closer inside a quoted string is text, not the end of the region (the reference cuts there). So a structured parser
brings a *lexer*: it tells the parser which delimiters matter at each point of the region, and follows along. A lexer is
made for one region; the watch lists that it switches between are compiled with the template.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, ClassVar, NamedTuple, Protocol, cast

from respzoo.content.arguments import Argument
from respzoo.delimiters import Delimiter, Found, WatchList
from respzoo.known import Strings

__all__ = [
    "Borders",
    "ContentParser",
    "Lexer",
    "Raw",
    "ValueParser",
    "ValueParsers",
    "settle_raw",
]

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
    def inside(self) -> Strings | None:
        """Inside a quoted string: what a text does there."""
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


class Borders(NamedTuple):
    """What stands around the regions of a field."""

    field: str
    close: Delimiter | None
    plain: bool = True
    """Whether no pattern of the template needs the text before it."""
    ends: bool = False
    """The region ends with its value, which the content's `ends_itself` must allow."""
    open: Delimiter | None = None
    behind: Sequence[Delimiter] = ()
    """What may stand behind the last region of all: a wrapper's closer, a stop marker."""

    @property
    def closers(self) -> list[Delimiter]:
        return [] if self.close is None else [self.close]


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

    def lexer(self, borders: Borders) -> Callable[[], Lexer] | None:
        """Compile what follows a region of this content: a maker of lexers, or None if a closer is one anywhere."""
        return None

    def parse_lexed(self, lexer: Lexer | None, text: str, *, strict: bool = False) -> Any:
        """The value, with what the region's lexer has learnt on its way."""
        return self.parse(text, strict=strict)
