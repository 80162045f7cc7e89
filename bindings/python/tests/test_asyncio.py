import asyncio
import functools
import gc
import os
import sys
import threading
import unittest
from unittest import mock

import imgdl
from imgdl import Code
from imgdl.aio import LoopPump
from support import PATIENCE, OriginTests


class AsyncioTests(OriginTests):
    def run_loop(self, coroutine):
        """Not blocked for ever when it fails."""

        async def limited():
            return await asyncio.wait_for(coroutine, PATIENCE)

        return asyncio.run(limited())

    async def reached(self, gate, count=1):
        loop = asyncio.get_running_loop()
        self.assertTrue(await loop.run_in_executor(None, gate.is_reached, count))

    def test_a_loader_on_the_loop(self):
        """The loop goes on while its download is paused: it is what brings the downloader back."""
        piece = bytes(256 << 10)
        sent, refusals, transfers = [], [], []

        async def main():
            loop = asyncio.get_running_loop()
            begun, is_paused = asyncio.Event(), asyncio.Event()

            class Pushing:
                def start(self, request, transfer):
                    asyncio.run_coroutine_threadsafe(self.run(transfer), loop)

                async def run(self, transfer):
                    transfers.append(transfer)
                    transfer.response(200)
                    begun.set()
                    await is_paused.wait()
                    for _ in range(12):
                        await transfer.abody(piece)
                        sent.append(len(piece))
                    transfer.end()

            async with imgdl.Downloader() as downloader:
                downloader.register_transport("app", Pushing())
                token = downloader.download("app:x", body=True, loop=loop)
                await begun.wait()
                downloader.enter_background()
                while downloader.stats().paused == 0:
                    await asyncio.sleep(0.001)
                is_paused.set()
                while downloader.stats().memory < 1 << 20:
                    await asyncio.sleep(0.001)
                self.assertLess(len(sent), 12)
                try:
                    transfers[-1].body(bytes(1 << 20))
                except imgdl.Error as error:
                    refusals.append(error.code)
                downloader.enter_foreground()
                self.assertEqual(len((await token).data), 12 * len(piece))

        self.run_loop(main())
        self.assertEqual(refusals, [Code.NOT_READY])

    def test_get(self):
        async def main():
            async with imgdl.Downloader() as downloader:
                image = await downloader.get(self.origin.picture("opaque.png"))
                self.assertEqual(image.pixels, imgdl.decode(self.origin.bytes("opaque.png")).pixels)
                body = await downloader.get(self.origin.picture("opaque.png"), body=True)
                self.assertEqual(body.data, self.origin.bytes("opaque.png"))
                with self.assertRaises(imgdl.StatusError):
                    await downloader.get(self.origin.url("/nothing"))
                with self.assertRaises(imgdl.InvalidArgument):
                    await downloader.get("nonsense:")

        self.run_loop(main())

    def test_many_at_once_without_a_thread(self):
        async def main():
            before = threading.enumerate()
            async with imgdl.Downloader() as downloader:
                images = await asyncio.gather(
                    *(downloader.get(self.origin.picture("palette.png", n=n)) for n in range(200))
                )
                self.assertEqual([image.width for image in images], [1200] * 200)
                self.assertEqual(threading.enumerate(), before)

        self.run_loop(main())
        self.assertEqual(len(self.origin.log["requests"]), 200)

    def test_callbacks_run_on_the_loop(self):
        async def main():
            threads, partials = set(), []

            def record(token, *arguments):
                self.assertIs(asyncio.get_running_loop(), loop)
                threads.add(threading.get_ident())

            loop = asyncio.get_running_loop()
            gate = self.origin.gate()
            url = self.origin.picture("progressive.jpg", hold_after=60_000, gate=gate.name)
            partial = loop.create_future()

            def show(token, image):
                partials.append(image)
                if not partial.done():
                    partial.set_result(image)

            async with imgdl.Downloader() as downloader:
                options = {f"on_{kind}": record for kind in ("started", "response", "header", "progress")}
                token = downloader.download(url, loop=loop, on_partial=show, **options)
                token.add_done_callback(record)
                image = await partial
                self.assertIs(image.is_complete, False)
                await loop.run_in_executor(None, gate.open)
                final = await token
                self.assertEqual((image.width, image.height), (final.width, final.height))
                self.assertIs(await token, final)
            self.assertEqual(threads, {threading.get_ident()})

        self.run_loop(main())

    def test_cancelling_the_task_cancels_the_download(self):
        async def main():
            async with imgdl.Downloader() as downloader:
                gate = self.origin.gate()
                url = self.origin.picture("opaque.png", hold_after=1000, gate=gate.name)
                task = asyncio.ensure_future(downloader.get(url))
                await self.reached(gate)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                # The end of the task is the end of the download.
                self.assertEqual(downloader.current_count, 0)
                # The origin has to see it before its time is over.
                gate = self.origin.gate()
                url = self.origin.picture("opaque.png", hold_head=1, gate=gate.name)
                task = asyncio.ensure_future(downloader.get(url))
                await self.reached(gate)
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(task, 0.01)
                self.assertEqual(downloader.current_count, 0)

        self.run_loop(main())
        self.assertOriginSees(abandoned=2)

    def test_a_loop_that_stops_while_another_thread_closes(self):
        """It has not come to the end of what it has, and that thread does not wait for it for ever."""
        downloader = self.downloader()
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        closer = threading.Thread(target=downloader.close, daemon=True)

        async def main():
            token = downloader.download(self.origin.picture("palette.png", first_byte="never"), loop=loop)
            closer.start()
            while not token._pump._ended._waiters._locks:
                await asyncio.sleep(0)
            return token

        with mock.patch.object(LoopPump, "_on_readable", lambda pump: None):
            token = loop.run_until_complete(main())
        closer.join(PATIENCE / 6)
        self.assertFalse(closer.is_alive())
        self.assertTrue(token.cancelled())

    def test_cancelling_one_of_two_that_share(self):
        async def main():
            async with imgdl.Downloader() as downloader:
                gate = self.origin.gate()
                url = self.origin.picture("opaque.png", hold_after=1000, gate=gate.name)
                first, second = (asyncio.ensure_future(downloader.get(url)) for _ in range(2))
                await self.reached(gate)
                first.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await first
                await asyncio.get_running_loop().run_in_executor(None, gate.open)
                self.assertEqual((await second).width, 900)

        self.run_loop(main())
        self.assertEqual(len(self.origin.log["requests"]), 1)

    def test_cancelled_by_the_token(self):
        async def main():
            async with imgdl.Downloader() as downloader:
                token = downloader.download(
                    self.origin.picture("opaque.png", first_byte="never"), loop=asyncio.get_running_loop()
                )
                token.cancel()
                with self.assertRaises(imgdl.Cancelled):
                    await token

        self.run_loop(main())

    def test_a_token_of_the_thread_can_be_awaited(self):
        async def main():
            async with imgdl.Downloader() as downloader:
                gate = self.origin.gate()
                url = self.origin.picture("palette.png", hold_head=1, gate=gate.name)
                token = downloader.download(url)
                waiters = [asyncio.ensure_future(self.await_it(token)) for _ in range(3)]
                await asyncio.get_running_loop().run_in_executor(None, gate.open)
                self.assertEqual(await asyncio.gather(*waiters), [token.result(0)] * 3)
                token = downloader.download(self.origin.picture("palette.png", first_byte="never"))
                task = asyncio.ensure_future(self.await_it(token))
                await asyncio.sleep(0)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertTrue(token.done())

        self.run_loop(main())

    async def await_it(self, token):
        return await token

    def test_waiting_on_the_loop_is_refused(self):
        async def main():
            async with imgdl.Downloader() as downloader:
                token = downloader.download(
                    self.origin.picture("opaque.png", first_byte="never"), loop=asyncio.get_running_loop()
                )
                self.assertCode(Code.WOULD_DEADLOCK, token.result, PATIENCE)
                self.assertCode(Code.WOULD_DEADLOCK, downloader.wait_idle, PATIENCE)
                # But from another thread.
                loop = asyncio.get_running_loop()
                waiting = loop.run_in_executor(None, token.result, PATIENCE)
                token.cancel()
                with self.assertRaises(imgdl.Cancelled):
                    await waiting

        self.run_loop(main())

    def test_what_a_callback_raises(self):
        def fail(token, *arguments):
            raise LookupError("on purpose")

        async def main():
            async with imgdl.Downloader() as downloader:
                gate = self.origin.gate()
                url = self.origin.picture("opaque.png", hold_after=1000, gate=gate.name)
                with self.assertRaises(LookupError):
                    await downloader.get(url, on_progress=fail)

        seen = []
        with mock.patch.object(sys, "unraisablehook", seen.append):
            self.run_loop(main())
        self.assertEqual([each.exc_type for each in seen], [LookupError])
        seen.clear()
        self.assertOriginSees(abandoned=1)

    def test_what_ends_the_loop(self):
        class Stop(SystemExit):
            pass

        def stop(token):
            raise Stop("on purpose")

        async def main():
            await downloader.get(self.origin.picture("opaque.png"), on_started=stop)

        with self.downloader() as downloader, mock.patch.object(sys, "unraisablehook", lambda _: None):
            loop = asyncio.new_event_loop()
            task = loop.create_task(main())
            with self.assertRaises(Stop):
                loop.run_until_complete(task)
            # The result is it too.
            with self.assertRaises(Stop):
                loop.run_until_complete(task)
            self.assertIsInstance(task.exception(), Stop)
            loop.close()

    def test_one_downloader_and_many_loops(self):
        async def main(number):
            return (await downloader.get(self.origin.picture("palette.png", n=number))).width

        with self.downloader() as downloader:
            for number in range(3):
                self.assertEqual(self.run_loop(main(number)), 1200)
            widths = []
            threads = [
                threading.Thread(target=lambda number=number: widths.append(self.run_loop(main(number))))
                for number in range(10, 14)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
            self.assertEqual(widths, [1200] * 4)
            self.assertEqual(downloader.download(self.origin.picture("palette.png")).result(PATIENCE).width, 1200)

    def test_a_loop_that_is_closed_already(self):
        loop = asyncio.new_event_loop()
        loop.close()
        url = self.origin.picture("palette.png")
        with self.downloader() as downloader:
            for ask in (downloader.download, lambda url, loop: downloader.prefetch([url], loop=loop)):
                error = self.assertCode(imgdl.Code.INVALID_ARGUMENT, ask, url, loop=loop)
                self.assertEqual(error.message, "loop is closed")
            downloader.wait_idle(PATIENCE)
        self.assertEqual(self.origin.log["requests"], [])

    def test_a_loop_that_ends_before_its_downloads(self):
        async def main():
            url = self.origin.picture("opaque.png", first_byte="never", n=len(tokens))
            tokens.append(downloader.download(url, loop=asyncio.get_running_loop()))

        self.watch_what_nobody_catches()
        tokens = []
        with self.downloader() as downloader:
            self.run_loop(main())
            # Another loop ends what the first one left.
            self.run_loop(main())
            self.assertCode(Code.CANCELLED, tokens[0].result, 0)
        # And so does close.
        self.assertCode(Code.CANCELLED, tokens[1].result, 0)
        self.assertOriginSees(in_flight=0)

    def test_closing_while_the_first_download_on_a_loop_begins(self):
        """As by what the garbage collector comes by then: the download is refused, and the loop is left as it was."""

        class Loop(asyncio.SelectorEventLoop):
            own = None

            def add_reader(self, *arguments):
                if self.own is not None:
                    steps.pop(0)()
                super().add_reader(*arguments)
                if self.own is not None:
                    steps.pop(0)()

        def nothing():
            pass

        async def main(loop):
            loop.own = imgdl.Downloader(allow_data_urls=True)
            self.assertCode(Code.SHUT_DOWN, loop.own.download, "data:image/png,", loop=loop)
            loop.own = None

        def play(*moments):
            loop = Loop()
            steps[:] = [(lambda: loop.own.close()) if each else nothing for each in moments]
            try:
                loop.run_until_complete(main(loop))
                # No reader is left that the loop would call.
                self.assertEqual(len(loop._selector.get_map()), 1)
            finally:
                loop.close()

        steps = []
        play(True, False)  # what the library keeps from its first time on
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        play(True, False)
        play(False, True)
        gc.collect()
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_a_download_while_the_first_on_its_loop_begins(self):
        """As the handler of a signal asks for by then, or a finalizer: it has its end, also where the other is refused."""
        create = imgdl._native.imgdl_executor_create_pumped

        def interrupted(reference):
            code = create(reference)
            if steps:
                steps.pop()()
            return code

        def watch(loop, *arguments):
            watched.append(arguments)
            if len(watched) == refused_at:
                raise LookupError("on purpose")
            asyncio.SelectorEventLoop.add_reader(loop, *arguments)

        async def main():
            loop = asyncio.get_running_loop()
            loop.add_reader = functools.partial(watch, loop)
            downloader, url = self.downloader(), self.origin.picture("palette.png")
            steps.append(lambda: tokens.append(downloader.download(url, loop=loop)))
            if refused_at is None:
                tokens.append(downloader.download(url, loop=loop))
            else:
                self.assertRaises(LookupError, downloader.download, url, loop=loop)
            end = loop.time() + PATIENCE / 6
            while loop.time() < end and not all(token.done() for token in tokens):
                await asyncio.sleep(0.005)
            self.assertEqual([token.done() for token in tokens], [True] * count)
            self.assertEqual([token.result().width for token in tokens], [1200] * count)
            await downloader.aclose()

        # The inner one is watched first.
        for refused_at, count in ((None, 2), (2, 1)):
            steps, tokens, watched = [], [], []
            with self.subTest(refused_at), mock.patch.object(imgdl._native, "imgdl_executor_create_pumped", interrupted):
                self.run_loop(main())

    def test_closing_in_a_coroutine(self):
        async def main():
            with imgdl.Downloader() as downloader:
                loop = asyncio.get_running_loop()
                tokens = [
                    downloader.download(self.origin.picture("opaque.png", first_byte="never", n=n), loop=loop)
                    for n in range(3)
                ]
            for token in tokens:
                self.assertIs(token.done(), True)
                with self.assertRaises(imgdl.Cancelled):
                    await token
            with self.assertRaises(imgdl.Error):
                await downloader.get(self.origin.picture("opaque.png"))
            await downloader.aclose()

        self.run_loop(main())

    def test_closing_in_a_callback(self):
        async def main():
            downloader = imgdl.Downloader()
            with self.assertRaises(imgdl.Cancelled):
                await downloader.get(
                    self.origin.picture("opaque.png", hold_after=1000), on_response=lambda *_: downloader.close()
                )
            await downloader.aclose()

        self.run_loop(main())

    def test_closing_from_another_thread(self):
        async def main():
            downloader = imgdl.Downloader()
            task = asyncio.ensure_future(downloader.get(self.origin.picture("opaque.png", first_byte="never")))
            await asyncio.sleep(0)
            await downloader.aclose()
            with self.assertRaises(imgdl.Cancelled):
                await task

        self.run_loop(main())


if __name__ == "__main__":
    unittest.main()
