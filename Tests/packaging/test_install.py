"""What `make install` puts in place: whole, usable by projects that know nothing of this one, and taken away again."""
import os
import re
import shutil
import stat
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
# `check` shows the header to each compiler in each of these.
COMPILERS = {"gcc": ["c99", "c11", "c17"], "g++": ["c++11", "c++14", "c++17", "c++20"], "clang": ["c17"],
             "clang++": ["c++20"]}

with open(os.path.join(ROOT, "include/imgdl.h"), encoding="utf-8") as file:
    VERSION = re.search(r'IMGDL_VERSION_STRING "(.*)"', file.read())[1]
MAJOR = VERSION.split(".")[0]

PROGRAM = """
#include <imgdl.h>
#include <stdio.h>
int main(void) {
    imgdl_downloader *downloader = NULL;
    imgdl_request request;
    if (imgdl_version() != IMGDL_VERSION_NUMBER || imgdl_downloader_create(NULL, &downloader) != IMGDL_OK)
        return 1;
    imgdl_request_init(&request, sizeof request);
    request.url = "nonsense";
    puts(imgdl_version_string());
    puts(imgdl_error_name(imgdl_download(downloader, &request, NULL)));
    return imgdl_downloader_destroy(downloader);
}
"""
SAID = f"{VERSION}\nIMGDL_ERROR_INVALID_URL\n"

CMAKE = """
cmake_minimum_required(VERSION 3.10)
project(consumer C CXX)
find_package(imgdl @VERSION@ REQUIRED)
add_compile_options(-Wall -Wextra -Wpedantic -Werror)
add_executable(in_c main.c)
add_executable(in_cpp main.cpp)
set_target_properties(in_c PROPERTIES C_STANDARD 99)
set_target_properties(in_cpp PROPERTIES CXX_STANDARD 11)
target_link_libraries(in_c PRIVATE imgdl::imgdl)
target_link_libraries(in_cpp PRIVATE imgdl::imgdl)
"""


def run(*command, environment={}, **options):
    # What make's own caller has set is not what is tested.
    inherited = {name: value for name, value in os.environ.items()
                 if not re.fullmatch("PREFIX|[A-Z]+DIR|M[A-Z]*FLAGS|MAKE.*", name)}
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(inherited, **environment), **options)


def temporary_folder(add_cleanup):
    # With a space in it, as home folders have.
    folder = tempfile.mkdtemp(prefix="imgdl install ")
    add_cleanup(shutil.rmtree, folder)
    return folder


class InstallTests(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        """A copy that is installed, for tests that change nothing of it."""
        cls.installed = os.path.join(temporary_folder(cls.addClassCleanup), "installed")
        done = run("make", "-s", "-C", ROOT, "install", f"PREFIX={cls.installed}")
        if done.returncode != 0:
            raise AssertionError(done.stdout)

    def setUp(self):
        self.folder = temporary_folder(self.addCleanup)
        self.prefix = os.path.join(self.folder, "prefix")

    def make(self, target, *variables, expected=0, **options):
        done = run("make", "-s", "-C", ROOT, target, *variables, **options)
        self.assertEqual(done.returncode, expected, done.stdout)
        return done.stdout

    def install(self, *variables, **options):
        return self.make("install", *(variables or (f"PREFIX={self.prefix}",)), **options)

    def files(self, top):
        """Everything below that is no folder."""
        return {os.path.relpath(os.path.join(at, name), top) for at, _, names in os.walk(top) for name in names}

    def folders(self, top):
        return {os.path.relpath(os.path.join(at, name), top) for at, names, _ in os.walk(top) for name in names}

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def pkg_config(self, *arguments):
        done = run("pkg-config", *arguments, "imgdl",
                   environment={"PKG_CONFIG_PATH": f"{self.installed}/lib/pkgconfig"})
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.strip()

    # What is there

    def test_everything_is_in_its_place_and_nothing_else(self):
        pages = run(os.path.join(ROOT, "packaging/man-pages"), "--list").stdout.split("\n")
        expected = {f"share/man/man3/{line.split()[0]}" for line in pages if line}
        expected |= {"include/imgdl.h", "lib/libimgdl.so", f"lib/libimgdl.so.{MAJOR}", f"lib/libimgdl.so.{VERSION}",
                     "lib/pkgconfig/imgdl.pc", "lib/cmake/imgdl/imgdl-config.cmake",
                     "lib/cmake/imgdl/imgdl-config-version.cmake", "include/imgdl.hpp", "bin/imgdl", "share/imgdl/installed-folders",
                     "share/man/man1/imgdl.1", "share/bash-completion/completions/imgdl",
                     "share/zsh/site-functions/_imgdl"}
        self.assertEqual(self.files(self.installed), expected)
        self.assertIn("share/man/man3/imgdl_download.3", expected)

    def test_modes_do_not_depend_on_the_umask(self):
        self.install(preexec_fn=lambda: os.umask(0o077))
        self.assertIn("lib/libimgdl.so", self.files(self.prefix))
        for at, folders, names in os.walk(self.prefix):
            for name in [".", *folders, *names]:
                path = os.path.join(at, name)
                mode = os.lstat(path).st_mode
                if stat.S_ISLNK(mode):
                    continue
                runs = stat.S_ISDIR(mode) or name.startswith("libimgdl.so") or path.endswith("bin/imgdl")
                self.assertEqual(stat.S_IMODE(mode), 0o755 if runs else 0o644, path)
                self.assertEqual(os.lstat(path).st_uid, os.getuid())

    def test_links_lead_to_what_is_installed(self):
        files = self.files(self.installed)
        self.assertIn("lib/libimgdl.so", files)
        for name in files:
            path = os.path.join(self.installed, name)
            self.assertTrue(os.path.exists(path), name)
            if os.path.islink(path):
                self.assertNotIn("/", os.readlink(path), name)

    def test_uninstall_takes_exactly_that_away(self):
        kept = {"include/other.h", "lib/libimgdl-other.so", "lib/libimgdl.so.2", "lib/cmake/imgdl/other.cmake",
                "share/man/man3/imgdl_other.3", "lib/pkgconfig/other.pc"}
        for name in kept:
            os.makedirs(os.path.join(self.prefix, os.path.dirname(name)), exist_ok=True)
            self.write(os.path.join(self.prefix, name), "")
        self.install()
        self.assertTrue(kept < self.files(self.prefix))
        self.make("uninstall", f"PREFIX={self.prefix}")
        self.assertEqual(self.files(self.prefix), kept)
        self.make("uninstall", f"PREFIX={self.prefix}")
        self.assertEqual(self.files(self.prefix), kept)

    def test_uninstall_leaves_no_folder_that_install_made(self):
        self.install()
        self.install()  # the second time all of them are there
        self.make("uninstall", f"PREFIX={self.prefix}")
        self.assertFalse(os.path.exists(self.prefix))
        # Empty ones that were there before are somebody else's.
        before = {"lib", "lib/pkgconfig", "bin", "share", "share/man"}
        for name in before:
            os.makedirs(os.path.join(self.prefix, name), exist_ok=True)
        self.install()
        self.make("uninstall", f"PREFIX={self.prefix}")
        self.assertEqual((self.files(self.prefix), self.folders(self.prefix)), (set(), before))

    def test_over_an_older_version(self):
        library = os.path.join(self.prefix, "lib")
        os.makedirs(library)
        self.write(os.path.join(library, f"libimgdl.so.{MAJOR}.0.0-old"), "")
        os.symlink(f"libimgdl.so.{MAJOR}.0.0-old", os.path.join(library, f"libimgdl.so.{MAJOR}"))
        self.install()
        again = self.files(self.prefix)
        self.assertNotIn(f"lib/libimgdl.so.{MAJOR}.0.0-old", again)
        self.assertEqual(os.readlink(os.path.join(library, f"libimgdl.so.{MAJOR}")), f"libimgdl.so.{VERSION}")
        self.install()
        self.assertEqual(self.files(self.prefix), again)

    def test_a_program_that_runs_keeps_the_library_that_it_has(self):
        self.install()
        path = os.path.join(self.prefix, "lib", f"libimgdl.so.{VERSION}")
        with open(path, "rb") as held:
            before = os.fstat(held.fileno())
            self.install()
            self.assertNotEqual(os.stat(path).st_ino, before.st_ino)
            self.assertEqual(os.fstat(held.fileno()).st_size, before.st_size)

    # Where it is put

    def test_destdir_is_nowhere_in_what_is_staged(self):
        staged = os.path.join(self.folder, "staged")
        said = self.install("PREFIX=/usr", "LIBDIR=/usr/lib/multiarch", f"DESTDIR={staged}")
        self.assertEqual(said, "")
        for name in self.files(staged):
            path = os.path.join(staged, name)
            if not os.path.islink(path):
                with open(path, "rb") as file:
                    self.assertNotIn(staged.encode(), file.read(), name)
        with open(os.path.join(staged, "usr/lib/multiarch/pkgconfig/imgdl.pc"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn("prefix=/usr\nlibdir=${prefix}/lib/multiarch\nincludedir=${prefix}/include\n", text)
        self.make("uninstall", "PREFIX=/usr", "LIBDIR=/usr/lib/multiarch", f"DESTDIR={staged}")
        self.assertEqual((self.files(staged), self.folders(staged)), (set(), set()))

    def test_it_says_what_the_linker_needs(self):
        self.assertIn(f"{self.prefix}/lib is not where programs look for libraries", self.install())

    def test_folders_that_cannot_be_are_refused(self):
        for variables, words in ((("PREFIX=relative",), "PREFIX must begin with /: relative"),
                                 (("PREFIX=/x", "LIBDIR=lib"), "LIBDIR must begin with /: lib"),
                                 (("PREFIX=/x|y",), "PREFIX must not hold quotes"),
                                 (("PREFIX=/x'y",), "PREFIX must not hold quotes"),
                                 (("PREFIX=/x$$(id)",), "PREFIX must not hold quotes")):
            for target in ("install", "uninstall"):
                with self.subTest(target=target, variables=variables):
                    self.assertIn(words, self.make(target, *variables, expected=2))

    def test_as_somebody_who_is_not_root(self):
        # A tree that everybody can read, wherever this one is.
        tree = os.path.join(self.folder, "tree")
        for name in ("include", "packaging", "docs/man", "build/man", f"build/lib/libimgdl.so.{VERSION}",
                     "build/bin/imgdl"):
            if os.path.isdir(os.path.join(ROOT, name)):
                shutil.copytree(os.path.join(ROOT, name), os.path.join(tree, name), symlinks=True)
            elif os.path.exists(os.path.join(ROOT, name)):
                os.makedirs(os.path.join(tree, os.path.dirname(name)), exist_ok=True)
                shutil.copy(os.path.join(ROOT, name), os.path.join(tree, name))
        os.chmod(self.folder, 0o777)
        user = 65534 if os.getuid() == 0 else os.getuid()
        somebody = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if os.getuid() == 0 else []
        done = run(*somebody, "packaging/install", cwd=tree, environment={"PREFIX": self.prefix})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(os.stat(os.path.join(self.prefix, "include/imgdl.h")).st_uid, user)
        done = run(*somebody, "packaging/install", cwd=tree, environment={"PREFIX": "/usr/imgdl-of-nobody"})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Permission denied", done.stdout)

    def test_without_what_makes_the_pages_it_fails(self):
        done = run("packaging/install", cwd=ROOT, environment={"PREFIX": self.prefix, "PYTHONHOME": "/nonexistent"})
        self.assertNotEqual(done.returncode, 0, done.stdout)

    # Who uses it

    def test_a_project_with_pkg_config(self):
        self.assertEqual(self.pkg_config("--modversion"), VERSION)
        flags = [flag.replace("\\", "") for flag in re.split(r"(?<!\\) ", self.pkg_config("--cflags", "--libs"))]
        built = 0
        for compiler, standards in COMPILERS.items():
            if not shutil.which(compiler):
                continue
            for standard in standards:
                with self.subTest(compiler=compiler, standard=standard):
                    source = self.write("main.cpp" if "++" in compiler else "main.c", PROGRAM)
                    program = os.path.join(self.folder, "program")
                    done = run(compiler, f"-std={standard}", *STRICT, source, "-o", program, *flags)
                    self.assertEqual((done.returncode, done.stdout), (0, ""))
                    done = run(program, environment={"LD_LIBRARY_PATH": f"{self.installed}/lib"})
                    self.assertEqual((done.returncode, done.stdout), (0, SAID))
                    built += 1
        self.assertGreaterEqual(built, 7)

    def test_pkg_config_follows_a_tree_that_was_moved(self):
        moved = os.path.join(self.folder, "moved")
        shutil.copytree(self.installed, moved, symlinks=True)
        done = run("pkg-config", "--define-prefix", "--cflags", "--libs", "imgdl",
                   environment={"PKG_CONFIG_PATH": f"{moved}/lib/pkgconfig"})
        said = done.stdout.replace("\\", "")
        self.assertIn(f"-I{moved}/include", said)
        self.assertIn(f"-L{moved}/lib", said)
        self.assertNotIn(self.installed, said)

    def test_a_project_with_cmake_wherever_the_tree_is_moved(self):
        moved = os.path.join(self.folder, "moved here")
        shutil.copytree(self.installed, moved, symlinks=True)
        self.write("main.c", PROGRAM)
        self.write("main.cpp", PROGRAM)
        build = os.path.join(self.folder, "build")
        for wanted in (MAJOR, VERSION):
            self.write("CMakeLists.txt", CMAKE.replace("@VERSION@", wanted))
            done = run("cmake", "-S", self.folder, "-B", build, f"-DCMAKE_PREFIX_PATH={moved}")
            self.assertEqual(done.returncode, 0, done.stdout)
        done = run("cmake", "--build", build)
        self.assertEqual(done.returncode, 0, done.stdout)
        for program in ("in_c", "in_cpp"):
            # Without LD_LIBRARY_PATH: CMake has noted where the library is.
            done = run(os.path.join(build, program))
            self.assertEqual((done.returncode, done.stdout), (0, SAID))

    def test_the_header_of_cpp_is_whole_by_itself(self):
        source = self.write("main.cpp", "#include <imgdl.hpp>\nint main() { return 0; }\n")
        for standard in ("c++17", "c++20"):
            done = run("g++", f"-std={standard}", *STRICT, "-fsyntax-only", f"-I{self.installed}/include", source)
            self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_the_program_for_the_terminal_finds_the_library_beside_it(self):
        done = run(os.path.join(self.installed, "bin/imgdl"), "--version")
        self.assertEqual((done.returncode, done.stdout), (0, f"imgdl {VERSION}\n"))

    def test_cmake_refuses_another_major_version_and_a_newer_one(self):
        self.write("main.c", PROGRAM)
        self.write("main.cpp", PROGRAM)
        for wanted in (str(int(MAJOR) + 1), f"{MAJOR}.999"):
            self.write("CMakeLists.txt", CMAKE.replace("@VERSION@", wanted))
            done = run("cmake", "-S", self.folder, "-B", f"{self.folder}/refused",
                       f"-DCMAKE_PREFIX_PATH={self.installed}")
            self.assertNotEqual(done.returncode, 0, wanted)
            self.assertRegex(done.stdout, "not\\s+(accepted|compatible)|requested version")

    def test_cmake_takes_ranges_and_components_as_cmake_documents_them(self):
        major, minor, patch = map(int, VERSION.split("."))
        for wanted, fits in (("", True), (f"{MAJOR}", True), (f"{VERSION} EXACT", True), (f"{MAJOR}.{minor + 1} EXACT", False),
                             (f"{MAJOR}.0...{MAJOR}.99", True), (f"{MAJOR}.0...{VERSION}", True),
                             (f"{MAJOR}.0...<{VERSION}", False), (f"{MAJOR}.0...<{major + 1}", True),
                             (f"{MAJOR}.0...{major + 1}", True), (f"0.1...{MAJOR}.0", False),
                             (f"{VERSION}...{VERSION}", True), (f"{major + 1}...{major + 2}", False),
                             (f"{MAJOR} COMPONENTS other", False), (f"{MAJOR} OPTIONAL_COMPONENTS other", True)):
            with self.subTest(wanted=wanted):
                self.write("CMakeLists.txt", f"""
                    cmake_minimum_required(VERSION 3.19)
                    project(consumer NONE)
                    set(CMAKE_SYSTEM_NAME Linux)
                    find_package(imgdl {wanted})
                    message(STATUS "found is <${{imgdl_FOUND}}> <${{imgdl_other_FOUND}}>")""")
                done = run("cmake", "-S", self.folder, "-B", f"{self.folder}/ranges",
                           f"-Dimgdl_DIR={self.installed}/lib/cmake/imgdl")
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertRegex(done.stdout, "found is <(1|TRUE)>" if fits else "found is <(0|FALSE)>")
                if not fits and "COMPONENTS" in wanted:
                    self.assertRegex(done.stdout, r"imgdl\s+has\s+no\s+components")
                shutil.rmtree(f"{self.folder}/ranges")


if __name__ == "__main__":
    unittest.main()
