"""Nested events at one end of a score, with their frequencies in training draws."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.scores import LearnedScore
from epsilometer.methods.scores.learned import OUTSIDE
from epsilometer.outputs import Event, Partition


@dataclass(frozen=True, slots=True)
class NestedEvents:
    """Tails of growing size at one end of a score.

    Attributes:
        score: the score.
        upper: whether they are at the upper end.
        flipped: False when the left distribution should be the larger one.
        masses: shape (k,), ascending, the fraction of the scored draws in each event.
        p: shape (k,), frequencies under the larger distribution, by cross-fitted scores.
        q: shape (k,), under the other.
    """

    score: LearnedScore
    upper: bool
    flipped: bool
    masses: Floats
    p: Floats
    q: Floats

    @property
    def sizes(self) -> tuple[int, int]:
        """Training draws from the larger distribution and from the other."""
        left, right = self.score.sizes
        return (right, left) if self.flipped else (left, right)

    def event(self, place: int) -> Event:
        """The event of one size."""
        return self.score.tail_event(float(self.masses[place]), self.upper).simplified()

    def levels(self) -> tuple[Partition, Integers]:
        """Cells, and for each of them the first event that contains it; k if none does."""
        thresholds = np.array([self.score.threshold(mass, self.upper) for mass in self.masses])
        cuts, place_of_event = np.unique(thresholds, return_inverse=True)
        partition, level = self.score.cells(cuts)
        n_events = len(self.masses)
        # An event at the upper end holds the cells above its cut, one at the lower end those below.
        is_inside = (
            place_of_event[:, None] < level if self.upper else place_of_event[:, None] >= level
        )
        is_inside &= level != OUTSIDE
        first = np.where(is_inside.any(axis=0), is_inside.argmax(axis=0), n_events)
        return partition, np.asarray(first, dtype=np.int64)


def nested_events(scores: Sequence[LearnedScore], masses: Floats) -> list[NestedEvents]:
    """The tails of these sizes at each end of each score, in each direction that may be best.

    Args:
        scores: learned on training draws.
        masses: shape (k,), ascending.
    """
    nested = []
    for score in scores:
        for upper in (True, False):
            left, right = _frequencies(score, masses, upper)
            # A learned score grows with the odds of the left side. A number may do the opposite.
            directions = (False, True) if score.is_line else (not upper,)
            nested += [
                NestedEvents(
                    score=score,
                    upper=upper,
                    flipped=flipped,
                    masses=masses,
                    p=right if flipped else left,
                    q=left if flipped else right,
                )
                for flipped in directions
            ]
    return nested


def _frequencies(score: LearnedScore, masses: Floats, upper: bool) -> tuple[Floats, Floats]:
    """Frequencies of the tails in the left and in the right draws, by cross-fitted scores."""
    # The end in question becomes the upper one.
    left = np.sort(score.left if upper else -score.left)
    right = np.sort(score.right if upper else -score.right)
    pooled = np.sort(np.concatenate([left, right]))
    n = len(pooled)
    if not n:
        return np.zeros(len(masses)), np.zeros(len(masses))
    ranks = np.clip(n - np.round(masses * n).astype(np.int64), 0, n - 1)
    thresholds = pooled[ranks]
    n_left, n_right = score.sizes
    left_hits = len(left) - np.searchsorted(left, thresholds)
    right_hits = len(right) - np.searchsorted(right, thresholds)
    return left_hits / max(n_left, 1), right_hits / max(n_right, 1)
