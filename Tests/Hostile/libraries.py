"""Answers of which a library of the system decides what becomes: the codes that may come out besides those of their rows.
docs/security.md and docs/versions.md tell of those of libcurl and nghttp2."""
import ctypes
import fnmatch
import re

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
# The ends of broken pictures are libjpeg's, libpng's or libwebp's to say where our own code does not refuse them first, nor
# make a still picture of them. The rows have what the releases say that are named here; others may know better.
PICTURES = {
    "libjpeg.so.62.3.0": {
        ("OK", "BAD_IMAGE_DATA", "TRUNCATED"): (
            "jpeg-band-*", "jpeg-components-*", "jpeg-frame-behind-scan", "jpeg-frame-twice",
            "jpeg-huffman-defined-5000-times", "jpeg-kind-*", "jpeg-quantization-zeros", "jpeg-restart-interval-1",
            "jpeg-restart-markers-alone", "jpeg-sampling-*", "jpeg-scan-component-twice", "jpeg-scan-empty",
            "jpeg-segment-length-[01]", "jpeg-tables-missing"),
        ("BAD_IMAGE_DATA", "TRUNCATED"): (
            "jpeg-frame-missing", "jpeg-frame-short", "jpeg-huffman-codes-too-many", "jpeg-huffman-counts-beyond",
            "jpeg-huffman-dc-symbol-255", "jpeg-huffman-number-15", "jpeg-precision-*", "jpeg-quantization-missing",
            "jpeg-quantization-number-15", "jpeg-quantization-short", "jpeg-restart-interval-short",
            "jpeg-scan-before-frame", "jpeg-scan-component-unknown", "jpeg-scan-components-*", "jpeg-scan-missing",
            "jpeg-size-65501x8*", "jpeg-start-10000-times", "jpeg-start-and-end"),
    },
    "libpng16.so.16.39.0": {
        ("OK", "BAD_IMAGE_DATA"): (
            "png-data-bomb-behind", "png-data-too-much", "png-palette-index-beyond", "png-transparency-long"),
    },
    "libwebp.so.7.1.5": {
        ("OK", "BAD_IMAGE_DATA", "TRUNCATED"): (
            "webp-alpha-garbage", "webp-chunk-length-odd", "webp-chunk-unknown", "webp-riff-length-2-32"),
        ("BAD_IMAGE_DATA", "TRUNCATED"): (
            "webp-canvas-alone", "webp-canvas-differs", "webp-chunk-length-2-32", "webp-lossless-*", "webp-lossy-*",
            "webp-riff-alone", "webp-riff-length-0", "webp-riff-length-short"),
        ("BAD_IMAGE_DATA", "PIXEL_LIMIT", "TRUNCATED"): ("webp-canvas-2-24",),
    },
}


def allow(names, *codes, protocols=None):
    for name in names:
        answer.ROWS[name].allow(codes, protocols)


def release(name):
    """The name of the file that a library is loaded from here, which has its release: libpng16.so.16.39.0."""
    name = re.match(r"lib\w+\.so\.\d+", name)[0]
    try:
        ctypes.CDLL(name)
    except OSError:
        return None
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next((found[1] for found in (re.search(rf"/({re.escape(name)}\S*)$", line) for line in maps) if found), None)


def rows_of(patterns):
    """Their names; each pattern has some."""
    for pattern in patterns:
        names = fnmatch.filter(answer.ROWS, pattern)
        assert names, f"no answer is called {pattern}"
        yield from names


def decide_pictures():
    for name, decided in PICTURES.items():
        if release(name) != name:
            for codes, patterns in decided.items():
                allow(rows_of(patterns), *codes)


def adjust():
    """The rows, for the libraries of this machine."""
    decide_pictures()
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
