"""The size of a leak from which on an audit refutes it nine times in ten.

An audit is rehearsed with leaks of several kinds, each at many sizes. Every rehearsal has random
numbers of its own, the same at every size, so that it refutes from some size on: its threshold. The
power at a size is the probability of a threshold below it, so what is looked for is the 90 %
quantile of the thresholds, of the kind of leak that is hardest to find.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

# Rehearsals of every kind, by which the kind that is hardest to find is chosen.
FIRST_REHEARSALS = 3
# Rehearsals of that kind. The quantile has a standard error of 0.4 standard deviations of the
# thresholds, about an eighth of itself.
REHEARSALS = 12
# Each size is this much larger than the one before. A threshold is rounded up to one of them, by an
# eighth on average, which is as much as the quantile may be wrong.
STEP = 1.25
# The 90 % quantile of the normal distribution. Thresholds are nearly normal: they are what a count
# must exceed, in units of its standard error.
_QUANTILE = 1.2816

# Whether the rehearsal of this number refutes a leak of the size at this place.
Refutes = Callable[[int, int], bool]


def first_refuted(refutes: Callable[[int], bool], start: int, end: int) -> int:
    """The first place from which on a rehearsal refutes; `end` if there is none.

    Args:
        refutes: whether it refutes the size at a place, from some place on always.
        start: where to look first; what is near is found with few rehearsals.
        end: how many sizes there are.
    """
    start = min(start, end - 1)
    step = 1
    if refutes(start):
        low = start - 1
        high = start
        while low >= 0 and refutes(low):
            high = low
            low -= step
            step *= 2
        low = max(low, -1)
    else:
        low = start
        high = start + 1
        while high < end and not refutes(high):
            low = high
            high += step
            step *= 2
        high = min(high, end)
    return bisect_left(range(end), True, low + 1, high, key=refutes)


class Thresholds:
    """The thresholds of the rehearsals of one kind of leak.

    Attributes:
        places: the place of each threshold among the sizes; `len(sizes)` where no size is enough.
    """

    def __init__(self, refutes: Refutes, sizes: Sequence[float]) -> None:
        self.refutes = refutes
        self.sizes = sizes
        self.places: list[int] = []

    def rehearse(self, n_rehearsals: int, start: int) -> None:
        """Finds thresholds until there are this many, or until one is not reached by any size.

        Args:
            n_rehearsals: how many there are to be, earlier ones included.
            start: the place that is tried first, as long as no threshold is known.
        """
        while len(self.places) < n_rehearsals and not self.is_out_of_reach:
            number = len(self.places)
            near = int(np.median(self.places)) if self.places else start
            refutes = partial(self.refutes, number)
            self.places.append(first_refuted(refutes, near, len(self.sizes)))

    @property
    def is_out_of_reach(self) -> bool:
        """Whether not even the largest size is refuted by every rehearsal."""
        return len(self.sizes) in self.places

    @property
    def mean_place(self) -> float:
        """How hard to find leaks of this kind are."""
        return float(np.mean(self.places))

    def nine_in_ten(self) -> float:
        """The size that is refuted nine times in ten; infinite if none is."""
        if self.is_out_of_reach:
            return math.inf
        values = np.array([self.sizes[place] for place in self.places])
        quantile = float(values.mean() + _QUANTILE * values.std(ddof=1))
        # Learning may fail now and then, which makes a few thresholds far larger than all others.
        second_largest = float(np.sort(values)[-2])
        return max(quantile, second_largest)


def hardest_to_find(kinds: Sequence[Thresholds]) -> Thresholds:
    """The kind with the largest thresholds, rehearsed more often than the others."""
    start = 0
    for kind in kinds:
        if not kind.places:
            kind.rehearse(FIRST_REHEARSALS, start or len(kind.sizes) // 3)
        start = int(kind.mean_place)
    hardest = max(kinds, key=lambda kind: kind.mean_place)
    hardest.rehearse(REHEARSALS, start)
    return hardest
