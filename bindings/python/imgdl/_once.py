"""`importlib.reload` is refused. A module that is executed again would be there twice: the library goes on calling functions of
the first, which look for what they are called for among what the second has emptied."""

from __future__ import annotations

from typing import Any


def begin(names: dict[str, Any]) -> None:
    """The first that a module does, with its globals. What failed to be imported is another module the next time."""
    if "_has_begun" in names:
        name = names["__name__"]
        raise ImportError(f"{name} is loaded once in a process, and cannot be reloaded: start Python anew", name=name)
    names["_has_begun"] = True


begin(globals())
