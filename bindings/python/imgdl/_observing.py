"""How an observer of a downloader is told."""

from __future__ import annotations

from typing import Any, Callable, Optional

from . import _callbacks, _native, _once
from .errors import check, report
from .metrics import Observation, observation_from

_once.refuse_reload(globals())

Observer = Callable[[Observation], object]

observers: _callbacks.Registry[Observer] = _callbacks.Registry()


def observe(downloader: int, observer: Optional[Observer]) -> None:
    """None takes it out."""
    if observer is None:
        check(unobserve(downloader))
        return
    if not callable(observer):
        raise TypeError(f"an observer must be callable, not {type(observer).__name__}")
    key = _callbacks.new_key()
    try:
        observers.put(key, observer)
        # Where an error is returned the destructor has been called.
        check(_native.imgdl_downloader_set_observer(downloader, _on_observation, key, _on_observer_end))
    except BaseException:
        observers.pop(key)
        raise


def unobserve(downloader: int) -> int:
    nobody = _native.imgdl_observer()
    return int(_native.imgdl_downloader_set_observer(downloader, nobody, None, _native.imgdl_destructor()))


@_callbacks.callback(_native.imgdl_observer)
def _on_observation(pointer: Any, key: int) -> None:
    observer = observers.get(key)
    if observer is None:
        return
    try:
        observer(observation_from(pointer.contents))
    except BaseException as exception:
        if not _callbacks.keep(exception):
            report(exception)


@_callbacks.last_callback(_native.imgdl_destructor)
def _on_observer_end(key: int) -> None:
    observers.pop(key)
