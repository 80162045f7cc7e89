"""Chance, the log of what everybody did last, and what happens when a promise is broken."""

import collections
import faulthandler
import os
import random
import sys
import threading
import time
import traceback

# How many of a thread's last steps are kept.
_STEPS = 40
# Of a hang, whatever the machine is busy with.
PATIENCE = 180.0

seed = 0
_here = threading.local()
_logs = {}
# Where interrupts struck.
strikes = collections.deque(maxlen=20)
_begun = time.monotonic()
_violating = threading.Lock()
# Until when what is to be through.
_watched = float("inf"), ""


def tell_states():
    """A word on what has become of all that has not ended. Whoever knows takes its place."""
    return ""


class _Log:
    def __init__(self, name):
        self.name = name
        self.steps = collections.deque(maxlen=_STEPS)


# Of threads that are the library's, which have new local variables in each call.
_others_random = random.Random()
_others_log = _Log("threads of the library")


def begin(number):
    global seed
    seed = number
    _others_random.seed(number)
    threading.Thread(target=_watch, name="watch", daemon=True).start()


def begin_thread(number, name):
    """Threads of one number go the same way with one seed, as far as they do not see each other."""
    _here.random = random.Random(seed * 1000003 + number)
    _here.log = _logs[name] = _Log(name)


def dice():
    return getattr(_here, "random", _others_random)


def one_in(count):
    return dice().randrange(count) == 0


def pick(things):
    return dice().choice(things)


def note(what, about=None):
    """`about`: the model of a request or a batch."""
    getattr(_here, "log", _others_log).steps.append((time.monotonic() - _begun, what, about))


def _print_log(about):
    if about is not None:
        print(f"     what was done with {about!r}:")
        steps = [(when, log.name, what) for log in [*_logs.values(), _others_log]
                 for when, what, whom in list(log.steps) if whom is about]
        for when, name, what in sorted([*steps, *about.story]):
            print(f"       {when:.4f} {name}: {what}")
    print(f"     the last interrupts: {', '.join(strikes)}")
    print("     what everybody did last:")
    for log in [*_logs.values(), _others_log]:
        print(f"     {log.name}:")
        for when, what, _ in list(log.steps)[-10:]:
            print(f"       {when:.4f} {what}")


def step(what):
    """For the story that a model keeps of itself."""
    return time.monotonic() - _begun, threading.current_thread().name, what


def violation(sentence, about=None, problem=None):
    """A promise is broken: says so, with what was done last, and ends the process."""
    if not _violating.acquire(blocking=False):
        while True:
            time.sleep(60)
    print(f"FAIL seed {seed}\n     {sentence}", flush=True)
    if problem is not None:
        print("".join(traceback.format_exception(problem)), flush=True)
    _print_log(about)
    print("0 passed, 1 failed, 0 skipped", flush=True)
    faulthandler.dump_traceback(file=sys.stdout)
    sys.stdout.flush()
    while os.environ.get("IMGDL_PLAYER_STAYS"):
        time.sleep(60)
    os._exit(1)


def watch(what):
    """From now on so long at most until the next call: else all stacks are shown, and the process ends."""
    global _watched
    note(what)
    _watched = time.monotonic() + PATIENCE, what
    # Where not even that thread goes on.
    faulthandler.dump_traceback_later(PATIENCE + 20, exit=True, file=sys.stdout)


def _watch():
    while True:
        time.sleep(1)
        until, what = _watched
        if time.monotonic() > until:
            violation(f"it hangs: {what}; {tell_states()}")


def forget():
    """What was done is no business of the next round, and would keep what it was done with."""
    for log in [*_logs.values(), _others_log]:
        log.steps.clear()
