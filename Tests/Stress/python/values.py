"""Moves with what is in memory: pictures, decoders, canvases, bodies."""

import copy
import io
import pickle

import imgdl
import shelves
from addresses import RAW, TINY, picture_bytes
from calls import do, look, played, read
from chance import dice, one_in, pick, violation
from moves import move

_INSIDE = True


def decode_options(coder=None):
    random = dice()
    some = {
        "size": lambda: random.choice(((64, 64), (None, 32), (200, None), (1, 1))),
        "stretch": lambda: one_in(4),
        "pixel_format": lambda: pick(("rgba8", "rgba8_premultiplied", "bgra8", "bgra8_premultiplied", "rgb8", "rgba16")),
        "ignore_orientation": lambda: one_in(2),
        "salvage": lambda: True,
        "max_pixels": lambda: random.choice((10, 10_000_000)),
        "scale_down": lambda: random.choice((True, 100_000)),
        "all_frames": lambda: True,
        "require_animation": lambda: one_in(3),
        "max_frames": lambda: random.choice((1, 1000)),
        "format_hint": lambda: pick(("jpeg", "png", "webp", "gif")),
        "colour": lambda: pick(("as_stored", "srgb")),
        "max_side": lambda: random.choice((10, 10_000)),
        "max_scans": lambda: random.choice((2, 500)),
        "max_memory_bytes": lambda: random.choice((1000, imgdl.NO_LIMIT)),
        "max_decode_ms": lambda: random.choice((1, 10_000, imgdl.NO_LIMIT)),
        "thumbnail_first": lambda: True,
        "good_enough_scan": lambda: 3,
    }
    options = {name: some[name]() for name in random.sample(sorted(some), random.choice((0, 1, 2, 3)))}
    # Large ones take long.
    if "size" not in options and not one_in(4):
        options["size"] = (48, 48)
    if options.get("stretch") and None in options.get("size", (None,)):
        del options["stretch"]
    given = coder() if coder is not None and one_in(6) else None
    if given is not None:
        options["coder"] = given
    return options


def data():
    content = pick((TINY, TINY, RAW, b"", b"nothing at all", picture_bytes(), picture_bytes()))
    if one_in(5):
        content = content[: dice().randrange(len(content) + 1)]
    return pick((bytes, bytearray, memoryview))(content)


def a_coder():
    return shelves.pick("coder")


@move(3, _INSIDE)
def decode():
    shelves.put("image", do(imgdl, "decode", data(), **decode_options(a_coder)))


@move(2, _INSIDE)
def decode_into():
    """Memory that is lent is free again, whatever happens."""
    memory, content = bytearray(pick((16, 100, 48 * 48 * 4, 48 * 48 * 8))), data()
    options = decode_options(a_coder)
    for name in ("all_frames", "salvage"):
        options.pop(name, None)
    if one_in(4):
        options["stride"] = pick((8, 12, 200, 48 * 4))
    picture = None
    try:
        picture = do(imgdl, "decode", content, into=memory, **options)
        if picture.view[:1] != memory[:1]:
            violation("the picture is not in the memory that was lent")
    finally:
        del picture
        # The exception that passes may be an interrupt's, whose traceback holds everything, a view of the picture among it.
        if _is_free_to_look():
            memory.append(0)
            if isinstance(content, bytearray):
                content.append(0)


def _is_free_to_look():
    import sys
    problem = sys.exc_info()[1]
    return problem is None or isinstance(problem, imgdl.Error)


@move(2, _INSIDE)
def feed():
    decoder = do(imgdl, "Decoder", **decode_options(a_coder))
    shelves.put("decoder", decoder)
    content = data()
    size = dice().choice((7, 1000, 100_000))
    try:
        for start in range(0, min(len(content), 40 * size), size):
            do(decoder, "feed", content[start : start + size])
            if one_in(5) and (info := look(decoder, "info")) is not None:
                read(info)
            if one_in(5):
                shelves.put("image", do(decoder, "partial"))
        shelves.put("image", do(decoder, "finish"))
    finally:
        if one_in(2):
            do(decoder, "close")


# Not inside: there it may be the one that waits for this very codec, and its calls wait for each other.
@move(1)
def use_decoder():
    decoder = shelves.pick("decoder")
    if decoder is None:
        return
    with decoder if one_in(2) else _nothing():
        pick((lambda: do(decoder, "feed", data()), lambda: look(decoder, "info"), lambda: do(decoder, "partial"),
              lambda: do(decoder, "finish"), lambda: do(decoder, "close")))()


class _nothing:
    def __enter__(self):
        pass

    def __exit__(self, *exception):
        pass


@move(2, _INSIDE)
def create():
    width, height = dice().randrange(0, 20), dice().randrange(0, 20)
    pixel_format = pick(("rgba8", "rgb8", "rgba16", "wrong"))
    pixels = bytes(width * height * pick((3, 4, 8)))
    shelves.put("image", do(imgdl.Image, "create", width, height, pixels, pixel_format))


@move(3, _INSIDE)
def look_at_image():
    image = shelves.pick("image")
    if image is None:
        return
    with image if one_in(5) else _nothing():
        small = look(image, "width") * look(image, "height") <= 10_000
        view = look(image, "view")
        del image_view[:]
        image_view.append(view[: dice().randrange(100)])
        if small:
            read(image)
            read(image.ready)
            if len(look(image, "pixels")) < 3 * image.width * image.height:
                violation("pixels are missing")
            for frame in look(image, "frames"):
                shelves.put("image", frame)
        if copy.copy(image) is not image or copy.deepcopy(image) is not image:
            violation("a copy of an image is another one")


# A view that outlives its image.
image_view = []


@move(2, _INSIDE)
def save_image():
    image = shelves.pick("image")
    if image is None or look(image, "width") * look(image, "height") > 10_000:
        return
    file = io.BytesIO()
    do(image, "save", file)
    if not file.getvalue().startswith(b"\x89PNG"):
        violation("what an image has saved is no PNG")
    try:
        do(image, "to_pil")
    except ImportError:
        played["Image.to_pil"] += 1


@move(1, _INSIDE)
def close_image():
    image = shelves.take("image")
    if image is not None:
        do(image, "close")


@move(2, _INSIDE)
def use_body():
    body = shelves.pick("body")
    if body is None:
        return
    if one_in(3):
        return do(body, "close")
    if bytes(look(body, "view")) != look(body, "data"):
        violation("a body's data are not its view")
    file = io.BytesIO()
    do(body, "save", file)
    read(body)
    if copy.copy(body) is not body:
        violation("a copy of a body is another one")
    if body.image is not None:
        shelves.put("image", body.image)


@move(1, _INSIDE)
def copy_what_is_not_copied():
    kind = pick(("downloader", "token", "batch", "cache", "hooks", "coder", "continuation", "transfer", "decoder", "image", "body"))
    thing = shelves.pick(kind)
    if thing is None:
        return
    ways = [pickle.dumps] if kind in ("image", "body") else [copy.copy, copy.deepcopy, pickle.dumps]
    try:
        pick(ways)(thing)
    except TypeError:
        return
    violation(f"a {kind} was copied")


@move(1, _INSIDE)
def trim():
    if do(imgdl, "trim", pick(("unused", "connections", "caches"))) < 0:
        violation("less than nothing was given back")


@move(1, _INSIDE)
def make_a_cycle():
    """What only the garbage collector finds."""
    things = [shelves.take(kind) for kind in ("token", "image", "batch", "decoder")]
    things.append(things)
