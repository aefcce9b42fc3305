"""A guess for who has no calls: which other templates read some in the same text."""

from __future__ import annotations

from typing import Any

from respzoo.errors import RespzooError
from respzoo.fields import CALLS
from respzoo.plugins import loaded
from respzoo.template import ResponseTemplate

__all__ = ["other_readers"]

LIMIT = 100_000
"""Characters beyond which nobody waits for ninety parses."""


def other_readers(text: str, prefix: str, message: Any, template: ResponseTemplate) -> list[str]:
    """The families that find calls, and nothing malformed, where the chosen template found no call."""
    if message.get(CALLS) or len(text) > LIMIT:
        return []
    plugins = loaded()
    found: list[str] = []
    for name in sorted(plugins.families.keys() - {template.name}):
        try:
            parser = plugins.compile(plugins.families[name], "a guess").parser(prefix=prefix)
        except RespzooError:  # a stranger's template that does not load is told by `respzoo plugins`
            continue
        parser.feed(text)
        if parser.finalize()[0].get(CALLS) and not parser.dropped:
            found.append(name)
    return found
