"""Executors of the library, and who runs their callbacks: a thread here, an event loop in aio.py.

The library's own threads call Python for hooks, observers, loaders and codecs alone (see _callbacks.py). For events
they write to an executor's descriptor, and a thread of Python dispatches.
An executor is released by whoever dispatches it, and only when nothing is outstanding on it, because otherwise the
library would call destructors on threads of its own.
"""

from __future__ import annotations

import ctypes
import os
import select
import threading
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _native, _process
from .errors import check, report

if TYPE_CHECKING:
    from ._state import State


class Pump:
    """One executor. What is said to be guarded is so by the lock of the downloader's state."""

    def __init__(self, state: State) -> None:
        executor = ctypes.c_void_p()
        check(_native.imgdl_executor_create_pumped(executor))
        assert executor.value
        self.executor: int = executor.value
        self.descriptor: int = _native.imgdl_executor_fd(self.executor)
        self.state = state
        # From before imgdl_download until the destructor has run. Guarded.
        self.outstanding = 0
        # Guarded.
        self.is_stopping = False
        self.is_dispatching = False
        # The thread that runs the callbacks; None before the first.
        self.thread: Optional[int] = None
        # A KeyboardInterrupt or SystemExit out of a callback.
        self.interrupt: Optional[BaseException] = None

    @property
    def is_own_thread(self) -> bool:
        """Whether waiting here for a callback would be to wait for oneself."""
        return threading.get_ident() == self.thread

    @property
    def is_inside_callback(self) -> bool:
        return self.is_dispatching and self.is_own_thread

    def dispatch(self, maximum: int = 0) -> None:
        self.is_dispatching = True
        try:
            check(_native.imgdl_executor_dispatch(self.executor, maximum, None))
        finally:
            self.is_dispatching = False

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Calls a function of the user's, here."""
        function(*arguments)

    def accept(self, count: int) -> None:
        """So many more are about to be outstanding. The lock is held."""
        self.outstanding += count

    def interrupted(self, exception: BaseException) -> None:
        """A callback raised what is meant to end more than a callback."""

    def stop(self) -> None:
        """End as soon as nothing is outstanding. Any thread, also inside the garbage collector."""
        raise NotImplementedError

    def join(self, timeout: Optional[float]) -> None:
        """Waits for the end. Not inside a callback."""
        raise NotImplementedError

    def forget(self) -> None:
        """In a forked child: lets go of what the child has a copy of."""
        _native.imgdl_executor_release(self.executor)


class ThreadPump(Pump):
    """Callbacks on a thread of their own, which begins with the first download."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._runner: Optional[threading.Thread] = None
        self._wake_reader = self._wake_writer = -1

    def accept(self, count: int) -> None:
        if self._runner is None:
            self._wake_reader, self._wake_writer = os.pipe()
            # A daemon, because others are joined before the handler at exit can end them.
            runner = threading.Thread(target=self._run, name="imgdl", daemon=True)
            try:
                runner.start()
            except BaseException:
                os.close(self._wake_reader)
                os.close(self._wake_writer)
                raise
            self._runner = runner
        self.outstanding += count

    def _run(self) -> None:
        self.thread = threading.get_ident()
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        poll.register(self._wake_reader, select.POLLIN)
        # The pipe is closed after its only byte was read: nobody can write to what the number names later.
        is_stopping = False
        while not (is_stopping and self.outstanding == 0):
            for descriptor, _ in poll.poll():
                if descriptor == self.descriptor:
                    self.dispatch()
                    self._end_if_forked()
                else:
                    os.read(self._wake_reader, 1)
                    poll.unregister(self._wake_reader)
                    is_stopping = True
        _native.imgdl_executor_release(self.executor)
        os.close(self._wake_reader)
        os.close(self._wake_writer)
        self.state.pump_ended(self)

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
        with self.state.lock:
            if self.is_stopping:
                return
            self.is_stopping = True
            if self._runner is not None:
                os.write(self._wake_writer, b"\0")
                return
        _native.imgdl_executor_release(self.executor)
        self.state.pump_ended(self)

    def join(self, timeout: Optional[float]) -> None:
        if self._runner is not None:
            self._runner.join(timeout)

    def forget(self) -> None:
        super().forget()
        if self._wake_reader >= 0 and not self.is_stopping:
            os.close(self._wake_reader)
            os.close(self._wake_writer)
