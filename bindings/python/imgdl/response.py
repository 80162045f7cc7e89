"""What a server answered, without the body."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional


class Response(NamedTuple):
    status: int
    http_version: str
    """"1.0", "1.1" or "2"."""
    redirect_count: int
    """How many redirects led here."""
    content_length: Optional[int]
    """None when the server did not tell."""
    url: str
    """The URL that answered, without user, password and fragment."""
    headers: tuple[tuple[str, str], ...]
    """As received, repeated ones too."""

    def header(self, name: str) -> Optional[str]:
        """The first header of that name, in any case; None if there is none."""
        name = name.lower()
        return next((value for key, value in self.headers if key.lower() == name), None)


def response_from(native: Any) -> Response:
    def text(given: Optional[bytes]) -> str:
        return (given or b"").decode("utf-8", "replace")

    headers = tuple((text(field.name), text(field.value)) for field in native.headers[: native.header_count])
    version = {10: "1.0", 11: "1.1", 20: "2"}.get(native.http_version, str(native.http_version / 10))
    length = native.content_length if native.content_length >= 0 else None
    return Response(native.status, version, native.redirect_count, length, text(native.url), headers)
