"""Memory of the library that Python looks at."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Optional

# One type for memory of any size. A type for each size would cost more to make than all else about a view; nobody sees
# more than the slice.
_Memory = ctypes.c_ubyte * sys.maxsize


class Reference:
    """One reference to an image or a body of the library. Views of its memory hold it."""

    __slots__ = ("handle", "_release")

    def __init__(self, handle: int, release: Any) -> None:
        self.handle = handle
        self._release = release

    def __del__(self) -> None:
        # An interrupt may have struck before it had its handle.
        if hasattr(self, "_release"):
            self._release(self.handle)

    def view(self, address: Optional[int], size: int) -> memoryview:
        """The memory, which lives as long as any view or slice of it."""
        if not size or not address:
            return memoryview(b"")
        memory = _Memory.from_address(address)
        memory.owner = self  # type: ignore[attr-defined]
        return memoryview(memory).cast("B")[:size].toreadonly()
