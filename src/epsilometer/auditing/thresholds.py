"""The size of a leak from which on an audit refutes it nine times in ten.

This is for outputs that one input alone gives: whether an audit learns them is a matter of luck, so
that every size takes learning of its own. (For leaks that every audit learns, see
`epsilometer.auditing.rehearsals`.)

An audit is rehearsed with leaks of several kinds, each at many sizes. Every rehearsal has random
numbers of its own, the same at every size, so that it refutes from some size on: its threshold. The
power at a size is the probability of a threshold below it, so what is looked for is the 90 %
quantile of the thresholds, of the kind of leak that is hardest to find.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from epsilometer.auditing.rehearsals import first_true

# Rehearsals of every kind, by which the kind that is hardest to find is chosen.
FIRST_REHEARSALS = 3
# Rehearsals of that kind. The quantile has a standard error of 0.4 standard deviations of the
# thresholds, about an eighth of itself.
REHEARSALS = 12
# The 90 % quantile of the normal distribution. Thresholds are nearly normal: they are what a count
# must exceed, in units of its standard error.
_QUANTILE = 1.2816

# Whether the rehearsal of this number refutes a leak of the size at this place.
Refutes = Callable[[int, int], bool]


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
            self.places.append(first_true(refutes, near, len(self.sizes)))

    @property
    def is_out_of_reach(self) -> bool:
        """Whether not even the largest size is refuted by every rehearsal."""
        return len(self.sizes) in self.places

    @property
    def mean_place(self) -> float:
        """How hard to find leaks of this kind are."""
        return float(np.mean(self.places))

    def refutes_wherever(self, other: "Thresholds") -> bool:
        """Whether every rehearsal of the other kind has a threshold that is enough here, too."""
        return all(
            place < len(self.sizes) and self.refutes(number, place)
            for number, place in enumerate(other.places)
        )

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
    """The kind with the largest thresholds, rehearsed more often than the others.

    Rehearsals of one number have the same random numbers for every kind. So a kind is no harder to
    find if it is refuted wherever the hardest one so far is.
    """
    hardest, *others = kinds
    hardest.rehearse(FIRST_REHEARSALS, len(hardest.sizes) // 3)
    for kind in others:
        if kind.refutes_wherever(hardest):
            continue
        kind.rehearse(FIRST_REHEARSALS, int(hardest.mean_place))
        if kind.mean_place > hardest.mean_place:
            hardest = kind
    hardest.rehearse(REHEARSALS, int(hardest.mean_place))
    return hardest
