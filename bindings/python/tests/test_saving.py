import copy
import io
import os
import pickle
import struct
import sys
import tempfile
import unittest
import zlib
from unittest import mock

import imgdl
from imgdl import Code
from support import BytesPath, OriginTests, jpeg, linear_gray, linear_rgb, pictures, png

ROWS = [[1, 2, 3, 255, 200, 100, 50, 128, 9, 8, 7, 0], [7, 8, 9, 255, 10, 250, 12, 255, 250, 0, 60, 200]]
DATA = png(3, 2, ROWS)


def chunks(content):
    """The chunks of a PNG, whose sums are right."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    found, at = {}, 8
    while at < len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        inside = content[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", content, at + 8 + length)[0] == zlib.crc32(kind + inside)
        found[kind.decode()] = inside
        at += 12 + length
    return found


class SavingTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        # All of this goes without.
        patch = mock.patch.dict(sys.modules, {"PIL": None, "PIL.Image": None, "numpy": None})
        patch.start()
        self.addCleanup(patch.stop)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_png(self):
        for name in ("opaque.png", "alpha.png", "oriented-6.jpg", "lossy.webp", "gray.jpg"):
            image = imgdl.decode((pictures() / name).read_bytes(), size=(80, 80))
            image.save(self.path("saved.png"))
            again = imgdl.decode(self.read("saved.png"))
            self.assertEqual((again.width, again.height, again.pixels), (image.width, image.height, image.pixels), name)
            self.assertEqual(imgdl.decode(image._repr_png_()).pixels, image.pixels)

    def test_every_pixel_format(self):
        straight = imgdl.decode(DATA).pixels
        for pixel_format in ("rgba8", "bgra8"):
            saved = io.BytesIO()
            imgdl.decode(DATA, pixel_format=pixel_format).save(saved)
            self.assertEqual(imgdl.decode(saved.getvalue()).pixels, straight)
        for pixel_format in ("rgba8_premultiplied", "bgra8_premultiplied"):
            image = imgdl.decode(DATA, pixel_format=pixel_format)
            saved = io.BytesIO()
            image.save(saved, "PNG")
            # What was lost in multiplying stays lost; multiplied again it is the same.
            again = imgdl.decode(saved.getvalue(), pixel_format=pixel_format)
            self.assertEqual(again.pixels, image.pixels)
        image = imgdl.decode(DATA, pixel_format="rgb8")
        image.save(self.path("saved.PNG"))
        self.assertEqual(imgdl.decode(self.read("saved.PNG"), pixel_format="rgb8").pixels, image.pixels)
        deep = png(2, 1, [[1, 2, 3, 4, 5, 6, 255, 255, 7, 8, 9, 10, 11, 12, 128, 1]], depth=16)
        image = imgdl.decode(deep, pixel_format="rgba16")
        image.save(self.path("deep.png"))
        self.assertEqual(imgdl.decode(self.read("deep.png"), pixel_format="rgba16").pixels, image.pixels)

    def test_memory_of_somebody_else(self):
        # Rows that lie apart.
        memory = bytearray(40)
        image = imgdl.decode(DATA, into=memory, stride=20)
        self.assertEqual(image.stride, 20)
        self.assertEqual(imgdl.decode(image._repr_png_()).pixels, bytes(sum(ROWS, [])))

    def test_colour(self):
        # A profile of gray is not one of these pixels, unless they were converted by it.
        image = imgdl.decode(jpeg(8, 8, 100, icc=linear_gray()))
        self.assertIsNotNone(image.icc_profile)
        self.assertFalse({"iCCP", "sRGB"} & set(chunks(image._repr_png_())))
        image = imgdl.decode(jpeg(8, 8, 100, icc=linear_gray()), colour="srgb")
        self.assertIn("sRGB", chunks(image._repr_png_()))
        source = png(1, 1, [[100, 150, 200, 255]], icc=linear_rgb())
        saved = imgdl.decode(source)._repr_png_()
        self.assertEqual(zlib.decompress(chunks(saved)["iCCP"][13:]), linear_rgb())
        # The same colours, either way.
        converted = imgdl.decode(source, colour="srgb")
        self.assertNotEqual(converted.pixels, imgdl.decode(source).pixels)
        self.assertEqual(imgdl.decode(saved, colour="srgb").pixels, converted.pixels)
        self.assertEqual(imgdl.decode(converted._repr_png_()).pixels, converted.pixels)
        self.assertTrue(imgdl.decode(converted._repr_png_()).is_srgb)

    def test_targets(self):
        image = imgdl.decode(DATA)
        with open(self.path("open.png"), "wb") as file:
            image.save(file)
        image.save(self.path("none"))
        self.assertEqual(self.read("open.png"), self.read("none"))
        image.save(BytesPath(self.path("bytes.png")))
        self.assertEqual(self.read("bytes.png"), self.read("none"))
        with self.assertRaises(FileNotFoundError):
            image.save(self.path("nothing/picture.png"))
        with self.assertRaisesRegex(ImportError, "^saving as webp needs Pillow"):
            image.save(BytesPath(self.path("picture.webp")))
        image.close()
        with self.assertRaises(imgdl.Error) as caught:
            image.save(self.path("none"))
        self.assertEqual(caught.exception.code, Code.INVALID_HANDLE)
        # What could not be written left the file alone.
        self.assertEqual(self.read("open.png"), self.read("none"))

    def test_without_pillow(self):
        image = imgdl.decode(DATA)
        for call in (
            image.to_pil,
            lambda: image.save(self.path("picture.jpg")),
            lambda: image.save(self.path("picture.png"), optimize=True),
        ):
            with self.assertRaisesRegex(ImportError, "needs Pillow: pip install Pillow"):
                call()
        self.assertEqual(os.listdir(self.folder), [])

    def test_copies(self):
        image = imgdl.decode(DATA)
        self.assertIs(copy.copy(image), image)
        self.assertIs(copy.deepcopy(image), image)
        with self.assertRaisesRegex(TypeError, "other processes"):
            pickle.dumps(image)


class BodyTests(OriginTests):
    def test_body(self):
        with tempfile.TemporaryDirectory() as folder, self.downloader() as downloader:
            body = downloader.download(self.origin.picture("opaque.png"), body=True).result()
            path = os.path.join(folder, "picture.png")
            body.save(path)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), self.origin.bytes("opaque.png"))
            body.save(BytesPath(path + "2"))
            with open(path + "2", "rb") as file:
                self.assertEqual(file.read(), self.origin.bytes("opaque.png"))


if __name__ == "__main__":
    unittest.main()
