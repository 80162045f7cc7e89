"""imgdl: downloads pictures and gives pixels, also while they are still arriving.

    import imgdl

    image = imgdl.get("https://example.org/picture.jpg")
    image.width, image.height, image.pixels

    with imgdl.Downloader(max_concurrent=8) as downloader:
        tokens = [downloader.download(url) for url in urls]
        images = [token.result() for token in tokens]

    async with imgdl.Downloader() as downloader:
        image = await downloader.get(url)

    with imgdl.Downloader(retries=3, hooks=imgdl.Hooks(modify_request=sign)) as downloader:
        thumbnail = downloader.download(url, size=(256, 256)).result()
        downloader.prefetch(urls, on_progress=lambda batch, progress: print(progress.finished)).wait()
        print(downloader.stats().total.quantile(0.95))

    with imgdl.Cache("/home/me/.cache/viewer") as cache, imgdl.Downloader(cache=cache) as downloader:
        image = downloader.download(url).result()
        fresh = downloader.download(url, cache="refresh").result()

    image = imgdl.decode(open("picture.webp", "rb").read())

The library is found at IMGDL_LIBRARY, in this package where a wheel brought it, in build/lib of the repository, or where
the system has libimgdl.so.1.
"""

from ._native import imgdl_version_string as _version
from .batch import Batch, BatchProgress
from .cache import Cache, CacheEntry, CacheEvent, CacheStatistics
from .coder import Coder, DecodeOptions, register_coder
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
from .hooks import LATER, Continuation, Hooks, Outgoing
from .image import Body, ColourNotes, Image, ImageInfo, Rectangle
from .metrics import Histogram, Metrics, Observation, Stats
from .response import Hop, Response
from .retry import Retry
from .token import Token
from .transport import Transfer

__version__ = "1.1.0"
library_version: str = _version().decode()
"""Of the library that is loaded."""

__all__ = [
    "Batch",
    "BatchProgress",
    "Body",
    "Cache",
    "CacheEntry",
    "CacheEvent",
    "CacheStatistics",
    "Cancelled",
    "Code",
    "Coder",
    "ColourNotes",
    "Continuation",
    "DecodeOptions",
    "Decoder",
    "Downloader",
    "Error",
    "Histogram",
    "Hooks",
    "Hop",
    "Image",
    "ImageError",
    "ImageInfo",
    "InvalidArgument",
    "LATER",
    "LimitError",
    "Metrics",
    "NetworkError",
    "Observation",
    "Outgoing",
    "Rectangle",
    "Response",
    "Retry",
    "Stats",
    "StatusError",
    "Timeout",
    "Token",
    "Transfer",
    "WaitTimeout",
    "decode",
    "get",
    "library_version",
    "register_coder",
]
