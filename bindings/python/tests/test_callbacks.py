"""Interrupts of what the library calls: C always has a result, and the interrupt is raised where the call of C ends."""

import ast
import base64
import ctypes
import functools
import gc
import inspect
import os
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock
import weakref
from pathlib import Path

import imgdl
from imgdl import _callbacks, _canvas, _native, _observing, batch, cache, coder, hooks, token, transport
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

    def test_all_that_c_calls_is_wrapped(self):
        """But for what shows exceptions, which gives C nothing."""
        wrapped, bare = set(), set()
        for each in gc.get_objects():
            if isinstance(each, ctypes._CFuncPtr):
                for function in filter(inspect.isfunction, gc.get_referents(each)):
                    if function is getattr(each, "errcheck", None):
                        continue  # it calls C
                    if function.__module__ == _callbacks.__name__ and function.__name__ == "called":
                        wrapped.add(id(each))
                    elif function.__module__.startswith("imgdl."):
                        bare.add(function.__qualname__)
        self.assertEqual(bare, {"_raise_unraisable"})
        self.assertLess(set(map(id, hooks._ASKED.values())), wrapped)
        for module in (batch, cache, coder, hooks, token, transport, _canvas, _observing):
            self.assertTrue(wrapped & set(map(id, vars(module).values())), module)

    def test_no_other_is_made(self):
        """Also inside of a function: a prototype is given to the wrapper, and applied to nothing itself."""
        prototypes = {name for name, value in vars(_native).items() if inspect.isclass(value) and issubclass(value, ctypes._CFuncPtr)}
        self.assertIn("imgdl_destructor", prototypes)
        prototypes |= {"CFUNCTYPE", "PYFUNCTYPE", "callback_type"}
        applied = []
        for path in Path(imgdl.__file__).parent.glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                # A type made of types, and NULL, are no functions.
                calls = [node.func] if isinstance(node, ast.Call) and node.args else getattr(node, "decorator_list", [])
                is_decorator = not isinstance(node, ast.Call)
                for function in calls:
                    made = function.func if isinstance(function, ast.Call) else function
                    name = getattr(made, "attr", getattr(made, "id", None))
                    is_type = name in ("CFUNCTYPE", "PYFUNCTYPE", "callback_type")
                    if name in prototypes and (is_decorator or isinstance(function, ast.Call) or not is_type):
                        applied.append((path.name, getattr(node, "name", name)))
        self.assertEqual(applied, [("errors.py", "_raise_unraisable")])

    def test_what_ends_with_a_call(self):
        """Destructors, which run in it, are through, and the interrupt is raised when it has returned."""

        class Loader:
            def start(self, request, transfer):
                pass

        def release():
            given = imgdl.Hooks(modify_request=print)
            given._reference.release()
            _callbacks.raise_struck()

        def load():
            downloader.register_transport("app", Loader())
            downloader.register_transport("app", None)

        registries = hooks._tables, cache._listeners, coder._functions, _observing.observers, transport._loaders
        # Those of earlier tests may still wait for their owners to be collected.
        gc.collect()
        before = [set(map(id, registry.values())) for registry in registries]

        def check(number):
            left = [set(map(id, registry.values())) - known for registry, known in zip(registries, before)]
            self.assertEqual(left, [set()] * len(registries), f"at place {number}")

        with imgdl.Downloader() as downloader:
            for action in (
                release,
                lambda: imgdl.Cache(on_event=print).close(),
                lambda: imgdl.register_coder(Coder).close(),
                load,
            ):
                check(-1)
                self.strike_everywhere(action, check)

    def test_what_the_library_calls_on_threads_of_its_own(self):
        """As it calls them, but here, where interrupts strike: each has a result, and the interrupt is kept."""

        class Loader:
            def start(self, request, transfer):
                self.transfer = transfer

            def cancel(self, transfer):
                pass

            resume = cancel

        loader, nobody = Loader(), 1 << 60
        functions = {name: lambda *arguments: None for name in hooks._ASKED}
        keys = {
            hooks._tables: hooks._tables.add(hooks._Table(functions, loader)),
            cache._listeners: cache._listeners.add(id),
            _observing.observers: _observing.observers.add(id),
            transport._loaders: transport._loaders.add(loader),
        }
        for registry, key in keys.items():
            self.addCleanup(registry.pop, key)
        response, outgoing = _native.imgdl_response(), _native.imgdl_outgoing(url=b"app:x", method=b"GET")
        event, observation = _native.imgdl_cache_event(message=b""), _native.imgdl_observation()
        table, listener, observer, key = keys.values()
        calls = [
            (hooks._modify_request, outgoing, nobody, table),
            (hooks._modify_response, response, nobody, table),
            (hooks._redirect, response, b"http://localhost/", nobody, table),
            (hooks._authenticate, response, nobody, table),
            (cache._on_event, event, listener),
            (_observing._on_observation, observation, observer),
            (_observing._on_observer_end, observer),
            (transport._start, outgoing, nobody, key),
            (transport._resume, nobody, key),
            (transport._cancel, nobody, key),
        ]
        for function, *given in calls:
            arguments = [ctypes.pointer(each) if isinstance(each, ctypes.Structure) else each for each in given]
            results = set()

            def act():
                _observing.observers.put(observer, id)
                if function in (transport._resume, transport._cancel):
                    transport._transfers[nobody] = loader.transfer
                results.add(function(*arguments))
                _callbacks.raise_struck()

            def check(number):
                if function is _observing._on_observer_end:
                    self.assertIsNone(_observing.observers.get(observer), f"at place {number}")

            self.strike_everywhere(act, check)
            self.assertLessEqual(results, {None, nobody} if function is transport._start else {None})

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

    def test_an_interrupt_in_a_hook_and_in_a_loader(self):
        """Of what the library calls on threads of its own: who waits on the main thread is interrupted."""
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

        def raises(*arguments):
            raise KeyboardInterrupt

        class Loader:
            start = raises

        class Whole:
            def start(self, request, transfer):
                transfer.response(200)
                transfer.body(DATA)
                transfer.end()

        for loader, options in (
            (Loader(), {}),
            (Whole(), {"hooks": imgdl.Hooks(modify_request=raises)}),
            (Whole(), {"hooks": imgdl.Hooks(modify_response=raises)}),
            (Whole(), {"hooks": imgdl.Hooks(transform_body=raises)}),
        ):
            with self.subTest(options), imgdl.Downloader() as downloader:
                downloader.register_transport("app", loader)
                # Else it may strike ahead of the token.
                downloader.suspended = True
                token = downloader.download("app:x", **options)
                with self.assertRaises(KeyboardInterrupt):
                    downloader.suspended = False
                    token.result(PATIENCE)
                with self.assertRaises(imgdl.Error):
                    token.result(PATIENCE)
                self.assertEqual([each.exc_type for each in self.shown], [KeyboardInterrupt])
                self.shown.clear()
                # The downloader works on.
                downloader.register_transport("app", Whole())
                self.assertEqual(downloader.download("app:x").result(PATIENCE).width, 2)

    def test_an_interrupt_here(self):
        """What a function raises that is called on the main thread is raised where the call of the library ends, if it is
        an interrupt, and is the answer that it always is."""

        class Stop(Exception):
            pass

        def stop(number, frame):
            raise Stop

        def raises(*arguments):
            signal.raise_signal(signal.SIGUSR1)

        class Loader:
            start = cancel = resume = raises

        loader, nobody = Loader(), 1 << 60
        table = hooks._tables.add(hooks._Table({"modify_request": raises}, loader))
        key, listener = transport._loaders.add(loader), cache._listeners.add(raises)
        observer = _observing.observers.add(raises)
        self.addCleanup(hooks._tables.pop, table)
        self.addCleanup(transport._loaders.pop, key)
        self.addCleanup(cache._listeners.pop, listener)
        self.addCleanup(_observing.observers.pop, observer)
        outgoing = ctypes.pointer(_native.imgdl_outgoing(url=b"app:x", method=b"GET"))
        event = ctypes.pointer(_native.imgdl_cache_event(message=b""))
        transfer = transport.Transfer(nobody)
        for handler, kind in ((stop, Stop), (signal.default_int_handler, KeyboardInterrupt)):
            before = signal.signal(signal.SIGUSR1, handler)
            try:
                for function, *arguments in (
                    (hooks._modify_request, outgoing, nobody, table),
                    (transport._start, outgoing, nobody, key),
                    (transport._resume, nobody, key),
                    (transport._cancel, nobody, key),
                    (cache._on_event, event, listener),
                    (_observing._on_observation, ctypes.pointer(_native.imgdl_observation()), observer),
                ):
                    transport._transfers[nobody] = transfer
                    answer = function(*arguments)
                    self.assertEqual(answer, nobody if function is transport._start else None)
                    # The next call of the library that may raise does.
                    self.assertRaises(kind, imgdl.Downloader().close)
                    _callbacks.raise_struck()
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
    # One may be on its way when the timer is stopped.
    while count < 100 and frame is not None and frame.f_code.co_name != "finalized":
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


def descriptors(most=0):
    """How many there are: the library closes some a moment later. As soon as there are so few, or when no more are closed."""
    gc.collect()
    count, end = len(os.listdir("/proc/self/fd")), time.monotonic() + 1
    while count > most and time.monotonic() < end:
        time.sleep(0.005)
        before, count = count, len(os.listdir("/proc/self/fd"))
        if count < before:
            end = time.monotonic() + 1
    return count


class FinalizerTests(unittest.TestCase):
    """Python loses what is raised in a finalizer: an interrupt that was kept before is raised where the call of the library
    ends, all the same, and what the finalizer does is done."""

    def setUp(self):
        self.shown = []
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = self.shown.append

    def interrupt_and(self, let_go, downloaders):
        """In one call of the library: an interrupt is kept, and then a callback does that. The last of the downloaders is
        asked, and is its token's from then on."""
        import asyncio

        def interrupt(token):
            raise KeyboardInterrupt

        async def main():
            ended = asyncio.Event()
            token = downloaders.pop().download(URL, loop=asyncio.get_running_loop())
            token.add_done_callback(interrupt)
            token.add_done_callback(lambda token: let_go())
            token.add_done_callback(lambda token: ended.set())
            del token
            await ended.wait()

        loop = asyncio.new_event_loop()
        problem = None
        try:
            loop.run_until_complete(main())
        except KeyboardInterrupt as exception:
            problem = type(exception)
        for task in asyncio.all_tasks(loop):
            loop.run_until_complete(task)
        loop.close()
        return problem, [each.exc_type for each in self.shown]

    def test_a_downloader(self):
        """Nothing of one that its last token held is left: neither its thread's descriptors nor its loop's."""

        def play():
            return self.interrupt_and(lambda: None, [imgdl.Downloader(allow_data_urls=True)])

        play()  # what the library keeps from its first time on
        before = descriptors()
        told = [play() for _ in range(5)]
        self.assertLessEqual(descriptors(before), before)
        self.assertEqual(told, [(KeyboardInterrupt, [])] * 5)

    def test_a_downloader_that_is_struck_there(self):
        """Wherever: it ends all the same."""

        def act():
            own = imgdl.Downloader()
            del own

        def is_meant(code):
            return True if code.co_name == "finalized" else None if code.co_name != "act" else False

        act()
        before = descriptors()
        number, has_struck = 0, True
        while has_struck:
            has_struck, problem = struck(act, number, is_meant, spared=())
            with self.subTest(number):
                self.assertIsNone(problem)
                self.assertLessEqual(descriptors(before), before)
                if has_struck:
                    with self.assertRaises(KeyboardInterrupt):
                        imgdl.Decoder().close()
            number += 1
        self.assertGreater(number, 10)
        self.assertEqual(self.shown, [])

    def test_the_shared_one_in_a_cycle(self):
        """Its loaders go with it, in whatever order the collector takes what it has, where an interrupt ended `close`."""

        class Loader:
            def start(self, request, transfer):
                pass

        own = imgdl.Downloader.shared()
        own.itself = own
        loader = Loader()
        own.register_transport("own", loader)
        reference = weakref.ref(loader)
        # As far as `close` came.
        own._state.is_closing = True
        imgdl.Downloader.shared()
        del own, loader
        gc.collect()
        self.assertIsNone(reference())

    def test_what_calls_python(self):
        with imgdl.Downloader(allow_data_urls=True) as downloader:
            for make in (imgdl.Decoder, imgdl.Cache):
                with self.subTest(make):
                    kept = [make()]
                    told = self.interrupt_and(kept.clear, [downloader])
                    self.assertEqual(told, (KeyboardInterrupt, []))


if __name__ == "__main__":
    unittest.main()
