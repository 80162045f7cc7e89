"""Many requests with one progress: `Batch`."""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Union

from . import _callbacks, _native, _once, _options, _process
from ._checks import boolean
from ._pending import Pending
from ._pump import Pump
from ._reference import BatchReference
from ._waiting import surely
from .errors import check, error
from .token import Token, _on_end, _outstanding, settle, tell

_once.refuse_reload(globals())

if TYPE_CHECKING:
    from .downloader import Downloader


class BatchProgress(NamedTuple):
    """How far a batch is."""

    finished: int
    """Succeeded, failed or cancelled."""
    failed: int
    """Of these; not the cancelled ones."""
    cancelled: int
    total: int
    is_finished: bool
    """The last of it."""


def _progress_from(native: Any) -> BatchProgress:
    return BatchProgress(native.finished, native.failed, native.cancelled, native.total, bool(native.is_finished))


class Batch(Pending):
    """A list of requests that `Downloader.prefetch` made. Letting it go does not cancel.

    May be used from any thread. In a coroutine, `await batch` is `wait()` without blocking the loop; cancelling the
    task cancels the batch.
    """

    __slots__ = ("_downloader", "_key", "_handle", "_callback", "_progress", "_is_done", "_is_paused", "__weakref__")

    def __init__(
        self,
        downloader: Downloader,
        pump: Pump,
        callback: Optional[Callable[[Batch, BatchProgress], object]],
        count: int,
    ) -> None:
        super().__init__(pump)
        # Until the end, as tokens do.
        self._downloader: Optional[Downloader] = downloader
        self._callback = callback
        # Under which the library knows it.
        self._key = _callbacks.new_key()
        # Guarded by the lock of the downloader's state.
        self._handle: Optional[int] = None
        self._is_done = False
        self._progress = BatchProgress(0, 0, 0, count, False)
        self._is_paused = False

    @property
    def progress(self) -> BatchProgress:
        """How far it is."""
        with self._pump.state.lock:
            if self._handle is None or self._generation != _process.generation:
                return self._progress
            native = _native.imgdl_batch_progress()
            native.struct_size = ctypes.sizeof(native)
            check(_native.imgdl_batch_progress_get(self._handle, native))
        return _progress_from(native)

    def done(self) -> bool:
        """Whether all have ended."""
        return self._is_done

    def wait(self, timeout: Optional[float] = None) -> BatchProgress:
        """Waits until all have ended, `timeout` seconds at most. Raises `WaitTimeout`, and what a callback raised."""
        self._wait(timeout)
        return self._give()

    def cancel(self) -> None:
        """Cancels all that have not ended, those that wait to be asked for too."""
        self._call(_native.imgdl_batch_cancel)

    @property
    def paused(self) -> bool:
        """While true no further request of the batch is begun."""
        return self._is_paused

    @paused.setter
    def paused(self, value: bool) -> None:
        is_paused = boolean(value, "paused")
        self._call(_native.imgdl_batch_set_paused, is_paused)
        self._is_paused = is_paused

    def pause(self) -> None:
        """Begins no further request: `paused` = True."""
        self.paused = True

    def resume(self) -> None:
        """Goes on."""
        self.paused = False

    def set_priority(self, priority: Union[str, int]) -> None:
        """ "low", "normal" or "high", for all of it, waiting ones and running ones."""
        self._call(_native.imgdl_batch_set_priority, _options.priority(priority))

    def __await__(self) -> Generator[Any, None, BatchProgress]:
        from . import aio

        return aio.awaiting(self)

    def __repr__(self) -> str:
        state = "done" if self._is_done else "running"
        return f"<imgdl.Batch {state} {self._progress.finished} of {self._progress.total}>"

    @property
    def _name(self) -> str:
        return repr(self)

    def _call(self, function: Callable[..., int], *arguments: Any) -> None:
        _process.check(self._generation)
        with self._pump.state.lock:
            if self._handle is not None:
                check(function(self._handle, *arguments))

    def _give(self) -> BatchProgress:
        try:
            if self._failure is not None:
                raise self._failure.with_traceback(self._trace)
            return self._progress
        finally:
            del self

    # The library's side

    def _accepted(self, reference: BatchReference) -> None:
        """Takes it over unless there is no need any more."""
        with self._pump.state.lock:
            if not self._is_done:
                self._handle, reference.value = reference.value, None
                return
        reference.release()

    def _receive(self, native: Any) -> None:
        self._progress = progress = _progress_from(native)
        try:
            if self._callback is not None:
                self._pump.call(self._callback, self, progress)
        finally:
            if progress.is_finished:
                self._finish()

    def _fail(self, exception: BaseException) -> None:
        self._keep(exception)
        self._callback = None
        if not self._is_done:
            self.cancel()
        self._report(exception)

    def _finish(self) -> None:
        self._callback = None
        downloader, self._downloader = self._downloader, None
        # An interrupt that strikes as the lock is let go does not lose it.
        reference = BatchReference()
        with self._pump.state.lock:
            self._is_done = True
            reference.value, self._handle = self._handle, None
        reference.release()
        self._run_hooks()
        del downloader

    def _end(self) -> None:
        """Nothing will come any more. An interrupt may have struck what came last."""
        if not self._progress.is_finished:
            self._progress = self.progress
        self._finish()


@_callbacks.callback(_native.callback_type(_native.imgdl_batch_options, "progress"), is_waited_for=False)
def _on_progress(pointer: Any, key: int) -> None:
    batch = _outstanding.get(key)
    if not isinstance(batch, Batch):
        return
    native = pointer.contents
    try:
        batch._receive(native)
    except BaseException as exception:
        batch._fail(exception)


def submit(
    downloader: Downloader,
    batch: Batch,
    requests: list[Any],
    tokens: list[Optional[Token[Any]]],
    max_concurrent: int,
    keeps_priority: bool,
) -> None:
    """Asks the library for all of them. The batch and each token are outstanding on the batch's pump until `_on_end`, or
    are not at all: whatever happens, and wherever an interrupt strikes."""
    state, pump = downloader._state, batch._pump
    options = _native.imgdl_batch_options()
    _native.imgdl_batch_options_init(options, ctypes.sizeof(options))
    options.max_concurrent = max_concurrent
    options.executor = pump.executor
    options.progress = _on_progress
    options.destructor = _on_end
    options.keeps_priority = keeps_priority
    options.user_data = batch._key
    pendings: dict[int, Union[Token[Any], Batch]] = {batch._key: batch}
    array = (_native.imgdl_request * len(requests))()
    for index, (request, token) in enumerate(zip(requests, tokens)):
        if token is not None:
            tell(request, pump, token._key)
            pendings[token._key] = token
        array[index] = request
    reference = BatchReference()
    try:
        state.accept(pump, pendings)
        _outstanding.update(pendings)
        code = _native.imgdl_downloader_prefetch(state.handle, array, len(requests), options, reference)
        if code:
            _callbacks.raise_struck()
            raise error(code, _native.imgdl_last_error().decode("utf-8", "replace"))
        batch._accepted(reference)
        _callbacks.raise_struck()
    except BaseException:
        if reference.value or batch._handle is not None or batch._is_done:
            # Interrupted after it was accepted, and nobody will get the batch.
            surely(_give_up, batch, reference)
        else:
            surely(_settle, pump, pendings)
        raise


def _settle(pump: Pump, keys: Iterable[int]) -> None:
    for key in keys:
        settle(pump, key)


def _give_up(batch: Batch, reference: BatchReference) -> None:
    if reference.value:
        batch._accepted(reference)
    batch.cancel()
