import sys
import threading
import unittest
from decimal import Decimal
from fractions import Fraction

import imgdl
from imgdl import Code
from support import PATIENCE, PICTURES, OriginTests, Signal


def fields(request):
    return {name.lower(): value for name, value in request["headers"]}


class DownloadTests(OriginTests):
    def test_t04_t14_t33_every_kind_of_picture(self):
        with self.downloader() as downloader:
            tokens = {name: downloader.download(self.origin.picture(name)) for name in PICTURES}
            for name, token in tokens.items():
                with self.subTest(name):
                    image, expected = token.result(PATIENCE), imgdl.decode(self.origin.bytes(name))
                    self.assertEqual((image.width, image.height), (expected.width, expected.height))
                    self.assertEqual((image.format, image.is_complete), (expected.format, True))
                    self.assertEqual(image.pixels, expected.pixels)
                    self.assertIs(token.result(), image)
                    self.assertIs(token.done(), True)

    def test_pixels_as_asked(self):
        with self.downloader() as downloader:
            options = {"pixel_format": "bgra8_premultiplied", "ignore_orientation": True}
            image = downloader.download(self.origin.picture("oriented-6.jpg"), **options).result(PATIENCE)
            expected = imgdl.decode(self.origin.bytes("oriented-6.jpg"), **options)
            self.assertEqual((image.width, image.pixel_format), (1200, "bgra8_premultiplied"))
            self.assertEqual(image.pixels, expected.pixels)

    def test_bodies(self):
        with self.downloader() as downloader:
            body = downloader.download(self.origin.picture("opaque.png", gzip=1, etag="x"), body=True).result(PATIENCE)
            self.assertEqual(body.data, self.origin.bytes("opaque.png"))
            self.assertEqual(bytes(body), body.data)
            self.assertEqual(body.view, body.data)
            self.assertEqual(len(body), len(body.data))
            self.assertEqual((body.http_status, body.image), (200, None))
            self.assertEqual(body.response.header("etag"), '"x"')
            self.assertIsNone(body.response.header("nothing"))

            body = downloader.download(self.origin.picture("opaque.png"), body=True, decode=True).result(PATIENCE)
            self.assertEqual((len(body), body.image.width), (len(self.origin.bytes("opaque.png")), 900))

            empty = downloader.download(self.origin.picture("opaque.png", empty=1), body=True).result(PATIENCE)
            self.assertEqual((empty.data, len(empty), bytes(empty.view)), (b"", 0, b""))

    def test_responses(self):
        with self.downloader() as downloader:
            url = self.origin.url("/redirect/3", to="/pictures/opaque.png")
            token = downloader.download(url, body=True)
            response = token.result(PATIENCE).response
            self.assertIs(token.response, response)
            self.assertEqual((response.status, response.http_version, response.redirect_count), (200, "1.1", 3))
            self.assertEqual(response.url, self.origin.picture("opaque.png"))
            self.assertEqual(response.content_length, len(self.origin.bytes("opaque.png")))
            self.assertIn(("Content-Type", "image/png"), response.headers)

            token = downloader.download(url, body=True, follow_redirects=False, any_status=True)
            response = token.result(PATIENCE).response
            self.assertEqual((response.status, response.redirect_count), (302, 0))

            body = downloader.download(self.origin.url("/status/418"), body=True, any_status=True).result(PATIENCE)
            self.assertEqual((body.http_status, body.data), (418, b"status 418\n"))

    def test_requests_of_every_kind(self):
        with self.downloader() as downloader:
            options = {"method": "PUT", "content": b"a\0b", "headers": {"X-Mine": "ü", "Accept": None}}
            downloader.download(self.origin.url("/echo"), body=True, **options).result(PATIENCE)
        (request,) = self.origin.log["requests"]
        self.assertEqual((request["method"], request["body_bytes"]), ("PUT", 3))
        self.assertEqual(fields(request)["x-mine"], "ü")
        self.assertNotIn("accept", fields(request))

    def test_t01_two_downloaders_share_nothing(self):
        gate = self.origin.gate()
        url = self.origin.picture("opaque.png", hold_head=1, gate=gate.name)
        with self.downloader() as first, self.downloader() as second:
            first.set_header("X-First", "1")
            tokens = [first.download(url), second.download(url)]
            self.assertTrue(gate.is_reached(2))
            first.cancel_all()
            self.assertCode(Code.CANCELLED, tokens[0].result, PATIENCE)
            gate.open()
            self.assertEqual(tokens[1].result(PATIENCE).width, 900)
        self.assertEqual(sorted("x-first" in fields(each) for each in self.origin.log["requests"]), [False, True])

    def test_the_shared_downloader(self):
        url = self.origin.picture("palette.png")
        self.assertEqual(imgdl.get(url, timeout=PATIENCE).width, 1200)
        self.assertEqual(len(imgdl.get(url, body=True)), len(self.origin.bytes("palette.png")))
        shared = imgdl.Downloader.shared()
        self.assertIs(imgdl.Downloader.shared(), shared)
        stalled = self.origin.picture("palette.png", first_byte="never")
        with self.assertRaises(imgdl.WaitTimeout):
            imgdl.get(stalled, timeout=0.01)
        # Nobody else can want it, so that it was cancelled.
        shared.wait_idle(PATIENCE)
        shared.close()
        shared.close()
        self.assertCode(Code.SHUT_DOWN, shared.download, url)
        self.assertEqual(imgdl.get(url).width, 1200)

    def test_t02_default_headers(self):
        with self.downloader() as downloader, self.downloader(user_agent="mine/2") as other:
            for each in (downloader, other):
                each.download(self.origin.picture("palette.png")).result(PATIENCE)
        first, second = map(fields, self.origin.log["requests"])
        self.assertEqual(first["user-agent"], f"imgdl/{imgdl.library_version}")
        self.assertEqual(second["user-agent"], "mine/2")
        self.assertTrue(first["accept"].startswith("image/"), first["accept"])

    def test_t03_headers(self):
        seen = []
        with self.downloader() as downloader:
            for name, value in (("X-Mine", "1"), ("x-mine", "2"), ("X-MINE", None), ("Accept", None)):
                downloader.set_header(name, value)
                body = downloader.download(self.origin.url("/echo"), body=True).result(PATIENCE)
                self.assertEqual(body.http_status, 200)
            self.assertCode(Code.INVALID_HEADER, downloader.set_header, "X", "a\nb")
            self.assertCode(Code.INVALID_HEADER, downloader.set_header, "X", "a\0b")
        seen = [fields(request) for request in self.origin.log["requests"]]
        self.assertEqual([each.get("x-mine") for each in seen], ["1", "2", None, None])
        self.assertEqual(["accept" in each for each in seen], [True, True, True, False])

    def test_t05_at_most_so_many(self):
        gate = self.origin.gate()
        with self.downloader(max_concurrent=2) as downloader:
            self.assertEqual(downloader.max_concurrent, 2)
            tokens = [
                downloader.download(self.origin.picture("palette.png", hold_head=1, gate=gate.name, n=n))
                for n in range(6)
            ]
            self.assertTrue(gate.is_reached(2))
            self.assertEqual(self.origin.log["max_in_flight"], 2)
            downloader.max_concurrent = 3
            self.assertEqual(downloader.max_concurrent, 3)
            self.assertTrue(gate.is_reached(3))
            self.assertEqual(self.origin.log["max_in_flight"], 3)
            self.assertEqual(downloader.current_count, 6)
            gate.open()
            for token in tokens:
                token.result(PATIENCE)
            self.assertLessEqual(self.origin.log["max_in_flight"], 3)
            self.assertEqual(downloader.current_count, 0)
            with self.assertRaises(ValueError):
                downloader.max_concurrent = 0

    def test_t05_fewer_than_run(self):
        gates = [self.origin.gate() for _ in range(4)]
        with self.downloader(max_concurrent=3) as downloader:
            tokens = [
                downloader.download(self.origin.picture("palette.png", hold_head=1, gate=gate.name)) for gate in gates
            ]
            self.assertTrue(all(gate.is_reached() for gate in gates[:3]))
            downloader.max_concurrent = 1
            for gate, token in zip(gates, tokens):
                gate.open()
                token.result(PATIENCE)
            downloader.wait_idle(PATIENCE)
        arrivals = [each["target"] for each in self.origin.log["requests"]]
        self.assertEqual((len(arrivals), self.origin.log["max_in_flight"]), (4, 3))
        self.assertIn(f"gate={gates[3].name}", arrivals[3])

    def test_t15_last_in_first_out_and_four_at_once(self):
        gate, rest = self.origin.gate(), self.origin.gate()
        with self.downloader(max_concurrent=4, order="lifo") as downloader:
            held = [
                downloader.download(self.origin.picture("palette.png", hold_head=1, gate=gate.name, n=n))
                for n in range(4)
            ]
            self.assertTrue(gate.is_reached(4))
            tokens = [
                downloader.download(self.origin.picture("palette.png", hold_head=1, gate=rest.name, n=n))
                for n in range(4, 12)
            ]
            gate.open()
            for token in held:
                token.result(PATIENCE)
            # The four newest, in whatever order they arrive.
            self.assertTrue(rest.is_reached(4))
            newest = {each["target"].rpartition("=")[2] for each in self.origin.log["requests"][4:]}
            self.assertEqual(newest, {"8", "9", "10", "11"})
            rest.open()
            for token in tokens:
                token.result(PATIENCE)
        self.assertEqual(self.origin.log["max_in_flight"], 4)

    def test_t08_user_and_password(self):
        url = self.origin.url("/auth/basic?user=user&password=secret").replace("://", "://user:secret@")
        with self.downloader() as downloader:
            self.assertCode(Code.INVALID_STATUS, downloader.download(url, body=True).result, PATIENCE)
            downloader.download(url, body=True, basic_over_http=True).result(PATIENCE)
        with self.downloader(basic_over_http=True) as downloader:
            downloader.download(url, body=True).result(PATIENCE)
        (_, _, request, _, _) = self.origin.log["requests"]
        self.assertEqual(fields(request)["authorization"], "Basic dXNlcjpzZWNyZXQ=")

    def test_t09_progressive(self):
        gate = self.origin.gate()
        partial = Signal()
        url = self.origin.picture("progressive.jpg", hold_after=60_000, gate=gate.name)
        with self.downloader() as downloader:
            token = downloader.download(url, on_partial=partial)
            given, image = partial.wait()
            self.assertIs(given, token)
            self.assertIs(image.is_complete, False)
            self.assertIs(token.done(), False)
            self.assertGreater(len(set(image.pixels)), 10)
            gate.open()
            final = token.result(PATIENCE)
            self.assertEqual((image.width, image.height), (final.width, final.height))
            self.assertEqual(final.pixels, imgdl.decode(self.origin.bytes("progressive.jpg")).pixels)
        for _, image in partial.arguments:
            self.assertGreaterEqual(image.pass_, 1)

    def test_t11_t27_cancel(self):
        with self.downloader() as downloader:
            gate = self.origin.gate()
            token = downloader.download(self.origin.picture("opaque.png", hold_after=1000, gate=gate.name))
            self.assertTrue(gate.is_reached())
            self.assertEqual(downloader.current_count, 1)
            token.cancel()
            token.cancel()
            error = self.assertCode(Code.CANCELLED, token.result, PATIENCE)
            self.assertIsInstance(error, imgdl.Cancelled)
            self.assertEqual(downloader.current_count, 0)
            self.assertOriginSees(abandoned=1, closed_by_client=1)
            token.cancel()
            token.set_priority("low")

    def test_t11b_cancel_all(self):
        with self.downloader() as downloader:
            tokens = [
                downloader.download(self.origin.picture("opaque.png", first_byte="never", n=n)) for n in range(10)
            ]
            downloader.cancel_all()
            for token in tokens:
                self.assertCode(Code.CANCELLED, token.result, PATIENCE)
            downloader.wait_idle(PATIENCE)
            self.assertEqual(downloader.download(self.origin.picture("opaque.png")).result(PATIENCE).width, 900)

    def test_t15_last_in_first_out(self):
        first, seventh = self.origin.gate(), self.origin.gate()
        tokens = []

        def url(number, **faults):
            return self.origin.picture("palette.png", _number=number, **faults)

        def started(token):
            # On the thread of the callbacks, and without a deadlock.
            tokens.extend(downloader.download(url(number)) for number in range(8, 15))
            seventh.open()

        with self.downloader(max_concurrent=1, order="lifo") as downloader:
            tokens.append(downloader.download(url(1, hold_head=1, gate=first.name)))
            self.assertTrue(first.is_reached())
            tokens.extend(downloader.download(url(number)) for number in range(2, 7))
            token = downloader.download(url(7, hold_head=1, gate=seventh.name), on_started=started)
            first.open()
            token.result(PATIENCE)
            for token in tokens:
                token.result(PATIENCE)
        order = [int(each["target"].partition("_number=")[2].partition("&")[0]) for each in self.origin.log["requests"]]
        self.assertEqual(order, [1, 7, 14, 13, 12, 11, 10, 9, 8, 6, 5, 4, 3, 2])

    def test_priorities(self):
        gate = self.origin.gate()
        with self.downloader(max_concurrent=1) as downloader:
            first = downloader.download(self.origin.picture("palette.png", hold_head=1, gate=gate.name, _number=0))
            self.assertTrue(gate.is_reached())
            priorities = {1: "low", 2: "normal", 3: "high", 4: "low"}
            tokens = {
                number: downloader.download(self.origin.picture("palette.png", _number=number), priority=priority)
                for number, priority in priorities.items()
            }
            tokens[4].set_priority("high")
            self.assertCode(Code.INVALID_ARGUMENT, tokens[4].set_priority, "urgent")
            gate.open()
            for token in [first, *tokens.values()]:
                token.result(PATIENCE)
        order = [int(each["target"].rpartition("=")[2]) for each in self.origin.log["requests"][1:]]
        self.assertEqual(order, [3, 4, 2, 1])

    def test_suspended(self):
        with self.downloader() as downloader:
            self.assertIs(downloader.suspended, False)
            downloader.suspended = True
            self.assertIs(downloader.suspended, True)
            token = downloader.download(self.origin.picture("palette.png"))
            with self.assertRaises(imgdl.WaitTimeout):
                token.result(0.02)
            self.assertIs(token.done(), False)
            self.assertEqual(self.origin.log["requests"], [])
            downloader.suspended = False
            self.assertEqual(token.result(PATIENCE).width, 1200)

    def test_t17_events_in_their_order(self):
        events = []

        def record(kind):
            return lambda token, *arguments: events.append((kind, threading.get_ident(), token, arguments))

        kinds = ("started", "response", "header", "progress", "partial")
        shown = threading.Event()

        def show(token, image):
            events.append(("partial", threading.get_ident(), token, (image,)))
            shown.set()

        size = len(self.origin.bytes("progressive.jpg"))
        with self.downloader() as downloader:
            gate = self.origin.gate()
            token = downloader.download(
                self.origin.picture("progressive.jpg", hold_after=size - 1, gate=gate.name, chunk=1000),
                partial_interval=0.001,
                on_partial=show,
                **{f"on_{kind}": record(kind) for kind in kinds[:4]},
            )
            token.add_done_callback(record("done"))
            self.assertTrue(shown.wait(PATIENCE))
            gate.open()
            token.result(PATIENCE)
            downloader.wait_idle(PATIENCE)
        order = [kind for kind, *_ in events]
        self.assertEqual(order[:2], ["started", "response"])
        self.assertLess(order.index("header"), order.index("partial"))
        self.assertEqual(events[-1][0], "done")
        self.assertTrue(set(kinds) <= {kind for kind, *_ in events})
        self.assertEqual({each for _, _, each, _ in events}, {token})
        (thread,) = {each for _, each, _, _ in events}
        self.assertNotEqual(thread, threading.get_ident())
        (response,) = [arguments[0] for kind, _, _, arguments in events if kind == "response"]
        self.assertIs(token.response, response)
        (info,) = [arguments[0] for kind, _, _, arguments in events if kind == "header"]
        self.assertEqual((info.width, info.height), (1280, 853))
        progress = [arguments for kind, _, _, arguments in events if kind == "progress"]
        self.assertEqual(progress[-1], (size, size))
        self.assertEqual(progress, sorted(progress))

    def test_unknown_length(self):
        progress = Signal()
        with self.downloader() as downloader:
            url = self.origin.picture("palette.png", chunked=1, chunk=5000)
            downloader.download(url, on_progress=progress).result(PATIENCE)
        size = len(self.origin.bytes("palette.png"))
        self.assertTrue(progress.arguments)
        # Until all of it is there.
        for _, received, expected in progress.arguments:
            self.assertIn(expected, (None, size) if received == size else (None,))

    def test_t20_cancelling_one_of_two(self):
        gate = self.origin.gate()
        url = self.origin.picture("opaque.png", hold_after=1000, gate=gate.name)
        with self.downloader() as downloader:
            first, second = downloader.download(url), downloader.download(url)
            self.assertNotEqual(first.id, second.id)
            self.assertTrue(gate.is_reached())
            first.cancel()
            self.assertCode(Code.CANCELLED, first.result, PATIENCE)
            gate.open()
            self.assertEqual(second.result(PATIENCE).width, 900)
        self.assertEqual(len(self.origin.log["requests"]), 1)
        self.assertEqual(self.origin.log["abandoned"], 0)

    def test_one_transfer_and_as_many_decodes_as_asked(self):
        gate = self.origin.gate()
        url = self.origin.picture("alpha.png", hold_head=1, gate=gate.name)
        formats = ["rgba8", "bgra8", "rgba8_premultiplied", "bgra8_premultiplied"]
        with self.downloader() as downloader:
            tokens = [downloader.download(url, pixel_format=each) for each in formats]
            body = downloader.download(url, body=True)
            gate.open()
            self.assertEqual([token.result(PATIENCE).pixel_format for token in tokens], formats)
            self.assertEqual(body.result(PATIENCE).data, self.origin.bytes("alpha.png"))
        self.assertEqual(len(self.origin.log["requests"]), 1)

    def test_t21_again_inside_the_cancelled_callback(self):
        gate = self.origin.gate()
        again = Signal()
        with self.downloader() as downloader:
            token = downloader.download(self.origin.picture("opaque.png", hold_after=1000, gate=gate.name))
            self.assertTrue(gate.is_reached())

            def repeat(token):
                again(downloader.download(self.origin.picture("opaque.png")))

            token.add_done_callback(repeat)
            token.cancel()
            self.assertCode(Code.CANCELLED, token.result, PATIENCE)
            (second,) = again.wait()
            self.assertEqual(second.result(PATIENCE).width, 900)

    def test_t21_again_while_it_waits(self):
        gate = self.origin.gate()
        with self.downloader(max_concurrent=1) as downloader:
            running = downloader.download(self.origin.picture("palette.png", hold_head=1, gate=gate.name))
            self.assertTrue(gate.is_reached())
            first = downloader.download(self.origin.picture("opaque.png"))
            first.cancel()
            second = downloader.download(self.origin.picture("opaque.png"))
            self.assertCode(Code.CANCELLED, first.result, PATIENCE)
            gate.open()
            self.assertEqual((running.result(PATIENCE).width, second.result(PATIENCE).width), (1200, 900))
        self.assertEqual(len(self.origin.requests("/pictures/opaque.png")), 1)

    def test_cancelling_inside_a_callback_is_the_last_of_it(self):
        calls = []

        def cancel(token, *arguments):
            calls.append(arguments)
            token.cancel()

        with self.downloader() as downloader:
            token = downloader.download(self.origin.picture("opaque.png"), on_response=cancel, on_progress=cancel)
            self.assertCode(Code.CANCELLED, token.result, PATIENCE)
            downloader.wait_idle(PATIENCE)
        self.assertEqual(len(calls), 1)

    def test_waiting_inside_a_callback_is_refused(self):
        codes = Signal()

        def wait(token):
            for call in (token.result, other.result, downloader.wait_idle):
                try:
                    call(PATIENCE)
                except imgdl.Error as error:
                    codes(error.code)

        gate = self.origin.gate()
        with self.downloader() as downloader:
            other = downloader.download(self.origin.picture("opaque.png", hold_head=1, gate=gate.name))
            token = downloader.download(self.origin.picture("palette.png"), on_started=wait)
            token.result(PATIENCE)
            self.assertEqual(codes.arguments, [(Code.WOULD_DEADLOCK,)] * 3)
            gate.open()
            other.result(PATIENCE)

    def test_waits_with_a_limit(self):
        with self.downloader() as downloader:
            token = downloader.download(self.origin.picture("opaque.png", first_byte="never"))
            for call in (token.result, downloader.wait_idle):
                self.assertIsInstance(self.assertCode(Code.WAIT_TIMEOUT, call, 0.001), imgdl.WaitTimeout)
                self.assertCode(Code.WAIT_TIMEOUT, call, 0)
                with self.assertRaises(TimeoutError):
                    call(-1)
            token.cancel()
            downloader.wait_idle(PATIENCE)

    def test_limits_that_are_none(self):
        stalled = self.origin.picture("opaque.png", first_byte="never")
        with self.downloader() as downloader:
            done = downloader.download(self.origin.picture("palette.png"))
            done.result(PATIENCE)
            token, batch = downloader.download(stalled), downloader.prefetch([stalled])
            shared = imgdl.Downloader.shared()
            calls = (
                token.result,
                token.exception,
                done.result,
                done.exception,
                batch.wait,
                downloader.wait_idle,
                lambda timeout: imgdl.get(self.origin.picture("gray.jpg", first_byte="never"), timeout=timeout),
            )
            for call in calls:
                with self.subTest(call):
                    for wrong in ("5", b"5", [5], 1j):
                        expected = f"timeout must be a number of seconds, not {type(wrong).__name__}"
                        with self.assertRaisesRegex(TypeError, f"^{expected}$"):
                            call(wrong)
                    error = self.assertCode(Code.INVALID_ARGUMENT, call, float("nan"))
                    self.assertIsInstance(error, ValueError)
                    self.assertEqual(error.message, "timeout is nan: not a number of seconds")
            self.assertEqual(shared.current_count, 0)
            # What counts as a number of seconds.
            for seconds in (1e400, 10**400, Fraction(1, 2), Decimal(3), True):
                done.result(seconds)
            for seconds in (Fraction(1, 1000), Decimal("0.001"), -(10**400), False):
                self.assertCode(Code.WAIT_TIMEOUT, token.result, seconds)
            token.cancel()
            batch.cancel()
            for seconds in (1e400, 10**400):
                self.assertCode(Code.CANCELLED, token.result, seconds)
            downloader.wait_idle(10**400)
        self.assertEqual(self.origin.requests("/pictures/gray.jpg"), [])

    def test_many_waiters_of_one_token(self):
        gate = self.origin.gate()
        with self.downloader() as downloader:
            token = downloader.download(self.origin.picture("palette.png", hold_head=1, gate=gate.name))
            results = []
            threads = [threading.Thread(target=lambda: results.append(token.result(PATIENCE))) for _ in range(8)]
            for thread in threads:
                thread.start()
            gate.open()
            for thread in threads:
                thread.join(PATIENCE)
            self.assertEqual(results, [token.result()] * 8)

    def test_t31_many_requests_from_many_threads_with_cancels(self):
        # Every token ends, once, whatever races.
        ended = []
        tokens = []

        def run(seed):
            for number in range(250):
                token = downloader.download(self.origin.picture("palette.png", n=number % 7), priority=number % 3 - 1)
                token.add_done_callback(ended.append)
                tokens.append(token)
                if (number + seed) % 3 == 0:
                    token.cancel()

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        self.addCleanup(sys.setswitchinterval, interval)
        with self.downloader() as downloader:
            threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
            downloader.wait_idle(PATIENCE)
            self.assertEqual(len(ended), 2000)
            self.assertEqual(set(ended), set(tokens))
            for token in tokens:
                try:
                    self.assertEqual(token.result(0).width, 1200)
                except imgdl.Cancelled:
                    pass

    def test_setting_the_order(self):
        gate = self.origin.gate()
        with self.downloader(max_concurrent=1) as downloader:
            tokens = [downloader.download(self.origin.picture("palette.png", hold_head=1, gate=gate.name, _number=0))]
            self.assertTrue(gate.is_reached())
            downloader.set_order("lifo")
            tokens += [downloader.download(self.origin.picture("palette.png", _number=n)) for n in (1, 2, 3)]
            gate.open()
            for token in tokens:
                token.result(PATIENCE)
        order = [int(each["target"].rpartition("=")[2]) for each in self.origin.log["requests"][1:]]
        self.assertEqual(order, [3, 2, 1])


if __name__ == "__main__":
    unittest.main()
