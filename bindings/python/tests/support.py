"""The scripted origin, its pictures, and what the tests share. Nothing sleeps: tests wait for what they need, with a
deadline that only a failure reaches."""

import atexit
import gc
import json
import os
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
import unittest
import urllib.error
import urllib.parse
import urllib.request
import zlib
from pathlib import Path

import imgdl

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 60.0

# The origin is on this machine, whatever proxy the environment names.
os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1"

PICTURES = [
    "baseline.jpg",
    "progressive.jpg",
    "gray.jpg",
    "cmyk.jpg",
    "arithmetic.jpg",
    "oriented-6.jpg",
    "opaque.png",
    "alpha.png",
    "palette.png",
    "adam7.png",
    "lossy.webp",
    "lossless.webp",
    "alpha.webp",
    "animated.webp",
    "animated.gif",
    "animated.png",
]


def program(name, variable):
    """A program of the tests: where the environment says, where make puts it, or where swift build does."""
    given = os.environ.get(variable)
    places = [Path(given)] if given else [ROOT / "build/bin" / name, ROOT / ".build/debug" / name]
    for place in places:
        if place.exists():
            return str(place)
    if given:
        raise FileNotFoundError(f"{variable} is {given}, which does not exist")
    subprocess.run(["swift", "build", "--product", name], cwd=ROOT, check=True)
    return str(places[-1])


_pictures = None


def pictures():
    """The folder of the pictures, drawn once."""
    global _pictures
    if _pictures is None:
        folder = tempfile.TemporaryDirectory()
        atexit.register(folder.cleanup)
        subprocess.run([program("imgdl-pictures", "IMGDL_PICTURES"), folder.name], check=True)
        _pictures = Path(folder.name)
        (_pictures / "animated.gif").write_bytes(gif(4, 3, [10, 20, 30], [(0, 50), (1, 60), (2, 70)], loops=5))
        (_pictures / "animated.png").write_bytes(apng(4, 3, [(10, 50), (20, 60)], loops=2))
        (_pictures / "picture@2x.png").write_bytes(png(2, 2, [[9, 9, 9, 255] * 2] * 2))
    return _pictures


class Origin:
    """One for each test: requests that others gave up can arrive late, and would be in its log."""

    def __init__(self, *arguments):
        self._folder = tempfile.TemporaryDirectory()
        info = os.path.join(self._folder.name, "info")
        self._process = subprocess.Popen(
            [program("imgdl-origin", "IMGDL_ORIGIN"), "--root", str(pictures()), "--until-eof", "--info-file", info]
            + list(arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.base = self._process.stdout.readline().split()[-1].decode()
        # Names of certificates, the pin, the proxy: Tests/Origin/README.md.
        self.info = json.loads(Path(info).read_text("utf-8"))
        trust = ssl.create_default_context(cafile=self.info.get("ca_file"))
        if "client_certificate" in self.info:
            trust.load_cert_chain(self.info["client_certificate"], self.info["client_key"])
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust)
        )
        self._gates = 0

    def stop(self):
        self._folder.cleanup()
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def url(self, path, **query):
        return self.base + path + ("?" + urllib.parse.urlencode(query) if query else "")

    def picture(self, name, **faults):
        return self.url("/pictures/" + name, **faults)

    def bytes(self, name):
        return (pictures() / name).read_bytes()

    def control(self, path, **query):
        try:
            with self._opener.open(self.url("/_" + path, **query), timeout=2 * PATIENCE) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, answer.read()

    @property
    def log(self):
        return json.loads(self.control("log")[1])

    def requests(self, path):
        return [request for request in self.log["requests"] if request["path"] == path]

    def gate(self):
        self._gates += 1
        return Gate(self, f"gate{self._gates}")


class Gate:
    """Scripts wait at it until it is opened; then it stays open."""

    def __init__(self, origin, name):
        self.name = name
        self._origin = origin

    def open(self):
        self._origin.control(f"gate/{self.name}/open")

    def is_reached(self, count=1):
        status, _ = self._origin.control(
            f"gate/{self.name}/reached", count=count, deadline_ms=int(PATIENCE * 1000)
        )
        return status == 200


class OriginTests(unittest.TestCase):
    def setUp(self):
        self.origin = Origin()
        self.addCleanup(self.origin.stop)

    def watch_what_nobody_catches(self):
        """To be called first: nothing may reach sys.unraisablehook, until all that the test had is gone."""
        shown, hook = [], sys.unraisablehook

        def check():
            gc.collect()
            sys.unraisablehook = hook
            self.assertEqual(shown, [])

        self.addCleanup(check)
        sys.unraisablehook = lambda raised: shown.append(repr(raised.exc_value))

    def other_origin(self, *arguments):
        origin = Origin(*arguments)
        self.addCleanup(origin.stop)
        return origin

    def downloader(self, **config):
        downloader = imgdl.Downloader(**config)
        self.addCleanup(downloader.close)
        return downloader

    def assertOriginSees(self, **counts):
        status, log = self.origin.control("wait", deadline_ms=int(PATIENCE * 1000), **counts)
        self.assertEqual(status, 200, f"not {counts}: {log}")

    def assertCode(self, code, function, *arguments, **options):
        """Raises `imgdl.Error` with that code, and gives it."""
        with self.assertRaises(imgdl.Error) as caught:
            function(*arguments, **options)
        self.assertEqual(imgdl.Code(caught.exception.code), code, str(caught.exception))
        self.assertEqual(caught.exception.name, f"IMGDL_ERROR_{code.name}")
        return caught.exception

    def assertRaisesFrom(self, place, kind, function, *arguments):
        """Raises, twice, what the function `place` has raised: with the traceback from there, and not also of the time before."""
        traces = []
        for _ in range(2):
            try:
                function(*arguments)
            except kind as problem:
                traces.append([frame.name for frame in traceback.extract_tb(problem.__traceback__)])
        self.assertEqual([trace[-1] for trace in traces], [place] * 2)
        self.assertEqual(traces[0], traces[1])


class Signal:
    """An event of a callback that a test waits for."""

    def __init__(self):
        self._event = threading.Event()
        self.arguments = []

    def __call__(self, *arguments):
        self.arguments.append(arguments)
        self._event.set()

    def wait(self):
        if not self._event.wait(PATIENCE):
            raise AssertionError("the callback did not come")
        return self.arguments[0]


def _chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def jpeg(width, height, gray, icc=None, thumbnail=None):
    """A JPEG of one gray, nearly; with a profile, and with a JPEG as the thumbnail in its EXIF."""

    def segment(marker, content):
        return bytes([0xFF, marker]) + struct.pack(">H", 2 + len(content)) + content

    def table(kind, lengths, symbols):
        return segment(0xC4, bytes([kind, *lengths, *[0] * (16 - len(lengths)), *symbols]))

    content = b"\xff\xd8"
    if thumbnail is not None:
        directory = struct.pack("<HHHIIHHIII", 2, 0x201, 4, 1, 44, 0x202, 4, 1, len(thumbnail), 0)
        exif = b"II*\0" + struct.pack("<IHI", 8, 0, 14) + directory
        content += segment(0xE1, b"Exif\0\0" + exif + thumbnail)
    if icc is not None:
        content += segment(0xE2, b"ICC_PROFILE\0\1\1" + icc)
    content += segment(0xDB, bytes(1) + bytes([1] * 64))
    content += segment(0xC0, struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0")
    difference = 8 * (gray - 128)
    size = abs(difference).bit_length()
    # Codes: 0 for no difference, 10 for one of that many bits; 0 for the end of a block.
    content += table(0x00, [1, 1], [0, size or 1]) + table(0x10, [1], [0])
    content += segment(0xDA, b"\1\1\0\0\x3f\0")
    number = difference if difference > 0 else difference + (1 << size) - 1
    bits = "10" + format(number, f"0{size}b") + "0" if difference else "00"
    bits += "00" * (-(-width // 8) * -(-height // 8) - 1)
    bits += "1" * (-len(bits) % 8)
    scan = bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))
    return content + scan.replace(b"\xff", b"\xff\0") + b"\xff\xd9"


def _profile(space, tags):
    """An ICC profile (ICC.1:2010) of these tags, and of the white of all profiles."""
    tags = [(b"wtpt", _xyz(0xF6D6, 0x10000, 0xD32D)), *tags]
    table, data = struct.pack(">I", len(tags)), b""
    for name, value in tags:
        table += name + struct.pack(">II", 132 + 12 * len(tags) + len(data), len(value))
        data += value
    head = b"lcms\2\x40\0\0mntr" + space + b"XYZ " + bytes(12) + b"acsp" + bytes(28)
    head += struct.pack(">3I", 0xF6D6, 0x10000, 0xD32D) + bytes(48)
    return struct.pack(">I", 4 + len(head) + len(table) + len(data)) + head + table + data


def _xyz(x, y, z):
    return b"XYZ \0\0\0\0" + struct.pack(">3I", x, y, z)


_LINEAR = b"curv" + bytes(8)


def linear_gray():
    """A profile that says that pixels are proportional to light."""
    return _profile(b"GRAY", [(b"kTRC", _LINEAR)])


def linear_rgb():
    """The same of pictures in colour, with the primaries of sRGB."""
    primaries = {b"r": (0x6FA0, 0x38F2, 0x38F), b"g": (0x6296, 0xB789, 0x18DA), b"b": (0x24A0, 0xF85, 0xB6C4)}
    tags = [(name + b"XYZ", _xyz(*value)) for name, value in primaries.items()]
    return _profile(b"RGB ", tags + [(name + b"TRC", _LINEAR) for name in primaries])


def png(width, height, rows, colour_type=6, depth=8, icc=None):
    """A PNG of these rows of bytes, so that a test knows every pixel; with a profile."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    profile = b"" if icc is None else _chunk(b"iCCP", b"ICC\0\0" + zlib.compress(icc))
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + profile + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")
    )


def apng(width, height, frames, loops):
    """Frames of one gray each: pairs of the gray and of milliseconds."""
    content = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    content += _chunk(b"acTL", struct.pack(">II", len(frames), loops))
    number = 0
    for gray, milliseconds in frames:
        content += _chunk(
            b"fcTL", struct.pack(">IIIIIHHBB", number, width, height, 0, 0, milliseconds, 1000, 0, 0)
        )
        pixels = zlib.compress((b"\0" + bytes([gray]) * width) * height)
        if number == 0:
            content += _chunk(b"IDAT", pixels)
        else:
            number += 1
            content += _chunk(b"fdAT", struct.pack(">I", number) + pixels)
        number += 1
    return b"\x89PNG\r\n\x1a\n" + content + _chunk(b"IEND", b"")


def gif(width, height, grays, frames, loops):
    """Frames of one gray each: pairs of the index into grays, four at most, and of milliseconds."""
    table = bytes(gray for index in range(4) for gray in [grays[index % len(grays)]] * 3)
    content = b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF1, 0, 0) + table
    content += b"\x21\xff\x0bNETSCAPE2.0\x03\x01" + struct.pack("<H", loops) + b"\0"
    for index, milliseconds in frames:
        # Codes of three bits: a clear code before every two pixels, so that they never grow.
        codes = []
        for pixel in range(width * height):
            codes += [4, index] if pixel % 2 == 0 else [index]
        bits = "".join(format(code, "03b")[::-1] for code in codes + [5])
        data = bytes(int(bits[at : at + 8].ljust(8, "0")[::-1], 2) for at in range(0, len(bits), 8))
        content += b"\x21\xf9\x04\x04" + struct.pack("<H", milliseconds // 10) + b"\0\0"
        content += b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0)
        content += b"\x02" + bytes([len(data)]) + data + b"\0"
    return content + b"\x3b"


class Strangers:
    """Files of the program's, on the numbers that are free now, with those of what has just been closed among them: who closes
    a descriptor twice closes one of these."""

    def __init__(self, count=20):
        ends = os.pipe()
        self._files = {number: os.fstat(number).st_ino for number in [*ends, *(os.dup(ends[0]) for _ in range(count))]}

    def lost(self):
        """The numbers that are other files, or none."""
        return [number for number, file in self._files.items() if not self._is(number, file)]

    @staticmethod
    def _is(number, file):
        try:
            return os.fstat(number).st_ino == file
        except OSError:
            return False

    def close(self):
        for number, file in self._files.items():
            if self._is(number, file):
                os.close(number)
        self._files.clear()


class BytesPath:
    """A path as os.PathLike allows it, too."""

    def __init__(self, path):
        self._path = path

    def __fspath__(self):
        return os.fsencode(self._path)
