"""What is yes or no is True or False: nothing else that counts as true, such as "no" of a settings' file."""

import asyncio
import contextlib
import inspect
import unittest

import imgdl
from imgdl import _native, _options
from support import PATIENCE, OriginTests, png

try:
    import numpy
except ImportError:
    numpy = None

WRONG = ("no", "false", "True", "", 0, 1, 1.0, None, [], {"session": "abc"})
# Options that a call needs before the one that is tried means anything.
NEEDS = {"decode": {"body": True}, "stretch": {"size": (3, 4)}}


def booleans(table):
    """The names of the options that may be True or False, from the table that all calls go by."""
    return [name for name, kind in table.__annotations__.items() if "bool" in kind]


def wrong_values(table, name):
    """None is the default of `decode`, and `scale_down` may be a number of bytes."""
    also = {"bool": (), "Optional[bool]": (type(None),), "Union[bool, int]": (int,)}[table.__annotations__[name]]
    return [value for value in WRONG if not isinstance(value, also)]


def flags(table, **options):
    """Of the struct that the library is given."""
    struct = table(**options)
    if table is _options._template and struct.decode:
        return struct.flags, struct.decode.contents.flags
    return struct.flags


class TableTests(OriginTests):
    TABLES = (_options.config, _options._template, _options.decode_options)

    def setUp(self):
        super().setUp()
        self.url = self.origin.picture("opaque.png")
        self.data = png(1, 1, [[1, 2, 3, 255]])

    def assertRefused(self, name, value, call, *arguments, **options):
        with self.subTest(name, value=value), self.assertRaises(TypeError) as raised:
            call(*arguments, **{**NEEDS.get(name, {}), **options, name: value})
        self.assertRegex(str(raised.exception), f"^{name} must be .*, not {type(value).__name__}")

    def test_every_table_has_some(self):
        for table, one in zip(self.TABLES, ("require_tls_1_3", "allow_invalid_certificates", "salvage")):
            self.assertIn(one, booleans(table))

    def test_downloaders(self):
        with self.downloader() as downloader:
            for name in booleans(_options.config):
                for value in wrong_values(_options.config, name):
                    self.assertRefused(name, value, imgdl.Downloader)
                    self.assertRefused(name, value, downloader.reconfigure)

    def test_downloads(self):
        with self.downloader() as downloader:
            # Its options are kept for the next one, and are not those of another type.
            downloader.download(self.url, body=True).result(PATIENCE)
            for table in (_options._template, _options.decode_options):
                for name in booleans(table):
                    for value in wrong_values(table, name):
                        self.assertRefused(name, value, downloader.download, self.url)
                        self.assertRefused(name, value, imgdl.get, self.url)
            self.assertEqual(downloader.current_count, 0)

    def test_decoding(self):
        for name in booleans(_options.decode_options):
            for value in wrong_values(_options.decode_options, name):
                self.assertRefused(name, value, imgdl.decode, self.data)
                self.assertRefused(name, value, imgdl.Decoder)

    def test_lists_and_streams(self):
        with self.downloader() as downloader:
            for name in booleans(_options._template):
                self.assertRefused(name, "no", downloader.map, [self.url])
                self.assertRefused(name, "no", downloader.amap, [self.url])
                own = {**NEEDS.get(name, {}), name: "no"}
                with self.assertRaisesRegex(TypeError, f"^{name} must be True or False, not str"):
                    downloader.prefetch([(self.url, own)])
                # One of a list alone ends none of the others.
                refused, other = downloader.map([(self.url, own), self.url])
                with self.assertRaisesRegex(TypeError, f"^{name} must be True or False, not str"):
                    refused.result()
                self.assertEqual(other.result().width, 900)

        async def stream(**options):
            async with imgdl.Downloader() as downloader:
                async with contextlib.aclosing(downloader.stream(self.url, **options)):
                    self.fail("it streams")

        self.assertRefused("salvage", "no", lambda **options: asyncio.run(stream(**options)))

    def test_cookies_say_where_those_of_the_program_go(self):
        with self.downloader() as downloader, self.assertRaises(TypeError) as raised:
            downloader.download(self.url, cookies={"session": "abc"})
        self.assertEqual(
            str(raised.exception),
            'cookies must be True or False, not dict; cookies of yours go into headers={"Cookie": …}',
        )

    def test_true_is_another_thing_than_false(self):
        for table in self.TABLES:
            for name in booleans(table):
                with self.subTest(name):
                    given = [flags(table, **{**NEEDS.get(name, {}), name: value}) for value in (False, True)]
                    self.assertNotEqual(*given)

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_those_of_numpy_are_as_good_as_its_numbers(self):
        for table in self.TABLES:
            for name in booleans(table):
                for value in (False, True):
                    with self.subTest(name, value=value):
                        both = ({**NEEDS.get(name, {}), name: each} for each in (value, numpy.bool_(value)))
                        mine, theirs = (flags(table, **options) for options in both)
                        self.assertEqual(mine, theirs)
        with self.downloader() as downloader:
            url = self.origin.url("/echo")
            self.assertTrue(downloader.download(url, body=numpy.True_).result(PATIENCE).data)
            image = downloader.download(self.url, body=numpy.False_, scale_down=numpy.False_).result(PATIENCE)
            self.assertEqual(image.width, 900)


class MethodTests(OriginTests):
    """Arguments that are in no table."""

    def test_all_of_them(self):
        url = self.origin.picture("opaque.png")
        with self.downloader() as downloader:
            batch = downloader.prefetch([url])
            calls = {
                "Downloader.download(body)": lambda value: downloader.download(url, body=value),
                "Downloader.get(body)": lambda value: asyncio.run(downloader.get(url, body=value)),
                "Downloader.prefetch(keeps_priority)": lambda value: downloader.prefetch([url], keeps_priority=value),
                "Downloader.map(body)": lambda value: downloader.map([url], body=value),
                "Downloader.map(ordered)": lambda value: downloader.map([url], ordered=value),
                "Downloader.map(progress)": lambda value: downloader.map([url], progress=value),
                "Downloader.amap(body)": lambda value: downloader.amap([url], body=value),
                "Downloader.amap(ordered)": lambda value: downloader.amap([url], ordered=value),
                "Downloader.amap(progress)": lambda value: downloader.amap([url], progress=value),
                "Downloader.invalidate(cancel)": lambda value: downloader.invalidate(cancel=value),
                "Downloader.suspended(value)": lambda value: setattr(downloader, "suspended", value),
                "Batch.paused(value)": lambda value: setattr(batch, "paused", value),
            }
            # `get` takes it among its options.
            self.assertEqual(self.found() | {"Downloader.get(body)"}, calls.keys())
            for name, call in calls.items():
                for value in WRONG:
                    with self.subTest(name, value=value), self.assertRaisesRegex(
                        TypeError, f"must be True or False, not {type(value).__name__}"
                    ):
                        call(value)
            self.assertFalse(downloader.suspended)
            self.assertFalse(batch.paused)
            self.assertEqual(batch.wait(PATIENCE).failed, 0)

    def found(self):
        """Every argument of a public method that is annotated as one."""
        found = set()
        for owner in vars(imgdl).values():
            if not inspect.isclass(owner) or not owner.__module__.startswith("imgdl"):
                continue
            for name, member in vars(owner).items():
                function = member.fset if isinstance(member, property) else member
                if name.startswith("_") or not inspect.isfunction(function):
                    continue
                for argument, parameter in inspect.signature(function).parameters.items():
                    if "bool" in str(parameter.annotation).split("[")[0]:
                        found.add(f"{owner.__name__}.{name}({argument})")
        return found


if __name__ == "__main__":
    unittest.main()
