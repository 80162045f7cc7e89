"""Root's folder, filled by root and read by others (docs/caching.md, "Security")."""

import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import imgdl
from imgdl import Code
from support import PATIENCE, OriginTests

FRESH = {"header": "Cache-Control:max-age=600"}
NOBODY = 65534
# Asked line by line: which URL; answers with its outcome. Becomes the other user when all is loaded, which that one may not be
# allowed to read.
READER = """
import os, sys, imgdl
imgdl.Cache().close()
os.setgroups([])
os.setresgid(*[int(sys.argv[2])] * 3)
os.setresuid(*[int(sys.argv[2])] * 3)
with imgdl.Cache(sys.argv[1]) as cache, imgdl.Downloader(cache=cache) as downloader:
    for url in sys.stdin:
        try:
            answer = downloader.download(url.strip(), body=True, cache="only").result(60)
            print(answer.response.cache_outcome, len(answer.data), flush=True)
        except imgdl.Error as error:
            print(imgdl.Code(error.code).name, flush=True)
"""


class Reader:
    """Another process that has the folder open, of another user."""

    def __init__(self, directory, user):
        self._process = subprocess.Popen(
            [sys.executable, "-c", READER, str(directory), str(user)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)), text=True)

    def gets(self, url):
        self._process.stdin.write(url + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(PATIENCE)


class FolderTests(OriginTests):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.directory = Path(folder.name) / "cache"
        self.key = self.directory / "key"

    def url(self, name):
        return self.origin.picture("palette.png", n=name, **FRESH)

    def fill(self, *names, **options):
        with imgdl.Cache(self.directory) as cache, self.downloader(cache=cache) as downloader:
            for name in names:
                downloader.download(self.url(name), body=True, **options).result(PATIENCE)
            cache.flush()

    def outcomes(self, *names):
        with imgdl.Cache(self.directory) as cache, self.downloader(cache=cache) as downloader:
            for name in names:
                try:
                    token = downloader.download(self.url(name), body=True, cache="only")
                    yield token.result(PATIENCE).response.cache_outcome
                except imgdl.Error as error:
                    yield Code(error.code).name

    def let_others_read(self):
        subprocess.run(["chmod", "-R", "a+rX", str(self.directory)], check=True)

    def test_letting_others_read_loses_nothing(self):
        self.fill("a", "b")
        key = self.key.read_bytes()
        for _ in range(2):
            self.let_others_read()
            self.assertEqual(list(self.outcomes("a", "b")), ["hit", "hit"])
            self.assertEqual(self.key.read_bytes(), key)
            self.assertEqual(stat.S_IMODE(self.key.stat().st_mode), 0o644)
        self.fill("c")
        self.assertEqual(list(self.outcomes("a", "b", "c")), ["hit", "hit", "hit"])
        self.assertEqual(len(self.origin.requests("/pictures/palette.png")), 3)

    @unittest.skipUnless(os.geteuid() == 0, "root alone can begin a process of another user")
    def test_readers_see_what_is_filled_in_later(self):
        size = len(self.origin.bytes("palette.png"))
        self.fill("a")
        self.let_others_read()
        reader = Reader(self.directory, NOBODY)
        self.addCleanup(reader.close)
        self.assertEqual(reader.gets(self.url("a")), f"hit {size}")
        self.assertEqual(reader.gets(self.url("b")), "NOT_CACHED")
        for name in ("b", "c"):
            self.fill(name)
            self.let_others_read()
            self.assertEqual(reader.gets(self.url(name)), f"hit {size}")
            self.assertEqual(reader.gets(self.url("a")), f"hit {size}")
        later = Reader(self.directory, NOBODY)
        self.addCleanup(later.close)
        self.assertEqual([later.gets(self.url(name)) for name in "abc"], [f"hit {size}"] * 3)

    @unittest.skipUnless(os.geteuid() == 0, "root alone can begin a process of another user")
    def test_without_the_key_nothing_is_found(self):
        self.fill("a")
        self.let_others_read()
        self.key.chmod(0o600)
        reader = Reader(self.directory, NOBODY)
        self.addCleanup(reader.close)
        self.assertEqual(reader.gets(self.url("a")), "NOT_CACHED")


if __name__ == "__main__":
    unittest.main()
