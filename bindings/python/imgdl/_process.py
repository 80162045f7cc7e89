"""fork(): which process an object belongs to."""

from __future__ import annotations

import os
from typing import Callable, NoReturn

from . import _once
from .errors import Code, error

_once.refuse_reload(globals())

# Asked before any lock: a thread that is gone in the child may have held it.
generation = 0
_forgetters: list[Callable[[], None]] = []


def forget_in_child(forget: Callable[[], None]) -> None:
    """To be called in a forked child, before anything else happens there."""
    _forgetters.append(forget)


def check(made_in: int) -> None:
    if made_in != generation:
        raise error(Code.FORKED)


def _forked() -> None:
    global generation
    generation += 1
    for forget in _forgetters:
        forget()


os.register_at_fork(after_in_child=_forked)


class OfThisProcess:
    """What stands for something of the library's: a copy would be another name for it that nobody counts, and in another
    process there is nothing that it stands for."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is neither copied nor pickled: it is of this process, and one")
