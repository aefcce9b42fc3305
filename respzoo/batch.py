"""`parse_response`: whole outputs, one or a batch, as text or as token ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from respzoo.schema import Tool
from respzoo.template import OnMalformed, ResponseTemplate
from respzoo.zoo import get

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
        tokenizer: has `decode(ids) -> str`; needed for token ids.

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
        template = get(template)
    elif not isinstance(template, ResponseTemplate):
        template = ResponseTemplate(template)
    texts, batched = _texts(text, tokenizer, "text", empty_is_batch=True)
    prefixes, many = _texts(prefix, tokenizer, "prefix", empty_is_batch=False)
    messages = template.parse(texts, prefix=prefixes if many else prefixes[0], tools=tools, on_malformed=on_malformed)
    return messages if batched else messages[0]


def _texts(value: Any, tokenizer: Any, what: str, *, empty_is_batch: bool) -> tuple[list[str], bool]:
    """The texts that were given, and whether as a batch."""
    if isinstance(value, str):
        return [value], False
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise TypeError(f"{what}: expected text or token ids, found {type(value).__name__}")
    items = cast("Sequence[Any]", value)
    if not items:
        return ([], True) if empty_is_batch else ([""], False)
    rows = [item.tolist() if hasattr(item, "tolist") else item for item in items]
    if all(isinstance(row, str) for row in rows):
        return rows, True
    if _are_ids(rows):
        return [_decode(tokenizer, rows, what)], False
    if all(isinstance(row, list | tuple) and _are_ids(cast("Sequence[Any]", row)) for row in rows):
        return [_decode(tokenizer, row, what) for row in rows], True
    kinds = ", ".join(sorted({type(row).__name__ for row in rows}))
    raise TypeError(
        f"{what}: expected texts or token ids (whole numbers), one sequence or a list of them, found {kinds}"
    )


def _are_ids(row: Sequence[Any]) -> bool:
    return all(isinstance(item, int) and not isinstance(item, bool) for item in row)


def _decode(tokenizer: Any, ids: Sequence[int], what: str) -> str:
    if tokenizer is None:
        raise TypeError(f"{what}: token ids need tokenizer=, to be decoded with")
    text = tokenizer.decode(ids)
    if not isinstance(text, str):
        raise TypeError(f"tokenizer.decode returned {type(text).__name__}, expected the text of one sequence")
    return text
