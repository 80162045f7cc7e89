"""The player gives every field of the header's structs that a host fills: one that is new and not played fails here."""
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "packaging"))
import header  # noqa: E402

# What a host fills, where the player does, and what it calls it there.
FILLED = {"imgdl_request": ("requests.c", "request"), "imgdl_config": ("options.c", "config"),
          "imgdl_decode_options": ("options.c", "options"), "imgdl_batch_options": ("moves-downloads.c", "options"),
          "imgdl_cache_config": ("moves-plugins.c", "config"), "imgdl_outgoing": ("calls.c", "outgoing"),
          "imgdl_hooks_table": ("calls.c", ""), "imgdl_coder_table": ("codecs.c", ""),
          "imgdl_transport_table": ("calls.c", "")}
FORMALITIES = re.compile(r"struct_size|reserved\d*")


def read(source):
    with open(os.path.join(ROOT, "Tests/Stress", source), encoding="utf-8") as file:
        return file.read()


class FieldTests(unittest.TestCase):
    def test_every_field_is_given(self):
        structs = {struct.name: struct for section in header.read(f"{ROOT}/include/imgdl.h")
                   for struct in section.declarations("struct")}
        missing = []
        for name, (source, variable) in FILLED.items():
            given = set(re.findall(rf"\b{variable}(?:->|\.)(\w+) \|?= " if variable else r"[ {]\.(\w+) = ", read(source)))
            missing += [f"{name}.{member.name}" for member in structs[name].members
                        if member.name not in given and not FORMALITIES.fullmatch(member.name)]
        self.assertEqual(missing, [])

    def test_flags_are_given_by_their_number(self):
        """Any bit below the last one is: `1u << chance(…)`."""
        with open(f"{ROOT}/include/imgdl.h", encoding="utf-8") as file:
            text = file.read()
        for prefix, source, most in (("IMGDL_REQUEST_", "requests.c", r"request\.flags \|= 1u << chance\(.*: (\d+)\)"),
                                     ("IMGDL_DECODE_", "options.c", r"options\.flags \|= 1u << chance\(.*: (\d+)\)"),
                                     ("IMGDL_EVENT_", "requests.c", r"event_mask = chance\((\d+)\)")):
            bits = [int(bit) for bit in re.findall(prefix + r"[A-Z0-9_]+ = 1u << (\d+)", text)]
            found = int(re.search(most, read(source)).group(1))
            self.assertEqual(found, 2 ** (max(bits) + 1) if prefix == "IMGDL_EVENT_" else max(bits) + 1, prefix)


if __name__ == "__main__":
    unittest.main()
