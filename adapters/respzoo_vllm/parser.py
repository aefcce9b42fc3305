"""The parsers that vLLM meets.

`RespzooParser` stands where vLLM would compose two: one `respzoo.MessageStream` a reply reads reasoning, content and
calls, whole replies as one piece. The classes behind the two flags tell the engine core when reasoning is over, and
vLLM which grammar holds a model to a forced call; what is asked of a grammar (required and named calls, strict tools,
`parallel_tool_calls=false`) stays vLLM's own doing.
"""

# vLLM is not there where types are checked, so what its base classes have is unknown.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import BoundArguments
from typing import Any, ClassVar, cast

from respzoo import MessageStream, ResponseTemplate, UnknownModelError
from respzoo.events import Dropped
from respzoo.fields import REASONING_NAMES
from respzoo.message import Delta
from respzoo_vllm import engine
from respzoo_vllm.damage import counter, report
from respzoo_vllm.forced import ForcedCalls
from respzoo_vllm.plan import (
    CHOICES,
    Plan,
    announce,
    find_template,
    is_harmony,
    logger,
    plan_for,
    policies,
    stock_grammar,
)
from respzoo_vllm.spans import SpanReader

__all__ = ["RespzooParser", "RespzooReasoningParser", "RespzooToolParser", "unified"]

DeltaMessage: Any = engine.DeltaMessage
END: Delta = {}  # stands behind the last delta of a reply in forced JSON


class RespzooReasoningParser(engine.ReasoningParser):
    """Tells when reasoning is over. In the engine core it is all that there is of respzoo."""

    template: ClassVar[ResponseTemplate | None] = None

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        self.began_inside = False
        self._plan: Plan | None = None
        try:
            self._plan = plan_for(tokenizer, self.template)
        except UnknownModelError:
            # The server has found its template by the model, and so has started; an error here would end the engine.
            logger.exception("respzoo: grammars will hold reasoning too; RESPZOO_TEMPLATE=path lets every process know")
        # vLLM's grammars for harmony begin before the reasoning.
        self._never = self._plan is None or is_harmony(self._plan.template.spec)

    @property
    def reasoning_start_str(self) -> str | None:
        return next(iter(self._plan.gate.openers), None) if self._plan else None

    @property
    def reasoning_end_str(self) -> str | None:
        return next(iter(self._plan.gate.closers), None) if self._plan else None

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        if self._never or self._plan is None:
            return True
        return self._plan.gate.ended(self._plan.reader.tail(input_ids))

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        return self._never or self._plan is None or self._plan.gate.ended_within(input_ids, delta_ids)

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        return self._plan.gate.count(token_ids, self.began_inside) if self._plan else 0

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        raise NotImplementedError("respzoo reads reasoning, content and calls as one: RespzooParser")

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        raise NotImplementedError("respzoo reads reasoning, content and calls as one: RespzooParser.parse")

    def extract_reasoning_streaming(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("respzoo reads reasoning, content and calls as one: RespzooParser.parse_delta")


class RespzooToolParser(engine.ToolParser):
    """Carries vLLM's name for the grammar of the template's calls; RespzooParser reads them."""

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        raise NotImplementedError("respzoo reads reasoning, content and calls as one: RespzooParser.parse")

    def extract_tool_calls_streaming(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("respzoo reads reasoning, content and calls as one: RespzooParser.parse_delta")


class ReplyReader(engine.Parser):
    """Reads replies, streamed or whole. It goes before a parser class of vLLM's, which does all the rest."""

    template: ClassVar[ResponseTemplate | None] = None
    policies: ClassVar[Mapping[str, Any]] = {name: allowed[0] for name, allowed in CHOICES.items()}
    always_adjust_request = True

    def __init__(self, tokenizer: Any, tools: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, tools, *args, **kwargs)
        self._plan = plan_for(tokenizer, self.template)
        self._tools = tools
        self._prompt_ids: Sequence[int] | None = None
        self._began_inside = False
        # of the reply that is being streamed
        self._stream: MessageStream | None = None
        self._spans: SpanReader | None = None
        self._forced: ForcedCalls | None = None
        self._show_reasoning = True
        self._called = False
        # the damage whose text is content
        self._shown = [name for name in ("malformed", "unfinished") if self.policies[f"on_{name}"] == "content"]

    # what vLLM asks before the model writes

    def adjust_request(self, request: Any) -> Any:
        adjusted = cast(Any, super().adjust_request(request))
        # A marker may be a special token: skipped, it would be gone before we see it.
        adjusted.skip_special_tokens = False
        if hasattr(adjusted, "spaces_between_special_tokens"):
            adjusted.spaces_between_special_tokens = False
        return adjusted

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        self._prompt_ids, self._stream = prompt_token_ids, None

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        if self._prompt_ids is None:
            self._prompt_ids = input_ids  # before 0.32, `parse` is told of no prompt
        return self._reasoning_parser is not None and self._reasoning_parser.is_reasoning_end(input_ids)

    # the reply

    def parse(
        self,
        model_output: str,
        request: Any,
        enable_auto_tools: bool = False,
        model_output_token_ids: Sequence[int] = (),
    ) -> tuple[str | None, str | None, list[Any] | None]:
        stream = self._begin(request, self._prompt_ids, model_output, streamed=False)
        spans = self._spans
        special = spans.of(model_output, model_output_token_ids, finished=True) if spans is not None else None
        deltas = stream.feed(model_output, special)
        reasoning, content, calls = self._gather(deltas + self._finish(stream, request, streamed=False))
        made = [
            engine.FunctionCall(id=call["id"], name=call["name"], arguments="".join(call["arguments"]))
            for call in calls.values()
        ]
        return reasoning or None, content or None, made or None

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: Sequence[int],
        request: Any,
        prompt_token_ids: Sequence[int] | None = None,
        *,
        finished: bool,
    ) -> Any:
        stream = self._stream
        if stream is None:
            stream = self._stream = self._begin(request, prompt_token_ids or self._prompt_ids, "", streamed=True)
        spans = self._spans
        special = spans.of(delta_text, delta_token_ids, finished=finished) if spans is not None else None
        deltas = stream.feed(delta_text, special)
        if finished:
            deltas = deltas + self._finish(stream, request, streamed=True)
            self._stream = self._prompt_ids = None  # a turn that a built-in tool continues has another prompt
        if not deltas:
            return None
        if len(deltas) == 1 and self._forced is None:  # nearly always
            delta = deltas[0]
            if (text := delta.get("content")) is not None:
                return DeltaMessage(content=text)
            if (text := delta.get("reasoning_content")) is not None:
                return DeltaMessage(reasoning=text) if self._show_reasoning else None
            calls = delta.get("tool_calls", ())
            if len(calls) == 1 and "name" not in calls[0]["function"]:  # a call that was announced goes on
                return DeltaMessage(tool_calls=calls)
        return self._to_message(deltas)

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        return self._plan.gate.count(token_ids, self._began_inside) if self._reasoning_parser is not None else 0

    # how a reply is read

    def _begin(self, request: Any, prompt_ids: Sequence[int] | None, output: str, *, streamed: bool) -> MessageStream:
        if (count_earlier := getattr(self, "_initialize_history_tool_call_cnt", None)) is not None:  # since 0.28
            count_earlier(request)
        plan = self._plan
        prefix = plan.guess_prefix(output) if prompt_ids is None else plan.reader.tail(prompt_ids)
        calls = self._tool_parser is not None and bool(request.tools) and request.tool_choice != "none"
        self._forced = self._forced_calls(request.tool_choice) if calls else None
        template = plan.variant(reasoning=self._reasoning_parser is not None, tools=calls and self._forced is None)
        stream = MessageStream(
            template,
            prefix=prefix,
            tools=_tool_dicts(request.tools) if calls else None,
            special_tokens=plan.special_tokens,
            **(self.policies if streamed else {**self.policies, "arguments": "complete"}),
        )
        spans = SpanReader(plan, template)
        self._spans = spans if spans.known else None
        self._began_inside = stream.parser.region in REASONING_NAMES
        if isinstance(self._reasoning_parser, RespzooReasoningParser):
            self._reasoning_parser.began_inside = self._began_inside
        self._show_reasoning = getattr(request, "include_reasoning", True)  # Responses: since 0.28
        self._called = False
        return stream

    def _forced_calls(self, choice: Any) -> ForcedCalls | None:
        """A reader of the JSON that vLLM forces where it has no grammar for the template's own calls."""
        if not self._tool_parser.supports_required_and_named:
            return None
        if choice == "required":
            return ForcedCalls(None)
        if getattr(choice, "type", None) in ("function", "custom"):
            return ForcedCalls(getattr(choice, "function", choice).name)
        return None

    def _finish(self, stream: MessageStream, request: Any, *, streamed: bool) -> list[Delta]:
        deltas = stream.finish()[1]
        self._report(stream.dropped)
        if self._forced is not None:
            deltas = [*deltas, END]
        if self._tool_parser is not None and request.tools:
            called = self._called or any("tool_calls" in delta for delta in deltas)
            engine.record_tool_parser_invocation(is_tool_called=called, is_streaming=streamed, request=request)
        return deltas

    def _report(self, dropped: Iterable[Dropped]) -> None:
        report(self._plan.template.name, dropped, self._shown)

    def _gather(self, deltas: Iterable[Mapping[str, Any]]) -> tuple[str, str, dict[int, dict[str, Any]]]:
        """The reasoning, the content and the calls (by index) in some deltas."""
        reasoning: list[str] = []
        content: list[str] = []
        calls: dict[int, dict[str, Any]] = {}
        for delta in deltas:
            if delta is END and self._forced is not None:
                cut = self._forced.end()
                content.append(cut if "unfinished" in self._shown else "")
                self._report(self._forced.dropped)
            elif "reasoning_content" in delta:
                reasoning.append(delta["reasoning_content"])
            elif "content" in delta:
                text = delta["content"]
                if self._forced is not None:
                    text, made = self._forced.feed(text)
                    for name, arguments in made:
                        index = self._forced.count
                        self._forced.count += 1
                        calls[index] = {"id": self._new_id(name), "name": name, "arguments": [arguments]}
                content.append(text)
            for call in delta.get("tool_calls", ()):
                known = calls.setdefault(call["index"], {"id": None, "name": None, "arguments": []})
                function = call["function"]
                if function.get("name") is not None:
                    known["id"], known["name"] = self._new_id(function["name"]), function["name"]
                known["arguments"].append(function.get("arguments") or "")
        self._called = self._called or bool(calls)
        return "".join(reasoning), "".join(content), calls

    def _to_message(self, deltas: Iterable[Mapping[str, Any]]) -> Any:
        reasoning, content, calls = self._gather(deltas)
        fields: dict[str, Any] = {}
        if reasoning and self._show_reasoning:
            fields["reasoning"] = reasoning
        if content:
            fields["content"] = content
        if calls:
            fields["tool_calls"] = [_tool_delta(index, **call) for index, call in calls.items()]
        return DeltaMessage(**fields) if fields else None

    def _new_id(self, name: str) -> str:
        state = self._stream_state
        index = getattr(state, "history_tool_call_cnt", 0)
        made = engine.make_tool_call_id(id_type=state.tool_call_id_type, func_name=name, idx=index)
        state.history_tool_call_cnt = index + 1
        return made


def _tool_delta(index: int, id: str | None, name: str | None, arguments: list[str]) -> Any:
    text = "".join(arguments)
    if name is None:
        return engine.DeltaToolCall(index=index, function=engine.DeltaFunctionCall(arguments=text))
    function = engine.DeltaFunctionCall(name=name, arguments=text)
    return engine.DeltaToolCall(index=index, id=id, type="function", function=function)


def _tool_dicts(tools: Iterable[Any]) -> list[dict[str, Any]]:
    """A request's functions as JSON schemas: chat has them under `function`, Responses flat, and other tools beside."""
    found: list[dict[str, Any]] = []
    for tool in tools:
        plain = cast("dict[str, Any]", tool if isinstance(tool, dict) else tool.model_dump(exclude_none=True))
        if isinstance(plain.get("function"), dict):
            found.append(plain)
        elif plain.get("type") == "function":
            found.append({"type": "function", "function": plain})
    return found


class RespzooParser(ReplyReader, engine.DelegatingParser):
    """The parser of every family but harmony's."""


def unified(given: BoundArguments, stock: Callable[..., Any]) -> Any:
    """The parser class for `ParserManager.get_parser`'s arguments; `stock` is that method as it was, for its checks."""
    arguments = given.arguments
    model, tokenizer = arguments.get("model_name"), arguments.get("tokenizer")
    chosen = policies()
    template = find_template(model, tokenizer)
    if "tokenizer" in arguments:
        arguments["tokenizer"] = None  # stock would try the parsers that we are about to replace
    harmony = bool(arguments.get("is_harmony"))
    if harmony:  # HarmonyParser takes no others, and vLLM's Responses no other parser
        for key, name in (
            ("reasoning_parser_name", engine.HARMONY_REASONING),
            ("tool_parser_name", engine.HARMONY_TOOLS),
        ):
            if arguments.get(key):
                arguments[key] = name
    found = stock(*given.args, **given.kwargs)
    if found is None:
        return None
    announce(template, model)
    counter()  # /metrics shows it from the start
    reasoning, tools = found.reasoning_parser_cls, found.tool_parser_cls
    if not harmony:
        grammar = stock_grammar(template.spec)
        if grammar is not None and not engine.known_structural_tag(grammar):
            grammar = None
        reasoning = reasoning and type(reasoning.__name__, (reasoning,), {"template": template})
        tools = tools and type(tools.__name__, (tools,), {"structural_tag_model": grammar})
    bases = (ReplyReader, found) if harmony else (RespzooParser,)
    made: Any = type("RespzooParser", bases, {
        "template": template,
        "policies": chosen,
        "reasoning_parser_cls": reasoning,
        "tool_parser_cls": tools,
        "tool_strict_level": getattr(found, "tool_strict_level", None),
    })  # fmt: skip
    if tokenizer is not None:
        made(tokenizer)  # what does not fit together shows before the first request
    return made
