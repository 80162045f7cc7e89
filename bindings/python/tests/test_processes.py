"""Pools of processes, as README.md says."""

import os
import subprocess
import sys
import tempfile
import unittest

from support import PATIENCE, OriginTests

PROGRAM = """
import concurrent.futures
import multiprocessing
import sys

import imgdl


def pixels(url):
    return imgdl.get(url, size=(60, 40)).pixels


def status(url):
    try:
        imgdl.get(url)
    except imgdl.StatusError as error:
        return error


def main():
    method, first, url, missing, stalled = sys.argv[1:]
    context = multiprocessing.get_context(method)
    expected = []
    if first == "after":
        # Threads, connections and a running transfer that the children get nothing of.
        expected = [pixels(url)]
        downloader = imgdl.Downloader()
        token = downloader.download(stalled)
        assert downloader.download(url, size=(60, 40)).result(30).pixels == expected[0]
    with context.Pool(2) as pool:
        got = pool.map(pixels, [url] * 6)
        assert set(got) == set(expected or got[:1]), len(set(got))
        error = pool.apply(status, (missing,))
        assert (type(error), error.http_status) == (imgdl.StatusError, 404), error
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        assert set(executor.map(pixels, [url] * 6)) == set(got)
    if first == "after":
        assert not token.done()
        token.cancel()
        assert token.exception(30).name == "IMGDL_ERROR_CANCELLED"
        downloader.close()
    assert pixels(url) == got[0]
    print("done")


if __name__ == "__main__":
    main()
"""


class ProcessTests(OriginTests):
    def run_program(self, method, first):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w") as file:
                file.write(PROGRAM)
            # That forking is a risk where there are threads is Python's own opinion, from 3.12 on.
            warnings = ["-W", "error", "-W", "ignore:This process:DeprecationWarning"]
            url, missing = self.origin.picture("palette.png"), self.origin.url("/nothing")
            stalled = self.origin.picture("opaque.png", first_byte="never")
            done = subprocess.run(
                [sys.executable, *warnings, path, method, first, url, missing, stalled],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                timeout=2 * PATIENCE,
            )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))

    def test_a_pool_that_forks_before_the_first_download(self):
        self.run_program("fork", "before")

    def test_a_pool_that_forks_while_downloads_run(self):
        self.run_program("fork", "after")

    def test_a_pool_that_spawns(self):
        self.run_program("spawn", "after")

    def test_importing_brings_in_little(self):
        # Each of these costs more than the package itself; asyncio, numpy and Pillow are for those who use them.
        program = """
import sys
before = set(sys.modules)
import imgdl
print(*sorted({"asyncio", "dataclasses", "inspect", "numpy", "PIL", "urllib.parse"} & set(sys.modules) - before))
"""
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (0, "\n"))


if __name__ == "__main__":
    unittest.main()
