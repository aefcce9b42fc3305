"""The parsers that vLLM meets.

`RespzooParser` stands where vLLM would compose two: one `respzoo.MessageStream` a reply reads reasoning, content and
calls, whole replies as one piece. Before that, it gives vLLM the grammar that holds the model to what a request asks of
its calls (grammar.py).
"""

# vLLM is not there where types are checked, so what its base classes have is unknown.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import BoundArguments
from typing import Any, ClassVar, cast

from respzoo import MessageStream, ResponseTemplate
from respzoo.events import Dropped
from respzoo.fields import CALLS, REASONING_NAMES
from respzoo.message import Delta
from respzoo_vllm import deltas as build
from respzoo_vllm import engine, grammar
from respzoo_vllm.damage import counter, report, shown_by
from respzoo_vllm.ending import no_call
from respzoo_vllm.forced import ForcedCalls
from respzoo_vllm.order import in_order, runs
from respzoo_vllm.plan import (
    CHOICES,
    announce,
    find_template,
    plan_for,
    policies,
)
from respzoo_vllm.spans import SpanReader
from respzoo_vllm.split import RespzooReasoningParser, keep_special_tokens
from respzoo_vllm.tools import tool_dicts

__all__ = ["RespzooParser", "unified"]

DeltaMessage: Any = engine.DeltaMessage
END: Delta = {}  # stands behind the last delta of a reply in forced JSON


class ReplyReader(engine.Parser):
    """Reads replies, streamed or whole. It goes before a parser class of vLLM's, which does all the rest."""

    template: ClassVar[ResponseTemplate | None] = None
    policies: ClassVar[Mapping[str, Any]] = {name: allowed[0] for name, allowed in CHOICES.items()}
    tool_strict_level: Any = None  # before 0.32 vLLM has none
    always_adjust_request = True
    reads_as_one = True

    def __init__(self, tokenizer: Any, tools: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, tools, *args, **kwargs)
        self._plan = plan_for(tokenizer, self.template)
        self._model_config = kwargs.get("model_config")
        self._prompt_ids: Sequence[int] | None = None
        self._began_inside = False
        # of the reply that is being streamed
        self._stream: MessageStream | None = None
        self._spans: SpanReader | None = None
        self._forced: ForcedCalls | None = None
        self._show_reasoning = True
        self._called = False
        self._shown = shown_by(self.policies)

    # what vLLM asks before the model writes

    def adjust_request(self, request: Any) -> Any:
        held = self._hold(request)
        return keep_special_tokens(request if held else cast(Any, super().adjust_request(request)))

    def _hold(self, request: Any) -> bool:
        """Let a grammar of the template's own hold the model, if the request asks for one and there is one."""
        plan, reads = self._plan, self._reasoning_parser is not None
        hides = grammar.is_chat(request) and not request.include_reasoning
        inside = None
        if hides and self._prompt_ids is not None:
            inside = plan.opens_reasoning(plan.reader.tail(self._prompt_ids))
        asked = grammar.read(
            request,
            level=self.tool_strict_level or 0,
            calls=self._tool_parser is not None,
            frames=plan.frames_content,
            hides_reasoning=hides,
            reads_reasoning=reads,
            harmony=plan.harmony,
            inside=inside,
        )
        if asked is None:
            return False
        if engine.tags_allowed():
            stops = grammar.stop_texts(plan, self._model_config)
            found = grammar.grammar_for(plan, asked, reads_reasoning=reads or plan.harmony, stops=stops)
        else:
            found = grammar.Grammar(None, "VLLM_ENFORCE_STRICT_TOOL_CALLING=0")
        if found.tag is None:
            grammar.say_why_not(plan.template.name, asked, found.reason)
            return False
        grammar.set_grammar(request, found.tag)
        return True

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
        deltas = stream.feed(model_output, special) + self._stop(stream, request, model_output, model_output_token_ids)
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
        ordinary = spans is None or (delta_token_ids and spans.heeded.isdisjoint(delta_token_ids))
        if ordinary and not finished and self._forced is None:
            if (to := stream.passes(delta_text)) is not None:  # nearly always
                if to == "content":
                    return build.content(delta_text)
                if isinstance(to, tuple):
                    return build.rest(*to)
                return build.reasoning(delta_text) if self._show_reasoning else None
            deltas = stream.decide(delta_text, () if spans is not None and spans.known else None)
        else:
            special = spans.of(delta_text, delta_token_ids, finished=finished) if spans is not None else None
            deltas = stream.feed(delta_text, special)
        if finished:
            deltas = deltas + self._stop(stream, request, delta_text, delta_token_ids)
            deltas = deltas + self._finish(stream, request, streamed=True)
            self._stream = self._prompt_ids = None  # a turn that a built-in tool continues has another prompt
        if not deltas:
            return None
        if len(deltas) == 1 and self._forced is None:
            delta = deltas[0]
            if (text := delta.get("content")) is not None:
                return build.content(text)
            if (text := delta.get("reasoning_content")) is not None:
                return build.reasoning(text) if self._show_reasoning else None
            calls = delta.get("tool_calls", ())
            if len(calls) == 1 and "name" not in calls[0]["function"]:  # a call that was announced goes on
                return build.rest(calls[0]["index"], calls[0]["function"]["arguments"])
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
        self._forced = _forced_calls(request) if calls else None
        template = plan.variant(reasoning=self._reasoning_parser is not None, tools=calls and self._forced is None)
        stream = MessageStream(
            template,
            prefix=prefix,
            tools=tool_dicts(request.tools) if calls else None,
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

    def _stop(self, stream: MessageStream, request: Any, text: str, ids: Sequence[int]) -> list[Delta]:
        """A stop token writes nothing. Where it closes the call that is open, the call was not cut off."""
        # A stop string may end within a closer: its token is there, its text in part.
        stop = self._plan.call_closers.get(ids[-1]) if ids and not getattr(request, "stop", None) else None
        if stop is None or stream.parser.region != CALLS or text.endswith(stop):
            return []
        return stream.feed(stop, ((0, len(stop)),) if self._spans is not None and self._spans.known else None)

    def _finish(self, stream: MessageStream, request: Any, *, streamed: bool) -> list[Delta]:
        message, deltas = stream.finish()
        self._report(stream.dropped)
        if self._forced is not None:
            deltas = [*deltas, END]
        # forced calls are sent when they are whole
        no_call.set(self._forced is None and all("status" in call for call in message.get(CALLS) or ()))
        if self._tool_parser is not None and request.tools:
            forced = self._forced is not None and self._forced.count > 0
            called = self._called or forced or bool(message.get(CALLS))
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

    def _to_message(self, deltas: Sequence[Mapping[str, Any]]) -> Any:
        parts = [part for run in runs(deltas) if (part := self._part(run)) is not None]
        if len(parts) < 2:
            return parts[0] if parts else None
        fields: dict[str, Any] = {}
        for name in ("reasoning", "content"):
            if texts := [text for part in parts if (text := getattr(part, name))]:
                fields[name] = "".join(texts)
        if calls := [call for part in parts for call in part.tool_calls]:
            fields["tool_calls"] = calls
        whole = DeltaMessage(**fields)
        in_order.set((whole, parts))
        return whole

    def _part(self, deltas: Iterable[Mapping[str, Any]]) -> Any:
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


def _forced_calls(request: Any) -> ForcedCalls | None:
    """A reader of the JSON that vLLM forces where no grammar of the template's own calls holds the model."""
    if not grammar.holds_json(request):
        return None
    name = grammar.forced_name(request.tool_choice)
    return ForcedCalls(name) if name is not None or request.tool_choice == "required" else None


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
        reasoning = reasoning and type(reasoning.__name__, (reasoning,), {"template": template})
    bases: tuple[Any, ...] = (RespzooParser,)
    if harmony:
        from respzoo_vllm.harmony import ReplyFromIds  # knows this module

        bases = (ReplyReader if "adjust_request" in vars(found) else ReplyFromIds, found)
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
