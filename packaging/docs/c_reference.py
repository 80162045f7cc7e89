"""The C reference: a page for each section of the header, and an index."""

from __future__ import annotations

import re
from pathlib import Path

from c_header import Declaration, Header, Member, Prose, Section
from comment_text import to_html
from pages import escape, page, write

LABEL = re.compile(r"(?:^|(?<=[.)] ))(Takes|Gives|Calls|Returns besides|Returns|Threads):\s+")
SINCE = re.compile(r"\s*\bSince:? +(\d+\.\d+)\.?\s*$")


class CReference:
    def __init__(self, header: Header, version: str) -> None:
        self.header, self.version = header, version
        self.names = header.names()
        self.pages = {each.name: _file(section) for section in header.sections for each in section.declarations}

    def place(self, name: str) -> str | None:
        """The address of what has this name, from the folder of the reference."""
        for candidate in (name, f"IMGDL_ERROR_{name}"):
            if candidate in self.names:
                at = self.names[candidate]
                file = self.pages.get(at) or next(
                    self.pages[each.name] for each in self.header.declarations
                    if any(at in member.names for member in each.members))
                return f"{file}#{candidate}"
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
            names = [each.name for each in section.declarations]
            listed = "".join(f'<li><a href="#{name}"><code>{name}</code></a></li>' for name in names)
            body = [f'<p><a href="index.html">C reference</a></p><h1>{escape(title)}</h1>']
            body += [f"<details><summary>On this page</summary><ul>{listed}</ul></details>" if listed else ""]
            body += [self._item(item) for item in section.items]
            write(folder / _file(section), page(title, "\n".join(body), 1, self.version))
        write(folder / "index.html", page("C reference", self._index(), 1, self.version))

    def _index(self) -> str:
        titles = {_file(each): escape(each.title) for each in self.header.sections}
        sections = "".join(f'<li><a href="{file}">{title}</a></li>' for file, title in titles.items())
        functions = sorted(each.name for each in self.header.declarations if each.kind == "function")
        others = sorted(set(self.names) - set(functions))
        # The contents in the comment are the list of sections here.
        left_out = re.compile(r"^ *\d+  \S|^SPDX")
        introduction = [line for line in self.header.introduction if not left_out.match(line)]
        return (f"<h1>C reference</h1>{to_html(introduction, self.link)}<h2>Sections</h2><ol>{sections}</ol>"
                f"<h2>Functions</h2><ul>{self._list(functions)}</ul>"
                f"<h2>Types and constants</h2><ul>{self._list(others)}</ul>")

    def _list(self, names: list[str]) -> str:
        return "".join(f"<li><code>{self.link(name)}</code></li>" for name in names)

    def _item(self, item: Prose | Declaration) -> str:
        if isinstance(item, Prose):
            return to_html(item.lines, self.link)
        kind = {"function": "", "enum": "values"}.get(item.kind, item.kind)
        parts = [f'<h3 id="{item.name}"><code>{item.name}</code> <span class=kind>{kind}</span></h3>']
        if item.kind in ("function", "type", "constant"):
            parts.append(f"<pre>{self._code(item)}</pre>")
        elif item.code != "enum" and item.kind == "enum":
            parts.append(f"<pre>{escape(item.code)}</pre>")
        parts.append(self._comment(item.comment))
        if item.members:
            parts.append(f"<table>{''.join(map(self._member, item.members))}</table>")
        return "\n".join(parts)

    def _member(self, member: Member) -> str:
        comment = self.link(" ".join(member.comment))
        if member.is_heading:
            return f"<tr><th colspan=2>{comment}</th></tr>"
        if member.code.startswith("IMGDL_"):
            name = member.names[0]
            return f'<tr id="{name}"><td><code>{escape(member.code)}</code></td><td>{comment}</td></tr>'
        return f"<tr><td><code>{self.link(member.code)}</code></td><td>{comment}</td></tr>"

    def _code(self, item: Declaration) -> str:
        return self.link(item.code).replace(f'<a href="{self.place(item.name)}">{item.name}</a>', f"<b>{item.name}</b>")

    def _comment(self, lines: list[str]) -> str:
        """What a comment says, its parts (Takes, Gives, Returns …) as a list."""
        text = " ".join(line.strip() for line in lines)
        since = SINCE.search(text)
        text = SINCE.sub("", text)
        first, *rest = LABEL.split(text)
        rows = "".join(
            f"<dt>{label}</dt><dd>{self.link(said.strip())}</dd>" for label, said in zip(rest[::2], rest[1::2]))
        return ((f"<p>{self.link(first.strip())}</p>" if first.strip() else "") + (f"<dl>{rows}</dl>" if rows else "")
                + (f"<p class=since>Since {since.group(1)}</p>" if since else ""))


def _file(section: Section) -> str:
    return re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-") + ".html"

