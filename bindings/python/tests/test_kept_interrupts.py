"""Interrupts that strike in finalizers, where Python would lose them: they end what waits next, or asks for a download."""

import asyncio
import threading
import unittest

import imgdl
from strikes import struck
from support import PATIENCE, png

DATA = png(2, 2, [[1, 2, 3, 255, 4, 5, 6, 255], [7, 8, 9, 255, 10, 11, 12, 255]])
# How long what an interrupt does not end goes on.
SECONDS = PATIENCE / 30


class Loader:
    """Ends "app:ends" alone, until it is told to end the others."""

    def __init__(self):
        self.transfers = []

    def start(self, request, transfer):
        transfer.response(200)
        if request.url == "app:ends":
            self.finish(transfer)
        else:
            self.transfers.append(transfer)

    def finish(self, transfer):
        transfer.body(DATA)
        transfer.end()

    def finish_all(self):
        while self.transfers:
            self.finish(self.transfers.pop())


def strike_a_finalizer():
    """As Ctrl-C does where a picture is let go."""
    images = [imgdl.decode(DATA)]

    def let_go():
        images.clear()

    def is_meant(code):
        return True if code.co_name == "finalized" else False if code is let_go.__code__ else None

    has_struck, problem = struck(let_go, 0, is_meant, spared=())
    if not has_struck or problem is not None:
        raise AssertionError(f"no finalizer has kept an interrupt: {problem!r}")


class KeptInterruptTests(unittest.TestCase):
    def setUp(self):
        self.loader = Loader()
        self.downloader = imgdl.Downloader()
        self.addCleanup(self.downloader.close)
        self.downloader.register_transport("app", self.loader)

    def assertInterrupted(self, function, *arguments):
        strike_a_finalizer()
        self.assertRaises(KeyboardInterrupt, function, *arguments)

    def test_waiting(self):
        """The downloads go on."""
        token, batch = self.downloader.download("app:x"), self.downloader.prefetch(["app:y"])
        for wait in (token.result, token.exception, batch.wait, self.downloader.wait_idle):
            with self.subTest(wait.__qualname__):
                self.assertInterrupted(wait, SECONDS)
        self.assertFalse(token.done() or batch.done())

    def test_asking(self):
        """Nobody gets the token: it is cancelled."""
        for ask in (lambda: self.downloader.download("app:x"), lambda: self.downloader.prefetch(["app:x", "app:y"])):
            self.assertInterrupted(ask)
            self.downloader.wait_idle(PATIENCE)

    def test_a_loop_over_many(self):
        """What is under way is cancelled as the generator goes."""
        for is_ordered in (True, False):
            tokens = self.downloader.map(["app:ends", "app:x"], ordered=is_ordered)
            self.assertEqual(next(tokens).result().width, 2)
            timer = threading.Timer(SECONDS, self.loader.finish_all)
            timer.start()
            with self.subTest(is_ordered):
                self.assertInterrupted(next, tokens)
            timer.cancel()
            self.downloader.wait_idle(PATIENCE)

    def test_coroutines(self):
        async def interrupted(waiting):
            strike_a_finalizer()
            with self.assertRaises(KeyboardInterrupt):
                await waiting

        async def main():
            loop = asyncio.get_running_loop()
            token = self.downloader.download("app:x", loop=loop)
            stream = self.downloader.stream("app:x")
            tokens = self.downloader.amap(["app:ends", "app:x"], ordered=False)
            await tokens.__anext__()
            ordered = self.downloader.amap(["app:ends", "app:x"])
            await ordered.__anext__()
            loop.call_later(SECONDS, self.loader.finish_all)
            await interrupted(token)
            await interrupted(stream.__anext__())
            await interrupted(tokens.__anext__())
            await interrupted(ordered.__anext__())
            await stream.aclose()
            token.cancel()
            with self.assertRaises(imgdl.Cancelled):
                await token

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
