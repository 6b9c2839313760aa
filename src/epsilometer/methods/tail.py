"""Chooses the end of a score, its size and its direction, with the best predicted bound.

The log-ratio of each tail is estimated twice: by the counts of the training draws in it, and by the
curves of `curves`, which also know rare tails. Both are combined by their variances.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import xlogy

from epsilometer.arrays import Floats
from epsilometer.claims import ApproxDP, PureDP
from epsilometer.methods.base import Task
from epsilometer.methods.curves import Curves, Sliced, fit_curves
from epsilometer.methods.forecast import (
    expected_positive_bound,
    predict_ratios,
    selection_penalty,
)
from epsilometer.methods.scores import LearnedScore
from epsilometer.methods.scores.learned import OutcomeScore
from epsilometer.outputs import Event

# How wrong a curve may be in a tail, as a fraction of the log-ratio.
_MODEL_ERROR = 0.04
# Prior log-odds that the log-ratio is linear in a sum of weights, which estimates it: this times
# the logarithm of the draws in units of `_LINEAR_TAIL_FROM_DRAWS`, and less if few columns matter.
# With more draws true bends show more clearly, and those of chance do not.
_LINEAR_TAIL_LOG_ODDS = 2.3
# Training draws of both sides up to which it is 0.
_LINEAR_TAIL_FROM_DRAWS = 6000.0
# Fewest training draws of both sides in an event.
_FEWEST_INSIDE = 4
# Sizes that are tried for notions other than (ε, δ), whose predictions are slow.
_N_SIZES_OF_SLOW_NOTIONS = 24
# Scale of the rank of candidates with a negative forecast, which puts them below all others.
_NEGATIVE_SCALE = 1e-3


@dataclass(frozen=True, slots=True)
class Tail:
    """One end of a score, in the direction in which it should be certified.

    Attributes:
        score: the score.
        upper: whether it is the upper end.
        flipped: whether the right distribution should be the larger one.
        mass: the fraction of `LearnedScore.ordered` in the tail.
        p: the expected probability under the larger distribution.
        q: under the other.
        predicted: the bound to expect; negative ones are only ranked.
    """

    score: LearnedScore
    upper: bool
    flipped: bool
    mass: float
    p: float
    q: float
    predicted: float

    @property
    def is_faithful(self) -> bool:
        """Whether the final scores have about as many draws in the tail as the cross-fitted ones.

        Where many draws have one score, a tail of the intended size may not exist.
        """
        threshold = self.score.threshold(self.mass, self.upper)
        below = np.searchsorted(self.score.ordered, threshold) / len(self.score.ordered)
        mass = 1.0 - below if self.upper else below
        return bool(mass < 1.0 and 0.5 * self.mass <= mass <= 2.0 * self.mass)

    def event(self) -> Event:
        """The outputs in the tail."""
        return self.score.tail_event(self.mass, self.upper).simplified()


@dataclass(frozen=True, slots=True)
class TailEstimates:
    """All sizes of one end of a score in one direction; arrays have shape (sizes,).

    Attributes:
        score: the score.
        upper: whether it is the upper end.
        flipped: whether the right distribution should be the larger one.
        fraction: of `LearnedScore.ordered` in each tail.
        inside: training draws of both sides in each tail.
        log_ratio: estimates of ln(p/q).
        standard_error: of these estimates.
    """

    score: LearnedScore
    upper: bool
    flipped: bool
    fraction: Floats
    inside: Floats
    log_ratio: Floats
    standard_error: Floats

    def best(self, task: Task, n_candidates: int) -> Tail:
        """The size with the best forecast.

        Args:
            task: what is to be certified.
            n_candidates: how many candidates the best one is chosen from.
        """
        estimates = self
        is_epsilon = isinstance(task.claim, PureDP | ApproxDP)
        if not is_epsilon:
            estimates = self._thinned(max(1, len(self.inside) // _N_SIZES_OF_SLOW_NOTIONS))
        sizes = self.score.sizes
        forecast = predict_ratios(
            task,
            mass=estimates.inside,
            ratio=estimates.log_ratio,
            standard_error=estimates.standard_error,
            n_train=sizes[::-1] if self.flipped else sizes,
            n_fresh=task.n_fresh[::-1] if self.flipped else task.n_fresh,
            penalty=selection_penalty(n_candidates),
        )
        predicted = forecast.bound
        if is_epsilon:
            # Candidates with a negative forecast rank last, by the expected positive bound.
            positive = expected_positive_bound(forecast.bound, forecast.standard_error)
            predicted = np.where(predicted > 0.0, predicted, _NEGATIVE_SCALE * positive)
        best = int(np.argmax(predicted))
        return Tail(
            score=self.score,
            upper=self.upper,
            flipped=self.flipped,
            mass=float(estimates.fraction[best]),
            p=float(forecast.p[best]),
            q=float(forecast.q[best]),
            predicted=float(predicted[best]),
        )

    def _thinned(self, step: int) -> "TailEstimates":
        """Every so many sizes only."""
        return replace(
            self,
            fraction=self.fraction[::step],
            inside=self.inside[::step],
            log_ratio=self.log_ratio[::step],
            standard_error=self.standard_error[::step],
        )


def slice_score(score: LearnedScore) -> Sliced:
    """The training draws in slices of a score."""
    return Sliced.of(score.left, score.right, None if score.is_fitted else score.ordered)


def estimate_tails(score: LearnedScore, sliced: Sliced) -> list[TailEstimates]:
    """Estimates the log-ratios of all tails of a score; none if the scores do not differ.

    Args:
        score: with the scores of the training draws.
        sliced: these draws in slices of the score.
    """
    curves = None
    if not (isinstance(score, OutcomeScore) or score.is_count):
        straight = _linear_log_odds(score, n_draws=int(sliced.at[-1]))
        curves = fit_curves(sliced, straight)
    # A learned score grows with the odds of the left side. A number may do so or the opposite.
    directions = [(True, False), (False, True)]
    if score.is_line:
        directions += [(True, True), (False, False)]
    tails = []
    for upper, flipped in directions:
        estimates = _estimate_end(score, sliced, curves, upper=upper, flipped=flipped)
        if estimates is not None:
            tails.append(estimates)
    return tails


def best_tail(tails: Sequence[TailEstimates], task: Task, n_candidates: int) -> Tail:
    """The tail with the best forecast.

    Args:
        tails: at least one end and direction.
        task: what is to be certified.
        n_candidates: how many candidates the best one is chosen from.
    """
    best_of_each = [estimates.best(task, n_candidates) for estimates in tails]
    # Rounded, so that ties between an event and its complement go to the event.
    return max(best_of_each, key=lambda tail: round(tail.predicted, 9))


def _linear_log_odds(score: LearnedScore, n_draws: int) -> float:
    """Prior log-odds that the log-ratio is linear in the score: more if many columns matter."""
    log_draws = np.log(max(n_draws / _LINEAR_TAIL_FROM_DRAWS, 1.0))
    return _LINEAR_TAIL_LOG_ODDS * float(score.diversity * log_draws)


def _estimate_end(
    score: LearnedScore, sliced: Sliced, curves: Curves | None, upper: bool, flipped: bool
) -> TailEstimates | None:
    """Estimates the log-ratios of all sizes of one end of a score.

    Args:
        score: the score.
        sliced: the training draws in slices of the score.
        curves: what the curves forecast for them; None leaves it to the counts. Outcomes have no
            curve: an outcome that was lucky has a high score, whichever fold is left out. Nor have
            whole numbers that repeat.
        upper: whether it is the upper end.
        flipped: whether the right distribution should be the larger one.
    """
    total = int(sliced.at[-1])
    # The tail below each inner cut, or above it: all draws, left draws, and its fraction of the
    # draws that placed the cuts.
    inside = sliced.at[1:-1]
    left_inside = sliced.lefts[1:-1]
    fraction = sliced.shares
    if upper:
        inside = total - inside
        left_inside = sliced.lefts[-1] - left_inside
        fraction = 1.0 - fraction
    sizes = np.flatnonzero(inside >= _FEWEST_INSIDE)
    if not len(sizes):
        return None
    # Counts of the distribution that should be the larger one.
    mass = inside[sizes].astype(np.float64)
    hits = left_inside[sizes].astype(np.float64)
    n, m = score.sizes
    if flipped:
        hits = mass - hits
        n, m = m, n
    log_ratio = np.log((hits + 0.5) / n) - np.log((mass - hits + 0.5) / m)
    variance = _count_variance(hits, mass - hits, n, m)
    if curves is None:
        variance = np.minimum(variance, _variance_by_deviance(hits, mass - hits, n, m, log_ratio))
    else:
        left_expected = curves.lefts[:, 1:-1]
        if upper:
            left_expected = curves.lefts[:, -1:] - left_expected
        expected = left_expected[:, sizes]
        if flipped:
            expected = mass - expected
        # The log-ratio by the curves: its mean, and its variance between curves and by their error.
        by_curve = np.log((expected + 1e-9) / n) - np.log((mass - expected + 1e-9) / m)
        modelled = curves.weights @ by_curve
        between_curves = curves.weights @ (by_curve - modelled) ** 2
        model_variance = between_curves + (_MODEL_ERROR * modelled) ** 2 + 1e-12
        # Both, weighted by their precision.
        precision = 1.0 / model_variance + 1.0 / variance
        log_ratio = (modelled / model_variance + log_ratio / variance) / precision
        variance = 1.0 / precision
    return TailEstimates(
        score=score,
        upper=upper,
        flipped=flipped,
        fraction=fraction[sizes],
        inside=mass,
        log_ratio=log_ratio,
        standard_error=np.sqrt(variance),
    )


def _count_variance(hits: Floats, others: Floats, n: int, m: int) -> Floats:
    """The usual variance of ln((hits/n)/(others/m)), shape (tails,)."""
    variance = 1.0 / (hits + 0.5) + 1.0 / (others + 0.5) - 1.0 / n - 1.0 / m
    return np.maximum(variance, 1e-12)


def _variance_by_deviance(
    hits: Floats, others: Floats, n: int, m: int, log_ratio: Floats
) -> Floats:
    """The variance with which a normal likelihood falls towards 0 as much as the true one does.

    A zero among the others has a large variance, but 90 draws against none leave no doubt.
    """
    total = hits + others
    share = n / (n + m)
    deviance = 2.0 * (
        xlogy(hits, hits / (total * share)) + xlogy(others, others / (total * (1.0 - share)))
    )
    return np.asarray(log_ratio**2 / np.maximum(deviance, 1e-9) + 1e-12)
