"""The HTTP cache from Python: modes, outcomes, queries, statistics, events (features O2, O3, X15, B11)."""

import gc
import os
import subprocess
import sys
import tempfile
import time
import unittest
import weakref
from pathlib import Path
from unittest import mock

import imgdl
from imgdl import Code
from support import PATIENCE, BytesPath, OriginTests, Signal

FRESH = {"header": "Cache-Control:max-age=600"}


class CacheTests(OriginTests):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def cache(self, *arguments, **config):
        cache = imgdl.Cache(*arguments, **config)
        self.addCleanup(cache.close)
        return cache

    def caches(self):
        """One in memory, and one on disk, each with a downloader."""
        for directory in (None, Path(self.folder.name) / "cache"):
            cache = self.cache(directory)
            with self.subTest(directory=directory), self.downloader(cache=cache) as downloader:
                yield cache, downloader, self.origin.picture("palette.png", n=str(directory), etag="v1", **FRESH)
            cache.close()

    def outcome(self, downloader, url, **options):
        return downloader.download(url, body=True, **options).result(PATIENCE).response.cache_outcome

    def kept(self, cache, url):
        """What a cancelled download leaves comes after its end."""
        deadline = time.monotonic() + PATIENCE
        while cache.query(url) is None and time.monotonic() < deadline:
            os.sched_yield()
        return cache.query(url)

    def test_directories_are_named_by_paths_too(self):
        folder = os.path.join(self.folder.name, "folder")
        url = self.origin.picture("palette.png", etag="v1", **FRESH)
        for directory, outcome in ((BytesPath(folder), "network"), (Path(folder), "hit"), (folder, "hit")):
            cache = self.cache(directory)
            with self.subTest(directory), self.downloader(cache=cache) as downloader:
                self.assertEqual(self.outcome(downloader, url), outcome)
                cache.flush()
            cache.close()
        for wrong in (3, os.fsencode(folder)):
            with self.assertRaisesRegex(TypeError, f"^directory must be str, not {type(wrong).__name__}$"):
                imgdl.Cache(wrong)

    def test_messages_say_what_is_stored(self):
        with imgdl.Downloader() as downloader:
            with self.assertRaises(imgdl.Error) as caught:
                downloader.download("http://127.0.0.1:1/", cache="only").result(PATIENCE)
            self.assertEqual(caught.exception.code, Code.NOT_CACHED)
            self.assertIn("the downloader has no cache", caught.exception.message)
        for _, downloader, url in self.caches():
            size = len(downloader.download(url, body=True).result(PATIENCE).data)
            with self.assertRaises(imgdl.LimitError) as caught:
                downloader.download(url, cache="only", max_body_bytes=size - 1).result(PATIENCE)
            message = f"what is stored has {size} bytes, the limit is {size - 1} bytes"
            self.assertTrue(caught.exception.message.endswith(message), caught.exception.message)

    def test_modes_and_outcomes(self):
        for cache, downloader, url in self.caches():
            self.assertCode(Code.NOT_CACHED, downloader.download(url, cache="only").result, PATIENCE)
            self.assertEqual(self.outcome(downloader, url, cache="off"), "network")
            self.assertIsNone(cache.query(url))
            self.assertEqual(self.outcome(downloader, url), "network")
            self.assertEqual(self.outcome(downloader, url), "hit")
            self.assertEqual(self.outcome(downloader, url, cache="use"), "hit")
            self.assertEqual(self.outcome(downloader, url, cache="only"), "hit")
            self.assertEqual(self.outcome(downloader, url, cache="refresh"), "validated")
            self.assertEqual(self.outcome(downloader, url, cache="reload"), "network")
            self.assertEqual(downloader.download(url, cache="only").result(PATIENCE).width, 1200)
            self.assertCode(Code.NOT_MODIFIED, downloader.download(url, ignore_cached=True).result, PATIENCE)
            token = downloader.download(url, cache="reload", ignore_cached=True)
            self.assertCode(Code.NOT_MODIFIED, token.result, PATIENCE)

    def test_the_mode_of_the_downloader(self):
        cache = self.cache()
        url = self.origin.picture("palette.png", **FRESH)
        for mode, expected in (("off", "network"), (None, "network"), ("only", "hit")):
            with self.downloader(cache=cache, cache_mode=mode) as downloader:
                self.assertEqual(self.outcome(downloader, url), expected)
        with self.downloader() as downloader:
            self.assertCode(Code.NOT_CACHED, downloader.download(url, cache="only").result, PATIENCE)
            self.assertEqual(self.outcome(downloader, url, cache="use"), "network")
            downloader.reconfigure(cache=cache, finish_nearly_done=True)
            self.assertEqual(self.outcome(downloader, url), "hit")

    def test_how_stale(self):
        url = self.origin.picture("palette.png", header="Age:3660") + "&header=Cache-Control:max-age=60"
        cache = self.cache()
        hour = 3600
        for own, expected in ((None, True), (imgdl.NO_LIMIT, True), (0, False), (0.0001, False), (hour - 1, False), (2 * hour, True)):
            with self.subTest(max_stale=own), self.downloader(cache=cache, max_stale=own) as downloader:
                if cache.query(url) is None:
                    self.assertEqual(self.outcome(downloader, url), "network")
                if expected:
                    self.assertEqual(self.outcome(downloader, url, cache="only"), "stale")
                else:
                    token = downloader.download(url, cache="only", body=True)
                    self.assertCode(Code.NOT_CACHED, token.result, PATIENCE)
                self.assertEqual(self.outcome(downloader, url, cache="only", max_stale=imgdl.NO_LIMIT), "stale")
                token = downloader.download(url, cache="only", body=True, max_stale=0)
                self.assertCode(Code.NOT_CACHED, token.result, PATIENCE)

    def test_query_and_removal(self):
        for cache, downloader, url in self.caches():
            size = len(self.origin.bytes("palette.png"))
            for remove in (cache.remove, lambda url: cache.clear()):
                self.outcome(downloader, url)
                entry = cache.query(url + "#fragment")
                self.assertEqual((entry.status, entry.body_bytes, entry.is_complete), (200, size, True))
                self.assertGreater(entry.fresh, 500)
                self.assertGreaterEqual(entry.used, entry.stored)
                cache.remove_older(3600)
                self.assertIsNotNone(cache.query(url))
                remove(url)
                self.assertIsNone(cache.query(url))
            cache.remove_older(0)
            with self.assertRaisesRegex(imgdl.Error, r"age is -1: not between 0 and 2\*\*63 - 1"):
                cache.remove_older(-1)
            for age in ("x", None, 1.5):
                with self.assertRaisesRegex(TypeError, f"age must be an integer, not {type(age).__name__}"):
                    cache.remove_older(age)
            cache.flush()

    def test_statistics(self):
        for cache, downloader, url in self.caches():
            for _ in range(3):
                self.outcome(downloader, url)
            cache.flush()
            seen = cache.statistics()
            self.assertEqual((seen.misses, seen.hits + seen.memory_hits, seen.stored), (1, 2, 1))
            self.assertEqual(seen.entries + seen.memory_entries, 1)
            self.assertIs(type(seen.is_writable), bool)

    def test_a_cancelled_download_is_continued(self):
        for cache, downloader, url in self.caches():
            gate, came = self.origin.gate(), Signal()
            url = self.origin.picture("baseline.jpg", etag="v1", hold_after=3000, gate=gate.name, **FRESH)

            def progress(token, received, expected):
                if received >= 3000:
                    came()

            token = downloader.download(url, on_progress=progress)
            came.wait()
            token.cancel()
            self.assertCode(Code.CANCELLED, token.result, PATIENCE)
            self.assertFalse(self.kept(cache, url).is_complete)
            gate.open()
            body = downloader.download(url, body=True).result(PATIENCE)
            self.assertEqual(body.response.cache_outcome, "resumed")
            self.assertEqual(body.data, self.origin.bytes("baseline.jpg"))
            self.assertEqual(cache.statistics().resumed, 1)

    def test_another_process(self):
        url = self.origin.picture("palette.png", **FRESH)
        program = (
            "import imgdl, sys\n"
            "downloader = imgdl.Downloader(cache=imgdl.Cache(sys.argv[1]))\n"
            "print(downloader.download(sys.argv[2]).result().width)\n"
        )
        run = [sys.executable, "-c", program, self.folder.name, url]
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
        # It lets go of nothing: the end of the process does.
        self.assertEqual(subprocess.run(run, env=environment, stdout=subprocess.PIPE, check=True).stdout, b"1200\n")
        with self.downloader(cache=self.cache(self.folder.name)) as downloader:
            self.assertEqual(self.outcome(downloader, url), "hit")

    def test_events(self):
        path = Path(self.folder.name) / "file"
        path.write_bytes(b"")
        told = Signal()
        cache = self.cache(path, on_event=told)
        (event,) = told.wait()
        self.assertEqual(event.kind, "unwritable")
        self.assertIn(str(path), event.message)
        with self.downloader(cache=cache) as downloader:
            self.assertEqual(downloader.download(self.origin.picture("palette.png")).result(PATIENCE).width, 1200)
        self.assertFalse(cache.statistics().is_writable)

    def test_what_an_event_raises(self):
        path = Path(self.folder.name) / "file"
        path.write_bytes(b"")
        seen = Signal()
        with mock.patch.object(sys, "unraisablehook", seen):
            cache = self.cache(path, on_event=lambda event: 1 / 0)
            self.assertIs(seen.wait()[0].exc_type, ZeroDivisionError)
            cache.close()

    def test_a_listener_lives_as_long_as_the_cache(self):
        class Listener:
            def __call__(self, event):
                pass

        listener = Listener()
        ended = Signal()
        weakref.finalize(listener, ended)
        reference = weakref.ref(listener)
        cache = self.cache(on_event=listener)
        downloader = self.downloader(cache=cache)
        del listener
        cache.close()
        gc.collect()
        self.assertIsNotNone(reference())
        downloader.close()
        ended.wait()

    def test_the_end(self):
        with self.cache() as cache:
            self.assertIn("open", repr(cache))
        self.assertIn("closed", repr(cache))
        cache.close()
        for function in (cache.clear, cache.flush, cache.statistics):
            self.assertCode(Code.SHUT_DOWN, function)
        self.assertCode(Code.SHUT_DOWN, cache.query, "http://host/")
        self.assertCode(Code.SHUT_DOWN, self.downloader, cache=cache)

    def test_wrong_arguments(self):
        cache = self.cache()
        self.assertCode(Code.INVALID_URL, cache.query, "no URL")
        self.assertCode(Code.INVALID_URL, cache.remove, "")
        self.assertCode(Code.UNSUPPORTED_SCHEME, cache.query, "file:///etc/passwd")
        self.assertCode(Code.INVALID_ARGUMENT, cache.remove_older, -1)
        self.assertCode(Code.INVALID_ARGUMENT, imgdl.Cache, "")
        self.assertCode(Code.INVALID_ARGUMENT, imgdl.Cache, "a\0b")
        for name in ("max_bytes", "max_memory_bytes", "max_image_bytes", "max_partial_bytes", "max_age"):
            for value in (0, -1, 1 << 63, imgdl.NO_LIMIT):
                self.assertCode(Code.INVALID_ARGUMENT, imgdl.Cache, **{name: value})
        with self.assertRaises(TypeError):
            imgdl.Cache(on_event=7)
        with self.assertRaises(TypeError):
            self.downloader(cache=7)
        self.assertCode(Code.INVALID_ARGUMENT, self.downloader, cache_mode="sometimes")
        with self.downloader() as downloader:
            self.assertCode(Code.INVALID_ARGUMENT, downloader.download, "http://host/", cache="sometimes")
            for limit in (-1, float("nan"), float("inf"), 1 << 32):
                self.assertCode(Code.INVALID_ARGUMENT, downloader.download, "http://host/", max_stale=limit)


if __name__ == "__main__":
    unittest.main()
