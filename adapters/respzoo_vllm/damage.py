"""What is said and counted of calls that became none: the family, the field and a code for the reason, never any text
that a user or a model wrote. RESPZOO_LOG_RAW=1 adds that text to the log, for debugging.

An error of the parser may quote the model, so that neither the log nor a label can hold it: it is sorted into one of
few codes here, which docs/vllm.md lists.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from respzoo.events import Dropped
from respzoo.fields import CALLS
from respzoo_vllm.plan import logger

__all__ = ["CODES", "code_of", "counter", "raw_suffix", "report", "shown_by"]

_QUOTED = 4000
# The first that is found at the beginning of an error gives its code.
_BY_ERROR = (
    ("too_costly", "looking (?:for its end )?took too long"),
    ("repeated_key", r"(?:not JSON: )?the (?:key|argument) .* stands twice|a key stands twice|.*: a name stands twice"),
    ("no_call", r"no \w+ between|expected a |(?:more than one of )?the transform's|a required field is missing"),
    ("stray_text", "(?:text|markup) between regions"),
    ("bad_name", "a call without a name|a call's name cannot be"),
    ("bad_arguments", "a call's arguments cannot be"),
    ("bad_tags", r"text where a tag|a tag |more than \d+ levels of tags|.* closes nothing$"),
    ("bad_python", "not a list of calls"),
    ("bad_json", "not JSON|Expecting|Extra data|Invalid|Unterminated|Illegal|nothing behind"),
    ("bad_json", "the number|.*is no JSON value|what follows its opening cannot be a value"),
)  # fmt: skip
_PATTERNS = [(code, re.compile(pattern, re.DOTALL)) for code, pattern in _BY_ERROR]
CODES = ("cut", *dict.fromkeys(code for code, _ in _BY_ERROR), "other")


def code_of(record: Dropped) -> str:
    """Why a region became no value, as one of `CODES`."""
    if record["reason"] == "unfinished":
        return "cut"
    return next((code for code, pattern in _PATTERNS if pattern.match(record["error"])), "other")


def raw_suffix(text: str) -> str:
    """What a line of the log ends with: the text, if the operator asked for it."""
    return f": {text[:_QUOTED]!r}" if os.environ.get("RESPZOO_LOG_RAW") == "1" else ""


def shown_by(policies: Mapping[str, Any]) -> list[str]:
    """The reasons (`malformed`, `unfinished`) for which a call's raw text is content under these policies."""
    return [name for name in ("malformed", "unfinished") if policies[f"on_{name}"] == "content"]


def report(family: str, dropped: Iterable[Dropped], shown: Iterable[str] = ()) -> None:
    """Log and count the regions of one reply that became nothing.

    Args:
        family: the template's name.
        dropped: as `MessageStream.dropped` tells.
        shown: the reasons (`malformed`, `unfinished`) whose raw text is content.
    """
    for record in dropped:
        code = code_of(record)
        fate = "shown as content" if record["field"] and record["reason"] in shown else "left out"
        logger.info(
            "respzoo: %s: %s in %s (%s), %s%s",
            family,
            record["reason"],
            record["field"] or "the text between calls",
            code,
            fate,
            raw_suffix(record["raw"]),
        )
        if record["field"] == CALLS and (metric := counter()) is not None:
            metric.labels(family=family, reason=code).inc()


@functools.cache
def counter() -> Any:
    """The counter in the registry that vLLM's /metrics shows, made once; None where there is no prometheus_client."""
    try:
        prometheus: Any = import_module("prometheus_client")
    except ImportError:
        return None
    try:
        return prometheus.Counter(
            "respzoo_damaged_calls", "Tool calls that could not be read, by family and reason.", ["family", "reason"]
        )
    except ValueError:  # another copy of this module has made it
        known = getattr(prometheus.REGISTRY, "_names_to_collectors", {})
        return known.get("respzoo_damaged_calls_total")
