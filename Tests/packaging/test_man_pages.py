"""The manual pages: whole, well-formed, and the same whenever they are made."""
import os
import re
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAN_PAGES = os.path.join(ROOT, "packaging/man-pages")
HEADER = os.path.join(ROOT, "include/imgdl.h")


def run(*command, **environment):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, **environment))


class ManPageTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="imgdl-man-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        done = run(MAN_PAGES, cls.folder, SOURCE_DATE_EPOCH="86400")
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        cls.pages = {}
        for name in sorted(os.listdir(cls.folder)):
            if not os.path.islink(os.path.join(cls.folder, name)):
                with open(os.path.join(cls.folder, name), encoding="ascii") as file:
                    cls.pages[name] = file.read()

    def test_they_are_well_formed(self):
        written = [path for path in (f"{ROOT}/docs/man/{name}" for name in os.listdir(f"{ROOT}/docs/man"))
                   if path.endswith(".1")]
        made = [os.path.join(self.folder, name) for name in self.pages]
        done = run("mandoc", "-T", "lint", "-W", "warning", *made, *written)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_every_function_and_type_has_a_link_to_the_page_that_tells_of_it(self):
        with open(HEADER, encoding="utf-8") as file:
            code = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
        functions = set(re.findall(r"IMGDL_API\b[^;]*?\b(imgdl_\w+)\s*\(", code))
        types = set(re.findall(r"\}\s*(imgdl_\w+);|typedef [\w ]+\b(imgdl_\w+);|\(\*(imgdl_\w+)\)", code))
        self.assertGreater(len(functions), 100)
        self.assertGreater(len(types), 40)
        for name in functions | {name for names in types for name in names if name}:
            path = os.path.join(self.folder, f"{name}.3")
            self.assertTrue(os.path.islink(path), name)
            page = self.pages[os.readlink(path)]
            # apropos and whatis read this.
            self.assertRegex(page.split(".SH SYNOPSIS")[0], rf"(?m)^{name}(,|\n\\-)", name)
            if name in functions:
                self.assertEqual(sum(text.count(f".SS {name}\n") for text in self.pages.values()), 1, name)

    def test_every_constant_and_field_is_told_of(self):
        with open(HEADER, encoding="utf-8") as file:
            code = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
        everything = "".join(self.pages.values())
        constants = re.findall(r"\b(IMGDL_[A-Z0-9_]+) =", code)
        self.assertGreater(len(constants), 100)
        for name in constants:
            if not name.endswith("FORCE32"):
                self.assertIn(f"\\fB{name} = ", everything)
        for name in ("max_body_bytes", "good_enough_scan", "memory_hits", "user_data"):
            self.assertRegex(everything, rf"\\fB.*\b{name}\b")

    def test_a_page_reads_as_it_should(self):
        done = run("mandoc", "-T", "utf8", os.path.join(self.folder, "imgdl_download.3"))
        text = re.sub(r"\s+", " ", re.sub(".\b", "", done.stdout))
        for words in ("imgdl_token_release - ask for a picture, wait for it, cancel it",
                      "imgdl_status imgdl_download( imgdl_downloader *downloader, const imgdl_request *request, "
                      "imgdl_token **token); Asks for one download. Takes request, read before return;",
                      "Gives *token, one reference; token may be NULL for callers that never cancel or wait."):
            self.assertIn(words, text)
        self.assertIn("Since version 1.0.", text)
        self.assertNotIn("Since:", text)
        self.assertIn("imgdl-errors(3)", text)

    def test_sections_of_the_header_are_named_as_pages(self):
        for name, text in self.pages.items():
            self.assertNotRegex(text, r"(?<!RFC 3986 )\bsections? \d+\b(?!\.)", name)
        self.assertIn("\\fBimgdl-caching\\fR(3)", self.pages["imgdl-events.3"])

    def test_made_again_they_are_the_same(self):
        with tempfile.TemporaryDirectory() as again:
            for _ in range(2):
                self.assertEqual(run(MAN_PAGES, again, SOURCE_DATE_EPOCH="86400").returncode, 0)
            self.assertEqual(sorted(os.listdir(again)), sorted(os.listdir(self.folder)))
            for name, text in self.pages.items():
                with open(os.path.join(again, name), encoding="ascii") as file:
                    self.assertEqual(file.read(), text)
        self.assertIn('.TH imgdl 3 1970-01-02 "imgdl ', self.pages["imgdl.3"])

    def test_what_cannot_be_placed_is_an_error(self):
        with open(HEADER, encoding="utf-8") as file:
            text = file.read()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "imgdl.h")
            other = text.replace(" * 12  Batches", " * 12  Sheaves")
            for changed, words in ((other, "section 12, Sheaves, has no page"),
                                   (text + "\nint unknown[3];\n", "what is this? int unknown[3]"),
                                   (text + "\n/* On nothing. */", "a comment on nothing: On nothing.")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(changed)
                done = run(MAN_PAGES, "--header", path, folder)
                self.assertEqual(done.returncode, 1)
                self.assertIn(words, done.stdout)
            self.assertIn("No such file", run(MAN_PAGES, "--header", path + ".none", folder).stdout)


if __name__ == "__main__":
    unittest.main()
