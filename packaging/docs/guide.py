"""The guide: README.md and docs/*.md as pages. What they link to in the repository becomes a page, too."""

from __future__ import annotations

import posixpath
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from pages import escape, page, write


class Guide:
    """Pages for the Markdown files of `paths`, relative to `root`, and for the files that they name."""

    def __init__(self, root: Path, paths: list[str], version: str) -> None:
        self.root, self.paths, self.version = root, paths, version
        self.sources: set[str] = set()

    def write(self, folder: Path) -> None:
        for path in self.paths:
            text = self._html(path)
            title = re.search(r"<h1[^>]*>(.*?)</h1>", text)
            if title is None:
                raise SystemExit(f"docs: {path} has no title")
            write(folder / page_of(path), page(re.sub("<.*?>", "", title.group(1)), text, depth(path), self.version))
        while self.sources:
            self._write_source(folder, self.sources.pop())

    def _write_source(self, folder: Path, path: str) -> None:
        place = Path("source") / (path + ".html")
        if (folder / place).exists():
            return
        up = "../" * (len(place.parts) - 1)
        text = f"<h1><code>{path}</code></h1>\n"
        if (self.root / path).is_dir():
            within = sorted(each for each in (self.root / path).iterdir() if each.is_file())
            names = [str(each.relative_to(self.root)) for each in within]
            self.sources.update(names)
            items = [f'<li><a href="{up}source/{name}.html">{posixpath.basename(name)}</a></li>' for name in names]
            text += f"<ul>{''.join(items)}</ul>"
        else:
            text += f"<pre>{escape((self.root / path).read_text('utf-8'))}</pre>"
        write(folder / place, page(path, text, len(place.parts) - 1, self.version))

    def _html(self, path: str) -> str:
        command = ["cmark-gfm", "--unsafe", "--extension", "table", str(self.root / path)]
        html = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
        html = re.sub(r"<!--.*?-->\n?", "", html, flags=re.S)
        html = re.sub(r"<(h[1-6])>(.*?)</\1>", _with_anchor(), html)
        return re.sub(r'href="([^"]+)"', lambda match: f'href="{self._target(path, match.group(1))}"', html)

    def _target(self, path: str, target: str) -> str:
        """Where a link leads here that leads to `target` in the repository."""
        parts = urlsplit(target)
        if parts.scheme or not parts.path:
            return target
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), parts.path))
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        up = "../" * depth(path)
        if there in self.paths:
            return up + page_of(there) + fragment
        if there == "include/imgdl.h":
            return f"{up}c/index.html{fragment}"
        if not (self.root / there).exists():
            # The look for broken links names it.
            return target
        self.sources.add(there)
        return f"{up}source/{there}.html"


def page_of(path: str) -> str:
    """docs/README.md is what the reader sees first; the others of docs lie beside it."""
    if path == "docs/README.md":
        return "index.html"
    if path == "README.md":
        return "overview.html"
    return re.sub(r"\.md$", ".html", re.sub(r"^docs/", "", path)).replace("README.html", "index.html")


def depth(path: str) -> int:
    return page_of(path).count("/")


def anchor(heading: str) -> str:
    """As the usual places that show Markdown make them."""
    words = re.sub(r"<.*?>|&\w+;", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def _with_anchor() -> Callable[[re.Match[str]], str]:
    """A heading with its anchor, which is another one where it comes again."""
    seen: dict[str, int] = {}

    def heading(match: re.Match[str]) -> str:
        name = anchor(match.group(2))
        seen[name] = seen.get(name, -1) + 1
        name += f"-{seen[name]}" if seen[name] else ""
        return f'<{match.group(1)} id="{name}">{match.group(2)}</{match.group(1)}>'

    return heading
