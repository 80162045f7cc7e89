"""Files that a request's options name: what is held of them, and what cannot be used."""

import os
import tempfile
from pathlib import Path

import imgdl
from imgdl import Code
from support import PATIENCE, OriginTests

LARGEST = 4 << 20
MIB = 1 << 20
# So many of those differ from one another where no more is held; each takes a little besides.
MOST = (128 * MIB - 1) // LARGEST


def memory():
    """What of the process is in memory, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class FileTests(OriginTests):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.certificate = Path(self.other_origin("--tls", "valid").info["ca_file"]).read_bytes()

    def file(self, name, size=0):
        """Authorities that differ from all others, in a file as large as it is to be."""
        path = self.folder / name
        path.write_bytes((self.certificate + name.encode()).ljust(size, b"\n"))
        return path

    def waiting(self, downloader, path):
        """A request that waits."""
        return downloader.download(self.origin.url("/pictures/palette.png"), body=True, ca_file=str(path))

    def test_requests_that_wait_share_what_they_hold(self):
        with self.downloader() as downloader:
            downloader.suspended = True
            tokens = [self.waiting(downloader, self.file(f"small{number}")) for number in range(70)]
            large = self.file("large", LARGEST)
            before = memory()
            tokens += [self.waiting(downloader, large) for _ in range(100)]
            self.assertLess(memory() - before, 4 * LARGEST)
            for token in tokens:
                token.cancel()

    def test_what_differs_has_a_bound(self):
        with self.downloader() as downloader:
            downloader.suspended = True
            before = memory()
            tokens, refused = [], []
            for number in range(100):
                path = self.file(f"large{number}", LARGEST)
                try:
                    tokens.append(self.waiting(downloader, path))
                except imgdl.Error as error:
                    self.assertEqual(error.code, Code.OUT_OF_MEMORY)
                    self.assertIn(f"ca_file “{path}”", str(error))
                    refused.append(path)
            self.assertEqual((len(tokens), len(refused)), (MOST, 100 - MOST))
            self.assertLess(memory() - before, 128 * MIB + 4 * LARGEST)
            # Whoever has it already, or asks for little, goes on.
            tokens.append(self.waiting(downloader, self.folder / "large0"))
            tokens.append(self.waiting(downloader, self.file("small")))
            for token in tokens:
                token.cancel()
            for token in tokens:
                self.assertCode(Code.CANCELLED, token.result, PATIENCE)
            del token, tokens
            again = self.waiting(downloader, refused[0])
            again.cancel()

    def test_a_child_has_room_of_its_own(self):
        """What the parent holds goes with the parent's threads, which the child has not."""
        with self.downloader() as downloader:
            downloader.suspended = True
            tokens = [self.waiting(downloader, self.file(f"large{number}", LARGEST)) for number in range(MOST)]
            more = self.file("more", LARGEST)
            self.assertCode(Code.OUT_OF_MEMORY, self.waiting, downloader, more)
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    with imgdl.Downloader() as own:
                        own.suspended = True
                        self.waiting(own, more).cancel()
                        status = 0
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertCode(Code.OUT_OF_MEMORY, self.waiting, downloader, more)
            for token in tokens:
                token.cancel()
