"""Many events at once: a simultaneous band under the trade-off curve of two distributions.

Each event E gives a lower bound on P(E) and an upper bound on Q(E). All of them hold together, so
any claim, at any of its parameters, may be read off the band afterwards without paying again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from epsilometer.arrays import Floats, Integers
from epsilometer.bounds.binomial import Counts, check_failure_probability, lower, upper
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, GaussianDP
from epsilometer.errors import InputError


@dataclass(frozen=True, slots=True)
class Band:
    """P(E) ≥ `p_lower` and Q(E) ≤ `q_upper` for some events, all at once.

    Attributes:
        p_lower: one per event.
        q_upper: one per event, in the same order.

    Guarantee: whatever is read off holds with the confidence of the band, all readings together.
    """

    p_lower: tuple[float, ...]
    q_upper: tuple[float, ...]

    def value(self, claim: Claim) -> float:
        """The largest value of the claim's own parameter that some event proves; 0 if none does."""
        found = (
            claim.least_value(p, q)
            for p, q in zip(self.p_lower, self.q_upper, strict=True)
            if p > q
        )
        return max(found, default=0.0)

    def epsilon(self, delta: float) -> float:
        """A lower bound on ε at this δ, in the worse direction."""
        return self.value(ApproxDP(0.0, delta))

    def delta(self, epsilon: float) -> float:
        """A lower bound on δ at this ε, in the worse direction."""
        return self.value(ApproxDeltaDP(epsilon, 0.0))

    @property
    def mu(self) -> float:
        """A lower bound on μ."""
        return self.value(GaussianDP(0.0))

    def power(self, q: float) -> float:
        """A lower bound on the power of the best test at type-I error q, in the worse direction."""
        if not 0.0 <= q <= 1.0:
            raise InputError(f"q={q!r} must lie between 0 and 1: it is a type-I error")
        points = np.array([self.q_upper, self.p_lower]).T
        # A test of right against left rejects on the complements.
        return max(float(np.interp(q, *hull(each))) for each in (points, 1.0 - points[:, ::-1]))


Hits = Sequence[int]
Shares = Sequence[float] | None


def band_from_counts(
    left_hits: Hits,
    n_left: int,
    right_hits: Hits,
    n_right: int,
    failure_probability: float,
    left_shares: Shares = None,
) -> Band:
    """The band of K events from their counts, by exact bounds that spend failure_probability/K on each event.

    Args:
        left_hits: per event, of P.
        n_left: draws of P.
        right_hits: per event, of Q.
        n_right: draws of Q.
        failure_probability: for all of them together.
        left_shares: per event the part of its price that bounds P(E); ½ each by default.

    Guarantee: exact, if the events and shares were fixed before the counts were drawn.
    """
    each = check_failure_probability(failure_probability) / max(len(left_hits), 1)
    shares = [0.5] * len(left_hits) if left_shares is None else left_shares
    left = zip(left_hits, shares, strict=True)
    right = zip(right_hits, shares, strict=True)
    p_lower = tuple(lower(Counts(int(hits), n_left), each * share) for hits, share in left)
    return Band(
        p_lower,
        tuple(upper(Counts(int(hits), n_right), each * (1.0 - share)) for hits, share in right),
    )


def band_from_scores(
    left: Floats, right: Floats, failure_probability: float, points: int = 96
) -> Band:
    """The band of the events {score ≥ c}, the thresholds c taken from the scores themselves.

    The k-th largest of n draws cuts off a tail whose mass is Beta(k, n − k + 1) for any continuous
    distribution; with atoms the bounds err on the safe side. So a few ranks that are fixed
    beforehand bound the tails, without a split.

    Args:
        left: shape (n,), draws from P, for which the scores should be larger.
        right: shape (m,), draws from Q.
        points: ranks per side that are bounded.

    Guarantee: exact for independent draws.
    """
    check_failure_probability(failure_probability)
    above = np.sort(left)[::-1]
    below = np.sort(right)[::-1]
    ranks = _ranks(len(above), points)
    others = _ranks(len(below), points)
    each = failure_probability / (len(ranks) + len(others))
    p_lower = betaincinv(ranks, len(above) - ranks + 1.0, each)
    # One more point: nothing is known below the last rank.
    q_upper = np.append(betaincinv(others, len(below) - others + 1.0, 1.0 - each), 1.0)
    first_below = np.array([np.count_nonzero(below >= above[rank - 1]) for rank in ranks])
    return Band(
        tuple(p_lower.tolist()),
        tuple(q_upper[np.searchsorted(others, first_below, side="right")].tolist()),
    )


def _ranks(n: int, points: int) -> Integers:
    """Ranks that are dense at both ends, where claims differ most."""
    tail = np.unique(
        np.round(np.geomspace(1.0, max(n / 2.0, 1.0), max(points // 2, 1))).astype(np.int64)
    )
    return np.unique(np.concatenate([tail, n + 1 - tail]))


def hull(points: Floats) -> tuple[Floats, Floats]:
    """The least concave curve from (0, 0) to (1, 1) above the points, as the arrays of its corners."""
    corners: list[tuple[float, float]] = []
    for x, y in sorted({(0.0, 0.0), (1.0, 1.0), *((float(q), float(p)) for q, p in points)}):
        while len(corners) > 1 and _turns_left(corners[-2], corners[-1], (x, y)):
            corners.pop()
        corners.append((x, y))
    hull = np.array(corners)
    return hull[:, 0], np.maximum.accumulate(hull[:, 1])


def _turns_left(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) >= (b[1] - a[1]) * (c[0] - a[0])
