"""What was measured: `Metrics` of a download, `Stats` of a downloader, and what an observer is told."""

from __future__ import annotations

import ctypes
import struct
from typing import Any, NamedTuple, Optional

from . import _native, _once
from ._checks import real
from .errors import Code, error
from .response import http_version

_once.refuse_reload(globals())

_NANOSECOND = 1e-9
_MICROSECOND = 1e-6


class Metrics(NamedTuple):
    """Where the time of a download went, in seconds, 0.0 where there was none; the transfer's, of its last attempt,
    except where said."""

    http_version: str
    """"1.0", "1.1" or "2"; "" before an answer."""
    queue: float
    """From the call to the start of the transfer, for this request."""
    resolve: float
    """The name."""
    connect: float
    """TCP."""
    tls: float
    first_byte: float
    """From the request's end to the first byte of the answer."""
    body: float
    """From the first byte to the last."""
    transfer: float
    """From the start of the first attempt to the last byte, hops and waits included."""
    decode: float
    """For this request's decode options."""
    total: float
    """From the call to the end."""
    bytes_received: int
    """On the wire: heads and bodies of all hops and attempts that have ended, as sent."""
    bytes_sent: int
    body_bytes: int
    """Of the body, Content-Encoding undone."""
    redirect_count: int
    retry_count: int
    is_connection_reused: bool
    is_shared: bool
    """The transfer was there before this request."""
    address: str
    """Of the server, numeric; "" before a connection."""


# Read at once: each download has one.
_FIELDS: Any = _native.imgdl_metrics._fields_
_LAYOUT = struct.Struct("@" + "".join("P" if type is ctypes.c_char_p else type._type_ for _, type in _FIELDS))

# A copy of imgdl_metrics, and its address.
RawMetrics = tuple[bytes, bytes]


def raw_metrics(native: Any) -> RawMetrics:
    """What the library lends for the time of a callback, to be looked at later, if anybody does."""
    return bytes(native), native.address or b""


def metrics_from(raw: RawMetrics) -> Metrics:
    copy, address = raw
    (
        _,
        version,
        queue,
        resolve,
        connect,
        tls,
        first_byte,
        body,
        transfer,
        decode,
        total,
        bytes_received,
        bytes_sent,
        body_bytes,
        redirect_count,
        retry_count,
        is_connection_reused,
        is_shared,
        _,
    ) = _LAYOUT.unpack(copy)
    # In the order of the fields.
    return Metrics(
        http_version(version),
        queue * _NANOSECOND,
        resolve * _NANOSECOND,
        connect * _NANOSECOND,
        tls * _NANOSECOND,
        first_byte * _NANOSECOND,
        body * _NANOSECOND,
        transfer * _NANOSECOND,
        decode * _NANOSECOND,
        total * _NANOSECOND,
        bytes_received,
        bytes_sent,
        body_bytes,
        redirect_count,
        retry_count,
        is_connection_reused != 0,
        is_shared != 0,
        address.decode("utf-8", "replace"),
    )


class Histogram(NamedTuple):
    """How long something took, over all transfers."""

    count: int  # type: ignore[assignment]
    sum: float
    """Seconds, in all."""
    buckets: tuple[int, ...]
    """The number i counts times below 2**i microseconds, and not below 2**(i - 1)."""

    def quantile(self, q: float) -> float:
        """The time in seconds that a part q, from 0 to 1, of them stayed below, interpolated: 0.5 is the median. 0.0
        when there is none."""
        part = real(q, "q")
        if not 0 <= part <= 1:
            raise error(Code.INVALID_ARGUMENT, f"q is {part:g}: not between 0 and 1")
        native = _native.imgdl_histogram()
        native.count = self.count
        native.buckets[:] = self.buckets
        return float(_native.imgdl_histogram_quantile(native, part)) * _MICROSECOND


def _histogram(native: Any) -> Histogram:
    return Histogram(native.count, native.sum_us * _MICROSECOND, tuple(native.buckets))


class Stats(NamedTuple):
    """What a downloader did since it was made.

        >>> with imgdl.Downloader() as downloader:
        ...     image = downloader.download(url).result()
        ...     0 < downloader.stats().first_byte.quantile(0.95) < 30
        True
    """

    submitted: int
    """Requests, like the next four."""
    succeeded: int
    failed: int
    cancelled: int
    shared: int
    """That joined a transfer."""
    transfers: int
    retries: int
    redirects: int
    connections: int
    """Made, not used again."""
    bytes_received: int
    bytes_sent: int
    pixels: int
    waiting: int
    """Transfers, now, like the next three."""
    running: int
    paused: int
    decoding: int
    memory: int
    """Bytes that count towards memory_budget, now."""
    memory_peak: int
    queue: Histogram
    resolve: Histogram
    connect: Histogram
    tls: Histogram
    first_byte: Histogram
    transfer: Histogram
    decode: Histogram
    total: Histogram


def stats_from(native: Any) -> Stats:
    def value(name: str) -> Any:
        given = getattr(native, name)
        return _histogram(given) if isinstance(given, ctypes.Structure) else given

    return Stats(*(value(name) for name in Stats._fields))


_KINDS = {
    _native.IMGDL_OBSERVED_STARTED: "started",
    _native.IMGDL_OBSERVED_RESPONSE: "response",
    _native.IMGDL_OBSERVED_STOPPED: "stopped",
    _native.IMGDL_OBSERVED_FINISHED: "finished",
}


class Observation(NamedTuple):
    """What an observer is told of a transfer; see `Downloader.set_observer`."""

    kind: str
    """"started": it has left the queue, or tries again; "response": a head is there that no redirect follows;
    "stopped": it has ended at the network, for whatever reason; "finished": after "stopped", if the whole body is
    there."""
    transfer: int
    """A number for each transfer."""
    url: str
    """With dots for the values in its query."""
    code: int
    """Of "stopped": 0 or the error, as in `Code`."""
    http_status: int
    subscriber_count: int
    retry_count: int
    metrics: Optional[Metrics]
    """Of "stopped" and "finished"."""


def observation_from(native: Any) -> Observation:
    return Observation(
        _KINDS.get(native.kind, "unknown"),
        native.transfer,
        (native.url or b"").decode("utf-8", "replace"),
        native.code,
        native.http_status,
        native.subscriber_count,
        native.retry_count,
        metrics_from(raw_metrics(native.metrics.contents)) if native.metrics else None,
    )
