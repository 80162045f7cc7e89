"""Codings of content: gzip, deflate, br, zstd, on top of each other; bombs, cuts, and what is none."""
import ctypes
import gzip
import struct
import zlib

from answer import ENDLESS, raw, reply
from pictures import good
from wire import chunked, head

PICTURE = good(3, 5)
GZIP = gzip.compress(PICTURE, mtime=0)
BODY = {"flags": 1}


def uses_brotli():
    """Whether libbrotlidec has no CVE-2026-111497. One that has is not used: each body in br is CONTENT_ENCODING."""
    words = ctypes.CDLL("libbrotlidec.so.1").BrotliDecoderErrorString
    words.restype = ctypes.c_char_p
    return words(-17) == b"BLOCK_SWITCH"


USES_BROTLI = uses_brotli()


def coded(name, code, coding, body, **bounds):
    # A coding that cannot be undone fails with the first byte of what is to be undone.
    if not USES_BROTLI and body and "br" in [each.strip().lower() for each in coding.split(",")]:
        code = "CONTENT_ENCODING"
        bounds.pop("width", None)
    reply(f"coding-{name}", code, fields=[("Content-Encoding", coding)], body=body, **bounds)


def zstd_block(kind, size, data, last=False):
    return struct.pack("<I", int(last) | kind << 1 | size << 3)[:3] + data


def zstd_frame(*blocks, descriptor=b"\x00\x58"):
    """Descriptor: no checksum, a window of 2 MiB."""
    return b"\x28\xb5\x2f\xfd" + descriptor + b"".join(blocks)


ZSTD = zstd_frame(zstd_block(0, len(PICTURE), PICTURE, last=True))
ZSTD_BOMB = zstd_frame(*([zstd_block(1, 128 << 10, b"\0")] * 20000), zstd_block(1, 1, b"\0", last=True))
def brotli(data):
    """WBITS 16 is a bit of 0; ISLAST 0; MNIBBLES 4 as 00; MLEN-1; ISUNCOMPRESSED 1; then to the next byte."""
    bits = 0 | 0 << 1 | 0 << 2 | (len(data) - 1) << 4 | 1 << 20
    return struct.pack("<I", bits)[:3] + data + b"\x03"


def bytes_of(bits):
    """The first bit is the lowest of the first byte."""
    bits = bits + [0] * (-len(bits) % 8)
    return bytes(sum(bits[start + bit] << bit for bit in range(8)) for start in range(0, len(bits), 8))


def fields_of_bits(*fields):
    """Bits of (value, how many), each from its lowest one."""
    return [value >> bit & 1 for value, count in fields for bit in range(count)]


def context_maps(count):
    """Blocks of brotli with a byte each, 256 types of literals, and a context map of 16,384 zeros."""
    block = fields_of_bits(
        (0, 1), (0, 2), (0, 16), (0, 1), (1, 1), (7, 3), (127, 7), (1, 2), (0, 2), (0, 9), (1, 2), (0, 2), (0, 5), (0, 2),
        (0, 1), (0, 1), (0, 2), (0, 4), *[(0, 2)] * 256,
        (1, 1), (0, 3), (1, 1), (15, 4), (1, 2), (0, 2), (14, 5), (0, 14), (1, 1), (0, 1),
        *[(1, 2), (0, 2), (65, 8)] * 2, (1, 2), (0, 2), (8, 10), (1, 2), (0, 2), (0, 6))
    # Eight blocks are whole bytes: made once, and moved by the first bit.
    blocks = int.from_bytes(bytes_of(block * 8) * (count // 8) + bytes_of(block * (count % 8)), "little")
    length = len(block) * count
    return (blocks << 1 | 3 << length + 1).to_bytes((length + 3 + 7) // 8, "little")


def prefix_code(lengths):
    """Of each symbol its bits, from the highest one (RFC 1951 section 3.2.2)."""
    code, codes = 0, {}
    for length in range(1, 16):
        code <<= 1
        for symbol, own in enumerate(lengths):
            if own == length:
                codes[symbol] = [code >> bit & 1 for bit in reversed(range(length))]
                code += 1
    return codes


def deflate_tables(count):
    """gzip of dynamic blocks without contents, whose tables are as deep as can be."""
    order = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)
    lengths = prefix_code([0] + [4] * 15 + [0, 0, 4])
    block = fields_of_bits((0, 1), (2, 2), (0, 5), (15, 5), (15, 4), *[(4 if n == 18 or 1 <= n <= 15 else 0, 3)
                                                                      for n in order])
    for length in range(1, 16):
        block += lengths[length]
    for zeros in (138, 103):
        block += lengths[18] + fields_of_bits((zeros - 11, 7))
    for length in (15, *range(1, 16), 15):
        block += lengths[length]
    block += prefix_code([*range(1, 16), *[0] * 241, 15])[256]
    # A number of blocks that is one of whole bytes; then the last one, stored.
    return (b"\x1f\x8b\x08" + bytes(6) + b"\xff" + bytes_of(block * 8) * (count // 8)
            + b"\x01\0\0\xff\xff" + bytes(8))


def zstd_tables(count):
    """A literal in each block, and a Huffman tree for it."""
    tree = bytes([138, 0xBA, 0x98, 0x76, 0x54, 0x32, 0x10]) + b"\x03"
    content = (2 | 1 << 4 | len(tree) << 14).to_bytes(3, "little") + tree + b"\0"
    return zstd_frame(*[zstd_block(2, len(content), content)] * count, zstd_block(0, 0, b"", last=True),
                      descriptor=b"\0\x38")


def deflate(data, bits):
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    return packer.compress(data) + packer.flush()


coded("gzip", "OK", "gzip", GZIP, width=3)
coded("x-gzip", "OK", "x-gzip", GZIP, width=3)
coded("deflate", "OK", "deflate", deflate(PICTURE, 15), width=3)
coded("deflate-raw", "OK", "deflate", deflate(PICTURE, -15), width=3)
coded("br", "OK", "br", brotli(PICTURE), width=3)
coded("zstd", "OK", "zstd", ZSTD, width=3)
coded("upper-case", "OK", "GZIP", GZIP, width=3)
coded("identity-and-gzip", "OK", "identity, gzip, identity", GZIP, width=3)

# ---- Where there is nothing to decode, or nobody who wants it, the status decides
SIX = [("Content-Encoding", ", ".join(["gzip"] * 6))]
reply("coding-six-of-404", "INVALID_STATUS", status=404, fields=SIX, body=GZIP)
reply("coding-six-of-500", "INVALID_STATUS", status=500, fields=SIX, body=GZIP)
reply("coding-six-of-redirect", "OK", status=302, fields=[*SIX, ("Location", "/good")], body=GZIP, width=3)
reply("coding-six-of-redirect-of-nothing", "OK", status=302, fields=[*SIX, ("Location", "/good")], width=3)

# ---- Not what it says
for coding in ("gzip", "deflate", "br", "zstd"):
    coded(f"{coding}-garbage", "CONTENT_ENCODING", coding, b"\x8f\x00\x01garbage" * 50)
    coded(f"{coding}-empty", "BAD_IMAGE_DATA", coding, b"")
    coded(f"{coding}-of-nothing", "BAD_IMAGE_DATA", coding,
          {"gzip": gzip.compress(b"", mtime=0), "deflate": zlib.compress(b""), "br": b"\x06",
           "zstd": zstd_frame(zstd_block(0, 0, b"", last=True))}[coding])
for coding, body in {"gzip": GZIP, "deflate": zlib.compress(PICTURE), "br": brotli(PICTURE), "zstd": ZSTD}.items():
    coded(f"{coding}-cut", "TRUNCATED", coding, body[:len(body) // 2])
    coded(f"{coding}-cut-first-byte", ("TRUNCATED", "CONTENT_ENCODING"), coding, body[:1])
    coded(f"{coding}-cut-last-byte-body", "TRUNCATED", coding, body[:-1], options=BODY)
    coded(f"{coding}-bytes-behind", "OK", coding, body + b"\xff" * 1000, width=3)
    coded(f"{coding}-megabyte-behind", ("CONTENT_ENCODING", "OK"), coding, body + b"\xff" * (1 << 20), options=BODY)
    coded(f"{coding}-flipped", ("CONTENT_ENCODING", "TRUNCATED", "BAD_IMAGE_DATA"), coding,
          body[:3] + bytes([body[3] ^ 0xFF]) + body[4:] if coding == "gzip" else body[:2] + bytes(
              byte ^ 0x55 for byte in body[2:]))
coded("gzip-checksum-wrong", "CONTENT_ENCODING", "gzip", GZIP[:-8] + b"\0\0\0\0" + GZIP[-4:], options=BODY)
coded("gzip-length-wrong", "CONTENT_ENCODING", "gzip", GZIP[:-4] + b"\0\0\0\0", options=BODY)
coded("gzip-name-long", "OK", "gzip", GZIP[:3] + b"\x08" + GZIP[4:10] + b"x" * 60000 + b"\0" + GZIP[10:], width=3)
coded("gzip-extra-long", "OK", "gzip", GZIP[:3] + b"\x04" + GZIP[4:10] + b"\xff\xff" + bytes(65535) + GZIP[10:],
    width=3)
coded("gzip-name-endless", ("TRUNCATED", "CONTENT_ENCODING"), "gzip", GZIP[:3] + b"\x08" + GZIP[4:10] + b"x" * 500000)
coded("gzip-method-other", "CONTENT_ENCODING", "gzip", GZIP[:2] + b"\x09" + GZIP[3:])
coded("gzip-flags-reserved", "CONTENT_ENCODING", "gzip", GZIP[:3] + b"\xe0" + GZIP[4:])
coded("gzip-two-members", "OK", "gzip", gzip.compress(PICTURE[:30], mtime=0) + gzip.compress(PICTURE[30:], mtime=0),
    width=3)
coded("gzip-members-5000-empty", ("OK", "CONTENT_ENCODING"), "gzip", gzip.compress(b"", mtime=0) * 5000 + GZIP)
coded("gzip-members-then-garbage", ("OK", "CONTENT_ENCODING"), "gzip", GZIP + b"\x1f\x8b\xff" * 300)
coded("gzip-blocks-empty-stored", ("OK", "TRUNCATED"), "gzip", GZIP[:10] + b"\0\0\0\xff\xff" * 100000 + GZIP[10:])
coded("deflate-dictionary", "CONTENT_ENCODING", "deflate", b"\x78\xbb\0\0\0\1" + zlib.compress(PICTURE)[2:])
coded("deflate-empty-stored-blocks", "BAD_IMAGE_DATA", "deflate", b"\x78\x01" + b"\0\0\0\xff\xff" * 100000 +
      zlib.compress(b"")[2:], cpu=0.3)
coded("zstd-window-too-large", "CONTENT_ENCODING", "zstd", zstd_frame(zstd_block(0, 5, b"xxxxx", last=True),
                                                                      descriptor=b"\x00\xa0"))
coded("zstd-window-largest", "CONTENT_ENCODING", "zstd", zstd_frame(zstd_block(0, 5, b"xxxxx", last=True),
                                                                    descriptor=b"\x00\xff"))
# Windows of 8 MiB on top of each other, each asked for with six bytes: two are allowed.
WINDOWS = [ZSTD]
for _ in range(5):
    WINDOWS.append(zstd_frame(zstd_block(0, len(WINDOWS[-1]), WINDOWS[-1], last=True), descriptor=b"\0\x68"))
coded("zstd-windows-two", "OK", "zstd, zstd, zstd", WINDOWS[2], width=3)
coded("zstd-windows-three", "CONTENT_ENCODING", "zstd, zstd, zstd, zstd", WINDOWS[3], says="memory")
coded("zstd-windows-five", "CONTENT_ENCODING", "zstd, zstd, zstd, zstd, zstd", WINDOWS[5], says="memory")
coded("zstd-size-2-64", ("CONTENT_ENCODING", "TRUNCATED"), "zstd", zstd_frame(
    zstd_block(0, 5, b"xxxxx", last=True), descriptor=b"\xe0" + b"\xff" * 8))
coded("zstd-dictionary", "CONTENT_ENCODING", "zstd", zstd_frame(zstd_block(0, 5, b"xxxxx", last=True),
                                                                descriptor=b"\x03\x58\1\2\3\4"))
coded("zstd-block-reserved", "CONTENT_ENCODING", "zstd", zstd_frame(zstd_block(3, 5, b"xxxxx", last=True)))
coded("zstd-block-too-large", "CONTENT_ENCODING", "zstd", zstd_frame(zstd_block(1, (1 << 21) - 1, b"x", last=True)))
coded("zstd-skippable-first", "OK", "zstd", b"\x50\x2a\x4d\x18" + struct.pack("<I", 1000) + bytes(1000) + ZSTD, width=3)
coded("zstd-skippable-4-gib", ("TRUNCATED", "CONTENT_ENCODING"), "zstd",
    b"\x50\x2a\x4d\x18\xff\xff\xff\xff" + bytes(1000))
coded("zstd-skippables-empty-20000", ("OK", "CONTENT_ENCODING"), "zstd", b"\x50\x2a\x4d\x18\0\0\0\0" * 20000 + ZSTD)
coded("zstd-blocks-empty-100000", ("BAD_IMAGE_DATA", "CONTENT_ENCODING"), "zstd", zstd_frame(
    *([zstd_block(0, 0, b"")] * 100000), zstd_block(0, 0, b"", last=True)), cpu=0.3)
coded("zstd-frames-empty-20000", ("OK", "CONTENT_ENCODING"), "zstd", zstd_frame(zstd_block(0, 0, b"",
    last=True)) * 20000 + ZSTD)
coded("br-large-window", "CONTENT_ENCODING", "br", b"\x11\x1f" + bytes(50))
coded("br-metadata-blocks", ("BAD_IMAGE_DATA", "CONTENT_ENCODING", "TRUNCATED"), "br", b"\x0c" * 100000)

# ---- Bombs: 2 GB and more from little; no picture is found out at its first bytes, a body by its limit.
GZIP_BOMB = deflate(bytes(64 << 20), 31)
coded("gzip-bomb", "BAD_IMAGE_DATA", "gzip", GZIP_BOMB)
coded("gzip-bomb-body", "BODY_LIMIT", "gzip", GZIP_BOMB, options={"flags": 1, "max_body_bytes": 1 << 20}, cpu=0.4)
coded("gzip-bomb-behind-picture", ("OK", "BODY_LIMIT"), "gzip", deflate(PICTURE + bytes(32 << 20), 31),
      options={"max_body_bytes": 1 << 20})
coded("gzip-twice-bomb", "BAD_IMAGE_DATA", "gzip, gzip", deflate(GZIP_BOMB, 31))
coded("gzip-name-without-end", "BODY_LIMIT", "gzip", b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * (2 << 20),
      options={"flags": 1, "max_body_bytes": 1 << 20})
coded("gzip-many-empty-blocks", "BODY_LIMIT", "gzip", GZIP[:10] + b"\0\0\0\xff\xff" * 400000 + GZIP[10:],
      options={"flags": 1, "max_body_bytes": 1 << 20})
coded("gzip-twice-bomb-body", "BODY_LIMIT", "gzip, gzip", deflate(GZIP_BOMB, 31),
      options={"flags": 1, "max_body_bytes": 1 << 20}, cpu=0.4)
coded("gzip-three-times-bomb-body", "BODY_LIMIT", "gzip, gzip, gzip", deflate(deflate(GZIP_BOMB, 31), 31),
      options={"flags": 1, "max_body_bytes": 1 << 20}, cpu=0.4)
coded("gzip-bomb-of-members", ("OK", "CONTENT_ENCODING"), "gzip, gzip",
    deflate(gzip.compress(b"", mtime=0) * 50000, 31),
      options=BODY, cpu=0.5)
coded("zstd-bomb", "BAD_IMAGE_DATA", "zstd", ZSTD_BOMB)
coded("zstd-bomb-body", "BODY_LIMIT", "zstd", ZSTD_BOMB, options={"flags": 1, "max_body_bytes": 1 << 20})
coded("zstd-bomb-in-gzip", "BODY_LIMIT", "zstd, gzip", deflate(ZSTD_BOMB, 31),
      options={"flags": 1, "max_body_bytes": 1 << 20})
# A few bytes in each piece that the decoder gets, and many pieces in one read.
raw("coding-zstd-bomb-in-chunks", head(("Content-Encoding", "zstd"), ("Transfer-Encoding", "chunked")) +
    chunked(ZSTD_BOMB, 4), "BAD_IMAGE_DATA", pieces=("one",))
# And nothing comes out of the last layer: 2 MB of empty frames in 2 KB.
raw("coding-skippables-in-gzip-in-chunks", head(("Content-Encoding", "zstd, gzip"), ("Transfer-Encoding", "chunked")) +
    chunked(deflate(b"\x50\x2a\x4d\x18\0\0\0\0" * (1 << 18), 31), 4),
    ("BAD_IMAGE_DATA", "CONTENT_ENCODING", "TRUNCATED"), pieces=("one",), cpu=0.6)
# Heads of blocks alone: tables that take microseconds to be read and mean nothing, megabytes of them in a few KiB. The CPU is
# what they take in all; a neighbour waits for none of it.
# Where one byte of them is a picture's, the body is no picture.
TABLES = {"cpu": 3, "memory": 24, "within": 8.0, "pieces": ("one",), "options": {"flags": 1, "idle_timeout_ms": 9000}}
coded("br-context-maps", "OK", "br", context_maps(3000), **TABLES)
coded("br-context-maps-in-gzip", "OK", "br, gzip", deflate(context_maps(3000), 31), **TABLES)
coded("zstd-tables-in-gzip", "OK", "zstd, gzip", deflate(zstd_tables(100000), 31), **TABLES)
coded("gzip-tables-in-gzip", "OK", "gzip, gzip", deflate(deflate_tables(40000), 31), **TABLES)
# More of them than a body may have: what codings hand to one another has a limit, and so has the time.
coded("br-context-maps-too-many", "CONTENT_ENCODING", "br, gzip", deflate(context_maps(100000), 31), **TABLES)
coded("gzip-tables-too-many", "CONTENT_ENCODING", "gzip, gzip", deflate(deflate_tables(400000), 31), says="hand on",
      **TABLES)
NOTHING = b"\0\0\0\xff\xff" * (1 << 20)
coded("gzip-three-times-nothing", "CONTENT_ENCODING", "gzip, gzip, gzip",
      deflate(deflate(GZIP[:10] + NOTHING, 31) + deflate(NOTHING, 31) * 2000, 31), says="hand on", cpu=0.3)
reply("coding-gzip-bomb-error-page", "INVALID_STATUS", status=500, fields=[("Content-Encoding", "gzip")],
    body=GZIP_BOMB)
reply("coding-gzip-bomb-redirect", "OK", status=302, fields=[("Content-Encoding", "gzip"), ("Location", "/good")],
      body=GZIP_BOMB, width=3)

# ---- Lists
coded("unknown", "CONTENT_ENCODING", "rot13", PICTURE, says="rot13")
coded("unknown-body", "OK", "rot13", PICTURE, options=BODY)
coded("five", "OK", "gzip, gzip, gzip, gzip, gzip", deflate(deflate(deflate(deflate(GZIP, 31), 31), 31), 31), width=3)
coded("six", "CONTENT_ENCODING", ", ".join(["gzip"] * 6), GZIP, says="6")
coded("thousand", "CONTENT_ENCODING", ",".join(["gzip"] * 1000), GZIP)
coded("ten-thousand", {"http2": ("CONTENT_ENCODING", "HEADER_LIMIT"), "else": "CONTENT_ENCODING"},
      ",".join(["gzip"] * 10000), GZIP)
reply("coding-in-900-fields", "CONTENT_ENCODING", fields=[("Content-Encoding", "gzip")] * 900, body=GZIP)
coded("commas", "OK", "," * 900, PICTURE, width=3)
coded("commas-50000", "OK", "," * 50000, PICTURE, width=3)
coded("empty", "OK", "", PICTURE, width=3)
coded("parameters", "CONTENT_ENCODING", "gzip;q=1", GZIP)
coded("quoted", "CONTENT_ENCODING", '"gzip"', GZIP)
coded("order-wrong", "CONTENT_ENCODING", "gzip, br", brotli(GZIP)[::-1])
coded("known-then-unknown", "CONTENT_ENCODING", "gzip, rot13", GZIP)
raw("coding-gzip-endless-empty-blocks", lambda request: (
    head(("Content-Encoding", "gzip")) + GZIP[:10] if not at else b"\0\0\0\xff\xff" * 10000 for at in range(ENDLESS)),
    ("TOTAL_TIMEOUT", "IDLE_TIMEOUT", "CONTENT_ENCODING"), options={"total_timeout_ms": 1500, "max_body_bytes": 8 << 30}, is_flood=True, cpu=1.8)
