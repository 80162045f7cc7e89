"""The list of moves, and how one is made."""

import threading

from calls import EXPECTED
from chance import dice, note, violation
from interrupts import Interrupt

_moves, _inside_moves = [], []
_here = threading.local()
# While it is not, nobody begins anything.
is_playing = False


def move(weight, is_inside=False):
    """`is_inside`: it may be made in callbacks and hooks, too, where nobody may wait."""

    def add(function):
        _moves.extend([function] * weight)
        if is_inside:
            _inside_moves.extend([function] * weight)
        return function

    return add


def call(function):
    try:
        function()
    except EXPECTED:
        pass
    except Interrupt:
        # On another thread, what waits for a download or a batch raises what a callback of it raised: also what struck
        # that one on the main thread. A thread that the library calls may hand it on, as any exception of a callback.
        if threading.current_thread() is threading.main_thread() or is_inside():
            raise
    except BaseException as problem:
        violation(f"{function.__name__} ended with {problem!r}", None, problem)


def play():
    note(".")
    call(dice().choice(_moves))


def play_inside(about=None):
    """In a function that the package calls. Not in one that such a move has called."""
    if not is_playing or getattr(_here, "is_inside", False):
        return
    _here.is_inside = True
    try:
        note("inside:", about)
        call(dice().choice(_inside_moves))
    finally:
        _here.is_inside = False


def is_inside():
    return getattr(_here, "is_inside", False)

