"""What is asked for: pictures of an origin that misbehaves, and addresses that are none."""

import base64
from typing import NamedTuple, Optional

from chance import dice, one_in, pick
from support import PICTURES, pictures, png

TINY = png(2, 2, [[1, 2, 3, 255, 4, 5, 6, 255], [7, 8, 9, 255, 10, 11, 12, 255]])
# Of the player's own codec.
RAW = b"RAW1" + bytes(range(16))

base = ""
_bytes = {}


class Address(NamedTuple):
    url: str
    whole: Optional[bytes] = None
    """The body, where it can be no other one."""


def prepare(origin):
    global base
    base = origin.base
    for name in PICTURES:
        _bytes[name] = (pictures() / name).read_bytes()


def picture_bytes():
    return _bytes[pick(PICTURES)]


# With what comes, all the same, whole.
_HARMLESS = (
    {}, {}, {}, {"delay_ms": 5}, {"delay_ms": 60}, {"chunked": 1}, {"gzip": 1}, {"deflate": 1}, {"etag": "v1"}, {"keepalive": 0},
    {"chunk": 3000, "pause_ms": 1}, {"rate": 2_000_000}, {"headers": 4}, {"length": "none"},
    {"etag": "v2", "header": "Cache-Control:max-age=60"}, {"header": "Cache-Control:max-age=1, stale-while-revalidate=5"})
_FAULTS = (
    {"status": 404}, {"status": 503}, {"type": "text/html"}, {"empty": 1}, {"length": "lie"}, {"short_by": 10}, {"cut_chunked": 1},
    {"gzip": 1, "coding_cut": 5}, {"first_byte": "never"}, {"stall_after": 100}, {"reset_after": 300}, {"close_after": 300},
    {"reset_after": 0}, {"range": "wrong", "etag": "v3", "close_after": 400}, {"rate": 20_000}, {"drip_ms": 20}, {"length": "huge"},
    {"headers": 400}, {"gzip_bomb": 3_000_000})


def _picture():
    name = pick(PICTURES)
    is_harmless = dice().random() < 0.7
    faults = dict(pick(_HARMLESS if is_harmless else _FAULTS))
    # Few different ones, so that requests share transfers and caches have something.
    if not one_in(3):
        faults["_n"] = dice().randrange(4)
    query = "&".join(f"{key}={value}" for key, value in faults.items()).replace(" ", "%20")
    url = f"{base}/pictures/{name}" + (f"?{query}" if query else "")
    return Address(url, _bytes[name] if is_harmless else None)


def _redirect():
    target = _picture()
    import urllib.parse
    way = pick(("/redirect", "/redirect/3", "/redirect/12"))
    return Address(f"{base}{way}?to={urllib.parse.quote(target.url, safe='')}")


def _other():
    number = dice().randrange(1000)
    return Address(base + pick((
        "/status/204", "/status/304", "/status/500?retry_after=1", "/status/429", "/redirect-loop", "/garbage", "/missing",
        "/echo", f"/flaky?id={number}&fail=1&picture=palette.png", "/huge?bytes=300000&type=image/png",
        "/auth/basic?user=me&password=secret&picture=gray.jpg", "/auth/digest?user=me&password=secret&picture=gray.jpg",
        "/cookies/set?name=value&path=/&picture=gray.jpg")))


def _without_network():
    data = pick((TINY, RAW, b"nothing"))
    return pick((
        Address("data:application/octet-stream;base64," + base64.b64encode(data).decode(), data),
        Address(f"own://host/{dice().randrange(4)}"), Address(f"own://host/{dice().randrange(4)}"),
        Address((pictures() / pick(PICTURES)).as_uri()), Address("file:///missing")))


def _wrong():
    return Address(pick(("", "http://", "no address", "ftp://127.0.0.1/x", "http://127.0.0.1:1/", "http://user:pass@127.0.0.1:1/a?b#c",
                         "http://127.0.0.1:99999/", "http://nobody.invalid/", "\0", "http://127.0.0.1/\ud800")))


def address():
    return dice().choices((_picture, _redirect, _other, _without_network, _wrong), (10, 1, 2, 4, 1))[0]()


def request_options(hooks=None, coder=None):
    """Some of those of `download`, without callbacks. `hooks`, `coder`: functions that give one, or None."""
    from values import decode_options

    options = decode_options(coder) if one_in(3) else {}
    random = dice()
    some = {
        "priority": lambda: pick(("low", "normal", "high", 1)),
        "headers": lambda: {"X-Mine": "yes", "Accept": None},
        "follow_redirects": lambda: one_in(2),
        "any_status": lambda: one_in(2),
        "max_body_bytes": lambda: random.choice((100, 1 << 20)),
        "total_timeout": lambda: random.choice((0.05, 0.3, 30)),
        "idle_timeout": lambda: random.choice((0.2, 30)),
        "partial_interval": lambda: 0.001,
        "retries": lambda: random.choice((0, 1, 2)),
        "cache": lambda: pick(("off", "use", "reload", "only", "refresh")),
        "ignore_cached": lambda: one_in(4),
        "cookies": lambda: one_in(2),
        "scale_factor": lambda: 2.0,
        "user": lambda: "me",
        "password": lambda: pick(("secret", "wrong")),
        "continue_in_background": lambda: one_in(2),
        "retry_failed": lambda: True,
        "full_urls": lambda: True,
        "accepted_statuses": lambda: [200, range(201, 210), (400, 404)],
        "accepted_types": lambda: ["image/*"],
        "partition": lambda: pick(("a", "b")),
        "max_stale": lambda: random.choice((0, 10)),
    }
    for name in random.sample(sorted(some), random.choice((0, 0, 1, 2, 4))):
        options[name] = some[name]()
    if options.get("any_status") or options.get("accepted_statuses"):
        options.setdefault("retries", 0)
    if hooks is not None and one_in(5):
        options["hooks"] = hooks()
    if one_in(12):
        options["method"], options["content"] = "POST", b"some" * random.randrange(1, 100)
    return options


def is_changed(options):
    """Whether the body may be another one than that of the address."""
    return any(options.get(name) for name in ("hooks", "method", "any_status", "accepted_statuses"))
