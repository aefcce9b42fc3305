"""Text between regions, in a template whose every field has an opener.

It is the answer of a model that left its markers out, and so it is content: unless it is white space, a turn's start
written once more, or broken markup (it holds a marker of the template's own), which is recorded only.
"""

from __future__ import annotations

from respzoo.draft import Draft
from respzoo.events import Event
from respzoo.fields import CONTENT

__all__ = ["Stray"]


class Stray:
    """The text between two regions."""

    __slots__ = ("_answered", "_draft", "_is_markup", "_parts", "_space")

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._parts: list[str] = []
        self._space: list[str] = []  # white space and closers that count only if text follows
        self._is_markup = False
        self._answered = False

    def text(self, events: list[Event], text: str) -> None:
        if self._is_markup:
            self._parts.append(text)
            return
        if not self._parts:
            stripped = text.lstrip()
            if self._answered:  # white space before a further piece of an answer is its own
                self._space.append(text[: len(text) - len(stripped)])
            text = stripped
            if not text:
                return
            self._answered = True
            events.append({"type": "region_open", "field": CONTENT})
        shown = text.rstrip()
        space = text[len(shown) :]
        if shown:
            shown = "".join(self._space) + shown
            self._space = []
            self._parts.append(shown)
            events.append({"type": "region_chunk", "field": CONTENT, "text": shown, "dirty": False})
        if space:
            self._space.append(space)

    def marker(self, events: list[Event], kind: str, text: str) -> None:
        """A marker that opens nothing here; `kind` as in the watch list (`marker` or `closer`)."""
        if self._is_markup:
            self._parts.append(text)
        elif self._parts and kind == "closer":
            self._space.append(text)  # of an answer that lacks its opener, unless more text follows
        elif self._parts:
            self.text(events, text)
        elif kind == "marker":
            self._is_markup = True
            self._parts.append(text)

    def close(self, events: list[Event]) -> None:
        """A region or a turn begins, or the output ends."""
        text = "".join(self._parts)
        is_markup = self._is_markup
        self._parts, self._space, self._is_markup = [], [], False
        if is_markup:
            error = "markup between regions that opens no field of the template"
            self._draft.drop("", text, error, "malformed", as_content=False)
        elif text:
            self._draft.add_content(text)
            events.append({"type": "region_close", "field": CONTENT, "value": text})
