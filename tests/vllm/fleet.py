"""The servers that live tests share."""

from __future__ import annotations

import json
import sys
from typing import Any

import checkpoint
from live import Live
from server import FLAGS, Server

NGRAMS = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 1, "prompt_lookup_max": 3}
# In the order in which they run: their fixtures, flags and environments.
SERVERS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "live": ((), {}),
    "tagged": ((), {"RESPZOO_TEMPLATE": "qwen3_xml", "RESPZOO_LOG_RAW": "1"}),
    "guessing": (("--speculative-config", json.dumps(NGRAMS)), {}),
}


class Fleet:
    """One server at a time."""

    def __init__(self) -> None:
        self._name = ""
        self._live: Any = None

    def get(self, name: str) -> Any:
        if name != self._name:
            self.stop()
            self._live, self._name = self.start(name), name
        return self._live

    def start(self, name: str) -> Any:
        model = checkpoint.build()
        flags, environment = SERVERS[name]
        log = checkpoint.FOLDER.parent / f"server-{name}.log"
        server = Server(sys.executable, model, (*FLAGS, *flags), log, environment)
        return Live(server.__enter__(), model)

    def stop(self) -> None:
        """End the server, which must have had no accident while it served.

        What it logs while it ends does not count. vLLM stops its engine in a thread, beside the event loop that still
        reads from it: a loop that is quicker finds the engine dead, and logs the traceback of an EngineDeadError.
        """
        if self._live is None:
            return
        live, self._live, self._name = self._live, None, ""
        live.close()
        served = live.log()
        live.server.stop()
        _, accident, what = served.partition("Traceback")
        assert not accident, accident + what[:4000]
