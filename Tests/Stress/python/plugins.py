"""Moves with what the library calls: hooks, loaders, codecs, observers."""

import imgdl
import model
import shelves
from addresses import RAW, TINY, picture_bytes
from calls import Mine, do, look, read
from chance import dice, one_in, pick, violation
from downloads import a_downloader
from moves import move, play_inside

_INSIDE = True


def _raise():
    raise pick((Mine("plugin"), imgdl.Error("Mine: a sentence"), imgdl.Error(imgdl.Code.TRUNCATED, "Mine: too short")))


# ---- Hooks

def _hook(name, answers):
    """A function that answers at once, later, wrongly, or not at all."""

    def called(*arguments):
        *given, next = arguments
        for each in given:
            if isinstance(each, (imgdl.Outgoing, imgdl.Response)):
                read(each)
        way = dice().randrange(12)
        if way == 0:
            _raise()
        if way == 1:
            shelves.put("continuation", next)
            return imgdl.LATER
        if way == 2:
            return imgdl.LATER  # let go without an answer
        if way == 3:
            return 5  # no answer
        if way == 4:
            answer(next, given)
            return None
        if way == 5:
            play_inside()
        return answers(given) if way in (6, 7) else None

    return model.give(called)


def _other_request(given):
    request = given[0]
    do(request, "header", "user-agent")
    return do(do(request, "with_header", "X-Hook", pick(("yes", None))), "replace", method=request.method)


def answer(next, given=()):
    """By any of its functions, which may be no answer to its question."""
    way = dice().randrange(8)
    if way == 0:
        do(next, "with_request", url=pick((None, "http://127.0.0.1:1/", "no address")), headers={"X": "y"})
    elif way == 1:
        do(next, "with_response", pick((200, 404)), {"Content-Type": "image/png"})
    elif way == 2:
        do(next, "with_data", pick((TINY, b"", bytearray(TINY))))
    elif way == 3:
        do(next, "with_credentials", "me", pick(("secret", "wrong")))
    elif way == 4:
        do(next, "refused", pick((0, imgdl.Code.TRUNCATED, 123456)), pick((None, "Mine: no")))
    elif given and isinstance(given[0], imgdl.Outgoing) and way == 5:
        do(next, "with_request", given[0])
    else:
        do(next, "unchanged")
    look(next, "is_answered")


@move(1, _INSIDE)
def new_hooks():
    if not one_in(3):
        return
    answers = {
        "modify_request": _other_request,
        "modify_response": lambda given: (200, {"Content-Type": "image/png"}) if one_in(2) else given[0],
        "transform_body": lambda given: pick((TINY, bytes(given[0]))),
        "redirect": lambda given: given[1],
        "authenticate": lambda given: ("me", pick(("secret", "wrong"))),
    }
    names = dice().sample(sorted(answers), dice().randrange(1, 6))
    shelves.put("hooks", do(imgdl, "Hooks", **{name: _hook(name, answers[name]) for name in names}))


@move(6, _INSIDE)
def answer_later():
    next = shelves.take("continuation")
    if next is not None:
        try:
            answer(next)
        finally:
            if not next.is_answered:
                shelves.put("continuation", next)


# ---- Loaders

class Loader:
    """Of the scheme own:, at once or whenever somebody comes by."""

    def start(self, request, transfer):
        read(request)
        way = dice().randrange(8)
        if way == 0:
            _raise()
        elif way == 1:
            return  # let go
        elif way in (2, 3):
            shelves.put("transfer", transfer)
            play_inside()
        else:
            report(transfer)

    def cancel(self, transfer):
        if not look(transfer, "is_cancelled"):
            violation("a loader is told that a transfer is cancelled, which says that it is not")
        if one_in(6):
            _raise()

    def resume(self, transfer):
        if one_in(6):
            _raise()


def report(transfer):
    """The head, a body and the end, or not all of it."""
    content = pick((TINY, RAW, picture_bytes()))
    if not one_in(8):
        do(transfer, "response", 200, {"Content-Length": str(len(content) + one_in(8))})
    half = len(content) // 2
    if do(transfer, "try_body", content[:half]):
        do(transfer, pick(("body", "try_body")), content[half:])
    end_transfer(transfer)


def end_transfer(transfer):
    do(transfer, "end", pick((0, 0, 0, imgdl.Code.CONNECTION_LOST, -5)), pick((None, "Mine: it failed")))


@move(4, _INSIDE)
def report_transfer():
    transfer = shelves.take("transfer")
    if transfer is not None:
        look(transfer, "is_cancelled")
        try:
            report(transfer)
        finally:
            end_transfer(transfer)


@move(2, _INSIDE)
def register_transport():
    downloader = a_downloader()
    if downloader is not None:
        do(downloader, "register_transport", pick(("own", "own", "other")), model.give(Loader()) if not one_in(4) else None)


# ---- Codecs

class Raw:
    """Of pictures that begin with RAW1."""

    def __init__(self, options):
        read(options)
        self.data = b""
        if one_in(12):
            _raise()

    @staticmethod
    def can_decode(prefix):
        if one_in(20):
            _raise()
        if len(prefix) < 4:
            return None
        return bytes(prefix).startswith(b"RAW1")

    def feed(self, data):
        self.data += data
        if one_in(12):
            _raise()

    def info(self):
        if one_in(12):
            _raise()
        return imgdl.ImageInfo("other", 2, 2, pick((1, 1, 6)), 1, True, False) if len(self.data) > 4 else None

    def partial(self):
        play_inside()
        return pick((None, imgdl.Image.create(2, 2, bytes(16))))

    def finish(self):
        if one_in(12):
            return 5  # no picture
        if len(self.data) < len(RAW):
            raise imgdl.Error(imgdl.Code.TRUNCATED, "Mine: too short")
        return imgdl.Image.create(2, 2, self.data[4:])

    def close(self):
        if one_in(12):
            _raise()


@move(1, _INSIDE)
def register_coder():
    if not one_in(4):
        return
    coder = type("RawOfOne", (Raw,), {})
    shelves.put("coder", do(imgdl, "register_coder", model.give(coder)))


@move(1, _INSIDE)
def close_coder():
    coder = shelves.take("coder") if one_in(4) else None
    if coder is not None:
        with coder:
            repr(coder)
        do(coder, "close")


# ---- Observers

@move(1, _INSIDE)
def set_observer():
    downloader = a_downloader()
    if downloader is None:
        return

    def observed(observation):
        read(observation)
        if one_in(20):
            _raise()
        if one_in(10):
            play_inside()

    do(downloader, "set_observer", model.give(observed) if not one_in(4) else None)
