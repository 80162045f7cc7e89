"""Chunks of HTTP/1.1: sizes, extensions, ends; trailers and interim answers."""
from answer import ENDLESS, FLOOD, frames, raw, reply
from pictures import good
from wire import (DATA, END_STREAM, HEADERS, chunk, chunked, data_frames, fields_block, frame, head, header_frames,
    literal,
                  response_frames)

PICTURE = good(3, 5)
HEAD = head(("Transfer-Encoding", "chunked"))
ALL = chunk(PICTURE)

# ---- Sizes
for name, size in {
        "empty": b"", "space": b" ", "letters": b"xyz", "negative": b"-5", "plus": b"+5", "prefix": b"0x5",
        "comma": b"5,",
        "2-63": b"8000000000000000", "2-64": b"10000000000000000", "17-digits": b"f" * 17, "1000-digits": b"f" * 1000,
        "wraps": b"10000000000000005", "control": b"\x015", "high-bit": b"\xb5", "nul": b"\x005",
}.items():
    raw(f"chunk-size-{name}", HEAD + size + b"\r\n" + PICTURE + b"\r\n0\r\n\r\n", "PROTOCOL")
raw("chunk-size-2-63-less-1", HEAD + b"7fffffffffffffff\r\n" + PICTURE, ("PROTOCOL", "TRUNCATED", "OK"))
raw("chunk-size-2-32", HEAD + b"100000000\r\n" + PICTURE[:40], ("TRUNCATED", "PROTOCOL"))
raw("chunk-size-leading-zeros", HEAD + b"%016x\r\n" % len(PICTURE) + PICTURE + b"\r\n0\r\n\r\n", "OK", width=3)
raw("chunk-size-leading-zeros-many", HEAD + b"0" * 5000 + b"%x\r\n" % len(PICTURE) + PICTURE + b"\r\n0\r\n\r\n",
    ("PROTOCOL", "OK"))
raw("chunk-size-upper-case", HEAD + b"%X\r\n" % len(PICTURE) + PICTURE + b"\r\n0\r\n\r\n", "OK", width=3)
raw("chunk-size-space-behind", HEAD + b"%x  \r\n" % len(PICTURE) + PICTURE + b"\r\n0\r\n\r\n", "OK", width=3)
raw("chunk-size-line-feed-alone", HEAD + b"%x\n" % len(PICTURE) + PICTURE + b"\n0\n\n", ("OK", "PROTOCOL"))
raw("chunk-size-endless", lambda request: (HEAD if not at else b"0" * 65536 for at in range(ENDLESS)), "PROTOCOL",
    is_flood=True)

# ---- Extensions
raw("chunk-extension", HEAD + chunk(PICTURE, b";a=b") + b"0\r\n\r\n", "OK", width=3)
raw("chunk-extension-quoted", HEAD + chunk(PICTURE, b';a="\r;\x01"') + b"0\r\n\r\n", ("OK", "PROTOCOL"))
raw("chunk-extension-long", HEAD + chunk(PICTURE, b";" + b"x" * 100000) + b"0\r\n\r\n", ("OK", "PROTOCOL"))
raw("chunk-extension-endless", lambda request: (HEAD + b"5;" if not at else b"x" * 65536 for at in range(ENDLESS)),
    ("FLOOD", "IDLE_TIMEOUT", "PROTOCOL", "HEADER_LIMIT", "TOTAL_TIMEOUT"), options={"total_timeout_ms": 2000}, is_flood=True,
    cpu=2.5)
raw("chunk-extension-on-each", HEAD + b"".join(chunk(PICTURE[at:at + 1],
    b";" + b"x" * 500) for at in range(len(PICTURE))) +
    b"0\r\n\r\n", "OK", width=3)

# ---- Ends
raw("chunk-end-missing", HEAD + ALL, ("TRUNCATED", "PROTOCOL", "OK", "CONNECTION_LOST"))
raw("chunk-end-missing-body", HEAD + ALL, ("TRUNCATED", "PROTOCOL", "CONNECTION_LOST"), options={"flags": 1})
raw("chunk-end-without-line", HEAD + ALL + b"0\r\n", ("TRUNCATED", "PROTOCOL", "OK", "CONNECTION_LOST"))
raw("chunk-cut-in-size", HEAD + b"5", ("TRUNCATED", "PROTOCOL", "CONNECTION_LOST"))
raw("chunk-cut-in-data", HEAD + b"%x\r\n" % len(PICTURE) + PICTURE[:30], ("TRUNCATED", "PROTOCOL"))
raw("chunk-cut-reset", HEAD + b"%x\r\n" % len(PICTURE) + PICTURE[:30], ("CONNECTION_LOST", "TRUNCATED", "PROTOCOL"),
    end="reset")
raw("chunk-cut-silence", HEAD + b"%x\r\n" % len(PICTURE) + PICTURE[:30], "IDLE_TIMEOUT", end="hold", within=4)
raw("chunk-data-longer", HEAD + b"5\r\n" + PICTURE + b"\r\n0\r\n\r\n", "PROTOCOL")
raw("chunk-data-no-line-end", HEAD + b"%x\r\n" % len(PICTURE) + PICTURE + b"0\r\n\r\n", "PROTOCOL")
raw("chunk-none", HEAD, ("TRUNCATED", "PROTOCOL", "CONNECTION_LOST", "BAD_IMAGE_DATA"))
raw("chunk-zero-alone", HEAD + b"0\r\n\r\n", "BAD_IMAGE_DATA")
raw("chunk-zeros-then-data", HEAD + b"0\r\n\r\n" + ALL, "BAD_IMAGE_DATA")
raw("chunk-zero-padded", HEAD + ALL + b"0" * 15 + b"\r\n\r\n", "OK", width=3)
raw("chunk-second-answer-behind", HEAD + ALL + b"0\r\n\r\n" + head(("Content-Length", len(good(9, 9)))) + good(9, 9),
    "OK",
    end="keep", pieces=("one",), width=3)
raw("chunk-of-one-byte-each", HEAD + chunked(PICTURE, 1), "OK", width=3)
raw("chunk-of-one-byte-10000", lambda request: [HEAD, b"1\r\nx\r\n" * 10000, b"0\r\n\r\n"], "OK",
    options={"flags": 1}, length=10000, cpu=0.5, pieces=("one",))
raw("chunk-of-one-byte-200000", lambda request: [HEAD, b"1\r\nx\r\n" * 200000, b"0\r\n\r\n"], ("OK", FLOOD),
    options={"flags": 1}, cpu=1.5, pieces=("one",))
raw("chunk-endless-of-one-byte", lambda request: (HEAD if not at else b"1\r\nx\r\n" * 10000 for at in range(ENDLESS)),
    ("TOTAL_TIMEOUT", FLOOD), options={"flags": 1, "total_timeout_ms": 1000}, is_flood=True, cpu=3, memory=64)

# ---- Trailers: 256 KiB with the header, 100 KiB a field, 1,000 fields.
reply("trailer-one", "OK", body=PICTURE, trailers=[("X-Sum", "1")], width=3)
reply("trailer-900", "OK", body=PICTURE, trailers=[(f"X-{at}", "y") for at in range(900)], width=3)
reply("trailer-1100", "HEADER_LIMIT", body=PICTURE, trailers=[(f"X-{at}", "y") for at in range(1100)])
reply("trailer-25000", "HEADER_LIMIT", body=PICTURE, trailers=[(f"X-{at}", "y") for at in range(25000)])
reply("trailer-300-kib", "HEADER_LIMIT", body=PICTURE, trailers=[(f"X-{at}", "y" * 3000) for at in range(100)])
reply("trailer-and-header-300-kib", "HEADER_LIMIT", body=PICTURE, fields=[(f"X-{at}", "y" * 3000) for at in range(50)],
      trailers=[(f"X-{at}", "y" * 3000) for at in range(50)])
reply("trailer-long", "HEADER_LIMIT", body=PICTURE, trailers=[("X", "y" * (101 << 10))])
reply("trailer-5-kib", {"http2": "OK", "else": "HEADER_LIMIT"}, body=PICTURE, trailers=[("X", "y" * 5000)])
reply("trailer-names-length", "OK", body=PICTURE, trailers=[("Content-Length", 1), ("Transfer-Encoding", "gzip")],
      protocols=("http1", "https1"), width=3)
reply("trailer-names-coding", "OK", body=PICTURE, trailers=[("Content-Encoding", "gzip"), ("Location", "/good")],
    width=3)
reply("trailer-sets-cookies", "OK", body=PICTURE, trailers=[("Set-Cookie", f"a{at}=b") for at in range(500)],
      options={"flags": 32}, width=3)
reply("trailer-cache-control", "OK", body=PICTURE, trailers=[("Cache-Control", "max-age=99999999999999999999")],
    width=3)
for name, line in {"without-colon": b"nothing", "space-first": b" x", "nul": b"X: \0", "controls": b"\x1b[2J: x",
    "status": b"HTTP/1.1 200 OK",
                   "colon": b":", "return": b"X: a\rb"}.items():
    raw(f"trailer-{name}", HEAD + ALL + b"0\r\n" + line + b"\r\n\r\n", ("OK", "PROTOCOL"))
raw("trailer-cut", HEAD + ALL + b"0\r\nX: y", ("OK", "TRUNCATED", "PROTOCOL", "CONNECTION_LOST"))
raw("trailer-silence", HEAD + ALL + b"0\r\nX: y\r\n", ("OK", "IDLE_TIMEOUT"), end="hold", within=4)
raw("trailer-endless", lambda request: (HEAD + ALL + b"0\r\n" if not at else b"X-Y: zzzzzzzzzzzzzzzzzzzzzzz\r\n" * 2000
                                        for at in range(ENDLESS)), "HEADER_LIMIT", is_flood=True)
raw("trailer-endless-body", lambda request: (HEAD + ALL +
    b"0\r\n" if not at else b"X-Y: zzzzzzzzzzzzzzzzzzzzzzz\r\n" * 2000
                                             for at in range(ENDLESS)), "HEADER_LIMIT", is_flood=True,
                                             options={"flags": 1})
raw("trailer-endless-line", lambda request: (HEAD + ALL + b"0\r\nX: " if not at else b"z" * 65536 for at in range(
    ENDLESS)),
    "HEADER_LIMIT", is_flood=True)
raw("trailer-endless-folds", lambda request: (HEAD + ALL + b"0\r\nX: y\r\n" if not at else b" z\r\n" * 9000
                                              for at in range(ENDLESS)),
    # Newer versions of curl take no folded lines there.
    ("HEADER_LIMIT", "PROTOCOL"), is_flood=True)

# ---- Interim answers: in the same budget.
FINAL = head(("Content-Length", len(PICTURE))) + PICTURE
for number in (100, 102, 103, 110, 199):
    raw(f"interim-{number}", head(("X", "y"), status=f"{number} X") + FINAL, "OK", width=3)
    frames(f"interim-h2-{number}", lambda stream, number=number: header_frames(stream, literal(":status", number)) +
           response_frames(stream, 200, [], PICTURE), "OK", end="keep", width=3)
raw("interim-101", head(("Upgrade", "x"), ("Connection", "upgrade"), status="101 X") + FINAL, "PROTOCOL", says="101")
raw("interim-101-h2c", head(("Upgrade", "h2c"), ("Connection", "upgrade"), status="101 X") + FINAL, "PROTOCOL",
    says="101")
raw("interim-101-bare", head(status="101 X") + FINAL, "PROTOCOL")
frames("interim-h2-101", lambda stream: header_frames(stream, literal(":status", 101)) + response_frames(stream, 200,
    [], PICTURE),
       ("PROTOCOL", "CONNECTION_LOST"), end="keep")
raw("interim-999-bare", head(status="103 X") * 999 + FINAL, "OK", width=3)
raw("interim-1000-bare", head(status="103 X") * 1000 + FINAL, "HEADER_LIMIT", says="more than 1000 responses")
raw("interim-with-length", head(("Content-Length", 5), status="103 X") + FINAL, "OK", width=3)
raw("interim-with-body", head(("Content-Length", 5), status="103 X") + b"xxxxx" + FINAL, ("PROTOCOL", "OK"))
raw("interim-with-chunks", head(("Transfer-Encoding", "chunked"), status="103 X") + FINAL, ("PROTOCOL", "OK"))
raw("interim-with-cookies", head(*[("Set-Cookie", f"a{at}=b") for at in range(900)], status="103 X") + FINAL, "OK",
    width=3,
    options={"flags": 32})
raw("interim-with-location", head(("Location", "/good"), status="103 X") + FINAL, "OK", width=3)
raw("interim-with-coding", head(("Content-Encoding", "gzip"), status="103 X") + FINAL, "OK", width=3)
raw("interim-alone", head(status="103 X"), "CONNECTION_LOST")
raw("interim-alone-silence", head(status="103 X"), "IDLE_TIMEOUT", end="hold", within=4)
raw("interim-900", head(status="103 X") * 900 + FINAL, "OK", width=3)
raw("interim-20000", head(status="103 X") * 20000 + FINAL, "HEADER_LIMIT")
raw("interim-300-kib", head(("X", "y" * 3000), status="103 X") * 100 + FINAL, "HEADER_LIMIT")
raw("interim-fields-1100", head(*[("X", "y")] * 600, status="103 X") * 2 + FINAL, "HEADER_LIMIT")
raw("interim-long-field", head(("X", "y" * (101 << 10)), status="103 X") + FINAL, "HEADER_LIMIT")
raw("interim-endless", lambda request: (head(status="100 X") * 3000 for at in range(ENDLESS)), "HEADER_LIMIT",
    is_flood=True)
raw("interim-endless-fields", lambda request: (head(*[("X", "y" * 90)] * 100, status="103 X") for at in range(ENDLESS)),
    "HEADER_LIMIT", is_flood=True)
frames("interim-h2-20000", lambda stream: [header_frames(stream, literal(":status", 103)) * 20000,
                                           response_frames(stream, 200, [], PICTURE)], "HEADER_LIMIT", is_flood=True)
frames("interim-h2-300-kib", lambda stream: [header_frames(stream, literal(":status", 103) + literal("x",
    "y" * 3000)) * 100,
                                             response_frames(stream, 200, [], PICTURE)], "HEADER_LIMIT", is_flood=True)
frames("interim-h2-endless", lambda stream: (header_frames(stream, literal(":status",
    103)) * 2000 for at in range(ENDLESS)),
       "HEADER_LIMIT", is_flood=True)
frames("interim-h2-ends-stream", lambda stream: header_frames(stream, literal(":status", 103), ends_stream=True),
       ("PROTOCOL", "CONNECTION_LOST"), end="keep")
frames("trailer-h2-pseudo", lambda stream: header_frames(stream, literal(":status", 200)) + data_frames(stream, PICTURE,
    False) +
       header_frames(stream, literal(":status", 404), ends_stream=True), ("PROTOCOL", "CONNECTION_LOST", "OK"),
       end="keep")
frames("trailer-h2-without-end", lambda stream: header_frames(stream, literal(":status", 200)) +
       data_frames(stream, PICTURE, False) + header_frames(stream, fields_block([("x", "y")])) + data_frames(stream,
       b"more"),
       ("PROTOCOL", "CONNECTION_LOST", "OK"), end="keep")
frames("trailer-h2-endless", lambda stream: (
    header_frames(stream, literal(":status", 200)) + frame(DATA, 0, stream, PICTURE) if not at else
    header_frames(stream, fields_block([("x", "y" * 90)] * 100)) for at in range(ENDLESS)),
    ("PROTOCOL", "CONNECTION_LOST", "HEADER_LIMIT", "OK"), is_flood=True)
frames("trailer-h2-behind-end", lambda stream: response_frames(stream, 200, [], PICTURE) +
       frame(HEADERS, END_STREAM | 4, stream, fields_block([("x", "y")])), ("OK", "CONNECTION_LOST", "PROTOCOL"))
