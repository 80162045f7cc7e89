"""What the package owes: one end of each request, nothing after it, and nothing that was not asked for."""

import threading
import weakref

import imgdl
from calls import Mine, counted, judge, read
from chance import note, one_in, step, violation
from interrupts import Interrupt

# Of this round.
requests, batches = [], []
# What the package was given to call: it must be let go.
given = []


def give(thing):
    given.append((type(thing).__name__, weakref.ref(thing)))
    return thing


class _Owed:
    """One at a time."""

    def __init__(self, url):
        self.url = url
        # None until the call has returned; False: it was refused.
        self.is_accepted = None
        # Whether its functions may be lost, because an interrupt struck the call or what called them.
        self.is_struck = False
        self.ends = 0
        self.calls = 0
        self.has_raised = False
        # Whether its end is told to the player.
        self.is_told = True
        self.story = []
        self._busy = threading.Lock()
        self._token = lambda: None

    def tell(self, what):
        # So many are enough to see the order.
        if len(self.story) < 60:
            self.story.append(step(what))

    @property
    def token(self):
        return self._token()

    def accepted(self, token):
        """Half of them are held, and half may be garbage at any time."""
        self.is_accepted = True
        self._token = weakref.ref(token) if one_in(2) else lambda: token
        self.tell("accepted")

    def refused(self, problem):
        if isinstance(problem, imgdl.Error):
            self.is_accepted = False
        else:
            self.is_struck = True
        self.tell(f"raised {problem!r}")

    def enter(self, what):
        self.calls += 1
        self.tell(what)
        if not self._busy.acquire(blocking=False):
            violation(f"{what} begins while another function of it runs", self)
        if self.ends:
            violation(f"{what} comes after its end", self)
        if self.is_accepted is False:
            violation(f"{what} comes though it was refused", self)

    def leave(self):
        self._busy.release()

    def is_inside(self):
        return self._busy.locked()

    def is_owed(self):
        """Whether something is to come."""
        token = self.token
        if token is not None and not token.done() or self.is_inside():
            return True
        return bool(self.is_accepted and not self.is_struck and self.is_told and not self.ends)


class Session:
    """The model of a downloader."""

    # Whether it has, or had, hooks: they answer requests that name none.
    has_hooks = False


_sessions = weakref.WeakKeyDictionary()


def session(downloader):
    return _sessions.setdefault(downloader, Session())


class Request(_Owed):
    def __init__(self, address, is_of_struck_loop):
        super().__init__(address.url)
        self.address = address
        self.is_struck = is_of_struck_loop
        self.wants_body = False
        self.is_changed = False
        self.session = None
        # Of the player's second function, which may be taken back.
        self.added = self.removed = self.told = 0
        requests.append(self)

    def __repr__(self):
        return (f"request {self.url[:160]}: accepted {self.is_accepted}, struck {self.is_struck}, ends {self.ends}, "
                f"calls {self.calls}, {self.token!r}")

    def check_token(self, token, what):
        if not isinstance(token, imgdl.Token) or token.url != self.url:
            violation(f"{what} was given {token!r}", self)
        if self.token is None:
            self._token = weakref.ref(token)
        elif self.token is not token:
            violation(f"{what} was given another token: {token!r}", self)

    def done(self, token):
        """A done callback, and `on_done` of a batch."""
        self.ends += 1
        self.tell("end")
        if self.ends > 1:
            violation("a second end", self)
        if self.is_inside():
            violation("its end comes while a function of it runs", self)
        self.check_token(token, "the end")
        if not token.done():
            violation("its end comes and it is not done", self)
        self.check_outcome(token)

    def again(self, token):
        self.told += 1
        if not token.done():
            violation("a done callback, and it is not done", self)

    def check_outcome(self, token):
        note("Token.result at the end", self)
        try:
            result = token.result(0)
        except imgdl.Error as problem:
            judge("Token.result", problem, self)
            read(problem)
            if problem.code == imgdl.Code.WAIT_TIMEOUT:
                violation("it is done, and its result does not come at once", self, problem)
            if (problem.code == imgdl.Code.CANCELLED) != token.cancelled() and not self.has_raised:
                violation(f"cancelled() is {token.cancelled()}", self, problem)
        except Mine as problem:
            if not self.has_raised:
                violation("its result raises what no callback of it raised", self, problem)
        except Interrupt:
            pass
        else:
            counted("Token.result")
            self.check_result(result)

    def check_result(self, result):
        if self.wants_body:
            if not isinstance(result, imgdl.Body):
                violation(f"its result is {result!r}", self)
            is_changed = self.is_changed or self.session.has_hooks
            if self.address.whole is not None and not is_changed and bytes(result.view) != self.address.whole:
                violation(f"its body is another one, of {len(result)} bytes", self)
        elif not isinstance(result, imgdl.Image) or result.width < 1 or result.height < 1:
            violation(f"its result is {result!r}", self)

    def check(self):
        """When everything has ended."""
        token = self.token
        if token is not None and not token.done():
            violation("a request has no end: it is not done", self)
        if self.is_inside():
            violation("a function of it is still running", self)
        if self.is_accepted and not self.is_struck:
            if self.ends != 1:
                violation(f"a request has {self.ends} ends", self)
            if self.told != self.added - self.removed:
                violation(f"{self.added} done callbacks, {self.removed} taken back, {self.told} called", self)
        if self.is_accepted is False and self.ends:
            violation("a request that was refused has an end", self)


class Prefetch(_Owed):
    """A batch."""

    def __init__(self, count):
        super().__init__(f"{count} requests")
        self.count = count
        self.finished = 0
        self.tokens = 0
        self.has_on_done = False
        self.is_told = False
        batches.append(self)

    def __repr__(self):
        return (f"batch of {self.count}: accepted {self.is_accepted}, struck {self.is_struck}, ends {self.ends}, "
                f"finished {self.finished}, tokens {self.tokens}, {self.token!r}")

    def progressed(self, batch, progress):
        read(progress)
        if progress.total != self.count or not self.finished <= progress.finished <= self.count:
            violation(f"{progress!r} after {self.finished} of {self.count}", self)
        if progress.failed + progress.cancelled > progress.finished:
            violation(f"{progress!r}: more failed than finished", self)
        if progress.is_finished != (progress.finished == self.count):
            violation(f"{progress!r}", self)
        self.finished = progress.finished
        if self.token is not None and batch is not self.token:
            violation(f"another batch: {batch!r}", self)

    def check(self):
        batch = self.token
        if batch is not None and not batch.done():
            violation("a batch has no end", self)
        if self.is_accepted and not self.is_struck:
            if self.is_told and self.ends != 1:
                violation(f"a batch has {self.ends} ends", self)
            if self.has_on_done and self.tokens != self.count:
                violation(f"on_done was called for {self.tokens} of {self.count}", self)


def left():
    """Those that have not what they are owed, as far as that comes by itself."""
    return [each for each in requests + batches if each.is_owed()]


def forget():
    for each in requests + batches:
        each.check()
    requests.clear()
    batches.clear()
