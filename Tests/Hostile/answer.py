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

_LIBRARY = ctypes.CDLL("libcurl.so.4")
_LIBRARY.curl_version.restype = _LIBRARY.curl_easy_strerror.restype = ctypes.c_char_p


def _versions():
    """Those that download here, of libcurl and of nghttp2 in it."""
    said = _LIBRARY.curl_version()
    return [tuple(map(int, re.search(rb"%s/(\d+)\.(\d+)" % name, said).groups())) for name in (b"libcurl", b"nghttp2")]


LIBCURL, NGHTTP2 = _versions()

# What libcurl says of its codes in general: no cause of anything.
GENERAL = {_LIBRARY.curl_easy_strerror(code).decode() for code in range(1, 110)}

# What the message of each code names behind the URL, whatever the answer: patterns, of which one is found, with the values of
# the row's options and of what was seen. Where libraries choose the words, these are what stands beside them; `.` is a code
# whose words are theirs alone, and no general ones.
PICTURE = r"\b(PNG|JPEG|GIF|WebP|AVIF|(libpng|libjpeg|libwebp): \S)"
WORDS = {
    "ANIMATION_LIMIT": r"frames of \d+ × \d+ pixels are more than the limit of \d+ pixels",
    "BAD_IMAGE_DATA": (PICTURE, r"the body is empty", r"not an image: it begins with ", r"the picture is \d+ × \d+ pixels"),
    "BODY_LIMIT": r"(the body is larger|the encoded body is larger \(\d+ bytes have come\)|announces \d+ bytes), the limit is %(max_body_bytes)s bytes",
    "CONNECT_FAILED": r"port \d+|connect to \S+",
    "CONNECT_TIMEOUT": r"no connection within %(connect_timeout_ms)s ms",
    "CONNECTION_LOST": (
        r"(connection|stream) was lost (while|before|after) \S", r"(closed|ended) the connection\b.*\bwithout an answer",
        r"ended the connection \(GOAWAY\)", r"connection ended before the response's header was complete",
        r"the server did not answer, and .*: .+"),
    "CONTENT_ENCODING": (
        r"coding “[^”]+”", r"has \d+ codings .*the limit is \d+", r"hand on \d+ bytes.*the limit is \d+",
        r"has taken \d+ ms of CPU time.*the limit is \d+ ms", r"hold \d+ bytes of memory, the limit is \d+"),
    "DECODE_TIMEOUT": r"the limit of \d+ ms of CPU time",
    "FLOOD": (
        r"what belongs to no request, for \d+ ms .*the connection was closed",
        r"the server sent a flood on this connection\b.* and it was closed",
        r"nothing of the answer for %(idle_timeout_ms)s ms, and meanwhile \d+ bytes that gave nothing of an answer"),
    "FRAME_LIMIT": r"more than the limit of \d+ frames",
    "HEADER_LIMIT": (
        r"(header|trailers|interim responses|the proxy's answer to CONNECT)\b.* went over a limit: .*"
        r"(more than \d+ (bytes|fields|responses|KiB)|more frames of HTTP/2 than nghttp2 takes)"),
    "IDLE_TIMEOUT": r"the server sent nothing of the answer for %(idle_timeout_ms)s ms",
    "INVALID_STATUS": r"the server answered %(status)s\b",
    "MEMORY_LIMIT": r"\d+ bytes of memory, more than the limit of \d+",
    "METADATA_LIMIT": r"\d+ bytes of EXIF and (packed )?profile, more than the limit of \d+",
    "OUT_OF_MEMORY": r"memory for .*\d+",
    "PIXEL_LIMIT": (
        r"\d+ × \d+ pixels, more than the limit of \d+ pixels", r"libjpeg: Maximum supported image dimension is \d+ pixels"),
    "PROTOCOL": (
        r"the response's (header|body) cannot be read: \S", r"a line of the response's header has a carriage return",
        r"the first field of the response's header begins with a space", r"does not begin with a status line of HTTP: “",
        r"the response's Content-Length is not one number: \S", r"has two Content-Lengths that differ: “\d+” and “\d+”",
        r"has a Transfer-Encoding that was not asked for: “",
        r"has a Content-Length and a Transfer-Encoding without “chunked”", r"has two Location fields that differ",
        r"the server switched protocols \(101\)", r"the server broke the rules of HTTP/2\b", r"sends? more than\b"),
    "PROXY_FAILED": (
        r"the proxy answered \d{3}\b", r"the proxy's answer to CONNECT cannot be read: \S", r"the proxy .* cannot be reached: \S"),
    "REDIRECT_REFUSED": (
        r"answered \d+ without a Location", r"a redirect to \S+ is not followed: http and https alone are",
        r"a redirect from https to http \(\S+\) is not followed",
        r"a redirect is not followed: (its Location is malformed: |the scheme “[^”]+” )\S+ \S+"),
    "SCAN_LIMIT": r"more than \d+ scans",
    "SIZE_LIMIT": (r"\d+ × \d+ pixels, and no side may have more than \d+", r"has \d+ pixels.*no more than \d+"),
    "TLS_FAILED": ".",
    "TOO_MANY_REDIRECTS": (
        r"more than %(max_redirects)s redirects?: the next would lead to http",
        r"a redirect loop: https?://\S+ leads back to itself"),
    "TOTAL_TIMEOUT": r"its total timeout of %(total_timeout_ms)s ms",
    "TRUNCATED": (
        r"\bends after \d+ (of \d+ )?(bytes|rows)\b", r"ends before its coding “[^”]+” does",
        r"\b(PNG|JPEG|GIF|WebP) ends (in|within|behind|ahead of)\b", r"libwebp: \S"),
}
# Of what a row's options leave out.
DEFAULTS = {"max_body_bytes": 256 << 20, "connect_timeout_ms": 15000, "idle_timeout_ms": 15000, "max_redirects": 10}


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

    code     the name without IMGDL_ERROR_, or OK; by protocol, where they differ. Several, where the version of libcurl,
             nghttp2 or a coding's library decides, or the moment in which a connection ends; of pictures one, and what
             versions of their libraries make of it is in libraries.py
    end      what becomes of the connection: close, keep, reset, hold (silence)
    cpu      seconds of the process, its own answer and the picture after it included; each neighbour's picture has 0.5 ms besides
    memory   MiB that the process may grow by
    within   seconds to the terminal; `limit`: of the whole process, which is ended then
    neighbour   seconds of CPU that a picture of another server waits for meanwhile, at most
    options  of the request: see client.c
    before   True, False: a picture of the same server is asked for first, or not; None: by chance
    asked    how often the server may be asked for the answer; None: as often as one likes
    reads_nothing   the server takes nothing that the client says while the answer is sent
    check    a request for /check/NAME comes afterwards, and this says whether it is as it must be
    says     what the message holds behind the URL, besides what its code has there in any case (WORDS); by protocol, where they
             differ
    again    the code of a second request, with the option `again`
    cache    off, memory or disk; several; None: each
    stored   what a look-up in the cache may end with, besides the code and NOT_CACHED
    environment   of the process; `pieces`: those that it is sent in, where not all
    site     an origin whose name the answer is asked for by: the server is its proxy (HTTP/1.1 in the clear alone)
    crowd    so many servers give the answer at once, each asked by the name of another host, and with `partitions` each for
             another account; what is looked at then is how late others hear, see crowd.c, and `code` is of none
    width, length, notes   of the picture, of the body, and the bits that its notes must have; a picture's row
             has a width where its code is OK
    """

    def __init__(self, name, code, make, protocols, end="close", cpu=0.2, memory=24, within=3.0, limit=12, options=None,
                 before=None, check=None, says=(), width=None, length=None, notes=0, status=None, is_flood=False,
                 cache=None, stored=(), neighbour=0.1, host=None, greeting=None, environment=None, pieces=None, again=None,
                 site=None, crowd=0, partitions=False, asked=None, reads_nothing=False):
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

    def lacks(self, protocol, code, message, general, found):
        """What is wrong with an error's message, as sentences: it names the URL, and then what was wrong. No more than what
        its code says in `general` is nothing. `found` is what was seen."""
        named = re.match(r"https?://\S+(, redirected to https?://\S+)?: ", message)
        if not named:
            return [f"the message does not begin with the URL: {message!r}"]
        cause = message[named.end():]
        said, _, last = cause.rpartition(": ")
        if last in {general, *GENERAL}:
            cause = said
        if not cause.strip():
            return [f"the message names no cause: {message!r}"]
        values = {**found, **DEFAULTS, **self.options}
        patterns = [pattern % values for pattern in _patterns(code)]
        missed = [] if any(re.search(pattern, cause) for pattern in patterns) else [" or ".join(patterns)]
        # Who else has decided so has other words than the row's.
        missed += [words for words in self.words(protocol) if words not in cause and code in self.codes[protocol]]
        return [f"the message does not say “{words}”: {cause!r}" for words in missed]

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
                  before=False, **bounds)


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


def _patterns(code):
    patterns = WORDS.get(code.removeprefix("IMGDL_ERROR_"), ())
    return (patterns,) if isinstance(patterns, str) else patterns


def require_words(rows=None):
    """Each answer has words for each of its codes that is an error."""
    for row in ROWS.values() if rows is None else rows:
        for protocol in () if row.crowd else row.protocols:
            for code in row.codes[protocol] + row.others.get(protocol, ()):
                assert code == "IMGDL_OK" or _patterns(code), f"{row.name}: WORDS has no words for {code}"
