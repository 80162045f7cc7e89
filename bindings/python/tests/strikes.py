"""Interrupts at every place in turn: what Ctrl-C does, and does not do by chance."""

import dis
import gc
import sys
import threading
import weakref

from support import PATIENCE

# Where Python 3.10 and later let the handlers of signals run: after what is called, at the end of a loop, and where a
# function begins.
_CHECKING = {
    code for name, code in dis.opmap.items() if name.startswith(("CALL", "JUMP_BACKWARD", "JUMP_ABSOLUTE")) or name == "RESUME"
}
_RESUME = dis.opmap.get("RESUME")
_FINALIZE = weakref.finalize.__call__.__code__
_REMOVE = weakref.WeakValueDictionary()._remove.__code__


class Striker:
    """A trace function that raises KeyboardInterrupt at the place of that number, in the functions that `is_meant` says,
    and in what they call: it gives True, False, or None for what the caller's answer is good for."""

    def __init__(self, number, is_meant=lambda code: True, spared=("__del__", "finalized", "_let_go")):
        self.left = number
        self.spared = (*spared, "_remove")
        self.is_meant = is_meant
        self.has_struck = False
        # What it returned last: Python 3.11 calls it without a reference of its own.
        self.traces = []

    def __call__(self, frame, event, argument):
        if self.has_struck or not self._is_place(frame):
            return None
        if _is_resumed(frame):
            # Python tells a trace of what follows this instruction, and not of the instruction.
            self.strike()
        frame.f_trace_opcodes = True
        trace = _Trace(self, frame.f_code)
        self.traces.append(trace)
        return trace

    def _is_place(self, frame):
        # Python loses exceptions in finalizers, and the package's keep them for later. Those of weak references are called
        # from C, by functions of weakref.
        answer = None
        while frame is not None and frame.f_code.co_filename != __file__:
            if frame.f_code.co_name in self.spared or frame.f_code in (_FINALIZE, _REMOVE):
                return False
            if answer is None:
                answer = self.is_meant(frame.f_code)
            frame = frame.f_back
        return bool(answer)

    def strike(self):
        if self.left == 0 and not self.has_struck:
            self.has_struck = True
            raise KeyboardInterrupt
        self.left -= 1


def _is_resumed(frame):
    """Whether a function begins, or a generator goes on, with a look for signals."""
    code, number = frame.f_code.co_code[frame.f_lasti : frame.f_lasti + 2] if frame.f_lasti >= 0 else (None, 0)
    return code is not None and code == _RESUME and number < 2


class _Trace:
    def __init__(self, striker, code):
        self.striker = striker
        self.instructions = code.co_code
        # Before 3.11 no instruction stands for the beginning.
        self.is_due = _RESUME is None and dis.opname[self.instructions[0]] != "SETUP_FINALLY"

    def __call__(self, frame, event, argument):
        if event == "opcode":
            code, number = self.instructions[frame.f_lasti : frame.f_lasti + 2]
            # What an await goes on with.
            is_checking = code in _CHECKING and not (code == _RESUME and number >= 2)
            is_due, self.is_due = self.is_due, is_checking
            if is_due:
                self.striker.strike()
        elif event == "exception":
            # After a call that raises, Python does not look.
            self.is_due = False
        return self


class _Monitor:
    """The same since 3.12, where Python tells a trace of no instruction until the next call, and monitors of each."""

    def __init__(self, striker):
        self.striker = striker
        self.thread = threading.get_ident()
        # Of functions that run, by their frames' addresses: whether Python looks before the next instruction.
        self.is_due = {}
        # By the code's address: codes that look alike are equal.
        self.instructions = {}
        events = sys.monitoring.events
        self.functions = {
            events.PY_START: self.begin,
            events.PY_RESUME: self.begin,
            events.PY_THROW: self.go_on,
            events.INSTRUCTION: self.step,
            events.RAISE: self.fail,
            events.PY_YIELD: self.end,
            events.PY_RETURN: self.end,
            events.PY_UNWIND: self.end,
        }

    def __enter__(self):
        sys.monitoring.use_tool_id(_TOOL, "strikes")
        for event, function in self.functions.items():
            sys.monitoring.register_callback(_TOOL, event, function)
        # Instructions are asked for where they are meant.
        sys.monitoring.set_events(_TOOL, sum(self.functions) - sys.monitoring.events.INSTRUCTION)

    def __exit__(self, *exception):
        sys.monitoring.set_events(_TOOL, 0)
        for code, _ in self.instructions.values():
            sys.monitoring.set_local_events(_TOOL, code, 0)
        for event in self.functions:
            sys.monitoring.register_callback(_TOOL, event, None)
        sys.monitoring.free_tool_id(_TOOL)

    def instruction(self, code, offset):
        _, instructions = self.instructions[id(code)]
        while instructions[offset] == _EXTENDED:
            offset += 2
        return instructions[offset], instructions[offset + 1]

    def begin(self, code, offset):
        frame = self.go_on(code, offset)
        # An await goes on without a look.
        if frame is not None and self.instruction(code, offset)[1] & 3 < 2:
            self.striker.strike()

    def go_on(self, code, offset, *exception):
        frame = sys._getframe(1)
        if frame.f_code is not code:
            frame = frame.f_back
        if threading.get_ident() != self.thread or self.striker.has_struck or not self.striker._is_place(frame):
            return None
        if id(code) not in self.instructions:
            self.instructions[id(code)] = code, code.co_code
            sys.monitoring.set_local_events(_TOOL, code, sys.monitoring.events.INSTRUCTION)
        self.is_due[id(frame)] = False
        return frame

    def step(self, code, offset):
        key = id(sys._getframe(1))
        if key in self.is_due:
            is_due, self.is_due[key] = self.is_due[key], self.instruction(code, offset)[0] in _LOOKING
            if is_due:
                self.striker.strike()

    def fail(self, code, offset, exception):
        # After a call that raises, Python does not look.
        key = id(sys._getframe(1))
        if key in self.is_due:
            self.is_due[key] = False

    def end(self, code, offset, *result):
        self.is_due.pop(id(sys._getframe(1)), None)


_TOOL = 4
_EXTENDED = dis.opmap["EXTENDED_ARG"]
_LOOKING = {dis.opmap.get(name) for name in ("CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD")}


class _Tracer:
    def __init__(self, striker):
        self.striker = striker

    def __enter__(self):
        sys.settrace(self.striker)

    def __exit__(self, *exception):
        sys.settrace(None)


def struck(action, number, *how, **also):
    """Calls the action and strikes it there. Whether it came so far; and what it raised."""
    striker = Striker(number, *how, **also)
    problem = None
    # A finalizer that runs by chance would be struck, or not.
    gc.disable()
    try:
        with (_Monitor if sys.version_info >= (3, 12) else _Tracer)(striker):
            action()
    except BaseException as exception:
        problem = exception
    finally:
        gc.enable()
    return striker.has_struck, problem


def ends(function):
    """Whether it returns on a thread of its own."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(PATIENCE / 6)
    return not thread.is_alive()
