"""Floods of HTTP/2: frames that bring nothing, as fast as they go. A turn of one socket ends after 50 ms of the engine's
thread; another server's picture and all timeouts come as if nothing were."""
import struct

from answer import ENDLESS, FLOOD, LIBCURL, frames, greeting
from pictures import good
from wire import (CONTINUATION, DATA, END_HEADERS, HEADERS, PADDED, PING, PRIORITY, data_frames, frame, goaway,
    header_frames,
                  literal, response_frames, rst_stream, settings, window_update)

PICTURE = good(3, 5)
STATUS = literal(":status", 200)


# The code is one, whoever ends the flood: this side, nghttp2, or the idle timeout, behind one that costs little. Newer versions of
# libcurl read less at a time (8.14 does, 7.88 does not): no turn takes 50 ms there, others get theirs, and every flood may last
# until the idle timeout, of which it takes most of the CPU. The nghttp2 beside them ends more floods, and calls them broken frames.
IS_NEWER = LIBCURL >= (8, 14)
SECONDS = 2.2 if IS_NEWER else 1
ENDED = (FLOOD, "PROTOCOL") if IS_NEWER else FLOOD


def flood(name, part, first=lambda stream: header_frames(stream, STATUS),
    code=ENDED, **bounds):
    """`part`: what comes again and again. The idle timeout is 2 s."""
    bounds.setdefault("cpu", SECONDS)

    def make(stream):
        yield first(stream)
        again = part(stream)
        again *= max(1, (1 << 20) // len(again))
        for _ in range(ENDLESS):
            yield again
    frames(f"flood-{name}", make, code, is_flood=True, **bounds)


NOTHING = {"first": lambda stream: b""}
flood("window-updates", lambda stream: window_update(0, 1))
flood("window-updates-of-stream", lambda stream: window_update(stream, 1))
flood("window-updates-before-head", lambda stream: window_update(0, 1), **NOTHING)
flood("window-updates-of-closed-stream", lambda stream: window_update(1, 1), before=True)
flood("priority", lambda stream: frame(PRIORITY, 0, stream, struct.pack(">IB", 0, 5)))
flood("priority-of-others", lambda stream: b"".join(frame(PRIORITY, 0, 2 * at + 1,
    struct.pack(">IB", 0, 5)) for at in range(1000)))
flood("pings", lambda stream: frame(PING, 0, 0, bytes(8)))
flood("ping-acks", lambda stream: frame(PING, 1, 0, bytes(8)))
flood("settings", lambda stream: settings())
flood("settings-acks", lambda stream: settings(ack=True))
flood("settings-full", lambda stream: settings(*[(4, 65535)] * 2000))
flood("settings-table", lambda stream: settings((1, 0), (1, 4096)))
flood("empty-data", lambda stream: frame(DATA, 0, stream))
flood("padded-data", lambda stream: frame(DATA, PADDED, stream, b"\xff" + bytes(255)))
flood("data-of-one-byte", lambda stream: frame(DATA, 0, stream, b"x"), options={"flags": 1, "total_timeout_ms": 1500},
      code=(FLOOD, "PROTOCOL", "TOTAL_TIMEOUT"), memory=60, cpu=2)
# Bodies pay for some of what comes between them.
for updates in (20, 200, 2000):
    flood(f"{updates}-window-updates-a-body", lambda stream, updates=updates: frame(DATA, 0, stream, bytes(16000))
          + window_update(stream, 1) * updates,
          options={"flags": 1, "total_timeout_ms": 1500, "max_body_bytes": 64 << 20},
          code=(FLOOD, "PROTOCOL", "TOTAL_TIMEOUT", "BODY_LIMIT"), memory=100, cpu=2)
flood("unknown-frames", lambda stream: frame(0xEE, 0, stream))
flood("unknown-frames-large", lambda stream: frame(0xEE, 0, 0, bytes(16000)))
flood("rst-of-closed", lambda stream: rst_stream(1, 8), before=True)
flood("rst-of-own", lambda stream: rst_stream(stream, 8), code=(FLOOD, "CONNECTION_LOST", "PROTOCOL", "TRUNCATED"))
flood("goaways", lambda stream: goaway(0x7FFFFFFF))
flood("continuations-empty", lambda stream: frame(CONTINUATION, 0, stream),
    first=lambda stream: frame(HEADERS, 0, stream, STATUS))
flood("continuations", lambda stream: frame(CONTINUATION, 0, stream, literal("x", "y" * 900)),
      first=lambda stream: frame(HEADERS, 0, stream, STATUS), code=("HEADER_LIMIT", FLOOD, "PROTOCOL"))
flood("headers-empty", lambda stream: frame(HEADERS, END_HEADERS, stream),
    code=(FLOOD, "PROTOCOL", "CONNECTION_LOST", "HEADER_LIMIT"))
flood("headers-of-closed", lambda stream: frame(HEADERS, END_HEADERS, 1, STATUS), before=True)
flood("altsvc", lambda stream: frame(0x0A, 0, stream, b"\0\0h2=\":1\""))
flood("origin", lambda stream: frame(0x0C, 0, 0, b"\0\x0bhttps://a.b" * 100))
flood("pings-and-data", lambda stream: frame(PING, 0, 0, bytes(8)) + frame(DATA, 0, stream))
flood("window-updates-behind-answer", lambda stream: window_update(0, 1),
    first=lambda stream: response_frames(stream, 200, [], PICTURE),
      code=("OK", FLOOD, "PROTOCOL"))
flood("pings-behind-answer", lambda stream: frame(PING, 0, 0, bytes(8)),
    first=lambda stream: response_frames(stream, 200, [], PICTURE),
      code=("OK", FLOOD, "PROTOCOL"))
flood("empty-data-then-answer", lambda stream: frame(DATA, 0, stream), first=lambda stream: header_frames(stream,
    STATUS) +
      data_frames(stream, PICTURE, False))
# What has to be answered, where nobody takes the answers: a server that does so is not asked again.
for name, part in {"pings": frame(PING, 0, 0, bytes(8)), "settings": settings()}.items():
    flood(f"{name}-before-head", lambda stream, part=part: part, asked=1, **NOTHING)
    for place, first in (("before-head", NOTHING), ("behind-head", {})):
        flood(f"{name}-{place}-unanswered", lambda stream, part=part: part, asked=1, reads_nothing=True, **first)
for name, part in {"pings": frame(PING, 0, 0, bytes(8)), "settings": settings(),
    "window-updates": window_update(0, 1)}.items():
    greeting(f"flood-greeting-{name}", lambda part=part: (settings() if not at else part * 60000 for at in range(
        ENDLESS)),
             ENDED, is_flood=True, cpu=SECONDS)
