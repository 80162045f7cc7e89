"""What the caller gave, told apart from what it must be: each message names it."""

from __future__ import annotations

import math
import operator
from typing import Any


def integer(value: int, what: str) -> int:
    try:
        return operator.index(value)
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
