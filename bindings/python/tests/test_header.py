"""_native.py says what include/imgdl.h says: names, numbers, layouts and signatures."""

import ctypes
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import imgdl
from imgdl import Code, _native

ROOT = Path(__file__).resolve().parents[3]
HEADER = ROOT / "include" / "imgdl.h"

NUMBERS = {
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "double": ctypes.c_double,
}


class Header:
    """What a reader of the header sees, by regular expressions: it is written in one manner."""

    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        self.constants = [name for name in re.findall(r"#define (IMGDL_\w+) \S", text) if name not in ("IMGDL_API", "IMGDL_CHECKED")]
        for names in re.findall(r"enum \{(.*?)\}", text, flags=re.S):
            self.constants += re.findall(r"\b(IMGDL_\w+) =", names)
        text = re.sub(r"^\s*#(.*\\\n)*.*$", "", text, flags=re.M)
        text = re.sub(r"\s+", " ", text)
        structs = re.findall(r"typedef struct (imgdl_\w+) \{(.*?)\} \1;", text)
        structs += re.findall(r"; struct (imgdl_\w+) \{(.*?)\};", text)
        self.handles = re.findall(r"typedef struct (imgdl_\w+) \1;", text)
        self.handles = [name for name in self.handles if name not in dict(structs)]
        self.numbers = {name: kind for kind, name in re.findall(r"typedef (u?int\d+_t) (imgdl_\w+);", text)}
        self.callbacks = {
            name: (self.result(kind), self.parameters(given))
            for kind, name, given in re.findall(r"typedef (\w+) \(\*(imgdl_\w+)\)\((.*?)\);", text)
        }
        self.structs = {}
        for name, fields in structs:
            self.structs[name] = []
            for field in fields.split(";"):
                function = re.fullmatch(r"\s*([\w ]+?[\s*]+)\(\*(\w+)\)\((.*)\)\s*", field)
                if function:
                    kind, each, given = function.groups()
                    self.structs[name].append((each, (self.result(kind), self.parameters(given))))
                elif field.strip():
                    kind, names = re.fullmatch(r"\s*(.*?[\s*])(\w+(?:\[\d+\])?(?:, \w+)*)\s*", field).groups()
                    for each in names.split(", "):
                        each, _, count = each.rstrip("]").partition("[")
                        self.structs[name].append((each, (kind.strip(), int(count)) if count else kind.strip()))
        self.functions = {
            name: (self.result(kind), self.parameters(given))
            for kind, name, given in re.findall(r"IMGDL_API (?:IMGDL_CHECKED )?([\w ]+?[ *]+)(imgdl_\w+)\((.*?)\);", text)
        }

    def result(self, kind):
        return re.sub(r"\s*\*", " *", kind.replace("const ", "")).strip()

    def parameters(self, given):
        if given.strip() == "void":
            return []
        kinds = []
        given = re.sub(r"void \(\*\w+\)\(void \*user_data\)", "imgdl_destructor done", given)
        for parameter in given.split(","):
            kind = re.fullmatch(r"(.*?)\w+", parameter.strip().replace("const ", "")).group(1)
            kinds.append(re.sub(r"\s*\*", " *", kind).strip())
        return kinds

    def ctypes_type(self, kind):
        """The type in ctypes of a type in C: its text, or what is pointed to as a function, or an array."""
        if isinstance(kind, tuple):
            first, second = kind
            if isinstance(second, int):
                return self.ctypes_type(first) * second
            return ctypes.CFUNCTYPE(self.ctypes_type(first), *map(self.ctypes_type, second))
        kind = re.sub(r"\s*\*", " *", re.sub(r"\bconst\b", "", kind)).strip()
        if kind == "void":
            return None
        if kind == "void *":
            return ctypes.c_void_p
        if kind == "char *":
            return ctypes.c_char_p
        if kind == "char * *":
            return ctypes.POINTER(ctypes.c_char_p)
        if kind.endswith(" *"):
            pointed = kind[:-2]
            return ctypes.c_void_p if pointed in self.handles else ctypes.POINTER(self.ctypes_type(pointed))
        if kind in NUMBERS:
            return NUMBERS[kind]
        if kind in self.numbers:
            return NUMBERS[self.numbers[kind]]
        return getattr(_native, kind)


class HeaderTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.header = Header(HEADER.read_text("utf-8"))

    def test_the_header_was_understood(self):
        text = HEADER.read_text("utf-8")
        self.assertEqual(len(self.header.functions), text.count("\nIMGDL_API"))
        self.assertEqual(
            len(self.header.structs), len(re.findall(r"^(?:typedef )?struct \w+ \{", text, flags=re.M))
        )
        self.assertEqual(len(self.header.handles), 12)

    def test_the_same_functions_with_the_same_signatures(self):
        self.assertEqual(sorted(_native.functions), sorted(self.header.functions))
        for name, (result, parameters) in self.header.functions.items():
            with self.subTest(name):
                function = _native.functions[name]
                self.assertIs(function, getattr(_native, name))
                self.assertIs(function.restype, self.header.ctypes_type(result))
                self.assertEqual(list(function.argtypes), [self.header.ctypes_type(kind) for kind in parameters])

    def test_the_same_callbacks(self):
        self.assertTrue(self.header.callbacks)
        for name, (result, parameters) in self.header.callbacks.items():
            with self.subTest(name):
                callback = getattr(_native, name)
                self.assertIs(callback._restype_, self.header.ctypes_type(result))
                self.assertEqual(list(callback._argtypes_), [self.header.ctypes_type(kind) for kind in parameters])

    def test_the_same_numbers_and_handles(self):
        self.assertTrue(self.header.numbers and self.header.handles)
        for name, kind in self.header.numbers.items():
            self.assertIs(getattr(_native, name), NUMBERS[kind], name)
        for name in self.header.handles:
            self.assertIs(getattr(_native, name), ctypes.c_void_p, name)

    def test_the_same_structs_with_the_same_fields(self):
        ours = [name for name, value in vars(_native).items() if hasattr(value, "_fields_")]
        ours = [name for name in ours if name.startswith("imgdl_")]
        self.assertEqual(sorted(ours), sorted(self.header.structs))
        for name, fields in self.header.structs.items():
            with self.subTest(name):
                expected = [(field, self.header.ctypes_type(kind)) for field, kind in fields]
                self.assertEqual(getattr(_native, name)._fields_, expected)

    def test_the_same_constants(self):
        ours = [name for name in vars(_native) if name.startswith("IMGDL_")]
        self.assertEqual(sorted(ours), sorted(self.header.constants))

    def test_the_compiler_agrees(self):
        lines, expected = [], {}
        for name in self.header.constants:
            value = getattr(_native, name)
            if isinstance(value, bytes):
                lines.append(f'printf("{name} %s\\n", {name});')
                expected[name] = value.decode()
            else:
                lines.append(f'printf("{name} %lld\\n", (long long)(intptr_t){name});')
                expected[name] = str(ctypes.c_int64(value).value)
        for name, fields in self.header.structs.items():
            struct = getattr(_native, name)
            lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
            expected[name] = str(ctypes.sizeof(struct))
            for field, _ in fields:
                lines.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
                expected[f"{name}.{field}"] = str(getattr(struct, field).offset)
                lines.append(f'printf("sizeof {name}.{field} %zu\\n", sizeof((({name} *)0)->{field}));')
                expected[f"sizeof {name}.{field}"] = str(getattr(struct, field).size)
        for name in self.header.numbers:
            lines.append(f'printf("{name} %zu %d\\n", sizeof({name}), ({name})-1 < 0);')
            number = getattr(_native, name)
            expected[name] = f"{ctypes.sizeof(number)} {int(number(-1).value < 0)}"
        program = "#include <imgdl.h>\n#include <stdio.h>\nint main(void)\n{\n" + "\n".join(lines) + "\nreturn 0;\n}\n"
        with tempfile.TemporaryDirectory() as folder:
            source, binary = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
            Path(source).write_text(program, "utf-8")
            compiler = os.environ.get("CC", "cc")
            subprocess.run([compiler, "-std=c11", f"-I{HEADER.parent}", source, "-o", binary], check=True)
            output = subprocess.run([binary], check=True, stdout=subprocess.PIPE).stdout.decode()
        told = {}
        for line in output.splitlines():
            name = next(each for each in (line.rsplit(" ", 1)[0], line.rsplit(" ", 2)[0]) if each in expected)
            told[name] = line[len(name) + 1 :]
        self.assertEqual(told, expected)

    def test_every_error_has_its_code_and_its_name(self):
        errors = {name: getattr(_native, name) for name in self.header.constants if name.startswith("IMGDL_ERROR_")}
        self.assertEqual({f"IMGDL_ERROR_{code.name}": code.value for code in Code if code}, errors)
        for name, value in errors.items():
            self.assertEqual(_native.imgdl_error_name(value).decode(), name)

    def test_the_version(self):
        self.assertEqual(_native.imgdl_version(), _native.IMGDL_VERSION_NUMBER)
        self.assertEqual(_native.imgdl_version_string(), _native.IMGDL_VERSION_STRING)
        self.assertEqual(imgdl.__version__, _native.IMGDL_VERSION_STRING.decode())


if __name__ == "__main__":
    unittest.main()
