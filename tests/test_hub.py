"""What a checkpoint says about itself: from folders, and from a small Hub on loopback through the real client."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from respzoo import hub, zoo
from respzoo.errors import UnknownModelError
from respzoo.names import bare_name

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SPEC = {"start_anchor": "<a>", "fields": {"content": {"close": "</a>"}}}
JSON_CALLS = "<|im_start|> <tool_call> {name, <args-json-object>} "
XML_CALLS = "<|im_start|> <tool_call> <function=f> <parameter=p> "


@dataclass
class Answer:
    body: bytes = b""
    status: int = 200
    code: str = ""
    """X-Error-Code, by which the Hub says what a status means."""
    silent: bool = False
    """There is none while the test lasts."""
    short: bool = False
    """The next body breaks off after ten bytes."""
    moved: str = ""
    """The repository that this one has become."""


@dataclass
class Hub:
    """Files by `repository/name`, and every request that came."""

    url: str = ""
    files: dict[str, Answer] = field(default_factory=dict)
    repos: dict[str, Answer] = field(default_factory=dict)
    """An answer for every file of a repository."""
    log: list[tuple[str, str, str | None]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def put(self, repo: str, *, revision: str = "main", **files: Any) -> None:
        for name, value in files.items():
            body = value if isinstance(value, str) else json.dumps(value)
            at = repo if revision == "main" else f"{repo}@{revision}"
            self.files[f"{at}/{name.replace('__', '.')}"] = Answer(body.encode())

    def answer(self, path: str) -> Answer:
        repo, _, rest = path.lstrip("/").partition("/resolve/")
        revision, _, name = rest.partition("/")
        repo = repo if revision in ("main", COMMIT) else f"{repo}@{revision}"
        if repo in self.repos:
            return self.repos[repo]
        if f"{repo}/{name}" in self.files:
            return self.files[f"{repo}/{name}"]
        known = any(file.startswith(f"{repo}/") for file in self.files)
        return Answer(status=404, code="EntryNotFound") if known else Answer(status=401, code="RepoNotFound")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_HEAD(self) -> None:
        self.reply(with_body=False)

    def do_GET(self) -> None:
        self.reply(with_body=True)

    def reply(self, *, with_body: bool) -> None:
        self.hub.log.append((self.command, self.path, self.headers.get("authorization")))
        answer = self.hub.answer(self.path)
        if answer.silent:
            self.hub.over.wait(60)
        if answer.moved:
            rest = self.path.partition("/resolve/")[2]
            self.send_response(307)
            self.send_header("Location", f"/{answer.moved}/resolve/{rest}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body, rest = answer.body, self.headers.get("range")
        if rest:
            body = body[int(rest.removeprefix("bytes=").removesuffix("-")) :]
        self.send_response(206 if rest else answer.status)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hash((self.path, answer.body)) & 0xFFFFFFFF:x}"')
        self.send_header("Content-Length", str(len(body)))
        if answer.code:
            self.send_header("X-Error-Code", answer.code)
            self.send_header("X-Error-Message", answer.code)
        self.end_headers()
        if with_body:
            self.close_connection = answer.short
            self.wfile.write(body[:10] if answer.short else body)
            answer.short = False

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    from huggingface_hub import constants, file_download

    handler = type("OneHub", (Handler,), {"hub": Hub()})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    http.daemon_threads = True
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    one: Hub = handler.hub  # type: ignore[attr-defined]
    one.url = f"http://127.0.0.1:{http.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", one.url)
    url_template = one.url + "/{repo_id}/resolve/{revision}/{filename}"
    for module in (constants, file_download):  # older clients copy it
        monkeypatch.setattr(module, "HUGGINGFACE_CO_URL_TEMPLATE", url_template, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", None)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.delenv(zoo.PIN, raising=False)
    zoo.forget()
    yield one
    one.over.set()
    http.shutdown()
    http.server_close()
    zoo.forget()


def read(model: str, cache: Path, **options: Any) -> hub.Checkpoint:
    return hub.read_hub(model, cache_dir=cache, **options)


def kinds(checkpoint: hub.Checkpoint) -> dict[str, str]:
    return {name: outcome.kind for name, outcome in checkpoint.outcomes.items()}


# ------------------------------------------------------------------------------------------------------ a small Hub


def test_all_that_is_there_is_read(server: Hub, tmp_path: Path) -> None:
    server.put(
        "acme/one",
        tokenizer_config__json={"response_template": SPEC, "chat_template": "in the config"},
        chat_template__jinja="in a file",
        config__json={"model_type": "acme"},
    )
    found = read("acme/one", tmp_path)
    assert set(kinds(found).values()) == {"found"}
    assert found.response_template == SPEC
    assert found.chat_template == "in a file"
    assert found.config == {"model_type": "acme"}
    assert {method for method, _, _ in server.log} == {"HEAD", "GET"}


def test_the_clients_progress_bars_are_off_and_then_on_again(
    server: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub
    from huggingface_hub.utils import are_progress_bars_disabled

    seen: list[bool] = []
    download = huggingface_hub.hf_hub_download

    def spy(*args: Any, **options: Any) -> Any:
        seen.append(are_progress_bars_disabled("huggingface_hub.http_get"))
        return download(*args, **options)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", spy)
    server.put("acme/one", config__json={})
    read("acme/one", tmp_path)
    assert seen == [True]
    assert not are_progress_bars_disabled("huggingface_hub.http_get")


def test_what_is_cached_is_not_fetched_again(server: Hub, tmp_path: Path) -> None:
    server.put("acme/one", tokenizer_config__json={"response_template": SPEC})
    read("acme/one", tmp_path)
    server.log.clear()
    assert read("acme/one", tmp_path).response_template == SPEC
    assert {method for method, _, _ in server.log} == {"HEAD"}
    server.log.clear()
    offline = read("acme/one", tmp_path, local_files_only=True)
    assert offline.response_template == SPEC
    assert offline.where == "the Hub's cache"
    assert kinds(offline)["chat_template.jinja"] == "not cached"
    assert server.log == []


def test_a_changed_file_is_fetched(server: Hub, tmp_path: Path) -> None:
    server.put("acme/one", chat_template__jinja="old")
    assert read("acme/one", tmp_path).chat_template == "old"
    server.put("acme/one", chat_template__jinja="new")
    # the same commit with another ETag: the client believes the commit, as its cache is one of snapshots
    assert read("acme/one", tmp_path / "fresh").chat_template == "new"


def test_a_missing_file_is_no_fault(server: Hub, tmp_path: Path) -> None:
    server.put("acme/one", config__json={})
    assert kinds(read("acme/one", tmp_path)) == {
        "tokenizer_config.json": "missing",
        "chat_template.jinja": "missing",
        "config.json": "found",
    }


@pytest.mark.parametrize(
    ("status", "code", "kind", "hint"),
    [
        (401, "RepoNotFound", "no repository", "token="),
        (404, "RepoNotFound", "no repository", "token="),
        (404, "RevisionNotFound", "no revision", "branch"),
        (403, "GatedRepo", "gated", "accept its terms"),
        (403, "", "denied", "HTTP 403"),
        (429, "", "rate limited", "HTTP 429"),
        (500, "", "server error", "HTTP 500"),
        (503, "", "server error", "HTTP 503"),
    ],
)
def test_every_refusal_is_an_outcome(server: Hub, tmp_path: Path, status: int, code: str, kind: str, hint: str) -> None:
    server.repos["acme/closed"] = Answer(status=status, code=code)
    found = read("acme/closed", tmp_path)
    outcome = found.outcomes["tokenizer_config.json"]
    assert outcome.kind == kind
    assert hint in outcome.text
    assert not found.found
    assert len(server.log) == 1  # once it is known, the other files are not asked for


def test_a_refusal_falls_back_on_the_cache(server: Hub, tmp_path: Path) -> None:
    server.put("acme/one", tokenizer_config__json={"response_template": SPEC}, config__json={"a": 1})
    read("acme/one", tmp_path)
    server.repos["acme/one"] = Answer(status=503)
    found = read("acme/one", tmp_path)
    assert found.response_template == SPEC
    assert found.config == {"a": 1}
    assert "a cached copy, as the Hub is server error" in str(found)


def test_a_token_is_passed_on(server: Hub, tmp_path: Path) -> None:
    server.put("acme/private", config__json={})
    read("acme/private", tmp_path, token="hf_secret")
    assert {authorization for _, _, authorization in server.log} == {"Bearer hf_secret"}
    assert "hf_secret" not in str(read("acme/private", tmp_path, token="hf_secret"))


def test_a_silent_hub_is_given_up(server: Hub, tmp_path: Path) -> None:
    server.repos["acme/silent"] = Answer(silent=True)
    found = read("acme/silent", tmp_path, timeout=0.3)
    assert set(kinds(found).values()) <= {"timed out", "not cached"}
    assert "timed out" in kinds(found).values()


def test_a_body_that_breaks_off(server: Hub, tmp_path: Path) -> None:
    server.put("acme/short", tokenizer_config__json={"response_template": SPEC})
    server.files["acme/short/tokenizer_config.json"].short = True
    found = read("acme/short", tmp_path, timeout=0.3)
    assert found.response_template is None
    for thread in threading.enumerate():  # nobody waits for it, but it carries on where the body broke off
        if thread.name.startswith("respzoo look-up"):
            thread.join(30.0)
    assert read("acme/short", tmp_path).response_template == SPEC


def test_a_hub_that_is_not_there(server: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants, file_download

    for module in (constants, file_download):
        url = "http://127.0.0.1:9/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(module, "HUGGINGFACE_CO_URL_TEMPLATE", url, raising=False)
    assert kinds(read("acme/one", tmp_path))["tokenizer_config.json"] == "unreachable"


def test_offline_by_the_clients_own_switch(server: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    outcome = read("acme/one", tmp_path).outcomes["tokenizer_config.json"]
    assert outcome.kind == "offline"
    assert "HF_HUB_OFFLINE" in outcome.text
    assert server.log == []
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    server.put("acme/one", tokenizer_config__json={"response_template": SPEC})
    read("acme/one", tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert read("acme/one", tmp_path).response_template == SPEC


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ("{", "broken", "not JSON"),
        ("[1]", "broken", "not a JSON object but list"),
        ("[" * 100_000, "broken", "not JSON"),
        ('{"response_template": "x"}', "found", "its response_template is str"),
    ],
)
def test_a_config_that_is_no_config(server: Hub, tmp_path: Path, body: str, kind: str, text: str) -> None:
    server.put("acme/odd", tokenizer_config__json=body, chat_template__jinja="fine")
    found = read("acme/odd", tmp_path)
    assert found.outcomes["tokenizer_config.json"].kind == kind
    assert text in found.outcomes["tokenizer_config.json"].text
    assert found.chat_template == "fine"


def test_a_large_file_is_not_fetched(server: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "SIZE_LIMIT", 10)
    server.put("acme/large", tokenizer_config__json={"a": "b" * 100})
    assert kinds(read("acme/large", tmp_path))["tokenizer_config.json"] == "too large"
    assert {method for method, _, _ in server.log} == {"HEAD"}


def test_a_renamed_repository_is_followed(server: Hub, tmp_path: Path) -> None:
    server.put("acme/new", chat_template__jinja="moved", config__json={})
    server.repos["acme/old"] = Answer(moved="acme/new")
    found = read("acme/old", tmp_path)
    assert found.chat_template == "moved"
    assert kinds(found)["tokenizer_config.json"] == "missing"


def test_a_loop_of_redirects_ends(server: Hub, tmp_path: Path) -> None:
    server.repos["acme/round"] = Answer(moved="acme/round")
    found = read("acme/round", tmp_path)
    assert not found.found
    assert "timed out" not in kinds(found).values()


def test_the_card_is_read_for_its_base_models_alone(server: Hub, tmp_path: Path) -> None:
    server.put("acme/tuned", README__md="---\nbase_model:\n- acme/one\n- acme/two\n---\n" + "text " * 1_000)
    found = read("acme/tuned", tmp_path, files=(hub.CARD,))
    assert found.base_models == ("acme/one", "acme/two")
    assert kinds(found) == {"README.md": "found"}


@pytest.mark.parametrize(
    ("card", "models"),
    [
        ("", ()),
        ("no head\nbase_model: acme/one\n", ()),
        ("---\nbase_model: acme/one\n---\n", ("acme/one",)),
        ("---\r\nbase_model: acme/one\r\n---\r\n", ("acme/one",)),
        ("---\nbase_model: acme/one", ("acme/one",)),
        ("---\nother:\n  base_model: acme/one\n---\n", ()),
        ("---\nbase_model: [acme/one, 'acme/two', \"acme/three\"]\n---\n", ("acme/one", "acme/two", "acme/three")),
        (
            "---\nbase_model:\n- acme/one # the first\n-   acme/two\nother:\n- acme/three\n---\n",
            ("acme/one", "acme/two"),
        ),
        ("---\nbase_model: {a: b}\n---\n", ()),
        ("---\nbase_model: ../../etc/passwd\n---\n", ()),
        ("---\nbase_model: &a [*a, *a]\n---\n", ()),
        ("---\nbase_model: " + "x" * 1_000_000, ()),
        ("---\nbase_model:\n" + "- acme/one\n" * 100_000, ("acme/one",)),
    ],
)
def test_the_head_of_a_card(tmp_path: Path, card: str, models: tuple[str, ...]) -> None:
    (tmp_path / "README.md").write_text(card, newline="")
    assert hub.read_folder(tmp_path, (hub.CARD,)).base_models == models


# ------------------------------------------------------------------------------------------- the zoo and a small Hub


def asked(server: Hub) -> list[str]:
    """The files that were asked for, in order, each once."""
    return list(dict.fromkeys(path.replace("/resolve/main", "").lstrip("/") for _, path, _ in server.log))


def test_only_small_files_are_asked_for_and_none_before_it_is_needed(server: Hub, tmp_path: Path) -> None:
    server.put("acme/known", chat_template__jinja=JSON_CALLS)
    zoo.get("acme/known", cache_dir=tmp_path)
    three = ("tokenizer_config.json", "chat_template.jinja", "config.json")
    assert asked(server) == [f"acme/known/{name}" for name in three]
    server.log.clear()
    server.put(
        "acme/tuned", config__json={"_name_or_path": "acme/known"}, README__md="---\nbase_model: acme/base\n---\n"
    )
    server.put("acme/base", config__json={})
    assert zoo.get("acme/tuned", cache_dir=tmp_path).name == "qwen3"
    assert asked(server) == [
        *(f"acme/tuned/{name}" for name in three),
        "acme/tuned/README.md",
        *(f"acme/base/{name}" for name in (*three, "README.md")),
        *(f"acme/known/{name}" for name in (*three, "README.md")),
    ]
    files = {file.name for file in tmp_path.rglob("*") if file.is_symlink() or file.is_file()}
    assert files & {*three, "README.md"}
    assert not any(name.endswith((".py", ".safetensors", ".bin", ".pkl")) for name in files)


def test_base_models_are_followed(server: Hub, tmp_path: Path) -> None:
    server.put("acme/third", README__md="---\nbase_model: acme/second\n---\n")
    server.put("acme/second", README__md="---\nbase_model: acme/first\nbase_model_relation: merge\n---\n")
    server.put("acme/first", chat_template__jinja=XML_CALLS)
    template = zoo.get("acme/third", cache_dir=tmp_path)
    assert template.name == "qwen3_xml"
    assert template.source == "family qwen3_xml of respzoo:curated: the chat template of its base model acme/first"
    server.put("acme/first", README__md="---\nbase_model: openai/gpt-oss-20b\n---\n", chat_template__jinja="")
    assert zoo.get("acme/third", cache_dir=tmp_path / "fresh", prefer="curated").name == "gpt_oss"


def test_loops_of_base_models_end(server: Hub, tmp_path: Path) -> None:
    server.put("acme/one", README__md="---\nbase_model: acme/two\n---\n")
    server.put("acme/two", README__md="---\nbase_model: [acme/one, acme/two, ACME/Two]\n---\n")
    for number in range(3, 20):
        server.put(f"acme/n{number}", README__md=f"---\nbase_model: acme/n{number + 1}\n---\n")
    server.put("acme/wide", README__md=f"---\nbase_model: {[f'acme/w{number}' for number in range(15)]}\n---\n")
    for model, most in (("acme/one", 2), ("acme/n3", 4), ("acme/wide", 5)):
        server.log.clear()
        with pytest.raises(UnknownModelError, match="base model: no family knows acme/"):
            zoo.get(model, cache_dir=tmp_path)
        assert len({path.rsplit("/", 4)[1] + path.rsplit("/", 4)[0] for path in asked(server)}) <= 6
        assert len({path.split("/")[1] for path in asked(server)}) <= most + 1


def test_all_that_one_search_asks_has_one_deadline(
    server: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "TIMEOUT", 1.0)
    server.put("acme/tuned", README__md="---\nbase_model: [acme/silent1, acme/silent2, acme/silent3]\n---\n")
    for number in (1, 2, 3):
        server.repos[f"acme/silent{number}"] = Answer(silent=True)
    with pytest.raises(UnknownModelError, match="not asked for acme/silent"):
        zoo.get("acme/tuned", cache_dir=tmp_path)
    assert not any("acme/silent3" in path for path in asked(server))


def test_the_curated_zoo_answers_whatever_the_hub_does(server: Hub, tmp_path: Path) -> None:
    """Gated, private, missing, rate-limited, failing, broken: a name that says enough is enough."""
    answers = {
        "gated": Answer(status=403, code="GatedRepo"),
        "no repository": Answer(status=401, code="RepoNotFound"),
        "rate limited": Answer(status=429),
        "server error": Answer(status=500),
        "denied": Answer(status=403),
    }
    for kind, answer in answers.items():
        model = f"{kind.replace(' ', '-')}/Qwen3-8B-FP8"
        server.repos[model] = answer
        finding = zoo.find(model, cache_dir=tmp_path)
        assert finding.template is not None
        assert finding.template.name == "qwen3"
        assert kind in str(finding.trail[0])
        server.log.clear()
        server.repos[f"{kind.replace(' ', '-')}/nobody"] = answer
        with pytest.raises(UnknownModelError, match=kind):
            zoo.get(f"{kind.replace(' ', '-')}/nobody", cache_dir=tmp_path)
        assert len(server.log) == 1, "the card of a model that cannot be read is not asked for"
    server.put("broken/Qwen3-8B-FP8", tokenizer_config__json="{", config__json="[]")
    finding = zoo.find("broken/Qwen3-8B-FP8", cache_dir=tmp_path)
    assert finding.template is not None
    assert "broken (not JSON" in str(finding.trail[0])


def test_a_revision_is_asked_for(server: Hub, tmp_path: Path) -> None:
    server.put("acme/one", config__json={})
    server.put("acme/one", revision="v2", chat_template__jinja=XML_CALLS)
    assert zoo.get("acme/one", revision="v2", cache_dir=tmp_path).name == "qwen3_xml"
    with pytest.raises(UnknownModelError):
        zoo.get("acme/one", cache_dir=tmp_path)


def test_an_untrusted_template_is_refused_unless_it_is_named(
    server: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = {"start_anchor": "<a>", "fields": {"content": {"close_pattern": "(?:a+)+b"}}}
    server.put("acme/nested", tokenizer_config__json={"response_template": spec})
    with pytest.raises(UnknownModelError) as caught:
        zoo.get("acme/nested", cache_dir=tmp_path)
    text = str(caught.value)
    assert (
        "$.fields.content.close_pattern: refused in an untrusted template: an unbounded repeat inside another" in text
    )
    assert "    (?:a+)+b\n       ^" in text
    assert "trust='acme/nested' takes it all the same" in text
    assert zoo.get("acme/nested", cache_dir=tmp_path, trust="acme/nested").spec == spec
    assert zoo.get("acme/nested", cache_dir=tmp_path, trust=["acme/other", "acme/nested"]).spec == spec
    with pytest.raises(UnknownModelError):
        zoo.get("acme/nested", cache_dir=tmp_path, trust="acme/other")
    monkeypatch.setenv("RESPZOO_TRUST", "acme/other, acme/nested")
    assert zoo.get("acme/nested", cache_dir=tmp_path).spec == spec


def test_a_curated_id_leaves_the_hub_alone(server: Hub) -> None:
    assert zoo.get("Qwen/Qwen3-8B").name == "qwen3"
    assert server.log == []


def test_prefer_hub_asks_for_a_curated_id_too(server: Hub, tmp_path: Path) -> None:
    server.put("Qwen/Qwen3-8B", tokenizer_config__json={"response_template": SPEC})
    template = zoo.get("Qwen/Qwen3-8B", prefer="hub", cache_dir=tmp_path)
    assert template.spec == SPEC
    assert template.source == "response_template of the Hub (Qwen/Qwen3-8B)"


def test_prefer_curated_lets_families_go_first(server: Hub, tmp_path: Path) -> None:
    server.put("acme/one", tokenizer_config__json={"response_template": SPEC, "chat_template": JSON_CALLS})
    assert zoo.get("acme/one", cache_dir=tmp_path).spec == SPEC
    assert zoo.get("acme/one", cache_dir=tmp_path, prefer="curated").name == "qwen3"
    server.put("acme/two", tokenizer_config__json={"response_template": SPEC})
    assert zoo.get("acme/two", cache_dir=tmp_path, prefer="curated").spec == SPEC


def test_marks_of_the_hubs_chat_template(server: Hub, tmp_path: Path) -> None:
    server.put("acme/tuned", chat_template__jinja=XML_CALLS)
    template = zoo.get("acme/tuned", cache_dir=tmp_path)
    assert template.name == "qwen3_xml"
    assert "the chat template has" in template.source


def test_marks_of_the_hub_win_over_a_likely_name(server: Hub, tmp_path: Path) -> None:
    server.put("acme/Qwen3-8B-coder", chat_template__jinja=XML_CALLS)
    assert zoo.get("acme/Qwen3-8B-coder", cache_dir=tmp_path).name == "qwen3_xml"


def test_a_template_that_does_not_load_is_passed_over(server: Hub, tmp_path: Path) -> None:
    server.put("acme/bad", tokenizer_config__json={"response_template": {"fields": 3}, "chat_template": JSON_CALLS})
    finding = zoo.find("acme/bad", cache_dir=tmp_path)
    assert finding.template is not None
    assert finding.template.name == "qwen3"
    assert any(rung.name == "checkpoint" and "does not load" in rung.text for rung in finding.trail)


def test_a_likely_name_holds_when_the_hub_fails(server: Hub, tmp_path: Path) -> None:
    server.repos["acme/Qwen3-8B-FP8"] = Answer(status=503)
    assert zoo.get("acme/Qwen3-8B-FP8", cache_dir=tmp_path).name == "qwen3"


def test_an_unknown_model_says_what_the_hub_said(server: Hub, tmp_path: Path) -> None:
    server.repos["acme/none"] = Answer(status=403, code="GatedRepo")
    with pytest.raises(UnknownModelError, match=r"gated \(accept its terms"):
        zoo.get("acme/none", cache_dir=tmp_path)


# ---------------------------------------------------------------------------------------------------------- folders


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": "x", "response_template": SPEC}))
    found = hub.read_folder(tmp_path)
    assert found.chat_template == "x"
    assert found.response_template == SPEC
    assert kinds(found) == {
        "tokenizer_config.json": "found",
        "chat_template.jinja": "missing",
        "config.json": "missing",
    }
    assert str(found) == f"folder {tmp_path}: tokenizer_config.json found; chat_template.jinja, config.json missing"


def test_a_folder_with_odd_files(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_bytes(b"\xff\xfe{}")
    (tmp_path / "config.json").mkdir()
    assert kinds(hub.read_folder(tmp_path)) == {
        "tokenizer_config.json": "broken",
        "chat_template.jinja": "missing",
        "config.json": "broken",
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        ("", None),
        (3, None),
        ([{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}], "t"),
        ([{"name": "default", "template": "d"}], "d"),
        ([{"name": "rag", "template": "r"}, 3], "r"),
        ({"default": "d", "tool_use": "t"}, "t"),
        ([], None),
    ],
)
def test_one_chat_template_of_several(tmp_path: Path, value: object, expected: str | None) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": value}))
    assert hub.read_folder(tmp_path).chat_template == expected


@pytest.mark.parametrize(
    ("text", "is_id"),
    [
        ("Qwen/Qwen3-8B", True),
        ("gpt2", True),
        ("a/b/c", False),
        ("./x", False),
        ("../x", False),
        ("/abs", False),
        ("a b", False),
        ("", False),
        ("é/x", False),
    ],
)
def test_what_looks_like_an_id(text: str, is_id: bool) -> None:
    assert hub.is_hub_id(text) is is_id


@pytest.mark.parametrize(
    ("model", "bare"),
    [
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("Qwen/Qwen3-8B-FP8", "qwen3-8b"),
        ("Qwen/Qwen3-30B-A3B-GPTQ-Int4", "qwen3-30b-a3b"),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "qwen2.5-7b-instruct"),
        ("unsloth/Qwen3-8B-unsloth-bnb-4bit", "qwen3-8b"),
        ("mlx-community/Qwen3-8B-4bit-DWQ", "qwen3-8b"),
        ("lmstudio-community/Qwen3-8B-MLX-8bit", "qwen3-8b"),
        ("bartowski/Qwen_Qwen3-8B-GGUF", "qwen_qwen3-8b"),
        ("x/Qwen3-8B-i1-GGUF", "qwen3-8b"),
        ("x/Qwen3-8B-quantized.w4a16", "qwen3-8b"),
        ("x/Qwen3-8B-FP8-dynamic", "qwen3-8b"),
        ("x/Qwen3-8B-NVFP4", "qwen3-8b"),
        ("x/Qwen3-32B-4.5bpw-exl2", "qwen3-32b"),
        ("x/Qwen3-8B-UD-Q4_K_XL", "qwen3-8b"),
        ("x/gpt-oss-20b-MXFP4-Q8", "gpt-oss-20b"),
        ("x/Qwen3-4B-Instruct-2507", "qwen3-4b-instruct-2507"),
        ("models\\Qwen3-8B\\", "qwen3-8b"),
        ("c4ai-command-a-03-2025", "c4ai-command-a-03-2025"),
    ],
)
def test_the_bare_name(model: str, bare: str) -> None:
    assert bare_name(model) == bare


def test_the_name_of_a_folder(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--Qwen--Qwen3-8B" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    assert hub.name_of_folder(snapshot) == "Qwen/Qwen3-8B"
    assert hub.name_of_folder(tmp_path) == "/".join(tmp_path.parts[-2:])
