"""A row of a picture says what comes of it: one thing, and of a picture its width."""
import importlib
import unittest
import unittest.mock

import answer
import libraries

FAMILIES = ("gif-", "jpeg-", "none-", "png-", "type-", "webp-")


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if "gif-plain" not in answer.ROWS:
            for name in ("gif_webp", "jpeg", "png"):
                importlib.import_module(f"answers.{name}")
        cls.rows = [row for row in answer.ROWS.values() if row.name.startswith(FAMILIES)]

    def test_one_code_each(self):
        self.assertGreater(len(self.rows), 300)
        for row in self.rows:
            for protocol in row.protocols:
                self.assertEqual(len(row.codes[protocol]), 1, row.name)

    def test_a_picture_has_a_width_and_an_error_none(self):
        for row in self.rows:
            is_picture = row.codes[answer.HTTP1] == ("IMGDL_OK",)
            self.assertEqual(row.width is not None, is_picture, row.name)

    def test_what_libraries_decide_are_rows_of_theirs(self):
        patterns = [pattern for decided in libraries.PICTURES.values() for each in decided.values() for pattern in each]
        names = list(libraries.rows_of(patterns))
        self.assertEqual(len(names), len(set(names)))
        self.assertFalse([name for name in names if name.startswith("gif-")])
        with self.assertRaisesRegex(AssertionError, "no answer is called jpeg-nothing"):
            list(libraries.rows_of(["jpeg-nothing-*"]))

    def test_another_release_of_a_library_is_given_room_and_ours_is_not(self):
        name = "jpeg-tables-missing"
        for release, room in ((lambda ours: ours, set()), (lambda ours: None, {"OK", "BAD_IMAGE_DATA", "TRUNCATED"})):
            before = {row: dict(row.others) for row in answer.ROWS.values()}
            with unittest.mock.patch.object(libraries, "release", release):
                libraries.decide_pictures()
            others = answer.ROWS[name].others.get(answer.HTTP1, ())
            gif = answer.ROWS["gif-no-table"].others
            for row, ours in before.items():
                row.others = ours
            self.assertEqual({code.removeprefix("IMGDL_").removeprefix("ERROR_") for code in others}, room)
            self.assertEqual(gif, {})


if __name__ == "__main__":
    unittest.main()
