"""What `make test-machines` says of roots that are stand-ins here, and the table of versions in docs/installing.md."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import re
import sys
import tempfile
import unittest
import unittest.mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "Tests/machines"), os.path.join(ROOT, "Tests")]

import counting  # noqa: E402
import results  # noqa: E402

loader = importlib.machinery.SourceFileLoader("machines_run", os.path.join(ROOT, "Tests/machines/run"))
machines = importlib.util.module_from_spec(importlib.util.spec_from_loader("machines_run", loader))
loader.exec_module(machines)

LISTED = "libc6 2.41-12\nlibcurl4t64 8.14.1-2+deb13u1\nlibjpeg62-turbo 1:2.1.5-4\nlibpng16-16t64 1.6.48-1\nlibgone \n"


class StandIn:
    """A root whose commands end as told: name of the step -> (status, text, results)."""

    def __init__(self, folder, ends):
        self.name, self.ends, self.logs, self.clone = "13", ends, os.path.join(folder, "logs"), os.path.join(folder, "clone")
        self.ran = []

    def prepare(self):
        if "prepare" in self.ends:
            raise machines.Unprepared("apt-get: status 100\nno network")

    def take(self, clone):
        return clone

    def run(self, name, command, **_):
        self.ran.append(name)
        status, text, *lines = self.ends.get(name, (0, ""))
        if lines:
            logs = os.path.join(self.clone, "build/test-logs")
            os.makedirs(logs, exist_ok=True)
            with open(os.path.join(logs, "results"), "w", encoding="utf-8") as file:
                file.write(lines[0])
        return status, text


class MachineTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def machine(self, ends):
        return machines.Machine(StandIn(self.folder, ends))

    def call(self, method, *arguments, **options):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            method(*arguments, **options)
        return said.getvalue()

    def test_a_green_root(self):
        machine = self.machine({"make test": (0, "x\n5 passed, 0 failed, 1 skipped\n", "c\t\tpassed\nc\ta: b\tpassed\n")})
        self.call(machine.whole, may_lack_toolchain=True)
        self.assertEqual(machine.sums, [7, 0, 1])
        self.assertEqual(machine.tests, {"make run": "passed", "make test": "passed", "c": "passed", "c: a: b": "passed"})
        self.assertEqual(machine.tried, ["all"])

    def test_tests_that_fail(self):
        machine = self.machine({"make test": (2, "4 passed, 1 failed, 0 skipped\n", "c\t\tfailed\nc\ta\tfailed\n")})
        said = self.call(machine.whole, may_lack_toolchain=True)
        self.assertEqual(machine.sums, [5, 2, 0])
        self.assertEqual(machine.tests["c: a"], "failed")
        self.assertIn("FAIL 13: make test", said)

    def test_a_suite_that_ran_nothing(self):
        machine = self.machine({"make test": (0, "nothing was said\n")})
        self.call(machine.whole, may_lack_toolchain=True)
        self.assertEqual(machine.tests["make test"], "failed")

    def test_old_results_are_not_taken_for_new_ones(self):
        machine = self.machine({"make test": (0, "1 passed, 0 failed, 0 skipped\n", "c\told\tpassed\n")})
        self.call(machine.whole, may_lack_toolchain=True)
        machine = self.machine({"make test": (2, "broken\n")})
        self.call(machine.whole, may_lack_toolchain=True)
        self.assertNotIn("c: old", machine.tests)

    def test_a_build_that_fails(self):
        machine = self.machine({"make run": (2, "error: no such module\n")})
        self.call(machine.whole, may_lack_toolchain=True)
        self.assertEqual(machine.tests, {"make run": "failed"})
        self.assertNotIn("make test", machine.root.ran)

    def test_a_toolchain_that_does_not_start(self):
        for said in ("setup: the Swift toolchain does not start here: swift: libxml2.so.2\n",
                     "setup: these packages are missing, and this machine's archives do not give them: libxml2 gcc\n"):
            machine = self.machine({"make run": (2, said)})
            self.call(machine.whole, may_lack_toolchain=True)
            self.assertEqual((machine.tests, machine.sums), ({}, [0, 0, 0]))
            self.call(machine.whole, may_lack_toolchain=False)
            self.assertEqual(machine.tests, {"make run": "failed"})

    def test_what_was_built_elsewhere_has_a_name_of_its_own(self):
        machine = self.machine({"suites built on Debian 12": (0, "1 passed, 0 failed, 0 skipped\n", "c\ta\tpassed\n")})
        self.call(machine.built_elsewhere, machine.root.clone)
        self.assertEqual(machine.tests["c (built on 12): a"], "passed")

    def test_a_root_that_cannot_be_prepared(self):
        self.addCleanup(setattr, machines, "MACHINES", machines.MACHINES)
        machines.MACHINES = self.folder
        for ends, status, kept in (({"prepare": ()}, False, None), (
                {"make test": (0, "1 passed, 0 failed, 0 skipped\n", "c\ta\tpassed\n"),
                 "suites built on Debian 12": (0, "1 passed, 0 failed, 0 skipped\n", "c\ta\tpassed\n")}, True, [6, 0, 0])):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                sums, is_well = machines.run_root(StandIn(self.folder, ends), StandIn(self.folder, {}), "a commit")
            self.assertEqual(is_well, status, said.getvalue())
            result = results.load(os.path.join(self.folder, "results/13.json"))
            self.assertEqual(result and [result["passed"], result["failed"], result["skipped"]], kept)
            self.assertEqual(sums, kept or [0, 1, 0])
        self.assertIn("what differs from the last run:\n       the first run here", said.getvalue())

    def test_what_was_built_is_known_only_if_it_was(self):
        for ends, is_known in (({}, True), ({"make run": (2, "no")}, False), ({"prepare": ()}, False)):
            with unittest.mock.patch.object(machines, "BUILT", os.path.join(self.folder, "built")), \
                    unittest.mock.patch.object(machines, "MACHINES", self.folder), \
                    unittest.mock.patch.object(machines.Machine, "readme"), \
                    unittest.mock.patch.object(machines.Machine, "bare"), \
                    contextlib.redirect_stdout(io.StringIO()):
                root = StandIn(self.folder, ends)
                root.name, root.copy = "12", lambda: None
                machines.run_root(root, root, "a commit")
            self.assertEqual(os.path.exists(os.path.join(self.folder, "built")), is_known, ends)

    def test_sentences_that_are_expected(self):
        text = "setup: these packages are missing\nmake: *** [Makefile:1: run] Error 1\n"
        machine = self.machine({"a": (2, text), "b": (0, text), "c": (2, "no such file\n")})
        for name in "abc":
            self.call(machine.expect, name, "make", "packages are missing", "Error 1")
        self.assertEqual(machine.tests, {"a": "passed", "b": "failed", "c": "failed"})

    def test_a_root_that_does_not_exist(self):
        with self.assertRaisesRegex(SystemExit, "no root is called 11; there are 12, 13, sid"):
            machines.choose(["11"])
        self.assertEqual(machines.choose(["sid", "12"]), ["12", "sid"])
        self.assertEqual(machines.choose([]), ["12", "13", "sid"])


class CompareTests(unittest.TestCase):
    def compare(self, before, now, versions=({}, {})):
        return results.compare({"tests": before, "versions": versions[0]}, {"tests": now, "versions": versions[1]})

    def test_what_differs(self):
        before = {"c: a": "passed", "c: b": "failed", "c: c": "passed", "c: d": "passed", "c: e": "passed"}
        now = {"c: a": "failed", "c: b": "passed", "c: d": "skipped", "c: e": "passed", "c: f": "passed", "c: g": "failed"}
        self.assertEqual(self.compare(before, now), [
            "fails now: c: a", "mended: c: b", "skipped, and passed before: c: d", "fails now: c: g (new)",
            "vanished: c: c", "new: c: f"])

    def test_versions(self):
        self.assertEqual(self.compare({}, {}, ({"libcurl": "8.1", "glibc": "2"}, {"libcurl": "8.2", "glibc": "2"})),
                         ["libcurl: 8.1 is now 8.2"])

    def test_nothing(self):
        self.assertEqual(self.compare({"c": "passed"}, {"c": "passed"}), ["nothing"])
        self.assertEqual(results.compare(None, {"tests": {}, "versions": {}}), ["the first run here"])

    def test_a_suite_that_vanished(self):
        self.assertEqual(self.compare({f"c: {i}": "passed" for i in range(40)}, {}), ["vanished: 40 tests of c"])

    def test_a_result_that_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results/13.json")
            self.assertIsNone(results.load(path))
            results.save(path, {"tests": {"c: ä": "passed"}})
            self.assertEqual(results.load(path), {"tests": {"c: ä": "passed"}})


class NameTests(unittest.TestCase):
    def test_of_each_kind(self):
        for count, text, tests in (
            (counting.count_plain, "ok   a: b (0.01 s)\nFAIL c\nskip d\n1 passed, 1 failed, 1 skipped\n",
             {"a: b": "passed", "c": "failed", "d": "skipped"}),
            (counting.count_xctest, "Test Case 'A.b' started at 1\nTest Case 'A.b' passed (1 seconds)\n"
             "Test Case 'A.c' failed (1 seconds)\n", {"A.b": "passed", "A.c": "failed"}),
            (counting.count_unittest, "test_a (m.C.test_a) ... ok\ntest_b (m.C.test_b)\nIts words. ... FAIL\n"
             "test_c (m.C.test_c) ... torn\nERROR: test_c (m.C.test_c)\ntest_d (m.C.test_d) ... skipped 'no'\n",
             {"test_a (m.C.test_a)": "passed", "test_b (m.C.test_b)": "failed", "test_c (m.C.test_c)": "failed",
              "test_d (m.C.test_d)": "skipped"}),
            (counting.count_cargo, "test a::b ... ok\ntest c ... FAILED\ntest d ... ignored\n",
             {"a::b": "passed", "c": "failed", "d": "skipped"}),
        ):
            self.assertEqual(counting.name_tests(count, text), tests)


class TableTests(unittest.TestCase):
    def test_versions_whatever_a_release_calls_the_packages(self):
        versions = results.read_versions(LISTED)
        self.assertEqual(versions, {"glibc": "2.41-12", "libcurl": "8.14.1-2+deb13u1", "libjpeg-turbo": "1:2.1.5-4",
                                    "libpng": "1.6.48-1"})
        self.assertEqual(results.upstream("1:2.1.5-4"), "2.1.5")
        self.assertEqual(results.upstream("2.14+dfsg-1+deb12u1"), "2.14")
        self.assertEqual(results.upstream("3.0.20-1~deb12u2"), "3.0.20")
        self.assertEqual(results.upstream("1:1.3.dfsg+really1.3.2-4"), "1.3.2")
        self.assertEqual(results.upstream("1:1.2.13.dfsg-1"), "1.2.13")

    def test_writing_it(self):
        result = {"versions": results.read_versions(LISTED), "tried": "all", "failed": 0}
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.md")
            with open(page, "w", encoding="utf-8") as file:
                file.write(f"before\n{results.START}\nold\n{results.END}\nafter\n")
            self.assertTrue(results.write_table(page, {"13": result, "sid": dict(result, failed=3)}))
            self.assertFalse(results.write_table(page, {"13": result, "sid": dict(result, failed=3)}))
            with open(page, encoding="utf-8") as file:
                text = file.read()
            self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text)
            self.assertIn("| | Debian 13 | Debian sid |\n|---|---|---|\n| glibc | 2.41 | 2.41 |\n", text)
            self.assertIn("| tests that fail | none | 3 |", text)
            with open(page, "w", encoding="utf-8") as file:
                file.write("no lines for it\n")
            with self.assertRaisesRegex(SystemExit, "has no lines"):
                results.write_table(page, {"13": result})

    def test_the_page(self):
        with open(os.path.join(ROOT, "docs/installing.md"), encoding="utf-8") as file:
            page = file.read()
        rows = page.partition(results.START)[2].partition(results.END)[0].strip().splitlines()
        self.assertRegex(rows[0], r"^\|( \| Debian (12|13|sid)){1,3} \|$")
        columns = rows[0].count("Debian")
        self.assertEqual(rows[1], "|" + "---|" * (columns + 1))
        self.assertEqual([row.split(" | ")[0].lstrip("| ") for row in rows[2:]],
                         [*results.LIBRARIES, "tested", "tests that fail"])
        for row in rows[2:-2]:
            self.assertRegex(row, r"^\| [\w-]+( \| (\d[\w.]*|–)){%d} \|$" % columns)


if __name__ == "__main__":
    unittest.main()
