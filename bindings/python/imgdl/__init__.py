"""imgdl: downloads pictures and gives pixels, also while they are still arriving.

    import imgdl

    image = imgdl.get("https://example.org/picture.jpg")
    image.width, image.height, image.pixels

    with imgdl.Downloader(max_concurrent=8) as downloader:
        tokens = [downloader.download(url) for url in urls]
        images = [token.result() for token in tokens]

    async with imgdl.Downloader() as downloader:
        image = await downloader.get(url)

    image = imgdl.decode(open("picture.webp", "rb").read())

The library is found at IMGDL_LIBRARY, in build/lib of the repository, or where the system has libimgdl.so.1.
"""

from ._native import imgdl_version_string as _version
from .decode import Decoder, decode
from .downloader import Downloader, get
from .errors import (
    Cancelled,
    Code,
    Error,
    ImageError,
    InvalidArgument,
    LimitError,
    NetworkError,
    StatusError,
    Timeout,
    WaitTimeout,
)
from .image import Body, Image, ImageInfo, Rectangle
from .response import Response
from .token import Token

__version__ = "1.0.0"
library_version: str = _version().decode()
"""Of the library that is loaded."""

__all__ = [
    "Body",
    "Cancelled",
    "Code",
    "Decoder",
    "Downloader",
    "Error",
    "Image",
    "ImageError",
    "ImageInfo",
    "InvalidArgument",
    "LimitError",
    "NetworkError",
    "Rectangle",
    "Response",
    "StatusError",
    "Timeout",
    "Token",
    "WaitTimeout",
    "decode",
    "get",
    "library_version",
]
