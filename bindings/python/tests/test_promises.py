"""What programs may rely on in corners."""

import asyncio
import contextvars
import copy
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest

import imgdl
from imgdl import Code
from support import PATIENCE, OriginTests, png

DATA = png(2, 2, [[1, 2, 3, 255, 4, 5, 6, 255], [7, 8, 9, 255, 10, 11, 12, 255]])


class PromiseTests(OriginTests):
    def test_what_is_of_the_library_is_neither_copied_nor_pickled(self):
        downloader = self.downloader()
        coder = imgdl.register_coder(type("Mine", (), {"can_decode": staticmethod(lambda prefix: False)}))
        self.addCleanup(coder.close)
        token = downloader.download(self.origin.picture("palette.png"), body=True)
        objects = [downloader, imgdl.Cache(), imgdl.Hooks(modify_request=print), coder, imgdl.Decoder(), token]
        objects += [downloader.prefetch([]), imgdl.Transfer.__new__(imgdl.Transfer)]
        objects += [imgdl.Continuation.__new__(imgdl.Continuation), imgdl.Stream.__new__(imgdl.Stream)]
        objects[7]._handle, objects[8]._is_answered = None, True
        for each in objects:
            for take in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.subTest(type(each).__name__, take=take.__name__), self.assertRaises(TypeError):
                    take(each)
        shared = [imgdl.decode(DATA), token.result(PATIENCE)]
        for each in shared:
            self.assertIs(copy.copy(each), each)
            self.assertIs(copy.deepcopy([each])[0], each)
            self.assertRaises(TypeError, pickle.dumps, each)
        kinds = {type(each) for each in objects + shared}
        # All others hold values alone.
        for name in imgdl.__all__:
            kind = getattr(imgdl, name)
            if isinstance(kind, type) and kind not in kinds and not issubclass(kind, (tuple, Exception, int, imgdl.Retry)):
                self.fail(f"{name} is not looked at")
        self.assertIs(pickle.loads(pickle.dumps(imgdl.LATER)), imgdl.LATER)

    def test_errors_are_copied_whole(self):
        class Mine(imgdl.Error):
            pass

        image = imgdl.decode(DATA)
        problem = Mine(Code.TRUNCATED, "too short", url="http://x/", http_status=200, image=image, preview=b"x")
        problem.more = 5
        for other in (copy.copy(problem), copy.deepcopy(problem)):
            self.assertEqual((type(other), other.args, vars(other)), (Mine, problem.args, vars(problem)))
        problem = imgdl.errors.error(Code.TRUNCATED, "too short", http_status=200, image=image)
        problem.more = 5
        other = pickle.loads(pickle.dumps(problem))
        self.assertEqual((type(other), other.args), (imgdl.ImageError, problem.args))
        self.assertEqual(vars(other), {**vars(problem), "image": None})

    def test_an_error_of_a_sentence(self):
        problem = imgdl.Error("not today")
        self.assertEqual((problem.code, problem.message, str(problem)), (Code.INVALID_OPERATION, "not today", "not today"))

    def test_a_body_leaves_its_image(self):
        body = self.downloader().download(self.origin.picture("palette.png"), body=True, decode=True).result(PATIENCE)
        image = body.image
        body.close()
        self.assertEqual(image.width, 1200)

    def test_memory_is_free_where_an_error_is_handled(self):
        for data, into in ((bytearray(b"nothing"), None), (bytearray(DATA), bytearray(3)), (bytearray(9), bytearray(16))):
            try:
                imgdl.decode(data, **({} if into is None else {"into": into}))
            except imgdl.Error:
                data.append(1)
                if into is not None:
                    into.append(1)
            else:
                self.fail("it is a picture")
        with imgdl.Decoder() as decoder:
            data = bytearray(b"nothing" * 20)
            try:
                decoder.feed(data)
                decoder.finish()
            except imgdl.Error:
                data.append(1)

    def test_a_done_callback_raises_nothing_into_its_caller(self):
        shown = []
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = lambda raised: shown.append(raised.exc_type)
        token = self.downloader().download(self.origin.picture("palette.png"))
        token.result(PATIENCE)

        def raising(kind):
            def fail(token):
                raise kind

            return fail

        token.add_done_callback(raising(ValueError))
        # Who presses Ctrl-C in the meantime is heard.
        for kind in (KeyboardInterrupt, SystemExit):
            self.assertRaises(kind, token.add_done_callback, raising(kind))
        self.assertEqual(shown, [ValueError])
        # On another thread they are no interrupts.
        for kind in (KeyboardInterrupt, SystemExit):
            thread = threading.Thread(target=token.add_done_callback, args=(raising(kind),))
            thread.start()
            thread.join(PATIENCE)
        self.assertEqual(shown, [ValueError, KeyboardInterrupt, SystemExit])

    def test_callbacks_are_callable(self):
        downloader = self.downloader()
        url = self.origin.picture("palette.png")
        token = downloader.download(url)
        for call in (
            lambda: downloader.download(url, on_partial=5),
            lambda: downloader.prefetch([url], on_done="x"),
            lambda: downloader.prefetch([url], on_progress=1),
            lambda: downloader.prefetch([(url, {"on_header": 1})]),
            lambda: token.add_done_callback(3),
        ):
            self.assertRaises(TypeError, call)

    def test_waiting_for_ever(self):
        downloader = self.downloader()
        token = downloader.download(self.origin.picture("palette.png"))
        downloader.wait_idle(float("inf"))
        self.assertEqual(token.result(float("inf")).width, 1200)

    def test_a_refused_download_holds_no_close_up(self):
        for _ in range(100):
            downloader = imgdl.Downloader(allow_data_urls=True)
            downloader.download("data:,x", body=True)

            def refused():
                try:
                    while True:
                        downloader.download("data:,x", body=True)
                except imgdl.Error:
                    pass

            other = threading.Thread(target=refused, daemon=True)
            other.start()
            closer = threading.Thread(target=downloader.close, daemon=True)
            closer.start()
            for thread in (closer, other):
                thread.join(PATIENCE)
                self.assertFalse(thread.is_alive())

    # Loops

    def test_callbacks_see_the_context_of_their_download(self):
        place = contextvars.ContextVar("place", default="nowhere")
        seen = {}

        async def one(downloader, name):
            place.set(name)
            loop = asyncio.get_running_loop()
            token = downloader.download(
                self.origin.picture("palette.png", n=name), loop=loop, on_started=lambda token: seen.update({name: place.get()})
            )
            await token

        async def main():
            async with imgdl.Downloader() as downloader:
                await asyncio.gather(*(asyncio.ensure_future(one(downloader, name)) for name in "abc"))

        asyncio.run(main())
        self.assertEqual(seen, {name: name for name in "abc"})

    def test_closing_waits_for_no_other_work_of_the_loop(self):
        async def main():
            release = threading.Event()
            loop = asyncio.get_running_loop()
            works = [loop.run_in_executor(None, release.wait, PATIENCE) for _ in range(64)]
            downloader = imgdl.Downloader()
            token = downloader.download(self.origin.picture("opaque.png", first_byte="never"), loop=loop)
            try:
                await asyncio.wait_for(downloader.aclose(), PATIENCE / 4)
                self.assertTrue(token.cancelled())
            finally:
                release.set()
                await asyncio.gather(*works)

        asyncio.run(main())

    def test_a_loop_that_threads_run_in_turn(self):
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        downloader = self.downloader()
        url = self.origin.picture("palette.png")

        async def first():
            await downloader.get(url)

        async def second():
            token = downloader.download(url, loop=loop)
            with self.assertRaises(imgdl.Error) as caught:
                token.result(PATIENCE)
            self.assertEqual(caught.exception.code, Code.WOULD_DEADLOCK)
            await token

        loop.run_until_complete(first())
        problems = []

        def run():
            try:
                loop.run_until_complete(second())
            except BaseException as problem:
                problems.append(problem)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join(2 * PATIENCE)
        self.assertEqual(problems, [])

    # Processes

    def test_the_exit_has_one_deadline(self):
        program = """
import atexit, sys, threading, time
atexit.register(lambda: print(time.monotonic() - ended < 5, flush=True))
import imgdl
imgdl.downloader._SECONDS_AT_EXIT = 1
kept = []
for number in range(6):
    begun = threading.Event()
    def stand(token, *arguments, begun=begun):
        begun.set()
        threading.Event().wait()
    downloader = imgdl.Downloader()
    kept.append(downloader.download(sys.argv[1], on_started=stand))
    kept.append(downloader)
    begun.wait()
ended = time.monotonic()
"""
        command = [sys.executable, "-c", program, self.origin.picture("palette.png")]
        process = subprocess.run(command, timeout=PATIENCE, capture_output=True, text=True)
        self.assertEqual((process.returncode, process.stdout, process.stderr), (0, "True\n", ""))

    def test_other_interpreters(self):
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        with tempfile.NamedTemporaryFile("r") as file:
            program = f"""
try:
    import imgdl
except ImportError as problem:
    open({file.name!r}, "w").write(str(problem))
"""
            other = interpreters.create()
            try:
                interpreters.run_string(other, program)
            finally:
                interpreters.destroy(other)
            self.assertIn("main interpreter", file.read())


if __name__ == "__main__":
    unittest.main()
