"""What the documentation shows runs: the examples in docstrings, and the programs in README.md."""

import asyncio
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import imgdl
from support import PATIENCE, Origin, OriginTests

README = Path(imgdl.__file__).parents[1] / "README.md"
MODULES = [importlib.import_module(f"imgdl.{module.name}") for module in pkgutil.iter_modules(imgdl.__path__)]
# That forking is a risk where there are threads is Python's own opinion, from 3.12 on.
WARNINGS = ["-W", "error", "-W", "ignore:This process:DeprecationWarning"]
# Run by `make test-ecosystem`.
NEEDS_PILLOW = "imgdl.image.Image.to_pil"


def start(test):
    test.origin = Origin()
    test.folder = tempfile.TemporaryDirectory()
    url = test.origin.picture("opaque.png")
    test.globs.update(
        imgdl=imgdl,
        asyncio=asyncio,
        url=url,
        urls=[test.origin.picture("opaque.png", n=n) for n in range(3)],
        data=test.origin.bytes("opaque.png"),
        animation=test.origin.bytes("animated.gif"),
        folder=test.folder.name,
    )


def stop(test):
    test.folder.cleanup()
    test.origin.stop()


def examples():
    finder = doctest.DocTestFinder()
    for module in [imgdl, *MODULES]:
        for test in finder.find(module, globs={}):
            if test.examples:
                yield test


def load_tests(loader, tests, pattern):
    for test in examples():
        if test.name != NEEDS_PILLOW:
            tests.addTest(doctest.DocTestCase(test, setUp=start, tearDown=stop))
    return tests


class DocumentationTests(OriginTests):
    def test_what_has_examples(self):
        names = {test.name for test in examples()}
        for name in ("imgdl", "imgdl.downloader.get", "imgdl.decode.decode", "imgdl.hooks.Hooks", "imgdl.cache.Cache"):
            self.assertIn(name, names)
        for name in ("download", "prefetch", "map", "stream", "get", "stats"):
            self.assertIn(f"imgdl.downloader.Downloader.{name}", names)
        self.assertIn(NEEDS_PILLOW, names)

    def test_everything_public_is_documented(self):
        bare = []
        for name in imgdl.__all__:
            thing = getattr(imgdl, name)
            if inspect.isclass(thing) and thing.__module__.startswith("imgdl"):
                members = [
                    (f"{name}.{key}", value)
                    for key, value in vars(thing).items()
                    if not key.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
                ]
                bare += [key for key, value in members if not inspect.getdoc(value)]
            if not inspect.getdoc(thing):
                bare.append(name)
        self.assertEqual(bare, [])

    def test_the_readme(self):
        programs = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)
        self.assertGreater(len(programs), 4)
        url = self.origin.picture("opaque.png")
        for program in programs:
            program = program.replace("https://example.org/picture.jpg", url)
            done = subprocess.run(
                [sys.executable, "-X", "dev", *WARNINGS, "-c", program],
                cwd=self.folder(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                timeout=PATIENCE,
            )
            # The bar, where tqdm is installed; and what asyncio says of a step of less than a second.
            said = re.sub(r"^(?: *\d+%\|.*|Executing <.* took 0[.]\d+ seconds)?\n", "", done.stderr, flags=re.M)
            self.assertEqual((done.returncode, said), (0, ""), program)

    def folder(self):
        if not hasattr(self, "_folder"):
            self._folder = tempfile.TemporaryDirectory()
            self.addCleanup(self._folder.cleanup)
            (Path(self._folder.name) / "picture.jpg").write_bytes(self.origin.bytes("opaque.png"))
        return self._folder.name


if __name__ == "__main__":
    unittest.main()
