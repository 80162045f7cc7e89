"""Answers of which a library of the system decides what becomes: the codes that may come out besides those of their rows.
docs/security.md and docs/versions.md tell of each."""
import answer

# A field of more than 64 KiB is no HTTP/2 to nghttp2, before anybody else has seen it.
LONG_FIELDS = (
    "field-long-101-kib", "field-long-300-kib", "field-long-99-kib", "field-long-name-101-kib", "field-long-type",
    "field-long-type-parameters", "fields-cache-control-backslashes", "fields-cache-control-long",
    "fields-cache-control-quotes", "says-coding-long", "says-location-long", "redirect-to-host-long", "trailer-long",
)
# From libcurl 8.14 on, as much in many fields may be an end of the connection without more words (docs/versions.md, floods).
MANY_FIELDS = (
    "fields-header-250-kib", "fields-header-260-kib", "fields-header-3-mb", "interim-h2-300-kib", "fields-25000",
    "trailer-25000", "trailer-300-kib", "trailer-and-header-300-kib",
)
# nghttp2's count of a header's frames goes on where it is broken, and with each piece of it that comes (Debian's 1.52 does).
BROKEN_HEADERS = (
    "h2-headers-interrupted", "h2-headers-interrupted-alone", "h2-headers-other-continuation",
    "h2-headers-other-continuation-alone", "h2-headers-in-single-bytes", "flood-continuations-empty",
)
# The end of a connection is that of a body without length, at times.
BROKEN_BODIES = (
    "flood-headers-empty", "flood-rst-of-own", "flood-settings-acks", "flood-settings-full",
    "h2-data-padding-too-long", "h2-data-padding-too-long-alone", "h2-frame-too-large", "h2-frame-too-large-alone",
    "h2-half-body-then-garbage", "h2-half-body-then-hpack", "h2-half-body-then-ping", "h2-half-body-then-settings",
    "h2-half-body-then-window",
)
# Broken frames behind the beginning of an answer are looked at when more comes.
LOOKED_AT_LATER = ("h2-data-padding-too-long-alone", "h2-frame-too-large-alone")


def allow(names, *codes, protocols=None):
    for name in names:
        answer.ROWS[name].allow(codes, protocols)


def adjust():
    """The rows, for the libraries of this machine."""
    allow(LONG_FIELDS, "PROTOCOL", protocols=(answer.HTTP2,))
    allow(BROKEN_HEADERS, "HEADER_LIMIT")
    if answer.LIBCURL < (8, 14):
        # The body, or a part of it, is there by then, and counts as whole: nghttp2 ends the connection in a way of its own.
        allow(["trailer-long"], "OK", "TRUNCATED", protocols=(answer.HTTP2,))
        allow(BROKEN_BODIES, "OK", "BAD_IMAGE_DATA")
        allow(LOOKED_AT_LATER, "IDLE_TIMEOUT")
    else:
        allow(MANY_FIELDS, "PROTOCOL", protocols=(answer.HTTP2,))
        # A frame of a byte takes longer than what it brings may take.
        allow([row.name for row in answer.ROWS.values() if row.crowd and row.name.endswith("-frames-of-1")], "FLOOD",
              protocols=(answer.HTTP2,))
        # Where that is one of trailers, the body may be there, or a part of it.
        allow([name for name in (*LONG_FIELDS, *MANY_FIELDS) if name.startswith("trailer-")], "OK", "TRUNCATED",
              protocols=(answer.HTTP2,))
        # The end of the connection is read before the frames are judged.
        allow([row.name for row in answer.ROWS.values() if row.name.startswith("h2-") and row.end == "close"],
              "CONNECTION_LOST", "TRUNCATED")
        # Where the server stays, some are waited for, and of one stream.
        allow([row.name for row in answer.ROWS.values() if row.name.startswith("h2-") and row.end == "hold"
               and "IMGDL_ERROR_PROTOCOL" in row.codes[answer.HTTP2]], "CONNECTION_LOST", "IDLE_TIMEOUT")
        # A greeting that is none of HTTP/2 has libcurl ask once more, over HTTP/1.1: these are empty, and no HTTP.
        allow(["h2-greeting-http1"], "BAD_IMAGE_DATA")
        allow(["h2-greeting-settings-cut"], "PROTOCOL")
    if answer.NGHTTP2 >= (1, 65):
        allow(["h2-priority-on-zero"], "OK")
        allow(["h2-priority-on-zero-alone"], "IDLE_TIMEOUT")
