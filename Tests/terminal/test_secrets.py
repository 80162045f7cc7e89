"""Passwords, wherever they stand in what may be no address, values of queries, and characters that nobody sees."""
import http.server
import json
import re
import threading
import unittest

from program import PATIENCE, ProgramTests, png


class AnyHost(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(png(1, 1, [[0, 0, 0, 255]]))

    def log_message(self, *_):
        pass


class SecretTests(ProgramTests):
    ADDRESSES = [
        "http:/user:hunter2@127.0.0.1:1/a", "http:user:hunter2@127.0.0.1:1/a", "http:///user:hunter2@127.0.0.1:1/a",
        "http:\\\\user:hunter2@127.0.0.1:1/a", "http:/\\user:hunter2@127.0.0.1:1/a", "HTTP:////user:hunter2@127.0.0.1:1/a",
        "user:hunter2@127.0.0.1:1/a", "//user:hunter2@127.0.0.1:1/a", "http://user:hunter2/x@127.0.0.1:1/a",
        "http://user:hunter2?x@127.0.0.1:1/a", "http://user:hunter2#x@127.0.0.1:1/a", "http://user:hunter2\\x@127.0.0.1:1/a",
        "http://user:hunter2@x@127.0.0.1:1/a", "http://user:hunter2@127.0.0.1:99999/a", "http://user:hunter2@[::1/a",
        "ftp://user:hunter2/x@127.0.0.1/a", "x://user:hunter2@127.0.0.1:1/a", "hunter2:hunter2@127.0.0.1:1/a",
        "user:hunter2@127.0.0.1/a?next=http://b", "http://user:hunter2@127.0.0.1:1", "http://user:hunter2@",
        "http://user:hunter2%40127.0.0.1:1/a", "http:/user:hunter2%40127.0.0.1:1/a", "user:hunter2%40127.0.0.1:1/a",
        "http://user:hunter2/x%40127.0.0.1:1/a", "htp://user:hunter2%40127.0.0.1:1/a",
        " http://user:hunter2@127.0.0.1:1/a", "http://us er:hunter2@127.0.0.1:1/a", "http://user:hunter2@127.0.0.1:1/\x01",
    ]

    # They parse, and a password stands where none is looked for.
    TWICE = [
        "http://http://user:hunter2@127.0.0.1:1/x.jpg", "http://http://user:hunter2@127.0.0.1:1",
        "https://HTTP://user:hunter2@127.0.0.1:1/x", "http://https//user:hunter2@127.0.0.1:1/x",
        "http://http:/user:hunter2@127.0.0.1:1/x", "http://http:\\\\user:hunter2@127.0.0.1:1/x",
        "http://http://user:hun/hunter2@127.0.0.1:1/x", "http://http://user:hun?hunter2@127.0.0.1:1/x",
        "http://http://user:hun#hunter2@127.0.0.1:1/x", "http://http://user:hunter2%40127.0.0.1:1/x",
        "http://ftp://user:hunter2@127.0.0.1:1/x", "http://x://user:hunter2@127.0.0.1:1/x",
        "http://http://http://user:hunter2@127.0.0.1:1/x", "http://me:hunter2@http://user:hunter2@127.0.0.1:1/x",
        "http:///http://user:hunter2@127.0.0.1:1/x", "http://http:///user:hunter2@127.0.0.1:1/x?a=b",
    ]

    def test_no_password_behind_a_scheme_that_stands_twice_is_shown_noted_or_made_a_name_of_a_file(self):
        for urls in ([], ["--full-urls"]):
            process = self.start("-v", "--json", "--retries=0", "--proxy=http://127.0.0.1:1", "--journal", "journal",
                                 *urls, "-o", "out/", *self.TWICE)
            output, errors = process.communicate(timeout=PATIENCE)
            lines = [json.loads(line) for line in output.splitlines()]
            self.assertEqual([line["result"] for line in lines], ["failed"] * len(self.TWICE))
            for line in lines:
                self.assertIn("127.0.0.1:1", line["url"])
                self.assertTrue(line["message"].startswith(self.read_by_the_library(line) + ": "), line)
            for secret in ("hun", "user", "me:"):
                self.assertNotIn(secret, (output + errors + self.read("journal")).decode())
        # A proxy that answers for every host.
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), AnyHost)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever).start()
        addresses = [self.TWICE[line["number"] - 1].replace("https:", "http:", 1)
                     for line in lines if line["error"] != "IMGDL_ERROR_INVALID_URL"]
        self.assertGreater(len(addresses), 12)
        self.run_program("-q", "--proxy", f"http://127.0.0.1:{server.server_port}", "-o", "files/", *addresses)
        self.assertEqual(len(self.files("files")), len(addresses))
        self.assertEqual([name for name in self.files("files") if "hun" in name or "user" in name], [])

    def read_by_the_library(self, line):
        """A host of its own is the first scheme, and an empty port behind it is none; a fragment is no part of it."""
        if line["error"] == "IMGDL_ERROR_INVALID_URL":
            return line["url"]
        if "#" in self.TWICE[line["number"] - 1]:
            return "http://http//…"
        return re.sub("^(https?://[a-z]+):", r"\1", line["url"].lower())

    def test_no_password_of_an_address_in_a_path_is_shown_noted_or_made_a_name_of_a_file(self):
        addresses = ["http://p/http://user:hunter2@h/x", "http://p/a/http:/user@h/x", "http://p//user:hunter2@h",
                     "http://p/http%3A%2F%2Fuser%3Ahunter2%40h%2Fx", "http://p/ftp:user:hun/hunter2@h"]
        output, errors = self.run_program("-v", "--json", "--retries=0", "--proxy=http://127.0.0.1:1", "--journal",
                                          "journal", "-o", "out/", *addresses, status=4)
        lines = sorted((json.loads(line) for line in output.splitlines()), key=lambda line: line["number"])
        self.assertEqual([line["url"] for line in lines], [
            "http://p/http://h/x", "http://p/a/http:/h/x", "http://p//h", "http://p/http%3A%2F%2Fh%2Fx", "http://p/ftp:h"])
        for line in lines:
            self.assertTrue(line["message"].startswith(line["url"] + ": "), line)
        for secret in ("hun", "user"):
            self.assertNotIn(secret, (output + self.read("journal")).decode() + errors)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), AnyHost)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever).start()
        self.run_program("-q", "--proxy", f"http://127.0.0.1:{server.server_port}", "-o", "files/", *addresses)
        self.assertEqual(self.files("files"), ["ftp_h.png", "h.png", "x-1.png", "x-2.png", "x.png"])

    def test_what_stands_behind_the_port_of_an_address_is_its_path(self):
        for url in ("http://user:1234/hunter2@host/x", "http://127.0.0.1:1/a@2x.png", "http://127.0.0.1:1//b%402x.png",
                    "http://127.0.0.1:1/http://h:80/a@2x.png", "http://127.0.0.1:1/a:b@2x.png"):
            (line,) = self.json_lines("--retries=0", "--proxy=http://127.0.0.1:1", url, status=4)
            self.assertEqual(line["url"], url)

    def test_a_line_that_is_no_address_shows_no_password(self):
        (self.folder / "list").write_bytes(b"http://user:hun/hunter2\0@127.0.0.1:1/x\nhttp://user:hunter2\r%40host/x\n")
        output, errors = self.run_program("-v", "--json", "--journal", "journal", "-i", "list", status=1)
        self.assertEqual(output.count(b'"result":"failed"'), 2)
        self.assertNotIn("hunter2", output.decode() + errors + self.read("journal").decode())

    def test_no_password_is_shown_noted_or_made_a_name_of_a_file(self):
        for urls in ([], ["--full-urls"]):
            for number, address in enumerate(self.ADDRESSES):
                with self.subTest(address=address, urls=urls):
                    output, errors = self.run_program(
                        "-v", "--json", "--retries=0", "--journal", f"journal{number}", *urls, "-o", "out/", address,
                        status=self.status(address))
                    said = output.decode() + errors + self.read(f"journal{number}").decode()
                    self.assertIn('"result":"failed"', said)
                    self.assertNotIn("hunter2", said)
        self.assertEqual(self.files("out"), [])

    def test_no_value_of_a_query_is_noted_however_addresses_are_shown(self):
        addresses = [self.origin.picture("alpha.png", _token="hunter2"), self.origin.picture("none.jpg", _token="hunter2"),
                     "http://127.0.0.1:1/a?hunter2", "nonsense?a=hunter2"]
        for number, urls in enumerate(([], ["--full-urls"])):
            output, errors = self.run_program("-v", "--json", "--retries=0", "--journal", f"journal{number}", *urls,
                                              "-o", f"out{number}/", *addresses, status=1)
            self.assertEqual((output.decode() + errors).count("hunter2") > 0, bool(urls))
            noted = self.read(f"journal{number}").decode()
            self.assertNotIn("hunter2", noted)
            self.assertEqual([line.split()[0] for line in noted.splitlines()[1:]].count("fail"), 3)
            for shown in ("/none.jpg?_token=…\n", "http://127.0.0.1:1/a?…\n", " nonsense\n"):
                self.assertIn(shown, noted)

    def status(self, address):
        """4 where it parses, and nobody listens there."""
        return 4 if address in ("http://user:hunter2@127.0.0.1:1/a", "http://user:hunter2@127.0.0.1:1") else 1

    def test_what_nobody_sees_is_no_part_of_a_name(self):
        for character in (0x00AD, 0x034F, 0x061C, 0x115F, 0x180E, 0x200B, 0x200D, 0x200E, 0x2028, 0x202E, 0x2060, 0x2066,
                          0x2800, 0x3164, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0x1D173, 0xE0001, 0xE0020, 0xE0100):
            with self.subTest(hex(character)):
                self.run_program("-q", "-o", f"out{character}/", self.origin.picture(
                    "alpha.png", header=f"Content-Disposition:x; filename*=UTF-8''a{self.encoded(character)}b.png"))
                self.assertEqual(self.files(f"out{character}"), ["a_b.png"])
        for character in (0x00E9, 0x0600, 0x0628, 0x3042, 0x1F600):
            self.run_program("-q", "-o", f"out{character}/", self.origin.picture(
                "alpha.png", header=f"Content-Disposition:x; filename*=UTF-8''a{self.encoded(character)}b.png"))
            self.assertEqual(self.files(f"out{character}"), [f"a{chr(character)}b.png"])

    @staticmethod
    def encoded(character):
        return "".join(f"%{byte:02X}" for byte in chr(character).encode())

    def test_json_has_what_nobody_sees_as_escapes(self):
        output, _ = self.run_program("--json", "-o", "a\U000E0001\u200b", self.origin.picture("alpha.png"))
        self.assertIn(b'"path":"a\\udb40\\udc01\\u200b"', output)


if __name__ == "__main__":
    unittest.main()
