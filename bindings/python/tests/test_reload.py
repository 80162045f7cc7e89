"""importlib.reload: refused, and nothing has happened."""

import importlib
import os
import pkgutil
import subprocess
import sys
import unittest

import imgdl
import imgdl.aio
from support import PATIENCE, OriginTests

# In the order of their names; what nothing has imported yet as well.
NAMES = ["imgdl", *(f"imgdl.{module.name}" for module in pkgutil.iter_modules(imgdl.__path__))]


class ReloadTests(OriginTests):
    def test_no_module_is_loaded_again(self):
        downloader = self.downloader()
        gate = self.origin.gate()
        token = downloader.download(self.origin.picture("palette.png", hold_head=1, gate=gate.name))
        self.assertGreater(len(NAMES), 30)
        for name in NAMES:
            module = importlib.import_module(name)
            before = dict(vars(module))
            with self.subTest(name):
                for _ in range(2):
                    with self.assertRaises(ImportError) as caught:
                        importlib.reload(module)
                    self.assertEqual(caught.exception.name, name)
                    self.assertIn("once", str(caught.exception))
                self.assertIs(sys.modules[name], module)
                # What Python knows of the file it has looked up again. What refuses is defined again first.
                before.pop("refuse_reload", None)
                changed = [key for key in before if not key.startswith("__") and vars(module).get(key) is not before[key]]
                self.assertEqual(changed, [])
        # As IPython's autoreload does it.
        for name in NAMES:
            module = sys.modules[name]
            before = dict(vars(module))
            with self.subTest(name):
                try:
                    vars(module).clear()
                    vars(module).update({key: before[key] for key in ("__name__", "__loader__", "__spec__", "__package__")})
                    with self.assertRaises(ImportError):
                        importlib.reload(module)
                finally:
                    vars(module).update(before)
        gate.open()
        self.assertGreater(token.result(PATIENCE).width, 0)
        self.assertEqual(imgdl.decode(self.origin.bytes("palette.png")).width, token.result().width)
        with self.assertRaises(imgdl.Error):
            imgdl.decode(b"no picture")

    def test_an_import_that_failed_may_be_made_again(self):
        program = """
import importlib, os, sys
os.environ["IMGDL_LIBRARY"], library = "/missing/libimgdl.so", os.environ["IMGDL_LIBRARY"]
for _ in range(2):
    try:
        import imgdl
    except ImportError as problem:
        assert "once" not in str(problem), problem
    else:
        raise AssertionError("it was found")
os.environ["IMGDL_LIBRARY"] = library
import imgdl
print(imgdl.Image.create(1, 1, bytes(4)).width)
"""
        from imgdl import _native

        done = subprocess.run(
            [sys.executable, "-c", program],
            env=dict(os.environ, IMGDL_LIBRARY=_native.library_path),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "1\n", ""))


if __name__ == "__main__":
    unittest.main()
