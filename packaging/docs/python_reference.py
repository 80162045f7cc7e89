"""The Python reference: what the package exports, its docstrings and signatures. The sources are read, not run, so that
strings behind attributes and types that only a checker sees are found, too."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path

from comment_text import to_html
from pages import escape, page, write


@dataclass
class Entry:
    """A class, function, method, property or value."""

    name: str
    kind: str
    signature: str
    text: str
    members: list[Entry] = field(default_factory=list)


class PythonReference:
    def __init__(self, package: Path, version: str) -> None:
        self.package, self.version = package, version
        self.modules = {path.stem: ast.parse(path.read_text("utf-8")) for path in package.glob("*.py")}
        top = self.modules["__init__"]
        self.introduction = ast.get_docstring(top) or ""
        self.origins = {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in top.body if isinstance(node, ast.ImportFrom) and node.level == 1 for alias in node.names
        }
        self.exported: list[str] = next(
            ast.literal_eval(node.value) for node in top.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__")
        self.entries = [self._export(name) for name in self.exported]

    def problems(self) -> list[str]:
        """What is exported and says nothing of itself. Fields may be clear without."""
        silent = [entry.name for entry in self.entries if not entry.text]
        silent += [f"{entry.name}.{member.name}" for entry in self.entries for member in entry.members
                   if member.kind != "value" and not member.text]
        return [f"imgdl.{name} has no docstring" for name in silent]

    def _export(self, name: str) -> Entry:
        module, original = self.origins.get(name, ("__init__", name))
        entries = self._entries(self.modules[module].body)
        if original not in entries:
            raise SystemExit(f"docs: imgdl.{name} is not found in {module}.py")
        return entries[original]

    def _entries(self, body: list[ast.stmt]) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for at, node in enumerate(body):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                decorators = [ast.unparse(each) for each in node.decorator_list]
                if "overload" in decorators or any(each.endswith(".setter") for each in decorators):
                    continue
                found[node.name] = self._function(node, decorators)
            elif isinstance(node, ast.ClassDef):
                found[node.name] = self._class(node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                behind = body[at + 1] if at + 1 < len(body) else None
                text = ""
                if isinstance(behind, ast.Expr) and isinstance(getattr(behind.value, "value", None), str):
                    text = inspect.cleandoc(behind.value.value)  # type: ignore[attr-defined]
                if isinstance(target, ast.Name):
                    kind = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
                    found[target.id] = Entry(target.id, "value", f"{target.id}: {kind}" if kind else target.id, text)
        return found

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, decorators: list[str]) -> Entry:
        text = ast.get_docstring(node) or ""
        returns = f" → {ast.unparse(node.returns)}" if node.returns else ""
        if any(each in ("property", "cached_property", "functools.cached_property") for each in decorators):
            return Entry(node.name, "property", node.name + returns.replace(" →", ":"), text)
        given = re.split(r", (?![^\[(]*[\])])", ast.unparse(node.args))
        arguments = ", ".join(part for part in given if part not in ("self", "cls", "/"))
        before = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
        before = "classmethod " if "classmethod" in decorators else before
        return Entry(node.name, "function", f"{before}{node.name}({arguments}){returns}", text)

    def _class(self, node: ast.ClassDef) -> Entry:
        members = self._entries(node.body)
        bases = [ast.unparse(base) for base in node.bases]
        for base in bases:
            # What a base has that is not exported itself is this class's own to a reader.
            for module in self.modules.values() if base.startswith("_") else ():
                for other in module.body:
                    if isinstance(other, ast.ClassDef) and other.name == base:
                        members = {**self._entries(other.body), **members}
        shown = [each for name, each in members.items() if not name.startswith("_")]
        initial = members.get("__init__")
        signature = node.name + (initial.signature[len("__init__"):].split(" →")[0] if initial else "")
        public = [base for base in bases if not base.startswith("_")]
        internal = self._internal()
        if initial and any(name in internal for name in re.findall(r"\w+", initial.signature)):
            signature = node.name  # made by the package alone
        elif not initial or signature.endswith("()"):
            signature = node.name
            signature += f"({', '.join(public)})" if public else ""
        return Entry(node.name, "class", f"class {signature}", ast.get_docstring(node) or "", shown)

    def _internal(self) -> set[str]:
        """Classes that users have nothing to do with."""
        nodes = [node for module in self.modules.values() for node in module.body]
        defined = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
        return defined - set(self.exported)

    # Pages

    def link(self, text: str) -> str:
        """Escaped; names in backticks as code, and linked where they are exported."""

        def replace(match: re.Match[str]) -> str:
            name = match.group(1)
            return f"<code>{self._linked(name)}</code>"

        text = re.sub(r"`([^`]+)`", replace, escape(text))
        return re.sub(r"(?<![\w>#\".])imgdl\.(\w+)", lambda match: self._linked(match.group(1), "imgdl."), text)

    def _linked(self, name: str, before: str = "") -> str:
        first = name.split(".")[0]
        if first not in self.exported:
            return before + name
        anchor = name if name in self.anchors else first
        return f'<a href="#{anchor}">{before}{name}</a>'

    def write(self, folder: Path) -> None:
        self.anchors = {entry.name for entry in self.entries}
        self.anchors |= {f"{entry.name}.{member.name}" for entry in self.entries for member in entry.members}
        listed = "".join(f'<li><a href="#{entry.name}"><code>{entry.name}</code></a></li>' for entry in self.entries)
        body = ["<h1>Python reference</h1>", to_html(self.introduction.split("\n"), self.link), f"<ul>{listed}</ul>"]
        for entry in self.entries:
            body += [f'<h2 id="{entry.name}"><code>{entry.name}</code></h2>', f"<pre>{escape(entry.signature)}</pre>",
                     to_html(entry.text.split("\n"), self.link)]
            values = [member for member in entry.members if member.kind == "value"]
            if values:
                rows = "".join(
                    f'<tr id="{entry.name}.{each.name}"><td><code>{escape(each.signature)}</code></td>'
                    f"<td>{self.link(each.text)}</td></tr>" for each in values)
                body.append(f"<table>{rows}</table>")
            for member in entry.members:
                if member.kind != "value":
                    body += [f'<h3 id="{entry.name}.{member.name}"><code>{escape(member.signature)}</code></h3>',
                             to_html(member.text.split("\n"), self.link)]
        write(folder / "index.html", page("Python reference", "\n".join(body), 1, self.version))
