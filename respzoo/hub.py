"""What a checkpoint says about itself: its response template, its chat template, its config, what it was made from.

Read from a folder, or for an id on the Hub through the huggingface_hub client (imported when first needed), whose
cache, token and environment variables hold here too. Only small text files are asked for. Nothing here raises for what
a folder or a server did: each file's fate is an `Outcome`, the whole look-up ends by a deadline, and what could be read
is returned beside what could not.

A first HEAD request of our own, without retries, goes before each download: the client's download would meet a slow or
failing server with minutes of patience.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

__all__ = [
    "CARD",
    "FILES",
    "TIMEOUT",
    "Checkpoint",
    "Outcome",
    "cached_folder",
    "is_hub_id",
    "name_of_folder",
    "read_file",
    "read_folder",
    "read_hub",
    "read_tokenizer",
]

TIMEOUT = 10.0
"""Seconds after which a look-up on the Hub is given up, all its files together."""

SIZE_LIMIT = 32 * 1024 * 1024
"""No file larger than this is read or fetched: tokenizer configs reach a megabyte or two."""

FILES = ("tokenizer_config.json", "chat_template.jinja", "config.json")
CARD = "README.md"
"""The model card, asked for by itself when the other files do not settle it; only `base_model` in its head is read."""

Kind = Literal[
    "found", "missing", "broken", "too large",
    "no repository", "no revision", "gated", "denied", "rate limited", "server error",
    "timed out", "offline", "not cached", "unreachable", "failed",
]  # fmt: skip

ANSWERS: tuple[Kind, ...] = ("found", "missing", "broken", "too large", "not cached")
"""What says something of one file alone: the others may still be there."""


class Outcome(NamedTuple):
    """The fate of one file."""

    kind: Kind
    text: str = ""
    """What to tell a person, where the kind alone does not say it."""

    def __str__(self) -> str:
        return f"{self.kind} ({self.text})" if self.text else self.kind


@dataclass
class Checkpoint:
    """What a checkpoint says about itself, as far as it could be read."""

    where: str
    """`folder …`, `the Hub`, `the Hub's cache`, `tokenizer …`: for people."""
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    """Each file that was asked for, and its fate."""
    response_template: Mapping[str, Any] | None = None
    chat_template: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    card: tuple[str, ...] = ()
    """The models that the card says it was made from."""

    @property
    def base_models(self) -> tuple[str, ...]:
        """The models that it was made from, by its card and its config."""
        origin = self.config.get("_name_or_path")
        named = (*self.card, origin) if isinstance(origin, str) else self.card
        return tuple(dict.fromkeys(name for name in named if "/" in name and is_hub_id(name)))

    @property
    def found(self) -> bool:
        return any(outcome.kind == "found" for outcome in self.outcomes.values())

    @property
    def answered(self) -> bool:
        """Whether there is somebody who could be asked for more."""
        return all(outcome.kind in ANSWERS for outcome in self.outcomes.values())

    def __str__(self) -> str:
        fates = {
            str(outcome): [name for name, other in self.outcomes.items() if other == outcome]
            for outcome in self.outcomes.values()
        }
        return f"{self.where}: " + "; ".join(f"{', '.join(names)} {fate}" for fate, names in fates.items())

    def take(self, name: str, text: str) -> Outcome:
        """Read one file's text into this record."""
        if name == CARD:
            self.card = _card_base_models(text)
            return Outcome("found")
        if name.endswith(".jinja"):
            self.chat_template = text  # beats the one inside tokenizer_config.json, as in transformers
            return Outcome("found")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            return Outcome("broken", f"not JSON: {error}")
        if not isinstance(value, dict):
            return Outcome("broken", f"not a JSON object but {type(value).__name__}")
        table = cast("dict[str, Any]", value)
        if name == "config.json":
            self.config = table
        else:
            self.chat_template = self.chat_template or _one_chat_template(table.get("chat_template"))
            template = table.get("response_template")
            if isinstance(template, dict):
                self.response_template = cast("dict[str, Any]", template)
            elif template is not None:
                return Outcome("found", f"its response_template is {type(template).__name__}, not an object")
        return Outcome("found")


_BASE_MODEL = re.compile(r"^base_model:[ \t]*(\S.*)?\n((?:[ \t]*-[ \t].*\n)*)", re.MULTILINE)


def _card_base_models(text: str) -> tuple[str, ...]:
    """`base_model` of a card's head: a name, a list in brackets or one a line. Nothing else of YAML is needed."""
    if not text.startswith("---"):
        return ()
    head = text[3:65_536].partition("\n---")[0] + "\n"
    found = _BASE_MODEL.search(head)
    if found is None:
        return ()
    inline = (found[1] or "").partition(" #")[0].strip()
    items = inline.strip("[]").split(",") if inline else [line.strip()[1:] for line in found[2].splitlines()]
    names = (item.partition(" #")[0].strip().strip("'\"") for item in items[:16])
    return tuple(name for name in names if is_hub_id(name))


def _one_chat_template(value: Any) -> str | None:
    """A chat template as configs hold it: a text, or several by name, of which the one for tools says most."""
    if isinstance(value, list):
        items = [cast("dict[str, Any]", item) for item in cast("list[Any]", value) if isinstance(item, dict)]
        value = {item.get("name"): item.get("template") for item in items}
    if isinstance(value, dict):
        named = cast("dict[Any, Any]", value)
        value = named.get("tool_use") or named.get("default") or next(iter(named.values()), None)
    return value if isinstance(value, str) and value else None


def read_folder(folder: Path, files: Sequence[str] = FILES) -> Checkpoint:
    """What a local checkpoint says."""
    checkpoint = Checkpoint(f"folder {folder}")
    for name in files:
        checkpoint.outcomes[name] = _read_file(checkpoint, name, folder / name)
    return checkpoint


def read_file(file: Path) -> Checkpoint:
    """What one file says: a tokenizer config, or else a chat template."""
    checkpoint = Checkpoint(f"file {file}")
    name = "tokenizer_config.json" if file.suffix == ".json" else "chat_template.jinja"
    checkpoint.outcomes[file.name] = _read_file(checkpoint, name, file)
    return checkpoint


def _read_file(checkpoint: Checkpoint, name: str, file: Path) -> Outcome:
    try:
        if (size := file.stat().st_size) > SIZE_LIMIT:
            return Outcome("too large", f"{size} bytes")
        return checkpoint.take(name, file.read_text("utf-8"))
    except FileNotFoundError:
        return Outcome("missing")
    except (OSError, ValueError) as error:
        return Outcome("broken", f"{type(error).__name__}: {error}")


def read_tokenizer(tokenizer: object) -> Checkpoint:
    """What a tokenizer (or processor) object of transformers says, without importing transformers."""
    checkpoint = Checkpoint(f"tokenizer {type(tokenizer).__name__}")
    checkpoint.chat_template = _one_chat_template(getattr(tokenizer, "chat_template", None))
    template = getattr(tokenizer, "response_template", None)
    if isinstance(template, Mapping):
        checkpoint.response_template = cast("Mapping[str, Any]", template)
    return checkpoint


def is_hub_id(model: str) -> bool:
    """Whether a text has the form of an id on the Hub, so that asking for it makes sense."""
    return re.fullmatch(r"(?:\w[\w.-]*/)?\w[\w.-]*", model, re.ASCII) is not None and ".." not in model


def name_of_folder(folder: Path) -> str:
    """The id that a folder's path suggests: of a snapshot in the Hub's cache its repository, else `parent/name`."""
    parts = folder.resolve().parts
    for part in reversed(parts):
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/")
    return "/".join(parts[-2:]).lstrip("/")


def cached_folder(model: str, name: str) -> Path | None:
    """The folder of a model in the Hub's cache, if it holds a file of this name there. No network."""
    if not is_hub_id(model):
        return None
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(model, name)
    return Path(path).parent if isinstance(path, str) else None


@dataclass
class _Reader:
    """One look-up on the Hub, run in a thread that the caller need not wait for."""

    model: str
    revision: str | None
    token: str | bool | None
    local_files_only: bool
    cache_dir: str | Path | None
    deadline: float
    files: Sequence[str]
    checkpoint: Checkpoint

    def run(self) -> None:
        for name in self.files:
            if time.monotonic() > self.deadline:
                return
            outcome = self._fetch(name)
            self.checkpoint.outcomes[name] = outcome
            if outcome.kind not in ANSWERS:
                self.local_files_only = True  # the others would fail alike; their cached copies may still be there

    def _fetch(self, name: str) -> Outcome:
        try:
            file = None if self.local_files_only else self._download(name)
            if isinstance(file, Outcome):
                return file
        except Exception as error:  # whatever a client, a proxy or a file system came up with
            return self._cached(name, _outcome_of(error))
        return self._cached(name, Outcome("not cached")) if file is None else _read_file(self.checkpoint, name, file)

    def _download(self, name: str) -> Path | Outcome:
        from huggingface_hub import (  # its own hints have a bare `dict` in them
            get_hf_file_metadata,  # pyright: ignore[reportUnknownVariableType]
            hf_hub_download,  # pyright: ignore[reportUnknownVariableType]
            hf_hub_url,
        )

        patience = max(0.1, self.deadline - time.monotonic())
        url = hf_hub_url(self.model, name, revision=self.revision)
        metadata = get_hf_file_metadata(url, token=self.token, timeout=patience)
        if metadata.size is not None and metadata.size > SIZE_LIMIT:
            return Outcome("too large", f"{metadata.size} bytes")
        with _no_progress_bars():
            file = hf_hub_download(
                self.model,
                name,
                revision=self.revision,
                token=self.token,
                cache_dir=self.cache_dir,
                etag_timeout=max(0.1, self.deadline - time.monotonic()),
            )
        return Path(file)

    def _cached(self, name: str, otherwise: Outcome) -> Outcome:
        """The copy in the Hub's cache, or the reason why there is none."""
        try:
            from huggingface_hub import try_to_load_from_cache

            path = try_to_load_from_cache(self.model, name, cache_dir=self.cache_dir, revision=self.revision)
        except Exception as error:
            return _outcome_of(error)
        if isinstance(path, str):
            outcome = _read_file(self.checkpoint, name, Path(path))
            because = "" if otherwise.kind == "not cached" else f"a cached copy, as the Hub is {otherwise.kind}"
            return Outcome("found", because) if outcome == ("found", "") else outcome
        return Outcome("missing") if path is not None and otherwise.kind == "not cached" else otherwise


@contextmanager
def _no_progress_bars() -> Generator[None, None, None]:
    """Small files need no bars in a server's log; who asked the client for bars keeps them."""
    from huggingface_hub import constants
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    bars = "huggingface_hub.http_get"
    if constants.HF_HUB_DISABLE_PROGRESS_BARS is not None or are_progress_bars_disabled(bars):
        yield
        return
    disable_progress_bars(bars)
    try:
        yield
    finally:
        enable_progress_bars(bars)


def read_hub(
    model: str,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    local_files_only: bool = False,
    cache_dir: str | Path | None = None,
    timeout: float = TIMEOUT,
    files: Sequence[str] = FILES,
) -> Checkpoint:
    """What a checkpoint on the Hub, or in its cache, says. Takes `timeout` seconds at most."""
    checkpoint = Checkpoint("the Hub's cache" if local_files_only else "the Hub")
    deadline = time.monotonic() + timeout
    reader = _Reader(model, revision, token, local_files_only, cache_dir, deadline, files, checkpoint)
    thread = threading.Thread(target=reader.run, name=f"respzoo look-up of {model}", daemon=True)
    thread.start()
    thread.join(timeout)
    if not thread.is_alive():
        return checkpoint
    seen = replace(checkpoint, outcomes=dict(checkpoint.outcomes))
    for name in files:
        seen.outcomes.setdefault(name, Outcome("timed out", f"no answer within {timeout:g} s"))
    return seen


_HINTS: dict[str, Outcome] = {
    # by the name of huggingface_hub's class, most special first: importing them all would cost what laziness saved
    "GatedRepoError": Outcome("gated", "accept its terms on the Hub, then pass token="),
    "RepositoryNotFoundError": Outcome("no repository", "no such id, or a private one: pass token="),
    "RevisionNotFoundError": Outcome("no revision", "the repository has no such branch, tag or commit"),
    "EntryNotFoundError": Outcome("missing"),
    "OfflineModeIsEnabled": Outcome("offline", "HF_HUB_OFFLINE is set"),
    "HFValidationError": Outcome("no repository", "not an id as the Hub forms them"),
}


def _outcome_of(error: BaseException) -> Outcome:
    """The outcome that an exception of the client, or of what lies under it, stands for."""
    names = [cls.__name__ for cls in type(error).__mro__]
    if "LocalEntryNotFoundError" in names:  # the client's cover for whatever kept it from the server
        cause = error.__cause__
        return _outcome_of(cause) if cause is not None else Outcome("not cached")
    for name, outcome in _HINTS.items():
        if name in names:
            return outcome
    status = getattr(getattr(error, "response", None), "status_code", None)
    text = next(iter(str(error).splitlines()), "")
    if status in (401, 403):
        return Outcome("denied", f"HTTP {status}: this token may not read it")
    if status == 429:
        return Outcome("rate limited", "HTTP 429: try again later, or pass token=")
    if isinstance(status, int):
        return Outcome("server error" if status >= 500 else "failed", f"HTTP {status}")
    if any("Timeout" in name for name in names):
        return Outcome("timed out", text)
    if any("Connect" in name or name in ("NetworkError", "ProxyError", "ProtocolError") for name in names):
        return Outcome("unreachable", text)
    return Outcome("failed", f"{type(error).__name__}: {text}")
