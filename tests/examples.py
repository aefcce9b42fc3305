"""How many examples of a property hypothesis tries: the same each time; others, and so many, by RESPZOO_EXAMPLES."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

ASKED = int(os.environ.get("RESPZOO_EXAMPLES", "0"))


def examples(count: int, **options: Any) -> settings:
    """Settings of a property that is tried `count` times if nobody asks for more."""
    return settings(max_examples=ASKED or count, **options)
