"""Whose a stored answer is, with real servers, certificates, jars and processes (docs/caching.md, "Who sees what")."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import imgdl
from imgdl import Code
from support import PATIENCE, OriginTests

# Header fields that say nothing of who asks: docs/caching.md has the table.
FOR_ALL = [
    "Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "User-Agent", "Referer", "Priority", "DNT",
    "Save-Data", "Sec-GPC", "Upgrade-Insecure-Requests", "traceparent", "tracestate", "X-Request-Id",
]
FRESH = {"header": "Cache-Control:max-age=600"}
PUBLIC = {"header": "Cache-Control:max-age=600, public"}
# Revocation list of an authority that nobody has.
LIST = b"""\
-----BEGIN X509 CRL-----
MIGYMD8wCgYIKoZIzj0EAwIwETEPMA0GA1UEAwwGYS50ZXN0Fw0yNjExMjkxNjMw
MjVaGA8yMTI2MTEwNTE2MzAyNVowCgYIKoZIzj0EAwIDSQAwRgIhAPsf3AVpKRzC
4ARXxH1rqI/hQXWZPC0ieky6eykZMP8VAiEApGt/c6qknajcsyuRN555JG4YMYgD
JrHFnq4WrHKPPzw=
-----END X509 CRL-----
"""
OTHER_PROCESS = """
import sys, imgdl
cache = imgdl.Cache(sys.argv[1])
with imgdl.Downloader(cache=cache, **eval(sys.argv[2])) as downloader:
    for url, options in eval(sys.argv[3]):
        token = downloader.download(url, body=True, cache="only", **options)
        try:
            print(token.result(20).response.cache_outcome)
        except imgdl.Error as error:
            print(imgdl.Code(error.code).name)
cache.close()
"""


class ContextTests(OriginTests):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.directory = Path(self.folder.name) / "cache"

    def stores(self, url, config=None, **options):
        """Loads it into the cache, which is closed."""
        with imgdl.Cache(self.directory) as cache, self.downloader(cache=cache, **(config or {})) as downloader:
            downloader.download(url, body=True, **options).result(PATIENCE)
            cache.flush()

    def sees(self, url, config=None, **options):
        """What another process gets of it without asking the server."""
        ended = subprocess.run(
            [sys.executable, "-c", OTHER_PROCESS, str(self.directory), repr(config or {}), repr([(url, options)])],
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)), check=True, stdout=subprocess.PIPE, text=True)
        return ended.stdout.strip()

    def sees_all(self, requests, config=None):
        """The same of several, each with options of its own."""
        ended = subprocess.run(
            [sys.executable, "-c", OTHER_PROCESS, str(self.directory), repr(config or {}), repr(requests)],
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)), check=True, stdout=subprocess.PIPE, text=True)
        return ended.stdout.split()

    def copy(self, name, source):
        copy = Path(self.folder.name) / name
        copy.write_bytes(Path(source).read_bytes())
        return copy

    def test_what_a_loader_says_is_nobody_elses(self):
        """A test double for http, and then the network, or other programs with the same cache."""
        url, real = self.origin.picture("palette.png", **PUBLIC), self.origin.bytes("palette.png")
        begun, held = threading.Event(), []

        class Double:
            def start(self, request, transfer):
                if "n=fails" in request.url:
                    return transfer.end(Code.PROTOCOL)
                if "n=held" in request.url:
                    held.append(transfer)
                    return begun.set()
                self.answer(transfer)

            def answer(self, transfer):
                transfer.response(200, {"Cache-Control": "public, max-age=600"})
                transfer.body(b"double")
                transfer.end()

        double = Double()
        with imgdl.Cache(self.directory) as cache, self.downloader(cache=cache, failure_ttl=60) as downloader:
            def get(url, **options):
                body = downloader.download(url, body=True, **options).result(PATIENCE)
                return body.data, body.response.cache_outcome

            downloader.register_transport("http", double)
            self.assertEqual([get(url), get(url)], [(b"double", "network")] * 2)
            self.assertCode(Code.NOT_CACHED, lambda: get(url, cache="only"))
            self.assertCode(Code.PROTOCOL, lambda: get(url + "&n=fails"))
            early = downloader.download(url + "&n=held", body=True)
            self.assertTrue(begun.wait(PATIENCE))
            begun.clear()
            early_with_cookies = downloader.download(url + "&n=held-with-cookies", body=True, cookies=True)
            self.assertTrue(begun.wait(PATIENCE))
            downloader.register_transport("http", None)
            self.assertEqual(get(url), (real, "network"))
            self.assertEqual(get(url + "&n=held"), (real, "network"), "it joins nothing of the loader's")
            self.assertEqual(get(url + "&n=fails"), (real, "network"), "a server has not failed")
            for transfer, token in zip(held, (early, early_with_cookies)):
                double.answer(transfer)
                self.assertEqual(token.result(PATIENCE).data, b"double")
            late = downloader.download(url + "&n=held-with-cookies", body=True, cookies=True).result(PATIENCE)
            self.assertEqual((late.data, late.response.cache_outcome), (real, "network"))
            self.assertEqual([get(each) for each in (url, url + "&n=held")], [(real, "hit")] * 2)
            downloader.register_transport("http", double)
            self.assertEqual(get(url), (b"double", "network"), "nor does what a server said answer for it")
            cache.flush()
        self.assertEqual(self.sees_all([(url, {}), (url + "&n=held", {})]), ["hit", "hit"])
        with imgdl.Cache(self.directory) as cache, self.downloader(cache=cache) as downloader:
            body = downloader.download(url, body=True, cache="only").result(PATIENCE)
            self.assertEqual(body.data, real)

    def test_what_nobody_verified_is_not_stored(self):
        origin = self.other_origin("--tls", "valid")
        url, trust = origin.picture("palette.png", **FRESH), origin.info["ca_file"]
        self.stores(url, allow_invalid_certificates=True)
        self.assertEqual(self.sees(url, ca_file=trust), "NOT_CACHED")
        self.assertEqual(self.sees(url, allow_invalid_certificates=True), "NOT_CACHED")

    def test_what_nobody_verified_is_not_stored_not_even_over_http(self):
        secure = self.other_origin("--tls", "valid").picture("palette.png", **FRESH)
        plain = self.origin.picture("palette.png", **FRESH)
        with imgdl.Cache(self.directory) as cache, self.downloader(cache=cache) as downloader:
            for each in (plain, plain, secure, secure):
                body = downloader.download(each, body=True, allow_invalid_certificates=True).result(PATIENCE)
                self.assertEqual(body.response.cache_outcome, "network", each)

    def test_a_client_certificate(self):
        origin = self.other_origin("--tls", "valid", "--client-certificate", "optional")
        info, url = origin.info, origin.picture("palette.png", **PUBLIC)
        trust = {"ca_file": info["ca_file"]}
        client = {"client_certificate": info["client_certificate"], "client_key": info["client_key"]}
        own = {**trust, **client}
        stranger = {**trust, "client_certificate": info["stranger_certificate"], "client_key": info["stranger_key"]}
        self.stores(url, **own)
        self.assertEqual(
            self.sees_all([(url, own), (url, trust), (url, stranger)]), ["hit", "NOT_CACHED", "NOT_CACHED"])
        self.assertEqual(self.sees(url, client, **trust), "hit", "the downloader's is the same")

    def test_a_client_certificate_that_is_replaced_while_the_downloader_lives(self):
        origin = self.other_origin("--tls", "valid", "--client-certificate", "optional")
        info, url = origin.info, origin.picture("palette.png", **FRESH)
        certificate, key = self.copy("certificate", info["client_certificate"]), self.copy("key", info["client_key"])
        with imgdl.Cache(self.directory) as cache, self.downloader(
            cache=cache, ca_file=info["ca_file"], client_certificate=str(certificate), client_key=str(key)
        ) as downloader:
            def outcome():
                return downloader.download(url, body=True).result(PATIENCE).response.cache_outcome

            self.assertEqual([outcome(), outcome()], ["network", "hit"])
            certificate.write_bytes(Path(info["stranger_certificate"]).read_bytes())
            key.write_bytes(Path(info["stranger_key"]).read_bytes())
            try:
                self.assertEqual(outcome(), "network")
            except imgdl.Error as error:
                self.assertEqual(Code(error.code), Code.TLS_FAILED, "the server does not take it")

    def test_trust(self):
        origin = self.other_origin("--tls", "valid")
        url, trust = origin.picture("palette.png", **PUBLIC), origin.info["ca_file"]
        copy = Path(self.folder.name) / "copy.pem"
        copy.write_bytes(Path(trust).read_bytes())
        lists = Path(self.folder.name) / "lists.pem"
        lists.write_bytes(LIST)
        self.stores(url, ca_file=trust)
        self.assertEqual(self.sees(url, ca_file=trust), "hit")
        for options in (
            {}, {"ca_file": str(copy)}, {"ca_file": trust, "pinned_public_key": origin.info["pin"]},
            {"ca_file": trust, "partition": "a"},
        ):
            self.assertEqual(self.sees(url, **options), "NOT_CACHED", options)
        for config in (
            {"require_tls_1_3": True}, {"proxy": "http://127.0.0.1:1"}, {"dns_servers": "127.0.0.1"},
            {"crl_file": str(lists)},
        ):
            self.assertEqual(self.sees(url, config, ca_file=trust), "NOT_CACHED", config)
        # Another certificate under the same name.
        copy.write_bytes(Path(trust).read_bytes())
        self.stores(url, ca_file=str(copy))
        copy.write_bytes(copy.read_bytes() + b"\n")
        self.assertEqual(self.sees(url, ca_file=str(copy)), "NOT_CACHED")

    def test_no_pair_of_downloaders_that_trust_otherwise_shares(self):
        # Over http none of them changes what the server answers.
        lists = [Path(self.folder.name) / f"lists-{number}.pem" for number in range(2)]
        for number, each in enumerate(lists):
            each.write_bytes(LIST + b"\n" * number)
        storing = [
            {}, {"require_tls_1_3": True}, *({"crl_file": str(each)} for each in lists), {"dns_servers": "127.0.0.1"},
            {"dns_servers": "127.0.0.2"}, {"require_tls_1_3": True, "crl_file": str(lists[0])}, {"partition": "a"},
        ]
        # Nobody would be reached with these.
        denial = {"deny_private_addresses": True, "proxy": ""}
        asking = storing + [
            {"proxy": "http://127.0.0.1:1"}, denial, {**denial, "nat64_prefixes": "2001:db8:64::/96"},
        ]
        urls = [self.origin.picture("palette.png", n=number, **PUBLIC) for number in range(len(storing))]
        for url, config in zip(urls, storing):
            self.stores(url, config)
        requests = [(url, {}) for url in urls]
        for config in asking:
            expected = ["hit" if config == other else "NOT_CACHED" for other in storing]
            self.assertEqual(self.sees_all(requests, config), expected, config)
        # Other lists under the same name.
        lists[0].write_bytes(LIST + LIST)
        self.assertEqual(set(self.sees_all(requests, {"crl_file": str(lists[0])})), {"NOT_CACHED"})

    def test_credentials(self):
        url, public = (self.origin.picture("palette.png", **fresh) for fresh in (FRESH, PUBLIC))
        ways = [
            {}, {"user": "u", "password": "p"}, {"user": "u", "password": "q"}, {"headers": {"Authorization": "Bearer 1"}},
            {"headers": {"Cookie": "a=1"}}, {"partition": "a"}, {"headers": {"X-Api-Key": "1"}}, {"headers": {"Host": "x.test"}},
        ]
        for first in ways:
            with self.subTest(first):
                own = f"{url}&n={ways.index(first)}"
                self.stores(own, **first)
                for second in ways:
                    self.assertEqual(self.sees(own, **second), "hit" if first == second else "NOT_CACHED", second)
        self.stores(public, user="u", password="p")
        for way in ways[:5]:
            self.assertEqual(self.sees(public, **way), "hit", way)
        for way in ways[5:]:
            self.assertEqual(self.sees(public, **way), "NOT_CACHED", way)

    def test_credentials_by_other_roads(self):
        url = self.origin.picture("palette.png", **FRESH)
        with_user, with_other = (url.replace("//", f"//u:{password}@", 1) for password in "pq")
        given = {"user": "u", "password": "p"}
        self.stores(with_user)
        self.assertEqual(
            self.sees_all([(with_user, {}), (url, given), (with_other, {}), (url, {})]),
            ["hit", "hit", "NOT_CACHED", "NOT_CACHED"])
        self.assertEqual(self.sees(url, given), "hit", "the downloader's are the same")

    def test_what_says_nothing_of_who_asks(self):
        url = self.origin.picture("palette.png", **FRESH)
        self.stores(url)
        ways = [{"headers": {name: "1"}} for name in FOR_ALL] + [
            {"method": "HEAD"}, {"follow_redirects": False}, {"allow_downgrade": True}, {"max_body_bytes": 1 << 20},
            {"connect_timeout": 5}, {"idle_timeout": 5}, {"total_timeout": 50}, {"priority": "high"},
            {"any_status": True},
            {"retries": 2}, {"full_urls": True}, {"decode": True}, {"continue_in_background": True},
        ]
        seen = self.sees_all([(url, way) for way in ways])
        self.assertEqual(len(seen), len(ways))
        self.assertEqual([way for way, outcome in zip(ways, seen) if outcome != "hit"], [])

    def test_partitions_have_their_own_cookies(self):
        jar = str(Path(self.folder.name) / "jar")

        def cookie(downloader, **options):
            body = downloader.download(self.origin.url("/echo"), body=True, cookies=True, **options).result(PATIENCE)
            return dict((name.lower(), value) for name, value in json.loads(body.data)["headers"]).get("cookie")

        with self.downloader(cookie_file=jar) as downloader:
            for partition in (None, "a", "b"):
                downloader.download(
                    self.origin.url(f"/cookies/set?id={partition}&path=/"), body=True, cookies=True,
                    partition=partition).result(PATIENCE)
            sent = [cookie(downloader, partition=name) for name in (None, "a", "b", "c")]
            self.assertEqual(sent, ["id=None", "id=a", "id=b", None])
        # The file knows no partitions: it is the downloader's own.
        with self.downloader(cookie_file=jar, partition="z") as downloader:
            self.assertEqual([cookie(downloader), cookie(downloader, partition="a")], ["id=None", None])

    def test_trust_alone_decides_connections(self):
        origin = self.other_origin("--tls", "valid", "--client-certificate", "optional")
        info = origin.info
        trust = {"ca_file": info["ca_file"]}
        client = {"client_certificate": info["client_certificate"], "client_key": info["client_key"]}
        others = [
            {**trust, "partition": "a"}, {**trust, "pinned_public_key": info["pin"]}, {**trust, **client},
            {"ca_file": str(self.copy("ca", info["ca_file"]))}, {"allow_invalid_certificates": True},
        ]
        alike = [
            trust, {**trust, "user": "u", "password": "p"}, {**trust, "headers": {"Authorization": "Bearer 1"}},
            {**trust, "headers": {"Cookie": "a=1"}}, {**trust, "headers": {"X-Api-Key": "1"}},
            {**trust, "headers": {"Host": "a.test"}}, {**trust, "cookies": True},
        ]
        with self.downloader() as downloader:
            def connection(number, options):
                url = origin.picture("palette.png", n=number)
                downloader.download(url, body=True, **options).result(PATIENCE)
                (request,) = (each for each in origin.log["requests"] if url.endswith(each["target"]))
                return request["connection"]

            self.assertEqual(len({connection(number, way) for number, way in enumerate(alike)}), 1)
            used = [connection(10 + number, way) for number, way in enumerate(others)]
            self.assertEqual(len(set(used)), len(others))
            handshakes = {each["number"]: each["tls"] for each in origin.log["connections"]}
            self.assertEqual([handshakes[number]["resumed"] for number in used], [False] * len(others))

    def test_the_jar(self):
        jar = str(Path(self.folder.name) / "jar")
        url = self.origin.picture("palette.png", **FRESH)
        with self.downloader(cookie_file=jar) as downloader:
            downloader.download(self.origin.url("/cookies/set?a=1&path=/"), body=True, cookies=True).result(PATIENCE)
        self.stores(url, {"cookie_file": jar}, cookies=True)
        self.assertEqual(self.sees(url, {"cookie_file": jar}, cookies=True), "hit")
        self.assertEqual(self.sees(url, cookies=True), "NOT_CACHED")
        self.assertEqual(self.sees(url), "NOT_CACHED")
        self.assertEqual(self.sees(url, headers={"Cookie": "a=2"}), "NOT_CACHED")

    def test_private_addresses(self):
        url = self.origin.picture("palette.png", **PUBLIC)
        self.stores(url)
        self.assertEqual(self.sees(url, {"deny_private_addresses": True, "proxy": ""}), "NOT_CACHED")

    def test_a_key_that_is_gone(self):
        url = self.origin.picture("palette.png", **FRESH)
        self.stores(url)
        (self.directory / "key").unlink()
        self.assertEqual(self.sees(url), "NOT_CACHED")
        self.stores(url)
        self.assertEqual(self.sees(url), "hit")
        key = self.directory / "key"
        self.assertEqual(key.stat().st_mode & 0o777, 0o600)
        for spoil in (lambda: key.chmod(0o666), lambda: key.write_bytes(b"short"), lambda: key.write_bytes(bytes(33))):
            spoil()
            self.assertEqual(self.sees(url), "NOT_CACHED")
            self.stores(url)
            self.assertEqual(self.sees(url), "hit")
            self.assertEqual(key.stat().st_mode & 0o777, 0o600)

    def test_partitions_share_no_connection(self):
        with self.downloader(max_concurrent=1) as downloader:
            for partition in ("a", "b", "a", "b", None):
                downloader.download(
                    self.origin.picture("palette.png"), body=True, partition=partition).result(PATIENCE)
        connections = {request["connection"] for request in self.origin.requests("/pictures/palette.png")}
        self.assertEqual(len(connections), 3)

    def test_a_name_that_is_too_long(self):
        with self.downloader() as downloader:
            self.assertCode(Code.INVALID_ARGUMENT, downloader.download, self.origin.url("/a"), partition="x" * 257)
        self.assertCode(Code.INVALID_ARGUMENT, self.downloader, partition="x" * 257)
        self.assertCode(Code.INVALID_HEADER, self.downloader, partition="a\nb")


if __name__ == "__main__":
    unittest.main()
