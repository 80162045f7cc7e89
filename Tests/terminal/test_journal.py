import json
import resource
import shutil
import signal
import struct
import subprocess
import time
import unittest

from program import PATIENCE, ROOT, ProgramTests, pictures


def png_width(data):
    return struct.unpack(">I", data[16:20])[0]


class JournalTests(ProgramTests):
    def urls(self, count, **faults):
        return [self.origin.picture("alpha.png", n=number, **faults) for number in range(count)]

    def write_list(self, urls):
        (self.folder / "list").write_text("\n".join(urls))

    def entries(self):
        return [line.split()[0] for line in self.read("journal").decode().splitlines()[1:]]

    def run_list(self, **options):
        return self.run_program("--journal", "journal", "-i", "list", "-o", "out", **options)

    def test_a_second_run_does_nothing_again(self):
        self.write_list(self.urls(5))
        self.run_list()
        _, errors = self.run_list()
        self.assertIn("5 addresses: 0 done (0 B), 5 done before", errors)
        self.assertEqual(len(self.origin.requests("/pictures/alpha.png")), 5)
        self.assertEqual(len(self.files("out")), 5)

    def test_one_address_that_is_done_before_is_said_to_be_so(self):
        (url,) = self.urls(1)
        for output, path in (("out/", "out/alpha.png"), (None, "alpha.png"), ("a.png", "a.png")):
            run = ("--journal", "journal", *(("-o", output) if output else ()), url)
            self.run_program(*run)
            self.assertEqual(self.run_program(*run), (b"", f"{path}  done before\n"))
            self.assertEqual(self.run_program("-q", *run), (b"", ""))
            (line,) = self.json_lines(*run)
            self.assertEqual((line["result"], line["path"]), ("skipped", path))
            self.assertNotIn("bytes", line)
            self.assertTrue((self.folder / line["path"]).is_file())

    def test_an_address_that_stands_twice_has_the_path_of_its_file_twice(self):
        self.write_list(self.urls(1) * 2)
        lines = self.json_lines("--journal", "journal", "-i", "list", "-o", "out")
        self.assertEqual(sorted((line["result"], line["path"]) for line in lines),
                         [("done", "out/alpha.png"), ("skipped", "out/alpha.png")])

    def test_what_failed_is_tried_again_and_what_is_new_is_added(self):
        good, flaky = self.urls(1)[0], self.origin.url("/flaky", id="j", fail=1, picture="alpha.png")
        self.write_list([good, flaky])
        _, errors = self.run_program("--retries=0", "--journal", "journal", "-i", "list", "-o", "out", status=5)
        self.assertIn("1 done", errors)
        self.assertEqual(sorted(self.entries()), ["done", "fail", "save"])
        self.write_list([self.urls(2)[1], flaky, good])
        _, errors = self.run_list()
        self.assertIn("3 addresses: 2 done", errors)
        self.assertIn("1 done before", errors)

    def test_a_run_that_was_killed_is_continued_and_fetches_each_file_once(self):
        gate = self.origin.gate()
        urls = self.urls(6) + self.urls(10, hold_after=100, gate=gate.name)[6:]
        self.write_list(urls)
        process = self.start("--json", "-j", "4", "--journal", "journal", "-i", "list", "-o", "out")
        for _ in range(6):
            process.stdout.readline()
        self.assertTrue(gate.is_reached(4))
        process.kill()
        process.communicate()
        self.assertEqual(len(self.files("out")), 6)  # and no half ones
        gate.open()
        _, errors = self.run_list()
        self.assertIn("10 addresses: 4 done", errors)
        self.assertIn("6 done before", errors)
        self.assertEqual(len(self.files("out")), 10)
        for name in self.files("out"):
            self.assertEqual(self.read("out/" + name), self.origin.bytes("alpha.png"))

    def test_nothing_is_done_that_is_not_on_the_disk(self):
        """Whichever sync fails: that of the file, of the journal's line or of the folder."""
        (url,) = self.urls(1)
        for output, file in (("out/", "out/alpha.png"), ("file/file.png", "file/file.png")):
            (self.folder / file).parent.mkdir()
            for number in range(1, 4):
                with self.subTest(output=output, number=number):
                    disk = {"LD_PRELOAD": str(ROOT / "build/tests/slow-sync.so"), "FAILING_SYNC": str(number)}
                    run = ("--journal", "journal", "-o", output, url)
                    (line,) = self.json_lines(*run, status=3, environment=disk)
                    self.assertEqual((line["result"], line["error"]), ("failed", "IMGDL_ERROR_DISK_FAILED"))
                    self.assertIn("Input/output error", line["message"])
                    # What is written without a line that says which file it is has no name.
                    self.assertEqual(self.entries(), [] if number == 1 else ["save"])
                    self.assertEqual((self.folder / file).exists(), number == 3)
                    # The next run makes up for it.
                    (line,) = self.json_lines(*run)
                    self.assertEqual(line["result"], "skipped" if number == 3 and output == "out/" else "done")
                    self.assertEqual(self.entries()[-1], "done")
                    self.assertEqual(self.read(file), self.origin.bytes("alpha.png"))
                    self.assertEqual(len(self.files((self.folder / file).parent)), 1)
                (self.folder / file).unlink()
                (self.folder / "journal").unlink()

    def test_a_file_that_was_being_named_when_the_run_was_killed_is_replaced_not_doubled(self):
        self.write_list(self.urls(1))
        self.run_list()
        lines = self.read("journal").decode().splitlines()
        (self.folder / "journal").write_text("\n".join(lines[:-1]) + "\n")  # killed before "done"
        self.run_list()
        self.assertEqual(self.files("out"), ["alpha.png"])
        self.assertEqual(self.entries(), ["save", "done"])

    def test_what_was_deleted_is_fetched_again_and_what_was_edited_is_left(self):
        self.write_list(self.urls(3))
        self.run_list()
        (self.folder / "out/alpha-1.png").unlink()
        (self.folder / "out/alpha-2.png").write_text("edited")
        for done in (1, 0):
            _, errors = self.run_list()
            self.assertIn(f"3 addresses: {done} done", errors)
        self.assertEqual(self.files("out"), ["alpha-1.png", "alpha-2.png", "alpha.png"])
        self.assertEqual(self.read("out/alpha-2.png"), b"edited")
        self.assertEqual(self.read("out/alpha-1.png"), self.origin.bytes("alpha.png"))
        self.assertEqual(len(self.origin.requests("/pictures/alpha.png")), 4)

    def test_what_is_done_is_so_for_its_folder_wherever_that_goes(self):
        self.write_list(self.urls(2))
        self.run_list()
        _, errors = self.run_program("--journal", "journal", "-i", "list", "-o", "other")
        self.assertIn("2 addresses: 2 done", errors)
        self.assertEqual(self.files("other"), ["alpha-1.png", "alpha.png"])
        (self.folder / "other").rename(self.folder / "moved")
        shutil.copytree(self.folder / "moved", self.folder / "copied")
        for folder in ("moved", "copied"):
            _, errors = self.run_program("--journal", "journal", "-i", "list", "-o", folder)
            self.assertIn("2 addresses: 0 done (0 B), 2 done before", errors)

    def test_a_file_is_done_for_its_place_and_a_stream_never(self):
        (url,) = self.urls(1)
        for output, requests in ((".file.png", 1), (".file.png", 1), ("other.png", 2), ("/dev/null", 3),
                                 ("/dev/null", 4), ("other.png", 4), (".file.png", 5)):
            self.json_lines("--journal", "journal", url, "-o", output)
            self.assertEqual(len(self.origin.requests("/pictures/alpha.png")), requests, output)
        (self.folder / ".file.png").unlink()
        self.json_lines("--journal", "journal", url, "-o", ".file.png")
        self.assertEqual(self.read(".file.png"), self.origin.bytes("alpha.png"))

    def test_what_is_written_to_a_stream_or_drawn_is_so_each_time(self):
        (url,) = self.urls(1)
        for options in (("-o", "-"), ("--show=blocks",), ("-o", "/dev/stdout")):
            first, second = (self.run_program("--journal", "journal", *options, url)[0] for _ in range(2))
            self.assertGreater(len(first), 100, options)
            self.assertEqual(second, first, options)
        # Nor is what is on its way waited for.
        self.write_list([url] * 3)
        one, _ = self.run_program("--show=blocks", url)
        output, _ = self.run_program("--journal", "journal", "--show=blocks", "-i", "list")
        self.assertEqual(output.count("▀".encode()), 3 * one.count("▀".encode()))
        self.assertEqual(self.entries(), [])

    def test_another_size_is_another_file(self):
        (url,) = self.urls(1)
        self.write_list([url])
        sizes = {}
        for options, name in (((), "alpha.png"), (("--width=8",), "alpha-1.png"), (("--width=4",), "alpha-2.png"),
                              (("--height=4",), "alpha-3.png"), (("--height=4", "--width=5"), "alpha-4.png")):
            for done in (1, 0):
                _, errors = self.run_program("--journal", "journal", "-i", "list", "-o", "out", *options)
                self.assertIn(f"1 address: {done} done", errors, options)
            self.assertIn(name, self.files("out"), options)
            sizes[name] = struct.unpack(">2I", self.read(f"out/{name}")[16:24])
        self.assertEqual(len(self.files("out")), 5)
        self.assertEqual(len(set(sizes.values())), 5, sizes)
        self.assertEqual((sizes["alpha-1.png"][0], sizes["alpha-2.png"][0], sizes["alpha-3.png"][1]), (8, 4, 4))

    def test_what_another_one_was_saved_in_place_of_is_not_done(self):
        one, other = self.urls(2)
        for options in ([one], [one, "--width=8"], [one, "--width=4"], [one], [other], [one]):
            self.run_program("--journal", "journal", "-o", "a.png", *options)
            width = int(options[1].split("=")[1]) if len(options) > 1 else png_width(self.origin.bytes("alpha.png"))
            self.assertEqual(png_width(self.read("a.png")), width, options)
        self.assertEqual(len(self.origin.requests("/pictures/alpha.png")), 6)
        # What somebody has made of a file is left.
        (self.folder / "a.png").write_text("edited")
        self.run_program("--journal", "journal", "-o", "a.png", one)
        self.assertEqual(self.read("a.png"), b"edited")
        # A name in a folder may have become free, too.
        for url in (one, other, one):
            for path in self.folder.glob("out/*"):
                path.unlink() if url == other else None
            self.run_program("--journal", "journal", "-o", "out/", url)
        self.assertEqual(self.files("out"), ["alpha-1.png", "alpha.png"])

    def test_what_was_not_verified_is_not_done_for_who_asks_for_that(self):
        whole = self.origin.bytes("alpha.png")
        (pictures() / "cut-alpha.png").write_bytes(whole[:len(whole) // 2])
        self.write_list([self.origin.picture("cut-alpha.png"), self.origin.picture("alpha.png")])
        run = ("--json", "--journal", "journal", "-i", "list", "-o", "out")
        results = [
            sorted(json.loads(line)["result"] for line in self.run_program(*run, *options, status=status)[0].splitlines())
            for options, status in (((), 0), (("--verify",), 6), (("--verify",), 6), ((), 0))]
        self.assertEqual(results, [["done", "done"], ["done", "failed"], ["failed", "skipped"], ["skipped", "skipped"]])

    def test_what_was_verified_is_done_for_who_does_not_ask_for_that(self):
        self.write_list(self.urls(1))
        self.run_program("--journal", "journal", "-i", "list", "-o", "out", "--verify")
        self.run_list()
        self.assertEqual(self.files("out"), ["alpha.png"])
        self.assertEqual(len(self.origin.requests("/pictures/alpha.png")), 1)

    def test_an_address_without_options_has_the_digest_that_it_always_had(self):
        (url,) = self.urls(1)
        digest = 0xCBF29CE484222325  # FNV-1a, and mixed
        for byte in url.encode():
            digest = (digest ^ byte) * 0x100000001B3 % 2**64
        digest = (digest ^ digest >> 33) * 0xFF51AFD7ED558CCD % 2**64
        digest ^= digest >> 33
        self.write_list([url])
        self.run_list()
        self.assertEqual({line.split()[1] for line in self.read("journal").splitlines()[1:]}, {b"%016x" % digest})

    def test_what_this_machine_did_to_the_first_is_no_error_of_the_same_address_again(self):
        self.write_list(self.urls(1) * 3)

        def allow_small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        lines = self.json_lines("--journal", "journal", "-i", "list", "-o", "out", status=3, preexec_fn=allow_small_files)
        self.assertEqual([line["result"] for line in lines], ["failed"] * 3)
        self.assertEqual([line["place"] for line in lines], ["list:1", "list:2", "list:3"])
        self.assertEqual(len(self.origin.requests("/pictures/alpha.png")), 3)

    def test_what_ends_the_run_cancels_the_same_address_again(self):
        gate = self.origin.gate()
        self.write_list(self.urls(1, hold_head=1, gate=gate.name) * 2)
        process = self.start("--json", "--journal", "journal", "-i", "list", "-o", "out")
        self.assertTrue(gate.is_reached())
        (self.folder / "out").rmdir()
        gate.open()
        output, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 3)
        self.assertEqual(sorted(json.loads(line)["result"] for line in output.splitlines()), ["cancelled", "failed"])

    def test_an_answer_that_is_an_error_is_that_of_the_same_address_again(self):
        self.write_list([self.origin.picture("alpha.png", status=404)] * 2)
        lines = self.json_lines("--journal", "journal", "-i", "list", "-o", "out", status=5)
        self.assertEqual([line["error"] for line in lines], ["IMGDL_ERROR_INVALID_STATUS"] * 2)
        self.assertEqual(len(self.origin.requests("/pictures/alpha.png")), 1)

    def test_a_last_line_that_is_cut_counts_for_nothing(self):
        self.write_list(self.urls(1))
        self.run_list()
        whole = self.read("journal")
        other = self.folder / "out" / "alph"
        for cut in [*range(0, len(whole), 3), len(whole) - 2, len(whole) - 1]:
            with self.subTest(cut=cut):
                other.write_text("somebody else's")
                (self.folder / "journal").write_bytes(whole[:cut])
                self.run_list()
                self.run_list()  # the line that was cut is one of many now
                self.assertEqual(other.read_text(), "somebody else's")
                self.assertEqual(self.entries()[-1], "done")
                self.assertTrue(self.read("journal").startswith(b"imgdl-journal 1\n"))
                other.unlink()

    def test_a_name_in_a_journal_that_leads_elsewhere_is_not_obeyed(self):
        self.write_list(self.urls(1))
        self.run_list()
        key = self.read("journal").split()[3].decode()
        self.assertEqual(len(key), 16)
        (self.folder / "journal").write_text(f"imgdl-journal 1\nsave {key} ../list\n")
        self.run_list()
        self.assertIn("alpha.png", (self.folder / "list").read_text())

    def test_what_is_no_journal_is_refused_and_left_alone(self):
        self.write_list(self.urls(1))
        for content in (b"my diary\n", b"imgdl-journal 2\n", b"x"):
            (self.folder / "journal").write_bytes(content)
            _, errors = self.run_list(status=3)
            self.assertIn("journal is something else than a journal", errors)
            self.assertEqual(self.read("journal"), content)
        _, errors = self.run_program("--journal", "/dev/null", "-i", "list", status=3)
        self.assertIn("/dev/null is no file", errors)

    def test_two_runs_do_not_share_a_journal(self):
        gate = self.origin.gate()
        self.write_list(self.urls(1, hold_head=1, gate=gate.name))
        process = self.start("--journal", "journal", "-i", "list", "-o", "out")
        self.assertTrue(gate.is_reached())
        _, errors = self.run_list(status=3)
        self.assertIn("journal is the journal of another run", errors)
        gate.open()
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)

    def test_an_interrupt_cancels_says_what_was_done_and_can_be_continued(self):
        gate = self.origin.gate()
        self.write_list(self.urls(3) + self.urls(9, hold_after=100, gate=gate.name)[3:])
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            with self.subTest(status=status):
                process = self.start("-j", "4", "--journal", "journal", "-i", "list", "-o", "out")
                reached = {130: 4, 143: 8, 129: 12}[status]
                self.assertTrue(gate.is_reached(reached))
                process.send_signal(number)
                _, errors = process.communicate(timeout=PATIENCE)
                self.assertEqual(process.returncode, status)
                self.assertIn(b"cancelled", errors)
                self.assertNotIn(b"failed", errors)
        gate.open()
        _, errors = self.run_list()
        self.assertIn("9 addresses: 6 done", errors)
        self.assertEqual(len(self.files("out")), 9)

    def test_a_second_interrupt_ends_at_once(self):
        # Nobody reads what it writes: the first signal finds it writing.
        process = self.start("-o", "-", self.origin.url("/huge", bytes=50_000_000))
        process.stdout.read(10)
        process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(signal.SIGINT)
        process.kill()
        process.communicate()
        self.assertEqual(process.returncode, 130)

    def test_signals_that_are_ignored_stay_so(self):
        gate = self.origin.gate()
        url = self.origin.picture("alpha.png", hold_head=1, gate=gate.name)
        process = self.start(url, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertTrue(gate.is_reached())
        process.send_signal(signal.SIGHUP)
        gate.open()
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)


if __name__ == "__main__":
    unittest.main()
