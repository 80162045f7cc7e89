"""Loaders and the observer of the shared downloader, which outlives the objects that stand for it: each of these takes out at
its end what it has given, and nothing that another has given since."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Callable, NamedTuple, Optional

from . import _native, _once, _process
from ._observing import unobserve
from .errors import Error

_once.refuse_reload(globals())

if TYPE_CHECKING:
    from ._state import State


class _Given(NamedTuple):
    by: State
    what: object


# What the library has, by scheme; None stands for the observer.
_given: dict[Optional[bytes], _Given] = {}
# Held while the library is called, so that it has what is noted here. Reentrant, as that of `State`. What was given is let go
# when it is not held any more: there may be a finalizer of the user's.
_lock = threading.RLock()


def _forget() -> None:
    global _lock
    _lock = threading.RLock()
    _given.clear()


_process.forget_in_child(_forget)


def give(state: State, scheme: Optional[bytes], what: object, register: Callable[[], object]) -> None:
    """`register` has the library take it."""
    try:
        with _lock:
            before = _given.get(scheme)
            # First, because an interrupt may strike as soon as the library has it.
            _given[scheme] = _Given(state, what)
            try:
                register()
            except (Error, TypeError):
                # It is refused, and what was there is there.
                if before is None:
                    _given.pop(scheme, None)
                else:
                    _given[scheme] = before
                raise
    finally:
        # By another thread, whose look at what there is may have come before.
        if state.is_closing:
            take_back(state)


def take_out(scheme: Optional[bytes], register: Callable[[], object]) -> object:
    """`register` has the library let go of it, whoever gave it: another part of the program may use the scheme from now on.
    Gives what that was, to be let go."""
    with _lock:
        register()
        return _given.pop(scheme, None)


def take_back(state: State) -> None:
    """All that is there of what it has given. May be called again, where an interrupt struck."""
    with _lock:
        own = [(scheme, given) for scheme, given in list(_given.items()) if given.by is state]
        for scheme, _ in own:
            if scheme is None:
                unobserve(state.handle)
            else:
                _native.imgdl_transport_register(state.handle, scheme, None)
            _given.pop(scheme, None)
