"""What each kind of suite prints: how many tests passed, failed and were skipped, and which."""
import re


def count_plain(text):
    """Our own harnesses: `N passed, N failed, N skipped`."""
    found = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", text, re.M)
    return tuple(map(int, found[-1])) if found else None


def count_xctest(text):
    found = re.findall(r"Executed (\d+) tests?, with (?:(\d+) tests? skipped and )?(\d+) failures?", text)
    if not found:
        return None
    ran, skipped = int(found[-1][0]), int(found[-1][1] or 0)
    # A test may fail more than once; the tests themselves are counted.
    failed = len(set(re.findall(r"^Test Case '(.+)' failed", text, re.M)))
    return ran - skipped - failed, failed, skipped


def count_unittest(text):
    ran = re.findall(r"^Ran (\d+) tests? in", text, re.M)
    end = re.findall(r"^(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$", text, re.M)
    if not ran or not end:
        return None
    parts = dict(re.findall(r"([a-z ]+)=(\d+)", end[-1]))
    number = {name.strip(): int(value) for name, value in parts.items()}
    failed = number.get("failures", 0) + number.get("errors", 0) + number.get("unexpected successes", 0)
    skipped = number.get("skipped", 0)
    return int(ran[-1]) - failed - skipped, failed, skipped


def count_cargo(text):
    found = re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", text, re.M)
    return tuple(sum(int(result[i]) for result in found) for i in range(3)) if found else None


# How each of them names a test and its end.
NAMES = {
    count_plain: r"^(?P<end>ok|FAIL|skip) +(?P<test>.*?)(?: \([\d.]+ s\))?$",
    count_xctest: r"^Test Case '(?P<test>.+)' (?P<end>passed|failed|skipped) \(",
    count_unittest: r"^(?P<test>\w+ \([\w.]+\))(?:\n.*?)?? \.\.\. .*?(?P<end>ok|skipped|FAIL|ERROR|expected failure)\b",
    count_cargo: r"^test (?P<test>.+) \.\.\. (?P<end>ok|FAILED|ignored)",
}
ENDS = dict({"skip": "skipped", "skipped": "skipped", "ignored": "skipped"},
            **dict.fromkeys(("ok", "passed", "expected failure"), "passed"))


def name_tests(count, text):
    """What each test came to; the last word counts, and of a test that has several ends the worst."""
    tests = {}
    for found in re.finditer(NAMES[count], text, re.M):
        end = ENDS.get(found["end"], "failed")
        tests[found["test"]] = "failed" if "failed" in (end, tests.get(found["test"])) else end
    # A unittest's line can be torn by what the test prints.
    if count is count_unittest:
        tests.update(dict.fromkeys(re.findall(r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))", text, re.M), "failed"))
    return tests


def summarize_failures(count, text):
    """A line for each test that failed, and for what failed around tests, as a class's set-up; a unittest's says why."""
    if count is not count_unittest:
        return [test for test, end in name_tests(count, text).items() if end == "failed"]
    blocks = re.findall(r"^(?:FAIL|ERROR): ([^\n]+)\n(?:[^\n]+\n)?-{70}\n(.+?)\n\n", text, re.M | re.S)
    return [f"{test}: {reason.splitlines()[-1][:300]}" for test, reason in blocks]
