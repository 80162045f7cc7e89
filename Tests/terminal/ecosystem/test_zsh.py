"""The completion of zsh, in a zsh on a terminal: what it makes of a key that is pressed."""
import os
import pathlib
import pty
import select
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PATIENCE = 30  # seconds; a bound on failure


class ZshTests(unittest.TestCase):
    def setUp(self):
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.environ.update(TERM="dumb", PS1="ready> ")
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.addCleanup(os.waitpid, self.child, 0)
        self.addCleanup(os.close, self.terminal)
        self.type(f"fpath=({ROOT}/packaging/completions $fpath); autoload -Uz compinit; compinit -D -u; echo set-$((1+1))\n")
        self.await_text("set-2")

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def await_text(self, text):
        seen = b""
        while text.encode() not in seen:
            ready, _, _ = select.select([self.terminal], [], [], PATIENCE)
            self.assertTrue(ready, f"no {text!r} in {seen!r}")
            seen += os.read(self.terminal, 4096)
        return seen

    def complete(self, typed, *expected):
        """Types that, presses Tab and Enter; imgdl prints what it is given."""
        self.type(f"imgdl() {{ printf '<%s>\\n' \"$@\"; }}\nimgdl {typed}\t\n")
        for word in expected:
            self.await_text(f"<{word}>")

    def test_an_option_is_completed(self):
        self.complete("--jso", "--json")

    def test_the_value_of_an_option_is_completed(self):
        self.complete("--show=kit", "--show=kitty")

    def test_a_file_is_completed(self):
        self.complete(f"--input={ROOT}/READ", f"--input={ROOT}/README.md")


if __name__ == "__main__":
    unittest.main()
