"""What `Downloader.map` and `amap` do: few downloads at a time, of as many requests as there are."""

from __future__ import annotations

import importlib
import operator
import queue
from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from . import _once, _options
from ._callbacks import is_interrupt, raise_struck
from ._checks import boolean
from ._state import check_loop
from ._waiting import surely
from .errors import Error, InvalidArgument
from .token import Token, submit

_once.refuse_reload(globals())

if TYPE_CHECKING:
    from .downloader import Downloader

Request = Union[str, tuple[str, Mapping[str, Any]]]


def check_list(requests: Iterable[Request]) -> None:
    """The characters of an address are no requests."""
    if isinstance(requests, (str, bytes, bytearray)):
        raise TypeError("requests must be a list of addresses, not one")
    if not isinstance(requests, Iterable) and not hasattr(requests, "__getitem__"):
        raise TypeError(f"requests must be a list of addresses, not {type(requests).__name__}")


def address_and_options(request: Any, index: int) -> tuple[str, dict[str, Any]]:
    """Raises TypeError, with the number of the request, for what is neither an address nor a pair."""
    if isinstance(request, str):
        return request, {}
    if not _is_sequence(request) or len(request) != 2:
        expected = "an address, or a pair of an address and its options"
        raise TypeError(f"requests[{index}] must be {expected}, not {type(request).__name__}")
    address, options = request
    if not isinstance(address, str):
        raise TypeError(f"requests[{index}] has an address that must be str, not {type(address).__name__}")
    if not isinstance(options, Mapping):
        raise TypeError(f"requests[{index}] has options that must be a mapping, not {type(options).__name__}")
    own = dict(options)
    for name in own:
        if not isinstance(name, str):
            raise TypeError(f"requests[{index}] has options whose names must be str, not {type(name).__name__}")
    return address, own


def _is_sequence(request: Any) -> bool:
    return isinstance(request, Sequence) and not isinstance(request, (str, bytes, bytearray))


def _address(request: Any) -> str:
    """The address of a request that is refused; "" where it has none."""
    try:
        address = request[0] if _is_sequence(request) and len(request) else request
    except Exception as problem:
        if is_interrupt(problem):
            raise
        return ""
    return address if isinstance(address, str) else ""


def results(
    downloader: Downloader,
    requests: Iterable[Request],
    options: dict[str, Any],
    ordered: bool,
    buffersize: int,
    shows_progress: bool,
) -> Generator[Token[Any], None, None]:
    source = enumerate(requests)
    pending: deque[Token[Any]] = deque()
    finished: queue.SimpleQueue[Token[Any]] = queue.SimpleQueue()
    bar = _Bar(requests) if shows_progress else None
    try:
        while True:
            for token in _submitted(downloader, source, options, buffersize - len(pending), pending):
                # Whatever runs on this thread: it waits here.
                if not ordered and not token._when_done(finished.put):
                    finished.put(token)
            if not pending:
                return
            if ordered:
                pending[0]._wait(None)
                token = pending.popleft()
            else:
                pending[0]._check_waiting()
                token = finished.get()
                pending.remove(token)
            if bar is not None:
                bar.advance(token)
            yield token
    finally:
        surely(_cancel, pending)
        if bar is not None:
            bar.close()


async def results_on_loop(
    downloader: Downloader,
    requests: Iterable[Request],
    options: dict[str, Any],
    ordered: bool,
    buffersize: int,
    shows_progress: bool,
) -> AsyncGenerator[Token[Any], None]:
    import asyncio

    from . import aio

    loop = asyncio.get_running_loop()
    options = {**options, "loop": loop}
    source = enumerate(requests)
    pending: deque[Token[Any]] = deque()
    finished: asyncio.Queue[Token[Any]] = asyncio.Queue()

    def finish(token: Token[Any]) -> None:
        aio.call_on(loop, token, lambda: finished.put_nowait(token))

    bar = _Bar(requests) if shows_progress else None
    try:
        while True:
            for token in _submitted(downloader, source, options, buffersize - len(pending), pending):
                if not ordered:
                    token.add_done_callback(finish)
            if not pending:
                return
            if ordered:
                await aio.end_of(pending[0], loop)
                token = pending.popleft()
            else:
                raise_struck()
                token = await finished.get()
                pending.remove(token)
            if bar is not None:
                bar.advance(token)
            yield token
    finally:
        surely(_cancel, pending)
        if bar is not None:
            bar.close()
        for token in pending:
            await aio.cancelled(token)


def _cancel(pending: Iterable[Token[Any]]) -> None:
    for token in pending:
        try:
            token.cancel()
        except Error:
            return  # in a forked child nothing is left to cancel


def _submitted(
    downloader: Downloader,
    source: Iterator[tuple[int, Request]],
    options: dict[str, Any],
    most: int,
    pending: deque[Token[Any]],
) -> Iterator[Token[Any]]:
    """Each is in `pending` from before the library is asked, so that no interrupt loses it."""
    for _ in range(most):
        try:
            index, request = next(source)
        except StopIteration:
            return
        yield _submit(downloader, request, index, options, pending)


def _submit(
    downloader: Downloader, request: Request, index: int, options: dict[str, Any], pending: deque[Token[Any]]
) -> Token[Any]:
    try:
        url, own = address_and_options(request, index)
        own = {**options, **own}
        body, loop = boolean(own.pop("body", False), "body"), own.pop("loop", None)
        check_loop(loop)
        prepared = _options.prepare(url, body, own)
    except Exception as problem:
        if is_interrupt(problem):
            raise
        return _refused(downloader, request, problem, pending)
    try:
        native, token = downloader._placed(url, body, loop, prepared)
        try:
            pending.append(token)
            submit(downloader, native, token)
            return token
        except InvalidArgument:
            pending.remove(token)
            raise
        except BaseException:
            # A token that nothing was asked for has no end.
            if token._handle is None and token._outcome is None and token in pending:
                pending.remove(token)
            raise
    except InvalidArgument as problem:
        return _refused(downloader, request, problem, pending)


def _refused(
    downloader: Downloader, request: Request, problem: Exception, pending: deque[Token[Any]]
) -> Token[Any]:
    """One request that cannot be is a result like any other failure."""
    refused = Token._refused(_address(request), downloader, problem)
    pending.append(refused)
    return refused


class _Bar:
    """tqdm's, where it is installed."""

    def __init__(self, requests: Iterable[Request]) -> None:
        self._failed = 0
        try:
            tqdm = importlib.import_module("tqdm.auto").tqdm
        except ImportError:
            self._bar: Any = None
            return
        self._bar = tqdm(total=operator.length_hint(requests) or None, unit="image")

    def advance(self, token: Token[Any]) -> None:
        if self._bar is None:
            return
        if token.exception() is not None:
            self._failed += 1
            self._bar.set_postfix(failed=self._failed, refresh=False)
        self._bar.update()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
