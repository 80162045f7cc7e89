"""Moves with downloaders, tokens and batches."""

import addresses
import asking
import imgdl
import model
import rounds
import shelves
from calls import Mine, do, look, put, read
from chance import dice, one_in, pick, violation
from moves import is_inside, move

_INSIDE = True
MOST_DOWNLOADERS = 6


def a_downloader():
    if one_in(12):
        return do(imgdl.Downloader, "shared")
    return shelves.pick("downloader")


def config():
    random = dice()
    some = {
        "max_concurrent": lambda: random.choice((1, 3, 20)),
        "max_per_host": lambda: random.choice((1, 4)),
        "order": lambda: pick(("fifo", "lifo")),
        "decode_threads": lambda: random.choice((1, 2)),
        "memory_budget": lambda: random.choice((100_000, 64 << 20)),
        "idle_timeout": lambda: random.choice((0.5, 5)),
        "retries": lambda: pick((0, 1, read(imgdl.Retry(2, base=0.01, maximum=0.05)))),
        "failure_ttl": lambda: 0.2,
        "accepted_types": lambda: ["image/*", "application/octet-stream"],
        "user_agent": lambda: "player",
        "allow_data_urls": lambda: True,
        "allow_file_urls": lambda: True,
        "cache": lambda: shelves.pick("cache"),
        "cache_mode": lambda: pick(("use", "reload", "refresh")),
        "hooks": lambda: shelves.pick("hooks"),
        "finish_nearly_done": lambda: True,
        "partition": lambda: "mine",
        "basic_over_http": lambda: True,
        "progress_interval": lambda: 0.1,
        "deny_private_addresses": lambda: one_in(8),
    }
    names = set(random.sample(sorted(some), random.randrange(8))) | {"allow_data_urls"}
    given = {name: some[name]() for name in sorted(names)}
    return {name: value for name, value in given.items() if value is not None}


@move(1, _INSIDE)
def new_downloader():
    if rounds.living_downloaders() >= MOST_DOWNLOADERS:
        return
    options = config()
    downloader = do(imgdl, "Downloader", **options)
    model.session(downloader).has_hooks = "hooks" in options
    rounds.add_downloader(downloader)
    shelves.put("downloader", downloader)


@move(20, _INSIDE)
def download():
    downloader = a_downloader()
    if downloader is not None:
        asking.download(downloader)


@move(4)
def download_and_wait():
    downloader = a_downloader()
    if downloader is None:
        return
    token = asking.download(downloader)
    timeout = pick((0, 0.01, 0.3))
    if one_in(4):
        do(token, "exception", timeout)
    else:
        asking.keep_result(do(token, "result", timeout))


@move(2)
def get():
    owed, options = asking.new_request()
    # Nobody gets its token.
    model.requests.remove(owed)
    asking.keep_result(do(imgdl, "get", owed.url, timeout=pick((0.01, 0.2)), **options))


@move(4, _INSIDE)
def use_token():
    token = shelves.pick("token")
    if token is None:
        return
    way = dice().randrange(6)
    if way == 0:
        do(token, "cancel")
        do(token, "cancelled")
    elif way == 1:
        put(token, "priority", pick(("low", "normal", "high")))
    elif way == 2:
        do(token, "set_priority", pick(("low", "normal", "high")))
    elif way == 3 and do(token, "done") and not is_inside():
        asking.read_outcome(token)
    else:
        for name in ("id", "url", "priority", "metrics", "response"):
            look(token, name)
        repr(token)


@move(3)
def wait_for_token():
    token = shelves.pick("token")
    if token is not None:
        try:
            do(token, pick(("result", "exception")), pick((0, 0.005, 0.05)))
        except imgdl.Error as problem:
            if problem.code != imgdl.Code.WOULD_DEADLOCK:
                read(problem)
            raise


@move(1, _INSIDE)
def let_token_go():
    shelves.take("token")


@move(3, _INSIDE)
def prefetch():
    downloader = a_downloader()
    if downloader is not None:
        asking.prefetch(downloader)


@move(3, _INSIDE)
def use_batch():
    batch = shelves.pick("batch")
    if batch is None:
        return
    way = dice().randrange(8)
    if way == 0:
        do(batch, "cancel")
    elif way == 1:
        do(batch, "pause")
    elif way in (2, 3):
        do(batch, "resume")
    elif way == 4:
        put(batch, "paused", one_in(2))
        look(batch, "paused")
    elif way == 5:
        do(batch, "set_priority", pick(("low", "normal", "high")))
    else:
        progress = look(batch, "progress")
        read(progress)
        if do(batch, "done") and progress.finished < progress.total and not look(batch, "progress").is_finished:
            violation(f"{batch!r} is done: {progress!r}")


@move(2)
def wait_for_batch():
    batch = shelves.pick("batch")
    if batch is not None:
        try:
            progress = do(batch, "wait", pick((0, 0.05, 0.2)))
        except Mine:
            return
        if not progress.is_finished or progress.finished != progress.total:
            violation(f"a batch was waited for: {progress!r}")


@move(2)
def map_many():
    downloader = a_downloader()
    if downloader is None:
        return
    wanted, options = [addresses.address().url for _ in range(dice().randrange(5))], {}
    # What never ends would be waited for.
    options["total_timeout"] = 0.2
    if one_in(3):
        options["body"] = True
    is_ordered, most = one_in(2), dice().choice((2, 100))
    found = []
    generator = do(downloader, "map", iter(wanted), ordered=is_ordered, buffersize=pick((None, 1, 3)), progress=one_in(2), **options)
    for token in generator:
        if not token.done():
            violation(f"map gave {token!r}")
        found.append(token.url)
        asking.read_outcome(token)
        if len(found) >= most:
            break
    else:
        if (found if is_ordered else sorted(found)) != (wanted if is_ordered else sorted(wanted)):
            violation(f"map gave {found}, and wanted were {wanted}")
    if one_in(2):
        generator.close()


@move(2, _INSIDE)
def look_at_downloader():
    downloader = a_downloader()
    if downloader is None:
        return
    way = dice().randrange(5)
    if way == 0:
        stats = do(downloader, "stats")
        read(stats)
        read(stats.total)
        do(stats.total, "quantile", dice().random())
        if stats.submitted < stats.succeeded + stats.failed + stats.cancelled:
            violation(f"{stats!r}")
    elif way == 1:
        look(downloader, "current_count")
    elif way == 2:
        do(downloader, "set_header", pick(("X-Other", "Accept", "")), pick(("a", None)))
        do(downloader, "header", pick(("X-Other", "accept", "User-Agent")))
    elif way == 3:
        for name in ("max_concurrent", "max_per_host", "suspended"):
            look(downloader, name)
        repr(downloader)
    else:
        do(downloader, "network_changed")


@move(2, _INSIDE)
def change_downloader():
    downloader = a_downloader()
    if downloader is None:
        return
    way = dice().randrange(9)
    if way == 0:
        put(downloader, "max_concurrent", pick((1, 2, 8)))
    elif way == 1:
        put(downloader, "max_per_host", pick((None, 1, 2, 8)))
    elif way == 2:
        do(downloader, "set_order", pick(("fifo", "lifo")))
    elif way == 3:
        put(downloader, "suspended", True)
        put(downloader, "suspended", False)
    elif way == 4:
        do(downloader, "enter_background", pick((None, 0.05)))
    elif way == 5:
        do(downloader, "enter_foreground")
    elif way == 6:
        do(downloader, "cancel_all")
    elif one_in(4):
        do(downloader, "invalidate", cancel=one_in(2))
        options = config()
        model.session(downloader).has_hooks |= "hooks" in options
        do(downloader, "reconfigure", **options)


@move(3, _INSIDE)
def go_on():
    downloader = a_downloader()
    if downloader is not None:
        do(downloader, "enter_foreground")
        put(downloader, "suspended", False)


@move(1)
def wait_idle():
    downloader = a_downloader()
    if downloader is not None:
        do(downloader, "wait_idle", pick((0, 0.05, 0.2)))


@move(1)
def close_downloader():
    """While others download with it, and wait for it."""
    if not one_in(3):
        return
    downloader = shelves.take("downloader")
    if downloader is None:
        return
    if one_in(3):
        return  # it ends what it has accepted
    do(downloader, "close")
    if one_in(3):
        do(downloader, "close")
