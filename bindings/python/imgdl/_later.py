"""Annotations of what is not imported yet: `typing.get_type_hints` finds it, and `import imgdl` takes no longer for it."""

from __future__ import annotations

import importlib
import sys
import typing
from typing import TYPE_CHECKING, Any

from . import _once

_once.refuse_reload(globals())


class Later:
    """A module that is imported when somebody asks for what is in it; where it is not installed, that is Any."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        # Who looks through a module asks everything for such names.
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            module = importlib.import_module(self._name, __package__)
        except ImportError:
            return Any
        return getattr(module, name)


def name_in(module: str, *types: type) -> None:
    """Names the types in a module that could not import them, because theirs need it."""
    vars(sys.modules[f"{__package__}.{module}"]).update({each.__name__: each for each in types})


if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack
elif hasattr(typing, "Unpack"):
    Unpack = typing.Unpack
else:

    class _Unpack:
        """That of typing_extensions before Python 3.11."""

        def __getitem__(self, options: Any) -> Any:
            unpack = Later("typing_extensions").Unpack
            return Any if unpack is Any else unpack[options]

    Unpack = _Unpack()
