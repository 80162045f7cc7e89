"""What tokens and batches have in common: an end, and those who wait for it."""

from __future__ import annotations

import contextvars
import sys
import types
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _callbacks, _once, _options, _process
from ._pump import Pump
from ._waiting import Waiters
from .errors import Code, error, report

_once.refuse_reload(globals())

if TYPE_CHECKING:
    import asyncio


class OnLoop:
    """A done callback that was added where a loop runs: it is called there, as those of asyncio's own futures are."""

    __slots__ = ("function", "_loop", "_context")

    def __init__(self, function: Callable[[Any], object], loop: asyncio.AbstractEventLoop) -> None:
        self.function = function
        self._loop = loop
        self._context = contextvars.copy_context()

    def __call__(self, pending: Pending) -> None:
        try:
            self._loop.call_soon_threadsafe(call_apart, self.function, pending, context=self._context)
        except RuntimeError:
            # The loop is closed.
            self.function(pending)


def call_apart(function: Callable[[Any], object], pending: Pending) -> None:
    """What it raises is no business of who calls here, but for an interrupt."""
    try:
        function(pending)
    except BaseException as exception:
        if _callbacks.is_interrupt(exception):
            raise
        report(exception)


def _running_loop() -> Optional[asyncio.AbstractEventLoop]:
    """Of this thread; asyncio is not imported for that."""
    events = sys.modules.get("asyncio.events")
    return None if events is None else events._get_running_loop()


class Pending(_process.OfThisProcess):
    """Something that is outstanding on a pump."""

    __slots__ = ("_pump", "_generation", "_hooks", "_waiters", "_context", "_failure", "_trace")

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._generation = _process.generation
        # Guarded by the lock of the downloader's state.
        self._hooks: list[Callable[[Any], object]] = []
        self._waiters = Waiters()
        # What callbacks on a loop see.
        self._context = contextvars.copy_context()
        # What a callback raised.
        self._failure: Optional[BaseException] = None
        # From where. Raised twice it would gather tracebacks, and with them what the frames hold.
        self._trace: Optional[types.TracebackType] = None

    def done(self) -> bool:
        """Whether it has ended, so that nothing is waited for any more."""
        raise NotImplementedError

    def _give(self) -> Any:
        """The result, or what went wrong."""
        raise NotImplementedError

    def cancel(self) -> None:
        raise NotImplementedError

    @property
    def _name(self) -> str:
        """For messages."""
        raise NotImplementedError

    def _when_done(self, hook: Callable[[Any], object]) -> bool:
        """False if it is done already: the hook is not called."""
        if self.done():
            return False
        _process.check(self._generation)
        with self._pump.state.lock:
            if self.done():
                return False
            self._hooks.append(hook)
        return True

    def _placed(self, function: Callable[[Any], object]) -> Callable[[Any], object]:
        """A hook that calls the function on the loop that runs here, if one does that is not the pump's own."""
        loop = _running_loop()
        return function if loop is None or self._pump.is_of(loop) else OnLoop(function, loop)

    def _take_back(self, function: Callable[[Any], object]) -> int:
        """How many hooks called that function, and will not; none once it is done."""
        _process.check(self._generation)
        with self._pump.state.lock:
            if self.done():
                return 0
            before = len(self._hooks)
            self._hooks[:] = [
                hook for hook in self._hooks if (hook.function if isinstance(hook, OnLoop) else hook) != function
            ]
            return before - len(self._hooks)

    def _keep(self, exception: BaseException) -> None:
        """The first that a callback raised takes the place of the result."""
        if self._failure is None:
            self._trace = exception.__traceback__
            self._failure = exception

    def _report(self, exception: BaseException) -> None:
        """What a callback raised, which C cannot carry."""
        if not self._pump.interrupted(exception):
            report(exception)

    def _run_hooks(self) -> None:
        """It has ended: no lock is held. May be called again."""
        hooks = self._hooks
        try:
            while hooks:
                hook = hooks[0]
                del hooks[0]
                try:
                    self._pump.call(hook, self)
                except BaseException as exception:
                    self._report(exception)
        finally:
            self._waiters.wake()

    def _check_forsaken(self) -> None:
        if self._pump.is_forsaken and not self.done():
            raise error(Code.WOULD_DEADLOCK, "its loop is closed, so that nothing tells its end but Downloader.close")

    def _check_waiting(self) -> None:
        """Raises why this thread cannot wait for it, or what struck it before."""
        _callbacks.raise_struck()
        _process.check(self._generation)
        self._check_forsaken()
        if self._pump.is_own_thread:
            raise error(Code.WOULD_DEADLOCK, "this thread runs the callbacks of the download that it would wait for")
        if _callbacks.is_on_its_thread():
            raise error(Code.WOULD_DEADLOCK, "downloads wait for this thread")

    def _wait(self, timeout: Optional[float]) -> None:
        limit = _options.waiting(timeout)
        if self.done():
            return
        self._check_waiting()
        # In Python, not in the library: so that Ctrl-C ends the wait.
        if not self._waiters.wait_for(self.done, limit):
            raise error(Code.WAIT_TIMEOUT, f"not done within {timeout} s: {self._name}")
