"""examples/event-loops: each runs its downloads on the loop of its host, alone on one thread, and ends as it should."""
import signal
import sys
import unittest

from example import ROOT, Example


class EventLoopTests(Example):
    """What is asked of all of them."""

    def test_it_says_what_it_got_and_ends_with_0(self):
        lossy, opaque = f"{self.base}/pictures/lossy.webp", f"{self.base}/pictures/opaque.png"
        self.assertEqual(self.run_to_end(lossy, opaque),
                         (0, sorted([f"1200 x 800 {lossy}", f"900 x 600 {opaque}"]), ""))

    def test_more_than_one_turn_of_the_loop(self):
        addresses = [f"{self.base}/pictures/alpha.png?n={n}" for n in range(100)]
        code, lines, complaints = self.run_to_end(*addresses)
        self.assertEqual((code, complaints), (0, ""))
        self.assertEqual(sorted(line.split()[-1] for line in lines), sorted(addresses))

    def test_a_failure_is_told_and_the_others_come(self):
        opaque = f"{self.base}/pictures/opaque.png"
        code, lines, complaints = self.run_to_end(f"{self.base}/status/404?token=secret", opaque, "nonsense")
        self.assertEqual((code, lines), (1, [f"900 x 600 {opaque}"]))
        self.assertIn("404", complaints)
        self.assertIn("not a URL", complaints)
        self.assertNotIn("secret", complaints)

    def test_nothing_but_a_refused_address_ends_too(self):
        code, lines, complaints = self.run_to_end("nonsense")
        self.assertEqual((code, lines), (1, []))
        self.assertIn("not a URL", complaints)

    def test_an_interrupt_cancels_what_runs(self):
        opaque = f"{self.base}/pictures/opaque.png"
        process = self.start(f"{opaque}?hold_after=1&gate=never", f"{opaque}?first_byte=never")
        self.origin_sees(requests=2)
        process.send_signal(signal.SIGINT)
        code, lines, complaints = self.end_of(process)
        self.assertEqual((code, lines), (1, []))
        self.assertEqual(complaints.count("cancelled"), 2, complaints)
        self.assertNotIn("Traceback", complaints)
        self.origin_sees(closed_by_client=2)

    def test_without_an_address_it_says_how_it_is_called(self):
        code, lines, complaints = self.run_to_end()
        self.assertEqual((code, lines), (2, []))
        self.assertIn("usage: ", complaints)


class EpollTests(EventLoopTests, unittest.TestCase):
    command = [f"{ROOT}/build/examples/epoll"]


class GLibTests(EventLoopTests, unittest.TestCase):
    command = [f"{ROOT}/build/examples/glib"]


class LibuvTests(EventLoopTests, unittest.TestCase):
    command = [f"{ROOT}/build/examples/libuv"]


class AsyncioTests(EventLoopTests, unittest.TestCase):
    command = [sys.executable, "-W", "error", f"{ROOT}/examples/event-loops/asyncio_loop.py"]


if __name__ == "__main__":
    unittest.main()
