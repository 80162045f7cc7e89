"""What programs read of annotations: `typing.get_type_hints`, as libraries that check arguments or draw documentation do."""

import inspect
import subprocess
import sys
import typing
import unittest

import imgdl
from support import PATIENCE


def functions_of(name, thing):
    """The thing, and where it is a class its public methods and those with names of Python's, with their names."""
    yield name, thing
    if not inspect.isclass(thing):
        return
    for key in dir(thing):
        member = inspect.getattr_static(thing, key)
        if key.startswith("_") and not key.startswith("__"):
            continue
        if isinstance(member, property):
            given = [member.fget, member.fset]
        else:
            given = [getattr(member, "__func__", member)]
        for function in given:
            # Those of named tuples and of numbers are Python's own.
            if inspect.isfunction(function) and function.__module__.startswith("imgdl"):
                yield f"{name}.{key}", function


ALL = [
    each
    for name in imgdl.__all__
    if callable(getattr(imgdl, name))
    for each in functions_of(name, getattr(imgdl, name))
]


class AnnotationTests(unittest.TestCase):
    def test_all_can_be_read(self):
        names = {name for name, _ in ALL}
        for name in ("decode", "Downloader.download", "Downloader.max_concurrent", "Error.__init__", "Image.to_pil"):
            self.assertIn(name, names)
        for name, thing in ALL:
            for each in [thing, *overloads(thing)]:
                with self.subTest(name):
                    typing.get_type_hints(each)

    def test_they_are_what_they_say(self):
        import asyncio

        from imgdl import _keywords

        hints = typing.get_type_hints(imgdl.Downloader.download)
        self.assertEqual(hints["loop"], typing.Optional[asyncio.AbstractEventLoop])
        self.assertEqual(hints["return"], imgdl.Token[typing.Any])
        self.assertEqual(typing.get_type_hints(imgdl.Error)["image"], typing.Optional[imgdl.Image])
        self.assertIs(typing.get_type_hints(imgdl.Batch.__init__)["downloader"], imgdl.Downloader)
        if sys.version_info >= (3, 11):
            hints = typing.get_type_hints(imgdl.decode)
            self.assertEqual(hints["options"], typing.Unpack[_keywords.DecodeKeywords])
        size = tuple[typing.Optional[int], typing.Optional[int]]
        self.assertEqual(typing.get_type_hints(_keywords.Options)["size"], typing.Optional[size])
        try:
            from PIL.Image import Image
        except ImportError:
            Image = typing.Any
        self.assertEqual(typing.get_type_hints(imgdl.Image.to_pil)["return"], Image)

    def test_nothing_is_imported_for_them_before(self):
        names = {"asyncio", "PIL", "typing_extensions", "imgdl._keywords"}
        program = f"import sys, imgdl; print(*sorted({names!r} & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "\n", ""))


def overloads(thing):
    return typing.get_overloads(thing) if inspect.isfunction(thing) and sys.version_info >= (3, 11) else []


if __name__ == "__main__":
    unittest.main()
