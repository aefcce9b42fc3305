"""What holds for all tests: helpers beside them are importable, and hypothesis is the same on every machine."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

from examples import ASKED

# Other work on a machine is not our slowness: an example has no deadline, nor has the making of examples.
settings.register_profile(
    "respzoo", derandomize=not ASKED, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("respzoo")
