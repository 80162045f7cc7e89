"""Executors of the library, and who runs their callbacks: a thread here, an event loop in aio.py.

The library's own threads call Python for hooks, observers, loaders and codecs alone (see _callbacks.py). For events
they write to an executor's descriptor, and a thread of Python dispatches.
An executor is released by whoever dispatches it, and only when nothing is outstanding on it, because otherwise the
library would call destructors on threads of its own.
"""

from __future__ import annotations

import _thread
import os
import select
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _native, _once, _process
from ._reference import ExecutorReference
from ._waiting import Flag
from .errors import check, report

_once.refuse_reload(globals())

if TYPE_CHECKING:
    import asyncio

    from ._state import State


class _Here(threading.local):
    dispatch_depth = 0


_here = _Here()
# A child that was forked in a callback has the thread for its own.
_process.forget_in_child(lambda: _here.__dict__.clear())


def is_inside_callback() -> bool:
    """Whether this thread runs a pump's callbacks at this moment, of whatever downloader: who waits here for another pump
    keeps this one from callbacks that the other's thread may wait for in the same way."""
    return _here.dispatch_depth > 0


class Waker:
    """A descriptor that wakes a thread which waits for an executor's. Between it and its number no interrupt comes: what
    is called for both is C alone."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: list[int] = []

    @property
    def number(self) -> int:
        return self._numbers[0]

    def open(self) -> None:
        self._numbers.extend(map(os.eventfd, (0,), (os.EFD_CLOEXEC | os.EFD_NONBLOCK,)))

    def wake(self) -> None:
        for number in self._numbers:
            os.eventfd_write(number, 1)

    def close(self) -> None:
        """May be called again."""
        any(map(os.close, map(self._numbers.pop, range(len(self._numbers))[::-1])))


class Pump:
    """One executor. What is said to be guarded is so by the lock of the downloader's state.

    An interrupt may strike at any call. So nothing is counted up and down: what is outstanding is a set of numbers, and
    what ends a pump may be called again.
    """

    def __init__(self, state: State) -> None:
        self._reference = ExecutorReference()
        self.executor = 0
        self.descriptor = -1
        self.state = state
        # The numbers of downloads and batches, from before the library is asked until their destructors have run.
        self.outstanding: set[int] = set()
        self.is_stopping = False
        self.is_dispatching = False
        # The thread that runs the callbacks; None before the first.
        self.thread: Optional[int] = None
        # Of the threads that wait for the executor's descriptor: several may close a downloader in a loop's place. Guarded.
        self._wakers: list[Waker] = []

    def is_of(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether that loop runs the callbacks."""
        return False

    @property
    def is_forsaken(self) -> bool:
        """Whether nothing runs the callbacks, until the pump is told to end."""
        return False

    @property
    def is_own_thread(self) -> bool:
        """Whether waiting here for a callback would be to wait for oneself."""
        return threading.get_ident() == self.thread

    @property
    def is_over(self) -> bool:
        """Nothing will be outstanding any more."""
        return self.is_stopping and not self.outstanding

    def open(self) -> None:
        """Makes the executor. The state has the pump already, and may end it meanwhile."""
        check(_native.imgdl_executor_create_pumped(self._reference))
        self.executor = self._reference.value or 0
        self.descriptor = int(_native.imgdl_executor_fd(self.executor))

    def dispatch(self, maximum: int = 0) -> None:
        depth = _here.dispatch_depth
        self.is_dispatching = True
        try:
            _here.dispatch_depth = depth + 1
            check(_native.imgdl_executor_dispatch(self.executor, maximum, None))
        finally:
            _here.dispatch_depth = depth
            self.is_dispatching = False

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Calls a function of the user's, here."""
        function(*arguments)

    def begin(self) -> None:
        """Before something is outstanding for the first time. No lock is held."""

    def accept(self, keys: Iterable[int]) -> None:
        """These are about to be outstanding. The lock is held."""
        self.outstanding.update(keys)

    def settled(self, key: int) -> None:
        """It is not outstanding any more. Any thread; may be called again."""
        self.outstanding.discard(key)
        if self.is_over:
            self.wake()

    def wake(self) -> None:
        """Has the thread of the pump look whether it is over."""
        with self.state.lock:
            for waker in self._wakers:
                waker.wake()

    def _open_waker(self, waker: Waker) -> None:
        with self.state.lock:
            self._wakers.append(waker)
            waker.open()

    def _close_waker(self, waker: Waker) -> None:
        """May be called again."""
        with self.state.lock:
            if waker in self._wakers:
                self._wakers.remove(waker)
            waker.close()

    def _dispatch_until_over(self, waking: int) -> None:
        """`waking` is of a waker of this thread."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        poll.register(waking, select.POLLIN)
        while not self.is_over:
            for descriptor, _ in poll.poll():
                if descriptor == self.descriptor:
                    self._dispatch_here()
                else:
                    os.eventfd_read(waking)

    def _dispatch_here(self) -> None:
        self.dispatch()

    def interrupted(self, exception: BaseException) -> bool:
        """A callback raised that. Whether it is meant to end more than a callback, and will be raised where it does."""
        return False

    def stop(self) -> None:
        """End as soon as nothing is outstanding. Any thread, also inside the garbage collector; may be called again."""
        raise NotImplementedError

    def join(self, timeout: Optional[float]) -> None:
        """Waits for the end. Not inside a callback."""
        raise NotImplementedError

    def forget(self) -> None:
        """In a forked child: lets go of what the child has a copy of."""
        self._reference.release()
        for waker in self._wakers:
            waker.close()
        self._wakers.clear()


class _Attempt:
    """To begin a thread: who makes it hears how that one ended."""

    __slots__ = ("runner", "ended", "problem")

    def __init__(self, run: Callable[[], None]) -> None:
        # A daemon, because others are joined before the handler at exit can end them.
        self.runner = threading.Thread(target=run, name="imgdl", daemon=True)
        self.ended = Flag()
        self.problem: Optional[BaseException] = None


class ThreadPump(Pump):
    """Callbacks on a thread of their own, which begins with the first download.

    Python starts threads in a way that no interrupt must strike. So a thread that nothing strikes starts it.
    """

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._runner: Optional[threading.Thread] = None
        self._waker = Waker()
        # Who comes first may begin: a thread, or the pump itself, which has ended without one.
        self._claims: list[object] = []
        self._begun = Flag()
        self._ended = Flag()

    def begin(self) -> None:
        while not self._begun.is_set():
            attempt = _Attempt(self._run)
            _thread.start_new_thread(self._start, (attempt,))
            # One that was interrupted here before may have begun it.
            attempt.ended.wait()
            problem = attempt.problem
            if problem is not None:
                attempt.problem = None
                try:
                    raise problem
                finally:
                    del problem

    def _start(self, attempt: _Attempt) -> None:
        try:
            self._claims.append(attempt)
            # Who was first may have failed, and made room, since.
            first = next(iter(self._claims), None)
            if first is self:
                self._begun.set()  # the downloader is closed
            elif isinstance(first, _Attempt) and first is not attempt:
                first.ended.wait()
            elif first is attempt:
                self._begin_now(attempt)
        finally:
            attempt.ended.set()

    def _begin_now(self, attempt: _Attempt) -> None:
        try:
            self._open_waker(self._waker)
            attempt.runner.start()
            self._runner = attempt.runner
            self._begun.set()
        except BaseException as problem:
            self._close_waker(self._waker)
            attempt.problem = problem
            self._claims.clear()
            if self.is_stopping:
                self.stop()

    def _run(self) -> None:
        self.thread = threading.get_ident()
        self._dispatch_until_over(self._waker.number)
        self._close_waker(self._waker)
        self._reference.release()
        self.state.pump_ended(self)
        self._ended.set()

    def _dispatch_here(self) -> None:
        self.dispatch()
        self._end_if_forked()

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        # At once after it, because what follows takes locks, which a child may find taken for ever.
        try:
            function(*arguments)
        except BaseException as exception:
            if not self._is_forked:
                raise
            report(exception)
        self._end_if_forked()

    @property
    def _is_forked(self) -> bool:
        return self.state.generation != _process.generation

    def _end_if_forked(self) -> None:
        """A child that was forked in a callback has this thread for its own, which has nothing to go back to."""
        if self._is_forked:
            os._exit(0)

    def stop(self) -> None:
        self.is_stopping = True
        self._claims.append(self)
        if self._claims[0] is self:
            self._reference.release()
            self.state.pump_ended(self)
            self._ended.set()
        else:
            self.wake()

    def join(self, timeout: Optional[float]) -> None:
        if self._ended.wait(timeout) and self._runner is not None:
            self._runner.join(timeout)
