"""The player sees each promise that is broken, says which, and ends; and nothing where none is."""
import os
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLAYER = os.path.join(ROOT, "build/tests/imgdl-player")

# What happens, and what is said of it.
SEEN = {
    "second end": "an event (32) after the end",
    "event after the end": "an event (2) after the end",
    "late callback": "an observer is called after its destructor",
    "masked event": "an event (16) that the mask 34 does not have",
    "empty success": "a success without anything",
    "overlap": "functions of a request overlap",
    "destructor in a callback": "the destructor of a request runs while one of its functions does",
    "second destructor": "a second destructor of a request",
    "lost request": "1 of 1 have no end",
    "request without an end": "a request has no end",
    "lost table": "1 of 2 have no end",
    "end of a refused request": "a request has more than one end, or one that was not owed",
    "end of a silent request": "a request has more than one end, or one that was not owed",
    "released executor": "a callback begins after the last release of its executor has returned",
    "late create": "a coder table is called after its destructor",
    "late feed": "a coder table is called after its destructor",
    "late info": "a coder table is called after its destructor",
    "late partial": "a coder table is called after its destructor",
    "late finish": "a coder table is called after its destructor",
    "late destroy": "a coder table is called after its destructor",
    "memory": "a round leaves 25000 KiB allocated, where the first 5 left 4000",
    "shut down cache": "imgdl_cache_query gave SHUT_DOWN, and nobody has called exit()",
    "shut down wait": "imgdl_downloader_wait_idle gave SHUT_DOWN, and nobody has called exit()",
    "deadlock": "imgdl_download gave WOULD_DEADLOCK in your thread",
    "forked": "imgdl_token_cancel gave FORKED in the process that made the handle",
    "internal": "imgdl_decode gave 2109 (IMGDL_ERROR_INTERNAL)",
    "wait": "imgdl_token_wait has waited in observer, where it is \"WOULD_DEADLOCK\"",
    "child": "imgdl_downloader_cancel_all gave 0 (IMGDL_OK) after fork, where it is \"FORKED\"",
    "hanging child": "a child (fork) ended with 4 after",
    "child after exit": "imgdl_cache_open gave 0 (IMGDL_OK) after exit began, where it is \"SHUT_DOWN\"",
}


class SightTests(unittest.TestCase):
    def see(self, what):
        return subprocess.run([PLAYER, "--see", what], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=120)

    def test_what_is_broken(self):
        for what, said in SEEN.items():
            with self.subTest(what):
                play = self.see(what)
                self.assertEqual(play.returncode, 1, play.stdout)
                self.assertIn(f"VIOLATION (seed 0): {said}", play.stdout)

    def test_a_child_that_hangs_says_where(self):
        play = self.see("hanging child")
        self.assertIn("child: has not ended in time, at imgdl_cache_flush (seed 0)", play.stdout)
        self.assertIn("see_hanging_child", play.stdout)

    def test_what_is_as_promised(self):
        play = self.see("nothing")
        self.assertEqual((play.returncode, play.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
