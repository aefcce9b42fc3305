"""Model output to messages: response templates for every family, one streaming parser.

>>> template = respzoo.get("Qwen/Qwen3-8B")
>>> template.parse("<think>\\nEasy.\\n</think>\\n\\n42", prefix="")
{'role': 'assistant', 'reasoning_content': 'Easy.', 'content': '42'}
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from respzoo.batch import parse_response
from respzoo.errors import ParseError, RespzooError, TemplateError, UnknownModelError
from respzoo.message import MessageStream
from respzoo.parser import ResponseParser
from respzoo.template import ResponseTemplate

if TYPE_CHECKING:
    from respzoo.zoo import get

__all__ = [
    "MessageStream",
    "ParseError",
    "ResponseParser",
    "ResponseTemplate",
    "RespzooError",
    "TemplateError",
    "UnknownModelError",
    "get",
    "parse_response",
]

import_module(
    "respzoo.hookspecs"
)  # with pluggy: half of what the first search imports, so that it need not wait for it


def __getattr__(name: str) -> Any:
    """The search for templates, with the plugins that it asks, is imported when it is first wanted."""
    if name != "get":
        raise AttributeError(f"module 'respzoo' has no attribute {name!r}")
    from respzoo.zoo import get

    globals()["get"] = get
    return get
