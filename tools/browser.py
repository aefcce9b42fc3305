"""Chromium without a window, whatever it is called here."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")


def chromium(page: Path, *options: str) -> str:
    """Open a local page. Returns what the browser printed."""
    binary = next((found for name in NAMES if (found := shutil.which(name))), None)
    assert binary is not None, (
        f"no browser on the path, none of {', '.join(NAMES)}: make browser (Debian), or install one"
    )
    with tempfile.TemporaryDirectory() as profile:
        basics = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        alone = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        command = [binary, *basics, *alone, f"--user-data-dir={profile}", *options, page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
