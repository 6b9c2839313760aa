"""Checks of what describes a domain or a search."""

from __future__ import annotations

import math

import numpy as np

from epsilometer.errors import InputError


def check_number(name: str, value: object) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise InputError(f"{name}={value!r} must be a finite number")
    return float(value)


def check_positive(name: str, value: object) -> float:
    """A finite number above 0."""
    number = check_number(name, value)
    if number <= 0.0:
        raise InputError(f"{name}={value!r} must be above 0")
    return number


def check_whole(name: str, value: object, least: int, why: str = "") -> int:
    """A whole number of at least so much; `why` ends the message."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name}={value!r} must be a whole number")
    if value < least:
        raise InputError(f"{name}={value} must be at least {least}{why}")
    return int(value)


def check_interval(low: object, high: object) -> tuple[float, float]:
    """Two finite numbers, the first below the second."""
    ends = check_number("low", low), check_number("high", high)
    if not ends[0] < ends[1]:
        raise InputError(f"low={low!r} must be below high={high!r}: an interval of one value has no neighbours")
    return ends


def check_whole_interval(low: object, high: object) -> tuple[int, int]:
    """Two whole numbers, the first below the second; 10.0 is one."""
    ends = check_interval(low, high)
    if not all(end.is_integer() for end in ends):
        raise InputError(f"low={low!r} and high={high!r} must be whole numbers")
    return int(ends[0]), int(ends[1])
