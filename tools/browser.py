"""Chromium without a window, whatever it is called here: python tools/browser.py says which (none: exit code 1)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")


def found() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def chromium(page: Path, *options: str) -> str:
    """Open a local page. Returns what the browser printed."""
    binary = found()
    assert binary is not None, (
        f"no browser on the path, none of {', '.join(NAMES)}: make browser (Debian), or install one"
    )
    with tempfile.TemporaryDirectory() as profile:
        basics = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        alone = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        command = [binary, *basics, *alone, f"--user-data-dir={profile}", *options, page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


if __name__ == "__main__":
    print(found() or f"no browser on the path, none of {', '.join(NAMES)}")
    sys.exit(found() is None)
