"""Rounds: everybody plays for a while, then all is closed, and looked at."""

import gc
import sys
import threading
import time
import weakref

import chance
import coroutines
import imgdl
import interrupts
import model
import moves
import process
import shelves
from calls import Mine, do, played
from chance import one_in, violation, watch

THREADS = 8
_PATIENCE = 60

_downloaders = []


def add_downloader(downloader):
    _downloaders.append(weakref.ref(downloader))


def living_downloaders():
    return len(_living())


def _living():
    found = [reference() for reference in list(_downloaders)]
    return [each for each in found if each is not None and "open" in repr(each)]


# ---- Playing


def _run(number):
    chance.begin_thread(number, f"thread {number % 100}")
    while moves.is_playing:
        moves.play()
        if one_in(20):
            interrupts.send()


def _run_loop(player, number, may_close):
    chance.begin_thread(number, "loop")
    player.run(lambda: moves.is_playing)
    if one_in(3):
        player.close()
        return

    async def stay():
        import asyncio
        while not may_close.is_set():
            await asyncio.sleep(0.005)

    player.loop.run_until_complete(stay())
    player.settle()
    player.close()


def _play_main(player, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        interrupts.switch(True)
        is_whole = True
        try:
            if one_in(3):
                is_whole = player.turn(0.1)
            else:
                moves.play()
        except interrupts.Interrupt:
            pass
        finally:
            interrupts.switch(False)
        if not is_whole:
            watch("tasks of a loop that was struck")
            player.settle()
            watch("playing")
    player.settle()


# ---- The end of a round


def _let_go_on(is_over):
    """What lets everything end."""
    import plugins

    chance.begin_thread(98, "let go on")
    patient_until = time.monotonic() + 2
    while not is_over.wait(0.002):
        for kind, end in (("continuation", lambda next: next.unchanged()), ("transfer", plugins.end_transfer)):
            thing = shelves.take(kind)
            if thing is not None:
                try:
                    end(thing)
                except imgdl.Error:
                    pass
        for batch in [each.token for each in model.batches]:
            _quietly(lambda: batch is not None and batch.resume())
        for downloader in [*_living(), imgdl.Downloader.shared()]:
            _quietly(downloader.enter_foreground)
            _quietly(lambda: setattr(downloader, "suspended", False))
            if time.monotonic() > patient_until:
                # What waits behind a transfer that never ends, as in map.
                _quietly(downloader.cancel_all)


def _quietly(call):
    try:
        call()
    except imgdl.Error:
        pass


def _check_statistics(downloader):
    """When it is idle: each end counts when it is told, and no later."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        stats = do(downloader, "stats")
        is_even = stats.submitted == stats.succeeded + stats.failed + stats.cancelled
        # What was cancelled may be in work for a moment longer, of which nobody is told.
        if is_even and not (stats.waiting or stats.running or stats.paused or stats.decoding or stats.memory):
            return
        # Garbage may hold a body.
        gc.collect()
        if not is_even or time.monotonic() > deadline:
            violation(f"statistics at the end: {stats!r}")
        time.sleep(0.005)


def _is_idle(downloader):
    """False where nobody can wait for it here."""
    try:
        try:
            do(downloader, "wait_idle", 2)
        except imgdl.WaitTimeout:
            do(downloader, "cancel_all")
            try:
                do(downloader, "wait_idle", _PATIENCE)
            except imgdl.WaitTimeout as problem:
                violation(f"not idle {_PATIENCE} s after cancel_all: {downloader.current_count} are left", None, problem)
    except imgdl.Error:
        return False
    return True


def _finish(downloader):
    is_idle = _is_idle(downloader)
    try:
        if is_idle:
            if downloader.current_count:
                violation(f"idle, and current_count is {downloader.current_count}")
            _check_statistics(downloader)
    except imgdl.Error as problem:
        if problem.code != imgdl.Code.SHUT_DOWN:
            raise
    if is_idle and one_in(3):
        return  # let go
    do(downloader, "close")
    if downloader.current_count:
        violation(f"closed, and current_count is {downloader.current_count}")


def _close_all():
    for downloader in _living():
        _finish(downloader)
    do(_check_shared(), "close")
    # Downloads of downloaders that were let go, and end what they have, or whose close a callback called or an interrupt struck.
    # Where a loop is closed, or nobody runs it any more, close alone tells the end.
    for pending in list(process.registries()["downloads"].values()):
        let_go = pending._downloader
        _quietly(pending.cancel)
        if let_go is not None and _is_still(pending._pump):
            do(let_go, "close")
    deadline = time.monotonic() + _PATIENCE
    while left := model.left():
        if time.monotonic() > deadline:
            violation(f"{len(left)} of {len(model.requests) + len(model.batches)} have no end after {_PATIENCE} s: {left[:5]}",
                      left[0])
        gc.collect()
        time.sleep(0.01)
    for kind, name in (("cache", "close"), ("coder", "close"), ("decoder", "close"), ("image", "close"), ("body", "close")):
        while (thing := shelves.take(kind)) is not None:
            do(thing, name)
    for coder in list(process.registries()["registered"]):
        do(coder, "close")


def _is_still(pump):
    loop = getattr(pump, "loop", None)
    return loop is not None and not loop.is_running()


def _check_shared():
    """Of all that were made so far. A callback, or a loop that ends its tasks, may close it meanwhile: then there is a new
    one, which is looked at."""
    while True:
        downloader = do(imgdl.Downloader, "shared")
        try:
            if _is_idle(downloader):
                _check_statistics(downloader)
            return downloader
        except imgdl.Error as problem:
            if problem.code != imgdl.Code.SHUT_DOWN:
                raise


def play(number, seconds):
    import caches
    import downloads

    watch("a round begins")
    chance.begin_thread(number * 100, "main")
    caches.new_folder()
    for _ in range(2):
        moves.call(downloads.new_downloader)
    moves.is_playing = True
    own, other = coroutines.Player(True), coroutines.Player(False)
    may_close = threading.Event()
    threads = [threading.Thread(target=_run, args=(number * 100 + 1 + each,), name=f"thread {each + 1}", daemon=True) for each in range(THREADS)]
    threads.append(threading.Thread(target=_run_loop, args=(other, number * 100 + 50, may_close), name="loop", daemon=True))
    for thread in threads:
        thread.start()
    watch("playing")
    _play_main(own, seconds)
    moves.is_playing = False
    is_over = threading.Event()
    helper = threading.Thread(target=_let_go_on, args=(is_over,), name="let go on")
    helper.start()
    is_closed_first = one_in(2)
    if is_closed_first:
        own.close()
    watch("the threads come to their end")
    for thread in threads[:-1]:
        thread.join()
    watch("all is closed")
    _close_all()
    may_close.set()
    threads[-1].join()
    is_over.set()
    helper.join()
    if not is_closed_first:
        own.close()
    count = len(model.requests) + len(model.batches)
    watch("the model is looked at")
    model.forget()
    shelves.clear()
    _downloaders.clear()
    chance.forget()
    del own, other, threads, thread, helper
    gc.collect()
    caches.folder.cleanup()
    watch("the package is looked at")
    process.check_registries()
    process.check_given(model.given)
    watch("the process is looked at")
    process.check(number)
    print(f"ok   round {number}: {count} requests and batches, {sum(played.values())} calls, {interrupts.count} interrupts at "
          f"{len(interrupts.places)} places, {process.resident_kilobytes()} KiB", flush=True)


# ---- What nobody else is told

# What the package has Python and C call, as Python shows it: nothing is raised from these, and no interrupt is lost there.
_KEEPING = tuple(f"<function {name}.<locals>." for name in ("finalizer", "callback", "last_callback", "_layer"))


def _is_lost(raised):
    # Since 3.14 the message has the function alone.
    shown = f"{raised.object!r} {raised.err_msg}"
    return any(name in shown for name in _KEEPING)


def prepare():
    def unraisable(raised):
        problem = raised.exc_value
        if isinstance(problem, Mine) or isinstance(problem, interrupts.Interrupt) and not _is_lost(raised):
            return
        # What a hook, a loader or a codec has answered wrongly on purpose.
        if isinstance(problem, TypeError) and any(part in str(problem) for part in (
                "must return", "gave int", "bytes-like", "must be str, not int")):
            return
        if isinstance(problem, imgdl.Error):
            # Of a call that a function of the player's has made, and judged.
            return
        if isinstance(problem, (GeneratorExit, SystemExit)):
            return
        violation(f"unraisable in {raised.object!r}: {raised.err_msg} {problem!r}", None, problem)

    sys.unraisablehook = unraisable
    threading.excepthook = lambda raised: violation(f"{raised.thread!r} ended with {raised.exc_value!r}", None, raised.exc_value)

