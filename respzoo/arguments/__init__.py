"""A call's arguments as they are generated: what of their JSON text is certain, piece by piece.

A writer follows one region of calls. What it says of a call is always the beginning of the text that `dump_arguments`
gives for the finished call; it may say less, never anything else, and never the last bracket: that comes with the
region's value, when the call is known to be whole. So a client that stops early holds no call that could be run.
"""

from __future__ import annotations

from respzoo.arguments.call import Call, Way, Writer, dump_arguments

__all__ = ["Call", "Way", "Writer", "dump_arguments"]
