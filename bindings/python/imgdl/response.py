"""What a server answered, without the body."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from . import _native, _once
from ._checks import string

_once.refuse_reload(globals())

_OUTCOMES = {
    _native.IMGDL_CACHE_OUTCOME_NETWORK: "network",
    _native.IMGDL_CACHE_OUTCOME_HIT: "hit",
    _native.IMGDL_CACHE_OUTCOME_VALIDATED: "validated",
    _native.IMGDL_CACHE_OUTCOME_STALE: "stale",
    _native.IMGDL_CACHE_OUTCOME_RESUMED: "resumed",
}


class Hop(NamedTuple):
    """A redirect that was followed."""

    url: str
    """That answered with the redirect."""
    status: int
    """Such as 302."""


class Response(NamedTuple):
    """What a server answered."""

    status: int
    http_version: str
    """"1.0", "1.1" or "2"; "" where it was not HTTP."""
    redirect_count: int
    """How many redirects led here."""
    content_length: Optional[int]
    """None when the server did not tell."""
    url: str
    """The URL that answered, without user, password and fragment, and, unless `full_urls` was asked for, with dots for
    the values in its query."""
    headers: tuple[tuple[str, str], ...]
    """As received, repeated ones too."""
    hops: tuple[Hop, ...] = ()
    """The redirects that led here, in order."""
    content_type: str = ""
    """In lower case, without parameters; "" when there is none."""
    cache_outcome: str = "network"
    """Where it is from: "network"; "hit", stored and fresh; "validated", stored, and the server said that it is still good;
    "stale", stored, and allowed all the same; "resumed", its beginning was kept of a transfer that had broken off."""

    def header(self, name: str) -> Optional[str]:
        """The first header of that name, in any case; None if there is none."""
        return first_header(self.headers, name)


def first_header(headers: tuple[tuple[str, str], ...], name: str) -> Optional[str]:
    name = string(name, "the name of a header").lower()
    return next((value for key, value in headers if key.lower() == name), None)


_HTTP_VERSIONS = {0: "", 10: "1.0", 11: "1.1", 20: "2"}


def http_version(native: int) -> str:
    known = _HTTP_VERSIONS.get(native)
    return str(native / 10) if known is None else known


def text(given: Optional[bytes]) -> str:
    return (given or b"").decode("utf-8", "replace")


def headers_from(fields: Any, count: int) -> tuple[tuple[str, str], ...]:
    return tuple((text(field.name), text(field.value)) for field in fields[:count]) if count else ()


def response_from(native: Any) -> Response:
    hops = native.hops[: native.redirect_count] if native.hops else ()
    return Response(
        native.status,
        http_version(native.http_version),
        native.redirect_count,
        native.content_length if native.content_length >= 0 else None,
        text(native.url),
        headers_from(native.headers, native.header_count),
        tuple(Hop(text(hop.url), hop.status) for hop in hops),
        text(native.content_type),
        _OUTCOMES.get(native.cache_outcome, "unknown"),
    )
