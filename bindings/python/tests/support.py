"""The scripted origin, its pictures, and what the tests share. Nothing sleeps: tests wait for what they need, with a
deadline that only a failure reaches."""

import atexit
import json
import os
import struct
import subprocess
import tempfile
import threading
import unittest
import urllib.error
import urllib.parse
import urllib.request
import zlib
from pathlib import Path

import imgdl

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 20.0

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
    return _pictures


class Origin:
    """One for each test: requests that others gave up can arrive late, and would be in its log."""

    def __init__(self):
        self._process = subprocess.Popen(
            [program("imgdl-origin", "IMGDL_ORIGIN"), "--root", str(pictures()), "--until-eof"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.base = self._process.stdout.readline().split()[-1].decode()
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._gates = 0

    def stop(self):
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


def png(width, height, rows, colour_type=6):
    """A PNG of these rows of bytes, so that a test knows every pixel."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
