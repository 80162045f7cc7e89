"""`Downloader`: the queue, its connections, and the threads or loops that callbacks run on."""

from __future__ import annotations

import atexit
import ctypes
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, Literal, Optional, TypedDict, Union, overload

from . import _native, _options, _process
from ._pump import Pump, ThreadPump
from .errors import Code, check, error
from .image import Body, Image, ImageInfo
from .response import Response
from .token import Token, _outstanding, submit

if TYPE_CHECKING:
    import asyncio

    from typing_extensions import Unpack

    from .aio import LoopPump

    class Options(TypedDict, total=False):
        method: Optional[str]
        headers: Optional[Mapping[str, Optional[str]]]
        content: Optional[Union[bytes, bytearray, memoryview]]
        decode: Optional[bool]
        priority: Union[str, int]
        follow_redirects: bool
        allow_downgrade: bool
        any_status: bool
        max_body_bytes: Optional[int]
        total_timeout: Optional[float]
        partial_interval: Optional[float]
        pixel_format: Optional[str]
        ignore_orientation: bool
        salvage: bool
        max_pixels: Optional[int]
        on_started: Optional[Callable[[Token[Any]], object]]
        on_response: Optional[Callable[[Token[Any], Response], object]]
        on_header: Optional[Callable[[Token[Any], ImageInfo], object]]
        on_progress: Optional[Callable[[Token[Any], int, Optional[int]], object]]
        on_partial: Optional[Callable[[Token[Any], Image], object]]


# How long the exit of the process waits for callbacks that do not return.
_SECONDS_AT_EXIT = 5.0

_downloaders: weakref.WeakSet[Downloader] = weakref.WeakSet()
_shared: Optional[Downloader] = None
_shared_lock = threading.Lock()


class State:
    """What a downloader is besides its Python object, which may be garbage while this still ends."""

    def __init__(self, is_shared: bool, config: Any) -> None:
        self.is_shared = is_shared
        self.generation = _process.generation
        # Reentrant, because the garbage collector and signal handlers may come by while it is held.
        self.lock = threading.RLock()
        self.is_idle = threading.Condition(self.lock)
        # All guarded.
        self.outstanding = 0
        self.is_closing = False
        self.is_finished = False
        self.pumps: list[Pump] = []

        self.thread_pump = ThreadPump(self)
        handle = ctypes.c_void_p()
        try:
            if is_shared:
                check(_native.imgdl_downloader_shared(handle))
            else:
                # Also where no request names it: then the library starts no thread for callbacks.
                config.executor = self.thread_pump.executor
                check(_native.imgdl_downloader_create(config, handle))
        except BaseException:
            self.thread_pump.stop()
            raise
        assert handle.value
        self.handle: int = handle.value
        self.pumps.append(self.thread_pump)

    def open(self) -> int:
        """The handle. Raises `Error` after close and after fork."""
        _process.check(self.generation)
        if self.is_closing:
            raise error(Code.SHUT_DOWN, "the downloader is closed")
        return self.handle

    # What is outstanding

    def accept(self, loop: Optional[asyncio.AbstractEventLoop]) -> Pump:
        """Counts a download that is about to be made; `release` takes it back."""
        _process.check(self.generation)
        if loop is not None:
            self._end_pumps_of_closed_loops()
        with self.lock:
            self.open()
            pump: Pump = self.thread_pump if loop is None else self._loop_pump(loop)
            pump.accept()
            self.outstanding += 1
            return pump

    def release(self, pump: Pump) -> None:
        with self.lock:
            pump.outstanding -= 1
            self.outstanding -= 1
            if self.outstanding == 0:
                self.is_idle.notify_all()

    def wait_idle(self, timeout: Optional[float]) -> None:
        _process.check(self.generation)
        with self.lock:
            if any(pump.outstanding and pump.is_own_thread for pump in self.pumps):
                raise error(Code.WOULD_DEADLOCK, "this thread runs callbacks that it would wait for")
            if not self.is_idle.wait_for(lambda: self.outstanding == 0, timeout):
                raise error(Code.WAIT_TIMEOUT, f"not idle within {timeout} s")

    def cancel_on(self, pump: Optional[Pump] = None) -> None:
        for token in list(_outstanding.values()):
            if token._pump.state is self and pump in (None, token._pump):
                token.cancel()

    # Loops

    def _loop_pump(self, loop: asyncio.AbstractEventLoop) -> LoopPump:
        from .aio import LoopPump

        for pump in self.pumps:
            if isinstance(pump, LoopPump) and pump.loop is loop:
                return pump
        pump = LoopPump(self, loop)
        self.pumps.append(pump)
        return pump

    def _end_pumps_of_closed_loops(self) -> None:
        for pump in list(self.pumps):
            if pump is not self.thread_pump and pump.loop.is_closed():  # type: ignore[attr-defined]
                self.cancel_on(pump)
                pump.stop()
                pump.join(None)

    # The end

    def close(self, timeout: Optional[float] = None) -> None:
        with self.lock:
            self.is_closing = True
            if self.is_finished:
                return
            pumps = list(self.pumps)
            if not self.is_shared:
                check(
                    _native.imgdl_downloader_shutdown(
                        self.handle, _native.IMGDL_SHUTDOWN_CANCEL, _native.imgdl_destructor(), None
                    )
                )
        if self.is_shared:
            self.cancel_on()
        for pump in pumps:
            pump.stop()
        if any(pump.is_inside_callback for pump in pumps):
            return  # the last pump does the rest
        for pump in pumps:
            pump.join(timeout)
        if not self.pumps:
            self._finish()

    def pump_ended(self, pump: Pump) -> None:
        with self.lock:
            if pump in self.pumps:
                self.pumps.remove(pump)
            if self.pumps or not self.is_closing:
                return
        self._finish()

    def _finish(self) -> None:
        with self.lock:
            if self.is_finished:
                return
            self.is_finished = True
        if self.is_shared:
            _native.imgdl_downloader_release(self.handle)
        else:
            _native.imgdl_downloader_destroy(self.handle)

    def abandon(self) -> None:
        """The Python object is garbage, so that nothing is outstanding. Waits for nothing."""
        if self.generation != _process.generation:
            self.forget()
            return
        with self.lock:
            if self.is_closing:
                return
            self.is_closing = self.is_finished = True
            pumps = list(self.pumps)
        _native.imgdl_downloader_release(self.handle)
        for pump in pumps:
            pump.stop()

    def forget(self) -> None:
        """In a forked child: neither locks nor threads nor loops are what they were."""
        if not self.is_finished:
            self.is_closing = self.is_finished = True
            _native.imgdl_downloader_release(self.handle)
            for pump in self.pumps:
                pump.forget()


class Downloader:
    """Downloads pictures; make one and keep it. Requests for the same bytes share one transfer.

    max_concurrent   running transfers, 6 by default
    order            "fifo" (the default) or "lifo", among waiting requests of one priority
    decode_threads   one for each core by default
    connect_timeout  seconds for name, connection and TLS, 15 by default
    idle_timeout     seconds without a byte, 15 by default
    max_redirects    10 by default
    user_agent       "imgdl/VERSION" by default
    ca_file          PEM certificates to trust instead of the system's

    Callbacks run on a thread that belongs to this object, one at a time, or on the event loop that `download` was given.
    A with statement closes it at its end. One that is let go without that finishes what it has accepted.
    """

    def __init__(
        self,
        *,
        max_concurrent: Optional[int] = None,
        order: Union[str, int] = "fifo",
        decode_threads: Optional[int] = None,
        connect_timeout: Optional[float] = None,
        idle_timeout: Optional[float] = None,
        max_redirects: Optional[int] = None,
        user_agent: Optional[str] = None,
        ca_file: Optional[str] = None,
    ) -> None:
        config = _options.config(
            max_concurrent=max_concurrent,
            order=order,
            decode_threads=decode_threads,
            connect_timeout=connect_timeout,
            idle_timeout=idle_timeout,
            max_redirects=max_redirects,
            user_agent=user_agent,
            ca_file=ca_file,
        )
        self._begin(State(False, config), max_concurrent or _native.IMGDL_DEFAULT_MAX_CONCURRENT)

    def _begin(self, state: State, max_concurrent: int) -> None:
        self._state = state
        self._max_concurrent = max_concurrent
        self._is_suspended = False
        # At exit there is more to do, see below.
        weakref.finalize(self, state.abandon).atexit = False
        _downloaders.add(self)

    @classmethod
    def shared(cls) -> Downloader:
        """The one that the process shares, also with other languages; with defaults. Closing it cancels the downloads
        made here, and the next call gives it anew."""
        global _shared
        generation = _process.generation
        with _shared_lock:
            if _shared is None or _shared._state.generation != generation or _shared._state.is_closing:
                downloader = cls.__new__(cls)
                downloader._begin(State(True, None), _native.IMGDL_DEFAULT_MAX_CONCURRENT)
                _shared = downloader
            return _shared

    # Downloads

    @overload
    def download(
        self,
        url: str,
        *,
        body: Literal[False] = False,
        loop: Optional[asyncio.AbstractEventLoop] = None,
        **options: Unpack[Options],
    ) -> Token[Image]: ...

    @overload
    def download(
        self,
        url: str,
        *,
        body: Literal[True],
        loop: Optional[asyncio.AbstractEventLoop] = None,
        **options: Unpack[Options],
    ) -> Token[Body]: ...

    def download(
        self,
        url: str,
        *,
        body: bool = False,
        loop: Optional[asyncio.AbstractEventLoop] = None,
        on_started: Optional[Callable[[Token[Any]], object]] = None,
        on_response: Optional[Callable[[Token[Any], Response], object]] = None,
        on_header: Optional[Callable[[Token[Any], ImageInfo], object]] = None,
        on_progress: Optional[Callable[[Token[Any], int, Optional[int]], object]] = None,
        on_partial: Optional[Callable[[Token[Any], Image], object]] = None,
        **options: Any,
    ) -> Token[Any]:
        """Asks for one download. Raises `Error` where the request cannot be one; what happens later, the token tells.

        body              the result is the `Body`, of any type, instead of an `Image`
        decode            with `body`: decode it too, for `Body.image`
        headers           a mapping; they take the place of the downloader's of the same name, None: not sent
        method, content   what to send; GET and nothing by default
        priority          "low", "normal" or "high"
        follow_redirects  False: a redirect is an answer like any other
        allow_downgrade   follow redirects from https to http too
        any_status        any HTTP status is a success; see `Body.http_status`
        max_body_bytes    256 MiB by default
        total_timeout     seconds from the start of the transfer to the last decode; none by default
        partial_interval  seconds between two partial images, 0.1 by default
        pixel_format, ignore_orientation, salvage, max_pixels
                          as for `decode`

        on_started(token)                        the transfer leaves the queue
        on_response(token, response)             the server answered
        on_header(token, info)                   the size of the picture, from its first bytes
        on_progress(token, received, expected)   bytes; expected is None while unknown
        on_partial(token, image)                 the picture so far

        loop              the event loop, running on this thread, on which the callbacks run; otherwise it is the
                          downloader's own thread. Callbacks may use everything here but must not wait. What one raises
                          goes to sys.unraisablehook, cancels the download and is raised by its result.
        """
        request = _options.request(url, body=body, **options)
        callbacks: dict[int, Callable[..., Any]] = {}
        mask = _native.IMGDL_EVENT_TERMINAL
        if on_started is not None:
            callbacks[_native.IMGDL_EVENT_STARTED] = on_started
        if on_response is not None:
            callbacks[_native.IMGDL_EVENT_RESPONSE] = on_response
        elif body or options.get("any_status"):
            mask |= _native.IMGDL_EVENT_RESPONSE
        if on_header is not None:
            callbacks[_native.IMGDL_EVENT_HEADER] = on_header
        if on_progress is not None:
            callbacks[_native.IMGDL_EVENT_PROGRESS] = on_progress
        if on_partial is not None:
            callbacks[_native.IMGDL_EVENT_PARTIAL] = on_partial
        for kind in callbacks:
            mask |= kind
        request.event_mask = mask

        pump = self._state.accept(loop)
        token: Token[Any] = Token(url, self, pump, callbacks, body)
        submit(self._state.handle, request, token)
        return token

    @overload
    async def get(self, url: str, *, body: Literal[False] = False, **options: Unpack[Options]) -> Image: ...

    @overload
    async def get(self, url: str, *, body: Literal[True], **options: Unpack[Options]) -> Body: ...

    async def get(self, url: str, **options: Any) -> Any:
        """For coroutines: downloads, with callbacks on the running loop. Cancelling the task cancels the download."""
        import asyncio

        return await self.download(url, loop=asyncio.get_running_loop(), **options)

    # Settings

    def set_header(self, name: str, value: Optional[str]) -> None:
        """A header that every later request carries; None takes it out of the requests, also a default one (Accept,
        User-Agent)."""
        field = _options.text(name, "the name of a header", Code.INVALID_HEADER)
        content = None if value is None else _options.text(value, f"the header {name}", Code.INVALID_HEADER)
        check(_native.imgdl_downloader_set_header(self._state.open(), field, content))

    @property
    def max_concurrent(self) -> int:
        """How many transfers may run. Fewer than now: the running ones run on."""
        return self._max_concurrent

    @max_concurrent.setter
    def max_concurrent(self, value: int) -> None:
        number = _options.unsigned(value, "max_concurrent")
        check(_native.imgdl_downloader_set_max_concurrent(self._state.open(), number))
        self._max_concurrent = number

    def set_order(self, order: Union[str, int]) -> None:
        """ "fifo" or "lifo", for requests made from now on."""
        check(_native.imgdl_downloader_set_order(self._state.open(), _options.order(order)))

    @property
    def suspended(self) -> bool:
        """While true nothing that waits is started; what runs runs on."""
        return self._is_suspended

    @suspended.setter
    def suspended(self, value: bool) -> None:
        check(_native.imgdl_downloader_set_suspended(self._state.open(), bool(value)))
        self._is_suspended = bool(value)

    # All downloads

    @property
    def current_count(self) -> int:
        """Accepted downloads that have not ended."""
        _process.check(self._state.generation)
        return 0 if self._state.is_finished else int(_native.imgdl_downloader_current_count(self._state.handle))

    def cancel_all(self) -> None:
        """Cancels every download accepted so far."""
        check(_native.imgdl_downloader_cancel_all(self._state.open()))

    def wait_idle(self, timeout: Optional[float] = None) -> None:
        """Waits until every download made here has ended, `timeout` seconds at most. Raises `WaitTimeout`."""
        self._state.wait_idle(timeout)

    def close(self) -> None:
        """Cancels what is outstanding, and waits until everything has ended: callbacks, threads, connections. Any number
        of times; inside a callback it does not wait. In a coroutine, prefer `aclose`."""
        self._close(None)

    def _close(self, timeout: Optional[float]) -> None:
        if self._state.generation != _process.generation:
            self._state.forget()
        else:
            self._state.close(timeout)

    async def aclose(self) -> None:
        """`close` without blocking the loop."""
        import asyncio

        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def __enter__(self) -> Downloader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def __aenter__(self) -> Downloader:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<imgdl.Downloader {'closed' if self._state.is_closing else 'open'}>"


@overload
def get(
    url: str, *, body: Literal[False] = False, timeout: Optional[float] = None, **options: Unpack[Options]
) -> Image: ...


@overload
def get(url: str, *, body: Literal[True], timeout: Optional[float] = None, **options: Unpack[Options]) -> Body: ...


def get(url: str, *, timeout: Optional[float] = None, **options: Any) -> Any:
    """Downloads with the shared downloader and waits, `timeout` seconds at most. The options are those of
    `Downloader.download`."""
    token = Downloader.shared().download(url, **options)
    try:
        return token.result(timeout)
    finally:
        token.cancel()  # where the wait ended first


def _close_all() -> None:
    for downloader in list(_downloaders):
        downloader._close(_SECONDS_AT_EXIT)


def _forget_all() -> None:
    global _shared, _shared_lock
    _shared = None
    _shared_lock = threading.Lock()
    _downloaders.clear()


atexit.register(_close_all)
_process.forget_in_child(_forget_all)
