"""mypy --strict: the package, and a program that uses it as its documentation says, also where neither Pillow nor numpy
is known."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]

PROGRAM = """
from __future__ import annotations

import imgdl
from typing_extensions import assert_type


def sign(request: imgdl.Outgoing, next: imgdl.Continuation) -> imgdl.Outgoing:
    return request.with_header("Authorization", "a token")


def show(token: imgdl.Token[imgdl.Image], image: imgdl.Image) -> None:
    print(token.url, image.ready.height)


def synchronous(url: str, urls: list[str]) -> None:
    assert_type(imgdl.get(url), imgdl.Image)
    assert_type(imgdl.get(url, body=True), imgdl.Body)
    with imgdl.Downloader(retries=imgdl.Retry(3), hooks=imgdl.Hooks(modify_request=sign)) as downloader:
        token = downloader.download(url, size=(256, None), on_partial=show, priority="high")
        assert_type(token, imgdl.Token[imgdl.Image])
        assert_type(token.result(30), imgdl.Image)
        assert_type(token.exception(), "BaseException | None")
        assert_type(downloader.download(url, body=True).result().data, bytes)
        for each in downloader.map(urls, ordered=False, progress=True, pixel_format="rgb8"):
            assert_type(each.result(), imgdl.Image)
        for body in downloader.map([(url, {"priority": "low"})], body=True):
            assert_type(body.result(), imgdl.Body)
    image = imgdl.decode(b"", all_frames=True)
    image.save("picture.png")
    assert_type(image.view, memoryview)
    assert_type(image.frames[0].duration_ms, int)
    assert_type(imgdl.trim("caches"), int)


async def load(transfer: imgdl.Transfer) -> None:
    assert_type(transfer.try_body(b""), bool)
    await transfer.abody(bytearray())


async def asynchronous(url: str) -> None:
    async with imgdl.Downloader(cache=imgdl.Cache("folder")) as downloader:
        assert_type(await downloader.get(url), imgdl.Image)
        assert_type(await downloader.get(url, body=True), imgdl.Body)
        assert_type(await downloader.download(url), imgdl.Image)
        async with downloader.stream(url, partial_interval=0.2) as stream:
            async for image in stream:
                assert_type(image, imgdl.Image)
            stream.token.cancel()
        async for each in downloader.amap([url], ordered=False):
            assert_type(each.result(), imgdl.Image)
"""

MISTAKES = """
import imgdl

imgdl.get("url", sise=(1, 1))
imgdl.Downloader(max_concurent=3)
imgdl.Downloader().download("url", retries="three")
imgdl.get("url", body=True).width
imgdl.decode("text")
imgdl.trim("chaches")
"""


class TypeTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cache = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cache.cleanup)
        cls.cache = cache.name

    def mypy(self, *arguments, folder=None):
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--no-color-output", "--cache-dir", self.cache, *arguments],
            cwd=folder,
            env=dict(environment, MYPYPATH=str(PACKAGE)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def check_program(self, text, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "program.py").write_text(text)
            return self.mypy(*arguments, "program.py", folder=folder)

    def test_the_package(self):
        for version in ("3.10", f"3.{sys.version_info[1]}"):
            done = self.mypy("--python-version", version, "-p", "imgdl", folder=PACKAGE)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_program(self):
        done = self.check_program(PROGRAM)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_program_that_knows_no_other_package(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "program.py").write_text(PROGRAM)
            done = self.mypy("--no-site-packages", "program.py", folder=folder)
        errors = [line for line in done.stdout.splitlines() if "program.py" in line]
        self.assertEqual(errors, [], done.stdout)

    def test_mistakes_are_found(self):
        done = self.check_program(MISTAKES)
        lines = {int(line.split(":")[1]) for line in done.stdout.splitlines() if "error:" in line}
        self.assertEqual(lines, {4, 5, 6, 7, 8, 9}, done.stdout)


if __name__ == "__main__":
    unittest.main()
