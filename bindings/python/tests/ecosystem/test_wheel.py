"""Wheels: what `make wheel` and `make wheel-bundled` built, installed where nothing else is."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support import PATIENCE, ROOT, OriginTests  # noqa: E402

WHEELS = ROOT / "build" / "wheels"

# What the library is linked with, but for the C and C++ runtimes.
LINKED = ("libcurl", "libjpeg", "libpng", "libwebp", "liblcms2", "libsqlite3", "libssl", "libcrypto", "libz",
          "libbrotlidec", "libzstd", "libpsl", "libcares")

PROGRAM = """
import asyncio, imgdl, sys
url, secure, trust, folder = sys.argv[1:]
assert imgdl._native.library_path.startswith(folder), imgdl._native.library_path
image = imgdl.get(url)
with imgdl.Downloader() as downloader:
    assert downloader.download(url).result(60).pixels == image.pixels
async def main():
    async with imgdl.Downloader() as downloader:
        return await downloader.get(url)
assert asyncio.run(main()).pixels == image.pixels
assert imgdl.get(secure, ca_file=trust).pixels == image.pixels
try:
    raise AssertionError(imgdl.get(secure))
except imgdl.NetworkError as error:
    assert error.name == "IMGDL_ERROR_TLS_CERTIFICATE", error
with open("/proc/self/maps") as maps:
    loaded = sorted({line.split()[-1] for line in maps if ".so" in line})
print(image.width, image.height, *loaded)
"""


def clean_environment():
    """Nothing of this repository."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("IMGDL_", "PYTHON")) and name not in ("LD_LIBRARY_PATH", "LIBRARY_PATH", "VIRTUAL_ENV")
    }


class WheelTests(OriginTests):
    def run_in(self, folder, *command):
        done = subprocess.run(
            command, cwd=folder, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=10 * PATIENCE,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def installed(self, folder):
        """A wheel into an environment of its own, without the network; what a program prints there."""
        wheels = list(folder.glob("imgdl-*.whl"))
        self.assertEqual(len(wheels), 1, f"{folder} has {wheels}: `make wheel wheel-bundled` makes them")
        with tempfile.TemporaryDirectory() as place:
            self.run_in(place, sys.executable, "-m", "venv", "environment")
            python = f"{place}/environment/bin/python"
            pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
            self.run_in(place, *pip, "install", "--no-index", str(wheels[0]))
            secure = self.other_origin("--tls", "valid")
            urls = [origin.picture("opaque.png") for origin in (self.origin, secure)]
            program = [python, "-W", "error", "-c", PROGRAM, *urls, secure.info["ca_file"], place]
            printed = self.run_in(place, *program).split()
            self.run_in(place, *pip, "uninstall", "--yes", "imgdl")
            self.assertEqual(list(Path(place).glob("environment/lib/python*/site-packages/imgdl*")), [])
        self.assertEqual(printed[:2], ["900", "600"])
        loaded = [path for path in printed[2:] if os.path.basename(path).startswith(LINKED)]
        return wheels[0].name, loaded

    def test_the_wheel_runs_in_a_clean_environment(self):
        name, loaded = self.installed(WHEELS)
        self.assertRegex(name, r"^imgdl-[0-9.]+-py3-none-linux_\w+\.whl$")
        self.assertEqual([path for path in loaded if "imgdl" in path], [])

    def test_the_bundled_wheel_brings_its_libraries(self):
        name, loaded = self.installed(WHEELS / "bundled")
        self.assertRegex(name, r"^imgdl-[0-9.]+-py3-none-manylinux_\w+\.whl$")
        # Python's own ssl module has the system's beside them, and every manylinux system has zlib: it is not brought.
        others = [path for path in loaded if "imgdl.libs" not in path and not re.search("lib(ssl|crypto|z)[.]so", path)]
        self.assertEqual(others, [])
        brought = [path for path in loaded if "imgdl.libs" in path]
        self.assertLessEqual({name for name in LINKED if not any(name in path for path in brought)}, {"libz"})

    def test_what_is_in_a_wheel(self):
        (wheel,) = WHEELS.glob("imgdl-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
        sources = {f"imgdl/{path.name}" for path in (ROOT / "bindings/python/imgdl").glob("*.py")}
        packaged = {name for name in names if name.startswith("imgdl/")}
        self.assertEqual(packaged, sources | {"imgdl/py.typed", "imgdl/libimgdl.so.1"})

    def test_without_a_library_there_is_no_wheel(self):
        with tempfile.TemporaryDirectory() as place:
            done = subprocess.run(
                [sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "--no-build-isolation",
                 "--no-deps", "--wheel-dir", place, str(ROOT / "bindings/python")],
                env=dict(clean_environment(), IMGDL_LIBRARY=f"{place}/libimgdl.so"),
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=10 * PATIENCE,
            )
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("the library is not there", done.stdout)
            self.assertIn("make library", done.stdout)
            self.assertEqual(os.listdir(place), [])


if __name__ == "__main__":
    unittest.main()
