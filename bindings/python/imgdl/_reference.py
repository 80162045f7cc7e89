"""What the library gives: references that are given back, whatever happens; and memory of it that Python looks at."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, ClassVar, Optional

from . import _native, _once
from ._callbacks import finalizer

_once.refuse_reload(globals())

# One type for memory of any size. A type for each size would cost more to make than all else about a view; nobody sees
# more than the slice.
_Memory = ctypes.c_ubyte * sys.maxsize


class Reference(ctypes.c_void_p):
    """One reference to something of the library, from the moment in which C writes or returns it: between a number that C
    has written and an object made of it, an interrupt would strike, and nobody would give it back.

    Made before the call, it is what C writes to. As the result of a function of C it comes from there.
    """

    _give_back: ClassVar[Any]
    copy: Optional[bytes] = None
    """Of its memory, made once. It goes with the reference: who closes an object while another thread copies leaves none."""

    def release(self) -> None:
        """At once, and not when this is let go. Any number of times."""
        handle, self.value = self.value, None
        # An interrupt does not come between.
        if handle:
            self._give_back(handle)

    @finalizer
    def let_go(self) -> None:
        """As `release`, and an interrupt that strikes here is raised later."""
        self.release()

    __del__ = let_go


class ImageReference(Reference):
    """Views of its memory hold it."""

    _give_back = _native.imgdl_image_release


class DataReference(Reference):
    """Views of its memory hold it."""

    _give_back = _native.imgdl_data_release


class DecoderReference(Reference):
    _give_back = _native.imgdl_decoder_destroy


class ExecutorReference(Reference):
    _give_back = _native.imgdl_executor_release


class DownloaderReference(Reference):
    """Released where the downloader is the shared one, or was never closed; otherwise `State` destroys it."""

    _give_back = _native.imgdl_downloader_release


class HooksReference(Reference):
    _give_back = _native.imgdl_hooks_release


class CacheReference(Reference):
    _give_back = _native.imgdl_cache_release


class CoderReference(Reference):
    _give_back = _native.imgdl_coder_release


class TokenReference(Reference):
    _give_back = _native.imgdl_token_release


class BatchReference(Reference):
    _give_back = _native.imgdl_batch_release


retain_image = _native.giving("imgdl_image_retain", ImageReference)
retain_data = _native.giving("imgdl_data_retain", DataReference)
retain_token = _native.giving("imgdl_token_retain", TokenReference)


def view(reference: Reference, address: Optional[int], size: int) -> memoryview:
    """The memory at the address, which lives as long as any view or slice of it, with the reference."""
    if not size or not address:
        return memoryview(b"")
    memory = _Memory.from_address(address)
    memory.owner = reference  # type: ignore[attr-defined]
    return memoryview(memory).cast("B")[:size].toreadonly()
