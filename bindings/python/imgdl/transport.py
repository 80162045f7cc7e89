"""Loaders written in Python, for schemes of your own: `Transfer`, and what `Downloader.register_transport` does."""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from typing import Any, Callable, Optional, Protocol, Union

from . import _native, _once, _options, _process
from ._callbacks import Registry, callback, failure, finalizer, is_on_its_thread, last_callback, new_key, sentence
from ._checks import buffer
from ._pump import is_inside_callback
from ._waiting import Flag
from .errors import Code, check, error
from .hooks import Headers, Outgoing, outgoing_from

_once.refuse_reload(globals())


class Loader(Protocol):
    """What `Downloader.register_transport` takes. `cancel` and `resume` may be missing."""

    def start(self, request: Outgoing, transfer: Transfer) -> object:
        """Begins. Called on the library's thread: must not wait. What it returns is not looked at."""



# How long a body may stand still once the main thread has ended.
_SECONDS_AT_EXIT = 1.0


class Transfer(_process.OfThisProcess):
    """One transfer of a loader's: what it reports to, from any thread, one at a time.

    Whoever loads keeps it: one that is let go before its `end` fails with CONNECTION_LOST. After the library has
    cancelled it, reports do nothing.

    `end`, and letting the last reference go, wait for the loader's `cancel` or `resume` of this transfer on the library's
    thread. Hold no lock then that these take: `with lock: del transfers[key]` may wait for ever.
    """

    __slots__ = ("_handle", "_is_cancelled", "_may_go_on", "_on_going_on", "__weakref__")

    def __init__(self, handle: int) -> None:
        self._handle: Optional[int] = handle
        self._is_cancelled = False
        self._may_go_on = Flag()
        # What `abody` waits with.
        self._on_going_on: Optional[Callable[[], None]] = None

    @property
    def is_cancelled(self) -> bool:
        """Nobody wants it any more."""
        return self._is_cancelled

    def response(self, status: int = 200, headers: Headers = ()) -> None:
        """The head, once, before the body: Content-Length, Content-Type …"""
        fields, count = _options.header_fields(headers)
        self._report(_native.imgdl_transfer_response, _options.status(status, "status"), fields, count)

    def body(self, data: Union[bytes, bytearray, memoryview]) -> None:
        """Bytes of the body, a Content-Encoding undone.

        Waits while the library holds 1 MiB that it cannot pass on, as while the download is paused. Inside a function
        that the library has called, such as `start` or a callback of any download, and in a coroutine, it raises
        NOT_READY instead: nothing of these bytes was taken, and `resume(transfer)` of the loader is called when they may
        be given again. When the main thread has ended, and the wait goes on for a second, it raises SHUT_DOWN: the
        process can end.
        """
        sent = bytes(buffer(data, "data"))
        while True:
            # Before the call: what may go on after it sets the flag, also before anybody waits.
            self._may_go_on.clear()
            # What the download is paused for may wait for this thread.
            if self._send(sent, may_be_refused=not (is_on_its_thread() or is_inside_callback())):
                return
            if _is_in_a_coroutine():
                raise error(Code.NOT_READY, "body would block the event loop: await abody")
            if not self._may_go_on.wait(_patience()) and _is_ending():
                raise _ended()

    def try_body(self, data: Union[bytes, bytearray, memoryview]) -> bool:
        """As `body`, and never waits, on any thread. False: nothing of these bytes was taken, and `resume(transfer)` of
        the loader is called when they may be given again."""
        sent = bytes(buffer(data, "data"))
        return self._send(sent, may_be_refused=True)

    async def abody(self, data: Union[bytes, bytearray, memoryview]) -> None:
        """`body` for coroutines: the loop goes on while it waits. Cancelling the task takes the bytes back if the library
        has not taken them.

            >>> class Slow:
            ...     def __init__(self, loop): self.loop = loop
            ...     def start(self, request, transfer):
            ...         asyncio.run_coroutine_threadsafe(self.send(transfer), self.loop)
            ...     async def send(self, transfer):
            ...         transfer.response(200)
            ...         await transfer.abody(data)
            ...         transfer.end()
            >>> async def main():
            ...     async with imgdl.Downloader() as downloader:
            ...         downloader.register_transport("app", Slow(asyncio.get_running_loop()))
            ...         return await downloader.get("app://pictures/1")
            >>> asyncio.run(main()).width
            900
        """
        import asyncio

        sent = bytes(buffer(data, "data"))
        loop = asyncio.get_running_loop()
        try:
            while True:
                future = loop.create_future()
                # Before the call, as above.
                self._on_going_on = _settling(loop, future)
                if self._send(sent, may_be_refused=not is_on_its_thread()):
                    return
                await asyncio.wait([future], timeout=_patience())
                if not future.done() and _is_ending():
                    raise _ended()
        finally:
            self._on_going_on = None

    def _send(self, sent: bytes, may_be_refused: bool) -> bool:
        return self._report(_native.imgdl_transfer_body, sent, len(sent), may_be_refused=may_be_refused)

    def _go_on(self) -> None:
        """Those who wait look again."""
        self._may_go_on.set()
        function = self._on_going_on
        if function is not None:
            function()

    def end(self, code: int = 0, message: Optional[str] = None) -> None:
        """The end, or why it failed, with a sentence. Nothing follows it."""
        number = _options.signed(code, "code")
        self._report(_native.imgdl_transfer_end, number, None if message is None else sentence(message))
        self._release()

    def _report(self, function: Any, *arguments: Any, may_be_refused: bool = False) -> bool:
        """False: not yet."""
        # In this order: it may be cancelled on another thread between any two of these lines.
        handle = self._handle
        if self._is_cancelled:
            return True
        if handle is None:
            raise error(Code.INVALID_OPERATION, "the transfer has ended")
        code = function(handle, *arguments)
        if code in (Code.INVALID_HANDLE, Code.INVALID_OPERATION) and self._is_cancelled:
            return True
        if code == Code.NOT_READY and may_be_refused:
            return False
        check(code)
        return True

    def _release(self) -> None:
        # One that an interrupt struck as it was made has none.
        handle, self._handle = getattr(self, "_handle", None), None
        if handle is not None:
            _native.imgdl_transfer_release(handle)

    def _cancel(self) -> None:
        self._is_cancelled = True
        self._release()
        self._go_on()

    @finalizer
    def __del__(self) -> None:
        self._release()

    def __repr__(self) -> str:
        state = "cancelled" if self._is_cancelled else "ended" if self._handle is None else "running"
        return f"<imgdl.Transfer {state}>"


_loaders: Registry[Any] = Registry()
# Each is held by its loader alone.
_transfers: weakref.WeakValueDictionary[int, Transfer] = weakref.WeakValueDictionary()


def _forget() -> None:
    global _has_main_thread_ended
    _has_main_thread_ended = False
    _loaders.clear()


_process.forget_in_child(_forget)


# Waiting


def _settling(loop: Any, future: Any) -> Callable[[], None]:
    """From any thread: what waits for the future looks again."""

    def settle() -> None:
        if not future.done():
            future.set_result(None)

    def call() -> None:
        try:
            loop.call_soon_threadsafe(settle)
        except RuntimeError:
            pass  # the loop is closed: nobody waits

    return call


def _is_in_a_coroutine() -> bool:
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


# The interpreter joins threads before it calls what `atexit` knows, and so does a pool of threads even earlier: one that
# waits for a downloader in the background would keep it from ever calling that.
_has_main_thread_ended = False


def _on_end_of_main_thread() -> None:
    global _has_main_thread_ended
    _has_main_thread_ended = True
    for reference in _transfers.valuerefs():
        transfer = reference()
        if transfer is not None:
            transfer._go_on()


# Whether that is called.
_is_told_of_its_end = False


def _have_its_end_told() -> None:
    global _has_main_thread_ended, _is_told_of_its_end
    # What Python's own pools use, and no other has. It calls the last first: before the pools', which join their threads.
    have_called = getattr(threading, "_register_atexit", None)
    if _is_told_of_its_end or have_called is None:
        return
    import concurrent.futures.thread  # noqa: F401

    try:
        have_called(_on_end_of_main_thread)
        _is_told_of_its_end = True
    except RuntimeError:
        _has_main_thread_ended = True


def _patience() -> Optional[float]:
    """How long to wait before one asks `_is_ending`."""
    return None if _is_told_of_its_end and not _has_main_thread_ended else _SECONDS_AT_EXIT


def _is_ending() -> bool:
    return _has_main_thread_ended or not threading.main_thread().is_alive()


def _ended() -> Exception:
    return error(Code.SHUT_DOWN, "the library could not take the bytes before the process ended")


@callback(_native.callback_type(_native.imgdl_transport_table, "start"))
def _start(request: Any, handle: int, key: int) -> int:
    transfer = Transfer(handle)
    _transfers[handle] = transfer
    try:
        loader = _loaders.get(key)
        if loader is None:
            transfer.end(Code.INVALID_OPERATION)
        else:
            loader.start(outgoing_from(request.contents), transfer)
    except BaseException as exception:
        code, message = failure(exception, Code.INVALID_OPERATION)
        if transfer._handle is not None:
            _native.imgdl_transfer_end(handle, code, sentence(message))
            transfer._release()
    return handle


@callback(_native.callback_type(_native.imgdl_transport_table, "cancel"))
def _cancel(handle: int, key: int) -> None:
    transfer = _transfers.pop(handle, None)
    if transfer is None:
        return
    transfer._cancel()
    try:
        function = getattr(_loaders.get(key), "cancel", None)
        if function is not None:
            function(transfer)
    except BaseException as exception:
        failure(exception, Code.INTERNAL)


@callback(_native.callback_type(_native.imgdl_transport_table, "resume"))
def _resume(handle: int, key: int) -> None:
    transfer = _transfers.get(handle)
    if transfer is None:
        return
    transfer._go_on()
    try:
        function = getattr(_loaders.get(key), "resume", None)
        if function is not None:
            function(transfer)
    except BaseException as exception:
        failure(exception, Code.INTERNAL)


@last_callback(_native.imgdl_destructor)
def _on_end(key: int) -> None:
    _loaders.pop(key)


def end_at_exit(timeout: float) -> None:
    """Before the process ends: no loader is called, or let go, by a thread of the library any more."""
    _loaders.wait(lambda loaders: not loaders, timeout)


def register(downloader: int, name: bytes, loader: Any) -> None:
    """For one scheme; None takes it out."""
    if loader is None:
        check(_native.imgdl_transport_register(downloader, name, None))
        return
    if not callable(getattr(loader, "start", None)):
        raise TypeError(f"a loader must have a function start, which {type(loader).__name__} has not")
    _have_its_end_told()
    table = _native.imgdl_transport_table()
    table.struct_size = ctypes.sizeof(table)
    table.start = _start
    table.cancel = _cancel
    table.resume = _resume
    table.destructor = _on_end
    key = table.user_data = new_key()
    try:
        _loaders.put(key, loader)
        check(_native.imgdl_transport_register(downloader, name, table))
    except BaseException:
        _loaders.pop(key)
        raise
