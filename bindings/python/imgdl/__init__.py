"""imgdl: downloads pictures and gives pixels, also while they are still arriving.

In the examples here and below, `url` is the address of a picture, `urls` a list of such addresses, `data` the bytes of a
picture, and `folder` the path of a folder.

    >>> import imgdl
    >>> image = imgdl.get(url)
    >>> image.width, image.height, len(image.pixels)
    (900, 600, 2160000)
    >>> image.save(folder + "/picture.png")

Futures: each download is a `Token`.

    >>> with imgdl.Downloader(max_concurrent=8) as downloader:
    ...     tokens = [downloader.download(url, size=(90, 90)) for url in urls]
    ...     [token.result().width for token in tokens]
    [90, 90, 90]

Coroutines, also while the picture arrives:

    >>> async def main():
    ...     async with imgdl.Downloader() as downloader:
    ...         image = await downloader.get(url)
    ...         async for image in downloader.stream(url):
    ...             print(image.width)
    >>> asyncio.run(main())  # doctest: +ELLIPSIS
    900
    ...

As many as you like, few at a time:

    >>> with imgdl.Downloader(retries=3) as downloader:
    ...     for token in downloader.map(urls, ordered=False, progress=True):
    ...         image = token.result()

With a cache, what is fresh comes without the network:

    >>> with imgdl.Cache(folder + "/cache") as cache, imgdl.Downloader(cache=cache) as downloader:
    ...     image = downloader.download(url).result()
    ...     image = downloader.download(url, cache="refresh").result()

What is in memory already:

    >>> imgdl.decode(data, size=(90, 90))
    <imgdl.Image 90×60 png rgba8>

The library is found at IMGDL_LIBRARY, in this package where a wheel brought it, in build/lib of the repository, or
where the system has libimgdl.so.1.
"""

import sys

# Before, handlers of signals run between any two instructions, and Ctrl-C leaves anything half done.
if sys.version_info < (3, 10):
    raise ImportError(f"imgdl needs Python 3.10 or later: this is {sys.version.split()[0]}")

from . import _once

_once.refuse_reload(globals())

from . import _interpreter  # noqa: F401
from ._later import name_in as _name_in
from ._native import imgdl_version_string as _version
from ._options import NO_LIMIT
from .batch import Batch, BatchProgress
from .body import Body
from .cache import Cache, CacheEntry, CacheEvent, CacheStatistics
from .coder import Coder, DecodeOptions, register_coder
from .decode import Decoder, decode
from .downloader import Downloader, get
from .errors import (
    CacheError,
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
from .image import ColourNotes, Image, ImageInfo, Rectangle
from .metrics import Histogram, Metrics, Observation, Stats
from .response import Hop, Response
from .retry import Retry
from .stream import Stream
from .token import Token
from .transport import Transfer
from .trim import trim

# What these know for type checkers alone.
_name_in("errors", Image, Metrics)
_name_in("body", Response)
_name_in("batch", Downloader)
_name_in("token", Batch, Downloader)
_name_in("stream", Downloader)

__version__ = "1.1.0"
library_version: str = _version().decode()
"""Of the library that is loaded."""

__all__ = [
    "Batch",
    "BatchProgress",
    "Body",
    "Cache",
    "CacheEntry",
    "CacheError",
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
    "NO_LIMIT",
    "NetworkError",
    "Observation",
    "Outgoing",
    "Rectangle",
    "Response",
    "Retry",
    "Stats",
    "StatusError",
    "Stream",
    "Timeout",
    "Token",
    "Transfer",
    "WaitTimeout",
    "decode",
    "get",
    "library_version",
    "register_coder",
    "trim",
]
