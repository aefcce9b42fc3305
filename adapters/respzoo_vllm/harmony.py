"""gpt-oss before 0.28: vLLM lets nobody adjust its requests, so that its replies' text has no markers; the ids have."""

# vLLM is not there where types are checked, so what its base classes have is unknown.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from respzoo_vllm.grammar import HARMONY_STOPS
from respzoo_vllm.parser import ReplyReader
from respzoo_vllm.prompt import decode

__all__ = ["ReplyFromIds"]


class ReplyFromIds(ReplyReader):
    """Reads the text that the ids spell."""

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        self._held: list[int] = []  # the ids of a character that is not whole
        self._stops = {token_id for token_id, text in self._plan.special.items() if text in HARMONY_STOPS}

    def parse(
        self,
        model_output: str,
        request: Any,
        enable_auto_tools: bool = False,
        model_output_token_ids: Sequence[int] = (),
    ) -> tuple[str | None, str | None, list[Any] | None]:
        if model_output_token_ids:
            model_output = self._spelled(model_output_token_ids)
        return super().parse(model_output, request, enable_auto_tools, model_output_token_ids)

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: Sequence[int],
        request: Any,
        prompt_token_ids: Sequence[int] | None = None,
        *,
        finished: bool,
    ) -> Any:
        ids = [*self._held, *delta_token_ids]
        delta_text = self._spelled(ids) if finished else decode(self._plan.reader.tokenizer, ids)
        self._held = ids if delta_text.endswith("\ufffd") and not finished else []
        if self._held:
            delta_text, ids = "", []
        return super().parse_delta(delta_text, ids, request, prompt_token_ids, finished=finished)

    def _spelled(self, ids: Sequence[int]) -> str:
        """The text of ids that are the last ones. A stop token writes nothing, as on later releases."""
        return decode(self._plan.reader.tokenizer, ids[:-1] if ids and ids[-1] in self._stops else ids)
