"""The blocks of code in Markdown, and what a comment before one says of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

LANGUAGES = ("c", "cpp", "python", "rust", "sh", "console", "text")
COMMENT = re.compile(r"^<!-- code: (.*?) -->$")


@dataclass
class Block:
    path: str
    line: int
    language: str
    text: str
    frame: str = ""
    is_compiled_only: bool = False
    is_run: bool = False
    prints: str | None = None

    @property
    def name(self) -> str:
        return re.sub(r"\W+", "_", f"{self.path}_{self.line}_{self.language}")

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


class BlockError(Exception):
    pass


def read(text: str, path: str) -> list[Block]:
    """The blocks of a page. Raises `BlockError` for one that would not be looked at."""
    blocks: list[Block] = []
    said = ""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if fence := re.match(r"^( *)(`{3,}|~{3,})(.*)$", line):
            begin, indent = at, len(fence.group(1))
            while at < len(lines) and lines[at].strip() != fence.group(2):
                at += 1
            if at == len(lines):
                raise BlockError(f"{path}:{begin}: the block has no end")
            inside = "\n".join(each[indent:] for each in lines[begin:at]) + "\n"
            at += 1
            _add(blocks, Block(path, begin, fence.group(3).strip(), inside), said)
            said = ""
        elif comment := COMMENT.match(line.strip()):
            said = comment.group(1)
        elif line.startswith("    ") and at > 1 and not lines[at - 2].strip() and not _is_in_list(lines, at - 1):
            raise BlockError(f"{path}:{at}: code without a language: use a fence, such as ```sh")
        elif line.strip() and said:
            raise BlockError(f"{path}:{at}: no block follows the comment `code: {said}`")
    return blocks


def _is_in_list(lines: list[str], at: int) -> bool:
    while at >= 0 and (not lines[at].strip() or lines[at].startswith(" ")):
        at -= 1
    return at >= 0 and re.match(r"^([-*+]|\d+\.) ", lines[at]) is not None


def _add(blocks: list[Block], block: Block, said: str) -> None:
    if block.language not in LANGUAGES:
        raise BlockError(f"{block.place}: `{block.language}` is none of {', '.join(LANGUAGES)}")
    for option in filter(None, said.split(", ")):
        if option.startswith("inside "):
            block.frame = option[len("inside "):]
        elif option == "compiled":
            block.is_compiled_only = True
        elif option == "run" and block.language in ("sh", "console"):
            block.is_run = True
        elif option == "prints" and block.language == "text" and blocks:
            blocks[-1].prints = block.text
        else:
            raise BlockError(f"{block.place}: `{option}` means nothing for {block.language}")
    blocks.append(block)


def framed(block: Block, frames: Path) -> str:
    """The whole program that a block is a part of."""
    if not block.frame:
        return block.text
    suffix = {"c": "c", "cpp": "cpp", "python": "py", "rust": "rs"}[block.language]
    path = frames / f"{block.frame}.{suffix}"
    if not path.exists():
        raise BlockError(f"{block.place}: there is no {path.name} in {frames.name}")
    frame = path.read_text("utf-8")
    match = re.search(r"^( *)EXAMPLE\n", frame, re.M)
    if match is None:
        raise BlockError(f"{path.name} does not say EXAMPLE")
    inside = "".join(match.group(1) + line if line.strip() else line for line in block.text.splitlines(keepends=True))
    return frame[: match.start()] + inside + frame[match.end() :]
