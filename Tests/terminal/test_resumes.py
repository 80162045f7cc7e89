"""Runs that go on where another one was killed, among files that are somebody else's."""
import fcntl
import json
import os
import unittest
from urllib.parse import quote

from program import ProgramTests, pictures


class ResumeTests(ProgramTests):
    def setUp(self):
        super().setUp()
        self.url = self.origin.picture("alpha.png")
        (self.folder / "list").write_text(self.url)

    def run_list(self, **options):
        return self.run_program("--journal", "journal", "-i", "list", "-o", options.pop("output", "out"), **options)

    def forget_done(self):
        """As if the run had been killed before it wrote its last line."""
        lines = self.read("journal").splitlines(keepends=True)
        self.assertTrue(lines[-1].startswith(b"done "), lines)
        (self.folder / "journal").write_bytes(b"".join(lines[:-1]))

    def requests(self):
        return len(self.origin.requests("/pictures/alpha.png"))

    def test_what_is_in_place_is_not_downloaded_again(self):
        self.run_list()
        self.forget_done()
        inode = (self.folder / "out/alpha.png").stat().st_ino
        _, errors = self.run_list()
        self.assertIn("1 done before", errors)
        self.assertEqual(self.requests(), 1)
        self.assertEqual((self.folder / "out/alpha.png").stat().st_ino, inode)
        self.run_list()
        self.assertEqual(self.requests(), 1)

    def test_a_file_that_another_program_put_there_is_left_alone(self):
        def replaced(path):
            path.unlink()
            path.write_bytes(b"mine")

        def written_over(path):
            # The very file, with what its owner has made of it since; it is as long as it was.
            path.write_bytes(b"m" * path.stat().st_size)

        def renamed_over(path):
            other = path.with_name("other")
            other.write_bytes(b"mine")
            other.rename(path)

        def linked(path):
            path.unlink()
            path.with_name("other").write_bytes(b"mine")
            path.symlink_to("other")

        for change in (replaced, written_over, renamed_over, linked):
            with self.subTest(change.__name__):
                self.run_list(output=change.__name__)
                self.forget_done()
                path = self.folder / change.__name__ / "alpha.png"
                change(path)
                mine = path.read_bytes()
                self.assertNotEqual(mine, self.origin.bytes("alpha.png"))
                self.run_list(output=change.__name__)
                self.assertEqual(path.read_bytes(), mine)
                self.assertEqual(self.read(f"{change.__name__}/alpha-1.png"), self.origin.bytes("alpha.png"))
                (self.folder / "journal").unlink()

    def test_a_number_that_is_used_again_makes_no_file_ours(self):
        # A draft that is gone leaves its number to the next file: all of the line but the time is right.
        self.run_list()
        self.forget_done()
        path = self.folder / "out/alpha.png"
        status = path.stat()
        path.write_bytes(b"m" * status.st_size)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        self.assertEqual(path.stat().st_ino, status.st_ino)
        self.run_list()
        self.assertEqual(path.read_bytes(), b"m" * status.st_size)

    def test_the_same_name_in_another_folder_is_another_file(self):
        self.run_list()
        self.forget_done()
        other = self.folder / "other"
        other.mkdir()
        os.link(self.folder / "out/alpha.png", other / "alpha.png")
        inode = (other / "alpha.png").stat().st_ino
        self.run_list(output="other")
        self.assertEqual(self.files("other"), ["alpha-1.png", "alpha.png"])
        self.assertEqual((other / "alpha.png").stat().st_ino, inode)

    def test_a_journal_of_names_alone_is_not_believed(self):
        self.run_list()
        key = self.read("journal").split()[3].decode()
        (self.folder / "journal").write_text(f"imgdl-journal 1\nsave {key} alpha.png\n")
        (self.folder / "out/alpha.png").write_text("mine")
        self.run_list()
        self.assertEqual(self.read("out/alpha.png"), b"mine")
        self.assertEqual(self.files("out"), ["alpha-1.png", "alpha.png"])

    def test_a_transfer_that_breaks_off_is_continued_with_a_cache_alone(self):
        for options, status, sent in (((), 4, [None] * 3), (("--cache=cache",), 0, [None, "bytes=150000-", "bytes=300000-"])):
            url = self.origin.picture("opaque.png", etag="v1", close_after=150000, n=len(options))
            before = len(self.origin.requests("/pictures/opaque.png"))
            self.run_program(*options, "-o", "a.png", url, status=status)
            requests = self.origin.requests("/pictures/opaque.png")[before:]
            ranges = [{name.lower(): value for name, value in request["headers"]}.get("range") for request in requests]
            self.assertEqual(ranges, sent)
        self.assertEqual(self.read("a.png"), self.origin.bytes("opaque.png"))

    def test_an_address_that_stands_twice_in_a_list_is_one_file(self):
        missing = self.origin.url("/status/404")
        (self.folder / "list").write_text("\n".join([self.url, missing, self.url, missing, self.url]))
        output, _ = self.run_program("--json", "--journal", "journal", "-i", "list", "-o", "out", status=5)
        lines = sorted((json.loads(line) for line in output.splitlines()), key=lambda line: line["number"])
        self.assertEqual([line["result"] for line in lines], ["done", "failed", "skipped", "failed", "skipped"])
        self.assertEqual(lines[1]["error"], lines[3]["error"])
        self.assertEqual(self.files("out"), ["alpha.png"])
        self.assertEqual(self.requests(), 1)

    def test_a_journal_that_cannot_be_written_is_seen_before_the_first_download(self):
        for journal in ("/proc/journal", "none/journal", "/dev/null"):
            _, errors = self.run_program("--journal", journal, "-i", "list", "-o", "out", status=3)
            self.assertIn(f"imgdl: {journal}", errors)
        self.assertEqual(self.requests(), 0)

    def named(self, name, picture="alpha.png"):
        """An address whose answer has that name."""
        return self.origin.picture(picture, header="Content-Disposition:x; filename*=UTF-8''" + quote(name))

    LONG_NAMES = [
        (["a" * 230] * 2, ["a" * 196 + ".png", "a" * 194 + "-1.png"]),
        (["b" * 196 + ".png"] * 2, ["b" * 196 + ".png", "b" * 194 + "-1.png"]),
        (["c" * 195 + " " + "c" * 40], ["c" * 195 + " .png"]),
        (["d" * 196 + "." + "d" * 40], ["d" * 196 + ".png"]),
        (["é" * 120] * 2, ["é" * 98 + ".png", "é" * 97 + "-1.png"]),
        (["f" + "é" * 120] * 2, ["f" + "é" * 97 + ".png", "f" + "é" * 96 + "-1.png"]),
    ]
    LONG_NAMES_OF_NO_PICTURE = [
        (["g" * 199 + "  g"] * 2, ["g" * 199, "g" * 198 + "-1"]),
        (["h" * 199 + "." + "h" * 40], ["h" * 199]),
        (["i" * 190 + "." * 20 + "i" * 40], ["i" * 190]),
    ]

    def write_long_names(self):
        """Gives the names that their files have."""
        (pictures() / "page.html").write_text("<!DOCTYPE html>")
        urls, files = [], []
        for cases, picture in ((self.LONG_NAMES, "alpha.png"), (self.LONG_NAMES_OF_NO_PICTURE, "page.html")):
            for names, expected in cases:
                urls += [self.named(name, picture) + f"&n={number}" for number, name in enumerate(names)]
                files += expected
        (self.folder / "list").write_text("\n".join(urls))
        return sorted(files)

    def test_a_file_with_a_long_name_is_done_as_any_other(self):
        files = self.write_long_names()
        self.run_list()
        self.assertEqual(self.files("out"), files)
        self.assertLessEqual(max(len(name.encode()) for name in files), 200)
        # The second time as if the run had been killed before it could say that anything is done.
        lines = self.read("journal").decode().splitlines(keepends=True)
        for journal in (lines, [line for line in lines if not line.startswith("done")]):
            (self.folder / "journal").write_text("".join(journal))
            _, errors = self.run_list()
            self.assertIn(f"{len(files)} addresses: 0 done (0 B), {len(files)} done before", errors)
            self.assertEqual(self.files("out"), files)

    def test_a_longer_name_that_an_older_version_noted_is_its_file(self):
        for number, old in enumerate(("a" * 200 + ".png", "a" * 200 + "-17.webp", "a" * 199 + " ", "é" * 100 + "-1.png")):
            (self.folder / "list").write_text(self.named("a" * 230) + f"&n={number}")
            self.run_list()
            (self.folder / "out" / ("a" * 196 + ".png")).rename(self.folder / "out" / old)
            text = self.read("journal").decode().replace("a" * 196 + ".png", old)
            (self.folder / "journal").write_text(text)
            _, errors = self.run_list()
            self.assertIn("1 address: 0 done (0 B), 1 done before", errors, old)

    def test_a_line_that_no_run_has_written_counts_for_nothing(self):
        self.run_list()
        _, save, done = self.read("journal").decode().splitlines()
        kind, key, identity, name = save.split(" ")
        for number, changed in enumerate((
                f"{kind} {key} +{identity} {name}", f"{kind} {key}  {identity} {name}", f"{kind} {key} 0x{identity} {name}",
                f"{kind} {key} {identity} ./{name}", f"{kind} {key} {identity} ../out/{name}", f"{kind} {key} {identity} ..",
                f"{kind} {key} {identity} .{name}", f"{kind} {key} {identity} -{name}", f"{kind} {key} {identity} ",
                f"{kind} {key} {identity} {'a' * 300}")):
            with self.subTest(changed):
                (self.folder / "journal").write_text(f"imgdl-journal 1\n{changed}\n{done}\n")
                _, errors = self.run_list()
                self.assertIn("1 address: 1 done", errors)
                self.assertEqual(len(self.files("out")), number + 2)

    def test_what_only_looks_like_what_a_killed_run_left_is_somebodys(self):
        out = self.folder / "out"
        out.mkdir()
        names = [".imgdl--1--2", ".imgdl- 12-+3", ".imgdl-12- 3", ".imgdl-+12-3", ".imgdl-012-3", ".imgdl-12-03", ".imgdl-12--3",
                 ".imgdl-0-0", ".imgdl-12-", ".imgdl--3", ".imgdl-12-3 ", ".imgdl-12-3-4", ".imgdl-12-99999999999",
                 ".imgdl-4294967308-3", ".imgdl-99999999999999999999999-3", ".imgdl-12-0x3", ".IMGDL-12-3"]
        for name in names + [".imgdl-12-3"]:
            (out / name).write_text("mine")
        self.run_list()
        self.assertEqual(self.files("out"), sorted(names + ["alpha.png"]))

    def test_what_a_killed_run_left_is_taken_away_and_nothing_else(self):
        out = self.folder / "out"
        out.mkdir()
        for name in (".imgdl-4194303-0", ".imgdl-4194303-1", ".imgdl-4194303", ".imgdl-4194303-0.png", ".imgdl-x-0"):
            (out / name).write_text("half")
        (out / ".imgdl-4194303-2").symlink_to(".imgdl-4194303")
        with open(out / ".imgdl-4194303-1") as held:  # of a run that goes on
            fcntl.flock(held, fcntl.LOCK_EX)
            self.run_list()
        self.assertEqual(self.files("out"), [
            ".imgdl-4194303", ".imgdl-4194303-0.png", ".imgdl-4194303-1", ".imgdl-4194303-2", ".imgdl-x-0", "alpha.png"])


if __name__ == "__main__":
    unittest.main()
