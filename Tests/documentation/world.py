"""What the examples run in: an origin with pictures, a folder that is theirs, and the tools that compile them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
PATIENCE = 120

PICTURES = {
    "picture.jpg": "progressive.jpg",
    "picture.png": "opaque.png",
    "picture.webp": "lossy.webp",
    "animation.webp": "animated.webp",
    "photo@2x.png": "alpha.png",
}


class World:
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        pictures = self.folder / "pictures"
        subprocess.run([os.environ.get("IMGDL_PICTURES", BUILD / "bin/imgdl-pictures"), pictures], check=True)
        for name, drawn in PICTURES.items():
            shutil.copy(pictures / drawn, pictures / name)
        self._origin = subprocess.Popen(
            [os.environ.get("IMGDL_ORIGIN", BUILD / "bin/imgdl-origin"), "--root", pictures, "--until-eof"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._origin.stdout is not None
        self.address = self._origin.stdout.readline().split()[-1] + "/pictures/"

    def end(self) -> None:
        assert self._origin.stdin is not None and self._origin.stdout is not None
        self._origin.stdin.close()
        self._origin.stdout.close()
        self._origin.wait()
        self._folder.cleanup()

    def home(self, name: str) -> Path:
        """A folder for one example."""
        home = self.folder / name
        home.mkdir()
        return home

    def local(self, text: str, home: Path) -> str:
        """The text with the addresses of this machine."""
        return text.replace("https://example.org/", self.address).replace("/home/me/", f"{home}/")

    def remote(self, text: str, home: Path) -> str:
        """And back, for what a program prints."""
        return text.replace(self.address, "https://example.org/").replace(f"{home}/", "/home/me/")

    def run(self, command: list[str | Path], home: Path) -> subprocess.CompletedProcess[str]:
        environment = dict(
            os.environ,
            HOME=str(home),
            no_proxy="127.0.0.1",
            NO_PROXY="127.0.0.1",
            PATH=f"{BUILD / 'bin'}:{os.environ['PATH']}",
            LD_LIBRARY_PATH=str(BUILD / "lib"),
            IMGDL_LIBRARY=str(BUILD / "lib/libimgdl.so"),
            PYTHONPATH=str(ROOT / "bindings/python"),
            PYTHONIOENCODING="utf-8",
        )
        return subprocess.run(
            command, cwd=home, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, encoding="utf-8", errors="replace", timeout=PATIENCE)


def tool(*command: str | Path, folder: Path = ROOT, **environment: str) -> tuple[int, str]:
    """Runs a compiler: its status, and what it says."""
    done = subprocess.run(
        command, cwd=folder, env=dict(os.environ, **environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", timeout=5 * PATIENCE)
    return done.returncode, done.stdout


def agrees(expected: str, given: str) -> bool:
    """Whether a text is the expected one, where … stands for anything."""
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, given.strip(), re.S) is not None
