import os
import subprocess
import sys
import unittest

from support import PATIENCE, ROOT, OriginTests


class ExampleTests(OriginTests):
    def run_example(self, name, *arguments):
        path = [str(ROOT / "bindings/python"), os.environ.get("PYTHONPATH", "")]
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path), PYTHONIOENCODING="utf-8")
        return subprocess.run(
            [sys.executable, "-W", "error", str(ROOT / "examples/python" / name), *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=PATIENCE,
        )

    def test_fetch(self):
        done = self.run_example("fetch.py", self.origin.picture("opaque.png"), self.origin.picture("lossy.webp"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("900 × 600   png", done.stdout)
        self.assertIn("1200 × 800   webp", done.stdout)
        done = self.run_example("fetch.py", self.origin.url("/nothing"))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("404", done.stderr)

    def test_progressive(self):
        done = self.run_example("progressive.py", self.origin.picture("progressive.jpg"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("1280 × 853 jpeg, progressive", done.stdout)
        self.assertIn("▀", done.stdout)

    def test_aio(self):
        done = self.run_example("aio.py", self.origin.picture("opaque.png"), self.origin.url("/nothing"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("900 × 600   png", done.stdout)
        self.assertIn("404", done.stdout)


if __name__ == "__main__":
    unittest.main()
