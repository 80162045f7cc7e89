"""`importlib.reload` is refused. A module that is executed again would be there twice: the library goes on calling functions of
the first, which look for what they are called for among what the second has emptied."""

from __future__ import annotations

import importlib
from typing import Any


def refuse_reload(names: dict[str, Any]) -> None:
    """Called by each module with its globals, ahead of all that it defines. One that failed to be imported may be tried again."""
    name = names["__name__"]
    # IPython's autoreload empties the globals before it reloads, and puts them back when this raises.
    if "_has_begun" in names or name in getattr(importlib, "_RELOADING", ()):
        raise ImportError(f"{name} is loaded once in a process, and cannot be reloaded: start Python anew", name=name)
    names["_has_begun"] = True


refuse_reload(globals())
