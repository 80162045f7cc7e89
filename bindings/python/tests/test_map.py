import asyncio
import collections
import contextlib
import gc
import itertools
import os
import re
import signal
import sys
import threading
import traceback
import types
import unittest
import weakref
from decimal import Decimal
from unittest import mock

import imgdl
from imgdl import Code
from support import PATIENCE, OriginTests, Signal


class Unreadable(collections.UserList):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        raise TypeError("requests[1] cannot be read")


class MapTests(OriginTests):
    def urls(self, count, **faults):
        return [self.origin.picture("palette.png", n=n, **faults) for n in range(count)]

    def test_in_order(self):
        gate = self.origin.gate()
        urls = [self.origin.picture("palette.png", hold_head=1, gate=gate.name), *self.urls(5)]
        with self.downloader() as downloader:
            seen = []
            tokens = downloader.map(iter(urls), size=(12, 12))
            opener = threading.Thread(target=lambda: gate.is_reached() and gate.open())
            opener.start()
            for token in tokens:
                self.assertTrue(token.done())
                seen.append((token.url, token.result().width))
            opener.join(PATIENCE)
            self.assertEqual(seen, [(url, 12) for url in urls])
            self.assertEqual(list(downloader.map([])), [])

    def test_as_they_end(self):
        gate = self.origin.gate()
        urls = [self.origin.picture("palette.png", hold_head=1, gate=gate.name), *self.urls(20)]
        with self.downloader() as downloader:
            tokens = downloader.map(urls, ordered=False, buffersize=3)
            others = [next(tokens).url for _ in range(20)]
            self.assertEqual(sorted(others), sorted(urls[1:]))
            gate.open()
            self.assertEqual([token.url for token in tokens], urls[:1])

    def test_failures_are_results(self):
        urls = [
            self.origin.picture("palette.png"),
            self.origin.url("/nothing"),
            "nonsense:",
            (self.origin.picture("opaque.png"), {"body": True}),
            (self.origin.picture("opaque.png"), {"size": (0, 0)}),
        ]
        with self.downloader() as downloader:
            for ordered in (True, False):
                tokens = list(downloader.map(urls, ordered=ordered))
                if not ordered:
                    names = [url if isinstance(url, str) else url[0] for url in urls]
                    self.assertEqual(sorted(token.url for token in tokens), sorted(names))
                    continue
                self.assertEqual(tokens[0].result().width, 1200)
                self.assertEqual(tokens[3].result().data, self.origin.bytes("opaque.png"))
                codes = [getattr(token.exception(), "code", None) for token in tokens]
                self.assertEqual(
                    codes,
                    [None, Code.INVALID_STATUS, Code.UNSUPPORTED_SCHEME, None, Code.INVALID_ARGUMENT],
                )
                tokens[2].cancel()
                self.assertIn("failed", repr(tokens[2]))
            downloader.wait_idle(PATIENCE)
        self.assertEqual(imgdl.token._outstanding, {})

    def test_no_more_than_buffersize(self):
        asked = []

        def endless():
            for n in itertools.count():
                asked.append(n)
                yield self.origin.picture("palette.png", n=n)

        with self.downloader(max_concurrent=2) as downloader:
            for ordered in (True, False):
                del asked[:]
                tokens = downloader.map(endless(), ordered=ordered, buffersize=5)
                self.assertEqual(asked, [])
                for taken in range(1, 8):
                    next(tokens)
                    # One was taken, and none is asked for before the next is.
                    self.assertEqual(len(asked), taken + 4)
                tokens.close()
            # Twice max_concurrent.
            del asked[:]
            tokens = downloader.map(endless())
            next(tokens)
            self.assertEqual(len(asked), 4)
            tokens.close()
            downloader.wait_idle(PATIENCE)
        self.assertLessEqual(self.origin.log["max_in_flight"], 2)

    def test_closing_cancels_the_rest(self):
        for leave in (lambda tokens: tokens.close(), lambda tokens: tokens.throw(KeyError("on purpose"))):
            stalled = self.urls(3, first_byte="never")
            with self.downloader() as downloader:
                for ordered in (True, False):
                    tokens = downloader.map([self.origin.picture("opaque.png"), *stalled], ordered=ordered)
                    self.assertEqual(next(tokens).result().width, 900)
                    try:
                        leave(tokens)
                    except KeyError:
                        pass
                    downloader.wait_idle(PATIENCE)
                # And leaving its loop, when nobody holds it.
                for token in downloader.map([self.origin.picture("opaque.png"), *stalled]):
                    break
                downloader.wait_idle(PATIENCE)
        self.assertEqual(imgdl.token._outstanding, {})

    def test_an_exception_over_it(self):
        """Ends it at once where it leaves a loop or a with statement, although it is kept; out of a comprehension, when
        it is let go at the latest, and nothing more is asked for until then."""
        stalled = self.urls(3, first_byte="never")

        def loop(tokens):
            for _ in tokens():
                raise KeyError

        def closing(tokens):
            with contextlib.closing(tokens()) as each:
                [{}[token] for token in each]

        def comprehension(tokens):
            [{}[token] for token in tokens()]

        def generator(tokens):
            list({}[token] for token in tokens())

        for function, is_at_once in ((loop, True), (closing, True), (comprehension, False), (generator, False)):
            urls = [self.origin.picture("opaque.png"), *stalled]
            asked = []
            # What stands still ends by cancelling alone.
            with self.subTest(function.__name__), self.downloader(idle_timeout=10 * PATIENCE) as downloader:
                problem = None
                try:
                    function(lambda: downloader.map((asked.append(url) or url for url in urls), buffersize=2))
                except KeyError as exception:
                    problem = exception
                self.assertIsInstance(problem, KeyError)
                if not is_at_once:
                    del problem
                downloader.wait_idle(PATIENCE)
                self.assertEqual(asked, urls[:2])

    def test_the_downloader_is_closed_meanwhile(self):
        downloader = self.downloader()
        tokens = downloader.map(self.urls(9), buffersize=2)
        next(tokens)
        downloader.close()
        self.assertCode(Code.SHUT_DOWN, next, tokens)
        self.assertEqual(list(tokens), [])
        self.assertCode(Code.SHUT_DOWN, downloader.map, [])

    def test_what_cannot_be(self):
        with self.downloader() as downloader:
            self.assertCode(Code.INVALID_ARGUMENT, downloader.map, [], buffersize=0)
            self.assertCode(Code.INVALID_ARGUMENT, downloader.map, [], size=(0, 0))
            with self.assertRaises(TypeError):
                downloader.map([], nonsense=1)
            # For all of them, it is found before the first is taken.
            for wrong in ({"scale_factor": "x"}, {"on_partial": 5}, {"hooks": 5}, {"client_certificate": 5}, {"headers": 5}):
                for function in (downloader.map, downloader.amap):
                    with self.subTest(wrong), self.assertRaisesRegex(TypeError, f"{[*wrong][0]} must be"):
                        function([], **wrong)
            with self.assertRaises(TypeError):
                downloader.map([], loop=None)

            # A callback would wait for itself.
            for ordered in (True, False):
                ended = Signal()

                def call(token):
                    try:
                        list(downloader.map([self.origin.picture("opaque.png", first_byte="never")], ordered=ordered))
                    except imgdl.Error as error:
                        ended(error.code)

                downloader.download(self.origin.picture("palette.png")).add_done_callback(call)
                self.assertEqual(ended.wait(), (Code.WOULD_DEADLOCK,))
            downloader.wait_idle(PATIENCE)

    def test_one_address_is_no_list(self):
        url = self.origin.picture("palette.png")
        message = "requests must be a list of addresses, not one"
        with self.downloader() as downloader:
            for one in (url, url.encode(), bytearray(url.encode())):
                for function in (downloader.map, downloader.amap, downloader.prefetch):
                    with self.subTest(one=one, function=function), self.assertRaisesRegex(TypeError, message):
                        function(one)
            for function in (downloader.map, downloader.amap, downloader.prefetch):
                with self.assertRaisesRegex(TypeError, "requests must be a list of addresses, not int"):
                    function(5)
            self.assertEqual(downloader.current_count, 0)
        self.assertEqual(self.origin.log["requests"], [])

    def test_what_is_no_address_is_named(self):
        url = self.origin.picture("palette.png")
        pair = "must be an address, or a pair of an address and its options, not"
        cases = (
            (5, f"{pair} int"),
            (None, f"{pair} NoneType"),
            (url.encode(), f"{pair} bytes"),
            (b"ab", f"{pair} bytes"),
            ((url,), f"{pair} tuple"),
            ((url, {}, {}), f"{pair} tuple"),
            ({url: {}}, f"{pair} dict"),
            ((url, 5), "has options that must be a mapping, not int"),
            ((5, {}), "has an address that must be str, not int"),
            (Unreadable(), "cannot be read"),
            ((url, {5: 1}), "has options whose names must be str, not int"),
        )
        with self.downloader() as downloader:
            for item, expected in cases:
                expected = re.escape(f"requests[1] {expected}")
                for ordered in (True, False):
                    tokens = downloader.map([url, item, url], ordered=ordered, buffersize=1)
                    self.assertEqual(next(tokens).result().width, 1200)
                    with self.subTest(item), self.assertRaisesRegex(TypeError, f"^{expected}$"):
                        next(tokens).result()
                    self.assertEqual([token.result().width for token in tokens], [1200])
                with self.subTest(item), self.assertRaisesRegex(TypeError, f"^{expected}$"):
                    downloader.prefetch([url, item])
            self.assertEqual(downloader.current_count, 0)
            # What is a pair stays one.
            tokens = downloader.map([[url, {"size": (12, 12)}], (url, types.MappingProxyType({"size": (12, 12)}))])
            self.assertEqual([token.result().width for token in tokens], [12, 12])
            self.assertEqual(downloader.prefetch([[url, {"size": (12, 12)}]]).wait(PATIENCE).failed, 0)

    def bad_requests(self):
        """Requests that cannot be, each with the address of its token, the type of its failure, and what that says."""
        url = self.origin.picture("opaque.png")
        coder = imgdl.register_coder(types.SimpleNamespace(can_decode=lambda prefix: False, decoder=lambda options: None))
        coder.close()
        closed = asyncio.new_event_loop()
        closed.close()
        return (
            (None, "", TypeError, r"requests\[\d\] must be an address, .* not NoneType"),
            (url.encode(), "", TypeError, r"requests\[\d\] must be an address, .* not bytes"),
            ((url,), url, TypeError, r"requests\[\d\] must be an address, .* not tuple"),
            ((url, 5), url, TypeError, r"requests\[\d\] has options that must be a mapping, not int"),
            ((url, {"nonsense": 1}), url, TypeError, r"download\(\) got an unexpected keyword argument 'nonsense'"),
            ((url, {"on_partial": 5}), url, TypeError, "on_partial must be callable, not int"),
            ((url, {"hooks": 5}), url, TypeError, "hooks must be imgdl.Hooks, not int"),
            ((url, {"client_certificate": 5}), url, TypeError, "client_certificate must be str, not int"),
            ((url, {"headers": 5}), url, TypeError, "headers must be .*, not int"),
            ((url, {"loop": 5}), url, TypeError, "loop must be an event loop of asyncio, not int"),
            ((url, {"loop": closed}), url, imgdl.InvalidArgument, "loop is closed"),
            (collections.UserList([url, {"nonsense": 1}]), url, TypeError, r"download\(\) got an unexpected .* 'nonsense'"),
            ((url, {"total_timeout": Decimal("nan")}), url, imgdl.InvalidArgument, "total_timeout is nan s"),
            ((url, {"coder": coder}), url, imgdl.Error, "the coder is closed"),
            ("", "", imgdl.InvalidArgument, ""),
        )

    def check_refused(self, tokens, cases):
        """Between two that are pictures."""
        self.assertEqual([token.result().width for token in (tokens[0], tokens[-1])], [1200, 1200])
        self.assertEqual(len(tokens), len(cases) + 2)
        for token, (item, url, kind, expected) in zip(tokens[1:], cases):
            with self.subTest(item):
                self.assertTrue(token.done())
                self.assertFalse(token.cancelled())
                self.assertEqual(token.url, url)
                self.assertIn("failed", repr(token))
                self.assertIsInstance(token.exception(), kind)
                for _ in range(2):
                    with self.assertRaisesRegex(kind, f"^{expected}"):
                        token.result()
                token.cancel()

    def test_a_loop_that_is_closed_as_soon_as_it_was_looked_at_fails_alone(self):
        class ClosedNext(asyncio.SelectorEventLoop):
            was_looked_at = False

            def is_closed(self):
                is_closed, was_looked_at, self.was_looked_at = super().is_closed(), self.was_looked_at, True
                if not was_looked_at:
                    self.close()
                return is_closed

        url = self.origin.picture("palette.png")
        loops = [ClosedNext() for _ in range(3)]
        with self.downloader() as downloader:
            first, *refused, last = downloader.map([url, (url, {"loop": loops[0]}), (url, {"loop": loops[1]}), url])
            self.assertEqual([token.result().width for token in (first, last)], [1200, 1200])
            self.assertEqual(len(refused), 2)
            for token in refused:
                self.assertIn("loop is closed", str(self.assertCode(Code.INVALID_ARGUMENT, token.result)))
            self.assertCode(Code.INVALID_ARGUMENT, downloader.download, url, loop=loops[2])

    def test_what_cannot_be_fails_alone(self):
        url = self.origin.picture("palette.png")
        cases = self.bad_requests()
        requests = [url, *(item for item, *_ in cases), url]
        with self.downloader() as downloader:
            for size in (1, None, 50):
                self.check_refused(list(downloader.map(requests, buffersize=size)), cases)
            # As they end: those of which nothing is waited for come as they are.
            tokens = list(downloader.map(requests, ordered=False, buffersize=1))
            self.check_refused(tokens, cases)
            tokens = list(downloader.map(requests, ordered=False))
            self.assertEqual(sum(token.exception() is not None for token in tokens), len(cases))
            # With its bar, too.
            self.check_refused(list(downloader.map(requests, progress=True)), cases)
            downloader.wait_idle(PATIENCE)
            with self.assertRaisesRegex(TypeError, "^hooks must be imgdl.Hooks, not int$"):
                downloader.prefetch([url, (url, {"hooks": 5})])

            async def take(**options):
                return [token async for token in downloader.amap(requests, **options)]

            for size in (1, None):
                self.check_refused(asyncio.run(take(buffersize=size)), cases)
            tokens = asyncio.run(take(ordered=False))
            self.assertEqual(sum(token.exception() is not None for token in tokens), len(cases))

            async def await_second():
                token = [token async for token in downloader.amap([url, None])][1]
                with self.assertRaisesRegex(TypeError, "must be an address"):
                    await token

            asyncio.run(await_second())
        self.assertEqual(imgdl.token._outstanding, {})

    def test_what_failed_alone_keeps_no_other(self):
        url = self.origin.picture("palette.png")
        with self.downloader() as downloader:
            gc.disable()
            self.addCleanup(gc.enable)
            tokens = list(downloader.map([url, None, url]))
            refused, others = tokens[1], [weakref.ref(tokens[0]), weakref.ref(tokens[2])]
            del tokens
            self.assertIsInstance(refused.exception(), TypeError)
            self.assertEqual([other() for other in others], [None, None])

    def test_what_failed_alone_keeps_nobody_who_asked(self):
        class Unusable(collections.UserDict):
            def __iter__(self):
                try:
                    raise KeyError("inner")
                except KeyError as inner:
                    raise TypeError("outer") from inner

        for options in ({"scale_factor": "x"}, {"content": 3}, Unusable()):
            with self.subTest(options):
                downloader = imgdl.Downloader()
                kept = weakref.ref(downloader)
                try:
                    raise KeyError("of the caller")
                except KeyError as problem:
                    handled = problem
                    [refused] = downloader.map([("http://127.0.0.1:1/", options)])
                self.assertIsInstance(refused.exception(), TypeError)
                del downloader
                gc.collect()
                self.assertIsNone(kept())
                # An exception that the caller handles meanwhile is the caller's.
                self.assertIsNotNone(handled.__traceback__)
        self.assertIsInstance(refused.exception().__cause__, KeyError)
        self.assertEqual(len({self.depth_of(refused) for _ in range(3)}), 1)

    def depth_of(self, token):
        try:
            token.result()
        except TypeError as problem:
            return len([*traceback.walk_tb(problem.__traceback__)])

    def test_an_interrupt_is_no_failure_of_a_request(self):
        class Interrupted(Exception):
            pass

        def interrupt(number, frame):
            raise Interrupted

        class Options(collections.UserDict):
            def __iter__(self):
                os.kill(os.getpid(), signal.SIGUSR1)
                return super().__iter__()

        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, interrupt))
        url = self.origin.picture("palette.png")
        with self.downloader() as downloader, self.assertRaises(Interrupted):
            list(downloader.map([(url, Options(size=(1, 1)))]))

    def test_many_threads(self):
        counts = []
        with self.downloader() as downloader:
            urls = self.urls(60)

            def run():
                tokens = downloader.map(urls, ordered=False, body=True)
                counts.append(sum(len(token.result()) > 0 for token in tokens))

            threads = [threading.Thread(target=run) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
        self.assertEqual(counts, [60] * 4)

    def test_progress_without_tqdm(self):
        with mock.patch.dict(sys.modules, {"tqdm": None, "tqdm.auto": None}), self.downloader() as downloader:
            self.assertEqual(len(list(downloader.map(self.urls(3), progress=True))), 3)


class CoroutineTests(OriginTests):
    """The same in coroutines, where that differs."""

    def urls(self, count, **faults):
        return [self.origin.picture("palette.png", n=n, **faults) for n in range(count)]

    def run_loop(self, main):
        """Not blocked for ever when it fails."""

        async def limited():
            async with imgdl.Downloader(max_concurrent=4) as downloader:
                await asyncio.wait_for(main(downloader), PATIENCE)
                self.assertEqual(downloader.current_count, 0)

        asyncio.run(limited())
        self.assertEqual(imgdl.token._outstanding, {})

    def test_results_without_a_thread(self):
        async def main(downloader):
            threads = threading.enumerate()
            urls = [*self.urls(9), self.origin.url("/nothing"), "nonsense:"]
            for ordered in (True, False):
                found = [token async for token in downloader.amap(urls, ordered=ordered, buffersize=3)]
                self.assertTrue(all(token.done() for token in found))
                names = [token.url for token in found]
                self.assertEqual(names if ordered else sorted(names), urls if ordered else sorted(urls))
                failed = sorted(token.exception().name for token in found if token.exception() is not None)
                self.assertEqual(failed, ["IMGDL_ERROR_INVALID_STATUS", "IMGDL_ERROR_UNSUPPORTED_SCHEME"])
                self.assertEqual([token async for token in downloader.amap([], ordered=ordered)], [])
            bodies = [token.result() async for token in downloader.amap(urls[:2], body=True)]
            self.assertEqual([body.data for body in bodies], [self.origin.bytes("palette.png")] * 2)
            self.assertEqual(threading.enumerate(), threads)

        self.run_loop(main)

    def test_who_ends_first_comes_first(self):
        async def main(downloader):
            gate = self.origin.gate()
            slow = self.origin.picture("palette.png", hold_head=1, gate=gate.name)
            tokens = downloader.amap([slow, *self.urls(9)], ordered=False, buffersize=2)
            others = [(await tokens.__anext__()).url for _ in range(9)]
            self.assertEqual(sorted(others), sorted(self.urls(9)))
            await asyncio.get_running_loop().run_in_executor(None, gate.open)
            self.assertEqual([token.url async for token in tokens], [slow])

        self.run_loop(main)

    def test_leaving_and_cancelling(self):
        async def main(downloader):
            for ordered in (True, False):
                requests = [self.origin.picture("opaque.png"), *self.urls(3, first_byte="never")]
                tokens = downloader.amap(requests, ordered=ordered)
                self.assertEqual((await tokens.__anext__()).result().width, 900)
                await tokens.aclose()
                # The end of the loop is the end of its downloads.
                self.assertEqual(downloader.current_count, 0)

                first = asyncio.get_running_loop().create_future()

                async def take():
                    async for token in downloader.amap(requests, ordered=ordered):
                        first.set_result(token)

                task = asyncio.ensure_future(take())
                await first
                await asyncio.sleep(0)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertEqual(downloader.current_count, 0)

        self.run_loop(main)

    def test_what_cannot_be(self):
        async def main(downloader):
            with self.assertRaisesRegex(TypeError, r"^requests\[0\] must be an address, .* not int$"):
                (await downloader.amap([5]).__anext__()).result()
            self.assertRaises(TypeError, downloader.amap, [], hooks=5)
            self.assertRaises(imgdl.InvalidArgument, downloader.amap, [], buffersize=0)
            self.assertRaises(imgdl.InvalidArgument, downloader.amap, [], size=(0, 0))

        self.run_loop(main)


if __name__ == "__main__":
    unittest.main()
