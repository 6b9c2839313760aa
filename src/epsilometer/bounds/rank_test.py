"""The exact rank test: what the scores of two sides say about any claim of privacy.

Take the k-th largest of n left scores as a threshold, and let U be the mass of the left
distribution at or above it. For a continuous distribution U has the law Beta(k, n − k + 1); with
point masses it is stochastically larger. A claim says that an event of mass U on the left has at
least the mass g(U) on the right, g being the inverse of the claim's curve (`inverse_curves`). Given
the threshold, the number C of right scores at or above it is Binomial(m, q) with q ≥ g(U).

The p-value of a rank is F(C), where F(c) = E[P(Binomial(m, g(U)) ≤ c)] is the distribution function
of C in the extreme case that U has the Beta law and q = g(U).

Why it is exact: in the extreme case F(C) is a distribution function at its own variable, so that
P(F(C) ≤ t) ≤ t. In any other case U is stochastically larger, g never decreases and q ≥ g(U), so
that C is stochastically larger; F never decreases, so that F(C) is stochastically larger, too.
There is no nuisance parameter, and no draw is set aside: the ranks are fixed by the number of
scores. F is computed from above: the inner probability falls in U, so that on a slice of U it is at
most its value at the lower end.

The test looks at four kinds of tails. Where larger scores mean left, the upper tails of the left
and the lower tails of the right; the other two see scores that point the wrong way, for a small
part of the failure probability. The p-values of all ranks are combined by Bonferroni's inequality
with fixed weights.

Guarantee: exact for independent draws with any distributions, ties included. Each question (a
p-value, or a bound in one claim's parameter) is one test at the stated failure probability; for
several questions at once there is the band of the same tails.

Reference: David and Nagaraja, "Order Statistics" (2003), section 2.2, for the law of U.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import betaincc, betainccinv, betaincinv

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.bounds.bands import Band
from epsilometer.bounds.budget import check_failure_probability
from epsilometer.bounds.inverse_curves import least_q
from epsilometer.claims import ApproxDeltaDP, Claim

# Ranks per kind of tail: more of them come closer to the best threshold, and each costs a share of
# the failure probability. From `_MANY_SCORES` on the shares are cheap, below `_FEW_SCORES` dear.
_RANKS = 12
_RANKS_OF_FEW = 8
_RANKS_OF_MANY = 24
_FEW_SCORES = 100
_MANY_SCORES = 200_000
# The last rank, as a fraction of the scores. Beyond it the tails of the other side are better: they
# have the complements of these as their first ranks.
_LARGEST_FRACTION = 0.9
# The part of the failure probability that is spent on scores that point the wrong way. It costs the
# others a hundredth of their distance from the truth, or less.
_WRONG_WAY_SHARE = 1.0 / 40.0
# Levels between which the law of U is cut into slices. No p-value is below the lowest one. Twice as
# many slices change bounds by less than a hundredth; half as many cost a fifteenth of the power
# with 40 scores per side.
_LEVELS: Floats = np.unique(
    np.concatenate([[0.0], np.geomspace(1e-18, 0.02, 100), np.linspace(0.02, 0.98, 150), [1.0]])
)
# Relative. Incomplete beta functions are computed up to less than this.
_ROUNDING = 1e-9
# Relative, and per score. Their inverses err by a sixteenth of this at 10 to 10^9 scores, each of
# which moves the level by a multiple of it, so they are moved to the safe side.
_ROUNDING_OF_INVERSE = 1e-13
_ROUNDING_OF_INVERSE_PER_SCORE = 1e-15
# Largest value of a parameter that is tried, by doubling.
_LARGEST_VALUE = 1024.0
# Halvings of the bracket of a bound. The bracket is no wider than the bound, or than 1.
_HALVINGS = 24


@dataclass(frozen=True, slots=True)
class Tails:
    """The tails of one side that its scores of fixed ranks cut off, counted on the other side.

    Attributes:
        ranks: shape (k,): how many scores of its own side are in each tail, at least.
        n_own: scores of the side that has the thresholds, on which the tails should be likelier.
        counts: shape (k,): how many scores of the other side are in each tail.
        n_other: scores of the other side.
        share: of the failure probability, for all of them together.
    """

    ranks: Integers
    n_own: int
    counts: Integers
    n_other: int
    share: float

    @classmethod
    def upper(cls, own_scores: Floats, other_scores: Floats, share: float) -> "Tails":
        """The upper tails {score ≥ threshold} at the ranks for so many scores.

        Args:
            own_scores: shape (n,), ascending; the thresholds are among them.
            other_scores: shape (m,), ascending.
            share: of the failure probability.
        """
        ranks = ranks_of(len(own_scores))
        thresholds = own_scores[len(own_scores) - ranks]
        # Ties count against the tail.
        counts = len(other_scores) - np.searchsorted(other_scores, thresholds, side="left")
        return cls(
            ranks=ranks,
            n_own=len(own_scores),
            counts=counts,
            n_other=len(other_scores),
            share=share,
        )

    @classmethod
    def lower(cls, own_scores: Floats, other_scores: Floats, share: float) -> "Tails":
        """The lower tails {score ≤ threshold}, otherwise as `upper`."""
        return cls.upper(-own_scores[::-1], -other_scores[::-1], share)

    def promising(self) -> Booleans:
        """Which tails are rarer on the other side than on their own; shape (k,).

        The others refute nothing: their p-values are near ½ or larger, far above any share.
        """
        return self.counts * (self.n_own + 1) < self.ranks * self.n_other

    def least_masses(self, failure_probability: float) -> Floats:
        """Lower bounds on the masses on the own side, each with this failure probability."""
        return _masses_at(self.ranks, self.n_own, failure_probability)

    def greatest_masses(self, failure_probability: float) -> Floats:
        """Upper bounds on the masses on the other side (Clopper–Pearson), likewise."""
        misses = self.n_other - self.counts
        has_misses = misses > 0
        bounds = betainccinv(
            self.counts + 1.0, np.where(has_misses, misses, 1), failure_probability
        )
        bounds = np.minimum(bounds * (1.0 + _inverse_margin(self.n_other)), 1.0)
        return np.where(has_misses, bounds, 1.0)


@dataclass(frozen=True, slots=True)
class RankTest:
    """The exact rank test of two sides.

    Attributes:
        right_way: the tails that see larger scores on the left: upper tails with thresholds from
            the left, and lower tails with thresholds from the right.
        wrong_way: the tails that see smaller scores on the left: lower tails with thresholds from
            the left, and upper tails with thresholds from the right.
    """

    right_way: tuple[Tails, Tails]
    wrong_way: tuple[Tails, Tails]
    _ranks: "_PreparedRanks"

    @classmethod
    def of_scores(cls, left: Floats, right: Floats) -> "RankTest":
        """Prepares the test.

        Args:
            left: shape (n,), scores of draws from P, which should be the larger ones, ascending.
            right: shape (m,), scores of draws from Q, ascending.
        """
        share = (1.0 - _WRONG_WAY_SHARE) / 2.0
        wrong_share = _WRONG_WAY_SHARE / 2.0
        right_way = Tails.upper(left, right, share), Tails.lower(right, left, share)
        wrong_way = Tails.lower(left, right, wrong_share), Tails.upper(right, left, wrong_share)
        ranks = _PreparedRanks.of((*right_way, *wrong_way))
        return cls(right_way=right_way, wrong_way=wrong_way, _ranks=ranks)

    def p_value(self, claim: Claim) -> float:
        """Returns the p-value of a claim, at most 1."""
        return float(self._ranks.p_values(claim).min(initial=1.0))

    def bound(self, claim: Claim, failure_probability: float) -> float:
        """Returns the largest value of the claim's parameter that the test refutes; 0 if none.

        The claims of a notion are nested, so that every smaller value is refuted, too: one test at
        the true value is what can fail.
        """
        level = check_failure_probability(failure_probability)
        # Only ranks that refute a value can refute a larger one.
        ranks = self._ranks.refuting(claim.with_value(0.0), level)
        if not ranks:
            return 0.0
        refuted = 0.0
        trial = _first_trial(claim)
        while trial < _LARGEST_VALUE:
            remaining = ranks.refuting(claim.with_value(trial), level)
            if not remaining:
                break
            ranks = remaining
            refuted = trial
            trial = 2.0 * trial
        not_refuted = trial
        for _ in range(_HALVINGS):
            middle = 0.5 * (refuted + not_refuted)
            remaining = ranks.refuting(claim.with_value(middle), level)
            if remaining:
                ranks = remaining
                refuted = middle
            else:
                not_refuted = middle
        return refuted

    def band(self, failure_probability: float) -> Band:
        """Returns bounds on the masses of all tails at once, each oriented towards the left.

        A tail that is likelier on the right stands for its complement.
        """
        level = check_failure_probability(failure_probability)
        return _joined(
            [
                _band_of(self.right_way[0], level, is_of_left=True),
                _band_of(self.right_way[1], level, is_of_left=False),
                _band_of(self.wrong_way[0], level, is_of_left=True),
                _band_of(self.wrong_way[1], level, is_of_left=False),
            ]
        )

    def right_way_band(self, failure_probability: float) -> Band:
        """Returns the part of `band` that bounds the events {score ≥ c} and {score > c} alone."""
        level = check_failure_probability(failure_probability)
        return _joined(
            [
                _band_of(self.right_way[0], level, is_of_left=True),
                _band_of(self.right_way[1], level, is_of_left=False),
            ]
        )


def ranks_of(n: int) -> Integers:
    """Returns the ranks at which n scores are cut: geometric from 1 on, fixed by n alone."""
    n_ranks = _RANKS
    if n < _FEW_SCORES:
        n_ranks = _RANKS_OF_FEW
    elif n >= _MANY_SCORES:
        n_ranks = _RANKS_OF_MANY
    last = max(_LARGEST_FRACTION * n, 1.0)
    return np.unique(np.round(np.geomspace(1.0, last, n_ranks)).astype(np.int64))


@dataclass(frozen=True, slots=True)
class _PreparedRanks:
    """The ranks of several kinds of tails, ready for p-values.

    Attributes:
        masses: shape (k, slices), the law of each tail's mass on its own side: the lower ends of
            the slices between two levels.
        counts: shape (k,).
        n_other: shape (k,).
        weights: shape (k,), each rank's share of the failure probability.
    """

    masses: Floats
    counts: Integers
    n_other: Integers
    weights: Floats

    @classmethod
    def of(cls, kinds: Sequence[Tails]) -> "_PreparedRanks":
        """The promising ranks of some kinds of tails."""
        of_each_kind = [cls._of_one_kind(tails) for tails in kinds]
        return cls(
            masses=np.concatenate([ranks.masses for ranks in of_each_kind]),
            counts=np.concatenate([ranks.counts for ranks in of_each_kind]),
            n_other=np.concatenate([ranks.n_other for ranks in of_each_kind]),
            weights=np.concatenate([ranks.weights for ranks in of_each_kind]),
        )

    @classmethod
    def _of_one_kind(cls, tails: Tails) -> "_PreparedRanks":
        is_promising = tails.promising()
        n_promising = int(np.count_nonzero(is_promising))
        return cls(
            masses=_laws_of_masses(tails.n_own)[is_promising],
            counts=tails.counts[is_promising],
            n_other=np.full(n_promising, tails.n_other),
            weights=np.full(n_promising, tails.share / len(tails.ranks)),
        )

    def __len__(self) -> int:
        return len(self.counts)

    def p_values(self, claim: Claim) -> Floats:
        """The p-value of each rank, divided by its weight; shape (k,)."""
        q = least_q(claim, self.masses)
        counts = np.broadcast_to(self.counts[:, None], q.shape)
        misses = self.n_other[:, None] - counts
        has_misses = misses > 0
        # P(Binomial(m, q) ≤ c); 1 if c = m.
        at_most = betaincc(counts + 1.0, np.where(has_misses, misses, 1), q)
        at_most = np.where(has_misses, at_most, 1.0)
        p_values = at_most @ np.diff(_LEVELS) * (1.0 + _ROUNDING)
        return np.asarray(p_values / self.weights, dtype=np.float64)

    def refuting(self, claim: Claim, failure_probability: float) -> "_PreparedRanks":
        """The ranks that refute a claim."""
        has_refuted = self.p_values(claim) <= failure_probability
        return _PreparedRanks(
            masses=self.masses[has_refuted],
            counts=self.counts[has_refuted],
            n_other=self.n_other[has_refuted],
            weights=self.weights[has_refuted],
        )


@lru_cache(maxsize=16)
def _laws_of_masses(n: int) -> Floats:
    """The lower ends of the slices of the law Beta(k, n − k + 1) at the ranks k of n scores.

    Returns:
        Shape (ranks, slices).
    """
    return _masses_at(ranks_of(n)[:, None], n, _LEVELS[None, :-1])


def _masses_at(ranks: Integers, n: int, levels: Floats | float) -> Floats:
    """The quantiles of Beta(rank, n − rank + 1) at some levels, or slightly less; broadcast."""
    masses = betaincinv(ranks.astype(np.float64), n - ranks + 1.0, levels)
    return np.asarray(masses * (1.0 - _inverse_margin(n)), dtype=np.float64)


def _inverse_margin(n: int) -> float:
    """By how much, relatively, an inverse incomplete beta function of n scores may err."""
    return _ROUNDING_OF_INVERSE + _ROUNDING_OF_INVERSE_PER_SCORE * n


def _first_trial(claim: Claim) -> float:
    """The value of the claim's parameter from which doubling starts."""
    # There is no δ of 1, and none is refuted that is next to it.
    return math.nextafter(1.0, 0.0) if isinstance(claim, ApproxDeltaDP) else 1.0


def _band_of(tails: Tails, failure_probability: float, *, is_of_left: bool) -> Band:
    """The band of one kind of tails; half of each tail's share is for each of its two sides."""
    error_share = failure_probability * tails.share / (2.0 * len(tails.ranks))
    own_masses = tails.least_masses(error_share)
    other_masses = tails.greatest_masses(error_share)
    if is_of_left:
        return Band(p_lower=tuple(own_masses.tolist()), q_upper=tuple(other_masses.tolist()))
    return Band(
        p_lower=tuple((1.0 - other_masses).tolist()), q_upper=tuple((1.0 - own_masses).tolist())
    )


def _joined(bands: Sequence[Band]) -> Band:
    """All events of several bands."""
    return Band(
        p_lower=tuple(p for band in bands for p in band.p_lower),
        q_upper=tuple(q for band in bands for q in band.q_upper),
    )
