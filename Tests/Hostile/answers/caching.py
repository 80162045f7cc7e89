"""What a cache reads: ranges, ages, dates, validators, Vary. Numbers of a server are numbers of a stranger."""
from answer import EACH, raw, reply
from pictures import good
from wire import head

PICTURE = good(3, 5)
LENGTH = len(PICTURE)
DATE = ("Date", "Tue, 24 Nov 2026 02:00:00 GMT")
FRESH = ("Cache-Control", "max-age=1000")
BODY = {"flags": 1}

KEPT = {"cache": ("memory", "disk")}

# ---- Content-Range: what is stored is what came, and look-ups of any range survive it.
MOST = 2 ** 63 - 1
LIKELY = ("most", "most-from-zero", "longer-than-body", "2-63", "elsewhere", "shorter-than-body", "unknown-length",
    "last-most")
for name, value in {
        "most": f"bytes {MOST - 7}-{MOST - 1}/{MOST}", "most-from-zero": f"bytes 0-{MOST - 1}/{MOST}",
        "2-63": f"bytes 0-{2 ** 63}/{2 ** 63 + 1}",
        "2-64": f"bytes 0-{2 ** 64 - 1}/{2 ** 64}", "backwards": "bytes 5-3/10", "beyond": f"bytes 0-{LENGTH - 1}/3",
        "longer-than-body": f"bytes 0-{LENGTH + 50}/{LENGTH + 51}", "shorter-than-body": f"bytes 0-2/{LENGTH}",
        "unknown-length": f"bytes 0-{LENGTH - 1}/*", "unknown-range": f"bytes */{LENGTH}", "both-unknown": "bytes */*",
        "negative": "bytes -5-3/10",
        "negative-length": "bytes 0-5/-10", "empty": "", "unit": "bytes", "other-unit": f"lines 0-5/{LENGTH}",
        "no-unit": f"0-5/{LENGTH}",
        "letters": "bytes a-b/c", "spaces": f"bytes  0 - {LENGTH - 1} / {LENGTH}", "plus": f"bytes +0-+5/{LENGTH}",
        "hex": "bytes 0x0-0x5/0x6",
        "digits-1000": f"bytes {'0' * 1000}-{'9' * 1000}/{'9' * 1000}",
        "two": f"bytes 0-5/{LENGTH}, bytes 6-9/{LENGTH}", "float": "bytes 0.0-5.0/6",
        "elsewhere": f"bytes 1000-{1000 + LENGTH - 1}/5000", "last-most": f"bytes {MOST - LENGTH}-{MOST - 1}/{MOST}",
        "zero": "bytes 0-0/0", "one-behind-end": f"bytes {LENGTH}-{2 * LENGTH - 1}/{LENGTH}",
}.items():
    fields = [("Content-Range", value), FRESH, ("ETag", '"a"'), DATE]
    # A range that nobody asked for is the picture that came.
    reply(f"range-unasked-{name}", "OK", status=206, fields=fields, body=PICTURE,
        stored=("TRUNCATED", "BAD_IMAGE_DATA"),
          **KEPT)
    for asked, line in (("last", "bytes=-5"), ("far", f"bytes=5-{MOST}"), ("first", f"bytes=0-{LENGTH - 1}")):
        if asked != "last" and name not in LIKELY:
            continue
        reply(f"range-{asked}-{name}", "OK", status=206, fields=fields, body=PICTURE,
              options={"field": "Range", "value": line, **BODY}, stored=("TRUNCATED", "BAD_IMAGE_DATA", "OK"), **KEPT)
reply("range-twice", "OK", status=206, body=PICTURE, fields=[
    ("Content-Range", f"bytes 0-{LENGTH - 1}/{LENGTH}"), ("Content-Range", f"bytes 5-9/{MOST}"), FRESH],
    stored=("TRUNCATED",))
reply("range-multipart", "BAD_IMAGE_DATA", status=206, fields=[("Content-Type", "multipart/byteranges; boundary=x"),
    FRESH],
      body=b"--x\r\nContent-Range: bytes 0-1/5\r\n\r\nab\r\n--x--")
reply("range-missing", "OK", status=206, fields=[FRESH], body=PICTURE)
reply("range-416", "INVALID_STATUS", status=416, fields=[("Content-Range", f"bytes */{2 ** 64}"), FRESH])
reply("range-on-200", "OK", fields=[("Content-Range", f"bytes {MOST - 5}-{MOST}/*"), FRESH], body=PICTURE, width=3)
reply("range-on-404", "INVALID_STATUS", status=404, fields=[("Content-Range", f"bytes 0-{MOST}/*"), FRESH], body=b"no")
reply("range-of-nothing", "BAD_IMAGE_DATA", status=206,
    fields=[("Content-Range", "bytes 0-0/1"), FRESH])


# ---- What broke off is continued: the second half is another's, or nowhere. The picture afterwards is such a request.
def resumed(name, again, fields, body, status=206):
    """The first answer breaks off behind a strong ETag; the next request asks for the rest."""
    def respond(request):
        if request.field("Range"):
            return head(*fields, ("Content-Length", len(body)), status=f"{status} X") + body
        return head(("ETag", '"a"'), ("Content-Length", LENGTH), FRESH, DATE) + PICTURE[:30]
    raw(f"resume-{name}", respond, "TRUNCATED", options={"again": 1, **BODY}, again=again, cache="memory",
        stored=("OK",))


TAG, REST = ("ETag", '"a"'), PICTURE[30:]
# What does not continue the first half is fetched whole, and breaks off as that did.
REFUSED = "TRUNCATED"
resumed("rest", "OK", [("Content-Range", f"bytes 30-{LENGTH - 1}/{LENGTH}"), TAG, FRESH], REST)
for name, value in {
        "elsewhere": f"bytes 20-{LENGTH - 11}/{LENGTH}", "other-length": f"bytes 30-{LENGTH - 1}/{LENGTH + 5}",
        "none": "", "most": f"bytes {MOST - 30}-{MOST - 1}/{MOST}",
        "to-most": f"bytes 30-{MOST - 1}/{MOST}", "2-64": f"bytes 30-{2 ** 64}/{2 ** 64 + 1}",
        "unknown": f"bytes 30-{LENGTH - 1}/*", "backwards": f"bytes 30-20/{LENGTH}",
        "from-zero": f"bytes 0-{LENGTH - 31}/{LENGTH}", "letters": "bytes x-y/z",
}.items():
    again = "OK" if name == "unknown" else REFUSED
    resumed(f"range-{name}", again, [("Content-Range", value), TAG, FRESH], REST)
resumed("other-tag", REFUSED, [("Content-Range", f"bytes 30-{LENGTH - 1}/{LENGTH}"), ("ETag", '"b"'), FRESH], REST)
resumed("no-tag", REFUSED, [("Content-Range", f"bytes 30-{LENGTH - 1}/{LENGTH}"), FRESH], REST)
resumed("too-short", REFUSED, [("Content-Range", f"bytes 30-{LENGTH - 1}/{LENGTH}"), TAG, FRESH], REST[:5])
resumed("too-long", REFUSED, [("Content-Range", f"bytes 30-{LENGTH - 1}/{LENGTH}"), TAG, FRESH],
    REST + b"more")
resumed("coded", REFUSED, [("Content-Range", f"bytes 30-{LENGTH - 1}/{LENGTH}"),
    ("Content-Encoding", "gzip"), TAG], REST)
resumed("416", REFUSED, [("Content-Range", f"bytes */{MOST}")], b"", status=416)
resumed("304", REFUSED, [TAG], b"", status=304)
resumed("200-whole", "OK", [TAG, FRESH], PICTURE, status=200)
resumed("404", "INVALID_STATUS", [FRESH], b"no", status=404)


# ---- Ages
for name, value in {
        "2-63": f"max-age={2 ** 63}", "2-64": f"max-age={2 ** 64}", "most": f"max-age={MOST}",
        "digits-1000": "max-age=" + "9" * 1000, "negative": "max-age=-1",
        "float": "max-age=1.5", "empty": "max-age=", "quoted": 'max-age="5"', "letters": "max-age=x",
        "twice": "max-age=5, max-age=500",
        "s-maxage": f"s-maxage={MOST}", "stale": f"max-age=0, stale-while-revalidate={MOST}, stale-if-error={MOST}",
        "stale-2-64": f"max-age=0, stale-while-revalidate={2 ** 64}, stale-if-error={2 ** 64}",
        "immutable": f"immutable, max-age={MOST}",
        "no-cache-names": 'no-cache="' + "x," * 5000 + '"', "private-names": 'private="set-cookie',
        "unknown": "x" * 30000, "equals": "=,=,=,max-age==5",
        "nul-quote": 'x="\\', "all": "no-store, no-cache, must-revalidate, public, private, max-age=5, only-if-cached, max-stale",
}.items():
    reply(f"age-control-{name}", "OK", fields=[("Cache-Control", value), DATE, ("ETag", '"a"')], body=PICTURE, width=3)
for name, value in {"2-63": 2 ** 63, "most": MOST, "2-64": 2 ** 64, "negative": -5, "letters": "x", "empty": "",
    "digits-1000": "9" * 1000, "list": "5, 6"}.items():
    reply(f"age-field-{name}", "OK", fields=[("Age", value), FRESH, DATE], body=PICTURE, width=3)

# ---- Dates
for name, value in {
        "empty": "", "letters": "x", "year-0": "Sat, 01 Jan 0000 00:00:00 GMT",
        "year-9999": "Fri, 31 Dec 9999 23:59:59 GMT",
        "year-99999": "Fri, 31 Dec 99999 23:59:59 GMT", "year-2-63": f"Fri, 31 Dec {2 ** 63} 23:59:59 GMT",
        "day-0": "Sun, 00 Nov 2026 00:00:00 GMT",
        "day-31-february": "Tue, 31 Feb 2026 00:00:00 GMT", "hour-25": "Tue, 24 Nov 2026 25:00:00 GMT",
        "second-61": "Tue, 24 Nov 2026 02:00:61 GMT",
        "negative": "Tue, -24 Nov 2026 02:00:00 GMT", "rfc850": "Tuesday, 24-Nov-26 02:00:00 GMT",
        "asctime": "Tue Nov 24 02:00:00 2026",
        "zone": "Tue, 24 Nov 2026 02:00:00 +9999", "long": "Tue, " + "2" * 15000, "number": "1795485600",
        "most": str(MOST), "month": "Tue, 24 Xxx 2026 02:00:00 GMT",
        "not-utf8": b"\xff\xfe\xfd",
}.items():
    reply(f"date-{name}", "OK", body=PICTURE, width=3, fields=[
        ("Date", value), ("Expires", value), ("Last-Modified", value), ("Age", "5")])
reply("date-far-apart", "OK", body=PICTURE, width=3, fields=[
    ("Date", "Mon, 01 Jan 0001 00:00:00 GMT"), ("Expires", "Fri, 31 Dec 9999 23:59:59 GMT"),
    ("Last-Modified", "Fri, 31 Dec 9999 23:59:59 GMT")])
for name, value in {"2-63": 2 ** 63, "most": MOST, "negative": -1, "letters": "x",
    "year-9999": "Fri, 31 Dec 9999 23:59:59 GMT", "year-99999": "Fri, 31 Dec 99999 00:00:00 GMT",
                    "float": "1e9", "digits-1000": "9" * 1000, "past": "Mon, 01 Jan 1900 00:00:00 GMT"}.items():
    reply(f"retry-after-{name}", "INVALID_STATUS", status=503, fields=[("Retry-After", value)], body=b"no")

# ---- Validators, Vary, and what else is stored
for name, value in {"empty": "", "unquoted": "a", "weak": 'W/"a"', "weak-broken": "W/", "quote": '"',
    "long": '"' + "a" * 50000 + '"', "controls": '"\x01\x7f"',
                    "not-utf8": b'"\xff\xfe"', "list": '"a", "b"', "star": "*"}.items():
    reply(f"etag-{name}", "OK", fields=[("ETag", value), FRESH, DATE], body=PICTURE, width=3,
          protocols=EACH[:2] if name == "controls" else EACH)
for name, value in {"star": "*", "star-among": "a, *, b", "empty": "", "commas": ",,,,",
    "own": "Accept, User-Agent, Host, Cookie, Authorization, Range",
                    "names-800": ",".join(f"x{at}" for at in range(800)), "not-utf8": b"\xff", "spaces": "a b c",
                    "long-name": "x" * 50000, "same-5000": "a," * 5000}.items():
    reply(f"vary-{name}", "OK", fields=[("Vary", value), FRESH, DATE], body=PICTURE, width=3)
reply("stored-304-unasked", "INVALID_STATUS", status=304, fields=[("ETag", '"a"'), FRESH])
reply("stored-redirect", "OK", status=301, fields=[("Location", "/good"), ("Cache-Control", f"max-age={MOST}")],
    width=3, stored=("OK",))
reply("stored-redirect-circle", "TOO_MANY_REDIRECTS", status=301, fields=lambda request: [
    ("Location", request.path + "?" + "&".join(f"{n}={v}" for n, v in request.query.items())), FRESH])
reply("stored-error", "INVALID_STATUS", status=410, fields=[FRESH], body=b"gone")
reply("stored-900-fields", "OK", fields=[(f"X-{at}", "y" * 50) for at in range(880)] + [FRESH], body=PICTURE, width=3)
reply("stored-fields-not-utf8", "OK", fields=[("X", bytes(range(128, 256))), FRESH], body=PICTURE, width=3)
reply("stored-length-lies", ("TRUNCATED", "CONNECTION_LOST", "PROTOCOL"),
    fields=[("Content-Length", LENGTH + 9), FRESH, DATE, ("ETag", '"a"')],
      body=PICTURE[:40], end="close")
reply("stored-clears-others", "OK", fields=[("Content-Location", "/good"), ("Clear-Site-Data", '"*"'), FRESH],
    body=PICTURE, width=3)
reply("stored-age-and-no-date", "OK", fields=[("Age", MOST), ("Expires", "Fri, 31 Dec 9999 23:59:59 GMT")],
    body=PICTURE, width=3)
