"""Do something to a module once it is imported, and import nothing for it.

vLLM calls its plugins in every process, in workers that parse no text as well. What the plug changes lies in modules
that cost a worker seconds to import (they take the openai package with them), so that it waits until somebody who needs
them imports them.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["when_imported"]

Act = Callable[[ModuleType], None]


class _Watcher(MetaPathFinder):
    """Stands before the other finders as long as a module is waited for, and finds what they find."""

    def __init__(self) -> None:
        self.waiting: dict[str, Act] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        act = self.waiting.get(fullname)
        if act is None:
            return None
        spec = next((found for finder in sys.meta_path if (found := _ask(finder, fullname, path, target))), None)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if self.waiting.pop(fullname, None) is not None:
                _do(act, module)
            if not self.waiting and self in sys.meta_path:
                sys.meta_path.remove(self)

        spec.loader.exec_module = exec_module
        return spec


_watcher = _Watcher()


def _ask(finder: Any, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
    return None if finder is _watcher else finder.find_spec(name, path, target)


def _do(act: Act, module: ModuleType) -> None:
    try:
        act(module)
    except Exception:  # noqa: BLE001  (whoever imports the module has nothing to do with it)
        logging.getLogger("vllm.respzoo").exception("respzoo could not be plugged into %s", module.__name__)


def when_imported(name: str, act: Act) -> None:
    """Call `act` with the module of that name: now if it is there, else right after somebody has imported it. It may
    raise nothing: what it raises is logged."""
    module = sys.modules.get(name)
    if module is not None:
        _do(act, module)
        return
    _watcher.waiting[name] = act
    if _watcher not in sys.meta_path:
        sys.meta_path.insert(0, _watcher)
