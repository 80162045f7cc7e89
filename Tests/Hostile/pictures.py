"""Pictures by hand, harmless or not: no encoder writes what a hostile server sends."""
import functools
import struct
import zlib

# ---- PNG


def png_chunk(kind, data=b"", length=None, crc=None):
    body = kind + data
    return struct.pack(">I", len(data) if length is None else length) + body + struct.pack(
        ">I", zlib.crc32(body) if crc is None else crc)


PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def ihdr(width, height, depth=8, colour=2, interlace=0, compression=0, filtering=0):
    return png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, compression, filtering, interlace))


def png(*chunks):
    return PNG_SIGNATURE + b"".join(chunks) + png_chunk(b"IEND")


def rows_of(width, height, channels=3, bits=8, filter_type=0):
    """Compressed rows of zeros."""
    row = bytes([filter_type]) + bytes((width * channels * bits + 7) // 8)
    return repeated(row * 64, height // 64, row * (height % 64))


@functools.cache
def zeros(count):
    """So many, compressed."""
    return repeated(bytes(1 << 20), count >> 20, bytes(count & (1 << 20) - 1))


def repeated(data, times, end):
    """`data` so many times and then `end`, compressed: one block that looks back at nothing before it is written again and
    again, as compressing each would take seconds."""
    packer = zlib.compressobj(9)
    beginning = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 1
    for _ in range(times):
        checksum = zlib.adler32(data, checksum)
    last = packer.compress(end) + packer.flush()
    return beginning + block * times + last[:-4] + struct.pack(">I", zlib.adler32(end, checksum))


def good(width, height):
    return png(ihdr(width, height), png_chunk(b"IDAT", rows_of(width, height)))


# ---- GIF

GIF_TABLE = bytes(6)


def gif_screen(width, height, flags=0x80, background=0):
    return b"GIF89a" + struct.pack("<HHBBB", width, height, flags, background, 0) + (GIF_TABLE if flags & 0x80 else b"")


def gif_image(left, top, width, height, data, flags=0, minimum=2):
    return b"," + struct.pack("<HHHHB", left, top, width, height, flags) + bytes([minimum]) + gif_blocks(data)


def gif_blocks(data):
    return b"".join(bytes([len(data[at:at + 255])]) + data[at:at + 255] for at in range(0, len(data), 255)) + b"\0"


def gif_control(delay=10, disposal=1):
    return b"!\xf9\x04" + struct.pack("<BHB", disposal << 2, delay, 0) + b"\0"


def lzw(pixels, minimum=2):
    """`pixels` pixels of colour 0, with a clear code before the codes grow: simple, and as long as can be."""
    bits, count, out, clear, end = 0, 0, bytearray(), 1 << minimum, (1 << minimum) + 1

    def put(code):
        nonlocal bits, count
        bits |= code << count
        count += minimum + 1
        while count >= 8:
            out.append(bits & 255)
            bits >>= 8
            count -= 8
    put(clear)
    for at in range(pixels):
        put(0)
        if at % 2 == 1:
            put(clear)
    put(end)
    if count:
        out.append(bits & 255)
    return bytes(out)


def gif(width=2, height=2):
    return gif_screen(width, height) + gif_image(0, 0, width, height, lzw(width * height)) + b";"


# ---- JPEG: gray, or three components, with tables of one code each

def segment(marker, data, length=None):
    return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2 if length is None else length) + data


SOI, EOI = b"\xff\xd8", b"\xff\xd9"
JFIF = segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")
DQT = segment(0xDB, b"\0" + b"\1" * 64)


def sof(width, height, components=1, kind=0xC0, precision=8, sampling=0x11):
    return segment(kind, struct.pack(">BHHB", precision, height, width, components) +
                   b"".join(bytes([at + 1, sampling, 0]) for at in range(components)))


def dht(*tables):
    """Tables of one symbol, whose code is a single 0: (class << 4 | number, symbol)."""
    return segment(0xC4, b"".join(bytes([name, 1] + [0] * 15 + [symbol]) for name, symbol in tables))


def sos(components=(1,), first=0, last=63, high=0, low=0, tables=0x00):
    return segment(0xDA, bytes([len(components)]) + b"".join(bytes([number, tables]) for number in components) +
                   bytes([first, last, high << 4 | low]))


def blocks_of(width, height):
    return ((width + 7) // 8) * ((height + 7) // 8)


def zero_bits(count):
    whole, rest = divmod(count, 8)
    return bytes(whole) + (bytes([0xFF >> rest]) if rest else b"")


def jpeg(width=8, height=8, components=1):
    """Baseline: DC differences of 0, and the end of each block at once."""
    scans = b"".join(sos((number + 1,)) + zero_bits(2 * blocks_of(width, height)) for number in range(components))
    return SOI + JFIF + DQT + sof(width, height, components) + dht((0x00, 0), (0x10, 0)) + scans + EOI


def end_of_band_runs(blocks):
    """A scan of AC coefficients that are all zero: EOBRUN of 14 bits, 32767 blocks each (table symbol 0xE0)."""
    text = ""
    while blocks > 0:
        text += "0" + "1" * 14 if blocks >= 32767 else "0" + format(max(blocks - 16384, 0), "014b")
        blocks -= 32767
    text += "1" * (-len(text) % 8)
    return bytes(int(text[at:at + 8], 2) for at in range(0, len(text), 8)).replace(b"\xff", b"\xff\0")


def progressive(width, height, scans=1, components=1):
    """A scan of DC, and then so many of AC, each of which goes over the whole picture and says nothing."""
    blocks = blocks_of(width, height)
    out = SOI + JFIF + DQT + sof(width, height, components, 0xC2) + dht((0x00, 0), (0x10, 0xE0))
    out += sos(tuple(range(1, components + 1)), 0, 0) + zero_bits(blocks * components)
    band = end_of_band_runs(blocks)
    for at in range(scans):
        out += sos((at % components + 1,), 1, 63, 0, 0) + band
    return out + EOI


# ---- WebP

def riff(*chunks, length=None):
    data = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(data) if length is None else length) + data


def webp_chunk(kind, data, length=None):
    return kind + struct.pack("<I", len(data) if length is None else length) + data + b"\0" * (len(data) % 2)


def vp8l(width, height, tail=None):
    """Lossless: five codes of one symbol each, so that a pixel has no bits at all."""
    text = format(width - 1, "014b")[::-1] + format(height - 1, "014b")[::-1] + "0" + "000"
    text += "0" + "0" + "0" + "1000" * 5 if tail is None else tail
    text += "0" * (-len(text) % 8)
    return b"\x2f" + bytes(int(text[at:at + 8][::-1], 2) for at in range(0, len(text), 8)) + bytes(4)


def webp(width=2, height=2):
    return riff(webp_chunk(b"VP8L", vp8l(width, height)))


def vp8x(width, height, flags=0):
    return webp_chunk(b"VP8X", bytes([flags, 0, 0, 0]) + struct.pack("<I", width - 1)[:3] + struct.pack("<I",
        height - 1)[:3])


def anmf(x, y, width, height, duration=100, inner=None):
    head = b"".join(struct.pack("<I", value)[:3] for value in (x // 2, y // 2, width - 1, height - 1, duration)) + b"\0"
    return webp_chunk(b"ANMF", head + (webp_chunk(b"VP8L", vp8l(width, height)) if inner is None else inner))


def animated_webp(width, height, frames):
    return riff(vp8x(width, height, 0x02), webp_chunk(b"ANIM", bytes(6)), *frames)


def profile(*more):
    """An ICC profile of RGB by a matrix, with more tags."""
    def number(value):
        return struct.pack(">i", round(value * 65536))

    def xyz(*values):
        return b"XYZ " + bytes(4) + b"".join(map(number, values))
    text = b"mluc" + bytes(4) + struct.pack(">IIHHII", 1, 12, 0x656E, 0x5553, 2, 28) + b"\0a"
    curve = b"curv" + bytes(4) + struct.pack(">IH", 1, 0x0233)
    tags = [(b"desc", text), (b"cprt", text), (b"wtpt", xyz(0.9642, 1, 0.8249)), (b"rXYZ", xyz(0.4361, 0.2225, 0.0139)),
            (b"gXYZ", xyz(0.3851, 0.7169, 0.0971)), (b"bXYZ", xyz(0.1431, 0.0606, 0.7141)), (b"rTRC", curve),
            (b"gTRC", curve), (b"bTRC", curve), *more]
    table, data, at = b"", b"", 132 + 12 * len(tags)
    for name, value in tags:
        value += bytes(-len(value) % 4)
        table += name + struct.pack(">II", at, len(value))
        data += value
        at += len(value)
    head = struct.pack(">I4sI4s4s4s12x4s", at, b"lcms", 0x04300000, b"mntr", b"RGB ", b"XYZ ", b"acsp")
    head += bytes(28) + b"".join(map(number, (0.9642, 1, 0.8249)))
    return head.ljust(128, b"\0") + struct.pack(">I", len(tags)) + table + data


# What to follow them would cost has no bound: elements that may be chained, and curves of them.
COSTLY_PROFILES = {
    "mpet": profile((b"A2B0", b"mpet" + bytes(4) + struct.pack(">HHI", 3, 3, 65535) + bytes(8) * 100)),
    "dtob": profile((b"D2B0", b"mpet" + bytes(4) + struct.pack(">HHI", 3, 3, 0))),
}
