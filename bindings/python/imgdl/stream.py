"""`Stream`: a picture while it arrives, for `async for`."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Optional

from . import _once, _options, _process
from ._callbacks import finalizer, raise_struck
from .image import Image
from .token import Token, submit

_once.refuse_reload(globals())

if TYPE_CHECKING:
    import asyncio

    from .downloader import Downloader


class Stream(_process.OfThisProcess):
    """What `Downloader.stream` gives: an asynchronous iterator of one download, and no more than one task's.

    It gives the picture so far, and at last the whole one. A partial picture that nobody has taken when the next one
    is there is left out, so that whoever is slow sees the newest. A failure is raised where the whole picture would
    have come. `token.cancel()` is such a failure: `Cancelled`. Cancelling the task cancels the download, and so does
    leaving the loop early when nobody holds the stream any more; `aclose`, or an async with statement, does it at once
    and waits for the end.
    """

    token: Token[Image]
    """The download: for its `metrics`, its `priority`, or to cancel it."""

    def __init__(self, downloader: Downloader, url: str, options: dict[str, Any]) -> None:
        for name in ("on_partial", "body"):
            if name in options:
                raise TypeError(f"a stream has no {name}")
        _options.check_names(options, _options.STREAMING, "stream()")
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._newest: Optional[Image] = None
        self._waiter: Optional[asyncio.Future[None]] = None
        self._is_over = False
        # The download holds these functions, and must not hold the stream.
        reference = weakref.ref(self)

        def show(token: Token[Image], image: Image) -> None:
            stream = reference()
            if stream is not None:
                stream._newest = image
                stream._wake()

        def end(token: Token[Image]) -> None:
            from .aio import call_on

            stream = reference()
            if stream is not None:
                call_on(stream._loop, token, stream._wake)

        request, self.token = downloader._unasked(url, False, self._loop, {**options, "on_partial": show})
        submit(downloader, request, self.token)
        self.token.add_done_callback(end)

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Image:
        if self._is_over:
            raise StopAsyncIteration
        while not self.token.done() and self._newest is None:
            await self._wait()
        image, self._newest = self._newest, None
        if not self.token.done():
            assert image is not None
            return image
        self._is_over = True
        return self.token._give()

    async def _wait(self) -> None:
        import asyncio

        if self._waiter is not None:
            raise RuntimeError("another task waits for this stream")
        raise_struck()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            await self.aclose()
            raise
        finally:
            self._waiter = None

    async def aclose(self) -> None:
        """Ends it: cancels the download unless it is done. No callback of it runs afterwards."""
        from . import aio

        self._is_over = True
        self._newest = None
        await aio.cancelled(self.token)

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    @finalizer
    def __del__(self) -> None:
        token = getattr(self, "token", None)
        if token is not None and not token.done() and token._generation == _process.generation:
            token.cancel()
