"""`respzoo new`: what it writes holds together as it is written, installed in a clean environment by itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from respzoo.audit import audit
from respzoo.cli import app
from respzoo.plugins import Plugins, TemplateFolder, loaded, read_family
from respzoo.testing import check_family, load_samples

ROOT = Path(__file__).resolve().parents[1]
runner = CliRunner()


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def run(*arguments: str, code: int = 0) -> Any:
    result = runner.invoke(app, ["new", *arguments])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def test_a_family_as_it_is_written(tmp_path: Path) -> None:
    output = run("acme_one", "--model", "acme/Acme-One-7B-Chat", "--into", str(tmp_path)).stdout
    assert f"respzoo check {tmp_path / 'acme_one'}" in " ".join(output.split("\n"))
    family = read_family(tmp_path / "acme_one")
    assert family.models == ("acme/Acme-One-7B-Chat",)
    assert family.match_name("acme-one-70b-chat")
    assert family.match_name("acme-one-1.5b-chat-2607")
    assert not family.match_name("acme-two-7b-chat")
    assert check_family(family) == []
    assert [one for one in audit(family, loaded()) if one.level != "note"] == []
    tags = [tag for sample in load_samples(tmp_path / "acme_one" / "samples.jsonl") for tag in sample.record["tags"]]
    assert {"truncated", "malformed", "marker-in-arguments", "empty-arguments", "unicode", "parallel-calls"} <= set(
        tags
    )


def test_in_a_clone_it_lands_in_the_zoo_and_names_its_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zoo = tmp_path / "registry" / "respzoo_curated"
    zoo.mkdir(parents=True)
    plugins = Plugins()
    plugins.register(TemplateFolder(zoo), "acme:zoo")
    monkeypatch.setattr("respzoo.cli.new.loaded", lambda: plugins)
    (tmp_path / "respzoo").mkdir()
    (tmp_path / "respzoo" / "family.schema.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    told = json.loads(run("acme_one", "-m", "acme/One-7B", "--json").stdout)
    folder = Path(told["folder"])
    assert folder == Path("registry/respzoo_curated/acme_one")
    first = (folder / "family.toml").read_text().splitlines()[0]
    assert first == "#:schema ../../../respzoo/family.schema.json"
    assert (folder / first.removeprefix("#:schema ")).resolve().is_file()


def test_where_no_installed_plugin_has_its_clone_it_lands_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert json.loads(run("acme_one", "-m", "acme/One-7B", "--json").stdout)["folder"] == "acme_one"
    within = tmp_path / "env" / "zoo"  # installed, though below the folder at hand
    within.mkdir(parents=True)
    plugins = Plugins()
    plugins.register(TemplateFolder(within), "acme:zoo")
    monkeypatch.setattr("respzoo.cli.new.loaded", lambda: plugins)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    assert json.loads(run("acme_two", "-m", "acme/Two-7B", "--json").stdout)["folder"] == "acme_two"


def test_a_model_that_is_known_already_is_said(tmp_path: Path) -> None:
    output = run("acme_one", "-m", "Qwen/Qwen3-8B", "--into", str(tmp_path)).stdout
    assert "note: Qwen/Qwen3-8B has a template, qwen3" in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Acme-One", "-m", "acme/One"], "is not lower case letters, digits and underscores"),
        (["acme_one", "-m", "One"], "is not of the form organisation/name"),
        (["taken", "-m", "acme/One"], "is there already"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "taken").mkdir()
    result = run(*arguments, "--into", str(tmp_path), code=2)
    assert words in " ".join(result.stderr.replace("│", " ").split())


def test_a_plugin_installs_and_passes_its_own_tests(tmp_path: Path) -> None:
    """In an environment that has nothing but the package, this checkout of respzoo, pytest and what they depend on."""
    run("acme_one", "--model", "acme/One-7B", "--plugin", "--into", str(tmp_path))
    package = tmp_path / "acme-one-respzoo"
    tomllib.loads((package / "pyproject.toml").read_text())
    venv.create(tmp_path / "env", system_site_packages=False)
    python = tmp_path / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile"]
    subprocess.run([*install, str(ROOT), f"{package}[test]"], check=True)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "RESPZOO"))}
    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=package,
        env={**clean, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
