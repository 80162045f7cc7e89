"""Pictures that are in memory already: `decode`, and `Decoder` for those that come in pieces."""

from __future__ import annotations

import ctypes
import threading
import weakref
from typing import TYPE_CHECKING, Any, Optional, TypedDict, Union

from . import _native, _options
from .errors import Code, check, error, last_error
from .image import Image, ImageInfo, info_from

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .coder import Coder

    class DecodeKeywords(TypedDict, total=False):
        pixel_format: Optional[str]
        ignore_orientation: bool
        salvage: bool
        max_pixels: Optional[int]
        size: Optional[tuple[Optional[int], Optional[int]]]
        stretch: bool
        scale_down: Union[bool, int]
        all_frames: bool
        require_animation: bool
        max_frames: Optional[int]
        format_hint: Optional[str]
        coder: Optional[Coder]


Buffer = Union[bytes, bytearray, memoryview]
"""Anything with the buffer protocol does."""


def _borrow(data: Any) -> tuple[Any, int]:
    """An argument for a C pointer, and the length; not copied where Python lets its memory be had."""
    if isinstance(data, bytes):
        return data, len(data)
    view = memoryview(data)
    if view.contiguous and not view.readonly and view.nbytes:
        return (ctypes.c_ubyte * view.nbytes).from_buffer(view), view.nbytes
    copy = view.tobytes()
    return copy, len(copy)


def _finished(code: int, image: Any) -> Image:
    """Of a call that gives an image, on failure too where the pixels that could be had were asked for."""
    picture = Image._adopt(image.value) if image.value else None
    if code:
        raise last_error(code, image=picture)
    assert picture is not None
    return picture


def decode(
    data: Buffer,
    **options: Unpack[DecodeKeywords],
) -> Image:
    """Decodes a whole picture: JPEG, PNG, WebP or GIF, told by its content.

    pixel_format        "rgba8" (the default), "rgba8_premultiplied", "bgra8" or "bgra8_premultiplied"
    ignore_orientation  leave the picture as stored, whatever its EXIF orientation says
    salvage             a cut or broken picture is still an error, but its `image` holds what could be had
    max_pixels          width × height in the file at most, 100 000 000 by default
    size                (width, height): decode to a size that fits into this box, never enlarged; None: a free side
    stretch             exactly `size`, whatever the picture's own proportions
    scale_down          True, or bytes: large pictures come smaller, so that all decoded frames together fit into these,
                        60 MiB by default
    all_frames          every frame of an animation, not the first alone: see `Image.frames`
    require_animation   a picture of one frame is an error
    max_frames          1000 by default
    format_hint         "jpeg", "png", "webp" or "gif", for data whose beginning does not tell
    coder               what `register_coder` gave: decode with this codec and no other

        thumbnail = imgdl.decode(data, size=(256, 256))
    """
    given = _options.decode_options(**options)
    pointer, length = _borrow(data)
    image = ctypes.c_void_p()
    code = _native.imgdl_decode(pointer, length, given, image)
    return _finished(code, image)


class Decoder:
    """Decodes a picture that comes in pieces: feed, feed …, finish. Whatever the pieces, the result is that of
    `decode`, and so are the options.

    May be used from any thread; calls wait for each other.
    """

    def __init__(self, **options: Unpack[DecodeKeywords]) -> None:
        decoder = ctypes.c_void_p()
        check(_native.imgdl_decoder_create(_options.decode_options(**options), decoder))
        assert decoder.value
        self._handle = decoder.value
        self._lock = threading.Lock()
        self._finalizer = weakref.finalize(self, _native.imgdl_decoder_destroy, self._handle)

    def _live(self) -> int:
        if not self._finalizer.alive:
            raise error(Code.INVALID_HANDLE, "the decoder is closed")
        return self._handle

    def feed(self, data: Buffer) -> None:
        """The next bytes. Missing bytes are no error; what is broken is, and stays so."""
        pointer, length = _borrow(data)
        with self._lock:
            check(_native.imgdl_decoder_feed(self._live(), pointer, length))

    @property
    def info(self) -> Optional[ImageInfo]:
        """What the picture's header tells; None while it is not complete."""
        info = _native.imgdl_image_info()
        _native.imgdl_image_info_init(info, ctypes.sizeof(info))
        with self._lock:
            code = _native.imgdl_decoder_info(self._live(), info)
            if code == Code.NOT_READY:
                return None
            check(code)
        return info_from(info)

    def partial(self) -> Optional[Image]:
        """The picture so far; None when there is nothing that the last call did not show."""
        image = ctypes.c_void_p()
        with self._lock:
            code = _native.imgdl_decoder_partial(self._live(), image)
            if code == Code.NOT_READY:
                return None
            return _finished(code, image)

    def finish(self) -> Image:
        """No more bytes will come."""
        image = ctypes.c_void_p()
        with self._lock:
            return _finished(_native.imgdl_decoder_finish(self._live(), image), image)

    def close(self) -> None:
        """Any number of times; images it gave live on."""
        with self._lock:
            self._finalizer()

    def __enter__(self) -> Decoder:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
