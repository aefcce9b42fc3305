"""Arguments in tags in tags.

Text goes as it comes: what states that it is text, what the tool's schema takes for nothing else, and, where neither
says anything, what begins with more than white space. So do keys and the brackets of objects and lists that are stated.
Anything else goes when its tag has ended. Where two readings of quoted tags are left (a tag in a text that is not
closed), the rest of the call goes when it is whole.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from respzoo.arguments.call import Call, Writer, dump_arguments, escape
from respzoo.content import Raw, ValueParser
from respzoo.content.entities import unescape
from respzoo.content.xml_tree import DEEPEST_TREE, XmlTree
from respzoo.delimiters import Delimiter, Found, WatchList
from respzoo.scanner import Scanner
from respzoo.schema import Tools

__all__ = ["TreeCalls", "tree_watch"]


@cache
def tree_watch(tags: str) -> WatchList | None:
    """What finds the tags; None if they need the text before them."""
    delimiter = Delimiter.regex("tag", "", tags)
    return None if delimiter.looks_behind else WatchList([delimiter])


class _Element:
    """A tag that is open.

    Attributes:
        kind: as in the content's `kinds`.
        stated: the type that the tag states.
        keys: those of the tags in it.
        begun: whether there is one.
        quoted: tags that are open in its text.
    """

    __slots__ = ("begun", "key", "keys", "kind", "quoted", "stated")

    def __init__(self, key: str | None, stated: str, kind: str | ValueParser | None) -> None:
        self.key = key
        self.stated = stated
        self.kind = kind
        self.keys: set[str] = set()
        self.begun = False
        self.quoted = 0

    @property
    def holds_text(self) -> bool:
        return self.kind is not None and not isinstance(self.kind, str)


class TreeCalls(Writer):
    """Follows one call, tag by tag, as its content is read.

    Args:
        call: the call; its name is known.
        content: what reads the tags.
        tools: what types their values.
        watch: what finds the tags.
    """

    __slots__ = (
        "_call", "_closing", "_content", "_failed", "_held", "_leaf", "_leaf_is", "_scanner", "_space", "_stack",
        "_tools", "_watch",
    )  # fmt: skip

    def __init__(self, call: Call, content: XmlTree, tools: Tools, watch: WatchList) -> None:
        super().__init__()
        self.calls.append(call)
        self._call = call
        self._content = content
        self._tools = tools
        self._watch = watch
        self._scanner = Scanner()
        self._stack = [_Element(None, "", "object")]
        self._leaf: _Element | None = None  # the outermost open tag whose text is the value's, as far as is known
        self._leaf_is: Literal["text", "perhaps text", "waits"] = "waits"
        self._held: list[str] = []  # of it: what has not been sent
        self._closing: Found | None = None  # a closing tag, if a tag or the end of all follows
        self._space: list[str] = []  # behind it
        self._failed = False
        call.write("{")

    @property
    def _goes(self) -> bool:
        """Whether the text that comes is a value's, and nothing of it waits."""
        if self._failed or self._leaf is None or self._leaf_is != "text" or self._closing is not None:
            return False
        return self._scanner.idle

    @property
    def barred(self) -> str | None:
        return "\\" + self._watch.first if self._goes and self._watch.first else None

    def quick(self, text: str) -> str | None:
        watch = self._watch
        if not self._goes or watch.begins is None or watch.begins(text) is not None:
            return None
        return None if watch.leads and text[-1].isspace() else escape(text)

    def text(self, text: str) -> None:
        scanner = self._scanner
        if self._failed:
            return
        scanner.load(text)
        while not self._failed:
            try:
                before, found = scanner.advance(self._watch)
            except TimeoutError:
                self._failed = True
                return
            if before:
                self._between_tags(before)
            if not isinstance(found, Found):
                return
            if self._closing is not None:
                self._closing_tag(followed=True)
            if not self._failed:
                self._tag(found)

    def _between_tags(self, text: str) -> None:
        if self._closing is not None:
            if text.isspace():
                self._space.append(text)
                return
            self._closing_tag(followed=False)
        self._add(text)

    def _tag(self, found: Found) -> None:
        element = self._stack[-1]
        key = found.groups.get("key")
        if key is not None and self._content.unescapes:
            key = unescape(key)
        if "opens" in found.groups:
            self._open(key, found)
        elif not element.quoted and key is not None and key != element.key:
            self._add(found.text)
        elif len(self._stack) == 1:
            self._failed = True
        elif not element.quoted and self._stack[-2].kind is None:
            self._close(element, found.text)  # whatever follows
        else:
            self._closing = found

    def _closing_tag(self, *, followed: bool) -> None:
        """What the closing tag is, now that it is known what follows."""
        found, self._closing = self._closing, None
        assert found is not None
        space = "".join(self._space)
        self._space.clear()
        element, outer = self._stack[-2:][::-1]
        key = found.groups.get("key")
        if key is not None and self._content.unescapes:
            key = unescape(key)
        closes = (followed or outer.kind is None) and (key is None or key == element.key)
        if element.quoted:
            element.quoted -= 1
            self._failed = closes  # of one of the tags in its text; or of this one, if these are none
            self._add(found.text + space)
        elif closes:
            self._close(element, found.text)
            self._add(space)
        else:
            self._add(found.text + space)

    def _open(self, key: str | None, found: Found) -> None:
        outer = self._stack[-1]
        if outer.holds_text:
            outer.quoted += 1
            self._add(found.text)
            return
        stated = found.groups.get("type", "")
        element = _Element(key, stated, self._content.kinds.get(stated))
        self._failed = len(self._stack) > DEEPEST_TREE
        if self._leaf is None and outer.kind == "object":
            self._failed |= key is None or key in outer.keys
            outer.keys.add(key or "")
        if self._failed:
            return
        if self._leaf is not None:
            if self._leaf_is == "perhaps text":
                self._leaf_is = "waits"
            self._add(found.text)
        elif isinstance(element.kind, str):
            self._begin(element, "{" if element.kind == "object" else "[")
        else:
            self._leaf = element
            self._leaf_is = self._what_is(element)
            self._held = [] if element.holds_text or self._leaf_is == "text" else [found.text]
            if self._leaf_is == "text":
                self._begin(element, '"')
        self._stack.append(element)

    def _what_is(self, element: _Element) -> Literal["text", "perhaps text", "waits"]:
        if element.holds_text:
            return "text" if self._content.is_text(element.stated) else "waits"
        if len(self._stack) > 1:
            return "waits"
        types = self._tools.types(self._call.name, element.key or "")
        return "perhaps text" if not types else "text" if types == {"string"} else "waits"

    def _add(self, text: str) -> None:
        """Text, and tags in it, of the tag that is open."""
        if self._failed:
            return
        if self._leaf is None:
            self._failed = bool(text.strip())
        elif self._leaf_is == "text":
            self._call.write(escape(text))
        else:
            self._held.append(text)
            if self._leaf_is == "perhaps text" and text.strip():
                self._leaf_is = "text"
                outer = self._stack.pop()
                self._begin(outer, f'"{escape("".join(self._held[1:]))}')
                self._stack.append(outer)

    def _begin(self, element: _Element, text: str) -> None:
        """Write the beginning of the value of an element, of which the tag on the stack is the next outer one."""
        outer = self._stack[-1]
        key = f"{dump_arguments(element.key)}: " if outer.kind == "object" else ""
        self._call.write(f"{', ' if outer.begun else ''}{key}{text}")
        outer.begun = True

    def _close(self, element: _Element, tag: str) -> None:
        self._stack.pop()
        if self._leaf is None:
            self._call.write("}" if element.kind == "object" else "]")
        elif element is not self._leaf:
            self._add(tag)
        else:
            self._leaf = None
            if self._leaf_is == "text":
                self._call.write('"')
                return
            try:
                value = self._value(element, tag)
            except (ValueError, RecursionError):
                self._failed = True
            else:
                self._begin(element, dump_arguments(value))

    def _value(self, element: _Element, tag: str) -> Any:
        text = "".join(self._held)
        value: Any = None
        if element.holds_text:
            assert callable(element.kind)
            try:
                value = element.kind(text)
            except (ValueError, RecursionError):
                value = Raw(text)
        else:
            value = self._content.parse(text + tag)[element.key]
        if not isinstance(value, Raw):
            return value
        if any(outer.kind == "list" for outer in self._stack):
            raise ValueError("its type depends on what else is in the list")
        keys = [element.key or "", *(outer.key or "" for outer in self._stack[:0:-1])]
        arguments: dict[str, Any] = {keys[0]: value}
        for key in keys[1:]:
            arguments = {key: arguments}
        typed: Any = self._tools.typed(self._call.name, arguments)
        for key in reversed(keys):
            typed = typed[key]
        return typed
