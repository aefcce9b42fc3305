"""A vLLM server on this machine's CPU, for as long as a `with` block lasts.

with Server(python, folder) as server:
    server.client().chat.completions.create(model="tiny", ...)
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = ("--reasoning-parser", "respzoo", "--tool-call-parser", "respzoo", "--enable-auto-tool-choice")
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "2",
    "OMP_WAIT_POLICY": "PASSIVE",  # spinning threads starve each other on a busy machine
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}
PATIENCE = 420.0  # seconds until a server is up; 47 to 135 on 2 idle cores


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server of one checkpoint under the name `tiny`."""

    def __init__(
        self,
        python: Path | str,
        model: Path,
        flags: tuple[str, ...] = FLAGS,
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.port = free_port()
        self.log = log or model.parent / "server.log"
        self._command = [
            str(python), "-m", "vllm.entrypoints.cli.main", "serve", str(model), "--served-model-name", "tiny",
            "--host", "127.0.0.1", "--port", str(self.port), "--max-model-len", "1024", "--max-num-seqs", "4",
            "--dtype", "float32", "--enforce-eager", *flags,
        ]  # fmt: skip
        self._environment = {**ENVIRONMENT, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _wait(self) -> None:
        assert self._process is not None
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self._process.poll() is not None:
                raise RuntimeError(f"the server ended with {self._process.returncode}:\n{self.log_tail()}")
            try:
                with opener.open(f"http://127.0.0.1:{self.port}/health", timeout=2):
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.5)
        raise RuntimeError(f"the server is not up after {PATIENCE:.0f} s:\n{self.log_tail()}")

    @property
    def pid(self) -> int:
        """Of the API server; the engine core is its child."""
        assert self._process is not None
        return self._process.pid

    def log_tail(self, characters: int = 4000) -> str:
        return self.log.read_text(errors="replace")[-characters:]

    def stop(self) -> None:
        """End the server and all that it started: the API server is asked, and ends its engine itself; what is left of
        their process group, which is their own, is killed."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._process = None

    def client(self) -> Any:
        import httpx
        import openai

        return openai.OpenAI(
            base_url=f"http://127.0.0.1:{self.port}/v1",
            api_key="none",
            http_client=httpx.Client(trust_env=False),
            max_retries=0,
            timeout=120,
        )
