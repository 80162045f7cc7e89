"""Fields of a response's header: names, values, folds, controls, many and long ones."""
from answer import ENDLESS, EACH, frames, raw, reply
from pictures import good
from wire import head, literal, response_frames

PICTURE = good(3, 5)
LENGTH = ("Content-Length", len(PICTURE))
# Wrong writes into the heap end the process, where they would do so by chance otherwise.
CHECKED = {"LD_PRELOAD": "libc_malloc_debug.so.0", "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"}


def with_lines(*lines, end=b"\r\n"):
    """A picture behind these lines."""
    lines = (b"HTTP/1.1 200 OK", *lines, b"Content-Length: %d" % len(PICTURE), b"")
    return end.join(lines) + end + PICTURE


# ---- Lines that are no fields. A picture comes, or the answer is refused: by what the versions of libcurl take.
TAKEN = ("OK", "PROTOCOL")
# What would continue a field where there is none: refused, whatever libcurl makes of it.
for name, before in (("new", False), ("used", True)):
    # libcurl below 8.1.0 writes before the beginning of its memory when the handle has been used.
    raw(f"field-first-begins-with-space-{name}", with_lines(b" X: y"), "PROTOCOL", before=before, environment=CHECKED)
    raw(f"field-first-begins-with-tab-{name}", with_lines(b"\tX: y"), "PROTOCOL", before=before, environment=CHECKED)
    raw(f"field-first-is-space-{name}", with_lines(b" "), "PROTOCOL", before=before, environment=CHECKED)
    raw(f"field-first-fold-long-{name}", with_lines(b" " + b"x" * 4000), "PROTOCOL", before=before, environment=CHECKED)
    raw(f"field-first-fold-many-{name}", with_lines(*([b" x"] * 500)), "PROTOCOL", before=before, environment=CHECKED)
raw("field-second-folded", with_lines(b"X: y", b" z"), "OK", width=3, environment=CHECKED)
raw("field-fold-of-spaces", with_lines(b"X: y", b"   ", b"\t\t"), "OK", environment=CHECKED)
raw("field-fold-many", with_lines(b"X: y", *([b" z" * 40] * 900)), ("OK", "HEADER_LIMIT"), environment=CHECKED)
raw("field-fold-of-length", b"HTTP/1.1 200 OK\r\nContent-Length:\r\n %d\r\n\r\n" % len(PICTURE) + PICTURE,
    ("OK", "PROTOCOL"))
raw("field-fold-then-space-after-interim", b"HTTP/1.1 103 X\r\nX: y\r\n\r\n" + with_lines(b" X: y"), "PROTOCOL",
    before=True, environment=CHECKED)
raw("field-without-colon", with_lines(b"nothing"), TAKEN)
raw("field-colon-alone", with_lines(b":"), TAKEN)
raw("field-name-empty", with_lines(b": value"), TAKEN)
raw("field-name-spaces", with_lines(b"X y: z"), TAKEN)
raw("field-name-space-behind", with_lines(b"X : z"), TAKEN)
raw("field-name-controls", with_lines(b"X\x01\x1b: z"), TAKEN)
raw("field-name-nul", with_lines(b"X\0Y: z"), TAKEN)
raw("field-name-not-ascii", with_lines(b"\xff\xfe: z"), TAKEN)
raw("field-name-long", with_lines(b"x" * 60000 + b": z"), "OK", width=3)
raw("field-value-empty", with_lines(b"X:"), "OK", width=3)
raw("field-value-spaces", with_lines(b"X:" + b" " * 50000 + b"y" + b"\t" * 40000), "OK", width=3)
raw("field-value-nul", with_lines(b"X: a\0b"), TAKEN)
raw("field-value-nul-first", with_lines(b"X: \0"), TAKEN)
raw("field-value-controls", with_lines(b"X: " + bytes(range(1, 9)) + b"\x0b\x0c\x0e\x1b[2J\x7f"), TAKEN)
raw("field-value-return", with_lines(b"X: a\rb"), "PROTOCOL")
raw("field-value-return-splits", with_lines(b"X: a\rContent-Length: 1"), "PROTOCOL")
raw("field-value-not-utf8", with_lines(b"X: \xff\xc3\x28\xf0\x90"), "OK", width=3)
raw("field-ends-with-line-feeds", with_lines(b"X: y", end=b"\n"), "OK", width=3)
raw("field-ends-mixed", b"HTTP/1.1 200 OK\r\nX: y\nZ: z\r\nContent-Length: %d\n\r\n" % len(PICTURE) + PICTURE, "OK",
    width=3)
raw("field-cut", b"HTTP/1.1 200 OK\r\nContent-Ty", "CONNECTION_LOST")
raw("field-head-never-ends", with_lines(b"X: y")[:40], "IDLE_TIMEOUT", end="hold", within=4)
raw("field-head-reset", b"HTTP/1.1 200 OK\r\nX: y\r\n", "CONNECTION_LOST", end="reset")
raw("field-drips-and-stops", lambda request: [b"H", 0.3, b"T", 0.3, b"TP", 0.3], "IDLE_TIMEOUT", end="hold", within=4)
raw("field-drips-on", lambda request: (part for at in range(200) for part in (b"HTTP/1.1 200 OK\r\nX:"[at:at +
    1] or b"y", 0.03)),
    "TOTAL_TIMEOUT", options={"total_timeout_ms": 1500}, is_flood=True)

# ---- Sizes: 100 KiB a field, 256 KiB and 1,000 fields a header; of nghttp2, 64 KiB a header block.
LARGE = {"http2": ("HEADER_LIMIT", "OK"), "else": "OK"}
reply("field-long-99-kib", LARGE, fields=[("X-Long", "x" * (99 << 10))], body=PICTURE)
reply("field-long-101-kib", "HEADER_LIMIT", fields=[("X-Long", "x" * (101 << 10))], body=PICTURE)
reply("field-long-300-kib", "HEADER_LIMIT", fields=[("X-Long", "x" * (300 << 10))], body=PICTURE)
reply("field-long-name-101-kib", "HEADER_LIMIT", fields=[("x" * (101 << 10), "x")], body=PICTURE)
reply("field-long-type", LARGE, fields=[("Content-Type", "image/png;" + "x" * 90000)], body=PICTURE)
reply("field-long-type-parameters", LARGE, fields=[("Content-Type", "image/png" + ";a=b" * 20000)], body=PICTURE)
reply("fields-header-250-kib", LARGE, fields=[(f"X-{at}", "x" * 2500) for at in range(97)], body=PICTURE)
reply("fields-header-260-kib", "HEADER_LIMIT", fields=[(f"X-{at}", "x" * 2600) for at in range(105)], body=PICTURE)
reply("fields-header-3-mb", "HEADER_LIMIT", fields=[(f"X-{at}", "x" * 30000) for at in range(100)], body=PICTURE,
      says={"http2": "more frames of HTTP/2 than nghttp2 takes", "else": "262144"})
reply("fields-900", "OK", fields=[(f"X-{at}", "y") for at in range(900)], body=PICTURE, width=3)
reply("fields-1100", "HEADER_LIMIT", fields=[(f"X-{at}", "y") for at in range(1100)], body=PICTURE, says="1000")
reply("fields-1000", "OK", fields=[("X", "y")] * 999 + [LENGTH], body=PICTURE, width=3)
reply("fields-1001", "HEADER_LIMIT", fields=[("X", "y")] * 1000 + [LENGTH], body=PICTURE, says="more than 1000 fields")
raw("field-line-longest", with_lines(b"X: " + b"y" * (102399 - 5)), "OK", width=3)
raw("field-line-a-byte-more", with_lines(b"X: " + b"y" * (102400 - 5)), "HEADER_LIMIT", says="102399 bytes")
reply("fields-25000", "HEADER_LIMIT", fields=[(f"X{at}", "") for at in range(25000)], body=PICTURE)
reply("fields-same-name-900", "OK", fields=[("X", "y")] * 900, body=PICTURE, width=3)
reply("fields-same-name-25000", "HEADER_LIMIT", fields=[("X", "")] * 25000, body=PICTURE)
reply("fields-same-link-900", "OK", fields=[("Link", "<a>; rel=preload")] * 900, body=PICTURE, width=3)
reply("fields-vary-900", "OK", fields=[("Vary", f"X-{at}") for at in range(900)], body=PICTURE, width=3)
reply("fields-vary-long", LARGE, fields=[("Vary", ",".join(f"X-{at}" for at in range(9000)))], body=PICTURE)
reply("fields-cache-control-900", "OK", fields=[("Cache-Control", f"x{at}=y") for at in range(900)], body=PICTURE,
    width=3)
reply("fields-cache-control-long", LARGE, fields=[("Cache-Control", "max-age=1," * 9000)], body=PICTURE)
reply("fields-cache-control-quotes", LARGE, fields=[("Cache-Control", '"' * 90000)], body=PICTURE)
reply("fields-cache-control-backslashes", LARGE, fields=[("Cache-Control", 'private="' + "\\" * 90000)], body=PICTURE)
reply("fields-type-900", "OK", fields=[("Content-Type", "image/png")] * 900, body=PICTURE, width=3)
reply("fields-etag-900", "OK", fields=[("ETag", f'"{at}"') for at in range(900)], body=PICTURE, width=3)
reply("fields-date-900", "OK", fields=[("Date", "Tue, 24 Nov 2026 02:00:00 GMT")] * 900, body=PICTURE, width=3)
reply("fields-encoding-900-identity", "OK", fields=[("Content-Encoding", "identity")] * 900, body=PICTURE, width=3)
reply("fields-location-900", "OK", fields=[("Location", "/good")] * 900, body=PICTURE, width=3)
raw("fields-endless", lambda request: (b"HTTP/1.1 200 OK\r\n" if not at else b"X-Y: z\r\n" * 4000 for at in range(
    ENDLESS)),
    "HEADER_LIMIT", is_flood=True)
raw("fields-endless-field", lambda request: (b"HTTP/1.1 200 OK\r\nX: " if not at else b"x" * 65536 for at in range(
    ENDLESS)),
    "HEADER_LIMIT", is_flood=True)
raw("fields-endless-fold", lambda request: (b"HTTP/1.1 200 OK\r\nX: y\r\n" if not at else b" z\r\n" * 9000
                                            for at in range(ENDLESS)), "HEADER_LIMIT", is_flood=True)
raw("fields-endless-empty", lambda request: (b"HTTP/1.1 200 OK\r\n" if not at else b":\r\n" * 9000 for at in range(
    ENDLESS)),
    ("HEADER_LIMIT", "PROTOCOL"), is_flood=True)

# ---- What they say shows in messages: without controls, and not at any length.
reply("says-type-controls", "BAD_IMAGE_DATA", fields=[("Content-Type", "text/\x1b[31mred")], body=b"no picture",
      protocols=EACH[:2])
reply("says-type-not-utf8", "BAD_IMAGE_DATA", fields=[("Content-Type", b"text/\xff\xfe")], body=b"no picture")
reply("says-coding-controls", "CONTENT_ENCODING", fields=[("Content-Encoding", "\x1b[2Jgzip")], body=b"x",
      protocols=EACH[:2])
reply("says-coding-c1", "CONTENT_ENCODING", fields=[("Content-Encoding", b"\xc2\x9b2J")], body=b"x")
reply("says-coding-bidi", "CONTENT_ENCODING", fields=[("Content-Encoding", "\u202egpj".encode())], body=b"x")
reply("says-coding-line-separator", "CONTENT_ENCODING", fields=[("Content-Encoding", "a\u2028b".encode())], body=b"x")
reply("says-coding-long", {"http2": ("HEADER_LIMIT", "CONTENT_ENCODING"), "else": "CONTENT_ENCODING"},
    fields=[("Content-Encoding", "x" * 90000)], body=b"x")
reply("says-location-controls", "REDIRECT_REFUSED", status=302, fields=[("Location", "ftp://a\x1b[2J/\x07")],
      protocols=EACH[:2])
reply("says-location-c1", "REDIRECT_REFUSED", status=302, fields=[("Location", b"ftp://\xc2\x9b2J/")])
reply("says-location-bidi", "REDIRECT_REFUSED", status=302, fields=[("Location", "ftp://x/\u202egpj".encode())])
reply("says-location-long", {"http2": ("HEADER_LIMIT", "REDIRECT_REFUSED"), "else": "REDIRECT_REFUSED"}, status=302,
    fields=[("Location", "ftp://" + "x" * 90000)])
raw("says-length-controls", head(("Content-Length", "\x1b[2J5")) + b"xxxxx", "PROTOCOL")
raw("says-length-long", head(("Content-Length", "5" * 90000)) + b"xxxxx", "PROTOCOL")
raw("says-transfer-coding-controls", head(("Transfer-Encoding", "\x1b[2J")) + b"xxxxx", "PROTOCOL")
raw("says-transfer-coding-bidi", head(("Transfer-Encoding", "\u202eknuhc".encode())) + b"xxxxx", "PROTOCOL")
raw("says-reason-controls", head(LENGTH, status="404 \x1b]0;title\x07") + PICTURE, "INVALID_STATUS")

# ---- Fields of HTTP/2 that none may have (RFC 9113 section 8.2): the answer is malformed.
for name, fields in {
        "upper-case": [("Upper", "x")], "name-empty": [("", "x")], "name-space": [("a b", "x")],
        "name-colon": [("a:b", "x")],
        "name-nul": [(b"a\0b", "x")], "name-line-feed": [("a\nb", "x")], "name-not-ascii": [(b"\xff", "x")],
        "value-nul": [("x", b"a\0b")], "value-line-feed": [("x", "a\nSet-Cookie: a=b")],
        "value-return": [("x", "a\rb")],
        "connection": [("connection", "close")], "upgrade": [("upgrade", "x")], "keep-alive": [("keep-alive", "x")],
        "transfer-encoding": [("transfer-encoding", "chunked")], "proxy-connection": [("proxy-connection", "x")],
        "te": [("te", "gzip")], "pseudo-unknown": [(":unknown", "x")], "pseudo-request": [(":path", "/")],
        "pseudo-late": [("x", "y"), (":status", "200")], "status-twice": [(":status", "200")],
}.items():
    # nghttp2 resets the stream, or leaves the field out, as RFC 9113 section 8.2.1 lets it for values.
    frames(f"field-h2-{name}", lambda stream, fields=fields: response_frames(stream, 200, fields, PICTURE),
           ("OK", "CONNECTION_LOST", "PROTOCOL"), end="keep")
frames("field-h2-status-missing", lambda stream: response_frames(stream, 200, [], PICTURE).replace(
    literal(":status", 200), literal("x-status", 20)), ("PROTOCOL", "CONNECTION_LOST"), end="keep")
for status in ("", "2", "20", "2000", "abc", "-20", "0", "20 ", " 200", "+20", "2\x000", "99999999999999999999"):
    frames(f"field-h2-status-{status.encode().hex() or 'empty'}",
           lambda stream, status=status: response_frames(stream, status, [], PICTURE), ("PROTOCOL", "CONNECTION_LOST"),
           end="keep")
