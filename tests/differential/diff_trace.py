"""Why our reading of a text differs from the reference's: a proof for each difference, or a failure.

Our events cut the text into regions and delimiters. `Trace` walks through them beside the text and asks of every step
whether the language allows it, with the reference's own compiled patterns and content parsers: is this the delimiter
that comes next, is this its field, is this the text up to the closer, is this its value. Where the answer is "not by
the reference's rules", one of the named differences (D1 to D9 and P5 of the README) must account for it, and the walk
checks that it does:

    D1  pieces of the implicit field are concatenated, then stripped once
    D2  a region is malformed: the reference's own content parser refuses its body
    D3  a closer was passed over: it lies inside a value, by a lexer written here
    D4  the text ended inside a structured region whose value is not whole
    D5  the reference does not agree with itself (shown by the caller, which has its readings of every cutting)
    D6  the anchor is not in the prefix, so that the message starts empty
    D7  an argument was typed by its schema, or a call was not a finished call
    D9  the reasoning field goes by its one name in the message
    P5  text that no field could take, or a malformed region, became content

From the regions the message is computed anew and compared with ours. Nothing here looks at our parser's insides.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import regex
from diff_typing import call_fault, finished, same_value
from transformers.utils.chat_parsing import ResponseParser as ReferenceParser
from transformers.utils.chat_parsing.content_parsers import parse_content, process_field
from transformers.utils.chat_parsing.response_templates import ResponseTemplate, ResponseTemplateField

REASONING = ("reasoning_content", "thinking", "reasoning")
STRUCTURED = ("json", "xml-inline", "kv-lines", "python-call-list")


class Unexplained(AssertionError):
    """A step of our reading that neither the reference's rules nor a named difference allows."""


@dataclass
class Region:
    """One region of our reading, with its place in the text."""

    field: str
    start: int
    body: str
    after: int
    opener: Any
    captures: dict[str, str]
    event: Mapping[str, Any]


class Trace:
    """The walk. `names` are the differences that it met."""

    def __init__(
        self,
        template: ResponseTemplate,
        prefix: str,
        text: str,
        tools: Sequence[Any],
        events: Sequence[Mapping[str, Any]],
        dropped: Sequence[Mapping[str, Any]],
    ) -> None:
        self.template, self.tools = template, tools
        self.names: set[str] = set()
        self.full = self.message_start(prefix) + text
        self.pieces: list[tuple[str, Any]] = []  # (field, value), ("", raw text that became content)
        self.bodies: dict[str, list[str]] = {}  # of text fields, by field
        self.markup = [record["raw"] for record in dropped if not record["field"]]
        self.at = 0
        self.cut_closer = ""
        self.completed: str | None = None  # a body with the closing tag that the model left out
        regions = list(groups(events))
        self.limit = len(self.full)  # where text ends and a cut opener begins
        for group in regions:
            if group[0]["type"] == "region_malformed" and group[0]["reason"] == "unfinished":
                self.limit -= len(group[0]["raw"])
        for group in regions:
            self.region(group)
        self.end()
        recorded = [(record["field"], record["raw"]) for record in dropped if record["field"]]
        told = [(event["field"], event["raw"]) for event in events if event["type"] == "region_malformed"]
        if recorded != told:
            raise Unexplained(f"dropped has {recorded}, the events {told}")

    def message_start(self, prefix: str) -> str:
        found = list(self.template.start_anchor_re.finditer(prefix))
        if found:
            return prefix[found[-1].end() :]
        if prefix:
            self.names.add("D6")
        return ""

    # -- the delimiters that the reference would choose

    def next_delimiter(self, at: int) -> tuple[str, ResponseTemplateField, Any] | None:
        """Outside explicit regions: the earliest start, then the longest, then opens before closes."""
        best: tuple[Any, ...] | None = None
        chosen: tuple[str, ResponseTemplateField, Any] | None = None
        for field in self.template.fields.values():
            if field.open_re is not None:
                kind, pattern = "open", field.open_re
            elif field.close_re is not None:
                kind, pattern = "close", field.close_re
            else:
                continue
            match = pattern.search(self.full, at)
            if match is None:
                continue
            key = (match.start(), match.start() - match.end(), kind == "close", field.name)
            if best is None or key < best:
                best, chosen = key, (kind, field, match)
        return chosen

    # -- one region of ours

    def region(self, group: list[Mapping[str, Any]]) -> None:
        field = group[0]["field"]
        body = "".join(event["text"] for event in group if event["type"] == "region_chunk")
        last = group[-1]
        if last["type"] not in ("region_close", "region_malformed"):
            raise Unexplained(f"region {field} never ends: {group}")
        spec = self.template.fields.get(field)
        if self.template.implicit is None and field == "content" and self.stray_region(body, last):
            return
        if spec is None:
            raise Unexplained(f"no such field: {field}")
        dirty = spec.content in STRUCTURED
        if any(event["dirty"] is not dirty for event in group if event["type"] == "region_chunk"):
            raise Unexplained(f"{field}: dirty is not {dirty}")
        if spec.open_re is None:
            self.implicit_region(spec, body, last)
        elif group[0]["type"] == "region_malformed":
            if group[0]["raw"]:
                self.cut_opener(spec, group[0])
            else:
                self.missing(spec)
        else:
            self.explicit_region(spec, body, last)

    def skip_to_opener(self, spec: ResponseTemplateField) -> Any:
        """From here to this field's opener: nothing, or text that no field takes, or closers that close nothing."""
        while True:
            chosen = self.next_delimiter(self.at)
            if chosen is None:
                raise Unexplained(f"{spec.name} opened, but no delimiter comes after {self.full[self.at :][:80]!r}")
            kind, field, match = chosen
            self.stray(self.full[self.at : match.start()])
            if kind == "open":
                if field.name != spec.name:
                    raise Unexplained(f"{spec.name} opened where {field.name} opens with {match.group()!r}")
                return match
            if match.end() == self.at:
                raise Unexplained(f"{spec.name} opened behind a closer that closes nothing for ever")
            self.at = match.end()

    def stray(self, text: str) -> None:
        """Text between regions in a template without an implicit field, of which no content was made: white space,
        the turn's start written again, closers, and markup of which there is a record."""
        if not text:
            return
        if self.template.implicit is not None:
            raise Unexplained(f"the implicit field did not take {text!r}")
        left = text
        while self.markup and self.markup[0] in left:
            left = left.replace(self.markup.pop(0), " ", 1)
            self.names.add("P5")
        left = self.template.start_anchor_re.sub("", left)
        for field in self.template.fields.values():
            if field.close_re is not None:
                left = field.close_re.sub("", left)
        left = regex.sub(r"<[^<>\s]+>", lambda marker: "" if self.only_closes(marker.group()) else marker.group(), left)
        if left.strip():
            raise Unexplained(f"lost: {left!r} of {text!r}")

    def only_closes(self, marker: str) -> bool:
        """Whether the marker is a part of a closer: one that closes nothing here."""
        closers = (field.close_re for field in self.template.fields.values())
        return any(marker in plain_source(pattern.pattern) for pattern in closers if pattern is not None)

    def stray_region(self, body: str, last: Mapping[str, Any]) -> bool:
        """Text between regions in a template without an implicit field, of which content was made."""
        chosen = self.next_delimiter(self.at)
        stop = self.limit if chosen is None else chosen[2].start()
        start = self.full.find(body, self.at, stop) if body else -1
        if start < 0 or last["type"] != "region_close":
            return False
        self.stray(self.full[self.at : start])
        if last["value"] != body:
            raise Unexplained(f"stray text {body!r} has the value {last['value']!r}")
        self.names.add("P5")
        self.pieces.append(("", body))
        self.at = start + len(body)
        return True

    def missing(self, spec: ResponseTemplateField) -> None:
        if spec.optional or any(name == spec.name for name, _ in self.pieces):
            raise Unexplained(f"{spec.name} is said to be missing")
        self.names.add("D2")

    def implicit_region(self, spec: ResponseTemplateField, body: str, last: Mapping[str, Any]) -> None:
        while True:
            chosen = self.next_delimiter(self.at)
            stop = self.limit if chosen is None else min(self.limit, chosen[2].start())
            if stop > self.at or chosen is None or chosen[0] == "open" or chosen[2].end() == self.at:
                break
            self.at = chosen[2].end()  # a closer at once: there is no region to close
        expected = self.full[self.at : stop]
        if body != expected:
            raise Unexplained(f"{spec.name} took {body!r}, not {expected!r}")
        captures: dict[str, str] = {}
        self.at = stop
        if chosen is not None and chosen[0] == "close" and chosen[2].start() == stop:
            captures = named(chosen[2])
            self.at = chosen[2].end()
        region = Region(spec.name, stop - len(body), body, self.at, None, captures, last)
        self.value(spec, region, whole=True)

    def cut_opener(self, spec: ResponseTemplateField, event: Mapping[str, Any]) -> None:
        """An opener that the end cut off behind a whole marker: the rest of the text, as an unfinished region."""
        raw = event["raw"]
        if event["reason"] != "unfinished" or not self.full.endswith(raw):
            raise Unexplained(f"malformed without having opened, and not at the end: {event}")
        partial = spec.open_re.fullmatch(raw, partial=True)
        if partial is None:
            raise Unexplained(f"{raw!r} is not the beginning of an opener of {spec.name}")
        if not begins_with_marker(raw, spec.open_re.pattern):
            raise Unexplained(f"{raw!r} does not begin with a whole marker of {spec.name}'s opener")
        start = len(self.full) - len(raw)
        self.stray(self.full[self.at : start])
        self.at = len(self.full)
        self.names.add("D4")

    def explicit_region(self, spec: ResponseTemplateField, body: str, last: Mapping[str, Any]) -> None:
        opener = self.skip_to_opener(spec)
        begin, end = opener.end(), opener.end() + len(body)
        if self.full[begin:end] != body:
            raise Unexplained(f"{spec.name} took {body!r}, but the text has {self.full[begin:end]!r}")
        closer = self.closer(spec, begin, end, body, last)
        captures = named(opener)
        if closer is not None:
            captures.update(named(closer))
        self.at = max(end, closer.end()) if closer is not None else end + len(self.cut_closer)
        self.cut_closer = ""
        if self.completed is not None:
            body, self.completed = self.completed, None
        region = Region(spec.name, opener.start(), body, self.at, opener, captures, last)
        self.value(spec, region, whole=closer is not None or spec.close_re is None)

    def closer(
        self, spec: ResponseTemplateField, begin: int, end: int, body: str, last: Mapping[str, Any]
    ) -> Any | None:
        """The closer at the end of our body. Each one before it must be a part of the value."""
        if spec.close_re is None:
            if end != len(self.full):
                raise Unexplained(f"{spec.name} has no closer, yet ended before {self.full[end:]!r}")
            return None
        first = spec.close_re.search(self.full, begin)
        if first is not None and first.start() == end:
            return first
        if first is None or first.start() > end:
            rest = self.full[end:]
            if not rest:
                return None
            if rest.strip() and spec.close_re.fullmatch(rest, partial=True) is not None:
                self.names.add("D4")  # the end cut the closer: nothing of the value is missing
                self.cut_closer = rest
                return None
            raise Unexplained(f"{spec.name} ended at {self.full[end:][:40]!r}, where it has no closer")
        # The reference closes earlier than we do.
        if last["type"] == "region_malformed" and readable(spec, self.full[begin : first.start()], first):
            raise Unexplained(f"{spec.name} is {last['reason']}, but up to its first closer it is a value")
        if (
            spec.content == "xml-inline"
            and end == len(self.full)
            and (cut := self.unclosed_tag(spec, begin)) is not None
        ):
            self.names.add("D3")
            return cut
        inside = insides(spec, body)
        for match in every_match(spec.close_re, self.full, begin):
            if match.start() >= end:
                break
            if last["type"] == "region_malformed" and last["reason"] == "malformed":
                continue  # no value, so nothing to be inside of; that it is none is checked with the value
            if not inside(match.start() - begin):
                raise Unexplained(f"{spec.name} passed over {match.group()!r}, which is not inside a value: {body!r}")
        self.names.add("D3")
        match = spec.close_re.match(self.full, end)
        if match is None and end != len(self.full):
            raise Unexplained(f"{spec.name} ended at {self.full[end:][:40]!r}, where it has no closer")
        return match

    def unclosed_tag(self, spec: ResponseTemplateField, begin: int) -> Any | None:
        """The closer at the very end of the text, where only the last tag's own closing tag was left out: the region's
        end ends the value too. Our event holds the closer, since it could have been the value's until the end."""
        for match in every_match(spec.close_re, self.full, begin):
            if match.start() != match.end() and not self.full[match.end() :].strip():
                body = self.full[begin : match.start()]
                if "</" not in plain_source(spec.close_re.pattern).split("</", 1)[-1]:
                    # a closer of one tag: closing tags of the region's own markup may stand before it
                    body = regex.sub(r"(?:\s*</[^<>\s]+>)+\s*\Z", "", body)
                closing = closing_tag(spec.content_args["tag_pattern"])
                tags = xml_parts(spec.content_args["tag_pattern"], body + closing)
                if closing and tags and tags[-1][1] == len(body) + len(closing):
                    self.completed = body + closing
                    return match
        return None

    # -- what a region is worth

    def value(self, spec: ResponseTemplateField, region: Region, *, whole: bool) -> None:
        event = region.event
        value: Any = None
        error: Exception | str | None = None
        try:
            value = process_field(region.body, spec, region.captures)
        except Exception as caught:  # noqa: BLE001 - a content parser may raise anything
            error = caught
        if spec.content == "xml-inline" and error is None:
            ours = self.xml_value(spec, region)
            if json_form(ours) != json_form(value):
                self.names.add("D3")
                value = ours
        structured = spec.content in STRUCTURED
        if error is None and spec.join is not None and not isinstance(value, str):
            error = "'join' needs text"
        if error is None:
            error = call_fault(spec, value, region.body)
            if error is not None:
                self.names.add("D7")
        if event["type"] == "region_close":
            if error is not None:
                raise Unexplained(f"{spec.name} has a value though its body is none ({error}): {region.body!r}")
            if not whole and structured and not complete(spec, region.body):
                raise Unexplained(f"{spec.name} was cut off, yet became a value: {region.body!r}")
            self.typed(spec, value, event["value"], region)
            self.pieces.append((spec.name, event["value"]))
            self.bodies.setdefault(spec.name, []).append(region.body)
            return
        raw = self.full[region.start : region.after]
        if event["raw"] != raw:
            raise Unexplained(f"{spec.name} is malformed, but raw is {event['raw']!r}, not {raw!r}")
        if not event["error"]:
            raise Unexplained(f"{spec.name} is malformed without an error")
        if event["reason"] == "unfinished":
            if whole and spec.close_re is not None:
                raise Unexplained(f"{spec.name} is called unfinished, but it is closed: {raw!r}")
            if error is None and complete(spec, region.body):
                raise Unexplained(f"{spec.name} is called unfinished, but its value is whole: {raw!r}")
            self.names.add("D4")
            return
        # one that holds a closer but has no end: cut off, or closed and broken; as text it is safe either way
        closed_inside = not whole and spec.close_re is not None and spec.close_re.search(region.body) is not None
        if error is None and not (structured and closed_inside):
            raise Unexplained(
                f"{spec.name} is called malformed ({event['error']}), but its value is {value!r}: {raw!r}"
            )
        self.names.add("D2")
        self.pieces.append(("", raw))

    def xml_value(self, spec: ResponseTemplateField, region: Region, *, untouched: bool = False) -> Any:
        """A value ends at the closing tag that another tag or the region's end follows (D3). `untouched`: as the model
        wrote it, whatever the template's value parser would make of it."""
        content: dict[str, Any] = {}
        merged: set[str] = set()
        args = spec.content_args
        for key, raw in xml_tags(args["tag_pattern"], region.body):
            nested = None if untouched else args.get("value_parser")
            value = raw if nested is None else parse_content(raw, nested.get("name", "text"), nested.get("args", {}))
            if key in content and args.get("merge_duplicates"):
                if key not in merged:
                    content[key] = [content[key]]
                    merged.add(key)
                content[key].append(value)
            else:
                content[key] = value
        standing = deepcopy(spec)
        standing.content, standing.content_args = "json", {}
        return process_field(json.dumps(content), standing, region.captures)

    def typed(self, spec: ResponseTemplateField, plain: Any, ours: Any, region: Region) -> None:
        if json_form(ours) != json_form(self.coerced(plain)):
            self.names.add("D7")  # if no fault is found below
        plain = finished(plain)
        raw_text = spec.content in ("xml-inline", "kv-lines")
        fault = same_value(plain, ours, self.tools, raw_text=raw_text)
        if fault and raw_text and spec.content_args.get("value_parser"):
            # where a schema says what it is, the model's own text counts
            standing = deepcopy(spec)
            standing.content_args = {name: arg for name, arg in spec.content_args.items() if name != "value_parser"}
            untouched = (
                self.xml_value(spec, region, untouched=True)
                if spec.content == "xml-inline"
                else process_field(region.body, standing, region.captures)
            )
            fault = same_value(finished(untouched), ours, self.tools, raw_text=True, otherwise=plain)
        if fault:
            raise Unexplained(f"{spec.name}: {fault}: {ours!r} from {plain!r}")

    def coerced(self, plain: Any) -> Any:
        """The value with the reference's own typing."""
        parser = ReferenceParser(self.template, prefix="", tools=list(self.tools))
        return parser._coerce_tool_calls(deepcopy(plain)) if self.tools else plain  # noqa: SLF001

    # -- the end

    def end(self) -> None:
        while self.at < len(self.full):
            chosen = self.next_delimiter(self.at)
            if chosen is None:
                if self.template.implicit is not None:
                    raise Unexplained(f"lost at the end: {self.full[self.at :]!r}")
                self.stray(self.full[self.at :])
                return
            kind, field, match = chosen
            self.stray(self.full[self.at : match.start()])
            if kind == "open":
                raise Unexplained(f"{field.name} opens with {match.group()!r}, but we have no such region")
            if match.end() == self.at:
                raise Unexplained(f"lost behind an empty closer: {self.full[self.at :]!r}")
            self.at = match.end()

    def message(self) -> dict[str, Any]:
        """The message of these regions, by the reference's rules and D1, D9 and P5."""
        template = self.template
        values: dict[str, Any] = deepcopy(template.defaults)
        content: list[str] = []
        for name, value in self.pieces:
            if not name:
                content.append(value)
                continue
            field = template.fields[name]
            if field.join is not None:
                values[name] = values[name] + field.join + value if name in values else value
            elif field.repeats:
                values.setdefault(name, []).append(value)
            else:
                values[name] = value
        for name, bodies in self.bodies.items():
            self.add_up(values, template.fields[name], bodies)
        self.passed = [piece for piece in content if piece.strip()]
        kept = {name: value for name, value in values.items() if name in template.defaults or not empty(value)}
        named_once: dict[str, Any] = {}
        for name, value in kept.items():
            known = "reasoning_content" if name in REASONING and name != "reasoning_content" else name
            if known != name:
                self.names.add("D9")
            named_once[known] = value
        return named_once

    def add_up(self, values: dict[str, Any], field: ResponseTemplateField, bodies: list[str]) -> None:
        """D1, for the implicit field; and for an opened one too, since what a stream has sent stays sent (P4)."""
        if field.repeats or field.content != "text" or field.transform is not None or len(bodies) < 2:
            return
        text = "".join(bodies)
        text = text.strip() if field.content_args.get("strip", True) else text
        if text != values.get(field.name):
            self.names.add("D1")
            values[field.name] = text

    def check_message(self, ours: Mapping[str, Any]) -> None:
        expected = self.message()
        ours = dict(ours)
        if self.passed:
            self.check_passed(expected, ours)
        if json_form(expected) != json_form(ours):
            raise Unexplained(f"the regions make the message {expected!r}")

    def check_passed(self, expected: dict[str, Any], ours: dict[str, Any]) -> None:
        """Raw text comes back as content: all of it, in the order of the text, among the content that fields took."""
        self.names.add("P5")
        got, own = ours.pop("content", ""), expected.pop("content", "")
        if not isinstance(got, str):
            raise Unexplained(f"content is not text: {got!r}")
        at = 0
        for name, value in self.pieces:
            if name not in ("", "content") or not isinstance(value, str):
                continue
            for word in value.split():
                found = got.find(word, at)
                if found < 0:
                    raise Unexplained(f"{word!r} of {value!r} is not in the content {got!r} (which has {own!r})")
                at = found + len(word)
        told = sum(len("".join(value.split())) for name, value in self.pieces if name in ("", "content"))
        if len("".join(got.split())) > told:
            raise Unexplained(f"the content {got!r} has more than the text gave it")


def groups(events: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """The events of one region each."""
    group: list[Mapping[str, Any]] = []
    for event in events:
        kind = event["type"]
        if (kind == "region_open") != (not group) and not (kind == "region_malformed" and not group):
            raise Unexplained(f"{kind} of {event['field']} inside {group[0]['field'] if group else 'no region'}")
        if group and event["field"] != group[0]["field"]:
            raise Unexplained(f"{kind} of {event['field']} inside {group[0]['field']}")
        group.append(event)
        if kind in ("region_close", "region_malformed"):
            yield group
            group = []
    if group:
        raise Unexplained(f"{group[0]['field']} is still open at the end")


def named(match: Any) -> dict[str, str]:
    return {name: text for name, text in match.groupdict().items() if text is not None}


def every_match(pattern: Any, text: str, at: int) -> Iterator[Any]:
    """Every match, overlapping ones too: a closer inside a string may hide the beginning of another."""
    while (match := pattern.search(text, at)) is not None:
        yield match
        at = match.start() + 1


def empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, dict)) and not value)


def json_form(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def begins_with_marker(raw: str, source: str) -> bool:
    """Whether a whole marker of the opener (<tool_call>, [TOOL_CALLS], <|channel|>) stands at the beginning."""
    found = regex.match(r"\s*(<[^<>]*>|\[[^\[\]]*\])", raw)
    return found is not None and found[1] in plain_source(source)


def plain_source(source: str) -> str:
    """A pattern without the escapes of its literal characters."""
    return regex.sub(r"\\(\W)", r"\1", source)


def readable(spec: ResponseTemplateField, body: str, closer: Any) -> bool:
    """Whether the reference makes a call of this body."""
    try:
        value = process_field(body, spec, dict.fromkeys(spec.open_re.groupindex, "f") | named(closer))
    except Exception:  # noqa: BLE001 - a content parser may raise anything
        return False
    return spec.content in ("json", "python-call-list") and call_fault(spec, value, body) is None


def complete(spec: ResponseTemplateField, body: str) -> bool:
    """Whether a body that has no closer is a value in itself."""
    if spec.content == "json":
        try:
            parse_content(body, "json", {**spec.content_args, "allow_non_json": False})
        except ValueError:
            return False
        return True
    if spec.content == "python-call-list":
        try:
            parse_content(body, spec.content, spec.content_args)
        except ValueError:
            return False
        return True
    return spec.close_re is None


def insides(spec: ResponseTemplateField, body: str) -> Any:
    """A function that tells whether a place of the body lies inside a value's own text."""
    if spec.content == "json":
        spans = json_strings(body, spec.content_args.get("string_delims", []))
    elif spec.content == "python-call-list":
        spans = quoted(body)
    elif spec.content == "xml-inline":
        spans = xml_spans(spec.content_args["tag_pattern"], body)
    else:
        spans = []
    return lambda at: any(start < at < end for start, end in spans)


def json_strings(body: str, delims: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """The spans of strings, quotes included."""
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(body):
        for opens, closes in delims:
            if body.startswith(opens, at):
                end = body.find(closes, at + len(opens))
                end = len(body) if end < 0 else end + len(closes)
                spans.append((at, end))
                at = end
                break
        else:
            if body[at] == '"':
                match = regex.compile(r'"(?:\\.|[^"\\])*(?:"|\Z)', regex.DOTALL).match(body, at)
                end = match.end() if match else len(body)
                spans.append((at, end))
                at = end
            else:
                at += 1
    return spans


def quoted(body: str) -> list[tuple[int, int]]:
    pattern = regex.compile(r"""'(?:\\.|[^'\\])*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)""", regex.DOTALL)
    return [match.span() for match in pattern.finditer(body)]


def xml_spans(tag: str, body: str) -> list[tuple[int, int]]:
    return [(start, end) for start, end, _, _ in xml_parts(tag, body)]


def xml_tags(tag: str, body: str) -> list[tuple[str, str]]:
    return [(key, value) for _, _, key, value in xml_parts(tag, body)]


def xml_parts(tag: str, body: str) -> list[tuple[int, int, str, str]]:
    """The tags of a body. Of all the ends that a tag can have, the first that another tag or the body's end follows;
    the shortest, as the reference has it, where there is none such."""
    pattern = regex.compile(tag, regex.DOTALL)
    found: list[tuple[int, int, str, str]] = []
    at = 0
    while (first := pattern.search(body, at)) is not None:
        chosen = first
        if not followed(pattern, body, first.end()):
            for end in range(first.end() + 1, len(body) + 1):
                longer = pattern.fullmatch(body, first.start(), end)
                if longer is not None and longer["key"] == first["key"] and followed(pattern, body, end):
                    chosen = longer
                    break
        found.append((chosen.start(), chosen.end(), chosen["key"], chosen["value"]))
        at = max(chosen.end(), at + 1)
    return found


def closing_tag(tag: str) -> str:
    """The literal closing tag at the end of a tag pattern: `</parameter>` of `<parameter=…>\\n?(?P<value>.*?)\\n?</parameter>`."""
    found = regex.search(r"</[^<>()\\]+>", tag[tag.index("(?P<value>") :])
    return found.group() if found else ""


def followed(pattern: Any, body: str, end: int) -> bool:
    """By a tag or by the body's end; closing tags of the region's own markup may stand before the latter."""
    rest = regex.match(r"\s*", body, pos=end).end()
    return (
        regex.fullmatch(r"(?:\s*</[^<>\s]+>)*\s*", body, pos=end) is not None
        or pattern.match(body, rest) is not None
        or pattern.match(body, end) is not None
    )
