"""The shared downloader: one for the process, whose objects come and go."""

import threading
import time
import unittest
import unittest.mock

import imgdl
from imgdl import Code
from strikes import ends
from support import PATIENCE, OriginTests, Signal, png

DATA = png(2, 2, [[1, 2, 3, 255, 4, 5, 6, 255], [7, 8, 9, 255, 10, 11, 12, 255]])


class Loader:
    def __init__(self):
        self.urls = []

    def start(self, request, transfer):
        self.urls.append(request.url)
        transfer.response(200)
        transfer.body(DATA)
        transfer.end()


class SharedTests(OriginTests):
    def setUp(self):
        super().setUp()
        self.addCleanup(lambda: imgdl.Downloader.shared().close())

    def closing(self, downloader):
        """Closes it on another thread, which waits there; gives what lets it come to its end."""
        entered, may_end = Signal(), threading.Event()

        def stay(token, response):
            entered()
            may_end.wait(PATIENCE)

        downloader.download("app:first", on_response=stay)
        entered.wait()
        thread = threading.Thread(target=downloader.close, daemon=True)
        thread.start()
        deadline = time.monotonic() + PATIENCE
        while "closed" not in repr(downloader):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)

        def end():
            may_end.set()
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())

        return end

    def test_asking_for_it_while_it_is_made(self):
        """As the handler of a signal does, or a finalizer, on the same thread: all have one object."""
        imgdl.Downloader.shared().close()
        make, inner, outer = imgdl._native.imgdl_downloader_shared, [], []

        def interrupted(reference):
            if not inner:
                inner.append(None)
                inner[0] = imgdl.Downloader.shared()
                inner[0].register_transport("app", Loader())
            return make(reference)

        with unittest.mock.patch.object(imgdl._native, "imgdl_downloader_shared", interrupted):
            self.assertTrue(ends(lambda: outer.append(imgdl.Downloader.shared())), "it waits for itself")
        self.assertEqual(outer, inner)
        self.assertIs(imgdl.Downloader.shared(), inner[0])
        self.assertEqual(inner[0].download("app:x").result(PATIENCE).width, 2)

    def test_asking_for_it_on_many_threads(self):
        for _ in range(20):
            imgdl.Downloader.shared().close()
            start, found = threading.Barrier(8), []

            def ask():
                start.wait(PATIENCE)
                found.append(imgdl.Downloader.shared())

            threads = [threading.Thread(target=ask, daemon=True) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
            self.assertEqual(found, [imgdl.Downloader.shared()] * 8)

    def test_what_the_next_object_has_registered_stays(self):
        """Where the one before it comes to its end only then; what that has registered goes."""
        first, second, only_first, seen = Loader(), Loader(), Loader(), []
        old = imgdl.Downloader.shared()
        old.register_transport("app", first)
        old.register_transport("old", only_first)
        old.set_observer(lambda observation: None)
        end = self.closing(old)
        new = imgdl.Downloader.shared()
        self.assertIsNot(new, old)
        new.register_transport("APP", second)
        new.set_observer(lambda observation: seen.append(observation.url))
        end()
        self.assertEqual(new.download("app:second").result(PATIENCE).width, 2)
        self.assertEqual((first.urls, second.urls), (["app:first"], ["app:second"]))
        self.assertIn("app:second", seen)
        self.assertCode(Code.UNSUPPORTED_SCHEME, new.download, "old:x")
        new.close()
        self.assertNothingIsRegistered()

    def test_what_is_refused_leaves_what_was_there(self):
        """The object that it is of takes that out."""
        first = Loader()
        old = imgdl.Downloader.shared()
        old.register_transport("app", first)
        end = self.closing(old)
        new = imgdl.Downloader.shared()
        for register in (lambda: new.register_transport("app", 7), lambda: new.set_observer(7)):
            self.assertRaises(TypeError, register)
        end()
        self.assertCode(Code.UNSUPPORTED_SCHEME, new.download, "app:x")
        self.assertNothingIsRegistered()

    def assertNothingIsRegistered(self):
        for registry in (imgdl.transport._loaders, imgdl._observing.observers):
            registry.wait(lambda kept: not kept, PATIENCE)
            self.assertEqual(registry.values(), [])


if __name__ == "__main__":
    unittest.main()
