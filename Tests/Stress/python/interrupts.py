"""Signals at random, whose handler raises wherever the main thread is in the package, or in a function that it called.

It does not where Python itself would lose what is raised, in finalizers that are none of the package's, nor where Python
leaves locks behind that nobody opens: in the events, conditions and threads of `threading`, and in asyncio. It never does in
the player, which keeps count.
"""

import contextlib
import os
import signal
import threading
import weakref

import imgdl
from chance import dice, note, pick, strikes
from imgdl import _callbacks

PACKAGE = os.path.dirname(imgdl.__file__) + os.sep
PLAYER = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Modules of Python in which nothing is struck, and finalizers but for those of the package.
_SPARED = {threading.__file__, weakref.__file__, os.path.join(os.path.dirname(weakref.__file__), "_weakrefset.py")}
_SPARED_FOLDERS = ("asyncio", "importlib")
_FINALIZERS = {"__del__", "_remove"}


class Interrupt(BaseException):
    """What the handler raises."""


class KeyInterrupt(Interrupt, KeyboardInterrupt):
    pass


class TimeInterrupt(Interrupt, Exception):
    """As many programs do it: of SIGALRM."""


_is_on = False
count = 0
places = set()


def exposed():
    """A callback of the player's that may be struck, as anybody's."""
    for _ in range(20):
        os.getpid()


def _may_strike(frame):
    is_inside = False
    innermost = True
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if code.co_name in _FINALIZERS and not file.startswith(PACKAGE) or code is weakref.finalize.__call__.__code__:
            return False
        if not is_inside:
            if file.startswith(PACKAGE) or code is exposed.__code__:
                is_inside = True
            elif file.startswith(PLAYER) or file in _SPARED or file.startswith("<frozen"):
                return False
            elif os.path.basename(os.path.dirname(file)) in _SPARED_FOLDERS:
                return False
        frame = frame.f_back
    return is_inside


def _strike(number, frame):
    global count
    if not _is_on:
        return
    arm()
    if not _may_strike(frame):
        return
    count += 1
    caller = frame.f_back
    place = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
    places.add(place)
    place += f" below {os.path.basename(caller.f_code.co_filename)}:{caller.f_lineno}" if caller is not None else ""
    strikes.append(place)
    note(f"struck at {place}")
    raise pick((KeyInterrupt, TimeInterrupt))(place)


def arm():
    """The next one, soon."""
    signal.setitimer(signal.ITIMER_REAL, dice().choice((0.0001, 0.001, 0.003, 0.01, 0.03)))


def prepare():
    for number in (signal.SIGALRM, signal.SIGUSR1):
        signal.signal(number, _strike)


def switch(is_on):
    global _is_on
    _is_on = is_on
    if is_on:
        arm()
    else:
        signal.setitimer(signal.ITIMER_REAL, 0)
        # One that struck in C, while another struck where it was about to be raised, is raised by the next call of the
        # library: here, and not in a loop that ends its tasks and must not be stopped, or at the end of the round.
        while _callbacks._struck:
            with contextlib.suppress(Interrupt):
                _callbacks.raise_struck()


def send():
    """From another thread."""
    if _is_on:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
