"""What Mistral's tokens write, without the Hub: the vocabulary that the package `mistral-common` carries.

Ordinary tokens have kept their ids from release to release; the special tokens that came later are named here.
tests/test_suite.py holds both to the token ids and texts that canitoolcall recorded.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

VOCABULARY = "tekken_240911.json"
SPECIAL = {9: "[TOOL_CALLS]", 32: "[ARGS]", 33: "[CALL_ID]", 34: "[THINK]", 35: "[/THINK]"}


@cache
def load() -> Any:
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    return Tekkenizer.from_file(Path(mistral_common.__file__).parent / "data" / VOCABULARY)


def pieces(ids: Iterable[int]) -> Iterator[str]:
    """What a server streams for these tokens, one piece a token: the empty string where a character is not whole yet."""
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy

    decoder = codecs.getincrementaldecoder("utf-8")()
    for token in ids:
        if token in SPECIAL:
            yield SPECIAL[token]
        else:
            yield decoder.decode(load().id_to_byte_piece(token, SpecialTokenPolicy.RAISE))
