"""Keyword arguments into the structs of the library, with the checks that ctypes does not make: it cuts numbers and
strings that do not fit."""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Mapping
from typing import Any, Optional, Union

from . import _native
from .errors import Code, error
from .image import PIXEL_FORMATS

_PIXEL_FORMATS = {name: value for value, name in PIXEL_FORMATS.items()}
_PRIORITIES = {
    "low": _native.IMGDL_PRIORITY_LOW,
    "normal": _native.IMGDL_PRIORITY_NORMAL,
    "high": _native.IMGDL_PRIORITY_HIGH,
}
_ORDERS = {"fifo": _native.IMGDL_ORDER_FIFO, "lifo": _native.IMGDL_ORDER_LIFO}


def text(value: str, what: str, code: Code) -> bytes:
    """UTF-8 without NUL, at which C would take the string to end."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be str, not {type(value).__name__}")
    try:
        encoded = value.encode("utf-8")
    except UnicodeEncodeError:
        raise error(code, f"{what} holds a lone surrogate") from None
    if b"\0" in encoded:
        raise error(code, f"{what} holds a NUL")
    return encoded


def unsigned(value: Optional[int], what: str, bits: int = 32) -> int:
    """A count or a limit; 0, which is the default in C, for None."""
    if value is None:
        return 0
    number = operator.index(value)
    if not 1 <= number < 1 << bits:
        raise error(Code.INVALID_ARGUMENT, f"{what} is {number}: not between 1 and 2**{bits} - 1")
    return number


def milliseconds(seconds: Optional[float], what: str) -> int:
    """A time in seconds, rounded up; 0, which is the default in C, for None."""
    if seconds is None:
        return 0
    if not seconds > 0 or not seconds < 4_000_000:
        raise error(Code.INVALID_ARGUMENT, f"{what} is {seconds} s: not between 0 and 4 000 000")
    return math.ceil(seconds * 1000)


def choice(value: Union[str, int], names: Mapping[str, int], what: str) -> int:
    if isinstance(value, str):
        if value in names:
            return names[value]
        raise error(Code.INVALID_ARGUMENT, f"{what} is {value!r}: none of {', '.join(names)}")
    number = operator.index(value)
    if number not in names.values():
        raise error(Code.INVALID_ARGUMENT, f"{what} is {number}")
    return number


def priority(value: Union[str, int]) -> int:
    return choice(value, _PRIORITIES, "priority")


def order(value: Union[str, int]) -> int:
    return choice(value, _ORDERS, "order")


def decode_options(
    *,
    pixel_format: Optional[str] = None,
    ignore_orientation: bool = False,
    salvage: bool = False,
    max_pixels: Optional[int] = None,
) -> Any:
    options = _native.imgdl_decode_options()
    _native.imgdl_decode_options_init(options, ctypes.sizeof(options))
    if pixel_format is not None:
        options.pixel_format = choice(pixel_format, _PIXEL_FORMATS, "pixel_format")
    if ignore_orientation:
        options.flags |= _native.IMGDL_DECODE_IGNORE_ORIENTATION
    if salvage:
        options.flags |= _native.IMGDL_DECODE_SALVAGE
    if max_pixels is not None:
        options.max_pixels = unsigned(max_pixels, "max_pixels", 64)
    return options


def config(
    *,
    max_concurrent: Optional[int] = None,
    order: Union[str, int] = "fifo",
    decode_threads: Optional[int] = None,
    connect_timeout: Optional[float] = None,
    idle_timeout: Optional[float] = None,
    max_redirects: Optional[int] = None,
    user_agent: Optional[str] = None,
    ca_file: Optional[str] = None,
) -> Any:
    config = _native.imgdl_config()
    _native.imgdl_config_init(config, ctypes.sizeof(config))
    config.max_concurrent = unsigned(max_concurrent, "max_concurrent")
    config.order = choice(order, _ORDERS, "order")
    config.decode_threads = unsigned(decode_threads, "decode_threads")
    config.connect_timeout_ms = milliseconds(connect_timeout, "connect_timeout")
    config.idle_timeout_ms = milliseconds(idle_timeout, "idle_timeout")
    config.max_redirects = unsigned(max_redirects, "max_redirects")
    if user_agent is not None:
        config.user_agent = text(user_agent, "user_agent", Code.INVALID_HEADER)
    if ca_file is not None:
        config.ca_file = text(ca_file, "ca_file", Code.INVALID_ARGUMENT)
    return config


def request(
    url: str,
    *,
    method: Optional[str] = None,
    headers: Optional[Mapping[str, Optional[str]]] = None,
    content: Optional[Union[bytes, bytearray, memoryview]] = None,
    body: bool = False,
    decode: Optional[bool] = None,
    priority: Union[str, int] = "normal",
    follow_redirects: bool = True,
    allow_downgrade: bool = False,
    any_status: bool = False,
    max_body_bytes: Optional[int] = None,
    total_timeout: Optional[float] = None,
    partial_interval: Optional[float] = None,
    pixel_format: Optional[str] = None,
    ignore_orientation: bool = False,
    salvage: bool = False,
    max_pixels: Optional[int] = None,
) -> Any:
    """The struct; it keeps alive what it points to, until the call that reads it."""
    request = _native.imgdl_request()
    _native.imgdl_request_init(request, ctypes.sizeof(request))
    request.url = text(url, "the URL", Code.INVALID_URL)
    request.priority = choice(priority, _PRIORITIES, "priority")

    if decode is None:
        decode = not body
    if not body and not decode:
        raise error(Code.INVALID_ARGUMENT, "neither the body nor the picture is asked for")
    flags = _native.IMGDL_REQUEST_BODY if body else 0
    if body and decode:
        flags |= _native.IMGDL_REQUEST_DECODE
    if not follow_redirects:
        flags |= _native.IMGDL_REQUEST_NO_REDIRECTS
    if allow_downgrade:
        flags |= _native.IMGDL_REQUEST_ALLOW_DOWNGRADE
    if any_status:
        flags |= _native.IMGDL_REQUEST_ANY_STATUS
    request.flags = flags

    if method is not None:
        request.method = text(method, "the method", Code.INVALID_HEADER)
    if headers:
        fields = (_native.imgdl_header * len(headers))()
        for field, (name, value) in zip(fields, headers.items()):
            field.name = text(name, "the name of a header", Code.INVALID_HEADER)
            if value is not None:
                field.value = text(value, f"the header {name}", Code.INVALID_HEADER)
        request.headers = fields
        request.header_count = len(headers)
    if content is not None:
        sent = bytes(content)
        request.body = ctypes.cast(ctypes.c_char_p(sent), ctypes.c_void_p)
        request.body_length = len(sent)
        request.keep = sent  # a void pointer keeps nothing alive by itself
    if max_body_bytes is not None:
        request.max_body_bytes = unsigned(max_body_bytes, "max_body_bytes", 64)
    request.total_timeout_ms = milliseconds(total_timeout, "total_timeout")
    request.partial_interval_ms = milliseconds(partial_interval, "partial_interval")
    if pixel_format is not None or ignore_orientation or salvage or max_pixels is not None:
        options = decode_options(
            pixel_format=pixel_format, ignore_orientation=ignore_orientation, salvage=salvage, max_pixels=max_pixels
        )
        request.decode = ctypes.pointer(options)
    return request
