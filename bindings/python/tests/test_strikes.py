"""An interrupt between a call of the library and the object that is made of what it gave: nothing is lost."""

import base64
import gc
import os
import time
import unittest

import imgdl
import imgdl.aio
from imgdl import _native
from strikes import struck
from support import PATIENCE, Strangers, gif, png

DATA = png(2, 2, [[1, 2, 3, 255, 4, 5, 6, 255], [7, 8, 9, 255, 10, 11, 12, 255]])
CUT = DATA[:-28]
ANIMATION = gif(4, 3, [10, 20, 30], [(0, 50), (1, 60), (2, 70)], loops=5)
URL = "data:image/png;base64," + base64.b64encode(DATA).decode()
PACKAGE = os.path.dirname(imgdl.__file__)


def is_meant(code):
    """This package, but for what the library calls, of which test_callbacks has its own."""
    if code.co_name == "called" or code.co_name == "_checked":
        return False
    return True if code.co_filename.startswith(PACKAGE) else None


class OwnershipTests(unittest.TestCase):
    def record(self, name, argument):
        """The handles that a function of the library gives from now on, in its argument of that number."""
        function, given = _native.functions[name], []

        def recorded(result, function, arguments):
            if arguments[argument].value:
                given.append(arguments[argument].value)
            return result

        recorded.__code__ = recorded.__code__.replace(co_name="_checked")
        function.errcheck = recorded
        self.addCleanup(delattr, function, "errcheck")
        return given

    def strike_everywhere(self, action, check):
        """`check(number)` while the interrupt's traceback is still there."""
        # What the package keeps from its first time on makes the way shorter: places would be passed over.
        action()
        check(-1)
        number, has_struck = 0, True
        while has_struck:
            has_struck, problem = struck(action, number, is_meant)
            if has_struck:
                self.assertIsInstance(problem, KeyboardInterrupt, f"at place {number}")
            elif problem is not None and not isinstance(problem, imgdl.Error):
                raise problem
            check(number)
            del problem
            number += 1
        self.assertGreater(number, 3)

    def strike_everywhere_without_its_traceback(self, action, check):
        """Where the object that the caller never got is in the traceback, which goes at the end of an `except`."""

        def act():
            is_struck = False
            try:
                action()
            except KeyboardInterrupt:
                is_struck = True
            if is_struck:
                raise KeyboardInterrupt

        self.strike_everywhere(act, check)

    def images_are_released(self, name, argument, action, strike_everywhere=None):
        given, count = self.record(name, argument), [0]

        def check(number):
            count[0] += len(given)
            self.assertEqual([each for each in given if _native.imgdl_image_retain(each)], [], f"at place {number}")
            given.clear()

        (strike_everywhere or self.strike_everywhere)(action, check)
        self.assertGreater(count[0], 3)

    def test_decode(self):
        self.images_are_released("imgdl_decode", 3, lambda: imgdl.decode(DATA) and None)

    def test_a_salvaged_picture(self):
        def act():
            try:
                imgdl.decode(CUT, salvage=True)
            except imgdl.Error:
                pass

        self.images_are_released("imgdl_decode", 3, act)

    def test_decode_into_memory(self):
        for options, size in (({}, 16), ({"stride": 10}, 18), ({"salvage": True}, 16)):
            data, memory = bytearray(CUT if options.get("salvage") else DATA), bytearray(size)

            def act():
                try:
                    imgdl.decode(data, into=memory, **options)
                except imgdl.Error:
                    pass

            def check(number):
                self.assertEqual(imgdl._canvas._lent.values(), [], f"at place {number}")
                # A BufferError where anything has it still.
                for each in (data, memory):
                    each.append(0)
                    each.pop()

            with self.subTest(options):
                self.strike_everywhere_without_its_traceback(act, check)

    def test_memory_that_the_picture_does_not_fit(self):
        """Turned it would: the memory is free again while the error's traceback is there."""
        memory = bytearray(100)
        with self.assertRaises(imgdl.Error) as caught:
            try:
                imgdl.decode(png(4, 3, [[1, 2, 3, 255] * 4] * 3), into=memory, stride=12)
            except imgdl.Error:
                memory.append(0)
                raise
        self.assertEqual(caught.exception.code, imgdl.Code.INVALID_ARGUMENT)

    def test_a_decoder(self):
        def act():
            with imgdl.Decoder() as decoder:
                decoder.feed(DATA)
                decoder.partial()
                decoder.finish()

        for name in ("imgdl_decoder_partial", "imgdl_decoder_finish"):
            with self.subTest(name):
                self.images_are_released(name, 1, act, self.strike_everywhere_without_its_traceback)

    def test_decoders(self):
        given = self.record("imgdl_decoder_create", 1)
        info = _native.imgdl_image_info()

        def check(number):
            for handle in given:
                code = _native.imgdl_decoder_info(handle, info)
                self.assertEqual(code, imgdl.Code.INVALID_HANDLE, f"at place {number}")
            given.clear()

        self.strike_everywhere_without_its_traceback(lambda: imgdl.Decoder().close(), check)

    def test_pictures_of_pixels_and_frames(self):
        without = self.strike_everywhere_without_its_traceback
        self.images_are_released("imgdl_image_create", 5, lambda: imgdl.Image.create(1, 1, bytes(4)) and None, without)
        animation = imgdl.decode(ANIMATION, all_frames=True)
        self.images_are_released("imgdl_image_frame", 2, lambda: animation.frames and None, without)

    def test_what_is_plugged_in(self):
        class Raw:
            def __init__(self, options):
                pass

            @staticmethod
            def can_decode(prefix):
                return False

            feed = finish = None

        def values():
            registries = imgdl.hooks._tables, imgdl.cache._listeners, imgdl.coder._functions
            return [registry.values() for registry in registries] + [list(imgdl.coder._registered)]

        # Those of earlier tests may still wait for their owners to be collected.
        gc.collect()
        others = [set(map(id, kept)) for kept in values()]

        def check(number):
            for kept, known in zip(values(), others):
                self.assertEqual(set(map(id, kept)) - known, set(), f"at place {number}")

        for action in (
            lambda: imgdl.Hooks(modify_request=print) and None,
            lambda: imgdl.Cache(on_event=print).close(),
            lambda: imgdl.register_coder(Raw).close(),
        ):
            check(-1)
            self.strike_everywhere_without_its_traceback(action, check)

    def test_downloaders(self):
        """None is left that nobody can close: each has descriptors of its own."""

        self.descriptors_come_back(lambda: imgdl.Downloader().close(), is_meant)

    def test_downloaders_that_cannot_be(self):
        """Wherever an interrupt strikes as what was made of them is given back."""

        def refused():
            with self.assertRaises(imgdl.Error):
                imgdl.Downloader(cookie_file="/missing/cookies")

        code = imgdl._state.State.abandon.__code__
        self.descriptors_come_back(refused, lambda each: each is code or None)

    def test_closing_in_the_place_of_a_loop(self):
        import asyncio

        def act():
            loop = asyncio.new_event_loop()
            downloader = imgdl.Downloader(allow_data_urls=True)

            async def ask():
                downloader.download(URL, loop=loop)

            loop.run_until_complete(ask())
            try:
                downloader.close()
            finally:
                downloader.close()
                loop.close()

        code = imgdl.aio.LoopPump.join.__code__
        self.descriptors_come_back(act, lambda each: each is code or None)

    def descriptors_come_back(self, action, is_meant):
        def descriptors():
            return len(os.listdir("/proc/self/fd"))

        def check(number):
            gc.collect()
            self.assertEqual(strangers.lost(), [], f"files of the program are closed at place {number}")
            strangers.close()

        action()
        before = descriptors()
        strangers = Strangers()
        self.addCleanup(lambda: strangers.close())
        # What other threads do meanwhile makes some ways shorter than others.
        number, misses = 0, 0
        while misses < 5:
            has_struck, problem = struck(action, number, is_meant)
            misses = 0 if has_struck else misses + 1
            if has_struck:
                self.assertIsInstance(problem, KeyboardInterrupt, f"at place {number}")
            elif problem is not None:
                raise problem
            check(number)
            # On the numbers of what that has closed.
            strangers = Strangers()
            del problem
            number += 1
        self.assertGreater(number, 8)
        # What ends on threads of the library ends a moment later; tracebacks of interrupts may be circles.
        check(number)
        deadline = time.monotonic() + PATIENCE
        while descriptors() > before:
            self.assertLess(time.monotonic(), deadline, f"{descriptors()} descriptors, and {before} before")
            os.sched_yield()


if __name__ == "__main__":
    unittest.main()
