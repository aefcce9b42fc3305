"""Follow a region of tags whose values may quote the markup, and whose closing tags may be missing.

Inside a value these are counted, like brackets: a further opening tag, a closing tag, the beginning of another call
(its opener with a tag behind it), a region's closer. What is balanced is quoted text, whole calls and all: it changes
nothing. What is not:

- A closing tag in a value's own text ends the value only where a tag or the region's closer follows (as without the
  dialect); else it is text.
- An opening tag may be another argument's where the chat template would write one: on a line of its own, or wherever it
  stands if it is more than one tag (`<key>k</key><value>`), which no prose holds by chance. Where the region ends while
  a value is still open (`<p=a>1 <p=b>2</p></f>`), closing tags are missing: it ends where such a tag stands. Any other
  opening tag is text, and the closing tag that was counted as its own is the value's.
- A region's closer with no closing tag before it counts if there is proof that it is one: another call behind it, or
  the end of the output. The value that it ends has lost its closing tag. So the next call is never part of a value. A
  closer of another call, begun in the value, is quoted.
- A value that holds a closing tag of its own has lost none. If it is ended without one all the same, or if text stands
  between tags, the region is malformed.

Each tag is looked at once, and each value is put together once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import regex

from respzoo.content.tags import ENDINGS, Pair, TagLexer, fullmatch, search, starts
from respzoo.delimiters import Delimiter, Found, WatchList
from respzoo.patterns import Unsupported

__all__ = ["BalancedTagLexer", "BalancedTagRules", "ClosingProofs"]

_NAMED = re.compile(r"\(\?P?<(?![=!])\w+>")
_TAG_NAME = re.compile(r"<([^<>\s/=?!()\[\]\\]+)")
_NEVER = "[^\0-\U0010ffff]"  # no character: such a pattern only holds back what may be the end of the output
_ANYTHING = re.compile(r"(?<!\\)\.(?=[*+])")
_ANYTHING_BUT = re.compile(r"(?<!\\)\[\^")
_LEADING_SPACE = re.compile(r"(?:\\[snrt][*+?]*)+")
_ONLY_CLOSING_TAGS = re.compile(r"(?:\s*</[^<>\s]+>)*\s*")
_LINE_BREAK = re.compile(r"\r?\n[ \t]*\Z")


class BalancedTagRules:
    """The watch lists are `between` tags, `inside` a value, and `quoted`: inside a value, in a call that it quotes.

    Args:
        opening, closing: the tag pattern before and after its value.
        open: the region's own opener.
        behind: what may stand behind the last region of all: a wrapper's closer, a stop marker.
    """

    def __init__(
        self,
        field: str,
        close: Delimiter,
        opening: str,
        closing: str,
        *,
        open: Delimiter | None,
        behind: Sequence[Delimiter],
        plain: bool,
    ) -> None:
        proofs = ClosingProofs(field, close, opening, open=open, behind=behind)
        tokens = [
            Delimiter.regex("next", field, rf"(?:{closing})\s*?(?:{opening})"),
            Delimiter.regex("end", field, rf"(?:{closing}){ENDINGS}(?P<region_end>{close.pattern.pattern})"),
            Delimiter.regex("closing", field, rf"(?:{closing})"),
            Delimiter.regex("open", field, _short(opening)),
            *proofs.calls,
        ]
        self.proofs = proofs
        self.between = WatchList([close, Delimiter.regex("tag", field, opening)], plain=plain)
        self.inside = WatchList([*tokens, *proofs.ends], plain=plain)
        self.quoted = WatchList([*tokens, proofs.region], plain=plain)
        self.closing = regex.compile(closing, regex.DOTALL)
        self.close = close.pattern
        self.spaced = closing.startswith("\\s")  # white space around a value is markup
        self.alone = opening.endswith("\\n?")  # the template writes a line break behind an opening tag
        self.unmistakable = _NAMED.sub("(", opening).count("<") > 1


class ClosingProofs:
    """What proves a region's closer inside a value: another call behind it (`closed`), or the end of all (`last`).

    Attributes:
        ends: these two; `last` never matches, it holds back what may be the end.
        calls: a call that begins in a value (`call`), and one without arguments.
        region: the closer alone.
    """

    def __init__(
        self, field: str, close: Delimiter, opening: str, *, open: Delimiter | None, behind: Sequence[Delimiter]
    ) -> None:
        end = close.pattern.pattern
        later_end = _NAMED.sub("(", end)
        # closing tags of the opener's own markup may stand before the closer: the manual's template closes with
        # </tool_call> and leaves </function> inside
        names = [] if open is None else _TAG_NAME.findall(_NAMED.sub("(", open.pattern.pattern).replace("\\", ""))
        own = "|".join(sorted({regex.escape(f"</{name}>") for name in names})) or _NEVER
        closer = rf"(?:(?:{own})\s*)*?(?P<region_end>{_bare(end)})"
        more = "|".join(["\\s", *(f"(?:{one.pattern.pattern})" for one in behind)])
        last = rf"{closer}(?:{more})*"
        self.ends = [Delimiter.regex("last", field, rf"{last}{_NEVER}")]
        self.calls: list[Delimiter] = []
        if open is not None and (call := _call(open)) is not None:
            begins = rf"(?:{call})\s*?(?:{_NAMED.sub('(', _short(opening))})"
            nothing = rf"(?:{call})\s*?(?:{later_end})"
            self.calls += [Delimiter.regex("call", field, begins), Delimiter.regex("empty call", field, nothing)]
            self.ends.append(Delimiter.regex("closed", field, rf"{closer}\s*(?:{begins}|{nothing})"))
        self.region = Delimiter.regex("region", field, _bare(later_end))
        self._last = regex.compile(last, regex.DOTALL)

    def place(self, tail: str) -> tuple[int, int] | None:
        """Where the closer stands in text that was held back until the end of the output."""
        match = fullmatch(self._last, tail)
        return None if match is None else match.span("region_end")


def _call(open: Delimiter) -> str | None:
    """An opener's pattern, free of names and leading white space. None: it cannot be a part of others."""
    try:
        open.tree()
    except Unsupported:
        return None
    if "value" in open.pattern.groupindex:  # it gives back the beginning of the region's text
        return None
    return _bare(_short(_NAMED.sub("(", open.pattern.pattern)))


def _short(source: str) -> str:
    """A tag's pattern for one in a value: what is only half a tag must not reach for another's other half."""
    return _ANYTHING.sub("[^<]", _ANYTHING_BUT.sub("[^<", source))


def _bare(source: str) -> str:
    """A pattern without the white space that it begins with, which is text all the same."""
    return _LEADING_SPACE.sub("", source, count=1) if _LEADING_SPACE.match(source) else source


class _Value:
    """A tag's value: its place among the region's parts, and the values that were opened and closed in it."""

    __slots__ = ("at", "holds_closing", "inner", "key", "kind", "may_be_next", "start")

    def __init__(self, found: Found, at: int, may_be_next: bool) -> None:
        self.key = found.groups.get("key", "")
        self.kind = found.groups.get("type", "")
        self.at = at  # the part that is its opening tag
        self.start = at + 1
        self.may_be_next = may_be_next  # whether its opening tag may be another argument's
        self.inner: list[_Inner] = []
        self.holds_closing = False  # a closing tag that is text

    @property
    def resumes(self) -> int:
        """The part where its own text goes on behind all that was closed in it."""
        return self.inner[-1].resumes if self.inner else self.start


class _Inner(NamedTuple):
    """A value that was opened and closed in another: the part where it ends, its text in that, and where the other goes
    on."""

    value: _Value
    end: int
    tail: str
    resumes: int


class BalancedTagLexer(TagLexer):
    """Attributes:
    fault: why the region has no value, once it has ended.
    """

    def __init__(self, rules: BalancedTagRules) -> None:
        super().__init__(rules.between)
        self._rules = rules
        self._stack: list[_Value | None] = []  # the values that are open; None where a quoted call begins
        self._quotes = 0
        self._quoted = 0  # the part behind the last quoted call
        self.fault = ""

    @property
    def at_hand(self) -> Pair | None:
        value = self._stack[0] if len(self._stack) == 1 else None
        if value is None or value.inner or self._quoted > value.start:
            return None
        return Pair(value.key, "", value.kind)

    def found(self, found: Found, parts: Sequence[str]) -> int | None:
        stack, at = self._stack, len(parts)
        match found.delimiter.kind:
            case "close":
                self._look_at_text("".join(parts))
                return 0
            case "tag":
                self._look_at_text("".join(parts))
                self._begin(found, at)
            case "next":
                if not self._close_inner(at, "", at) and (value := stack.pop()) is not None:
                    self._take(value, "".join(parts[value.start :]))
                self._begin(found, at)
            case "end":
                return self._end(found, parts)
            case "closing":
                if not self._close_inner(at, "", at + 1) and (value := stack[-1]) is not None:
                    value.holds_closing = True
            case "open":
                value = stack[-1]
                lone = len(stack) == 1 and value is not None and value.holds_closing
                self._begin(found, at, may_be_next=not lone and self._may_be_next(found.text, parts))
            case "call":
                stack.append(None)
                self._quotes += 1
                self._begin(found, at)
            case "region":
                self._end_quote(at)
            case "closed":
                self._complete(parts)
                begin, end = found.spans["region_end"]
                self.rest = len(found.text) - end
                return begin
            case _:  # a quoted call without arguments
                self._quoted = at + 1
        return None

    def close_in_tail(self, parts: Sequence[str], tail: str) -> tuple[int, int] | None:
        if not self._stack or self._quotes or (place := self._rules.proofs.place(tail)) is None:
            return None
        value = self._stack[-1]
        assert value is not None
        text = "".join(parts[max(value.resumes, self._quoted) :])
        if search(self._rules.close, text) is not None:
            return None  # the value quotes closers, and this may be one more
        self._complete(parts)
        return place

    @property
    def certain(self) -> bool:
        return len(self._stack) == 1

    def _look_at_text(self, text: str) -> None:
        if _ONLY_CLOSING_TAGS.fullmatch(text) is None:
            self.fault = f"text where a tag should stand: {text.strip()[:40]!r}"

    def _begin(self, found: Found, at: int, *, may_be_next: bool = True) -> None:
        self._stack.append(_Value(found, at, may_be_next))
        self.watch = self._rules.quoted if self._quotes else self._rules.inside

    def _take(self, value: _Value, text: str) -> None:
        self.pairs.append(Pair(value.key, text, value.kind))

    def _close_inner(self, end: int, tail: str, resumes: int) -> bool:
        """A closing tag ends the innermost value, if that is not the argument itself."""
        stack = self._stack
        if len(stack) == 1:
            return False
        value = stack[-1]
        if value is not None:
            stack.pop()
            if (outer := stack[-1]) is not None:
                outer.inner.append(_Inner(value, end, tail, resumes))
        return True

    def _end(self, found: Found, parts: Sequence[str]) -> int | None:
        """Closing tags, and the region's closer behind them."""
        stack, end = self._stack, found.spans["region_end"][0]
        for start in starts(self._rules.closing, found.text[:end]):
            tail = found.text[:start]
            if not self._close_inner(len(parts), tail, len(parts)) and (value := stack.pop()) is not None:
                self._take(value, "".join(parts[value.start :]) + tail)
            if not stack:
                break
        if self._quotes:
            self._end_quote(len(parts))
            return None
        if stack:
            self._complete(parts)
        self.watch = self._rules.between
        return end

    def _end_quote(self, at: int) -> None:
        while self._stack.pop() is not None:
            pass
        self._quotes -= 1
        self._quoted = at + 1
        if not self._quotes:
            self.watch = self._rules.inside

    def _may_be_next(self, tag: str, parts: Sequence[str]) -> bool:
        """Whether an opening tag inside a value may be another argument's."""
        if self._rules.unmistakable:
            return True
        if self._rules.alone and not tag.endswith("\n"):
            return False
        for part in reversed(parts):
            if shown := part.rstrip(" \t"):
                return shown.endswith("\n")
        return False

    def _complete(self, parts: Sequence[str]) -> None:
        """The region has ended inside these values: each lacks its closing tag, and ends where another begins."""
        values: list[_Value] = []
        for value in self._stack:
            assert value is not None
            if value.may_be_next or not values:
                values.append(value)
            else:
                values[-1].inner += value.inner
        for value, following in zip(values, [*values[1:], None], strict=True):
            self._complete_one(value, parts, len(parts) if following is None else following.at)
        self._stack.clear()
        self.watch = self._rules.between

    def _complete_one(self, value: _Value, parts: Sequence[str], limit: int) -> None:
        """This value lacks its closing tag; all that belongs to it and to those in it ends at the limit."""
        inner = value.inner
        ends = [*(one.value.at for one in inner[1:]), limit]
        behind = ["".join(parts[one.resumes : end]) for one, end in zip(inner, ends, strict=False)]
        for rest, one in enumerate(inner):
            if one.value.may_be_next:
                self._take(value, self._unframed("".join(parts[value.start : one.value.at])))
                inner, behind = inner[rest:], behind[rest:]
                break
            if not behind[rest].strip():  # the closing tag was the value's
                self._take(value, "".join(parts[value.start : one.end]) + one.tail)
                inner, behind = inner[rest + 1 :], behind[rest + 1 :]
                break
        else:
            self._take(value, self._unframed("".join(parts[value.start : limit])))
            value.holds_closing |= bool(inner)
            inner, behind = [], []
        for one in inner:
            self._take(one.value, "".join(parts[one.value.start : one.end]) + one.tail)
        if value.holds_closing:
            self.fault = f"the value of {value.key!r} holds a closing tag and has none"
        elif any(text.strip() for text in behind):
            self.fault = f"text where a tag should stand behind {value.key!r}"

    def _unframed(self, text: str) -> str:
        """A value without the white space that the template writes before what follows it."""
        return text.rstrip() if self._rules.spaced else _LINE_BREAK.sub("", text, count=1)
