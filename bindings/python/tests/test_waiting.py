import base64
import contextlib
import os
import sys
import threading
import unittest
import unittest.mock

import imgdl
from imgdl._waiting import Flag, Waiters, surely
from strikes import ends, struck
from support import PATIENCE, Strangers, png

DATA = png(2, 2, [[1, 2, 3, 255, 4, 5, 6, 255], [7, 8, 9, 255, 10, 11, 12, 255]])
URL = "data:image/png;base64," + base64.b64encode(DATA).decode()


def is_meant(code):
    """Of the package, and what it does with threads. What reads options and addresses holds nothing."""
    folder, name = os.path.split(code.co_filename)
    if os.path.basename(folder) == "imgdl":
        return name != "_options.py"
    return None if name == "threading.py" or folder == os.path.dirname(__file__) else False


class Loader:
    def __init__(self):
        self.transfers = []
        self.has_begun = threading.Event()

    def start(self, request, transfer):
        transfer.response(200)
        self.transfers.append(transfer)
        self.has_begun.set()


class WaitingTests(unittest.TestCase):
    """An interrupt at each place in turn. Wherever it strikes it is raised, and the downloader can be closed."""

    def strike_everywhere(self, prepare, **config):
        """`prepare(downloader)` gives the action."""
        # What the package keeps from its first time on makes the way shorter: places would be passed over.
        with imgdl.Downloader(allow_data_urls=True, **config) as downloader, contextlib.suppress(imgdl.Error):
            prepare(downloader)()
        number, before = 0, Strangers()
        self.addCleanup(before.close)
        while True:
            downloader = imgdl.Downloader(allow_data_urls=True, **config)
            action = prepare(downloader)
            has_struck, problem = struck(action, number, is_meant)
            later = Strangers()
            self.addCleanup(later.close)
            closed = ends(downloader.close)
            self.assertTrue(closed, f"close hangs after an interrupt at place {number}")
            lost = before.lost() + later.lost()
            self.assertEqual(lost, [], f"files of the program are closed after an interrupt at place {number}")
            later.close()
            if not has_struck:
                if problem is not None and not isinstance(problem, imgdl.Error):
                    raise problem
                break
            self.assertIsInstance(problem, KeyboardInterrupt, f"at place {number}")
            del problem
            number += 1
        self.assertGreater(number, 3)
        self.assertEqual(imgdl.token._outstanding, {})

    def later(self, function):
        def call():
            with contextlib.suppress(imgdl.Error):  # it is closed already
                function()

        timer = threading.Timer(0.002, call)
        timer.daemon = True
        timer.start()

    def resumed(self, downloader):
        """It goes on when the wait has begun, or a moment earlier."""
        self.later(lambda: setattr(downloader, "suspended", False))

    def test_download(self):
        self.strike_everywhere(lambda downloader: lambda: downloader.download(URL))

    def test_a_download_that_is_refused(self):
        self.strike_everywhere(lambda downloader: lambda: downloader.download("nonsense:"))

    def test_prefetch(self):
        self.strike_everywhere(lambda downloader: lambda: downloader.prefetch([URL, URL], on_done=id))

    def test_result(self):
        def prepare(downloader):
            downloader.suspended = True
            token = downloader.download(URL)

            def act():
                self.resumed(downloader)
                token.result(PATIENCE)

            return act

        self.strike_everywhere(prepare)

    def test_wait(self):
        def prepare(downloader):
            batch = downloader.prefetch([URL])
            return lambda: batch.wait(PATIENCE)

        self.strike_everywhere(prepare)

    def test_wait_idle(self):
        def prepare(downloader):
            downloader.suspended = True
            downloader.download(URL)

            def act():
                self.resumed(downloader)
                downloader.wait_idle(PATIENCE)

            return act

        self.strike_everywhere(prepare)

    def test_map(self):
        for ordered in (True, False):
            with self.subTest(ordered=ordered):
                self.strike_everywhere(lambda downloader: lambda: list(downloader.map([URL], ordered=ordered)))

    def test_what_the_shared_downloader_calls(self):
        """It outlives who asked: a loader or an observer goes with the object, wherever an interrupt strikes."""

        def prepares(downloader):
            yield lambda: downloader.register_transport("struck", Loader())
            yield lambda: downloader.set_observer(lambda observation: None)

        for number_of_action in range(2):
            number, has_struck = 0, True
            while has_struck:
                downloader = imgdl.Downloader.shared()
                action = list(prepares(downloader))[number_of_action]
                has_struck, problem = struck(action, number, is_meant)
                self.assertIs(type(problem), KeyboardInterrupt if has_struck else type(None))
                del problem
                self.assertTrue(ends(downloader.close))
                for registry in (imgdl.transport._loaders, imgdl._observing.observers):
                    registry.wait(lambda kept: not kept, PATIENCE)
                    self.assertEqual(registry.values(), [], f"after an interrupt at place {number}")
                number += 1
            self.assertGreater(number, 3)

    def test_a_scheme_of_the_shared_downloader_that_was_given_back(self):
        """Another part of the program has it from then on."""
        downloader = imgdl.Downloader.shared()
        downloader.register_transport("given", Loader())
        downloader.register_transport("given", None)
        other, handle = Loader(), downloader._state.handle
        imgdl._native.imgdl_downloader_retain(handle)
        try:
            imgdl.transport.register(handle, b"given", other)
            downloader.close()
            self.assertEqual(imgdl.transport._loaders.values(), [other])
        finally:
            imgdl.transport.register(handle, b"given", None)
            imgdl._native.imgdl_downloader_release(handle)
        imgdl.transport._loaders.wait(lambda kept: not kept, PATIENCE)
        self.assertEqual(imgdl.transport._loaders.values(), [])

    def test_close(self):
        def prepare(downloader):
            downloader.suspended = True
            downloader.download(URL)
            return downloader.close

        self.strike_everywhere(prepare)

    def test_close_without_downloads(self):
        self.strike_everywhere(lambda downloader: downloader.close)

    def test_body(self):
        def prepare(downloader):
            loader = Loader()
            downloader.register_transport("app", loader)
            downloader.download("app:x", body=True)
            self.assertTrue(loader.has_begun.wait(PATIENCE))
            (transfer,) = loader.transfers
            downloader.enter_background()

            def act():
                while transfer.try_body(bytes(1 << 18)):
                    pass
                self.later(downloader.enter_foreground)
                transfer.body(bytes(1 << 18))

            return act

        self.strike_everywhere(prepare)


class FlagTests(unittest.TestCase):
    def test_waiting(self):
        flag = Flag()
        self.assertFalse(flag.wait(0))
        self.assertFalse(flag.wait(0.001))
        self.assertFalse(flag.is_set())
        threading.Timer(0.001, flag.set).start()
        for timeout in (None, float("inf"), sys.float_info.max, PATIENCE):
            self.assertTrue(flag.wait(timeout))
        flag.clear()
        self.assertFalse(flag.wait(-1))

    def test_many_wait(self):
        flag = Flag()
        threads = [threading.Thread(target=flag.wait, daemon=True) for _ in range(8)]
        for thread in threads:
            thread.start()
        flag.set()
        for thread in threads:
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())

    def test_no_thread_for_several_who_begin(self):
        """Each hears of it, none waits for ever; and once there are threads again it works."""
        start = threading.Thread.start

        def refuse(thread):
            if thread.name == "imgdl":
                raise RuntimeError("can't start new thread")
            start(thread)

        for _ in range(20):
            with imgdl.Downloader(allow_data_urls=True) as downloader:
                problems = []

                def download():
                    try:
                        downloader.download(URL)
                    except RuntimeError as problem:
                        problems.append(str(problem))

                with unittest.mock.patch.object(threading.Thread, "start", refuse):
                    threads = [threading.Thread(target=download, daemon=True) for _ in range(4)]
                    for thread in threads:
                        thread.start()
                    for thread in threads:
                        thread.join(PATIENCE)
                        self.assertFalse(thread.is_alive())
                self.assertEqual(problems, ["can't start new thread"] * 4)
                self.assertEqual(downloader.download(URL).result().width, 2)

    def test_who_is_interrupted_takes_nothing_from_others(self):
        """At each place of a wait, and of what ends it."""
        for act in (lambda flag: flag.wait(0.001), lambda flag: flag.set()):
            number, has_struck = 0, True
            while has_struck:
                flag = Flag()
                other = threading.Thread(target=flag.wait, daemon=True)
                other.start()
                has_struck, _ = struck(lambda: act(flag), number, is_meant)
                flag.set()
                other.join(PATIENCE)
                self.assertFalse(other.is_alive(), number)
                self.assertTrue(flag.wait(0))
                number += 1
            self.assertGreater(number, 3)

    def test_what_must_be_done_is(self):
        done = []

        def settle():
            done.append(len(done))
            if len(done) < 3:
                raise KeyboardInterrupt(len(done))

        with self.assertRaises(KeyboardInterrupt) as caught:
            surely(settle)
        self.assertEqual((done, caught.exception.args), ([0, 1, 2], (2,)))

    def test_what_must_be_done_is_done_wherever_an_interrupt_strikes(self):
        """Also the second one, where another has struck before."""
        for failures in (0, 1):
            number, has_struck = 0, True
            while has_struck:
                done = []

                def settle():
                    done.append(len(done))
                    if len(done) <= failures:
                        raise KeyboardInterrupt

                has_struck, problem = struck(lambda: surely(settle), number, lambda code: code is surely.__code__)
                self.assertGreater(len(done), failures, f"an interrupt at place {number}")
                if has_struck:
                    self.assertIsInstance(problem, KeyboardInterrupt)
                del problem
                number += 1
            self.assertGreater(number, 1)

    def test_what_never_holds_is_not_waited_for_any_longer(self):
        self.assertFalse(Waiters().wait_for(lambda: False, 0.001))


if __name__ == "__main__":
    unittest.main()
