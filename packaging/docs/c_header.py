"""Reads include/imgdl.h: its sections, and in each the declarations with what their comments say.

The header keeps to a few forms, and this reader refuses what has none of them, so that nothing of it is left out
silently: prose in a comment of its own, a comment right before what it is about, comments behind or above members.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field

RULE = re.compile(r"^-{20,}$")
SECTION = re.compile(r"^(\d+)  (\S.*)$")


class HeaderError(Exception):
    """The header holds something that this reader, and so perhaps a reader of the manual, does not understand."""


@dataclass
class Member:
    """A field of a struct, a constant of an enum; or, without a name, a heading between them."""

    names: list[str]
    code: str
    comment: list[str]

    @property
    def is_heading(self) -> bool:
        return not self.names


@dataclass
class Declaration:
    kind: str  # function, struct, enum, type, constant
    name: str
    code: str
    comment: list[str]
    members: list[Member] = field(default_factory=list)
    is_documented: bool = False  # by a comment of the form /** … */


@dataclass
class Prose:
    lines: list[str]


@dataclass
class Section:
    number: int
    title: str
    items: list[Prose | Declaration] = field(default_factory=list)

    @property
    def declarations(self) -> list[Declaration]:
        return [item for item in self.items if isinstance(item, Declaration)]


@dataclass
class Header:
    introduction: list[str]
    sections: list[Section]

    @property
    def declarations(self) -> list[Declaration]:
        return [declaration for section in self.sections for declaration in section.declarations]

    def names(self) -> dict[str, str]:
        """Every name that the header declares but fields, and the declaration that it is found at."""
        found: dict[str, str] = {}
        for declaration in self.declarations:
            found.setdefault(declaration.name, declaration.name)
            if declaration.kind == "enum":
                for member in declaration.members:
                    found.update((name, name) for name in member.names)
        return found


def comment_lines(text: str) -> list[str]:
    """The lines of a comment, without what makes it one."""
    inside = re.sub(r"^/\*\*?|\*/$", "", text.strip())
    lines = [re.sub(r"^\s*\* ?(?=\s|\S|$)", "", line) if i else line for i, line in enumerate(inside.split("\n"))]
    lines = [line.rstrip() for line in lines]
    if lines:
        lines[0] = lines[0].strip()
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    # Text after /** stands two columns further left than the lines below it.
    if text.lstrip().startswith("/**"):
        lines = [re.sub(r"^ ", "", line) for line in lines]
    return lines


TOKEN = re.compile(r"/\*.*?\*/|#(?:[^\n\\]|\\\n)*|[^\s/#](?:[^;{}/#]|/(?!\*))*?(?=;|\{|\}|/\*)|[;{}]", re.S)


def parse(text: str) -> Header:
    return _Reader(text).header()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.header_ = Header([], [])
        self.pending: list[tuple[str, int, int]] = []  # comments that may belong to what comes: text, begin, end

    def header(self) -> Header:
        position = 0
        while match := re.compile(r"\s*").match(self.text, position):
            position = match.end()
            if position == len(self.text):
                break
            position = self._item(position)
        self._flush()
        return self.header_

    def _item(self, position: int) -> int:
        text = self.text
        if text.startswith("/*", position):
            end = text.index("*/", position) + 2
            self._comment(text[position:end], position, end)
            return end
        if text[position] == "#":
            match = re.compile(r"(?:[^\n\\/]|\\\n|/(?!\*))*").match(text, position)
            assert match is not None
            self._directive(match.group().rstrip(), position)
            return match.end()
        if match := re.compile(r'extern "C" \{|\}\n#endif').match(text, position):
            return match.start() + (12 if match.group()[0] == "e" else 1)
        end = self._statement_end(position)
        # A comment on the line on which a declaration ends is about it.
        match = re.compile(r"[ \t]*(/\*.*?\*/)", re.S).match(text, end)
        behind = match.group(1) if match else ""
        self._declare(text[position:end], position, comment_lines(behind) if behind else [])
        return match.end() if match else end

    def _statement_end(self, position: int) -> int:
        depth = 0
        for match in re.compile(r"/\*.*?\*/|[{};]", re.S).finditer(self.text, position):
            depth += {"{": 1, "}": -1}.get(match.group(), 0)
            if match.group() == ";" and depth == 0:
                return match.end()
        raise HeaderError(f"no end of {self.text[position:position + 60]!r}")

    # Comments

    def _comment(self, text: str, begin: int, end: int) -> None:
        lines = comment_lines(text)
        if lines and RULE.match(lines[0]):
            self._flush()
            heading = SECTION.match(lines[1]) if len(lines) > 1 else None
            if heading is None:
                raise HeaderError(f"a section without number and title: {lines[:2]}")
            section = Section(int(heading.group(1)), heading.group(2))
            body = [line for line in lines[2:] if not re.match(r"^\s*-{20,}$", line)]
            if any(body):
                section.items.append(Prose(_trim(body)))
            self.header_.sections.append(section)
        elif not self.header_.sections:
            self.header_.introduction = self.header_.introduction or lines
        else:
            self.pending.append((text, begin, end))

    def _flush(self) -> None:
        """What is about nothing in particular stands for itself."""
        for text, _, _ in self.pending:
            self._add(Prose(comment_lines(text)))
        self.pending = []

    def _take(self, begin: int) -> tuple[list[str], bool]:
        """The comment that ends on the line before `begin`."""
        own: list[str] = []
        is_documented = False
        if self.pending:
            text, _, end = self.pending[-1]
            if self.text[end:begin].count("\n") == 1:
                self.pending.pop()
                own, is_documented = comment_lines(text), text.startswith("/**")
        self._flush()
        return own, is_documented

    def _add(self, item: Prose | Declaration) -> None:
        if not self.header_.sections:
            raise HeaderError(f"before the first section: {item}")
        self.header_.sections[-1].items.append(item)

    # Declarations

    def _directive(self, text: str, begin: int) -> None:
        match = re.match(r"#define (IMGDL_\w+) (.+)", text, re.S)
        if match is None or not self.header_.sections:
            return  # the guard, includes, conditions
        own, _ = self._take(begin)
        self._add(Declaration("constant", match.group(1), text, own))

    def _declare(self, code: str, begin: int, behind: list[str]) -> None:
        bare = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
        own, is_documented = self._take(begin)
        comment = own + behind if not behind or not re.match(r"end of \d", behind[0]) else own
        if match := re.match(r"IMGDL_API [\w ]+?[ *]+(imgdl_\w+)\(", bare):
            self._add(Declaration("function", match.group(1), _one_indent(code), comment, [], is_documented))
        elif re.match(r"enum \{", bare):
            self._enum(code, comment)
        elif match := re.match(r"(?:typedef )?struct (imgdl_\w+) \{", bare):
            for section in self.header_.sections:
                # Where it was only announced.
                section.items = [item for item in section.items if getattr(item, "name", "") != match.group(1)]
            self._add(Declaration("struct", match.group(1), bare, comment, _members(code, _field_names)))
        elif match := re.match(r"typedef struct (imgdl_\w+) \1;|typedef \w+ (imgdl_\w+);", bare):
            name = match.group(1) or match.group(2)
            if not any(each.name == name for each in self.header_.declarations):
                self._add(Declaration("type", name, code, comment))
        elif match := re.match(r"typedef [\w ]+?[ *]*\(\*(imgdl_\w+)\)\(", bare):
            self._add(Declaration("type", match.group(1), _one_indent(code), comment, [], is_documented))
        else:
            raise HeaderError(f"not a form that the manual knows: {code[:80]!r}")

    def _enum(self, code: str, comment: list[str]) -> None:
        members = _members(code, lambda part: re.findall(r"\b(IMGDL_\w+)\b(?=\s*(?:=|$))", part))
        # An enum has no name of its own: it gives the values of the type before it, if one was.
        items = self.header_.sections[-1].items
        last = items[-1] if items else None
        if isinstance(last, Declaration) and last.kind == "type" and re.match(r"typedef u?int\d+_t ", last.code):
            last.kind, last.members = "enum", members
            last.comment += comment
        else:
            names = [name for member in members for name in member.names if not name.endswith(("_OK", "_FORCE32"))]
            prefix = os.path.commonprefix(names)
            self._add(Declaration("enum", f"{prefix[:prefix.rindex('_')]}_…", "enum", comment, members))


def _field_names(part: str) -> list[str]:
    if match := re.search(r"\(\*(\w+)\)\(", part):
        return [match.group(1)]
    return re.findall(r"(\w+)(?:\[\w+\])?(?=\s*(?:,|$))", part)


def _members(code: str, names_of: Callable[[str], list[str]]) -> list[Member]:
    """What stands between the braces."""
    body = code[code.index("{") + 1 : code.rindex("}")]
    members: list[Member] = []
    above: list[str] = []
    last_column = None
    position = 0
    token = re.compile(r"/\*.*?\*/|[^/;,\s](?:\([^()]*\)|[^/;,(]|/(?!\*))*[;,]?|\n", re.S)
    is_enum = "enum" in code[: code.index("{")]
    if not is_enum:
        token = re.compile(r"/\*.*?\*/|[^/;\s](?:[^/;]|/(?!\*))*;|\n", re.S)
    fresh_line = True
    while match := token.search(body, position):
        part = match.group()
        position = match.end()
        if part == "\n":
            fresh_line = True
            continue
        column = match.start() - (body.rfind("\n", 0, match.start()) + 1)
        if not part.startswith("/*"):
            flat = re.sub(r"\s+", " ", part).rstrip(", ")
            member = Member(names_of(flat.rstrip(";")), flat, [])
            if not member.names:
                raise HeaderError(f"a member without a name: {part!r}")
            member.comment, above = above, []
            members.append(member)
            last_column = None
        elif not fresh_line and members:
            # Behind a member: what stands above it then is a heading for several.
            if members[-1].comment and last_column is None:
                members.insert(-1, Member([], "", members[-1].comment))
                members[-1].comment = []
            members[-1].comment += comment_lines(part)
            last_column = column
        elif last_column is not None and abs(column - last_column) <= 1 and column > 8:
            members[-1].comment += comment_lines(part)
        else:
            lines = comment_lines(part)
            if re.match(r"^since \d", lines[0]):
                members.append(Member([], "", ["Since " + lines[0][6:] + "."]))
            else:
                above += lines
            last_column = None
        fresh_line = "\n" in part
        if part.startswith("/*"):
            fresh_line = False
    return members


def _one_indent(code: str) -> str:
    """A function's parameters on their own lines, without the column that they were aligned to."""
    code = re.sub(r"^IMGDL_API ", "", code)
    flat = re.sub(r"\s+", " ", code)
    if len(flat) <= 100:
        return flat
    head, rest = flat.split("(", 1)
    return head + "(\n    " + re.sub(r", (?![^(]*\))", ",\n    ", rest.rsplit(")", 1)[0]) + ")" + rest.rsplit(")", 1)[1]


def _trim(lines: list[str]) -> list[str]:
    while lines and not lines[0].strip():
        lines = lines[1:]
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def code_blocks(lines: list[str]) -> list[list[str]]:
    """Programs in the prose: lines that stand four columns further in, with blank lines around them."""
    blocks: list[list[str]] = []
    current: list[str] = []
    before_is_blank = True
    for line in [*lines, ""]:
        if line.startswith("    ") and (current or before_is_blank):
            current.append(line[4:])
        elif current and not line.strip():
            blocks.append(current)
            current = []
        elif current:
            current = []
        before_is_blank = not line.strip()
    return blocks


def problems(header: Header) -> list[str]:
    """What every function has to say and one does not."""
    found = []
    for section, declaration in ((section, each) for section in header.sections for each in section.declarations):
        if declaration.kind != "function":
            continue
        text = " ".join(declaration.comment)
        if not declaration.is_documented or not text:
            found.append(f"{declaration.name} has no comment of the form /** … */ right before it")
        elif not re.search(r"\bSince:? +\d+\.\d+", text):
            found.append(f"{declaration.name} does not say since which version it is there")
        # Several functions may have it said once, in prose of their section.
        prose = " ".join(line for item in section.items if isinstance(item, Prose) for line in item.lines)
        if declaration.code.startswith("imgdl_status ") and not re.search(r"[Rr]eturns?\b", text + prose):
            found.append(f"{declaration.name} returns imgdl_status and does not say which")
    return found
