"""Terminals that obey no escape sequence, and those that are to be left as they were."""
import os
import signal
import termios
import unittest

from program import ProgramTests

PRIMARY = b"\x1b[c"


class PlainTerminalTests(ProgramTests):
    def test_a_terminal_without_escape_sequences_gets_none(self):
        url = self.origin.picture("alpha.png")
        for environment in ({"TERM": "dumb"}, {"TERM": ""}, {"TERM": None}):
            gate = self.origin.gate()
            held = self.origin.picture("baseline.jpg", hold_after=1000, gate=gate.name)
            terminal = self.on_terminal("-o", "out/", url, held, environment=environment)
            terminal.read_until(b"alpha")
            self.assertTrue(gate.is_reached())
            gate.open()
            self.assertEqual(terminal.end(), 0)
            self.assertNotIn(b"\x1b", terminal.written)
            terminal = self.on_terminal("--show", url, environment=environment)
            self.assertEqual(terminal.end(), 2)
            self.assertIn(b"imgdl: --show: this terminal draws nothing", terminal.written)
            self.assertNotIn(b"\x1b", terminal.written)
        # It is drawn where it is asked for.
        terminal = self.on_terminal("--show=blocks", url, environment={"TERM": "dumb"})
        self.assertEqual(terminal.end(), 0)
        self.assertIn(b"\x1b[38;2;", terminal.written)

    def test_control_backslash_leaves_the_terminal_as_it_was(self):
        terminal = self.on_terminal("--show", self.origin.picture("alpha.png"))
        terminal.read_until(PRIMARY)  # it waits for the answer
        self.assertNotEqual(termios.tcgetattr(terminal.descriptor), terminal.settings)
        terminal.answer(b"\x1c")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(terminal.process, 0)[1]), -signal.SIGQUIT)
        terminal.process = None
        self.assertEqual(termios.tcgetattr(terminal.descriptor), terminal.settings)
        os.close(terminal.descriptor)


if __name__ == "__main__":
    unittest.main()
