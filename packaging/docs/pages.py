"""What all pages have in common: their frame, their style, and the look for links that lead nowhere."""

from __future__ import annotations

import html
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --link: #06c; }
@media (prefers-color-scheme: dark) { :root { --link: #6bf; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0; }
nav { border-bottom: 1px solid var(--line); padding: .6em 1em; }
nav a { margin-right: 1.2em; }
main { max-width: 58em; margin: 0 auto; padding: 0 1em 4em; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
h1, h2, h3 { line-height: 1.2; margin: 1.6em 0 .5em; } h3 { margin-top: 2.2em; }
h3 code { font-size: 1.1em; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
pre { background: var(--soft); padding: .7em 1em; overflow-x: auto; border-radius: 4px; }
p code, td code, li code, dd code { background: var(--soft); padding: 0 .25em; border-radius: 3px; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
td, th { border-top: 1px solid var(--line); padding: .3em .8em .3em 0; text-align: left; vertical-align: top; }
dt { font-weight: 600; margin-top: .5em; } dd { margin-left: 2em; }
.since { color: #888; font-size: .85em; }
.kind { color: #888; font-weight: normal; font-size: .8em; }
"""


def escape(text: str) -> str:
    return html.escape(text, quote=False)


def page(title: str, body: str, depth: int, version: str) -> str:
    """A whole page; `depth`: how many folders it lies below the first."""
    up = "../" * depth
    parts = {"Guide": "index.html", "C": "c/index.html", "Python": "python/index.html", "Rust": "rust/imgdl/index.html"}
    navigation = "".join(f'<a href="{up}{target}">{name}</a>' for name, target in parts.items())
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(title)} · imgdl {version}</title>"
            f'<link rel="stylesheet" href="{up}style.css"></head>\n'
            f"<body><nav>{navigation}<span class=since>imgdl {version}</span></nav>\n"
            f"<main>\n{body}\n</main></body></html>\n")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.repeated: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src") and value is not None:
                self.targets.append(value)
            elif name == "id" and value is not None:
                if value in self.anchors:
                    self.repeated.append(value)
                self.anchors.add(value)


def broken_links(folder: Path, foreign: tuple[str, ...] = ()) -> list[str]:
    """Links that lead nowhere, and anchors that are there twice, of all pages but those in the folders `foreign`."""
    read: dict[Path, _Links] = {}

    def links_of(path: Path) -> _Links:
        if path not in read:
            read[path] = _Links()
            read[path].feed(path.read_text("utf-8"))
        return read[path]

    found = []
    for path in sorted(folder.rglob("*.html")):
        name = path.relative_to(folder)
        if name.parts[0] in foreign:
            continue
        links = links_of(path)
        found += [f"{name}: the anchor {anchor} is there twice" for anchor in links.repeated]
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme:
                if parts.scheme not in ("https", "http"):
                    found.append(f"{name}: {target} is no link for a reader")
                continue
            place = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not place.is_file():
                found.append(f"{name}: {target} is not there")
            elif parts.fragment and place.suffix == ".html" and unquote(parts.fragment) not in links_of(place).anchors:
                found.append(f"{name}: {target}: there is no such heading")
    return found
