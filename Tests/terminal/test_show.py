import base64
import re
import termios
import unittest

from program import ProgramTests, pictures, png

RED, GREEN, BLUE = [255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 255, 255]
CLEAR, HALF = [9, 9, 9, 0], [255, 255, 255, 128]

PRIMARY = b"\x1b[c"
KITTY_QUERY = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"


class ShowTests(ProgramTests):
    def setUp(self):
        super().setUp()
        (pictures() / "tiny.png").write_bytes(png(2, 3, [RED + GREEN, BLUE + BLUE, CLEAR + HALF]))
        self.tiny = self.origin.picture("tiny.png")

    def test_half_blocks_are_two_pixels_each(self):
        output, errors = self.run_program("--show=blocks", self.tiny)
        self.assertEqual(
            output.decode(),
            "\x1b[38;2;255;0;0;48;2;0;0;255m▀\x1b[38;2;0;255;0;48;2;0;0;255m▀\x1b[0m\r\n"
            "\x1b[38;2;0;0;0;49m▀\x1b[38;2;128;128;128;49m▀\x1b[0m\r\n")
        self.assertIn("tiny.png", errors)
        self.assertEqual(self.files(), [])  # it is shown, and not saved

    def test_transparent_pixels_are_drawn_over_the_background(self):
        output, _ = self.run_program("--show=blocks", "--background=#0000ff", self.tiny)
        self.assertIn("\x1b[38;2;0;0;255;49m▀\x1b[38;2;128;128;255;49m▀", output.decode())

    def test_256_colours_are_the_nearest_ones(self):
        output, _ = self.run_program("--show=blocks256", self.tiny)
        self.assertEqual(
            output.decode(),
            "\x1b[38;5;196;48;5;21m▀\x1b[38;5;46;48;5;21m▀\x1b[0m\r\n"
            "\x1b[38;5;16;49m▀\x1b[38;5;244;49m▀\x1b[0m\r\n")

    def test_automatic_is_by_the_colours_of_the_terminal(self):
        for environment, expected in (({"COLORTERM": "truecolor"}, b"38;2;"), ({"TERM": "xterm-direct"}, b"38;2;"),
                                      ({"TERM": "xterm-256color"}, b"38;5;")):
            output, _ = self.run_program("--show", self.tiny, environment=environment)
            self.assertIn(expected, output)

    def test_X6_pictures_are_scaled_to_the_terminal(self):
        output, _ = self.run_program("--show=blocks", self.origin.picture("baseline.jpg"),
                                     environment={"COLUMNS": "30", "LINES": "50"})
        lines = output.decode().split("\r\n")
        self.assertEqual([line.count("▀") for line in lines], [30] * 10 + [0])

    def kitty_chunks(self, output):
        chunks = re.findall(rb"\x1b_G([^;\x1b]*);([A-Za-z0-9+/=]*)\x1b\\", output)
        for control, payload in chunks:
            self.assertLessEqual(len(payload), 4096)
        for _, payload in chunks[:-1]:
            self.assertEqual(len(payload) % 4, 0)
        return [(dict(item.split(b"=") for item in control.split(b",")), payload) for control, payload in chunks]

    def test_kitty_gets_the_pixels_in_chunks(self):
        output, _ = self.run_program("--show=kitty", self.tiny)
        (control, payload), = self.kitty_chunks(output)
        self.assertEqual(base64.b64decode(payload), bytes(RED + GREEN + BLUE + BLUE + CLEAR + HALF))
        self.assertEqual({key: control[key] for key in (b"a", b"f", b"s", b"v", b"C", b"q", b"m")},
                         {b"a": b"T", b"f": b"32", b"s": b"2", b"v": b"3", b"C": b"1", b"q": b"2", b"m": b"0"})

        output, _ = self.run_program("--show=kitty", self.origin.picture("opaque.png"))
        chunks = self.kitty_chunks(output)
        self.assertGreater(len(chunks), 10)
        self.assertEqual([control[b"m"] for control, _ in chunks], [b"1"] * (len(chunks) - 1) + [b"0"])
        width, height = int(chunks[0][0][b"s"]), int(chunks[0][0][b"v"])
        self.assertEqual(len(base64.b64decode(b"".join(payload for _, payload in chunks))), width * height * 4)
        self.assertEqual(height, 22 * 16)

    def test_pictures_come_in_the_order_of_their_addresses_and_are_saved_where_asked(self):
        gate = self.origin.gate()
        first = self.origin.picture("tiny.png", hold_head=1, gate=gate.name)
        process = self.start("--show=blocks", "-o", "out/", first, self.origin.picture("opaque.png"))
        self.assertTrue(gate.is_reached())
        self.assertOriginSees(requests=2)
        gate.open()
        output, errors = process.communicate()
        self.assertTrue(output.startswith(b"\x1b[38;2;255;0;0;48"))
        self.assertEqual(self.files("out"), ["opaque.png", "tiny.png"])
        self.assertEqual(self.read("out/opaque.png"), self.origin.bytes("opaque.png"))
        lines = errors.decode().splitlines()
        self.assertRegex(lines[0], r"^out/tiny.png")
        self.assertRegex(lines[1], r"^out/opaque.png")

    def test_a_broken_picture_fails_and_the_next_one_is_drawn(self):
        broken = self.origin.picture("opaque.png", close_after=50, length="none")
        output, errors = self.run_program("--show=blocks", "--retries=0", broken, self.tiny, status=4)
        self.assertIn("imgdl: http://", errors)
        self.assertIn(b"38;2;255;0;0", output)


class ShowOnTerminalTests(ProgramTests):
    def setUp(self):
        super().setUp()
        (pictures() / "tiny.png").write_bytes(png(2, 3, [RED + GREEN, BLUE + BLUE, CLEAR + HALF]))
        self.tiny = self.origin.picture("tiny.png")

    def end(self, terminal, status=0):
        settings = terminal.settings
        after = termios.tcgetattr(terminal.descriptor)
        self.assertEqual(terminal.end(), status)
        self.assertEqual(after, settings)
        # Colours are reset, and the last line is below the picture.
        self.assertTrue(terminal.written.endswith(b"\r\n"))
        self.assertNotIn(b"\x1b[38", terminal.written[terminal.written.rindex(b"\x1b[0m") + 1:])

    def test_a_terminal_that_says_so_gets_kitty_graphics(self):
        terminal = self.on_terminal("--show", self.tiny)
        terminal.read_until(PRIMARY)
        self.assertIn(KITTY_QUERY, terminal.written)
        terminal.answer(b"\x1b_Gi=31;OK\x1b\\\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;c")
        self.assertEqual(terminal.end(), 0)
        self.assertIn(b"\x1b_Ga=T,f=32,s=2,v=3", terminal.written)

    def test_one_that_does_not_gets_half_blocks_over_its_own_background(self):
        terminal = self.on_terminal("--show", self.tiny)
        terminal.read_until(PRIMARY)
        terminal.answer(b"\x1b]11;rgb:ffff/0000/ffff\x07\x1b[?62;c")
        terminal.read_until(b"38;5;201;49m")
        self.end(terminal)

    def test_the_settings_come_back_when_it_is_interrupted_while_it_asks(self):
        terminal = self.on_terminal("--show", self.tiny)
        terminal.read_until(PRIMARY)
        terminal.answer(b"\x03")  # not an answer
        self.assertEqual(terminal.end(), 130)
        self.assertNotIn("▀".encode(), terminal.written)

    def test_what_says_in_its_environment_that_it_is_kitty_is_not_asked(self):
        terminal = self.on_terminal("--show", self.tiny, environment={"KITTY_WINDOW_ID": "1"})
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn(PRIMARY, terminal.written)
        self.assertIn(b"\x1b_Ga=T", terminal.written)

    def test_within_tmux_nothing_is_asked_and_blocks_are_drawn(self):
        terminal = self.on_terminal("--show", self.tiny, environment={"TMUX": "x", "KITTY_WINDOW_ID": "1"})
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn(b"\x1b_G", terminal.written)
        self.assertIn("▀".encode(), terminal.written)

    def test_B7_a_picture_that_arrives_is_drawn_over_what_was_there_of_it(self):
        gate = self.origin.gate()
        url = self.origin.picture("opaque.png", hold_after=200_000, gate=gate.name)
        terminal = self.on_terminal("--show=blocks", url, columns=30)
        terminal.read_until(b"\x1b[10A")  # the top of it, and the cursor is back there
        gate.open()
        self.end(terminal)
        self.assertGreaterEqual(terminal.written.count(b"\x1b[10A"), 2)
        self.assertEqual(terminal.written.count(b"\x1b[10B"), 1)

    def test_in_a_window_that_has_become_narrower_it_is_drawn_anew_below(self):
        gate = self.origin.gate()
        url = self.origin.picture("opaque.png", hold_after=200_000, gate=gate.name)
        terminal = self.on_terminal("--show=blocks", url, columns=30)
        start = len(terminal.read_until(b"\x1b[10A"))
        terminal.resize(20, 20)
        gate.open()
        terminal.read_until(b"\x1b[10B", start)
        self.end(terminal)
        last = terminal.written[terminal.written.index(b"\x1b[10B"):].decode()
        self.assertLessEqual(max(line.count("▀") for line in last.split("\r\n")), 20)

    def test_an_interrupt_leaves_the_terminal_as_it_was(self):
        gate = self.origin.gate()
        url = self.origin.picture("opaque.png", hold_after=200_000, gate=gate.name)
        terminal = self.on_terminal("--show=blocks", url, columns=30)
        terminal.read_until(b"\x1b[10A")
        terminal.answer(b"\x03")
        self.end(terminal, 130)


class BarTests(ProgramTests):
    def lines_of(self, text):
        return re.sub(rb"\x1b\[[0-9]*[A-Z]", b"", text).decode().split("\r\n")

    # Both have come to their gates, and nothing is drawn any more before these open.
    both = re.compile(rb"alpha.png[^\n]* 49 KiB of 369 KiB[^\n]*\n"
                      rb"opaque.png[^\n]* 49 KiB of 398 KiB[^\n]*\n"
                      rb"[^\n]*2 running[^\n]*\n")

    def test_several_bars_are_drawn_and_taken_away(self):
        gate = self.origin.gate()
        urls = [self.origin.picture(name, hold_after=50_000, gate=gate.name) for name in ("alpha.png", "opaque.png")]
        terminal = self.on_terminal("-o", "out", *urls, columns=100)
        terminal.read_until(self.both)
        self.assertRegex(terminal.written, rb"alpha.png +\[###+\.+\] 49 KiB")
        start = len(terminal.written)
        gate.open()
        self.assertEqual(terminal.end(), 0)
        self.assertTrue(terminal.written[start:].startswith(b"\x1b[3A\r\x1b[J"))
        self.assertIn("2 addresses: 2 done", self.lines_of(terminal.written)[-2])

    def test_no_line_is_wider_than_the_terminal_also_after_it_was_resized(self):
        gate = self.origin.gate()
        urls = [self.origin.picture(name, hold_after=50_000, gate=gate.name) for name in ("alpha.png", "opaque.png")]
        terminal = self.on_terminal("-o", "out", *urls, columns=60)
        terminal.read_until(self.both)
        drawn = [len(line) for line in self.lines_of(terminal.written)[-4:-1]]
        self.assertLess(max(drawn), 60)
        terminal.resize(24, 20)
        start = len(terminal.written)
        gate.open()
        self.assertEqual(terminal.end(), 0)
        # What was drawn before has been broken into more rows, and all of them are erased.
        rows = sum(-(-width // 24) for width in drawn)
        self.assertGreater(rows, 3)
        self.assertTrue(terminal.written[start:].startswith(b"\x1b[%dA\r\x1b[J" % rows))

    def test_a_terminal_of_few_rows_has_room_for_what_follows(self):
        gate = self.origin.gate()
        urls = [self.origin.picture("alpha.png", n=n, hold_after=50_000, gate=gate.name) for n in range(6)]
        terminal = self.on_terminal("-o", "out", *urls, columns=60, rows=5)
        terminal.read_until(re.compile(rb"(alpha.png[^\n]*\n){2}[^\n]*6 running"))
        gate.open()
        self.assertEqual(terminal.end(), 0)
        ups = [int(number) for number in re.findall(rb"\x1b\[([0-9]+)A", terminal.written)]
        self.assertLessEqual(max(ups), 4)

    def test_json_lines_on_the_same_terminal_are_not_erased(self):
        gate = self.origin.gate()
        held = self.origin.picture("opaque.png", hold_after=50_000, gate=gate.name)
        first = self.origin.picture("alpha.png", hold_after=50_000, gate=gate.name)
        terminal = self.on_terminal("--json", "-o", "out", first, held, columns=60)
        terminal.read_until(self.both)
        gate.open()
        self.assertEqual(terminal.end(), 0)
        for line in re.findall(rb"\{.*?\}\r\n", terminal.written):
            self.assertNotIn(b"\x1b", line)
        # Up goes as far as bars reach, and these are drawn anew below the line.
        self.assertIn(b"\x1b[3A\r\x1b[J{", terminal.written)

    def test_a_picture_s_bytes_are_not_written_to_a_terminal(self):
        terminal = self.on_terminal("-o", "-", self.origin.picture("alpha.png"))
        self.assertEqual(terminal.end(), 2)
        self.assertIn(b"standard output is a terminal: --show draws there", terminal.written)

    def test_quiet_has_no_bars(self):
        terminal = self.on_terminal("-q", "-o", "out/", self.origin.picture("alpha.png"))
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(terminal.written, b"")

    def test_without_a_terminal_lines_are_plain(self):
        _, errors = self.run_program(self.origin.picture("alpha.png"))
        self.assertEqual(errors, "alpha.png  369 KiB  png\n")

    def test_an_interrupt_takes_the_bars_away(self):
        gate = self.origin.gate()
        terminal = self.on_terminal(self.origin.picture("alpha.png", hold_after=50_000, gate=gate.name), columns=80)
        terminal.read_until(b"1 running")
        self.assertTrue(gate.is_reached())
        terminal.answer(b"\x03")
        self.assertEqual(terminal.end(), 130)
        self.assertIn(b"1 cancelled", terminal.written[terminal.written.rindex(b"\x1b[J"):])


if __name__ == "__main__":
    unittest.main()
