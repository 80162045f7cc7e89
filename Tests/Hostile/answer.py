"""A row: a hostile answer, and what must come out of it."""
import ctypes
import re
import zlib

import wire

HTTP1, HTTPS1, HTTP2, TLS, PROXY = "http1", "https1", "http2", "tls", "proxy"
EACH = (HTTP1, HTTPS1, HTTP2)

# What a flood of frames ends with: a turn of one socket that takes more than 50 ms of the engine's thread.
FLOOD = "FLOOD"

# Notes of a picture whose profile is kept and not followed, since that might take any time.
COSTLY_PROFILE = 1 << 0 | 1 << 5 | 1 << 6

# Parts of a flood: the server stops it after seconds.
ENDLESS = 10 ** 9

ROWS = {}


def _versions():
    """Those that download here, of libcurl and of nghttp2 in it."""
    library = ctypes.CDLL("libcurl.so.4")
    library.curl_version.restype = ctypes.c_char_p
    said = library.curl_version()
    return [tuple(map(int, re.search(rb"%s/(\d+)\.(\d+)" % name, said).groups())) for name in (b"libcurl", b"nghttp2")]


LIBCURL, NGHTTP2 = _versions()


class Request:
    """What was asked: `rest` is the path behind the row's name, `stream` of HTTP/2 alone."""

    def __init__(self, protocol, path, fields, stream=0, origins=None, method="GET", count=1):
        self.protocol, self.fields, self.stream, self.origins = protocol, fields, stream, origins or {}
        self.method, self.count = method, count
        self.path, _, query = path.partition("?")
        self.query = dict(pair.partition("=")[::2] for pair in query.split("&") if pair)
        parts = self.path.split("/")
        self.kind, self.name, self.rest = (parts + ["", ""])[1], (parts + ["", ""])[2], "/".join(parts[3:])

    def field(self, name):
        return next((value for key, value in self.fields if key.lower() == name.lower()), None)


class Answer:
    """`make(request)` gives bytes or a sequence of them; numbers among them are seconds to wait.

    code     the name without IMGDL_ERROR_, or OK; by protocol, where they differ; several, where versions of libcurl differ
    end      what becomes of the connection: close, keep, reset, hold (silence)
    cpu      seconds of the process, its own answer, its neighbours' and the picture after it included
    memory   MiB that the process may grow by
    within   seconds to the terminal; `limit`: of the whole process, which is ended then
    neighbour   seconds of CPU that a picture of another server waits for meanwhile, at most
    options  of the request: see client.c
    before   True, False: a picture of the same server is asked for first, or not; None: by chance
    asked    how often the server may be asked for the answer; None: as often as one likes
    reads_nothing   the server takes nothing that the client says while the answer is sent
    check    a request for /check/NAME comes afterwards, and this says whether it is as it must be
    says     what the message holds; by protocol, where they differ
    again    the code of a second request, with the option `again`
    cache    off, memory or disk; several; None: each
    stored   what a look-up in the cache may end with, besides the code and NOT_CACHED
    environment   of the process; `pieces`: those that it is sent in, where not all
    site     an origin whose name the answer is asked for by: the server is its proxy (HTTP/1.1 in the clear alone)
    crowd    so many servers give the answer at once, each asked by the name of another host, and with `partitions` each for
             another account; what is looked at then is how late others hear, see crowd.c, and `code` is of none
    width, length, notes   of the picture, of the body, and the bits that its notes must have
    """

    def __init__(self, name, code, make, protocols, end="close", cpu=0.2, memory=24, within=3.0, limit=12, options=None,
                 before=None, check=None, says=(), width=None, length=None, notes=0, status=None, is_flood=False,
                 cache=None,
                 stored=(), neighbour=0.1, host=None, greeting=None, environment=None,
                 pieces=None, again=None, site=None, crowd=0, partitions=False,
                 asked=None, reads_nothing=False):
        assert name not in ROWS, f"two answers are called {name}"
        self.name, self.make, self.protocols, self.end = name, make, protocols, end
        self.codes = {protocol: self._codes(code, protocol) for protocol in protocols}
        self.others = {}
        self.cpu, self.memory, self.within, self.limit, self.neighbour = cpu, memory, within, limit, neighbour
        self.options = dict({"idle_timeout_ms": 2000}, **(options or {}))
        self.before, self.check = before, check
        self.says = says if isinstance(says, dict) else {"else": says}
        self.width, self.length, self.notes, self.status = width, length, notes, status
        self.is_flood, self.host, self.greeting = is_flood, host, greeting
        self.caches, self.stored = (cache,) if isinstance(cache, str) else cache, self._codes(stored, None)
        self.environment, self.pieces = environment or {}, pieces
        self.site = site
        self.crowd, self.partitions = crowd, partitions
        self.asked, self.reads_nothing = asked, reads_nothing
        self.again = again and self._codes(again, None)
        ROWS[name] = self

    def words(self, protocol):
        words = self.says.get(protocol, self.says.get("else"))
        return (words,) if isinstance(words, str) else words

    def allow(self, codes, protocols=None):
        """These may come out, too; the message is then that of who has decided so."""
        for protocol in protocols or self.codes:
            self.others[protocol] = self.others.get(protocol, ()) + self._codes(codes, protocol)

    @staticmethod
    def _codes(code, protocol):
        if isinstance(code, dict):
            code = code.get(protocol, code.get("else"))
        codes = (code,) if isinstance(code, str) else tuple(code)
        return tuple("IMGDL_OK" if name == "OK" else f"IMGDL_ERROR_{name}" for name in codes)


def raw(name, data, code, **bounds):
    """Bytes of HTTP/1.1, or a function of the request that gives them."""
    make = data if callable(data) else lambda request: data
    return Answer(name, code, make, bounds.pop("protocols", (HTTP1, HTTPS1)), **bounds)


def reply(name, code, status=200, fields=(), body=b"", trailers=None, **bounds):
    """An answer that each protocol has; `fields` and `body` may be functions of the request."""
    def make(request):
        ours = list(fields(request) if callable(fields) else fields)
        content = body(request) if callable(body) else body
        if request.protocol == HTTP2:
            return wire.response_frames(
                request.stream, status, [(n.lower(), v) for n, v in ours], content,
                None if trailers is None else [(n.lower(), v) for n, v in trailers])
        if trailers is not None:
            return wire.head(*ours, ("Transfer-Encoding", "chunked"), status=f"{status} X") + wire.chunked(
                content, trailers=trailers)
        has_length = any(n.lower() == "content-length" for n, _ in ours) or status in (204, 304) or status < 200
        length = [] if has_length else [("Content-Length", len(content))]
        return wire.head(*ours, *length, status=f"{status} X") + content
    return Answer(name, code, make, bounds.pop("protocols", EACH), **dict({"end": "keep"}, **bounds))


def frames(name, make, code, **bounds):
    """Frames of HTTP/2: a function of the number of the stream."""
    return Answer(name, code, lambda request: make(request.stream), (HTTP2,), **bounds)


def _maker(data):
    """What goes on and on is a function, which makes it anew each time."""
    return (lambda request: data()) if callable(data) else lambda request: data


def greeting(name, data, code, **bounds):
    """What a server of HTTP/2 says in place of its SETTINGS. The name of the host names the answer."""
    return Answer(name, code, lambda request: b"", (HTTP2,), host=f"{name}.hostile.localhost", greeting=_maker(data),
        before=False,
                  **bounds)


def handshake(name, data, code, **bounds):
    """What comes in place of a ServerHello, or of the rest of the handshake."""
    return Answer(name, code, _maker(data), (TLS,), host=f"{name}.hostile.localhost", before=False, cache="off",
                  **bounds)


def tunnel(name, data, code, **bounds):
    """A proxy's answer to CONNECT."""
    return Answer(name, code, _maker(data), (PROXY,), host=f"{name}.hostile.localhost", before=False, cache="off",
                  **bounds)


def seed_of(*parts):
    """A number that depends on these alone."""
    return zlib.crc32("|".join(map(str, parts)).encode())
