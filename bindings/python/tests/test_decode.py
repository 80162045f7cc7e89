import gc
import mmap
import struct
import sys
import unittest

try:
    import numpy
except ImportError:
    numpy = None

import imgdl
from imgdl import Code, ColourNotes, _canvas
from support import PICTURES, OriginTests, jpeg, linear_gray, pictures, png

FORMATS = {"jpg": "jpeg", "png": "png", "webp": "webp", "gif": "gif"}
FRAMES = {"animated.webp": 3, "animated.gif": 3, "animated.png": 2}


class DecodeTests(OriginTests):
    def test_every_pixel_of_a_small_picture(self):
        rows = [[255, 0, 0, 255, 0, 255, 0, 128], [0, 0, 255, 0, 9, 8, 7, 1], [1, 2, 3, 4, 5, 6, 7, 8]]
        image = imgdl.decode(png(2, 3, rows))
        self.assertEqual((image.width, image.height, image.stride), (2, 3, 8))
        self.assertEqual((image.format, image.pixel_format), ("png", "rgba8"))
        self.assertEqual((image.frame_count, image.orientation, image.pass_), (1, 1, 1))
        self.assertIs(image.is_complete, True)
        self.assertEqual(image.ready, (0, 0, 2, 3))
        self.assertIs(type(image.pixels), bytes)
        self.assertEqual(image.pixels, b"".join(map(bytes, rows)))

    def test_pixel_formats(self):
        data = png(1, 1, [[200, 100, 50, 128]])
        pixels = {
            "rgba8": [200, 100, 50, 128],
            "bgra8": [50, 100, 200, 128],
            "rgba8_premultiplied": [100, 50, 25, 128],
            "bgra8_premultiplied": [25, 50, 100, 128],
            "rgb8": [200, 100, 50],
            "rgba16": list(struct.pack("=4H", *(257 * each for each in (200, 100, 50, 128)))),
        }
        for pixel_format, expected in pixels.items():
            with self.subTest(pixel_format):
                image = imgdl.decode(data, pixel_format=pixel_format)
                self.assertEqual(image.pixel_format, pixel_format)
                self.assertEqual(list(image.pixels), expected)

    def test_every_kind_of_picture(self):
        for name in PICTURES:
            with self.subTest(name):
                image = imgdl.decode(self.origin.bytes(name))
                self.assertEqual(image.format, FORMATS[name.rpartition(".")[2]])
                self.assertEqual(len(image.pixels), 4 * image.width * image.height)
                self.assertEqual(image.frame_count, FRAMES.get(name, 1))

    def test_orientation(self):
        data = self.origin.bytes("oriented-6.jpg")
        turned, stored = imgdl.decode(data), imgdl.decode(data, ignore_orientation=True)
        self.assertEqual((turned.orientation, turned.width, turned.height), (6, 800, 1200))
        self.assertEqual((stored.orientation, stored.width, stored.height), (6, 1200, 800))
        # A quarter turn to the right: the first stored row is the last column, from top to bottom.
        self.assertEqual(turned.pixels[4 * 799 : 4 * 800], stored.pixels[:4])

    def test_anything_with_the_buffer_protocol(self):
        data = png(1, 1, [[1, 2, 3, 4]])
        mapped = mmap.mmap(-1, len(data))
        self.addCleanup(mapped.close)
        mapped.write(data)
        for given in (data, bytearray(data), memoryview(data), memoryview(bytearray(b"x" + data))[1:], mapped):
            with self.subTest(type(given)):
                self.assertEqual(imgdl.decode(given).pixels, b"\1\2\3\4")
        with self.assertRaises(TypeError):
            imgdl.decode("text")

    def test_what_is_no_picture(self):
        for data in (b"", b"<html></html>", b"\x89PNG\r\n\x1a\n" + bytes(100), bytearray()):
            error = self.assertRaisesImage(Code.BAD_IMAGE_DATA, data)
            self.assertIsNone(error.image)

    def assertRaisesImage(self, code, data, **options):
        error = self.assertCode(code, imgdl.decode, data, **options)
        self.assertIsInstance(error, imgdl.ImageError)
        return error

    def test_a_cut_picture_is_an_error_and_can_be_salvaged(self):
        for name in ("baseline.jpg", "opaque.png", "lossy.webp"):
            with self.subTest(name):
                data = self.origin.bytes(name)
                whole = imgdl.decode(data)
                cut = data[: len(data) // 2]
                self.assertIsNone(self.assertRaisesImage(Code.TRUNCATED, cut).image)
                image = self.assertRaisesImage(Code.TRUNCATED, cut, salvage=True).image
                self.assertEqual((image.width, image.height), (whole.width, whole.height))
                self.assertIs(image.is_complete, False)
                self.assertGreater(image.ready.height, 0)
                self.assertEqual(image.pixels[: 4 * image.width], whole.pixels[: 4 * whole.width])

    def test_limit_of_pixels(self):
        data = png(4, 4, [[0] * 16] * 4)
        self.assertIsInstance(self.assertCode(Code.PIXEL_LIMIT, imgdl.decode, data, max_pixels=15), imgdl.LimitError)
        self.assertEqual(imgdl.decode(data, max_pixels=16).width, 4)

    def test_options_that_cannot_be(self):
        for options in ({"max_pixels": 0}, {"max_pixels": -1}, {"max_pixels": 1 << 64}, {"pixel_format": "cmyk"}):
            with self.subTest(options):
                self.assertCode(Code.INVALID_ARGUMENT, imgdl.decode, b"", **options)
                with self.assertRaises(ValueError):
                    imgdl.decode(b"", **options)
        with self.assertRaises(TypeError):
            imgdl.decode(b"", scale=2)

    def test_images_and_bodies_are_not_made_by_hand(self):
        for kind in (imgdl.Image, imgdl.Body):
            with self.assertRaises(TypeError):
                kind()


class SizeTests(unittest.TestCase):
    def test_sizes(self):
        data = (pictures() / "baseline.jpg").read_bytes()
        whole = imgdl.decode(data)
        for size, expected in (
            ((whole.width // 2, None), (whole.width // 2, whole.height // 2)),
            ((None, whole.height // 4), (whole.width // 4, whole.height // 4)),
            ((None, None), (whole.width, whole.height)),
            ((whole.width * 2, whole.height * 2), (whole.width, whole.height)),
        ):
            with self.subTest(size):
                image = imgdl.decode(data, size=size)
                self.assertEqual((image.width, image.height), expected)
                self.assertEqual(len(image.pixels), 4 * image.width * image.height)
        image = imgdl.decode(data, size=(50, 50), stretch=True)
        self.assertEqual((image.width, image.height), (50, 50))
        image = imgdl.decode(data, scale_down=1_000_000)
        self.assertLessEqual(len(image.pixels), 1_000_000)
        image = imgdl.decode(data, scale_down=1)
        self.assertEqual((image.width, image.height), (1, 1))
        self.assertEqual(imgdl.decode(data, scale_down=True).width, whole.width)
        with imgdl.Decoder(size=(10, 10)) as decoder:
            decoder.feed(data)
            self.assertEqual(max(decoder.info.width, decoder.info.height), 10)
            self.assertEqual(max(decoder.finish().width, decoder.info.height), 10)


class OutputTests(unittest.TestCase):
    def test_sixteen_bits_stay(self):
        words = [1, 2, 300, 65535, 40000, 3, 2, 1]
        data = png(2, 1, [struct.pack(">8H", *words)], depth=16)
        image = imgdl.decode(data, pixel_format="rgba16")
        self.assertEqual((image.stride, image.pixel_format), (16, "rgba16"))
        self.assertEqual(list(struct.unpack("=8H", image.pixels)), words)
        described = image.__array_interface__
        self.assertEqual((described["shape"], described["strides"]), ((1, 2, 4), (16, 8, 2)))
        self.assertEqual(described["typestr"], "<u2" if sys.byteorder == "little" else ">u2")

    def test_three_bytes_a_pixel(self):
        image = imgdl.decode(png(2, 1, [[1, 2, 3, 255, 4, 5, 6, 0]]), pixel_format="rgb8")
        self.assertEqual((image.stride, image.pixels), (6, bytes([1, 2, 3, 4, 5, 6])))
        described = image.__array_interface__
        self.assertEqual((described["shape"], described["strides"]), ((1, 2, 3), (6, 3, 1)))
        image = imgdl.Image.create(2, 1, bytes(range(8)), "rgb8", stride=8)
        self.assertEqual(image.pixels, bytes(range(6)))
        with self.assertRaises(imgdl.InvalidArgument):
            imgdl.Image.create(2, 1, bytes(99), "rgba16", stride=15)

    def test_colours(self):
        profile = linear_gray()
        data = jpeg(24, 16, 128, icc=profile)
        stored, converted = imgdl.decode(data), imgdl.decode(data, colour="srgb")
        self.assertEqual(stored.pixels, bytes([128, 128, 128, 255]) * (24 * 16))
        self.assertIs(stored.colour_notes, ColourNotes.ICC)
        # Half of the light is three quarters of sRGB (IEC 61966-2-1).
        self.assertLessEqual(max(abs(each - 188) for each in converted.pixels[:3]), 1)
        self.assertEqual(converted.colour_notes, ColourNotes.ICC | ColourNotes.CONVERTED)
        self.assertEqual((stored.icc_profile, converted.icc_profile), (profile, profile))
        self.assertEqual(imgdl.decode(data, colour="as_stored").pixels, stored.pixels)
        broken = imgdl.decode(jpeg(8, 8, 128, icc=b"no profile"), colour="srgb")
        self.assertEqual(broken.colour_notes, ColourNotes.ICC | ColourNotes.UNUSABLE_PROFILE)
        # One that has processing elements, which may be as many as its author likes.
        endless = bytes(128) + (1).to_bytes(4, "big") + b"D2B0" + (144).to_bytes(4, "big") + (8).to_bytes(4, "big")
        costly = imgdl.decode(jpeg(8, 8, 128, icc=endless + b"mpet" + bytes(4)), colour="srgb")
        notes = ColourNotes.ICC | ColourNotes.UNUSABLE_PROFILE | ColourNotes.COSTLY_PROFILE
        self.assertEqual(costly.colour_notes, notes)
        self.assertEqual(costly.icc_profile, endless + b"mpet" + bytes(4))
        plain = imgdl.decode(png(1, 1, [[1, 2, 3, 4]]), colour="srgb")
        self.assertEqual((plain.icc_profile, plain.colour_notes), (None, ColourNotes(0)))


class LimitTests(unittest.TestCase):
    def test_i41_i42_each_limit_has_its_code(self):
        for name, options, code in (
            ("baseline.jpg", {"max_side": 1199}, Code.SIZE_LIMIT),
            ("progressive.jpg", {"max_scans": 1}, Code.SCAN_LIMIT),
            ("animated.gif", {"all_frames": True, "max_animation_pixels": 35}, Code.ANIMATION_LIMIT),
            ("oriented-6.jpg", {"max_metadata_bytes": 8}, Code.METADATA_LIMIT),
            ("lossy.webp", {"max_memory_bytes": 1200 * 800}, Code.MEMORY_LIMIT),
            # Whatever the machine, a picture of a megapixel takes more than a millisecond.
            ("arithmetic.jpg", {"max_decode_ms": 1}, Code.DECODE_TIMEOUT),
        ):
            with self.subTest(name):
                data = (pictures() / name).read_bytes()
                with self.assertRaises(imgdl.LimitError) as caught:
                    imgdl.decode(data, **options)
                self.assertEqual(caught.exception.code, code)
                more = {key: value if value is True else 1 << 31 for key, value in options.items()}
                self.assertIs(imgdl.decode(data, **more).is_complete, True)

    def test_what_came_before_the_limit_is_kept(self):
        with self.assertRaises(imgdl.LimitError) as caught:
            imgdl.decode((pictures() / "progressive.jpg").read_bytes(), max_scans=1, salvage=True)
        self.assertEqual((caught.exception.image.width, caught.exception.image.is_complete), (1280, False))


class EarlyTests(unittest.TestCase):
    def test_r05_the_thumbnail_comes_first(self):
        data = jpeg(48, 32, 200, thumbnail=jpeg(12, 8, 40))
        # Behind the head of the scan, which has ten bytes.
        start = data.rindex(b"\xff\xda") + 10
        for first, options in ((40, {"thumbnail_first": True}), (None, {})):
            with self.subTest(first), imgdl.Decoder(**options) as decoder:
                decoder.feed(data[:start])
                partial = decoder.partial()
                if first is None:
                    self.assertIsNone(partial)
                else:
                    self.assertEqual((partial.width, partial.height), (48, 32))
                    self.assertEqual(partial.pixels[:4], bytes([first, first, first, 255]))
                    self.assertIs(partial.is_good_enough, False)
                decoder.feed(data[start:])
                image = decoder.finish()
                self.assertEqual(image.pixels[:4], bytes([200, 200, 200, 255]))
                self.assertIs(image.is_good_enough, True)

    def test_incomplete_end(self):
        data = (pictures() / "baseline.jpg").read_bytes()
        self.assertIs(imgdl.decode(data).has_incomplete_end, False)
        shown = imgdl.decode(data[:-2])
        self.assertIs(shown.has_incomplete_end, True)
        self.assertIs(shown.is_complete, True)

    def test_good_enough(self):
        data = (pictures() / "progressive.jpg").read_bytes()
        for scan in (2, 4):
            seen = {}
            with imgdl.Decoder(good_enough_scan=scan) as decoder:
                for start in range(0, len(data), 2000):
                    decoder.feed(data[start : start + 2000])
                    partial = decoder.partial()
                    if partial is not None:
                        seen[partial.pass_] = partial.is_good_enough
            self.assertGreater(max(seen), scan)
            self.assertEqual(seen, {number: number >= scan for number in seen})


class IntoTests(unittest.TestCase):
    def setUp(self):
        self.rows = [[1, 2, 3, 255, 4, 5, 6, 255], [7, 8, 9, 255, 10, 11, 12, 255]]
        self.data = png(2, 2, self.rows)
        self.pixels = b"".join(map(bytes, self.rows))

    def assertNothingIsKept(self):
        gc.collect()
        self.assertEqual(len(_canvas._lent), 0)

    def test_memory_of_ours(self):
        memory = bytearray(16)
        image = imgdl.decode(self.data, into=memory)
        self.assertEqual((bytes(memory), image.pixels, bytes(image.view)), (self.pixels,) * 3)
        memory[0] = 99
        self.assertEqual(image.view[0], 99, "not copied")
        with self.assertRaises(BufferError):
            memory.append(1)
        image.close()
        memory.append(1)
        self.assertNothingIsKept()

    def test_rows_apart(self):
        # The last row may end where its pixels do.
        memory = bytearray(b"\x77" * (10 + 8))
        with imgdl.decode(self.data, into=memory, stride=10) as image:
            self.assertEqual((image.stride, image.pixels), (10, self.pixels))
            self.assertEqual(len(image.view), 18)
        self.assertEqual(bytes(memory), bytes(self.rows[0]) + b"\x77\x77" + bytes(self.rows[1]))
        memory = bytearray(12)
        view = memoryview(memory).cast("B", (2, 6))
        imgdl.decode(self.data, into=view, pixel_format="rgb8").close()
        self.assertEqual(memory, bytes([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]))
        del view
        self.assertNothingIsKept()

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_a_part_of_an_array(self):
        for name in PICTURES + ["animated.gif", "animated.png"]:
            data = (pictures() / name).read_bytes()
            for pixel_format in ("bgra8", "rgb8", "rgba16"):
                with self.subTest(name, pixel_format=pixel_format):
                    expected = numpy.asarray(imgdl.decode(data, pixel_format=pixel_format))
                    height, width, channels = expected.shape
                    atlas = numpy.full((height + 3, width + 5, channels), 7, expected.dtype)
                    with imgdl.decode(data, into=atlas[2:-1, 5:], pixel_format=pixel_format) as image:
                        self.assertEqual(image.stride, atlas.strides[0])
                        self.assertTrue((numpy.asarray(image) == expected).all())
                    self.assertTrue((atlas[2:-1, 5:] == expected).all())
                    atlas[2:-1, 5:] = 7
                    self.assertTrue((atlas == 7).all(), "written beside the picture")
        self.assertNothingIsKept()

    def test_the_frames_of_an_animation_have_memory_of_their_own(self):
        memory = bytearray(4 * 3 * 4)
        image = imgdl.decode((pictures() / "animated.gif").read_bytes(), into=memory, all_frames=True)
        frames = image.frames
        self.assertEqual([frame.pixels[0] for frame in frames], [10, 20, 30])
        self.assertEqual(memory[0], 10)
        image.close()
        self.assertEqual([frame.pixels[-2] for frame in frames], [10, 20, 30])
        del frames
        self.assertNothingIsKept()

    def test_a_broken_picture_gives_the_memory_back(self):
        memory = bytearray(16)
        for options in ({}, {"salvage": True}):
            with self.assertRaises(imgdl.ImageError) as caught:
                imgdl.decode(self.data[:-28], into=memory, **options)
            del caught
            self.assertNothingIsKept()
        with self.assertRaises(imgdl.LimitError):
            imgdl.decode(self.data, into=memory, max_side=1)
        memory.clear()
        self.assertNothingIsKept()

    def test_what_is_no_place_for_the_picture(self):
        for into, options, words in (
            (b"0123456789abcdef", {}, "written"),
            (bytearray(15), {}, "2 rows of 8 bytes, and into has 15"),
            (bytearray(17), {"stride": 10}, "10 apart"),
            (bytearray(17), {"stride": 7}, "7 apart"),
            (memoryview(bytearray(64))[::2], {}, "contiguous"),
            (memoryview(bytearray(16)).cast("B", (2, 8)), {"stride": 8}, "stride"),
            (memoryview(bytearray(24)).cast("B", (3, 8)), {}, "3 rows of 8"),
            (memoryview(bytearray(24)).cast("B", (2, 12)), {}, "2 rows of 12"),
            (memoryview(bytearray(16)).cast("B", (2, 8))[::-1], {}, "backwards"),
            (None, {"stride": 8}, "into"),
        ):
            with self.subTest(words), self.assertRaises(imgdl.InvalidArgument) as caught:
                imgdl.decode(self.data, into=into, **options)
            self.assertIn(words, str(caught.exception))
        with self.assertRaises(TypeError):
            imgdl.decode(self.data, into=7)
        self.assertNothingIsKept()


class FrameTests(unittest.TestCase):
    def test_t18_t19_frames(self):
        for name, grays, durations, loops in (
            ("animated.gif", [10, 20, 30], [50, 60, 70], 6),
            ("animated.png", [10, 20], [50, 60], 2),
        ):
            with self.subTest(name):
                data = (pictures() / name).read_bytes()
                image = imgdl.decode(data, all_frames=True)
                frames = image.frames
                self.assertEqual((len(frames), image.frame_count, image.loop_count), (len(grays), len(grays), loops))
                self.assertEqual([frame.duration_ms for frame in frames], durations)
                self.assertEqual(image.duration_ms, durations[0])
                image.close()
                for gray, frame in zip(grays, frames):
                    self.assertEqual((frame.width, frame.height), (4, 3))
                    self.assertEqual(frame.pixels, bytes([gray, gray, gray, 255]) * 12)
                still = imgdl.decode(data)
                self.assertEqual((len(still.frames), still.frame_count), (1, len(grays)))
                with self.assertRaises(imgdl.LimitError) as caught:
                    imgdl.decode(data, all_frames=True, max_frames=1)
                self.assertEqual(caught.exception.code, Code.FRAME_LIMIT)
                self.assertEqual(imgdl.decode(data, require_animation=True).width, 4)

    def test_still_pictures(self):
        data = (pictures() / "palette.png").read_bytes()
        image = imgdl.decode(data, all_frames=True)
        self.assertEqual((len(image.frames), image.loop_count, image.duration_ms, image.scale_factor), (1, 1, 0, 1.0))
        self.assertEqual(image.frames[0].pixels, image.pixels)
        with self.assertRaises(imgdl.ImageError):
            imgdl.decode(data, require_animation=True)


class CreateTests(unittest.TestCase):
    def test_pixels_of_ours(self):
        pixels = bytes(range(24))
        image = imgdl.Image.create(3, 2, pixels, "bgra8")
        self.assertEqual((image.width, image.height, image.pixel_format), (3, 2, "bgra8"))
        self.assertEqual((image.pixels, image.is_complete, image.frame_count), (pixels, True, 1))
        image = imgdl.Image.create(2, 2, bytearray(pixels), stride=12)
        self.assertEqual(image.pixels, pixels[:8] + pixels[12:20])
        self.assertEqual(imgdl.Image.create(1, 1, memoryview(pixels)).pixel_format, "rgba8")

    def test_sides_are_taken_as_numbers_whatever_their_type_makes_of_products(self):
        class Narrow(int):
            """As numpy.uint8."""

            def __mul__(self, other):
                return Narrow(int(self) * int(other) & 255)

            __rmul__ = __mul__

        class Index:
            def __init__(self, value):
                self.value = value

            def __index__(self):
                return self.value

        for kind in (Narrow, Index):
            image = imgdl.Image.create(kind(200), kind(2), bytes(1600))
            self.assertEqual((image.width, image.height, image.pixels), (200, 2, bytes(1600)))
            for size in (0, 1599):
                with self.subTest(kind=kind, size=size), self.assertRaisesRegex(imgdl.InvalidArgument, "1600 are needed"):
                    imgdl.Image.create(kind(200), kind(2), bytes(size))

    def test_what_cannot_be(self):
        for name, arguments, options in (
            ("width", (0, 1, b"1234"), {}),
            ("height", (1, 1 << 32, b"1234"), {}),
            ("pixels", (2, 1, b"1234"), {}),
            ("pixel_format", (1, 1, b"1234", "cmyk"), {}),
            ("stride", (2, 1, bytes(99)), {"stride": 7}),
            ("stride", (2, 1, bytes(99)), {"stride": -1}),
        ):
            with self.subTest(name), self.assertRaises(imgdl.InvalidArgument) as caught:
                imgdl.Image.create(*arguments, **options)
            self.assertIn(name, str(caught.exception))
        with self.assertRaises(TypeError):
            imgdl.Image.create(1, 1, "1234")


class DecoderTests(OriginTests):
    def test_in_pieces_as_at_once(self):
        for name in PICTURES:
            with self.subTest(name), imgdl.Decoder(pixel_format="bgra8") as decoder:
                data = self.origin.bytes(name)
                for start in range(0, len(data), 10_000):
                    decoder.feed(data[start : start + 10_000])
                image = decoder.finish()
                self.assertEqual(image.pixels, imgdl.decode(data, pixel_format="bgra8").pixels)
                self.assertIs(image.is_complete, True)

    def test_the_header_comes_early(self):
        data = self.origin.bytes("progressive.jpg")
        with imgdl.Decoder() as decoder:
            decoder.feed(data[:2])
            self.assertIsNone(decoder.info)
            self.assertIsNone(decoder.partial())
            decoder.feed(bytearray(data[2:2000]))
            info = decoder.info
        self.assertEqual((info.format, info.width, info.height, info.orientation), ("jpeg", 1280, 853, 1))
        self.assertEqual((info.frame_count, info.has_alpha, info.is_progressive), (1, False, True))

    def test_partial_images_grow(self):
        data = self.origin.bytes("opaque.png")
        with imgdl.Decoder() as decoder:
            heights = []
            for start in range(0, len(data), len(data) // 5):
                decoder.feed(data[start : start + len(data) // 5])
                image = decoder.partial()
                if image is not None:
                    self.assertEqual((image.width, image.height), (900, 600))
                    heights.append(image.ready.height)
                    self.assertIsNone(decoder.partial())
        self.assertGreater(len(heights), 2)
        self.assertEqual(heights, sorted(set(heights)))

    def test_the_end_comes_too_early(self):
        with imgdl.Decoder(salvage=True) as decoder:
            decoder.feed(self.origin.bytes("opaque.png")[:100_000])
            error = self.assertCode(Code.TRUNCATED, decoder.finish)
        self.assertIs(error.image.is_complete, False)

    def test_what_is_broken_stays_so(self):
        with imgdl.Decoder() as decoder:
            self.assertCode(Code.BAD_IMAGE_DATA, decoder.feed, b"no picture, whatever may come")
            self.assertCode(Code.BAD_IMAGE_DATA, decoder.feed, b"more")
            self.assertCode(Code.BAD_IMAGE_DATA, decoder.finish)

    def test_closed(self):
        decoder = imgdl.Decoder()
        decoder.close()
        decoder.close()
        for call in (decoder.finish, decoder.partial, lambda: decoder.info, lambda: decoder.feed(b"")):
            self.assertCode(Code.INVALID_HANDLE, call)


if __name__ == "__main__":
    unittest.main()
