"""Every exported function is framed: no thread is cancelled inside of one, and fork() waits for it. The getters that need
no frame are named here."""
import glob
import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# These wake nobody, wait for nothing but a lock that fork() itself takes first, and let go of no object: one whose last
# reference another thread has just released would end inside of them.
PURE = {
    "imgdl_version", "imgdl_version_string", "imgdl_error_name", "imgdl_error_message", "imgdl_last_error",
    "imgdl_data_bytes", "imgdl_data_length",
    *(f"imgdl_{struct}_init" for struct in (
        "batch_options", "cache_config", "cache_entry", "cache_stats", "config", "decode_options", "image_info", "metrics",
        "outgoing", "request", "result", "stats")),
    *(f"imgdl_{handle}_retain" for handle in (
        "batch", "cache", "data", "downloader", "executor", "hooks", "image", "token")),
    *(f"imgdl_image_{what}" for what in (
        "width", "height", "stride", "format", "pixel_format", "pixels", "frame_count", "frame_duration_ms", "loop_count",
        "scale_factor", "orientation", "is_complete", "is_good_enough", "notes", "colour_notes", "icc_profile", "pass",
        "ready")),
}
# Swift functions that are the frame: call and inLibrary, and `answer`, which is a call.
FRAME = re.compile(r"(?:return )?(?:call|inLibrary|answer)\b *[({]")
EXPORT = re.compile(r'^@_cdecl\("(imgdl_\w+)"\) @implementation\npublic func \w+\(.*?\)(?:\s*-> [^{]+?)?\s*\{(.*?)(?:^\}| \})$',
                    re.M | re.S)


# Of Swift's runtime, what takes a lock at the first use of a generic type, a conformance or a cast.
LOCKING = re.compile(r"[iI]nstantiate|swift_(get(Generic|Canonical|Singleton|Foreign|Tuple|Function|Existential|Metatype|Opaque)|"
                     r"getWitnessTable|getAssociated|getTypeByMangled|conformsTo|dynamicCast|checkMetadataState)")
CALL = re.compile(r"\t(?:call|jmp) +[0-9a-f]+ <([^>+]+)")
# What makes a global at its first use, which is handed to swift_once.
MAKER = re.compile(r"\tlea .*<([^>+]+_WZ)>")


def calls_of(library):
    """What each function of it calls, and which globals it has made at their first use, by the compiled code."""
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], capture_output=True, text=True, check=True).stdout
    calls, makers, function = {}, {}, None
    for line in code.splitlines():
        if line.endswith(">:"):
            function = line[line.index("<") + 1:-2]
            calls.setdefault(function, set())
        elif function is not None and (call := CALL.search(line)):
            calls[function].add(call.group(1))
        elif function is not None and (maker := MAKER.search(line)):
            makers.setdefault(function, set()).add(maker.group(1))
    return calls, makers


def reached(calls, function):
    """By the calls of `function`, and by theirs, in turn."""
    seen, left = {function}, [function]
    while left:
        new = calls.get(left.pop(), set()) - seen
        seen |= new
        left += new
    return seen


def exports(text):
    """(name, body) for each."""
    return [(name, body.strip()) for name, body in EXPORT.findall(text)]


def unframed(text):
    return {name for name, body in exports(text) if not FRAME.match(body)}


class ExportTests(unittest.TestCase):
    def setUp(self):
        self.text = ""
        for path in sorted(glob.glob(f"{ROOT}/Sources/imgdl/*.swift")):
            with open(path, encoding="utf-8") as file:
                self.text += file.read() + "\n"

    def test_every_function_of_the_header_is_looked_at(self):
        with open(f"{ROOT}/include/imgdl.h", encoding="utf-8") as file:
            header = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
        declared = re.findall(r"IMGDL_API\b[^;]*?\b(imgdl_\w+)\s*\(", header)
        self.assertGreater(len(declared), 100)
        self.assertEqual(sorted(name for name, _ in exports(self.text)), sorted(declared))

    def test_all_but_the_getters_are_framed_from_their_first_word_on(self):
        self.assertEqual(unframed(self.text), PURE)

    def test_one_that_is_not_would_be_found(self):
        text = self.text.replace("    inLibrary { ", "    do { ", 1)
        self.assertNotEqual(text, self.text)
        self.assertEqual(len(unframed(text) - unframed(self.text)), 1)

    def test_getters_let_go_of_no_object(self):
        getters = {name: body for name, body in exports(self.text) if name in PURE}
        self.assertEqual(set(getters), PURE)
        for name, body in getters.items():
            with self.subTest(name):
                self.assertNotRegex(body, r"\b(object|downloader|token|cache|batch)\(")

    def test_getters_look_up_no_generic_types_conformances_or_casts_and_make_no_globals(self):
        """fork() on another thread does not wait for them: its child would find a lock of Swift's runtime taken for ever. What
        `init` functions look up is framed (SizedStruct). swift_once takes a lock, too, until its global is made: that of
        HandleTable.shared takes none any more when somebody can call, since Process.prepare makes the table as the library is
        loaded."""
        calls, makers = calls_of(f"{ROOT}/build/swift-release/release/libimgdl.so")
        self.assertTrue(any(LOCKING.search(name) for name in reached(calls, "imgdl_config_init")))
        made = {}
        for name in PURE:
            if not name.endswith("_init"):
                with self.subTest(name):
                    self.assertIn(name, calls)
                    found = reached(calls, name)
                    self.assertEqual([function for function in found if LOCKING.search(function)], [])
                    made[name] = {maker for function in found for maker in makers.get(function, ())}
                    self.assertEqual(bool(made[name]), "swift_once" in found)
        self.assertEqual(set().union(*made.values()), {"$s5imgdl11HandleTableC6shared_WZ"})


if __name__ == "__main__":
    unittest.main()
