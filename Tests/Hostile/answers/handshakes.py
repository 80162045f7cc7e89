"""What comes in place of TLS, and what proxies answer to CONNECT."""
import struct

from answer import ENDLESS, FLOOD, handshake, tunnel
from pictures import good
from wire import chunked, head

PICTURE = good(3, 5)


def record(kind, data, version=0x0303, length=None):
    return struct.pack(">BHH", kind, version, len(data) if length is None else length) + data


def alert(level, number):
    return record(21, bytes([level, number]))


LOST = ("TLS_FAILED", "CONNECTION_LOST")
for name, data in {
        "nothing": b"", "http": head(("Content-Length", 0)), "picture": PICTURE, "garbage": b"garbage" * 5000,
        "zeros": bytes(50000), "one-byte": b"\x16",
        "record-empty": record(22, b""), "records-empty-5000": record(22, b"") * 5000,
        "record-cut": record(22, b"\2\0\0\x50"), "record-longest": record(22, bytes(65535)),
        "record-lies": record(22, b"\2", length=16384), "version-ssl2": b"\x80\x2e\1\3\1" + bytes(50),
        "version-ssl3": record(22, b"\2\0\0\2\3\0", 0x0300),
        "version-9": record(22, b"\2\0\0\2\3\3", 0x0909), "hello-short": record(22, b"\2\0\0\4\3\3\0\0"),
        "hello-garbage": record(22, b"\2\0\0\x60" + b"\xff" * 96),
        "hello-16-mib": record(22, b"\2\xff\xff\xff" + bytes(16000)), "client-hello-back": record(22,
        b"\1\0\0\x30" + bytes(48)), "certificate-first": record(22, b"\x0b\0\0\5\0\0\2\0\0"),
        "finished-first": record(22, b"\x14\0\0\x0c" + bytes(12)), "data-first": record(23, PICTURE),
        "change-cipher": record(20, b"\1") * 50, "heartbeat": record(24, b"\1\x40\0"),
        "alert-handshake": alert(2, 40), "alert-version": alert(2, 70), "alert-name": alert(2, 112),
        "alert-internal": alert(2, 80), "alert-unknown": alert(2, 255),
        "alert-close": alert(1, 0), "alert-warnings": alert(1, 100) * 2000, "alert-protocol": alert(2, 120),
}.items():
    handshake(f"tls-{name}", data, LOST)
    handshake(f"tls-{name}-silence", data, (*LOST, "CONNECT_TIMEOUT", "IDLE_TIMEOUT"), end="hold",
        options={"connect_timeout_ms": 1500})


def server_hello(version, cipher):
    body = struct.pack(">H", version) + bytes(range(32)) + b"\0" + struct.pack(">HB", cipher, 0) + b"\0\5\xff\1\0\1\0"
    return record(22, b"\2\0" + struct.pack(">H", len(body)) + body)


# The oldest version that is spoken waits for what comes behind the hello; what is older ends there.
for version, name in ((0x0301, "1-0"), (0x0302, "1-1")):
    handshake(f"tls-version-{name}", server_hello(version, 0xC013), "TLS_FAILED", end="hold", options={"connect_timeout_ms": 1500},
        says="TLS 1.2 and 1.3")
handshake("tls-version-1-2", server_hello(0x0303, 0xC02F), "CONNECT_TIMEOUT", end="hold", options={"connect_timeout_ms": 1500})
handshake("tls-reset", b"", LOST, end="reset")
handshake("tls-flood-of-warnings", lambda: (alert(1, 100) * 5000 for _ in range(ENDLESS)), (FLOOD, *LOST), is_flood=True)
handshake("tls-flood-of-hellos", lambda: (record(22, b"\0\0\0\0") * 5000 for _ in range(ENDLESS)), (FLOOD, *LOST), is_flood=True)

# ---- A proxy's answer to CONNECT: in the budget of the header, too.
FAILED = ("PROXY_FAILED", "PROTOCOL", "CONNECTION_LOST")
for status in (100, 101, 199, 204, 300, 301, 302, 304, 400, 403, 404, 407, 418, 500, 502, 503, 504, 999):
    tunnel(f"tunnel-{status}", head(("Content-Length", 0), ("Location", "http://127.0.0.1:1/"), status=f"{status} X"),
        FAILED if status >= 200 else (
        *FAILED, "TLS_FAILED"))
for name, data in {
        "nothing": b"", "garbage": b"\xff\xfe garbage\r\n\r\n", "http09": PICTURE, "line-alone": b"HTTP/1.1 200 OK\r\n",
        "cut": b"HTTP/1.1 20", "two-digits": head(status="20 X"),
        "letters": head(status="abc"), "nul": head(("X", "a\0b"), status="502 X"),
        "controls": head(("X", "\x1b[2J"), status="502 \x1b[2J\x07"),
        "tls-of-none": head(status="200 OK") + b"garbage", "answer-behind": head(status="200 OK") +
        head(("Content-Length", len(PICTURE))) + PICTURE,
        "body-behind": head(("Content-Length", 5), status="502 X") + b"xxxxx",
        "chunks-behind": head(("Transfer-Encoding", "chunked"), status="502 X") + chunked(b"no"),
        "length-2-64": head(("Content-Length", 2 ** 64), status="407 X"),
        "length-negative": head(("Content-Length", "-1"), status="407 X"),
        "space-first": b"HTTP/1.1 200 OK\r\n X: y\r\n\r\n", "challenge": head(("Proxy-Authenticate",
        "Basic realm=\"x\""), ("Content-Length", 0), status="407 X"),
        "challenge-garbage": head(("Proxy-Authenticate", "\xff" * 5000), ("Content-Length", 0), status="407 X"),
        "challenge-digest-900": head(*[("Proxy-Authenticate", "Digest realm=x, nonce=y")] * 900, ("Content-Length", 0),
        status="407 X"),
}.items():
    tunnel(f"tunnel-{name}", data, (*FAILED, "TLS_FAILED"))
tunnel("tunnel-silence", b"", ("CONNECT_TIMEOUT", "IDLE_TIMEOUT", "PROXY_FAILED"), end="hold",
    options={"connect_timeout_ms": 1500})
tunnel("tunnel-reset", b"", FAILED, end="reset")
# libcurl reads it byte by byte: it may be a flood before it is too much.
tunnel("tunnel-header-300-kib", head(*[("X", "y" * 3000)] * 100, status="200 OK"), ("HEADER_LIMIT", FLOOD))
tunnel("tunnel-field-101-kib", head(("X", "y" * (101 << 10)), status="200 OK"), "HEADER_LIMIT", says="16383")
tunnel("tunnel-fields-1100", head(*[("X", "y")] * 1100, status="200 OK"), "HEADER_LIMIT")
tunnel("tunnel-interim-20000", head(status="100 X") * 20000, "PROXY_FAILED")
tunnel("tunnel-endless-fields", lambda: (b"HTTP/1.1 200 OK\r\n" if not at else b"X-Y: z\r\n" * 5000 for at in range(
    ENDLESS)), ("HEADER_LIMIT", FLOOD), is_flood=True)
tunnel("tunnel-endless-line", lambda: (b"HTTP/1.1 200 " if not at else b"x" * 65536 for at in range(ENDLESS)),
    "HEADER_LIMIT", is_flood=True)
tunnel("tunnel-endless-body", lambda: (head(status="502 X") if not at else bytes(65536) for at in range(ENDLESS)),
    (*FAILED, "TOTAL_TIMEOUT", "CONNECT_TIMEOUT"),
       is_flood=True, options={"connect_timeout_ms": 1500}, cpu=1)
tunnel("tunnel-endless-chunk-trailers", lambda: (
    head(("Transfer-Encoding", "chunked"), status="502 X") + b"0\r\n" if not at else b"X: y\r\n" * 5000 for at in range(
    ENDLESS)),
    (*FAILED, "HEADER_LIMIT", "TOTAL_TIMEOUT", "CONNECT_TIMEOUT"), is_flood=True, options={"connect_timeout_ms": 1500},
    cpu=1)
