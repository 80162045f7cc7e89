"""What answers are made of on the wire: heads and chunks of HTTP/1.1, frames of HTTP/2 with literal HPACK, by hand."""
import struct

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM = ACK = 0x1
END_HEADERS, PADDED, HAS_PRIORITY = 0x4, 0x8, 0x20
MAX_FRAME = 16384


def raw_bytes(value):
    """Text of a field: bytes as they are, of text each character is a byte."""
    return value if isinstance(value, bytes) else str(value).encode("latin-1")


# ---- HTTP/1.1

def head(*fields, status="200 OK", version="HTTP/1.1"):
    """A head: fields as pairs, or as whole lines without their end."""
    lines = [raw_bytes(f"{version} {status}")]
    for field in fields:
        lines.append(raw_bytes(field) if isinstance(field, (bytes, str)) else
                     raw_bytes(field[0]) + b": " + raw_bytes(field[1]))
    return b"\r\n".join(lines) + b"\r\n\r\n"


def chunk(data, extension=b""):
    return b"%x" % len(data) + extension + b"\r\n" + data + b"\r\n"


def chunked(data, size=1000, trailers=()):
    parts = [chunk(data[at:at + size]) for at in range(0, len(data), size)]
    return b"".join(parts) + b"0\r\n" + b"".join(raw_bytes(n) + b": " + raw_bytes(v) + b"\r\n" for n,
        v in trailers) + b"\r\n"


# ---- HTTP/2 (RFC 9113), HPACK (RFC 7541)

def frame(kind, flags=0, stream=0, payload=b"", length=None):
    """`length`: what the frame says of itself, where that is not so."""
    length = len(payload) if length is None else length
    return struct.pack(">I", length)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def integer(value, prefix, first=0):
    """RFC 7541 section 5.1."""
    most = (1 << prefix) - 1
    if value < most:
        return bytes([first | value])
    out, value = [first | most], value - most
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes(out + [value])


def string(value):
    value = raw_bytes(value)
    return integer(len(value), 7) + value


def literal(name, value, first=0x00):
    """Without indexing (0x00), never indexed (0x10), with indexing (0x40); the name is new."""
    return bytes([first]) + string(name) + string(value)


def fields_block(fields):
    return b"".join(literal(name, value) for name, value in fields)


def header_frames(stream, block, ends_stream=False, most=MAX_FRAME):
    parts = [block[at:at + most] for at in range(0, len(block), most)] or [b""]
    flags = END_STREAM if ends_stream else 0
    out = []
    for at, part in enumerate(parts):
        last = END_HEADERS if at == len(parts) - 1 else 0
        out.append(frame(CONTINUATION if at else HEADERS, (0 if at else flags) | last, stream, part))
    return b"".join(out)


def data_frames(stream, body, ends_stream=True, most=MAX_FRAME):
    parts = [body[at:at + most] for at in range(0, len(body), most)] or [b""]
    return b"".join(frame(DATA, END_STREAM if ends_stream and at == len(parts) - 1 else 0, stream, part)
                    for at, part in enumerate(parts))


def response_frames(stream, status=200, fields=(), body=b"", trailers=None):
    block = literal(":status", status) + fields_block(fields)
    out = header_frames(stream, block, ends_stream=not body and trailers is None)
    if body:
        out += data_frames(stream, body, ends_stream=trailers is None)
    if trailers is not None:
        out += header_frames(stream, fields_block(trailers), ends_stream=True)
    return out


def settings(*pairs, ack=False):
    return frame(SETTINGS, ACK if ack else 0, 0, b"".join(struct.pack(">HI", *pair) for pair in pairs))


def goaway(last=0, error=0, text=b""):
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, error) + text)


def rst_stream(stream, error):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", error))


def window_update(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", increment))
