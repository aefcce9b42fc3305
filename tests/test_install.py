"""A template into a checkpoint: one member of one file, every other byte as it was, or nothing at all."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from respzoo import zoo
from respzoo.cli import app
from respzoo.export import export
from respzoo.install import CONFIG, InstallError, prepare
from respzoo.plugins import loaded

TEMPLATE: dict[str, Any] = {"start_anchor": "<é>", "fields": {"content": {}}}
runner = CliRunner()

FORMS = {
    "indented": '{\n  "a": 1,\n  "b": [1e30, 1.50, -0.0],\n  "z": null\n}\n',
    "four spaces": '{\n    "a": {"x": 1}\n}',
    "tabs": '{\n\t"a": 1\n}\n',
    "windows": '{\r\n  "a": 1\r\n}\r\n',
    "one line": '{"a": 1, "b": "\\u00e9"}',
    "odd": '  { "a" :1 ,\n "b": "}" }  \n',
    "empty": "{}",
    "numbers": '{\n  "model_max_length": 1000000000000000019884624838656,\n  "nan": NaN,\n  "x": 1E5\n}',
    "surrogates": '{\n  "a": "\\ud83d"\n}',
    "twice": '{\n  "a": 1,\n  "a": 2\n}',
}


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv(zoo.PIN, raising=False)
    zoo.forget()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "Qwen3-8B"
    folder.mkdir()
    (folder / CONFIG).write_text('{\n  "tokenizer_class": "Qwen2Tokenizer",\n  "model_max_length": 131072\n}\n')
    return folder


def run(*arguments: str, code: int = 0) -> Any:
    result = runner.invoke(app, ["install", *arguments])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_every_other_byte_stays(tmp_path: Path, text: str) -> None:
    file = tmp_path / CONFIG
    file.write_bytes(text.encode())
    change = prepare(tmp_path, TEMPLATE)
    assert not change.replaces
    change.write()
    written = file.read_bytes().decode()
    places = range(len(text) + 1)  # the file as it was, with something put in at one place
    assert any(written.startswith(text[:at]) and written.endswith(text[at:]) for at in places)
    assert json.loads(written)["response_template"] == TEMPLATE
    assert ("\r\n" in written) == ("\r\n" in text)
    again = prepare(tmp_path, TEMPLATE)
    assert again.nothing
    other = {**TEMPLATE, "version": 1}
    prepare(tmp_path, other).write()
    assert json.loads(file.read_text())["response_template"] == other
    prepare(tmp_path, TEMPLATE).write()
    assert file.read_bytes().decode() == written


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1,}', '{"a" 1}', '{"a": 1} x', "{", '{"a": tru}'])
def test_what_is_no_json_object_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / CONFIG).write_text(text)
    with pytest.raises(InstallError, match="cannot be read"):
        prepare(tmp_path, TEMPLATE)
    assert (tmp_path / CONFIG).read_text() == text


def test_a_folder_without_the_file(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="there is no "):
        prepare(tmp_path, TEMPLATE)


def test_a_write_that_fails_leaves_the_file_and_no_other(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (checkpoint / CONFIG).read_text()

    def fail(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        prepare(checkpoint, TEMPLATE).write()
    assert (checkpoint / CONFIG).read_text() == before
    assert [file.name for file in checkpoint.iterdir()] == [CONFIG]


def test_a_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    blob = tmp_path / "blob"
    blob.write_text("{}")
    folder = tmp_path / "snapshot"
    folder.mkdir()
    (folder / CONFIG).symlink_to(blob)
    prepare(folder, TEMPLATE).write()
    assert blob.read_text() == "{}"
    assert json.loads((folder / CONFIG).read_text())["response_template"] == TEMPLATE


def test_the_mode_of_the_file_stays(checkpoint: Path) -> None:
    (checkpoint / CONFIG).chmod(0o640)
    prepare(checkpoint, TEMPLATE).write()
    assert (checkpoint / CONFIG).stat().st_mode & 0o777 == 0o640


# ---------------------------------------------------------------------------------------------------- the command


def test_a_dry_run_shows_and_writes_nothing(checkpoint: Path) -> None:
    before = (checkpoint / CONFIG).read_text()
    output = run(str(checkpoint), "-t", "qwen3", "--dry-run").stdout
    assert '+  "response_template": {' in output
    assert (checkpoint / CONFIG).read_text() == before


def test_it_is_written_and_found_again(checkpoint: Path) -> None:
    output = run(str(checkpoint), "-t", "qwen3").stdout
    assert "wrote " in output
    assert zoo.find(str(checkpoint)).template is not None
    config = json.loads((checkpoint / CONFIG).read_text())
    assert config["response_template"] == loaded().families["qwen3"].spec
    assert list(config) == ["tokenizer_class", "model_max_length", "response_template"]
    assert "has it already" in run(str(checkpoint), "-t", "qwen3").stdout


def test_the_template_is_what_the_zoo_finds(checkpoint: Path) -> None:
    (checkpoint / "config.json").write_text(json.dumps({"_name_or_path": "Qwen/Qwen3-8B"}))
    assert json.loads(run(str(checkpoint), "--json").stdout)["template"] == "qwen3"


def test_another_template_is_kept_unless_forced(checkpoint: Path) -> None:
    run(str(checkpoint), "-t", "qwen3")
    before = (checkpoint / CONFIG).read_text()
    result = run(str(checkpoint), "-t", "qwen3_xml", code=1)
    assert "--force replaces it" in result.stderr
    assert (checkpoint / CONFIG).read_text() == before
    told = json.loads(run(str(checkpoint), "-t", "qwen3_xml", "--force", "--json").stdout)
    assert told["outcome"] == "written"
    assert (
        json.loads((checkpoint / CONFIG).read_text())["response_template"]
        == export(loaded().families["qwen3_xml"].spec, "transformers").spec
    )


def test_the_dialect_is_the_readers(checkpoint: Path) -> None:
    run(str(checkpoint), "-t", "qwen3", "--dialect", "vllm-hf")
    written = json.loads((checkpoint / CONFIG).read_text())["response_template"]
    assert written == export(loaded().families["qwen3"].spec, "vllm-hf").spec


def test_an_id_is_looked_for_in_the_hubs_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    cache = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    assert "is no folder, and the Hub's cache has no" in run("Qwen/Qwen3-8B", code=3).stderr
    snapshot = cache / "models--Qwen--Qwen3-8B" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    refs = cache / "models--Qwen--Qwen3-8B" / "refs"
    refs.mkdir()
    (refs / "main").write_text("abc")
    (snapshot / CONFIG).write_text("{}")
    run("Qwen/Qwen3-8B")
    assert "response_template" in json.loads((snapshot / CONFIG).read_text())


def test_transformers_loads_it_with_the_tokenizer(tmp_path: Path) -> None:
    import transformers
    from tokenizers import Tokenizer, models

    words = ["<think>", "</think>", "Hm.", "Yes."]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="Hm."))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="Hm.")
    fast.save_pretrained(tmp_path)
    run(str(tmp_path), "-t", "qwen3")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    assert again.response_template == loaded().families["qwen3"].spec
    message = again.parse_response("<think>\nHm.\n</think>\n\nYes.", prefix="<|im_start|>assistant\n")
    assert message == {"role": "assistant", "reasoning_content": "Hm.", "content": "Yes."}
