"""What pyproject.toml cannot say: a wheel contains the library, built already, and so is of one platform.

The library is the one that IMGDL_LIBRARY names, or that of build/lib in the repository.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

# What _native.py looks for beside itself.
INSTALLED_NAME = "libimgdl.so.1"


def built_library():
    given = os.environ.get("IMGDL_LIBRARY")
    path = Path(given) if given else Path(__file__).resolve().parents[2] / "build" / "lib" / "libimgdl.so"
    if not path.is_file():
        raise SystemExit(
            f"imgdl: the library is not there: {path}. Build it (`make library` in the repository), or let "
            "IMGDL_LIBRARY name a libimgdl.so"
        )
    return path


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        # An editable installation uses the library where it was built.
        if not self.editable_mode:
            shutil.copyfile(built_library(), self._installed_library())

    def get_outputs(self, include_bytecode=True):
        return super().get_outputs(include_bytecode) + ([] if self.editable_mode else [self._installed_library()])

    def _installed_library(self):
        return os.path.join(self.build_lib, "imgdl", INSTALLED_NAME)


class PlatformWheel(bdist_wheel):
    def get_tag(self):
        # No extension module: the same for every Python.
        return "py3", "none", super().get_tag()[2]


class PlatformDistribution(Distribution):
    def has_ext_modules(self):
        return True


# Not beside the sources, where what an earlier version left behind would get into the wheel.
scratch = tempfile.mkdtemp(prefix="imgdl-wheel-")
atexit.register(shutil.rmtree, scratch, ignore_errors=True)

setup(
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel},
    distclass=PlatformDistribution,
    options={"build": {"build_base": scratch}, "egg_info": {"egg_base": scratch}},
)
