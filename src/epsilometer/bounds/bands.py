"""Many events at once: a simultaneous confidence band for the trade-off curve of two distributions.

Each event E gives a lower bound on P(E) and an upper bound on Q(E). All of them hold together (by
the union bound), so that any claim, at any of its parameters, may be read off the band afterwards
without spending again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.bounds.binomial import Counts, lower, upper
from epsilometer.bounds.budget import check_failure_probability
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, GaussianDP
from epsilometer.errors import InputError

# The fraction of an event's error share that is spent on P(E), unless the caller says otherwise.
_DEFAULT_LEFT_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Band:
    """Bounds P(E) ≥ `p_lower` and Q(E) ≤ `q_upper` for some events, all at once.

    Attributes:
        p_lower: one bound per event.
        q_upper: one bound per event, in the same order.

    Guarantee: whatever is read off holds with the confidence of the band, all readings together.
    """

    p_lower: tuple[float, ...]
    q_upper: tuple[float, ...]

    def value(self, claim: Claim) -> float:
        """Returns the largest value of the claim's parameter that some event refutes; 0 if none."""
        largest = 0.0
        for p_lower, q_upper in zip(self.p_lower, self.q_upper, strict=True):
            if p_lower > q_upper:
                largest = max(largest, claim.least_value(p_lower, q_upper))
        return largest

    def epsilon(self, delta: float) -> float:
        """Returns a lower bound on ε at this δ, in the worse direction."""
        return self.value(ApproxDP(epsilon=0.0, delta=delta))

    def delta(self, epsilon: float) -> float:
        """Returns a lower bound on δ at this ε, in the worse direction."""
        return self.value(ApproxDeltaDP(epsilon=epsilon, delta=0.0))

    @property
    def mu(self) -> float:
        """A lower bound on μ."""
        return self.value(GaussianDP(0.0))

    def power(self, q: float) -> float:
        """Returns a lower bound on the power of the best test at type-I error q.

        It is the larger of the two directions. Between two events it is the power of a randomised
        test that uses one or the other.
        """
        if not 0.0 <= q <= 1.0:
            raise InputError(f"q={q!r} must lie between 0 and 1: it is a type-I error")
        # Shape (events, 2): type-I error and power of the test that rejects Q on the event.
        points = np.array([self.q_upper, self.p_lower]).T
        # The test that rejects P on the complement: its type-I error is at most 1 − p_lower, its
        # power at least 1 − q_upper.
        reversed_points = 1.0 - points[:, ::-1]
        power = float(np.interp(q, *hull(points)))
        reversed_power = float(np.interp(q, *hull(reversed_points)))
        return max(power, reversed_power)


def band_from_counts(  # noqa: PLR0917  # in the order of all bounds: counts, then the failure
    left_hits: Sequence[int],
    n_left: int,
    right_hits: Sequence[int],
    n_right: int,
    failure_probability: float,
    left_shares: Sequence[float] | None = None,
) -> Band:
    """Returns the band of K events from their counts.

    Each event has the error share failure_probability/K, split between its two exact bounds.

    Args:
        left_hits: hits of each event among the draws of P.
        n_left: draws of P.
        right_hits: hits of each event among the draws of Q.
        n_right: draws of Q.
        failure_probability: what is spent on all events together.
        left_shares: for each event the fraction of its error share that is spent on P(E); ½ by
            default.

    Guarantee: exact, if the events and the shares were fixed before the counts were drawn.
    """
    n_events = len(left_hits)
    error_share = check_failure_probability(failure_probability) / max(n_events, 1)
    if left_shares is None:
        left_shares = [_DEFAULT_LEFT_SHARE] * n_events
    p_lower = []
    q_upper = []
    for left_hit, right_hit, left_share in zip(left_hits, right_hits, left_shares, strict=True):
        left = Counts(hits=int(left_hit), trials=n_left)
        right = Counts(hits=int(right_hit), trials=n_right)
        p_lower.append(lower(left, error_share * left_share))
        q_upper.append(upper(right, error_share * (1.0 - left_share)))
    return Band(p_lower=tuple(p_lower), q_upper=tuple(q_upper))


class Hull(NamedTuple):
    """The corners of a concave curve, each array of shape (corners,), x ascending."""

    x: Floats
    y: Floats


def hull(points: Floats) -> Hull:
    """Returns the least concave curve from (0, 0) to (1, 1) that is above all points.

    Args:
        points: shape (k, 2).
    """
    vertices = {(0.0, 0.0), (1.0, 1.0)}
    vertices.update((float(x), float(y)) for x, y in points)
    corners: list[tuple[float, float]] = []
    # Andrew's monotone chain, for the upper half.
    for vertex in sorted(vertices):
        while len(corners) > 1 and _is_below(corners[-2], corners[-1], vertex):
            corners.pop()
        corners.append(vertex)
    coordinates = np.array(corners)
    # The curve never falls; this removes what rounding may have left.
    return Hull(x=coordinates[:, 0], y=np.maximum.accumulate(coordinates[:, 1]))


def _is_below(
    first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]
) -> bool:
    """Whether the middle point is on or below the line from the first to the last one."""
    return (middle[0] - first[0]) * (last[1] - first[1]) >= (middle[1] - first[1]) * (
        last[0] - first[0]
    )
