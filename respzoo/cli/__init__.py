"""The command line. `respzoo --help` lists the commands; only this package imports typer and rich."""

from __future__ import annotations

from respzoo.cli.app import app, main

__all__ = ["app", "main"]
