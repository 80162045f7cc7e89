"""PNG: sizes that are no sizes, chunks that lie, bombs."""
import struct
import zlib

from answer import COSTLY_PROFILE, reply
from pictures import COSTLY_PROFILES, PNG_SIGNATURE, good, ihdr, png, png_chunk, rows_of, zeros

ALL_FRAMES = {"decode_flags": 4}
IDAT = png_chunk(b"IDAT", rows_of(3, 5))
IHDR = ihdr(3, 5)
MOST = 2 ** 31 - 1
NO_LIMIT = {"max_pixels": 2 ** 64 - 1}
BAD = "BAD_IMAGE_DATA"


def row(name, code, body, **bounds):
    reply(f"png-{name}", code, fields=[("Content-Type", "image/png")], body=body, **bounds)


# ---- Sizes
# The codes: with the limits as they are; without one on pixels; and scaled besides, which holds all of Adam7 alone. Where no
# limit is left, what is wrong is that most of the pixels are missing.
for width, height, code, unlimited, scaled, adam7 in (
        (0, 5, BAD, BAD, BAD, BAD), (5, 0, BAD, BAD, BAD, BAD),
        (MOST, MOST, "PIXEL_LIMIT", "SIZE_LIMIT", "SIZE_LIMIT", "SIZE_LIMIT"),
        (MOST, 1, "PIXEL_LIMIT", "SIZE_LIMIT", "SIZE_LIMIT", "SIZE_LIMIT"),
        (1, MOST, "PIXEL_LIMIT", "MEMORY_LIMIT", BAD, "MEMORY_LIMIT"),
        (2 ** 31, 1, BAD, BAD, BAD, BAD), (2 ** 32 - 1, 2 ** 32 - 1, BAD, BAD, BAD, BAD),
        (65536, 65536, "PIXEL_LIMIT", "MEMORY_LIMIT", BAD, "MEMORY_LIMIT"),
        (100001, 1000, "PIXEL_LIMIT", BAD, BAD, BAD)):
    for interlace in (0, 1):
        name = f"{width}x{height}{'-adam7' if interlace else ''}"
        row(f"size-{name}", code, png(ihdr(width, height, interlace=interlace), IDAT))
        row(f"size-{name}-no-limit", unlimited, png(ihdr(width, height, 16, 6, interlace), IDAT), options=NO_LIMIT,
            cpu=0.5)
        row(f"size-{name}-no-limit-scaled", adam7 if interlace else scaled, png(ihdr(width, height, 1, 0, interlace), IDAT),
            options={**NO_LIMIT, "target_width": 10, "target_height": 10}, cpu=1)
for depth, colour in ((0, 0), (3, 0), (32, 0), (4, 2), (16, 3), (8, 1), (8, 5), (8, 7), (255, 255), (1, 6)):
    row(f"kind-{depth}-{colour}", "BAD_IMAGE_DATA", png(ihdr(3, 5, depth, colour), IDAT))
row("compression-1", "BAD_IMAGE_DATA", png(ihdr(3, 5, compression=1), IDAT))
row("filter-1", "BAD_IMAGE_DATA", png(ihdr(3, 5, filtering=1), IDAT))
row("filter-64", "BAD_IMAGE_DATA", png(ihdr(3, 5, filtering=64), IDAT))
row("interlace-2", "BAD_IMAGE_DATA", png(ihdr(3, 5, interlace=2), IDAT))

# ---- Chunks
row("signature-alone", "TRUNCATED", PNG_SIGNATURE)
row("first-is-not-header", "BAD_IMAGE_DATA", png(IDAT, IHDR))
row("header-twice", BAD, png(IHDR, IHDR, IDAT))
row("header-short", "BAD_IMAGE_DATA", png(png_chunk(b"IHDR", bytes(12)), IDAT))
row("header-long", "BAD_IMAGE_DATA", png(png_chunk(b"IHDR", bytes(5000)), IDAT))
row("header-checksum", "BAD_IMAGE_DATA", png(png_chunk(b"IHDR", IHDR[8:21], crc=0), IDAT))
row("data-checksum", "BAD_IMAGE_DATA", png(IHDR, png_chunk(b"IDAT", rows_of(3, 5), crc=0)))
row("data-missing", BAD, png(IHDR))
row("data-empty", BAD, png(IHDR, png_chunk(b"IDAT")))
row("data-empty-10000", BAD, png(IHDR, png_chunk(b"IDAT") * 10000))
row("data-of-single-bytes", "OK", png(IHDR, *(png_chunk(b"IDAT", bytes([byte])) for byte in rows_of(3, 5))), width=3)
row("data-too-little", BAD, png(IHDR, png_chunk(b"IDAT", rows_of(3, 2))))
row("data-garbage", "BAD_IMAGE_DATA", png(IHDR, png_chunk(b"IDAT", b"\xff" * 5000)))
row("data-too-much", "OK", png(IHDR, png_chunk(b"IDAT", rows_of(3, 5000))), width=3)
row("data-bomb-behind", "OK", png(IHDR, png_chunk(b"IDAT", zeros(64 << 20))), width=3)
row("data-filter-255", "BAD_IMAGE_DATA", png(IHDR, png_chunk(b"IDAT", rows_of(3, 5, filter_type=255))))
row("data-interrupted", BAD, png(IHDR, png_chunk(b"IDAT", rows_of(3, 5)[:5]), png_chunk(b"tEXt", b"a\0b"),
                                png_chunk(b"IDAT", rows_of(3, 5)[5:])))
row("end-missing", "OK", PNG_SIGNATURE + IHDR + IDAT, width=3)
row("chunk-length-2-32", "BAD_IMAGE_DATA", PNG_SIGNATURE + IHDR + png_chunk(b"tEXt", bytes(50),
    length=2 ** 32 - 1) + IDAT)
row("chunk-length-2-31-less-1", "TRUNCATED", PNG_SIGNATURE + IHDR + png_chunk(b"tEXt", bytes(50),
    length=MOST) + IDAT)
row("chunk-name-garbage", "BAD_IMAGE_DATA", png(IHDR, png_chunk(b"\0\xff\1\2"), IDAT))
row("chunk-critical-unknown", "BAD_IMAGE_DATA", png(IHDR, png_chunk(b"XXXX"), IDAT))
row("chunks-unknown-20000", "OK", png(IHDR, png_chunk(b"xxXx", b"x") * 20000, IDAT), width=3)
row("palette-missing", "BAD_IMAGE_DATA", png(ihdr(3, 5, 8, 3), png_chunk(b"IDAT", rows_of(3, 5, 1))))
row("palette-empty", "BAD_IMAGE_DATA", png(ihdr(3, 5, 8, 3), png_chunk(b"PLTE"), png_chunk(b"IDAT", rows_of(3, 5, 1))))
row("palette-not-of-three", "BAD_IMAGE_DATA", png(ihdr(3, 5, 8, 3), png_chunk(b"PLTE", bytes(5)),
    png_chunk(b"IDAT", rows_of(3, 5, 1))))
row("palette-of-2000", "BAD_IMAGE_DATA", png(ihdr(3, 5, 8, 3), png_chunk(b"PLTE", bytes(6000)),
    png_chunk(b"IDAT", rows_of(3, 5, 1))))
row("palette-index-beyond", "OK", png(ihdr(3, 5, 8, 3), png_chunk(b"PLTE", bytes(3)),
    png_chunk(b"IDAT", zlib.compress(b"\0\xff\xff\xff" * 5))), width=3)
row("transparency-long", "OK", png(ihdr(3, 5, 8, 3), png_chunk(b"PLTE", bytes(6)), png_chunk(b"tRNS", bytes(256)),
                                   png_chunk(b"IDAT", rows_of(3, 5, 1))), width=3)
row("text-bomb", "OK", png(IHDR, png_chunk(b"zTXt", b"a\0\0" + zeros(64 << 20)), IDAT), width=3)
row("international-text-bomb", "OK", png(IHDR, png_chunk(b"iTXt", b"a\0\1\0\0\0" + zeros(64 << 20)), IDAT), width=3)
row("profile-bomb", "OK", png(IHDR, png_chunk(b"iCCP", b"a\0\0" + zeros(64 << 20)), IDAT), width=3)
# Blocks of deflate with tables and nothing else, of which zlib makes 80 ns a byte.
EMPTY_BLOCKS = b"\x78\x9c" + bytes.fromhex(
    "04c081000000000090ff6b100007020000000040feaf41001c080000000000f9bf060170200000000000e4ff1a") * 200_000
row("profile-of-empty-blocks", "DECODE_TIMEOUT", png(IHDR, png_chunk(b"iCCP", b"a\0\0" + EMPTY_BLOCKS), IDAT),
    options={"max_decode_ms": 20}, memory=80, cpu=0.4, within=4)
row("data-of-empty-blocks", "DECODE_TIMEOUT", png(IHDR, png_chunk(b"IDAT", EMPTY_BLOCKS)),
    options={"max_decode_ms": 20}, memory=80, cpu=0.4, within=4)
row("profile-garbage", "OK", png(IHDR, png_chunk(b"iCCP", b"a\0\0" + zlib.compress(b"\xff" * 5000)), IDAT), width=3,
    options={"colour": 1})
for name, data in COSTLY_PROFILES.items():
    row(f"profile-{name}", "OK", png(IHDR, png_chunk(b"iCCP", b"a\0\0" + zlib.compress(data)), IDAT), width=3,
        options={"colour": 1}, notes=COSTLY_PROFILE)
row("profile-name-long", "OK", png(IHDR, png_chunk(b"iCCP", b"a" * 5000), IDAT), width=3, options={"colour": 1})
row("exif-garbage", "OK", png(IHDR, png_chunk(b"eXIf", b"\xff" * 5000), IDAT), width=3)
row("exif-circle", "OK", png(IHDR, png_chunk(b"eXIf", b"II*\0\x08\0\0\0" + struct.pack("<HHHII", 1, 0x112, 3, 1, 6) +
                                             b"\x08\0\0\0"), IDAT), width=5)
row("exif-entries-65535", "OK", png(IHDR, png_chunk(b"eXIf", b"II*\0\x08\0\0\0\xff\xff" + bytes(12) * 65535), IDAT),
    width=3)
row("gamma-zero", "OK", png(IHDR, png_chunk(b"gAMA", bytes(4)), IDAT), width=3, options={"colour": 1})
row("chromaticities-zero", "OK", png(IHDR, png_chunk(b"cHRM", bytes(32)), IDAT), width=3, options={"colour": 1})
row("behind-end", "OK", good(3, 5) + bytes(100000), width=3)

# ---- Bombs: rows of zeros, a thousandth of their size on the wire.
row("bomb-99-megapixels", "MEMORY_LIMIT", png(ihdr(10000, 9900, 8, 0), png_chunk(b"IDAT", rows_of(10000, 9900, 1))),
    options={"max_memory_bytes": 64 << 20})
row("bomb-scaled", "OK", png(ihdr(8000, 4000, 8, 0), png_chunk(b"IDAT", rows_of(8000, 4000, 1))),
    options={"target_width": 8, "target_height": 8},
    cpu=1.5, within=4, width=8)
row("bomb-timeout", "DECODE_TIMEOUT", png(ihdr(10000, 9900, 16, 6), png_chunk(b"IDAT", rows_of(10000, 9900, 8))),
    options={"max_decode_ms": 50, "target_width": 8, "target_height": 8}, memory=60, within=4, cpu=0.4)
row("bomb-adam7-timeout", "DECODE_TIMEOUT", png(ihdr(5000, 4000, 8, 0, 1),
    png_chunk(b"IDAT", zeros(5000 * 4000 + 8000))),
    options={"max_decode_ms": 30, "target_width": 8, "target_height": 8}, memory=150, within=4, cpu=0.4)
# Its canvas has 792 MB. How many of them are touched before the time is over depends on the size of the system's pages.
LYING = png_chunk(b"eXIf", b"II*\0\x08\0\0\0" + struct.pack("<HHHII", 1, 0x112, 3, 1, 6) + bytes(4))
row("bomb-turned-timeout", "DECODE_TIMEOUT", png(ihdr(10000, 9900, 1, 0), LYING,
    png_chunk(b"IDAT", rows_of(10000, 9900, 1, 1))),
    options={"max_decode_ms": 10, "pixel_format": 6}, memory=800, within=4, cpu=0.2)


# ---- APNG
def frame_control(number, width=3, height=5, x=0, y=0, disposal=0, blend=0, delay=(1, 10)):
    return png_chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, width, height, x, y, *delay, disposal, blend))


def animation(frames, *chunks):
    return png(IHDR, png_chunk(b"acTL", struct.pack(">II", frames, 0)), *chunks)


def frame_data(number, data=rows_of(3, 5)):
    return png_chunk(b"fdAT", struct.pack(">I", number) + data)


row("frames-2", "OK", animation(2, frame_control(0), IDAT, frame_control(1), frame_data(2)), width=3,
    options=ALL_FRAMES)
# A picture whose animation is broken before its second frame is whole is a still one.
row("frames-none", "OK", animation(0, IDAT), options=ALL_FRAMES, width=3)
row("frames-2-32", "OK", animation(2 ** 32 - 1, frame_control(0), IDAT), options=ALL_FRAMES, width=3)
row("frames-1001", "FRAME_LIMIT", animation(1001, frame_control(0), IDAT, *(part for at in range(1000) for part in (
    frame_control(2 * at + 1), frame_data(2 * at + 2)))), options=ALL_FRAMES)
row("frames-fewer", "OK", animation(5, frame_control(0), IDAT), options=ALL_FRAMES, width=3)
row("frames-more", "OK", animation(1, frame_control(0), IDAT, frame_control(1), frame_data(2)), options=ALL_FRAMES,
    width=3)
for name, control, number in (("outside", frame_control(1, 3, 5, 2 ** 32 - 2, 0), 2),
                              ("overflows", frame_control(1, MOST, MOST, MOST, MOST), 2),
                              ("empty", frame_control(1, 0, 0), 2), ("order", frame_control(7), 3),
                              ("disposal-unknown", frame_control(1, disposal=9, blend=9), 2)):
    row(f"frame-{name}", "OK", animation(2, frame_control(0), IDAT, control, frame_data(number)),
        options=ALL_FRAMES, width=3)
# Behind two frames, which may have been shown, it is none any more.
row("frame-third-outside", BAD, animation(3, frame_control(0), IDAT, frame_control(1), frame_data(2),
    frame_control(3, 3, 5, 2 ** 32 - 2, 0), frame_data(4)), options=ALL_FRAMES)
row("frame-delay-zero", "OK", animation(2, frame_control(0, delay=(65535, 0)), IDAT, frame_control(1, delay=(0, 0)),
    frame_data(2)), width=3, options=ALL_FRAMES)
row("frame-data-short", "OK", animation(2, frame_control(0), IDAT, frame_control(1), png_chunk(b"fdAT", b"\0")),
    options=ALL_FRAMES, width=3)
row("frame-data-bomb", "OK", animation(2, frame_control(0), IDAT, frame_control(1), frame_data(2, zeros(64 << 20))),
    options=ALL_FRAMES, width=3)


def large_frames(data):
    """Frames of four megapixels, of which all but the first have this data."""
    first = frame_control(0, 2000, 2000), png_chunk(b"IDAT", rows_of(2000, 2000, 1))
    others = [part for at in range(899) for part in (
        frame_control(2 * at + 1, 2000, 2000), frame_data(2 * at + 2, data))]
    return png(ihdr(2000, 2000, 8, 0), png_chunk(b"acTL", struct.pack(">II", 900, 0)), *first, *others)


row("frames-large", "OK", large_frames(rows_of(20, 20, 1)), options=ALL_FRAMES, memory=500, cpu=1, width=2000)
row("frames-large-whole", "ANIMATION_LIMIT", large_frames(rows_of(2000, 2000, 1)),
    options={**ALL_FRAMES, "max_animation_pixels": 9000000}, memory=150, cpu=1, within=4)


def small_frames(side, count, disposal):
    """Frames of a pixel on a large canvas."""
    first = frame_control(0, side, side, disposal=disposal), png_chunk(b"IDAT", rows_of(side, side, 4))
    others = [part for at in range(count - 1) for part in (
        frame_control(2 * at + 1, 1, 1, disposal=disposal), frame_data(2 * at + 2, rows_of(1, 1, 4)))]
    return png(ihdr(side, side, 8, 6), png_chunk(b"acTL", struct.pack(">II", count, 0)), *first, *others)


for disposal in (1, 2):
    row(f"frames-gone-{disposal}", "DECODE_TIMEOUT", small_frames(316, 1000, disposal),
        options={**ALL_FRAMES, "max_decode_ms": 10}, memory=150, cpu=0.2, within=4)
row("frames-memory", "MEMORY_LIMIT", small_frames(3000, 3, 2),
    options={**ALL_FRAMES, "pixel_format": 6, "max_memory_bytes": 128 << 20}, memory=150, cpu=0.6, within=4)
