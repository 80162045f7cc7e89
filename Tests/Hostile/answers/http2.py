"""Frames of HTTP/2 that are broken, of other streams, out of order, too long; and what comes before them."""
import struct

from answer import frames, greeting
from pictures import good
from wire import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HAS_PRIORITY, HEADERS, PADDED, PING,
    PRIORITY,
                  PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE, data_frames, frame, goaway, head, header_frames,
                  integer,
                  literal, response_frames, rst_stream, settings, string, window_update)

PICTURE = good(3, 5)
STATUS = literal(":status", 200)
# A connection on which the rules are broken is ended by this side: nobody asks again.
BROKEN = "PROTOCOL"
# What ends one stream, without a word on who was wrong.
STREAM = "CONNECTION_LOST"
# The server ends the connection, and the last attempt, over HTTP/1.1, is lost or meets frames.
ENDED = ("CONNECTION_LOST", "PROTOCOL")
# What is passed over, or ends the connection.
EITHER = ("OK", BROKEN)


def answered(stream):
    return response_frames(stream, 200, [], PICTURE)


def row(name, make, code=BROKEN, **bounds):
    frames(f"h2-{name}", make, code, **dict({"end": "keep"}, **bounds))


row("plain", answered, "OK", width=3)
# ---- Frames of a wrong length or on a wrong stream (RFC 9113 sections 6.1 to 6.10)
for name, broken in {
        "settings-5-bytes": lambda stream: frame(SETTINGS, 0, 0, bytes(5)),
        "settings-on-stream": lambda stream: frame(SETTINGS, 0, stream, bytes(6)),
        "settings-ack-with-payload": lambda stream: frame(SETTINGS, ACK, 0, bytes(6)),
        "settings-window-2-31": lambda stream: settings((4, 1 << 31)),
        "settings-frame-size-small": lambda stream: settings((5, 100)),
        "settings-frame-size-large": lambda stream: settings((5, 1 << 24)),
        "settings-push-2": lambda stream: settings((2, 2)),
        "ping-7-bytes": lambda stream: frame(PING, 0, 0, bytes(7)), "ping-on-stream": lambda stream: frame(PING, 0,
        stream, bytes(8)),
        "goaway-short": lambda stream: frame(GOAWAY, 0, 0, bytes(7)), "goaway-on-stream": lambda stream: frame(GOAWAY,
        0, stream, bytes(8)),
        "window-update-3-bytes": lambda stream: frame(WINDOW_UPDATE, 0, 0, bytes(3)),
        "window-update-zero": lambda stream: window_update(0, 0),
        "window-update-overflow": lambda stream: window_update(0, 0x7FFFFFFF) * 2,
        "rst-3-bytes": lambda stream: frame(RST_STREAM, 0, stream, bytes(3)),
        "rst-on-zero": lambda stream: rst_stream(0, 0),
        "priority-4-bytes": lambda stream: frame(PRIORITY, 0, stream, bytes(4)),
        "priority-on-zero": lambda stream: frame(PRIORITY, 0, 0, bytes(5)),
        "data-on-zero": lambda stream: frame(DATA, 0, 0, b"x"), "headers-on-zero": lambda stream: frame(HEADERS,
        END_HEADERS, 0, STATUS),
        "continuation-alone": lambda stream: frame(CONTINUATION, END_HEADERS, stream, STATUS),
        "data-padding-too-long": lambda stream: header_frames(stream, STATUS) + frame(DATA, PADDED, stream,
        b"\xff" + bytes(10)),
        "headers-padding-too-long": lambda stream: frame(HEADERS, END_HEADERS | PADDED, stream, b"\xff" + STATUS),
        "headers-padded-empty": lambda stream: frame(HEADERS, END_HEADERS | PADDED, stream, b""),
        "headers-priority-short": lambda stream: frame(HEADERS, END_HEADERS | HAS_PRIORITY, stream, b"\0\0"),
        "frame-too-large": lambda stream: header_frames(stream, STATUS) + frame(DATA, 0, stream, bytes(16385 + 65536)),
        "frame-length-16-mib": lambda stream: frame(DATA, 0, stream, bytes(1000), length=0xFFFFFF),
        "headers-interrupted": lambda stream: frame(HEADERS, 0, stream, STATUS[:3]) + frame(PING, 0, 0, bytes(8)),
        "headers-other-continuation": lambda stream: frame(HEADERS, 0, stream, STATUS[:3]) + frame(CONTINUATION,
        END_HEADERS, stream + 2, STATUS[3:]),
        "push-promise": lambda stream: frame(PUSH_PROMISE, END_HEADERS, stream,
        struct.pack(">I", 2) + literal(":method", "GET") +
                                             literal(":path", "/good") + literal(":scheme",
                                             "https") + literal(":authority", "127.0.0.1")),
        "push-promise-odd": lambda stream: frame(PUSH_PROMISE, END_HEADERS, stream,
        struct.pack(">I", 9) + literal(":path", "/")),
        "push-promise-short": lambda stream: frame(PUSH_PROMISE, END_HEADERS, stream, b"\0"),
        "stream-even": lambda stream: header_frames(2, STATUS), "stream-not-opened": lambda stream: header_frames(
        stream + 2, STATUS),
        "data-not-opened": lambda stream: frame(DATA, 0, stream + 2, b"x"),
        "rst-not-opened": lambda stream: rst_stream(stream + 2, 0),
        "window-not-opened": lambda stream: window_update(stream + 2, 5),
        "data-before-headers": lambda stream: frame(DATA, 0, stream, PICTURE),
        "garbage": lambda stream: b"garbage, not frames" * 50, "http1-answer": lambda stream: head(("Content-Length",
        0)),
        "zeros": lambda stream: bytes(9000),
}.items():
    # What follows is an answer: nobody reads it.
    row(f"{name}", lambda stream, broken=broken: broken(stream) + answered(stream), end="close")
    row(f"{name}-alone", lambda stream, broken=broken: broken(stream), end="hold", within=4)

# ---- Flow of a stream
row("data-over-window", lambda stream: header_frames(stream, STATUS) + data_frames(stream, bytes(40 << 20)),
    (BROKEN, "BAD_IMAGE_DATA"), cpu=0.5)
row("data-after-end", lambda stream: answered(stream) + frame(DATA, 0, stream, b"more"), EITHER)
row("headers-after-end", lambda stream: answered(stream) + header_frames(stream, STATUS), EITHER)
row("end-without-headers", lambda stream: frame(DATA, END_STREAM, stream))
row("headers-cut", lambda stream: answered(stream)[:12], "CONNECTION_LOST", end="close")
row("data-cut", lambda stream: answered(stream)[:-20], ("TRUNCATED", "CONNECTION_LOST"), end="close")
row("data-cut-reset", lambda stream: answered(stream)[:-20], ("CONNECTION_LOST", "TRUNCATED"), end="reset")
row("data-cut-silence", lambda stream: answered(stream)[:-20], "IDLE_TIMEOUT", end="hold", within=4)
row("silence", lambda stream: b"", "IDLE_TIMEOUT", end="hold", within=4)
row("silence-but-pings", lambda stream: (part for at in range(300) for part in (frame(PING, 0, 0, bytes(8)), 0.02)),
    "IDLE_TIMEOUT",
    is_flood=True, within=4)
row("silence-but-settings", lambda stream: (part for at in range(300) for part in (settings(), 0.02)), "IDLE_TIMEOUT",
    is_flood=True,
    within=4)
row("silence-but-empty-data", lambda stream: (
    part for at in range(300) for part in (frame(DATA, 0, stream) if at else header_frames(stream, STATUS), 0.02)),
    "IDLE_TIMEOUT",
    is_flood=True, within=4)
row("padding-alone", lambda stream: header_frames(stream, STATUS) + frame(DATA, PADDED, stream,
    b"\xff" + bytes(255)) * 50 +
    data_frames(stream, PICTURE), "OK", width=3)
row("data-in-single-bytes", lambda stream: header_frames(stream, STATUS) + data_frames(stream, PICTURE, most=1), "OK",
    width=3)
row("headers-in-single-bytes", lambda stream: header_frames(stream, STATUS + literal("x", "y" * 30),
    most=1) + data_frames(stream, PICTURE),
    EITHER)
row("headers-padded", lambda stream: frame(HEADERS, END_HEADERS | PADDED, stream,
    b"\x64" + STATUS + bytes(100)) + data_frames(stream, PICTURE),
    "OK", width=3)
row("headers-priority", lambda stream: frame(HEADERS, END_HEADERS | HAS_PRIORITY, stream,
    struct.pack(">IB", 0, 5) + STATUS) +
    data_frames(stream, PICTURE), "OK", width=3)
row("headers-priority-on-itself", lambda stream: frame(HEADERS, END_HEADERS | HAS_PRIORITY, stream,
    struct.pack(">IB", stream, 5) + STATUS) +
    data_frames(stream, PICTURE), EITHER)
row("frame-unknown", lambda stream: frame(0xEE, 0xFF, stream, bytes(5000)) + answered(stream), "OK", width=3)
row("frame-altsvc-garbage", lambda stream: frame(0x0A, 0, 0, b"\xff\xff" + bytes(100)) + answered(stream), EITHER)
row("frame-origin", lambda stream: frame(0x0C, 0, 0, b"\0\x13https://example.org") + answered(stream), "OK", width=3)
row("flags-all", lambda stream: header_frames(stream, STATUS) + frame(
    DATA, 0xF6, stream, PICTURE) + frame(DATA, END_STREAM, stream), "OK", width=3)
row("reserved-bit", lambda stream: frame(HEADERS, END_HEADERS, stream | 1 << 31, STATUS) + data_frames(stream | 1 << 31,
    PICTURE), "OK",
    width=3)
row("settings-unknown", lambda stream: settings(*[(at, at) for at in range(100, 130)]) + answered(stream), "OK",
    width=3)
row("settings-unknown-800", lambda stream: settings(*[(at, at) for at in range(100, 900)]) + answered(stream), EITHER,
    end="close")
row("settings-window-zero", lambda stream: settings((4, 0)) + answered(stream), "OK", width=3)
row("settings-no-streams", lambda stream: settings((3, 0)) + answered(stream), "OK", width=3, end="close")
row("settings-table-zero", lambda stream: settings((1, 0)) + answered(stream), "OK", width=3)
row("settings-table-4-gib", lambda stream: settings((1, 0xFFFFFFFF)) + answered(stream), "OK", width=3)
row("settings-header-list-zero", lambda stream: settings((6, 0)) + answered(stream), "OK", width=3, end="close")
row("settings-large-window-each", lambda stream: settings((4, 0x7FFFFFFF)) + answered(stream), "OK", width=3)

# A body that ends with its connection has not come to its end, whatever the connection ended of.
for name, broken in {"settings": frame(SETTINGS, ACK, 0, bytes(6)), "ping": frame(PING, 0, 0, bytes(7)),
    "garbage": b"\xff" * 50,
                     "goaway": goaway(0, 1), "window": window_update(0, 0), "hpack": header_frames(99, b"\x80"),
                     "close": b""}.items():
    for kind, options in (("body", {"flags": 1}), ("picture", {})):
        row(f"half-{kind}-then-{name}", lambda stream, broken=broken, kind=kind: header_frames(stream,
            STATUS) + data_frames(
            stream, PICTURE if kind == "body" else PICTURE[:40], False) + broken,
            {"close": "TRUNCATED", "goaway": (*ENDED, "TRUNCATED")}.get(name, (BROKEN, "TRUNCATED")), end="close",
            options=options)

# ---- Resets and farewells
for error, name in enumerate(("no-error", "protocol", "internal", "flow", "settings-timeout", "stream-closed",
    "frame-size", "refused",
                              "cancel", "compression", "connect", "calm", "security", "http11")):
    row(f"rst-{name}", lambda stream, error=error: rst_stream(stream, error), STREAM)
    row(f"rst-{name}-behind-half", lambda stream, error=error: header_frames(stream, STATUS) + frame(DATA, 0, stream,
        PICTURE[:30]) +
        rst_stream(stream, error), (STREAM, "TRUNCATED") if error == 0 else STREAM)
    row(f"goaway-{name}", lambda stream, error=error: goaway(0, error), ENDED, end="close")
row("rst-unknown", lambda stream: rst_stream(stream, 0xFFFFFFFF), STREAM)
row("rst-behind-answer", lambda stream: answered(stream) + rst_stream(stream, 8), "OK", width=3)
row("goaway-then-answer", lambda stream: goaway(stream) + answered(stream), "OK", width=3)
row("goaway-last-2-31", lambda stream: goaway(0x7FFFFFFF) + answered(stream), "OK", width=3)
row("goaway-raises", lambda stream: goaway(0) + goaway(0x7FFFFFFF) + answered(stream), ENDED)
row("goaway-long-text", lambda stream: goaway(stream, 0, b"x" * 16000) + answered(stream), "OK", width=3)
row("goaway-says-controls", lambda stream: goaway(0, 11, b"\x1b[2J\x07\0\xff" * 50), ENDED, end="close")

# ---- HPACK
for name, block in {
        "index-zero": b"\x80", "index-beyond": b"\xff\xff\xff\x0f", "index-2-64": b"\xff" + b"\xff" * 9 + b"\x01",
        "integer-endless": b"\xff" + b"\x80" * 500 + b"\x01", "string-longer": b"\0" + integer(1000, 7) + b"x",
        "string-2-64": b"\0\x7f" + b"\xff" * 9 + b"\x01", "huffman-broken": b"\0\x84\xff\xff\xff\xff\0",
        "huffman-padding": b"\0\x81\x00\0", "table-size-beyond": b"\x3f" + b"\xff" * 4 + b"\x07",
        "table-size-late": STATUS + b"\x20",
        "table-sizes": b"\x20" * 5, "cut": b"\0\x05ab", "literal-index-beyond": b"\x0f\xff\xff\x01" + string("x"),
        "empty": b"",
}.items():
    # These two are read, and are no answer.
    row(f"hpack-{name}", lambda stream, block=block: header_frames(stream, block) + data_frames(stream, PICTURE),
        STREAM if name in ("empty", "table-sizes") else BROKEN, end="close")
row("hpack-table-filled", lambda stream: header_frames(stream, STATUS + b"".join(
    literal(f"x-{at}", "y" * 50, 0x40) for at in range(600))) + data_frames(stream, PICTURE), EITHER)
# One entry of 4,000 bytes, and 16,000 references to it: 64 MB of fields in 20 KB.
row("hpack-bomb", lambda stream: header_frames(stream, STATUS + literal("x", "y" * 3900, 0x40) + b"\xbe" * 16000) +
    data_frames(stream, PICTURE), ("HEADER_LIMIT", BROKEN), end="close")
row("hpack-bomb-cookies", lambda stream: header_frames(stream, STATUS + literal("set-cookie", "a=" + "y" * 3800,
    0x40) + b"\xbe" * 16000) +
    data_frames(stream, PICTURE), ("HEADER_LIMIT", BROKEN), end="close", options={"flags": 32})
row("hpack-huffman-status", lambda stream: header_frames(stream, b"\x08\x82\x10\x01") + data_frames(stream, PICTURE),
    EITHER)
row("hpack-status-indexed", lambda stream: header_frames(stream, b"\x88") + data_frames(stream, PICTURE), "OK", width=3)
row("hpack-request-indexed", lambda stream: header_frames(stream, b"\x88\x82\x84") + data_frames(stream, PICTURE),
    STREAM)

# ---- Before the first frame of the server
for name, data in {
        "nothing": b"", "http1": head(("Content-Length", 0)), "garbage": b"garbage" * 100,
        "ping-first": frame(PING, 0, 0, bytes(8)),
        "headers-first": response_frames(1, 200, [], PICTURE), "goaway-first": goaway(0, 0),
        "goaway-calm": settings() + goaway(0, 11),
        "settings-broken": frame(SETTINGS, 0, 0, bytes(5)), "settings-on-stream": frame(SETTINGS, 0, 1, bytes(6)),
        "settings-cut": settings((3, 100))[:12], "settings-ack-first": settings(ack=True),
        "settings-endless-ids": settings(*[(9, 9)] * 2700),
        "window-overflow": settings() + window_update(0, 0x7FFFFFFF), "frame-16-mib": frame(SETTINGS, 0, 0, b"",
        length=0xFFFFF6),
}.items():
    # Half a greeting is none, and breaks no rule yet.
    is_half = name in ("nothing", "settings-cut")
    greeted = ENDED if name == "goaway-calm" else "CONNECTION_LOST" if is_half else BROKEN
    greeting(f"h2-greeting-{name}", data, greeted)
    greeting(f"h2-greeting-{name}-silence", data, ("IDLE_TIMEOUT", "CONNECT_TIMEOUT") if is_half else greeted, end="hold",
             within=4)
