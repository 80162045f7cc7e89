"""Where a body ends: Content-Length, Transfer-Encoding, the connection."""
from answer import ENDLESS, EACH, frames, raw, reply
from pictures import good
from wire import chunked, data_frames, head, header_frames, literal, response_frames

PICTURE = good(3, 5)
LENGTH = len(PICTURE)
BODY = {"flags": 1}  # IMGDL_REQUEST_BODY

# ---- Numbers that are none
for name, value in {
        "empty": "", "space": " ", "letters": "abc", "negative": "-1", "negative-zero": "-0", "plus": f"+{LENGTH}",
        "hex": hex(LENGTH), "octal-like": f"0{LENGTH}x", "float": f"{LENGTH}.0", "exponent": "1e2",
        "two": f"{LENGTH} {LENGTH}",
        "list-differs": f"{LENGTH}, 5", "list-empty-part": f"{LENGTH},", "list-letters": f"{LENGTH}, x", "comma": ",",
        "quoted": f'"{LENGTH}"', "semicolon": f"{LENGTH};", "2-63": str(2 ** 63), "2-64": str(2 ** 64),
        "2-64-plus": str(2 ** 64 + LENGTH),
        "2-128": str(2 ** 128), "forty-digits": "9" * 40, "1000-digits": "9" * 1000, "underscore": "1_0",
        "full-width": "\uff11".encode(), "nbsp": b"\xa0" + str(LENGTH).encode(), "vertical-tab": f"\x0b{LENGTH}",
}.items():
    raw(f"length-{name}", head(("Content-Length", value)) + PICTURE, "PROTOCOL")
    frames(f"length-h2-{name}", lambda stream, value=value: response_frames(
        stream, 200, [("content-length", value)], PICTURE), ("PROTOCOL", "CONNECTION_LOST"), end="keep")

# ---- Numbers that are not true
reply("length-leading-zeros", "OK", fields=[("Content-Length", f"000000{LENGTH}")], body=PICTURE, width=3)
reply("length-zero-digits-1000", "OK", fields=[("Content-Length", "0" * 1000 + str(LENGTH))], body=PICTURE, width=3,
      protocols=EACH[:2])
raw("length-list-same", head(("Content-Length", f"{LENGTH}, {LENGTH}")) + PICTURE, ("OK", "PROTOCOL"))
raw("length-twice-same", head(("Content-Length", LENGTH), ("Content-Length", LENGTH)) + PICTURE, "OK", width=3)
raw("length-twice-differs", head(("Content-Length", LENGTH), ("Content-Length", 5)) + PICTURE, "PROTOCOL")
raw("length-twice-differs-first-shorter", head(("Content-Length", 5), ("Content-Length", LENGTH)) + PICTURE, "PROTOCOL")
raw("length-900-times", head(*[("Content-Length", LENGTH)] * 900) + PICTURE, "OK", width=3)
raw("length-too-long-then-close", head(("Content-Length", LENGTH + 100)) + PICTURE, ("TRUNCATED", "OK"))
raw("length-too-long-then-close-body", head(("Content-Length", LENGTH + 100)) + PICTURE, "TRUNCATED", options=BODY)
raw("length-too-long-then-reset", head(("Content-Length", LENGTH + 100)) + PICTURE[:20],
    ("CONNECTION_LOST", "TRUNCATED"),
    end="reset")
raw("length-too-long-then-silence", head(("Content-Length", LENGTH + 100)) + PICTURE[:20], "IDLE_TIMEOUT", end="hold",
    within=4)
raw("length-too-short", head(("Content-Length", 20)) + PICTURE, "TRUNCATED")
raw("length-too-short-body", head(("Content-Length", 20)) + PICTURE, "OK", options=BODY, length=20)
raw("length-zero-with-body", head(("Content-Length", 0)) + PICTURE, "BAD_IMAGE_DATA")
raw("length-with-second-answer", head(("Content-Length", LENGTH)) + PICTURE + head(("Content-Length",
    len(good(9, 9)))) +
    good(9, 9), "OK", end="keep", width=3, pieces=("one",))
raw("length-with-garbage-behind", head(("Content-Length", LENGTH)) + PICTURE + b"\0\1\2garbage" * 900, "OK", end="keep",
    width=3)
raw("length-with-line-ends-behind", head(("Content-Length", LENGTH)) + PICTURE + b"\r\n\r\n", "OK", end="keep", width=3)
for name, value in {"2-63-less-1": 2 ** 63 - 1, "2-62": 2 ** 62, "2-32": 2 ** 32, "2-31": 2 ** 31,
    "256-mib-and-1": (256 << 20) + 1,
                    }.items():
    raw(f"length-announces-{name}", head(("Content-Length", value)) + PICTURE, "BODY_LIMIT", says="268435456")
    frames(f"length-announces-h2-{name}", lambda stream, value=value: header_frames(
        stream, literal(":status", 200) + literal("content-length", value)) + data_frames(stream, PICTURE, False),
        "BODY_LIMIT", end="keep", says="268435456")
reply("length-announces-error-page", "INVALID_STATUS", status=404, fields=[("Content-Length", 2 ** 62)], body=b"no",
      protocols=EACH[:2], end="hold", within=4)
raw("length-announces-redirect", head(("Content-Length", 2 ** 62), ("Location", "/good"), status="302 X") + b"no", "OK",
    end="hold", within=4)
reply("length-limit-of-own", "BODY_LIMIT", body=bytes(5000), options={"max_body_bytes": 4999, **BODY}, says="4999")
reply("length-limit-met", "OK", body=bytes(5000), options={"max_body_bytes": 5000, **BODY})
raw("length-none-then-close", head() + PICTURE, "OK", width=3)
raw("length-none-cut", head() + PICTURE[:40], "TRUNCATED")
raw("length-none-limit", lambda request: [head()] + [bytes(5000)] * 40, "BODY_LIMIT",
    options={"max_body_bytes": 100000, **BODY})
raw("length-none-endless", lambda request: (bytes(65536) if at else head() for at in range(ENDLESS)), "BODY_LIMIT",
    options={"max_body_bytes": 10 << 20, **BODY}, is_flood=True, memory=60, cpu=0.5)
raw("length-none-endless-no-picture", lambda request: (bytes(65536) if at else head() for at in range(ENDLESS)),
    "BAD_IMAGE_DATA",
    is_flood=True, cpu=0.3)
raw("length-204-with-body", head(("Content-Length", LENGTH), status="204 X") + PICTURE, "BAD_IMAGE_DATA")
raw("length-304-with-body", head(("Content-Length", LENGTH), status="304 X") + PICTURE, "INVALID_STATUS")
raw("length-head-with-body", head(("Content-Length", LENGTH)) + PICTURE, "OK", options={"method": "HEAD", "flags": 17})

# ---- Two ways at once, and codings of the transfer
CHUNKED = chunked(PICTURE)
raw("transfer-and-length", head(("Content-Length", 5), ("Transfer-Encoding", "chunked")) + CHUNKED, "OK", width=3)
raw("transfer-and-length-broken", head(("Content-Length", "x"), ("Transfer-Encoding", "chunked")) + CHUNKED,
    ("OK", "PROTOCOL"))
raw("transfer-behind-length", head(("Transfer-Encoding", "chunked"), ("Content-Length", 2 ** 62)) + CHUNKED, "OK",
    width=3)
for name, value in {
        "gzip": "gzip", "gzip-chunked": "gzip, chunked", "chunked-gzip": "chunked, gzip", "unknown": "x",
        "deflate": "deflate",
        "compress": "compress", "br": "br", "parameters": "chunked;a=b", "quoted": '"chunked"', "prefix": "xchunked",
        "suffix": "chunkedx", "control": "\x0bchunked", "nul": "chunked\0", "many": ", ".join(["gzip"] * 5000),
}.items():
    raw(f"transfer-{name}", head(("Transfer-Encoding", value)) + CHUNKED, "PROTOCOL")
raw("transfer-identity", head(("Transfer-Encoding", "identity")) + PICTURE, "OK", width=3)
raw("transfer-empty", head(("Transfer-Encoding", "")) + PICTURE, ("OK", "PROTOCOL"))
for name, value in {"empty": "", "comma": ",", "identity": "identity", "identity-twice": "identity, identity"}.items():
    raw(f"transfer-{name}-and-length", head(("Content-Length", 2 * LENGTH), ("Transfer-Encoding", value)) + PICTURE, "PROTOCOL")
    raw(f"transfer-{name}-without-end", head(("Transfer-Encoding", value)) + PICTURE[:-12], "TRUNCATED")
raw("transfer-upper-case", head(("Transfer-Encoding", "CHUNKED")) + CHUNKED, "OK", width=3)
raw("transfer-chunked-twice", head(("Transfer-Encoding", "chunked, chunked")) + CHUNKED, ("PROTOCOL", "OK"))
raw("transfer-chunked-in-two-fields", head(("Transfer-Encoding", "chunked"),
    ("Transfer-Encoding", "chunked")) + CHUNKED,
    ("PROTOCOL", "OK"))
raw("transfer-chunked-900-times", head(*[("Transfer-Encoding", "chunked")] * 900) + CHUNKED, ("PROTOCOL", "OK"))
raw("transfer-in-http10", head(("Transfer-Encoding", "chunked"), version="HTTP/1.0") + CHUNKED, ("OK", "PROTOCOL"))
raw("transfer-folded", b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n" + CHUNKED,
    ("OK", "PROTOCOL", "BAD_IMAGE_DATA"))
raw("transfer-name-with-space", b"HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\nContent-Length: %d\r\n\r\n" % LENGTH + PICTURE,
    ("OK", "PROTOCOL"))
raw("transfer-304", head(("Transfer-Encoding", "chunked"), status="304 X"), "INVALID_STATUS")
raw("transfer-204", head(("Transfer-Encoding", "chunked"), status="204 X"), "BAD_IMAGE_DATA")
frames("length-h2-too-long", lambda stream: response_frames(stream, 200, [("content-length", LENGTH + 5)], PICTURE),
       ("CONNECTION_LOST", "PROTOCOL", "TRUNCATED"), end="keep")
# Where the rest comes later the body is as long as it says, and nothing is missing of the picture but the mark of its end.
frames("length-h2-too-short", lambda stream: response_frames(stream, 200, [("content-length", LENGTH - 5)], PICTURE),
       ("OK", "CONNECTION_LOST", "PROTOCOL", "TRUNCATED"), end="keep")
frames("length-h2-twice", lambda stream: response_frames(
    stream, 200, [("content-length", LENGTH), ("content-length", LENGTH)], PICTURE),
    ("OK", "CONNECTION_LOST", "PROTOCOL"),
    end="keep")
