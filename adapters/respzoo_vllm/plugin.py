"""The entry point. vLLM calls it in the API server, in the engine core and in every worker."""

from __future__ import annotations

import logging

__all__ = ["register"]


def register() -> None:
    """Make the flags' value `respzoo` known. Light, harmless to repeat, and never in the way of a server without it."""
    try:
        from respzoo_vllm import engine

        engine.install()
    except Exception:  # noqa: BLE001  (vLLM would not start at all, whichever parsers it was asked for)
        logging.getLogger("vllm.respzoo").exception("respzoo could not be plugged into this release of vLLM")
