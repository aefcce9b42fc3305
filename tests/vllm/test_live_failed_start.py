"""A server for a model that no template is known for does not start, and says what to do."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest


def test_unknown_model(tmp_path: Path) -> None:
    import checkpoint
    from server import Server

    model = tmp_path / "mystery"
    shutil.copytree(checkpoint.build(), model)
    (model / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    with pytest.raises(RuntimeError, match="the server ended"), Server(sys.executable, model) as running:
        pytest.fail(running.log_tail())
    log = (tmp_path / "server.log").read_text(errors="replace")
    assert "no response template is known for" in log
    assert "mystery" in log
    assert "RESPZOO_TEMPLATE=path" in log
