"""The curated zoo: a plugin, and data. One folder is one family; registry/README.md says how to add one."""

from importlib.resources import files

from respzoo.plugins import TemplateFolder

__all__ = ["plugin"]

plugin = TemplateFolder(files(__name__))
