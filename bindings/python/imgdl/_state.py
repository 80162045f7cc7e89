"""`State`: what a downloader is besides its Python object."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _callbacks, _native, _once, _options, _process, _pump, _sharing, transport
from ._observing import Observer, observe
from ._pump import Pump, ThreadPump
from ._reference import DownloaderReference
from ._waiting import Waiters, surely
from .errors import Code, Error, check, error
from .token import _outstanding

_once.refuse_reload(globals())

if TYPE_CHECKING:
    import asyncio

    from .aio import LoopPump


def check_loop(loop: object) -> None:
    if loop is None:
        return
    import asyncio  # who names a loop has it

    if not isinstance(loop, asyncio.AbstractEventLoop):
        raise TypeError(f"loop must be an event loop of asyncio, not {type(loop).__name__}")
    if loop.is_closed():
        raise error(Code.INVALID_ARGUMENT, "loop is closed")


def closed() -> Error:
    return error(Code.SHUT_DOWN, "the downloader is closed")


class State:
    """The Python object may be garbage while this still ends."""

    def __init__(self, is_shared: bool) -> None:
        self.is_shared = is_shared
        self.generation = _process.generation
        # Reentrant, because the garbage collector and signal handlers may come by while it is held.
        self.lock = threading.RLock()
        self._idle_waiters = Waiters()
        # All guarded.
        self.is_closing = False
        self.is_finished = False
        self._is_abandoned = False
        self.pumps: list[Pump] = []

        self.thread_pump = ThreadPump(self)
        self.pumps.append(self.thread_pump)
        self._reference = DownloaderReference()
        self.handle = 0

    def begin(self, config: Any) -> None:
        """Makes what is the library's. Whoever has it abandons it, also when this raises."""
        self.thread_pump.open()
        if self.is_shared:
            check(_native.imgdl_downloader_shared(self._reference))
        else:
            # Also where no request names it: then the library starts no thread for callbacks.
            config.executor = self.thread_pump.executor
            check(_native.imgdl_downloader_create(config, self._reference))
        assert self._reference.value
        self.handle = self._reference.value

    def open(self) -> int:
        """The handle. Raises `Error` after close and after fork."""
        _process.check(self.generation)
        if self.is_closing:
            raise closed()
        return self.handle

    # Loaders and observers

    def register(self, scheme: str, loader: Optional[transport.Loader]) -> None:
        handle = self.open()
        name = _options.text(scheme, "scheme", Code.INVALID_ARGUMENT).lower()
        self._give(name, loader, lambda: transport.register(handle, name, loader))

    def observe(self, observer: Optional[Observer]) -> None:
        handle = self.open()
        self._give(None, observer, lambda: observe(handle, observer))

    def _give(self, scheme: Optional[bytes], what: object, register: Callable[[], object]) -> None:
        if not self.is_shared:
            register()
        elif what is None:
            _sharing.take_out(scheme, register)
        else:
            _sharing.give(self, scheme, what, register)

    # What is outstanding

    def pump_for(self, loop: Optional[asyncio.AbstractEventLoop]) -> Pump:
        """The pump that runs the callbacks of downloads that are about to be made, on a loop that was checked. Raises `Error`
        after close and after fork."""
        _process.check(self.generation)
        if self.is_closing:
            raise closed()
        if loop is None:
            self.thread_pump.begin()
            return self.thread_pump
        self._end_pumps_of_closed_loops()
        with self.lock:
            if self.is_closing:
                raise closed()
            return self._loop_pump(loop)

    def accept(self, pump: Pump, keys: Iterable[int]) -> None:
        """Counts downloads that are about to be made; `release` takes each back."""
        with self.lock:
            if self.is_closing:
                raise closed()
            pump.accept(keys)

    def release(self, pump: Pump, key: int) -> None:
        """May be called again."""
        pump.settled(key)
        if self._is_idle():
            self._idle_waiters.wake()

    def _is_idle(self) -> bool:
        return not any(pump.outstanding for pump in list(self.pumps))

    def wait_idle(self, timeout: Optional[float]) -> None:
        _callbacks.raise_struck()
        _process.check(self.generation)
        limit = _options.waiting(timeout)
        if _callbacks.is_on_its_thread():
            raise error(Code.WOULD_DEADLOCK, "downloads wait for this thread")
        if any(pump.outstanding and pump.is_forsaken for pump in list(self.pumps)):
            raise error(Code.WOULD_DEADLOCK, "a loop is closed, so that nothing tells its downloads' end but Downloader.close")
        if any(pump.outstanding and pump.is_own_thread for pump in list(self.pumps)):
            raise error(Code.WOULD_DEADLOCK, "this thread runs callbacks that it would wait for")
        if not self._idle_waiters.wait_for(self._is_idle, limit):
            raise error(Code.WAIT_TIMEOUT, f"not idle within {timeout} s")

    def cancel_on(self, pump: Optional[Pump] = None) -> None:
        for pending in list(_outstanding.values()):
            if pending._pump.state is self and pump in (None, pending._pump):
                pending.cancel()

    # Loops

    def _loop_pump(self, loop: asyncio.AbstractEventLoop) -> LoopPump:
        from .aio import LoopPump

        for pump in self.pumps:
            if isinstance(pump, LoopPump) and pump.loop is loop and pump.is_ready:
                return pump
        pump = LoopPump(self, loop)
        try:
            # Before it has anything: what is called in `open`, or collected there, may close the downloader, or ask for a
            # download on this loop, which gets a pump of its own.
            self.pumps.append(pump)
            pump.open()
            if self.is_closing:
                raise closed()
        except BaseException as problem:
            # What was asked for since it was ready keeps it.
            pump.is_ready = False
            if not pump.outstanding:
                surely(pump.retire)
            if self.is_closing and not _callbacks.is_interrupt(problem):
                raise closed() from None
            if isinstance(problem, RuntimeError):
                check_loop(loop)  # another thread may have closed it since it was looked at
            raise
        return pump

    def _end_pumps_of_closed_loops(self) -> None:
        for pump in list(self.pumps):
            if pump is not self.thread_pump and pump.loop.is_closed():  # type: ignore[attr-defined]
                self.cancel_on(pump)
                pump.stop()
                pump.join(None)

    # The end

    def shut_down(self) -> list[Pump]:
        """Takes no more, and cancels what is outstanding. Waits for nothing; may be called again. The pumps that are
        left."""
        if self.generation != _process.generation:
            return []
        # One that takes no more and has cancelled nothing would have nobody left who can.
        surely(self._cancel_all)
        return [] if self.is_finished else list(self.pumps)

    def _cancel_all(self) -> None:
        with self.lock:
            self.is_closing = True
            if self.is_finished:
                return
            if not self.is_shared:
                code = _native.imgdl_downloader_shutdown(
                    self.handle, _native.IMGDL_SHUTDOWN_CANCEL, _native.imgdl_destructor(), None
                )
                # Another thread that closes it may be further.
                if code != Code.INVALID_HANDLE:
                    check(code)
        if self.is_shared:
            self.cancel_on()

    def close(self, timeout: Optional[float] = None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        pumps = self.shut_down()
        if self.is_finished:
            return
        for pump in pumps:
            pump.stop()
        if _callbacks.is_on_its_thread() or _pump.is_inside_callback():
            return  # the last pump does the rest
        for pump in pumps:
            pump.join(None if deadline is None else max(deadline - time.monotonic(), 0))
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
        """Once, however often it is called: an interrupt may strike before it is through."""
        if self.is_finished:
            return
        if self.is_shared and self._reference.value:
            _sharing.take_back(self)
            self._reference.release()
        handle, self._reference.value = self._reference.value, None
        if handle:
            _native.imgdl_downloader_destroy(handle)
        self.is_finished = True

    def abandon(self) -> None:
        """The Python object is garbage, so that nothing is outstanding. Waits for nothing; may be called again, where an
        interrupt struck."""
        if self.generation != _process.generation:
            self.forget()
            return
        with self.lock:
            if self.is_finished and not self._is_abandoned:
                return
            if not self.is_closing:
                self._is_abandoned = True
            self.is_closing = True
            self.is_finished = self._is_abandoned
            pumps = list(self.pumps)
        if self._is_abandoned:
            self._reference.release()
        for pump in pumps:
            pump.stop()
        if not pumps:
            # An interrupt struck `close` before its last step.
            self._finish()

    def forget(self) -> None:
        """In a forked child: neither locks nor threads nor loops are what they were."""
        if not self.is_finished:
            self.is_closing = self.is_finished = True
            self._reference.release()
            for pump in self.pumps:
                pump.forget()


# States whose `Possession` has not been finalized. Of a cycle the collector finalizes all in any order, and it would release
# an executor before the state is abandoned: these it does not take.
_possessed: set[State] = set()


class Possession:
    """What a downloader refers to its state by, and nobody else has: when it goes, it abandons the state."""

    # None where an interrupt struck `__init__`: nothing has begun that would have to end.
    state: Optional[State] = None

    def __init__(self, state: State) -> None:
        self.state = state
        _possessed.add(state)

    @_callbacks.finalizer
    def __del__(self) -> None:
        if self.state is not None:
            try:
                self.state.abandon()
            finally:
                _possessed.discard(self.state)
