"""Loops of asyncio, and moves that are coroutines."""

import asyncio
import contextlib

import addresses
import asking
import imgdl
import model
import rounds
import shelves
from addresses import TINY
from calls import EXPECTED, Mine, do, full_name, look, read, wait
from chance import dice, note, one_in, pick, violation
from downloads import a_downloader
from interrupts import Interrupt

_moves = []
_MOST_TASKS = 6


def coroutine_move(weight):
    def add(function):
        _moves.extend([function] * weight)
        return function

    return add


class Player:
    """One loop, with some tasks at any time."""

    def __init__(self, is_struck):
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(self._handle)
        self.is_struck = is_struck
        self.has_been_struck = self.is_turning = False
        if is_struck:
            asking.struck_loops.add(self.loop)

    def _handle(self, loop, context):
        problem = context.get("exception")
        if isinstance(problem, Interrupt):
            if "handle" in context:
                # Whom asyncio has called, and who is lost: as when asyncio.run is interrupted.
                self.has_been_struck = True
                loop.stop()
        elif not (isinstance(problem, asyncio.CancelledError) and "_GatheringFuture" in context["message"]):
            # That one is asyncio's own, when a wait_for of a gather is cancelled.
            violation(f"asyncio says: {context}", None, problem)

    async def _drive(self, goes_on):
        while goes_on():
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            if len(tasks) < _MOST_TASKS:
                task = self.loop.create_task(_play(pick(_moves)))
                task.add_done_callback(_check_task)
            elif one_in(3):
                # In an order that is not the one of addresses.
                pick(sorted(tasks, key=lambda task: int(task.get_name().rpartition("-")[2]))).cancel()
            await asyncio.sleep(pick((0, 0, 0.001, 0.005)))

    def turn(self, seconds):
        """For so long, unless it is struck; then all tasks are cancelled, as asyncio.run does it."""
        until = self.loop.time() + seconds
        driver = self.loop.create_task(self._drive(lambda: self.loop.time() < until))
        driver.add_done_callback(self._stop)
        self.has_been_struck, self.is_turning = False, True
        try:
            self.loop.run_forever()
        except Interrupt:
            self.has_been_struck = True
        finally:
            self.is_turning = False
        if self.has_been_struck:
            note("the loop was struck")
        return not self.has_been_struck

    def _stop(self, driver):
        # Also of a turn that was struck a moment before.
        if self.is_turning:
            self.loop.stop()

    def run(self, goes_on):
        """On a thread of its own, that nothing strikes."""
        asyncio.set_event_loop(self.loop)
        self._run_until(self.loop.create_task(self._drive(goes_on)))
        self.settle()

    def _run_until(self, future):
        """A callback may have been struck on another loop: the interrupt is its token's, for whoever awaits that, and asyncio gives
        one that a task ends with to who runs the loop, too."""
        while not future.done():
            with contextlib.suppress(Interrupt):
                self.loop.run_until_complete(future)

    def settle(self):
        """Cancels all tasks, which end."""
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._run_until(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())

    def close(self):
        # Loaders may have begun on it since.
        while asyncio.all_tasks(self.loop):
            self.settle()
        self.loop.close()
        asking.struck_loops.discard(self.loop)


async def _play(function):
    note(f"{function.__name__}:")
    try:
        await function()
    except EXPECTED + (Interrupt,):
        pass


def _check_task(task):
    problem = None if task.cancelled() else task.exception()
    if problem is not None and not isinstance(problem, EXPECTED + (Interrupt,)):
        violation(f"{task!r} ended with {problem!r}", None, problem)


def _loop():
    return asyncio.get_running_loop()


def _timeout():
    return pick((0, 0.01, 0.1, 0.3))


@coroutine_move(3)
async def get():
    downloader = a_downloader()
    if downloader is None:
        return
    owed, options = asking.new_request(_loop())
    # Nobody gets its token.
    with contextlib.suppress(ValueError):
        model.requests.remove(owed)
    result = await asyncio.wait_for(wait(lambda: downloader.get(owed.url, **options), "Downloader.get", owed), _timeout())
    asking.keep_result(result)


@coroutine_move(5)
async def await_token():
    downloader = a_downloader()
    if downloader is None:
        return
    token = asking.download(downloader, pick((_loop(), _loop(), None)))
    if one_in(4):
        return
    asking.keep_result(await asyncio.wait_for(wait(token, "Token await"), _timeout()))


@coroutine_move(2)
async def await_somebodys_token():
    token = shelves.pick("token")
    if token is not None:
        # Cancelling the task would cancel it.
        result = await asyncio.wait_for(wait(token, "Token await"), _timeout())
        asking.keep_result(result)


@coroutine_move(2)
async def await_many():
    downloader = a_downloader()
    if downloader is None:
        return
    tokens = [asking.download(downloader, _loop()) for _ in range(dice().randrange(1, 4))]
    way = dice().randrange(3)
    if way == 0:
        note("asyncio.wait")
        done, _ = await asyncio.wait([asyncio.ensure_future(_ended(token)) for token in tokens], timeout=0.1)
    elif way == 1:
        note("asyncio.gather")
        await asyncio.wait_for(asyncio.gather(*tokens, return_exceptions=True), 0.2)
    else:
        note("asyncio.as_completed")
        for each in asyncio.as_completed([_ended(token) for token in tokens], timeout=0.2):
            await each


async def _ended(token):
    with contextlib.suppress(imgdl.Error, Mine, Interrupt):
        await wait(token, "Token await")


@coroutine_move(4)
async def stream():
    downloader = a_downloader()
    if downloader is None:
        return
    options = addresses.request_options(asking.hooks, asking.coder)
    made = do(downloader, "stream", addresses.address().url, **options)
    token = look(made, "token")
    if one_in(4):
        del made  # cancels it
        return
    async with made if one_in(2) else contextlib.nullcontext():
        iterator = made.__aiter__()
        for _ in range(dice().choice((1, 3, 100))):
            try:
                image = await asyncio.wait_for(wait(lambda: iterator.__anext__(), "Stream next"), 0.2)
            except StopAsyncIteration:
                break
            asking.keep_result(image)
    if one_in(2):
        await wait(made.aclose(), full_name(made, "aclose"))
        if not token.done():
            violation("a stream was closed, and its token is not done")


@coroutine_move(3)
async def map_many():
    downloader = a_downloader()
    if downloader is None:
        return
    wanted = [addresses.address().url for _ in range(dice().randrange(5))]
    most = dice().choice((1, 100))
    found = 0
    async with contextlib.aclosing(do(downloader, "amap", wanted, ordered=one_in(2), total_timeout=0.2)) as tokens:
        async for token in tokens:
            if not token.done():
                violation(f"amap gave {token!r}")
            found += 1
            asking.read_outcome(token)
            if found >= most:
                break
        else:
            if found != len(wanted):
                violation(f"amap gave {found} of {len(wanted)}")


@coroutine_move(2)
async def await_batch():
    downloader = a_downloader()
    if downloader is None:
        return
    batch = asking.prefetch(downloader, pick((_loop(), None)))
    progress = await asyncio.wait_for(wait(batch, "Batch await"), pick((0.05, 0.3)))
    read(progress)
    if not progress.is_finished:
        violation(f"a batch was awaited: {progress!r}")


class SlowLoader:
    """Of a loop."""

    def __init__(self, loop):
        self.loop = loop

    def start(self, request, transfer):
        try:
            self.loop.call_soon_threadsafe(self.begin, transfer)
        except RuntimeError:
            # The loop is closed.
            raise Mine("closed") from None

    def begin(self, transfer):
        # Made where it begins: a loop that is closed before would leave a coroutine that nobody awaits.
        self.loop.create_task(self.send(transfer))

    async def send(self, transfer):
        with contextlib.suppress(imgdl.Error, Mine, Interrupt):
            do(transfer, "response", 200)
            for _ in range(3):
                await wait(transfer.abody(TINY + bytes(200_000)), "Transfer.abody")
            do(transfer, "end")


@coroutine_move(1)
async def register_loader():
    downloader = a_downloader()
    if downloader is not None:
        do(downloader, "register_transport", "own", model.give(SlowLoader(_loop())))


@coroutine_move(1)
async def close_downloader():
    downloader = shelves.take("downloader") if one_in(2) else None
    if downloader is not None:
        await wait(downloader.aclose(), full_name(downloader, "aclose"))


@coroutine_move(1)
async def with_downloader():
    """Of its own."""
    if rounds.living_downloaders() >= 6:
        return
    async with do(imgdl, "Downloader", allow_data_urls=True) as downloader:
        rounds.add_downloader(downloader)
        shelves.put("downloader", downloader)
        with contextlib.suppress(*EXPECTED):
            await asyncio.wait_for(wait(asking.download(downloader, _loop()), "Token await"), 0.1)
