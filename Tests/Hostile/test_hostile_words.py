"""What the adversary demands of messages: a message that names nothing fails, and so does a row without words."""
import unittest

import answer

URL = "http://127.0.0.1:80/hostile/x-404?pieces=…"


class Words(unittest.TestCase):
    def setUp(self):
        self.addCleanup(lambda: answer.ROWS.pop("x", None))

    def row(self, code, **bounds):
        return answer.reply("x", code, **bounds)

    def lacks(self, code, cause, status=0, **bounds):
        answer.ROWS.pop("x", None)
        row = self.row(code, **bounds)
        return row.lacks(answer.HTTP1, f"IMGDL_ERROR_{code}", f"{URL}: {cause}", "in general", {"status": status})

    def test_a_message_without_a_cause(self):
        self.assertTrue(answer.WORDS)
        for code in answer.WORDS:
            for cause in ("", " ", "in general", "Failure when receiving data from the peer", "Transferred a partial file"):
                self.assertTrue(self.lacks(code, cause), f"{code} {cause}")

    def test_a_message_without_the_url(self):
        self.assertTrue(self.row("PROTOCOL").lacks(answer.HTTP1, "IMGDL_ERROR_PROTOCOL", "chunks: no size", "", {}))

    def test_words_of_a_code(self):
        for code, cause, holds in (
                ("BODY_LIMIT", "the body is larger, the limit is 268435456 bytes", True),
                ("BODY_LIMIT", "the body is larger", False), ("BODY_LIMIT", "the body is larger, the limit is 5 bytes", False),
                ("INVALID_STATUS", "the server answered 404", True), ("INVALID_STATUS", "the server answered", False),
                ("TRUNCATED", "the body ends after 30 of 60 bytes", True), ("TRUNCATED", "the body ends too early", False),
                ("BAD_IMAGE_DATA", "the PNG has no pixels", True), ("BAD_IMAGE_DATA", "a frame has no pixels", False),
                ("TOO_MANY_REDIRECTS", "more than 10 redirects: the next would lead to http://a/", True),
                ("TOO_MANY_REDIRECTS", "more than 9 redirects: the next would lead to http://a/", False),
                ("PROTOCOL", "the response's header cannot be read: Header without colon", True),
                ("PROTOCOL", "the response's header cannot be read: Weird server reply", False),
                ("CONNECT_FAILED", "Failed to connect to a port 1 after 0 ms: Couldn't connect to server", True),
                ("IDLE_TIMEOUT", "the server sent nothing of the answer for 2000 ms", True),
                ("IDLE_TIMEOUT", "the server sent nothing of the answer", False)):
            self.assertEqual(not self.lacks(code, cause, status=404), holds, f"{code} {cause}")

    def test_words_of_a_row_are_not_those_of_its_url(self):
        self.assertTrue(self.lacks("PROTOCOL", "the response's header cannot be read: x", says="404"))
        self.assertFalse(self.lacks("PROTOCOL", "the response's header cannot be read: 404", says="404"))

    def test_a_row_without_words(self):
        answer.require_words([self.row(("OK", "PROTOCOL"))])
        answer.ROWS.pop("x")
        with self.assertRaisesRegex(AssertionError, "x: .* no words for IMGDL_ERROR_INTERNAL"):
            answer.require_words([self.row(("OK", "INTERNAL"))])


if __name__ == "__main__":
    unittest.main()
