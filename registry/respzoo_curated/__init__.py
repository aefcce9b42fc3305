"""The curated zoo: a plugin, and data. One folder is one family; registry/README.md says how to add one."""

from pathlib import Path

from respzoo.plugins import TemplateFolder

__all__ = ["plugin"]

plugin = TemplateFolder(Path(__file__).parent)  # importlib.resources would take longer to import than all of this
