"""Cookies: of others, many, long, and what is none. The request afterwards is looked at: what has the jar kept?"""
from answer import EACH, raw, reply
from pictures import good
from wire import head

PICTURE = good(3, 5)
JAR = {"flags": 32}


def pairs(request):
    """What came back, in its order."""
    text = request.field("Cookie") or ""
    return [pair.strip(" ") for pair in text.split(";") if pair.strip(" ")]


def kept(request):
    """The names that came back."""
    return [pair.partition("=")[0] for pair in pairs(request)]


def cookie(name, lines, check, code="OK", **bounds):
    bounds = dict({"options": JAR, "check": check, "body": PICTURE}, **bounds)
    reply(f"cookie-{name}", code, fields=[("Set-Cookie", line) for line in lines], **bounds)


cookie("plain", ["a=b; Path=/"], lambda request: kept(request) == ["a"])
cookie("without-flag", ["a=b; Path=/"], lambda request: not kept(request), options={})
cookie("other-domain", ["a=b; Path=/; Domain=example.invalid"], lambda request: not kept(request))
cookie("other-address", ["a=b; Path=/; Domain=127.0.0.2"], lambda request: not kept(request))
cookie("part-of-address", ["a=b; Path=/; Domain=0.0.1"], lambda request: not kept(request))
# An address lies in no public suffix: these are of names, which the server answers for as a proxy.
cookie("public-suffix", ["a=b; Path=/; Domain=com", "b=c; Path=/; Domain=.co.uk", "c=d; Path=/; Domain=.",
    "d=e; Path=/; Domain=uk", "e=f; Path=/; Domain=hostile.co.uk", "f=g; Path=/; Domain=other.co.uk"],
    lambda request: kept(request) == ["c", "e"], protocols=EACH[:1], site="http://pictures.hostile.co.uk")
cookie("public-suffix-itself", ["a=b; Path=/; Domain=github.io", "b=c; Path=/; Domain=io"],
    lambda request: kept(request) == ["a"], protocols=EACH[:1], site="http://github.io")
cookie("public-suffix-unlisted", ["a=b; Path=/; Domain=hostile", "b=c; Path=/; Domain=pictures.hostile"],
    lambda request: kept(request) == ["b"], protocols=EACH[:1], site="http://pictures.hostile")
cookie("other-path", ["a=b; Path=/other"], lambda request: not kept(request))
cookie("path-prefix", ["a=b; Path=/chec"], lambda request: not kept(request))
cookie("prefix-secure", ["__Secure-a=b; Path=/"], lambda request: not kept(request))
cookie("prefix-host", ["__Host-a=b; Path=/check; Secure"], lambda request: not kept(request))
cookie("prefix-host-case", ["__hoSt-a=b; Path=/; Domain=127.0.0.1"], lambda request: not kept(request))
cookie("expired", ["a=b; Path=/; Max-Age=0", "b=c; Path=/; Max-Age=-5",
    "c=d; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT"],
       lambda request: not kept(request))
cookie("age-2-63", [f"a=b; Path=/; Max-Age={2 ** 63}", f"b=c; Path=/; Max-Age={2 ** 64 + 5}",
    f"c=d; Path=/; Max-Age={'9' * 500}"],
       lambda request: kept(request) == ["a", "b", "c"])
cookie("age-letters", ["a=b; Path=/; Max-Age=x", "b=c; Path=/; Max-Age=", 'c=d; Path=/; Max-Age="5"'],
    lambda request: kept(request) == ["a", "b", "c"])
cookie("expires-broken", [f"a{at}=b; Path=/; Expires={date}" for at, date in enumerate((
    "", "x", "99 99 99 99:99:99", "Fri, 31 Feb 2030 25:61:61 GMT", "Mon, 01 Jan 99999999999 00:00:00 GMT", "-1",
    "0" * 5000))],
       lambda request: kept(request) == [f"a{at}" for at in range(7)])
cookie("controls", ["a=\x01\x02; Path=/", "b\x1b=c; Path=/", "c=d\x7f; Path=/"],
    lambda request: not kept(request),
       protocols=EACH[:2])
# Without a path it is for /hostile alone.
cookie("empty", ["", "=", "=b; Path=/", ";", "; Path=/", "a", " = "],
    lambda request: pairs(request) == ["b"])
cookie("equals", ["=" * 3000, "a===b; Path=/"],
    lambda request: pairs(request) == ["a===b"])
cookie("semicolons", [";" * 8000, "a=b" + ";" * 8000 + "Path=/"],
    lambda request: pairs(request) == ["a=b"])
cookie("attributes-many", ["a=b; " + "; ".join(f"x{at}=y" for at in range(2000)) + "; Path=/"],
    lambda request: pairs(request) == ["a=b"])
cookie("attribute-said-again", ["a=b; Path=/other; Path=/; Domain=x; Domain=127.0.0.1"],
    lambda request: pairs(request) == ["a=b"])
cookie("quotes", ['a="; Path=/', 'b="x;y"; Path=/'],
    lambda request: pairs(request) == ['a="', 'b="x'])
cookie("tabs", ["a=b\tc; Path=/", "a\tb=c; Path=/"], lambda request: not kept(request))
cookie("not-utf8", [b"a=\xff\xfe; Path=/"], lambda request: pairs(request) == ["a=\xff\xfe"])
cookie("long-4-kib", ["a=" + "x" * 4000 + "; Path=/"], lambda request: kept(request) == ["a"])
cookie("long-5-kib", ["a=" + "x" * 5000 + "; Path=/"], lambda request: not kept(request))
cookie("long-60-kib", ["a=" + "x" * 60000 + "; Path=/"], lambda request: not kept(request))
cookie("long-name-60-kib", ["x" * 60000 + "=b; Path=/"], lambda request: not kept(request))
cookie("long-path", ["a=b; Path=/" + "x" * 50000], lambda request: not kept(request))
cookie("long-domain", ["a=b; Path=/; Domain=" + "x" * 50000], lambda request: kept(request) == ["a"])
cookie("many-900", [f"a{at}=b; Path=/" for at in range(900)], lambda request: 1 <= len(kept(request)) <= 180)
cookie("many-same-name", ["a=b; Path=/"] * 900, lambda request: kept(request) == ["a"])
cookie("many-paths", [f"a=b; Path=/check/{at}" for at in range(900)], lambda request: len(kept(request)) <= 180)
cookie("many-long", [f"a{at}={'x' * 3900}; Path=/" for at in range(12)],
       lambda request: len(request.field("Cookie") or "") <= 64 << 10)
cookie("with-error", ["a=b; Path=/"], lambda request: kept(request) == ["a"], code="INVALID_STATUS", status=404)


def hoard(request):
    """900 cookies an answer, twenty answers: 18,000 in all."""
    turn = int(request.rest or 0)
    fields = [("Set-Cookie", f"a{turn}-{at}=b; Path=/") for at in range(900)]
    if turn < 20:
        return head(*fields, ("Location", f"/hostile/cookie-hoard/{turn + 1}"), ("Content-Length", 0), status="302 X")
    return head(("Content-Length", len(PICTURE))) + PICTURE


raw("cookie-hoard", hoard, "OK", options={**JAR, "max_redirects": 30}, end="keep", width=3, cpu=0.8,
    check=lambda request: len(kept(request)) <= 180)
