"""Tests/run with suites that are stand-ins: those that run at once, those that fail, and Ctrl-C."""
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/Tests")

import counting  # noqa: E402

select_swift_tests = runpy.run_path(f"{ROOT}/Tests/swift-tests")["select"]

SUITE = 'Suite("{name}", "", ["sh", "-c", "{script}"], count_plain, lane={lane!r})'
PASSES = "echo 1 passed, 0 failed, 0 skipped"
STAYS = "echo is here; exec sleep 60"


class RunTests(unittest.TestCase):
    def start(self, *suites):
        """`suites` are (name, script, lane)."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        tests = os.path.join(folder.name, "Tests")
        os.mkdir(tests)
        shutil.copy(f"{ROOT}/Tests/counting.py", tests)
        with open(f"{ROOT}/Tests/run", encoding="utf-8") as file:
            text = file.read()
        end = "sys.exit(main())\n"
        self.assertTrue(text.endswith(f"\n{end}"))
        made = ", ".join(SUITE.format(name=name, script=script, lane=lane) for name, script, lane in suites)
        program = os.path.join(tests, "run")
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"{text.removesuffix(end)}USUAL = [{made}]\n{end}")
        # In a group of its own, as a terminal would start it.
        process = subprocess.Popen([sys.executable, program, "-v"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   start_new_session=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def test_lines_of_suites_that_run_at_once_have_their_names(self):
        process = self.start(("alone", PASSES, None), ("a", PASSES, "group/x"), ("b", PASSES, "group/y"))
        lines = process.communicate(timeout=60)[0].splitlines()
        self.assertEqual(process.returncode, 0, lines)
        for line in ("1 passed, 0 failed, 0 skipped", "a: 1 passed, 0 failed, 0 skipped", "b: 1 passed, 0 failed, 0 skipped"):
            self.assertEqual(lines.count(line), 1, lines)
        self.assertEqual(lines[-1], "3 passed, 0 failed, 0 skipped")

    def test_the_end_names_what_failed(self):
        script = "echo FAIL a stand-in: all is wrong '(0.1 s)'; echo 0 passed, 1 failed, 0 skipped; exit 1"
        process = self.start(("a", PASSES, None), ("b", script, None))
        lines = process.communicate(timeout=60)[0].splitlines()
        self.assertEqual(process.returncode, 1, lines)
        self.assertEqual(lines[-2:], ["failed in b: a stand-in: all is wrong", "1 passed, 1 failed, 0 skipped"])

    def test_a_unittest_that_failed_is_named_with_its_reason(self):
        said = f"""{"=" * 70}
ERROR: tearDownClass (test_a.ATests)
{"-" * 70}
Traceback (most recent call last):
  File "test_a.py", line 7, in remove
OSError: [Errno 39] Directory not empty: 'a'

{"=" * 70}
FAIL: test_b (test_a.ATests.test_b) [c]
{"-" * 70}
Traceback (most recent call last):
AssertionError: 1 != 2

{"-" * 70}
Ran 2 tests in 0.1s

FAILED (failures=1, errors=1)
"""
        self.assertEqual(counting.summarize_failures(counting.count_unittest, said), [
            "tearDownClass (test_a.ATests): OSError: [Errno 39] Directory not empty: 'a'",
            "test_b (test_a.ATests.test_b) [c]: AssertionError: 1 != 2"])

    def test_swift_tests_are_chosen_by_name_and_whole_classes_by_theirs(self):
        names = ["A.OneTests/testA", "A.OneTests/testB", "A.TwoTests/testA", "B.OneTests/testA"]
        for pattern, skipped, chosen in (
                ("", None, ["A.OneTests", "A.TwoTests", "B.OneTests"]), ("^A[.]", None, ["A.OneTests", "A.TwoTests"]),
                ("testB|TwoTests", None, ["A.OneTests/testB", "A.TwoTests"]),
                ("^A[.]", "testB", ["A.OneTests/testA", "A.TwoTests"]), ("C", None, [])):
            with self.subTest(pattern=pattern, skipped=skipped):
                self.assertEqual(select_swift_tests(names, pattern, skipped), chosen)

    def test_nothing_begins_after_ctrl_c(self):
        process = self.start(
            ("a", STAYS, "group/x"), ("b", STAYS, "group/y"), ("c", PASSES, "group/x"), ("d", PASSES, "group/y"),
            ("e", PASSES, None))
        lines = []
        while not {"a: is here\n", "b: is here\n"} <= set(lines):
            lines.append(process.stdout.readline())
            self.assertTrue(lines[-1], lines)
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=60)[0]
        self.assertEqual(process.returncode, -signal.SIGINT, said)
        for name in "ab":
            self.assertRegex(said, rf"(?m)^FAIL {name}: .*: it was interrupted$")
        for name in "cde":
            self.assertNotIn(f"==   {name}", said)
        self.assertEqual(said.splitlines()[-1], "interrupted")


if __name__ == "__main__":
    unittest.main()
