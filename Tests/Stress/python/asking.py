"""How a download is asked for, with callbacks that hold what comes against the model."""

import asyncio

import addresses
import imgdl
import model
import shelves
from calls import Mine, do, look, read
from chance import dice, one_in, pick, violation
from interrupts import exposed
from moves import play_inside

# Loops on which interrupts may strike, so that they lose what asyncio was about to call.
struck_loops = set()
EVENTS = ("on_started", "on_response", "on_header", "on_progress", "on_partial")


def hooks():
    return shelves.pick("hooks")


def coder():
    return shelves.pick("coder")


def _use(token, owed):
    """What a callback does with its token."""
    way = dice().randrange(14)
    if way == 0:
        do(token, "cancel", about=owed)
    elif way == 1:
        do(token, "set_priority", pick(("low", "high")), about=owed)
    elif way == 2:
        owed.has_raised = True
        raise Mine(owed.url)
    elif way == 3:
        exposed()
    elif way == 4:
        _must_not_wait(token, owed)
    elif way in (5, 6):
        play_inside(owed)
    elif way == 7 and one_in(8) and token._downloader is not None:
        # It does not wait inside a callback.
        do(token._downloader, "close", about=owed)
    elif way == 8:
        measured = look(token, "metrics", owed)
        if measured is not None:
            read(measured)


def _must_not_wait(token, owed):
    try:
        do(token, "result", 30, about=owed)
    except imgdl.Error as problem:
        if problem.code == imgdl.Code.WOULD_DEADLOCK or token.done():
            return
        violation(f"waiting in a callback: {problem!r}", owed, problem)
    except Mine:
        return
    if not token.done():
        violation("waiting in a callback has waited", owed)


def _event(owed, name):
    def called(token, *arguments):
        owed.enter(name)
        try:
            owed.check_token(token, name)
            _check_arguments(owed, name, arguments)
            _use(token, owed)
        finally:
            owed.leave()

    return model.give(called)


def _check_arguments(owed, name, arguments):
    if name == "on_response":
        read(arguments[0])
        for hop in arguments[0].hops:
            read(hop)
        if do(arguments[0], "header", "content-TYPE") is not None and not 100 <= arguments[0].status <= 999:
            violation(f"{arguments[0]!r}", owed)
    elif name == "on_header":
        read(arguments[0])
        if arguments[0].width < 1 or arguments[0].height < 1:
            violation(f"{arguments[0]!r}", owed)
    elif name == "on_progress":
        received, expected = arguments
        if received < 0 or expected is not None and expected < 0:
            violation(f"progress: {arguments}", owed)
    elif name == "on_partial":
        if not isinstance(arguments[0], imgdl.Image):
            violation(f"{arguments[0]!r}", owed)
        shelves.put("image", arguments[0])
    elif arguments:
        violation(f"{name} was given {arguments}", owed)


def callbacks(owed):
    names = dice().sample(EVENTS, dice().choice((0, 0, 1, 2, 5)))
    return {name: _event(owed, name) for name in names}


def new_request(loop=None):
    """The model, and what to call `download` with."""
    address = addresses.address()
    owed = model.Request(address, loop in struck_loops)
    options = addresses.request_options(hooks, coder)
    if one_in(4):
        options["body"] = owed.wants_body = True
        options["decode"] = one_in(4)
        if options["decode"] is False:
            for name in ("coder", "size"):
                options.pop(name, None)
    owed.is_changed = addresses.is_changed(options)
    options.update(callbacks(owed))
    return owed, options


def download(downloader, loop=None):
    """Asks for something, and gives the token; None where an interrupt has lost it."""
    owed, options = new_request(loop)
    owed.session = model.session(downloader)
    if loop is not None:
        options["loop"] = loop
    try:
        token = do(downloader, "download", owed.url, about=owed, **options)
    except BaseException as problem:
        owed.refused(problem)
        raise
    owed.accepted(token)
    finish(owed, token)
    shelves.put("token", token)
    return token


def finish(owed, token):
    """The end is told by a callback: where the others run, or on the loop that runs here, which may end before."""
    try:
        # An interrupt may strike here, too.
        running = asyncio._get_running_loop()
        if running is not None and not token._pump.is_of(running):
            owed.is_struck = True
        do(token, "add_done_callback", owed.done, about=owed)
        owed.tell("its end will be told")
        for _ in range(dice().choice((0, 0, 1, 2))):
            owed.added += 1
            do(token, "add_done_callback", owed.again, about=owed)
        if owed.added and one_in(3):
            owed.removed += do(token, "remove_done_callback", owed.again, about=owed)
    except BaseException:
        owed.is_struck = True
        owed.tell("struck")
        raise


def prefetch(downloader, loop=None):
    """Some of whose requests have callbacks."""
    count = dice().randrange(6)
    owed = model.Prefetch(count)
    owed.is_struck = loop in struck_loops
    requests, parts = [], []
    has_on_done = one_in(2)
    for _ in range(count):
        part, options = new_request(loop)
        # As many as it has are told at their end.
        part.is_accepted = None
        model.requests.remove(part)
        parts.append(part)
        requests.append((part.url, options) if options or one_in(2) else part.url)
    tokens = {}

    def progressed(batch, progress):
        owed.enter("progress")
        try:
            owed.progressed(batch, progress)
            if one_in(8):
                do(batch, "cancel", about=owed)
            elif one_in(8):
                play_inside(owed)
            elif one_in(12):
                # Nothing is told any more.
                owed.is_told = False
                raise Mine("progress")
        finally:
            owed.leave()
            if progress.is_finished:
                owed.ends += 1

    def ended(token):
        if id(token) in tokens:
            violation("on_done is called twice", owed)
        tokens[id(token)] = token
        owed.tokens += 1
        if not token.done():
            violation("on_done, and it is not done", owed)
        if not owed.is_struck:
            read_outcome(token)

    options = {"max_concurrent": pick((None, 1, 4)), "keeps_priority": one_in(2)}
    if one_in(2):
        options["on_progress"], owed.is_told = model.give(progressed), True
    if has_on_done:
        options["on_done"], owed.has_on_done = model.give(ended), True
    if loop is not None:
        options["loop"] = loop
    try:
        batch = do(downloader, "prefetch", requests, about=owed, **options)
    except BaseException as problem:
        owed.refused(problem)
        raise
    owed.accepted(batch)
    shelves.put("batch", batch)
    return batch


def read_outcome(token):
    try:
        do(token, "result", 0)
    except (imgdl.Error, Mine):
        pass


def keep_result(result):
    shelves.put("image" if isinstance(result, imgdl.Image) else "body", result)

