"""Pixels: `Image`."""

from __future__ import annotations

import ctypes
import enum
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Optional, Union

from . import _native, _once, _pillow, _png
from ._checks import buffer, choice, integer, string
from ._files import Target, check_target, extension, write
from ._later import Later
from ._reference import ImageReference, view as view_of
from .errors import Code, check, error

_once.refuse_reload(globals())

# Turned round for who drops the names of a block `if TYPE_CHECKING`, as typeguard does.
if not TYPE_CHECKING:
    _PIL_Image = Later("PIL.Image")
else:
    from PIL import Image as _PIL_Image

FORMATS = {
    _native.IMGDL_FORMAT_JPEG: "jpeg",
    _native.IMGDL_FORMAT_PNG: "png",
    _native.IMGDL_FORMAT_WEBP: "webp",
    _native.IMGDL_FORMAT_GIF: "gif",
    _native.IMGDL_FORMAT_OTHER: "other",
}
PIXEL_FORMATS = {
    _native.IMGDL_PIXEL_FORMAT_RGBA8: "rgba8",
    _native.IMGDL_PIXEL_FORMAT_RGBA8_PREMULTIPLIED: "rgba8_premultiplied",
    _native.IMGDL_PIXEL_FORMAT_BGRA8: "bgra8",
    _native.IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED: "bgra8_premultiplied",
    _native.IMGDL_PIXEL_FORMAT_RGB8: "rgb8",
    _native.IMGDL_PIXEL_FORMAT_RGBA16: "rgba16",
}


_BYTES_PER_PIXEL = {"rgb8": 3, "rgba16": 8}
_NATIVE_BYTES_PER_PIXEL = {native: _BYTES_PER_PIXEL.get(name, 4) for native, name in PIXEL_FORMATS.items()}


def bytes_per_pixel(pixel_format: str) -> int:
    return _BYTES_PER_PIXEL.get(pixel_format, 4)


class ColourNotes(enum.IntFlag):
    """What a file says about its colours, and what was done about it."""

    ICC = _native.IMGDL_COLOUR_NOTE_ICC
    """An ICC profile, whole: `Image.icc_profile`."""
    SRGB = _native.IMGDL_COLOUR_NOTE_SRGB
    """A PNG says that it is sRGB."""
    GAMMA = _native.IMGDL_COLOUR_NOTE_GAMMA
    """A PNG names its gamma."""
    CHROMATICITIES = _native.IMGDL_COLOUR_NOTE_CHROMATICITIES
    """A PNG names its primaries."""
    CONVERTED = _native.IMGDL_COLOUR_NOTE_CONVERTED
    """The pixels are not as stored but sRGB, by the profile."""
    UNUSABLE_PROFILE = _native.IMGDL_COLOUR_NOTE_UNUSABLE_PROFILE
    """Broken, incomplete, too long, or not for pixels of this kind: they are as stored."""
    COSTLY_PROFILE = _native.IMGDL_COLOUR_NOTE_COSTLY_PROFILE
    """Besides: the profile is whole, but to follow it might take any time."""


class Rectangle(NamedTuple):
    """A part of a picture, in pixels from its upper left corner."""

    x: int
    y: int
    width: int
    height: int


class ImageInfo(NamedTuple):
    """What the header of a picture tells."""

    format: str
    width: int
    """Orientation applied, like `height`."""
    height: int
    orientation: int
    """As stored, 1 to 8."""
    frame_count: Optional[int]
    """None while unknown."""
    has_alpha: bool
    """Of a still picture that is whole: something is seen through a pixel of it. Before, of an animation, whose frames may
    not all be decoded, and of "rgb8": the file may have alpha."""
    is_progressive: bool
    """Partial images cover the whole canvas."""


def info_from(native: Any) -> ImageInfo:
    return ImageInfo(
        FORMATS.get(native.format, "unknown"),
        native.width,
        native.height,
        native.orientation,
        native.frame_count or None,
        bool(native.has_alpha),
        bool(native.is_progressive),
    )


def _row(handle: int) -> int:
    pixel = _NATIVE_BYTES_PER_PIXEL.get(_native.imgdl_image_pixel_format(handle), 4)
    return pixel * int(_native.imgdl_image_width(handle))


class Image:
    """A decoded picture. Immutable, but for a partial one, of which only the part that `ready` names stays as it is; to
    keep that: `x, y, width, height = image.ready`, `numpy.asarray(image)[y : y + height, x : x + width].copy()`. May be
    used from any thread.

    Its memory goes back when the object and all views of it are gone; `close`, or a with statement, gives up this
    object's part at once. Views that were taken before stay valid.
    """

    __slots__ = ("_reference", "_duration", "__weakref__")

    _reference: Optional[ImageReference]
    _duration: Optional[int]

    def __init__(self) -> None:
        raise TypeError("images come from decode, from downloads and from Image.create")

    @classmethod
    def _adopt(cls, reference: ImageReference, duration: Optional[int] = None) -> Image:
        """Takes over the reference."""
        image = cls.__new__(cls)
        image._reference = reference
        image._duration = duration
        return image

    @classmethod
    def create(
        cls,
        width: int,
        height: int,
        pixels: Union[bytes, bytearray, memoryview],
        pixel_format: str = "rgba8",
        *,
        stride: Optional[int] = None,
    ) -> Image:
        """An image of pixels of yours, copied: what a codec gives.

        pixels        height rows, stride bytes apart; width × the bytes of a pixel (3 for "rgb8", 8 for "rgba16",
                      else 4) by default

            >>> imgdl.Image.create(1, 1, bytes([255, 0, 0, 255])).pixels
            b'\\xff\\x00\\x00\\xff'
        """
        formats = {name: value for value, name in PIXEL_FORMATS.items()}
        native_format = choice(pixel_format, formats, "pixel_format")
        width, height = integer(width, "width"), integer(height, "height")
        for name, number in (("width", width), ("height", height)):
            if not 1 <= number < 1 << 32:
                raise error(Code.INVALID_ARGUMENT, f"{name} is {number}: not between 1 and 2**32 - 1")
        least = _NATIVE_BYTES_PER_PIXEL[native_format] * width
        row = least if stride is None else integer(stride, "stride")
        if not least <= row < 1 << 40:
            raise error(Code.INVALID_ARGUMENT, f"stride is {row}: less than the {least} bytes of a row, or too much")
        view = buffer(pixels, "pixels")
        if view.nbytes < row * height:
            raise error(Code.INVALID_ARGUMENT, f"pixels has {view.nbytes} bytes: {row * height} are needed")
        reference = ImageReference()
        check(_native.imgdl_image_create(width, height, native_format, bytes(view), row, reference))
        return cls._adopt(reference)

    @property
    def _handle(self) -> int:
        reference = self._reference
        handle = None if reference is None else reference.value
        if handle is None:
            raise error(Code.INVALID_HANDLE, "the image is closed")
        return handle

    @property
    def width(self) -> int:
        """In pixels, orientation applied."""
        return int(_native.imgdl_image_width(self._handle))

    @property
    def height(self) -> int:
        """In pixels, orientation applied."""
        return int(_native.imgdl_image_height(self._handle))

    @property
    def stride(self) -> int:
        """Bytes from one row to the next in `view`."""
        return int(_native.imgdl_image_stride(self._handle))

    @property
    def format(self) -> str:
        """What the file is: "jpeg", "png", "webp", "gif", "other" (of a codec of yours) or "unknown"."""
        return FORMATS.get(_native.imgdl_image_format(self._handle), "unknown")

    @property
    def pixel_format(self) -> str:
        """How a pixel lies in memory: "rgba8", "rgba8_premultiplied", "bgra8", "bgra8_premultiplied", "rgb8" or
        "rgba16"."""
        return PIXEL_FORMATS.get(_native.imgdl_image_pixel_format(self._handle), "unknown")

    @property
    def frame_count(self) -> int:
        """Frames in the file; of a partial or salvaged image those that it holds, 1 at least. The image's own
        pixels are the first's; see `frames`."""
        return int(_native.imgdl_image_frame_count(self._handle))

    @property
    def frames(self) -> tuple[Image, ...]:
        """The frames that were decoded, as the viewer sees them (blended, disposed), each with its `duration_ms`: all
        of them with `all_frames`, otherwise the first alone.

            >>> [frame.duration_ms for frame in imgdl.decode(animation, all_frames=True).frames]
            [50, 60, 70]
        """
        own = self._handle
        frames: list[Image] = []
        for index in range(self.frame_count):
            frame = ImageReference()
            code = _native.imgdl_image_frame(own, index, frame)
            if code == Code.NOT_READY:
                break
            check(code)
            frames.append(Image._adopt(frame, int(_native.imgdl_image_frame_duration_ms(own, index))))
        return tuple(frames)

    @property
    def duration_ms(self) -> int:
        """How long this frame is shown, in milliseconds; of an animation, how long its first is. 0 for still
        pictures."""
        if self._duration is not None:
            return self._duration
        return int(_native.imgdl_image_frame_duration_ms(self._handle, 0))

    @property
    def loop_count(self) -> int:
        """How often the animation plays; 0 is for ever, 1 for still pictures."""
        return int(_native.imgdl_image_loop_count(self._handle))

    @property
    def scale_factor(self) -> float:
        """Pixels of the picture for each pixel of the layout: the request's `scale_factor`, or what its URL's file name
        says (photo@2x.png). 1.0 for images that no request made."""
        return float(_native.imgdl_image_scale_factor(self._handle))

    @property
    def orientation(self) -> int:
        """The EXIF orientation as stored in the file, 1 to 8."""
        return int(_native.imgdl_image_orientation(self._handle))

    @property
    def is_complete(self) -> bool:
        """False for partial and salvaged pictures."""
        return bool(_native.imgdl_image_is_complete(self._handle))

    @property
    def pass_(self) -> int:
        """Which pass over the picture this is: the scan of a progressive JPEG, 1 otherwise."""
        return int(_native.imgdl_image_pass(self._handle))

    @property
    def ready(self) -> Rectangle:
        """The part that holds pixels: all of a complete image. The rest of a partial one is transparent at first, and
        may be written while you look."""
        native = _native.imgdl_image_ready(self._handle)
        return Rectangle(native.x, native.y, native.width, native.height)

    @property
    def has_incomplete_end(self) -> bool:
        """Whether all of the picture is there, but what marks the end of its file is missing or damaged."""
        return bool(_native.imgdl_image_notes(self._handle) & _native.IMGDL_IMAGE_INCOMPLETE_END)

    @property
    def is_good_enough(self) -> bool:
        """Whether it can be shown for a while: whole, or at the scan that `good_enough_scan` names."""
        return bool(_native.imgdl_image_is_good_enough(self._handle))

    @property
    def colour_notes(self) -> ColourNotes:
        """What the file says about its colours, and what was done about it."""
        return ColourNotes(_native.imgdl_image_colour_notes(self._handle))

    @property
    def icc_profile(self) -> Optional[bytes]:
        """The ICC profile in the file, also when the pixels were converted by it; None if there is none. A copy."""
        length = ctypes.c_size_t()
        profile = _native.imgdl_image_icc_profile(self._handle, length)
        return ctypes.string_at(profile, length.value) if profile else None

    @property
    def pixels(self) -> bytes:
        """Pixel after pixel as `pixel_format` says (R, G, B, straight alpha in 4 bytes by default; 3 bytes of "rgb8",
        8 of "rgba16"), first row first, no padding. A copy, made once."""
        # Another thread may close it meanwhile.
        reference = self._reference
        pixels = None if reference is None else reference.copy
        if reference is None or pixels is None:
            view, row, stride = self.view, self._row, self.stride
            if row == stride:
                pixels = bytes(view)
            else:
                pixels = b"".join(view[start : start + row] for start in range(0, len(view), stride))
            if reference is not None:
                reference.copy = pixels
        return pixels

    @property
    def view(self) -> memoryview:
        """The pixels themselves, read-only, not copied: `height` rows, `stride` bytes apart; it ends with the last
        pixel."""
        # Another thread may close it meanwhile.
        reference = self._reference
        if reference is None or reference.value is None:
            raise error(Code.INVALID_HANDLE, "the image is closed")
        handle = reference.value
        # Memory that somebody else lent for it may end there.
        size = _native.imgdl_image_stride(handle) * (_native.imgdl_image_height(handle) - 1) + _row(handle)
        return view_of(reference, _native.imgdl_image_pixels(handle), size)

    @property
    def _row(self) -> int:
        """Bytes of the pixels in a row."""
        return _row(self._handle)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """For numpy.asarray(image): height × width × 4 (3 of "rgb8"), read-only, not copied; of bytes, or with
        "rgba16" of 16-bit numbers."""
        pixel = bytes_per_pixel(self.pixel_format)
        size = 2 if pixel == 8 else 1
        order = "|" if size == 1 else "<" if sys.byteorder == "little" else ">"
        return {
            "version": 3,
            "shape": (self.height, self.width, pixel // size),
            "typestr": f"{order}u{size}",
            "strides": (self.stride, pixel, size),
            "data": self.view,
        }

    def __buffer__(self, flags: int) -> memoryview:
        # Python 3.12 and later: bytes(image), memoryview(image); numpy.asarray(image), too, looks here first.
        if not flags & 0x8:  # PyBUF_ND
            return self.view
        if self._row != self.stride:
            raise BufferError("the rows have padding: image.view has them as they are")
        pixel = bytes_per_pixel(self.pixel_format)
        size = (self.height, self.width)
        return self.view.cast("H", (*size, 4)) if pixel == 8 else self.view.cast("B", (*size, pixel))

    @property
    def is_srgb(self) -> bool:
        """Whether the pixels are known to be sRGB: converted, or said to be by the file."""
        return bool(self.colour_notes & (ColourNotes.CONVERTED | ColourNotes.SRGB))

    @property
    def pixel_profile(self) -> Optional[bytes]:
        """The ICC profile that these pixels, R, G and B, are to be seen by; None where they are converted, and where
        the file's is for CMYK or gray."""
        if self.colour_notes & (ColourNotes.CONVERTED | ColourNotes.UNUSABLE_PROFILE):
            return None
        profile = self.icc_profile
        return profile if profile is not None and profile[16:20] == b"RGB " else None

    def to_pil(self) -> _PIL_Image.Image:
        """For Pillow, which must be installed: mode "RGBA", or "RGB" of "rgb8". Pixels of "rgba8" are seldom copied.
        Of an animation the first frame, as anywhere: see `frames`. 16 bits become 8.

            >>> imgdl.decode(data).to_pil().rotate(90, expand=True).size
            (600, 900)
        """
        return _pillow.converted(self)

    def save(self, target: Target, format: Optional[str] = None, **options: Any) -> None:
        """Writes the pixels into a file, over what is there; of an animation the first frame.

        target   a path, or a file that is open for bytes
        format   "png", "jpeg", "webp" … in place of the path's extension; "png" where there is none
        options  of Pillow's writer for that format, such as quality=80

        PNG without options needs nothing else. Everything else is Pillow's, and an ImportError where it is not
        installed. To keep a file as the server has it, `download(url, body=True)` and `Body.save`.

            >>> imgdl.get(url, size=(64, 64)).save(folder + "/small.png")
        """
        check_target(target)
        name = string(format, "format") if format is not None else extension(target)
        if name.lower() in ("", "png") and not options:
            content = _png.encode(self)
        else:
            content = _pillow.encoded(self, f".{name or 'png'}", options)
        write(target, content)

    def _repr_png_(self) -> bytes:
        # A notebook shows it now, and keeps it in its file.
        return _png.encode(self, 1)

    def __copy__(self) -> Image:
        return self

    def __deepcopy__(self, memo: object) -> Image:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("an image does not go to other processes: send its pixels, or numpy.asarray(image)")

    def close(self) -> None:
        """Any number of times."""
        self._reference = None

    def __enter__(self) -> Image:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._reference is None:
            return "<imgdl.Image closed>"
        whole = "" if self.is_complete else " partial"
        return f"<imgdl.Image {self.width}×{self.height} {self.format} {self.pixel_format}{whole}>"
