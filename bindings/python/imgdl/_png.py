"""Writes PNG, so that a picture can be saved and shown in a notebook where neither Pillow nor numpy is installed."""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from . import _once

_once.refuse_reload(globals())

if TYPE_CHECKING:
    from .image import Image

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_RGB, _RGBA = 2, 6
_FILTER_UP = b"\2"
_PERCEPTUAL = b"\0"


def encode(image: Image, level: int = 6) -> bytes:
    """The picture as a PNG file, with its colour profile where that is of these pixels; of an animation the first
    frame.

    level  zlib's, 0 to 9
    """
    colour_type = _RGB if image.pixel_format == "rgb8" else _RGBA
    depth = 16 if image.pixel_format == "rgba16" else 8
    header = struct.pack(">IIBBBBB", image.width, image.height, depth, colour_type, 0, 0, 0)
    compressor = zlib.compressobj(level)
    pixels = [compressor.compress(row) for row in _filtered(image)]
    pixels.append(compressor.flush())
    return b"".join(
        [
            _SIGNATURE,
            _chunk(b"IHDR", header),
            _colour(image),
            _chunk(b"IDAT", b"".join(pixels)),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _colour(image: Image) -> bytes:
    profile = image.pixel_profile
    if profile is not None:
        return _chunk(b"iCCP", b"ICC profile\0\0" + zlib.compress(profile))
    if image.is_srgb:
        return _chunk(b"sRGB", _PERCEPTUAL)
    return b""


def _filtered(image: Image) -> Iterator[bytes]:
    """Each row as its difference to the one above, which compresses much better than the row."""
    above = bytes(len(_row(image, 0)))
    # The upper bit of each byte, where the borrow of the subtraction is kept from the next byte.
    high = int.from_bytes(b"\x80" * len(above), "little")
    for index in range(image.height):
        row = _row(image, index)
        yield _FILTER_UP
        yield _difference(row, above, high)
        above = row


def _difference(row: bytes, above: bytes, high: int) -> bytes:
    """Byte by byte, modulo 256: a whole row in one operation on large numbers."""
    x, y = int.from_bytes(row, "little"), int.from_bytes(above, "little")
    return (((x | high) - (y & ~high)) ^ ((x ^ ~y) & high)).to_bytes(len(row), "little")


def _row(image: Image, index: int) -> bytes:
    """As PNG has it: R, G, B, straight alpha, the larger byte first."""
    start = index * image.stride
    row = bytearray(image.view[start : start + image._row])
    pixel_format = image.pixel_format
    if pixel_format == "rgba16":
        numbers = array("H", bytes(row))
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers.tobytes()
    if pixel_format.startswith("bgra8"):
        row[0::4], row[2::4] = row[2::4], row[0::4]
    if pixel_format.endswith("premultiplied"):
        for position, alpha in enumerate(row[3::4]):
            if alpha != 255:
                colours = slice(4 * position, 4 * position + 3)
                row[colours] = row[colours].translate(_unpremultiplied(alpha))
    return bytes(row)


@lru_cache(maxsize=256)
def _unpremultiplied(alpha: int) -> bytes:
    if alpha == 0:
        return bytes(256)
    return bytes(min(255, (value * 255 + alpha // 2) // alpha) for value in range(256))
