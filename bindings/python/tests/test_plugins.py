import gc
import sys
import threading
import time
import unittest
import weakref
from unittest import mock

import imgdl
from imgdl import Code
from strikes import ends
from support import PATIENCE, OriginTests, Signal, pictures


class Raw:
    """A codec for b"RAW1", width, height, and one gray for each pixel."""

    made = 0

    def __init__(self, options):
        type(self).made += 1
        self.options = options
        self.data = b""

    @staticmethod
    def can_decode(prefix):
        return None if len(prefix) < 4 else prefix[:4] == b"RAW1"

    def feed(self, data):
        assert isinstance(data, bytes)
        self.data += data

    def info(self):
        if len(self.data) < 6:
            return None
        return imgdl.ImageInfo("other", self.data[4], self.data[5], 1, 1, False, False)

    def finish(self):
        if len(self.data) < 6:
            raise imgdl.errors.error(Code.TRUNCATED)
        width, height, grays = self.data[4], self.data[5], self.data[6:]
        if len(grays) < width * height:
            raise imgdl.errors.error(Code.TRUNCATED)
        return imgdl.Image.create(width, height, b"".join(bytes([gray] * 3 + [255]) for gray in grays))


DATA = b"RAW1\x02\x01\x07\x09"
PIXELS = bytes([7, 7, 7, 255, 9, 9, 9, 255])


class CoderTests(OriginTests):
    def register(self, coder):
        registered = imgdl.register_coder(coder)
        self.addCleanup(registered.close)
        return registered

    def test_t22_an_own_codec(self):
        (pictures() / "picture.raw").write_bytes(DATA)
        url = self.origin.picture("picture.raw")
        with self.downloader() as downloader:
            self.assertCode(Code.BAD_IMAGE_DATA, downloader.download(url).result, PATIENCE)
            with imgdl.register_coder(Raw) as coder:
                self.assertIn("registered", repr(coder))
                infos = []
                image = downloader.download(url, on_header=lambda token, info: infos.append(info)).result(PATIENCE)
                self.assertEqual((image.width, image.height, image.format), (2, 1, "other"))
                self.assertEqual((image.pixels, image.is_complete, image.scale_factor), (PIXELS, True, 1.0))
                self.assertEqual((infos[0].width, infos[0].height), (2, 1))
                # Others are decoded as ever.
                self.assertEqual(downloader.download(self.origin.picture("palette.png")).result(PATIENCE).width, 1200)
                self.assertCode(Code.TRUNCATED, imgdl.decode, DATA[:-1])
            self.assertCode(Code.BAD_IMAGE_DATA, downloader.download(url).result, PATIENCE)
        coder.close()
        self.assertIn("closed", repr(coder))

    def test_a_codec_that_calls_the_decoder_it_works_for(self):
        problems = []

        class Calling(Raw):
            def feed(self, data):
                for call in (lambda: decoder.feed(b"x"), lambda: decoder.info, decoder.partial, decoder.finish, decoder.close):
                    try:
                        call()
                    except imgdl.Error as problem:
                        problems.append(problem.code)
                super().feed(data)

        self.register(Calling)
        decoder = imgdl.Decoder()
        self.assertTrue(ends(lambda: decoder.feed(DATA)), "it waits for itself")
        self.assertEqual(set(problems), {Code.WOULD_DEADLOCK})
        self.assertEqual(len(problems) % 5, 0)
        self.assertEqual(decoder.finish().pixels, PIXELS)
        decoder.close()

    def test_t28_one_decoder_for_the_partial_images_and_the_last(self):
        made, fed = [], []

        class Counted(Raw):
            def __init__(self, options):
                super().__init__(options)
                made.append(self)

            def feed(self, data):
                fed.append(len(data))
                super().feed(data)

            def partial(self):
                return imgdl.Image.create(2, 1, PIXELS) if len(self.data) > 6 else None

        (pictures() / "picture.raw").write_bytes(DATA)
        gate = self.origin.gate()
        seen = Signal()
        self.register(Counted)
        with self.downloader() as downloader:
            token = downloader.download(
                self.origin.picture("picture.raw", hold_after=7, gate=gate.name),
                on_partial=seen,
                partial_interval=0.001,
            )
            self.assertEqual(seen.wait()[1].width, 2)
            gate.open()
            self.assertEqual(token.result(PATIENCE).pixels, PIXELS)
        self.assertEqual((len(made), sum(fed)), (1, len(DATA)))

    def test_decoding_here_and_in_pieces(self):
        self.register(Raw)
        self.assertEqual(imgdl.decode(DATA).pixels, PIXELS)
        self.assertEqual(imgdl.decode(DATA, pixel_format="bgra8_premultiplied").pixel_format, "bgra8_premultiplied")
        self.assertEqual(imgdl.decode(DATA, size=(1, None)).width, 1)
        with imgdl.Decoder() as decoder:
            for index in range(len(DATA)):
                decoder.feed(DATA[index : index + 1])
            self.assertEqual(decoder.info.width, 2)
            self.assertEqual(decoder.finish().pixels, PIXELS)

    def test_a_codec_that_is_named(self):
        options = []

        class Anything:
            def can_decode(self, prefix):
                return False

            def decoder(self, given):
                options.append(given)
                return Raw(given)

        with imgdl.register_coder(Anything()) as coder:
            asked = {"size": (5, None), "all_frames": True, "scale_down": 1000, "max_frames": 7, "format_hint": "png"}
            self.assertEqual(imgdl.decode(DATA, coder=coder, **asked).pixels, PIXELS)
            self.assertEqual(imgdl.decode(DATA, coder=coder).pixels, PIXELS)
            limits = {"max_side": 9, "max_scans": 8, "max_animation_pixels": 700, "max_metadata_bytes": 6}
            limits.update(max_memory_bytes=5000, max_decode_ms=4000, good_enough_scan=3)
            self.assertEqual(
                imgdl.decode(DATA, coder=coder, colour="srgb", thumbnail_first=True, **limits).pixels, PIXELS
            )
            self.assertCode(Code.BAD_IMAGE_DATA, imgdl.decode, DATA)
            imgdl.decode(DATA, coder=coder, max_memory_bytes=imgdl.NO_LIMIT, max_decode_ms=imgdl.NO_LIMIT)
        first, second, third, fourth = options
        self.assertEqual((fourth.max_memory_bytes, fourth.max_decode_ms), (None, None))
        self.assertEqual({name: getattr(third, name) for name in limits}, limits)
        self.assertEqual((third.colour, third.thumbnail_first), ("srgb", True))
        self.assertEqual((first.size, first.scale_down, first.max_frames), ((5, None), 1000, 7))
        self.assertEqual((first.all_frames, first.stretch, first.format_hint), (True, False, "png"))
        self.assertEqual((second.size, second.scale_down, second.pixel_format), (None, None, "rgba8"))
        self.assertEqual((second.max_frames, second.max_pixels), (1000, 100_000_000))
        self.assertEqual((second.colour, second.max_side, second.max_scans), ("as_stored", None, 500))
        self.assertEqual((second.max_memory_bytes, second.max_decode_ms), (1 << 30, 10_000))
        self.assertCode(Code.INVALID_HANDLE, imgdl.decode, DATA, coder=coder)

    def test_what_a_codec_raises(self):
        class Failing(Raw):
            where = None

            def fail(self, where):
                if self.where == where:
                    raise ValueError("on purpose")
                if self.where == where + "-wrong":
                    return 7
                return None

            def __init__(self, options):
                super().__init__(options)
                self.fail("create")

            def feed(self, data):
                super().feed(data)
                self.fail("feed")

            def info(self):
                return self.fail("info") or super().info()

            def finish(self):
                return self.fail("finish") or super().finish()

            def close(self):
                self.fail("close")

        self.register(Failing)
        seen = []
        with mock.patch.object(sys, "unraisablehook", seen.append):
            for where in ("create", "feed", "finish", "finish-wrong"):
                with self.subTest(where):
                    Failing.where = where
                    self.assertCode(Code.INTERNAL, imgdl.decode, DATA)
                    self.assertIn(seen.pop(0).exc_type, (ValueError, TypeError))
            Failing.where = "close"
            self.assertEqual(imgdl.decode(DATA).pixels, PIXELS)
            self.assertIs(seen.pop().exc_type, ValueError)
        for wrong in (object(), 7, None, type("Half", (), {"can_decode": print})()):
            with self.assertRaises(TypeError):
                imgdl.register_coder(wrong)

    def test_a_codec_lives_as_long_as_it_is_asked(self):
        coder = type("Coder", (), {"can_decode": lambda self, prefix: False, "decoder": lambda self, options: None})()
        reference = weakref.ref(coder)
        imgdl.register_coder(coder)
        del coder
        gc.collect()
        # Nobody kept it, and it stays.
        self.assertIsNotNone(reference())
        for registered in list(imgdl.coder._registered):
            registered.close()
        gc.collect()
        self.assertIsNone(reference())
        self.assertEqual((len(imgdl.coder._functions), len(imgdl.coder._decoders)), (0, 0))


class Loader:
    """Gives what it has, at once."""

    def __init__(self, data, **headers):
        self.data, self.headers, self.requests = data, headers, []

    def start(self, request, transfer):
        self.requests.append(request)
        transfer.response(200, {"Content-Length": str(len(self.data)), **self.headers})
        transfer.body(self.data[:10])
        transfer.body(memoryview(self.data)[10:])
        transfer.end()


class TransportTests(OriginTests):
    def test_t06_t32_an_own_scheme(self):
        loader = Loader(self.origin.bytes("palette.png"), **{"Content-Type": "image/png"})
        with self.downloader(user_agent="mine/1") as downloader:
            self.assertCode(Code.UNSUPPORTED_SCHEME, downloader.download, "app://palette")
            for wrong in (object(), 7, print):
                with self.assertRaises(TypeError):
                    downloader.register_transport("app", wrong)
            for scheme in ("", "a b", "7up", "app:", "a\0"):
                error = self.assertCode(Code.INVALID_ARGUMENT, downloader.register_transport, scheme, loader)
                self.assertIn("scheme", str(error))
            downloader.register_transport("app", loader)
            token = downloader.download("app://palette?x=1", headers={"X-Mine": "1"}, body=True, decode=True)
            body = token.result(PATIENCE)
            self.assertEqual((body.data, body.image.width), (loader.data, 1200))
            self.assertEqual((body.response.status, body.response.http_version), (200, ""))
            self.assertEqual(body.response.content_type, "image/png")
            (request,) = loader.requests
            self.assertTrue(request.url.startswith("app://palette"))
            self.assertEqual((request.method, request.header("x-mine")), ("GET", "1"))
            # In place of the built-in one, and back.
            downloader.register_transport("http", loader)
            self.assertEqual(downloader.download(self.origin.picture("opaque.png")).result(PATIENCE).width, 1200)
            downloader.register_transport("http", None)
            self.assertEqual(downloader.download(self.origin.picture("opaque.png")).result(PATIENCE).width, 900)
            downloader.register_transport("app", None)
            self.assertCode(Code.UNSUPPORTED_SCHEME, downloader.download, "app://palette")
        self.assertEqual(len(loader.requests), 2)
        self.assertCode(Code.SHUT_DOWN, downloader.register_transport, "app", loader)
        self.assertEqual(len(imgdl.transport._loaders), 0)

    def test_from_another_thread(self):
        data = self.origin.bytes("palette.png")

        class Threaded:
            def start(self, request, transfer):
                threading.Thread(target=self.run, args=(transfer,)).start()

            def run(self, transfer):
                transfer.response(headers=[("Content-Type", "image/png")])
                for start in range(0, len(data), 1000):
                    transfer.body(data[start : start + 1000])
                transfer.end()

        with self.downloader() as downloader:
            downloader.register_transport("app", Threaded())
            tokens = [downloader.download(f"app://palette/{n}") for n in range(10)]
            for token in tokens:
                self.assertEqual(token.result(PATIENCE).width, 1200)

    def test_cancelled(self):
        started, cancelled = Signal(), Signal()

        class Stalled:
            def start(self, request, transfer):
                transfer.response(200)
                started(transfer)

            def cancel(self, transfer):
                cancelled(transfer)

        with self.downloader() as downloader:
            downloader.register_transport("app", Stalled())
            token = downloader.download("app://x")
            (transfer,) = started.wait()
            self.assertFalse(transfer.is_cancelled)
            token.cancel()
            self.assertCode(Code.CANCELLED, token.result, PATIENCE)
            self.assertIs(cancelled.wait()[0], transfer)
            self.assertTrue(transfer.is_cancelled)
            transfer.body(b"nobody listens")
            transfer.end()

    def test_a_body_waits_while_its_download_is_paused(self):
        """And where it cannot wait it is told so, and to go on."""
        piece = bytes(256 << 10)
        begun, resumed = Signal(), Signal()
        transfers, refusals, sent = [], [], []

        class Pushing:
            def start(self, request, transfer):
                transfers.append(transfer)
                transfer.response(200)
                transfer.body(bytes(1 << 20))
                try:
                    transfer.body(b"x")
                except imgdl.Error as error:
                    refusals.append(error.code)
                begun()

            def resume(self, transfer):
                resumed()

        def send():
            for _ in range(12):
                transfers[0].body(piece)
                sent.append(len(piece))
            transfers[0].end()

        with imgdl.Downloader() as downloader:
            downloader.register_transport("app", Pushing())
            token = downloader.download("app:x", body=True)
            begun.wait()
            self.assertEqual(refusals, [Code.NOT_READY])
            resumed.wait()
            thread = self.pause_and_send(downloader, send)
            self.assertLessEqual(downloader.stats().memory, 2 << 20)
            self.assertLessEqual(len(sent), 4)
            downloader.enter_foreground()
            self.assertEqual(len(token.result(PATIENCE).data), (1 << 20) + 12 * len(piece))
            thread.join(PATIENCE)
            self.assertEqual(len(sent), 12)

    def test_a_body_that_waits_is_cancelled(self):
        begun = Signal()
        transfers = []

        class Begun:
            def start(self, request, transfer):
                transfers.append(transfer)
                transfer.response(200)
                begun()

        def send():
            transfers[0].body(bytes(1 << 20))
            transfers[0].body(b"x")

        with imgdl.Downloader() as downloader:
            downloader.register_transport("app", Begun())
            token = downloader.download("app:x", body=True)
            begun.wait()
            thread = self.pause_and_send(downloader, send)
            token.cancel()
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())
            self.assertTrue(transfers[0].is_cancelled)

    def test_a_body_in_a_callback_does_not_wait(self):
        """Of whatever downloader: memory may be used up by pictures that wait for this thread."""
        begun, has_answered = Signal(), threading.Event()
        answers = []

        class Begun:
            def start(self, request, transfer):
                transfer.response(200)
                begun(transfer)

        def send(token):
            try:
                answers.append(begun.arguments[0][0].body(b"x"))
            except imgdl.Error as problem:
                answers.append(problem.code)
            has_answered.set()

        with imgdl.Downloader(allow_data_urls=True) as other, imgdl.Downloader() as downloader:
            downloader.register_transport("app", Begun())
            token = downloader.download("app:x", body=True)
            (transfer,) = begun.wait()
            downloader.enter_background()
            end = time.monotonic() + PATIENCE
            while downloader.stats().paused == 0 and time.monotonic() < end:
                time.sleep(0.001)
            while transfer.try_body(bytes(1 << 18)):
                pass
            other.prefetch(["data:image/png,"], on_done=send)
            self.assertTrue(has_answered.wait(PATIENCE / 6), "it waits")
            self.assertEqual(answers, [Code.NOT_READY])
            downloader.enter_foreground()
            transfer.body(b"y")
            transfer.end()
            self.assertEqual(token.result(PATIENCE).data[-1:], b"y")

    def test_a_try_answers_at_once(self):
        """True: taken. False: not yet, on any thread, and `resume` says when."""
        begun, resumed = Signal(), Signal()
        answers = []

        class Begun:
            def start(self, request, transfer):
                transfer.response(200)
                answers.append(transfer.try_body(bytes(1 << 20)))
                answers.append(transfer.try_body(b"x"))
                begun(transfer)

            def resume(self, transfer):
                resumed()

        with imgdl.Downloader() as downloader:
            downloader.register_transport("app", Begun())
            token = downloader.download("app:x", body=True)
            (transfer,) = begun.wait()
            resumed.wait()
            self.assertEqual(answers, [True, False])
            downloader.enter_background()
            end = time.monotonic() + PATIENCE
            while downloader.stats().paused == 0 and time.monotonic() < end:
                time.sleep(0.001)
            sent = 0
            while transfer.try_body(b"y" * (256 << 10)):
                sent += 256 << 10
            self.assertLessEqual(sent, 1 << 20)
            downloader.enter_foreground()
            while not transfer.try_body(b"z") and time.monotonic() < end:
                time.sleep(0.001)
            transfer.end()
            self.assertEqual(token.result(PATIENCE).data, bytes(1 << 20) + b"y" * sent + b"z")
            self.assertCode(Code.INVALID_OPERATION, transfer.try_body, b"x")

    def pause_and_send(self, downloader, send):
        """The thread that sends, which waits then."""
        downloader.enter_background()
        end = time.monotonic() + PATIENCE
        while downloader.stats().paused == 0 and time.monotonic() < end:
            time.sleep(0.001)
        before = downloader.stats().memory
        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        while downloader.stats().memory - before < 1 << 20 and time.monotonic() < end:
            time.sleep(0.001)
        self.assertTrue(thread.is_alive())
        return thread

    def test_failures(self):
        class Failing:
            def start(self, request, transfer):
                kind = request.url.rpartition("/")[2]
                if kind == "raise":
                    raise ValueError("on purpose")
                if kind == "error":
                    raise imgdl.errors.error(Code.RESOLVE_FAILED, "no such place")
                if kind == "end":
                    transfer.end(Code.CONNECTION_LOST, "gone")
                if kind == "status":
                    transfer.response(404)
                    transfer.end()
                if kind == "order":
                    transfer.body(b"before its head")
                if kind == "twice":
                    transfer.response(200)
                    transfer.end()
                    transfer.end()

        seen = []
        with self.downloader() as downloader, mock.patch.object(sys, "unraisablehook", seen.append):
            downloader.register_transport("app", Failing())
            for code, kind, sentence in (
                (Code.INVALID_OPERATION, "raise", "ValueError: on purpose"),
                (Code.RESOLVE_FAILED, "error", "no such place"),
                (Code.CONNECTION_LOST, "end", "gone"),
                (Code.INVALID_STATUS, "status", "404"),
                (Code.CONNECTION_LOST, "let-go", ""),
                (Code.INVALID_OPERATION, "order", ""),
                (Code.BAD_IMAGE_DATA, "twice", ""),
            ):
                with self.subTest(kind):
                    error = self.assertCode(code, downloader.download(f"app://host/{kind}").result, PATIENCE)
                    self.assertIn(sentence, error.message)
        self.assertEqual([each.exc_type for each in seen], [ValueError])
        seen.clear()

    def test_a_loader_that_is_slow_to_hear_of_the_end(self):
        # Reports from a thread while the library cancels: no report waits for a cancel that waits for it.
        stop = threading.Event()
        threads, failures = [], []

        class Busy:
            def start(self, request, transfer):
                threads.append(threading.Thread(target=self.run, args=(transfer,)))
                threads[-1].start()

            def run(self, transfer):
                try:
                    transfer.response(200)
                    while not transfer.is_cancelled and not stop.is_set():
                        transfer.body(b"x")
                except imgdl.Error as error:
                    failures.append(error)

        with self.downloader() as downloader:
            downloader.register_transport("app", Busy())
            for n in range(20):
                token = downloader.download(f"app://x/{n}", body=True, max_body_bytes=1 << 30)
                if n % 2:
                    while not threads[n:]:
                        pass
                token.cancel()
                self.assertCode(Code.CANCELLED, token.result, PATIENCE)
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())
        self.assertEqual(failures, [])


if __name__ == "__main__":
    unittest.main()
