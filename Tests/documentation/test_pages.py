"""`make docs` as it is: the pages are written, and what is broken fails."""

from __future__ import annotations

import re
import sys
import tempfile
import unittest
from pathlib import Path

from world import BUILD, ROOT, tool

sys.path.insert(0, str(ROOT / "packaging/docs"))
from guide import Guide  # noqa: E402
from pages import broken_links  # noqa: E402


class VersionsTests(unittest.TestCase):
    """docs/versions.md: the tests of the transport look up there what they are to expect."""

    def test_the_list_is_short_and_has_sources(self) -> None:
        text = (ROOT / "docs/versions.md").read_text("utf-8")
        rows = [[cell.strip() for cell in line.strip("|").split("|")]
                for line in text.splitlines() if re.match(r"\| [a-z0-9-]+ \|", line)][1:]
        self.assertIn(len(rows), range(1, 11))
        self.assertEqual(len({row[0] for row in rows}), len(rows))
        for name, _, version, what, source in rows:
            self.assertRegex(version, r"^\d+\.\d+(\.\d+)?$", name)
            self.assertGreater(len(what), 20, name)
            self.assertRegex(source, r"\]\(https://", name)

    def test_pixels_that_differ_are_in_a_table(self) -> None:
        table = (ROOT / "Tests/ImgdlCodecsTests/Support/PixelsByVersion.swift").read_text("utf-8")
        rows = re.findall(r'path: "([^"]+)", library: "([^"]+)",\s*version: "([^"]+)", sha256: "([0-9a-f]{64})"', table)
        self.assertEqual(len(rows), table.count("Row(\n"))
        for path in {row[0] for row in rows}:
            self.assertGreaterEqual(len({row[3] for row in rows if row[0] == path}), 2, path)


class MakeDocsTests(unittest.TestCase):
    def test_make_docs(self) -> None:
        rust = BUILD / "rust-docs"
        status, said = tool("cargo", "doc", "--offline", "--no-deps", "--quiet", folder=ROOT / "bindings/rust",
                            RUSTDOCFLAGS="-D warnings", CARGO_TARGET_DIR=str(rust))
        self.assertEqual(status, 0, said)
        with tempfile.TemporaryDirectory() as folder:
            pages = Path(folder) / "docs"
            status, said = tool(ROOT / "packaging/docs/build", pages, rust / "doc")
            self.assertEqual(status, 0, said)
            first = (pages / "index.html").read_text("utf-8")
            for name in ("overview.html", "concepts.html", "errors.html", "c/index.html", "python/index.html"):
                self.assertIn(name, first)
                self.assertTrue((pages / name).is_file())
            # They work without network and without scripts.
            ours = [page for page in pages.rglob("*.html") if "rust" not in page.relative_to(pages).parts]
            self.assertGreater(len(ours), 30)
            for page in ours:
                text = page.read_text("utf-8")
                self.assertNotIn("<script", text)
                self.assertEqual(re.findall(r'<(?:link|img)[^>]*"https?:', text), [], page)

    def test_page_with_a_broken_link(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "root"
            (root / "docs").mkdir(parents=True)
            (root / "docs/README.md").write_text("# A\n\n[b](b.md#c), [c](c.md), [d](../d.txt), [e](../e)\n", "utf-8")
            (root / "docs/b.md").write_text("# B\n\n<!-- code: run -->\n```sh\ntrue\n```\n", "utf-8")
            (root / "d.txt").write_text("1 < 2\n", "utf-8")
            (root / "e").mkdir()
            (root / "e/f.c").write_text("int f;\n", "utf-8")
            pages = Path(folder) / "pages"
            Guide(root, ["docs/README.md", "docs/b.md"], "1.0").write(pages)
            found = [problem for problem in broken_links(pages) if not re.search("style.css|/index.html is", problem)]
            self.assertEqual(
                found, ["index.html: b.html#c: there is no such heading", "index.html: c.md is not there"])
            self.assertNotIn("code: run", (pages / "b.html").read_text("utf-8"))
            self.assertIn("1 &lt; 2", (pages / "source/d.txt.html").read_text("utf-8"))
            self.assertIn("int f;", (pages / "source/e/f.c.html").read_text("utf-8"))

    def test_page_without_title(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "a.md").write_text("Text.\n", "utf-8")
            with self.assertRaisesRegex(SystemExit, "a.md has no title"):
                Guide(Path(folder), ["a.md"], "1.0").write(Path(folder) / "pages")


if __name__ == "__main__":
    unittest.main()
