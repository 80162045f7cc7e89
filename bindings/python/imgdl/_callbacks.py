"""Functions of the user's that the library calls on threads of its own: hooks, observers, loaders and codecs.

What C gets is always one of a few functions of this package, which live as long as the process, and a number.
`Registry` has what the number stands for, from before C knows of it until C says, through a destructor, that nothing
will be called with it any more. So nothing is freed that C may call, and nothing is kept longer.
"""

from __future__ import annotations

import _thread
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable, Generic, Optional, TypeVar

from . import _process
from .errors import Code, Error, report

Kept = TypeVar("Kept")

_keys = itertools.count(1)
_here = threading.local()
# A child that was forked in such a function has the thread for its own.
_process.forget_in_child(lambda: _here.__dict__.clear())


class Registry(Generic[Kept]):
    def __init__(self) -> None:
        self._kept: dict[int, Kept] = {}
        self._waiting: Optional[threading.Condition] = None

    def add(self, kept: Kept) -> int:
        key = next(_keys)
        self._kept[key] = kept
        return key

    def get(self, key: Optional[int]) -> Optional[Kept]:
        return None if key is None else self._kept.get(key)

    def pop(self, key: Optional[int]) -> Optional[Kept]:
        kept = None if key is None else self._kept.pop(key, None)
        waiting = self._waiting
        if waiting is not None:
            with waiting:
                waiting.notify_all()
        return kept

    def clear(self) -> None:
        self._kept.clear()

    def values(self) -> list[Kept]:
        return list(self._kept.values())

    def wait(self, is_settled: Callable[[list[Kept]], bool], timeout: float) -> None:
        """At the end of the process, which a thread of the library would crash that calls Python a moment too late."""
        self._waiting = threading.Condition()
        with self._waiting:
            self._waiting.wait_for(lambda: is_settled(self.values()), timeout)
        self._waiting = None

    def __len__(self) -> int:
        return len(self._kept)


@contextmanager
def called_by_the_library() -> Iterator[None]:
    """While a function of the user's runs on a thread of the library, or in a call that it waits for."""
    depth = getattr(_here, "depth", 0)
    _here.depth = depth + 1
    try:
        yield
    finally:
        _here.depth = depth


def is_on_its_thread() -> bool:
    """Whether waiting here would be to wait for oneself."""
    return getattr(_here, "depth", 0) > 0


def failure(exception: BaseException, otherwise: Code) -> tuple[int, str]:
    """What the library is told of an exception. An `Error` is an answer; anything else is also reported."""
    if isinstance(exception, Error):
        return exception.code or otherwise, exception.message
    if isinstance(exception, KeyboardInterrupt):
        # It hit this function by chance, on the main thread, inside of decode: it is raised again where it ends.
        _thread.interrupt_main()
    report(exception)
    return otherwise, f"{type(exception).__name__}: {exception}"


def sentence(message: str) -> bytes:
    return message.replace("\0", "").encode("utf-8", "replace")
