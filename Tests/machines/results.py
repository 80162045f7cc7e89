"""What a run in one root came to: kept, compared with the one before, and written as a table."""
import json
import os
import re

# What the table in docs/installing.md has a line for, and the packages that hold it, whatever a release calls them.
LIBRARIES = {
    "glibc": "libc6", "libcurl": "libcurl4(?:t64)?", "libjpeg-turbo": "libjpeg62-turbo", "libpng": "libpng16-16(?:t64)?",
    "libwebp": "libwebp7", "lcms2": "liblcms2-2", "SQLite": "libsqlite3-0", "OpenSSL": "libssl3(?:t64)?",
    "nghttp2": "libnghttp2-14", "zlib": "zlib1g", "brotli": "libbrotli1", "zstd": "libzstd1",
    "libpsl": "libpsl5(?:t64)?", "c-ares": "libc-?ares2", "Python": "python3", "numpy": "python3-numpy",
    "tqdm": "python3-tqdm",
}
FEW = 5
START, END = "<!-- tested: make test-machines writes these lines -->", "<!-- tested: end -->"


def read_versions(listed):
    """From dpkg-query's lines `package version`."""
    there = dict(line.split(" ", 1) for line in listed.splitlines() if " " in line)
    versions = {}
    for library, pattern in LIBRARIES.items():
        for package, version in there.items():
            if version and re.fullmatch(pattern, package):
                versions[library] = version
    return versions


def upstream(version):
    """`1:2.1.5-2+b1` is 2.1.5, and `1.3.dfsg+really1.3.2-4` 1.3.2."""
    return re.sub(r"[-+~.](?:dfsg|ds|deb).*$", "", re.sub(r"-[^-]*$", "", re.sub(r"^(\d+:)?(.*really)?", "", version)))


def read_tests(results, suffix=""):
    """The lines that Tests/run writes: suite, test, end. What a suite came to stands under its own name."""
    tests = {}
    for line in results.splitlines():
        suite, test, end = line.split("\t")
        name = f"{suite}{suffix}: {test}" if test else f"{suite}{suffix}"
        # Several suites may have one name, and several tests.
        tests[name] = "failed" if "failed" in (end, tests.get(name)) else end
    return tests


def load(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save(path, result):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1, sort_keys=True)
    os.rename(path + ".new", path)


def compare(before, now):
    """What differs from the last run, in lines."""
    if before is None:
        return ["the first run here"]
    lines = []
    for library in sorted({*before["versions"], *now["versions"]}):
        old, new = (each["versions"].get(library, "none") for each in (before, now))
        if old != new:
            lines.append(f"{library}: {old} is now {new}")
    came = {}
    for name in sorted({*before["tests"], *now["tests"]}):
        old, new = before["tests"].get(name), now["tests"].get(name)
        if old == new:
            continue
        if new == "failed":
            lines.append(f"fails now: {name}{' (new)' if old is None else ''}")
        elif None in (old, new):
            came.setdefault(("new" if old is None else "vanished", name.split(": ")[0]), []).append(name)
        elif old == "failed":
            lines.append(f"{'mended' if new == 'passed' else 'skipped, and failed before'}: {name}")
        else:
            lines.append(f"{new}, and {old} before: {name}")
    # A suite that broke off lacks hundreds.
    for (what, suite), names in came.items():
        lines += [f"{what}: {name}" for name in names] if len(names) <= FEW else [f"{what}: {len(names)} tests of {suite}"]
    return lines or ["nothing"]


def table(results):
    """The lines between the markers. A root whose tests failed says so."""
    lines = [f"| | {' | '.join(f'Debian {name}' for name in results)} |", f"|---|{'---|' * len(results)}"]
    for library in LIBRARIES:
        lines.append(f"| {library} | "
                     + " | ".join(upstream(result["versions"].get(library, "")) or "–" for result in results.values()) + " |")
    lines.append("| tested | " + " | ".join(result["tried"] for result in results.values()) + " |")
    lines.append("| tests that fail | "
                 + " | ".join(str(result["failed"]) if result["failed"] else "none" for result in results.values()) + " |")
    return "\n".join(lines)


def write_table(path, results):
    """Puts it into the page; says whether that changed it."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    before, start, rest = page.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise SystemExit(f"test-machines: {path} has no lines {START} and {END}")
    changed = f"{before}{START}\n\n{table(results)}\n\n{END}{after}"
    if changed != page:
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed)
    return changed != page
