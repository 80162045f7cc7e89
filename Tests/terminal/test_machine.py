"""What this machine refuses: descriptors, folders, a pipe's other side, a closed standard input."""
import contextlib
import json
import os
import pty
import resource
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import tty
import unittest
from pathlib import Path

from program import PATIENCE, PROGRAM, ProgramTests


class MachineTests(ProgramTests):
    def with_descriptors(self, count):
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))}

    def test_jobs_are_as_many_as_there_are_descriptors_for_and_nothing_is_thrown_away(self):
        gate = self.origin.gate()
        urls = [self.origin.picture("alpha.png", n=n, hold_head=1, gate=gate.name) for n in range(60)]
        process = self.start("-j", "60", "-o", "out", *urls, **self.with_descriptors(64))
        self.assertTrue(gate.is_reached(10))
        gate.open()
        _, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, errors)
        self.assertRegex(errors.decode(), r"imgdl: \d\d transfers at a time, not 60: .*ulimit -n")
        self.assertEqual(len(self.files("out")), 60)
        self.assertEqual(len(self.origin.requests("/pictures/alpha.png")), 60)
        self.assertLess(self.origin.log["max_in_flight"], 60)

    def test_a_run_without_a_descriptor_to_spare_says_so(self):
        url = self.origin.picture("alpha.png")
        seen = set()
        for count in range(8, 40):
            process = self.start("--json", "--retries=0", "-o", "out", url, **self.with_descriptors(count))
            output, errors = process.communicate(timeout=PATIENCE)
            lines = [json.loads(line) for line in output.splitlines()]
            seen.add((process.returncode, len(lines)))
            if process.returncode == 0:
                self.assertEqual([line["result"] for line in lines], ["done"], count)
            elif lines:
                self.assertEqual([line["error"] for line in lines], ["IMGDL_ERROR_OUT_OF_MEMORY"], count)
                self.assertIn("ulimit -n", lines[0]["message"])
            else:
                # It did not come to begin.
                self.assertIn("Too many open files", errors.decode(), count)
            self.assertIn(process.returncode, (0, 3), (count, errors))
        # With too few to begin, too few to connect, and enough.
        self.assertEqual(seen, {(3, 0), (3, 1), (0, 1)})

    def test_a_folder_below_dev_is_a_folder(self):
        if not os.access("/dev/shm", os.W_OK):
            self.skipTest("this machine cannot write to /dev/shm")
        folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, folder)
        self.run_program("-o", folder / "new", self.origin.picture("alpha.png"), self.origin.picture("baseline.jpg"))
        self.assertEqual(sorted(path.name for path in (folder / "new").iterdir()), ["alpha.png", "baseline.jpg"])
        (folder / "file").write_bytes(b"x" * 1_000_000)
        for _ in range(2):
            self.run_program("-o", folder / "file", self.origin.picture("alpha.png"))
            self.assertEqual((folder / "file").read_bytes(), self.origin.bytes("alpha.png"))

    def test_what_a_link_leads_to_below_proc_is_a_descriptor(self):
        (self.folder / "way").symlink_to("/dev/stdout")
        with open(self.folder / "file", "wb") as file:
            file.write(b"before")
            file.flush()
            for output in ("way", "/proc/self/fd/1", "/dev/fd/1"):
                self.run_program("-o", output, self.origin.picture("alpha.png"), stdout=file)
        self.assertEqual(self.read("file"), b"before" + 3 * self.origin.bytes("alpha.png"))

    def test_an_output_that_cannot_be_written_is_seen_before_the_first_download(self):
        url = self.origin.picture("alpha.png")
        (self.folder / "file").write_text("")
        for output in ("none/file", "file/", "file/x", "/proc/self/", "/proc/x/", "/sys/x"):
            with self.subTest(output=output):
                _, errors = self.run_program("-o", output, url, status=3)
                self.assertIn("imgdl: ", errors)
        self.assertEqual(self.origin.log["requests"], [])

    def test_a_folder_that_vanishes_ends_the_run(self):
        for journal in ([], ["--journal", "journal"]):
            # The second one's stays closed: however late the end of the first is seen, that one still runs.
            gate, closed = self.origin.gate(), self.origin.gate()
            before = len(self.origin.log["requests"])
            urls = [self.origin.picture("alpha.png", n=n, hold_head=1, gate=(closed if n == 1 else gate).name)
                    for n in range(20)]
            process = self.start("-j", "2", "--json", *journal, "-o", "out/", *urls)
            self.assertTrue(gate.is_reached() and closed.is_reached())
            shutil.rmtree(self.folder / "out")
            gate.open()
            output, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 3, errors)
            self.assertIn(b"No such file or directory", output)
            self.assertNotIn(b'"result":"done"', output)
            self.assertIn(b'"result":"cancelled"', output)
            self.assertLess(len(self.origin.log["requests"]), before + 20)

    def test_the_error_in_json_is_a_symbolic_name(self):
        lines = self.json_lines("-o", "/dev/full", self.origin.picture("alpha.png"), status=3)
        self.assertEqual([line["error"] for line in lines], ["IMGDL_ERROR_DISK_FULL"])
        (self.folder / "list").write_bytes(b"a\0b\n")
        lines = self.json_lines("-i", "list", status=1)
        self.assertEqual([line["error"] for line in lines], ["IMGDL_ERROR_INVALID_URL"])
        process = self.start(
            "--json", "-o", "out/", self.origin.picture("baseline.jpg"), self.origin.picture("alpha.png"),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000)))
        output, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 3, output)
        self.assertIn(b'"error":"IMGDL_ERROR_DISK_FAILED"', output)

    def test_signals_end_the_wait_for_the_other_side_of_a_pipe(self):
        os.mkfifo(self.folder / "pipe")
        url = self.origin.picture("alpha.png", hold_head=1, gate="never")
        for arguments in (["-i", "pipe"], ["-o", "pipe", url]):
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                with self.subTest(arguments=arguments[0], number=number):
                    process = self.start(*arguments)
                    self.await_handler(process, number)
                    process.send_signal(number)
                    process.communicate(timeout=PATIENCE)
                    self.assertEqual(process.returncode, 128 + number)

    def test_one_signal_ends_a_run_whose_reader_does_not_read(self):
        os.mkfifo(self.folder / "pipe")
        (self.folder / "list").write_text("nonsense:\n" * 5000)
        huge = self.origin.url("/huge", bytes=50_000_000)
        photo = self.origin.picture("baseline.jpg")
        cases = [(["-o", "-", huge], "stdout", signal.SIGTERM), (["-o", "/dev/stdout", huge], "stdout", signal.SIGINT),
                 (["--json", "-q", "-i", "list"], "stdout", signal.SIGHUP), (["-i", "list"], "stderr", signal.SIGINT),
                 (["--show=blocks"] + [photo] * 4, "stdout", signal.SIGTERM)]
        for arguments, stream, number in cases:
            with self.subTest(arguments=arguments[:2]):
                process = self.start(*arguments, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
                                                    stream: subprocess.PIPE})
                self.await_full(getattr(process, stream))
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=20), 128 + number)
        process = self.start("-o", "pipe", huge)
        with open(self.folder / "pipe", "rb") as pipe:
            self.await_full(pipe)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=20), 128 + signal.SIGTERM)
        # A caller that has sent the signal knows it: nothing is said to have failed.
        self.assertEqual(process.stderr.read(), b"1 address: 0 done (0 B), 1 cancelled\n")

    def test_one_signal_ends_a_run_whose_terminal_has_stopped(self):
        for how in ("kitty", "blocks"):
            with self.subTest(how):
                terminal = self.on_terminal(
                    f"--show={how}", *[self.origin.picture("baseline.jpg", n=n) for n in range(40)], columns=200, rows=60)
                terminal.read_until(b"\033[")
                other_end = os.open(f"/proc/{terminal.process}/fd/1", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
                self.addCleanup(os.close, other_end)
                # Another program that writes there takes the last room: the kernel tells nobody of one byte of it.
                deadline = time.monotonic() + PATIENCE
                while select.select([], [other_end], [], 0)[1]:
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.05)
                    with contextlib.suppress(BlockingIOError):
                        os.write(other_end, b" ")
                os.kill(terminal.process, signal.SIGTERM)
                deadline = time.monotonic() + 20
                ended = (0, 0)
                while ended[0] == 0 and time.monotonic() < deadline:
                    ended = os.waitpid(terminal.process, os.WNOHANG)
                self.assertEqual(os.waitstatus_to_exitcode(ended[1]) if ended[0] else None, 128 + signal.SIGTERM)
                terminal.process = None
                os.close(terminal.descriptor)

    def test_what_goes_to_the_master_of_a_terminal_is_read_at_the_terminal(self):
        # Opened anew it would be another terminal, which nobody reads.
        for stream, arguments in (("stdout", ["--json", "-q", "nonsense:"]), ("stderr", ["nonsense:"])):
            with self.subTest(stream):
                master, terminal = pty.openpty()
                self.addCleanup(os.close, master)
                self.addCleanup(os.close, terminal)
                tty.setraw(terminal)
                process = self.start(*arguments, environment={"TERM": "dumb"}, **{stream: master})
                self.assertEqual(process.wait(timeout=PATIENCE), 1)
                read = b""
                while b"nonsense:" not in read:
                    self.assertTrue(select.select([terminal], [], [], PATIENCE)[0], read)
                    read += os.read(terminal, 4096)

    def test_a_reader_that_reads_has_whole_lines_after_a_signal(self):
        gate = self.origin.gate()
        urls = [self.origin.picture("alpha.png", n=n, hold_head=1, gate=gate.name) for n in range(8)]
        process = self.start("--json", "-o", "out", *urls)
        self.assertTrue(gate.is_reached(8))
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual([json.loads(line)["result"] for line in output.splitlines()], ["cancelled"] * 8)

    def await_full(self, pipe):
        """Until its writer would wait."""
        other_end = os.open(f"/proc/self/fd/{pipe.fileno()}", os.O_WRONLY | os.O_NONBLOCK)
        deadline = time.monotonic() + PATIENCE
        try:
            while select.select([], [other_end], [], 0)[1]:
                self.assertLess(time.monotonic(), deadline)
        finally:
            os.close(other_end)

    def test_a_reader_of_what_does_not_wait_by_itself_is_waited_for(self):
        (self.folder / "list").write_text("nonsense:\n" * 3000)
        for arguments, stream, status, lines in (
                (["-o", "-", self.origin.url("/huge", bytes=3_000_000)], "stdout", 0, None),
                (["--json", "-q", "-i", "list"], "stdout", 1, 3000), (["-i", "list"], "stderr", 1, 3002)):
            for make in (os.pipe, self.socket_pair):
                with self.subTest(arguments=arguments[:2], make=make):
                    ours, other = make()
                    os.set_blocking(other, False)
                    process = self.start(*arguments, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
                                                        stream: other})
                    if make == os.pipe:
                        with open(os.dup(ours), "rb") as pipe:
                            self.await_full(pipe)
                    os.close(other)
                    with open(ours, "rb") as reader:
                        read = reader.read()
                    self.assertEqual(process.wait(timeout=PATIENCE), status)
                    self.assertEqual(len(read) if lines is None else read.count(b"\n"), lines or 3_000_000)

    @staticmethod
    def socket_pair():
        return tuple(end.detach() for end in socket.socketpair())

    def await_handler(self, process, number):
        """Until the program, and not the system, would take that signal."""
        while process.poll() is None:
            with open(f"/proc/{process.pid}/status") as file:
                caught = next(int(line.split()[1], 16) for line in file if line.startswith("SigCgt"))
            if caught >> (number - 1) & 1:
                return

    def test_a_list_in_a_pipe_with_a_name_is_read_when_somebody_writes(self):
        os.mkfifo(self.folder / "pipe")
        process = self.start("--json", "-i", "pipe", "-o", "out", self.origin.picture("baseline.jpg"))
        self.assertIn(b'"done"', process.stdout.readline())  # before there is a list
        with open(self.folder / "pipe", "w") as pipe:
            pipe.write(self.origin.picture("alpha.png") + "\n")
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.files("out"), ["alpha.png", "baseline.jpg"])

    def test_a_list_from_a_standard_input_that_is_closed_is_an_error(self):
        ended = subprocess.run(["sh", "-c", f"exec '{PROGRAM}' -i - <&-"], cwd=self.folder, stderr=subprocess.PIPE)
        self.assertEqual(ended.returncode, 3)
        self.assertIn(b"imgdl: standard input: Bad file descriptor", ended.stderr)

    def test_what_is_given_twice_is_refused(self):
        for option in ("-i", "-o", "--journal"):
            _, errors = self.run_program(option, "a", option, "b", "http://127.0.0.1:1/", status=2)
            self.assertIn(f"{option}: it is given twice", errors)


if __name__ == "__main__":
    unittest.main()
