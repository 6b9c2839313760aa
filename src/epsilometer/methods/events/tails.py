"""Chooses the end of a score, its size and its direction, with the best predicted bound.

The log-ratio of each tail is estimated twice: by the counts of the training draws in it, and by the
curves of `curves`, which also know rare tails. Both are combined by their variances.
"""

from dataclasses import dataclass

import numpy as np

from epsilometer.claims import ApproxDP, PureDP
from epsilometer.methods.base import Task
from epsilometer.methods.events.choosing import Choice
from epsilometer.methods.events.curves import Curves, Sliced, fit_curves
from epsilometer.methods.events.prediction import expected_positive_bound, predict_ratios
from epsilometer.methods.events.scores import LearnedScore
from epsilometer.outputs import Event

# Penalty in standard errors of the log-ratio (1e4 draws, 20 seeds: normal noise 0.95 of the oracle
# at 0.5 and 0.93 at 1, truncated Laplace noise 0.90 and 0.94).
_PENALTY = 1.0
# The same for few draws: a plateau that is as likely as a straight line must not be missed by one
# audit in ten (300 draws per side: Laplace noise 0.88 at 1 and 0.91 at 1.5, normal noise 0.86 and
# 0.84).
_PENALTY_OF_FEW = 1.5
# Training draws of both sides together below which they are few.
_FEW_DRAWS = 800
# How wrong a curve may be in a tail, as a fraction of the log-ratio.
_MODEL_ERROR = 0.04
# Selection bias, in standard errors, of a few values in a learned order when they compete with the
# order of numbers (1e4 draws, 40 seeds, fraction of the oracle at 0, 0.75 and 1.5: geometric 0.94,
# 0.96, 0.98; svt1 0.57, 0.56, 0.54).
_SELECTION_BIAS_OF_ORDER = 0.75
# Prior log-odds that the log-ratio is linear in a sum of weights, which estimates it: this times
# the logarithm of the draws in units of `_LINEAR_TAIL_FROM_DRAWS`, and less if few columns matter.
# With more draws true bends show more clearly, and those of chance do not (chosen events at 1e6
# draws, without and with it: NumericalSVT 0.69, 0.80; SVT1 0.92, 0.99; LaplaceParallel 0.83, 0.89).
_LINEAR_TAIL_LOG_ODDS = 2.3
# Training draws of both sides up to which it is 0: with few draws it would cost svt6 and shuffled
# responses, whose log-ratios do bend.
_LINEAR_TAIL_FROM_DRAWS = 6000.0
# Fewest training draws of both sides in an event.
_FEWEST_INSIDE = 4
# Sizes that are tried for notions other than (ε, δ), whose predictions are slow.
_N_SIZES_OF_SLOW_NOTIONS = 24
# Scale of the rank of candidates with a negative forecast, which puts them below all others.
_NEGATIVE_SCALE = 1e-3


@dataclass(frozen=True, slots=True)
class TailChoice:
    """The best size of one end of a score in one direction.

    Attributes:
        upper: whether it is the upper end.
        flipped: whether the right distribution should be the larger one.
        predicted: the bound to expect.
        mass: the fraction of `LearnedScore.ordered` in the tail.
        p: the expected probability under the larger distribution.
        q: under the other.
        standard_error: of the estimated ln(p/q).
    """

    upper: bool
    flipped: bool
    predicted: float
    mass: float
    p: float
    q: float
    standard_error: float


def choose_tail(score: LearnedScore, task: Task) -> tuple[Event, Choice] | None:
    """Chooses the end of the score with the best predicted bound.

    Args:
        score: with the scores of the training draws.
        task: what is to be certified.

    Returns:
        The event, and the choice of its cells; None if the scores do not differ.
    """
    sliced = Sliced.of(score.left, score.right, score.ordered if score.is_line else None)
    curves = fit_curves(sliced, straight=_linear_log_odds(score, n_draws=sliced.at[-1]))
    # A learned score grows with the odds of the left side. A number may do so or the opposite.
    candidates = [
        _best_tail(sliced, curves, task, upper=True, flipped=False),
        _best_tail(sliced, curves, task, upper=False, flipped=True),
    ]
    if score.is_line:
        candidates.append(_best_tail(sliced, curves, task, upper=True, flipped=True))
        candidates.append(_best_tail(sliced, curves, task, upper=False, flipped=False))
    tails = [candidate for candidate in candidates if candidate is not None]
    if not tails:
        return None
    # Rounded, so that ties between an event and its complement go to the event.
    best = max(tails, key=lambda tail: round(tail.predicted, 9))
    event = score.tail_event(best.mass, best.upper)
    # A number is one candidate only, and the weights of columns are cross-validated.
    is_learned_order = not score.is_line and not score.additive_scores
    bias = _SELECTION_BIAS_OF_ORDER * best.standard_error if is_learned_order else 0.0
    choice = Choice(
        chosen=event.chosen,
        flipped=best.flipped,
        predicted=best.predicted,
        p=best.p,
        q=best.q,
        selection_bias=bias,
    )
    return event, choice


def _linear_log_odds(score: LearnedScore, n_draws: int) -> float:
    """Prior log-odds that the log-ratio is linear in the score: more if many columns matter."""
    # 1 − Σs²/(Σs)², for the squared ranges s of the columns' weights: 0 if a single column matters,
    # near 1 if many do.
    diversity = 0.0
    for additive in score.additive_scores:
        squared_ranges = np.array([term.reach for term in additive.terms]) ** 2
        concentration = (squared_ranges**2).sum() / max(squared_ranges.sum() ** 2, 1e-300)
        diversity = max(diversity, 1.0 - concentration)
    log_draws = np.log(max(n_draws / _LINEAR_TAIL_FROM_DRAWS, 1.0))
    return _LINEAR_TAIL_LOG_ODDS * float(diversity * log_draws)


def _best_tail(
    sliced: Sliced, curves: Curves, task: Task, upper: bool, flipped: bool
) -> TailChoice | None:
    """The best size of one end of a score.

    Args:
        sliced: the training draws in slices of the score.
        curves: what the curves forecast for them.
        task: what is to be certified.
        upper: whether it is the upper end.
        flipped: whether the right distribution should be the larger one.
    """
    is_epsilon = isinstance(task.claim, PureDP | ApproxDP)
    total = int(sliced.at[-1])
    n_left = int(sliced.lefts[-1])
    n_right = total - n_left
    # The tail below each inner cut, or above it: all draws, left draws, left draws by the curves,
    # and its fraction of the draws that placed the cuts.
    inside = sliced.at[1:-1]
    left_inside = sliced.lefts[1:-1]
    left_expected = curves.lefts[:, 1:-1]
    fraction = sliced.shares
    if upper:
        inside = total - inside
        left_inside = n_left - left_inside
        left_expected = curves.lefts[:, -1:] - left_expected
        fraction = 1.0 - fraction
    sizes = np.flatnonzero(inside >= _FEWEST_INSIDE)
    if not is_epsilon:
        sizes = sizes[:: max(1, len(sizes) // _N_SIZES_OF_SLOW_NOTIONS)]
    if not len(sizes):
        return None

    # Counts of the distribution that should be the larger one, and their expectations by curve.
    mass = inside[sizes].astype(np.float64)
    hits = left_inside[sizes].astype(np.float64)
    expected_hits = left_expected[:, sizes]
    n_train = (n_left, n_right)
    n_fresh = task.n_fresh
    if flipped:
        hits = mass - hits
        expected_hits = mass - expected_hits
        n_train = (n_right, n_left)
        n_fresh = task.n_fresh[::-1]
    n, m = n_train

    # The log-ratio of each size by its counts, with its variance.
    counted = np.log((hits + 0.5) / n) - np.log((mass - hits + 0.5) / m)
    count_variance = np.maximum(
        1.0 / (hits + 0.5) + 1.0 / (mass - hits + 0.5) - 1.0 / n - 1.0 / m, 1e-12
    )
    # The log-ratio by the curves: its mean, and its variance between curves and by their error.
    by_curve = np.log((expected_hits + 1e-9) / n) - np.log((mass - expected_hits + 1e-9) / m)
    modelled = curves.weights @ by_curve
    between_curves = curves.weights @ (by_curve - modelled) ** 2
    model_variance = between_curves + (_MODEL_ERROR * modelled) ** 2 + 1e-12
    # Both, weighted by their precision.
    precision = 1.0 / model_variance + 1.0 / count_variance
    log_ratio = (modelled / model_variance + counted / count_variance) / precision
    standard_error = 1.0 / np.sqrt(precision)

    forecast = predict_ratios(
        task,
        mass=mass,
        ratio=log_ratio,
        standard_error=standard_error,
        n_train=n_train,
        n_fresh=n_fresh,
        penalty=_PENALTY if total >= _FEW_DRAWS else _PENALTY_OF_FEW,
    )
    predicted = forecast.bound
    if is_epsilon:
        # Candidates with a negative forecast rank last, by the expected positive bound.
        positive = expected_positive_bound(forecast.bound, forecast.standard_error)
        predicted = np.where(predicted > 0.0, predicted, _NEGATIVE_SCALE * positive)
    best = int(np.argmax(predicted))
    return TailChoice(
        upper=upper,
        flipped=flipped,
        predicted=float(predicted[best]),
        mass=float(fraction[sizes[best]]),
        p=float(forecast.p[best]),
        q=float(forecast.q[best]),
        standard_error=float(standard_error[best]),
    )
