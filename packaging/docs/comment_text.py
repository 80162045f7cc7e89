"""Text of comments and docstrings as HTML. It has three forms: paragraphs; programs, four columns further in; and terms
with what they are in a column behind them, or below."""

from __future__ import annotations

import re
from collections.abc import Callable

TERM = re.compile(r"^ {0,3}(\S(?:.{0,44}?\S)??) {2,}(\S.*)$")


def to_html(lines: list[str], link: Callable[[str], str]) -> str:
    """`link` escapes a text and links names in it."""
    return _Writer(link).write(lines)


class _Writer:
    def __init__(self, link: Callable[[str], str]) -> None:
        self.link = link
        self.parts: list[str] = []
        self.paragraph: list[str] = []
        self.program: list[str] = []
        self.terms: list[tuple[str, list[str]]] = []
        self.column = 0

    def write(self, lines: list[str]) -> str:
        after_blank = True
        for line in lines:
            if not line.strip():
                self._end_paragraph()
                if self.program:
                    self.program.append("")
                after_blank = True
                continue
            self._line(line, len(line) - len(line.lstrip()), after_blank)
            after_blank = False
        self._end()
        return "\n".join(self.parts)

    def _line(self, line: str, indent: int, after_blank: bool) -> None:
        term = TERM.match(line)
        if self.terms and indent >= 4 and (not after_blank or indent == self.column):
            break_ = "<br>" if re.search(r"\S {2,}\S", line) else ""
            self.terms[-1][1].append(break_ + self.link(line.strip()))
            self.column = indent
        elif indent >= 4 and (after_blank or self.program):
            self._end(but="program")
            self.program.append(line[4:])
        elif term and not self.paragraph and term.start(2) >= 8:
            self._end(but="terms")
            self.terms.append((term.group(1), [self.link(term.group(2))]))
            self.column = term.start(2)
        elif self.terms and not after_blank:
            if not self.terms[-1][1]:
                line = f"{self.terms.pop()[0]} {line.strip()}"
            self.terms.append((line.strip(), []))
        else:
            self._end(but="paragraph")
            self.paragraph.append(line.strip())

    def _end_paragraph(self) -> None:
        if self.paragraph:
            self.parts.append(f"<p>{self.link(' '.join(self.paragraph))}</p>")
            self.paragraph = []

    def _end(self, but: str = "") -> None:
        if but != "paragraph":
            self._end_paragraph()
        if but != "program" and self.program:
            text = "\n".join(self.program).rstrip()
            self.parts.append(f"<pre>{self.link(text)}</pre>")
            self.program = []
        if but != "terms" and self.terms:
            rows = "".join(f"<dt>{self.link(term)}</dt><dd>{' '.join(said)}</dd>" for term, said in self.terms)
            self.parts.append(f"<dl>{rows}</dl>")
            self.terms = []
