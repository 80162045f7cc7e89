import gc
import sys
import threading
import unittest
import weakref
from unittest import mock

import imgdl
from imgdl import Code
from support import PATIENCE, OriginTests, Signal


class ObservingTests(OriginTests):
    def test_observer(self):
        seen, threads = [], set()

        def observe(observation):
            seen.append(observation)
            threads.add(threading.get_ident())

        with self.downloader() as downloader:
            downloader.set_observer(observe)
            downloader.download(self.origin.picture("palette.png", n="secret")).result(PATIENCE)
            token = downloader.download(self.origin.url("/nothing"))
            self.assertCode(Code.INVALID_STATUS, token.result, PATIENCE)
            downloader.set_observer(None)
            downloader.download(self.origin.picture("opaque.png")).result(PATIENCE)
        first = [each for each in seen if each.transfer == seen[0].transfer]
        self.assertEqual([each.kind for each in first], ["started", "response", "stopped", "finished"])
        self.assertNotIn("secret", repr(seen))
        self.assertEqual((first[1].http_status, first[0].subscriber_count), (200, 1))
        self.assertIsNone(first[0].metrics)
        self.assertEqual(first[2].metrics.body_bytes, len(self.origin.bytes("palette.png")))
        others = [each for each in seen if each.transfer != seen[0].transfer]
        self.assertEqual([each.kind for each in others][-1], "stopped")
        self.assertEqual(others[-1].code, Code.INVALID_STATUS)
        self.assertEqual(len(threads), 1)
        self.assertNotIn(threading.get_ident(), threads)

    def test_what_an_observer_raises(self):
        seen = []
        with self.downloader() as downloader, mock.patch.object(sys, "unraisablehook", seen.append):
            downloader.set_observer(lambda observation: 1 / 0)
            self.assertEqual(downloader.download(self.origin.picture("palette.png")).result(PATIENCE).width, 1200)
        self.assertEqual({each.exc_type for each in seen}, {ZeroDivisionError})
        seen.clear()
        with self.downloader() as downloader, self.assertRaises(TypeError):
            downloader.set_observer(7)

    def test_an_observer_lives_as_long_as_it_is_told(self):
        class Observer:
            def __call__(self, observation):
                pass

        observers = [Observer() for _ in range(3)]
        references = [weakref.ref(each) for each in observers]
        ended = [Signal() for _ in observers]
        for observer, signal in zip(observers, ended):
            weakref.finalize(observer, signal)
        del observer
        downloader = self.downloader()
        downloader.set_observer(observers.pop(0))
        self.assertIsNotNone(references[0]())
        downloader.set_observer(observers.pop(0))
        ended[0].wait()
        downloader.close()
        ended[1].wait()
        self.assertCode(Code.SHUT_DOWN, downloader.set_observer, observers.pop())
        gc.collect()
        self.assertEqual([reference() for reference in references], [None] * 3)

    def test_stats(self):
        with self.downloader() as downloader:
            empty = downloader.stats()
            self.assertEqual((empty.submitted, empty.total.count, empty.total.quantile(0.5)), (0, 0, 0.0))
            gate = self.origin.gate()
            url = self.origin.picture("palette.png", hold_head=1, gate=gate.name)
            tokens = [downloader.download(url) for _ in range(3)]
            self.assertTrue(gate.is_reached())
            tokens.append(downloader.download(self.origin.url("/nothing")))
            self.assertCode(Code.INVALID_STATUS, tokens.pop().result, PATIENCE)
            self.assertEqual(downloader.stats().running, 1)
            tokens[0].cancel()
            gate.open()
            for token in tokens[1:]:
                token.result(PATIENCE)
            downloader.wait_idle(PATIENCE)
            stats = downloader.stats()
        self.assertEqual((stats.submitted, stats.succeeded, stats.failed, stats.cancelled), (4, 2, 1, 1))
        self.assertEqual((stats.shared, stats.transfers, stats.running), (2, 2, 0))
        self.assertGreaterEqual(stats.pixels, 1200 * 800)
        self.assertGreater(stats.bytes_received, len(self.origin.bytes("palette.png")))
        self.assertEqual(stats.transfer.count, sum(stats.transfer.buckets))
        self.assertGreater(stats.transfer.sum, 0)
        self.assertLessEqual(stats.transfer.quantile(0.5), stats.transfer.quantile(1))
        for q in (-0.1, 1.1, float("nan")):
            self.assertIn("q is", str(self.assertCode(Code.INVALID_ARGUMENT, stats.transfer.quantile, q)))

    def test_quantiles(self):
        # Bucket 3 holds times from 4 to 8 microseconds.
        histogram = imgdl.Histogram(4, 20e-6, (0, 0, 0, 4) + (0,) * 36)
        self.assertAlmostEqual(histogram.quantile(0.5), 6e-6)
        self.assertAlmostEqual(histogram.quantile(1), 8e-6)


if __name__ == "__main__":
    unittest.main()
