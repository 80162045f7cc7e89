import base64
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import weakref

import imgdl
from imgdl import Code
from support import PATIENCE, OriginTests, Signal, png

try:
    import numpy
except ImportError:
    numpy = None

DATA = png(2, 2, [[1, 2, 3, 255, 4, 5, 6, 255], [7, 8, 9, 255, 10, 11, 12, 255]])
PIXELS = bytes([1, 2, 3, 255, 4, 5, 6, 255, 7, 8, 9, 255, 10, 11, 12, 255])


class Callable:
    """Something that a callback holds, and that can be watched."""

    def __call__(self, *arguments):
        pass


class PixelTests(unittest.TestCase):
    def test_views_keep_the_pixels(self):
        image = imgdl.decode(DATA)
        reference = weakref.ref(image)
        view = image.view
        part = view[8:12]
        self.assertIs(view.readonly, True)
        self.assertEqual(view, PIXELS)
        image.close()
        del image, view
        gc.collect()
        self.assertIsNone(reference())
        self.assertEqual(bytes(part), PIXELS[8:12])

    def test_views_of_what_another_thread_closes(self):
        """Those who look at that moment have the pixels."""
        stride = imgdl._native.imgdl_image_stride
        image = imgdl.decode(DATA)

        def close(handle):
            image.close()
            return stride(handle)

        with unittest.mock.patch.object(imgdl._native, "imgdl_image_stride", close):
            self.assertEqual(image.view, PIXELS)
        with self.assertRaises(imgdl.Error) as caught:
            image.view
        self.assertEqual(caught.exception.code, Code.INVALID_HANDLE)

    def test_copies_of_what_another_thread_closes(self):
        """Who copies at that moment has the copy, and what is closed stays so."""
        url = "data:image/png;base64," + base64.b64encode(DATA).decode()
        with imgdl.Downloader(allow_data_urls=True) as downloader:
            body = downloader.download(url, body=True).result(PATIENCE)
        image = imgdl.decode(DATA)
        for kept, function, name, expected in (
            (body, "imgdl_data_length", "data", DATA), (image, "imgdl_image_stride", "pixels", PIXELS),
        ):
            original, calls = getattr(imgdl._native, function), []

            def close(handle):
                calls.append(handle)
                # The last that is asked of an image.
                if len(calls) == (2 if kept is image else 1):
                    kept.close()
                return original(handle)

            with unittest.mock.patch.object(imgdl._native, function, close):
                self.assertEqual(getattr(kept, name), expected)
            for what in (name, "view"):
                with self.assertRaises(imgdl.Error) as caught:
                    getattr(kept, what)
                self.assertEqual(caught.exception.code, Code.INVALID_HANDLE, what)

    def test_views_are_not_copies(self):
        image = imgdl.decode(DATA)
        addresses = {imgdl._native.imgdl_image_pixels(image._handle)}
        for _ in range(2):
            addresses.add(imgdl._native.ctypes.addressof(image.view.obj))
        self.assertEqual(len(addresses), 1)
        self.assertIs(image.pixels, image.pixels)
        with self.assertRaises(IndexError):
            image.view[len(image.pixels)]

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_numpy(self):
        image = imgdl.decode(DATA)
        array = numpy.asarray(image)
        self.assertEqual(array.shape, (2, 2, 4))
        self.assertIs(array.flags.writeable, False)
        self.assertEqual(array.ctypes.data, imgdl._native.imgdl_image_pixels(image._handle))
        image.close()
        del image
        gc.collect()
        self.assertEqual(array.tobytes(), PIXELS)

    def test_the_buffer_protocol(self):
        image = imgdl.decode(DATA)
        self.assertEqual(image.__buffer__(0), PIXELS)
        if sys.version_info >= (3, 12):
            self.assertEqual(bytes(image), PIXELS)
            view = memoryview(image)
            self.assertEqual((view.shape, view.format, view.readonly, view.tobytes()), ((2, 2, 4), "B", True, PIXELS))
            deep = memoryview(imgdl.decode(DATA, pixel_format="rgba16"))
            self.assertEqual((deep.shape, deep.format), ((2, 2, 4), "H"))

    def test_closing(self):
        with imgdl.decode(DATA) as image:
            image.pixels
            self.assertIn("2×2 png", repr(image))
        image.close()
        self.assertIn("closed", repr(image))
        for name in ("width", "pixels", "view", "format", "ready", "__array_interface__"):
            with self.assertRaises(imgdl.Error) as caught:
                getattr(image, name)
            self.assertEqual(caught.exception.code, Code.INVALID_HANDLE)

    def test_images_give_their_memory_back(self):
        handles = []
        for _ in range(3):
            image = imgdl.decode(DATA)
            handles.append(image._handle)
            del image
        for handle in handles:
            self.assertIsNone(imgdl._native.imgdl_image_retain(handle))


def setUpModule():
    """Started in the background, as by a script's `&`, Python ignores SIGINT, and so would the programs started here."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class LifetimeTests(OriginTests):
    def descriptors(self):
        return len(os.listdir("/proc/self/fd"))

    def threads(self):
        return len(os.listdir("/proc/self/task"))

    def test_nothing_is_left_after_close(self):
        with self.downloader() as downloader:  # what a process opens once
            downloader.download(self.origin.picture("palette.png")).result(PATIENCE)
        descriptors, threads, running = self.descriptors(), self.threads(), threading.enumerate()
        for _ in range(3):
            with self.downloader() as downloader:
                downloader.download(self.origin.picture("palette.png")).result(PATIENCE)
                tokens = [downloader.download(self.origin.picture("opaque.png", first_byte="never")) for _ in "ab"]
            for token in tokens:
                self.assertCode(Code.CANCELLED, token.result, 0)
        self.assertEqual(threading.enumerate(), running)
        # The system lists a thread that was joined for a moment more, and the library may still close a descriptor.
        deadline = time.monotonic() + PATIENCE
        while self.threads() > threads or self.descriptors() > descriptors:
            self.assertLess(time.monotonic(), deadline, f"{self.threads()} threads, {self.descriptors()} descriptors")
            os.sched_yield()
        self.assertEqual(imgdl.token._outstanding, {})

    def test_callbacks_that_close_each_others_downloaders(self):
        downloaders = [self.downloader(), self.downloader()]
        both, gate = threading.Barrier(2), threading.Event()
        closed = []

        def closing(downloader):
            def close(token):
                both.wait(PATIENCE)
                downloader.close()
                closed.append(downloader)

            return close

        tokens = []
        for downloader, other in zip(downloaders, reversed(downloaders)):
            tokens.append(downloader.download(self.origin.picture("palette.png")))
            tokens[-1].add_done_callback(lambda token: gate.wait(PATIENCE))
            tokens.append(downloader.download(self.origin.picture("palette.png")))
            tokens[-1].add_done_callback(closing(other))
        gate.set()
        for downloader in downloaders:
            # On a thread, so that a failure ends.
            end = threading.Thread(target=downloader.close, daemon=True)
            end.start()
            end.join(PATIENCE)
            self.assertFalse(end.is_alive())
        self.assertCountEqual(closed, downloaders)

    def test_closing_twice_and_using_it_afterwards(self):
        downloader = self.downloader()
        token = downloader.download(self.origin.picture("palette.png"))
        token.result(PATIENCE)
        downloader.close()
        downloader.close()
        for call in (
            lambda: downloader.download(self.origin.base),
            lambda: downloader.set_header("X", "y"),
            lambda: setattr(downloader, "max_concurrent", 3),
            lambda: setattr(downloader, "suspended", True),
            downloader.cancel_all,
        ):
            self.assertCode(Code.SHUT_DOWN, call)
        self.assertEqual(downloader.current_count, 0)
        downloader.wait_idle(0)
        token.cancel()
        self.assertEqual(token.result().width, 1200)

    def test_closing_in_a_callback(self):
        closed = Signal()

        def close(token, *arguments):
            downloader.close()
            closed()

        downloader = self.downloader()
        token = downloader.download(self.origin.picture("opaque.png", hold_after=1000), on_response=close)
        self.assertCode(Code.CANCELLED, token.result, PATIENCE)
        closed.wait()
        downloader.close()

    def test_closing_on_many_threads(self):
        downloader = self.downloader()
        tokens = [downloader.download(self.origin.picture("opaque.png", first_byte="never", n=n)) for n in range(9)]
        threads = [threading.Thread(target=downloader.close) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())
        for token in tokens:
            self.assertCode(Code.CANCELLED, token.result, 0)

    def test_callbacks_keep_nothing_alive(self):
        kinds = ("on_started", "on_response", "on_header", "on_progress", "on_partial")
        with self.downloader() as downloader:
            for path in ("/pictures/progressive.jpg", "/nothing"):
                callbacks = {kind: Callable() for kind in kinds}
                done = Callable()
                references = [weakref.ref(each) for each in (*callbacks.values(), done)]
                token = downloader.download(self.origin.base + path, **callbacks)
                token.add_done_callback(done)
                del callbacks, done
                try:
                    token.result(PATIENCE)
                except imgdl.StatusError:
                    pass
                downloader.wait_idle(PATIENCE)
                self.assertEqual([reference() for reference in references], [None] * len(references))

    def test_nor_when_the_request_is_refused(self):
        with self.downloader() as downloader:
            callback = Callable()
            reference = weakref.ref(callback)
            with self.assertRaises(imgdl.Error):
                downloader.download("nonsense:", on_progress=callback)
            del callback
            gc.collect()
            self.assertIsNone(reference())
            self.assertEqual(imgdl.token._outstanding, {})

    def test_tokens_and_images_go_without_the_collector(self):
        gc.disable()
        self.addCleanup(gc.enable)
        downloader = self.downloader()
        token = downloader.download(self.origin.picture("palette.png"))
        references = [weakref.ref(token), weakref.ref(token.result(PATIENCE))]
        del token
        failed = downloader.download(self.origin.url("/nothing"))
        references.append(weakref.ref(failed))
        try:
            failed.result(PATIENCE)
        except imgdl.Error:
            pass
        del failed
        downloader.close()
        self.assertEqual([reference() for reference in references], [None] * 3)

    def test_a_downloader_that_is_let_go_finishes(self):
        gate = self.origin.gate()
        downloader = imgdl.Downloader()
        reference = weakref.ref(downloader)
        ended = Signal()
        token = downloader.download(self.origin.picture("palette.png", hold_head=1, gate=gate.name))
        weakref.finalize(downloader, ended)
        thread = downloader._state.thread_pump._runner
        del downloader
        gc.collect()
        self.assertIsNotNone(reference())
        gate.open()
        self.assertEqual(token.result(PATIENCE).width, 1200)
        ended.wait()
        self.assertIsNone(reference())
        thread.join(PATIENCE)
        self.assertFalse(thread.is_alive())

    def test_letting_the_token_go_does_not_cancel(self):
        ended = Signal()
        with self.downloader() as downloader:
            downloader.download(self.origin.picture("palette.png")).add_done_callback(ended)
            (token,) = ended.wait()
            self.assertEqual(token.result().width, 1200)

    # Processes

    def python(self, program, *arguments, **options):
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        # Of several side by side one may fail before the others were looked at.
        self.addCleanup(process.kill)
        return process

    def assertEnds(self, process, returncode, stdout="", stderr=""):
        try:
            output, errors = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        self.assertEqual(process.returncode, returncode, errors)
        self.assertEqual(output, stdout)
        self.assertIn(stderr, errors) if stderr else self.assertEqual(errors, "")

    def test_exit_with_downloads_running(self):
        program = """
import imgdl, sys
downloader = imgdl.Downloader()
tokens = [downloader.download(sys.argv[1] + str(n), on_progress=print) for n in range(9)]
imgdl.Downloader.shared().download(sys.argv[1])
"""
        url = self.origin.picture("opaque.png", first_byte="never") + "&n="
        self.assertEnds(self.python(program, url), 0)

    def test_exit_with_everything_that_the_library_may_call(self):
        program = """
import imgdl, sys, threading
url, stalled = sys.argv[1:]
class Loader:
    def start(self, request, transfer):
        kept.append(transfer)
class Coder:
    def __init__(self, options): self.data = b""
    @staticmethod
    def can_decode(prefix): return True
    def feed(self, data): self.data += data
    def finish(self): return imgdl.Image.create(1, 1, bytes(4))
kept, asked = [], threading.Event()
def later(request, next):
    kept.append(next)
    asked.set()
    return imgdl.LATER
imgdl.register_coder(Coder)
hooks = imgdl.Hooks(modify_request=later)
downloader = imgdl.Downloader()
downloader.set_observer(lambda observation: kept.append(observation))
downloader.register_transport("app", Loader())
shared = imgdl.Downloader.shared()
for each in (downloader, shared):
    each.download(stalled, hooks=hooks)
    each.download(url)
    each.prefetch([stalled + str(n) for n in range(9)], on_progress=print)
downloader.download("app://x")
asked.wait()
"""
        url, stalled = self.origin.picture("palette.png"), self.origin.picture("opaque.png", first_byte="never") + "&n="
        for process in [self.python(program, url, stalled) for _ in range(5)]:
            output, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual((process.returncode, errors), (0, ""), output)

    def test_exit_with_what_was_just_let_go(self):
        program = """
import imgdl, sys
url, = sys.argv[1:]
shared = imgdl.Downloader.shared()
shared.set_observer(lambda observation: None)
def use():
    hooks = imgdl.Hooks(modify_request=lambda request, next: None, transform_body=lambda body, next: bytes(body))
    downloader = imgdl.Downloader(hooks=hooks)
    downloader.set_observer(lambda observation: None)
    downloader.register_transport("app", type("Loader", (), {"start": lambda self, request, transfer: None})())
    downloader.download(url).result()
    shared.download(url, hooks=imgdl.Hooks(modify_request=lambda request, next: None))
use()
"""
        for process in [self.python(program, self.origin.picture("palette.png")) for _ in range(10)]:
            self.assertEnds(process, 0)

    def test_exit_with_an_interrupt_that_is_kept(self):
        """As by a finalizer. It is shown, and all downloaders are closed."""
        program = """
import atexit, threading
atexit.register(lambda: print([token.cancelled() for token in tokens], ended))
import imgdl
class Loader:
    def __init__(self): self.begun = threading.Event()
    def start(self, request, transfer):
        self.transfer = transfer
        self.begun.set()
    def cancel(self, transfer): ended.append(transfer.is_cancelled)
ended, downloaders = [], [imgdl.Downloader() for _ in range(3)]
loaders = [Loader() for _ in downloaders]
for downloader, loader in zip(downloaders, loaders):
    downloader.register_transport("app", loader)
tokens = [downloader.download("app:x") for downloader in downloaders]
for loader in loaders:
    loader.begun.wait(20)
imgdl._callbacks._struck.append(KeyboardInterrupt("kept"))
"""
        self.assertEnds(self.python(program), 0, "[True, True, True] [True, True, True]\n", "KeyboardInterrupt: kept")

    def test_exit_with_an_interrupt_while_it_waits(self):
        """Ctrl-C ends the wait for one downloader; the others are waited for."""
        program = """
import atexit, sys
atexit.register(lambda: print([token.cancelled() for token in tokens], order))
import imgdl, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
class Slow(imgdl.Downloader):
    def _close(self, timeout):
        super()._close(timeout)
        order.append("closed")
        if len(order) == 1:
            signal.raise_signal(signal.SIGINT)
order, downloaders = [], [Slow() for _ in range(3)]
tokens = [downloader.download(sys.argv[1]) for downloader in downloaders]
"""
        process = self.python(program, self.origin.picture("opaque.png", first_byte="never"))
        self.assertEnds(process, 0, "[True, True, True] ['closed', 'closed', 'closed']\n", "KeyboardInterrupt")

    def test_fork_with_hooks_and_codecs(self):
        program = """
import gc, imgdl, os, sys
url, stalled = sys.argv[1:]
class Coder:
    def __init__(self, options): self.data = b""
    @staticmethod
    def can_decode(prefix): return prefix[:4] == b"MINE"
    def feed(self, data): self.data += data
    def finish(self): return imgdl.Image.create(1, 1, bytes(4))
asked = []
hooks = imgdl.Hooks(modify_request=lambda request, next: asked.append(request.method))
coder = imgdl.register_coder(Coder)
downloader = imgdl.Downloader(hooks=hooks)
downloader.set_observer(asked.append)
assert downloader.download(url).result().width == 1200
batch = downloader.prefetch([stalled] * 2)
child = os.fork()
if child == 0:
    try:
        del asked[:]
        for call in (batch.wait, batch.cancel, downloader.stats, lambda: downloader.header("X"),
                     lambda: downloader.prefetch([url]), lambda: downloader.set_observer(None)):
            try:
                call()
            except imgdl.Error as error:
                assert error.name == "IMGDL_ERROR_FORKED", error
            else:
                raise AssertionError(call)
        assert batch.progress.total == 2
        assert imgdl.decode(b"MINE").width == 1
        with imgdl.Downloader(hooks=hooks) as mine:
            assert mine.download(url).result(20).width == 1200
        assert asked == ["GET"], asked
        del downloader, batch, hooks
        coder.close()
        gc.collect()
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
batch.cancel()
assert batch.wait(20).cancelled == 2
downloader.close()
coder.close()
print("done")
"""
        url, stalled = self.origin.picture("palette.png"), self.origin.picture("opaque.png", first_byte="never")
        self.assertEnds(self.python(program, url, stalled), 0, "done\n")

    def test_exit_inside_a_loop(self):
        program = """
import asyncio, imgdl, sys
async def main():
    imgdl.Downloader.shared().download(sys.argv[1], loop=asyncio.get_running_loop())
    sys.exit(3)
asyncio.run(main())
"""
        self.assertEnds(self.python(program, self.origin.picture("opaque.png", first_byte="never")), 3)

    def test_interrupt_while_waiting(self):
        program = """
import imgdl, sys
with imgdl.Downloader() as downloader:
    token = downloader.download(sys.argv[1])
    try:
        print("waiting", flush=True)
        token.result()
    except KeyboardInterrupt:
        print("interrupted", token.done())
"""
        gate = self.origin.gate()
        process = self.python(program, self.origin.picture("opaque.png", hold_head=1, gate=gate.name))
        self.assertTrue(gate.is_reached())
        # The origin may have been asked before `download` has returned.
        self.assertEqual(process.stdout.readline(), "waiting\n")
        process.send_signal(signal.SIGINT)
        self.assertEnds(process, 0, "interrupted False\n")

    def test_interrupt_in_a_loop(self):
        program = """
import asyncio, imgdl, sys
async def main():
    async with imgdl.Downloader() as downloader:
        await downloader.get(sys.argv[1])
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""
        gate = self.origin.gate()
        process = self.python(program, self.origin.picture("opaque.png", hold_head=1, gate=gate.name))
        self.assertTrue(gate.is_reached())
        process.send_signal(signal.SIGINT)
        self.assertEnds(process, 0, "interrupted\n")

    def test_fork(self):
        program = """
import asyncio, gc, imgdl, os, sys
url, stalled = sys.argv[1:]
downloader = imgdl.Downloader()
shared = imgdl.Downloader.shared()
image = downloader.download(url).result()
pixels = bytes(image.view)
finished = downloader.download(url)
finished.result()
running = downloader.download(stalled)

async def main():
    token = downloader.download(stalled, loop=asyncio.get_running_loop())
    child = os.fork()
    if child == 0:
        run_child()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    # The parent's loop still hears of its downloads.
    token.cancel()
    try:
        await token
    except imgdl.Cancelled:
        print("parent")

def run_child():
    def forked(call, *arguments):
        try:
            call(*arguments)
        except imgdl.Error as error:
            assert error.name == "IMGDL_ERROR_FORKED", error
        else:
            raise AssertionError(call)

    forked(downloader.download, url)
    forked(shared.download, url)
    forked(downloader.set_header, "X", "y")
    forked(downloader.cancel_all)
    forked(downloader.wait_idle, 0)
    forked(getattr, downloader, "current_count")
    forked(running.result, 1)
    forked(running.cancel)
    forked(running.set_priority, "low")
    assert finished.result().width == image.width
    assert image.view == pixels
    assert imgdl.get(url).pixels == pixels
    with imgdl.Downloader() as mine:
        assert mine.download(url).result().pixels == pixels
    downloader.close()
    downloader.close()
    finish()

def finish():
    global downloader, shared, image, finished, running
    del downloader, shared, image, finished, running
    gc.collect()

asyncio.run(main())
running.cancel()
try:
    running.result(20)
except imgdl.Cancelled:
    pass
assert downloader.download(url).result().pixels == pixels
downloader.close()
print("done")
"""
        url, stalled = self.origin.picture("palette.png"), self.origin.picture("opaque.png", first_byte="never")
        self.assertEnds(self.python(program, url, stalled), 0, "parent\ndone\n")

    def test_exit_while_a_body_waits(self):
        """The main thread has ended, and nobody is left to bring the downloader to the foreground."""
        program = """
import asyncio, concurrent.futures, imgdl, sys, threading, time
pools, begun = [], threading.Event()
class Loader:
    def start(self, request, transfer):
        if sys.argv[1] == "thread":
            threading.Thread(target=self.run, args=[transfer], daemon=False).start()
        elif sys.argv[1] == "pool":
            pools.append(concurrent.futures.ThreadPoolExecutor())
            pools[0].submit(self.run, transfer)
        else:
            threading.Thread(target=asyncio.run, args=[self.arun(transfer)], daemon=False).start()
    def run(self, transfer):
        transfer.response(200)
        begun.set()
        try:
            while True:
                transfer.body(bytes(1 << 20))
        except imgdl.Error as error:
            print(error.name)
    async def arun(self, transfer):
        transfer.response(200)
        begun.set()
        try:
            while True:
                await transfer.abody(bytes(1 << 20))
        except imgdl.Error as error:
            print(error.name)
if sys.argv[2] == "old":
    threading._register_atexit = None
downloader = imgdl.Downloader()
downloader.register_transport("app", Loader())
token = downloader.download("app:x", body=True, max_body_bytes=1 << 40)
begun.wait()
downloader.enter_background()
while downloader.stats().memory < 1 << 20:
    time.sleep(0.001)
"""
        kinds = ("thread", ""), ("pool", ""), ("loop", ""), ("thread", "old"), ("loop", "old")
        # Side by side: each waits for a second.
        for (kind, python), process in [(each, self.python(program, *each)) for each in kinds]:
            with self.subTest(kind, python=python):
                self.assertEnds(process, 0, "IMGDL_ERROR_SHUT_DOWN\n")

    def test_what_is_left_open_does_not_hold_the_end_up(self):
        program = """
import atexit, sys, time
atexit.register(lambda: print(time.monotonic() - ended < 4))
import imgdl
class Silent:
    def cancel(self, transfer): pass
    def start(self, request, transfer): transfer.response(200)
def listen(*arguments): pass
left = [imgdl.Cache(on_event=listen), imgdl.Cache(sys.argv[2], on_event=listen)]
left += [imgdl.Hooks(modify_request=lambda request, next: None), imgdl.Decoder()]
if sys.argv[1] == "downloader":
    left.append(imgdl.Downloader(cache=left[1], hooks=left[2]))
    left[-1].set_observer(listen)
    left[-1].register_transport("app", Silent())
    left.append(left[-1].download("app:x"))
ended = time.monotonic()
"""
        for kind in ("alone", "downloader"):
            with self.subTest(kind), tempfile.TemporaryDirectory() as folder:
                self.assertEnds(self.python(program, kind, folder), 0, "True\n")

    def test_a_fork_in_what_the_library_calls(self):
        """The child has that thread for its own, and is over when the call returns, whatever it raises."""
        program = """
import imgdl, os, sys, threading
url, place = sys.argv[1:]
forked, status, begun = [], [], threading.Event()
buffered = os.fdopen(os.dup(1), "w")  # also where PYTHONUNBUFFERED is set
def fork(*arguments):
    if forked:
        return
    forked.append(os.fork())
    if forked[0] == 0:
        assert imgdl.get(url).width == 1200
        print("this stays in a buffer", end="", file=buffered)
        if place == "raises":
            raise ValueError("on purpose")
        if place == "exits":
            os._exit(7)
        return
    status.append(os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]))
class Loader:
    def start(self, request, transfer):
        if place == "start":
            fork()
        self.transfer = transfer
        transfer.response(200)
        if place == "cancel":
            begun.set()
        else:
            transfer.body(b"MINE")
            transfer.end()
    def cancel(self, transfer):
        fork()
class Coder:
    def __init__(self, options): fork()
    @staticmethod
    def can_decode(prefix): return prefix[:4] == b"MINE"
    def feed(self, data): pass
    def finish(self): return imgdl.Image.create(1, 1, bytes(4))
with imgdl.Downloader() as downloader:
    if place in ("start", "cancel"):
        downloader.register_transport("app", Loader())
        token = downloader.download("app:x", body=True)
        if place == "cancel":
            begun.wait(20)
            token.cancel()
    elif place == "hook":
        token = downloader.download(url, hooks=imgdl.Hooks(modify_request=lambda request, next: fork()))
    elif place == "observer":
        downloader.set_observer(fork)
        token = downloader.download(url)
    elif place == "coder":
        coder = imgdl.register_coder(Coder)
        downloader.register_transport("app", Loader())
        token = downloader.download("app:x")
    elif place == "batch":
        token = downloader.prefetch([url], on_progress=fork)
    elif place == "done":
        token = downloader.download(url, on_started=lambda token: token.add_done_callback(fork))
    else:
        token = downloader.download(url, on_started=fork)
    token.exception(20) if place != "batch" else token.wait(20)
print(status)
buffered.close()
"""
        url = self.origin.picture("palette.png")
        places = "started", "raises", "exits", "done", "batch", "hook", "observer", "start", "cancel", "coder"
        for place, process in [(place, self.python(program, url, place)) for place in places]:
            with self.subTest(place):
                shown = "ValueError: on purpose" if place == "raises" else ""
                self.assertEnds(process, 0, f"[{7 if place == 'exits' else 0}]\n", shown)

    def test_no_library(self):
        environment = dict(os.environ, IMGDL_LIBRARY="/nothing/libimgdl.so")
        process = self.python("import imgdl", env=environment)
        self.assertEnds(process, 1, stderr="ImportError: cannot load the library of imgdl")

    def test_another_library(self):
        environment = dict(os.environ, IMGDL_LIBRARY="libc.so.6")
        process = self.python("import imgdl", env=environment)
        self.assertEnds(process, 1, stderr="ImportError: libc.so.6 is no library of imgdl; this package needs 1.1 or")

    def test_an_older_library(self):
        """Without a function that this package has."""
        program = """
import ctypes
find = ctypes.CDLL.__getitem__
def find_older(library, name):
    if name == "imgdl_cache_query":
        raise AttributeError(name)
    return find(library, name)
ctypes.CDLL.__getitem__ = find_older
try:
    import imgdl
except ImportError as problem:
    print(problem)
"""
        path, version = imgdl._native.library_path, imgdl.__version__
        expected = f"{path} is imgdl {version}; this package needs 1.1 or a later 1.x\n"
        self.assertEnds(self.python(program, env=dict(os.environ, IMGDL_LIBRARY=path)), 0, expected)


if __name__ == "__main__":
    unittest.main()
