"""Loaders written in Python, for schemes of your own: `Transfer`, and what `Downloader.register_transport` does."""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _native, _options, _process
from ._callbacks import Registry, called_by_the_library, failure, sentence
from .errors import Code, check, error
from .hooks import Headers, Outgoing, outgoing_from

if TYPE_CHECKING:
    from typing import Protocol

    class Loader(Protocol):
        """What `Downloader.register_transport` takes. `cancel` may be missing."""

        def start(self, request: Outgoing, transfer: Transfer) -> object:
            """Begins. Called on the library's thread: must not wait. What it returns is not looked at."""


class Transfer:
    """One transfer of a loader's: what it reports to, from any thread, one at a time.

    Whoever loads keeps it: one that is let go before its `end` fails with CONNECTION_LOST. After the library has
    cancelled it, reports do nothing.
    """

    __slots__ = ("_handle", "_is_cancelled", "__weakref__")

    def __init__(self, handle: int) -> None:
        self._handle: Optional[int] = handle
        self._is_cancelled = False

    @property
    def is_cancelled(self) -> bool:
        """Nobody wants it any more."""
        return self._is_cancelled

    def response(self, status: int = 200, headers: Headers = ()) -> None:
        """The head, once, before the body: Content-Length, Content-Type …"""
        fields, count = _options.header_fields(headers)
        self._report(_native.imgdl_transfer_response, _options.status(status, "status"), fields, count)

    def body(self, data: Union[bytes, bytearray, memoryview]) -> None:
        """Bytes of the body, a Content-Encoding undone."""
        sent = bytes(memoryview(data))
        self._report(_native.imgdl_transfer_body, sent, len(sent))

    def end(self, code: int = 0, message: Optional[str] = None) -> None:
        """The end, or why it failed, with a sentence. Nothing follows it."""
        number = _options.signed(code, "code")
        self._report(_native.imgdl_transfer_end, number, None if message is None else sentence(message))
        self._release()

    def _report(self, function: Any, *arguments: Any) -> None:
        # In this order: it may be cancelled on another thread between any two of these lines.
        handle = self._handle
        if self._is_cancelled:
            return
        if handle is None:
            raise error(Code.INVALID_OPERATION, "the transfer has ended")
        code = function(handle, *arguments)
        if code in (Code.INVALID_HANDLE, Code.INVALID_OPERATION) and self._is_cancelled:
            return
        check(code)

    def _release(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            _native.imgdl_transfer_release(handle)

    def _cancel(self) -> None:
        self._is_cancelled = True
        self._release()

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
    table.destructor = _on_end
    key = table.user_data = _loaders.add(loader)
    try:
        check(_native.imgdl_transport_register(downloader, name, table))
    except BaseException:
        _loaders.pop(key)
        raise
