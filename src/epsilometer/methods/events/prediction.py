"""The bound to expect from an event, by its frequencies in training draws."""

import math

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from epsilometer.arrays import Floats
from epsilometer.bounds.ratio import curve_through, towards_curve, within
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP
from epsilometer.methods.base import Task

# Draws of the larger distribution and of the other.
Sizes = tuple[int, int]
Two = tuple[Floats, Floats]


def predict(
    task: Task, p: Floats, q: Floats, n_train: Sizes, n_fresh: Sizes, doubt: float = 1.0
) -> Two:
    """The bound to expect, and its spread through the training draws, elementwise.

    The prediction subtracts the cost of the proof (on `n_fresh` draws of P's and Q's side) and the
    spread of the training draws times `doubt`: without the latter, tiny events win by chance.
    """
    claim = task.claim
    cost = -float(ndtri(task.failure_probability))
    if isinstance(claim, ApproxDeltaDP):
        grow = math.exp(min(claim.epsilon, 300.0))
        train, fresh = (
            np.sqrt(p * (1.0 - p) / n[0] + grow**2 * q * (1.0 - q) / n[1])
            for n in (n_train, n_fresh)
        )
        return p - grow * q - cost * fresh - doubt * train, train
    if isinstance(claim, PureDP | ApproxDP):
        with np.errstate(divide="ignore", invalid="ignore"):
            above = p - claim.delta
            variances = [
                p * (1.0 - p) / (n[0] * above**2) + (1.0 - q) / (n[1] * q)
                for n in (n_train, n_fresh)
            ]
            train, fresh = map(np.sqrt, variances)
            bound = np.log(above / q) - cost * fresh - doubt * train
            return np.where((above > 0.0) & ~np.isnan(bound), bound, -np.inf), train
    # What the point proves to which the proof and the training draws move p and q.
    p, q = within(p, q, n_fresh)
    growth, slope = curve_through(claim, p, q)
    moved = towards_curve(
        p, q, slope, n_fresh, cost + doubt * math.sqrt(sum(n_fresh) / sum(n_train))
    )
    return _values_between(claim, *moved), growth * np.hypot(*_spreads(p, q, slope, n_train))


def _spreads(p: Floats, q: Floats, slope: Floats, n: Sizes) -> Two:
    """The standard deviations of both parts of p − slope·q when p and q are estimated from n draws."""
    return np.sqrt(p * (1.0 - p) / n[0]), slope * np.sqrt(q * (1.0 - q) / n[1])


# Fresh draws that an event is taken to have on the other side, at least.
_LEAST_OTHERS = 0.3


def predict_ratios(
    task: Task,
    mass: Floats,
    ratio: Floats,
    spread: Floats,
    n_train: Sizes,
    n_fresh: Sizes,
    doubt: float,
) -> tuple[Floats, Floats, Floats, Floats]:
    """What events prove whose log-ratios are known up to a spread: bound to expect, its spread, p and q.

    Args:
        task: the claim and how sure the proof must be.
        mass: shape (events,), training draws of both sides in each event.
        ratio: shape (events,), ln(p/q).
        spread: shape (events,), how uncertain it is.
        n_train: training draws of P's and Q's side.
        n_fresh: draws of the proof.
        doubt: how many spreads are given away.
    """
    grow = np.exp(np.clip([ratio, ratio - doubt * spread], -30.0, 30.0))
    q = mass / (n_train[0] * grow + n_train[1])
    p = np.minimum(q * grow, 1.0)
    q = np.minimum(q, 1.0)
    others = np.maximum(q[1], _LEAST_OTHERS / n_fresh[1])
    bound = expected_bounds(task, p[1], others, n_train, n_fresh, doubt=0.0)
    fresh = (1.0 - p[1]) / (n_fresh[0] * np.maximum(p[1], 1e-9)) + (1.0 - others) / (
        n_fresh[1] * others
    )
    return bound, np.sqrt(fresh + spread**2), p[0], q[0]


def mean_if_proved(bound: Floats, spread: Floats) -> Floats:
    """The mean of a bound that counts as 0 where it is negative.

    Where every prediction is negative, the surest event would look best: the one that can prove
    nothing.
    """
    away = bound / spread
    lucky = bound * ndtr(away) + spread * np.exp(-0.5 * away**2) / math.sqrt(2.0 * math.pi)
    return np.where(away > -8.0, lucky, 1e-3 * bound)


def few_doubt(n_train: Sizes) -> float:
    """How many spreads to subtract from the predictions of cells: 0.1 with 10 training draws, 0.6 with 60.

    With few draws caution costs more than luck: N(3, 1) at n = 30 proves 1.5 at a doubt of 0.5 and
    0 at 1.5, because the certain event then looks best.
    """
    return min(float(np.log10(max(min(n_train) / 3.0, 1.0))) ** 2 / 3.0, 3.0)


def expected_bounds(
    task: Task, p: Floats, q: Floats, n_train: Sizes, n_fresh: Sizes, doubt: float
) -> Floats:
    """The bound from counts exactly as expected, less what the training draws leave open.

    It is right for few draws, too. For ε it is the approximate score bound, which orders the counts
    in the exact test; for other notions exact bounds on both sides stand for the joint test, at
    counts that need not be whole.
    """
    claim = task.claim
    if isinstance(claim, PureDP | ApproxDP) and not isinstance(claim, ApproxDeltaDP):
        z, shift, (n, m) = (
            -float(ndtri(task.failure_probability)),
            n_fresh[0] * claim.delta,
            n_train,
        )
        # the spread of ln((p − δ)/q), both estimated
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.sqrt(
                p * (1.0 - p) / (n * (p - claim.delta) ** 2)
                + (1.0 - q) / (m * np.maximum(q, 1e-300))
            )
        s = n_fresh[0] * p - shift
        y = n_fresh[1] * q
        constant = s * s - z * z * shift
        middle = 2.0 * s * y + z * z * (s + y)
        ratio = (
            2.0
            * constant
            / (middle + np.sqrt(np.maximum(middle * middle - 4.0 * y * y * constant, 0.0)))
        )
        proves = (s > 0.0) & (constant > 0.0)
        bound = np.log(np.where(proves, ratio, 1.0) * n_fresh[1] / n_fresh[0])
        # Events that prove nothing are still ranked.
        return np.where(proves, bound, p - q - 100.0) - doubt * np.asarray(spread)
    # The two errors of training are independent: each counts for about 1/√2 of its size.
    p = np.maximum(p - 0.7 * doubt * np.sqrt(p * (1.0 - p) / n_train[0]), 0.0)
    q = np.minimum(q + 0.7 * doubt * np.sqrt(q * (1.0 - q) / n_train[1]), 1.0)
    p, q = within(p, q, n_fresh)
    if isinstance(claim, ApproxDeltaDP):  # the proof knows one of the two lines that make its curve
        grow = math.exp(min(claim.epsilon, 300.0))
        low, high = _expected_limits(p, q, np.full(len(p), grow), n_fresh, task.failure_probability)
        return low - grow * high
    slope = curve_through(claim, p, q)[1]
    return _values_between(claim, *_expected_limits(p, q, slope, n_fresh, task.failure_probability))


def _expected_limits(
    p: Floats, q: Floats, slope: Floats, n_fresh: Sizes, failure_probability: float
) -> Two:
    """How far counts exactly as expected move p and q towards each other: exact bounds whose z add up in squares."""
    left, right = _spreads(p, q, slope, n_fresh)
    z = float(ndtri(failure_probability)) / np.hypot(left, right)
    x = n_fresh[0] * p
    y = n_fresh[1] * q
    low = betaincinv(np.maximum(x, 1e-9), n_fresh[0] - x + 1.0, ndtr(z * left))
    return low, betaincinv(y + 1.0, np.maximum(n_fresh[1] - y, 1e-9), ndtr(-z * right))


def _values_between(claim: Claim, low: Floats, high: Floats) -> Floats:
    """What the points prove; events that prove nothing are still ranked."""
    return np.where(high < low, claim.least_values(low, high), low - high)
