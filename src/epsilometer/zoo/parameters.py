"""Checks of the parameters that a zoo mechanism is made with: nonsense is an InputError with one clear line."""

from __future__ import annotations

import math

from epsilometer.claims.base import as_number
from epsilometer.errors import InputError

Parameter = float | int | str

# e^(-50) per query times the ten queries of a sparse vector is still a float; no sample could tell more than that.
GREATEST_EPSILON = 50.0


def check_epsilon(value: float) -> float:
    """An epsilon that a mechanism can be calibrated to."""
    return check_positive("epsilon", value, GREATEST_EPSILON)


def check_positive(name: str, value: float, most: float = math.inf) -> float:
    """A finite number above 0 and at most `most`."""
    number = as_number(name, value)
    if not 0 < number <= most or math.isinf(number):
        limit = "" if math.isinf(most) else f" and at most {most:g}"
        raise InputError(f"{name}={value!r} makes no sense here: it must be a finite number above 0{limit}")
    return number


def check_number(name: str, value: float) -> float:
    """A finite number."""
    number = as_number(name, value)
    if math.isinf(number):
        raise InputError(f"{name}={value!r} makes no sense here: it must be a finite number")
    return number


def check_delta(value: float) -> float:
    """A delta above 0 and below 1/2."""
    number = as_number("delta", value)
    if not 0 < number < 0.5:
        raise InputError(f"delta={value!r} makes no sense here: it must be above 0 and below 0.5")
    return number


def check_whole(name: str, value: int, least: int, most: int) -> int:
    """A whole number from `least` to `most`."""
    number = as_number(name, value)
    if not least <= number <= most or not number.is_integer():
        raise InputError(f"{name}={value!r} makes no sense here: it must be a whole number from {least} to {most}")
    return int(number)


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """One of the allowed words."""
    if value not in allowed:
        raise InputError(f"{name}={value!r} is unknown; allowed are {', '.join(allowed)}")
    return value


def check_share(name: str, value: float) -> float:
    """A probability above 0 and at most 1."""
    return check_positive(name, value, 1.0)
