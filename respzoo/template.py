"""`ResponseTemplate`: a response template as users hold it, with the three ways to run it."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from respzoo.errors import ParseError
from respzoo.fields import CompiledTemplate
from respzoo.message import MessageStream
from respzoo.parser import ResponseParser, check_choice
from respzoo.schema import Tool
from respzoo.spans import Span
from respzoo.spec import compile_spec

if TYPE_CHECKING:
    from respzoo.grammar import ToolChoice

__all__ = ["OnMalformed", "ResponseTemplate", "parse_one", "with_source"]

OnMalformed = Literal["raise", "content", "drop"]
"""What becomes of a closed region that does not parse: an error, content (its raw text), or nothing but a record."""


class ResponseTemplate(CompiledTemplate):
    """Where a model's output has its reasoning, its answer and its calls. Checked and compiled once, never changed.

    Args:
        spec: the plain dict, in the language of transformers' `response_template`.
        name: what it is called, in errors and logs.
        source: where it came from and why it was chosen.

    Raises:
        TemplateError: with every problem and its place.
    """

    name: str
    source: str

    def __init__(self, spec: Mapping[str, Any], *, name: str = "", source: str = "") -> None:
        spec = copy.deepcopy(dict(spec)) if isinstance(spec, Mapping) else spec  # pyright: ignore[reportUnnecessaryIsInstance]
        compiled = compile_spec(spec, name=name)
        self.__dict__.update(vars(compiled), name=name, source=source or "given by the caller")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a response template never changes; make another one to have another {name}")

    def __repr__(self) -> str:
        return f"<ResponseTemplate {self.name or 'unnamed'}: {', '.join(self.fields)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResponseTemplate) and (self.spec, self.name) == (other.spec, other.name)

    def __hash__(self) -> int:
        return id(self)

    @overload
    def parse(
        self,
        text: str,
        *,
        prefix: str,
        tools: Iterable[Tool] | None = None,
        on_malformed: OnMalformed = "raise",
    ) -> dict[str, Any]: ...
    @overload
    def parse(
        self,
        text: list[str],
        *,
        prefix: str | Sequence[str],
        tools: Iterable[Tool] | None = None,
        on_malformed: OnMalformed = "raise",
    ) -> list[dict[str, Any]]: ...
    def parse(
        self,
        text: str | list[str],
        *,
        prefix: str | Sequence[str],
        tools: Iterable[Tool] | None = None,
        on_malformed: OnMalformed = "raise",
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """Parse whole output. A list of texts gives a list of messages, with one prefix for all or one each.

        Args:
            text: what the model generated, without the prompt.
            prefix: the prompt as text, or `""` where the text is the whole message.
            tools: as `apply_chat_template` takes them; types the arguments of calls.
            on_malformed: `raise`, or return a malformed region's text as `content`, or `drop` it.

        Raises:
            ParseError: on_malformed is `raise`, and a region is malformed or was cut off.
            ValueError: as many prefixes as texts are needed, or one; or on_malformed is none of those named.
        """
        check_choice("on_malformed", on_malformed, ("raise", "content", "drop"))
        if isinstance(text, str) and isinstance(prefix, str):
            return parse_one(self, text, prefix=prefix, tools=tools, on_malformed=on_malformed)
        texts = [text] if isinstance(text, str) else text
        prefixes = [prefix] * len(texts) if isinstance(prefix, str) else list(prefix)
        if len(prefixes) != len(texts):
            raise ValueError(f"{len(texts)} texts but {len(prefixes)} prefixes; give one for all, or one each")
        tools = None if tools is None else list(tools)
        return [
            parse_one(self, one, prefix=its, tools=tools, on_malformed=on_malformed)
            for one, its in zip(texts, prefixes, strict=True)
        ]

    def parser(
        self, *, prefix: str, tools: Iterable[Tool] | None = None, special_tokens: Collection[str] | None = None
    ) -> ResponseParser:
        """A `ResponseParser` for one answer: events."""
        return ResponseParser(self, prefix=prefix, tools=tools, special_tokens=special_tokens)

    def structural_tag(
        self,
        tools: Iterable[Tool] | None,
        *,
        tool_choice: ToolChoice = "auto",
        parallel: bool = True,
        strict: bool | None = None,
        reasoning: bool = False,
        prefix: str = "",
        response_format: Mapping[str, Any] | None = None,
        stops: Collection[str] = (),
    ) -> dict[str, Any] | None:
        """A grammar that makes a model write its calls in this template's own syntax: an xgrammar structural tag.

        Args:
            tools: as `parse` takes them. The arguments of `{"strict": true}` functions fit their schema.
            tool_choice: `"auto"` (text and calls), `"required"` (calls only), `"none"`, or one function: its name, or
                OpenAI's `{"type": "function", "function": {"name": …}}`; that one is called once.
            parallel: whether more than one call may be made.
            strict: whether all functions' arguments fit their schemas. By default those of the strict ones do, and
                where a call is forced those of all that do not say `{"strict": false}`; the others' are any object.
            reasoning: whether the grammar begins before the reasoning. Engines that let a model reason freely begin
                behind it.
            prefix: with `reasoning`, the prompt as text: it may have begun the reasoning.
            response_format: OpenAI's, or `{"type": "structural_tag", "format": …}`: what the answer is where it is no
                calls. Forced calls go before it.
            stops: the texts of the tokens at which the engine stops and that it leaves out: where one closes a call,
                the call may end without it.

        Returns:
            `{"type": "structural_tag", "format": …}`, for xgrammar 0.2.1 and later, or None, where nothing is asked of
            the model or the template cannot be said in a grammar: `structural_tag_reason` says which.

        Raises:
            ValueError: a tool choice or response format that there is not, or a call is demanded without a tool for it.
        """
        from respzoo.grammar import build  # most never want one

        return build(
            self,
            tools,
            tool_choice=tool_choice,
            parallel=parallel,
            strict=strict,
            reasoning=reasoning,
            prefix=prefix,
            response_format=response_format,
            stops=stops,
        ).tag

    def structural_tag_reason(self, tools: Iterable[Tool] | None, **request: Any) -> str | None:
        """Why `structural_tag` returns None for the same arguments; None if it does not."""
        from respzoo.grammar import build

        return build(self, tools, **request).reason

    def stream(
        self,
        *,
        prefix: str,
        tools: Iterable[Tool] | None = None,
        arguments: Literal["stream", "complete"] = "stream",
        on_malformed: Literal["content", "drop"] = "content",
        on_unfinished: Literal["content", "drop"] = "drop",
        special_tokens: Collection[str] | None = None,
    ) -> MessageStream:
        """A `MessageStream` for one answer: OpenAI's chat deltas."""
        return MessageStream(
            self,
            prefix=prefix,
            tools=tools,
            arguments=arguments,
            on_malformed=on_malformed,
            on_unfinished=on_unfinished,
            special_tokens=special_tokens,
        )


def with_source(template: ResponseTemplate, source: str) -> ResponseTemplate:
    """The same template, found at another `source`; nothing is compiled again."""
    other = object.__new__(type(template))
    other.__dict__.update(vars(template), source=source)
    return other


def parse_one(
    template: CompiledTemplate,
    text: str,
    *,
    prefix: str,
    tools: Iterable[Tool] | None,
    on_malformed: OnMalformed,
    special: Sequence[Span] | None = None,
    special_tokens: Collection[str] | None = None,
) -> dict[str, Any]:
    """Parse one whole output: `ResponseTemplate.parse`, with `special` as `ResponseParser.feed` takes it."""
    parser = ResponseParser(
        template,
        prefix=prefix,
        tools=tools,
        on_malformed="content" if on_malformed == "content" else "drop",
        special_tokens=special_tokens,
    )
    parser.feed(text, special)
    message, _ = parser.finalize()
    bad = next((record for record in parser.dropped if record["field"]), None)
    if on_malformed == "raise" and bad is not None:
        where = f"{bad['reason']} {bad['field']} region"
        raise ParseError(
            f"{where}: {bad['error']}\n  in {bad['raw'][:200]!r}\n  on_malformed='content' or 'drop' parses on",
            message=message,
            raw=bad["raw"],
            field=bad["field"],
        )
    return message
