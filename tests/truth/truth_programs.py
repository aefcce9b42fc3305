"""The programs that render conversations and are not ours: where they come from, and what is taken out of them.

Small ones are in the `test` extra. Of the others a single file is wanted, so their distributions are fetched by pip into
.cache/truth, kept there, and never installed.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import subprocess
import sys
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
AXOLOTL = "axolotl==0.19.0"
XINFERENCE = "xinference==4.1.0"
BPE_OPENAI = "bpe-openai==0.1.4"  # carries o200k_base, which openai-harmony would fetch from the network
VLLM = "0.33.0"

sys.path.insert(0, str(ROOT / "tools" / "vllm_cpu"))


def pip_download(requirement: str, *options: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps"]
    environment = {**os.environ, "TMPDIR": str(folder)}
    command += [*options, "--dest", str(folder), requirement]
    return subprocess.run(command, check=False, env=environment, capture_output=True, text=True)


def keep(file: Path, content: bytes) -> None:
    """Write a file at once: other processes of the same run look for it, too."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=CACHE, delete=False) as whole:
        whole.write(content)
    Path(whole.name).replace(file)


def wheel(requirement: str) -> Path:
    """The wheel of one pinned requirement."""
    pattern = f"{requirement.replace('-', '_').replace('==', '-')}-*.whl"
    if not list(CACHE.glob(pattern)):
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            done = pip_download(requirement, "--only-binary", ":all:", folder=Path(folder))
            assert done.returncode == 0, f"no wheel of {requirement}: {done.stderr}"
            (found,) = Path(folder).glob(pattern)
            found.replace(CACHE / found.name)
    (found,) = CACHE.glob(pattern)
    return found


def sources(requirement: str, pattern: str) -> dict[str, str]:
    """Text files out of the source distribution of one pinned requirement, by their names' stems.

    pip unpacks it and then asks its build backend for metadata. That fails, or not, for want of what building it needs;
    the files are there by then.
    """
    kept = CACHE / requirement
    if not (kept / "complete").exists():
        kept.mkdir(parents=True, exist_ok=True)
        name = requirement.partition("==")[0]
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            options = ["--no-binary", name, "--no-build-isolation", "--no-clean"]
            done = pip_download(requirement, *options, folder=Path(folder))
            found = list(Path(folder).glob(f"pip-*/{name}_*/{pattern}"))
            assert found, f"no sources of {requirement}: {done.stderr}"
            for file in found:
                keep(kept / file.name, file.read_bytes())
        (kept / "complete").touch()
    return {file.stem: file.read_text("utf-8") for file in sorted(kept.glob(Path(pattern).name))}


@cache
def trl_templates() -> dict[str, str]:
    """trl's chat templates, which are upstream's to the byte."""
    with zipfile.ZipFile(wheel(TRL)) as archive:
        names = [
            name for name in archive.namelist() if name.startswith("trl/chat_templates/") and name.endswith(".jinja")
        ]
        return {Path(name).stem: archive.read(name).decode() for name in names}


@cache
def llama_cpp_templates() -> dict[str, str]:
    """Chat templates as llama.cpp keeps them to test its own parsers with."""
    return sources(LLAMA_CPP, "vendor/llama.cpp/models/templates/*.jinja")


@cache
def vllm_templates() -> dict[str, str]:
    """Chat templates that vLLM gives as examples, for models whose own say nothing of tools."""
    found = sources(f"vllm=={VLLM}", "examples/tool_chat_template_*.jinja")
    return {name.removeprefix("tool_chat_template_"): text for name, text in found.items()}


@cache
def axolotl_templates() -> dict[str, str]:
    """Chat templates that axolotl trains with."""
    with zipfile.ZipFile(wheel(AXOLOTL)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".jinja")]
        return {Path(name).stem: archive.read(name).decode() for name in names}


@cache
def xinference_templates() -> dict[str, str]:
    """Chat templates of the models that xinference serves."""
    found: dict[str, str] = {}
    with zipfile.ZipFile(wheel(XINFERENCE)) as archive:
        for name in archive.namelist():
            if name.startswith("xinference/model/llm/models/") and name.endswith(".json"):
                model = json.loads(archive.read(name))
                model = model[0] if isinstance(model, list) else model
                if text := model.get("chat_template"):
                    found[Path(name).stem] = text
    return found


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
        with zipfile.ZipFile(wheel(SGLANG)) as archive:
            text = archive.read(f"sglang/{path}")
        keep(target, text)
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
        with zipfile.ZipFile(wheel(BPE_OPENAI)) as archive:
            text = gzip.decompress(archive.read("bpe_openai/data/o200k_base.tiktoken.gz"))
        keep(file, text)
    os.environ["TIKTOKEN_ENCODINGS_BASE"] = str(CACHE)
