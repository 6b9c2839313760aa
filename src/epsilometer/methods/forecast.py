"""Forecasts of the bound that an event will certify, from its frequencies in training draws.

Candidate events are compared by these forecasts. A forecast subtracts two things from the estimated
loss of privacy: what the certificate costs (it must hold with confidence on a given number of fresh
draws), and a penalty for the error of the training draws, in standard errors. Without the penalty,
rare events whose training counts happen to be favourable would win by chance.

In this module P is the distribution that is larger on the event and Q is the other one, whichever
of them is the left one.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from epsilometer.arrays import Floats
from epsilometer.bounds.certificate import curve_through, towards_curve, within
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP
from epsilometer.methods.base import Task

# Numbers of draws from P and from Q.
Sizes = tuple[int, int]

# Largest ε whose exponential is computed: e^300 can still be squared in double precision.
_MAX_EXPONENT = 300.0
# Log-ratios are clipped to ± this before they are exponentiated: no number of draws reaches e^30.
_MAX_ABS_LOG_RATIO = 30.0
# Floor on the expected number of fresh draws from Q in the event: an event cannot be forecast to be
# rarer than fresh draws could show.
_MIN_EXPECTED_COUNT = 0.3
# Two independent errors of equal size add up to √2 of one, so each is counted with about 1/√2.
_SHARE_OF_INDEPENDENT_ERROR = 0.7
# A forecast this many standard errors below 0 has no positive part worth computing.
_HOPELESS = -8.0
# Factor for such forecasts, which keeps their order but ranks them below all others.
_HOPELESS_SCALE = 1e-3
# Subtracted from p − q where nothing can be certified, which ranks these events below all others.
_RANK_LAST = 100.0


class Prediction(NamedTuple):
    """The forecast for some events.

    Attributes:
        bound: shape (events,), the bound to expect, penalty subtracted.
        standard_error: shape (events,), the error of the bound that the training draws cause.
    """

    bound: Floats
    standard_error: Floats


class RatioPrediction(NamedTuple):
    """The forecast for some events whose log-ratios were estimated by a model.

    Attributes:
        bound: shape (events,), the bound to expect, penalty subtracted.
        standard_error: shape (events,), by training and fresh draws together.
        p: shape (events,), the expected probability under P, without penalty.
        q: shape (events,), under Q.
    """

    bound: Floats
    standard_error: Floats
    p: Floats
    q: Floats


def predict(
    task: Task, p: Floats, q: Floats, *, n_train: Sizes, n_fresh: Sizes, penalty: float = 1.0
) -> Prediction:
    """Forecasts the bound by a normal approximation; for many draws.

    Args:
        task: the claim, and with which failure probability the certificate must hold.
        p: shape (events,), frequencies under P in the training draws.
        q: shape (events,), under Q.
        n_train: training draws.
        n_fresh: draws of the certificate.
        penalty: how many standard errors of the training draws are subtracted.
    """
    claim = task.claim
    z = -float(ndtri(task.failure_probability))
    if isinstance(claim, ApproxDeltaDP):
        factor = math.exp(min(claim.epsilon, _MAX_EXPONENT))
        train_error = _error_of_excess(p, q, factor, n_train)
        fresh_error = _error_of_excess(p, q, factor, n_fresh)
        bound = p - factor * q - z * fresh_error - penalty * train_error
        return Prediction(bound=bound, standard_error=train_error)
    if isinstance(claim, PureDP | ApproxDP):
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = p - claim.delta
            train_error = _error_of_log_ratio(p, q, excess, n_train)
            fresh_error = _error_of_log_ratio(p, q, excess, n_fresh)
            bound = np.log(excess / q) - z * fresh_error - penalty * train_error
            bound = np.where((excess > 0.0) & ~np.isnan(bound), bound, -np.inf)
        return Prediction(bound=bound, standard_error=train_error)
    # Other notions: the value at the point to which both kinds of error move (p, q).
    p, q = within(p, q, n_fresh)
    growth, slope = curve_through(claim, p, q)
    distance = z + penalty * math.sqrt(sum(n_fresh) / sum(n_train))
    low, high = towards_curve(p, q, slope, n_fresh, distance)
    error_of_p, error_of_q = _standard_errors(p, q, slope, n_train)
    return Prediction(
        bound=_values_between(claim, low, high),
        standard_error=growth * np.hypot(error_of_p, error_of_q),
    )


def _error_of_excess(p: Floats, q: Floats, factor: float, n: Sizes) -> Floats:
    """Standard error of p − factor·q when p and q are estimated from n draws."""
    return np.sqrt(p * (1.0 - p) / n[0] + factor**2 * q * (1.0 - q) / n[1])


def _error_of_log_ratio(p: Floats, q: Floats, excess: Floats, n: Sizes) -> Floats:
    """Standard error of ln(excess/q), with excess = p − δ, when both are estimated from n draws."""
    return np.sqrt(p * (1.0 - p) / (n[0] * excess**2) + (1.0 - q) / (n[1] * q))


def _standard_errors(p: Floats, q: Floats, slope: Floats, n: Sizes) -> tuple[Floats, Floats]:
    """Standard errors of p and of slope·q when p and q are estimated from n draws."""
    return np.sqrt(p * (1.0 - p) / n[0]), slope * np.sqrt(q * (1.0 - q) / n[1])


def predict_ratios(
    task: Task,
    mass: Floats,
    ratio: Floats,
    standard_error: Floats,
    *,
    n_train: Sizes,
    n_fresh: Sizes,
    penalty: float,
) -> RatioPrediction:
    """Forecasts the bounds of events whose log-ratios are known up to a standard error.

    Args:
        task: the claim, and with which failure probability the certificate must hold.
        mass: shape (events,), training draws of both sides together in each event.
        ratio: shape (events,), estimates of ln(p/q).
        standard_error: shape (events,), of these estimates.
        n_train: training draws.
        n_fresh: draws of the certificate.
        penalty: how many standard errors are subtracted from the log-ratios.
    """
    # Row 0 is the estimate, row 1 the estimate less the penalty.
    log_ratios = [ratio, ratio - penalty * standard_error]
    factor = np.exp(np.clip(log_ratios, -_MAX_ABS_LOG_RATIO, _MAX_ABS_LOG_RATIO))
    # p = factor·q, and both together account for the observed mass.
    q = mass / (n_train[0] * factor + n_train[1])
    p = np.minimum(q * factor, 1.0)
    q = np.minimum(q, 1.0)
    penalised_p = p[1]
    penalised_q = np.maximum(q[1], _MIN_EXPECTED_COUNT / n_fresh[1])
    bound = expected_bounds(
        task, penalised_p, penalised_q, n_train=n_train, n_fresh=n_fresh, penalty=0.0
    )
    fresh_variance = (1.0 - penalised_p) / (n_fresh[0] * np.maximum(penalised_p, 1e-9)) + (
        1.0 - penalised_q
    ) / (n_fresh[1] * penalised_q)
    return RatioPrediction(
        bound=bound,
        standard_error=np.sqrt(fresh_variance + standard_error**2),
        p=p[0],
        q=q[0],
    )


def expected_positive_bound(bound: Floats, standard_error: Floats) -> Floats:
    """The mean of the positive part of a normal variable: a bound below 0 certifies 0.

    Where every forecast is negative, comparing the forecasts themselves would prefer the event with
    the smallest error, which is the one that can certify nothing.

    Args:
        bound: shape (events,), the mean of the bound.
        standard_error: shape (events,), its standard deviation.
    """
    z = bound / standard_error
    bell = np.exp(-0.5 * z**2)
    positive_part = bound * ndtr(z) + standard_error * bell / math.sqrt(2.0 * math.pi)
    return np.where(z > _HOPELESS, positive_part, _HOPELESS_SCALE * bound)


def selection_penalty(n_candidates: int) -> float:
    """By how many standard errors the best of some forecasts is too high, in the median.

    If all candidates were equally good and their errors independent and normal, the largest of K
    errors would be above z with probability 1 − Φ(z)^K: its median is Φ⁻¹(2^(−1/K)). That is 0 for
    one candidate, 1.00 for four, 1.72 for sixteen. It is subtracted from every candidate in its own
    standard errors, so that a candidate with a large error must look better by more.

    Args:
        n_candidates: K, how many were compared.
    """
    return float(ndtri(0.5 ** (1.0 / max(n_candidates, 1))))


def expected_bounds(
    task: Task, p: Floats, q: Floats, *, n_train: Sizes, n_fresh: Sizes, penalty: float
) -> Floats:
    """Forecasts the bound as the one that counts exactly as expected would certify; for few draws.

    For ε it is the approximate score bound, which orders the counts in the exact test. For other
    notions exact binomial limits of both sides, at counts that need not be whole, stand for the
    joint test.

    Args:
        task: the claim, and with which failure probability the certificate must hold.
        p: shape (events,), frequencies under P.
        q: shape (events,), under Q.
        n_train: training draws.
        n_fresh: draws of the certificate.
        penalty: how many standard errors of the training draws are subtracted.

    Returns:
        Shape (events,).
    """
    claim = task.claim
    if isinstance(claim, PureDP | ApproxDP) and not isinstance(claim, ApproxDeltaDP):
        return _expected_epsilon(
            task.failure_probability,
            claim.delta,
            p,
            q,
            n_train=n_train,
            n_fresh=n_fresh,
            penalty=penalty,
        )
    train_error_of_p = np.sqrt(p * (1.0 - p) / n_train[0])
    train_error_of_q = np.sqrt(q * (1.0 - q) / n_train[1])
    p = np.maximum(p - _SHARE_OF_INDEPENDENT_ERROR * penalty * train_error_of_p, 0.0)
    q = np.minimum(q + _SHARE_OF_INDEPENDENT_ERROR * penalty * train_error_of_q, 1.0)
    p, q = within(p, q, n_fresh)
    if isinstance(claim, ApproxDeltaDP):
        # The certificate knows one of the two lines that make up its curve.
        factor = math.exp(min(claim.epsilon, _MAX_EXPONENT))
        slope = np.full(len(p), factor)
        low, high = _expected_limits(p, q, slope, n_fresh, task.failure_probability)
        return low - factor * high
    slope = curve_through(claim, p, q)[1]
    low, high = _expected_limits(p, q, slope, n_fresh, task.failure_probability)
    return _values_between(claim, low, high)


def _expected_epsilon(
    failure_probability: float,
    delta: float,
    p: Floats,
    q: Floats,
    *,
    n_train: Sizes,
    n_fresh: Sizes,
    penalty: float,
) -> Floats:
    """The score bound on ε at the expected counts, less the penalty; shape (events,)."""
    z = -float(ndtri(failure_probability))
    n_p, n_q = n_fresh
    shift = n_p * delta
    # The standard error of ln((p − δ)/q), both estimated from the training draws.
    with np.errstate(divide="ignore", invalid="ignore"):
        train_error = np.sqrt(
            p * (1.0 - p) / (n_train[0] * (p - delta) ** 2)
            + (1.0 - q) / (n_train[1] * np.maximum(q, 1e-300))
        )
    # The score bound on the ratio of the two means is the root of a quadratic equation.
    excess_count = n_p * p - shift
    other_count = n_q * q
    constant = excess_count * excess_count - z * z * shift
    linear = 2.0 * excess_count * other_count + z * z * (excess_count + other_count)
    discriminant = linear * linear - 4.0 * other_count * other_count * constant
    ratio = 2.0 * constant / (linear + np.sqrt(np.maximum(discriminant, 0.0)))
    is_positive = (excess_count > 0.0) & (constant > 0.0)
    bound = np.log(np.where(is_positive, ratio, 1.0) * n_q / n_p)
    # Events that certify nothing are ranked, too.
    bound = np.where(is_positive, bound, p - q - _RANK_LAST)
    return bound - penalty * np.asarray(train_error)


def _expected_limits(
    p: Floats, q: Floats, slope: Floats, n_fresh: Sizes, failure_probability: float
) -> tuple[Floats, Floats]:
    """Exact limits at the expected counts: a lower one of p and an upper one of q.

    The confidence is split so that the squared z-values of both limits add up to that of the whole.
    """
    error_of_p, error_of_q = _standard_errors(p, q, slope, n_fresh)
    z = float(ndtri(failure_probability)) / np.hypot(error_of_p, error_of_q)
    hits_p = n_fresh[0] * p
    hits_q = n_fresh[1] * q
    low = betaincinv(np.maximum(hits_p, 1e-9), n_fresh[0] - hits_p + 1.0, ndtr(z * error_of_p))
    high = betaincinv(hits_q + 1.0, np.maximum(n_fresh[1] - hits_q, 1e-9), ndtr(-z * error_of_q))
    return low, high


def _values_between(claim: Claim, low: Floats, high: Floats) -> Floats:
    """The claim's value at (low, high); events that certify nothing are ranked by low − high."""
    return np.where(high < low, claim.least_values(low, high), low - high)
