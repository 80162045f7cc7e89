"""What goes together with Pillow, numpy and tqdm."""

import contextlib
import doctest
import io
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import numpy  # noqa: E402
import PIL.Image  # noqa: E402

import imgdl  # noqa: E402
import test_documentation as documentation  # noqa: E402
from support import OriginTests, linear_rgb, pictures, png  # noqa: E402

ROWS = [[1, 2, 3, 255, 200, 100, 50, 128, 9, 8, 7, 0], [7, 8, 9, 255, 10, 250, 12, 255, 250, 0, 60, 200]]
DATA = png(3, 2, ROWS)


def load_tests(loader, tests, pattern):
    for test in documentation.examples():
        if test.name == documentation.NEEDS_PILLOW:
            tests.addTest(doctest.DocTestCase(test, setUp=documentation.start, tearDown=documentation.stop))
    return tests


class PillowTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        return Path(self.path(name)).read_bytes()

    def test_what_was_saved_is_what_others_read(self):
        for name in ("opaque.png", "alpha.png", "palette.png", "lossy.webp", "baseline.jpg"):
            image = imgdl.decode((pictures() / name).read_bytes())
            image.save(self.path("saved.png"))
            with PIL.Image.open(self.path("saved.png")) as again:
                self.assertEqual((again.format, again.mode, again.tobytes()), ("PNG", "RGBA", image.pixels), name)
            # The filter of its rows earns its keep.
            plain = io.BytesIO()
            image.to_pil().save(plain, "PNG")
            self.assertLess(os.path.getsize(self.path("saved.png")), 2 * len(plain.getvalue()), name)

    def test_to_pil(self):
        straight = imgdl.decode(DATA).pixels
        for pixel_format in ("rgba8", "bgra8"):
            picture = imgdl.decode(DATA, pixel_format=pixel_format).to_pil()
            self.assertEqual((picture.mode, picture.size, picture.tobytes()), ("RGBA", (3, 2), straight))
        for pixel_format in ("rgba8_premultiplied", "bgra8_premultiplied"):
            picture = numpy.asarray(imgdl.decode(DATA, pixel_format=pixel_format).to_pil()).astype(int)
            expected = numpy.array(ROWS).reshape(2, 3, 4)
            expected[expected[..., 3] == 0] = 0
            self.assertLessEqual(abs(picture - expected).max(), 2)
        picture = imgdl.decode(DATA, pixel_format="rgb8").to_pil()
        self.assertEqual((picture.mode, picture.tobytes()[:3]), ("RGB", b"\1\2\3"))
        deep = png(2, 1, [[1, 200, 3, 200, 5, 200, 255, 255, 7, 0, 9, 0, 11, 0, 128, 0]], depth=16)
        picture = imgdl.decode(deep, pixel_format="rgba16").to_pil()
        self.assertEqual((picture.mode, picture.tobytes()), ("RGBA", bytes([1, 3, 5, 255, 7, 9, 11, 128])))
        # Rows that lie apart.
        picture = imgdl.decode(DATA, into=bytearray(40), stride=20).to_pil()
        self.assertEqual(picture.tobytes(), straight)

    def test_it_outlives_the_image(self):
        image = imgdl.decode(DATA)
        pixels = image.pixels
        picture = image.to_pil()
        image.close()
        del image
        self.assertEqual(picture.tobytes(), pixels)
        # And is one's own as soon as it is drawn on.
        picture.putpixel((0, 0), (0, 0, 0, 0))
        self.assertEqual(picture.tobytes()[4:], pixels[4:])

    def test_partial_pictures_do_not_change(self):
        data = (pictures() / "progressive.jpg").read_bytes()
        with imgdl.Decoder() as decoder:
            decoder.feed(data[: len(data) // 3])
            partial = decoder.partial()
            picture = partial.to_pil()
            before = picture.tobytes()
            decoder.feed(data[len(data) // 3 :])
            decoder.finish()
            self.assertEqual(picture.tobytes(), before)

    def test_saving_in_other_formats(self):
        image = imgdl.decode((pictures() / "baseline.jpg").read_bytes())
        for name, options in (("a.jpg", {"quality": 80}), ("a.webp", {}), ("a.PNG", {"optimize": True}), ("a.bmp", {})):
            image.save(self.path(name), **options)
            with PIL.Image.open(self.path(name)) as again:
                self.assertEqual(again.size, (image.width, image.height))
        file = io.BytesIO()
        image.save(file, "jpeg")
        self.assertEqual(imgdl.decode(file.getvalue()).format, "jpeg")

    def test_profiles_are_kept(self):
        image = imgdl.decode(png(1, 1, [[100, 150, 200, 255]], icc=linear_rgb()))
        self.assertEqual(image.to_pil().info["icc_profile"], linear_rgb())
        for name in ("a.png", "a.jpg", "a.webp"):
            image.save(self.path(name))
            with PIL.Image.open(self.path(name)) as again:
                self.assertEqual(again.info["icc_profile"], linear_rgb(), name)

    def test_what_cannot_be_saved(self):
        image = imgdl.decode(DATA)
        Path(self.path("a.jpg")).write_bytes(b"before")
        with self.assertRaisesRegex(imgdl.InvalidArgument, "transparent"):
            image.save(self.path("a.jpg"))
        with self.assertRaisesRegex(imgdl.InvalidArgument, "[.]nonsense"):
            image.save(self.path("a.nonsense"))
        with self.assertRaises(TypeError):
            image.save(self.path("a.jpg"), "png", compress_level="most")
        self.assertEqual(os.listdir(self.folder), ["a.jpg"])
        self.assertEqual(self.read("a.jpg"), b"before")

    def test_numpy(self):
        image = imgdl.decode(DATA)
        array = numpy.asarray(image)
        self.assertEqual(array.tolist(), numpy.array(ROWS).reshape(2, 3, 4).tolist())
        self.assertFalse(array.flags.owndata)
        self.assertEqual(PIL.Image.fromarray(array).tobytes(), image.pixels)


class ProgressTests(OriginTests):
    def test_tqdm(self):
        urls = [self.origin.picture("palette.png", n=n) for n in range(4)] + [self.origin.url("/nothing")]
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown), self.downloader() as downloader:
            self.assertEqual(len(list(downloader.map(urls, progress=True))), 5)
            list(downloader.map((url for url in urls), progress=True, ordered=False))
        first, second = (line.split("\r")[-1] for line in shown.getvalue().strip().split("\n"))
        self.assertRegex(first, r"100%.*5/5 .*image.*failed=1")
        self.assertRegex(second, r"5image .*failed=1")


if __name__ == "__main__":
    unittest.main()
