"""Runs build/bin/imgdl, with pipes or on a terminal of its own, against the scripted origin. Nothing sleeps: tests wait
for what they need, with a deadline that only a failure reaches. IMGDL_PROGRAM names another build of it."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings/python/tests"))

from support import PATIENCE, Origin, OriginTests, pictures, png  # noqa: E402, F401

PROGRAM = os.environ.get("IMGDL_PROGRAM", str(ROOT / "build/bin/imgdl"))

# What a terminal or a proxy of whoever runs the tests would change.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("TERM", "COLORTERM", "TERM_PROGRAM", "KITTY_WINDOW_ID", "TMUX", "STY", "COLUMNS", "LINES")
}


class Terminal:
    """The program on a terminal of its own: what it writes, and answers to what it asks."""

    def __init__(self, *arguments, columns=40, rows=20, cwd=None, environment={}, pixels=(0, 0)):
        self.process, self.descriptor = pty.fork()
        if self.process == 0:
            os.chdir(cwd or "/")
            given = dict(ENVIRONMENT, **{"TERM": "xterm", **environment})
            # None is a variable that is not there.
            given = {name: value for name, value in given.items() if value is not None}
            os.execve(PROGRAM, [PROGRAM, *arguments], given)
        self.resize(columns, rows, *pixels)
        self.written = b""
        self.settings = termios.tcgetattr(self.descriptor)

    def resize(self, columns, rows, width=0, height=0):
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, width, height))

    def read_until(self, what, start=0):
        """Reads until `what`, bytes or a pattern of them, has been written after `start`, or to the end with None;
        gives everything."""
        pattern = what if what is None or isinstance(what, re.Pattern) else re.compile(re.escape(what))
        deadline = time.monotonic() + PATIENCE
        while pattern is None or not pattern.search(self.written, start):
            ready, _, _ = select.select([self.descriptor], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"{what!r} does not come; there is {self.written[-2000:]!r}")
            try:
                read = os.read(self.descriptor, 65536)
            except OSError:  # EIO: the program has ended
                read = b""
            if not read:
                if what is None:
                    return self.written
                raise AssertionError(f"{what!r} did not come before the end; there is {self.written[-2000:]!r}")
            self.written += read
        return self.written

    def answer(self, text):
        os.write(self.descriptor, text)

    def end(self):
        """Reads to the end, and gives the exit status."""
        self.read_until(None)
        status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        os.close(self.descriptor)
        self.process = None
        return status

    def stop(self):
        if self.process:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            os.close(self.descriptor)


class ProgramTests(OriginTests):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, *arguments, environment={}, **options):
        process = subprocess.Popen(
            [PROGRAM, *map(str, arguments)], cwd=self.folder, env=dict(ENVIRONMENT, **environment),
            **dict({"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}, **options))

        def end():
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    pipe.close()

        self.addCleanup(end)
        return process

    def run_program(self, *arguments, input=None, status=0, **options):
        """Gives what it wrote to standard output, as bytes, and to standard error, as text."""
        process = self.start(*arguments, **dict({"stdin": subprocess.PIPE} if input is not None else {}, **options))
        output, errors = process.communicate(input, timeout=PATIENCE)
        self.assertEqual(process.returncode, status, errors)
        return output, (errors or b"").decode("utf-8")

    def on_terminal(self, *arguments, **options):
        terminal = Terminal(*map(str, arguments), cwd=self.folder, **options)
        self.addCleanup(terminal.stop)
        return terminal

    def files(self, folder="."):
        return sorted(path.name for path in (self.folder / folder).iterdir())

    def read(self, name):
        return (self.folder / name).read_bytes()

    def json_lines(self, *arguments, **options):
        output, errors = self.run_program("--json", *arguments, **options)
        self.errors = errors
        return [json.loads(line) for line in output.decode("utf-8").splitlines()]
