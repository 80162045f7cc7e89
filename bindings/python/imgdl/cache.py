"""`Cache`: what downloads have brought, kept for the next time."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple, NoReturn, Optional

from . import _checks, _native, _once, _options, _process
from ._callbacks import Registry, callback, keep, last_callback, new_key
from ._reference import CacheReference
from .errors import Code, check, error, report
from .response import text

_once.refuse_reload(globals())

_KINDS = {
    _native.IMGDL_CACHE_MOVED_ASIDE: "moved_aside",
    _native.IMGDL_CACHE_UNWRITABLE: "unwritable",
    _native.IMGDL_CACHE_WRITABLE: "writable",
    _native.IMGDL_CACHE_NOT_STORED: "not_stored",
}


class CacheEvent(NamedTuple):
    """Something that the host may want to know. The library goes on."""

    kind: str
    """"moved_aside": the index was corrupt, foreign or newer, so it was renamed and begun anew; "unwritable": the disk is
    full, read-only or broken, or another program has been writing to the index for half a minute, and nothing is stored until
    it works again; "writable": it works again; "not_stored": answers were not stored, since the disk takes them slower than
    they come, `max_bytes` has no room for them, another program keeps reading the index or writing to it or has replaced the
    directory's key, or the cache was closed before; in memory alone: they take more than half of `max_memory_bytes`."""
    message: str
    """Names the cause, and the file or folder where there is one."""


class CacheEntry(NamedTuple):
    """What is stored for a URL. Times are seconds since 1970."""

    status: int
    """Such as 200."""
    body_bytes: int
    """Stored, Content-Encoding undone."""
    stored: int
    """When; never later than now, as `used`, though a clock may have run ahead."""
    used: int
    """Used or validated for the last time."""
    fresh: int
    """It is fresh for so many more seconds; 0 or negative: stale for so many, as what is to be validated before each use
    (no-cache, no picture) is from the moment on that it was made; 0 where nobody knows: it was stored while the clock was
    ahead by more than a day."""
    is_complete: bool
    """False: the beginning of a body that broke off, or a range of it."""


class CacheStatistics(NamedTuple):
    """What a cache holds, and how its look-ups ended since it was opened by this process."""

    is_writable: bool
    entries: int
    """On disk, of all processes, like the next three. Bytes are what counts for the limits: bodies, headers, and what each
    answer takes besides."""
    bytes: int
    partial_entries: int
    """Bodies that broke off."""
    partial_bytes: int
    memory_entries: int
    memory_bytes: int
    image_entries: int
    image_bytes: int
    hits: int
    """Look-ups; each is one of these seven, or none where what was stored is stale and was fetched anew. Fresh: from disk, from memory, as a decoded image."""
    memory_hits: int
    image_hits: int
    validated: int
    stale: int
    misses: int
    resumed: int
    stored: int
    """Once they are written, as `entries`: after `Cache.flush`, or half a second or so."""
    evicted: int
    damaged: int
    """Checksum or length wrong, or file gone: removed."""
    not_stored: int
    """Answers that were to be stored, and were not: see `CacheEvent`."""
    unflushed: int
    """Stored by this process, and lost if the power went now: see `Cache.flush`."""


class Cache(_process.OfThisProcess):
    """A private HTTP cache as RFC 9111 describes one, for any number of downloaders. Processes may share its directory.

    directory          made when it is not there, for this user alone; None: in memory alone
    max_bytes          of what lies on the disk, 256 MiB by default
    max_memory_bytes   of bodies and headers in memory; none by default (32 MiB without a directory)
    max_image_bytes    of decoded images; none by default
    max_partial_bytes  of bodies that broke off, kept to be resumed; an eighth of the whole by default
    max_age            seconds after which what has not been used or validated is removed; never by default
    on_event(event)    `CacheEvent`, on a thread of the cache, or, in memory alone where the system gives it none, on the
                       thread that closes it. Nothing here may be called inside it but `close`

        >>> with imgdl.Cache(folder) as cache, imgdl.Downloader(cache=cache) as downloader:
        ...     image = downloader.download(url).result()
        ...     cache.statistics().hits
        0

    Downloaders hold the cache, too: it closes with the last of them.
    """

    def __init__(
        self,
        directory: Optional[_options.Path] = None,
        *,
        max_bytes: Optional[int] = None,
        max_memory_bytes: Optional[int] = None,
        max_image_bytes: Optional[int] = None,
        max_partial_bytes: Optional[int] = None,
        max_age: Optional[int] = None,
        on_event: Optional[Callable[[CacheEvent], object]] = None,
        **unknown: NoReturn,
    ) -> None:
        _options.check_keywords(unknown, Cache.__init__, "Cache()")
        config = _native.imgdl_cache_config()
        _native.imgdl_cache_config_init(config, ctypes.sizeof(config))
        config.directory = _options.optional_path(directory, "directory")
        config.max_bytes = _options.unsigned(max_bytes, "max_bytes", 63)
        config.max_memory_bytes = _options.unsigned(max_memory_bytes, "max_memory_bytes", 63)
        config.max_image_bytes = _options.unsigned(max_image_bytes, "max_image_bytes", 63)
        config.max_partial_bytes = _options.unsigned(max_partial_bytes, "max_partial_bytes", 63)
        config.max_age_s = _options.unsigned(max_age, "max_age", 63)
        if on_event is not None:
            if not callable(on_event):
                raise TypeError(f"on_event must be callable, not {type(on_event).__name__}")
            config.callback = _on_event
            config.destructor = _on_end
            config.user_data = new_key()
        self._generation = _process.generation
        self._reference = CacheReference()
        try:
            if on_event is not None:
                _listeners.put(config.user_data, on_event)
            # Where an error is returned the destructor has been called.
            check(_native.imgdl_cache_open(config, self._reference))
            # For `end_at_exit`.
            _caches.add(self)
        except BaseException:
            self._reference.release()
            _listeners.pop(config.user_data)
            raise

    def _open(self) -> int:
        _process.check(self._generation)
        handle = self._reference.value
        if handle is None:
            raise error(Code.SHUT_DOWN, "the cache is closed")
        return handle

    def query(self, url: str) -> Optional[CacheEntry]:
        """The newest that is stored for a URL, whatever its Vary says and whoever may have it; None
        where there is nothing. What was stored while this machine's clock was ahead is newer than another
        only where its Date is later."""
        entry = _native.imgdl_cache_entry()
        _native.imgdl_cache_entry_init(entry, ctypes.sizeof(entry))
        code = _native.imgdl_cache_query(self._open(), _options.text(url, "the URL", Code.INVALID_URL), entry)
        if code == Code.NOT_CACHED:
            return None
        check(code)
        return CacheEntry(
            entry.status, entry.body_bytes, entry.stored_s, entry.used_s, entry.fresh_s, bool(entry.is_complete)
        )

    def remove(self, url: str) -> None:
        """Everything that is stored for a URL. Answers to requests that were sent before this call are not stored either."""
        check(_native.imgdl_cache_remove(self._open(), _options.text(url, "the URL", Code.INVALID_URL)))

    def remove_older(self, age: int) -> None:
        """What has not been used or validated for `age` seconds, in whole seconds: what was used in this second stays, also
        with 0 (`clear` takes all)."""
        seconds = _options.unsigned(_checks.integer(age, "age"), "age", 63, least=0)
        check(_native.imgdl_cache_remove_older(self._open(), seconds))

    def clear(self) -> None:
        """Everything. Answers to requests that were sent before this call are not stored either."""
        check(_native.imgdl_cache_clear(self._open()))

    def flush(self) -> None:
        """Writes what has been stored so far to the disk for good: a power cut loses none of it."""
        check(_native.imgdl_cache_flush(self._open()))

    def statistics(self) -> CacheStatistics:
        """What it did, and how much is stored."""
        native = _native.imgdl_cache_stats()
        _native.imgdl_cache_stats_init(native, ctypes.sizeof(native))
        check(_native.imgdl_cache_statistics(self._open(), native))
        values: Iterator[Any] = (getattr(native, name) for name in CacheStatistics._fields)
        return CacheStatistics(bool(next(values)), *values)

    def close(self) -> None:
        """Lets go of it. Without a downloader that holds it, it writes what is left and closes, and this waits for that,
        except inside on_event. Any number of times."""
        self._reference.release()

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<imgdl.Cache {'closed' if self._reference.value is None else 'open'}>"


_caches: weakref.WeakSet[Cache] = weakref.WeakSet()
_listeners: Registry[Callable[[CacheEvent], object]] = Registry()


@callback(_native.callback_type(_native.imgdl_cache_config, "callback"))
def _on_event(pointer: Any, key: int) -> None:
    listener = _listeners.get(key)
    if listener is None:
        return
    try:
        event = pointer.contents
        listener(CacheEvent(_KINDS.get(event.kind, "unknown"), text(event.message)))
    except BaseException as exception:
        if not keep(exception):
            report(exception)


@last_callback(_native.imgdl_destructor)
def _on_end(key: int) -> None:
    _listeners.pop(key)


def end_at_exit(timeout: float) -> None:
    """Before the process ends, after the downloaders: nobody is told anything by a thread of the library any more."""
    for cache in list(_caches):
        cache.close()
    _listeners.wait(lambda listeners: not listeners, timeout)


def _forget() -> None:
    _caches.clear()
    _listeners.clear()


_process.forget_in_child(_forget)
