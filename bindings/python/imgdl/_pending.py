"""What tokens and batches have in common: an end, and those who wait for it."""

from __future__ import annotations

import contextvars
from typing import Any, Callable, Optional

from . import _callbacks, _process
from ._pump import Pump
from ._waiting import Waiters
from .errors import Code, error, report


class Pending(_process.OfThisProcess):
    """Something that is outstanding on a pump."""

    __slots__ = ("_pump", "_generation", "_hooks", "_waiters", "_context", "_failure")

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

    def _check_waiting(self) -> None:
        """Raises why this thread cannot wait for it."""
        _process.check(self._generation)
        if self._pump.is_own_thread:
            raise error(Code.WOULD_DEADLOCK, "this thread runs the callbacks of the download that it would wait for")
        if _callbacks.is_on_its_thread():
            raise error(Code.WOULD_DEADLOCK, "downloads wait for this thread")

    def _wait(self, timeout: Optional[float]) -> None:
        if self.done():
            return
        self._check_waiting()
        # In Python, not in the library: so that Ctrl-C ends the wait.
        if not self._waiters.wait_for(self.done, timeout):
            raise error(Code.WAIT_TIMEOUT, f"not done within {timeout} s: {self._name}")
