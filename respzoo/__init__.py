"""Model output to messages: response templates for every family, one streaming parser.

>>> template = respzoo.get("Qwen/Qwen3-8B")
>>> template.parse("<think>\\nEasy.\\n</think>\\n\\n42", prefix="")
{'role': 'assistant', 'reasoning_content': 'Easy.', 'content': '42'}
"""

from __future__ import annotations

from respzoo.batch import parse_response
from respzoo.errors import ParseError, RespzooError, TemplateError, UnknownModelError
from respzoo.message import MessageStream
from respzoo.parser import ResponseParser
from respzoo.template import ResponseTemplate
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
