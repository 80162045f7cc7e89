"""One accepted download: `Token`, and the two functions that the library calls.

The way of an event: the library puts it on the executor of the download's pump; the pump's thread dispatches; C calls
`_on_event` with a number, under which `_outstanding` has the token; the token calls the user. After the terminal event
C calls `_on_end` once, and the number is forgotten.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Callable, Generic, NamedTuple, Optional, TypeVar, Union

from . import _callbacks, _native, _once, _options, _process
from ._pending import Pending, call_apart
from ._pump import Pump
from ._redaction import redacted
from ._reference import TokenReference, retain_data, retain_image, retain_token
from ._waiting import surely
from .body import Body
from .errors import Code, Error, check, error, untraced
from .image import Image, info_from
from .metrics import Metrics, RawMetrics, metrics_from, raw_metrics
from .response import Response, response_from, text

_once.refuse_reload(globals())

if TYPE_CHECKING:
    from .batch import Batch
    from .downloader import Downloader

Result = TypeVar("Result", Image, Body)

_outstanding: dict[int, Union[Token[Any], Batch]] = {}
_TERMINAL = _native.IMGDL_EVENT_TERMINAL
_process.forget_in_child(_outstanding.clear)


class _Outcome(NamedTuple):
    code: int
    message: str
    http_status: int
    image: Optional[Image]
    body: Optional[Body]
    content_type: str = ""
    preview: bytes = b""
    metrics: Optional[RawMetrics] = None


class Token(Pending, Generic[Result]):
    """One download of one caller. `Downloader.download` makes it; letting it go does not cancel.

    May be used from any thread. In a coroutine, `await token` is `result()` without blocking the loop; cancelling the
    task cancels the download.
    """

    __slots__ = (
        "_url",
        "_downloader",
        "_handle",
        "_id",
        "_wants_body",
        "_key",
        "_callbacks",
        "_response",
        "_outcome",
        "_metrics",
        "_priority",
        "__weakref__",
    )

    def __init__(
        self,
        url: str,
        downloader: Downloader,
        pump: Pump,
        callbacks: dict[int, Callable[..., Any]],
        wants_body: bool,
        priority: int = _native.IMGDL_PRIORITY_NORMAL,
    ) -> None:
        super().__init__(pump)
        self._url = url
        # Until the end: a downloader that nobody holds any more finishes what it has accepted.
        self._downloader: Optional[Downloader] = downloader
        self._callbacks: Optional[dict[int, Callable[..., Any]]] = callbacks
        self._wants_body = wants_body
        # Under which the library knows it.
        self._key = _callbacks.new_key()
        self._id = 0
        self._priority = priority
        # Guarded by the lock of the downloader's state, like the next two.
        self._handle: Optional[int] = None
        self._response: Optional[Response] = None
        self._outcome: Optional[_Outcome] = None
        self._metrics: Optional[Metrics] = None

    @property
    def url(self) -> str:
        """As given; "" of one of `map` that was given none."""
        return self._url

    @property
    def id(self) -> int:
        """A number that no other download of this process has or had: for logs."""
        return self._id

    @property
    def response(self) -> Optional[Response]:
        """What the server answered. Known once it has, to downloads with `on_response`, `body` or `any_status`."""
        return self._response

    @property
    def metrics(self) -> Optional[Metrics]:
        """Where the time went, so far; None while it waits to begin."""
        if self._outcome is not None:
            return self._metrics_of(self._outcome)
        _process.check(self._generation)
        native = _native.imgdl_metrics()
        _native.imgdl_metrics_init(native, ctypes.sizeof(native))
        with self._pump.state.lock:
            if self._handle is None:
                return self._metrics_of(self._outcome) if self._outcome else None
            reference = retain_token(self._handle)
        code = _native.imgdl_token_metrics(reference, native)
        if code == Code.NOT_READY:
            return None
        check(code)
        return metrics_from(raw_metrics(native))

    def _metrics_of(self, outcome: _Outcome) -> Optional[Metrics]:
        if self._metrics is None and outcome.metrics is not None:
            self._metrics = metrics_from(outcome.metrics)
        return self._metrics

    @property
    def priority(self) -> str:
        """ "low", "normal" or "high"; may be set at any time."""
        return _options.PRIORITY_NAMES[self._priority]

    @priority.setter
    def priority(self, priority: Union[str, int]) -> None:
        self.set_priority(priority)

    def done(self) -> bool:
        """Whether `result` would return, or raise, at once."""
        return self._outcome is not None

    def result(self, timeout: Optional[float] = None) -> Result:
        """Waits for the end, `timeout` seconds at most: the picture, or with `body` the body.

        Raises `Error`; `WaitTimeout` when the time is over and the download goes on; and what a callback raised.
        """
        if self._outcome is None or timeout is not None:
            self._wait(timeout)
        return self._give()

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """Waits as `result` does: what `result` would raise, None if there is a result."""
        self._wait(timeout)
        return self._problem()

    def cancelled(self) -> bool:
        """Whether it has ended because it was cancelled."""
        return self._outcome is not None and self._outcome.code == Code.CANCELLED

    def cancel(self) -> None:
        """Any number of times, at any time, also inside a callback. Others that share the transfer go on."""
        _process.check(self._generation)
        # Without the lock: finalizers cancel, too, and the thread that one runs on may have another downloader's. The library
        # knows which handles have ended.
        handle = self._handle
        if handle is not None:
            code = _native.imgdl_token_cancel(handle)
            if code != Code.INVALID_HANDLE:
                check(code)

    def set_priority(self, priority: Union[str, int]) -> None:
        """ "low", "normal" or "high"."""
        value = _options.priority(priority)
        _process.check(self._generation)
        with self._pump.state.lock:
            if self._handle is not None:
                check(_native.imgdl_token_set_priority(self._handle, value))
            self._priority = value

    def add_done_callback(self, function: Callable[[Token[Result]], object]) -> None:
        """Calls function(token) at the end: where an event loop of asyncio runs on this thread, on that; otherwise, and
        where that loop is closed by then, where the other callbacks of this download run. At once if it is done.
        What is not callable is a TypeError. What the function raises goes to sys.unraisablehook, but for interrupts of
        the main thread: KeyboardInterrupt, SystemExit, and what the handler of a signal raises. Where it is called at
        once, those are raised here."""
        _options.check_callable(function, "a done callback")
        if not self._when_done(self._placed(function)):
            call_apart(function, self)

    def remove_done_callback(self, function: Callable[[Token[Result]], object]) -> int:
        """Takes back each `add_done_callback` of that function, and gives how many there were; 0 once it is done."""
        return self._take_back(function)

    def __await__(self) -> Generator[Any, None, Result]:
        from . import aio

        return aio.awaiting(self)

    def __repr__(self) -> str:
        outcome = self._outcome
        state = "running" if outcome is None else "failed" if outcome.code or self._failure else "done"
        return f"<imgdl.Token {self._id} {state} {redacted(self._url)}>"

    @classmethod
    def _refused(cls, url: str, downloader: Downloader, problem: Exception) -> Token[Any]:
        """One that the library was never asked for, and that has failed."""
        token: Token[Any] = cls(url, downloader, downloader._state.thread_pump, {}, False)
        if isinstance(problem, Error):
            outcome = _Outcome(problem.code, problem.message, 0, None, None)
        else:
            outcome = _Outcome(Code.INVALID_ARGUMENT, str(problem), 0, None, None)
            token._failure = untraced(problem)
        token._finish(outcome)
        return token

    # The end

    @property
    def _name(self) -> str:
        return redacted(self._url)

    def _give(self) -> Result:
        problem = self._problem()
        if problem is None:
            outcome = self._outcome
            assert outcome is not None
            result: Any = outcome.body if self._wants_body else outcome.image
            return result  # type: ignore[no-any-return]
        try:
            raise problem.with_traceback(self._trace)
        finally:
            # The traceback of an exception that is kept would keep the token, which keeps the exception.
            del self, problem

    def _problem(self) -> Optional[BaseException]:
        if self._failure is not None:
            return self._failure
        outcome = self._outcome
        assert outcome is not None
        return self._error(outcome) if outcome.code else None

    def _error(self, outcome: _Outcome) -> Error:
        return error(
            outcome.code,
            outcome.message,
            url=redacted(self._url),
            http_status=outcome.http_status,
            image=outcome.image,
            content_type=outcome.content_type,
            preview=outcome.preview,
            metrics=self._metrics_of(outcome),
        )

    # The library's side

    def _accepted(self, reference: TokenReference) -> None:
        """Takes it over unless there is one already, or no need any more."""
        self._id = _native.imgdl_token_id(reference)
        with self._pump.state.lock:
            if self._outcome is None and self._handle is None:
                self._handle, reference.value = reference.value, None
                return
        reference.release()

    def _receive(self, event: Any) -> None:
        kind = event.kind
        if kind == _TERMINAL:
            callbacks = self._callbacks
            if callbacks and kind in callbacks:
                with self._pump.state.lock:
                    self._hooks.insert(0, callbacks[kind])
            self._finish(self._outcome_of(event))
            return
        if self._handle is None:
            # Of a batch, or before imgdl_download has returned.
            self._accepted(retain_token(event.token))
        if kind == _native.IMGDL_EVENT_RESPONSE:
            self._response = response_from(event.response.contents)
        callback = self._callbacks.get(kind) if self._callbacks else None
        if callback is None:
            return
        if kind == _native.IMGDL_EVENT_PROGRESS:
            self._pump.call(callback, self, event.received, event.expected if event.expected >= 0 else None)
        elif kind == _native.IMGDL_EVENT_PARTIAL:
            self._pump.call(callback, self, Image._adopt(retain_image(event.image)))
        elif kind == _native.IMGDL_EVENT_HEADER:
            self._pump.call(callback, self, info_from(event.info.contents))
        elif kind == _native.IMGDL_EVENT_RESPONSE:
            self._pump.call(callback, self, self._response)
        elif kind == _native.IMGDL_EVENT_STARTED:
            self._pump.call(callback, self)

    def _outcome_of(self, event: Any) -> _Outcome:
        code, status, picture, measured = event.code, event.http_status, event.image, event.metrics
        image = Image._adopt(retain_image(picture)) if picture else None
        metrics = raw_metrics(measured.contents) if measured else None
        if code:
            preview = ctypes.string_at(event.preview, event.preview_length) if event.preview else b""
            return _Outcome(code, text(event.message), status, image, None, text(event.content_type), preview, metrics)
        body = None
        if self._wants_body:
            data = event.data
            body = Body._adopt(retain_data(data) if data else None, status, self._response, image)
        return _Outcome(0, "", status, image, body, "", b"", metrics)

    def _fail(self, exception: BaseException, handle: Optional[int]) -> None:
        """What a callback raised, or an interrupt that hit one, takes the place of the result."""
        self._keep(exception)
        # But for what is called at the end.
        self._callbacks = {kind: call for kind, call in (self._callbacks or {}).items() if kind == _TERMINAL}
        if handle:
            _native.imgdl_token_cancel(handle)
        self._report(exception)

    def _finish(self, outcome: _Outcome) -> None:
        # Before anybody can see that it is done: callbacks keep nothing alive after the end.
        self._callbacks = None
        downloader, self._downloader = self._downloader, None
        # An interrupt that strikes as the lock is let go does not lose it.
        reference = TokenReference()
        with self._pump.state.lock:
            self._outcome = outcome
            reference.value, self._handle = self._handle, None
        reference.release()
        self._run_hooks()
        del downloader

    def _end(self) -> None:
        """Nothing will come any more."""
        if self._outcome is None:
            self._finish(_Outcome(Code.CANCELLED, "its end was never told", 0, None, None))
        self._run_hooks()


@_callbacks.callback(_native.imgdl_event_callback, is_waited_for=False)
def _on_event(pointer: Any, key: int) -> None:
    token = _outstanding.get(key)
    if not isinstance(token, Token):
        return
    event = pointer.contents
    try:
        token._receive(event)
    except BaseException as exception:
        token._fail(exception, event.token)


@_callbacks.last_callback(_native.imgdl_destructor, is_waited_for=False)
def _on_end(key: int) -> None:
    pending = _outstanding.get(key)
    if pending is not None:
        try:
            # Not only once: who is not found any more would have no end.
            surely(pending._end)
        finally:
            settle(pending._pump, key)


# The fields of a request that say who is told, which lie side by side: set at once.
_RECIPIENT = struct.Struct("@4P")
_RECIPIENT_OFFSET: int = _native.imgdl_request.executor.offset
_EVENT_ADDRESS = ctypes.cast(_on_event, ctypes.c_void_p).value
_END_ADDRESS = ctypes.cast(_on_end, ctypes.c_void_p).value


def tell(request: Any, pump: Pump, key: int) -> None:
    """Has the library call `_on_event` and `_on_end` with this key, on that pump."""
    _RECIPIENT.pack_into(request, _RECIPIENT_OFFSET, pump.executor, _EVENT_ADDRESS, _END_ADDRESS, key)


def submit(downloader: Downloader, request: Any, token: Token[Any]) -> None:
    """Asks the library for the download, which is outstanding on the token's pump until `_on_end`, or is not at all:
    whatever happens, and wherever an interrupt strikes."""
    state, pump = downloader._state, token._pump
    key = token._key
    reference = TokenReference()
    try:
        state.accept(pump, (key,))
        tell(request, pump, key)
        _outstanding[key] = token
        code = _native.imgdl_download(state.handle, request, reference)
        if code:
            _callbacks.raise_struck()
            raise error(code, _native.imgdl_last_error().decode("utf-8", "replace"), url=redacted(token._url))
        token._accepted(reference)
        _callbacks.raise_struck()
    except BaseException:
        # Nothing is called here, where a second one could strike.
        if reference.value or token._handle is not None or token._outcome is not None:
            # Interrupted after it was accepted, and nobody will get the token.
            surely(_give_up, token, reference)
        else:
            surely(settle, pump, key)
        raise


def _give_up(token: Token[Any], reference: TokenReference) -> None:
    if reference.value:
        token._accepted(reference)
    token.cancel()


def settle(pump: Pump, key: int) -> None:
    """What was asked for under this number is not outstanding any more. May be called again."""
    pump.state.release(pump, key)
    # At last: who is called again finds the pump there.
    _outstanding.pop(key, None)
