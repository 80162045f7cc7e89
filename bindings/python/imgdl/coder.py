"""Codecs written in Python: `register_coder`."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, NamedTuple, Optional, Protocol

from . import _native, _once, _process
from ._callbacks import Registry, callback, failure, last_callback, new_key
from ._options import COLOUR_NAMES
from ._reference import CoderReference
from ._waiting import beginning_inside, surely
from .errors import Code, check, error
from .image import FORMATS, PIXEL_FORMATS, Image, ImageInfo

_once.refuse_reload(globals())


class PictureDecoder(Protocol):
    """One picture that is being decoded. One thread at a time uses it. `info`, `partial` and `close` may be
    missing."""

    def feed(self, data: bytes) -> None:
        """The next bytes."""

    def finish(self) -> Image:
        """The whole picture. TRUNCATED when bytes are missing."""
        ...


class PictureCoder(Protocol):
    """What `register_coder` takes."""

    def can_decode(self, prefix: bytes) -> Optional[bool]: ...

    def decoder(self, options: DecodeOptions) -> PictureDecoder: ...


class DecodeOptions(NamedTuple):
    """What a codec is asked for. What it does not obey (size, orientation, pixel format) the library does
    afterwards."""

    pixel_format: str
    ignore_orientation: bool
    salvage: bool
    all_frames: bool
    require_animation: bool
    stretch: bool
    size: Optional[tuple[Optional[int], Optional[int]]]
    scale_down: Optional[int]
    """Bytes of all frames together; None: not asked for."""
    max_pixels: int
    max_frames: int
    format_hint: Optional[str]
    colour: str = "as_stored"
    max_side: Optional[int] = None
    max_scans: int = _native.IMGDL_DEFAULT_MAX_SCANS
    max_animation_pixels: Optional[int] = None
    max_metadata_bytes: Optional[int] = None
    max_memory_bytes: Optional[int] = _native.IMGDL_DEFAULT_MAX_MEMORY_BYTES
    """None: no limit; likewise `max_decode_ms`."""
    max_decode_ms: Optional[int] = _native.IMGDL_DEFAULT_MAX_DECODE_MS
    thumbnail_first: bool = False
    good_enough_scan: Optional[int] = None


def _options_from(native: Any) -> DecodeOptions:
    def has(flag: int) -> bool:
        return bool(native.flags & flag)

    width, height = native.target_width or None, native.target_height or None
    scale_down = None
    if has(_native.IMGDL_DECODE_SCALE_DOWN):
        scale_down = native.max_output_bytes or _native.IMGDL_DEFAULT_SCALE_DOWN_BYTES
    return DecodeOptions(
        PIXEL_FORMATS.get(native.pixel_format, "rgba8"),
        has(_native.IMGDL_DECODE_IGNORE_ORIENTATION),
        has(_native.IMGDL_DECODE_SALVAGE),
        has(_native.IMGDL_DECODE_ALL_FRAMES),
        has(_native.IMGDL_DECODE_REQUIRE_ANIMATION),
        has(_native.IMGDL_DECODE_STRETCH),
        (width, height) if width or height else None,
        scale_down,
        native.max_pixels or _native.IMGDL_DEFAULT_MAX_PIXELS,
        native.max_frames or _native.IMGDL_DEFAULT_MAX_FRAMES,
        FORMATS.get(native.format_hint),
        COLOUR_NAMES.get(native.colour, "as_stored"),
        native.max_side or None,
        native.max_scans or _native.IMGDL_DEFAULT_MAX_SCANS,
        native.max_animation_pixels or None,
        native.max_metadata_bytes or None,
        native.max_memory_bytes if native.max_memory_bytes != _native.IMGDL_NO_LIMIT else None,
        native.max_decode_ms if native.max_decode_ms != _native.IMGDL_NO_LIMIT_32 else None,
        has(_native.IMGDL_DECODE_THUMBNAIL_FIRST),
        native.good_enough_scan or None,
    )


class Coder(_process.OfThisProcess):
    """A codec that is registered, until `close` or the end of a with statement; what decodes with it goes on."""

    def __init__(self, reference: CoderReference) -> None:
        self._reference = reference

    def _live(self) -> int:
        handle = self._reference.value
        if handle is None:
            raise error(Code.INVALID_HANDLE, "the coder is closed")
        return handle

    # An interrupt that struck before its first line would leave it registered.
    @beginning_inside
    def close(self) -> None:
        """Takes it out. Any number of times."""
        _registered.discard(self)
        self._reference.release()

    def __enter__(self) -> Coder:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<imgdl.Coder {'closed' if self._reference.value is None else 'registered'}>"


class _Functions(NamedTuple):
    can_decode: Callable[[bytes], Optional[bool]]
    decoder: Callable[[DecodeOptions], Any]
    generation: int


# Those that nobody closed stay, also where nobody kept them.
_registered: set[Coder] = set()
_functions: Registry[_Functions] = Registry()
_decoders: Registry[Any] = Registry()


def register_coder(coder: Any) -> Coder:
    """Lets all downloads and `decode` of the process use a codec of yours. The newest that can decode something is
    asked first, and all of them before the library's own.

    coder  an object with
               can_decode(prefix)  True, False, or None when more bytes are needed to tell; the first 64 bytes, or
                                   fewer, must be enough
               decoder(options)    a new decoder for one picture, with
                   feed(data)      the next bytes
                   finish()        the whole picture, an `Image`; see `Image.create`
                   partial()       may be missing: the picture so far, or None for nothing new
                   info()          may be missing: an `ImageInfo`, or None while unknown; an orientation other than 1
                                   says that the images are as stored, and the library turns them
                   close()         may be missing: it is not used any more
           or a class of such decoders, whose `can_decode` is static, and which is called with the options

    All of it is called on threads of the library, `can_decode` and `decoder` on several at the same time. Raising an
    `Error` fails with its code: BAD_IMAGE_DATA, TRUNCATED. Anything else that is raised is a failure with INTERNAL,
    and is shown through sys.unraisablehook.

        >>> class Raw:
        ...     def __init__(self, options): self.data = b""
        ...     @staticmethod
        ...     def can_decode(prefix): return prefix.startswith(b"RAW1")
        ...     def feed(self, data): self.data += data
        ...     def finish(self): return imgdl.Image.create(2, 2, self.data[4:])
        >>> coder = imgdl.register_coder(Raw)
        >>> imgdl.decode(b"RAW1" + bytes(16)).width
        2
        >>> coder.close()
    """
    can_decode: Any = getattr(coder, "can_decode", None)
    decoder: Any = getattr(coder, "decoder", coder if isinstance(coder, type) else None)
    functions = _Functions(can_decode, decoder, _process.generation)
    for name, function in (("can_decode", can_decode), ("decoder", decoder)):
        if not callable(function):
            raise TypeError(f"the coder has no function {name}")
    table = _native.imgdl_coder_table()
    table.struct_size = ctypes.sizeof(table)
    table.can_decode = _can_decode
    table.create = _create
    table.feed = _feed
    table.info = _info
    table.partial = _partial
    table.finish = _finish
    table.destroy = _destroy
    table.destructor = _on_end
    key = table.user_data = new_key()
    registered = Coder(CoderReference())
    try:
        _functions.put(key, functions)
        check(_native.imgdl_coder_register(table, registered._reference))
        _registered.add(registered)
        return registered
    except BaseException:
        if registered._reference.value:
            # The library says when nothing decodes with it any more.
            surely(registered.close)
        else:
            surely(_functions.pop, key)
        raise


def _in_table(name: str, otherwise: Optional[int] = Code.INTERNAL) -> Callable[[Callable[..., Optional[int]]], Any]:
    """The C function of a field of imgdl_coder_table."""
    return callback(_native.callback_type(_native.imgdl_coder_table, name), otherwise)


def _guarded(call: Callable[[], Optional[int]]) -> int:
    """The status of a call: what it gives, or of what it raises."""
    try:
        return call() or Code.OK
    except BaseException as exception:
        return failure(exception, Code.INTERNAL)[0]


@_in_table("can_decode", 0)
def _can_decode(prefix: Optional[int], length: int, key: int) -> int:
    try:
        functions = _functions.get(key)
        if functions is None:
            return 0
        answer = functions.can_decode(ctypes.string_at(prefix, length) if prefix else b"")
        return -1 if answer is None else int(bool(answer))
    except BaseException as exception:
        failure(exception, Code.INTERNAL)
        return 0


class _Failed:
    """In place of a decoder that could not be made: NULL would be OUT_OF_MEMORY."""

    def __init__(self, code: int) -> None:
        self.code = code

    def feed(self, data: bytes) -> None:
        raise error(self.code)

    def finish(self) -> Image:
        raise error(self.code)


@_in_table("create", None)
def _create(options: Any, key: int) -> Optional[int]:
    decoder: Any
    try:
        functions = _functions.get(key)
        if functions is None:
            return None
        decoder = functions.decoder(_options_from(options.contents))
    except BaseException as exception:
        decoder = _Failed(failure(exception, Code.INTERNAL)[0])
    return _decoders.add(decoder)


def _decoder(key: int) -> Any:
    return _decoders.get(key)


@_in_table("feed")
def _feed(key: int, data: Optional[int], length: int) -> int:
    return _guarded(lambda: _discard(_decoder(key).feed(ctypes.string_at(data, length) if data else b"")))


def _discard(value: object) -> None:
    pass


@_in_table("info")
def _info(key: int, native: Any) -> int:
    def call() -> int:
        function = getattr(_decoder(key), "info", None)
        info: Optional[ImageInfo] = function() if function is not None else None
        if info is None:
            return Code.NOT_READY
        target = native.contents
        target.width, target.height = info.width, info.height
        target.orientation = info.orientation
        target.frame_count = info.frame_count or 0
        target.has_alpha = bool(info.has_alpha)
        target.is_progressive = bool(info.is_progressive)
        return Code.OK

    return _guarded(call)


def _give(image: object, target: Any) -> None:
    if not isinstance(image, Image):
        raise TypeError(f"a decoder gave {type(image).__name__}, not imgdl.Image")
    target[0] = _native.imgdl_image_retain(image._handle)


@_in_table("partial")
def _partial(key: int, target: Any) -> int:
    def call() -> int:
        function = getattr(_decoder(key), "partial", None)
        image = function() if function is not None else None
        if image is None:
            return Code.NOT_READY
        _give(image, target)
        return Code.OK

    return _guarded(call)


@_in_table("finish")
def _finish(key: int, target: Any) -> int:
    return _guarded(lambda: _give(_decoder(key).finish(), target))


@last_callback(_native.callback_type(_native.imgdl_coder_table, "destroy"))
def _destroy(key: int) -> None:
    decoder = _decoders.pop(key)
    function = getattr(decoder, "close", None)
    if function is not None:
        _guarded(lambda: _discard(function()))


def end_at_exit(timeout: float) -> None:
    """Before the process ends: takes all out, and waits until nothing is decoded with them any more."""
    for coder in list(_registered):
        coder.close()
    _functions.wait(lambda left: all(each.generation != _process.generation for each in left), timeout)


@last_callback(_native.imgdl_destructor)
def _on_end(key: int) -> None:
    _functions.pop(key)
