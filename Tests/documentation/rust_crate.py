"""All examples in Rust as one crate, so that cargo builds once: each is a module, and an argument says which runs."""

from __future__ import annotations

import re
from pathlib import Path

from world import BUILD, ROOT, tool

MANIFEST = """[package]
name = "documentation"
version = "1.0.0"
edition = "2021"
publish = false

[dependencies]
imgdl = {{ path = "{root}/bindings/rust/imgdl" }}

[workspace]
"""


def build(examples: list[tuple[str, str, str]]) -> tuple[Path | None, str]:
    """The program, or what cargo says. Of each example its name, where it stands, and its text."""
    folder = BUILD / "documentation/rust"
    (folder / "src").mkdir(parents=True, exist_ok=True)
    modules, cases = [], []
    for name, place, text in examples:
        if not re.search(r"^\s*(?:pub )?fn main\(", text, re.M):
            text = f"fn main() -> Result<(), Box<dyn std::error::Error>> {{\n{text}\nOk(())\n}}\n"
        run = "pub fn run() { super::check(main()) }"
        modules.append(f"// {place}\nmod {name.lower()} {{\n{text}\n{run}\n}}\n")
        cases.append(f'"{name}" => {name.lower()}::run(),')
    (folder / "src/main.rs").write_text(CHECK + "\n".join(modules) + MAIN.replace("CASES", "\n".join(cases)), "utf-8")
    (folder / "Cargo.toml").write_text(MANIFEST.format(root=ROOT), "utf-8")
    status, said = tool(
        "cargo", "build", "--quiet", "--offline", folder=folder, IMGDL_LIB_DIR=str(BUILD / "lib"),
        RUSTFLAGS="-D warnings", CARGO_TARGET_DIR=str(folder / "target"))
    return (None if status else folder / "target/debug/documentation"), said


# A main may return nothing or a Result.
CHECK = """
use std::process::Termination;

pub fn check(ended: impl Termination) {
    // Exit codes can be compared since Rust 1.75 only; Debian 12 has 1.63.
    if format!("{:?}", ended.report()) != format!("{:?}", std::process::ExitCode::SUCCESS) {
        std::process::exit(1);
    }
}

"""

MAIN = """
fn main() {
    match std::env::args().nth(1).as_deref().unwrap_or("") {
        CASES
        other => panic!("no example {other}"),
    }
}
"""
