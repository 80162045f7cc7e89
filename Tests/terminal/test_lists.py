import json
import os
import subprocess
import unittest

from program import PATIENCE, ProgramTests


class ListTests(ProgramTests):
    def test_comments_blank_lines_line_ends_and_a_byte_order_mark_are_understood(self):
        url = self.origin.picture("alpha.png")
        text = f"\ufeff# pictures\r\n\r\n  {url}?n=1\r\n\t\n{url}?n=2 \n   # no more\n{url}?n=3"
        (self.folder / "list").write_bytes(text.encode())
        lines = self.json_lines("-i", "list", "-o", "out")
        self.assertEqual(sorted(line["place"] for line in lines), ["list:3", "list:5", "list:7"])
        self.assertEqual({line["result"] for line in lines}, {"done"})
        self.assertIn("3 addresses: 3 done", self.errors)

    def test_what_is_no_address_fails_with_its_line_and_the_others_go_on(self):
        url = self.origin.picture("alpha.png")
        text = b"x" * 70000 + b"\nb\0d\n" + b"y" * 65536 + b"\nnonsense\n" + url.encode() + b"\n" + b"z" * 200000
        _, errors = self.run_program("-i", "-", "-o", "out", input=text, status=1)
        for expected in (
            "imgdl: standard input:1: a line of more than 65536 bytes",
            "imgdl: standard input:2: a NUL or a carriage return within a line",
            "imgdl: standard input:4: nonsense: ",
            "imgdl: standard input:6: a line of more than 65536 bytes",
            "6 addresses: 1 done",
            "       3  bad line",
            "       2  IMGDL_ERROR_INVALID_URL",
        ):
            self.assertIn(expected, errors)
        self.assertEqual(self.files("out"), ["alpha.png"])

    def test_a_list_that_cannot_be_read_is_said(self):
        _, errors = self.run_program("-i", "missing", status=3)
        self.assertIn("imgdl: missing: No such file or directory", errors)
        _, errors = self.run_program("-i", ".", status=3)
        self.assertIn("Is a directory", errors)

    def test_an_empty_list_is_fine(self):
        _, errors = self.run_program("-i", "-", input=b"")
        self.assertIn("0 addresses", errors)

    def test_addresses_are_downloaded_while_the_list_is_still_being_written(self):
        process = self.start("--json", "-i", "-", "-o", "out", stdin=subprocess.PIPE)
        for number in range(2):
            process.stdin.write(self.origin.picture("alpha.png", n=number).encode() + b"\n")
            process.stdin.flush()
            self.assertEqual(json.loads(process.stdout.readline())["number"], number + 1)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)

    def test_a_long_list_takes_no_more_memory_than_a_short_one(self):
        def peak(count):
            read, write = os.pipe()
            process = self.start("--json", "-j", "4", "-i", "-", stdin=read, stdout=subprocess.DEVNULL)
            os.close(read)
            with open(write, "wb") as pipe:
                for number in range(count):
                    pipe.write(b"nonsense:%d/%s\n" % (number, b"x" * 200))
                # Everything before this one has been taken when it is asked for.
                pipe.write(self.origin.picture("alpha.png", n=count, hold_head=1, gate=f"g{count}").encode() + b"\n")
                pipe.flush()
                self.origin.control(f"gate/g{count}/reached", deadline_ms=int(PATIENCE * 1000))
                with open(f"/proc/{process.pid}/status") as status:
                    found = [int(line.split()[1]) for line in status if line.startswith("VmHWM")]
                self.origin.control(f"gate/g{count}/open")
            process.communicate(timeout=PATIENCE)
            return found[0]

        self.assertLess(peak(100_000), peak(1000) + 8192)  # KiB; the list has 20 MiB

    def test_only_as_many_run_as_asked_for(self):
        gate = self.origin.gate()
        urls = [self.origin.picture("alpha.png", n=n, hold_head=1, gate=gate.name) for n in range(6)]
        process = self.start("-j", "2", "-o", "out", *urls)
        self.assertTrue(gate.is_reached(2))
        gate.open()
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.origin.log["max_in_flight"], 2)


class StatusTests(ProgramTests):
    def test_each_exit_status(self):
        good, missing = self.origin.picture("alpha.png"), self.origin.url("/status/404")
        self.run_program("-o", "/dev/null", good)
        self.run_program(missing, "nonsense:", status=1)
        self.run_program("nonsense:", status=1)
        self.run_program(missing, missing, status=5)
        self.run_program("--retries=0", "http://127.0.0.1:1/", status=4)
        self.run_program("--retries=0", self.origin.picture("alpha.png", reset_after=5), missing, status=1)
        self.run_program("--verify", self.origin.picture("alpha.png", empty=1), status=6)
        self.run_program("--cacert", "/nowhere", good, status=3)
        photo = self.origin.picture("baseline.jpg", headers=400)
        _, errors = self.run_program("--retries=0", photo, status=5)
        self.assertIn("the response's header went over a limit", errors)
        photo = self.origin.picture("baseline.jpg", header="Content-Encoding:gzip")
        self.run_program("--retries=0", photo, status=5)

    def test_a_picture_that_is_too_short_is_the_networks_matter_where_it_did_not_come_whole(self):
        for fault, status in (({"length": "lie"}, 6), ({"short_by": 1000}, 4)):
            photo = self.origin.picture("baseline.jpg", **fault)
            for how in ("--verify", "--width=64"):
                lines = self.json_lines("--retries=0", how, photo, status=status)
                self.assertEqual([line["error"] for line in lines], ["IMGDL_ERROR_TRUNCATED"])

    def test_the_summary_counts_by_class(self):
        urls = [self.origin.url("/status/404", n=n) for n in range(3)] + [self.origin.url("/status/403")]
        _, errors = self.run_program("-q", *urls, status=5)
        self.assertNotIn("addresses", errors)
        _, errors = self.run_program(*urls, status=5)
        self.assertTrue(errors.endswith(
            "4 addresses: 0 done (0 B), 4 failed\n"
            "       3  IMGDL_ERROR_INVALID_STATUS 404\n"
            "       1  IMGDL_ERROR_INVALID_STATUS 403\n"), errors)

    def test_nothing_shows_a_password_or_the_values_of_a_query(self):
        url = self.origin.picture("none.jpg", token="hunter2") + "&hunter2"
        url = url.replace("://", "://user:hunter2@")
        (self.folder / "list").write_text(url + "\nnonsense:?a=hunter2\n")
        output, errors = self.run_program("-v", "--json", "--journal", "journal", "-i", "list", status=1)
        for text in (output.decode(), errors, self.read("journal").decode()):
            self.assertNotIn("hunter2", text)
        self.assertIn("token=…", self.read("journal").decode())

    def test_full_urls_shows_the_values_of_a_query_and_no_password(self):
        for name in ("none.jpg", "alpha.png"):
            url = self.origin.picture(name, _token="hunter2")
            (line,) = self.json_lines(
                "--full-urls", "-o", "out/", url.replace("://", "://user:secret@") + "#part",
                status=5 if name == "none.jpg" else 0)
            self.assertEqual(line["url"], url)
            if name == "none.jpg":
                self.assertTrue(line["message"].startswith(f"{url}: "), line)
            _, errors = self.run_program("-v", "--full-urls", "-o", "out/", url, status=5 if name == "none.jpg" else 0)
            self.assertIn("_token=hunter2", errors)
        _, errors = self.run_program("--full-urls", "http:/user:secret@host/a", status=1)
        self.assertNotIn("secret", errors)

    def test_what_a_server_says_cannot_move_the_cursor(self):
        url = self.origin.picture("alpha.png", header="Content-Disposition:x; filename*=UTF-8''%1b]0;x%07.png")
        _, errors = self.run_program(url)
        self.assertNotIn("\x1b", errors)
        self.assertNotIn("\x07", errors)
        _, errors = self.run_program("http://127.0.0.1:1/\u202e\x1b[2J", status=1)
        self.assertNotIn("\x1b", errors)
        self.assertNotIn("\u202e", errors)

    def test_json_is_one_line_for_each_address(self):
        lines = self.json_lines(
            "--verify", "-o", "o\"ut\n", self.origin.picture("baseline.jpg"), self.origin.url("/status/404"), status=5)
        done, failed = sorted(lines, key=lambda line: line["number"])
        expected = {
            "number": 1, "url": self.origin.picture("baseline.jpg"), "result": "done", "status": 200, "from": "network",
            "content_type": "image/jpeg", "format": "jpeg", "width": 1200, "height": 800,
            "path": "o\"ut\n/baseline.jpg", "bytes": len(self.origin.bytes("baseline.jpg"))}
        self.assertEqual({name: done.get(name) for name in expected}, expected)
        self.assertEqual((failed["result"], failed["error"], failed["status"]),
                         ("failed", "IMGDL_ERROR_INVALID_STATUS", 404))


if __name__ == "__main__":
    unittest.main()
