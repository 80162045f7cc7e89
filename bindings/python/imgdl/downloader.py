"""`Downloader`: the queue, its connections, and what is asked of them; and `get`."""

from __future__ import annotations

import _thread
import atexit
import ctypes
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Callable, Literal, NoReturn, Optional, Union, overload

from . import _map, _native, _once, _options, _process, batch as batches, cache as caches, coder, hooks, transport
from ._checks import boolean
from ._later import Later, Unpack
from ._observing import Observer, observers
from ._state import Possession, State, check_loop
from ._waiting import surely
from .batch import Batch, BatchProgress
from .body import Body
from .errors import Code, Error, check, error
from .image import Image
from .metrics import Stats, stats_from
from .stream import Stream
from .token import Token, submit

_once.refuse_reload(globals())

# Turned round for who drops the names of a block `if TYPE_CHECKING`, as typeguard does.
if not TYPE_CHECKING:
    asyncio = Later("asyncio")
    _keywords = Later("._keywords")
else:
    import asyncio

    from . import _keywords

# How long the exit of the process waits for callbacks that do not return.
_SECONDS_AT_EXIT = 5.0

_downloaders: weakref.WeakSet[Downloader] = weakref.WeakSet()
_shared: Optional[Downloader] = None
# Reentrant, because the garbage collector and signal handlers may come by while it is held. Nothing is called then.
_shared_lock = threading.RLock()


class Downloader(_process.OfThisProcess):
    """Downloads pictures; make one and keep it. Requests for the same bytes share one transfer.

    max_concurrent   running transfers, 6 by default
    max_per_host     of these, to one host and port; no limit of its own by default
    order            "fifo" (the default) or "lifo", among waiting requests of one priority
    decode_threads   one for each core by default
    memory_budget    bytes of bodies and pixels in work, 512 MiB by default: then nothing new starts, HTTP/1.1 pauses
    connect_timeout  seconds for name, connection and TLS, 15 by default
    idle_timeout     seconds without a byte, 15 by default
    max_redirects    10 by default
    retries          a number, or a `Retry`; 0 by default
    failure_ttl      a URL that failed in a way that will not pass fails at once for so many seconds (BLACKLISTED), but for
                     requests with hooks, and unless it has been removed from the cache or changed by another method since
    accepted_statuses
                     numbers, ranges, or pairs of first and last; range(200, 300) by default
    accepted_types   such as ["image/png", "image/*"]; any by default. A response without Content-Type passes
    progress_interval
                     0 to 1: this part of the whole must come between two calls of on_progress
    user_agent       "imgdl/VERSION" by default
    proxy            such as "http://user:password@host:3128"; "": none; by default as the environment says
    dns_servers      who is asked for names, such as "192.0.2.1,[2001:db8::1]:5353"; by default as the system has it
    user, password   Basic or Digest, where neither request nor URL has any; only ever for the URL's own origin
    ca_file          PEM certificates to trust instead of the system's
    client_certificate, client_key, client_key_password
                     files in PEM; the key may be in the certificate's
    pinned_public_key
                     "sha256//BASE64", several with ; between them
    partition        for which of your program's accounts: what one has loaded answers no other, and each has its cookies
    cookie_file      where cookies are kept, in Netscape's format, in a folder where files can be made; in memory by
                     default, as those of requests with a partition of their own. INVALID_OPERATION for what cannot be
                     read or written, or holds something else
    deny_private_addresses
                     refuse loopback, link-local and private addresses, on every hop (ADDRESS_REFUSED)
    nat64_prefixes   for that: prefixes of the network's NAT64, such as "2001:db8:64::/96", with commas between them
    crl_file         revocation lists in PEM, of all authorities that servers have; by default revocation is not looked at
    require_tls_1_3  TLS 1.3 at least, in place of 1.2
    allow_file_urls, allow_data_urls
                     file: and data: URLs
    cache            a `Cache`; none by default
    cache_mode       of requests that say nothing: "use" by default where there is a cache, else "off"
    max_stale        seconds: what has been stale in the cache for longer does not answer, whatever allows it. 0: what is
                     stale never answers; NO_LIMIT, the default: as HTTP allows
    finish_nearly_done
                     a transfer whose last request is cancelled goes on into the cache when its rest would take less time
                     than the server took to answer
    basic_over_http  answer challenges for Basic over http too, where everybody on the way can read the password
    hooks            `Hooks` of requests that name none. They live until the downloader has ended: close one whose hooks
                     know it

    Callbacks run on a thread that belongs to this object, one at a time, or on the event loop that `download` was
    given. A with statement closes it at its end. One that is let go without that finishes what it has accepted.

        >>> with imgdl.Downloader(max_per_host=4, retries=imgdl.Retry(3, base=0.2)) as downloader:
        ...     images = [token.result() for token in [downloader.download(url) for url in urls]]
    """

    def __init__(self, **config: Unpack[_keywords.Config]) -> None:
        _options.check_keywords(config, _options.config, "Downloader()")
        self._begin(State(False), _options.config(**config), config.get("max_per_host"))

    def _begin(self, state: State, config: Any, max_per_host: Optional[int]) -> None:
        self._state = state
        self._max_per_host = max_per_host
        self._possession = Possession(state)
        try:
            state.begin(config)
            _downloaders.add(self)
        except BaseException:
            surely(state.abandon)
            raise

    @classmethod
    def shared(cls) -> Downloader:
        """The one that the process shares, also with other languages; with defaults. Closing it cancels the downloads
        made here, and the next call gives it anew."""
        global _shared
        while True:
            found = _shared
            if found is not None and found._state.generation == _process.generation and not found._state.is_closing:
                return found
            made = cls.__new__(cls)
            made._begin(State(True), None, None)
            with _shared_lock:
                # Another thread may have been first, or the handler of a signal, or a finalizer.
                if _shared is found:
                    _shared = made

    # Downloads

    @overload
    def download(
        self,
        url: str,
        *,
        body: Literal[False] = False,
        loop: Optional[asyncio.AbstractEventLoop] = None,
        **options: Unpack[_keywords.Options],
    ) -> Token[Image]: ...

    @overload
    def download(
        self,
        url: str,
        *,
        body: Literal[True],
        loop: Optional[asyncio.AbstractEventLoop] = None,
        **options: Unpack[_keywords.Options],
    ) -> Token[Body]: ...

    def download(
        self,
        url: str,
        *,
        body: bool = False,
        loop: Optional[asyncio.AbstractEventLoop] = None,
        **options: Any,
    ) -> Token[Any]:
        """Asks for one download. Raises `Error` where the request cannot be one; what happens later, the token tells.

        body              the result is the `Body`, of any type, instead of an `Image`
        decode            with `body`: decode it too, for `Body.image`
        headers           a mapping; they take the place of the downloader's of the same name, None: not sent, but Host,
                          Accept-Encoding and the Content-Length of a body are the library's own then
        method, content   what to send; GET and nothing by default
        priority          "low", "normal" or "high"
        follow_redirects  False: a redirect is an answer like any other
        allow_downgrade   follow redirects from https to http too
        any_status        any HTTP status is a success; see `Body.http_status`
        max_body_bytes    256 MiB by default
        total_timeout     seconds from the start of the transfer, once the cache has been looked at, to the last decode;
                          none by default
        partial_interval  seconds between two partial images, 0.1 by default
        pixel_format, ignore_orientation, salvage, max_pixels, size, stretch, scale_down, all_frames, require_animation,
        max_frames, format_hint, coder, colour, max_side, max_scans, max_animation_pixels, max_metadata_bytes,
        max_memory_bytes, max_decode_ms, thumbnail_first, good_enough_scan
                          as for `decode`
        scale_factor      for `Image.scale_factor`; as the URL's file name says (photo@2x.png) by default
        user, password    Basic or Digest, as the server asks; only ever for the URL's own origin
        cookies           send and keep cookies, in the downloader's jar
        connect_timeout, idle_timeout, retries, accepted_statuses, accepted_types, ca_file, client_certificate,
        client_key, client_key_password, pinned_public_key, partition, hooks
                          in place of the downloader's; retries=0 is never
        allow_invalid_certificates
                          take any server certificate, self-signed ones too; nothing of it is stored, and nothing
                          stored answers it, over https or http
        continue_in_background
                          goes on after `enter_background`
        retry_failed      ask again, whatever failed a moment ago (failure_ttl)
        full_urls         responses and errors show URLs with the values of their queries
        cache             how it uses the downloader's cache:
                          "off"      neither reads nor writes it
                          "use"      what is fresh answers without the network, what is stale is validated
                          "reload"   from the server, whatever is stored; the answer is stored
                          "only"     what is stored, however old (but for max_stale); else NOT_CACHED.
                                     Nothing is sent over http and https; other schemes have no cache and are asked
                          "refresh"  validated with the server, also where it is fresh, unless it is immutable
                          Where an answer came from, `Response.cache_outcome` tells
        max_stale         in place of the downloader's
        ignore_cached     what comes from the cache, or has the bytes that were stored when the request began, is
                          NOT_MODIFIED; what is stale is validated first, also within stale-while-revalidate
        basic_over_http   answer a challenge for Basic over http too, where everybody on the way can read the password

        on_started(token)                        the transfer leaves the queue
        on_response(token, response)             the server answered; again when it is tried again
        on_header(token, info)                   the size of the picture, from its first bytes; again likewise
        on_progress(token, received, expected)   bytes; expected is None while unknown
        on_partial(token, image)                 the picture so far

        loop              the event loop, running on this thread, on which the callbacks run; otherwise it is the
                          downloader's own thread. Callbacks may use everything here but must not wait. What one raises
                          goes to sys.unraisablehook, cancels the download and is raised by its result.

            >>> with imgdl.Downloader() as downloader:
            ...     token = downloader.download(url, on_header=lambda token, info: print(info.width))
            ...     token.result(30)
            900
            <imgdl.Image 900×600 png rgba8>
        """
        request, token = self._unasked(url, body, loop, options)
        submit(self, request, token)
        return token

    def _unasked(
        self, url: str, body: bool, loop: Optional[asyncio.AbstractEventLoop], options: dict[str, Any]
    ) -> tuple[Any, Token[Any]]:
        """The request and the token that `submit` takes. Who holds the token before the library is asked can cancel
        it, wherever an interrupt strikes: between a call that returns a token and its assignment one would lose it."""
        prepared = _options.prepare(url, body, options)
        check_loop(loop)
        return self._placed(url, body, loop, prepared)

    def _placed(
        self, url: str, body: bool, loop: Optional[asyncio.AbstractEventLoop], prepared: _options.Prepared
    ) -> tuple[Any, Token[Any]]:
        request, callbacks = prepared
        pump = self._state.pump_for(loop)
        return request, Token(url, self, pump, callbacks, body, request.priority)

    def prefetch(
        self,
        requests: Iterable[_map.Request],
        *,
        max_concurrent: Optional[int] = None,
        keeps_priority: bool = False,
        on_progress: Optional[Callable[[Batch, BatchProgress], object]] = None,
        on_done: Optional[Callable[[Token[Any]], object]] = None,
        loop: Optional[asyncio.AbstractEventLoop] = None,
        **unknown: NoReturn,
    ) -> Batch:
        """Asks for many, few at a time, at low priority, so that others come first.

        requests        URLs, or pairs of a URL and the options of `download`, `body` and callbacks among them
        max_concurrent  of this batch, 3 by default
        keeps_priority  each request has its own priority
        on_progress(batch, progress)    after each end, and once for an empty list
        on_done(token)                  for each, at its end; without it and callbacks of its own a result is dropped
        loop            as for `download`

        One request that cannot be refuses them all; the message has its number, from 0.

            >>> with imgdl.Downloader() as downloader:
            ...     batch = downloader.prefetch(urls, on_progress=lambda batch, progress: print(progress.finished))
            ...     batch.wait().failed
            1
            2
            3
            0
        """
        _options.check_keywords(unknown, Downloader.prefetch, "prefetch()")
        _map.check_list(requests)
        for name, function in (("on_progress", on_progress), ("on_done", on_done)):
            if function is not None:
                _options.check_callable(function, name)
        prepared: list[Any] = []
        kept: list[Optional[tuple[str, dict[int, Callable[..., Any]], bool]]] = []
        for index, each in enumerate(requests):
            url, options = _map.address_and_options(each, index)
            body = boolean(options.pop("body", False), "body")
            try:
                request, callbacks = _options.prepare(url, body, options)
            except Error as problem:
                message = f"requests[{index}]: {problem.message}"
                raise error(problem.code, message, url=problem.url) from None
            prepared.append(request)
            kept.append((url, callbacks, body) if callbacks or on_done is not None else None)
        width = _options.unsigned(max_concurrent, "max_concurrent")
        keeps_priority = boolean(keeps_priority, "keeps_priority")
        check_loop(loop)

        pump = self._state.pump_for(loop)
        batch = Batch(self, pump, on_progress, len(prepared))
        tokens: list[Optional[Token[Any]]] = []
        for request, keep in zip(prepared, kept):
            token: Optional[Token[Any]] = None
            if keep is not None:
                priority = request.priority if keeps_priority else _native.IMGDL_PRIORITY_LOW
                if on_done is not None:
                    keep[1][_native.IMGDL_EVENT_TERMINAL] = on_done
                token = Token(keep[0], self, pump, keep[1], keep[2], priority)
            tokens.append(token)
        batches.submit(self, batch, prepared, tokens, width, keeps_priority)
        return batch

    @overload
    def map(
        self,
        requests: Iterable[_map.Request],
        *,
        ordered: bool = True,
        buffersize: Optional[int] = None,
        progress: bool = False,
        body: Literal[False] = False,
        **options: Unpack[_keywords.Options],
    ) -> Generator[Token[Image], None, None]: ...

    @overload
    def map(
        self,
        requests: Iterable[_map.Request],
        *,
        ordered: bool = True,
        buffersize: Optional[int] = None,
        progress: bool = False,
        body: Literal[True],
        **options: Unpack[_keywords.Options],
    ) -> Generator[Token[Body], None, None]: ...

    def map(
        self,
        requests: Iterable[_map.Request],
        *,
        ordered: bool = True,
        buffersize: Optional[int] = None,
        progress: bool = False,
        body: bool = False,
        **options: Any,
    ) -> Generator[Token[Any], None, None]:
        """Downloads many, as fast as you take them, and gives each `Token` when it is done.

        requests    URLs, or pairs of a URL and options of its own; asked for no sooner than needed, so that it may be
                    a generator without an end
        ordered     as in `requests`; False: as they end, so that none waits for a slow one
        buffersize  so many at most are under way or done and not yet taken, which bounds the pictures in memory; twice
                    `max_concurrent` by default
        progress    show a bar of tqdm, if it is installed
        options     as for `download`, for all

        A failure, also of a URL or an option that cannot be one, is raised by its token's `result` and ends nothing
        else: what is neither an address nor a pair, or has options that `download` does not take, is a TypeError of
        its token; the URL of one without an address is "". Closing the generator, leaving its loop among others,
        cancels what is under way. Waits in this thread: not for callbacks; coroutines have `amap`.

        An exception that leaves a generator expression over it, or up to Python 3.11 any comprehension, holds the
        generator as long as somebody holds the exception: until then what is under way, `buffersize` at most, runs to
        its end. `contextlib.closing(downloader.map(…))` in a with statement cancels it at once.

            >>> with imgdl.Downloader() as downloader:
            ...     for token in downloader.map([url, url + "-missing"], size=(64, 64)):
            ...         try:
            ...             print(token.result().width)
            ...         except imgdl.Error as error:
            ...             print(error.http_status)
            64
            404
        """
        return _map.results(*self._map_arguments("map()", requests, ordered, buffersize, progress, body, options))

    @overload
    def amap(
        self,
        requests: Iterable[_map.Request],
        *,
        ordered: bool = True,
        buffersize: Optional[int] = None,
        progress: bool = False,
        body: Literal[False] = False,
        **options: Unpack[_keywords.Options],
    ) -> AsyncGenerator[Token[Image], None]: ...

    @overload
    def amap(
        self,
        requests: Iterable[_map.Request],
        *,
        ordered: bool = True,
        buffersize: Optional[int] = None,
        progress: bool = False,
        body: Literal[True],
        **options: Unpack[_keywords.Options],
    ) -> AsyncGenerator[Token[Body], None]: ...

    def amap(
        self,
        requests: Iterable[_map.Request],
        *,
        ordered: bool = True,
        buffersize: Optional[int] = None,
        progress: bool = False,
        body: bool = False,
        **options: Any,
    ) -> AsyncGenerator[Token[Any], None]:
        """`map` for coroutines. Cancelling the task cancels what is under way, and so does leaving the loop: at once
        with contextlib.aclosing, otherwise when the loop comes to it.

            >>> async def main():
            ...     async with imgdl.Downloader() as downloader:
            ...         return [token.result().width async for token in downloader.amap(urls, size=(64, 64))]
            >>> asyncio.run(main())
            [64, 64, 64]
        """
        return _map.results_on_loop(
            *self._map_arguments("amap()", requests, ordered, buffersize, progress, body, options)
        )

    def _map_arguments(
        self,
        name: str,
        requests: Iterable[_map.Request],
        ordered: bool,
        buffersize: Optional[int],
        progress: bool,
        body: bool,
        options: dict[str, Any],
    ) -> tuple[Downloader, Iterable[_map.Request], dict[str, Any], bool, int, bool]:
        _options.check_names(options, _options.MAPPING, name)
        _map.check_list(requests)
        # Options that nothing can be done with are no business of a single request.
        _options.prepare("http://localhost/", body, options)
        given = _options.unsigned(buffersize, "buffersize")
        ordered, progress = boolean(ordered, "ordered"), boolean(progress, "progress")
        return self, requests, dict(options, body=body), ordered, given or 2 * self.max_concurrent, progress

    def stream(self, url: str, **options: Unpack[_keywords.Options]) -> Stream:
        """For coroutines: the picture so far, whenever there is more of it, and at last the whole one; see `Stream`.
        The options are those of `download`, without `on_partial`; `partial_interval` says how often.

            >>> async def show():
            ...     async with imgdl.Downloader() as downloader:
            ...         async for image in downloader.stream(url):
            ...             pass  # draw it
            ...         print(image.is_complete)
            >>> asyncio.run(show())
            True
        """
        return Stream(self, url, dict(options))

    @overload
    async def get(self, url: str, *, body: Literal[False] = False, **options: Unpack[_keywords.Options]) -> Image: ...

    @overload
    async def get(self, url: str, *, body: Literal[True], **options: Unpack[_keywords.Options]) -> Body: ...

    async def get(self, url: str, **options: Any) -> Any:
        """For coroutines alone: without `await` nothing is downloaded. Elsewhere use `download(url).result()`, or
        `imgdl.get`, which has the shared downloader and its defaults: no cache, and retries only where they are asked for.

        Callbacks run on the running loop. Cancelling the task cancels the download.

            >>> async def main():
            ...     async with imgdl.Downloader() as downloader:
            ...         return await asyncio.gather(*(downloader.get(url) for url in urls))
            >>> [image.width for image in asyncio.run(main())]
            [900, 900, 900]
        """
        import asyncio

        _options.check_names(options, _options.GETTING, "get()")
        body = options.pop("body", False)
        request, token = self._unasked(url, body, asyncio.get_running_loop(), options)
        try:
            submit(self, request, token)
            return await token
        finally:
            surely(token.cancel)  # where an interrupt ended the wait

    # Settings

    def set_header(self, name: str, value: Optional[str]) -> None:
        """A header that every later request carries; None takes it out of the requests, also a default one (Accept,
        User-Agent)."""
        field = _options.text(name, "the name of a header", Code.INVALID_HEADER)
        content = None if value is None else _options.text(value, f"the header {name}", Code.INVALID_HEADER)
        check(_native.imgdl_downloader_set_header(self._state.open(), field, content))

    def header(self, name: str) -> Optional[str]:
        """The value that later requests carry, whether set or a default; None if there is no such header. Names compare
        without regard to case."""
        field = _options.text(name, "the name of a header", Code.INVALID_HEADER)
        handle = self._state.open()
        size, length = 256, ctypes.c_size_t()
        while True:
            buffer = ctypes.create_string_buffer(size)
            code = _native.imgdl_downloader_get_header(handle, field, buffer, size, length)
            if code == Code.NOT_READY:
                return None
            check(code)
            if length.value < size:
                return buffer.raw[: length.value].decode("utf-8", "replace")
            size = length.value + 1

    @property
    def max_concurrent(self) -> int:
        """How many transfers may run. Fewer than now: the running ones run on."""
        return int(_native.imgdl_downloader_max_concurrent(self._state.open()))

    @max_concurrent.setter
    def max_concurrent(self, value: int) -> None:
        number = _options.concurrency(value, "max_concurrent")
        check(_native.imgdl_downloader_set_max_concurrent(self._state.open(), number))

    @property
    def max_per_host(self) -> Optional[int]:
        """How many of these to one host and port; None is no limit of its own."""
        return self._max_per_host

    @max_per_host.setter
    def max_per_host(self, value: Optional[int]) -> None:
        number = _options.concurrency(value, "max_per_host")
        check(_native.imgdl_downloader_set_max_per_host(self._state.open(), number))
        self._max_per_host = value

    def set_order(self, order: Union[str, int]) -> None:
        """ "fifo" or "lifo", for requests made from now on."""
        check(_native.imgdl_downloader_set_order(self._state.open(), _options.order(order)))

    @property
    def suspended(self) -> bool:
        """While true nothing that waits is started; what runs runs on."""
        return bool(_native.imgdl_downloader_is_suspended(self._state.open()))

    @suspended.setter
    def suspended(self, value: bool) -> None:
        check(_native.imgdl_downloader_set_suspended(self._state.open(), boolean(value, "suspended")))

    def enter_background(self, grace: Optional[float] = None) -> None:
        """From now on only downloads with `continue_in_background` start and run; the others pause. Those that still
        run after `grace` seconds (None: no end) end with BACKGROUND_EXPIRED."""
        check(
            _native.imgdl_downloader_enter_background(self._state.open(), _options.milliseconds(grace, "grace"))
        )

    def enter_foreground(self) -> None:
        """As before."""
        check(_native.imgdl_downloader_enter_foreground(self._state.open()))

    def network_changed(self) -> None:
        """Says that the network may be another one: connections that are open now serve what runs on them, and nothing
        that is sent later; addresses of names are looked up anew. A downloader finds out by itself when the machine has
        slept."""
        check(_native.imgdl_downloader_network_changed(self._state.open()))

    def invalidate(self, *, cancel: bool = False) -> None:
        """Takes no more requests (INVALID_OPERATION) until `reconfigure`. `cancel`: cancels what there is; otherwise
        what runs runs to its end, and what waits ends with INVALID_OPERATION."""
        check(_native.imgdl_downloader_invalidate(self._state.open(), boolean(cancel, "cancel")))

    def reconfigure(self, **config: Unpack[_keywords.Config]) -> None:
        """A new session: cancels what there is, closes its connections, forgets its cookies in memory, and goes on with
        this configuration, defaults where nothing is said. decode_threads stay, and headers that were set. On failure
        nothing has changed."""
        _options.check_keywords(config, _options.config, "Downloader.reconfigure()")
        native = _options.config(**config)
        native.executor = self._state.thread_pump.executor
        check(_native.imgdl_downloader_reconfigure(self._state.open(), native))
        self._max_per_host = config.get("max_per_host")

    # Plug-ins and observing

    def register_transport(self, scheme: str, loader: Optional[transport.Loader]) -> None:
        """Lets a loader of yours do the transfers of a scheme: "app" for app://…, or "https" in place of the built-in
        one. None takes it out; what runs is not touched. Requests share its transfers, and limits, timeouts, retries
        and validation hold for them, as for any other.

        loader  an object with
                    start(request, transfer)  begins; request is an `Outgoing`, transfer a `Transfer` to report to, from
                                              any thread, and to keep until its end
                    cancel(transfer)          may be missing: nobody wants it any more
                    resume(transfer)          may be missing: bytes that `Transfer.try_body`, or `Transfer.body` with
                                              NOT_READY, has refused may be given again
                All are called on the library's thread, which other downloads wait for. One that raises fails the
                transfer: an `Error` with its code, anything else with INVALID_OPERATION, and it is shown. The end of a
                transfer waits for its `cancel` and `resume`: see `Transfer`, where these take a lock.

            >>> class Bundle:
            ...     def start(self, request, transfer):
            ...         transfer.response(200, {"Content-Length": str(len(data))})
            ...         transfer.body(data)
            ...         transfer.end()
            >>> with imgdl.Downloader() as downloader:
            ...     downloader.register_transport("app", Bundle())
            ...     downloader.download("app://pictures/1").result().width
            900
        """
        self._state.register(scheme, loader)

    def set_observer(self, observer: Optional[Observer]) -> None:
        """Calls observer(observation) for each transfer that starts, has a response, stops and finishes; None takes it
        out. On the library's thread that drives them all: be quick, and do not wait. What it raises goes to
        sys.unraisablehook."""
        self._state.observe(observer)

    def stats(self) -> Stats:
        """What it did since it was made.

            >>> with imgdl.Downloader() as downloader:
            ...     token = downloader.download(url)
            ...     image = token.result()
            ...     downloader.stats().succeeded
            1
        """
        native = _native.imgdl_stats()
        _native.imgdl_stats_init(native, ctypes.sizeof(native))
        check(_native.imgdl_downloader_stats(self._state.open(), native))
        return stats_from(native)

    # All downloads

    @property
    def current_count(self) -> int:
        """Accepted downloads that have not ended."""
        _process.check(self._state.generation)
        return 0 if self._state.is_finished else int(_native.imgdl_downloader_current_count(self._state.handle))

    def cancel_all(self) -> None:
        """Cancels every download accepted so far."""
        check(_native.imgdl_downloader_cancel_all(self._state.open()))

    def wait_idle(self, timeout: Optional[float] = None) -> None:
        """Waits until every download made here has ended, `timeout` seconds at most. Raises `WaitTimeout`."""
        self._state.wait_idle(timeout)

    def close(self) -> None:
        """Cancels what is outstanding, and waits until everything has ended: callbacks, threads, connections. Any
        number of times; inside a callback, of whatever downloader, it does not wait. In a coroutine, prefer `aclose`."""
        self._close(None)

    def _close(self, timeout: Optional[float]) -> None:
        if self._state.generation != _process.generation:
            self._state.forget()
        else:
            self._state.close(timeout)

    async def aclose(self) -> None:
        """`close` without blocking the loop: cancels at once, and waits for the end."""
        import asyncio

        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def settle(problem: Optional[BaseException]) -> None:
            if future.done():
                return
            if problem is None:
                future.set_result(None)
            else:
                future.set_exception(problem)

        def close() -> None:
            problem: Optional[BaseException] = None
            try:
                self.close()
            except BaseException as exception:
                problem = exception
            try:
                loop.call_soon_threadsafe(settle, problem)
            except RuntimeError:
                pass  # the loop is closed: nobody waits

        # On a thread of its own: others of the loop's may be at work for long.
        self._state.shut_down()
        _thread.start_new_thread(close, ())
        await future

    def __enter__(self) -> Downloader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def __aenter__(self) -> Downloader:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<imgdl.Downloader {'closed' if self._state.is_closing else 'open'}>"


@overload
def get(
    url: str, *, body: Literal[False] = False, timeout: Optional[float] = None, **options: Unpack[_keywords.Options]
) -> Image: ...


@overload
def get(url: str, *, body: Literal[True], timeout: Optional[float] = None, **options: Unpack[_keywords.Options]) -> Body: ...


def get(url: str, *, timeout: Optional[float] = None, **options: Any) -> Any:
    """Downloads with the shared downloader and waits, `timeout` seconds at most: then the download is cancelled, and
    `WaitTimeout` is raised. The options are those of `Downloader.download`.

        >>> imgdl.get(url, timeout=30).width
        900
        >>> len(imgdl.get(url, body=True).data) == len(data)
        True
    """
    _options.check_names(options, _options.WAITING, "get()")
    _options.waiting(timeout)
    body = options.pop("body", False)
    downloader = Downloader.shared()
    request, token = downloader._unasked(url, body, None, options)
    try:
        submit(downloader, request, token)
        return token.result(timeout)
    finally:
        surely(token.cancel)  # where the wait ended first


def _close_all() -> None:
    # One for all of them.
    deadline = time.monotonic() + _SECONDS_AT_EXIT

    def left() -> float:
        return max(deadline - time.monotonic(), 0)

    def closing(downloader: Downloader) -> Callable[[], object]:
        return lambda: downloader._close(left())

    downloaders = list(_downloaders)
    steps: list[Callable[[], object]] = [downloader._state.shut_down for downloader in downloaders]
    steps += map(closing, downloaders)
    # What was let go a moment ago still ends on threads of the library.
    steps += [
        lambda: hooks.end_at_exit(left()),
        lambda: transport.end_at_exit(left()),
        lambda: coder.end_at_exit(left()),
        lambda: observers.wait(lambda observers: not observers, left()),
        lambda: caches.end_at_exit(left()),
    ]
    # An interrupt ends the step that it strikes, and the others follow. It is raised after the last.
    surely(_take, iter(steps))


def _take(steps: Iterator[Callable[[], object]]) -> None:
    for step in steps:
        step()


def _forget_all() -> None:
    global _shared, _shared_lock
    _shared = None
    _shared_lock = threading.RLock()
    _downloaders.clear()
    observers.clear()


atexit.register(_close_all)
_process.forget_in_child(_forget_all)
