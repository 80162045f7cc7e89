"""asyncio: callbacks on the loop, which watches an executor's descriptor. No thread takes part."""

from __future__ import annotations

import asyncio
import select
import threading
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _native
from ._pump import Pump

if TYPE_CHECKING:
    from ._pending import Pending
    from ._state import State

# Callbacks before the loop has its turn again.
_BATCH = 64


class LoopPump(Pump):
    """Callbacks on one event loop. Made on its thread."""

    def __init__(self, state: State, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(state)
        self.loop = loop
        self.thread = threading.get_ident()
        self._ended = threading.Event()
        try:
            loop.add_reader(self.descriptor, self._on_readable)
        except BaseException:
            _native.imgdl_executor_release(self.executor)
            raise

    def _on_readable(self) -> None:
        if self._ended.is_set():
            return
        # What is left keeps the descriptor readable.
        self.dispatch(_BATCH)
        if self.is_stopping and self.outstanding == 0:
            self._retire()
        interrupt, self.interrupt = self.interrupt, None
        if interrupt is not None:
            raise interrupt

    def interrupted(self, exception: BaseException) -> None:
        # C cannot carry it: the loop gets it when the dispatch is over.
        self.interrupt = exception

    def _retire(self) -> None:
        if self._ended.is_set():
            return
        if not self.loop.is_closed():
            self.loop.remove_reader(self.descriptor)
        _native.imgdl_executor_release(self.executor)
        self._ended.set()
        self.state.pump_ended(self)

    @property
    def _runs_elsewhere(self) -> bool:
        return not self.is_own_thread and self.loop.is_running()

    def stop(self) -> None:
        with self.state.lock:
            if self.is_stopping:
                return
            self.is_stopping = True
        if self._runs_elsewhere:
            try:
                self.loop.call_soon_threadsafe(self._on_readable)
                return
            except RuntimeError:
                pass  # closed at this moment
        if self.outstanding == 0 and not self.is_dispatching:
            self._retire()

    def join(self, timeout: Optional[float]) -> None:
        if self._runs_elsewhere:
            self._ended.wait(timeout)
            return
        # The loop does not run, or waits for this very call: this thread takes its place.
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        while self.outstanding:
            poll.poll()
            self.dispatch()
        self._retire()


async def wait(pending: Pending) -> Any:
    """What `await token` and `await batch` do."""
    loop = asyncio.get_running_loop()
    try:
        await end_of(pending, loop)
    except asyncio.CancelledError:
        await cancelled(pending)
        raise
    return pending._give()


async def cancelled(pending: Pending) -> None:
    """Cancels it unless it is done. No callback runs any more afterwards."""
    if not pending.done():
        pending.cancel()
        await end_of(pending, asyncio.get_running_loop())


async def end_of(pending: Pending, loop: asyncio.AbstractEventLoop) -> None:
    future = loop.create_future()

    def settle() -> None:
        if not future.done():
            future.set_result(None)

    if pending._when_done(lambda pending: call_on(loop, pending, settle)):
        await future


def call_on(loop: asyncio.AbstractEventLoop, pending: Pending, function: Callable[[], None]) -> None:
    """On the loop: at once where this is one of its callbacks."""
    pump = pending._pump
    if isinstance(pump, LoopPump) and pump.loop is loop and pump.is_own_thread:
        function()
        return
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        pass  # the loop is closed: nobody waits
