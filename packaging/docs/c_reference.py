"""The C reference: a page for each section of the header, and an index."""

from __future__ import annotations

import re
from pathlib import Path

from c_header import Entry, Header, Row, Section
from comment_text import to_html
from pages import escape, page, write

LABEL = re.compile(r"(?:^|(?<=[.)] ))(Takes|Gives|Calls|Returns besides|Returns|Threads):\s+")
SINCE = re.compile(r"\s*\bSince:?\s+(\d+\.\d+)\.?\s*$")
KINDS = {"function": "", "enum": "values"}


class CReference:
    def __init__(self, header: Header, version: str) -> None:
        self.header, self.version = header, version
        self.names = header.names()
        self.pages = {entry.name: _file(section) for section in header.sections for entry in section.entries}

    def place(self, name: str) -> str | None:
        """The address of what has this name, from the folder of the reference."""
        for candidate in (name, f"IMGDL_ERROR_{name}"):
            if candidate in self.names:
                return f"{self.pages[self.names[candidate].name]}#{candidate}"
        return None

    def link(self, text: str) -> str:
        """Escaped, and with names linked: whole ones, and those of errors without their beginning."""

        def replace(match: re.Match[str]) -> str:
            place = self.place(match.group())
            return f'<a href="{place}">{match.group()}</a>' if place else match.group()

        names = r"\b(?:imgdl_\w*[a-z0-9]|IMGDL_\w*[A-Z0-9]|[A-Z]{3,}(?:_[A-Z]+)*)\b(?!…)"
        return re.sub(names, replace, escape(text))

    def write(self, folder: Path) -> None:
        for section in self.header.sections:
            title = f"{section.number} {section.title}"
            names = [entry.name for entry in section.entries]
            listed = "".join(f'<li><a href="#{name}"><code>{name}</code></a></li>' for name in names)
            body = [f'<p><a href="index.html">C reference</a></p><h1>{escape(title)}</h1>']
            body += [f"<details><summary>On this page</summary><ul>{listed}</ul></details>" if listed else ""]
            body += [self._entry(item) if isinstance(item, Entry) else self._prose(item) for item in section.items]
            write(folder / _file(section), page(title, "\n".join(body), 1, self.version))
        write(folder / "index.html", page("C reference", self._index(), 1, self.version))

    def _index(self) -> str:
        titles = {_file(each): escape(each.title) for each in self.header.sections}
        sections = "".join(f'<li><a href="{file}">{title}</a></li>' for file, title in titles.items())
        functions = sorted(entry.name for entry in self.header.entries if entry.kind == "function")
        others = sorted(set(self.names) - set(functions))
        # The contents in the comment are the list of sections here.
        introduction = re.sub(r"^ *\d+  \S.*\n|^SPDX.*\n", "", self.header.introduction, flags=re.M)
        return (f"<h1>C reference</h1>{self._prose(introduction)}<h2>Sections</h2><ol>{sections}</ol>"
                f"<h2>Functions</h2><ul>{self._list(functions)}</ul>"
                f"<h2>Types and constants</h2><ul>{self._list(others)}</ul>")

    def _list(self, names: list[str]) -> str:
        return "".join(f"<li><code>{self.link(name)}</code></li>" for name in names)

    def _prose(self, text: str) -> str:
        return to_html(text.split("\n"), self.link)

    def _entry(self, entry: Entry) -> str:
        kind = KINDS.get(entry.kind, entry.kind)
        parts = [f'<h3 id="{entry.name}"><code>{entry.name}</code> <span class=kind>{kind}</span></h3>']
        if entry.kind != "struct" and entry.code:
            code = self.link(_declaration(entry))
            itself = f'<a href="{self.place(entry.name)}">{entry.name}</a>'
            parts.append(f"<pre>{code.replace(itself, f'<b>{entry.name}</b>')}</pre>")
        parts.append(self._comment(entry.comment))
        if entry.rows:
            parts.append(f"<table>{''.join(map(self._row, entry.rows))}</table>")
        return "\n".join(parts)

    def _row(self, row: Row) -> str:
        comment = self.link(row.comment)
        if not row.names:
            return f"<tr><th colspan=2>{comment}</th></tr>"
        if row.code.startswith("IMGDL_"):
            return f'<tr id="{row.names[0]}"><td><code>{escape(row.code)}</code></td><td>{comment}</td></tr>'
        return f"<tr><td><code>{self.link(row.code)}</code></td><td>{comment}</td></tr>"

    def _comment(self, comment: str) -> str:
        """What a comment says, its parts (Takes, Gives, Returns …) as a list."""
        text = " ".join(comment.split())
        since = SINCE.search(text)
        first, *rest = LABEL.split(SINCE.sub("", text))
        rows = "".join(
            f"<dt>{label}</dt><dd>{self.link(said.strip())}</dd>" for label, said in zip(rest[::2], rest[1::2]))
        return ((f"<p>{self.link(first.strip())}</p>" if first.strip() else "") + (f"<dl>{rows}</dl>" if rows else "")
                + (f"<p class=since>Since {since[1]}</p>" if since else ""))


def _file(section: Section) -> str:
    return re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-") + ".html"


def _declaration(entry: Entry) -> str:
    """As one would write it: each parameter on a line of its own where they are many."""
    if entry.kind == "macro":
        return f"#define {entry.name} {entry.code}"
    if len(entry.code) <= 100 or "(" not in entry.code:
        return entry.code + ";"
    head, name, rest = re.match(r"(.*?)(\(\*\w+\)|imgdl_\w+)\((.*)", entry.code).groups()  # type: ignore[union-attr]
    head += name
    parameters, _, behind = rest.rpartition(")")
    return head + "(\n    " + re.sub(r", (?![^(]*\))", ",\n    ", parameters) + ")" + behind + ";"
