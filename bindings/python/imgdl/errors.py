"""What can go wrong: `Error`, its subclasses, and the numbers of include/imgdl.h as `Code`."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Union

from . import _native, _once

_once.refuse_reload(globals())

if TYPE_CHECKING:
    from .image import Image
    from .metrics import Metrics


class Code(IntEnum):
    """The stable numbers. Treat one that is not here like INTERNAL."""

    OK = _native.IMGDL_OK
    INVALID_URL = _native.IMGDL_ERROR_INVALID_URL
    BAD_IMAGE_DATA = _native.IMGDL_ERROR_BAD_IMAGE_DATA
    NOT_MODIFIED = _native.IMGDL_ERROR_NOT_MODIFIED
    BLACKLISTED = _native.IMGDL_ERROR_BLACKLISTED
    INVALID_OPERATION = _native.IMGDL_ERROR_INVALID_OPERATION
    INVALID_STATUS = _native.IMGDL_ERROR_INVALID_STATUS
    CANCELLED = _native.IMGDL_ERROR_CANCELLED
    INVALID_RESPONSE = _native.IMGDL_ERROR_INVALID_RESPONSE
    INVALID_CONTENT_TYPE = _native.IMGDL_ERROR_INVALID_CONTENT_TYPE
    INVALID_ARGUMENT = _native.IMGDL_ERROR_INVALID_ARGUMENT
    INVALID_HANDLE = _native.IMGDL_ERROR_INVALID_HANDLE
    UNSUPPORTED_OPTION = _native.IMGDL_ERROR_UNSUPPORTED_OPTION
    WOULD_DEADLOCK = _native.IMGDL_ERROR_WOULD_DEADLOCK
    SHUT_DOWN = _native.IMGDL_ERROR_SHUT_DOWN
    FORKED = _native.IMGDL_ERROR_FORKED
    OUT_OF_MEMORY = _native.IMGDL_ERROR_OUT_OF_MEMORY
    WAIT_TIMEOUT = _native.IMGDL_ERROR_WAIT_TIMEOUT
    NOT_READY = _native.IMGDL_ERROR_NOT_READY
    INTERNAL = _native.IMGDL_ERROR_INTERNAL
    INVALID_HEADER = _native.IMGDL_ERROR_INVALID_HEADER
    UNSUPPORTED_SCHEME = _native.IMGDL_ERROR_UNSUPPORTED_SCHEME
    BACKGROUND_EXPIRED = _native.IMGDL_ERROR_BACKGROUND_EXPIRED
    RESOLVE_FAILED = _native.IMGDL_ERROR_RESOLVE_FAILED
    CONNECT_FAILED = _native.IMGDL_ERROR_CONNECT_FAILED
    CONNECTION_LOST = _native.IMGDL_ERROR_CONNECTION_LOST
    TLS_FAILED = _native.IMGDL_ERROR_TLS_FAILED
    TLS_CERTIFICATE = _native.IMGDL_ERROR_TLS_CERTIFICATE
    PROTOCOL = _native.IMGDL_ERROR_PROTOCOL
    TRUNCATED = _native.IMGDL_ERROR_TRUNCATED
    CONNECT_TIMEOUT = _native.IMGDL_ERROR_CONNECT_TIMEOUT
    IDLE_TIMEOUT = _native.IMGDL_ERROR_IDLE_TIMEOUT
    TOTAL_TIMEOUT = _native.IMGDL_ERROR_TOTAL_TIMEOUT
    PROXY_FAILED = _native.IMGDL_ERROR_PROXY_FAILED
    TOO_MANY_REDIRECTS = _native.IMGDL_ERROR_TOO_MANY_REDIRECTS
    REDIRECT_REFUSED = _native.IMGDL_ERROR_REDIRECT_REFUSED
    CONTENT_ENCODING = _native.IMGDL_ERROR_CONTENT_ENCODING
    ADDRESS_REFUSED = _native.IMGDL_ERROR_ADDRESS_REFUSED
    TLS_PIN = _native.IMGDL_ERROR_TLS_PIN
    NOT_CACHED = _native.IMGDL_ERROR_NOT_CACHED
    BODY_LIMIT = _native.IMGDL_ERROR_BODY_LIMIT
    HEADER_LIMIT = _native.IMGDL_ERROR_HEADER_LIMIT
    PIXEL_LIMIT = _native.IMGDL_ERROR_PIXEL_LIMIT
    FRAME_LIMIT = _native.IMGDL_ERROR_FRAME_LIMIT
    SCAN_LIMIT = _native.IMGDL_ERROR_SCAN_LIMIT
    SIZE_LIMIT = _native.IMGDL_ERROR_SIZE_LIMIT
    ANIMATION_LIMIT = _native.IMGDL_ERROR_ANIMATION_LIMIT
    METADATA_LIMIT = _native.IMGDL_ERROR_METADATA_LIMIT
    MEMORY_LIMIT = _native.IMGDL_ERROR_MEMORY_LIMIT
    DECODE_TIMEOUT = _native.IMGDL_ERROR_DECODE_TIMEOUT
    FLOOD = _native.IMGDL_ERROR_FLOOD
    CACHE_BUSY = _native.IMGDL_ERROR_CACHE_BUSY
    DISK_FULL = _native.IMGDL_ERROR_DISK_FULL
    READ_ONLY = _native.IMGDL_ERROR_READ_ONLY
    DISK_FAILED = _native.IMGDL_ERROR_DISK_FAILED
    UNSAFE_DIRECTORY = _native.IMGDL_ERROR_UNSAFE_DIRECTORY


class Error(Exception):
    """What goes wrong with a download, a picture, a cache or a call. A value of a wrong type is a TypeError in its place.

    code         the number, as in `Code`; one that is made of a sentence alone has INVALID_OPERATION's
    name         its symbolic name, such as "IMGDL_ERROR_INVALID_STATUS"
    message      a sentence for a person
    url          of the download, without user, password, query and fragment; None elsewhere
    http_status  of the last response, 0 if there was none
    image        what could be had of a cut or broken picture, where `salvage` was asked for
    content_type of the last response, in lower case without parameters; "" when it said none
    preview      the first bytes of a body that was refused, 512 at most
    metrics      where the time went; None where nothing was transferred
    """

    code: int
    message: str
    url: Optional[str]
    http_status: int
    image: Optional[Image]
    content_type: str
    preview: bytes
    metrics: Optional[Metrics]

    def __init__(
        self,
        code: Union[int, str],
        message: Optional[str] = None,
        *,
        url: Optional[str] = None,
        http_status: int = 0,
        image: Optional[Image] = None,
        content_type: str = "",
        preview: bytes = b"",
        metrics: Optional[Metrics] = None,
    ) -> None:
        if isinstance(code, str):
            # Error("a sentence"), as all other exceptions are made.
            message = code
            code = Code.INVALID_OPERATION
        if not message:
            message = _native.imgdl_error_message(code).decode("utf-8", "replace")
        super().__init__(message)
        self.code = int(code)
        self.message = message
        self.url = url
        self.http_status = http_status
        self.image = image
        self.content_type = content_type
        self.preview = preview
        self.metrics = metrics

    @property
    def name(self) -> str:
        """Of the code, such as "IMGDL_ERROR_INVALID_STATUS"."""
        return str(_native.imgdl_error_name(self.code).decode())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {self.message!r})"

    def __reduce__(self) -> Any:
        # To another process, where the salvaged pixels do not follow.
        return _unpickled, (type(self), self.args, {**self.__dict__, "image": None})

    def __copy__(self) -> Error:
        return _unpickled(type(self), self.args, self.__dict__)

    def __deepcopy__(self, memo: object) -> Error:
        return self.__copy__()


class Cancelled(Error):
    """By `Token.cancel`, `Downloader.cancel_all` or `Downloader.close`."""


class Timeout(Error, TimeoutError):
    """Something took too long: the server, connecting, between two bytes or in all, or (`WaitTimeout`) your wait."""


class WaitTimeout(Timeout):
    """Your own time for waiting is over: this says nothing of the server. A download goes on until you cancel it;
    `imgdl.get` has cancelled its own."""


class InvalidArgument(Error, ValueError):
    """A URL, header, option or value that no request can have."""


class StatusError(Error):
    """The server answered, with a status that is not an accepted one: see `http_status`."""


class NetworkError(Error):
    """The name, the connection, TLS, a proxy, a redirect or the answer itself failed."""


class ImageError(Error):
    """The bytes are not a picture, or not a whole one."""


class LimitError(Error):
    """More bytes, pixels, frames, scans, memory or time than allowed: the code tells of what."""


class CacheError(Error):
    """The cache's disk has not done what was asked, or its directory cannot be used."""


_TYPES = {
    Code.CANCELLED: Cancelled,
    Code.CONNECT_TIMEOUT: Timeout,
    Code.IDLE_TIMEOUT: Timeout,
    Code.TOTAL_TIMEOUT: Timeout,
    Code.WAIT_TIMEOUT: WaitTimeout,
    Code.INVALID_URL: InvalidArgument,
    Code.INVALID_ARGUMENT: InvalidArgument,
    Code.INVALID_HEADER: InvalidArgument,
    Code.UNSUPPORTED_OPTION: InvalidArgument,
    Code.UNSUPPORTED_SCHEME: InvalidArgument,
    Code.INVALID_STATUS: StatusError,
    Code.RESOLVE_FAILED: NetworkError,
    Code.CONNECT_FAILED: NetworkError,
    Code.CONNECTION_LOST: NetworkError,
    Code.TLS_FAILED: NetworkError,
    Code.TLS_CERTIFICATE: NetworkError,
    Code.PROTOCOL: NetworkError,
    Code.PROXY_FAILED: NetworkError,
    Code.TOO_MANY_REDIRECTS: NetworkError,
    Code.REDIRECT_REFUSED: NetworkError,
    Code.CONTENT_ENCODING: NetworkError,
    Code.ADDRESS_REFUSED: NetworkError,
    Code.TLS_PIN: NetworkError,
    Code.BAD_IMAGE_DATA: ImageError,
    Code.TRUNCATED: ImageError,
    Code.BODY_LIMIT: LimitError,
    Code.HEADER_LIMIT: LimitError,
    Code.PIXEL_LIMIT: LimitError,
    Code.FRAME_LIMIT: LimitError,
    Code.SCAN_LIMIT: LimitError,
    Code.SIZE_LIMIT: LimitError,
    Code.ANIMATION_LIMIT: LimitError,
    Code.METADATA_LIMIT: LimitError,
    Code.MEMORY_LIMIT: LimitError,
    Code.DECODE_TIMEOUT: LimitError,
    Code.FLOOD: LimitError,
    Code.CACHE_BUSY: CacheError,
    Code.DISK_FULL: CacheError,
    Code.READ_ONLY: CacheError,
    Code.DISK_FAILED: CacheError,
    Code.UNSAFE_DIRECTORY: CacheError,
}


def error(code: int, message: Optional[str] = None, **details: Any) -> Error:
    """The error for a code, of its own type."""
    return _TYPES.get(code, Error)(code, message, **details)  # type: ignore[call-overload, no-any-return]


def _unpickled(kind: type[Error], arguments: tuple[Any, ...], state: dict[str, Any]) -> Error:
    problem = kind.__new__(kind, *arguments)
    problem.__dict__.update(state)
    return problem


def last_error(code: int, **details: Any) -> Error:
    """The error for a call of the library that has just failed on this thread."""
    return error(code, _native.imgdl_last_error().decode("utf-8", "replace"), **details)


def check(code: int) -> None:
    """Raises what a call of the library returned."""
    if code:
        raise last_error(code)


def untraced(problem: BaseException) -> BaseException:
    """The same, to be kept: with tracebacks it would keep who asked, and all that they have. What was handled meanwhile
    is somebody else's, and stays as it is."""
    each: Optional[BaseException] = problem
    seen: set[int] = set()
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        each.__traceback__ = each.__context__ = None
        each = each.__cause__
    return problem


# Called through C, where nobody is left to catch what it raises: the interpreter hands it to sys.unraisablehook.
@ctypes.CFUNCTYPE(None, ctypes.py_object)  # type: ignore[untyped-decorator, unused-ignore]
def _raise_unraisable(exception: BaseException) -> NoReturn:
    raise exception


def report(exception: BaseException) -> None:
    """Shows an exception that has nobody to be raised to."""
    traceback = exception.__traceback__
    _raise_unraisable(exception)
    exception.__traceback__ = traceback
