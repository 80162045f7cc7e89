"""Programs compiled against a released version can use this one: the check holds, and it would fail."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHECK = os.path.join(ROOT, "packaging/abi/check")

with open(os.path.join(ROOT, "include/imgdl.h"), encoding="utf-8") as file:
    HEADER = file.read()


class ABITests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="imgdl-abi-")
        self.addCleanup(shutil.rmtree, self.folder)

    def check(self, text, *options):
        path = os.path.join(self.folder, "imgdl.h")
        with open(path, "w", encoding="utf-8") as header:
            header.write(text)
        return subprocess.run([CHECK, *options, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def change(self, before, after):
        changed = HEADER.replace(before, after, 1)
        self.assertNotEqual(changed, HEADER, f"the header has no {before}")
        return changed

    def assertBroken(self, text, *words):
        done = self.check(text)
        self.assertEqual(done.returncode, 1, done.stdout)
        for word in words:
            self.assertIn(word, done.stdout)

    def assertCompatible(self, text):
        done = self.check(text)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("programs for 1.0 can use", done.stdout)

    def test_the_header_is_compatible_with_every_release(self):
        done = subprocess.run([CHECK], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        recorded = [name for name in os.listdir(os.path.join(ROOT, "packaging/abi")) if name.endswith(".abi")]
        self.assertEqual(len(done.stdout.splitlines()), len(recorded), done.stdout)

    def test_what_is_recorded_has_every_function_struct_and_enum_of_its_release(self):
        with open(os.path.join(ROOT, "packaging/abi/imgdl-1.0.abi"), encoding="utf-8") as file:
            recorded = file.read()
        self.assertEqual(len(re.findall(r"<elf-symbol name='imgdl_", recorded)), 60)
        for struct in ("config", "request", "event", "response", "result", "image_info", "decode_options", "header"):
            self.assertIn(f"<class-decl name='imgdl_{struct}'", recorded)
        self.assertIn("<enumerator name='WITNESS_IMGDL_ERROR_CANCELLED' value='2002'/>", recorded)

    def test_additions_pass(self):
        self.assertCompatible(self.change(
            "IMGDL_API uint32_t imgdl_version(void);",
            "IMGDL_API uint32_t imgdl_version(void);\n/** More. */\nIMGDL_API int32_t imgdl_more(const char *text);"))
        self.assertCompatible(self.change("IMGDL_PRIORITY_HIGH = 1 }",
                                          "IMGDL_PRIORITY_HIGH = 1, IMGDL_PRIORITY_MORE = 2 }"))
        self.assertCompatible(self.change(
            "typedef uint32_t imgdl_order;",
            "typedef struct imgdl_more {\n    int32_t first;\n} imgdl_more;\n\ntypedef uint32_t imgdl_order;"))

    def test_a_struct_with_its_size_may_grow_at_its_end(self):
        self.assertCompatible(self.change("} imgdl_image_info;",
                                          "    /* since 1.9 */\n    int64_t more;\n} imgdl_image_info;"))

    def test_a_removed_function_breaks(self):
        self.assertBroken(self.change("IMGDL_API const char *imgdl_version_string(void);", ""),
                          "1 Removed function", "imgdl_version_string")

    def test_another_result_or_parameter_breaks(self):
        version = "IMGDL_API uint32_t imgdl_version(void);"
        self.assertBroken(self.change(version, "IMGDL_API uint64_t imgdl_version(void);"), "return type changed")
        self.assertBroken(self.change(version, "IMGDL_API uint32_t imgdl_version(int32_t which);"), "imgdl_version")
        self.assertBroken(self.change("typedef int32_t imgdl_status;", "typedef int64_t imgdl_status;"), "imgdl_status")

    def test_another_callback_breaks(self):
        self.assertBroken(self.change("(*imgdl_event_callback)(const imgdl_event *event,",
                                      "(*imgdl_event_callback)(const imgdl_event *event, int32_t more,"),
                          "function type")

    def test_a_struct_that_grows_unmarked_breaks(self):
        self.assertBroken(self.change("} imgdl_image_info;", "    int64_t more;\n} imgdl_image_info;"),
                          "type size changed")

    def test_a_struct_without_its_size_may_not_grow(self):
        end = "} imgdl_header;"
        self.assertBroken(self.change(end, f"    int64_t more;\n{end}"), "type size changed")
        self.assertBroken(self.change(end, f"    /* since 1.9 */\n    int64_t more;\n{end}"),
                          "imgdl_header grows, and has no struct_size")

    def test_a_struct_that_may_grow_is_no_field(self):
        start = "typedef struct imgdl_hop {"
        self.assertBroken(self.change(start, f"{start}\n    imgdl_image_info info;"),
                          "imgdl_hop.info may grow and move the fields behind it")

    def test_a_field_in_the_middle_or_elsewhere_breaks(self):
        field = "    imgdl_order order; "
        self.assertBroken(self.change(field, f"    int64_t more;\n{field}"), "imgdl_config")
        names = {"uint32_t connect_timeout_ms;": "uint32_t idle_timeout_ms;",
                 "uint32_t idle_timeout_ms;": "uint32_t connect_timeout_ms;"}
        swapped = re.sub("|".join(names), lambda match: names[match[0]], HEADER)
        self.assertBroken(swapped, "offset changed")

    def test_a_field_of_another_type_breaks(self):
        self.assertBroken(self.change("int64_t content_length;", "uint64_t content_length;"), "content_length")
        version = "IMGDL_API uint32_t imgdl_version(void);"
        self.assertBroken(self.change(version, version.replace("uint32_t", "int32_t")), "imgdl_version")

    def test_another_value_of_a_constant_breaks(self):
        self.assertBroken(self.change("IMGDL_PRIORITY_HIGH = 1 }", "IMGDL_PRIORITY_HIGH = 2 }"),
                          "from value '1' to '2'")
        self.assertBroken(self.change(", IMGDL_PRIORITY_HIGH = 1 }", " }"), "1 enumerator deletion")
        self.assertBroken(self.change("(uintptr_t)1)", "(uintptr_t)2)"), "IMGDL_EXECUTOR_INLINE")

    def test_what_is_released_is_not_recorded_again(self):
        done = self.check(HEADER.replace("VERSION_MINOR 1", "VERSION_MINOR 0"), "--record")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("1.0 is recorded, and what is released stays", done.stdout)

    def test_a_header_that_cannot_be_read_is_an_error(self):
        for text, words in ((HEADER.replace("VERSION_MINOR 1", "VERSION_MINOR one"), "names no version"),
                            (HEADER + "\nint x[2];\n", "what is this? int x[2]"),
                            (HEADER.replace("VERSION_MAJOR 1", "VERSION_MAJOR 7"), "no version 7 is recorded")):
            done = self.check(text)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stdout)


if __name__ == "__main__":
    unittest.main()
