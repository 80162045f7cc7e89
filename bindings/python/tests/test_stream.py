import asyncio
import gc
import threading
import unittest
import weakref

import imgdl
from imgdl import Code
from strikes import ends
from support import PATIENCE, OriginTests


class StreamTests(OriginTests):
    def run_loop(self, coroutine):
        """Not blocked for ever when it fails."""

        async def limited():
            return await asyncio.wait_for(coroutine, PATIENCE)

        return asyncio.run(limited())

    def held(self):
        """A gate, and a picture of which some is there before it opens."""
        gate = self.origin.gate()
        return gate, self.origin.picture("progressive.jpg", hold_after=60_000, gate=gate.name)

    def test_partial_pictures_and_then_the_whole(self):
        async def main():
            gate, url = self.held()
            seen = []
            async with imgdl.Downloader() as downloader:
                async for image in downloader.stream(url):
                    if not image.is_complete:
                        await asyncio.get_running_loop().run_in_executor(None, gate.open)
                    seen.append(image)
            self.assertGreaterEqual(len(seen), 2)
            self.assertEqual([image.is_complete for image in seen], [False] * (len(seen) - 1) + [True])
            self.assertEqual({(image.width, image.height) for image in seen}, {(1280, 853)})
            self.assertEqual(seen[-1].pixels, imgdl.decode(self.origin.bytes("progressive.jpg")).pixels)

        self.run_loop(main())

    def test_options_and_the_token(self):
        async def main():
            started = []
            async with imgdl.Downloader() as downloader:
                stream = downloader.stream(self.origin.picture("opaque.png"), size=(90, 90), on_started=started.append)
                sizes = [(image.width, image.height) async for image in stream]
                self.assertEqual(sizes[-1], (90, 60))
                self.assertEqual(started, [stream.token])
                self.assertGreater(stream.token.metrics.total, 0)
                # It is over, and stays so.
                self.assertEqual([image async for image in stream], [])
                for name in ("body", "on_partial"):
                    with self.assertRaisesRegex(TypeError, name):
                        downloader.stream(self.origin.base, **{name: True})
                with self.assertRaises(imgdl.InvalidArgument):
                    downloader.stream("nonsense:")
                self.assertEqual(downloader.current_count, 0)

        self.run_loop(main())
        with self.downloader() as downloader, self.assertRaises(RuntimeError):
            downloader.stream(self.origin.base)

    def test_who_is_slow_sees_the_newest(self):
        async def main():
            async with imgdl.Downloader() as downloader:
                stream = downloader.stream(self.origin.picture("progressive.jpg"), partial_interval=0.001)
                while not stream.token.done():
                    await asyncio.sleep(0)
                images = [image async for image in stream]
                self.assertEqual([image.is_complete for image in images], [True])

        self.run_loop(main())

    def test_failures(self):
        async def main():
            async with imgdl.Downloader() as downloader:
                stream = downloader.stream(self.origin.url("/nothing"))
                with self.assertRaises(imgdl.StatusError):
                    async for image in stream:
                        self.fail(image)
                self.assertEqual([image async for image in stream], [])
                # What was salvaged comes with the error.
                cut = self.origin.picture("progressive.jpg", close_after=60_000)
                with self.assertRaises(imgdl.Error) as caught:
                    async for image in downloader.stream(cut, salvage=True):
                        self.assertFalse(image.is_complete)
                self.assertEqual(caught.exception.image.width, 1280)

        self.run_loop(main())

    def test_cancelling_the_token_ends_the_loop(self):
        async def main():
            gate, url = self.held()
            async with imgdl.Downloader() as downloader:
                stream = downloader.stream(url)
                with self.assertRaises(imgdl.Cancelled):
                    async for image in stream:
                        stream.token.cancel()
                self.assertTrue(stream.token.cancelled())

        self.run_loop(main())
        self.assertOriginSees(abandoned=1)

    def test_cancelling_the_task_cancels_the_download(self):
        async def main():
            gate, url = self.held()
            tokens = []

            async def show():
                stream = downloader.stream(url)
                tokens.append(stream.token)
                async for image in stream:
                    seen.set_result(image)
                    await stream.__anext__()

            async with imgdl.Downloader() as downloader:
                seen = asyncio.get_running_loop().create_future()
                task = asyncio.ensure_future(show())
                await seen
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                # The end of the task is the end of the download.
                self.assertEqual(downloader.current_count, 0)
                self.assertTrue(tokens[0].cancelled())

        self.run_loop(main())
        self.assertOriginSees(abandoned=1)

    def test_leaving_the_loop_cancels(self):
        async def leave(downloader, url):
            async for image in downloader.stream(url):
                return image

        async def main():
            gc.disable()
            self.addCleanup(gc.enable)
            gate, url = self.held()
            async with imgdl.Downloader() as downloader:
                image = await leave(downloader, url)
                self.assertFalse(image.is_complete)
                self.assertOriginSees(abandoned=1)

        self.run_loop(main())

    def test_one_that_is_let_go_waits_for_nobody(self):
        """Another thread may be at work with its downloader, and wait for one whose lock this thread has."""

        async def main():
            gate, url = self.held()
            async with imgdl.Downloader() as downloader:
                streams = [downloader.stream(url)]
                token = streams[0].token
                await streams[0].__anext__()
                with downloader._state.lock:
                    self.assertTrue(ends(streams.clear), "it waits")
                with self.assertRaises(imgdl.Cancelled):
                    await token

        self.run_loop(main())

    def test_closing(self):
        async def main():
            gate, url = self.held()
            async with imgdl.Downloader() as downloader:
                async with downloader.stream(url) as stream:
                    await stream.__anext__()
                self.assertTrue(stream.token.cancelled())
                self.assertEqual(downloader.current_count, 0)
                await stream.aclose()
                self.assertEqual([image async for image in stream], [])
                # Nothing holds it but its user.
                reference = weakref.ref(stream)
                del stream
                self.assertIsNone(reference())

        self.run_loop(main())

    def test_the_downloader_is_closed_elsewhere(self):
        async def main():
            gate, url = self.held()
            downloader = imgdl.Downloader()
            with self.assertRaises(imgdl.Cancelled):
                async for image in downloader.stream(url):
                    threading.Thread(target=downloader.close).start()
            await downloader.aclose()

        self.run_loop(main())

    def test_two_tasks(self):
        async def main():
            gate, url = self.held()
            async with imgdl.Downloader() as downloader, downloader.stream(url) as stream:
                await stream.__anext__()
                first = asyncio.ensure_future(stream.__anext__())
                await asyncio.sleep(0)
                with self.assertRaisesRegex(RuntimeError, "another task"):
                    await stream.__anext__()
                await asyncio.get_running_loop().run_in_executor(None, gate.open)
                self.assertEqual((await first).width, 1280)

        self.run_loop(main())


class FutureTests(OriginTests):
    def test_exception_and_cancelled(self):
        with self.downloader() as downloader:
            token = downloader.download(self.origin.picture("opaque.png"))
            self.assertIsNone(token.exception(PATIENCE))
            self.assertFalse(token.cancelled())
            token = downloader.download(self.origin.url("/nothing"))
            self.assertEqual(token.exception(PATIENCE).code, Code.INVALID_STATUS)
            self.assertFalse(token.cancelled())
            token = downloader.download(self.origin.picture("opaque.png", first_byte="never"))
            self.assertFalse(token.cancelled())
            with self.assertRaises(imgdl.WaitTimeout):
                token.exception(0)
            token.cancel()
            self.assertIsInstance(token.exception(PATIENCE), imgdl.Cancelled)
            self.assertTrue(token.cancelled())


if __name__ == "__main__":
    unittest.main()
