"""Pictures that are in memory already: `decode`, and `Decoder` for those that come in pieces."""

from __future__ import annotations

import ctypes
import threading
import weakref
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _native, _once, _options, _process
from ._callbacks import raise_struck
from ._canvas import Canvas
from ._checks import buffer
from ._later import Later, Unpack
from ._reference import DecoderReference, ImageReference
from .errors import Code, Error, check, error, last_error
from .image import Image, ImageInfo, info_from

_once.refuse_reload(globals())

# Turned round for who drops the names of a block `if TYPE_CHECKING`, as typeguard does.
if not TYPE_CHECKING:
    _keywords = Later("._keywords")
else:
    from . import _keywords

Buffer = Union[bytes, bytearray, memoryview]
"""Anything with the buffer protocol does."""


def _borrow(data: Any) -> tuple[Any, int]:
    """An argument for a C pointer, and the length; not copied where Python lets its memory be had."""
    if isinstance(data, bytes):
        return data, len(data)
    view = buffer(data, "data")
    if view.contiguous and not view.readonly and view.nbytes:
        return (ctypes.c_ubyte * view.nbytes).from_buffer(view), view.nbytes
    copy = view.tobytes()
    return copy, len(copy)


def _image_of(function: Any, *arguments: Any, canvas: Optional[Canvas] = None) -> Optional[Image]:
    """The image that a call of the library gives; None where it has none yet. Wherever an interrupt strikes, it is given
    back."""
    reference = ImageReference()
    problem: Optional[Error] = None
    picture: Optional[Image] = None
    try:
        try:
            code = function(*arguments, reference)
        finally:
            # A traceback would keep them, and a bytearray could not be resized in an `except`.
            del arguments
            if canvas is not None and not reference:
                canvas.take_back()
        raise_struck()
        if canvas is not None:
            canvas.check()
        # On failure, too, where the pixels that could be had were asked for.
        if reference:
            picture = Image._adopt(reference)
        if code not in (Code.OK, Code.NOT_READY):
            problem = last_error(code, image=picture)
    except BaseException:
        reference.release()
        raise
    if problem is not None:
        try:
            raise problem
        finally:
            del problem, picture
    return picture


def decode(
    data: Buffer,
    *,
    into: Optional[Any] = None,
    stride: Optional[int] = None,
    **options: Unpack[_keywords.DecodeKeywords],
) -> Image:
    """Decodes a whole picture: JPEG, PNG, WebP or GIF, told by its content.

    into                memory of yours for the pixels, such as a bytearray or an array of numpy: a buffer that can be
                        written to. One of two or three dimensions has as many rows and bytes in a row as the picture.
                        The image that comes back is there, too, and keeps it: do not write while you use both
    stride              bytes from one row to the next in `into`, where its own shape does not tell them
    pixel_format        "rgba8" (the default), "rgba8_premultiplied", "bgra8", "bgra8_premultiplied", "rgb8" (without
                        alpha) or "rgba16" (16 bits, for sources that have them)
    ignore_orientation  leave the picture as stored, whatever its EXIF orientation says
    salvage             a cut or broken picture is still an error, but its `image` holds what could be had
    max_pixels          width × height in the file at most, 100 000 000 by default
    size                (width, height): decode to a size that fits into this box, never enlarged; None: a free side
    stretch             each side as long as that of `size`, whatever the picture's own proportions; a side that is
                        shorter in the file stays as it is: for arrays of one shape, pad or resize those afterwards
    scale_down          True, or bytes: large pictures come smaller, so that all decoded frames together fit into these,
                        60 MiB by default. It takes the place of the box: `size` and `stretch` are ignored with it
    all_frames          every frame of an animation, not the first alone: see `Image.frames`
    require_animation   a picture of one frame is an error
    max_frames          1000 by default
    format_hint         "jpeg", "png", "webp" or "gif", for data whose beginning does not tell
    coder               what `register_coder` gave: decode with this codec and no other
    colour              "as_stored" (the default) or "srgb": by the file's ICC profile; see `Image.colour_notes`
    max_side            of width and of height, as stored
    max_scans           of a progressive JPEG, 500 by default
    max_animation_pixels
                        of all frames decoded; as many as max_pixels by default
    max_metadata_bytes  EXIF and ICC profile together that are held, a PNG's profile as it is unpacked; by default what is
                        longer than 16 MiB is passed over. EXIF of more than 1 MiB is passed over and not judged
    max_memory_bytes    what decoding takes, EXIF and profile among it, estimated before anything is allocated; 1 GiB by
                        default, imgdl.NO_LIMIT: any
    max_decode_ms       CPU time, 10 000 by default, imgdl.NO_LIMIT: any
    thumbnail_first     the first partial image of a JPEG is the thumbnail in its EXIF, as large as the picture
    good_enough_scan    of a progressive JPEG: see `Image.is_good_enough`

        >>> imgdl.decode(data, size=(256, 256))
        <imgdl.Image 256×171 png rgba8>
        >>> pixels = bytearray(900 * 600 * 3)
        >>> imgdl.decode(data, into=pixels, pixel_format="rgb8").pixels == pixels
        True
    """
    _options.check_keywords(options, _options.decode_options, "decode()")
    given = _options.decode_options(**options)
    if into is None:
        if stride is not None:
            raise error(Code.INVALID_ARGUMENT, "stride is for `into`")
        picture = _image_of(_native.imgdl_decode, *_borrow(data), given)
        assert picture is not None
        return picture
    with Canvas(into, stride).lent(given) as canvas:
        picture = _image_of(_native.imgdl_decode, *_borrow(data), given, canvas=canvas)
        assert picture is not None
        try:
            canvas.place(picture)
        except BaseException:
            # What is raised has a traceback, which keeps the picture, which would keep `into`.
            picture.close()
            raise
        return picture


class Decoder(_process.OfThisProcess):
    """Decodes a picture that comes in pieces: feed, feed …, finish. Whatever the pieces, the result is that of
    `decode`, and so are the options.

    May be used from any thread; calls wait for each other. A codec that calls the decoder for which it decodes is told
    WOULD_DEADLOCK.

        >>> with imgdl.Decoder() as decoder:
        ...     for start in range(0, len(data), 4096):
        ...         decoder.feed(data[start : start + 4096])
        ...     decoder.finish()
        <imgdl.Image 900×600 png rgba8>
    """

    def __init__(self, **options: Unpack[_keywords.DecodeKeywords]) -> None:
        _options.check_keywords(options, _options.decode_options, "Decoder()")
        given = _options.decode_options(**options)
        # Reentrant, so that a codec that calls the decoder it works for can be told.
        self._lock = threading.RLock()
        self._reference = DecoderReference()
        # Also at exit, when codecs in Python are waited for.
        self._finalizer = weakref.finalize(self, self._reference.let_go)
        check(_native.imgdl_decoder_create(given, self._reference))

    def _live(self) -> int:
        handle = self._reference.value
        if handle is None:
            raise error(Code.INVALID_HANDLE, "the decoder is closed")
        return handle

    def _turn(self) -> Any:
        """The lock to hold during a call. Nobody but this thread could have changed the answer before it does."""
        if self._lock._is_owned():  # type: ignore[attr-defined, unused-ignore]
            raise error(Code.WOULD_DEADLOCK, "this thread is in a call of this decoder, which waits for it")
        return self._lock

    def feed(self, data: Buffer) -> None:
        """The next bytes. Missing bytes are no error. What is broken is: each later `feed` and `finish` raises it again,
        and with `salvage` the error of `finish` has the pixels (`image`)."""
        pointer, length = _borrow(data)
        with self._turn():
            try:
                code = _native.imgdl_decoder_feed(self._live(), pointer, length)
            finally:
                # A traceback would keep it, and a bytearray could not be resized in an `except`.
                del pointer, data
            check(code)

    @property
    def info(self) -> Optional[ImageInfo]:
        """What the picture's header tells; None while it is not complete."""
        info = _native.imgdl_image_info()
        _native.imgdl_image_info_init(info, ctypes.sizeof(info))
        with self._turn():
            code = _native.imgdl_decoder_info(self._live(), info)
            raise_struck()
            if code == Code.NOT_READY:
                return None
            check(code)
        return info_from(info)

    def partial(self) -> Optional[Image]:
        """The picture so far; None when there is nothing that the last call did not show."""
        with self._turn():
            picture = _image_of(_native.imgdl_decoder_partial, self._live())
        return picture

    def finish(self) -> Image:
        """No more bytes will come. Returns the picture, or raises as `decode` does."""
        with self._turn():
            picture = _image_of(_native.imgdl_decoder_finish, self._live())
        assert picture is not None
        return picture

    def close(self) -> None:
        """Any number of times; images it gave live on."""
        with self._turn():
            self._reference.release()

    def __enter__(self) -> Decoder:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
