"""The reference says all that the header does, the pages say what the header says, and links lead somewhere."""

from __future__ import annotations

import re
import sys
import tempfile
import unittest
from pathlib import Path

from world import ROOT

sys.path.insert(0, str(ROOT / "packaging/docs"))
import c_header  # noqa: E402
import guide  # noqa: E402
from c_reference import CReference  # noqa: E402
from comment_text import to_html  # noqa: E402
from pages import broken_links, escape, write  # noqa: E402
from python_reference import PythonReference  # noqa: E402

PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
TEXT = (ROOT / "include/imgdl.h").read_text("utf-8")
HEADER = c_header.read(ROOT / "include/imgdl.h")


def header_of(declarations: str) -> c_header.Header:
    rule = "-" * 40
    with tempfile.NamedTemporaryFile("w", suffix=".h") as file:
        file.write(f"/* {rule}\n * 1  Things\n * {rule} */\n\n{declarations}\n")
        file.flush()
        return c_header.read(Path(file.name))


class HeaderTests(unittest.TestCase):
    def test_every_function_has_a_comment(self) -> None:
        self.assertEqual(c_header.problems(HEADER), [])

    def test_nothing_is_left_out(self) -> None:
        bare = re.sub(r"/\*.*?\*/", "", TEXT, flags=re.S)
        functions = re.findall(r"^IMGDL_API [^;]*?\b(imgdl_\w+)\(", bare, re.M)
        self.assertGreater(len(functions), 100)
        self.assertEqual([each.name for each in HEADER.entries if each.kind == "function"], functions)
        names = set(re.findall(r"\b(?:imgdl|IMGDL)_\w+", bare)) - {"IMGDL_H", "IMGDL_API", "IMGDL_CHECKED"}
        self.assertEqual(names - set(HEADER.names()), set())

    def test_function_without_comment(self) -> None:
        header = header_of("/** What. Since 1.0. */\nIMGDL_API void imgdl_a(void);\n\nIMGDL_API void imgdl_b(void);")
        self.assertEqual(c_header.problems(header), ["imgdl_b has no comment right before it"])

    def test_function_that_does_not_say_since_when(self) -> None:
        (problem,) = c_header.problems(header_of("/** What. */\nIMGDL_API void imgdl_a(void);"))
        self.assertIn("since which version", problem)

    def test_function_that_does_not_say_what_it_returns(self) -> None:
        (problem,) = c_header.problems(header_of("/** What. Since 1.0. */\nIMGDL_API imgdl_status imgdl_a(void);"))
        self.assertIn("returns imgdl_status", problem)

    def test_form_that_is_not_known(self) -> None:
        with self.assertRaises(c_header.HeaderError):
            header_of("static int imgdl_a(void);")

    def test_comments_of_members(self) -> None:
        header = header_of(
            "typedef struct imgdl_s {\n    int32_t a;               /* one, and  */\n"
            "                             /* its rest  */\n    /* for two */\n    int32_t b, c;\n    /* some */\n"
            "    int32_t d;               /* behind */\n    /* since 1.1 */\n    void (*e)(int x, void *y);\n"
            "} imgdl_s; /* end of 1.1 */")
        (struct,) = header.entries
        self.assertEqual(
            [(row.names, row.comment) for row in struct.rows],
            [(["a"], "one, and its rest"), (["b", "c"], "for two"), ([], "some"), (["d"], "behind"),
             ([], "Since 1.1"), (["e"], "")])


class PageTests(unittest.TestCase):
    def test_errors_page_has_every_code(self) -> None:
        page = (ROOT / "docs/errors.md").read_text("utf-8")
        said = {int(number): name for number, name in re.findall(r"^\| (\d+) \| ([A-Z0-9_]+) \|", page, re.M)}
        codes = {}
        for number, code in re.findall(r"^ +(IMGDL_OK|IMGDL_ERROR_\w+) = (\d+),", TEXT, re.M):
            codes[int(code)] = re.sub("^IMGDL_(ERROR_)?", "", number)
        self.assertEqual(said, codes)

    def test_errors_page_has_the_classes_of_python(self) -> None:
        """The table names codes, or links to a section for all of its codes that no row names."""
        page = (ROOT / "docs/errors.md").read_text("utf-8")
        source = (ROOT / "bindings/python/imgdl/errors.py").read_text("utf-8")
        classes = dict(re.findall(r"^    Code\.(\w+): (\w+),", source, re.M))
        self.assertGreater(len(classes), 30)
        rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.M)
        for title, section in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page, re.M | re.S):
            for code in re.findall(r"^\| \d+ \| ([A-Z0-9_]+) \|", section, re.M):
                named = [name for name, text in rows if re.search(rf"\b{code}\b", text.partition(", but for")[0])]
                linked = [name for name, text in rows
                          if f"(#{guide.anchor(title)})" in text and not re.search(rf"\b{code}\b", text)]
                said = (named or linked or ["Error"])[0]
                expected = classes.get(code, "Error")
                self.assertEqual(said, "Timeout" if expected == "WaitTimeout" else expected, code)

    def test_security_page_has_the_defaults_of_the_header(self) -> None:
        page = (ROOT / "docs/security.md").read_text("utf-8")
        default = {name: int(value) for name, value in re.findall(r"#define IMGDL_DEFAULT_(\w+) (\d+)u", TEXT)}
        for option, name, shown in [
            ("max_body_bytes", "MAX_BODY_BYTES", f"{default['MAX_BODY_BYTES'] >> 20} MiB"),
            ("max_pixels", "MAX_PIXELS", f"{default['MAX_PIXELS'] // 10**6} million"),
            ("max_frames", "MAX_FRAMES", str(default["MAX_FRAMES"])),
            ("max_scans", "MAX_SCANS", str(default["MAX_SCANS"])),
            ("max_metadata_bytes", "MAX_METADATA_BYTES", f"{default['MAX_METADATA_BYTES'] >> 20} MiB"),
            ("max_memory_bytes", "MAX_MEMORY_BYTES", f"{default['MAX_MEMORY_BYTES'] >> 30} GiB"),
            ("max_decode_ms", "MAX_DECODE_MS", f"{default['MAX_DECODE_MS'] // 1000} s"),
            ("memory_budget", "MEMORY_BUDGET", f"{default['MEMORY_BUDGET'] >> 20} MiB"),
        ]:
            with self.subTest(name):
                self.assertRegex(page, rf"\| {shown}[^|]*\| `{option}` \|")

    def test_limits_without_an_option_are_those_of_the_library(self) -> None:
        """Numbers that the header or the security page says, and that stand in the sources alone."""
        def constant(path: str, name: str) -> int:
            source = (ROOT / "Sources" / path).read_text("utf-8")
            (value,) = re.findall(rf"static let {name}(?:: Int64)? = ([0-9_]+(?: << \d+)?)$", source, re.M)
            number, _, shift = value.replace("_", "").partition(" << ")
            return int(number) << int(shift or 0)

        profile = "ImgdlCodecs/ProfileTags.swift"
        grid, curves = constant(profile, "mostGridNumbers"), constant(profile, "mostCurveNumbers")
        curve, length = constant(profile, "mostTagBytes"), constant("ImgdlCore/Rules/RequestLength.swift", "most")
        page = " ".join((ROOT / "docs/security.md").read_text("utf-8").split())
        header = re.sub(r"\s+\*?\s*", " ", TEXT)
        for sentence in (
            f"a grid of more than {grid:,} numbers", f"curves beside it of more than {curves:,} together",
            f"a curve of more than {curve >> 10} KiB",
        ):
            self.assertIn(sentence, page)
            self.assertIn(sentence, header)
        self.assertIn(f"| {length:,} bytes together |", page)

    def test_pages_name_only_what_there_is(self) -> None:
        """Names of functions, constants and options in the pages, but those with dots in them (IMGDL_ERROR_…)."""
        known = set(HEADER.names())
        found = 0
        for path in PAGES:
            text = path.read_text("utf-8")
            for name in re.findall(r"\b(?:imgdl|IMGDL)_[A-Za-z0-9_]*[A-Za-z0-9](?![…*A-Za-z0-9_])", text):
                with self.subTest(f"{path.name}: {name}"):
                    self.assertTrue(name in known or name in ENVIRONMENT, f"{name} is not in the header")
                found += 1
        self.assertGreater(found, 300)

    def test_pages_name_only_what_there_is_in_short(self) -> None:
        """Constants without IMGDL_, and fields with the struct that they are of."""
        fields = {each.name: {name for row in each.rows for name in row.names} for each in HEADER.entries}
        structs = {"config": "imgdl_config", "request": "imgdl_request", "decode_options": "imgdl_decode_options"}
        names = set(HEADER.names())
        constants = options = 0
        for path in PAGES[1:]:
            text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.M | re.S)
            for name in re.findall(r"\b(?<!IMGDL_)(?:ERROR|REQUEST|DECODE|EVENT|CACHE|CONFIG)_[A-Z_]*[A-Z]\b", text):
                with self.subTest(f"{path.name}: {name}"):
                    self.assertTrue({f"IMGDL_{name}", f"IMGDL_ERROR_{name}"} & names, "it is not in the header")
                constants += 1
            for struct, name in re.findall(r"`(config|request|decode_options)\.(\w+)`", text):
                with self.subTest(f"{path.name}: {struct}.{name}"):
                    self.assertIn(name, fields[structs[struct]])
                options += 1
        self.assertGreater(constants, 20)
        self.assertGreater(options, 5)

    def test_links_between_pages(self) -> None:
        """Without the program that makes pages of them: `make docs` looks at the pages themselves."""
        found = 0
        for path in [*PAGES, *(ROOT / "bindings").glob("*/README.md")]:
            for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8")):
                if target.startswith(("http://", "https://")):
                    continue
                file, _, anchor = target.partition("#")
                there = (path.parent / file).resolve() if file else path
                with self.subTest(f"{path.name}: {target}"):
                    self.assertTrue(there.exists(), "it is not there")
                    found += 1
                    if anchor:
                        headings = re.findall(r"^#+ (.*)$", there.read_text("utf-8"), re.M)
                        self.assertIn(anchor, [guide.anchor(heading) for heading in headings])
        self.assertGreater(found, 60)


# What programs and the build read, and is no part of the header.
ENVIRONMENT = {"IMGDL_LIBRARY", "IMGDL_LIB_DIR", "IMGDL_ORIGIN", "IMGDL_PICTURES", "IMGDL_1"}


class GeneratorTests(unittest.TestCase):
    def test_python_reference_has_every_export(self) -> None:
        reference = PythonReference(ROOT / "bindings/python/imgdl", "1.1.0")
        self.assertEqual(reference.problems(), [])
        downloader = next(entry for entry in reference.entries if entry.name == "Downloader")
        download = next(each for each in downloader.members if each.name == "download")
        self.assertTrue(download.signature.startswith("download(url: str, *, body: bool=False"))

    def test_export_without_docstring(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / "__init__.py", 'from .a import B, c\n\n__all__ = ["B", "c"]\n')
            write(Path(folder) / "a.py", "class B:\n    def d(self): ...\n    def _e(self): ...\n\ndef c():\n    'What.'\n")
            found = PythonReference(Path(folder), "1.0").problems()
            self.assertEqual(found, ["imgdl.B has no docstring", "imgdl.B.d has no docstring"])

    def test_references_have_no_broken_links(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            CReference(HEADER, "1.1.0").write(Path(folder) / "c")
            PythonReference(ROOT / "bindings/python/imgdl", "1.1.0").write(Path(folder) / "python")
            for name in ("index.html", "style.css", "rust/imgdl/index.html"):
                write(Path(folder) / name, "")
            self.assertEqual(broken_links(Path(folder)), [])
            decoding = (Path(folder) / "c/decoding.html").read_text("utf-8")
            self.assertIn('<a href="errors.html#IMGDL_ERROR_TRUNCATED">TRUNCATED</a>', decoding)

    def test_broken_links_are_found(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            text = '<h1 id="x">A</h1><h2 id="x">B</h2><a href="b.html"></a><a href="#y"></a>'
            write(Path(folder) / "a.html", text)
            expected = [
                "a.html: the anchor x is there twice",
                "a.html: b.html is not there",
                "a.html: #y: there is no such heading",
            ]
            self.assertEqual(broken_links(Path(folder)), expected)

    def test_text_of_comments(self) -> None:
        lines = ["A < b.", "", "    code", "", "term      what it is", "          and more", "two_words,", "long",
                 "          below"]
        html = to_html(lines, escape)
        self.assertEqual(
            html, "<p>A &lt; b.</p>\n<pre>code</pre>\n"
            "<dl><dt>term</dt><dd>what it is and more</dd><dt>two_words, long</dt><dd>below</dd></dl>")


if __name__ == "__main__":
    unittest.main()
