"""Functions that a download asks while it runs: `Hooks`."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, Callable, NamedTuple, Optional, Union

from . import _native, _once, _options, _process
from ._callbacks import Registry, callback, failure, finalizer, last_callback, new_key, sentence
from ._checks import buffer, pair
from ._reference import HooksReference, retain_data, view
from .errors import Code, check, error
from .response import Response, first_header, headers_from, response_from, text

_once.refuse_reload(globals())

Headers = Union[Mapping[str, Optional[str]], Iterable[tuple[str, Optional[str]]]]


class _Later:
    """The type of `LATER`."""

    def __repr__(self) -> str:
        return "imgdl.LATER"

    def __reduce__(self) -> str:
        return "LATER"


LATER = _Later()
"""What a hook returns that answers later, through its `Continuation`."""


class Outgoing(NamedTuple):
    """A request as it will be sent. Immutable; `replace` and `with_header` give another one."""

    url: str
    """Whole, with its query; without user and password."""
    method: str
    headers: tuple[tuple[str, str], ...]
    """The downloader's included."""
    body: Optional[bytes] = None

    def header(self, name: str) -> Optional[str]:
        """The first header of that name, in any case; None if there is none."""
        return first_header(self.headers, name)

    def replace(self, **changes: Any) -> Outgoing:
        """With another url, method, headers (pairs, or a mapping) or body."""
        return self._replace(**changes)

    def with_header(self, name: str, value: Optional[str]) -> Outgoing:
        """With this header in place of any of that name; None takes it out."""
        others = tuple((key, content) for key, content in self.headers if key.lower() != name.lower())
        return self._replace(headers=others if value is None else (*others, (name, value)))


def outgoing_from(native: Any) -> Outgoing:
    body = ctypes.string_at(native.body, native.body_length) if native.body and native.body_length else None
    return Outgoing(
        text(native.url), text(native.method), headers_from(native.headers, native.header_count), body
    )


class Continuation(_process.OfThisProcess):
    """A hook's question, until it is answered: inside the call or later, on any thread, once.

    An answer that cannot be one raises `InvalidArgument`, and another may be given. After the answer, every other one
    raises `Error` with INVALID_HANDLE. A continuation that is let go without an answer refuses.
    """

    __slots__ = ("_handle", "_is_answered", "__weakref__")

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._is_answered = False
        _continuations[handle] = self

    @property
    def is_answered(self) -> bool:
        """Whether an answer was given."""
        return self._is_answered

    def unchanged(self) -> None:
        """Go on as it is."""
        self._answer(_native.imgdl_continue_unchanged)

    def with_request(
        self,
        request: Optional[Outgoing] = None,
        *,
        url: Optional[str] = None,
        method: Optional[str] = None,
        headers: Optional[Headers] = None,
        body: Optional[Union[bytes, bytearray, memoryview]] = None,
    ) -> None:
        """Send this instead; what is None stays as it was. For a redirect: its url alone."""
        if request is not None:
            url = request.url if url is None else url
            method = request.method if method is None else method
            headers = request.headers if headers is None else headers
            body = request.body or b"" if body is None else body
        native = _native.imgdl_outgoing()
        _native.imgdl_outgoing_init(native, ctypes.sizeof(native))
        if url is not None:
            native.url = _options.text(url, "the URL", Code.INVALID_URL)
        if method is not None:
            native.method = _options.text(method, "the method", Code.INVALID_HEADER)
        if headers is not None:
            native.headers, native.header_count = _options.header_fields(headers)
        sent = None if body is None else bytes(buffer(body, "body"))
        if sent is not None:
            native.body = ctypes.cast(ctypes.c_char_p(sent), ctypes.c_void_p)
            native.body_length = len(sent)
        self._answer(_native.imgdl_continue_with_request, native)

    def with_response(self, status: int, headers: Headers) -> None:
        """Take it as a response with this status and these headers."""
        fields, count = _options.header_fields(headers)
        self._answer(_native.imgdl_continue_with_response, _options.status(status, "status"), fields, count)

    def with_data(self, data: Union[bytes, bytearray, memoryview]) -> None:
        """Take these bytes as the body."""
        sent = bytes(buffer(data, "data"))
        self._answer(_native.imgdl_continue_with_data, sent, len(sent))

    def with_credentials(self, user: str, password: str) -> None:
        """Ask once more with these, as Basic or Digest."""
        self._answer(
            _native.imgdl_continue_with_credentials,
            _options.text(user, "user", Code.INVALID_HEADER),
            _options.text(password, "password", Code.INVALID_HEADER),
        )

    def refused(self, code: int = 0, message: Optional[str] = None) -> None:
        """End it with this error and this sentence. Code 0: INVALID_OPERATION for a request, INVALID_RESPONSE for a
        response, BAD_IMAGE_DATA for a body, REDIRECT_REFUSED for a redirect, INVALID_STATUS for a challenge."""
        number = _options.signed(code, "code")
        self._answer(_native.imgdl_continue_refused, number, None if message is None else sentence(message))

    def _answer(self, function: Callable[..., int], *arguments: Any) -> None:
        if self._is_answered:
            raise error(Code.INVALID_HANDLE, "the hook has been answered already")
        code = function(self._handle, *arguments)
        if code in (Code.OK, Code.INVALID_HANDLE, Code.FORKED):
            self._is_answered = True
        check(code)

    def _let_go(self) -> None:
        # One that an interrupt struck as it was made has no answer to give.
        if not getattr(self, "_is_answered", True):
            self._is_answered = True
            _native.imgdl_continue_refused(self._handle, 0, b"its hook let it go without an answer")

    __del__ = finalizer(_let_go)


_continuations: weakref.WeakValueDictionary[int, Continuation] = weakref.WeakValueDictionary()


Answer = Callable[[Continuation, Any], None]


class _NoAnswer(TypeError):
    """An answer of a type that is none."""


def _with_request(next: Continuation, answer: Any) -> None:
    if not isinstance(answer, Outgoing):
        raise _NoAnswer(f"it returned {type(answer).__name__}")
    _answer_with(next.with_request, answer.replace(headers=_read(answer.headers)))


def _with_response(next: Continuation, answer: Any) -> None:
    status, headers = (answer.status, answer.headers) if isinstance(answer, Response) else _pair(answer)
    _answer_with(next.with_response, status, _read(headers))


def _with_data(next: Continuation, answer: Any) -> None:
    _answer_with(next.with_data, answer)


def _with_url(next: Continuation, answer: Any) -> None:
    _answer_with(lambda url: next.with_request(url=url), answer)


def _with_credentials(next: Continuation, answer: Any) -> None:
    _answer_with(next.with_credentials, *_pair(answer))


def _answer_with(function: Callable[..., None], *values: Any) -> None:
    try:
        function(*values)
    except TypeError as problem:
        raise _NoAnswer(str(problem)) from None


def _pair(answer: Any) -> tuple[Any, Any]:
    both = pair(answer)
    if both is None:
        raise _NoAnswer(f"it returned {type(answer).__name__}")
    return both


def _read(headers: Any) -> Any:
    """Whatever code of the caller's runs to tell them has run then, and has raised its own errors."""
    given = headers.items() if isinstance(headers, Mapping) else headers
    try:
        iterator = iter(given)
    except TypeError:
        return given
    return [pair(each) or each for each in iterator]


_ANSWERS = {
    "modify_request": "an Outgoing",
    "modify_response": "a Response, a pair of status and headers",
    "transform_body": "bytes",
    "redirect": "a URL",
    "authenticate": "a pair of user and password",
}


class _Table:
    """The functions, without the object that names them: it may be garbage while downloads still ask."""

    def __init__(self, functions: dict[str, Callable[..., Any]], owner: Hooks) -> None:
        self.functions = functions
        self.owner = weakref.ref(owner)
        self.generation = _process.generation


_tables: Registry[_Table] = Registry()


class Hooks(_process.OfThisProcess):
    """Functions that are asked while a download runs: for a `Downloader`, or for one download in place of its own.

    modify_request(request, next)    before a request is sent, again before each retry, not for redirects
                                     request: `Outgoing`; may return another one
    modify_response(response, next)  when the head of the final response is there, before it is validated
                                     response: `Response`; may return another one, or a pair of status and headers
    transform_body(body, next)       when the body is whole, before it is decoded; no partial images then
                                     body: a memoryview; may return bytes
    redirect(response, url, next)    before a redirect is followed; may return another URL
    authenticate(challenge, next)    at a 401 where nobody gave credentials or they were wrong
                                     challenge: `Response`; may return a pair of user and password

    What a function returns is its answer; None goes on unchanged. One that cannot answer at once keeps `next`, a
    `Continuation`, returns `imgdl.LATER`, and answers through `next` later, on any thread. One that has answered
    through `next` already returns None. Raising refuses: an `Error` with its own code and message; anything else with
    that message, and it is shown through sys.unraisablehook. A returned value that is no answer is a TypeError, which
    refuses too.

    A function is called once for each transfer, on a thread of the library that other downloads wait for: it must be
    quick and must not wait. Requests with different hooks never share a transfer: make one `Hooks` and use it for many.
    A `transform_body` that answers LATER may need another download of the same downloader, of a key say. Give that one
    hooks of its own: with the same ones it may wait for the answer itself, and `hooks=None` means the downloader's.

        >>> def sign(request, next):
        ...     return request.with_header("Authorization", "Bearer of a token")
        >>> with imgdl.Downloader(hooks=imgdl.Hooks(modify_request=sign)) as downloader:
        ...     image = downloader.download(url).result()

        >>> hooks = imgdl.Hooks(transform_body=lambda body, next: bytes(body)[::-1])
        >>> imgdl.get(url, hooks=hooks)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        imgdl.errors.ImageError: not a picture any more
    """

    def __init__(
        self,
        *,
        modify_request: Optional[Callable[[Outgoing, Continuation], object]] = None,
        modify_response: Optional[Callable[[Response, Continuation], object]] = None,
        transform_body: Optional[Callable[[memoryview, Continuation], object]] = None,
        redirect: Optional[Callable[[Response, str, Continuation], object]] = None,
        authenticate: Optional[Callable[[Response, Continuation], object]] = None,
    ) -> None:
        given = {
            "modify_request": modify_request,
            "modify_response": modify_response,
            "transform_body": transform_body,
            "redirect": redirect,
            "authenticate": authenticate,
        }
        functions = {name: function for name, function in given.items() if function is not None}
        table = _native.imgdl_hooks_table()
        table.struct_size = ctypes.sizeof(table)
        for name, function in functions.items():
            if not callable(function):
                raise TypeError(f"{name} must be callable, not {type(function).__name__}")
            setattr(table, name, _ASKED[name])
        table.destructor = _on_end
        self._reference = HooksReference()
        key = table.user_data = new_key()
        try:
            _tables.put(key, _Table(functions, self))
            check(_native.imgdl_hooks_create(table, self._reference))
        except BaseException:
            self._reference.release()
            _tables.pop(key)
            raise

    @property
    def _handle(self) -> Optional[int]:
        return self._reference.value


def end_at_exit(timeout: float) -> None:
    """Before the process ends: lets all go, and waits until no thread of the library asks them any more."""
    for reference in _continuations.valuerefs():
        continuation = reference()
        if continuation is not None:
            continuation._let_go()
    for table in _tables.values():
        owner = table.owner()
        if owner is not None:
            owner._reference.release()
    _tables.wait(lambda tables: all(table.generation != _process.generation for table in tables), timeout)


def _ask(
    key: Optional[int], name: str, handle: int, give: Answer, arguments: Callable[[], tuple[Any, ...]]
) -> None:
    """Asks one function and gives its answer. What it raises refuses."""
    next = Continuation(handle)
    try:
        table = _tables.get(key)
        function = table.functions.get(name) if table else None
        if function is None:
            next.unchanged()
            return
        answer = function(*arguments(), next)
        if answer is LATER or next.is_answered:
            return
        if answer is None:
            next.unchanged()
            return
        try:
            give(next, answer)
        except _NoAnswer as problem:
            raise TypeError(f"{name} must return {_ANSWERS[name]}, or None; {problem}") from None
    except BaseException as exception:
        code, message = failure(exception, Code.OK)
        if not next.is_answered and _native.imgdl_continue_refused(handle, code, sentence(message)):
            _native.imgdl_continue_refused(handle, 0, sentence(message))  # a code that is none
        next._is_answered = True


def _body(data: int) -> memoryview:
    reference = retain_data(data)
    handle = reference.value
    return view(reference, _native.imgdl_data_bytes(handle), _native.imgdl_data_length(handle))


def _asks(name: str) -> Callable[[Callable[..., Optional[int]]], Any]:
    """The C function of a field of imgdl_hooks_table."""
    return callback(_native.callback_type(_native.imgdl_hooks_table, name))


@_asks("modify_request")
def _modify_request(request: Any, next: int, key: int) -> None:
    _ask(key, "modify_request", next, _with_request, lambda: (outgoing_from(request.contents),))


@_asks("modify_response")
def _modify_response(response: Any, next: int, key: int) -> None:
    _ask(key, "modify_response", next, _with_response, lambda: (response_from(response.contents),))


@_asks("transform_body")
def _transform_body(body: int, next: int, key: int) -> None:
    _ask(key, "transform_body", next, _with_data, lambda: (_body(body),))


@_asks("redirect")
def _redirect(response: Any, url: bytes, next: int, key: int) -> None:
    _ask(key, "redirect", next, _with_url, lambda: (response_from(response.contents), text(url)))


@_asks("authenticate")
def _authenticate(challenge: Any, next: int, key: int) -> None:
    _ask(key, "authenticate", next, _with_credentials, lambda: (response_from(challenge.contents),))


@last_callback(_native.imgdl_destructor)
def _on_end(key: int) -> None:
    _tables.pop(key)


_ASKED = {
    "modify_request": _modify_request,
    "modify_response": _modify_response,
    "transform_body": _transform_body,
    "redirect": _redirect,
    "authenticate": _authenticate,
}
