"""An interrupt between a download that was asked for and the name of its token: nobody could cancel it any more."""

import asyncio
import base64
import contextlib
import gc
import os
import time
import unittest
import warnings

import imgdl
import imgdl.aio
from imgdl import _map, _state, downloader, stream, token
from strikes import struck
from support import PATIENCE, Origin, png

ENDING = "data:image/png;base64," + base64.b64encode(png(1, 1, [[1, 2, 3, 255]])).decode()
PACKAGE = os.path.dirname(imgdl.__file__)


def is_meant(code):
    """Whether the code asks for a download on behalf of somebody: not what it calls."""
    return code.co_filename in {module.__file__ for module in (downloader, stream, _map)}


class NobodysDownloadTests(unittest.TestCase):
    """A download that never ends by itself has ended, wherever an interrupt struck who asked for it."""

    @classmethod
    def setUpClass(cls):
        cls.origin = Origin()
        cls.addClassCleanup(cls.origin.stop)
        cls.endless = cls.origin.picture("gray.jpg", first_byte="never")

    def strike_everywhere(self, action, settle=lambda: os.sched_yield()):
        action()
        number, has_struck = 0, True
        while has_struck:
            has_struck, problem = struck(action, number, is_meant)
            if has_struck:
                self.assertIsInstance(problem, KeyboardInterrupt, f"at place {number}")
            elif problem is not None:
                raise problem
            del problem
            deadline = time.monotonic() + PATIENCE / 6
            for _ in range(20):
                settle()
            while token._outstanding:
                self.assertLess(time.monotonic(), deadline, f"at place {number} it is lost: {token._outstanding}")
                gc.collect()
                settle()
            number += 1
        self.assertGreater(number, 3)

    def strike_on_a_loop(self, main):
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        # It would say that nobody looked at what has struck a task.
        loop.set_exception_handler(lambda loop, context: None)
        own = imgdl.Downloader(allow_data_urls=True)
        self.addCleanup(own.close)

        def act():
            try:
                loop.run_until_complete(main(own))
            finally:
                for task in asyncio.all_tasks(loop):
                    task.cancel()
                    loop.run_until_complete(asyncio.wait([task]))

        self.strike_everywhere(act, lambda: loop.run_until_complete(asyncio.sleep(0)))

    def test_get(self):
        def act():
            with contextlib.suppress(imgdl.WaitTimeout):
                imgdl.get(self.endless, timeout=0.001)

        self.strike_everywhere(act)

    def test_get_on_a_loop(self):
        async def main(own):
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(own.get(self.endless), 0.001)

        self.strike_on_a_loop(main)

    def test_a_stream(self):
        async def main(own):
            async with own.stream(self.endless):
                pass

        self.strike_on_a_loop(main)

    def test_map(self):
        with imgdl.Downloader(allow_data_urls=True) as own:
            for is_ordered in (True, False):

                def act():
                    # Closed here: Python's own finalizer of generators loses what is raised.
                    with contextlib.closing(own.map([ENDING, "no address", self.endless], ordered=is_ordered)) as tokens:
                        next(tokens)

                with self.subTest(is_ordered):
                    self.strike_everywhere(act)

    def test_map_on_a_loop(self):
        async def main(own):
            async with contextlib.aclosing(own.amap([ENDING, "no address", self.endless])) as tokens:
                async for each in tokens:
                    break

        self.strike_on_a_loop(main)

    def test_a_close_that_is_struck(self):
        """A downloader that takes no more has cancelled everything."""
        number, has_struck = 0, True
        while has_struck:
            own = imgdl.Downloader()
            asked = own.download(self.endless)
            has_struck, problem = struck(own.close, number, lambda code: code.co_filename == _state.__file__)
            self.assertEqual(has_struck, isinstance(problem, KeyboardInterrupt))
            del problem
            if "closed" in repr(own):
                self.assertIsInstance(asked.exception(PATIENCE / 6), imgdl.Cancelled, f"at place {number}")
            own.close()
            number += 1
        self.assertGreater(number, 3)

    def test_what_a_batch_came_to(self):
        """Wherever its last progress was struck."""
        batches = []

        async def main(own, urls):
            batches[:] = [own.prefetch(urls, loop=asyncio.get_running_loop())]
            await ended()

        async def ended():
            while not batches[0].done():
                await asyncio.sleep(0)

        names = {"called", "_on_progress", "_receive", "_on_end", "_end"}
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        with imgdl.Downloader(allow_data_urls=True) as own:
            for urls in ([], [ENDING, ENDING]):
                number, has_struck = 0, True
                while has_struck:
                    has_struck, problem = struck(
                        lambda: loop.run_until_complete(main(own, urls)), number,
                        lambda code: code.co_filename.startswith(PACKAGE) and code.co_name in names)
                    self.assertEqual(has_struck, isinstance(problem, KeyboardInterrupt))
                    del problem
                    loop.run_until_complete(ended())
                    progress = batches[0].progress
                    self.assertTrue(progress.is_finished, f"at place {number} of {len(urls)}: {progress}")
                    self.assertEqual((progress.finished, progress.total), (len(urls), len(urls)))
                    number += 1
                self.assertGreater(number, 3)

    def test_awaiting(self):
        """Python does not warn that what an interrupt struck is awaited by nobody."""

        async def main():
            async with imgdl.Downloader(allow_data_urls=True) as own:
                await own.download(ENDING, loop=asyncio.get_running_loop())

        is_awaiting = {imgdl.aio.awaiting.__code__, imgdl.Token.__await__.__code__, imgdl.Batch.__await__.__code__}
        number, has_struck = 0, True
        while has_struck:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                has_struck, problem = struck(lambda: asyncio.run(main()), number, lambda code: code in is_awaiting)
                self.assertEqual(has_struck, isinstance(problem, KeyboardInterrupt))
                del problem
                gc.collect()
            awaited = [str(each.message) for each in warned if "awaited" in str(each.message)]
            self.assertEqual(awaited, [], f"at place {number}")
            number += 1
        self.assertGreater(number, 2)


if __name__ == "__main__":
    unittest.main()
