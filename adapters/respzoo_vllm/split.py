"""The classes behind the two flags.

In the engine core the reasoning parser tells when reasoning is over, and thereby when a grammar begins. In the API
server the unified parser (parser.py) holds one of each and reads replies itself. Where that cannot be put in, in a
release to come, vLLM composes these two, which then read a reply in two halves (halves.py).
"""

# vLLM is not there where types are checked, so what its base classes have is unknown.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from respzoo import MessageStream, ResponseTemplate, UnknownModelError
from respzoo.message import Delta
from respzoo_vllm import engine
from respzoo_vllm.damage import report, shown_by
from respzoo_vllm.halves import ReasoningHalf, answer_half
from respzoo_vllm.plan import Plan, logger, plan_for, policies
from respzoo_vllm.tools import tool_dicts

__all__ = ["RespzooReasoningParser", "RespzooToolParser"]


_TEXT: dict[str, Any] = {"start_anchor": "<s>", "fields": {"content": {}}}  # a template that takes all for content


def keep_special_tokens(request: Any) -> Any:
    """A marker may be a special token: skipped, it would be gone before we see it."""
    request.skip_special_tokens = False
    if hasattr(request, "spaces_between_special_tokens"):
        request.spaces_between_special_tokens = False
    return request


class RespzooReasoningParser(engine.ReasoningParser):
    """Tells when reasoning is over. In the engine core it is all that there is of respzoo."""

    template: ClassVar[ResponseTemplate | None] = None
    engine_based_streaming = True  # it is told of the end, and tells itself when the reasoning is over

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        self.began_inside = False
        self._prompt_ids: Sequence[int] | None = None
        self._half: ReasoningHalf | None = None
        self._plan: Plan | None = None
        try:
            self._plan = plan_for(tokenizer, self.template)
        except UnknownModelError:
            # The server has found its template by the model, and so has started; an error here would end the engine.
            logger.exception("respzoo: grammars will hold reasoning too; RESPZOO_TEMPLATE=path lets every process know")
        # Grammars for harmony begin before the reasoning, since 0.28: vLLM's own class knows.
        harmony = self._plan is not None and self._plan.harmony
        self._stock: Any = engine.harmony_reasoning(tokenizer) if harmony else None

    # what the engine core asks

    @property
    def reasoning_start_str(self) -> str | None:
        return self._plan.reasoning_markers[0] if self._plan else None

    @property
    def reasoning_end_str(self) -> str | None:
        return self._plan.reasoning_markers[1] if self._plan else None

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        self._prompt_ids = input_ids
        if self._stock is not None:
            return self._stock.is_reasoning_end(input_ids)
        if self._plan is None:
            return True
        return self._plan.gate.ended(self._plan.reader.tail(input_ids))

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        if self._stock is not None:
            return self._stock.is_reasoning_end_streaming(input_ids, delta_ids)
        return self._plan is None or self._plan.gate.ended_within(input_ids, delta_ids)

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        return self._plan.gate.count(token_ids, self.began_inside) if self._plan else 0

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        if self._plan is None:
            return input_ids
        for at in range(1, len(input_ids) + 1):
            if self._plan.gate.ended_within(input_ids[:at], input_ids[at - 1 : at]):
                return input_ids[at:]
        return []

    # one half of a reply

    def adjust_request(self, request: Any) -> Any:
        return keep_special_tokens(request)

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        self._prompt_ids = prompt_token_ids

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        self._prompt_ids = prompt_token_ids

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        half = self._begin(model_output)
        if half is None:
            return None, model_output
        pieces = [half.feed(model_output), half.end()]
        reasoning, content = ("".join(each) for each in zip(*pieces, strict=True))
        return reasoning or None, content or None

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> Any:
        if self._half is None:
            self._half = self._begin("")
        return _two_texts(*("", delta_text) if self._half is None else self._half.feed(delta_text))

    def has_engine_confirmed_reasoning_end(self) -> bool:
        return self._half is None or self._half.over

    def finish_streaming(self) -> Any:
        """The reasoning or the output is over: what was held back."""
        return None if self._half is None else _two_texts(*self._half.end())

    def _begin(self, output: str) -> ReasoningHalf | None:
        engine.say_that_two_read()
        if self._plan is None:
            return None
        reader = self._plan.reader
        ids = self._prompt_ids
        half = ReasoningHalf(self._plan, self._plan.guess_prefix(output) if ids is None else reader.tail(ids))
        self.began_inside = half.inside
        return half


class RespzooToolParser(engine.ToolParser):
    """Reads calls, and the answer around them, in what comes after the reasoning."""

    engine_based_streaming = True

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        self._tokenizer = tokenizer
        self._policies = policies()
        self._stream: MessageStream | None = None
        self._family = ""

    def adjust_request(self, request: Any) -> Any:
        return keep_special_tokens(super().adjust_request(request))

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        stream = self._begin(request, {**self._policies, "arguments": "complete"})
        deltas = [*stream.feed(model_output), *self._end(stream)]
        calls = [{"id": call["id"], "function": call["function"]} for call in _calls(deltas)]
        content = "".join(delta.get("content", "") for delta in deltas)
        return engine.ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=content or None)

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> Any:
        if self._stream is None:
            self._stream = self._begin(request, self._policies)
        return _message(self._stream.feed(delta_text))

    def finish_streaming(self) -> Any:
        """The output is over: what was held back."""
        stream, self._stream = self._stream, None
        return None if stream is None else _message(self._end(stream))

    def _begin(self, request: Any, chosen: dict[str, Any]) -> MessageStream:
        engine.say_that_two_read()
        try:
            plan = plan_for(self._tokenizer, None)
        except UnknownModelError:
            logger.exception("respzoo: no calls are read")
            return MessageStream(_TEXT, prefix="")
        self._family = plan.template.name
        asked = bool(request.tools) and request.tool_choice != "none"
        return answer_half(plan, tool_dicts(request.tools) if asked else None, chosen)

    def _end(self, stream: MessageStream) -> list[Delta]:
        deltas = stream.finish()[1]
        report(self._family, stream.dropped, shown_by(self._policies))
        return deltas


def _two_texts(reasoning: str, content: str) -> Any:
    fields = {name: text for name, text in (("reasoning", reasoning), ("content", content)) if text}
    return engine.DeltaMessage(**fields) if fields else None


def _calls(deltas: Iterable[Delta]) -> list[Any]:
    return [call for delta in deltas for call in delta.get("tool_calls", ())]


def _message(deltas: Sequence[Delta]) -> Any:
    """One DeltaMessage of these deltas: a call's pieces in it are joined."""
    calls: dict[int, dict[str, Any]] = {}
    for call in _calls(deltas):
        known = calls.get(call["index"])
        if known is None:
            calls[call["index"]] = {**call, "function": dict(call["function"])}
        else:
            known["function"]["arguments"] += call["function"].get("arguments", "")
    content = "".join(delta.get("content", "") for delta in deltas)
    if not content and not calls:
        return None
    fields: dict[str, Any] = {"content": content} if content else {}
    return engine.DeltaMessage(**fields, **({"tool_calls": list(calls.values())} if calls else {}))
