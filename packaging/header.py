"""Reads include/imgdl.h: its sections, what each declares, and the comments on it.

The header is written by hand in one style, and this reads that style and no other C: what it cannot place is an error,
so that nothing is left out of what is made from it.
"""
import re
from dataclasses import dataclass, field


class HeaderError(Exception):
    pass


@dataclass
class Member:
    """A field of a struct, or a constant of an enum."""
    name: str
    code: str            # `uint32_t width` or `IMGDL_OK = 0`
    comment: str = ""
    remark: str = ""     # the comment that stands over it
    joins: bool = False  # it is one of several names behind one type, and not the first


@dataclass
class Declaration:
    kind: str            # function, struct, enum, handle, type, callback or macro
    name: str            # "" for an enum
    code: str            # without comments, on one line; a macro's value
    comment: str = ""
    members: list = field(default_factory=list)


@dataclass
class Section:
    number: int          # 0: what stands before the first
    title: str
    introduction: str = ""
    items: list = field(default_factory=list)   # Declaration, or str for a comment that stands alone

    def declarations(self, kind):
        return [item for item in self.items if isinstance(item, Declaration) and item.kind == kind]


# What the reader passes over: guards, includes, and what C++ and compilers are told.
IGNORED = re.compile(r'#(ifndef|ifdef|if|else|endif|include)\b|#define (IMGDL_H|IMGDL_API|IMGDL_CHECKED)\b|extern "C" \{|\}$')
TITLE = re.compile(r"-{20,}\n(\d+)  (.+)(?:\n|$)")


def plain(comment):
    """The words of a comment, without its frame."""
    lines = comment[2:-2].split("\n")
    lines = [lines[0].lstrip("*").strip()] + [re.sub(r"^\s*\*? ?", "", line, count=1).rstrip() for line in lines[1:]]
    return "\n".join(lines).strip("\n").rstrip()


def one_line(code):
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", " ", code, flags=re.S)).strip().rstrip(";,").strip()


def pieces(text, end=";"):
    """(comment or code, column, whether it begins its line, whether a blank line follows) for each piece."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        start, column = at, at - (text.rfind("\n", 0, at) + 1)
        first = text[start - column:start].strip() == ""
        if text.startswith("/*", at):
            at = text.index("*/", at) + 2
        elif text[at] == "#":
            at = text.find("\n", at)
            comment = text.find("/*", start, at)
            at = comment if comment >= 0 else at
        elif text.startswith('extern "C" {', at) or re.match(r"\}\s*(#|$)", text[at:]):
            at = text.find("\n", at)
        else:
            depth = 0
            while at < len(text) and (depth or text[at] != end):
                if text.startswith("/*", at):
                    if not depth:
                        break  # behind an enum's last constant
                    at = text.index("*/", at)
                depth += (text[at] in "({") - (text[at] in ")}")
                at += 1
            at += text[at:at + 1] == end
        yield text[start:at].rstrip(), column, first, re.match(r"[ \t]*\n[ \t]*\n", text[at:]) is not None


def members(body, end):
    """The fields or constants between the braces."""
    found, over, trailing, width = [], "", None, 0
    for piece, column, first, _ in pieces(body, end):
        if piece.startswith("/*"):
            if not first or column == trailing:
                text, trailing = plain(piece), column
                if not first and found[-1].comment:
                    raise HeaderError(f"two comments behind {found[-1].code}")
                found[-1].comment = f"{found[-1].comment} {text}".strip()
            else:
                over, trailing = plain(piece), None
            continue
        for number, code in enumerate(split_names(one_line(piece))):
            name = (re.search(r"\(\*(\w+)\)", code) or re.match(r"(IMGDL_\w+)", code)
                    or re.search(r"(\w+)(\[\w+\])?$", code))
            found.append(Member(name[1], code, "", over, number > 0))
            over = ""
    return found


def split_names(code):
    """`uint64_t hits, misses` as two fields."""
    if "(" in code or "," not in code:
        return [code]
    type_name, first, rest = re.match(r"(.*?)(\w+)\s*,\s*(.*)", code).groups()
    return [type_name + name for name in [first, *re.split(r"\s*,\s*", rest)]]


def declaration(code, comment):
    body = re.search(r"\{(.*)\}", code, re.S)
    flat = one_line(code)
    if body and "enum" in flat.split("{")[0]:
        return Declaration("enum", "", "", comment, members(body[1], ","))
    if body:
        name = re.search(r"struct (imgdl_\w+) \{", flat)
        return Declaration("struct", name[1], flat, comment, members(body[1], ";"))
    if flat.startswith("IMGDL_API "):
        flat = flat.removeprefix("IMGDL_API ").removeprefix("IMGDL_CHECKED ")
        return Declaration("function", re.search(r"\b(imgdl_\w+)\(", flat)[1], flat, comment)
    match = re.fullmatch(r"typedef struct (imgdl_\w+) \1", flat)
    if match:
        return Declaration("handle", match[1], flat, comment)
    match = re.fullmatch(r"typedef .*\(\*(imgdl_\w+)\)\(.*\)|typedef [\w ]+?(\w+)", flat)
    if not match:
        raise HeaderError(f"what is this? {flat}")
    return Declaration("callback" if match[1] else "type", match[1] or match[2], flat, comment)


def read(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    sections, comment, last = [Section(0, "")], None, None
    for piece, column, first, blank_follows in pieces(text):
        current = sections[-1]
        if piece.startswith("/*"):
            words = plain(piece)
            title = TITLE.match(words)
            if title:
                introduction = re.sub(r"\n?-{20,}\s*$", "", words[title.end():]).strip("\n")
                sections.append(Section(int(title[1]), title[2], introduction))
                comment = last = None
            elif not first and last:
                last.comment = f"{last.comment}\n{words}".strip()
            elif blank_follows or current.number == 0:
                current.items.append(words)
            elif comment is not None:
                raise HeaderError(f"two comments before a declaration: {words}")
            else:
                comment = words
            continue
        if IGNORED.match(piece):
            last = None
            continue
        if piece.startswith("#define "):
            name, value = re.match(r"#define (\w+) ?(.*)", piece, re.S).groups()
            last = Declaration("macro", name, value, comment or "")
        else:
            last = declaration(piece, comment or "")
        comment = None
        current.items.append(last)
    if comment is not None:
        raise HeaderError(f"a comment on nothing: {comment}")
    # A handle whose struct is declared in full further on is no handle.
    structs = {item.name for section in sections for item in section.declarations("struct")}
    for section in sections:
        section.items = [item for item in section.items if isinstance(item, str)
                         or not (item.kind == "handle" and item.name in structs)]
    return sections
