"""The programs that render conversations and are not ours: where they come from, and what is taken out of them.

Small ones are in the `test` extra. Of the others a single file is wanted, so their distributions are fetched by pip into
.cache/truth, kept there, and never installed.
"""

from __future__ import annotations

import gzip
import importlib.util
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "truth"

TRL = "trl==1.16.0"
LLAMA_CPP = "llama-cpp-python==0.3.36"  # carries llama.cpp with models/templates
SGLANG = "sglang==0.5.23"
BPE_OPENAI = "bpe-openai==0.1.4"  # carries o200k_base, which openai-harmony would fetch from the network
VLLM = "0.33.0"

sys.path.insert(0, str(ROOT / "tools" / "vllm_cpu"))


def distribution(requirement: str, *, source: bool = False) -> Path:
    """The wheel, or the source archive, of one pinned requirement."""
    name, _, version = requirement.replace("-", "_").partition("==")
    pattern = f"{name}-{version}.tar.gz" if source else f"{name}-{version}-*.whl"
    if not list(CACHE.glob(pattern)):
        which = ["--no-binary", ":all:"] if source else ["--only-binary", ":all:"]
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps"]
            # For an archive pip asks the build backend for metadata, which has build requirements of its own; those may
            # well be wheels, so only this one distribution is asked for as source.
            which = ["--no-binary", name] if source else which
            subprocess.run([*command, *which, "--dest", folder, requirement], check=True)
            (found,) = Path(folder).glob(pattern)
            found.replace(CACHE / found.name)
    (found,) = CACHE.glob(pattern)
    return found


@cache
def trl_templates() -> dict[str, str]:
    """trl's chat templates, which are upstream's to the byte."""
    with zipfile.ZipFile(distribution(TRL)) as wheel:
        names = [
            name for name in wheel.namelist() if name.startswith("trl/chat_templates/") and name.endswith(".jinja")
        ]
        return {Path(name).stem: wheel.read(name).decode() for name in names}


@cache
def llama_cpp_templates() -> dict[str, str]:
    """Chat templates as llama.cpp keeps them to test its own parsers with."""
    folder = CACHE / LLAMA_CPP
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(distribution(LLAMA_CPP, source=True)) as archive:
            for member in archive:
                if "/models/templates/" in member.name and member.name.endswith(".jinja"):
                    file = archive.extractfile(member)
                    assert file is not None
                    (folder / Path(member.name).name).write_bytes(file.read())
        (folder / "complete").touch()
    return {file.stem: file.read_text("utf-8") for file in sorted(folder.glob("*.jinja"))}


@cache
def vllm_module(path: str) -> ModuleType:
    """One of vLLM's files that needs nothing else of vLLM, such as `tokenizers/deepseek_v4_encoding.py`."""
    releases = load(ROOT / "tools" / "vllm_cpu" / "releases.py")
    return load(releases.fetch(VLLM) / "vllm" / path)


@cache
def sglang_module(path: str) -> ModuleType:
    """The same of SGLang."""
    target = CACHE / SGLANG / path
    if not target.exists():
        with zipfile.ZipFile(distribution(SGLANG)) as wheel:
            text = wheel.read(f"sglang/{path}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text)
    return load(target)


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"truth_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def harmony_vocabulary() -> None:
    """Puts o200k_base where openai-harmony looks before it asks the network; it checks the file's hash."""
    file = CACHE / "o200k_base.tiktoken"
    if not file.exists():
        with zipfile.ZipFile(distribution(BPE_OPENAI)) as wheel:
            text = gzip.decompress(wheel.read("bpe_openai/data/o200k_base.tiktoken.gz"))
        file.write_bytes(text)
    os.environ["TIKTOKEN_ENCODINGS_BASE"] = str(CACHE)
