"""examples/c/imgdl-fetch: a list of addresses, and what it ends with."""
import json
import tempfile
import unittest

from example import ROOT, Example


class FetchTests(Example, unittest.TestCase):
    command = [f"{ROOT}/build/bin/imgdl-fetch"]

    def fetch(self, *addresses, options=()):
        with tempfile.NamedTemporaryFile("w", prefix="imgdl-fetch-") as file:
            file.write("".join(f"{address}\n" for address in addresses))
            file.flush()
            code, lines, complaints = self.run_to_end("--urls", file.name, *options)
        self.assertEqual(len(lines), 1, complaints)
        return code, json.loads(lines[0]), complaints

    def test_it_ends_with_0_where_all_came(self):
        code, counts, complaints = self.fetch(f"{self.base}/pictures/lossy.webp", f"{self.base}/pictures/opaque.png")
        self.assertEqual((code, complaints), (0, ""))
        self.assertEqual((counts["images"], counts["errors"]), (2, 0))
        self.assertEqual(counts["pixels"], 1200 * 800 + 900 * 600)

    def test_it_ends_with_1_where_any_failed(self):
        opaque = f"{self.base}/pictures/opaque.png"
        for failing in (f"{self.base}/status/404", "nonsense"):
            for options in ((), ("--decode", "0"), ("--concurrency", "1")):
                with self.subTest(failing, options=options):
                    code, counts, complaints = self.fetch(opaque, failing, f"{opaque}?n=2", options=options)
                    self.assertEqual((code, counts["images"], counts["errors"]), (1, 2, 1))
                    self.assertIn("404" if "404" in failing else "not a URL", complaints)

    def test_a_list_that_cannot_be_read_is_an_error(self):
        for name in ("/", "/nowhere/list"):
            with self.subTest(name):
                code, _, complaints = self.run_to_end("--urls", name)
                self.assertEqual(code, 1)
                self.assertIn(f"imgdl-fetch: cannot read {name}: ", complaints)

    def test_its_usage_says_what_may_be_left_out(self):
        for arguments in ((), ("--decode", "1"), ("--urls",), ("--concurrency", "0", "--urls", "/dev/null")):
            with self.subTest(arguments):
                code, lines, complaints = self.run_to_end(*arguments)
                self.assertEqual((code, lines), (2, []))
                self.assertEqual(
                    complaints,
                    "usage: imgdl-fetch --urls FILE [--concurrency N] [--decode 0|1] [--cacert FILE]\n")


if __name__ == "__main__":
    unittest.main()
