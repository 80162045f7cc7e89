"""Memory of the library that Python looks at."""

from __future__ import annotations

import ctypes
from typing import Any, Optional


class Reference:
    """One reference to an image or a body of the library. Views of its memory hold it."""

    __slots__ = ("handle", "_release")

    def __init__(self, handle: int, release: Any) -> None:
        self.handle = handle
        self._release = release

    def __del__(self) -> None:
        self._release(self.handle)

    def view(self, address: Optional[int], size: int) -> memoryview:
        """The memory, which lives as long as any view or slice of it."""
        if not size or not address:
            return memoryview(b"")
        array = (ctypes.c_ubyte * size).from_address(address)
        array.owner = self  # type: ignore[attr-defined]
        return memoryview(array).cast("B").toreadonly()
