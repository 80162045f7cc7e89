"""Moves with caches."""

import os
import tempfile

import addresses
import imgdl
import model
import shelves
from calls import Mine, do, read
from chance import dice, one_in, pick
from moves import move


folder = None


def new_folder():
    global folder
    # A cache of a downloader that was let go closes a moment later.
    folder = tempfile.TemporaryDirectory(prefix="imgdl-player-", ignore_cleanup_errors=True)


@move(1)
def new_cache():
    if not one_in(4):
        return

    def told(event):
        read(event)
        if one_in(4):
            raise Mine("event")

    options = {"max_bytes": pick((None, 200_000)), "max_memory_bytes": pick((None, 1 << 20)), "max_image_bytes": pick((None, 8 << 20)),
               "max_partial_bytes": pick((None, 100_000)), "max_age": pick((None, 1, 1000))}
    if one_in(2):
        options["on_event"] = model.give(told)
    where = pick((None, "a", "b"))
    shelves.put("cache", do(imgdl, "Cache", where and os.path.join(folder.name, where), **options))


@move(3)
def use_cache():
    cache = shelves.pick("cache")
    if cache is None:
        return
    url = addresses.address().url
    way = dice().randrange(8)
    if way == 0:
        do(cache, "clear")
    elif way == 1:
        do(cache, "flush")
    elif way == 2:
        do(cache, "remove_older", pick((0, 1000)))
    elif way == 3:
        read(do(cache, "statistics"))
        repr(cache)
    elif way == 4:
        do(cache, "remove", url)
    else:
        entry = do(cache, "query", url)
        if entry is not None:
            read(entry)


@move(1)
def close_cache():
    if not one_in(4):
        return
    cache = shelves.take("cache")
    if cache is not None:
        with cache:
            repr(cache)
        do(cache, "close")


@move(1)
def look_for_what_is_stored():
    """Others seldom ask a cache for what happens to be there."""
    cache = shelves.pick("cache")
    if cache is None:
        return
    url = f"{addresses.base}/pictures/gray.jpg?etag=v2&header=Cache-Control:max-age=60"
    with do(imgdl, "Downloader", cache=cache) as downloader:
        do(do(downloader, "download", url, body=True), "result", 1)
        entry = do(cache, "query", url)
        if entry is not None:
            read(entry)
