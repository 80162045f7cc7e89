"""docs/architecture.md names what there is: functions and types of the sources, files, and tests."""

from __future__ import annotations

import re
import unittest

from world import ROOT

PAGE = (ROOT / "docs/architecture.md").read_text("utf-8")
SOURCES = {path: path.read_text("utf-8") for path in (ROOT / "Sources").rglob("*.swift")}
RULE_TESTS = (ROOT / "Tests/ImgdlCoreTests/Rules").glob("*.swift")
# Names of the C interface, of the sources, and of what plays with the rules.
WORDS = set(re.findall(r"\w+", " ".join(
    [*SOURCES.values(), *(path.read_text("utf-8") for path in RULE_TESTS),
     (ROOT / "include/imgdl.h").read_text("utf-8")])))


def cells(page: str) -> list[list[str]]:
    """The rows of the table of states."""
    table = page.split("## Who owns the end of a request")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines() if line.startswith("| ")]
    return rows[1:]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def swift_tests() -> set[str]:
    """Module.Class.function of each."""
    found = set()
    for path in (ROOT / "Tests").glob("Imgdl*Tests/**/*.swift"):
        module = path.relative_to(ROOT / "Tests").parts[0]
        of = ""
        for line in path.read_text("utf-8").splitlines():
            declared = re.search(r"\b(?:class|extension) (\w+Tests)\b", line)
            of = declared[1] if declared else of
            function = re.match(r"\s*func (test\w+)\(", line)
            if function:
                found.add(f"{module}.{of}.{function[1]}")
    return found


def c_tests() -> set[str]:
    """Suite: text of each, as the program prints it."""
    found = set()
    for path in (ROOT / "Tests/c").glob("*.c"):
        text = path.read_text("utf-8")
        for suite in re.findall(r'^#define SUITE "([^"]+)"', text, re.M):
            found |= {f"{suite}: {title}" for title in re.findall(r'^TEST(?:_WITHIN)?\([^"\n]*"([^"]+)"\)', text, re.M)}
    return found


TESTS = swift_tests() | c_tests()


def problems(page: str) -> list[str]:
    rows = cells(page)
    wrong = [f"{row[0]}: has {len(row)} cells" for row in rows if len(row) != 5]
    for row in rows:
        files = re.findall(r"[\w+]+\.swift", row[3])
        wrong += [f"{row[0]}: names no file"] if not files else []
        tests = quoted(row[4])
        wrong += [f"{row[0]}: names no test"] if not tests else []
        wrong += [f"{test}: there is no such test" for test in tests if test not in TESTS]
    known = {path.name for path in SOURCES}
    wrong += [f"{name}: there is no such file" for name in re.findall(r"[\w+]+\.swift", page) if name not in known]
    told = {test for row in rows for test in quoted(row[-1])}
    names = (name for span in quoted(page) if span not in told and not span.endswith(".swift")
             for name in re.findall(r"[A-Za-z_]\w{2,}", span) if span not in TESTS)
    # A call of C that a row shortens, as _shutdown.
    return wrong + [f"{name}: is nowhere in the sources" for name in names
                    if name not in WORDS and f"imgdl_downloader{name}" not in WORDS]


class ArchitectureTests(unittest.TestCase):
    def test_it_names_what_there_is(self) -> None:
        self.assertEqual(problems(PAGE), [])
        self.assertGreaterEqual(len(cells(PAGE)), 14)
        self.assertGreaterEqual(sum(len(quoted(row[4])) for row in cells(PAGE)), 30)

    def test_what_is_not_there_is_found(self) -> None:
        row = "| it waits | the engine | nothing | `Engine.swift` | `ImgdlCoreTests.TrapTests.testASecondEndOfARequestTraps` |"
        page = f"`Outstanding.complete`\n## Who owns the end of a request\n| state | a | b | c | d |\n|---|\n{row}\n\n## Event\n"
        self.assertEqual(problems(page), [])
        for there, gone, said in (
            ("testASecondEndOfARequestTraps", "testNothing", "there is no such test"),
            ("Engine.swift", "Motor.swift", "there is no such file"),
            ("Outstanding.complete", "Outstanding.finishOff", "is nowhere in the sources"),
            ("`Engine.swift`", "`Engine`", "names no file"),
            (row[row.index("`Imgdl"):-2], "none", "names no test"),
        ):
            with self.subTest(gone):
                self.assertRegex(" ".join(problems(page.replace(there, gone))), said)


if __name__ == "__main__":
    unittest.main()
