"""Calls of the package: each is noted and counted, and what it raises is held against what it may raise."""

import asyncio
import collections
import inspect
import types

import imgdl
from chance import note, violation
from imgdl import Code

# How often each public name was played, with something that it could work with.
played = collections.Counter()


class Mine(Exception):
    """What callbacks of the player raise."""


# Whatever is called: not a defect of the call, but of what it was given.
_CLOSED = {Code.SHUT_DOWN, Code.INVALID_HANDLE}
_WAITS = {Code.WAIT_TIMEOUT, Code.WOULD_DEADLOCK}
# No request and no call may end with these.
_NEVER = {Code.INTERNAL, Code.OUT_OF_MEMORY, Code.FORKED}
_ARGUMENTS = {Code.INVALID_URL, Code.INVALID_HEADER, Code.INVALID_ARGUMENT, Code.UNSUPPORTED_SCHEME, Code.UNSUPPORTED_OPTION}
# Where a result is given, anything that a request may end with.
_ENDS = {code for code in Code} - _NEVER - {Code.OK, Code.WOULD_DEADLOCK, Code.WAIT_TIMEOUT, Code.NOT_READY, Code.SHUT_DOWN}
_DECODING = {code for code in Code if code.name.endswith("_LIMIT")} | {
    Code.BAD_IMAGE_DATA, Code.TRUNCATED, Code.DECODE_TIMEOUT, Code.INVALID_ARGUMENT, Code.INVALID_OPERATION, Code.FLOOD}
_DISK = {Code.CACHE_BUSY, Code.DISK_FULL, Code.READ_ONLY, Code.DISK_FAILED}

_RULES = {
    "get": _ENDS | _WAITS | _ARGUMENTS,
    "Token.result": _ENDS | _WAITS,
    "Token.exception": _WAITS,
    "Token await": _ENDS | _WAITS,
    "Batch.wait": _WAITS,
    "Batch await": _WAITS,
    "Downloader.get": _ENDS | _WAITS | _ARGUMENTS | {Code.INVALID_OPERATION},
    "Downloader.download": _ARGUMENTS | {Code.INVALID_OPERATION},
    "Downloader.stream": _ARGUMENTS | {Code.INVALID_OPERATION},
    "Downloader.prefetch": _ARGUMENTS | {Code.INVALID_OPERATION},
    "Downloader.map": _ARGUMENTS | _WAITS | {Code.INVALID_OPERATION},
    "Downloader.amap": _ARGUMENTS | _WAITS | {Code.INVALID_OPERATION},
    "Downloader.wait_idle": _WAITS,
    "Stream next": _ENDS | _WAITS,
    "Downloader": {Code.INVALID_ARGUMENT},
    "Downloader.invalidate": {Code.INVALID_OPERATION},
    "Downloader.set_header": _ARGUMENTS,
    "Downloader.header": _ARGUMENTS,
    "Downloader.reconfigure": {Code.INVALID_ARGUMENT, Code.INVALID_OPERATION},
    "Downloader.register_transport": {Code.INVALID_ARGUMENT, Code.UNSUPPORTED_SCHEME},
    "decode": _DECODING,
    "Decoder": {Code.INVALID_ARGUMENT},
    "Decoder.feed": _DECODING,
    "Decoder.partial": _DECODING,
    "Decoder.info": _DECODING,
    "Decoder.finish": _DECODING,
    "Image.create": {Code.INVALID_ARGUMENT},
    "Cache": _DISK,
    "Cache.flush": _DISK,
    "Cache.clear": _DISK,
    "Cache.remove": _DISK | _ARGUMENTS,
    "Cache.remove_older": _DISK,
    "Cache.query": _DISK | _ARGUMENTS,
    "Cache.statistics": _DISK,
    # In another order than theirs.
    "Transfer.body": {Code.NOT_READY, Code.INVALID_OPERATION},
    "Transfer.abody": {Code.NOT_READY, Code.INVALID_OPERATION},
    "Transfer.try_body": {Code.INVALID_OPERATION},
    "Transfer.end": {Code.INVALID_ARGUMENT, Code.INVALID_OPERATION},
    "Transfer.response": _ARGUMENTS | {Code.INVALID_OPERATION},
    "Continuation.with_request": _ARGUMENTS,
    "Continuation.with_response": _ARGUMENTS,
    "Continuation.with_data": _ARGUMENTS,
    "Continuation.with_credentials": _ARGUMENTS,
    "Continuation.refused": _ARGUMENTS,
    "Continuation.unchanged": _ARGUMENTS,
}


def full_name(owner, name):
    if isinstance(owner, types.ModuleType):
        return name
    kind = owner if isinstance(owner, type) else type(owner)
    # Where it is said: a subclass has it from there.
    for base in kind.__mro__:
        if name in vars(base):
            kind = base
            break
    return f"{kind.__name__}.{name}"


def judge(name, problem, about=None):
    """Whether an `Error` is one that this may raise."""
    try:
        code = Code(problem.code)
    except ValueError:
        # A loader or a hook may end a transfer with any number.
        code = None
    if code == Code.INTERNAL and "the codec answered" in problem.message:
        # One of the player's, which raised what is no `Error`.
        return
    if code in _NEVER:
        violation(f"{name} raised {problem!r}", about, problem)
    if code is None or code in _CLOSED or code in _RULES.get(name, ()):
        return
    violation(f"{name} raised {problem!r}, which it may not", about, problem)



def counted(name, problem=None):
    if problem is None or problem.code not in _CLOSED and problem.code != Code.WOULD_DEADLOCK:
        played[name] += 1


def do(owner, name, *arguments, about=None, **options):
    """Calls it."""
    full = full_name(owner, name)
    note(full, about)
    try:
        result = getattr(owner, name)(*arguments, **options)
    except imgdl.Error as problem:
        counted(full, problem)
        judge(full, problem, about)
        raise
    counted(full)
    return result


def look(owner, name, about=None):
    """Reads a property."""
    full = full_name(owner, name)
    note(full, about)
    try:
        value = getattr(owner, name)
    except imgdl.Error as problem:
        judge(full, problem, about)
        raise
    counted(full)
    return value


def put(owner, name, value):
    full = full_name(owner, name)
    note(f"{full} = {value}")
    try:
        setattr(owner, name, value)
    except imgdl.Error as problem:
        judge(full, problem)
        raise
    counted(full)


async def wait(awaitable, name, about=None):
    """Awaits it, or what it makes: a coroutine that nobody awaits would be a warning."""
    note(name, about)
    try:
        result = await (awaitable() if isinstance(awaitable, types.FunctionType) else awaitable)
    except imgdl.Error as problem:
        counted(name, problem)
        judge(name, problem, about)
        raise
    counted(name)
    return result


def read(value):
    """All that a value of the package has: its fields and properties."""
    for kind in type(value).__mro__:
        if not kind.__module__.startswith("imgdl"):
            continue
        for name in fields(kind):
            getattr(value, name)
            played[f"{kind.__name__}.{name}"] += 1
        played[kind.__name__] += 1
    repr(value)
    return value


def fields(kind):
    """What values of the kind have, but for what is called."""
    own = {name for name, member in vars(kind).items() if inspect.isdatadescriptor(member)}
    return sorted(name for name in own | set(vars(kind).get("__annotations__", {})) | set(vars(kind).get("_fields", ()))
                  if not name.startswith("_"))


# What ends a move without being a defect, besides errors of the package, which are judged where they are raised.
EXPECTED = (imgdl.Error, Mine, asyncio.CancelledError, TimeoutError)
