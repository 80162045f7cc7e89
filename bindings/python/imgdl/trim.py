"""Memory back to the system, when that is short of it."""

from __future__ import annotations

from typing import Literal

from . import _native, _once

_once.refuse_reload(globals())

_LEVELS = {
    "unused": _native.IMGDL_TRIM_UNUSED,
    "connections": _native.IMGDL_TRIM_CONNECTIONS,
    "caches": _native.IMGDL_TRIM_CACHES,
}


def trim(level: Literal["unused", "connections", "caches"] = "unused") -> int:
    """Gives memory back, for all downloaders and caches of the process: how many bytes. No download is disturbed.

    level  what the library is to do without, each with what stands above it:
               "unused"       memory of pictures and bodies that nobody has, handles of transfers that have ended
               "connections"  idle connections
               "caches"       what caches have in memory; what is on disk stays

    What somebody still has leaves the caches and is not counted: its memory goes with the last reference. Nor is what a
    downloader's own thread gives up a moment later, such as connections.

        >>> imgdl.trim("caches") >= 0
        True
    """
    if not isinstance(level, str) or level not in _LEVELS:
        raise ValueError(f"level is {level!r}: it must be one of {', '.join(map(repr, _LEVELS))}")
    return int(_native.imgdl_trim(_LEVELS[level]))
