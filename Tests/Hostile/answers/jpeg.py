"""JPEG: segments that lie, tables that are none, and scans over scans."""
import struct

from answer import COSTLY_PROFILE, reply
from pictures import COSTLY_PROFILES, DQT, EOI, JFIF, SOI, dht, jpeg, progressive, segment, sof, sos, zero_bits

TABLES = DQT + dht((0x00, 0), (0x10, 0))
SCAN = sos() + zero_bits(2)
BAD, SHORT = "BAD_IMAGE_DATA", "TRUNCATED"


def row(name, code, body, **bounds):
    reply(f"jpeg-{name}", code, fields=[("Content-Type", "image/jpeg")], body=body, **bounds)


def made(*parts):
    return SOI + JFIF + b"".join(parts) + EOI


row("plain", "OK", jpeg(), width=8)
row("three-components", "OK", jpeg(16, 16, 3), width=16)
row("progressive", "OK", progressive(16, 16, 2), width=16)
# All has come but the mark of the end: by Content-Length, or over HTTP/2 by the end of the stream alone.
row("endless", "OK", jpeg(16, 16, 3)[:-2], width=16)
row("endless-progressive", "OK", progressive(16, 16, 2)[:-2], width=16)

# ---- Profiles that are kept and not followed
for name, data in COSTLY_PROFILES.items():
    icc = segment(0xE2, b"ICC_PROFILE\0\1\1" + data)
    row(f"profile-{name}", "OK", SOI + icc + jpeg(16, 16, 3)[2:], width=16, options={"colour": 1}, notes=COSTLY_PROFILE)

# ---- Markers and segments
row("start-alone", SHORT, SOI)
row("start-and-end", BAD, SOI + EOI)
row("start-10000-times", BAD, SOI * 10000)
row("fill-bytes-100000", "OK", SOI + b"\xff" * 100000 + jpeg()[2:], width=8)
row("garbage-between", BAD, SOI + b"garbage" * 5000 + jpeg()[2:])
row("segment-length-0", "OK", made(segment(0xE1, b"", 0), TABLES, sof(8, 8), SCAN), width=8)
row("segment-length-1", "OK", made(segment(0xE1, b"", 1), TABLES, sof(8, 8), SCAN), width=8)
row("segment-length-beyond", SHORT, SOI + segment(0xE1, bytes(10), 65535))
row("segments-empty-20000", "OK", made(segment(0xEB, b"") * 20000, TABLES, sof(8, 8), SCAN), width=8)
row("comments-20-of-64-kib", "OK", made(segment(0xFE, bytes(65533)) * 20, TABLES, sof(8, 8), SCAN), width=8, memory=30)
row("frame-missing", BAD, made(TABLES, SCAN))
row("frame-twice", BAD, made(TABLES, sof(8, 8), sof(16, 16), SCAN))
row("frame-behind-scan", BAD, made(TABLES, sof(8, 8), SCAN, sof(16, 16), SCAN))
row("frame-short", BAD, made(TABLES, segment(0xC0, b"\x08\0\x08"), SCAN))
row("scan-missing", BAD, made(TABLES, sof(8, 8)))
row("scan-before-frame", BAD, made(TABLES, SCAN, sof(8, 8)))
row("scan-empty", BAD, made(TABLES, sof(8, 8), sos()))
row("scan-cut", "TRUNCATED", made(TABLES, sof(800, 800), SCAN)[:-4])
row("scan-component-unknown", BAD, made(TABLES, sof(8, 8), sos((9,)), zero_bits(2)))
row("scan-components-0", BAD, made(TABLES, sof(8, 8), sos(())))
row("scan-components-5", BAD, made(TABLES, sof(8, 8), sos((1, 1, 1, 1, 1))))
row("scan-component-twice", BAD, made(TABLES, sof(8, 8, 3), sos((1, 1, 1)), zero_bits(20)))
row("tables-missing", BAD, made(sof(8, 8), SCAN))
row("quantization-missing", BAD, made(dht((0x00, 0), (0x10, 0)), sof(8, 8), SCAN))
row("quantization-short", SHORT, made(segment(0xDB, b"\0" + bytes(5)), sof(8, 8), SCAN))
row("quantization-number-15", BAD, made(segment(0xDB, b"\x0f" + bytes(64)), TABLES, sof(8, 8), SCAN))
row("quantization-zeros", "OK", made(segment(0xDB, b"\0" + bytes(64)), dht((0x00, 0), (0x10, 0)), sof(8, 8), SCAN), width=8)
row("huffman-counts-beyond", BAD, made(DQT, segment(0xC4, b"\0" + b"\xff" * 16 + bytes(255)), sof(8, 8), SCAN))
row("huffman-codes-too-many", BAD, made(DQT, segment(0xC4, b"\0" + b"\x03" + bytes(15) + bytes(3)), sof(8, 8), SCAN))
row("huffman-number-15", BAD, made(DQT, dht((0x0F, 0)), sof(8, 8), SCAN))
row("huffman-dc-symbol-255", BAD, made(DQT, dht((0x00, 255), (0x10, 0)), sof(8, 8), SCAN))
row("huffman-defined-5000-times", "OK", made(DQT, dht((0x00, 0), (0x10, 0)) * 5000, sof(8, 8), SCAN), width=8)
row("restart-interval-1", BAD, made(TABLES, segment(0xDD, b"\0\1"), sof(64, 64), SCAN))
row("restart-markers-alone", BAD, made(TABLES, segment(0xDD, b"\0\1"), sof(640, 640),
    sos() + b"\xff\xd0\xff\xd1" * 5000))
row("restart-interval-short", BAD, made(TABLES, segment(0xDD, b"\0"), sof(8, 8), SCAN))
row("lines-said-later", BAD, made(TABLES, sof(8, 0), SCAN, segment(0xDC, b"\0\x08")))

# ---- Sizes and kinds
for width, height, code in ((0, 8, BAD), (8, 0, BAD), (65535, 65535, "PIXEL_LIMIT"), (65535, 1600, "PIXEL_LIMIT"),
                            (65501, 8, "PIXEL_LIMIT")):
    row(f"size-{width}x{height}", code, made(TABLES, sof(width, height), SCAN))
    row(f"size-{width}x{height}-progressive", code, made(TABLES, sof(width, height, kind=0xC2), sos(last=0),
        zero_bits(1)))
row("size-65500-no-limit", "MEMORY_LIMIT", made(TABLES, sof(65500, 65500), SCAN),
    options={"max_pixels": 2 ** 64 - 1, "max_memory_bytes": 64 << 20})
# Nearly all of its rows are missing: to make them up takes longer than the picture may, on any machine.
row("size-65500-no-limit-scaled", "DECODE_TIMEOUT", made(TABLES, sof(65500, 65500), SCAN),
    options={"max_pixels": 2 ** 64 - 1, "max_decode_ms": 100, "target_width": 8, "target_height": 8}, cpu=0.5)
for precision in (0, 1, 7, 9, 12, 16, 255):
    row(f"precision-{precision}", BAD, made(TABLES, sof(8, 8, precision=precision), SCAN))
for components in (0, 2, 5, 10, 255):
    row(f"components-{components}", BAD, made(TABLES, sof(8, 8, components), SCAN))
for sampling in (0x00, 0x01, 0x10, 0x15, 0x51, 0x44, 0xFF):
    row(f"sampling-{sampling:02x}", BAD, made(TABLES, sof(64, 64, 1, sampling=sampling), SCAN))
for kind in (0xC3, 0xC5, 0xC6, 0xC7, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF):
    row(f"kind-{kind:02x}", BAD, made(TABLES, sof(8, 8, kind=kind), SCAN))
for kind in (0xC1, 0xC9):
    row(f"kind-{kind:02x}", "OK", made(TABLES, sof(8, 8, kind=kind), SCAN), width=8)

# ---- Progressive: bands that are none, and scans over the same
for name, band in {"backwards": (5, 1, 0, 0), "beyond": (1, 64, 0, 0), "low-14": (0, 0, 0, 14), "high-13": (0, 0, 13, 12),
                   "skips": (1, 63, 5, 3), "zero-to-63": (0, 63, 0, 0), "refines-nothing": (0, 0, 1, 0)}.items():
    row(f"band-{name}", BAD, made(TABLES, sof(8, 8, kind=0xC2), sos((1,), *band), zero_bits(4)))
row("scans-499", "OK", progressive(64, 64, 498), cpu=0.4, width=64)
row("scans-501", "SCAN_LIMIT", progressive(64, 64, 501))
row("scans-5000", "SCAN_LIMIT", progressive(64, 64, 5000))
row("scans-5000-baseline", "SCAN_LIMIT", made(TABLES, sof(8, 8, 3), *([sos((1,)) + zero_bits(2)] * 5000)))
# More blocks than any machine reads in that time: 15 million, 14 million, and 1.5 million with their codes.
row("scans-large", "DECODE_TIMEOUT", progressive(4000, 4000, 60),
    options={"max_decode_ms": 20, "target_width": 8, "target_height": 8}, cpu=0.6, memory=300, within=4)
row("scans-large-full", "DECODE_TIMEOUT", progressive(3000, 3000, 100), options={"max_decode_ms": 20}, cpu=0.6,
    memory=400, within=4)
row("scans-inside-one", "DECODE_TIMEOUT", progressive(6000, 6000, 1), options={"max_decode_ms": 20}, cpu=0.5,
    memory=400, within=4)
# A hundred megapixels of four inks, whose coefficients would be 800 MB: refused by the limits that nobody has set.
row("memory-of-inks", "MEMORY_LIMIT", made(DQT, sof(10000, 10000, 4, kind=0xC2), dht((0x00, 0), (0x10, 0xE0)),
                                           sos((1, 2, 3, 4), 0, 0), zero_bits(64)), memory=30)
row("memory-of-progressive", "MEMORY_LIMIT", progressive(9990, 9990, 1), options={"max_memory_bytes": 64 << 20})
row("bomb-baseline-timeout", "DECODE_TIMEOUT", jpeg(9990, 9990),
    options={"max_decode_ms": 5, "target_width": 8, "target_height": 8}, cpu=0.4, memory=60, within=4)

# ---- EXIF, profiles, thumbnails
EXIF = b"Exif\0\0"


def exif(data):
    return made(segment(0xE1, EXIF + data), TABLES, sof(8, 8), SCAN)


def directory(*entries, following=0):
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII",
        *entry) for entry in entries) + struct.pack("<I", following)


row("exif-empty", "OK", exif(b""), width=8)
row("exif-garbage", "OK", exif(b"\xff" * 5000), width=8)
row("exif-offset-beyond", "OK", exif(b"II*\0\xff\xff\xff\xff"), width=8)
row("exif-circle", "OK", exif(directory((0x112, 3, 1, 1), following=8)), width=8)
row("exif-orientation-0", "OK", exif(directory((0x112, 3, 1, 0))), width=8)
row("exif-orientation-9", "OK", exif(directory((0x112, 3, 1, 9))), width=8)
row("exif-orientation-count-2-32", "OK", exif(directory((0x112, 3, 2 ** 32 - 1, 6))), width=8)
row("exif-orientation-type-255", "OK", exif(directory((0x112, 255, 1, 6))), width=8)
row("exif-thumbnail-beyond", "OK", exif(directory((0x201, 4, 1, 2 ** 32 - 1), (0x202, 4, 1, 2 ** 32 - 1))),
    options={"decode_flags": 64}, width=8)
row("exif-thumbnail-garbage", "OK", exif(directory((0x103, 3, 1, 6), (0x201, 4, 1, 8), (0x202, 4, 1, 40), following=8)),
    options={"decode_flags": 64}, width=8)
row("exif-500-segments", "OK", made(segment(0xE1, EXIF + bytes(1000)) * 500, TABLES, sof(8, 8), SCAN), width=8)
row("exif-limit", "METADATA_LIMIT", made(segment(0xE1, EXIF + bytes(60000)), TABLES, sof(8, 8), SCAN),
    options={"max_metadata_bytes": 1000})


def profile(*parts):
    return made(*(segment(0xE2, b"ICC_PROFILE\0" + part) for part in parts), TABLES, sof(8, 8), SCAN)


for name, parts in {"empty": (b"",), "number-0": (b"\0\1x",), "count-0": (b"\1\0x",), "beyond": (b"\5\2x",),
    "twice": (b"\1\2x", b"\1\2x"), "missing": (b"\2\3x",),
                    "255-parts": tuple(bytes([at + 1, 255]) + bytes(60000) for at in range(255)),
                    "garbage": (b"\1\1" + b"\xff" * 5000,)}.items():
    row(f"profile-{name}", "OK", profile(*parts), width=8, options={"colour": 1}, memory=100, cpu=0.4)
