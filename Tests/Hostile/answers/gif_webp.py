"""GIF and WebP: screens and canvases, frames outside of them, codes and chunks that lie; and what is no picture."""
import struct

from answer import COSTLY_PROFILE, reply
from pictures import (COSTLY_PROFILES, animated_webp, anmf, gif, gif_blocks, gif_control, gif_image, gif_screen, good,
                      jpeg, lzw, riff, vp8l, vp8x, webp, webp_chunk)

ALL = {"decode_flags": 4}
BAD, SHORT = "BAD_IMAGE_DATA", "TRUNCATED"


def row(name, code, body, **bounds):
    reply(name, code, body=body, **bounds)


# ---- GIF
ONE = gif_image(0, 0, 2, 2, lzw(4))
row("gif-plain", "OK", gif(), width=2)
row("gif-signature-alone", SHORT, b"GIF89a")
row("gif-version-unknown", BAD, b"GIF99z" + gif()[6:])
row("gif-screen-cut", SHORT, gif()[:10])
row("gif-table-cut", SHORT, gif_screen(2, 2, 0xF7)[:200])
row("gif-no-image", BAD, gif_screen(2, 2) + b";")
row("gif-no-table", "OK", gif_screen(2, 2, 0) + ONE + b";", width=2)
row("gif-background-beyond", "OK", gif_screen(2, 2, background=255) + ONE + b";", options=ALL, width=2)
for width, height, code in ((0, 0, BAD), (0, 2, BAD), (65535, 65535, "PIXEL_LIMIT"), (65535, 1600, "PIXEL_LIMIT")):
    row(f"gif-screen-{width}x{height}", code, gif_screen(width, height) + ONE + b";")
row("gif-screen-no-limit", "MEMORY_LIMIT", gif_screen(65535, 65535) + ONE + b";",
    options={"max_pixels": 2 ** 64 - 1, "max_memory_bytes": 64 << 20})
for name, frame, code in (("outside", (60000, 60000, 2, 2), "OK"), ("larger", (0, 0, 60000, 60000), "PIXEL_LIMIT"),
                          ("empty", (0, 0, 0, 0), BAD), ("wide-empty", (0, 0, 65535, 0), BAD),
                          ("sticks-out", (1, 1, 2, 2), "OK")):
    row(f"gif-frame-{name}", code, gif_screen(2, 2) + gif_image(*frame, lzw(4)) + ONE + b";", options=ALL,
        width=2 if code == "OK" else None)
for minimum in (0, 9, 12, 255):
    row(f"gif-code-size-{minimum}", BAD, gif_screen(2, 2) + gif_image(0, 0, 2, 2, lzw(4), minimum=minimum) + b";")
# Read in codes of another width the same bits are enough for the picture.
row("gif-code-size-1", "OK", gif_screen(2, 2) + gif_image(0, 0, 2, 2, lzw(4), minimum=1) + b";", width=2)
row("gif-codes-beyond", BAD, gif_screen(2, 2) + gif_image(0, 0, 2, 2, b"\xff" * 50) + b";")
row("gif-codes-too-few", BAD, gif_screen(200, 200) + gif_image(0, 0, 200, 200, lzw(4)) + b";")
row("gif-codes-too-many", "OK", gif_screen(2, 2) + gif_image(0, 0, 2, 2, lzw(50000)) + b";", width=2)
row("gif-codes-clear-alone", BAD, gif_screen(2, 2) + gif_image(0, 0, 2, 2, b"\x24\x49\x92" * 50000) + b";")
row("gif-codes-none", BAD, gif_screen(2, 2) + gif_image(0, 0, 2, 2, b"") + b";")
row("gif-block-cut", SHORT, gif_screen(2, 2) + gif_image(0, 0, 2, 2, lzw(4))[:-3])
row("gif-block-unknown", BAD, gif_screen(2, 2) + b"\x99garbage" + ONE + b";")
row("gif-extensions-20000", "OK", gif_screen(2, 2) + b"!\xfe\x01x\0" * 20000 + ONE + b";", width=2)
row("gif-extension-megabyte", "OK", gif_screen(2, 2) + b"!\xfe" + gif_blocks(bytes(1 << 20)) + ONE + b";", width=2)
row("gif-extension-without-end", SHORT, gif_screen(2, 2) + b"!\xfe" + b"\xff" + bytes(100))
row("gif-control-long", "OK", gif_screen(2, 2) + b"!\xf9" + gif_blocks(bytes(200)) + ONE + b";", options=ALL, width=2)
row("gif-control-disposal-7", "OK", gif_screen(2, 2) + gif_control(disposal=7) + ONE + gif_control(disposal=7) + ONE +
    b";", options=ALL, width=2)
row("gif-controls-20000", "OK", gif_screen(2, 2) + gif_control() * 20000 + ONE + b";", options=ALL, width=2)
row("gif-loop-short", "OK", gif_screen(2, 2) + b"!\xff\x0bNETSCAPE2.0\x01\x01\0" + ONE + b";", options=ALL, width=2)
row("gif-frames-1001", "FRAME_LIMIT", gif_screen(2, 2) + ONE * 1001 + b";", options=ALL)
row("gif-frames-50000", "FRAME_LIMIT", gif_screen(2, 2) + ONE * 50000 + b";", options=ALL)
row("gif-frames-50000-first-alone", "OK", gif_screen(2, 2) + ONE * 50000 + b";", width=2)
row("gif-frames-large-screen", "ANIMATION_LIMIT", gif_screen(4000, 4000) + ONE * 900 + b";",
    options={**ALL, "max_animation_pixels": 40000000}, memory=250, cpu=1.5, within=4)
row("gif-frames-restore-previous", "ANIMATION_LIMIT", gif_screen(4000, 4000) + (gif_control(disposal=3) + ONE) * 900 + b";",
    options={**ALL, "max_animation_pixels": 40000000}, memory=350, cpu=1, within=4)
# 400 MB of canvases, which no machine writes in that time.
row("gif-frames-restore-previous-timeout", "DECODE_TIMEOUT",
    gif_screen(316, 316) + (gif_control(disposal=3) + ONE) * 1000 + b";", options={**ALL, "max_decode_ms": 10},
    memory=150, cpu=0.2, within=4)
row("gif-frame-table-cut", SHORT, gif_screen(2, 2) + gif_image(0, 0, 2, 2, lzw(4), flags=0x87)[:100])
row("gif-interlaced", "OK", gif_screen(2, 2) + gif_image(0, 0, 2, 2, lzw(4), flags=0x40) + b";", width=2)
row("gif-behind-end", "OK", gif() + bytes(100000), width=2)
row("gif-without-end", "OK", gif()[:-1], width=2)

# ---- WebP
row("webp-plain", "OK", webp(), width=2)
row("webp-riff-alone", BAD, b"RIFF\4\0\0\0WEBP")
row("webp-riff-length-0", BAD, riff(webp_chunk(b"VP8L", vp8l(2, 2)), length=0))
row("webp-riff-length-2-32", BAD, riff(webp_chunk(b"VP8L", vp8l(2, 2)), length=2 ** 32 - 1))
row("webp-riff-length-short", BAD, riff(webp_chunk(b"VP8L", vp8l(2, 2)), length=12))
row("webp-chunk-length-2-32", BAD, riff(webp_chunk(b"VP8L", vp8l(2, 2), length=2 ** 32 - 1)))
row("webp-chunk-length-odd", BAD, riff(webp_chunk(b"VP8L", vp8l(2, 2), length=2 ** 31)))
row("webp-chunk-unknown", BAD, riff(webp_chunk(b"XXXX", bytes(5000)), webp_chunk(b"VP8L", vp8l(2, 2))))
row("webp-chunks-unknown-20000", "OK", riff(vp8x(2, 2), *([webp_chunk(b"XXXX", b"")] * 20000),
    webp_chunk(b"VP8L", vp8l(2, 2))), cpu=1, width=2)
row("webp-lossless-version-7", BAD, riff(webp_chunk(b"VP8L", b"\x2f" + struct.pack("<I",
    1 | 1 << 14 | 7 << 29) + bytes(20))))
row("webp-lossless-garbage", BAD, riff(webp_chunk(b"VP8L", b"\x2f" + b"\xff" * 50)))
row("webp-lossless-cut", BAD, riff(webp_chunk(b"VP8L", vp8l(2, 2)[:6])))
row("webp-lossy-garbage", BAD, riff(webp_chunk(b"VP8 ", b"\x10\x00\x00\x9d\x01\x2a\x02\x00\x02\x00" + b"\xff" * 50)))
row("webp-lossy-size-0", BAD, riff(webp_chunk(b"VP8 ", b"\x10\x00\x00\x9d\x01\x2a\0\0\0\0" + bytes(50))))
row("webp-lossy-no-key-frame", BAD, riff(webp_chunk(b"VP8 ", b"\x11\x00\x00\x9d\x01\x2a\2\0\2\0" + bytes(50))))
row("webp-lossy-partition-beyond", BAD, riff(webp_chunk(b"VP8 ", b"\xf0\xff\xff\x9d\x01\x2a\2\0\2\0" + bytes(50))))
row("webp-lossy-no-signature", BAD, riff(webp_chunk(b"VP8 ", bytes(50))))
row("webp-size-16384", "PIXEL_LIMIT", webp(16384, 16384))
row("webp-size-16384-no-limit", "MEMORY_LIMIT", webp(16384, 16384),
    options={"max_pixels": 2 ** 64 - 1, "max_decode_ms": 100, "max_memory_bytes": 64 << 20})
row("webp-bomb", "MEMORY_LIMIT", webp(4000, 4000), options={"max_memory_bytes": 16 << 20})
# libwebp writes 100 MB in one call, which no machine does in that time.
row("webp-bomb-timeout", "DECODE_TIMEOUT", webp(5000, 5000),
    options={"max_decode_ms": 5, "target_width": 8, "target_height": 8}, memory=300, cpu=1, within=4)
row("webp-canvas-2-24", BAD, riff(vp8x(1 << 24, 1 << 24), webp_chunk(b"VP8L", vp8l(2, 2))))
row("webp-canvas-differs", BAD, riff(vp8x(20, 20), webp_chunk(b"VP8L", vp8l(2, 2))))
row("webp-canvas-alone", BAD, riff(vp8x(2, 2)))
row("webp-canvas-twice", "OK", riff(vp8x(2, 2), vp8x(2, 2), webp_chunk(b"VP8L", vp8l(2, 2))), width=2)
row("webp-flags-all", BAD, riff(vp8x(2, 2, 0xFF), webp_chunk(b"VP8L", vp8l(2, 2))))
row("webp-alpha-garbage", "OK", riff(vp8x(2, 2, 0x10), webp_chunk(b"ALPH", b"\xff" * 50),
    webp_chunk(b"VP8L", vp8l(2, 2))), width=2)
row("webp-profile-garbage", "OK", riff(vp8x(2, 2, 0x20), webp_chunk(b"ICCP", b"\xff" * 5000),
    webp_chunk(b"VP8L", vp8l(2, 2))), options={"colour": 1}, width=2)
for name, data in COSTLY_PROFILES.items():
    row(f"webp-profile-{name}", "OK", riff(vp8x(2, 2, 0x20), webp_chunk(b"ICCP", data), webp_chunk(b"VP8L", vp8l(2, 2))),
        width=2, options={"colour": 1}, notes=COSTLY_PROFILE)
row("webp-exif-garbage", "OK", riff(vp8x(2, 2, 0x08), webp_chunk(b"VP8L", vp8l(2, 2)),
    webp_chunk(b"EXIF", b"\xff" * 5000)), width=2)
FRAME = anmf(0, 0, 2, 2)
row("webp-frames-2", "OK", animated_webp(2, 2, [FRAME] * 2), options=ALL, width=2)
row("webp-frames-none", BAD, animated_webp(2, 2, []), options=ALL)
row("webp-frames-1001", "FRAME_LIMIT", animated_webp(2, 2, [FRAME] * 1001), options=ALL)
row("webp-frames-20000", "FRAME_LIMIT", animated_webp(2, 2, [FRAME] * 20000), options=ALL, cpu=0.5)
row("webp-frame-outside", BAD, animated_webp(2, 2, [anmf(100, 100, 2, 2)]), options=ALL)
row("webp-frame-larger", BAD, animated_webp(2, 2, [anmf(0, 0, 5000, 5000)]), options=ALL)
row("webp-frame-beyond", BAD, animated_webp(2, 2, [anmf(0xFFFFFE, 0xFFFFFE, 1 << 24, 1 << 24, inner=b"")]),
    options=ALL)
row("webp-frame-empty", BAD, animated_webp(2, 2, [anmf(0, 0, 2, 2, inner=b"")]), options=ALL)
row("webp-frame-garbage", BAD, animated_webp(2, 2, [anmf(0, 0, 2, 2, inner=webp_chunk(b"VP8L", b"\xff" * 20))]),
    options=ALL)
row("webp-frame-differs", BAD, animated_webp(2, 2, [anmf(0, 0, 2, 2, inner=webp_chunk(b"VP8L", vp8l(9, 9)))]),
    options=ALL)
row("webp-frame-duration-most", "OK", animated_webp(2, 2, [anmf(0, 0, 2, 2, duration=0xFFFFFF)] * 2), options=ALL,
    width=2)
row("webp-frames-large-canvas", "ANIMATION_LIMIT", animated_webp(4000, 4000, [FRAME] * 900),
    options={**ALL, "max_animation_pixels": 40000000}, memory=350, cpu=1.5, within=4)
BOMBS = animated_webp(2000, 2000, [anmf(0, 0, 2000, 2000)] * 500)
row("webp-frames-bombs", "ANIMATION_LIMIT", BOMBS, options={**ALL, "max_animation_pixels": 9000000}, memory=150, cpu=0.6,
    within=4)
row("webp-frames-bombs-timeout", "DECODE_TIMEOUT", BOMBS, options={**ALL, "max_decode_ms": 2}, memory=150, cpu=0.6,
    within=4)

# ---- What is no picture
for name, body in {
        "empty": b"", "one-byte": b"\xff", "zeros": bytes(50000), "text": b"hello",
        "html": b"<!DOCTYPE html><html>" * 50, "svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "pdf": b"%PDF-1.7\n", "bmp": b"BM" + bytes(100), "tiff": b"II*\0" + bytes(100),
        "ico": b"\0\0\1\0\1\0" + bytes(100), "avif": b"\0\0\0\x20ftypavif" + bytes(100),
        "heic": b"\0\0\0\x20ftypheic" + bytes(100), "jxl": b"\xff\x0a" + bytes(100), "zip": b"PK\3\4" + bytes(100),
        "elf": b"\x7fELF" + bytes(100), "gzip": b"\x1f\x8b\x08" + bytes(50),
        "script": b"#!/bin/sh\nrm -rf ~\n", "json": b'{"error": "no"}', "controls": b"\x1b[2J\x07" * 50,
        "utf16": b"\xff\xfe<\0", "webm": b"\x1a\x45\xdf\xa3" + bytes(100),
        "riff-wave": b"RIFF\x24\0\0\0WAVEfmt ", "half-png-signature": b"\x89PNG", "half-jpeg": b"\xff\xd8",
        "png-in-ascii": good(3, 5).replace(b"\r\n", b"\n"),
}.items():
    row(f"none-{name}", SHORT if body in (b"\x89PNG", b"\xff\xd8", b"\xff") else BAD, body)
for name, kind, body, width in (("jpeg-as-png", "image/png", jpeg(), 8), ("png-as-jpeg", "image/jpeg", good(3, 5), 3),
                                ("png-as-html", "text/html", good(3, 5), 3)):
    reply(f"type-{name}", "OK", fields=[("Content-Type", kind)], body=body, width=width)
row("type-png-behind-jpeg", "OK", jpeg() + good(3, 5), width=8)
