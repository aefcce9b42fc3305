"""`parse_response`: whole outputs, one or a batch, as text or as token ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from respzoo.parser import check_choice
from respzoo.schema import Tool
from respzoo.spans import Span, special_texts, stretches
from respzoo.template import OnMalformed, ResponseTemplate, parse_one

__all__ = ["parse_response"]


def parse_response(
    text: Any,
    template: ResponseTemplate | Mapping[str, Any] | str,
    *,
    prefix: Any,
    tools: Iterable[Tool] | None = None,
    on_malformed: OnMalformed = "raise",
    tokenizer: Any = None,
) -> Any:
    """Parse what a model generated into a message, as transformers' `tokenizer.parse_response` does.

    Args:
        text: one output (a string; with `tokenizer` also token ids, as a list, an array or a tensor of one dimension),
            or a batch (a list of those, or two dimensions).
        template: a `ResponseTemplate`, a template's plain dict, or a model id for `respzoo.get`.
        prefix: the prompt that came before, in the same forms: one for all outputs, or one each. `""` (or `[]`) says
            that the text is the whole message.
        tools: what the model was offered, as `apply_chat_template` takes them; types the arguments of its calls.
        on_malformed: `raise`, or return a malformed region's text as `content`, or `drop` it.
        tokenizer: has `decode(ids) -> str`; needed for token ids. What its special tokens wrote is told apart from
            text that only spells them.

    Returns:
        A message (dict) for one output, a list of them for a batch.

    Raises:
        ParseError: on_malformed is `raise`, and a region is malformed or was cut off.
        TemplateError: the plain dict is no template.
        UnknownModelError: no template is known for the model id.
        TypeError: token ids without a tokenizer, or something that is neither text nor ids.
        ValueError: no prefix, or as many prefixes as outputs are needed, or one.
    """
    if prefix is None:
        raise ValueError(
            "prefix: expected the prompt that came before the output, found None; chat templates write part of the "
            "answer (an opening <think>), which the parser must see. prefix='' says that there is none"
        )
    if isinstance(template, str):
        from respzoo.zoo import get  # imported when a name is to be found

        template = get(template)
    elif not isinstance(template, ResponseTemplate):
        template = ResponseTemplate(template)
    check_choice("on_malformed", on_malformed, ("raise", "content", "drop"))
    decoder = _Decoder(tokenizer)
    outputs, batched = _outputs(text, decoder, "text", empty_is_batch=True)
    prefixes, many = _outputs(prefix, decoder, "prefix", empty_is_batch=False)
    if not many:
        prefixes *= len(outputs)
    if len(prefixes) != len(outputs):
        raise ValueError(f"{len(outputs)} texts but {len(prefixes)} prefixes; give one for all, or one each")
    tools = None if tools is None else list(tools)
    messages = [
        parse_one(
            template,
            output.text,
            prefix=its.text,
            tools=tools,
            on_malformed=on_malformed,
            special=output.special,
            special_tokens=decoder.special_tokens if output.special is not None else None,
        )
        for output, its in zip(outputs, prefixes, strict=True)
    ]
    return messages if batched else messages[0]


class _Output(NamedTuple):
    """A text, and which stretches of it special tokens wrote, if anybody knows."""

    text: str
    special: list[Span] | None = None


class _Decoder:
    """A tokenizer and its special tokens, asked for once."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._special = {} if tokenizer is None else special_texts(tokenizer)
        self.special_tokens = frozenset(self._special.values())

    def output(self, ids: Sequence[int], what: str) -> _Output:
        if self._tokenizer is None:
            raise TypeError(f"{what}: token ids need tokenizer=, to be decoded with")
        text = self._text(ids)
        if not self._special or what == "prefix":
            return _Output(text)
        return _Output(text, stretches(text, ids, self._special, self._text))

    def _text(self, ids: Sequence[int]) -> str:
        text = self._tokenizer.decode(ids)
        if not isinstance(text, str):
            raise TypeError(f"tokenizer.decode returned {type(text).__name__}, expected the text of one sequence")
        return text


def _outputs(value: Any, decoder: _Decoder, what: str, *, empty_is_batch: bool) -> tuple[list[_Output], bool]:
    """The texts that were given, and whether as a batch."""
    if isinstance(value, str):
        return [_Output(value)], False
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise TypeError(f"{what}: expected text or token ids, found {type(value).__name__}")
    items = cast("Sequence[Any]", value)
    if not items:
        return ([], True) if empty_is_batch else ([_Output("")], False)
    rows = [item.tolist() if hasattr(item, "tolist") else item for item in items]
    if all(isinstance(row, str) for row in rows):
        return [_Output(row) for row in rows], True
    if _are_ids(rows):
        return [decoder.output(rows, what)], False
    if all(isinstance(row, list | tuple) and _are_ids(cast("Sequence[Any]", row)) for row in rows):
        return [decoder.output(row, what) for row in rows], True
    kinds = ", ".join(sorted({type(row).__name__ for row in rows}))
    raise TypeError(
        f"{what}: expected texts or token ids (whole numbers), one sequence or a list of them, found {kinds}"
    )


def _are_ids(row: Sequence[Any]) -> bool:
    return all(isinstance(item, int) and not isinstance(item, bool) for item in row)
