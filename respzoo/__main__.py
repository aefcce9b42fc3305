"""`python -m respzoo` is `respzoo`."""

from __future__ import annotations

from respzoo.cli import main

if __name__ == "__main__":
    main()
