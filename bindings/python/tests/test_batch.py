import asyncio
import sys
import threading
import unittest
from unittest import mock

import imgdl
from imgdl import Code
from support import PATIENCE, OriginTests, Signal


class BatchTests(OriginTests):
    def test_progress(self):
        seen = []
        urls = [self.origin.picture("palette.png", n=n) for n in range(6)] + [self.origin.url("/nothing")]
        with self.downloader() as downloader:
            batch = downloader.prefetch(urls, on_progress=lambda batch, progress: seen.append(progress))
            last = batch.wait(PATIENCE)
            self.assertTrue(batch.done())
            self.assertEqual(last, imgdl.BatchProgress(7, 1, 0, 7, True))
            self.assertEqual((batch.progress, batch.wait()), (last, last))
            # Once it has ended, nothing of it does anything.
            batch.cancel()
            batch.pause()
            batch.set_priority("high")
        self.assertEqual([each.finished for each in seen], list(range(1, 8)))
        self.assertEqual([each.is_finished for each in seen], [False] * 6 + [True])
        self.assertLessEqual(self.origin.log["max_in_flight"], 3)

    def test_an_empty_list(self):
        seen = []
        with self.downloader() as downloader:
            batch = downloader.prefetch([], on_progress=lambda batch, progress: seen.append(progress))
            self.assertEqual(batch.wait(PATIENCE), imgdl.BatchProgress(0, 0, 0, 0, True))
            self.assertEqual(downloader.prefetch(iter(())).wait(PATIENCE).total, 0)
        self.assertEqual(seen, [imgdl.BatchProgress(0, 0, 0, 0, True)])

    def test_results(self):
        done = []
        started = Signal()
        with self.downloader() as downloader:
            batch = downloader.prefetch(
                [
                    self.origin.picture("palette.png"),
                    (self.origin.picture("opaque.png"), {"body": True, "on_started": started, "priority": "high"}),
                    self.origin.url("/nothing"),
                ],
                on_done=done.append,
                keeps_priority=True,
            )
            batch.wait(PATIENCE)
            downloader.wait_idle(PATIENCE)
        tokens = {token.url: token for token in done}
        self.assertEqual(len(tokens), 3)
        self.assertEqual(tokens[self.origin.picture("palette.png")].result().width, 1200)
        token = tokens[self.origin.picture("opaque.png")]
        self.assertEqual(token.result().data, self.origin.bytes("opaque.png"))
        self.assertEqual((token.priority, token.response.status), ("high", 200))
        self.assertIs(started.wait()[0], token)
        self.assertCode(Code.INVALID_STATUS, tokens[self.origin.url("/nothing")].result)
        self.assertEqual(imgdl.token._outstanding, {})

    def test_cancel(self):
        gate = self.origin.gate()
        urls = [self.origin.picture("palette.png", hold_head=1, gate=gate.name, n=n) for n in range(5)]
        with self.downloader() as downloader:
            batch = downloader.prefetch(urls, max_concurrent=2)
            self.assertTrue(gate.is_reached(2))
            self.assertEqual(batch.progress, imgdl.BatchProgress(0, 0, 0, 5, False))
            with self.assertRaises(imgdl.WaitTimeout):
                batch.wait(0.01)
            batch.cancel()
            self.assertEqual(batch.wait(PATIENCE), imgdl.BatchProgress(5, 0, 5, 5, True))
            # All of the downloader's, and its end.
            for end in (downloader.cancel_all, downloader.close):
                batch = downloader.prefetch(urls)
                end()
                self.assertEqual(batch.wait(PATIENCE).cancelled, 5)

    def test_one_of_them_is_cancelled(self):
        def cancel(token):
            token.cancel()

        done = []
        with self.downloader() as downloader:
            url = self.origin.picture("palette.png")
            requests = [url, (self.origin.picture("opaque.png", first_byte="never"), {"on_started": cancel})]
            batch = downloader.prefetch(requests, on_done=done.append)
            self.assertEqual(batch.wait(PATIENCE), imgdl.BatchProgress(2, 0, 1, 2, True))

    def test_paused(self):
        gate = self.origin.gate()
        urls = [self.origin.picture("palette.png", hold_head=1, gate=gate.name, n=n) for n in range(3)]
        finished = Signal()
        with self.downloader() as downloader:
            batch = downloader.prefetch(urls, max_concurrent=1, on_progress=finished)
            self.assertTrue(gate.is_reached())
            batch.pause()
            self.assertTrue(batch.paused)
            gate.open()
            finished.wait()
            self.assertEqual(len(self.origin.requests("/pictures/palette.png")), 1)
            self.assertFalse(batch.done())
            batch.set_priority("high")
            batch.resume()
            self.assertFalse(batch.paused)
            self.assertEqual(batch.wait(PATIENCE).finished, 3)

    def test_two_overlapping_from_two_threads(self):
        urls = [self.origin.picture("palette.png", n=n) for n in range(20)]
        ended = []
        with self.downloader() as downloader:
            threads = [
                threading.Thread(target=lambda part=part: ended.append(downloader.prefetch(part).wait(PATIENCE)))
                for part in (urls[:15], urls[5:])
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
        self.assertEqual([each.finished - each.failed for each in ended], [15, 15])

    def test_what_cannot_be(self):
        url = self.origin.picture("palette.png")
        seen = []
        with self.downloader() as downloader:
            for code, requests in (
                (Code.INVALID_URL, [url, ""]),
                (Code.INVALID_URL, [url, "http://host/\0"]),
                (Code.UNSUPPORTED_SCHEME, [url, "ftp://host/"]),
                (Code.INVALID_ARGUMENT, [url, (url, {"size": (0, 0)})]),
            ):
                error = self.assertCode(code, downloader.prefetch, requests, on_done=seen.append)
                self.assertIn("requests[1]", str(error))
            error = self.assertCode(Code.INVALID_ARGUMENT, downloader.prefetch, [url], max_concurrent=0)
            self.assertIn("max_concurrent", str(error))
            with self.assertRaises(TypeError):
                downloader.prefetch([7])
            downloader.wait_idle(0)
        self.assertEqual((seen, imgdl.token._outstanding), ([], {}))
        self.assertCode(Code.SHUT_DOWN, downloader.prefetch, [url])

    def test_what_a_callback_raises(self):
        seen = []
        urls = [self.origin.picture("palette.png", n=n) for n in range(4)]
        with self.downloader() as downloader, mock.patch.object(sys, "unraisablehook", seen.append):
            batch = downloader.prefetch(urls, on_progress=lambda batch, progress: 1 / 0)
            self.assertRaisesFrom("<lambda>", ZeroDivisionError, batch.wait, PATIENCE)
            batch = downloader.prefetch(urls[:1], on_done=lambda token: 1 / 0)
            self.assertEqual(batch.wait(PATIENCE).finished, 1)
            downloader.wait_idle(PATIENCE)
        self.assertEqual([each.exc_type for each in seen], [ZeroDivisionError] * 2)
        seen.clear()

    def test_coroutines(self):
        async def main():
            gate = self.origin.gate()
            thread = threading.get_ident()
            on = []
            async with imgdl.Downloader() as downloader:
                loop = asyncio.get_running_loop()
                batch = downloader.prefetch(
                    [self.origin.picture("palette.png", n=n) for n in range(4)],
                    on_progress=lambda batch, progress: on.append(threading.get_ident()),
                    loop=loop,
                )
                self.assertEqual((await batch).finished, 4)
                self.assertEqual(on, [thread] * 4)
                held = [self.origin.picture("palette.png", hold_head=1, gate=gate.name, n=n) for n in range(4)]
                batch = downloader.prefetch(held, loop=loop)

                async def wait():
                    await batch

                task = asyncio.ensure_future(wait())
                await asyncio.sleep(0)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertEqual(batch.progress.cancelled, 4)

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
