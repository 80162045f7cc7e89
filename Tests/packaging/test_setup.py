"""packaging/setup: what it installs, what it leaves alone, and what it says where it cannot. The machine's apt-get, dpkg and
Swift are stand-ins that do as each test says, on a PATH that has nothing else."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SWIFT = "https://www.swift.org/install/linux"

LIST = """# A comment.
build  alpha
build  newer|older
build  tool       command -v tool
run    beta-dev
built  only
"""

# apt-get writes down how it was called, and plans what the file `plan` says.
STAND_INS = {
    "swift": """[ ! -e "$HERE/swift-fails" ] || { cat "$HERE/swift-fails" >&2; exit 127; }
        echo "Swift Package Manager - Swift $(cat "$HERE/swift-version")" """,
    "id": 'echo "$WHO"',
    "dpkg-query": 'echo "gone deinstall ok config-files"; sed "s/$/ install ok installed/" "$HERE/installed"',
    "apt-cache": """[ "$1" = show ] || exit 2; shift
        for package; do case $package in --*) continue ;; esac
            grep -qx "$package" "$HERE/archive" || exit 100
            echo "Package: $package"; grep "^Source-$package:" "$HERE/archive" | sed 's/-[^:]*//'
        done""",
    "apt-get": """echo "$(id -u) $*" >> "$HERE/calls"
        case "$*" in
            *update*) [ ! -e "$HERE/offline" ] ;;
            -s*) cat "$HERE/plan"; [ ! -e "$HERE/refused" ] ;;
            *install*) [ ! -e "$HERE/offline" ] || { echo "E: Failed to fetch" >&2; exit 100; } ;;
        esac""",
    "sudo": """case $1 in -n) [ ! -e "$HERE/password" ] || exit 1; shift ;; esac; WHO=0 exec "$@" """,
}
TOOLS = ["sh", "grep", "sed", "awk", "tr", "cat", "dirname", "mktemp", "rm", "head", "true", "env"]


class SetupTests(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="imgdl setup ")
        self.addCleanup(shutil.rmtree, self.folder)
        self.programs = os.path.join(self.folder, "bin")
        os.mkdir(self.programs)
        os.mkdir(os.path.join(self.folder, "packaging"))
        shutil.copy(os.path.join(ROOT, "packaging/setup"), os.path.join(self.folder, "packaging/setup"))
        self.write("packaging/debian-packages", LIST)
        for name in TOOLS:
            os.symlink(shutil.which(name), os.path.join(self.programs, name))
        for name, text in STAND_INS.items():
            self.write(f"bin/{name}", f"#!/bin/sh\n{text}\n")
            os.chmod(os.path.join(self.programs, name), 0o755)
        self.write("installed", "")
        self.write("calls", "")
        self.write("swift-version", "6.3.1")
        self.write("archive", "alpha\nnewer\nolder\ntool\nbeta-dev\nbeta\nstranger\nSource-beta-dev: beta\n")
        self.write("plan", "Inst alpha (1 Debian [amd64])\nInst beta-dev (2 Debian [amd64])\n")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def remove(self, program):
        os.remove(os.path.join(self.programs, program))

    def calls(self):
        with open(os.path.join(self.folder, "calls"), encoding="utf-8") as file:
            return file.read().splitlines()

    def setup(self, *arguments, who="0"):
        # /usr/sbin and /sbin, which setup adds, have none of these programs.
        return subprocess.run([os.path.join(self.folder, "packaging/setup"), *arguments], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={"PATH": self.programs, "HERE": self.folder, "WHO": who})

    def line(self, *packages):
        return "    apt-get install --no-install-recommends " + " ".join(packages)

    def assert_ends(self, done, status, *sentences):
        self.assertEqual(done.returncode, status, done.stdout)
        for sentence in sentences:
            self.assertIn(sentence, done.stdout)

    def test_nothing_is_missing(self):
        self.write("installed", "alpha\nnewer\ntool\n")
        done = self.setup("build", who="1000")
        self.assert_ends(done, 0)
        self.assertEqual((done.stdout, self.calls()), ("", []))

    def test_what_is_missing_is_said_and_installed(self):
        self.write("installed", "newer\n")
        done = self.setup("build", "run")
        self.assert_ends(done, 0, "setup: installing alpha tool beta-dev\n")
        self.assertEqual(len(self.calls()), 3, self.calls())
        update, plan, install = self.calls()
        self.assertIn("update", update)
        for call in (plan, install):
            self.assertTrue(call.endswith(" alpha tool beta-dev"), call)
            self.assertIn("--no-remove", call)
        self.assertTrue(install.startswith("0 "))

    def test_what_is_there_is_not_named(self):
        self.write("installed", "alpha\nolder\n")
        self.setup("build")
        self.assertTrue(self.calls()[-1].endswith(" tool"), self.calls())

    def test_what_was_removed_is_missing(self):
        self.write("packaging/debian-packages", "build  gone\n")
        self.assert_ends(self.setup("--check", "build"), 1, "missing: gone\n")

    def test_what_is_held_at_its_version_is_there(self):
        self.write("bin/dpkg-query", '#!/bin/sh\nfor name in alpha newer tool; do echo "$name hold ok installed"; done\n')
        self.assert_ends(self.setup("--check", "build"), 0)

    def test_a_purpose_is_a_word(self):
        for purpose in (".*", "b.ild", "#", "buil", ""):
            self.assert_ends(self.setup("--check", purpose), 1, "no purpose")

    def test_a_program_from_elsewhere(self):
        self.write("bin/tool", "#!/bin/sh\n")
        os.chmod(os.path.join(self.programs, "tool"), 0o755)
        self.write("installed", "alpha\nnewer\n")
        self.assert_ends(self.setup("build"), 0)
        self.assertEqual(self.calls(), [])

    def test_the_name_that_the_release_has(self):
        self.write("archive", "alpha\nolder\ntool\n")
        self.assert_ends(self.setup("--check", "build"), 1, self.line("alpha", "older", "tool"))

    def test_check_installs_nothing(self):
        done = self.setup("--check", "build", "run")
        self.assert_ends(done, 1, "these packages are missing: alpha newer tool beta-dev\n",
                         '`make setup PURPOSES="build run"`', self.line("alpha", "newer", "tool", "beta-dev"))
        self.assertEqual(self.calls(), [])

    def test_check_with_everything_there(self):
        self.write("installed", "alpha\nnewer\ntool\n")
        done = self.setup("--check", "build")
        self.assert_ends(done, 0)
        self.assertEqual(done.stdout, "")

    def test_without_root_and_sudo(self):
        self.remove("sudo")
        done = self.setup("build", who="1000")
        self.assert_ends(done, 1, "without root or sudo they cannot be installed: alpha newer tool\n")
        self.assertEqual(done.stdout.splitlines()[-1], self.line("alpha", "newer", "tool"))
        self.assertEqual(self.calls(), [])

    def test_with_sudo(self):
        self.assert_ends(self.setup("build", who="1000"), 0, "installing alpha")
        self.assertTrue(self.calls()[-1].startswith("0 "), self.calls())

    def test_with_sudo_that_wants_a_password_of_nobody(self):
        self.write("password", "")
        done = self.setup("build", who="1000")
        self.assert_ends(done, 1, "without root or sudo they cannot be installed: alpha newer tool\n")
        self.assertEqual(self.calls(), [])

    def test_the_line_where_nothing_is_known_of_the_archive(self):
        self.write("archive", "")
        done = self.setup("--check", "run")
        self.assert_ends(done, 1, "    apt-get update && apt-get install --no-install-recommends beta-dev\n")

    def test_a_swift_that_is_too_old(self):
        self.write("installed", "alpha\nnewer\ntool\n")
        for version, status in (("5.9.2", 1), ("6.2.4", 1), ("6.3", 0), ("6.10.1", 0), ("7.0", 0), ("main-snapshot", 0)):
            self.write("swift-version", version)
            done = self.setup("build")
            self.assert_ends(done, status, *(["too old, 6.3 is needed", version] if status else []))

    def test_without_network(self):
        self.write("offline", "")
        done = self.setup("build")
        self.assert_ends(done, 1, "could not be installed (is there a network?): alpha newer tool\n")
        self.assertEqual(done.stdout.splitlines()[-1], self.line("alpha", "newer", "tool"))

    def test_a_package_that_the_archive_does_not_have(self):
        self.write("refused", "")
        self.write("plan", "E: Unable to locate package alpha\n")
        done = self.setup("build")
        self.assert_ends(done, 1, "E: Unable to locate package alpha\n", "archives do not give them (is there a network?): alpha newer tool\n")
        self.assertNotIn("install -y", " ".join(self.calls()))

    def test_an_upgrade_of_something_else_is_left_to_the_person(self):
        self.write("installed", "alpha\nnewer\ntool\n")
        self.write("plan", "Inst stranger [1] (2 Debian [amd64])\nInst beta-dev (2 Debian [amd64])\n")
        done = self.setup("build", "run")
        self.assert_ends(done, 1, "which is left to you, of: stranger\n", self.line("beta-dev"))
        self.assertNotIn("install -y", " ".join(self.calls()))

    def test_an_upgrade_of_what_comes_in_one_version_is_said(self):
        self.write("installed", "alpha\nnewer\ntool\n")
        self.write("plan", "Inst beta [1] (2 Debian [amd64])\nInst beta-dev (2 Debian [amd64])\n")
        done = self.setup("build", "run")
        self.assert_ends(done, 0, "in one version with these, which are upgraded: beta\n")
        self.assertIn("install -y", " ".join(self.calls()))

    def test_no_swift_is_said_first_and_alone(self):
        self.remove("swift")
        for arguments in (["build"], ["--check", "build"], ["run"]):
            done = self.setup(*arguments)
            self.assert_ends(done, 1, SWIFT)
            self.assertEqual(len(done.stdout.splitlines()), 1, done.stdout)
        self.assertEqual(self.calls(), [])

    def test_what_was_built_elsewhere_needs_no_swift(self):
        self.remove("swift")
        self.write("installed", "only\n")
        self.assert_ends(self.setup("built"), 0)

    def test_a_toolchain_that_does_not_start(self):
        self.write("swift-fails", "swift: error while loading libxml2.so.2\n")
        self.write("installed", "alpha\nnewer\ntool\n")
        self.assert_ends(self.setup("build"), 1, "does not start here: swift: error while loading libxml2.so.2")

    def test_another_system(self):
        for program in ("apt-get", "apt-cache", "dpkg-query"):
            self.remove(program)
        self.assert_ends(self.setup("build"), 0, "not a Debian or Ubuntu", "alpha older tool")

    def test_a_purpose_that_is_not_in_the_list(self):
        self.assert_ends(self.setup("nonsense"), 1, "no purpose 'nonsense'; there are build run")
        self.assert_ends(self.setup(), 1, "for what?")


class ListTests(unittest.TestCase):
    def test_its_lines(self):
        with open(os.path.join(ROOT, "packaging/debian-packages"), encoding="utf-8") as file:
            lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
        purposes = {"build", "run", "test", "docs", "bench", "wheel", "ecosystem", "machines", "caching", "built"}
        self.assertEqual({line[0] for line in lines}, purposes)
        named = [tuple(line[:2]) for line in lines]
        self.assertEqual(len(named), len(set(named)))


class MakeTests(unittest.TestCase):
    """Targets without Swift on PATH, in a copy of what make reads first."""

    def test_the_caching_suite_is_asked_for_before_anything_is_built(self):
        for suite in ([], ["CACHING_SUITE=/nowhere"]):
            done = subprocess.run(["make", "-s", "-C", ROOT, "test-caching", *suite], capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("name the folder of the suite, CACHING_SUITE=", done.stderr)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="imgdl make ")
        self.addCleanup(shutil.rmtree, self.folder)
        self.copy = os.path.join(self.folder, "copy")
        self.programs = os.path.join(self.folder, "bin")
        os.mkdir(self.programs)
        self.add_programs(*TOOLS, "make", "find", "id", "mkdir")

    def add_programs(self, *names):
        for name in names:
            os.symlink(shutil.which(name), os.path.join(self.programs, name))

    def copy_tree(self):
        # Without what is built, perhaps by another suite at this moment.
        shutil.copytree(ROOT, self.copy, symlinks=True, ignore=lambda at, names: [
            name for name in names
            if name in ("target", "__pycache__") or at == ROOT and name in ("build", ".build", ".git")])

    def make(self, *arguments):
        done = subprocess.run(["make", "-s", "--no-print-directory", "-C", self.copy, *arguments],
                              env={"PATH": self.programs}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, [line for line in done.stdout.splitlines() if not re.match(r"make(\[\d+\])?: ", line)]

    def assert_says_that_swift_is_missing(self, *arguments):
        status, said = self.make(*arguments)
        self.assertNotEqual(status, 0)
        self.assertEqual(len(said), 1, said)
        self.assertEqual(said[0], f"setup: no swift on PATH: install a Swift 6.3 toolchain ({SWIFT})")

    def test_every_target_says_that_swift_is_missing(self):
        self.copy_tree()
        for target in ("all", "library", "programs", "run", "test", "suites", "docs", "man", "install", "wheel", "setup",
                       "fuzz", "soak", "abi-check", "format-check", "test-tsan", "test-long", "test-machines",
                       "test-ecosystem", "test-caching", "examples-avif", "examples-event-loops", "bench-decode"):
            with self.subTest(target):
                # test-caching looks for its suite first.
                self.assert_says_that_swift_is_missing(target, "CACHING_SUITE=.")
        _, said = self.make("help")
        self.assertIn("make run", "\n".join(said))

    def built(self, *names):
        """Makes these in the copy, as new as one another and newer than all sources."""
        for name in names:
            path = os.path.join(self.copy, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "a", encoding="utf-8"):
                os.utime(path)

    def test_swift_that_went_after_packages_were_looked_at_is_missed_in_the_same_words(self):
        self.copy_tree()
        self.built("build/.setup-build", "build/.setup-run", "build/.setup-test", "build/static/libstdc++.a")
        for target in ("library", "install", "build/bin/imgdl-origin", "swift-tests", "format-check"):
            with self.subTest(target):
                self.assert_says_that_swift_is_missing(target)
        self.built("build/profile.profdata")
        self.assert_says_that_swift_is_missing("library")

    def test_what_is_built_is_installed_without_swift(self):
        self.copy_tree()
        self.add_programs("install", "ln", "python3", "realpath", "rmdir", "sort", "chmod")
        with open(os.path.join(ROOT, "include/imgdl.h"), encoding="utf-8") as file:
            version = re.search(r'IMGDL_VERSION_STRING "(.*)"', file.read())[1]
        pages = subprocess.run([os.path.join(ROOT, "packaging/man-pages"), "--list"], stdout=subprocess.PIPE, check=True,
                               text=True).stdout.split("\n")
        objects = [f"build/tools/imgdl/{name[:-4]}.o" for name in os.listdir(os.path.join(ROOT, "tools/imgdl"))
                   if name.endswith(".cpp")]
        library = f"build/lib/libimgdl.so.{version}"
        self.built("build/profile.profdata", library, *(f"build/man/man3/{page.split()[0]}" for page in pages if page))
        os.symlink(os.path.basename(library), os.path.join(self.copy, "build/lib/libimgdl.so"))
        self.built(*objects)
        self.built("build/bin/imgdl", "build/man/.written")
        # The files that are installed are all that is there: nobody has looked for packages, as after a change of their list.
        status, said = self.make("install", f"PREFIX={self.folder}/prefix")
        self.assertEqual(status, 0, said)
        self.assertTrue(os.path.exists(f"{self.folder}/prefix/lib/libimgdl.so.{version}"))
        self.assertFalse(os.path.exists(os.path.join(self.copy, "build/.setup-build")))
        # A file that is not up to date is built again.
        os.utime(os.path.join(self.copy, "include/imgdl.h"), (2**31, 2**31))
        self.assert_says_that_swift_is_missing("install", f"PREFIX={self.folder}/prefix")


if __name__ == "__main__":
    unittest.main()
