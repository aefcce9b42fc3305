"""A prompt as a chat template writes it after a tool has answered: there anchors go missing.

jinja2 is imported when it is needed, and runs the template in its sandbox.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NoReturn

from respzoo.errors import RespzooError

__all__ = ["PromptError", "prompt_after_a_tool_result"]

RESULT = "result-of-the-tool-7f3a"
_TOOL = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "Look it up.",
        "parameters": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
    },
}


class PromptError(RespzooError):
    """No prompt could be made of a chat template."""


def prompt_after_a_tool_result(chat_template: str) -> tuple[str, str]:
    """The prompt for the answer that follows a call and its result, and the result's text in it.

    Raises:
        PromptError: jinja2 is not installed, or the template refuses the conversation.
    """
    try:
        from jinja2.exceptions import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError as error:
        raise PromptError("the chat template was not rendered: jinja2 is not installed") from error

    def refuse(message: str) -> NoReturn:
        raise TemplateError(message)

    def to_json(value: Any, indent: int | None = None, **_: Any) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )

    def now(form: str) -> str:
        return datetime(2026, 1, 2).strftime(form)

    environment.filters["tojson"] = to_json
    given: dict[str, Any] = {"raise_exception": refuse, "strftime_now": now}
    environment.globals.update(given)
    last: Exception | None = None
    for arguments in ({"key": "k"}, '{"key": "k"}'):
        call = {"id": "call00001", "type": "function", "function": {"name": "lookup", "arguments": arguments}}
        messages = [
            {"role": "user", "content": "Ask."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "name": "lookup", "tool_call_id": "call00001", "content": RESULT},
        ]
        try:
            prompt = environment.from_string(chat_template).render(
                messages=messages, tools=[_TOOL], add_generation_prompt=True, bos_token="", eos_token=""
            )
        except Exception as error:  # a template may raise anything
            last = error
        else:
            return prompt, RESULT
    raise PromptError(f"the chat template refuses a tool's result: {type(last).__name__}: {last}")
