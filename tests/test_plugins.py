"""The plugin door: each hook, families from folders, and plugins that are broken or at odds."""

from __future__ import annotations

import importlib
import json
import logging
import re
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from respzoo import hookspecs, zoo
from respzoo.errors import TemplateError, UnknownModelError
from respzoo.hookspecs import Family, Marks
from respzoo.ladder import PIN
from respzoo.plugins import (
    DISABLE,
    Plugin,
    PluginError,
    Plugins,
    TemplateFolder,
    hookimpl,
    load_template,
    loaded,
    read_family,
    report,
)
from respzoo.trust import ENVIRONMENT

SPEC = {"start_anchor": "<a>", "fields": {"content": {"close": "</a>"}}}
HOSTILE = {"start_anchor": "<a>", "fields": {"content": {"close_pattern": "(?:a+)+b"}}}
DOCS = (Path(__file__).parents[1] / "docs" / "plugins.md").read_text("utf-8")


def family(name: str = "acme", **more: Any) -> Family:
    return Family(name=name, template=SPEC, **more)


class Templates:
    """A plugin that brings families."""

    def __init__(self, families: Iterable[Family]) -> None:
        self.families = families

    @hookimpl
    def respzoo_templates(self) -> Iterable[Family]:
        return self.families


class Find:
    """A plugin with rules of its own."""

    def __init__(self, rule: Callable[[str, str | None, Mapping[str, Any]], Any]) -> None:
        self.rule = rule

    @hookimpl
    def respzoo_find(self, model: str, chat_template: str | None, config: Mapping[str, Any]) -> Any:
        return self.rule(model, chat_template, config)


def plugins(**given: object) -> Plugins:
    found = Plugins()
    for name, plugin in given.items():
        found.register(plugin, name, "1.0")
    return found


def write_family(folder: Path, toml: str = "", spec: object = SPEC) -> Path:
    folder.mkdir(parents=True)
    (folder / "family.toml").write_text(toml)
    (folder / "template.json").write_text(json.dumps(spec))
    return folder


# --------------------------------------------------------------------------------------------------------- the hooks


def test_every_hook_has_a_line_of_docs_and_a_test() -> None:
    hooks = [name for name in dir(hookspecs) if name.startswith("respzoo_")]
    assert hooks == ["respzoo_find", "respzoo_templates"]
    for name in hooks:
        doc = getattr(hookspecs, name).__doc__
        assert doc
        assert "\n" not in doc
        assert f"test_{name}" in globals()
        assert f"| `{name}` |" in DOCS


def test_every_variable_has_a_line_of_docs() -> None:
    for name in (PIN, DISABLE, ENVIRONMENT):
        assert f"| `{name}` |" in DOCS


def test_the_example_in_the_docs_works() -> None:
    (example,) = re.findall(r"```python\n(from respzoo.*?)```", DOCS, re.DOTALL)
    module = types.ModuleType("acme_example")
    exec(example, module.__dict__)
    found = plugins(example=module)
    assert found.broken == []
    answer = found.find("x/y", None, {"model_type": "acme"})
    assert answer is not None
    assert answer[0].name == "acme_one"
    assert found.listed("acme/One-7B") is found.families["acme_one"]


def test_respzoo_templates() -> None:
    found = plugins(one=Templates([family("a", models=("Acme/A-1B",))]), two=Templates(iter([family("b")])))
    assert found.families.keys() == {"a", "b"}
    assert found.owners == {"a": "one", "b": "two"}
    assert found.ids["acme/a-1b"].name == "a"
    assert found.broken == []


def test_respzoo_find() -> None:
    seen: list[tuple[str, str | None, Mapping[str, Any]]] = []

    def rule(model: str, chat_template: str | None, config: Mapping[str, Any]) -> str | Family | None:
        seen.append((model, chat_template, config))
        return {"by name": "a", "by family": family("made")}.get(model)

    found = plugins(one=Templates([family("a")]), rules=Find(rule), silent=Find(lambda *_: None))
    assert found.find("nobody's", "{{ x }}", {"model_type": "t"}) is None
    assert seen == [("nobody's", "{{ x }}", {"model_type": "t"})]
    by_name = found.find("by name", None, {})
    assert by_name is not None
    assert (by_name[0].name, by_name[1]) == ("a", "rules")
    by_family = found.find("by family", None, {})
    assert by_family is not None
    assert by_family[0].name == "made"


def test_the_last_plugin_is_asked_first() -> None:
    found = plugins(a=Find(lambda *_: family("first")), b=Find(lambda *_: family("last")))
    answer = found.find("m", None, {})
    assert answer is not None
    assert answer[0].name == "last"


def test_a_module_can_be_a_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_module_plugin.py").write_text(
        "from respzoo.plugins import Family, hookimpl\n"
        "@hookimpl\n"
        "def respzoo_templates():\n"
        "    yield Family(name='acme', template={'start_anchor': 'x', 'fields': {'content': {}}})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert plugins(module=importlib.import_module("acme_module_plugin")).families.keys() == {"acme"}


# ------------------------------------------------------------------------------------------------------------ folders


def test_a_folder_of_families(tmp_path: Path) -> None:
    write_family(
        tmp_path / "acme_1",
        """
        title = "Acme"
        models = ["Acme/One-7B"]
        id_patterns = ['one-\\d+b']
        sources = ["a page"]
        notes = "none"
        [[chat_template]]
        require = ["<a>"]
        forbid = ["<b>"]
        """,
    )
    (tmp_path / "acme_1" / "samples.jsonl").write_text("")
    (tmp_path / "not_a_family").mkdir()
    (tmp_path / "README.md").write_text("text")
    found = plugins(folder=TemplateFolder(tmp_path))
    assert found.broken == []
    (one,) = found.families.values()
    assert one.name == "acme_1"
    assert one.title == "Acme"
    assert one.models == ("Acme/One-7B",)
    assert one.marks == (Marks(("<a>",), ("<b>",)),)
    assert one.match_name("one-7b") == r"one-\d+b"
    assert one.match_name("one-7b-chat") is None
    assert one.match_chat_template("<a> and") == Marks(("<a>",), ("<b>",))
    assert one.match_chat_template("<a> and <b>") is None
    assert one.samples == tmp_path / "acme_1" / "samples.jsonl"
    assert one.spec == SPEC


def test_a_template_is_read_when_it_is_needed(tmp_path: Path) -> None:
    folder = write_family(tmp_path / "acme", spec="not a template")
    found = plugins(folder=TemplateFolder(tmp_path))
    assert found.families.keys() == {"acme"}
    with pytest.raises(TemplateError, match="acme"):
        found.compile(found.families["acme"], "why")
    (folder / "template.json").write_text(json.dumps(SPEC))
    assert read_family(folder).spec == SPEC


def test_a_template_that_cannot_be_read(tmp_path: Path) -> None:
    folder = write_family(tmp_path / "acme")
    (folder / "template.json").unlink()
    found = plugins(folder=TemplateFolder(tmp_path))
    with pytest.raises(TemplateError, match=r"'acme' .*\n.*cannot be read: .*No such file"):
        found.compile(found.families["acme"], "why")
    (folder / "template.json").write_text("{")
    with pytest.raises(TemplateError, match="cannot be read: Expecting"):
        found.compile(found.families["acme"], "why")


def test_an_id_pattern_that_is_none(tmp_path: Path) -> None:
    bad = Templates([family("bad", id_patterns=("one-(",))])
    found = plugins(good=Templates([family("good", id_patterns=("one-.*",))]), bad=bad)
    assert [(one.name, pattern) for one, pattern in found.fitting(["one-7b"])] == [("good", "one-.*")]
    (broken,) = found.broken
    assert broken.plugin == "bad"
    assert "an id pattern of family bad is no regular expression" in broken.error


def test_a_family_compiles_once(tmp_path: Path) -> None:
    found = plugins(one=Templates([family("a")]))
    first, second = (found.compile(found.families["a"], why) for why in ("this", "that"))
    assert (first.source, second.source) == ("this", "that")
    assert first.fields is second.fields
    assert first.name == "a"


@pytest.mark.parametrize(
    ("toml", "complaint"),
    [
        ("models = 'Acme/One'", "models must be a list of texts"),
        ("models = [1]", "models must be a list of texts"),
        ("title = 3", "title must be a text"),
        ("modles = []", "unknown key modles; known are title, models"),
        ("[chat_template]\nrequire = ['x']", r"\[\[chat_template\]\]"),
        ("[[chat_template]]\nrequire = ['x']\nrequires = ['y']", "has the keys require and forbid, not requires"),
        ("[[chat_template]]\nforbid = ['x']", "at least one text to require"),
        ("[[chat_template]]\nrequire = ['']", "no text may be empty"),
        ("title = ", "Invalid value"),
    ],
)
def test_a_family_file_that_is_wrong(tmp_path: Path, toml: str, complaint: str) -> None:
    folder = write_family(tmp_path / "acme", toml)
    with pytest.raises(PluginError, match=complaint) as caught:
        read_family(folder)
    assert str(folder / "family.toml") in str(caught.value)


def test_a_broken_folder_spoils_none_of_its_neighbours(tmp_path: Path) -> None:
    write_family(tmp_path / "a_good")
    write_family(tmp_path / "b_bad", "modles = []")
    write_family(tmp_path / "C-Bad")
    write_family(tmp_path / "d_good")
    found = plugins(folder=TemplateFolder(tmp_path))
    assert found.families.keys() == {"a_good", "d_good"}
    (broken,) = found.broken
    assert "modles" in broken.error
    assert "'C-Bad'" in broken.error


@pytest.mark.parametrize("name", ["Qwen3", "3b", "qwen-3", "", "a b"])
def test_a_family_name_is_an_identifier(name: str) -> None:
    with pytest.raises(ValueError, match="lower case"):
        family(name)


# ------------------------------------------------------------------------------------------------------------- broken


def explode(*_: Any) -> Any:
    raise RuntimeError("boom")


class BadTemplates:
    @hookimpl
    def respzoo_templates(self) -> Any:
        return explode()


class UnknownHook:
    @hookimpl
    def respzoo_tempaltes(self) -> Any:
        return []


class WrongArguments:
    @hookimpl
    def respzoo_find(self, modle: str) -> None: ...


@pytest.mark.parametrize(
    ("plugin", "error"),
    [
        (BadTemplates(), "RuntimeError: boom"),
        (Templates([family("b"), "c"]), "gave 'c', which is no Family"),  # type: ignore[list-item]
        (Templates(3), "TypeError"),  # type: ignore[arg-type]
        (UnknownHook(), "unknown hook respzoo_tempaltes; known are respzoo_find, respzoo_templates"),
        (WrongArguments(), "modle"),
        (object(), "it has no hook"),
    ],
    ids=["raises", "no family", "not iterable", "unknown hook", "wrong arguments", "no hook"],
)
def test_a_broken_plugin_is_recorded_and_the_others_work(
    plugin: object, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "respzoo"):
        found = plugins(good=Templates([family("a")]), bad=plugin, late=Templates([family("z")]))
        assert {"a", "z"} <= found.families.keys()
    (broken,) = found.broken
    assert broken.plugin == "bad"
    assert broken.version == "1.0"
    assert error in broken.error
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("plugin 'bad' 1.0 skipped: ")


@pytest.mark.parametrize(
    ("rule", "error"),
    [(explode, "boom"), (lambda *_: "nobody", "'nobody', which is no family"), (lambda *_: 3, "3, which is no family")],
    ids=["raises", "unknown name", "wrong type"],
)
def test_a_broken_rule_leaves_the_answer_to_others(rule: Callable[..., Any], error: str) -> None:
    found = plugins(good=Find(lambda *_: family("a")), bad=Find(rule))
    for _ in range(2):
        answer = found.find("m", None, {})
        assert answer is not None
        assert answer[1] == "good"
    (broken,) = found.broken  # said once
    assert error in broken.error


def distribution(folder: Path, name: str, version: str, entry: str) -> None:
    info = folder / f"{name.replace(chr(45), chr(95))}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[respzoo]\n{entry}\n")


def test_entry_points_are_loaded_each_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution(tmp_path, "acme-good", "1.2", "main = acme_good_families:plugin")
    distribution(tmp_path, "acme-raises", "0.3", "main = acme_raises_on_import")
    distribution(tmp_path, "acme-gone", "4", "main = acme_good_families:no_such_thing")
    (tmp_path / "acme_good_families.py").write_text(
        "from pathlib import Path\nfrom respzoo.plugins import TemplateFolder\n"
        "plugin = TemplateFolder(Path(__file__).parent / 'families')\n"
    )
    (tmp_path / "acme_raises_on_import.py").write_text("raise SystemError('half installed')\n")
    write_family(tmp_path / "families" / "acme", "models = ['Acme/One-7B']")
    monkeypatch.syspath_prepend(tmp_path)
    found = Plugins()
    found.load_entry_points()
    assert "acme" in found.families
    assert found.owners["acme"] == "acme-good:main"
    assert found.version("acme-good:main") == "1.2"
    assert "acme-good:main" in found.names
    broken = {broken.plugin: broken for broken in found.broken}
    assert broken.keys() == {"acme-raises:main", "acme-gone:main"}
    assert broken["acme-raises:main"].version == "0.3"
    assert broken["acme-raises:main"].error == "SystemError: half installed"
    assert "no_such_thing" in broken["acme-gone:main"].error


@pytest.mark.parametrize(
    ("switch", "off"),
    [
        ("all", {"acme-good:main", "acme-raises:main"}),
        ("1", {"acme-good:main", "acme-raises:main"}),
        ("acme-raises", {"acme-raises:main"}),
        ("acme-good:main, nobody", {"acme-good:main"}),
        ("acme-good:other", set()),
        ("", set()),
        ("respzoo", {"respzoo:curated"}),
    ],
)
def test_plugins_can_be_turned_off(
    switch: str, off: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    distribution(tmp_path, "acme-good", "1.2", "main = acme_good_families:plugin")
    distribution(tmp_path, "acme-raises", "0.3", "main = acme_raises_on_import")
    (tmp_path / "acme_good_families.py").write_text(
        "from pathlib import Path\nfrom respzoo.plugins import TemplateFolder\n"
        "plugin = TemplateFolder(Path(__file__).parent / 'families')\n"
    )
    (tmp_path / "acme_raises_on_import.py").write_text("raise SystemError('half installed')\n")
    write_family(tmp_path / "families" / "acme", "models = ['Acme/One-7B']")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(DISABLE, switch)
    found = Plugins()
    found.load_entry_points()
    assert off <= set(found.disabled)
    assert ("acme" in found.families) == ("acme-good:main" not in off)
    assert ("qwen3" in found.families) == ("respzoo:curated" not in off)
    assert [broken.plugin for broken in found.broken] == ([] if "acme-raises:main" in off else ["acme-raises:main"])
    states = {plugin.name: plugin.state for plugin in found.report()}
    assert {name for name, state in states.items() if state == "disabled"} >= off
    assert len(caplog.records) == len(found.broken)


# ------------------------------------------------------------------------------------------------------------ templates


def test_a_template_that_does_not_load_is_skipped_and_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unreadable() -> Any:
        raise RuntimeError("boom")

    bad = Templates(
        [
            Family(name="bad", template={"fields": 3}, models=("acme/Bad-7B",), marks=(Marks(("<bad>",)),)),
            Family(name="worse", template=unreadable, models=("acme/Worse-7B",)),
            family("good", models=("acme/Good-7B",), marks=(Marks(("<bad>",)), Marks(("<good>",)))),
        ]
    )
    found = plugins(acme=bad)
    monkeypatch.setattr(zoo, "loaded", lambda: found)
    zoo.forget()
    for model, error in (("acme/Bad-7B", r"\$\.fields: expected a dict"), ("acme/Worse-7B", "cannot be read: boom")):
        for _ in range(2):
            with pytest.raises(UnknownModelError, match=f"(?s)its template does not load.*{error}"):
                zoo.get(model, local_files_only=True)
    assert zoo.get("acme/Good-7B").name == "good"
    assert [broken.plugin for broken in found.broken] == ["acme", "acme"]
    lines = [record.getMessage() for record in caplog.records if record.name == "respzoo.plugins"]
    assert len(lines) == 2
    assert lines[0].startswith("plugin 'acme' 1.0 skipped: response template 'bad' has ")
    zoo.forget()


def test_the_template_of_a_stranger_is_examined() -> None:
    hostile = Family(name="hostile", template=HOSTILE)
    found = plugins(**{"acme-respzoo:acme": Templates([hostile])})
    ours = plugins(**{"respzoo:curated": Templates([hostile])})
    assert ours.compile(hostile, "why").spec == HOSTILE
    for trust in ((), ("hostil", "acme", "respzoo")):
        with pytest.raises(TemplateError, match="refused in an untrusted template: an unbounded repeat inside another"):
            found.compile(hostile, "why", trust=trust)
    for name in ("hostile", "acme-respzoo", "acme-respzoo:acme"):
        assert found.compile(hostile, "why", trust={name}).spec == HOSTILE
    with pytest.raises(TemplateError):  # to have trusted it once is not to trust it for ever
        found.compile(hostile, "why")


def test_a_familys_name_is_trusted_by_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found = plugins(acme=Templates([Family(name="hostile", template=HOSTILE, models=("acme/Hostile",))]))
    monkeypatch.setattr(zoo, "loaded", lambda: found)
    monkeypatch.setattr("respzoo.plugins.loaded", lambda: found)
    zoo.forget()
    with pytest.raises(UnknownModelError, match="refused in an untrusted template"):
        zoo.get("acme/Hostile", local_files_only=True)
    with pytest.raises(TemplateError, match="refused in an untrusted template"):
        zoo.get("x/y", template="hostile")
    assert zoo.get("x/y", template="hostile", trust="hostile").spec == HOSTILE
    assert zoo.get("x/y", template=HOSTILE).spec == HOSTILE, "what the caller gives is the caller's own"
    monkeypatch.setenv(ENVIRONMENT, "acme/other,hostile")
    assert zoo.get("acme/Hostile", local_files_only=True).spec == HOSTILE
    assert zoo.get("x/y", template="hostile").spec == HOSTILE
    zoo.forget()


def test_the_report(tmp_path: Path) -> None:
    write_family(tmp_path / "acme", "models = ['Acme/One-7B']\nid_patterns = ['one-(']")
    write_family(tmp_path / "half", spec={"fields": 3})
    write_family(tmp_path / "wrong", "modles = []")
    found = plugins(folder=TemplateFolder(tmp_path), rules=Find(lambda *_: None), bad=UnknownHook())
    rows = {plugin.name: plugin for plugin in found.report()}
    assert rows.keys() == {"folder", "rules", "bad"}
    assert rows["rules"] == Plugin("rules", "1.0", "used", ("respzoo_find",), (), ())
    assert rows["bad"].state == "broken"
    assert rows["bad"].hooks == ()
    assert rows["folder"].families == ("acme", "half")
    assert rows["folder"].state == "broken"
    text = "\n".join(rows["folder"].errors)
    for part in ("unknown key modles", "'half' has ", "an id pattern of family acme is no regular expression"):
        assert part in text
    assert len(rows["folder"].errors) == 3


def test_the_report_of_this_process() -> None:
    rows = {plugin.name: plugin for plugin in report()}
    curated = rows["respzoo:curated"]
    assert curated.state == "used"
    assert curated.errors == ()
    assert {"qwen3", "gpt_oss"} <= set(curated.families)


# -------------------------------------------------------------------------------------------------------------- clash


def test_two_plugins_with_one_family_name() -> None:
    found = plugins(one=Templates([family("a")]), two=Templates([family("a")]))
    with pytest.raises(PluginError, match=r"two plugins bring a family 'a': (one|two) 1\.0 and (one|two) 1\.0"):
        _ = found.families


def test_two_families_with_one_exact_id() -> None:
    one = Templates([family("a", models=("Acme/One-7B",))])
    two = Templates([family("b", models=("acme/ONE-7b",))])
    found = plugins(one=one, two=two)
    with pytest.raises(PluginError, match="claim the model") as caught:
        _ = found.ids
    for side in ("'a' of one 1.0", "'b' of two 1.0"):
        assert side in str(caught.value)
    with pytest.raises(PluginError, match=r"'a' of one 1\.0 and 'b' of two 1\.0"):
        found.listed("ACME/one-7B")
    assert found.listed("acme/other") is None


def test_an_exact_id_reads_no_more_than_it_needs(tmp_path: Path) -> None:
    write_family(tmp_path / "one", "models = ['Acme/One-7B']")
    write_family(tmp_path / "two", "models = ['Acme/Two-7B']\nnotes = 'not acme/one-7b'")
    write_family(tmp_path / "broken", "modles = ['Acme/Three-7B']")
    found = plugins(folder=TemplateFolder(tmp_path))
    one = found.listed("acme/ONE-7b")
    assert one is not None
    assert one.name == "one"
    assert found.broken == [], "nothing else was read"
    assert found.owner(one) == "folder"
    assert found.listed("acme/three-7b") is None
    assert "modles" in found.broken[0].error
    assert found.families["one"] is one


def test_two_folders_with_one_exact_id(tmp_path: Path) -> None:
    write_family(tmp_path / "1" / "a", "models = ['Acme/One-7B']")
    write_family(tmp_path / "2" / "b", "models = ['acme/one-7b']")
    found = plugins(one=TemplateFolder(tmp_path / "1"), two=TemplateFolder(tmp_path / "2"))
    with pytest.raises(PluginError, match=r"'a' of one 1\.0 and 'b' of two 1\.0"):
        found.listed("Acme/One-7B")


def test_one_plugin_may_repeat_its_own_id() -> None:
    assert len(plugins(one=Templates([family("a", models=("Acme/X", "acme/x"))])).ids) == 1


# -------------------------------------------------------------------------------------------------------------- pins


def test_what_can_pin_a_template(tmp_path: Path) -> None:
    template = loaded().compile(loaded().families["qwen3"], "test")
    assert load_template(template, source="s") is template
    assert load_template(SPEC, source="s").spec == SPEC
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(SPEC))
    assert load_template(file, source="s").source == f"s: {file}"
    assert load_template(str(file), source="s").name == "mine"
    folder = write_family(tmp_path / "acme")
    assert load_template(folder, source="s").spec == SPEC
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "tokenizer_config.json").write_text(json.dumps({"response_template": SPEC, "x": 1}))
    assert load_template(checkpoint, source="s").spec == SPEC
    assert load_template("gpt_oss", source="s").name == "gpt_oss"


def test_what_cannot(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="not int"):
        load_template(3, source="s")
    with pytest.raises(UnknownModelError, match=r"no family 'qwen33'; known are .*near names: qwen3"):
        load_template("qwen33", source="s")
    with pytest.raises(UnknownModelError, match=r"there is no .*missing\.json"):
        load_template(tmp_path / "missing.json", source="s")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(TemplateError, match="not JSON"):
        load_template(tmp_path / "bad.json", source="s")
    (tmp_path / "wrong.json").write_text('{"fields": 3}')
    with pytest.raises(TemplateError, match="start_anchor"):
        load_template(tmp_path / "wrong.json", source="s")
