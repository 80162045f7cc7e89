"""Interrupts of what the library calls: C always has a result, and the interrupt is raised where the call of C ends."""

import base64
import ctypes
import functools
import gc
import signal
import subprocess
import sys
import unittest
import unittest.mock

import imgdl
from imgdl import _callbacks
from strikes import ends, struck
from support import PATIENCE, png

DATA = png(2, 2, [[1, 2, 3, 255, 4, 5, 6, 255], [7, 8, 9, 255, 10, 11, 12, 255]])
PIXELS = bytes([1, 2, 3, 255, 4, 5, 6, 255, 7, 8, 9, 255, 10, 11, 12, 255])
URL = "data:image/png;base64," + base64.b64encode(DATA).decode()


class Coder:
    def __init__(self, options):
        self.data = b""

    @staticmethod
    def can_decode(prefix):
        return prefix[:4] == b"MINE"

    def feed(self, data):
        self.data += data

    def info(self):
        return imgdl.ImageInfo("other", 1, 1, 1, 1, True, False)

    def partial(self):
        return None

    def finish(self):
        return imgdl.Image.create(1, 1, bytes(4))

    def close(self):
        pass


def is_meant(code):
    """What the library calls, and what that calls. An interrupt inside of asyncio is lost there."""
    if "/asyncio/" in code.co_filename:
        return False
    if code.co_name == "called":
        return True
    return None


class CallbackTests(unittest.TestCase):
    def setUp(self):
        self.shown = []
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = self.shown.append

    def strike_everywhere(self, action, check):
        # What the package keeps from its first time on makes the way shorter: places would be passed over.
        action()
        number = 0
        while True:
            has_struck, problem = struck(action, number, is_meant)
            check(number)
            self.assertEqual(self.shown, [], f"at place {number}")
            if not has_struck:
                self.assertIsNone(problem)
                break
            self.assertIsInstance(problem, KeyboardInterrupt, f"at place {number}")
            del problem
            number += 1
        self.assertGreater(number, 3)

    def test_decoding_into_memory(self):
        memory = bytearray(16)

        def check(number):
            gc.collect()
            self.assertEqual(len(imgdl._canvas._lent), 0, f"at place {number}")
            imgdl.decode(DATA, into=memory).close()
            self.assertEqual(memory, PIXELS)

        self.strike_everywhere(lambda: imgdl.decode(DATA, into=memory).close(), check)

    def test_a_codec(self):
        def check(number):
            self.assertEqual(imgdl.decode(b"MINE").width, 1, f"at place {number}")

        def feed():
            with imgdl.Decoder() as decoder:
                decoder.feed(b"MINE")
                decoder.info
                decoder.partial()
                decoder.finish()

        # A decoder that was struck on its way to C is never let go by C.
        self.addCleanup(imgdl.coder._decoders.clear)
        with imgdl.register_coder(Coder):
            self.strike_everywhere(lambda: imgdl.decode(b"MINE"), check)
            self.strike_everywhere(feed, check)

    def test_a_loop(self):
        import asyncio

        def act():
            async def main():
                await downloader.get(URL)

            loop.run_until_complete(main())

        number, has_struck = 0, True
        while has_struck:
            loop = asyncio.new_event_loop()
            downloader = imgdl.Downloader(allow_data_urls=True)
            has_struck, problem = struck(act, number, is_meant)
            self.assertIsInstance(problem, KeyboardInterrupt if has_struck else type(None), f"at place {number}")
            for task in asyncio.all_tasks(loop):
                task.cancel()
                loop.run_until_complete(asyncio.wait([task]))
            self.assertTrue(ends(downloader.close), f"close hangs after an interrupt at place {number}")
            loop.close()
            self.assertEqual(self.shown, [], f"at place {number}")
            number += 1
        self.assertEqual(imgdl.token._outstanding, {})

    def test_the_end_of_a_batch(self):
        """Also the second interrupt, where another has struck what tells its progress."""
        import asyncio

        async def turn():
            await asyncio.sleep(0.01)

        code = imgdl.Batch._finish.__code__
        number, has_struck = 0, True
        while has_struck:
            loop, batches = asyncio.new_event_loop(), []
            with imgdl.Downloader() as downloader, unittest.mock.patch.object(imgdl.Batch, "_receive"):

                async def ask():
                    batches.append(downloader.prefetch([], loop=loop))

                def act():
                    loop.run_until_complete(ask())
                    while imgdl.token._outstanding:
                        loop.run_until_complete(turn())

                has_struck, problem = struck(act, number, lambda each: each is code or None)
                self.assertIsInstance(problem, KeyboardInterrupt if has_struck else type(None), f"at place {number}")
                self.assertEqual([batch.done() for batch in batches], [True], f"at place {number}")
            del problem
            loop.close()
            self.assertEqual(self.shown, [], f"at place {number}")
            number += 1
        self.assertGreater(number, 3)

    def test_what_raises_has_a_result(self):
        def raises():
            raise ValueError

        for result, otherwise in ((ctypes.c_int32, 7), (ctypes.c_void_p, None)):
            function = _callbacks.callback(ctypes.CFUNCTYPE(result), otherwise)(raises)
            self.assertEqual(function(), otherwise)
            with self.assertRaises(ValueError):
                _callbacks.raise_struck()
            _callbacks.raise_struck()

    def test_a_signal_before_the_first_line(self):
        """It came while C was at work, as nearly all do."""
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        signal_here = ctypes.PyDLL(None)["raise"]
        for result, otherwise in ((ctypes.c_int32, 7), (ctypes.c_void_p, None)):
            function = _callbacks.callback(ctypes.CFUNCTYPE(result), otherwise)(lambda: 5)
            # No Python between the two.
            calls = [functools.partial(signal_here, signal.SIGINT), function]
            for _ in range(3):
                self.assertEqual(list(map(functools.partial.__call__, map(functools.partial, calls)))[1], otherwise)
                self.assertEqual(self.shown, [])
                with self.assertRaises(KeyboardInterrupt):
                    _callbacks.raise_struck()
            self.assertEqual(function(), 5)

    def test_a_signal_in_a_codec(self):
        """What its handler raises is raised where decode ends, whatever it is."""

        class Stop(Exception):
            pass

        def stop(number, frame):
            raise Stop

        class Struck(Coder):
            def feed(self, data):
                signal.raise_signal(signal.SIGUSR1)

        for handler, kind in ((stop, Stop), (signal.default_int_handler, KeyboardInterrupt)):
            before = signal.signal(signal.SIGUSR1, handler)
            try:
                with imgdl.register_coder(Struck):
                    with self.assertRaises(kind):
                        imgdl.decode(b"MINE")
                    with imgdl.Decoder() as decoder, self.assertRaises(kind):
                        decoder.feed(b"MINE")
            finally:
                signal.signal(signal.SIGUSR1, before)
        self.assertEqual(self.shown, [])

    def test_waiting_is_possible_after_an_interrupt(self):
        """What was struck is not taken for a function that downloads wait for."""

        class Struck(Coder):
            def finish(self):
                raise KeyboardInterrupt

        with imgdl.register_coder(Struck), self.assertRaises(KeyboardInterrupt):
            imgdl.decode(b"MINE")
        self.assertFalse(_callbacks.is_on_its_thread())

    def test_a_storm_of_signals(self):
        program = """
import imgdl, signal, sys
data = bytes.fromhex(sys.argv[1])
memory = bytearray(64 * 64 * 4)
expected = imgdl.decode(data).pixels
count = 0
class Stop(BaseException): pass
def stop(number, frame):
    global count
    while frame is not None and frame.f_code.co_name != "__del__":
        if frame.f_code is imgdl.decode.__code__:
            count += 1
            if count == 100:
                signal.setitimer(signal.ITIMER_REAL, 0)
            raise Stop
        frame = frame.f_back
signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
while count < 100:
    try:
        imgdl.decode(data, into=memory)
    except Stop:
        pass
imgdl.decode(data, into=memory)
print(memory == expected)
"""
        data = png(64, 64, [[index % 251 for index in range(256)]] * 64)
        command = [sys.executable, "-c", program, data.hex()]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        processes = [subprocess.Popen(command, text=True, **pipes) for _ in range(3)]
        for process in processes:
            self.addCleanup(process.kill)
        for process in processes:
            output, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual((process.returncode, errors, output), (0, "", "True\n"))


if __name__ == "__main__":
    unittest.main()
