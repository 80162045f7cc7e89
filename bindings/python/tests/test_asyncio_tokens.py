"""Tokens among what asyncio waits for."""

import asyncio
import contextvars
import sys
import threading
import unittest
from unittest import mock

import imgdl
from support import PATIENCE, OriginTests, Signal


class AsyncioTokenTests(OriginTests):
    def run_loop(self, main):
        """With tokens of the downloader's thread, and with tokens of the loop. Not blocked for ever when it fails."""

        async def limited(on_loop):
            loop = asyncio.get_running_loop()
            async with imgdl.Downloader() as downloader:

                def download(url, **options):
                    return downloader.download(url, loop=loop if on_loop else None, **options)

                await asyncio.wait_for(main(download), PATIENCE)

        for on_loop in (False, True):
            with self.subTest(on_loop=on_loop):
                asyncio.run(limited(on_loop))
        self.assertEqual(imgdl.token._outstanding, {})

    def urls(self, count, **faults):
        return [self.origin.picture("palette.png", n=n, **faults) for n in range(count)]

    def stalled(self):
        return self.origin.picture("opaque.png", first_byte="never")

    async def settled(self, tokens):
        """Theirs is the whole result of `asyncio.wait`, and nothing of it is left with them."""
        done, pending = await asyncio.wait(tokens)
        self.assertEqual((len(done), pending), (len(tokens), set()))
        results = [token if isinstance(token, imgdl.Token) else await token for token in done]
        self.assertEqual(len(results), len(tokens))

    def test_wait(self):
        async def main(download):
            tokens = [download(url) for url in self.urls(3)]
            await self.settled(tokens)
            self.assertEqual([token.result(0).width for token in tokens], [1200] * 3)
            # Also those that are done, in part or all of them.
            await self.settled(tokens)
            await self.settled([*tokens, download(self.urls(1, again=1)[0])])

        self.run_loop(main)

    def test_wait_for_the_first(self):
        async def main(download):
            held = download(self.stalled())
            quick = download(self.urls(1)[0])
            done, pending = await asyncio.wait([held, quick], return_when=asyncio.FIRST_COMPLETED)
            self.assertEqual((len(done), len(pending)), (1, 1))
            self.assertEqual((quick.done(), held.done()), (True, False))
            failing = download(self.origin.url("/nothing"))
            done, pending = await asyncio.wait([held, failing], return_when=asyncio.FIRST_EXCEPTION)
            self.assertEqual((len(done), len(pending)), (1, 1))
            self.assertIsInstance(failing.exception(0), imgdl.StatusError)
            held.cancel()
            await self.settled([held])
            self.assertIs(held.cancelled(), True)

        self.run_loop(main)

    def test_wait_with_a_limit(self):
        async def main(download):
            held = download(self.stalled())
            for _ in range(3):
                done, pending = await asyncio.wait([held], timeout=0.01)
                self.assertEqual((len(done), len(pending)), (0, 1))
            self.assertIs(held.done(), False)
            # asyncio.wait has taken its callbacks with it.
            if next(iter(pending)) is held:
                self.assertEqual(held._hooks, [])
            tokens = [download(url) for url in self.urls(2)]
            done, pending = await asyncio.wait(tokens, timeout=PATIENCE)
            self.assertEqual((len(done), len(pending)), (2, 0))
            held.cancel()

        self.run_loop(main)

    def test_what_else_waits(self):
        async def main(download):
            urls = self.urls(3)
            widths = [image.width for image in await asyncio.gather(*(download(url) for url in urls))]
            self.assertEqual(widths, [1200] * 3)
            widths = [(await each).width for each in asyncio.as_completed([download(url) for url in urls])]
            self.assertEqual(widths, [1200] * 3)
            self.assertEqual((await asyncio.wait_for(download(urls[0]), PATIENCE)).width, 1200)
            held = download(self.stalled())
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(held, 0.01)
            self.assertIs(held.cancelled(), True)

        self.run_loop(main)

    def test_a_done_callback_runs_on_the_loop_where_it_was_added(self):
        place = contextvars.ContextVar("place")
        seen, order = [], []

        async def main(download):
            loop = asyncio.get_running_loop()
            ended = loop.create_future()

            def end(token):
                seen.append((token.done(), asyncio.get_running_loop() is loop, place.get(None)))
                ended.set_result(None)

            place.set("here")
            gate = self.origin.gate()
            token = download(self.origin.picture("palette.png", hold_head=1, gate=gate.name))
            token.add_done_callback(order.append)
            token.add_done_callback(end)
            await loop.run_in_executor(None, gate.open)
            await ended
            self.assertEqual(order.pop(), token)

        self.run_loop(main)
        self.assertEqual(seen, [(True, True, "here")] * 2)

    def test_what_a_done_callback_raises(self):
        def fail(token):
            raise LookupError("on purpose")

        async def main(download):
            token = download(self.stalled())
            token.add_done_callback(fail)
            token.cancel()
            await self.settled([token])
            await asyncio.sleep(0)

        seen = []
        with mock.patch.object(sys, "unraisablehook", seen.append):
            self.run_loop(main)
        self.assertEqual([each.exc_type for each in seen], [LookupError] * 2)

    def test_a_done_callback_whose_loop_is_closed(self):
        ended = Signal()
        downloader = self.downloader()

        async def main():
            token = downloader.download(self.stalled())
            token.add_done_callback(ended)
            return token

        token = asyncio.run(main())
        token.cancel()
        self.assertEqual(ended.wait(), (token,))

    def test_waiting_for_what_a_closed_loop_would_tell(self):
        self.watch_what_nobody_catches()
        downloader = self.downloader()

        async def begin():
            loop = asyncio.get_running_loop()
            return downloader.download(self.stalled(), loop=loop), downloader.prefetch([self.stalled()], loop=loop)

        async def await_it(pending):
            await pending

        token, batch = asyncio.run(begin())

        def check():
            for pending in (token, batch):
                wait = token.result if pending is token else batch.wait
                calls = (lambda: wait(1), lambda: asyncio.run(asyncio.wait_for(await_it(pending), PATIENCE)))
                for call in (*calls, lambda: downloader.wait_idle(1)):
                    error = self.assertCode(imgdl.Code.WOULD_DEADLOCK, call)
                    self.assertRegex(error.message, "its loop is closed|a loop is closed")
                    self.assertIn("Downloader.close", error.message)
            checked()

        checked = Signal()
        check()
        elsewhere = threading.Thread(target=check)
        elsewhere.start()
        elsewhere.join(PATIENCE)
        self.assertEqual(len(checked.arguments), 2)
        token.cancel()
        downloader.close()
        self.assertCode(imgdl.Code.CANCELLED, token.result, 0)
        self.assertEqual(batch.wait(0).cancelled, 1)

    def test_a_done_callback_is_taken_back(self):
        called = []

        async def main(download):
            token = download(self.stalled())
            for _ in range(2):
                token.add_done_callback(called.append)
            token.add_done_callback(id)
            self.assertEqual(token.remove_done_callback(called.append), 2)
            self.assertEqual(token.remove_done_callback(called.append), 0)
            token.add_done_callback(called.append)
            token.cancel()
            await self.settled([token])
            self.assertEqual(token.remove_done_callback(called.append), 0)
            await asyncio.sleep(0)
            self.assertEqual(called, [token])
            called.clear()

        self.run_loop(main)
        # And without a loop.
        downloader = self.downloader()
        token = downloader.download(self.stalled())
        token.add_done_callback(called.append)
        self.assertEqual(token.remove_done_callback(called.append), 1)
        token.cancel()
        downloader.wait_idle(PATIENCE)
        self.assertEqual(called, [])

    def test_map_in_a_coroutine_that_blocks_the_loop(self):
        async def main():
            with imgdl.Downloader() as downloader:
                return [token.result().width for token in downloader.map(self.urls(5), ordered=False)]

        results = []
        thread = threading.Thread(target=lambda: results.append(asyncio.run(main())), daemon=True)
        thread.start()
        thread.join(PATIENCE)
        self.assertEqual(results, [[1200] * 5])


if __name__ == "__main__":
    unittest.main()
