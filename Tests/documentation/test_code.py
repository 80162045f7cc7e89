"""Every block of code in the documentation compiles or runs, as README.md beside this file says."""

from __future__ import annotations

import re
import sys
import unittest
from pathlib import Path

import blocks
import rust_crate
from blocks import Block, BlockError
from world import BUILD, ROOT, World, agrees, in_order, tool

sys.path.insert(0, str(ROOT / "packaging/docs"))
import c_header  # noqa: E402

FRAMES = Path(__file__).resolve().parent / "frames"
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
# Where the programs in the comments of the header go, in order.
HEADER_FRAMES = ["draws", "configured"]

COMPILERS = {
    "c": ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"],
    "cpp": ["c++", "-std=c++17", "-Wall", "-Wextra", "-Werror"],
}

# An example in Python that looks after all errors.
CATCHES = re.compile(r"^ *except imgdl\.Error\b", re.M)

# In place of the pictures of an example: refused by the call, answered with an error, and cut.
ADDRESS = re.compile(r"https://example\.org/(?:picture\.(?:jpg|png|webp)|nothing\.jpg(?=\?_)|\{name\})(?:\?etag=v1|\?_signature=secret)?(?!\?)")
FAILURES = {
    "refused": "http:/example.org/picture.jpg",
    "missing": "https://example.org/nothing.jpg",
    "cut": "https://example.org/picture.jpg?short_by=1000",
}
# What an example says then, on one of its outputs, however it ends: the name of the error, or its words. One of them is
# about another refusal, and a batch counts.
SAYS = {
    "refused": "two belong|is no address|INVALID_URL|INVALID_HEADER|failed: [1-9]",
    "missing": "404|INVALID_STATUS|INVALID_HEADER|failed: [1-9]",
    "cut": "TRUNCATED|remaining to read|bytes missing|INVALID_HEADER|failed: [1-9]",
}

# The program of the console says what kind of error it was, as docs/terminal.md has them.
STATUSES = {"console": (1, 4, 5)}

# From 3.12 on Python warns of every fork beside threads, which an example is about.
WARNINGS = ["-W", "error", "-W", "ignore:This process:DeprecationWarning"]


def header_blocks() -> list[Block]:
    header = c_header.read(ROOT / "include/imgdl.h")
    prose = [header.introduction, *(text for section in header.sections for text in section.prose)]
    programs = [program for text in prose for program in c_header.code_blocks(text)]
    return [Block("include/imgdl.h", number, "c", program, frame)
            for number, (program, frame) in enumerate(zip(programs, HEADER_FRAMES, strict=True), 1)]


class CodeTests(unittest.TestCase):
    """Its tests are made below, one for each block."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.world = World()
        cls.addClassCleanup(cls.world.end)
        home = cls.world.folder / "rust"
        home.mkdir()
        examples = []
        for block in BLOCKS:
            if block.language == "rust":
                text = blocks.framed(block, FRAMES)
                examples.append((block.name, block.place, cls.world.local(text, home)))
                for what, address in FAILURES.items() if block in FAILING else ():
                    failing = cls.world.local(ADDRESS.sub(address, text), cls.world.folder / f"{block.name}_{what}")
                    examples.append((f"{block.name}_{what}", block.place, failing))
        cls.rust, cls.rust_said = rust_crate.build(examples)

    def look_at(self, block: Block) -> None:
        home = self.world.folder / "rust" if block.language == "rust" else self.world.home(block.name)
        self.has_run = False
        getattr(self, f"look_at_{block.language}")(block, home)
        if block.prints is not None:
            self.assertTrue(self.has_run, f"{block.place} is not run: what it prints is not known")

    def look_at_c(self, block: Block, home: Path) -> None:
        text = self.world.local(blocks.framed(block, FRAMES), home)
        source = home / f"example.{block.language}"
        source.write_text(text, "utf-8")
        is_program = re.search(r"^(?:int|auto) main\(", text, re.M) is not None
        linked = ["-o", home / "example", "-L", BUILD / "lib", "-limgdl", "-pthread"]
        how = linked if is_program else ["-c", "-o", home / "example.o"]
        status, said = tool(*COMPILERS[block.language], "-I", ROOT / "include", source, *how, folder=home)
        self.assertEqual(status, 0, f"{block.place} does not compile:\n{said}")
        if is_program and not block.is_compiled_only:
            self.run_program(block, [home / "example"], home)

    look_at_cpp = look_at_c

    def look_at_python(self, block: Block, home: Path) -> None:
        text = self.world.local(blocks.framed(block, FRAMES), home)
        (home / "example.py").write_text(text, "utf-8")
        compile(text, block.place, "exec")
        if not block.is_compiled_only:
            self.run_program(block, [sys.executable, *WARNINGS, "example.py"], home)

    def look_at_rust(self, block: Block, home: Path) -> None:
        self.assertIsNotNone(self.rust, f"the examples in Rust do not compile:\n{self.rust_said}")
        if not block.is_compiled_only:
            self.run_program(block, [self.rust, block.name], home)

    def look_at_sh(self, block: Block, home: Path) -> None:
        text = block.text
        if block.language == "console":
            text = "".join(line[2:] for line in text.splitlines(keepends=True) if line.startswith("$ "))
        script = home / "script"
        script.write_text(self.world.local(text, home), "utf-8")
        status, said = tool("sh", "-n", script)
        self.assertEqual(status, 0, f"{block.place}: {said}")
        for target in re.findall(r"(?:^|&& |sudo )make((?: [a-z][\w-]*| [A-Z]+=\S+)*)", text, re.M):
            for name in re.findall(r" ([a-z][\w-]*)", target):
                self.assertIn(name, TARGETS, f"{block.place}: make {name}: there is no such target")
        if block.is_run and block.language == "sh":
            self.run_program(block, ["sh", "-e", script], home)
        elif block.is_run:
            self.run_console(block, home)

    look_at_console = look_at_sh

    def look_at_failures(self, block: Block) -> None:
        """The example with addresses that bring no picture: it ends by itself, and fails or says why."""
        for what, address in FAILURES.items():
            home = self.world.home(f"{block.name}_{what}")
            done = self.world.run(self.failing(block, what, address, home), home)
            said = f"{block.place}, {what}: status {done.returncode}\n{done.stdout}{done.stderr}"
            # A signal would be negative.
            self.assertIn(done.returncode, STATUSES.get(block.language, (0, 1)), said)
            # What looks after errors of its one download leaves none to the interpreter, whose status is 1, too.
            if CATCHES.search(block.text) and len(ADDRESS.findall(block.text)) == 1:
                self.assertNotIn("Traceback", done.stderr, said)
            # A limit that the example sets may be reached before the cut is, or after it.
            limits = "|IMGDL_ERROR_(BODY|PIXEL)_LIMIT" if what == "cut" and "LimitError" in block.text else ""
            self.assertRegex(done.stdout + done.stderr, SAYS[what] + limits, said)

    def test_the_crawler_with_servers_that_it_may_reach(self) -> None:
        """The example for URLs of strangers, which is run with a refused address above: with a picture, and with none."""
        block, = (block for block in BLOCKS if block.frame == "crawler")
        denies = "config.flags = IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES;\n"
        self.assertIn(denies, block.text)
        home = self.world.home("crawler_with_servers")
        source = home / "example.c"
        source.write_text(blocks.framed(block, FRAMES).replace(denies, ""), "utf-8")
        linked = ["-o", home / "example", "-L", BUILD / "lib", "-limgdl", "-pthread"]
        status, said = tool(*COMPILERS["c"], "-I", ROOT / "include", source, *linked, folder=home)
        self.assertEqual(status, 0, said)
        for what, address in {**FAILURES, "good": "https://example.org/picture.jpg"}.items():
            done = self.world.run([home / "example", self.world.local(address, home)], home)
            self.assertEqual(done.returncode, 1 if what == "refused" else 0, f"{what}: {done.stdout}{done.stderr}")
            self.assertRegex(done.stdout, {**SAYS, "good": "^IMGDL_OK $"}[what], what)

    def failing(self, block: Block, what: str, address: str, home: Path) -> list[str | Path]:
        """Its command, with that address."""
        if block.language == "rust":
            self.assertIsNotNone(self.rust, f"the examples in Rust do not compile:\n{self.rust_said}")
            return [self.rust, f"{block.name}_{what}"]
        text = self.world.local(ADDRESS.sub(address, blocks.framed(block, FRAMES)), home)
        if block.language == "console":
            commands = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
            return ["sh", "-c", "\n".join(commands)]
        if block.language == "python":
            (home / "example.py").write_text(text, "utf-8")
            return [sys.executable, *WARNINGS, "example.py"]
        source = home / f"example.{block.language}"
        source.write_text(text, "utf-8")
        linked = ["-o", home / "example", "-L", BUILD / "lib", "-limgdl", "-pthread"]
        status, said = tool(*COMPILERS[block.language], "-I", ROOT / "include", source, *linked, folder=home)
        self.assertEqual(status, 0, f"{block.place} does not compile:\n{said}")
        return [home / "example"]

    def run_program(self, block: Block, command: list[str | Path], home: Path) -> None:
        self.has_run = True
        done = self.world.run(command, home)
        said = f"{block.place}: status {done.returncode}\n{done.stdout}{done.stderr}"
        self.assertEqual((done.returncode, done.stderr), (0, ""), said)
        if block.prints is not None:
            given = self.world.remote(done.stdout, home)
            self.assertTrue(agrees(block.prints, given), f"{block.place} prints:\n{given}\nand not\n{block.prints}")

    def run_console(self, block: Block, home: Path) -> None:
        for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
            command, _, expected = part.partition("\n")
            done = self.world.run(["sh", "-c", self.world.local(command, home)], home)
            given = self.world.remote(done.stdout + done.stderr, home)
            # Downloads end in any order.
            said = f"{block.place}: {command}\nprints:\n{given}\nand not\n{expected}"
            self.assertTrue(agrees(in_order(expected), in_order(given)), said)

    def test_threads_page_tells_who_is_called_where(self) -> None:
        home = self.world.home("threads")
        source = Path(__file__).resolve().parent / "threads.c"
        linked = ["-o", home / "threads", "-L", BUILD / "lib", "-limgdl", "-pthread"]
        status, said = tool(*COMPILERS["c"], "-I", ROOT / "include", source, *linked, folder=home)
        self.assertEqual(status, 0, said)
        done = self.world.run([home / "threads", f"{self.world.address}picture.jpg"], home)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        page = (ROOT / "docs/threads.md").read_text("utf-8")
        rows = {row.split("`")[1]: row for row in page.split("\n") if row.startswith("| `")}
        told = {tuple(line.split(": ")) for line in done.stdout.splitlines()}
        self.assertGreaterEqual(len({thread for _, thread in told}), 3)
        for what, thread in sorted(told):
            with self.subTest(what):
                self.assertIn(what, rows[thread])


class BlockTests(unittest.TestCase):
    """What would otherwise pass without a look is refused."""

    def test_pages_have_only_blocks_that_are_looked_at(self) -> None:
        self.assertEqual(PROBLEMS, [])

    def test_block_without_language(self) -> None:
        with self.assertRaisesRegex(BlockError, "page:1: `` is none of"):
            blocks.read("```\nx\n```\n", "page")

    def test_block_in_a_language_nobody_compiles(self) -> None:
        with self.assertRaisesRegex(BlockError, "`java` is none of"):
            blocks.read("```java\nx\n```\n", "page")

    def test_indented_code(self) -> None:
        with self.assertRaisesRegex(BlockError, "page:3: code without a language"):
            blocks.read("Text.\n\n    make run\n", "page")

    def test_block_without_end(self) -> None:
        with self.assertRaisesRegex(BlockError, "has no end"):
            blocks.read("```c\nint x;\n", "page")

    def test_comment_that_means_nothing(self) -> None:
        with self.assertRaisesRegex(BlockError, "`runs` means nothing for c"):
            blocks.read("<!-- code: runs -->\n```c\n```\n", "page")

    def test_comment_without_block(self) -> None:
        with self.assertRaisesRegex(BlockError, "no block follows"):
            blocks.read("<!-- code: compiled -->\nText.\n", "page")

    def test_frame_that_is_not_there(self) -> None:
        (block,) = blocks.read("<!-- code: inside nothing -->\n```c\n```\n", "page")
        with self.assertRaisesRegex(BlockError, "there is no nothing.c"):
            blocks.framed(block, FRAMES)

    def test_output_is_compared(self) -> None:
        self.assertTrue(agrees("900 × 600 …\n", "900 × 600 png\n"))
        self.assertFalse(agrees("900 × 600\n", "900 × 601\n"))


def _targets() -> set[str]:
    text = (ROOT / "Makefile").read_text("utf-8")
    return set(re.findall(r"^([a-z][\w-]*)(?=[\w .-]*:(?!=))", text, re.M)) | set(
        name for line in re.findall(r"^\.PHONY: (.*)$", text, re.M) for name in line.split())


TARGETS = _targets()
BLOCKS: list[Block] = header_blocks()
PROBLEMS: list[str] = []
for page in PAGES:
    try:
        BLOCKS += blocks.read((ROOT / page).read_text("utf-8"), page)
    except BlockError as problem:
        PROBLEMS.append(str(problem))
FAILING = [block for block in BLOCKS if block.language in ("c", "cpp", "python", "rust", "console")
           and not block.is_compiled_only and (block.is_run or block.language != "console") and ADDRESS.search(block.text)]
for each in FAILING:
    setattr(CodeTests, f"test_failures_{each.name}", lambda self, block=each: self.look_at_failures(block))
for each in [block for block in BLOCKS if block.language != "text"]:
    setattr(CodeTests, f"test_{each.name}", lambda self, block=each: self.look_at(block))

if __name__ == "__main__":
    unittest.main()
