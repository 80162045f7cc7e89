"""Loaders written in Python, for schemes of your own: `Transfer`, and what `Downloader.register_transport` does."""

from __future__ import annotations

import ctypes
import threading
import weakref
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _native, _options, _process
from ._callbacks import Registry, called_by_the_library, failure, is_on_its_thread, sentence
from .errors import Code, check, error
from .hooks import Headers, Outgoing, outgoing_from

if TYPE_CHECKING:
    from typing import Protocol

    class Loader(Protocol):
        """What `Downloader.register_transport` takes. `cancel` and `resume` may be missing."""

        def start(self, request: Outgoing, transfer: Transfer) -> object:
            """Begins. Called on the library's thread: must not wait. What it returns is not looked at."""


class Transfer:
    """One transfer of a loader's: what it reports to, from any thread, one at a time.

    Whoever loads keeps it: one that is let go before its `end` fails with CONNECTION_LOST. After the library has
    cancelled it, reports do nothing.
    """

    __slots__ = ("_handle", "_is_cancelled", "_may_go_on", "__weakref__")

    def __init__(self, handle: int) -> None:
        self._handle: Optional[int] = handle
        self._is_cancelled = False
        self._may_go_on = threading.Event()

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
        that the library has called, such as `start`, it raises NOT_READY instead: nothing of these bytes was taken, and
        `resume(transfer)` of the loader is called when they may be given again.
        """
        sent = bytes(memoryview(data))
        while True:
            # Before the call: what may go on after it sets the flag, also before anybody waits.
            self._may_go_on.clear()
            if self._report(_native.imgdl_transfer_body, sent, len(sent), may_wait=not is_on_its_thread()):
                return
            self._may_go_on.wait()

    def end(self, code: int = 0, message: Optional[str] = None) -> None:
        """The end, or why it failed, with a sentence. Nothing follows it."""
        number = _options.signed(code, "code")
        self._report(_native.imgdl_transfer_end, number, None if message is None else sentence(message))
        self._release()

    def _report(self, function: Any, *arguments: Any, may_wait: bool = False) -> bool:
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
        if code == Code.NOT_READY and may_wait:
            return False
        check(code)
        return True

    def _release(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            _native.imgdl_transfer_release(handle)

    def _cancel(self) -> None:
        self._is_cancelled = True
        self._release()
        self._may_go_on.set()

    def __del__(self) -> None:
        self._release()

    def __repr__(self) -> str:
        state = "cancelled" if self._is_cancelled else "ended" if self._handle is None else "running"
        return f"<imgdl.Transfer {state}>"


_loaders: Registry[Any] = Registry()
# Each is held by its loader alone.
_transfers: weakref.WeakValueDictionary[int, Transfer] = weakref.WeakValueDictionary()


def _forget() -> None:
    _loaders.clear()


_process.forget_in_child(_forget)


@_native.callback_type(_native.imgdl_transport_table, "start")  # type: ignore[untyped-decorator, unused-ignore]
def _start(request: Any, handle: int, key: int) -> int:
    transfer = Transfer(handle)
    _transfers[handle] = transfer
    with called_by_the_library():
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


@_native.callback_type(_native.imgdl_transport_table, "cancel")  # type: ignore[untyped-decorator, unused-ignore]
def _cancel(handle: int, key: int) -> None:
    transfer = _transfers.pop(handle, None)
    if transfer is None:
        return
    with called_by_the_library():
        transfer._cancel()
        try:
            function = getattr(_loaders.get(key), "cancel", None)
            if function is not None:
                function(transfer)
        except BaseException as exception:
            failure(exception, Code.INTERNAL)


@_native.callback_type(_native.imgdl_transport_table, "resume")  # type: ignore[untyped-decorator, unused-ignore]
def _resume(handle: int, key: int) -> None:
    transfer = _transfers.get(handle)
    if transfer is None:
        return
    with called_by_the_library():
        transfer._may_go_on.set()
        try:
            function = getattr(_loaders.get(key), "resume", None)
            if function is not None:
                function(transfer)
        except BaseException as exception:
            failure(exception, Code.INTERNAL)


@_native.imgdl_destructor  # type: ignore[untyped-decorator, unused-ignore]
def _on_end(key: int) -> None:
    _loaders.pop(key)


def settle(timeout: float) -> None:
    """Before the process ends: no loader is called, or let go, by a thread of the library any more."""
    _loaders.wait(lambda loaders: not loaders, timeout)


def register(downloader: int, scheme: str, loader: Any) -> None:
    """What `Downloader.register_transport` does."""
    name = _options.text(scheme, "scheme", Code.INVALID_ARGUMENT)
    if loader is None:
        check(_native.imgdl_transport_register(downloader, name, None))
        return
    if not callable(getattr(loader, "start", None)):
        raise TypeError(f"a loader must have a function start, which {type(loader).__name__} has not")
    table = _native.imgdl_transport_table()
    table.struct_size = ctypes.sizeof(table)
    table.start = _start
    table.cancel = _cancel
    table.resume = _resume
    table.destructor = _on_end
    key = table.user_data = _loaders.add(loader)
    try:
        check(_native.imgdl_transport_register(downloader, name, table))
    except BaseException:
        _loaders.pop(key)
        raise
