"""asyncio: callbacks on the loop, which watches an executor's descriptor. No thread takes part."""

from __future__ import annotations

import asyncio
import threading
import time
import types
from collections.abc import Awaitable, Generator
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _callbacks, _once
from ._pump import Pump, Waker
from ._waiting import Flag, surely
from .errors import Code, Error

_once.refuse_reload(globals())

if TYPE_CHECKING:
    from ._pending import Pending
    from ._state import State

# Callbacks before the loop has its turn again.
_BATCH = 64
# How often who waits for a loop of another thread looks whether that still runs.
_SECONDS_BETWEEN_LOOKS = 0.1


class LoopPump(Pump):
    """Callbacks on one event loop. Made on its thread."""

    def __init__(self, state: State, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(state)
        self.loop = loop
        # The last that ran the loop.
        self.thread = threading.get_ident()
        # Whether downloads may be put on it: not before the loop watches the executor.
        self.is_ready = False
        self._ended = Flag()

    def open(self) -> None:
        super().open()
        self.loop.add_reader(self.descriptor, self._on_readable)
        self.is_ready = True

    def is_of(self, loop: asyncio.AbstractEventLoop) -> bool:
        return self.loop is loop

    @property
    def is_forsaken(self) -> bool:
        # A waker is that of a thread that takes the loop's place.
        return self.loop.is_closed() and not self._wakers

    @property
    def is_own_thread(self) -> bool:
        if asyncio._get_running_loop() is self.loop:
            return True
        # Threads may run it in turn.
        return threading.get_ident() == self.thread and not self.loop.is_running()

    def _on_readable(self) -> None:
        if self._ended.is_set():
            return
        self.thread = threading.get_ident()
        # What is left keeps the descriptor readable.
        try:
            self.dispatch(_BATCH)
        finally:
            if self.is_over:
                self.retire()

    def dispatch(self, maximum: int = 0) -> None:
        try:
            super().dispatch(maximum)
        except Error as problem:
            # The loop runs again while another thread stands in its place: that one is at it, or has ended it.
            is_ended = problem.code == Code.INVALID_HANDLE and not self._reference.value
            if problem.code != Code.WOULD_DEADLOCK and not is_ended:
                raise

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        # The loop's own is that of whoever asked for the first download.
        pending: Pending = arguments[0]
        pending._context.run(function, *arguments)

    def interrupted(self, exception: BaseException) -> bool:
        # C cannot carry it: the loop gets it when the dispatch is over.
        return _callbacks.keep(exception)

    def retire(self) -> None:
        """Nothing is outstanding. May be called again, also where it was opened since."""
        # The number may be another's once the executor is released.
        if self._reference.value and self.descriptor >= 0 and not self.loop.is_closed():
            self.loop.remove_reader(self.descriptor)
        self._reference.release()
        self.state.pump_ended(self)
        self._ended.set()

    @property
    def _runs_elsewhere(self) -> bool:
        return self.loop.is_running() and asyncio._get_running_loop() is not self.loop

    def wake(self) -> None:
        super().wake()
        if self._runs_elsewhere:
            try:
                self.loop.call_soon_threadsafe(self._on_readable)
            except RuntimeError:
                pass  # closed at this moment

    def stop(self) -> None:
        self.is_stopping = True
        if self._runs_elsewhere:
            try:
                self.loop.call_soon_threadsafe(self._on_readable)
                return
            except RuntimeError:
                pass  # closed at this moment
        if self.is_over and not self.is_dispatching:
            self.retire()

    def join(self, timeout: Optional[float]) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._runs_elsewhere:
            left = _SECONDS_BETWEEN_LOOKS if deadline is None else min(deadline - time.monotonic(), _SECONDS_BETWEEN_LOOKS)
            # One that stops tells nobody.
            if self._ended.wait(left) or deadline is not None and time.monotonic() >= deadline:
                return
        if self._ended.is_set():
            return
        # The loop does not run, or waits for this very call: this thread takes its place.
        if not self.is_over:
            self.thread = threading.get_ident()
            waker = Waker()
            try:
                self._open_waker(waker)
                self._dispatch_until_over(waker.number)
            finally:
                surely(self._close_waker, waker)
        self.retire()


# Generators, and no coroutines: of one that an interrupt strikes before it begins, Python would warn that nobody awaits it.


def awaiting(pending: Pending) -> Generator[Any, None, Any]:
    """What `await token` and `await batch` do."""
    loop = asyncio.get_running_loop()
    try:
        yield from _ending(pending, loop)
    except asyncio.CancelledError:
        yield from _cancelling(pending)
        raise
    return pending._give()


def _cancelling(pending: Pending) -> Generator[Any, None, None]:
    """Cancels it unless it is done. No callback runs any more afterwards."""
    if not pending.done():
        pending.cancel()
        yield from _ending(pending, asyncio.get_running_loop())


def _ending(pending: Pending, loop: asyncio.AbstractEventLoop) -> Generator[Any, None, None]:
    future = loop.create_future()

    def settle() -> None:
        if not future.done():
            future.set_result(None)

    _callbacks.raise_struck()
    pending._check_forsaken()
    if pending._when_done(lambda pending: call_on(loop, pending, settle)):
        yield from future


# For coroutines.
cancelled: Callable[[Pending], Awaitable[None]] = types.coroutine(_cancelling)
end_of: Callable[[Pending, asyncio.AbstractEventLoop], Awaitable[None]] = types.coroutine(_ending)


def call_on(loop: asyncio.AbstractEventLoop, pending: Pending, function: Callable[[], None]) -> None:
    """On the loop: at once where this is one of its callbacks."""
    pump = pending._pump
    if pump.is_of(loop) and pump.is_own_thread:
        function()
        return
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        pass  # the loop is closed: nobody waits
