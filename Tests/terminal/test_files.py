import os
import stat
import struct
import subprocess
import unittest

from program import PROGRAM, ProgramTests, pictures


class FileTests(ProgramTests):
    def test_files_have_the_bytes_that_came(self):
        _, errors = self.run_program(self.origin.picture("baseline.jpg"), self.origin.picture("alpha.png"))
        for name in ("baseline.jpg", "alpha.png"):
            self.assertEqual(self.read(name), self.origin.bytes(name))
        self.assertEqual(self.files(), ["alpha.png", "baseline.jpg"])
        self.assertIn("2 addresses: 2 done", errors)
        self.assertEqual(stat.S_IMODE((self.folder / "alpha.png").stat().st_mode) & 0o600, 0o600)

    def test_names_are_safe_whatever_says_them(self):
        cases = [
            ("/pictures/baseline.jpg", {"header": "Content-Disposition:x; filename=../../evil.jpg"}, "evil.jpg"),
            ("/pictures/baseline.jpg", {"header": 'Content-Disposition:inline; filename="a\\"b.jpg"'}, "a_b.jpg"),
            ("/pictures/baseline.jpg", {"header": "Content-Disposition:x; filename=c; filename*=UTF-8''d%C3%A9.jpg"},
             "dé.jpg"),
            ("/pictures/baseline.jpg", {"header": "Content-Disposition:x; filename*=UTF-8''a%1b[2J%0a%e2%80%ae.jpg"},
             "a_[2J__.jpg"),
            ("/pictures/baseline.jpg", {"header": "Content-Disposition:x; filename=.bashrc"}, "_bashrc.jpg"),
            ("/pictures/baseline.jpg", {"header": "Content-Disposition:x; filename=-rf.jpg"}, "_rf.jpg"),
            ("/pictures/baseline.jpg", {"header": "Content-Disposition:x; filename=.."}, "picture.jpg"),
            ("/pictures/baseline.jpg", {"header": "Content-Disposition:x; filename=" + "n" * 300 + ".jpg"},
             "n" * 196 + ".jpg"),
            ("/pictures/baseline.jpg", {"header": "Content-Disposition:x; filename=a.png"}, "a.jpg"),
            ("/pictures/baseline.jpg", {"header": "Content-Disposition:x; filename=a.JPEG"}, "a.JPEG"),
            ("/pictures/baseline.jpg", {"header": "Content-Disposition:x; filename=view.php"}, "view.php.jpg"),
            ("/pictures/baseline.jpg", {"header": "Content-Disposition:x; filename*=UTF-8''%ff%fe"}, "__.jpg"),
            ("/pictures/alpha.webp", {}, "alpha.webp"),
            ("/flaky", {"id": "n", "fail": 0, "picture": "animated.gif"}, "flaky.gif"),
        ]
        for path, faults, expected in cases:
            with self.subTest(expected=expected):
                self.run_program("-q", "-o", "out/", self.origin.url(path, **faults))
                self.assertEqual(self.files("out"), [expected])
                (self.folder / "out" / expected).unlink()

    def test_an_address_without_a_name_is_called_picture(self):
        for address in ("/echo/", "/echo/..%2f..%2f", "/echo/%2e%2e%2f"):
            self.run_program("-o", "out/", self.origin.url(address))
        self.assertEqual(self.files("out"), ["picture", "picture-1", "picture-2"])
        self.assertEqual(self.files(), ["out"])

    def test_a_name_that_is_taken_gets_a_number_and_nothing_is_overwritten(self):
        (self.folder / "baseline.jpg").write_text("mine")
        os.symlink("/nowhere", self.folder / "baseline-1.jpg")
        self.run_program(self.origin.picture("baseline.jpg"), self.origin.picture("baseline.jpg", n=2))
        self.assertEqual(self.files(), ["baseline-1.jpg", "baseline-2.jpg", "baseline-3.jpg", "baseline.jpg"])
        self.assertEqual(self.read("baseline.jpg"), b"mine")
        self.assertTrue((self.folder / "baseline-1.jpg").is_symlink())

    def test_a_file_that_is_named_is_replaced_as_a_whole_and_a_link_stays_one(self):
        (self.folder / "mine").write_text("old")
        (self.folder / "link").symlink_to("mine")
        self.run_program("-o", "link", self.origin.picture("alpha.png"))
        self.assertEqual(self.read("mine"), self.origin.bytes("alpha.png"))
        self.assertTrue((self.folder / "link").is_symlink())
        self.run_program("-o", "mine", self.origin.url("/status/500"), status=5)
        self.assertEqual(self.read("mine"), self.origin.bytes("alpha.png"))
        self.assertEqual(self.files(), ["link", "mine"])

    def test_a_folder_is_made_for_many_and_a_file_in_its_place_refused(self):
        urls = [self.origin.picture("alpha.png", n=n) for n in range(2)]
        self.run_program("-o", "a/b", *urls)
        self.assertEqual(self.files("a/b"), ["alpha-1.png", "alpha.png"])
        (self.folder / "file").write_text("mine")
        _, errors = self.run_program("-o", "file", *urls, status=3)
        self.assertIn("file: Not a directory", errors)
        self.assertEqual(self.read("file"), b"mine")

    def test_an_output_that_cannot_be_written_is_said(self):
        _, errors = self.run_program("-o", "none/file", self.origin.picture("alpha.png"), status=3)
        self.assertIn("none: No such file or directory", errors)
        _, errors = self.run_program("-o", "/dev/full", self.origin.picture("alpha.png"), status=3)
        self.assertIn("/dev/full: No space left on device", errors)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))

    def test_devices_are_written_to_and_left_alone(self):
        before = os.lstat("/dev/null")
        self.run_program("-o", "/dev/null", self.origin.picture("alpha.png"), self.origin.picture("baseline.jpg"))
        after = os.lstat("/dev/null")
        self.assertEqual((before.st_ino, before.st_rdev), (after.st_ino, after.st_rdev))
        expected = self.origin.bytes("alpha.png")
        for output in ("-", "/dev/stdout", "/dev/fd/1"):
            with self.subTest(output=output):
                written, _ = self.run_program("-o", output, self.origin.picture("alpha.png"))
                self.assertEqual(written, expected)
        # Behind /dev/stdout a shell may have put a file, with something in it.
        with open(self.folder / "file", "wb") as file:
            file.write(b"before")
            file.flush()
            inode = os.fstat(file.fileno()).st_ino
            self.run_program("-o", "/dev/stdout", self.origin.picture("alpha.png"), stdout=file)
        self.assertEqual(self.read("file"), b"before" + expected)
        self.assertEqual((self.folder / "file").stat().st_ino, inode)
        self.assertEqual(self.files(), ["file"])

    def test_a_pipe_is_written_to_and_left_alone(self):
        os.mkfifo(self.folder / "pipe")
        process = self.start("-o", "pipe", self.origin.picture("alpha.png"))
        with open(self.folder / "pipe", "rb") as pipe:
            self.assertEqual(pipe.read(), self.origin.bytes("alpha.png"))
        process.communicate()
        self.assertEqual(process.returncode, 0)
        self.assertTrue((self.folder / "pipe").is_fifo())

    def test_verify_refuses_what_is_no_picture_and_without_it_bytes_are_bytes(self):
        (pictures() / "page.html").write_text("<!DOCTYPE html>")
        self.run_program(self.origin.picture("page.html"))
        self.assertEqual(self.files(), ["page.html"])
        self.run_program("--verify", "-o", "other", self.origin.picture("page.html"), status=6)
        self.assertEqual(self.files(), ["page.html"])

    def test_X6_a_thumbnail_is_a_png_that_fits(self):
        self.run_program("--width=60", "--height=1000", self.origin.picture("baseline.jpg"))
        self.assertEqual(self.files(), ["baseline.png"])
        self.assertEqual(struct.unpack(">II", self.read("baseline.png")[16:24]), (60, 40))

    def test_O2_a_cache_answers_the_second_run(self):
        url = self.origin.picture("alpha.png", header="Cache-Control:max-age=1000")
        origins = [self.json_lines("--cache", "cache", "-o", "out/", url)[0]["from"] for _ in range(2)]
        self.assertEqual(origins, ["network", "hit"])
        self.assertEqual(len(self.origin.requests("/pictures/alpha.png")), 1)

    def test_O2_how_stale_an_answer_may_be(self):
        url = self.origin.picture("alpha.png", header="Age:3660") + "&header=Cache-Control:max-age=60"
        origins = [
            self.json_lines("--cache", "cache", "-H", "Cache-Control: max-stale", *limit, "-o", "out/", url)[0]["from"]
            for limit in ([], [], ["--max-stale=7200"], ["--max-stale=0"], ["--max-stale=0.5"])
        ]
        self.assertEqual(origins, ["network", "stale", "stale", "network", "network"])

    def test_standard_descriptors_that_are_closed_are_no_files_of_ours(self):
        (self.folder / "list").write_text(self.origin.picture("alpha.png"))
        command = f"exec '{PROGRAM}' \"$@\" <&- >&- 2>&-"
        for arguments, status in ((["-i", "list"], 0), (["-i", "list", "--json"], 3), (["-i", "-"], 3)):
            code = subprocess.run(["sh", "-c", command, "sh", *arguments], cwd=self.folder).returncode
            self.assertEqual(code, status, arguments)
        self.assertEqual((self.folder / "list").read_text(), self.origin.picture("alpha.png"))

    def test_standard_output_that_ends_early_ends_the_program_as_sigpipe_would(self):
        process = self.start("-o", "-", self.origin.url("/huge", bytes=50_000_000, type="image/png"))
        process.stdout.read(10)
        process.stdout.close()
        errors = process.stderr.read()
        self.assertEqual(process.wait(), 141)
        self.assertEqual(errors, b"")


if __name__ == "__main__":
    unittest.main()
