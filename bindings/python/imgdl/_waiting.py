"""Waiting that an interrupt leaves whole.

Events, conditions and threads of `threading` are written in Python. A signal's handler that raises inside of them, as
that of Ctrl-C does, leaves a lock of theirs taken for ever, and whoever comes next hangs. Here each waiter has a lock of
its own, and all else are single steps: whoever is interrupted loses nothing but its own wait.
"""

from __future__ import annotations

import _thread
import dis
import threading
import time
from typing import Any, Callable, Optional

from . import _once

_once.refuse_reload(globals())


class Waiters:
    """Those who wait until something holds."""

    __slots__ = ("_locks",)

    def __init__(self) -> None:
        self._locks: list[_thread.LockType] = []

    def wait_for(self, holds: Callable[[], object], timeout: Optional[float] = None) -> bool:
        """Waits, `timeout` seconds at most; whether it holds."""
        if holds():
            return True
        deadline = None if timeout is None else time.monotonic() + max(timeout, 0)
        lock = _thread.allocate_lock()
        lock.acquire()
        try:
            self._locks.append(lock)
            while not holds():
                left = -1 if deadline is None else min(max(deadline - time.monotonic(), 0), threading.TIMEOUT_MAX)
                if not lock.acquire(True, left) and left < threading.TIMEOUT_MAX:
                    return bool(holds())
            return True
        finally:
            if lock in self._locks:
                self._locks.remove(lock)

    def wake(self) -> None:
        """Has all of them look. Any thread, any number of times."""
        for lock in list(self._locks):
            try:
                lock.release()
            except RuntimeError:
                pass  # it has been told to look already


class Flag:
    """What an event of `threading` is."""

    __slots__ = ("_is_set", "_waiters")

    def __init__(self) -> None:
        self._is_set = False
        self._waiters = Waiters()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._waiters.wake()

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits, `timeout` seconds at most; whether it is set."""
        return self._waiters.wait_for(self.is_set, timeout)


def beginning_inside(function: Any) -> Any:
    """The same function, which lets no handler of a signal run before its first line: from 3.11 on the instruction that
    it begins with does so, unless it says that a generator goes on. Before, one that begins with `try` does not."""
    code = function.__code__
    resume = dis.opmap.get("RESUME")
    for at in range(0, len(code.co_code), 2):
        if code.co_code[at] == resume:
            instructions = code.co_code[: at + 1] + bytes([_AFTER_YIELD_FROM]) + code.co_code[at + 2 :]
            function.__code__ = code.replace(co_code=instructions)
            break
    return function


_AFTER_YIELD_FROM = 2


# Tries end: an error that is none of an interrupt's comes again and again.
TRIES = (None,) * 100


@beginning_inside
def surely(function: Callable[..., object], *arguments: Any) -> None:
    """Calls what may be called again, until no interrupt strikes it: also where one strikes as this begins, or between two
    tries. The last is raised then."""
    struck: Optional[BaseException] = None
    try:
        for _ in TRIES:
            try:
                function(*arguments)
                break
            except BaseException as exception:
                struck = exception
    except BaseException as exception:
        struck = exception
        surely(function, *arguments)
    if struck is not None:
        try:
            raise struck
        finally:
            del struck
