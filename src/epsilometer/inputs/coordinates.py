"""What a search may choose, as numbers in [0, 1], and checks of the arguments that describe it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats
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
    """A whole number of at least `least`; `why` ends the message."""
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


RELATIONS = {
    "replace": "one record is another one",
    "add-remove": "one record is missing",
    "l1": "numbers differ by at most the sensitivity in all",
    "linf": "every number differs by at most the sensitivity",
}


def check_relation(relation: object, known: Sequence[str], domain: str) -> str:
    """One of the relations that a domain knows."""
    if relation in known:
        return str(relation)
    if relation not in RELATIONS:
        raise InputError(f"relation={relation!r} is unknown; known are {', '.join(map(repr, RELATIONS))}")
    raise InputError(f"relation={relation!r} makes no sense for {domain}, which has {', '.join(map(repr, known))}")


# A tenth of each coordinate stands for the lower end of its interval, a tenth for the upper one: the worst inputs of
# sums, means and counts lie at the ends, which random points of a continuum never hit.
ENDS = 0.1
# Shares of a signed coordinate: full steps down and up, no step, and what lies between.
_FULL, _NONE = 0.25, 0.2


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One thing that a search chooses.

    Attributes:
        levels: how many different values there are; None for a continuum.
        ordered: whether neighbouring levels are similar.
        signed: whether it stands for a step down, none, or up, instead of a value between two ends.
    """

    levels: int | None = None
    ordered: bool = True
    signed: bool = False

    def places(self, u: Floats) -> Floats:
        """Where numbers of [0, 1] lie for a model: they differ if and only if they stand for different values."""
        if not self.ordered:
            assert self.levels is not None  # names can be counted
            return np.minimum(np.floor(u * self.levels), self.levels - 1.0)
        if self.signed:
            return np.array([0.5 + 0.5 * signed_step(float(each)) for each in u])
        return np.clip((u - ENDS) / (1.0 - 2.0 * ENDS), 0.0, 1.0)

    def grid(self, most: int) -> Floats:
        """At most `most` points that stand for different values, both ends included; all levels if unordered."""
        if not self.ordered:
            assert self.levels is not None  # names can be counted
            return (np.arange(self.levels) + 0.5) / self.levels
        count = most if self.levels is None else min(most, self.levels)
        return np.linspace(ENDS, 1.0 - ENDS, count) if count > 1 else np.array([0.5])


def level_of(u: float, levels: int) -> int:
    """Which of `levels` equal pieces of [0, 1] a number lies in."""
    return min(int(u * levels), levels - 1)


def within(u: float, low: float, high: float) -> float:
    """A number between low and high, with a share of u for each end."""
    inside = min(max((u - ENDS) / (1.0 - 2.0 * ENDS), 0.0), 1.0)
    return high if inside == 1.0 else low + inside * (high - low)


def whole_within(u: float, low: int, high: int) -> int:
    """A whole number between low and high."""
    return min(math.floor(within(u, low, high) + 0.5), high)


def signed_step(u: float) -> float:
    """A number between −1 and 1, with shares of u for −1, for 0 and for 1."""
    away = abs(u - 0.5) - 0.5 * _NONE
    size = min(max(away / (0.5 - 0.5 * _NONE - _FULL), 0.0), 1.0)
    return math.copysign(size, u - 0.5)
