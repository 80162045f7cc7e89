"""The player names a call that waits where the table of docs/threads.md says that it does not, and no other."""
import os
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLAYER = os.path.join(ROOT, "build/tests/imgdl-player")


class WaitTests(unittest.TestCase):
    def wait_in(self, place, function, milliseconds):
        return subprocess.run([PLAYER, "--wait-in", place, function, str(milliseconds)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120)

    def check_named(self, place, function, cell):
        play = self.wait_in(place, function, 100_000)
        self.assertEqual(play.returncode, 1, play.stdout)
        self.assertIn(f"VIOLATION (seed 0): {function} waits in {place}, where it is \"{cell}\"", play.stdout)

    def check_may(self, place, function):
        play = self.wait_in(place, function, 1000)
        self.assertEqual((play.returncode, play.stdout), (0, ""))

    def test_missing_would_deadlock(self):
        self.check_named("inline", "imgdl_token_wait", "WOULD_DEADLOCK")
        self.check_named("observer", "imgdl_downloader_wait_idle", "WOULD_DEADLOCK")
        self.check_named("dispatch", "imgdl_executor_dispatch", "WOULD_DEADLOCK ³")

    def test_longer_than_its_timeout(self):
        self.check_named("your thread", "imgdl_token_wait", "waits ¹")
        self.check_named("cache event", "imgdl_cache_flush", "WOULD_DEADLOCK ⁴")

    def test_wait_where_it_only_ends_the_downloader(self):
        self.check_named("hook", "imgdl_downloader_destroy", "yes")

    def test_what_may_wait(self):
        """So may the functions of the host, inside a call that itself must not."""
        self.check_may("your thread", "imgdl_downloader_destroy")
        self.check_may("hook", "imgdl_cache_flush")
        self.check_may("destructor", "imgdl_cache_open")


if __name__ == "__main__":
    unittest.main()
