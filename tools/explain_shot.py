"""The README's picture of `respzoo explain --html`: python tools/explain_shot.py

Writes docs/explain.png with whatever Chromium is on the path.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from browser import chromium

ROOT = Path(__file__).resolve().parents[1]
REPLY = """<think>
They want the weather in Paris.
</think>

Let me look.
<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris", "days": }}
</tool_call>
<tool_call>
{"name": "get_time", "arguments": {}}
</tool_call>"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        reply, page = Path(folder, "reply.txt"), Path(folder, "explain.html")
        reply.write_text(REPLY, "utf-8")
        command = [sys.executable, "-m", "respzoo", "explain", str(reply), "-m", "Qwen/Qwen3-8B", "--html", str(page)]
        subprocess.run(command, check=False)  # exit code 1: there is something to explain
        picture = ROOT / "docs" / "explain.png"
        chromium(page, f"--screenshot={picture}", "--window-size=880,760", "--hide-scrollbars")
        print(f"wrote {picture.relative_to(ROOT)}, {picture.stat().st_size} bytes")


if __name__ == "__main__":
    main()
