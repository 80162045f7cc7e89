"""Checks of what the caller gave against what it must be: each message names it."""

from __future__ import annotations

import itertools
import math
import operator
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

from . import _once
from .errors import Code, error

_once.refuse_reload(globals())


def integer(value: int, what: str) -> int:
    """A plain int: products of other types, as numpy's, may wrap."""
    try:
        return int(operator.index(value))
    except TypeError:
        raise TypeError(f"{what} must be an integer, not {type(value).__name__}") from None


def number(value: Any, what: str, kind: str = "a number") -> Any:
    """The same, which can be compared with numbers; for every NaN that of float: decimal's raises where it is compared."""
    try:
        is_one = bool(value < 0 or value >= 0)
    except ArithmeticError:
        is_one = False
    except (TypeError, ValueError):
        # An array compares, but has no answer.
        raise TypeError(f"{what} must be {kind}, not {type(value).__name__}") from None
    return value if is_one else math.nan


def real(value: Any, what: str) -> float:
    """A number that goes into a double; infinity for what is too large."""
    given = number(value, what)
    try:
        return float(given)
    except OverflowError:
        return math.inf if given > 0 else -math.inf


def is_boolean(value: Any) -> bool:
    """Also of numpy, whose own type is no bool. Where it is not imported, nobody has one."""
    return isinstance(value, (bool, getattr(sys.modules.get("numpy"), "bool_", bool)))


def boolean(value: bool, what: str, hint: str = "") -> bool:
    """Nothing else that Python takes for true or false: the "no" of a settings' file is true."""
    if not is_boolean(value):
        raise TypeError(f"{what} must be True or False, not {type(value).__name__}{hint}")
    return bool(value)


def string(value: str, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be str, not {type(value).__name__}")
    return value


def buffer(value: Any, what: str, kind: str = "bytes or another buffer") -> memoryview:
    try:
        return memoryview(value)
    except TypeError:
        raise TypeError(f"{what} must be {kind}, not {type(value).__name__}") from None


def several(values: Iterable[Any], what: str, kind: str) -> list[Any]:
    try:
        iterator = iter(values)
    except TypeError:
        raise TypeError(f"{what} must be {kind}, not {type(values).__name__}") from None
    return list(iterator)


def pair(value: Any) -> Optional[tuple[Any, Any]]:
    """The two that it holds; None where it is no pair, as the characters of a string are none."""
    if isinstance(value, (str, bytes, bytearray)):
        return None
    try:
        iterator = iter(value)
    except TypeError:
        return None
    # An error of the iterator's is the value's own.
    both = tuple(itertools.islice(iterator, 3))
    return (both[0], both[1]) if len(both) == 2 else None


def choice(value: Union[str, int], names: Mapping[str, int], what: str) -> int:
    if isinstance(value, str):
        if value in names:
            return names[value]
        raise error(Code.INVALID_ARGUMENT, f"{what} is {value!r}: none of {', '.join(names)}")
    # True is the number of some choice, and means none.
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be one of {', '.join(names)}, not {type(value).__name__}")
    number = integer(value, what)
    if number not in names.values():
        raise error(Code.INVALID_ARGUMENT, f"{what} is {number}: none of {', '.join(names)}")
    return number
