"""Which interpreters can use the library: what it calls runs in the main one."""

from __future__ import annotations

import importlib
from typing import Any

from . import _once

_once.refuse_reload(globals())


def _is_main() -> bool:
    # As 3.13 calls it, and before.
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            interpreters: Any = importlib.import_module(name)
        except ImportError:
            continue
        current, main = interpreters.get_current(), interpreters.get_main()
        return bool(current == main)
    return True


if not _is_main():
    raise ImportError("imgdl works in the main interpreter alone: this is another one")
