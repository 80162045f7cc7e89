import pickle
import sys
import unittest
from unittest import mock

import imgdl
from imgdl import Code
from support import PATIENCE, OriginTests


class ErrorTests(OriginTests):
    def failure(self, code, path, **options):
        with self.downloader(**options.pop("config", {})) as downloader:
            token = downloader.download(self.origin.base + path, **options)
            return self.assertCode(code, token.result, PATIENCE)

    def test_what_an_error_tells(self):
        error = imgdl.Error(2001, "a sentence", url="http://host/", http_status=404)
        self.assertEqual(str(error), "a sentence")
        self.assertEqual((error.code, error.name), (Code.INVALID_STATUS, "IMGDL_ERROR_INVALID_STATUS"))
        self.assertEqual((error.url, error.http_status, error.image), ("http://host/", 404, None))
        self.assertEqual(repr(error), "Error(IMGDL_ERROR_INVALID_STATUS, 'a sentence')")
        self.assertEqual(imgdl.Error(4711).name, "IMGDL_ERROR_UNKNOWN")
        self.assertTrue(imgdl.Error(Code.CANCELLED).message)

    def test_to_another_process(self):
        for code in (Code.INVALID_STATUS, Code.IDLE_TIMEOUT, Code.WAIT_TIMEOUT, Code.INTERNAL):
            error = imgdl.errors.error(code, "a sentence", url="http://host/", http_status=7)
            copy = pickle.loads(pickle.dumps(error))
            self.assertIs(type(copy), type(error))
            self.assertEqual(
                (copy.code, copy.message, copy.url, copy.http_status), (code, "a sentence", "http://host/", 7)
            )

    def test_what_a_refused_answer_was_goes_with_it(self):
        error = self.failure(Code.INVALID_STATUS, "/status/418")
        self.assertEqual((error.content_type, error.preview), ("text/plain", b"status 418\n"))
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual(
            (copy.content_type, copy.preview, copy.metrics), (error.content_type, error.preview, error.metrics)
        )
        self.assertIsNotNone(copy.metrics)

    def test_types(self):
        self.assertTrue(issubclass(imgdl.Timeout, TimeoutError))
        self.assertTrue(issubclass(imgdl.WaitTimeout, imgdl.Timeout))
        self.assertTrue(issubclass(imgdl.InvalidArgument, ValueError))
        for code, kind in (
            (Code.TLS_PIN, imgdl.NetworkError),
            (Code.ADDRESS_REFUSED, imgdl.NetworkError),
            (Code.FRAME_LIMIT, imgdl.LimitError),
            (Code.UNSAFE_DIRECTORY, imgdl.CacheError),
            (Code.BLACKLISTED, imgdl.Error),
            (Code.BACKGROUND_EXPIRED, imgdl.Error),
        ):
            self.assertIs(type(imgdl.errors.error(code)), kind)
        for name in imgdl.__all__:
            kind = getattr(imgdl, name)
            if isinstance(kind, type) and issubclass(kind, Exception):
                self.assertTrue(issubclass(kind, imgdl.Error))

    def test_t10_status(self):
        # The body of an error is never decoded, even if it is a picture.
        for path in ("/nothing", "/pictures/opaque.png?status=500"):
            error = self.failure(Code.INVALID_STATUS, path)
            self.assertIsInstance(error, imgdl.StatusError)
            self.assertEqual(error.http_status, 500 if "?" in path else 404)
            self.assertIn(path.partition("?")[0], error.message)
            self.assertIn(str(error.http_status), error.message)

    def test_urls_that_are_refused_are_shown_as_they_were_written(self):
        with self.downloader() as downloader:
            for url, shown in (
                ("http:/host/a?k=secret", "http:/host/a"),
                ("http:///host/a", "http:///host/a"),
                ("HTTP:/me:secret@host/a@b", "HTTP:/host/a@b"),
                ("http:me:secret@host", "http:host"),
                ("http:\\\\me:secret@host\\a", "http:\\\\host\\a"),
                ("http://[bad/a#secret", "http://[bad/a"),
                ("ftp://me:secret@host/", "ftp://host/"),
                ("no url", "no url"),
                ("http:///me:secret@host/x", "http:///host/x"),
                ("http://me:sec/ret@host/x", "http://host/x"),
                ("http://me:sec?ret@host/x", "http://host/x"),
                ("http://me:sec#ret@host/x", "http://host/x"),
                ("http://me:sec@ret@host:x/", "http://host:x/"),
                ("http://me:secret%40host:x/", "http://host:x/"),
                ("me:secret@host/x", "host/x"),
                ("//me:secret@host/x", "//host/x"),
                ("http://h\x01/a@2x.png", "http://h\x01/a@2x.png"),
            ):
                with self.subTest(url), self.assertRaises(imgdl.InvalidArgument) as caught:
                    downloader.download(url)
                self.assertEqual(caught.exception.url, shown)
                self.assertNotIn("sec", str(caught.exception) + repr(caught.exception))
                self.assertNotIn("“me”", str(caught.exception))

    def test_passwords_of_urls_in_a_path_are_not_shown(self):
        with self.downloader(proxy="http://127.0.0.1:1") as downloader:
            for url, shown in (
                ("http://http://me:secret@h/x", "http://http://h/x"),
                ("http://http:/me:secret@h/x", "http://http:/h/x"),
                ("http://http://me:sec/ret@h/x", "http://http://h/x"),
                ("http://http://me:sec?ret@h/x", "http://http://h/x"),
                ("http://http://me:sec#ret@h/x", "http://http://h/x"),
                ("http://https//me:secret@h/x", "http://https//h/x"),
                ("http://x://me:sec/ret@h/x", "http://x://h/x"),
                ("http://p/http://me:secret@h/x", "http://p/http://h/x"),
                ("http://p/http:/me@h/x", "http://p/http:/h/x"),
                ("http://p/http%3A%2F%2Fme%3Asecret%40h%2Fx", "http://p/http%3A%2F%2Fh%2Fx"),
                ("http://p//me:secret@h/x", "http://p//h/x"),
                ("http://p//b@2x.png", "http://p//b@2x.png"),
                ("http://p/http://h:80/a@2x.png", "http://p/http://h:80/a@2x.png"),
            ):
                for options in ({}, {"full_urls": True}):
                    with self.subTest(url, **options):
                        token = downloader.download(url, retries=0, **options)
                        error = self.assertCode(Code.PROXY_FAILED, token.result, PATIENCE)
                        self.assertEqual(error.url, shown)
                        said = str(error) + repr(error) + repr(token)
                        for secret in ("sec", "ret", "me:", "me@", "me%"):
                            self.assertNotIn(secret, said)

    def test_t08_a_wrong_password_ends_once(self):
        error = self.failure(Code.INVALID_STATUS, "/status/401?header=WWW-Authenticate:%20Basic%20realm=x")
        self.assertEqual(error.http_status, 401)
        self.assertEqual(len(self.origin.requests("/status/401")), 1)

    def test_secrets_stay_secret(self):
        url = self.origin.base.replace("://", "://user:hunter2@") + "/nothing?signature=hunter2#hunter2"
        with self.downloader() as downloader:
            token = downloader.download(url)
            error = self.assertCode(Code.INVALID_STATUS, token.result, PATIENCE)
            self.assertEqual(token.url, url)
        self.assertNotIn("hunter2", str(error) + repr(error) + repr(token))
        self.assertEqual(error.url, self.origin.base + "/nothing")

    def test_network(self):
        for code, path in (
            (Code.PROTOCOL, "/garbage"),
            (Code.TRUNCATED, "/pictures/opaque.png?short_by=1000"),
            (Code.CONNECTION_LOST, "/pictures/opaque.png?reset_after=1000"),
            (Code.TOO_MANY_REDIRECTS, "/redirect-loop"),
            (Code.REDIRECT_REFUSED, "/redirect?to=ftp://127.0.0.1/"),
            (Code.BAD_IMAGE_DATA, "/echo"),
            (Code.BODY_LIMIT, "/pictures/opaque.png?length=huge"),
        ):
            with self.subTest(code):
                error = self.failure(code, path)
                self.assertIsInstance(error, (imgdl.NetworkError, imgdl.ImageError, imgdl.LimitError))
                self.assertEqual(error.url, self.origin.base + path.partition("?")[0])

    def test_connect(self):
        with self.downloader() as downloader:
            error = self.assertCode(
                Code.CONNECT_FAILED, downloader.download("http://127.0.0.1:1/").result, PATIENCE
            )
        self.assertIsInstance(error, imgdl.NetworkError)

    def test_timeouts(self):
        stalled = "/pictures/opaque.png?first_byte=never"
        error = self.failure(Code.TOTAL_TIMEOUT, stalled, total_timeout=0.05)
        self.assertIsInstance(error, imgdl.Timeout)
        self.failure(Code.IDLE_TIMEOUT, stalled, config={"idle_timeout": 0.05})

    def test_limits(self):
        self.failure(Code.BODY_LIMIT, "/pictures/opaque.png", max_body_bytes=1000)
        self.failure(Code.PIXEL_LIMIT, "/pictures/opaque.png", max_pixels=1000)
        self.failure(Code.HEADER_LIMIT, "/pictures/opaque.png?headers=300")

    def test_salvage(self):
        path = "/pictures/opaque.png?close_after=100000"
        self.assertIsNone(self.failure(Code.TRUNCATED, path).image)
        image = self.failure(Code.TRUNCATED, path, salvage=True).image
        self.assertEqual((image.width, image.height, image.is_complete), (900, 600, False))
        whole = imgdl.decode(self.origin.bytes("opaque.png"))
        self.assertEqual(image.pixels[: image.stride * 10], whole.pixels[: image.stride * 10])

    def test_t31b_an_empty_file_is_no_picture_for_anyone(self):
        gate = self.origin.gate()
        url = self.origin.picture("opaque.png", empty=1, hold_head=1, gate=gate.name)
        with self.downloader() as downloader:
            tokens = [downloader.download(url) for _ in range(11)]
            gate.open()
            for token in tokens:
                self.assertCode(Code.BAD_IMAGE_DATA, token.result, PATIENCE)
        self.assertEqual(len(self.origin.requests("/pictures/opaque.png")), 1)

    def test_t07_requests_that_cannot_be(self):
        with self.downloader() as downloader:
            for code, url in (
                (Code.INVALID_URL, ""),
                (Code.INVALID_URL, "http://"),
                (Code.INVALID_URL, "http://host/\0hidden"),
                (Code.INVALID_URL, "http://host/\r\nX: y"),
                (Code.INVALID_URL, "http://host/\ud800"),
                (Code.UNSUPPORTED_SCHEME, "ftp://host/"),
                (Code.UNSUPPORTED_SCHEME, "file:///etc/passwd"),
            ):
                with self.subTest(url):
                    error = self.assertCode(code, downloader.download, url)
                    self.assertIsInstance(error, imgdl.InvalidArgument)
            for url in (None, b"http://host/", 7):
                with self.assertRaises(TypeError):
                    downloader.download(url)
            url = self.origin.base + "/echo"
            for code, options in (
                (Code.INVALID_HEADER, {"headers": {"X": "a\r\nb"}}),
                (Code.INVALID_HEADER, {"headers": {"X": "a\0b"}}),
                (Code.INVALID_HEADER, {"headers": {"X Y": "a"}}),
                (Code.INVALID_HEADER, {"method": "GET\0"}),
                (Code.INVALID_ARGUMENT, {"priority": "urgent"}),
                (Code.INVALID_ARGUMENT, {"priority": 5}),
                (Code.INVALID_ARGUMENT, {"total_timeout": 0}),
                (Code.INVALID_ARGUMENT, {"total_timeout": -1}),
                (Code.INVALID_ARGUMENT, {"total_timeout": float("nan")}),
                (Code.INVALID_ARGUMENT, {"max_body_bytes": 0}),
                (Code.INVALID_ARGUMENT, {"max_body_bytes": -1}),
                (Code.INVALID_ARGUMENT, {"pixel_format": "cmyk"}),
                (Code.INVALID_ARGUMENT, {"decode": False}),
            ):
                with self.subTest(options):
                    self.assertCode(code, downloader.download, url, **options)
            with self.assertRaises(imgdl.InvalidArgument):
                downloader.download(url, method="GET /")
            with self.assertRaises(TypeError):
                downloader.download(url, on_end=print)
            self.assertEqual(downloader.current_count, 0)
            downloader.wait_idle(0)
        self.assertEqual(self.origin.log["requests"], [])

    def test_downloaders_that_cannot_be(self):
        for code, options in (
            (Code.INVALID_ARGUMENT, {"max_concurrent": 0}),
            (Code.INVALID_ARGUMENT, {"max_concurrent": 10_001}),
            (Code.INVALID_ARGUMENT, {"max_concurrent": 1 << 32}),
            (Code.INVALID_ARGUMENT, {"order": "random"}),
            (Code.INVALID_ARGUMENT, {"decode_threads": 257}),
            (Code.INVALID_ARGUMENT, {"connect_timeout": -1}),
            (Code.INVALID_ARGUMENT, {"max_redirects": 101}),
            (Code.INVALID_HEADER, {"user_agent": "a\r\nb"}),
            (Code.INVALID_OPERATION, {"ca_file": "/nothing/here.pem"}),
        ):
            with self.subTest(options):
                self.assertCode(code, imgdl.Downloader, **options)

    def test_each_result_is_an_error_of_its_own(self):
        # One that is raised twice would gather tracebacks, and with them what the frames hold.
        with self.downloader() as downloader:
            token = downloader.download(self.origin.base + "/nothing")
            first = self.assertCode(Code.INVALID_STATUS, token.result, PATIENCE)
            self.assertIsNot(self.assertCode(Code.INVALID_STATUS, token.result, PATIENCE), first)

    def test_what_a_callback_raises(self):
        class Mine(Exception):
            pass

        def fail(token, received, expected):
            raise Mine("on purpose")

        seen = []
        gate = self.origin.gate()
        url = self.origin.picture("opaque.png", hold_after=1000, gate=gate.name)
        with self.downloader() as downloader, mock.patch.object(sys, "unraisablehook", seen.append):
            token = downloader.download(url, on_progress=fail)
            with self.assertRaises(Mine) as caught:
                token.result(PATIENCE)
            self.assertRaisesFrom("fail", Mine, token.result, PATIENCE)
        # The transfer was ended for it.
        self.assertOriginSees(abandoned=1)
        self.assertEqual([each.exc_value for each in seen], [caught.exception])
        seen.clear()

    def test_what_a_done_callback_raises(self):
        seen = []
        with self.downloader() as downloader, mock.patch.object(sys, "unraisablehook", seen.append):
            gate = self.origin.gate()
            token = downloader.download(self.origin.picture("opaque.png", hold_head=1, gate=gate.name))
            token.add_done_callback(lambda token: 1 / 0)
            called = []
            token.add_done_callback(called.append)
            gate.open()
            self.assertEqual(token.result(PATIENCE).width, 900)
            downloader.wait_idle(PATIENCE)
            self.assertEqual(called, [token])
        self.assertEqual([each.exc_type for each in seen], [ZeroDivisionError])
        seen.clear()


if __name__ == "__main__":
    unittest.main()
