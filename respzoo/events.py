"""The events of a parse: what happened to which region of the text.

They are plain dicts, as in transformers' manual of response templates, so that consumers written for its parser work
with this one; `region_malformed` is ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NotRequired, TypedDict

__all__ = ["Dropped", "Event", "merge"]


class Event(TypedDict):
    """One event. `type` tells which of the other keys are there.

    - `region_open`: `field`
    - `region_chunk`: `field`, `text` (a piece of the region's own text), `dirty` (True: the field is structured, and
      its value comes with `region_close`)
    - `region_close`: `field`, `value` (the parsed value of this region)
    - `region_malformed`: `field`, `raw` (the region's text, delimiters and all), `error` (why), `reason`; it stands in
      the place of `region_close`. `reason` is `malformed` for a region that was closed but is no value, `unfinished`
      for one that the end of the output cut off.
    """

    type: Literal["region_open", "region_chunk", "region_close", "region_malformed"]
    field: str
    text: NotRequired[str]
    dirty: NotRequired[bool]
    value: NotRequired[Any]
    raw: NotRequired[str]
    error: NotRequired[str]
    reason: NotRequired[Literal["malformed", "unfinished"]]


class Dropped(TypedDict):
    """A region that became no value: the record that `ResponseParser.dropped` and `MessageStream.dropped` keep."""

    field: str
    raw: str
    error: str
    reason: Literal["malformed", "unfinished"]


def merge(events: Iterable[Event]) -> list[Event]:
    """Join neighbouring chunks of one region: the form in which every cutting of a text gives the same events."""
    merged: list[Event] = []
    for event in events:
        last = merged[-1] if merged else None
        if (
            last is not None
            and event["type"] == last["type"] == "region_chunk"
            and event["field"] == last["field"]
            and "text" in event
            and "text" in last
        ):
            last["text"] += event["text"]
        else:
            merged.append(event.copy())
    return merged
