"""Where pictures and bodies are saved."""

from __future__ import annotations

import os
from typing import IO, Union

from . import _once

_once.refuse_reload(globals())

Target = Union[str, os.PathLike[str], os.PathLike[bytes], IO[bytes]]
"""A path, or a file that is open for bytes."""


def check_target(target: Target) -> None:
    if not isinstance(target, (str, os.PathLike)) and not callable(getattr(target, "write", None)):
        raise TypeError(f"target must be a path or a file that is open for bytes, not {type(target).__name__}")


def extension(target: Target) -> str:
    if isinstance(target, (str, os.PathLike)):
        return os.path.splitext(os.fsdecode(target))[1][1:]
    return ""


def write(target: Target, content: Union[bytes, memoryview]) -> None:
    if isinstance(target, (str, os.PathLike)):
        with open(target, "wb") as file:
            file.write(content)
    else:
        target.write(content)
