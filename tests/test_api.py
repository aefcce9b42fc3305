"""The public API, pinned: names, signatures, shape of what is shipped. A change here is a change for users."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import metadata, resources

import pytest

import respzoo
import respzoo.errors
import respzoo.events

GRAMMARS = {"structural_tag", "structural_tag_reason"}
PUBLIC = {
    "MessageStream", "ParseError", "ResponseParser", "ResponseTemplate", "RespzooError", "TemplateError", "UnknownModelError",
    "get", "parse_response",
}  # fmt: skip

TEMPLATE = "CompiledTemplate | Mapping[str, Any]"
SIGNATURES = {
    "get": None,  # pinned below: its first parameter is what users rely on
    "parse_response": "(text: 'Any', template: 'ResponseTemplate | Mapping[str, Any] | str', *, prefix: 'Any', "
    "tools: 'Iterable[Tool] | None' = None, on_malformed: 'OnMalformed' = 'raise', tokenizer: 'Any' = None) -> 'Any'",
    "ResponseTemplate": "(spec: 'Mapping[str, Any]', *, name: 'str' = '', source: 'str' = '') -> 'None'",
    "ResponseTemplate.parse": "(self, text: 'str | list[str]', *, prefix: 'str | Sequence[str]', "
    "tools: 'Iterable[Tool] | None' = None, on_malformed: 'OnMalformed' = 'raise') -> 'dict[str, Any] | list[dict[str, Any]]'",
    "ResponseTemplate.parser": "(self, *, prefix: 'str', tools: 'Iterable[Tool] | None' = None, "
    "special_tokens: 'Collection[str] | None' = None) -> 'ResponseParser'",
    "ResponseTemplate.stream": "(self, *, prefix: 'str', tools: 'Iterable[Tool] | None' = None, "
    "arguments: \"Literal['stream', 'complete']\" = 'stream', on_malformed: \"Literal['content', 'drop']\" = 'content', "
    "on_unfinished: \"Literal['content', 'drop']\" = 'drop', special_tokens: 'Collection[str] | None' = None) -> 'MessageStream'",
    "ResponseTemplate.structural_tag": "(self, tools: 'Iterable[Tool] | None', *, tool_choice: 'ToolChoice' = 'auto', "
    "parallel: 'bool' = True, strict: 'bool | None' = None, reasoning: 'bool' = False, prefix: 'str' = '', "
    "response_format: 'Mapping[str, Any] | None' = None, stops: 'Collection[str]' = ()) -> 'dict[str, Any] | None'",
    "ResponseTemplate.structural_tag_reason": "(self, tools: 'Iterable[Tool] | None', **request: 'Any') -> 'str | None'",
    "ResponseParser": f"(template: '{TEMPLATE}', *, prefix: 'str', tools: 'Iterable[Tool] | None' = None, "
    "on_malformed: \"Literal['content', 'drop']\" = 'content', on_unfinished: \"Literal['content', 'drop']\" = 'drop', "
    "special_tokens: 'Collection[str] | None' = None) -> 'None'",
    "ResponseParser.feed": "(self, text: 'str', special: 'Sequence[tuple[int, int]] | None' = None) -> 'list[Event]'",
    "ResponseParser.finalize": "(self) -> 'tuple[dict[str, Any], list[Event]]'",
    "MessageStream": f"(template: '{TEMPLATE}', *, prefix: 'str', tools: 'Iterable[Tool] | None' = None, "
    "arguments: \"Literal['stream', 'complete']\" = 'stream', on_malformed: \"Literal['content', 'drop']\" = 'content', "
    "on_unfinished: \"Literal['content', 'drop']\" = 'drop', special_tokens: 'Collection[str] | None' = None) -> 'None'",
    "MessageStream.feed": "(self, text: 'str', special: 'Sequence[tuple[int, int]] | None' = None) -> 'list[Delta]'",
    "MessageStream.finish": "(self) -> 'tuple[dict[str, Any], list[Delta]]'",
    "TemplateError": "(problems: 'Sequence[Problem]', *, name: 'str' = '') -> 'None'",
    "ParseError": "(text: 'str', *, message: 'Mapping[str, Any]', raw: 'str', field: 'str | None') -> 'None'",
}  # fmt: skip


def found(path: str) -> object:
    at: object = respzoo
    for name in path.split("."):
        at = getattr(at, name)
    return at


def test_the_public_names() -> None:
    assert set(respzoo.__all__) == PUBLIC
    assert respzoo.__all__ == sorted(respzoo.__all__)
    assert all(hasattr(respzoo, name) for name in PUBLIC)


@pytest.mark.parametrize("path", [path for path, signature in SIGNATURES.items() if signature])
def test_signatures(path: str) -> None:
    assert str(inspect.signature(found(path))) == SIGNATURES[path]  # type: ignore[arg-type]


def test_the_signature_of_get() -> None:
    parameters = inspect.signature(respzoo.get).parameters
    first, *others = parameters.values()
    assert first.name == "model"
    assert first.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert first.default is inspect.Parameter.empty
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in others)
    assert all(one.default is not inspect.Parameter.empty for one in others)
    assert "ResponseTemplate" in str(inspect.signature(respzoo.get).return_annotation)


def test_methods_and_attributes() -> None:
    """Nothing public that is not meant to be."""

    def public(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    # MessageStream's questions and its short way, no promise to users
    shared = {"chunk", "compact", "known", "parts", "takes"}
    of_message = {*shared, "marks", "prompt_chunks", "prompt_raws", "prompted", "over"}
    promised = {"feed", "finalize", "region", "held", "dropped", "initial_events"}
    assert public(respzoo.ResponseParser) == promised | of_message
    of_adapters = {"passes", "decide"}
    assert public(respzoo.MessageStream) == {"feed", "finish", "dropped", "parser", *of_adapters}
    assert public(respzoo.ResponseTemplate) == {"parse", "parser", "stream", *GRAMMARS}
    template = respzoo.ResponseTemplate({"start_anchor": "<s>", "fields": {"content": {}}}, name="mine")
    assert (template.name, template.source) == ("mine", "given by the caller")
    assert type(template.spec) is dict
    assert isinstance(template.stream(prefix="").parser, respzoo.ResponseParser)


def test_a_template_never_changes() -> None:
    template = respzoo.ResponseTemplate({"start_anchor": "<s>", "fields": {"content": {}}})
    for name in ("spec", "name", "fields"):
        with pytest.raises(AttributeError):
            setattr(template, name, None)


def test_errors() -> None:
    assert issubclass(respzoo.RespzooError, Exception)
    for kind, builtin in (
        (respzoo.TemplateError, ValueError),
        (respzoo.ParseError, ValueError),
        (respzoo.UnknownModelError, LookupError),
    ):
        assert issubclass(kind, respzoo.RespzooError)
        assert issubclass(kind, builtin)
        assert kind.__module__ == "respzoo.errors"
    assert set(respzoo.errors.__all__) == {
        "ParseError",
        "Problem",
        "RespzooError",
        "TemplateError",
        "UnknownModelError",
    }


def test_events() -> None:
    assert {"Event", "merge"} <= set(respzoo.events.__all__)
    keys = {"type", "field", "text", "dirty", "value", "raw", "error", "reason"}
    assert set(respzoo.events.Event.__annotations__) == keys
    assert set(respzoo.events.Dropped.__annotations__) == {"field", "raw", "error", "reason"}


def test_merge() -> None:
    def chunk(field: str, text: str) -> dict[str, object]:
        return {"type": "region_chunk", "field": field, "text": text, "dirty": False}

    opened, closed = {"type": "region_open", "field": "a"}, {"type": "region_close", "field": "a", "value": "xyz"}
    events = [opened, chunk("a", "x"), chunk("a", "y"), chunk("a", "z"), closed, chunk("b", "1"), chunk("a", "2")]
    merged = respzoo.events.merge(events)  # type: ignore[arg-type]
    assert merged == [opened, chunk("a", "xyz"), closed, chunk("b", "1"), chunk("a", "2")]
    assert events[1]["text"] == "x", "what was given is left alone"
    assert respzoo.events.merge(merged) == merged
    assert respzoo.events.merge(iter([])) == []


def test_every_public_thing_is_documented() -> None:
    for path in [*PUBLIC, *SIGNATURES]:
        if "." not in path or not path.startswith("_"):
            assert inspect.getdoc(found(path)), path


def test_types_are_shipped() -> None:
    for package in ("respzoo", "respzoo_curated", "respzoo_vllm"):
        marker = resources.files(package) if package != "respzoo_vllm" else None
        if marker is not None:
            assert (marker / "py.typed").is_file(), package


def test_one_distribution() -> None:
    names = {point.name for point in metadata.entry_points(group="respzoo")}
    assert "curated" in names
    assert metadata.metadata("respzoo")["Name"] == "respzoo"


def test_import_is_light() -> None:
    """Engine free, and what only some need is imported by who needs it."""
    code = (
        "import sys; before = set(sys.modules); import respzoo; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(shown.stdout.split())
    assert "respzoo" in loaded
    heavy = {"huggingface_hub", "typer", "rich", "transformers", "torch", "numpy", "vllm", "requests", "httpx", "respzoo_curated",
             "respzoo_vllm", "jinja2", "tokenizers"}  # fmt: skip
    assert not loaded & heavy


def test_parsing_imports_nothing_more() -> None:
    code = (
        "import sys, respzoo\n"
        "spec = {'start_anchor': '<s>', 'fields': {'content': {}}}\n"
        "tools = [{'name': 'f', 'parameters': {}}]\n"
        "assert respzoo.parse_response('x', spec, prefix='', tools=tools) == {'content': 'x'}\n"
        "list(respzoo.MessageStream(spec, prefix='').feed('x'))\n"
        "assert not {'huggingface_hub', 'transformers', 'numpy', 'typer', 'rich', 'respzoo_curated'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
