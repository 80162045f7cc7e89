import base64
import collections
import gc
import sys
import threading
import unittest
import weakref
import zlib
from unittest import mock

import imgdl
from imgdl import Code
from support import PATIENCE, OriginTests, Signal, pictures


def fields(request):
    return {name.lower(): value for name, value in request["headers"]}


class HookTests(OriginTests):
    def test_t23_requests(self):
        seen = []

        def modify(request, next):
            seen.append(request)
            if request.url.endswith("refuse"):
                raise imgdl.Error(Code.INVALID_OPERATION, "not today")
            if request.url.endswith("code"):
                next.refused(message="in person")
            elif request.url.endswith("other"):
                return request.replace(
                    url=self.origin.url("/echo", n="secret"), method="PUT", headers={"X-All": "1"}, body=b"sent"
                )
            elif request.url.endswith("one"):
                return request.with_header("x-mine", "1").with_header("Accept", None)
            return None

        with self.downloader(hooks=imgdl.Hooks(modify_request=modify), user_agent="mine/1") as downloader:
            for path in ("/echo?as-it-is", "/echo?one", "/nothing?other"):
                body = downloader.download(self.origin.base + path, body=True).result(PATIENCE)
                self.assertEqual(body.http_status, 200)
            for path, message in (("/echo?refuse", "not today"), ("/echo?code", "in person")):
                token = downloader.download(self.origin.base + path, body=True)
                error = self.assertCode(Code.INVALID_OPERATION, token.result, PATIENCE)
                self.assertIn(message, error.message)
        self.assertEqual((seen[0].url, seen[0].method), (self.origin.base + "/echo?as-it-is", "GET"))
        self.assertEqual((seen[0].header("USER-AGENT"), seen[0].body), ("mine/1", None))
        first, second, third = self.origin.log["requests"]
        self.assertEqual(fields(first)["user-agent"], "mine/1")
        self.assertEqual(fields(second)["x-mine"], "1")
        self.assertNotIn("accept", fields(second))
        self.assertEqual((third["method"], third["target"], third["body_bytes"]), ("PUT", "/echo?n=secret", 4))
        self.assertEqual(fields(third)["x-all"], "1")

    def test_t24_responses(self):
        def modify(response, next):
            if response.header("X-Name") == "pair":
                return 404, {"X-Added": "1"}
            if response.header("X-Name") == "refuse":
                raise imgdl.Error(Code.INVALID_RESPONSE, "a bad one")
            return response._replace(headers=(*response.headers, ("X-Added", "2")))

        def url(name):
            return self.origin.picture("palette.png", header=f"X-Name:{name}")

        with self.downloader(hooks=imgdl.Hooks(modify_response=modify)) as downloader:
            token = downloader.download(url("other"), on_response=lambda token, response: None)
            self.assertEqual(token.result(PATIENCE).width, 1200)
            self.assertEqual(token.response.header("x-added"), "2")
            token = downloader.download(url("pair"), on_response=lambda token, response: None)
            error = self.assertCode(Code.INVALID_STATUS, token.result, PATIENCE)
            self.assertEqual(error.http_status, 404)
            self.assertEqual(token.response.header("x-added"), "1")
            error = self.assertCode(Code.INVALID_RESPONSE, downloader.download(url("refuse")).result, PATIENCE)
            self.assertIn("a bad one", error.message)

    def test_t25_bodies(self):
        data = self.origin.bytes("palette.png")
        (pictures() / "palette.base64").write_bytes(base64.b64encode(data))
        (pictures() / "palette.zlib").write_bytes(zlib.compress(data))
        kept = []

        def decode(body, next):
            self.assertIsInstance(body, memoryview)
            self.assertTrue(body.readonly)
            kept.append(body)
            return base64.b64decode(body)

        with self.downloader() as downloader:
            for name, function in (
                ("palette.base64", decode),
                ("palette.zlib", lambda body, next: next.with_data(zlib.decompress(body))),
                ("palette.png", lambda body, next: None),
            ):
                token = downloader.download(self.origin.picture(name), hooks=imgdl.Hooks(transform_body=function))
                self.assertEqual(token.result(PATIENCE).pixels, imgdl.decode(data).pixels)
            hooks = imgdl.Hooks(transform_body=lambda body, next: next.refused())
            token = downloader.download(self.origin.picture("palette.png"), hooks=hooks)
            self.assertCode(Code.BAD_IMAGE_DATA, token.result, PATIENCE)
        # The bytes are the hook's for as long as it holds them.
        self.assertEqual(base64.b64decode(kept[0]), data)

    def test_redirects(self):
        asked = []

        def redirect(response, url, next):
            asked.append((response.status, url))
            if "refuse" in url:
                next.refused(message="stay")
                return None
            return self.origin.picture("opaque.png") if "other" in url else None

        with self.downloader(hooks=imgdl.Hooks(redirect=redirect)) as downloader:
            for to, width in (("/pictures/palette.png", 1200), ("/pictures/palette.png?other", 900)):
                self.assertEqual(downloader.download(self.origin.url("/redirect", to=to)).result(PATIENCE).width, width)
            token = downloader.download(self.origin.url("/redirect", to="/refuse"))
            self.assertIn("stay", self.assertCode(Code.REDIRECT_REFUSED, token.result, PATIENCE).message)
        self.assertEqual(asked[0], (302, self.origin.picture("palette.png")))

    def test_t08_credentials(self):
        challenges = []

        def authenticate(challenge, next):
            challenges.append(challenge)
            return ("me", "secret") if "good" in challenge.url else None

        with self.downloader(hooks=imgdl.Hooks(authenticate=authenticate), basic_over_http=True) as downloader:
            for kind in ("basic", "digest"):
                query = {"user": "me", "password": "secret", "picture": "palette.png"}
                token = downloader.download(self.origin.url(f"/auth/{kind}", _n="good", **query))
                self.assertEqual(token.result(PATIENCE).width, 1200)
                token = downloader.download(self.origin.url(f"/auth/{kind}", _n="bad", **query))
                self.assertEqual(self.assertCode(Code.INVALID_STATUS, token.result, PATIENCE).http_status, 401)
        self.assertEqual([each.status for each in challenges], [401] * 4)
        self.assertIsNotNone(challenges[0].header("WWW-Authenticate"))

    def test_later(self):
        asked = Signal()

        def modify(request, next):
            asked(request, next)
            return imgdl.LATER

        with self.downloader(hooks=imgdl.Hooks(modify_request=modify)) as downloader:
            token = downloader.download(self.origin.url("/echo"), body=True)
            request, next = asked.wait()
            # Others go on meanwhile.
            other = downloader.download(self.origin.picture("palette.png"), hooks=PASS)
            self.assertEqual(other.result(PATIENCE).width, 1200)
            self.assertFalse(token.done() or next.is_answered)
            for code, answer in (
                (Code.INVALID_ARGUMENT, lambda: next.with_data(b"")),
                (Code.INVALID_ARGUMENT, lambda: next.with_credentials("a", "b")),
                (Code.INVALID_ARGUMENT, lambda: next.with_response(200, {})),
                (Code.INVALID_ARGUMENT, lambda: next.with_response(7, {})),
                (Code.INVALID_HEADER, lambda: next.with_request(headers={"X": "a\nb"})),
                (Code.INVALID_URL, lambda: next.with_request(url="http://")),
                (Code.INVALID_ARGUMENT, lambda: next.refused(4711)),
            ):
                self.assertCode(code, answer)
            with self.assertRaisesRegex(TypeError, "^data must be bytes or another buffer, not int$"):
                next.with_data(7)
            with self.assertRaisesRegex(TypeError, "^message must be str, not int$"):
                next.refused(0, 7)
            self.assertFalse(next.is_answered)
            next.with_request(request.with_header("X-Mine", "1"))
            self.assertTrue(next.is_answered)
            self.assertEqual(token.result(PATIENCE).http_status, 200)
            for answer in (next.unchanged, next.refused):
                self.assertCode(Code.INVALID_HANDLE, answer)
        self.assertEqual(fields(self.origin.requests("/echo")[0])["x-mine"], "1")

    def test_answered_after_its_download(self):
        asked = Signal()

        def modify(request, next):
            asked(next)
            return imgdl.LATER

        with self.downloader(hooks=imgdl.Hooks(modify_request=modify)) as downloader:
            token = downloader.download(self.origin.url("/echo"), body=True)
            (next,) = asked.wait()
            token.cancel()
            self.assertCode(Code.CANCELLED, token.result, PATIENCE)
            next.unchanged()
            self.assertCode(Code.INVALID_HANDLE, next.unchanged)

    def test_let_go_without_an_answer(self):
        hooks = imgdl.Hooks(modify_request=lambda request, next: imgdl.LATER)
        with self.downloader(hooks=hooks) as downloader:
            token = downloader.download(self.origin.url("/echo"), body=True)
            error = self.assertCode(Code.INVALID_OPERATION, token.result, PATIENCE)
            self.assertIn("without an answer", error.message)

    def test_what_a_hook_raises(self):
        seen = []

        def fail(*arguments):
            raise ValueError("on purpose\0")

        with self.downloader() as downloader, mock.patch.object(sys, "unraisablehook", seen.append):
            for code, name, path in (
                (Code.INVALID_OPERATION, "modify_request", "/pictures/palette.png"),
                (Code.INVALID_RESPONSE, "modify_response", "/pictures/palette.png"),
                (Code.BAD_IMAGE_DATA, "transform_body", "/pictures/palette.png"),
                (Code.REDIRECT_REFUSED, "redirect", "/redirect?to=/pictures/palette.png"),
                (Code.INVALID_STATUS, "authenticate", "/auth/basic?user=a&password=b"),
            ):
                with self.subTest(name):
                    token = downloader.download(self.origin.base + path, hooks=imgdl.Hooks(**{name: fail}))
                    error = self.assertCode(code, token.result, PATIENCE)
                    self.assertIn("ValueError: on purpose", error.message)
                    # What is no answer refuses, too.
                    token = downloader.download(
                        self.origin.base + path, hooks=imgdl.Hooks(**{name: lambda *arguments: object()})
                    )
                    self.assertIn("TypeError", self.assertCode(code, token.result, PATIENCE).message)
        self.assertEqual([each.exc_type for each in seen], [ValueError, TypeError] * 5)
        seen.clear()

    def test_what_is_no_answer_is_named(self):
        response = "modify_response must return a Response, a pair of status and headers, or None"
        fields = "headers must be a mapping, or pairs of a name and a value"
        cases = (
            ("modify_request", 3, "modify_request must return an Outgoing, or None; it returned int"),
            ("modify_response", (1,), f"{response}; it returned tuple"),
            ("modify_response", "ab", f"{response}; it returned str"),
            ("modify_response", (200, 3), f"{response}; {fields}, not int"),
            ("modify_response", (200, "ab"), f"{response}; {fields}: one is str"),
            ("modify_response", ("x", {}), f"{response}; status must be an integer, not str"),
            ("transform_body", "x", "transform_body must return bytes, or None; data must be bytes or another buffer, not str"),
            ("redirect", 3, "redirect must return a URL, or None; the URL must be str, not int"),
            ("authenticate", "ab", "authenticate must return a pair of user and password, or None; it returned str"),
            ("authenticate", (3, "b"), "authenticate must return a pair .*, or None; user must be str, not int"),
        )
        paths = {"redirect": "/redirect?to=/pictures/palette.png", "authenticate": "/auth/basic?user=a&password=b"}
        seen = []
        with self.downloader() as downloader, mock.patch.object(sys, "unraisablehook", seen.append):
            for name, answer, expected in cases:
                hooks = imgdl.Hooks(**{name: lambda *arguments, answer=answer: answer})
                token = downloader.download(self.origin.base + paths.get(name, "/pictures/palette.png"), hooks=hooks)
                with self.subTest(expected):
                    self.assertRegex(token.exception(PATIENCE).message, f"TypeError: {expected}$")
        self.assertEqual([each.exc_type for each in seen], [TypeError] * len(cases))
        seen.clear()

    def test_what_an_answer_raises_itself_is_not_taken_for_another_answer(self):
        own = TypeError("of the caller")

        class Fields(collections.UserDict):
            def __iter__(self):
                raise own

        def both():
            yield 200
            raise own

        cases = (
            ("modify_request", lambda request, next: request.replace(headers=Fields())),
            ("modify_response", lambda response, next: (200, Fields())),
            ("modify_response", lambda response, next: (200, [both()])),
            ("modify_response", lambda response, next: both()),
            ("authenticate", lambda challenge, next: both()),
        )
        seen = []
        with self.downloader() as downloader, mock.patch.object(sys, "unraisablehook", seen.append):
            for name, function in cases:
                path = "/auth/basic?user=a&password=b" if name == "authenticate" else "/pictures/palette.png"
                token = downloader.download(self.origin.base + path, hooks=imgdl.Hooks(**{name: function}))
                with self.subTest(name):
                    self.assertRegex(token.exception(PATIENCE).message, "TypeError: of the caller$")
        self.assertEqual([each.exc_value for each in seen], [own] * len(cases))
        seen.clear()

    def test_an_error_is_an_answer(self):
        def refuse(request, next):
            raise imgdl.errors.error(Code.PIXEL_LIMIT, "too many")

        seen = []
        with self.downloader() as downloader, mock.patch.object(sys, "unraisablehook", seen.append):
            token = downloader.download(self.origin.url("/echo"), hooks=imgdl.Hooks(modify_request=refuse))
            self.assertIn("too many", self.assertCode(Code.PIXEL_LIMIT, token.result, PATIENCE).message)
        self.assertEqual(seen, [])

    def test_waiting_in_a_hook_is_refused(self):
        seen = []

        def modify(request, next):
            for call in (
                lambda: other.result(1),
                lambda: downloader.wait_idle(1),
                lambda: downloader.prefetch([]).wait(1),
            ):
                try:
                    call()
                except imgdl.Error as error:
                    seen.append(error.name)
            seen.append(downloader.header("X-Mine"))
            seen.append(downloader.max_concurrent)

        with self.downloader(hooks=imgdl.Hooks(modify_request=modify), max_concurrent=3) as downloader:
            downloader.set_header("X-Mine", "1")
            other = downloader.download(self.origin.picture("opaque.png", first_byte="never"), hooks=PASS)
            downloader.download(self.origin.picture("palette.png")).result(PATIENCE)
            other.cancel()
        self.assertEqual(seen, ["IMGDL_ERROR_WOULD_DEADLOCK"] * 3 + ["1", 3])

    def test_closing_in_a_hook(self):
        def modify(request, next):
            downloader.close()

        downloader = self.downloader(hooks=imgdl.Hooks(modify_request=modify))
        token = downloader.download(self.origin.picture("palette.png"))
        self.assertCode(Code.CANCELLED, token.result, PATIENCE)
        downloader.close()

    def test_hooks_that_cannot_be(self):
        with self.assertRaises(imgdl.InvalidArgument):
            imgdl.Hooks()
        with self.assertRaises(TypeError):
            imgdl.Hooks(modify_request=7)
        with self.assertRaises(TypeError):
            imgdl.Hooks(colour=print)
        gc.collect()
        self.assertEqual(len(imgdl.hooks._tables), 1)  # PASS

    def test_hooks_live_as_long_as_they_are_asked(self):
        asked = Signal()

        def modify(request, next):
            asked(next)
            return imgdl.LATER

        reference = weakref.ref(modify)
        with self.downloader() as downloader:
            token = downloader.download(self.origin.picture("palette.png"), hooks=imgdl.Hooks(modify_request=modify))
            del modify
            (next,) = asked.wait()
            gc.collect()
            self.assertIsNotNone(reference())
            next.unchanged()
            del next
            self.assertEqual(token.result(PATIENCE).width, 1200)
        gc.collect()
        self.assertIsNone(reference())

    def test_many_hooks_on_many_threads(self):
        def modify(request, next):
            threading.Thread(target=next.unchanged).start()
            return imgdl.LATER

        hooks = imgdl.Hooks(modify_request=modify, transform_body=lambda body, next: bytes(body))
        with self.downloader(hooks=hooks) as downloader:
            tokens = [downloader.download(self.origin.picture("palette.png", n=n % 10)) for n in range(50)]
            for token in tokens:
                self.assertEqual(token.result(PATIENCE).width, 1200)


PASS = imgdl.Hooks(modify_request=lambda request, next: None)


if __name__ == "__main__":
    unittest.main()
