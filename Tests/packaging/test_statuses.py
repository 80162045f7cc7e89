"""A status that nobody looks at is warned of: of each function that returns one, but for those that the header names."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "packaging"))

import header as reader  # noqa: E402

HEADER = os.path.join(ROOT, "include/imgdl.h")

# Those that fail for a wrong handle alone, and those that end or dispatch: what was refused has given nothing, and calls
# nobody back.
UNCHECKED = {
    "imgdl_executor_dispatch", "imgdl_downloader_set_suspended", "imgdl_downloader_enter_background",
    "imgdl_downloader_enter_foreground", "imgdl_downloader_network_changed", "imgdl_downloader_cancel_all",
    "imgdl_downloader_destroy", "imgdl_token_cancel", "imgdl_batch_cancel", "imgdl_batch_set_paused",
}


def statuses(path):
    """Name and parameters of each function that returns a status, as the header declares them."""
    found = {}
    for section in reader.read(path):
        for item in section.items:
            if not isinstance(item, str) and item.kind == "function":
                match = re.fullmatch(r"imgdl_status (imgdl_\w+)\((.*)\)", item.code)
                if match:
                    found[match[1]] = match[2]
    return found


def caller(name, parameters):
    """A function with the same parameters, which looks at no status."""
    # Not between the parentheses of a pointer to a function, whose name stands in front of them.
    each = [] if parameters == "void" else re.split(r",(?![^()]*\)(?!\())", parameters)
    names = [(re.search(r"\(\*(\w+)\)", one) or re.search(r"(\w+)(?:\[\w*\])?$", one))[1] for one in each]
    return f"void call_{name}({parameters});\nvoid call_{name}({parameters}) {{ {name}({', '.join(names)}); }}\n"


class StatusTests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="imgdl-statuses-")
        self.addCleanup(shutil.rmtree, self.folder)

    def compile(self, text, *options, compiler=("cc", "-std=c11", "-x", "c"), folder=os.path.dirname(HEADER)):
        return subprocess.run(
            [*compiler, "-Wall", "-Werror=unused-result", "-I", folder, *options, "-S", "-o",
             os.path.join(self.folder, "output"), "-"], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env=dict(os.environ, LC_ALL="C"))

    def warned_of(self, text, **options):
        """What the compiler calls out, of functions whose result is thrown away."""
        done = self.compile(text, **options)
        # GCC names the function, Clang points at its call.
        lines = text.split("\n")
        named = set(re.findall(r"ignoring return value of '(?:\w+ )?(imgdl_\w+)", done.stdout))
        for line in re.findall(r"<stdin>:(\d+):\d+: error: ignoring return value", done.stdout):
            named.add(re.search(r"\{ (imgdl_\w+)\(", lines[int(line) - 1])[1])
        self.assertEqual(done.returncode != 0, bool(named), done.stdout)
        return named

    def everything(self, functions):
        return "#include <imgdl.h>\n" + "".join(caller(*each) for each in functions.items())

    def test_each_status_that_matters_is_asked_for(self):
        functions = statuses(HEADER)
        self.assertGreater(len(functions), 50)
        self.assertLessEqual(UNCHECKED, set(functions))
        compilers = [("cc", "-std=c11", "-x", "c"), ("c++", "-std=c++17", "-x", "c++")]
        if shutil.which("clang"):
            compilers.append(("clang", "-ferror-limit=0", "-std=c11", "-x", "c"))
        for compiler in compilers:
            with self.subTest(compiler[0]):
                self.assertEqual(self.warned_of(self.everything(functions), compiler=compiler),
                                 set(functions) - UNCHECKED)

    def test_each_alone_does_not_compile(self):
        functions = statuses(HEADER)
        for name in ("imgdl_download", "imgdl_downloader_create", "imgdl_token_wait", "imgdl_token_result",
                     "imgdl_cache_open", "imgdl_decode"):
            with self.subTest(name):
                done = self.compile("#include <imgdl.h>\n" + caller(name, functions[name]))
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn("unused-result", done.stdout)

    def test_who_looks_is_not_warned(self):
        text = self.everything(statuses(HEADER))
        looks = re.sub(r"\{ (imgdl_\w+\(.*\)); \}", r"{ if (\1) return; }", text)
        self.assertNotEqual(looks, text)
        self.assertEqual(self.warned_of(looks), set())

    def test_a_program_can_do_without(self):
        done = self.compile(self.everything(statuses(HEADER)), "-DIMGDL_CHECKED=")
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_one_that_the_header_forgets_is_found(self):
        with open(HEADER, encoding="utf-8") as file:
            text = file.read()
        forgotten = text.replace("IMGDL_CHECKED imgdl_status imgdl_token_wait(", "imgdl_status imgdl_token_wait(")
        self.assertNotEqual(forgotten, text)
        with open(os.path.join(self.folder, "imgdl.h"), "w", encoding="utf-8") as file:
            file.write(forgotten)
        functions = statuses(os.path.join(self.folder, "imgdl.h"))
        self.assertEqual(set(functions) - UNCHECKED - self.warned_of(self.everything(functions), folder=self.folder),
                         {"imgdl_token_wait"})


if __name__ == "__main__":
    unittest.main()
