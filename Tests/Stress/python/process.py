"""What the process has, and whether it is what it was."""

import contextlib
import ctypes
import gc
import os
import statistics
import sys
import time

import chance
import imgdl
from chance import violation
from support import Strangers

# Rounds until the process has what it keeps; rounds that are compared.
_WARM_UP, _PART = 6, 10
_MOST_GROWTH = 0.05
_PATIENCE = 60
# Of what the shared downloader keeps, which may not have started all of its own yet.
_ROOM = 4

_before = {}
# Files of the player's own, from the end of a round to that of the next.
_strangers = []
_blocks, _heap = [], []


def prepare():
    chance.tell_states = _tell_states


def _threads():
    return len(os.listdir("/proc/self/task"))


def _descriptors():
    return len(os.listdir("/proc/self/fd"))


def _opened():
    """What the descriptors are of."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return sorted(found)


def resident_kilobytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


class _Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


def _heap_kilobytes():
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = _Mallinfo
    info = mallinfo()
    return (info.uordblks + info.hblkhd) // 1024


def registries():
    """What the package keeps for the library, by name."""
    from imgdl import _canvas, _observing, _sharing, cache, coder, hooks, token, transport

    return {
        "downloads": token._outstanding, "hooks": hooks._tables, "continuations": hooks._continuations, "loaders": transport._loaders,
        "transfers": transport._transfers, "codecs": coder._functions, "decoders": coder._decoders, "registered": coder._registered,
        "listeners": cache._listeners, "observers": _observing.observers, "shared": _sharing._given,
        "canvases": _canvas._lent}


def until(holds, sentence):
    """What ends a moment later is waited for."""
    deadline = time.monotonic() + _PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            violation(sentence())
        gc.collect()
        time.sleep(0.01)


def _states():
    """What has become of downloaders that have not ended."""
    from imgdl._pump import Pump
    from imgdl._state import State

    objects = gc.get_objects()
    return [{name: value for name, value in vars(each).items() if "lock" not in name and "waiters" not in name}
            for each in objects if isinstance(each, Pump) or isinstance(each, State) and not each.is_finished]


def _tell_states():
    return f"{list(registries()['downloads'].values())}; {_states()}"


def check_registries():
    def left():
        return {name: getattr(registry, "values", lambda: registry)() for name, registry in registries().items() if len(registry)}

    until(lambda: not left(), lambda: f"kept when nothing is left: {left()}; {_states()}")


def check_given(given):
    """Nothing that the package was given is kept."""

    def left():
        return [name for name, reference in given if reference() is not None]

    until(lambda: not left(), lambda: f"{len(left())} functions and objects are kept when nothing is left: {left()[:10]}")
    given.clear()


def check(number):
    imgdl.trim("caches")
    gc.collect()
    for each in _strangers:
        if each.lost():
            violation(f"files that are none of the package's are closed: {each.lost()}")
        each.close()
    _strangers[:] = [Strangers()]
    if number < 2:
        for name, count in (("threads", _threads()), ("descriptors", _descriptors())):
            _before[name] = max(_before.get(name, 0), count + _ROOM)
        _before["memory"] = resident_kilobytes()
        return

    def is_back():
        imgdl.trim("caches")
        return _threads() <= _before["threads"] and _descriptors() <= _before["descriptors"]

    until(is_back, lambda: f"{_threads()} threads where there were {_before['threads']}, {_descriptors()} descriptors where there "
                           f"were {_before['descriptors']}: {_opened()}; {_states()}")
    memory = resident_kilobytes()
    if memory > 2 * _before["memory"] + 200_000:
        violation(f"{memory} KiB of memory where there were {_before['memory']}")
    _blocks.append(sys.getallocatedblocks())
    _heap.append(_heap_kilobytes())


def check_growth():
    """A long play is looked at as a whole: what each round leaves shows when all rounds do."""
    if len(_blocks) < _WARM_UP + 2 * _PART:
        return
    for name, values, room in (("blocks of Python", _blocks, 20_000), ("KiB of the library", _heap, 4096)):
        first = statistics.median(values[_WARM_UP : _WARM_UP + _PART])
        last = statistics.median(values[-_PART:])
        print(f"{first:.0f} {name} after the first rounds, {last:.0f} after the last")
        if last > first * (1 + _MOST_GROWTH) + room:
            violation(f"memory grows: {first:.0f} {name} at first, {last:.0f} at the end")
