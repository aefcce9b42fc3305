"""From a model to its response template, with the reason why. The search itself is in ladder.py."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from respzoo import trust as _trust
from respzoo.ladder import PIN, Finding, Prefer, Rung, Search
from respzoo.plugins import load_template, loaded
from respzoo.template import ResponseTemplate

__all__ = ["PIN", "Finding", "Rung", "find", "forget", "get", "load_template"]

_answers: dict[tuple[object, ...], ResponseTemplate] = {}


def get(
    model: object,
    *,
    tokenizer: object = None,
    chat_template: str | None = None,
    template: object = None,
    prefer: Prefer | None = None,
    trust: str | Iterable[str] | None = None,
    revision: str | None = None,
    token: str | bool | None = None,
    local_files_only: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
) -> ResponseTemplate:
    """The response template of a model: an id on the Hub, a folder, a tokenizer object, a chat template or its file.

    `tokenizer` and `chat_template` add what the caller has at hand; `template` (a template, a spec, a path or a
    family's name) settles it. `prefer="hub"` lets the checkpoint's own template go before the families even for ids
    that they list, `prefer="curated"` lets the families go first. A template that comes with a checkpoint or a plugin
    is examined before it runs; `trust` names those (the model as it is given here, a family, a plugin) that are not, as
    RESPZOO_TRUST does for a process. The rest is passed to huggingface_hub.

    Raises:
        UnknownModelError: none is known; the text has every rung that was tried.
    """
    key: tuple[object, ...] | None = None
    if isinstance(model, str) and tokenizer is None and template is None:
        named = trust if trust is None or isinstance(trust, str) else tuple(trust)
        environment = os.environ.get(PIN), os.environ.get(_trust.ENVIRONMENT)
        key = (model, chat_template, prefer, named, revision, token, local_files_only, cache_dir, environment)
        if (answer := _answers.get(key)) is not None:
            return answer
        trust = named
    search = Search(
        model, loaded(), tokenizer, chat_template, template, prefer, trust, revision, token, local_files_only, cache_dir
    )
    finding = search.run()
    if finding.template is None:
        raise finding.error()
    if key is not None and search.folder is None and search.file is None:  # files may change under our feet
        _answers[key] = finding.template
    return finding.template


def find(model: object, **options: Any) -> Finding:
    """As `get`, never from memory and never raising for an unknown model: the answer with the whole trail."""
    return Search(model, loaded(), **options).run()


def forget() -> None:
    """Forget all answers (the plugins stay loaded)."""
    _answers.clear()
