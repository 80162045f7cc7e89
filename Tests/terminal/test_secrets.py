"""Passwords, wherever they stand in what may be no address, and characters that nobody sees."""
import unittest

from program import ProgramTests


class SecretTests(ProgramTests):
    ADDRESSES = [
        "http:/user:hunter2@127.0.0.1:1/a", "http:user:hunter2@127.0.0.1:1/a", "http:///user:hunter2@127.0.0.1:1/a",
        "http:\\\\user:hunter2@127.0.0.1:1/a", "http:/\\user:hunter2@127.0.0.1:1/a", "HTTP:////user:hunter2@127.0.0.1:1/a",
        "user:hunter2@127.0.0.1:1/a", "//user:hunter2@127.0.0.1:1/a", "http://user:hunter2/x@127.0.0.1:1/a",
        "http://user:hunter2?x@127.0.0.1:1/a", "http://user:hunter2#x@127.0.0.1:1/a", "http://user:hunter2\\x@127.0.0.1:1/a",
        "http://user:hunter2@x@127.0.0.1:1/a", "http://user:hunter2@127.0.0.1:99999/a", "http://user:hunter2@[::1/a",
        "ftp://user:hunter2/x@127.0.0.1/a", "x://user:hunter2@127.0.0.1:1/a", "hunter2:hunter2@127.0.0.1:1/a",
        "user:hunter2@127.0.0.1/a?next=http://b", "http://user:hunter2@127.0.0.1:1", "http://user:hunter2@",
        " http://user:hunter2@127.0.0.1:1/a", "http://us er:hunter2@127.0.0.1:1/a", "http://user:hunter2@127.0.0.1:1/\x01",
    ]

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
