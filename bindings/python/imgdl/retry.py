"""`Retry`: how often, and how patiently, a download tries again."""

from __future__ import annotations

from typing import NamedTuple, Optional

from . import _once

_once.refuse_reload(globals())


class Retry(NamedTuple):
    """When transient failures are retried: no connection, a lost one, a timeout but the total one, status 408, 429 and 5xx.

    count    how often; 0 is never
    base     seconds to wait at most before the first, twice as many before the second …, at random; Retry-After is
             obeyed. 0.5 by default
    maximum  the longest wait, in seconds; a longer Retry-After ends the request with that answer at once. 60 by default

        >>> with imgdl.Downloader(retries=imgdl.Retry(3, base=0.2)) as downloader:
        ...     image = downloader.download(url, retries=0).result()
    """

    count: int  # type: ignore[assignment]
    base: Optional[float] = None
    maximum: Optional[float] = None
