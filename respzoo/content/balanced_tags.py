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

from respzoo.content.base import Borders
from respzoo.content.tags import ENDINGS, Pair, TagLexer, fullmatch, may_begin, search, starts
from respzoo.delimiters import Delimiter, Found, WatchList
from respzoo.patterns import Unsupported

__all__ = ["BalancedTagLexer", "BalancedTagRules", "ClosingProofs"]

_NAMED = re.compile(r"\(\?P?<(?![=!])\w+>")
_CLASS = re.compile(r"\\[sSdDwWnrt]")
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
        borders, close: the region's; it has a closer.
        opening, closing: the tag pattern before and after its value.
    """

    def __init__(self, borders: Borders, close: Delimiter, opening: str, closing: str) -> None:
        field, plain = borders.field, borders.plain
        proofs = ClosingProofs(borders, close, opening)
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
        self.alone = opening.endswith("\\n?")  # the template may write a line break behind an opening tag
        self.unmistakable = _NAMED.sub("(", opening).count("<") > 1


class ClosingProofs:
    """What proves a region's closer inside a value: another call behind it (`closed`), or the end of all (`last`).

    Attributes:
        ends: these two; `last` never matches, it holds back what may be the end.
        calls: a call that begins in a value (`call`), and one without arguments.
        region: the closer alone.
        first: what a region's text may begin with.
        own: finds the opener's tags, as far as their names.
    """

    def __init__(self, borders: Borders, close: Delimiter, opening: str) -> None:
        field = borders.field
        end = close.pattern.pattern
        later_end = _NAMED.sub("(", end)
        # closing tags of the opener's own markup may stand before the closer: the manual's template closes with
        # </tool_call> and leaves </function> inside
        names = _tag_names(borders.open)
        own = rf"</(?:{'|'.join(map(re.escape, names))})>" if names else _NEVER
        mentions = [re.escape(f"<{name}") for name in names if name not in _tag_names(close)]
        self.own = re.compile("|".join(mentions) or "(?!)")
        closer = rf"(?:(?:{own})\s*)*?(?P<region_end>{_bare(end)})"
        more = "|".join(["\\s", *(f"(?:{one.pattern.pattern})" for one in borders.behind)])
        last = rf"{closer}(?:{more})*"
        self.ends = [Delimiter.regex("last", field, rf"{last}{_NEVER}")]
        self.calls: list[Delimiter] = []
        if borders.open is not None and (call := _call(borders.open)) is not None:
            begins = rf"(?:{call})\s*?(?:{_NAMED.sub('(', _short(opening))})"
            nothing = rf"(?:{call})\s*?(?:{later_end})"
            self.calls += [Delimiter.regex("call", field, begins), Delimiter.regex("empty call", field, nothing)]
            self.ends.append(Delimiter.regex("closed", field, rf"{closer}\s*(?:{begins}|{nothing})"))
        self.region = Delimiter.regex("region", field, _bare(later_end))
        self.first = regex.compile(rf"(?:\s*</[^<>\s]+>)*\s*(?:{opening}|{end}|</[^<>\s]+>)", regex.DOTALL)
        self._last = regex.compile(last, regex.DOTALL)

    def place(self, tail: str) -> tuple[int, int] | None:
        """Where the closer stands in text that was held back until the end of the output."""
        match = fullmatch(self._last, tail)
        return None if match is None else match.span("region_end")


def _tag_names(delimiter: Delimiter | None) -> list[str]:
    """The names of the opening tags that are written in it."""
    source = "" if delimiter is None else _CLASS.sub(" ", _NAMED.sub("(", delimiter.pattern.pattern))
    return sorted(set(_TAG_NAME.findall(source.replace("\\", ""))))


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

    def __init__(self, token: _Token, *, may_be_next: bool = True) -> None:
        self.key = token.key
        self.kind = token.type
        self.at = token.at  # the part that is its opening tag
        self.start = token.at + 1
        self.may_be_next = may_be_next  # whether its opening tag may be another argument's
        self.inner: list[_Inner] | tuple[()] = ()
        self.holds_closing = False  # a closing tag that is text


class _Inner(NamedTuple):
    """A value that was opened and closed in another: the part where it ends, its text in that, and where the other goes
    on."""

    value: _Value
    end: int
    tail: str
    resumes: int


class _Token(NamedTuple):
    """A delimiter in a value."""

    kind: str
    at: int
    """The part that it is."""
    key: str
    type: str
    """What its opening tag says, if there is one in it."""
    before: str
    """Its text before the region's closer, if that is in it."""
    may_be_next: bool
    """Whether it is an opening tag that may be another argument's."""


def _token(found: Found, at: int, *, may_be_next: bool) -> _Token:
    end = found.spans["region_end"][0] if "region_end" in found.spans else 0
    key, kind = found.groups.get("key", ""), found.groups.get("type", "")
    return _Token(found.delimiter.kind, at, key, kind, found.text[:end], may_be_next)


class BalancedTagLexer(TagLexer):
    """Attributes:
    fault: why the region has no value, once it has ended.
    """

    __slots__ = ("_alone", "_rules", "_tokens", "_walk", "fault")

    def __init__(self, rules: BalancedTagRules) -> None:
        super().__init__(rules.between)
        self._rules = rules
        self._walk = _Walk(rules, self.pairs, every_tag=True)
        self._tokens: list[_Token] = []  # since the argument at hand began
        self._alone = False  # whether an opening tag has a line of its own in this call
        self.fault = ""

    @property
    def at_hand(self) -> Pair | None:
        value = self._walk.stack[0] if len(self._walk.stack) == 1 else None
        if value is None or value.inner or self._walk.quoted > value.start:
            return None
        return Pair(value.key, "", value.kind)

    def found(self, found: Found, parts: Sequence[str]) -> int | None:
        walk, kind, at = self._walk, found.delimiter.kind, len(parts)
        if kind in ("close", "tag"):
            text = "".join(parts)
            if _ONLY_CLOSING_TAGS.fullmatch(text) is None:
                self.fault = f"text where a tag should stand: {text.strip()[:40]!r}"
                self.broken = True
            if kind == "close":
                return 0
            self._alone = self._rules.alone and found.text.endswith("\n")
        if kind == "closed":
            self._complete(parts)
            begin, end = found.spans["region_end"]
            self.rest = len(found.text) - end
            return begin
        ends = kind == "end" and not walk.quotes
        token = _token(found, at, may_be_next=kind == "open" and self._may_be_next(found.text, parts))
        walk.step(token, parts)
        if ends:
            self._tokens.append(token)
            if walk.stack:
                self._complete(parts)
            self.watch = self._rules.between
            return found.spans["region_end"][0]
        if len(walk.stack) == 1 and (value := walk.stack[0]) is not None and value.at == at:
            self._tokens.clear()  # another argument: what came before is settled
        self._tokens.append(token)
        self.watch = self._rules.quoted if walk.quotes else self._rules.inside
        return None

    def close_in_tail(self, parts: Sequence[str], tail: str) -> tuple[int, int] | None:
        walk = self._walk
        if self.watch is self._rules.between:
            self.broken = not may_begin(self._rules.proofs.first, "".join(parts) + tail)
        value = walk.stack[0] if walk.stack else None
        if value is None or walk.quotes or (place := self._rules.proofs.place(tail)) is None:
            return None
        text = "".join(parts[max(value.start, walk.quoted) :])
        if self._rules.proofs.own.search(text) is not None or search(self._rules.close, text) is not None:
            return None  # it quotes the call's own tags, and this may be one more
        self._complete(parts)
        return place

    def _may_be_next(self, tag: str, parts: Sequence[str]) -> bool:
        """Whether an opening tag inside a value may be another argument's."""
        if self._rules.unmistakable:
            return True
        if self._alone and not tag.endswith("\n"):
            return False
        for part in reversed(parts):
            if shown := part.rstrip(" \t"):
                return shown.endswith("\n")
        return False

    def _complete(self, parts: Sequence[str]) -> None:
        """The region has ended while a value is open: an opening tag in it was none, or closing tags are missing."""
        other = _Walk(self._rules, [], every_tag=False)
        for token in self._tokens:
            other.step(token, parts)
        if other.stack:
            self.fault = self._walk.complete(parts) or self.fault
        else:
            self.pairs += other.pairs
        self._walk.stack.clear()
        self.watch = self._rules.between


class _Walk:
    """One way to read the tags in a region, from the beginning of an argument on.

    Attributes:
        every_tag: all opening tags in values count, or only those that may be another argument's.
        pairs: the arguments that have ended.
        stack: the values that are open; None where a quoted call begins.
        quotes: how many of these there are.
        quoted: the part behind the last quoted call.
    """

    __slots__ = ("_every_tag", "_rules", "pairs", "quoted", "quotes", "stack")

    def __init__(self, rules: BalancedTagRules, pairs: list[Pair], *, every_tag: bool) -> None:
        self._rules = rules
        self._every_tag = every_tag
        self.pairs = pairs
        self.stack: list[_Value | None] = []
        self.quotes = 0
        self.quoted = 0

    def step(self, token: _Token, parts: Sequence[str]) -> None:
        stack, at = self.stack, token.at
        if not stack:
            stack.append(_Value(token))
            return
        match token.kind:
            case "next":
                self._close(parts, at, "", at)
                stack.append(_Value(token))
            case "end":
                for start in starts(self._rules.closing, token.before):
                    if not stack:
                        break
                    self._close(parts, at, token.before[:start], at)
                if self.quotes:
                    self._end_quote(at)
            case "closing":
                if len(stack) > 1:
                    self._close(parts, at, "", at + 1)
                elif (value := stack[0]) is not None:
                    value.holds_closing = True
            case "open":
                value = stack[0]
                outside = not (len(stack) == 1 and value is not None and value.holds_closing)
                if (may_be_next := token.may_be_next and outside) or self._every_tag:
                    stack.append(_Value(token, may_be_next=may_be_next))
            case "call":
                stack += [None, _Value(token)]
                self.quotes += 1
            case "region":
                self._end_quote(at)
            case _:  # a quoted call without arguments
                self.quoted = at + 1

    def _close(self, parts: Sequence[str], end: int, tail: str, resumes: int) -> None:
        """A closing tag ends the innermost value."""
        value = self.stack[-1]
        if value is None:
            return  # of a quoted call
        self.stack.pop()
        if not self.stack:
            self._take(value, "".join(parts[value.start : end]) + tail)
        elif (outer := self.stack[-1]) is not None:
            outer.inner = outer.inner or []
            outer.inner.append(_Inner(value, end, tail, resumes))

    def _end_quote(self, at: int) -> None:
        while self.stack.pop() is not None:
            pass
        self.quotes -= 1
        self.quoted = at + 1

    def _take(self, value: _Value, text: str) -> None:
        self.pairs.append(Pair(value.key, text, value.kind))

    def complete(self, parts: Sequence[str]) -> str:
        """The region has ended inside these values: each lacks its closing tag, and ends where another begins. Returns
        why that cannot be."""
        values: list[_Value] = []
        for value in self.stack:
            assert value is not None
            if value.may_be_next or not values:
                values.append(value)
            else:
                values[-1].inner = values[-1].inner or []
                values[-1].inner += value.inner
        fault = ""
        for value, following in zip(values, [*values[1:], None], strict=True):
            fault = self._complete_one(value, parts, len(parts) if following is None else following.at) or fault
        return fault

    def _complete_one(self, value: _Value, parts: Sequence[str], limit: int) -> str:
        """This value lacks its closing tag; all that belongs to it and to those in it ends at the limit."""
        inner = value.inner
        ends = [*(one.value.at for one in inner[1:]), limit]
        behind = ["".join(parts[one.resumes : end]) for one, end in zip(inner, ends, strict=False)]
        lacks_closing = True
        for number, one in enumerate(inner):
            if one.value.may_be_next:
                self._take(value, self._unframed("".join(parts[value.start : one.value.at])))
                inner, behind = inner[number:], behind[number:]
                break
            if not behind[number].strip():  # the closing tag was the value's
                self._take(value, "".join(parts[value.start : one.end]) + one.tail)
                inner, behind = inner[number + 1 :], behind[number + 1 :]
                lacks_closing = False
                break
        else:
            self._take(value, self._unframed("".join(parts[value.start : limit])))
            value.holds_closing |= bool(inner)
            inner, behind = [], []
        for one in inner:
            self._take(one.value, "".join(parts[one.value.start : one.end]) + one.tail)
        if value.holds_closing and lacks_closing:
            return f"the value of {value.key!r} holds a closing tag and has none"
        if any(text.strip() for text in behind):
            return f"text where a tag should stand behind {value.key!r}"
        return ""

    def _unframed(self, text: str) -> str:
        """A value without the white space that the template writes before what follows it."""
        return text.rstrip() if self._rules.spaced else _LINE_BREAK.sub("", text, count=1)
