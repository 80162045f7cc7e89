"""Redirects: where they lead, how often, and what goes along."""
from answer import EACH, HTTP1, HTTP2, HTTPS1, frames, raw, reply
from pictures import good
from wire import head, response_frames

PICTURE = good(3, 5)
SECURE = (HTTPS1, HTTP2)


def redirect(name, code, location, status=302, more=(), **bounds):
    reply(f"redirect-{name}", code, status=status, fields=lambda request: [
        ("Location", location(request) if callable(location) else location), *more], **bounds)


def answering(name, code, make, **bounds):
    """`make(request)` gives a status and fields; None is the picture."""
    def respond(request):
        made = make(request)
        status, fields, body = (200, [], PICTURE) if made is None else (*made, b"")
        if request.protocol == HTTP2:
            return response_frames(request.stream, status, [(n.lower(), v) for n, v in fields], body)
        return head(*fields, ("Content-Length", len(body)), status=f"{status} X") + body
    raw(f"redirect-{name}", respond, code, protocols=bounds.pop("protocols", EACH), end="keep", **bounds)


# ---- What can be followed
for status in (301, 302, 303, 307, 308):
    redirect(f"{status}", "OK", "/good", status, width=3)
    reply(f"redirect-{status}-without-location", "REDIRECT_REFUSED", status=status, says="Location")
redirect("relative", "OK", "../good", width=3)
redirect("query-alone", "OK", "/good?x", width=3)
redirect("fragment", "OK", "/good#" + "x" * 5000, width=3)
redirect("dots", "OK", "/../../../a/./../good", width=3)
redirect("spaces-around", "OK", "  /good  ", width=3)
redirect("authority-relative", "OK", lambda request: request.origins[request.protocol].partition(":")[2] + "/good",
    width=3)
redirect("scheme-upper-case", "OK", lambda request: request.origins[request.protocol].replace("http", "HTTP") + "/good",
    width=3)
redirect("host-decimal", "OK", lambda request: request.origins[HTTP1].replace("127.0.0.1", "2130706433") + "/good",
    width=3,
         protocols=(HTTP1,))
redirect("host-hexadecimal", "OK", lambda request: request.origins[HTTP1].replace("127.0.0.1", "0x7f000001") + "/good",
    width=3,
         protocols=(HTTP1,))
redirect("300", "INVALID_STATUS", "/good", 300)
redirect("304", "INVALID_STATUS", "/good", 304)
redirect("305", "INVALID_STATUS", "http://127.0.0.1:1/", 305)
redirect("306", "INVALID_STATUS", "/good", 306)
redirect("201-location", "BAD_IMAGE_DATA", "/good", 201)

# ---- What cannot: schemes and addresses that are none
for name, location in {
        "file": "file:///etc/passwd", "file-host": "file://localhost/etc/passwd", "data": "data:image/png;base64,AAAA",
        "ftp": "ftp://127.0.0.1/", "gopher": "gopher://127.0.0.1/", "javascript": "javascript:alert(1)",
        "javascript-digit": "javascript:1", "scheme-or-port": "localhost:80/good",
        "ws": "ws://127.0.0.1/",
        "dict": "dict://127.0.0.1:1/", "ldap": "ldap://127.0.0.1/", "smb": "smb://127.0.0.1/x",
        "scp": "scp://127.0.0.1/",
        "telnet": "telnet://127.0.0.1/", "unix": "unix:/tmp/x", "about": "about:blank", "blob": "blob:http://a/b",
        "view-source": "view-source:http://127.0.0.1/", "unknown": "x-y+z.1:a", "httpx": "httpx://127.0.0.1/",
        "host-missing": "http://", "host-missing-path": "http:///good", "one-slash": "http:/good",
        "no-slash": "http:good",
        "port-letters": "http://127.0.0.1:x/", "port-65536": "http://127.0.0.1:65536/",
        "port-negative": "http://127.0.0.1:-1/",
        "port-huge": "http://127.0.0.1:99999999999999999999/", "brackets-open": "http://[::1/",
        "brackets-empty": "http://[]/",
        "brackets-letters": "http://[xyz]/", "zone": "http://[fe80::1%25../]/", "host-space": "http://a b/",
        "host-nul": "http://a%00b/",
        "host-percent": "http://%zz/", "host-controls": "http://a%0d%0ab/", "host-long": "http://" + "a" * 70000 + "/",
        "backslashes": "http:\\\\127.0.0.1\\", "backslash-authority": "http://127.0.0.1\\@example.invalid/",
        "backslash-host": "http://127.0.0.1\\.example.invalid/", "user-backslash": "http://a\\b@127.0.0.1/",
        "host-dot": "http://./", "host-dots": "http://../", "host-hash": "http://#/", "host-question": "http://?/",
        "host-colon": "http://:80/", "host-at": "http://@/", "host-quote": "http://a\"b/", "host-less": "http://<a>/",
}.items():
    redirect(f"to-{name}", ("REDIRECT_REFUSED", "HEADER_LIMIT") if name == "host-long" else "REDIRECT_REFUSED", location)
redirect("to-empty", ("REDIRECT_REFUSED", "TOO_MANY_REDIRECTS"), "")
redirect("to-spaces", ("REDIRECT_REFUSED", "TOO_MANY_REDIRECTS"), "   ", protocols=EACH[:2])
redirect("to-clear", "REDIRECT_REFUSED", lambda request: request.origins[HTTP1] + "/good", protocols=SECURE,
    says="https to http")
redirect("to-clear-allowed", "OK", lambda request: request.origins[HTTP1] + "/good", protocols=SECURE, width=3,
         options={"flags": 8})
redirect("to-dead-port", "CONNECT_FAILED", "http://127.0.0.1:1/", protocols=(HTTP1,))
raw("redirect-to-controls", head(("Location", "/a\x01\x1b[2J"), ("Content-Length", 0), status="302 X"),
    "REDIRECT_REFUSED",
    end="keep")
raw("redirect-to-nul", head(("Location", b"/good\0/x"), ("Content-Length", 0), status="302 X"),
    ("REDIRECT_REFUSED", "PROTOCOL", "OK"), end="keep")
raw("redirect-to-return", head(("Location", "/good\rX: y"), ("Content-Length", 0), status="302 X"),
    ("REDIRECT_REFUSED", "PROTOCOL", "OK"), end="keep")
redirect("to-not-utf8", ("INVALID_STATUS", "REDIRECT_REFUSED"), b"/\xff\xfe", more=[])
redirect("to-right-to-left", "INVALID_STATUS", "/\u202egood".encode())
redirect("to-long-path", {"http2": ("INVALID_STATUS", "HEADER_LIMIT"), "else": ("INVALID_STATUS", "REDIRECT_REFUSED")},
         "/" + "x" * 60000)
redirect("to-dots-20000", {"http2": ("OK", "HEADER_LIMIT", "REDIRECT_REFUSED"), "else": ("OK", "REDIRECT_REFUSED")},
         "/" + "../" * 20000 + "good")
redirect("two-locations", "PROTOCOL", "/good", more=[("Location", "/other")])
redirect("user-and-password", "OK", lambda request: request.origins[request.protocol].replace("//",
    "//user:secret@") + "/good",
         width=3)

# ---- How often
redirect("itself", "TOO_MANY_REDIRECTS", lambda request: request.path + "?" + "&".join(f"{n}={v}" for n,
    v in request.query.items()))
answering("circle-of-two", "TOO_MANY_REDIRECTS",
          lambda request: (302, [("Location",
          f"/hostile/redirect-circle-of-two/{'b' if request.rest == 'a' else 'a'}")]))
answering("circle-of-five", "TOO_MANY_REDIRECTS", lambda request: (
    302, [("Location", f"/hostile/redirect-circle-of-five/{(int(request.rest or 0) + 1) % 5}")]))
answering("endless", "TOO_MANY_REDIRECTS",
          lambda request: (302, [("Location", f"/hostile/redirect-endless/{int(request.rest or 0) + 1}")]), says="10")
answering("endless-hundred", "TOO_MANY_REDIRECTS",
          lambda request: (302, [("Location", f"/hostile/redirect-endless-hundred/{int(request.rest or 0) + 1}")]),
          options={"max_redirects": 100}, says="100", cpu=0.5)
answering("ten", "OK", lambda request: None if request.rest == "10" else (
    302, [("Location", f"/hostile/redirect-ten/{int(request.rest or 0) + 1}")]), width=3)
answering("eleven", "TOO_MANY_REDIRECTS", lambda request: None if request.rest == "11" else (
    302, [("Location", f"/hostile/redirect-eleven/{int(request.rest or 0) + 1}")]))
answering("itself-with-cookie", "OK", lambda request: None if "a=b" in (request.field("Cookie") or "") else (
    302, [("Set-Cookie", "a=b; path=/"), ("Location", request.path + "?" + "&".join(f"{n}={v}" for n,
    v in request.query.items()))]),
    width=3, options={"flags": 32})
answering("endless-with-cookies", "TOO_MANY_REDIRECTS", lambda request: (
    302, [("Set-Cookie", f"a{request.count}=b; path=/"),
          ("Location", request.path + "?" + "&".join(f"{n}={v}" for n, v in request.query.items()))]),
          options={"flags": 32})
answering("with-large-bodies", "TOO_MANY_REDIRECTS", lambda request: (
    302, [("Location", f"/hostile/redirect-with-large-bodies/{int(request.rest or 0) + 1}")]))
raw("redirect-with-endless-body", lambda request: (
    head(("Location", "/good"), status="302 X") if not at else bytes(65536) for at in range(10 ** 9)), "OK",
    is_flood=True,
    width=3)
raw("redirect-with-body-that-stalls", head(("Location", "/good"), ("Content-Length", 5000), status="302 X") + b"x",
    "OK",
    end="hold", width=3, within=3)
raw("redirect-with-broken-chunks", head(("Location", "/good"), ("Transfer-Encoding", "chunked"),
    status="302 X") + b"zz\r\n", "OK",
    width=3)
raw("redirect-cut", head(("Location", "/good"), ("Content-Length", 5000), status="302 X"), "OK", width=3)
raw("redirect-reset", head(("Location", "/good"), ("Content-Length", 5000), status="302 X") + b"x" * 10,
    ("OK", "CONNECTION_LOST"), end="reset")
frames("redirect-h2-and-reset", lambda stream: response_frames(stream, 302, [("location", "/good")]) +
       b"\0\0\4\3\0" + stream.to_bytes(4, "big") + b"\0\0\0\2", "OK", end="keep", width=3)


# ---- What goes along: user, password and secret fields stay at their origin, also behind A → B → A.
def away(request):
    """The origin of another port."""
    return request.origins[HTTPS1 if request.protocol == HTTP2 else HTTP2 if request.protocol == HTTPS1 else HTTP1].replace(
        "127.0.0.1", "localhost")


def refuse_secrets(request):
    seen = [name for name, _ in request.fields if name.lower() in ("authorization", "cookie", "proxy-authorization",
        "x-secret")]
    return (403, []) if seen else None


for field in ("Authorization", "Cookie", "Proxy-Authorization"):
    for trip in ("away", "away-and-back"):
        name = f"keeps-{field.lower()}-{trip}"

        def travel(request, name=name, trip=trip):
            if request.rest == "end":
                return refuse_secrets(request)
            if request.rest == "there" and trip == "away-and-back":
                back = {"localhost": "127.0.0.1"}
                home = request.query["home"]
                return (302, [("Location",
                    f"{home.replace('localhost', back['localhost'])}/hostile/redirect-{name}/end")])
            if request.rest == "there":
                return refuse_secrets(request)
            return (302, [("Location", f"{away(request)}/hostile/redirect-{name}/there?home={request.origins[request.protocol]}")])
        answering(name, "OK", travel, width=3, options={"field": field, "value": "secret"})
