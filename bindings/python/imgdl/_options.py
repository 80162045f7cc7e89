"""Keyword arguments into the structs of the library, with the checks that ctypes does not make: it cuts numbers and
strings that do not fit."""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _native, _once
from ._checks import boolean, buffer, choice, integer, is_boolean, number, pair, real, several, string
from .errors import Code, error
from .image import FORMATS, PIXEL_FORMATS
from .retry import Retry

_once.refuse_reload(globals())

if TYPE_CHECKING:
    from .cache import Cache
    from .coder import Coder
    from .hooks import Hooks

Statuses = Iterable[Union[int, range, tuple[int, int]]]

_PIXEL_FORMATS = {name: value for value, name in PIXEL_FORMATS.items()}
_FORMATS = {name: value for value, name in FORMATS.items() if value != _native.IMGDL_FORMAT_OTHER}
_PRIORITIES = {
    "low": _native.IMGDL_PRIORITY_LOW,
    "normal": _native.IMGDL_PRIORITY_NORMAL,
    "high": _native.IMGDL_PRIORITY_HIGH,
}
PRIORITY_NAMES = {value: name for name, value in _PRIORITIES.items()}
_CACHE_MODES = {
    "off": _native.IMGDL_CACHE_OFF,
    "use": _native.IMGDL_CACHE_USE,
    "reload": _native.IMGDL_CACHE_RELOAD,
    "only": _native.IMGDL_CACHE_ONLY,
    "refresh": _native.IMGDL_CACHE_REFRESH,
}
_COLOURS = {"as_stored": _native.IMGDL_COLOUR_AS_STORED, "srgb": _native.IMGDL_COLOUR_SRGB}
COLOUR_NAMES = {value: name for name, value in _COLOURS.items()}
NO_LIMIT: int = _native.IMGDL_NO_LIMIT
"""For a limit that is to be none, such as `max_memory_bytes` or `max_decode_ms`."""
_ORDERS = {"fifo": _native.IMGDL_ORDER_FIFO, "lifo": _native.IMGDL_ORDER_LIFO}


def check_callable(value: object, what: str) -> None:
    if not callable(value):
        raise TypeError(f"{what} must be callable, not {type(value).__name__}")


def text(value: str, what: str, code: Code) -> bytes:
    """UTF-8 without NUL, at which C would take the string to end."""
    try:
        encoded = string(value, what).encode("utf-8")
    except UnicodeEncodeError:
        raise error(code, f"{what} holds a lone surrogate") from None
    if b"\0" in encoded:
        raise error(code, f"{what} holds a NUL")
    return encoded


def optional_text(value: Optional[str], what: str, code: Code = Code.INVALID_ARGUMENT) -> Optional[bytes]:
    return None if value is None else text(value, what, code)


Path = Union[str, os.PathLike[str], os.PathLike[bytes]]


def optional_path(value: Optional[Path], what: str) -> Optional[bytes]:
    if isinstance(value, os.PathLike):
        value = os.fsdecode(value)
    return optional_text(value, what)


def unsigned(value: Optional[int], what: str, bits: int = 32, least: int = 1, most: Optional[int] = None) -> int:
    """A count or a limit; 0, which is the default in C, for None. One of 63 bits, or with a most, has no NO_LIMIT."""
    if value is None:
        return 0
    number = integer(value, what)
    if number == NO_LIMIT and bits != 63 and most is None:
        return (1 << bits) - 1
    if not least <= number <= ((1 << bits) - 1 if most is None else most):
        bound = f"2**{bits} - 1" if most is None else most
        raise error(Code.INVALID_ARGUMENT, f"{what} is {number}: not between {least} and {bound}")
    return number


def concurrency(value: Optional[int], what: str) -> int:
    return unsigned(value, what, most=_native.IMGDL_MAX_CONCURRENT_LIMIT)


def _seconds(value: float, what: str) -> float:
    return number(value, what, "a number of seconds")  # type: ignore[no-any-return]


def milliseconds(seconds: Optional[float], what: str) -> int:
    """A time in seconds, rounded up; 0, which is the default in C, for None."""
    if seconds is None:
        return 0
    seconds = _seconds(seconds, what)
    if not 0 < seconds < 4_000_000:
        raise error(Code.INVALID_ARGUMENT, f"{what} is {seconds} s: not more than 0 and less than 4 000 000, or None")
    return math.ceil(seconds * 1000)


def waiting(timeout: Optional[float]) -> Optional[float]:
    """How many seconds to wait at most, 0 for what is below; None is no end."""
    if timeout is None:
        return None
    timeout = _seconds(timeout, "timeout")
    if timeout >= 0:
        return float(min(timeout, threading.TIMEOUT_MAX))
    if timeout != timeout:
        raise error(Code.INVALID_ARGUMENT, f"timeout is {timeout}: not a number of seconds")
    return 0.0


def _max_stale(seconds: Optional[float]) -> int:
    """For None 0, which is the default in C."""
    if seconds is None:
        return 0
    seconds = _seconds(seconds, "max_stale")
    if seconds == NO_LIMIT:
        return _native.IMGDL_NO_LIMIT
    if not 0 <= seconds < 1 << 32:
        raise error(Code.INVALID_ARGUMENT, f"max_stale is {seconds} s: neither from 0 to 2**32 nor NO_LIMIT")
    return math.floor(seconds * 1000) or _native.IMGDL_STALE_NEVER


def priority(value: Union[str, int]) -> int:
    return choice(value, _PRIORITIES, "priority")


def order(value: Union[str, int]) -> int:
    return choice(value, _ORDERS, "order")


def status(value: int, what: str) -> int:
    number = integer(value, what)
    if not 100 <= number <= 999:
        raise error(Code.INVALID_ARGUMENT, f"{what} is {number}: not an HTTP status, 100 to 999")
    return number


def signed(value: int, what: str) -> int:
    number = integer(value, what)
    if not -(1 << 31) <= number < 1 << 31:
        raise error(Code.INVALID_ARGUMENT, f"{what} is {number}: not between -2**31 and 2**31 - 1")
    return number


def _flags(*options: tuple[bool, str, int]) -> int:
    """The flags of those options that are True: each with its name, and its flag."""
    flags = 0
    for value, what, flag in options:
        if boolean(value, what):
            flags |= flag
    return flags


def header_fields(headers: Union[Mapping[str, Optional[str]], Iterable[tuple[str, Optional[str]]]]) -> tuple[Any, int]:
    """An array of imgdl_header, which keeps its strings alive, and how many there are."""
    kind = "a mapping, or pairs of a name and a value"
    given = several(headers.items() if isinstance(headers, Mapping) else headers, "headers", kind)
    fields = (_native.imgdl_header * len(given))()
    for field, each in zip(fields, given):
        both = pair(each)
        if both is None:
            raise TypeError(f"headers must be {kind}: one is {type(each).__name__}")
        name, value = both
        field.name = text(name, "the name of a header", Code.INVALID_HEADER)
        if value is not None:
            field.value = text(value, f"the header {name}", Code.INVALID_HEADER)
    return fields, len(given)


# What requests and configurations have in common


def _accept(target: Any, statuses: Optional[Statuses], types: Optional[Iterable[str]]) -> None:
    if statuses is not None:
        given = several(statuses, "accepted_statuses", "numbers, ranges or pairs of first and last")
        pairs = [each for some in given for each in _status_ranges(some)]
        if not pairs:
            raise error(Code.INVALID_ARGUMENT, "accepted_statuses is empty")
        target.accepted_statuses = (_native.imgdl_status_range * len(pairs))(
            *(_native.imgdl_status_range(first, last) for first, last in pairs)
        )
        target.accepted_status_count = len(pairs)
    if types is not None:
        if isinstance(types, (str, bytes)):
            raise TypeError("accepted_types must be several, not one str")
        given_types = several(types, "accepted_types", "several, such as a list")
        names = [text(each, "accepted_types", Code.INVALID_ARGUMENT) for each in given_types]
        if not names:
            raise error(Code.INVALID_ARGUMENT, "accepted_types is empty")
        target.accepted_types = (ctypes.c_char_p * len(names))(*names)
        target.accepted_type_count = len(names)


def _status_ranges(given: Union[int, range, tuple[int, int]]) -> list[tuple[int, int]]:
    what = "accepted_statuses"
    if isinstance(given, range):
        if given.step == 1 and given:
            return [(status(given[0], what), status(given[-1], what))]
        return [(status(each, what), status(each, what)) for each in given]
    if isinstance(given, tuple):
        if len(given) != 2:
            raise error(Code.INVALID_ARGUMENT, f"{what} has {given!r}: not a pair of first and last")
        first, last = status(given[0], what), status(given[1], what)
        if first > last:
            raise error(Code.INVALID_ARGUMENT, f"{what} has {given!r}: the first is above the last")
        return [(first, last)]
    return [(status(given, what), status(given, what))]


# The next number is IMGDL_RETRY_NONE.
_MAX_RETRIES = _native.IMGDL_RETRY_NONE - 1


def _retry(target: Any, retries: Union[None, int, Retry], none: int) -> None:
    """`none`: what 0 retries are in this struct."""
    if retries is None:
        return
    if not isinstance(retries, Retry):
        retries = Retry(integer(retries, "retries"))
    count = integer(retries.count, "retries")
    if count == NO_LIMIT:
        count = _MAX_RETRIES
    target.retry_count = unsigned(count, "retries", least=0, most=_MAX_RETRIES) or none
    target.retry_base_ms = milliseconds(retries.base, "retries.base")
    target.retry_max_ms = milliseconds(retries.maximum, "retries.maximum")


def _authenticate(
    target: Any,
    user: Optional[str],
    password: Optional[str],
    ca_file: Optional[Path],
    client_certificate: Optional[Path],
    client_key: Optional[Path],
    client_key_password: Optional[str],
    pinned_public_key: Optional[str],
    partition: Optional[str],
) -> None:
    target.user = optional_text(user, "user", Code.INVALID_HEADER)
    target.password = optional_text(password, "password", Code.INVALID_HEADER)
    target.ca_file = optional_path(ca_file, "ca_file")
    target.client_certificate = optional_path(client_certificate, "client_certificate")
    target.client_key = optional_path(client_key, "client_key")
    target.client_key_password = optional_text(client_key_password, "client_key_password", Code.INVALID_HEADER)
    target.pinned_public_key = optional_text(pinned_public_key, "pinned_public_key")
    target.partition = optional_text(partition, "partition")


def _hook(target: Any, hooks: Optional[Hooks]) -> None:
    if hooks is not None:
        from .hooks import Hooks

        if not isinstance(hooks, Hooks):
            raise TypeError(f"hooks must be imgdl.Hooks, not {type(hooks).__name__}")
        target.hooks = hooks._handle
        target.keep_hooks = hooks  # until the library has read the struct


def _cache(target: Any, cache: Optional[Cache]) -> None:
    if cache is not None:
        from .cache import Cache

        if not isinstance(cache, Cache):
            raise TypeError(f"cache must be imgdl.Cache, not {type(cache).__name__}")
        target.cache = cache._open()
        target.keep_cache = cache  # until the library has read the struct


def decode_options(
    *,
    pixel_format: Optional[str] = None,
    ignore_orientation: bool = False,
    salvage: bool = False,
    max_pixels: Optional[int] = None,
    size: Optional[tuple[Optional[int], Optional[int]]] = None,
    stretch: bool = False,
    scale_down: Union[bool, int] = False,
    all_frames: bool = False,
    require_animation: bool = False,
    max_frames: Optional[int] = None,
    format_hint: Optional[str] = None,
    coder: Optional[Coder] = None,
    colour: Optional[str] = None,
    max_side: Optional[int] = None,
    max_scans: Optional[int] = None,
    max_animation_pixels: Optional[int] = None,
    max_metadata_bytes: Optional[int] = None,
    max_memory_bytes: Optional[int] = None,
    max_decode_ms: Optional[int] = None,
    thumbnail_first: bool = False,
    good_enough_scan: Optional[int] = None,
) -> Any:
    options = _native.imgdl_decode_options()
    _native.imgdl_decode_options_init(options, ctypes.sizeof(options))
    if pixel_format is not None:
        options.pixel_format = choice(pixel_format, _PIXEL_FORMATS, "pixel_format")
    flags = _flags(
        (ignore_orientation, "ignore_orientation", _native.IMGDL_DECODE_IGNORE_ORIENTATION),
        (salvage, "salvage", _native.IMGDL_DECODE_SALVAGE),
        (all_frames, "all_frames", _native.IMGDL_DECODE_ALL_FRAMES),
        (require_animation, "require_animation", _native.IMGDL_DECODE_REQUIRE_ANIMATION),
        (stretch, "stretch", _native.IMGDL_DECODE_STRETCH),
        (thumbnail_first, "thumbnail_first", _native.IMGDL_DECODE_THUMBNAIL_FIRST),
    )
    options.max_pixels = unsigned(max_pixels, "max_pixels", 64)
    if size is not None:
        try:
            width, height = size
        except (TypeError, ValueError):
            raise error(Code.INVALID_ARGUMENT, f"size is {size!r}: not a pair of width and height") from None
        options.target_width = unsigned(width, "the width of size")
        options.target_height = unsigned(height, "the height of size")
    if stretch and not (options.target_width and options.target_height):
        raise error(Code.INVALID_ARGUMENT, "stretch needs a size of both width and height")
    if not is_boolean(scale_down):
        options.max_output_bytes = unsigned(integer(scale_down, "scale_down"), "scale_down", 64)
    if scale_down:
        flags |= _native.IMGDL_DECODE_SCALE_DOWN
    options.max_frames = unsigned(max_frames, "max_frames")
    if format_hint is not None:
        options.format_hint = choice(format_hint, _FORMATS, "format_hint")
    if coder is not None:
        from .coder import Coder

        if not isinstance(coder, Coder):
            raise TypeError(f"coder must be what register_coder gave, not {type(coder).__name__}")
        options.coder = coder._live()
    if colour is not None:
        options.colour = choice(colour, _COLOURS, "colour")
    options.max_side = unsigned(max_side, "max_side")
    options.max_scans = unsigned(max_scans, "max_scans")
    options.max_animation_pixels = unsigned(max_animation_pixels, "max_animation_pixels", 64)
    options.max_metadata_bytes = unsigned(max_metadata_bytes, "max_metadata_bytes", 64)
    options.max_memory_bytes = unsigned(max_memory_bytes, "max_memory_bytes", 64)
    options.max_decode_ms = unsigned(max_decode_ms, "max_decode_ms")
    options.good_enough_scan = unsigned(good_enough_scan, "good_enough_scan")
    options.flags = flags
    return options


def check_keywords(given: Iterable[str], known: Callable[..., Any], name: str) -> None:
    """Raises TypeError for a keyword that `known` does not take: Python's own would name that function and not `name`."""
    check_names(given, _keywords(known), name)


def check_names(given: Iterable[str], names: Sequence[str], name: str) -> None:
    """Raises TypeError for a keyword that is none of those that `name` takes."""
    for keyword in given:
        if keyword not in names:
            raise unexpected(keyword, names, name)


# What others call it, where another name is nearer.
_GUESSES = {
    "timeout": "total_timeout",
    "concurrency": "max_concurrent",
    "max_workers": "max_concurrent",
    "workers": "max_concurrent",
    "data": "content",
}


def unexpected(keyword: str, names: Sequence[str], name: str) -> TypeError:
    """For a keyword that is none of those that `name` takes: whose it is, else the nearest of them."""
    import difflib  # only where it is needed: importing takes a while

    hint = ""
    meant = _GUESSES.get(keyword, keyword)
    for owner, known in (("Downloader()", _keywords(config)), ("download()", DOWNLOADING)):
        if meant in known and meant not in names:
            hint = f"; {'it' if meant == keyword else repr(meant)} is an option of {owner}"
    if not hint:
        guesses = [guess for guess, option in _GUESSES.items() if option in names]
        near = difflib.get_close_matches(meant, [*names, *guesses], 1)
        if near:
            option = near[0] if near[0] in names else _GUESSES[near[0]]
            hint = f"; did you mean {option!r}?"
    return TypeError(f"{name} got an unexpected keyword argument {keyword!r}{hint}")


def _keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def config(
    *,
    max_concurrent: Optional[int] = None,
    order: Union[str, int] = "fifo",
    decode_threads: Optional[int] = None,
    connect_timeout: Optional[float] = None,
    idle_timeout: Optional[float] = None,
    max_redirects: Optional[int] = None,
    user_agent: Optional[str] = None,
    ca_file: Optional[Path] = None,
    max_per_host: Optional[int] = None,
    memory_budget: Optional[int] = None,
    deny_private_addresses: bool = False,
    allow_file_urls: bool = False,
    allow_data_urls: bool = False,
    proxy: Optional[str] = None,
    user: Optional[str] = None,
    password: Optional[str] = None,
    client_certificate: Optional[Path] = None,
    client_key: Optional[Path] = None,
    client_key_password: Optional[str] = None,
    pinned_public_key: Optional[str] = None,
    partition: Optional[str] = None,
    cookie_file: Optional[Path] = None,
    hooks: Optional[Hooks] = None,
    retries: Union[None, int, Retry] = None,
    failure_ttl: Optional[float] = None,
    accepted_statuses: Optional[Statuses] = None,
    accepted_types: Optional[Iterable[str]] = None,
    progress_interval: Optional[float] = None,
    cache: Optional[Cache] = None,
    cache_mode: Union[None, str, int] = None,
    max_stale: Optional[float] = None,
    finish_nearly_done: bool = False,
    dns_servers: Optional[str] = None,
    crl_file: Optional[Path] = None,
    nat64_prefixes: Optional[str] = None,
    require_tls_1_3: bool = False,
    basic_over_http: bool = False,
) -> Any:
    config = _native.imgdl_config()
    _native.imgdl_config_init(config, ctypes.sizeof(config))
    config.max_concurrent = concurrency(max_concurrent, "max_concurrent")
    config.order = choice(order, _ORDERS, "order")
    config.decode_threads = unsigned(decode_threads, "decode_threads", most=256)
    config.connect_timeout_ms = milliseconds(connect_timeout, "connect_timeout")
    config.idle_timeout_ms = milliseconds(idle_timeout, "idle_timeout")
    config.max_redirects = unsigned(max_redirects, "max_redirects", most=100)
    config.user_agent = optional_text(user_agent, "user_agent", Code.INVALID_HEADER)
    config.flags = _flags(
        (deny_private_addresses, "deny_private_addresses", _native.IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES),
        (allow_file_urls, "allow_file_urls", _native.IMGDL_CONFIG_ALLOW_FILE_URLS),
        (allow_data_urls, "allow_data_urls", _native.IMGDL_CONFIG_ALLOW_DATA_URLS),
        (finish_nearly_done, "finish_nearly_done", _native.IMGDL_CONFIG_FINISH_NEARLY_DONE),
        (basic_over_http, "basic_over_http", _native.IMGDL_CONFIG_BASIC_OVER_HTTP),
        (require_tls_1_3, "require_tls_1_3", _native.IMGDL_CONFIG_REQUIRE_TLS_1_3),
    )
    config.max_per_host = concurrency(max_per_host, "max_per_host")
    config.memory_budget = unsigned(memory_budget, "memory_budget", 64)
    config.proxy = optional_text(proxy, "proxy", Code.INVALID_URL)
    _authenticate(
        config, user, password, ca_file, client_certificate, client_key, client_key_password, pinned_public_key, partition
    )
    config.cookie_file = optional_path(cookie_file, "cookie_file")
    config.dns_servers = optional_text(dns_servers, "dns_servers")
    config.crl_file = optional_path(crl_file, "crl_file")
    config.nat64_prefixes = optional_text(nat64_prefixes, "nat64_prefixes")
    _hook(config, hooks)
    _retry(config, retries, 0)
    config.failure_ttl_ms = milliseconds(failure_ttl, "failure_ttl")
    _accept(config, accepted_statuses, accepted_types)
    if progress_interval is not None:
        part = real(progress_interval, "progress_interval")
        if not 0 <= part <= 1:
            raise error(Code.INVALID_ARGUMENT, f"progress_interval is {part:g}: not between 0 and 1")
        config.progress_interval = part
    _cache(config, cache)
    if cache_mode is not None:
        config.cache_mode = choice(cache_mode, _CACHE_MODES, "cache_mode")
    elif cache is not None:
        config.cache_mode = _native.IMGDL_CACHE_USE
    config.max_stale_ms = _max_stale(max_stale)
    return config


_DECODING = frozenset(decode_options.__kwdefaults__ or ())


# Most requests of a program have the same options as another one: these structs are copied, but for the URL.
_templates: dict[Any, Any] = {}
_MOST_TEMPLATES = 64
# What cannot change later, nor is equal to something of another meaning once its type is regarded.
_PLAIN = frozenset((bool, int, float, str, tuple, type(None)))
_SECRETS = frozenset(("user", "password", "client_key_password"))


def request(url: str, body: bool, options: dict[str, Any]) -> Any:
    """The struct; it keeps alive what it points to, until the call that reads it. `options`: those of `_template`."""
    address = text(url, "the URL", Code.INVALID_URL)
    # A template of True must not be found for "no".
    body = boolean(body, "body")
    key = _key(body, options)
    template = None if key is None else _templates.get(key)
    if template is None:
        template = _template(body=body, **options)
        if key is not None:
            if len(_templates) >= _MOST_TEMPLATES:
                _templates.clear()
            _templates[key] = template
    request = _native.imgdl_request.from_buffer_copy(template)
    request.template = template
    request.url = address
    return request


def _key(body: bool, options: dict[str, Any]) -> Optional[tuple[Any, ...]]:
    """Equal for options that make equal structs; None for those that are not to be kept."""
    types = tuple(map(type, options.values()))
    if not _PLAIN.issuperset(types) or not _SECRETS.isdisjoint(options):
        return None
    if tuple in types and not _hold_numbers(options.values()):
        return None
    return (body, *options.items(), *types)


def _hold_numbers(values: Iterable[Any]) -> bool:
    """Whether the tuples among them hold nothing but numbers and None."""
    return all(type(each) is int or each is None for value in values if type(value) is tuple for each in value)


def _template(
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
    cookies: bool = False,
    allow_invalid_certificates: bool = False,
    continue_in_background: bool = False,
    retry_failed: bool = False,
    full_urls: bool = False,
    user: Optional[str] = None,
    password: Optional[str] = None,
    connect_timeout: Optional[float] = None,
    idle_timeout: Optional[float] = None,
    retries: Union[None, int, Retry] = None,
    accepted_statuses: Optional[Statuses] = None,
    accepted_types: Optional[Iterable[str]] = None,
    ca_file: Optional[Path] = None,
    client_certificate: Optional[Path] = None,
    client_key: Optional[Path] = None,
    client_key_password: Optional[str] = None,
    pinned_public_key: Optional[str] = None,
    partition: Optional[str] = None,
    hooks: Optional[Hooks] = None,
    scale_factor: Optional[float] = None,
    cache: Union[None, str, int] = None,
    max_stale: Optional[float] = None,
    ignore_cached: bool = False,
    basic_over_http: bool = False,
    **decoding: Any,
) -> Any:
    """The struct without its URL. `decoding`: for decode_options."""
    for name in decoding:
        if name not in _DECODING:
            raise unexpected(name, DOWNLOADING, "download()")
    request = _native.imgdl_request()
    _native.imgdl_request_init(request, ctypes.sizeof(request))
    request.priority = choice(priority, _PRIORITIES, "priority")

    decode = not body if decode is None else boolean(decode, "decode")
    if not body and not decode:
        raise error(Code.INVALID_ARGUMENT, "neither the body nor the picture is asked for")
    flags = _flags(
        (allow_downgrade, "allow_downgrade", _native.IMGDL_REQUEST_ALLOW_DOWNGRADE),
        (any_status, "any_status", _native.IMGDL_REQUEST_ANY_STATUS),
        (allow_invalid_certificates, "allow_invalid_certificates", _native.IMGDL_REQUEST_ALLOW_INVALID_CERTIFICATES),
        (continue_in_background, "continue_in_background", _native.IMGDL_REQUEST_CONTINUE_IN_BACKGROUND),
        (retry_failed, "retry_failed", _native.IMGDL_REQUEST_RETRY_FAILED),
        (full_urls, "full_urls", _native.IMGDL_REQUEST_FULL_URLS),
        (ignore_cached, "ignore_cached", _native.IMGDL_REQUEST_IGNORE_CACHED),
        (basic_over_http, "basic_over_http", _native.IMGDL_REQUEST_BASIC_OVER_HTTP),
    )
    if body:
        flags |= _native.IMGDL_REQUEST_BODY
        if decode:
            flags |= _native.IMGDL_REQUEST_DECODE
    if not boolean(follow_redirects, "follow_redirects"):
        flags |= _native.IMGDL_REQUEST_NO_REDIRECTS
    if boolean(cookies, "cookies", '; cookies of yours go into headers={"Cookie": …}'):
        flags |= _native.IMGDL_REQUEST_COOKIES
    request.flags = flags
    request.event_mask = _native.IMGDL_EVENT_TERMINAL
    if body or any_status:
        request.event_mask |= _native.IMGDL_EVENT_RESPONSE

    request.method = optional_text(method, "the method", Code.INVALID_HEADER)
    if headers is not None:
        request.headers, request.header_count = header_fields(headers)
    if content is not None:
        sent = bytes(buffer(content, "content"))
        request.body = ctypes.cast(ctypes.c_char_p(sent), ctypes.c_void_p)
        request.body_length = len(sent)
        request.keep = sent  # a void pointer keeps nothing alive by itself
    request.max_body_bytes = unsigned(max_body_bytes, "max_body_bytes", 64)
    request.total_timeout_ms = milliseconds(total_timeout, "total_timeout")
    request.partial_interval_ms = milliseconds(partial_interval, "partial_interval")
    request.connect_timeout_ms = milliseconds(connect_timeout, "connect_timeout")
    request.idle_timeout_ms = milliseconds(idle_timeout, "idle_timeout")
    _authenticate(
        request, user, password, ca_file, client_certificate, client_key, client_key_password, pinned_public_key, partition
    )
    _retry(request, retries, _native.IMGDL_RETRY_NONE)
    _accept(request, accepted_statuses, accepted_types)
    _hook(request, hooks)
    if scale_factor is not None:
        factor = real(scale_factor, "scale_factor")
        if not 0 < factor < math.inf:
            raise error(Code.INVALID_ARGUMENT, f"scale_factor is {factor:g}: not a finite number above 0")
        request.scale_factor = factor
    if cache is not None:
        request.cache_mode = choice(cache, _CACHE_MODES, "cache")
    request.max_stale_ms = _max_stale(max_stale)
    if decoding:
        request.decode = ctypes.pointer(decode_options(**decoding))
    return request


EVENTS = {
    "on_started": _native.IMGDL_EVENT_STARTED,
    "on_response": _native.IMGDL_EVENT_RESPONSE,
    "on_header": _native.IMGDL_EVENT_HEADER,
    "on_progress": _native.IMGDL_EVENT_PROGRESS,
    "on_partial": _native.IMGDL_EVENT_PARTIAL,
}
"""The callbacks of a download, by the kind of event."""

Prepared = tuple[Any, dict[int, Callable[..., Any]]]
"""The request of one download, but for what `submit` adds, and its callbacks by the kind of event."""


def prepare(url: str, body: bool, options: dict[str, Any]) -> Prepared:
    callbacks: dict[int, Callable[..., Any]] = {}
    if EVENTS.keys().isdisjoint(options):
        return request(url, body, options), callbacks
    options = dict(options)
    mask = 0
    for name, kind in EVENTS.items():
        function = options.pop(name, None)
        if function is not None:
            check_callable(function, name)
            callbacks[kind] = function
            mask |= kind
    native = request(url, body, options)
    native.event_mask |= mask
    return native, callbacks


DOWNLOADING = (*_keywords(_template), *_keywords(decode_options), *EVENTS, "loop")
"""The keywords of `Downloader.download`."""

# Of those that name the loop themselves.
GETTING = tuple(name for name in DOWNLOADING if name != "loop")
WAITING = (*GETTING, "timeout")
MAPPING = (*GETTING, "ordered", "buffersize", "progress")
STREAMING = tuple(name for name in GETTING if name not in ("body", "on_partial"))
