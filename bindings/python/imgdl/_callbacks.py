"""Functions of the user's that the library calls on threads of its own: hooks, observers, loaders and codecs.

What C gets is always one of a few functions of this package, which live as long as the process, and a number.
`Registry` has what the number stands for, from before C knows of it until C says, through a destructor, that nothing
will be called with it any more. So nothing is freed that C may call, and nothing is kept longer.
"""

from __future__ import annotations

import _thread
import functools
import itertools
import signal
import sys
import threading
from _thread import get_ident
from typing import Any, Callable, Generic, Optional, TypeVar

from . import _native, _once, _process
from ._checks import string
from ._waiting import TRIES, Waiters, beginning_inside
from .errors import Code, Error, report

_once.refuse_reload(globals())

Kept = TypeVar("Kept")

_keys = itertools.count(1)


def new_key() -> int:
    return next(_keys)


class _Here(threading.local):
    waited_for_depth = 0
    is_finalizing = False


_here = _Here()
# A child that was forked in such a function has the thread for its own.
_process.forget_in_child(lambda: _here.__dict__.clear())


class Registry(Generic[Kept]):
    def __init__(self) -> None:
        self._kept: dict[int, Kept] = {}
        self._waiters = Waiters()

    def add(self, kept: Kept) -> int:
        key = new_key()
        self.put(key, kept)
        return key

    def put(self, key: int, kept: Kept) -> None:
        """As `add`, of a number that is known before: an interrupt may strike between, and it must be taken out."""
        self._kept[key] = kept

    def get(self, key: Optional[int]) -> Optional[Kept]:
        return None if key is None else self._kept.get(key)

    def pop(self, key: Optional[int]) -> Optional[Kept]:
        kept = None if key is None else self._kept.pop(key, None)
        self._waiters.wake()
        return kept

    def clear(self) -> None:
        self._kept.clear()

    def values(self) -> list[Kept]:
        return list(self._kept.values())

    def wait(self, is_settled: Callable[[list[Kept]], bool], timeout: float) -> None:
        """At the end of the process, which a thread of the library would crash that calls Python a moment too late."""
        self._waiters.wait_for(lambda: is_settled(self.values()), timeout)

    def __len__(self) -> int:
        return len(self._kept)


_main_thread = threading.main_thread().ident
# Interrupts of the main thread inside of a call of the library, which C cannot carry: raised when it has returned.
_struck: list[BaseException] = []


def _forget() -> None:
    global _main_thread
    _main_thread = threading.main_thread().ident
    _struck.clear()


_process.forget_in_child(_forget)


def callback(
    prototype: Any, otherwise: Optional[int] = None, is_waited_for: bool = True
) -> Callable[[Callable[..., Optional[int]]], Any]:
    """Makes a Python function one of C. All that C calls is made by this.

    Whatever is raised, wherever an interrupt strikes, C has a result: `otherwise`. ctypes gives none for a function that
    raises, which for C is whatever lies in that place of the stack.
    is_waited_for   waiting inside of it may be to wait for oneself: see `is_on_its_thread`
    """

    def decorate(function: Callable[..., Optional[int]]) -> Any:
        # The `try` is first, and nothing is called outside of it: there an interrupt would strike.
        def called(*arguments: Any, is_main: bool = True) -> Optional[int]:
            global _struck
            try:
                is_main = get_ident() == _main_thread
                depth = _here.waited_for_depth
                try:
                    _here.waited_for_depth = depth + is_waited_for
                    result = function(*arguments)
                finally:
                    _here.waited_for_depth = depth
                return result
            except BaseException as exception:
                if is_main:
                    _struck += (exception,)
                else:
                    report(exception)
            return otherwise

        return prototype(_layered(called, otherwise))

    return decorate


def last_callback(prototype: Any, is_waited_for: bool = True) -> Callable[[Callable[..., None]], Any]:
    """As `callback`, of a function that C calls once and that must be through then: one that may be called again, and
    is where an interrupt strikes it."""

    def decorate(function: Callable[..., None]) -> Any:
        def called(*arguments: Any) -> None:
            global _struck
            try:
                for _ in TRIES:
                    is_main = True
                    try:
                        is_main = get_ident() == _main_thread
                        depth = _here.waited_for_depth
                        try:
                            _here.waited_for_depth = depth + is_waited_for
                            function(*arguments)
                            break
                        finally:
                            _here.waited_for_depth = depth
                    except BaseException as exception:
                        if is_main:
                            _struck += (exception,)
                        else:
                            report(exception)
                            break
            except BaseException as exception:
                # Between two tries.
                _struck += (exception,)
                called(*arguments)

        return prototype(_layered(called, None))

    return decorate


def finalizer(function: Callable[[Any], None]) -> Callable[[Any], None]:
    """Makes a `__del__`, where Python loses what is raised. What the garbage collector lets go in the midst of anything
    keeps no interrupt from whom it is meant for, and is let go whole: one that strikes here, or did before where C could
    not carry it, is raised by `raise_struck`: where the main thread next asks for a download, waits for one, or has called
    one of the functions below. The function may be called again, and is where one strikes it.

    At the very end of the process it is not called: all goes with that, and the library must not call Python any more."""

    def finalized(this: Any, is_end: Callable[[], bool] = sys.is_finalizing) -> None:
        global _struck
        try:
            if is_end():
                return
            for _ in TRIES:
                is_main = True
                try:
                    is_main = get_ident() == _main_thread
                    is_inside = _here.is_finalizing
                    try:
                        _here.is_finalizing = True
                        function(this)
                        break
                    finally:
                        _here.is_finalizing = is_inside
                except BaseException as exception:
                    if not (is_main and is_interrupt(exception)):
                        report(exception)
                        break
                    _struck += (exception,)
        except BaseException as exception:
            # Between two tries.
            _struck += (exception,)
            finalized(this)

    return _layered(finalized, None)  # type: ignore[return-value]


# Python 3.10 looks for a signal once more where it comes to an `except`: each layer stands one more of them.
_LAYERS = 4 if sys.version_info < (3, 11) else 0


def _layered(function: Callable[..., Optional[int]], otherwise: Optional[int]) -> Callable[..., Optional[int]]:
    for _ in range(_LAYERS):
        function = _layer(function, otherwise)
    layered: Callable[..., Optional[int]] = beginning_inside(function)
    return layered


def _layer(function: Callable[..., Optional[int]], otherwise: Optional[int]) -> Callable[..., Optional[int]]:
    def called(*arguments: Any) -> Optional[int]:
        global _struck
        try:
            result = function(*arguments)
            return result
        except BaseException as exception:
            _struck += (exception,)
        return otherwise

    return called


def raise_struck() -> None:
    """After a call of the library that may have called Python, and before a wait: raises what has struck there, or in a
    finalizer. In a finalizer itself it does nothing."""
    if _struck and get_ident() == _main_thread and not _here.is_finalizing:
        exception = _struck[0]
        _struck.clear()
        try:
            raise exception
        finally:
            del exception


def _checked(result: Any, function: Any, arguments: Any) -> Any:
    raise_struck()
    return result


# Those that call Python, but hand out nothing that would be lost.
for _name in (
    "imgdl_cache_clear",
    "imgdl_cache_flush",
    "imgdl_cache_release",
    "imgdl_coder_release",
    "imgdl_decoder_destroy",
    "imgdl_decoder_feed",
    "imgdl_downloader_destroy",
    "imgdl_downloader_release",
    "imgdl_downloader_set_observer",
    "imgdl_downloader_shutdown",
    "imgdl_executor_dispatch",
    "imgdl_transport_register",
):
    _native.functions[_name].errcheck = _checked  # type: ignore[attr-defined]


def is_on_its_thread() -> bool:
    """Whether waiting here would be to wait for oneself."""
    return _here.waited_for_depth > 0


def is_interrupt(exception: BaseException) -> bool:
    """Whether it struck a function of the user's by chance, on the main thread: it is no business of who called that."""
    return get_ident() == _main_thread and (not isinstance(exception, Exception) or _is_of_a_handler(exception))


def keep(exception: BaseException) -> bool:
    """Whether it is an interrupt, which is raised where the call of the library ends then."""
    if not is_interrupt(exception):
        return False
    _struck.append(exception)
    return True


def _is_of_a_handler(exception: Exception) -> bool:
    """Whether the handler of a signal raised it."""
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    trace = exception.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def _code_of(handler: Any) -> Any:
    while isinstance(handler, functools.partial):
        handler = handler.func
    for function in (handler, getattr(handler, "__func__", None), getattr(type(handler), "__call__", None)):
        code = getattr(function, "__code__", None)
        if code is not None:
            return code
    return None


def failure(exception: BaseException, otherwise: Code) -> tuple[int, str]:
    """What the library is told of an exception. An `Error` is an answer; anything else is also reported."""
    if isinstance(exception, Error):
        return exception.code or otherwise, exception.message
    if not keep(exception):
        if isinstance(exception, KeyboardInterrupt):
            # Of a function on another thread that wants to end the process.
            _thread.interrupt_main()
        report(exception)
    return otherwise, f"{type(exception).__name__}: {exception}"


def sentence(message: str) -> bytes:
    return string(message, "message").replace("\0", "").encode("utf-8", "replace")
