"""Status lines: versions, numbers, reasons, and what is none."""
from answer import ENDLESS, raw, reply
from pictures import good
from wire import head

PICTURE = good(3, 5)
LENGTH = ("Content-Length", len(PICTURE))

raw("status-empty", b"", "CONNECTION_LOST")
raw("status-only-line-ends", b"\r\n\r\n\r\n", "PROTOCOL")
raw("status-garbage", b"\x00\x01\x02\x03 garbage\r\n\r\n", "PROTOCOL")
raw("status-html-without-head", b"<html><body>no head</body></html>", "PROTOCOL")
raw("status-picture-without-head", PICTURE, "PROTOCOL")
raw("status-http09", b"HTTP/0.9 200 OK\r\n\r\n" + PICTURE, "PROTOCOL")
raw("status-http10", head(LENGTH, version="HTTP/1.0") + PICTURE, "OK", width=3)
raw("status-http12", head(LENGTH, version="HTTP/1.2") + PICTURE, "PROTOCOL")
raw("status-http2-in-clear", head(LENGTH, version="HTTP/2") + PICTURE, ("OK", "PROTOCOL"))
raw("status-http3", head(LENGTH, version="HTTP/3") + PICTURE, "PROTOCOL")
raw("status-http99", head(LENGTH, version="HTTP/99.99") + PICTURE, "PROTOCOL")
raw("status-lower-case", head(LENGTH, version="http/1.1") + PICTURE, "PROTOCOL")
raw("status-other-protocol", head(LENGTH, version="ICY") + PICTURE, "PROTOCOL")
raw("status-rtsp", head(LENGTH, version="RTSP/1.0") + PICTURE, "PROTOCOL")
raw("status-no-version", b"HTTP 200 OK\r\n\r\n" + PICTURE, "PROTOCOL")
raw("status-no-number", b"HTTP/1.1 OK\r\n\r\n" + PICTURE, "PROTOCOL")
raw("status-letters", b"HTTP/1.1 2x0 OK\r\n\r\n" + PICTURE, "PROTOCOL")
raw("status-one-digit", head(LENGTH, status="2 OK") + PICTURE, "PROTOCOL")
raw("status-four-digits", head(LENGTH, status="2000 OK") + PICTURE, "PROTOCOL")
raw("status-ten-digits", head(LENGTH, status="4294967496 OK") + PICTURE, "PROTOCOL")
raw("status-negative", head(LENGTH, status="-200 OK") + PICTURE, "PROTOCOL")
raw("status-zero", head(LENGTH, status="000 OK") + PICTURE, "PROTOCOL")
raw("status-99", head(LENGTH, status="099 OK") + PICTURE, "PROTOCOL")
raw("status-plus", head(LENGTH, status="+200 OK") + PICTURE, "PROTOCOL")
raw("status-hex", head(LENGTH, status="0xC8 OK") + PICTURE, "PROTOCOL")
raw("status-no-reason", head(LENGTH, status="200") + PICTURE, "OK", width=3)
raw("status-no-reason-space", head(LENGTH, status="200 ") + PICTURE, "OK", width=3)
raw("status-tab-between", b"HTTP/1.1\t200\tOK\r\nContent-Length: %d\r\n\r\n" % len(PICTURE) + PICTURE,
    "PROTOCOL")
raw("status-two-spaces", b"HTTP/1.1  200 OK\r\nContent-Length: %d\r\n\r\n" % len(PICTURE) + PICTURE, ("PROTOCOL", "OK"))
raw("status-space-before", b" HTTP/1.1 200 OK\r\n\r\n" + PICTURE, "PROTOCOL")
raw("status-blank-line-before", b"\r\n" + head(LENGTH) + PICTURE, ("PROTOCOL", "OK"))
raw("status-reason-long", head(LENGTH, status="200 " + "x" * 60000) + PICTURE, "OK", width=3)
raw("status-reason-101-kib", head(LENGTH, status="200 " + "x" * (101 << 10)) + PICTURE, "HEADER_LIMIT")
raw("status-reason-controls", head(LENGTH, status="404 \x1b[31mred\x07\x00") + PICTURE, ("INVALID_STATUS", "PROTOCOL"))
raw("status-reason-not-utf8", head(LENGTH, status="500 \xff\xfe\xc3") + PICTURE, "INVALID_STATUS")
raw("status-without-end", b"HTTP/1.1 200 OK", ("CONNECTION_LOST", "PROTOCOL"))
raw("status-line-alone", b"HTTP/1.1 200 OK\r\n", ("CONNECTION_LOST", "PROTOCOL"))
raw("status-line-feed-alone", b"HTTP/1.1 200 OK\nContent-Length: %d\n\n" % len(PICTURE) + PICTURE, "OK", width=3)
raw("status-return-alone", b"HTTP/1.1 200 OK\rContent-Length: 5\r\r", ("PROTOCOL", "CONNECTION_LOST"))
raw("status-endless-line", lambda request: (b"x" * 65536 for _ in range(ENDLESS)), "PROTOCOL", is_flood=True)
raw("status-endless-http", lambda request: (b"HTTP/1.1 200 " if not at else b"x" * 65536 for at in range(ENDLESS)),
    "HEADER_LIMIT", is_flood=True)
raw("status-said-twice", b"HTTP/1.1 200 OK\r\nHTTP/1.1 404 No\r\n" + head(LENGTH)[17:] + PICTURE,
    ("OK", "PROTOCOL", "INVALID_STATUS"))
raw("status-holds-return", b"HTTP/1.1 200 OK\rX: y\r\nContent-Length: %d\r\n\r\n" % len(PICTURE) + PICTURE,
    ("OK", "PROTOCOL"))
raw("status-holds-nul", b"HTTP/1.1 200 O\0K\r\nContent-Length: %d\r\n\r\n" % len(PICTURE) + PICTURE, ("OK", "PROTOCOL"))

for number in (201, 203, 206, 226, 299):
    # What is accepted is decoded, whatever it says of itself.
    reply(f"status-{number}", "OK", status=number, body=PICTURE, width=3,
          fields=[("Content-Range", f"bytes 0-{len(PICTURE) - 1}/{len(PICTURE)}")] if number == 206 else ())
for number in (204, 205):
    reply(f"status-{number}", "BAD_IMAGE_DATA", status=number)
for number in (300, 304, 305, 306, 310, 399):
    reply(f"status-{number}", "INVALID_STATUS", status=number)
for number in (400, 401, 402, 403, 404, 405, 407, 408, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422, 425, 426,
    428,
               429, 431, 451, 499, 500, 501, 502, 503, 504, 505, 507, 511, 599, 600, 799, 999):
    reply(f"status-{number}", "INVALID_STATUS", status=number, body=b"no", says=str(number))
