"""include/imgdl.h as the reference needs it: what packaging/header.py reads, by name, and whether it says enough."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import header as reader  # noqa: E402
from header import HeaderError  # noqa: E402

__all__ = ["Entry", "Header", "HeaderError", "Row", "Section", "code_blocks", "problems", "read"]


@dataclass
class Row:
    """A field or a constant, a few of them of one type; without `code`, a heading between them."""

    names: list[str]
    code: str
    comment: str


@dataclass
class Entry:
    """What is declared. An enum is the values of the type before it, where there is one."""

    kind: str  # function, struct, enum, handle, type, callback or macro
    name: str
    code: str
    comment: str
    rows: list[Row] = field(default_factory=list)


@dataclass
class Section:
    number: int
    title: str
    items: list[Entry | str]

    @property
    def entries(self) -> list[Entry]:
        return [item for item in self.items if isinstance(item, Entry)]

    @property
    def prose(self) -> list[str]:
        return [item for item in self.items if isinstance(item, str)]


@dataclass
class Header:
    introduction: str
    sections: list[Section]

    @property
    def entries(self) -> list[Entry]:
        return [entry for section in self.sections for entry in section.entries]

    def names(self) -> dict[str, Entry]:
        """Every name that is declared, but fields."""
        found = {entry.name: entry for entry in self.entries}
        found.update((name, entry) for entry in self.entries if entry.kind == "enum"
                     for row in entry.rows for name in row.names)
        return found


def read(path: Path) -> Header:
    beginning, *sections = reader.read(path)
    texts = [item for item in beginning.items if isinstance(item, str)]
    return Header(texts[0] if texts else "", [_section(section) for section in sections])


def _section(section: reader.Section) -> Section:
    items: list[Entry | str] = [section.introduction] if section.introduction else []
    for item in section.items:
        last = items[-1] if items else None
        if isinstance(item, str):
            items.append(item)
        elif item.kind == "enum" and isinstance(last, Entry) and last.kind == "type":
            last.kind, last.rows = "enum", _rows(item.members)
            last.comment = f"{last.comment}\n{item.comment}".strip()
        else:
            # Behind the end of a struct stands what a release ended with.
            comment = re.sub(r"\n?\bend of \d[\d.]*$", "", item.comment)
            rows = _rows(item.members)
            items.append(Entry(item.kind, item.name or _common(rows), item.code, comment, rows))
    return Section(section.number, section.title, items)


def _rows(members: list[reader.Member]) -> list[Row]:
    rows: list[Row] = []
    over = ""
    for at, member in enumerate(members):
        if member.joins:
            rows[-1].names.append(member.name)
            rows[-1].code += f", {member.name}"
        else:
            over = " ".join(member.remark.split())
            rows.append(Row([member.name], member.code, ""))
        rows[-1].comment = rows[-1].comment or member.comment
        if at + 1 < len(members) and members[at + 1].joins:
            continue
        # What stands over a member that has a comment of its own is about several.
        if since := re.match(r"since (\d[\d.]*\d)$", over):
            rows.insert(-1, Row([], "", f"Since {since[1]}"))
        elif over and rows[-1].comment:
            rows.insert(-1, Row([], "", over))
        else:
            rows[-1].comment = rows[-1].comment or over
    return rows


def _common(rows: list[Row]) -> str:
    """What to call an enum that has no name."""
    names = [name for row in rows for name in row.names if not name.endswith(("_OK", "_FORCE32"))]
    prefix = os.path.commonprefix(names)
    return f"{prefix[:prefix.rindex('_')]}_…"


def code_blocks(text: str) -> list[str]:
    """Programs in prose: lines that stand four columns further in, with blank lines around them."""
    return [re.sub(r"^    ", "", block, flags=re.M).strip("\n") + "\n"
            for block in re.split(r"\n\s*\n", "\n" + text) if re.match(r"\n?    \S", block)]


def problems(header: Header) -> list[str]:
    """What every function has to say and one does not."""
    found = []
    for section in header.sections:
        for entry in section.entries:
            if entry.kind != "function":
                continue
            if not entry.comment:
                found.append(f"{entry.name} has no comment right before it")
                continue
            if not re.search(r"\bSince:?\s+\d+\.\d+", entry.comment):
                found.append(f"{entry.name} does not say since which version it is there")
            # Several functions may have it said once, in prose of their section.
            if entry.code.startswith("imgdl_status ") and not re.search(
                    r"[Rr]eturns?\b", " ".join([entry.comment, *section.prose])):
                found.append(f"{entry.name} returns imgdl_status and does not say which")
    return found
