"""What downloaders and downloads can be told, over the wire."""

import asyncio
import base64
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse
from decimal import Decimal, InvalidOperation, localcontext
from fractions import Fraction
from pathlib import Path

import imgdl
from imgdl import Code, _options
from support import PATIENCE, BytesPath, OriginTests, Signal, png


def fields(request):
    return {name.lower(): value for name, value in request["headers"]}


class TemplateTests(OriginTests):
    """Requests with equal options are built once."""

    def sent(self, path):
        return [fields(request) for request in self.origin.requests(path)]

    def test_equal_options_of_many_requests(self):
        with self.downloader() as downloader:
            for name in ("opaque.png", "palette.png", "opaque.png"):
                image = downloader.download(self.origin.picture(name), size=(64, None)).result(PATIENCE)
                self.assertEqual(image.width, 64)
            # The same number of another type is still refused, and another one still is another.
            image = downloader.download(self.origin.picture("opaque.png"), size=(32, None)).result(PATIENCE)
            self.assertEqual(image.width, 32)
            for size in ((64.0, None), ("64", None)):
                with self.assertRaises(TypeError):
                    downloader.download(self.origin.picture("opaque.png"), size=size)
            downloader.download(self.origin.picture("opaque.png"), max_pixels=10_000_000).result(PATIENCE)
            with self.assertRaises(TypeError):
                downloader.download(self.origin.picture("opaque.png"), max_pixels=1e7)
            image = downloader.download(self.origin.picture("opaque.png")).result(PATIENCE)
            self.assertEqual(image.width, 900)

    def test_an_unknown_keyword_names_the_class_and_what_is_near(self):
        with self.assertRaises(TypeError) as raised:
            imgdl.Downloader(max_concurent=3)
        for part in ("Downloader()", "'max_concurent'", "did you mean 'max_concurrent'?"):
            self.assertIn(part, str(raised.exception))
        with self.assertRaises(TypeError) as raised:
            imgdl.Downloader(qqqq=1)
        self.assertNotIn("did you mean", str(raised.exception))
        with self.downloader() as downloader, self.assertRaises(TypeError) as raised:
            downloader.reconfigure(proxi="")
        self.assertIn("Downloader.reconfigure()", str(raised.exception))

    def test_what_was_given_may_change_later(self):
        headers = {"X-Number": "1"}
        with self.downloader() as downloader:
            for number in ("1", "2"):
                headers["X-Number"] = number
                downloader.download(self.origin.url("/echo"), body=True, headers=headers).result(PATIENCE)
        self.assertEqual([each["x-number"] for each in self.sent("/echo")], ["1", "2"])

    def test_headers_that_are_taken_out(self):
        names = ("Accept", "User-Agent", "Host", "Accept-Encoding", "Content-Length")
        with self.downloader() as downloader:
            for content in (None, b"sent"):
                options = {"method": "POST", "content": content, "headers": dict.fromkeys(names)}
                downloader.download(self.origin.url("/echo"), body=True, **options).result(PATIENCE)
        kept = {"host", "accept-encoding", "content-length"}
        self.assertEqual([{*each} & {name.lower() for name in names} for each in self.sent("/echo")], [kept, kept])

    def test_more_kinds_than_are_kept(self):
        url = self.origin.picture("opaque.png")
        with self.downloader() as downloader:
            for width in (*range(1, 2 + _options._MOST_TEMPLATES), 1):
                token = downloader.download(url, size=(width, 1), stretch=True)
                self.assertEqual(token.result(PATIENCE).width, width)
        self.assertLessEqual(len(_options._templates), _options._MOST_TEMPLATES)

    def test_secrets_are_not_kept(self):
        with self.downloader() as downloader:
            url = self.origin.picture("opaque.png")
            downloader.download(url, user="me", password="kept by nobody").result(PATIENCE)
        self.assertNotIn("kept by nobody", repr(list(_options._templates)))


class NameServer:
    """Over UDP on loopback: the address of everything that begins with "live", and not a word about anything else."""

    def __enter__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        return "127.0.0.1:%d" % self.socket.getsockname()[1]

    def __exit__(self, *_):
        self.socket.sendto(b"end", self.socket.getsockname())
        self.thread.join()
        self.socket.close()

    def serve(self):
        while True:
            query, peer = self.socket.recvfrom(2048)
            if query == b"end":
                return
            if query[13:17] != b"live":
                continue
            end = query.index(b"\0", 12)
            answers = query[end + 2] == 1  # type A
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if answers else b""
            head = query[:2] + b"\x85\x80\0\1" + bytes((0, int(answers))) + b"\0\0\0\0"
            self.socket.sendto(head + query[12 : end + 5] + answer, peer)


# getaddrinfo, which libcurl calls for a proxy's name.
STUCK_NAMES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    if (name != NULL && strstr(name, "stuck") != NULL)
        sleep(30);
    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    return next(name, service, hints, found);
}
"""
# A transfer is cancelled while its proxy is looked up, another runs, and the downloader is closed in the meantime.
STUCK_PROXY = """
import os, sys, time, imgdl
downloader = imgdl.Downloader()
cancelled, running = (downloader.download(f"http://{name}.test/") for name in "ab")
time.sleep(0.3)
began = time.monotonic()
cancelled.cancel()
width = downloader.download(sys.argv[1]).result(60).width
downloader.close()
print(width, time.monotonic() - began, flush=True)
os._exit(0)
"""


class NameTests(OriginTests):
    def test_dead_names_hold_up_no_other(self):
        port = urllib.parse.urlsplit(self.origin.base).port
        with NameServer() as server, self.downloader(
            dns_servers=server, max_concurrent=64, connect_timeout=300, proxy=""
        ) as downloader:
            dead = [downloader.download(f"http://dead-{number}.test/a") for number in range(40)]
            picture = self.origin.picture("palette.png").replace("127.0.0.1", "live.test")
            self.assertIn(f"live.test:{port}/", picture)
            self.assertEqual(downloader.download(picture).result(PATIENCE).width, 1200)
            self.assertFalse(any(token.done() for token in dead))
            for token in dead:
                token.cancel()
            late = downloader.download("http://dead-again.test/a", connect_timeout=0.2)
            error = self.assertCode(Code.CONNECT_TIMEOUT, late.result, PATIENCE)
            self.assertIn("“dead-again.test” was still being looked up", error.message)

    def test_a_proxy_whose_name_is_never_answered(self):
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "stuck.so")
            command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, "-xc", "-", "-ldl"]
            subprocess.run(command, input=STUCK_NAMES, check=True, text=True)
            environment = dict(os.environ, LD_PRELOAD=library, PYTHONPATH=os.pathsep.join(sys.path))
            environment.update(http_proxy="http://proxy.stuck.test:3128", no_proxy="127.0.0.1")
            command = [sys.executable, "-c", STUCK_PROXY, self.origin.picture("palette.png")]
            output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        width, seconds = output.split()
        self.assertEqual(width, "1200")
        self.assertLess(float(seconds), 10)

    def test_a_proxy_whose_name_server_is_silent(self):
        with NameServer() as server:
            downloader = self.downloader(dns_servers=server, proxy="http://dead-proxy.test:3128")
            cancelled, running = (downloader.download(f"http://{name}.test/", connect_timeout=300) for name in "ab")
            late = downloader.download("http://c.test/", connect_timeout=0.2)
            error = self.assertCode(Code.CONNECT_TIMEOUT, late.result, PATIENCE)
            self.assertIn("“dead-proxy.test” was still being looked up", error.message)
            cancelled.cancel()
            self.assertCode(Code.CANCELLED, cancelled.result, PATIENCE)
            began = time.monotonic()
            downloader.close()
            self.assertLess(time.monotonic() - began, 10)
            self.assertTrue(running.done())

    def test_an_address_that_is_private(self):
        with NameServer() as server, self.downloader(
            dns_servers=server, deny_private_addresses=True, proxy=""
        ) as downloader:
            self.assertCode(Code.ADDRESS_REFUSED, downloader.download("http://live.test/a").result, PATIENCE)


class CredentialTests(OriginTests):
    def test_t08_basic_and_digest(self):
        for kind in ("basic", "digest", "any"):
            with self.subTest(kind):
                url = self.origin.url(f"/auth/{kind}", user="me", password="secret", picture="palette.png", _n=kind)
                with self.downloader(
                    user="me", password="secret", basic_over_http=True
                ) as downloader:
                    self.assertEqual(downloader.download(url).result(PATIENCE).width, 1200)
                    wrong = downloader.download(url, user="me", password="wrong")
                    error = self.assertCode(Code.INVALID_STATUS, wrong.result, PATIENCE)
                    self.assertEqual(error.http_status, 401)
                    self.assertNotIn("wrong", str(error))
                with self.downloader() as downloader:
                    token = downloader.download(url, user="me", password="secret", basic_over_http=True)
                    self.assertEqual(token.result(PATIENCE).width, 1200)

    def test_cookies(self):
        with tempfile.TemporaryDirectory() as folder:
            jar = os.path.join(folder, "cookies")
            with self.downloader(cookie_file=jar) as downloader:
                url = self.origin.base + "/cookies/set?a=b&max_age=900&path=/"
                downloader.download(url, body=True, cookies=True).result(PATIENCE)
                for cookies in (True, False):
                    downloader.download(self.origin.url("/echo"), body=True, cookies=cookies).result(PATIENCE)
            with self.downloader(cookie_file=jar) as downloader:
                downloader.download(self.origin.url("/echo"), body=True, cookies=True).result(PATIENCE)
        sent = [fields(request).get("cookie") for request in self.origin.requests("/echo")]
        self.assertEqual(sent, ["a=b", None, "a=b"])

    def test_tls(self):
        origin = self.other_origin("--tls", "valid")
        with self.downloader() as downloader:
            url, trust = origin.picture("palette.png"), origin.info["ca_file"]
            token = downloader.download(url)
            self.assertIsInstance(
                self.assertCode(Code.TLS_CERTIFICATE, token.result, PATIENCE), imgdl.NetworkError
            )
            for options in (
                {"ca_file": trust},
                {"allow_invalid_certificates": True},
                {"ca_file": trust, "pinned_public_key": origin.info["pin"]},
            ):
                self.assertEqual(downloader.download(url, **options).result(PATIENCE).width, 1200)
            other = "sha256//" + base64.b64encode(bytes(32)).decode()
            token = downloader.download(url, ca_file=trust, pinned_public_key=other)
            self.assertIsInstance(self.assertCode(Code.TLS_PIN, token.result, PATIENCE), imgdl.NetworkError)

    def hello(self, answer):
        """The numbers of the ciphers of TLS 1.2 that are offered to a server which answers so, and how that ends."""
        with socket.create_server(("127.0.0.1", 0)) as listener, self.downloader() as downloader:
            listener.settimeout(PATIENCE)
            token = downloader.download(f"https://127.0.0.1:{listener.getsockname()[1]}/a")
            connection, _ = listener.accept()
            with connection:
                record = connection.recv(5, socket.MSG_WAITALL)
                hello = connection.recv(int.from_bytes(record[3:], "big"), socket.MSG_WAITALL)
                connection.sendall(answer)
                error = self.assertCode(Code.TLS_FAILED, token.result, PATIENCE)
        # Behind kind, length, version, random and the session's name.
        ciphers = hello[39 + hello[38] :]
        length = int.from_bytes(ciphers[:2], "big")
        return [int.from_bytes(ciphers[at : at + 2], "big") for at in range(2, 2 + length, 2)], error

    def test_no_numbers_of_the_servers_and_no_old_versions(self):
        # A ServerHello of TLS 1.1.
        body = b"\x03\x02" + bytes(32) + b"\0" + b"\x00\x2f" + b"\0"
        hello = b"\x02" + len(body).to_bytes(3, "big") + body
        ciphers, error = self.hello(b"\x16\x03\x02" + len(hello).to_bytes(2, "big") + hello)
        self.assertIn("TLS 1.2", str(error))
        self.assertIn(0xC02F, ciphers)  # ECDHE-RSA-AES128-GCM-SHA256
        # Those of DHE: 10,000 bits of a server's own would take a second of the thread that all downloads share.
        dhe = [0x0016, 0x0033, 0x0039, 0x0045, 0x0067, 0x006B, 0x0088, 0x009E, 0x009F, 0xC09E, 0xC09F, 0xC0A2, 0xC0A3, 0xCCAA]
        self.assertEqual(set(ciphers) & set(dhe), set())

    def test_client_certificates(self):
        origin = self.other_origin("--tls", "valid", "--client-certificate", "required")
        info = origin.info
        config = {
            "ca_file": info["ca_file"],
            "client_certificate": info["client_certificate"],
            "client_key": info["client_encrypted_key"],
            "client_key_password": info["client_passphrase"],
        }
        with self.downloader(**config) as downloader:
            self.assertEqual(downloader.download(origin.picture("palette.png")).result(PATIENCE).width, 1200)
        with self.downloader(ca_file=info["ca_file"]) as downloader:
            self.assertEqual(
                downloader.download(
                    origin.picture("palette.png"),
                    client_certificate=info["client_certificate"],
                    client_key=info["client_key"],
                )
                .result(PATIENCE)
                .width,
                1200,
            )
            with self.assertRaises(imgdl.NetworkError):
                downloader.download(origin.picture("palette.png", n=1)).result(PATIENCE)

    def test_proxy(self):
        # The environment of these tests lets 127.0.0.1 go past any proxy; names go to it, whatever they are.
        origin = self.other_origin("--proxy", "--proxy-user", "me", "--proxy-password", "secret")
        url = origin.picture("palette.png").replace("127.0.0.1", "pictures.example")
        proxy = origin.info["proxy"]
        with self.downloader(proxy=proxy.replace("://", "://me:secret@")) as downloader:
            self.assertEqual(downloader.download(url).result(PATIENCE).width, 1200)
        with self.downloader(proxy=proxy) as downloader:
            with self.assertRaises(imgdl.Error) as caught:
                downloader.download(url).result(PATIENCE)
            self.assertNotIn("secret", str(caught.exception))
        self.assertEqual(len(origin.requests("/pictures/palette.png")), 1)

    def test_private_addresses(self):
        with self.downloader(deny_private_addresses=True, proxy="") as downloader:
            for host in ("127.0.0.1", "localhost", "[::1]", "2130706433"):
                with self.subTest(host):
                    token = downloader.download(self.origin.picture("palette.png").replace("127.0.0.1", host))
                    error = self.assertCode(Code.ADDRESS_REFUSED, token.result, PATIENCE)
                    self.assertIsInstance(error, imgdl.NetworkError)
        self.assertCode(
            Code.INVALID_OPERATION, imgdl.Downloader, deny_private_addresses=True, proxy="http://127.0.0.1:3128"
        )
        program = "import imgdl\ntry: imgdl.Downloader(deny_private_addresses=True)\nexcept imgdl.Error as e: print(e)"
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        environment.update(ALL_PROXY="http://127.0.0.1:3128", PYTHONPATH=os.pathsep.join(sys.path))
        said = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
        self.assertIn('(ALL_PROXY): proxy "" stands for none', said.stdout)
        self.assertEqual(self.origin.log["connections"], [])


class RuleTests(OriginTests):
    def test_t03_reading_headers(self):
        with self.downloader() as downloader:
            self.assertEqual(downloader.header("user-agent"), f"imgdl/{imgdl.library_version}")
            self.assertTrue(downloader.header("Accept").startswith("image/"))
            self.assertIsNone(downloader.header("X-Mine"))
            downloader.set_header("X-Mine", "ü" * 1000)
            self.assertEqual(downloader.header("x-MINE"), "ü" * 1000)
            downloader.set_header("x-mine", None)
            self.assertIsNone(downloader.header("X-Mine"))
            downloader.set_header("Accept", None)
            self.assertIsNone(downloader.header("Accept"))

    def test_retries(self):
        retry = imgdl.Retry(2, base=0.001, maximum=0.002)
        with self.downloader(retries=retry) as downloader:
            url = self.origin.url("/flaky", id="a", fail=2, picture="palette.png")
            token = downloader.download(url)
            self.assertEqual(token.result(PATIENCE).width, 1200)
            self.assertEqual(token.metrics.retry_count, 2)
            token = downloader.download(self.origin.url("/flaky", id="b", fail=1), retries=0, body=True)
            self.assertEqual(self.assertCode(Code.INVALID_STATUS, token.result, PATIENCE).http_status, 503)
        self.assertEqual(len(self.origin.requests("/flaky")), 4)
        with self.downloader() as downloader:
            token = downloader.download(self.origin.url("/flaky", id="c", fail=3), retries=retry, body=True)
            self.assertCode(Code.INVALID_STATUS, token.result, PATIENCE)
        self.assertEqual(len(self.origin.requests("/flaky")), 7)

    def test_the_response_of_a_retry_is_that_of_its_body(self):
        whole = self.origin.bytes("palette.png")
        attempts = []
        # A response that nobody has heard of when its attempt ends is not told any more.
        gate = self.origin.gate()

        def modify(request, next):
            attempts.append(request)
            broken = {"hold_after": 50, "gate": gate.name, "close_after": 100} if len(attempts) == 1 else {}
            url = self.origin.picture("palette.png", header=f"X-Attempt:{len(attempts)}", **broken)
            next.with_request(url=url)

        heard = []

        def respond(token, response):
            heard.append(response.header("X-Attempt"))
            gate.open()

        with self.downloader(hooks=imgdl.Hooks(modify_request=modify)) as downloader:
            token = downloader.download(
                self.origin.picture("palette.png"),
                body=True,
                retries=imgdl.Retry(1, base=0.001),
                on_response=respond,
            )
            body = token.result(PATIENCE)
        self.assertEqual(bytes(body), whole)
        self.assertEqual(body.response.header("X-Attempt"), "2")
        self.assertEqual(heard, ["1", "2"])

    def test_what_failed_for_good(self):
        with self.downloader(failure_ttl=1000) as downloader:
            url = self.origin.picture("palette.png", empty=1)
            self.assertCode(Code.BAD_IMAGE_DATA, downloader.download(url).result, PATIENCE)
            self.assertCode(Code.BLACKLISTED, downloader.download(url).result, PATIENCE)
            self.assertEqual(len(self.origin.requests("/pictures/palette.png")), 1)
            self.assertCode(Code.BAD_IMAGE_DATA, downloader.download(url, retry_failed=True).result, PATIENCE)
        self.assertEqual(len(self.origin.requests("/pictures/palette.png")), 2)

    def test_t29_accepted_statuses_and_types(self):
        with self.downloader(accepted_statuses=[range(200, 205), (300, 399)], accepted_types=["image/*"]) as downloader:
            token = downloader.download(self.origin.picture("palette.png", status=205))
            error = self.assertCode(Code.INVALID_STATUS, token.result, PATIENCE)
            self.assertEqual((error.http_status, error.content_type), (205, "image/png"))
            self.assertTrue(error.preview.startswith(b"\x89PNG"))
            self.assertLessEqual(len(error.preview), 512)
            token = downloader.download(self.origin.picture("palette.png", type="text/html; charset=x"))
            error = self.assertCode(Code.INVALID_CONTENT_TYPE, token.result, PATIENCE)
            self.assertEqual((error.http_status, error.content_type), (200, "text/html"))
            self.assertTrue(error.preview.startswith(b"\x89PNG"))
            self.assertIsInstance(error.metrics, imgdl.Metrics)
            token = downloader.download(self.origin.picture("palette.png", status=301))
            self.assertCode(Code.REDIRECT_REFUSED, token.result, PATIENCE)
            options = {"accepted_statuses": [404], "accepted_types": ["text/plain"]}
            body = downloader.download(self.origin.url("/status/404"), body=True, **options).result(PATIENCE)
            self.assertEqual((body.http_status, body.response.content_type), (404, "text/plain"))

    def test_t17_progress_interval(self):
        length = len(self.origin.bytes("opaque.png"))
        for _ in range(2):
            seen = []
            with self.downloader(progress_interval=0.51) as downloader:
                token = downloader.download(
                    self.origin.picture("opaque.png", chunk=4096),
                    on_progress=lambda token, received, expected: seen.append((received, expected)),
                )
                token.result(PATIENCE)
            self.assertTrue(1 <= len(seen) <= 4, seen)
            self.assertEqual(seen[-1], (length, length))

    def test_hops_and_whole_urls(self):
        with self.downloader() as downloader:
            url = self.origin.url("/redirect/2", to="/pictures/palette.png?n=secret")
            response = downloader.download(url, body=True).result(PATIENCE).response
            self.assertEqual([hop.status for hop in response.hops], [302, 302])
            self.assertNotIn("secret", repr(response))
            response = downloader.download(url, body=True, full_urls=True).result(PATIENCE).response
            self.assertEqual(response.url, self.origin.picture("palette.png", n="secret"))
            self.assertEqual(len(response.hops), response.redirect_count)
            self.assertTrue(response.hops[0].url.startswith(self.origin.base + "/redirect/2"))

    def test_t13_background(self):
        with self.downloader() as downloader:
            gate = self.origin.gate()
            held = self.origin.picture("palette.png", hold_head=1, gate=gate.name)
            kept = downloader.download(held, continue_in_background=True)
            other = downloader.download(self.origin.picture("palette.png", hold_head=1, gate=gate.name, n=1))
            self.assertTrue(gate.is_reached(2))
            downloader.enter_background()
            waiting = downloader.download(self.origin.picture("opaque.png"))
            gate.open()
            self.assertEqual(kept.result(PATIENCE).width, 1200)
            self.assertFalse(other.done() or waiting.done())
            self.assertEqual(self.origin.requests("/pictures/opaque.png"), [])
            downloader.enter_foreground()
            self.assertEqual(other.result(PATIENCE).width, 1200)
            self.assertEqual(waiting.result(PATIENCE).width, 900)
            stalled = downloader.download(
                self.origin.picture("palette.png", first_byte="never"), continue_in_background=True
            )
            downloader.enter_background(0.001)
            self.assertCode(Code.BACKGROUND_EXPIRED, stalled.result, PATIENCE)
            downloader.enter_foreground()

    def test_after_a_change_of_the_network_there_are_new_connections(self):
        with self.downloader() as downloader:
            for number in range(4):
                if number == 2:
                    downloader.network_changed()
                downloader.download(self.origin.picture("opaque.png", n=number)).result(PATIENCE)
            self.assertEqual(downloader.stats().connections, 2)
        first, second, third, fourth = (each["connection"] for each in self.origin.requests("/pictures/opaque.png"))
        self.assertEqual((first, third), (second, fourth))
        self.assertNotEqual(first, third)

    def test_t32_files_and_data(self):
        with tempfile.TemporaryDirectory() as folder, self.downloader() as downloader:
            data = png(1, 1, [[1, 2, 3, 255]])
            Path(folder, "a b.png").write_bytes(data)
            urls = (
                Path(folder, "a b.png").as_uri(),
                "data:image/png;base64," + base64.b64encode(data).decode(),
            )
            for url in urls:
                self.assertCode(Code.UNSUPPORTED_SCHEME, downloader.download, url)
            with self.downloader(allow_file_urls=True, allow_data_urls=True) as other:
                for url in urls:
                    self.assertEqual(other.download(url).result(PATIENCE).pixels, bytes([1, 2, 3, 255]))
                missing = other.download(Path(folder, "nothing.png").as_uri())
                self.assertEqual(self.assertCode(Code.INVALID_STATUS, missing.result, PATIENCE).http_status, 404)

    def test_scale_factor(self):
        with self.downloader() as downloader:
            for name, options, expected in (
                ("picture@2x.png", {}, 2.0),
                ("picture@2x.png", {"scale_factor": 3.5}, 3.5),
                ("palette.png", {}, 1.0),
            ):
                image = downloader.download(self.origin.picture(name), **options).result(PATIENCE)
                self.assertEqual(image.scale_factor, expected)

    def test_t30_ten_sizes_of_one_transfer(self):
        for progressive in (False, True):
            gate = self.origin.gate()
            name = "progressive.jpg" if progressive else "baseline.jpg"
            url = self.origin.picture(name, hold_head=1, gate=gate.name)
            options = {"on_partial": lambda token, image: None} if progressive else {}
            with self.downloader() as downloader:
                tokens = {
                    size: downloader.download(url, size=(size, size), stretch=True, **options)
                    for size in range(490, 500)
                }
                gate.open()
                for size, token in tokens.items():
                    image = token.result(PATIENCE)
                    self.assertEqual((image.width, image.height), (size, size))
            self.assertEqual(len(self.origin.requests("/pictures/" + name)), 1)

    def test_t18_t19_animations_while_they_arrive(self):
        with self.downloader() as downloader:
            for name, durations, loops in (("animated.gif", [50, 60, 70], 6), ("animated.png", [50, 60], 2)):
                partials = []
                image = downloader.download(
                    self.origin.picture(name, chunk=16, pause_ms=1),
                    all_frames=True,
                    partial_interval=0.001,
                    on_partial=lambda token, image: partials.append((image.width, image.height)),
                ).result(PATIENCE)
                self.assertEqual([frame.duration_ms for frame in image.frames], durations)
                self.assertEqual(image.loop_count, loops)
                self.assertTrue(all(size == (4, 3) for size in partials))

    def test_max_per_host(self):
        gate = self.origin.gate()
        with self.downloader(max_per_host=1) as downloader:
            self.assertEqual(downloader.max_per_host, 1)
            tokens = [
                downloader.download(self.origin.picture("palette.png", hold_head=1, gate=gate.name, n=n))
                for n in range(3)
            ]
            self.assertTrue(gate.is_reached())
            self.assertEqual(self.origin.log["max_in_flight"], 1)
            downloader.max_per_host = None
            self.assertIsNone(downloader.max_per_host)
            self.assertTrue(gate.is_reached(3))
            gate.open()
            for token in tokens:
                token.result(PATIENCE)

    def test_t12_sessions(self):
        with self.downloader(user_agent="first/1", max_concurrent=2) as downloader:
            url = self.origin.url("/echo")
            running = downloader.download(self.origin.picture("palette.png", first_byte="never"))
            downloader.set_header("X-Mine", "1")
            self.assertCode(Code.INVALID_ARGUMENT, downloader.reconfigure, max_redirects=101)
            downloader.reconfigure(user_agent="second/2", max_concurrent=3)
            self.assertCode(Code.CANCELLED, running.result, PATIENCE)
            self.assertEqual(downloader.max_concurrent, 3)
            downloader.download(url, body=True).result(PATIENCE)
            running = downloader.download(self.origin.picture("palette.png", first_byte="never"))
            downloader.invalidate(cancel=True)
            self.assertCode(Code.CANCELLED, running.result, PATIENCE)
            self.assertCode(Code.INVALID_OPERATION, lambda: downloader.download(url, body=True).result(PATIENCE))
            downloader.reconfigure()
            downloader.download(url, body=True).result(PATIENCE)
        first, second = map(fields, self.origin.requests("/echo"))
        self.assertEqual((first["user-agent"], first["x-mine"]), ("second/2", "1"))
        self.assertEqual(second["user-agent"], f"imgdl/{imgdl.library_version}")
        self.assertCode(Code.INVALID_OPERATION, imgdl.Downloader.shared().invalidate)

    def test_priority_of_a_token(self):
        gate = self.origin.gate()
        with self.downloader(max_concurrent=1) as downloader:
            running = downloader.download(self.origin.picture("palette.png", hold_head=1, gate=gate.name))
            self.assertTrue(gate.is_reached())
            low = downloader.download(self.origin.picture("palette.png", n=1), priority="low")
            normal = downloader.download(self.origin.picture("palette.png", n=2))
            self.assertEqual((low.priority, normal.priority), ("low", "normal"))
            low.priority = "high"
            self.assertEqual(low.priority, "high")
            with self.assertRaises(imgdl.InvalidArgument):
                low.priority = "urgent"
            gate.open()
            for token in (running, low, normal):
                token.result(PATIENCE)
        self.assertEqual([each["target"][-1] for each in self.origin.log["requests"][1:]], ["1", "2"])

    def test_t26_metrics(self):
        gate = self.origin.gate()
        with self.downloader(max_concurrent=1) as downloader:
            token = downloader.download(self.origin.picture("opaque.png", hold_after=10, gate=gate.name))
            waiting = downloader.download(self.origin.picture("palette.png"))
            self.assertTrue(gate.is_reached())
            self.assertIsNone(waiting.metrics)
            gate.open()
            token.result(PATIENCE)
            metrics = token.metrics
            self.assertIs(token.metrics, metrics)
            self.assertEqual((metrics.http_version, metrics.address), ("1.1", "127.0.0.1"))
            self.assertEqual(metrics.body_bytes, len(self.origin.bytes("opaque.png")))
            self.assertGreater(metrics.bytes_received, metrics.body_bytes)
            self.assertGreater(metrics.total, metrics.transfer)
            self.assertGreaterEqual(metrics.transfer, metrics.first_byte)
            self.assertGreater(metrics.connect, 0)
            self.assertGreater(metrics.decode, 0)
            self.assertEqual((metrics.is_shared, metrics.is_connection_reused), (False, False))
            waiting.result(PATIENCE)
            self.assertTrue(waiting.metrics.is_connection_reused)
            self.assertGreater(waiting.metrics.queue, 0)
            error = self.assertCode(
                Code.INVALID_STATUS, downloader.download(self.origin.url("/nothing")).result, PATIENCE
            )
            self.assertEqual(error.metrics.http_version, "1.1")


class ArgumentTests(OriginTests):
    def test_downloads_that_cannot_be(self):
        with self.downloader() as downloader:
            url = self.origin.picture("palette.png")
            for name, options in (
                ("user", {"user": "a:b"}),
                ("password", {"password": "a\r\nb"}),
                ("connect_timeout", {"connect_timeout": 0}),
                ("idle_timeout", {"idle_timeout": -1}),
                ("retries", {"retries": -1}),
                ("retries.base", {"retries": imgdl.Retry(1, base=-1)}),
                ("retries.maximum", {"retries": imgdl.Retry(1, maximum=float("nan"))}),
                ("accepted_statuses", {"accepted_statuses": []}),
                ("accepted_statuses", {"accepted_statuses": [99]}),
                ("accepted_statuses", {"accepted_statuses": [(300, 200)]}),
                ("accepted_statuses", {"accepted_statuses": [(1, 2, 3)]}),
                ("accepted_types", {"accepted_types": []}),
                ("accepted_types", {"accepted_types": ["image"]}),
                ("client_key", {"client_key": "/nothing"}),
                ("pinned_public_key", {"pinned_public_key": "md5//"}),
                ("scale_factor", {"scale_factor": 0}),
                ("scale_factor", {"scale_factor": float("inf")}),
                ("size", {"size": 7}),
                ("size", {"size": (0, 1)}),
                ("size", {"size": (1 << 32, 1)}),
                ("stretch", {"stretch": True}),
                ("stretch", {"stretch": True, "size": (5, None)}),
                ("scale_down", {"scale_down": -1}),
                ("max_frames", {"max_frames": 0}),
                ("format_hint", {"format_hint": "bmp"}),
                ("colour", {"colour": "red"}),
                ("max_side", {"max_side": 0}),
                ("max_scans", {"max_scans": 1 << 32}),
                ("max_animation_pixels", {"max_animation_pixels": -1}),
                ("max_metadata_bytes", {"max_metadata_bytes": 0}),
                ("max_memory_bytes", {"max_memory_bytes": 1 << 64}),
                ("max_decode_ms", {"max_decode_ms": 0}),
                ("good_enough_scan", {"good_enough_scan": 0}),
            ):
                with self.subTest(options):
                    with self.assertRaises(imgdl.InvalidArgument) as caught:
                        downloader.download(url, **options)
                    self.assertIn(name, str(caught.exception))
            for options in (
                {"hooks": print},
                {"coder": print},
                {"accepted_types": "image/png"},
                {"retries": "many"},
                {"ca_file": 7},
                {"into": bytearray(4)},
                {"color": "red"},
            ):
                with self.subTest(options), self.assertRaises(TypeError):
                    downloader.download(url, **options)
            self.assertEqual(downloader.current_count, 0)
            downloader.wait_idle(0)

    def test_unknown_keywords_are_told_whose_they_are_or_what_is_near(self):
        url = self.origin.picture("palette.png")
        with self.downloader() as downloader:
            cases = (
                (lambda: downloader.download(url, color="srgb"), "download() .*'color'; did you mean 'colour'?"),
                (lambda: downloader.download(url, timeout=5), "'timeout'; did you mean 'total_timeout'?"),
                (lambda: imgdl.Downloader(timeout=5), "'timeout'; 'total_timeout' is an option of download()"),
                (lambda: imgdl.Downloader(max_workers=5), "'max_workers'; did you mean 'max_concurrent'?"),
                (lambda: downloader.download(url, heders={}), "'heders'; did you mean 'headers'?"),
                (lambda: downloader.download(url, on_partail=print), "did you mean 'on_partial'?"),
                (lambda: downloader.download(url, dns_servers="::1"), "'dns_servers'; it is an option of Downloader()"),
                (lambda: imgdl.get(url, crl_file="x"), "'crl_file'; it is an option of Downloader()"),
                (lambda: imgdl.decode(b"", max_frame=1), r"decode\(\) .*'max_frame'; did you mean 'max_frames'?"),
                (lambda: imgdl.decode(b"", headers={}), "'headers'; it is an option of download()"),
                (lambda: imgdl.Decoder(sise=(1, 1)), r"Decoder\(\) .*'sise'; did you mean 'size'?"),
                (lambda: imgdl.Downloader(headers={}), "'headers'; it is an option of download()"),
                (lambda: imgdl.Downloader(max_per_hosts=1), "did you mean 'max_per_host'?"),
                (lambda: imgdl.Cache(max_byte=1), "Cache() .*'max_byte'; did you mean 'max_bytes'?"),
                (lambda: imgdl.Cache(size=1), "Cache() .*'size'; it is an option of download()"),
            )
            for call, expected in cases:
                with self.subTest(expected), self.assertRaisesRegex(TypeError, expected.replace("()", r"\(\)")):
                    call()

    def test_unknown_keywords_name_what_was_called_and_its_own(self):
        url = self.origin.picture("palette.png")

        async def call(function, **options):
            function = getattr(downloader, function)
            if function.__name__ == "get":
                await function(url, **options)
            else:
                async for _ in function(url if function.__name__ == "stream" else [url], **options):
                    pass

        with self.downloader() as downloader:
            cases = (
                (lambda: imgdl.get(url, timout=5), "get() .*'timout'; did you mean 'timeout'?"),
                (lambda: imgdl.get(url, total_timout=5), "get() .*; did you mean 'total_timeout'?"),
                (lambda: imgdl.get(url, loop=None), "get() .*'loop'; it is an option of download()"),
                (lambda: downloader.map([url], orderd=False), "map() .*'orderd'; did you mean 'ordered'?"),
                (lambda: downloader.map([url], buffer_size=3), "map() .*'buffer_size'; did you mean 'buffersize'?"),
                (lambda: downloader.map([url], heders={}), "map() .*'heders'; did you mean 'headers'?"),
                (lambda: downloader.map([url], timeout=5), "map() .*'timeout'; did you mean 'total_timeout'?"),
                (lambda: downloader.map([url], max_workers=5), "map() .*; 'max_concurrent' is an option of Downloader()"),
                (lambda: downloader.map([url], loop=None), "map() .*'loop'; it is an option of download()"),
                (lambda: asyncio.run(call("amap", progres=True)), "amap() .*'progres'; did you mean 'progress'?"),
                (lambda: asyncio.run(call("get", timout=5)), "get() .*'timout'; did you mean 'total_timeout'?"),
                (lambda: asyncio.run(call("stream", partial_intervall=1)), "stream() .*; did you mean 'partial_interval'?"),
                (lambda: downloader.prefetch([url], max_conc=3), "prefetch() .*'max_conc'; did you mean 'max_concurrent'?"),
                (lambda: downloader.prefetch([url], workers=3), "prefetch() .*'workers'; did you mean 'max_concurrent'?"),
                (lambda: downloader.prefetch([url], size=(1, 1)), "prefetch() .*'size'; it is an option of download()"),
                (lambda: downloader.prefetch([(url, {"sise": (1, 1)})]), "download() .*'sise'; did you mean 'size'?"),
            )
            for function, expected in cases:
                pattern = expected.replace("()", r"\(\)")
                with self.subTest(expected), self.assertRaisesRegex(TypeError, "^" + pattern):
                    function()
            self.assertEqual(downloader.current_count, 0)

    def test_numbers_of_another_type_are_named(self):
        cases = (
            (lambda: imgdl.Downloader(max_stale="x"), "max_stale must be a number of seconds, not str"),
            (lambda: imgdl.Downloader(idle_timeout="x"), "idle_timeout must be a number of seconds, not str"),
            (lambda: imgdl.Downloader(cache_mode=True), "cache_mode must be one of .*use.*, not bool"),
            (lambda: imgdl.Downloader(order=imgdl), "order must be one of .*, not module"),
            (lambda: imgdl.Downloader(max_concurrent="x"), "max_concurrent must be an integer, not str"),
            (lambda: imgdl.Cache(max_bytes=1.5), "max_bytes must be an integer, not float"),
        )
        for call, expected in cases:
            with self.subTest(expected), self.assertRaisesRegex(TypeError, expected):
                call()

    def test_arguments_of_another_type_are_named(self):
        url = self.origin.picture("palette.png")
        image = imgdl.decode(png(1, 1, [[1, 2, 3, 255]]))
        fields = "headers must be a mapping, or pairs of a name and a value"
        octets = "must be bytes or another buffer, not"
        with self.downloader() as downloader, imgdl.Decoder() as decoder:
            of_requests = (
                ({"loop": 3}, "loop must be an event loop of asyncio, not int"),
                ({"headers": 3}, f"{fields}, not int"),
                ({"headers": 0}, f"{fields}, not int"),
                ({"headers": "ab"}, f"{fields}: one is str"),
                ({"headers": ["ab"]}, f"{fields}: one is str"),
                ({"headers": [("a",)]}, f"{fields}: one is tuple"),
                ({"headers": [3]}, f"{fields}: one is int"),
                ({"headers": {"a": 3}}, "the header a must be str, not int"),
                ({"scale_factor": "x"}, "scale_factor must be a number, not str"),
                ({"content": 3}, f"content {octets} int"),
                ({"content": "x"}, f"content {octets} str"),
                ({"accepted_statuses": 3}, "accepted_statuses must be numbers, ranges or pairs .*, not int"),
                ({"accepted_types": 3}, "accepted_types must be several, such as a list, not int"),
            )
            cases = [(lambda given=given: downloader.download(url, **given), text) for given, text in of_requests]
            create = imgdl.Image.create
            cases += (
                (lambda: downloader.prefetch([url], loop=3), "loop must be an event loop of asyncio, not int"),
                (lambda: imgdl.decode("x"), f"data {octets} str"),
                (lambda: decoder.feed("x"), f"data {octets} str"),
                (lambda: imgdl.decode(b"", into=3), "into must be a buffer that can be written to, not int"),
                (lambda: imgdl.decode(b"", into=bytearray(1), stride="x"), "stride must be an integer, not str"),
                (lambda: create("x", 1, b""), "width must be an integer, not str"),
                (lambda: create(1, 1.5, b""), "height must be an integer, not float"),
                (lambda: create(1, 1, 3), f"pixels {octets} int"),
                (lambda: create(1, 1, bytes(4), []), "pixel_format must be one of rgba8, .*, not list"),
                (lambda: create(1, 1, bytes(4), stride="x"), "stride must be an integer, not str"),
                (lambda: image.save(3), "target must be a path or a file that is open for bytes, not int"),
                (lambda: image.save(b"x.png"), "target must be a path or a file that is open for bytes, not bytes"),
                (lambda: image.save("x.png", 3), "format must be str, not int"),
            )
            for call, expected in cases:
                with self.subTest(expected), self.assertRaisesRegex(TypeError, f"^{expected}$"):
                    call()
            self.assertEqual(downloader.current_count, 0)
            body = downloader.download(url, body=True).result(PATIENCE)
            with self.assertRaisesRegex(TypeError, "^target must be a path or .*, not int$"):
                body.save(3)
            with self.assertRaisesRegex(TypeError, "^the name of a header must be str, not int$"):
                body.response.header(3)
            # Said in the way of values that are none of several.
            with self.assertRaisesRegex(ValueError, r"^level is \[\]: it must be one of"):
                imgdl.trim([])
            self.assertCode(Code.INVALID_ARGUMENT, create, 1, 1, bytes(4), "red")
            self.assertEqual(downloader.download(url, headers=None).result(PATIENCE).width, 1200)
            self.assertEqual(downloader.download(url, headers={}).result(PATIENCE).width, 1200)

    def test_what_is_not_a_number_is_refused_whatever_its_type(self):
        times = ("connect_timeout", "idle_timeout", "max_stale")
        own = ("failure_ttl", "progress_interval")
        of_requests = ("total_timeout", "partial_interval", "scale_factor")
        with self.downloader() as downloader:
            url = self.origin.picture("palette.png")
            quantile = downloader.stats().transfer.quantile
            calls = {}
            for name in (*times, *of_requests):
                calls[name] = lambda value, name=name: downloader.download(url, **{name: value})
            for name in (*times, *own):
                calls[f"{name} is"] = lambda value, name=name: imgdl.Downloader(**{name: value})
            for name in ("base", "maximum"):
                calls[f"retries.{name}"] = lambda value, name=name: imgdl.Downloader(retries=imgdl.Retry(1, **{name: value}))
            calls["timeout"] = downloader.wait_idle
            calls["timeout is"] = lambda value: imgdl.get(url, timeout=value)
            calls["grace"] = downloader.enter_background
            calls["q"] = quantile
            for name, call in calls.items():
                with self.subTest(name):
                    expected = self.assertCode(Code.INVALID_ARGUMENT, call, float("nan"))
                    self.assertIn(name, expected.message)
                    for value in (Decimal("nan"), Decimal("-nan"), Decimal("sNaN")):
                        error = self.assertCode(Code.INVALID_ARGUMENT, call, value)
                        self.assertEqual(error.message, expected.message)
                        with localcontext() as context:
                            context.traps[InvalidOperation] = False
                            error = self.assertCode(Code.INVALID_ARGUMENT, call, value)
                        self.assertEqual(error.message, expected.message)
                    with self.assertRaisesRegex(TypeError, f"{name.split()[0]} must be a number.*, not str"):
                        call("x")
            for name in ("q", "scale_factor", "progress_interval is"):
                with self.subTest(name):
                    for value in (10**400, -(10**400), Decimal("1e400")):
                        self.assertIn(name, self.assertCode(Code.INVALID_ARGUMENT, calls[name], value).message)
            self.assertEqual(downloader.current_count, 0)
            # One that is a number is taken.
            numbers = {"total_timeout": Decimal(PATIENCE), "scale_factor": Decimal("1.5"), "max_stale": Decimal(0)}
            token = downloader.download(url, **numbers)
            self.assertEqual(token.result(Decimal(PATIENCE)).scale_factor, 1.5)
            self.assertEqual(quantile(Fraction(1, 2)), quantile(0.5))

    def test_files_are_named_by_paths_too(self):
        info = self.other_origin("--tls", "valid", "--client-certificate", "required").info
        names = ("ca_file", "client_certificate", "client_key")
        with tempfile.TemporaryDirectory() as folder:
            for kind in (Path, BytesPath):
                paths = {name: kind(info[name]) for name in names}
                jar, lists = os.path.join(folder, "jar"), os.path.join(folder, "lists")
                config = imgdl._options.config(cookie_file=kind(jar), crl_file=kind(lists), **paths)
                self.assertEqual(config.cookie_file, os.fsencode(jar))
                self.assertEqual(config.crl_file, os.fsencode(lists))
                request = imgdl._options.request("http://h/", False, paths)
                for name in names:
                    self.assertEqual(getattr(config, name), os.fsencode(info[name]))
                    self.assertEqual(getattr(request, name), os.fsencode(info[name]))

    def test_no_limit_of_retries_is_not_none(self):
        for retries, count in ((imgdl.NO_LIMIT, 0xFFFFFFFE), (3, 3), (0, 0xFFFFFFFF)):
            self.assertEqual(imgdl._options.request("http://h/", False, {"retries": retries}).retry_count, count)
            self.assertEqual(imgdl._options.config(retries=retries).retry_count, count if retries else 0)

    def test_downloaders_that_cannot_be(self):
        for name, options in (
            ("max_per_host", {"max_per_host": 0}),
            ("max_per_host", {"max_per_host": 1 << 32}),
            ("memory_budget", {"memory_budget": -1}),
            ("retries", {"retries": 1 << 32}),
            ("failure_ttl", {"failure_ttl": 0}),
            ("accepted_statuses", {"accepted_statuses": [1000]}),
            ("accepted_types", {"accepted_types": ["a b/c"]}),
            ("progress_interval", {"progress_interval": 1.5}),
            ("progress_interval", {"progress_interval": float("nan")}),
            ("pinned_public_key", {"pinned_public_key": "md5//"}),
            ("proxy", {"proxy": "nonsense://x y"}),
            ("dns_servers", {"dns_servers": "dns.example"}),
            ("nat64_prefixes", {"nat64_prefixes": "2001:db8::/95"}),
        ):
            with self.subTest(options):
                with self.assertRaises(imgdl.InvalidArgument) as caught:
                    imgdl.Downloader(**options)
                self.assertIn(name, str(caught.exception))
        # In words that name what may be given.
        for options, bounds in (
            ({"max_concurrent": 0}, "max_concurrent is 0: not between 1 and 10000"),
            ({"max_concurrent": 10_001}, "max_concurrent is 10001: not between 1 and 10000"),
            ({"max_per_host": 10_001}, "max_per_host is 10001: not between 1 and 10000"),
            ({"max_redirects": 0}, "max_redirects is 0: not between 1 and 100"),
            ({"max_redirects": imgdl.NO_LIMIT}, f"max_redirects is {imgdl.NO_LIMIT}: not between 1 and 100"),
            ({"decode_threads": 257}, "decode_threads is 257: not between 1 and 256"),
            ({"retries": -1}, "retries is -1: not between 0 and 4294967294"),
        ):
            with self.subTest(options):
                with self.assertRaises(imgdl.InvalidArgument) as caught:
                    imgdl.Downloader(**options)
                self.assertEqual(caught.exception.message, bounds)
        with self.assertRaises(TypeError):
            imgdl.Downloader(hooks=7)
        with self.assertRaises(TypeError):
            imgdl.Downloader(ca_file=b"/ca.pem")
        with self.assertRaises(TypeError):
            imgdl.Downloader(colour="red")


if __name__ == "__main__":
    unittest.main()
